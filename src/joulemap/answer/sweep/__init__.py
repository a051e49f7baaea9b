"""Sweep over batch sizes."""
