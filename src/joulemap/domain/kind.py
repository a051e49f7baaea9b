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
    "view",
    "uncounted",
)
"""Operator kinds that mapping models distinguish; `operation` is finer."""

ROLES: Final = ("input", "weight", "output")
