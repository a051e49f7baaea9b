"""How well models use hardware, where it idles, and what would help."""
