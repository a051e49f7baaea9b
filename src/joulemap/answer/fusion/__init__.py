"""The savings of fusing."""
