"""Breakdown of one run."""
