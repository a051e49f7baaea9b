"""Numeric precisions and their widths."""

from __future__ import annotations

from typing import Final, Literal

Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4", "fp4"]

PRECISION_BYTES: Final[dict[str, float]] = {
    "fp64": 8.0,
    "fp32": 4.0,
    "tf32": 4.0,
    "fp16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "fp4": 0.5,
}
"""precision -> bytes of one stored element (tf32 is stored as fp32)"""

FLOPS_PER_MAC: Final = 2
"""One multiply-accumulate is two operations; the only place where MACs become FLOPs."""
