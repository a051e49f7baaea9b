"""Verification answer: measurements of other tools, the predictions for them, and causes of differences."""
