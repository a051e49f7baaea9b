"""Formulas of operators that put values into a part of a tensor: updates of a cache, assignments to a slice.

An in-place operator moves only the values that it places, so its cost does not depend on the size of the tensor. An
operator that returns a new tensor (`slice_scatter`) counts as in-place too, because compilers make it so. This holds if
the old tensor is not a parameter and nothing reads it afterwards. Otherwise the operator copies the whole tensor
(`trace/assemble.py`).
"""

from __future__ import annotations

import math
from typing import Any, Final

from joulemap.trace.formula.registry import Call, Cost, Shape, formula

PLACING: Final = frozenset(
    {
        "index_copy", "index_fill", "index_add", "index_reduce", "index_put", "_index_put_impl", "_unsafe_index_put",
        "put", "scatter", "scatter_add", "scatter_reduce", "masked_scatter", "slice_scatter", "select_scatter",
        "diagonal_scatter", "as_strided_scatter",
    }
)  # fmt: skip
"""Operators that change only some elements of their first argument, named without the underscore of in-place forms."""

PLACED: Final = frozenset({"index_put", "index_put_", "_index_put_impl_", "masked_scatter", "masked_scatter_"})
"""Operators whose traffic depends on the elements that a mask selects."""

_MASKS: Final = ("torch.bool", "torch.uint8")


def _placed(operation: str, count: int, *reads: tuple[int, int], adds: bool = False) -> Cost:
    """Return the cost of placing `count` elements; with `adds`, old elements are read and the values added to them."""
    return Cost(
        kind="data_movement",
        operation=operation,
        elementwise_count=count if adds else 0,
        read_counts=((0, count if adds else 0), *reads),
        written_count=count,
    )


def _size(value: Any) -> int:
    return math.prod(tuple(getattr(value, "shape", ())))


def _rest(shape: Shape, dimension: int) -> int:
    """Return the elements of a tensor per index along a dimension."""
    return math.prod(shape) // max(shape[dimension], 1) if shape else 1


@formula("index_copy")
def index_copy(call: Call) -> Cost:
    """One write per element of the source."""
    return _placed("index_copy", _size(call.value(3, "source")))


@formula("index_fill")
def index_fill(call: Call) -> Cost:
    """One write of a number per element of whole rows, columns or planes."""
    return _placed("index_fill", _size(call.value(2, "index")) * _rest(call.shape(0), int(call.value(1, "dim"))))


@formula("index_add", "index_reduce")
def index_add(call: Call) -> Cost:
    """One read, one addition or reduction, and one write per element of the source."""
    return _placed("scatter_add", _size(call.value(3, "source")), adds=True)


@formula("scatter")
def scatter(call: Call) -> Cost:
    """One write per index; with a reduction, also a read and an operation."""
    count = _size(call.value(2, "index"))
    reduces = call.kwargs.get("reduce") is not None
    source = ((3, count),) if hasattr(call.value(3, "src"), "shape") else ()
    return _placed("scatter_add" if reduces else "scatter", count, *source, adds=reduces)


@formula("scatter_add", "scatter_reduce")
def scatter_add(call: Call) -> Cost:
    """One read, one addition or reduction, and one write per index."""
    count = _size(call.value(2, "index"))
    return _placed("scatter_add", count, (3, count), adds=True)


@formula("index_put", "_index_put_impl", "_unsafe_index_put")
def index_put(call: Call) -> Cost:
    """One write per element that the indices name; an addition for each if values accumulate."""
    from torch import broadcast_shapes

    shape = call.shape(0)
    named: list[Shape] = []
    kept, dimension = 1, 0
    for index in call.value(1, "indices"):
        if index is None:
            kept *= shape[dimension]
            dimension += 1
        elif str(index.dtype) in _MASKS:
            known = call.known_value(index)
            named.append((int(known.count_nonzero()) if known is not None else _size(index),))
            dimension += index.dim()
        else:
            named.append(tuple(index.shape))
            dimension += 1
    count = math.prod(broadcast_shapes(*named)) * kept * math.prod(shape[dimension:])
    return _placed("index_put", count, adds=bool(call.value(3, "accumulate", False)))


@formula("put")
def put(call: Call) -> Cost:
    """One write per index; an addition for each if values accumulate."""
    return _placed("index_put", _size(call.value(1, "index")), adds=bool(call.value(3, "accumulate", False)))


@formula("slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter")
def slice_scatter(call: Call) -> Cost:
    """One write per element of the source."""
    return _placed("slice_scatter", _size(call.value(1, "src")))


@formula("masked_scatter")
def masked_scatter(call: Call) -> Cost:
    """One read of the mask, and one write per element that it selects; the source has no fewer elements."""
    known = call.known_value(call.value(1, "mask"))
    most = min(call.output_count, _size(call.value(2, "source")))
    count = min(most, int(known.count_nonzero())) if known is not None else most
    return _placed("masked_scatter", count, (2, count))
