"""Runs in the file formats of other programs: one module per format, which yields the file piece by piece."""
