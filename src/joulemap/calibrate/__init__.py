"""Coefficients of one hardware, fitted to measurements of it.

observations ─► stack of kernels ─► latency fit ─► energy fit ─► score
└─ the same without each family in turn: cross-validation
"""
