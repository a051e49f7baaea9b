"""Words and tables for placements on a box, and for boxes."""
