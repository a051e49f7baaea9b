"""Training step as a workload, derived from the operators of a forward pass."""
