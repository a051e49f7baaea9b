"""The question which design is best, of a chip whose numbers are varied."""
