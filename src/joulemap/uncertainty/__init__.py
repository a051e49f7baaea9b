"""Uncertainty of predictions: intervals, shared errors of predictions, and the best candidate."""
