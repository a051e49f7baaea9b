"""Uncertainty of predictions: intervals, errors that predictions share, and the probability that a candidate is
best.
"""
