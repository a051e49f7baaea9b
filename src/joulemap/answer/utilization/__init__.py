"""A run's energy-delay product."""
