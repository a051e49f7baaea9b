"""Fusion of operators into subgraphs, the same for all hardware, and the memory traffic that it saves."""

from joulemap.fuse.hide import fuse
from joulemap.fuse.partition import partition

__all__ = ["fuse", "partition"]
