"""The module and the inputs that a request names: files, saved programs, modules at hand, models of hubs.

How a hub's models are built and what inputs they take changes with its library. None of that is in what a workload
that ships is known by: `trace` and `fuse` decide what is counted.
"""
