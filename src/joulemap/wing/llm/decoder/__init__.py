"""Language models that decode: what their configurations say, and a pass of one as a workload."""
