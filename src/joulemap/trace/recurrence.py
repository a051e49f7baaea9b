"""Recurrent layers as their fused kernels run them: one GEMM of all inputs, then a scan over the steps.

    layer, direction:   x (steps x batch, features) ─► input GEMM ─► scan ─► y, last states

The input GEMM covers all steps. The scan is one operator of `step_count` steps, each of which waits for
the one before. A step multiplies the state of the batch by the recurrent weights, adds both products and their biases,
and computes the gates. Each direction is its own scan. The weights of a scan are one read; the hardware decides
whether they stay on chip.

Source: Appleyard et al., Optimizing Performance of Recurrent Neural Networks on GPUs, arXiv 1604.01946; counts are
those of the cells in aten/src/ATen/native/RNN.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import torch

from joulemap.trace.formula import Cost


@attrs.frozen
class _Cell:
    """Elementwise and special operations of a recurrent cell, per unit of its state and per step. GEMMs and biases are
    excluded.
    """

    gates: int
    """Columns of each GEMM per unit of the state."""
    elementwise_count: int
    special_count: int
    adds_bias: int
    """Bias additions after the recurrent GEMM, per unit of the state."""


CELLS: Final[Mapping[str, _Cell]] = {
    "lstm": _Cell(gates=4, elementwise_count=14, special_count=5, adds_bias=4),
    "gru": _Cell(gates=3, elementwise_count=11, special_count=3, adds_bias=3),
    "rnn_tanh": _Cell(gates=1, elementwise_count=1, special_count=1, adds_bias=1),
    "rnn_relu": _Cell(gates=1, elementwise_count=2, special_count=0, adds_bias=1),
}
"""ATen operator -> operations of its cell."""


@attrs.frozen(kw_only=True)
class Recurrence:
    """Call of a recurrent layer with any number of sublayers and directions."""

    cell: _Cell
    operation: str
    source: torch.Tensor
    """Input of the layer."""
    states: tuple[torch.Tensor, ...]
    """Initial hidden and cell states, each of (layers x directions, batch, width)."""
    weights: tuple[tuple[torch.Tensor, ...], ...]
    """Weights of each layer and direction: input, recurrent, then two biases and a projection if the layer has them."""
    has_biases: bool
    directions: int
    step_count: int
    token_count: int
    """Inputs over all steps and sequences; below steps x batch for packed sequences of unequal length."""
    is_packed: bool

    @classmethod
    def of(cls, call_name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Recurrence:
        """Return the recurrence that a call of an ATen operator computes."""
        names = [argument.name for argument in func._schema.arguments]
        given = dict(zip(names, args, strict=False)) | dict(kwargs)
        is_packed = "batch_sizes" in given
        source = given["data" if is_packed else "input"]
        hidden = given["hx"]
        states = (hidden,) if isinstance(hidden, torch.Tensor) else tuple(hidden)
        params = tuple(given["params"])
        scans = int(given["num_layers"]) * (2 if given["bidirectional"] else 1)
        each = len(params) // scans
        if is_packed:
            steps, tokens = int(given["batch_sizes"].shape[0]), int(source.shape[0])
        else:
            steps = int(source.shape[1 if given["batch_first"] else 0])
            tokens = math.prod(source.shape[:-1])
        return cls(
            cell=CELLS[call_name],
            operation=call_name,
            source=source,
            states=states,
            weights=tuple(params[start : start + each] for start in range(0, len(params), each)),
            has_biases=bool(given["has_biases"]),
            directions=2 if given["bidirectional"] else 1,
            step_count=max(steps, 1),
            token_count=tokens,
            is_packed=is_packed,
        )

    @property
    def width(self) -> int:
        """Features per direction in the output: those of the projection if there is one, else of the state."""
        return int(self.states[0].shape[-1])

    def outputs(self) -> tuple[torch.Tensor, ...]:
        """Return uninitialized tensors with the shapes of the operator's outputs."""
        shape = (*self.source.shape[:-1], self.directions * self.width)
        return (self.source.new_empty(shape), *(state.new_empty(state.shape) for state in self.states))


@attrs.frozen(kw_only=True)
class ShapedCost(Cost):
    """Cost with the shape of the operator's output."""

    shape: tuple[int, ...]


def product_cost(recurrence: Recurrence, weights: Sequence[torch.Tensor]) -> ShapedCost:
    """Return the cost of the input GEMM of one sublayer and direction, over all steps."""
    columns, inner = (int(size) for size in weights[0].shape)
    rows = recurrence.token_count
    return ShapedCost(
        kind="linear",
        operation="linear",
        mac_count=rows * columns * inner,
        elementwise_count=rows * columns if recurrence.has_biases else 0,
        gemm=(rows, columns, inner, 1),
        shape=(rows, columns),
    )


def scan_cost(recurrence: Recurrence, weights: Sequence[torch.Tensor]) -> ShapedCost:
    """Return the cost of the scan of one sublayer and direction, over all steps. A projection adds GEMM columns."""
    cell, rows = recurrence.cell, recurrence.token_count
    columns, inner = (int(size) for size in weights[1].shape)
    units = columns // cell.gates
    projects = len(weights) > (4 if recurrence.has_biases else 2)
    columns += units if projects else 0
    biases = cell.adds_bias if recurrence.has_biases else 0
    return ShapedCost(
        kind="matmul",
        operation=f"{recurrence.operation}_scan",
        mac_count=rows * columns * inner,
        elementwise_count=rows * units * (cell.elementwise_count + biases),
        special_count=rows * units * cell.special_count,
        gemm=(rows, columns, inner, 1),
        step_count=recurrence.step_count,
        scalars=f"steps={recurrence.step_count}",
        shape=(rows, recurrence.width),
    )
