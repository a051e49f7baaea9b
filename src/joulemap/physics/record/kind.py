"""Kinds of operators and roles of their traffic."""

from __future__ import annotations

from typing import Final

KINDS: Final = (
    "conv",
    "depthwise_conv",
    "grouped_conv",
    "linear",
    "matmul",
    "batch_norm",
    "normalization",
    "softmax",
    "elementwise",
    "pool",
    "reduction",
    "data_movement",
    "communication",
    "overhead",
    "view",
    "uncounted",
)
"""Kinds of operators that performance models distinguish; an operator's `operation` is more specific."""

ROLES: Final = ("input", "weight", "output")
