"""Comparison of the architecture classes on one model."""
