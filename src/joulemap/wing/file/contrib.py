"""Shapes of operators outside the standard, as ONNX Runtime writes them.

Source: ContribOperators.md of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from joulemap.wing.file.value import Value

FLOAT: Final = 1
INT32: Final = 6

SAME: Final = frozenset(
    {"FastGelu", "Gelu", "QuickGelu", "BiasGelu", "BiasSplitGelu", "SimplifiedLayerNormalization", "RotaryEmbedding",
     "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}
)  # fmt: skip
"""Operators whose outputs have the shape of their first input."""


def infer_contrib(
    op: str, inputs: Sequence[Value | None], attributes: Mapping[str, Any]
) -> list[tuple[tuple[int, ...], int]] | None:
    """Return (shape, type of elements) of each output; None for an unknown operator."""
    first = inputs[0] if inputs else None
    if first is None:
        return None
    if op in SAME:
        return [(first.shape, FLOAT)] * 4
    if op == "MatMulNBits":
        return [((*first.shape[:-1], int(attributes["N"])), FLOAT)]
    if op in ("FusedMatMul", "MatMulIntegerToFloat", "QGemm", "FusedGemm") and inputs[1] is not None:
        right = inputs[1].shape
        return [((*first.shape[:-1], right[-2] if attributes.get("transB") else right[-1]), FLOAT)]
    if op in ("MultiHeadAttention", "GroupQueryAttention"):
        return _infer_attention(inputs, attributes)
    return None


def _infer_attention(
    inputs: Sequence[Value | None], attributes: Mapping[str, Any]
) -> list[tuple[tuple[int, ...], int]] | None:
    query = inputs[0]
    assert query is not None
    if len(query.shape) != 3:
        return None
    batch, rows, width = query.shape
    heads = int(attributes["num_heads"])
    pairs = int(attributes.get("kv_num_heads", heads))
    past = next((one for one in inputs[3:7] if one is not None and len(one.shape) == 4), None)
    length = rows + (past.shape[2] if past is not None else 0)
    cache = ((batch, pairs, length, width // heads), FLOAT)
    return [((batch, rows, width), FLOAT), cache, cache]
