"""Single operators: their names."""
