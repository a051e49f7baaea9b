"""Resolution of a request to a module and its inputs: files, saved programs, in-memory modules, models of hubs.

How a hub builds its models, and which inputs they take, changes with its library. The key of a shipped workload does
not depend on this package, because `trace` and `fuse` decide what is counted.
"""
