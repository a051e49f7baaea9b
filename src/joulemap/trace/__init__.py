"""Trace of a PyTorch module to a `Workload`; `construct` provides the module and its inputs.

The module runs once on the meta device under a dispatch mode (`record`). Each dispatched operator is counted by the
formula registered for it (`formula`), and the recorded calls become records (`assemble`). Nothing is allocated:
parameters and activations have shapes and dtypes only.
"""
