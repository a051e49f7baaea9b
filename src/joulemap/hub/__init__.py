"""Resolution of a request to a module and its inputs: files, saved programs, in-memory modules, models of hubs.

How a hub builds its models, and which inputs they take, changes with its library. None of it is part of the key of a
shipped workload: `trace` and `fuse` decide what is counted.
"""
