"""Sketches in characters: each kind is drawn by a module, on plotille's canvas of cells."""
