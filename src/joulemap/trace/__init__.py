"""A PyTorch module to a `Workload`. `hub` says which module, and with what inputs.

The module runs once on the meta device under a dispatch mode (`record`), each dispatched operator is counted by
the formula registered for it (`formula`), and what was recorded becomes records (`assemble`). Nothing is
allocated: parameters and activations have shapes and dtypes only.
"""
