"""Run a model here and time it."""
