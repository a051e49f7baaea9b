"""Fit coefficients of one chip to its measurements.

observations ─► stack of kernels ─► latency fit ─► energy fit ─► score
└─ the same without each family in turn: cross-validation
"""
