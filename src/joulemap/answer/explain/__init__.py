"""The difference of two runs."""
