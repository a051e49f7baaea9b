"""Fit the coefficients of one chip to its measurements.

observations ─► stack of kernels ─► latency fit ─► energy fit ─► score
└─ again without each model family: cross-validation
"""
