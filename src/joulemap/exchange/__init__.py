"""Export of runs to the file formats of other programs: one module per format, which yields the file in pieces."""
