"""Fusion of operators into subgraphs: a hardware-independent partition, and the traffic that it hides."""

from joulemap.fuse.hide import fuse
from joulemap.fuse.partition import partition

__all__ = ["fuse", "partition"]
