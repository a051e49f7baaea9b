"""Text drawings, one module per kind, on a canvas of character cells from plotille."""
