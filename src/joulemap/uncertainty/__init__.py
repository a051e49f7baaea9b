"""Uncertainty of predictions: intervals, what two predictions share of their errors, and which candidate is best."""
