"""Energy-delay product of a run."""
