"""Explanation of the difference of two runs."""
