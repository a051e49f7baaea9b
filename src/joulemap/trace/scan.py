"""Operators of a recurrent layer's call, and the values passed between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from joulemap.trace.assembly import Assembly, PassedValue
from joulemap.trace.record import RecordedCall
from joulemap.trace.recurrence import Recurrence, product_cost, scan_cost
from joulemap.trace.tensor import touched_bytes


def assemble_recurrence(assembly: Assembly, call: RecordedCall) -> None:
    """Append the operators of a recurrent layer's call: for each sublayer and direction a GEMM and a scan."""
    recurrence = Recurrence.of(call.name, call.func, call.args, call.kwargs)
    tensors = assembly.recorder.tensors
    position = {id(tensors[index].tensor): index for index in call.reads}
    products: list[int] = []
    scans: list[int] = []
    layer_count = len(recurrence.weights) // recurrence.directions
    handed: PassedValue | None = None
    for layer in range(layer_count):
        is_last = layer == layer_count - 1
        shape = (recurrence.token_count, recurrence.directions * recurrence.width)
        following = None if is_last else PassedValue(assembly, shape, recurrence.source)
        for direction in range(recurrence.directions):
            weights = recurrence.weights[layer * recurrence.directions + direction]
            label = f"l{layer}{'_reverse' if direction else ''}"
            cost = product_cost(recurrence, weights)
            product = assembly.add_operator(call, cost, own_path=False, label=f"input_{label}", shape=cost.shape)
            if handed is None:
                source = recurrence.source
                assembly.add_access(product, source, position[id(source)], "input", touched_bytes(source))
                products.append(product)
            else:
                handed.read(product)
            _read_weights(assembly, product, position, weights[::2][: 2 if recurrence.has_biases else 1])
            projected = PassedValue(assembly, cost.shape, recurrence.source)
            projected.write(product)
            cost = scan_cost(recurrence, weights)
            scan = assembly.add_operator(call, cost, own_path=False, label=f"scan_{label}", shape=cost.shape)
            projected.read(scan)
            rest = weights[1::2][:2] if recurrence.has_biases else weights[1:2]
            rest += weights[4 if recurrence.has_biases else 2 :]
            _read_weights(assembly, scan, position, rest)
            for state in recurrence.states:
                part = touched_bytes(state) // len(recurrence.weights)
                assembly.add_access(scan, state, position[id(state)], "input", part)
            if following is None:
                _write(assembly, call, scan, 0, recurrence.directions)
            else:
                following.write(scan, recurrence.directions)
            for output in range(1, len(call.writes)):
                _write(assembly, call, scan, output, len(recurrence.weights))
            scans.append(scan)
        handed = following
    _join(assembly, call, recurrence, position, products, scans)
    assembly.last_operator.append(scans[-1])


def _join(
    assembly: Assembly,
    call: RecordedCall,
    recurrence: Recurrence,
    position: Mapping[int, int],
    products: Sequence[int],
    scans: Sequence[int],
) -> None:
    """Add edges for the call's dependences: inputs to the first GEMMs, initial states to scans, any other to both."""
    inputs = {position[id(recurrence.source)]}
    states = {position[id(state)] for state in recurrence.states}
    for dependence in call.depends:
        consumers = [*products, *scans]
        if dependence[1] in inputs - states:
            consumers = list(products)
        elif dependence[1] in states - inputs:
            consumers = list(scans)
        for consumer in consumers:
            assembly.add_edges(consumer, (dependence,))


def _read_weights(
    assembly: Assembly, operator: int, position: Mapping[int, int], weights: Sequence[torch.Tensor]
) -> None:
    for weight in weights:
        assembly.add_access(operator, weight, position[id(weight)], "input", touched_bytes(weight))


def _write(assembly: Assembly, call: RecordedCall, operator: int, output: int, share: int) -> None:
    """Record that an operator writes one of `share` equal parts of an output of the call."""
    index = call.writes[output]
    tensor = assembly.recorder.tensors[index].tensor
    assembly.add_access(operator, tensor, index, "output", touched_bytes(tensor) // share)
