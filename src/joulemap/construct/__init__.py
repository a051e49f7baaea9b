"""Resolution of a request to a module and its inputs: torchvision, files, saved programs, in-memory modules.

Wings build the models that they name (`builder`). The key of a shipped workload does not depend on this package,
because `trace` and `fuse` decide what is counted.
"""
