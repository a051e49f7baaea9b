"""Character sketches, one module per kind, drawn on plotille's canvas of cells."""
