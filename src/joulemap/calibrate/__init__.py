"""Fit coefficients of one hardware to its measurements.

observations ─► stack of kernels ─► latency fit ─► energy fit ─► score
└─ the same without each family in turn: cross-validation
"""
