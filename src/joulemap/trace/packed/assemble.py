"""Operators of a call that multiplies by packed weights.

    packed_linear(x, parts)  ──►  dequantize(parts) ──► linear(x, wide)     one call: `SPLIT_CALLS` of the model
    scaled_linear(x, parts)  ──►  linear(x, parts)
    unpack_weight(parts)     ──►  dequantize(parts)

Stored tensors move at their own width, whatever the precision of a run. A grouped GEMM reads, and dequantizes, the
weights of the groups that got a row.
"""

from __future__ import annotations

import math

import torch

from joulemap.trace.assembly import Assembly, PassedValue
from joulemap.trace.formula import Call, Cost
from joulemap.trace.formula.product import PACKED_GROUPED, group_sizes
from joulemap.trace.packed.call import NAMESPACE, UNPACK
from joulemap.trace.record import RecordedCall
from joulemap.trace.tensor import touched_bytes


def is_packed(call: RecordedCall) -> bool:
    """Return whether a call multiplies by packed weights, or dequantizes them."""
    return call.aten.startswith(f"{NAMESPACE}.")


def assemble_packed(assembly: Assembly, call: RecordedCall, *, own_path: bool) -> None:
    """Append the operators of a call. A GEMM gets the name of its module if the module makes no other call."""
    if call.name == UNPACK:
        operator = _dequantize(assembly, call, call.args[0], call.args[3], call.outputs[0].shape, (1, 1))
    else:
        operator = _multiply(assembly, call, own_path=own_path)
    for index in call.writes:
        tensor = assembly.recorder.tensors[index].tensor
        assembly.add_access(operator, tensor, index, "output", touched_bytes(tensor))
    assembly.last_operator.append(operator)


def _multiply(assembly: Assembly, call: RecordedCall, *, own_path: bool) -> int:
    x, parts, columns, (per_weight, per_input, per_output), *more = call.args
    kind = call.name.partition("_")[2]
    cost, share = _cost(call, kind, per_input, per_output)
    _, _, inner, groups = cost.gemm
    wide = None
    if per_weight:
        shape = (columns, inner) if kind == "linear" else (groups, inner, columns)
        wide = PassedValue(assembly, shape, x)
        wide.write(_dequantize(assembly, call, parts, per_weight, shape, share))
    product = assembly.add_operator(call, cost, own_path=own_path)
    stored = {assembly.recorder.find(part) for part in parts}
    routed_bytes = cost.mac_count // columns * x.element_size()
    assembly.add_access(product, x, assembly.recorder.find(x), "input", min(touched_bytes(x), routed_bytes))
    for tensor in more:
        if isinstance(tensor, torch.Tensor):
            assembly.add_access(product, tensor, assembly.recorder.find(tensor), "input", touched_bytes(tensor))
    if wide is not None:
        wide.read(product)
    else:
        _read_parts(assembly, product, parts, share)
    assembly.add_edges(product, tuple(one for one in call.depends if wide is None or one[1] not in stored))
    return product


def _cost(call: RecordedCall, kind: str, per_input: int, per_output: int) -> tuple[Cost, tuple[int, int]]:
    """Return (cost of a GEMM, share of the weights that it reads). The share is (groups with rows, all groups)."""
    x, parts, columns, _, *more = call.args
    *outer, inner = x.shape
    share = (1, 1)
    if call.name in PACKED_GROUPED:
        rows, hit = group_sizes(Call(call.args, call.kwargs, call.outputs, call.aten, call.known), more[0], outer[0])
        gemm, share = (-(-rows // max(hit, 1)), columns, inner, hit), (hit, parts[0].shape[0])
    elif kind == "bmm":
        rows, gemm = math.prod(outer), (outer[1], columns, inner, outer[0])
    else:
        rows, gemm = math.prod(outer), (math.prod(outer), columns, inner, 1)
    has_bias = kind == "linear" and more[0] is not None
    cost = Cost(
        kind="linear" if kind == "linear" else "matmul",
        operation="matmul" if kind == "bmm" else kind,
        mac_count=rows * inner * columns,
        elementwise_count=rows * (per_input * inner + (per_output + has_bias) * columns),
        gemm=gemm,
    )
    return cost, share


def _dequantize(
    assembly: Assembly,
    call: RecordedCall,
    parts: list[torch.Tensor],
    per_weight: int,
    shape: tuple[int, ...],
    share: tuple[int, int],
) -> int:
    """Append the operator that dequantizes weights and return its index.

    It is foldable unless the choice of weights depends on data.
    """
    cost = Cost(kind="elementwise", operation="dequantize", elementwise_count=per_weight * math.prod(shape))
    recorder = assembly.recorder
    stored = {recorder.find(part) for part in parts}
    roles = {recorder.tensors[recorder.tensors[index].base].role for index in stored}
    operator = assembly.add_operator(
        call,
        cost,
        own_path=False,
        label="dequantize",
        shape=tuple(shape),
        is_foldable=roles <= {"parameter", "constant"},
    )
    _read_parts(assembly, operator, parts, share)
    assembly.add_edges(operator, tuple(one for one in call.depends if one[1] in stored))
    return operator


def _read_parts(assembly: Assembly, operator: int, parts: list[torch.Tensor], share: tuple[int, int]) -> None:
    hit, every = share
    for part in parts:
        index = assembly.recorder.find(part)
        assembly.add_access(operator, part, index, "input", touched_bytes(part) * hit // every, item_bytes=0)
