"""Questions about placements on a box, and about boxes."""
