"""Fusion of operators into subgraphs, the same for all hardware, and the memory traffic that it saves."""

from joulemap.physics.fuse.hide import fuse
from joulemap.physics.fuse.partition import partition

__all__ = ["fuse", "partition"]
