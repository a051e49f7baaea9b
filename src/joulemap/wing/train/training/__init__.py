"""Training: a step of a model as a workload, made of the operators of its forward pass."""
