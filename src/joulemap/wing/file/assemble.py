"""Conversion of a file's graph into a workload: its operators in order, with their reads and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from joulemap.physics import Edge, Workload, WorkloadKey, allocate
from joulemap.system import ModelError, Reading, frozen
from joulemap.trace.formula import Cost
from joulemap.wing.file.assembly import ATTENTIONS, INDICES, Assembly
from joulemap.wing.file.call import RULES, AtenCall
from joulemap.wing.file.graph import Program
from joulemap.wing.file.lite_call import LITE_RULES
from joulemap.wing.file.value import Node, Value, list_present

CELLS: Final[Mapping[str, tuple[str, int, int, int]]] = {
    "LSTM": ("lstm", 4, 14, 5), "GRU": ("gru", 3, 11, 3), "RNN": ("rnn_tanh", 1, 1, 1),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("lstm", 4, 14, 5),
}  # fmt: skip
"""Recurrent operator -> ATen operator, gates, and elementwise and special operations per unit and step."""

PEEPHOLES: Final = 7
"""Index of the ONNX LSTM input with peephole weights (from the cell to its gates), which have no formula."""


@frozen(kw_only=True)
class Layer:
    """Recurrent layer with one direction or two: one GEMM of all inputs, then a scan over the steps, as in a trace.

        LSTM of ONNX: W and R hold all gates of each direction     LSTM of TFLite: a matrix for each gate

    Source: same counts as `trace.recurrence`, which needs torch; a test compares both.
    """

    source: Value
    inputs: Sequence[Value]
    """Weights of the GEMM that multiplies the inputs of all steps."""
    states: Sequence[Value]
    """Weights of the GEMM that multiplies the state in each step."""
    biases: Sequence[Value]
    has_two_biases: bool
    """True if both GEMMs have a bias; `biases` then contains the biases of both."""
    kept: Sequence[Value]
    """Initial hidden and cell states."""
    directions: int
    step_count: int
    row_count: int
    """Rows of the GEMM that multiplies the inputs of all steps: steps x sequences."""
    width: int
    """Hidden units per direction."""


def read_layer(node: Node) -> Layer:
    """Return the recurrent layer of a node; ModelError for weights whose use has no formula."""
    x = node.given(0)
    if len(x.shape) != 3:
        raise ModelError(f"{node.op} {node.name!r} has an input of the shape {x.shape}, expected three axes")
    if node.op in ("LSTM", "GRU", "RNN"):
        if node.value(PEEPHOLES) is not None:
            raise ModelError(f"{node.op} {node.name!r} has peepholes, which have no formula")
        recurrent, bias = node.given(2), node.value(3)
        if len(recurrent.shape) != 3 or len(node.given(1).shape) != 3:
            raise ModelError(f"{node.op} {node.name!r} has weights of the shape {recurrent.shape}, expected three axes")
        return Layer(
            source=x,
            inputs=(node.given(1),),
            states=(recurrent,),
            biases=list_present([bias]),
            has_two_biases=True,
            kept=list_present([node.value(5), node.value(6)]),
            directions=recurrent.shape[0],
            step_count=x.shape[1 if node.attributes.get("layout") else 0],
            row_count=x.shape[0] * x.shape[1],
            width=recurrent.shape[-1],
        )
    inputs, states = list_present([*node.inputs[1:5]]), list_present([*node.inputs[5:9]])
    extra = list_present([*node.inputs[9:12], *node.inputs[16:18]])
    if extra or len(inputs) != 4 or len(states) != 4 or any(len(one.shape) != 2 for one in (*inputs, *states)):
        raise ModelError(f"{node.op} {node.name!r} has peepholes, a projection or fewer gates, which have no formula")
    return Layer(
        source=x,
        inputs=inputs,
        states=states,
        biases=list_present([*node.inputs[12:16]]),
        has_two_biases=False,
        kept=list_present([*node.inputs[18:20]]),
        directions=1,
        step_count=x.shape[0 if node.attributes.get("time_major") else 1],
        row_count=x.shape[0] * x.shape[1],
        width=states[0].shape[0],
    )


def add_recurrence(made: Assembly, node: Node, path: str) -> None:
    """Add the GEMMs and the scans of a recurrent node to a workload."""
    layer = read_layer(node)
    aten, gates, elementwise_count, special_count = CELLS[node.op]
    rows, columns, inner, width = layer.row_count, gates * layer.width, layer.source.shape[-1], layer.width
    adds = 1 if layer.biases else 0
    product = Cost(
        kind="linear",
        operation="linear",
        mac_count=rows * columns * inner,
        elementwise_count=rows * columns * adds,
        gemm=(rows, columns, inner, 1),
    )
    scan = Cost(
        kind="matmul",
        operation=f"{aten}_scan",
        mac_count=rows * columns * width,
        elementwise_count=rows * width * (elementwise_count + gates * adds * layer.has_two_biases),
        special_count=rows * width * special_count,
        gemm=(rows, columns, width, 1),
        step_count=layer.step_count,
        scalars=f"steps={layer.step_count}",
    )
    shares = {id(one): one.byte_count // layer.directions for one in (*layer.inputs, *layer.states, *layer.kept)}
    shares |= {id(one): one.byte_count // layer.directions // (1 + layer.has_two_biases) for one in layer.biases}
    for direction in range(layer.directions):
        label = "_reverse" if direction else ""
        projected = Value(f"{node.name}.input{label}", (rows, columns), layer.source.dtype, layer.source.item_size)
        first = made.add(aten, product, projected, path, False, f"input{label}")
        made.read(first, [layer.source, *layer.inputs, *layer.biases], shares)
        made.write(first, [projected])
        result = Value(f"{node.name}.scan{label}", (rows, width), layer.source.dtype, layer.source.item_size)
        second = made.add(aten, scan, result, path, False, f"scan{label}")
        made.read(
            second, [projected, *layer.states, *(layer.biases if layer.has_two_biases else ()), *layer.kept], shares
        )
        for output in node.outputs:
            made.write_part(second, output, layer.directions)


EVERY: Final = {**RULES, **LITE_RULES}
"""Operator of ONNX or TFLite -> rule of its ATen call; no name occurs in both formats."""


def find_call(node: Node) -> AtenCall | None:
    """Return the ATen call of a node; None if it does not change its input, or is counted in another way.

    Raise ModelError for an operator without a rule.
    """
    if node.op in ATTENTIONS or node.op in CELLS:
        return None
    if node.op not in EVERY:
        raise ModelError(f"{node.op} {node.name!r} has no formula")
    return EVERY[node.op](node)


def assemble(program: Program, name: str, key: WorkloadKey, batch: int, notes: tuple[str, ...]) -> Workload:
    """Return the workload of a graph, before fusion; ModelError for an operator that has no formula."""
    made = Assembly()
    for value in program.inputs:
        made.own(value, "input")
    with Reading(name) as reading:
        calls: list[tuple[Node, AtenCall | None]] = []
        for node in program.nodes:
            reading.part = node
            calls.append((node, find_call(node)))
        paths = [find_path(node) for node, _ in calls]
        pairs = zip(paths, calls, strict=True)
        alone = Counter(path for path, (node, call) in pairs if call is None or not call.is_view)
        for path, (node, call) in zip(paths, calls, strict=True):
            reading.part = node
            _add_node(made, node, call, path, own=alone[path] == 1)
        reading.part = ""
        return _finish(made, program, name, key, batch, notes)


def _add_node(made: Assembly, node: Node, call: AtenCall | None, path: str, *, own: bool) -> None:
    """Add the operators of a node to a workload; `own` if no other node has the path."""
    if all(one.is_weight for one in node.outputs):
        return  # an engine computes such a value once, and stores it as a weight
    if node.op in ATTENTIONS:
        made.add_attention(node, path)
    elif node.op in CELLS:
        add_recurrence(made, node, path)
    elif call is None:
        made.layouts[id(node.outputs[0])] = made.lay_out(node.given(0))
        made.held.append(node.outputs[0])
    elif call.is_view:
        made.add_view(node, call, path)
    else:
        made.add_call(node, call, path, own)


def find_path(node: Node) -> str:
    """Return the path of a node's module, from the name of its weight, else from its own name."""
    for value in node.inputs[1:3]:
        if value is not None and value.is_weight and value.name.endswith((".weight", ".bias")):
            return value.name.rpartition(".")[0]
    parts: list[str] = []
    for part in node.name.strip("/").split("/")[:-1]:
        if parts and part.startswith(f"{parts[-1]}."):
            parts[-1] = part
        else:
            parts.append(part)
    return ".".join(parts)


def _finish(
    made: Assembly, program: Program, name: str, key: WorkloadKey, batch: int, notes: tuple[str, ...]
) -> Workload:
    outside = {made.lay_out(one).base for one in program.outputs if not one.is_weight}
    last = max(len(made.operators) - 1, 0)
    uses = ((access.operator_index, access.tensor_index) for access in made.accesses)
    tensors, buffers = allocate(made.tensors, made.items, made.makers, uses, outside, last)
    weights = {access.tensor_index for access in made.accesses if access.role == "weight"}
    return Workload(
        key=key,
        model=name,
        batch=batch,
        parameter_count=sum(one.count for one in program.weights if one.dtype not in INDICES),
        weight_bytes=sum(tensors[index].byte_count for index in sorted(weights)),
        operators=tuple(made.operators),
        tensors=tensors,
        accesses=tuple(
            attrs.evolve(one, is_boundary=True) if one.role == "output" and one.tensor_index in outside else one
            for one in made.accesses
        ),
        edges=tuple(
            Edge(producer_index=maker, consumer_index=reader, tensor_index=tensor)
            for maker, reader, tensor in made.edges
        ),
        buffers=buffers,
        notes=notes,
    )
