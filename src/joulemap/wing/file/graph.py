"""ONNX graph with the shape of every value, and the values that do not depend on an input.

message ─► sizes of inputs ─► node by node: all inputs known? compute it : infer the shapes of its outputs
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.physics import read_weight_format
from joulemap.system import ModelError, Reading, UsageError
from joulemap.wing.file.infer import MOST_COMPUTED, Values, read_attributes
from joulemap.wing.file.value import DTYPES, FLOATS, MOST_LINKS, MOST_NODES, Node, Value, check_shape, list_present

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

    from joulemap.construct import InputSpec

MOST_UNROLLED: Final = 20_000
"""Maximum operators that unrolling all loops of a file may add."""

MOST_EXPANDED: Final = 50_000_000
"""Maximum bytes of the operators of a graph after its local functions are expanded: 500 per operator."""

DEEPEST_CALL: Final = 64
"""Maximum depth of local functions that call each other; exporters write one per level of modules, about ten."""

IDLE: Final = frozenset({"Identity", "Constant"})
"""Operators that compute nothing, and do not count where two branches are compared."""

RECURRENT: Final[Mapping[str, tuple[int, ...]]] = {"LSTM": (0, 5, 6), "GRU": (0, 5), "RNN": (0, 5)}
"""Recurrent operator -> inputs whose second axis is the batch (layout 0): sequences and initial states."""

ROWWISE: Final = frozenset(
    {"Identity", "Cast", "Gather", "MatMul", "Add", "Mul", "Relu", "Dropout", "LayerNormalization"}
)
"""Operators that keep the leading axes of their input; before a recurrent layer they make up an embedding."""

PRODUCTS: Final = ("Conv", "MatMul", "Gemm", "Einsum", "LSTM", "GRU", "RNN", "Attention")
"""Substrings of the names of operators that perform multiply-accumulates."""

WIDE: Final = ("fp16", "bf16")
STORED: Final[Mapping[str, str]] = {
    **dict(zip(WIDE, WIDE, strict=True)), "int8": "int8", "uint8": "int8", "int4": "int4", "uint4": "int4",
    "fp8_e4m3fn": "fp8", "fp8_e5m2": "fp8",
}  # fmt: skip
"""Dtype of stored weights -> precision; weights of any other dtype count as fp32."""

PACKED: Final = "MatMulNBits"
"""Product of ONNX Runtime whose weights are integer codes of 2 to 8 bits, packed in bytes."""

MOST_BLOCK: Final = 65_536
"""Maximum weights that share a scale; ONNX Runtime uses 16 to 256."""

CARRIED: Final = frozenset(
    {"Identity", "Transpose", "Reshape", "Cast", "Unsqueeze", "Squeeze", "Flatten", "DequantizeLinear",
     "QuantizeLinear"}
)  # fmt: skip
"""Operators whose result counts as a weight if all inputs are weights, because an engine computes it once."""


@attrs.define
class Program:
    """Graph of a file with the shapes of its values, as a workload is built from it."""

    name: str
    """Path of the file, for errors."""
    nodes: list[Node]
    inputs: list[Value]
    outputs: list[Value]
    weights: list[Value]
    producer: str
    opset: int
    assumed: tuple[str, ...] = ()
    """Operators whose output size depends on data; the maximum size is assumed."""
    branch_count: int = 0
    """Number of conditions that depend on data; of each, only one branch is counted."""


def read_program(model: ModelProto, name: str, inputs: Sequence[InputSpec], batch: int | None) -> Program:
    """Return the graph of a model at the given sizes.

    Raise UsageError for a size that is dynamic or contradicts the file, ModelError for an operator or a value that
    cannot be read.
    """
    from onnx import defs
    from onnx.inliner import inline_local_functions

    versions = {one.domain: one.version for one in model.opset_import}
    opset, newest = versions.get("", versions.get("ai.onnx", 0)), defs.onnx_opset_version()
    if opset > newest:
        raise ModelError(
            f"{name} uses operator set {opset}, but the installed package onnx supports up to {newest}: pip install "
            "-U onnx"
        )
    with Reading(name) as reading:
        if model.functions:
            reading.part = "a local function"
            check_functions(model)
            model = inline_local_functions(model)
        reader = _Reader(name=name, opsets=versions or {"": opset}, ir_version=model.ir_version, reading=reading)
        return reader.read(model, inputs, batch)


def find_fixed_batch(model: ModelProto) -> int | None:
    """Return the batch size that a file fixes, or None if the batch is dynamic.

    It is the first size of the inputs if the outputs share it, else 1: the first size of an image without a batch is
    its channels. Where a recurrent layer takes steps first, the batch may be any axis of an output.
    """
    axes = find_batch_axes(model)
    inputs = [_find_size(one.type, axes[one.name]) for one in _list_free(model)]
    fixed = [one for one in inputs if one]
    if not fixed:
        return None
    end = None if any(axes.values()) else 1
    outputs = [[one.dim_value for one in made.type.tensor_type.shape.dim[:end]] for made in model.graph.output]
    return fixed[0] if fixed[0] == inputs[0] and outputs and all(fixed[0] in one for one in outputs) else 1


def find_batch_axes(model: ModelProto) -> dict[str, int]:
    """Return the axis of the batch in each input: 1 where a recurrent layer takes steps before sequences, else 0."""
    axes = dict.fromkeys((one.name for one in _list_free(model)), 0)
    if not any(node.op_type in RECURRENT for node in model.graph.node):
        return axes
    kept = {name: name for name in axes}
    """Value -> the graph's input from which its leading axes come."""
    for node in model.graph.node:
        if node.op_type in RECURRENT and not read_attributes(node).get("layout", 0):
            axes |= {kept[node.input[index]]: 1 for index in RECURRENT[node.op_type] if _take(node, index) in kept}
        if node.op_type in ROWWISE:
            places = (1,) if node.op_type == "Gather" else (0, 1)
            axis = next((kept[_take(node, index)] for index in places if _take(node, index) in kept), None)
            kept |= {} if axis is None else dict.fromkeys(node.output[:1], axis)
    return axes


def _take(node: NodeProto, position: int) -> str:
    """Return the name of an operator's input at a position; empty if the input is omitted."""
    return node.input[position] if position < len(node.input) else ""


def measure_onnx_precision(model: ModelProto) -> tuple[str, str]:
    """Return the precision of a model's activations, and of its weights if that is narrower; empty for fp32.

    Activations count as quantized if most matrix products read quantized ones: in fp8 with weights in fp8, else int8.
    """
    makers = {name: one for one in model.graph.node for name in one.output}
    weights = {one.name: one for one in model.graph.initializer}
    products = [one for one in model.graph.node if any(part in one.op_type for part in PRODUCTS)]
    coded = sum(
        one.op_type.startswith("QLinear") or one.op_type.endswith("Integer") or _is_coded(one, makers, weights)
        for one in products
    )
    sizes: dict[str, int] = {}
    for name, packed, stored in find_packed(products):
        sizes[stored] = sizes.get(stored, 0) + math.prod(packed)
        weights.pop(name, None)
    floats: dict[str, int] = {}
    alike = Counter((one.data_type, tuple(one.dims)) for one in weights.values())
    for (kind, shape), repeats in alike.items():
        dtype, count = DTYPES.get(kind, ("", 0))[0], repeats * math.prod(shape)
        if len(shape) > 1:
            precision = STORED.get(dtype, "")
            sizes[precision] = sizes.get(precision, 0) + count
        if dtype in FLOATS:  # biases and scales have the type of activations
            floats[dtype] = floats.get(dtype, 0) + count
    stored = max(sizes, key=lambda name: sizes[name], default="")
    beside = max(floats, key=lambda name: floats[name], default="")
    if 2 * coded > len(products):
        return ("fp8", "") if stored == "fp8" else ("int8", stored if stored == "int4" else "")
    return (stored, "") if stored in WIDE else (beside if stored and beside in WIDE else "", stored)


def find_packed(nodes: Iterable[NodeProto]) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Yield (name, shape, weight format) of the weights that are packed in bytes, for each product that reads some."""
    for node in nodes:
        if node.op_type == PACKED:
            own = Node(node.op_type, node.name, (), [], read_attributes(node))
            kind = "uint" if _take(node, 3) else "int"  # uint has zero points
            bits, block = own.integer("bits", 4, least=2, most=8), own.integer("block_size", least=1, most=MOST_BLOCK)
            stored = read_weight_format(f"{kind}{bits}:{block}").name
            yield _take(node, 1), (own.integer("N", least=1), own.integer("K", least=1)), stored


def _is_coded(product: NodeProto, makers: Mapping[str, NodeProto], weights: Collection[str]) -> bool:
    """Return whether a matrix product reads activations that were quantized and dequantized."""
    maker = makers.get(product.input[0]) if product.input else None
    if maker is None or maker.op_type != "DequantizeLinear":
        return False
    before = makers.get(maker.input[0])
    return maker.input[0] not in weights and before is not None and before.op_type != "Constant"


def _list_free(model: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs of a model that are not weights; old files list weights as inputs too."""
    weights = set(map(attrgetter("name"), model.graph.initializer))
    return [one for one in model.graph.input if one.name not in weights]


def _find_size(declared: TypeProto, axis: int) -> int | None:
    """Return the size of an axis; 0 if it is dynamic, None if the tensor has no such axis."""
    dims = declared.tensor_type.shape.dim
    return max(dims[axis].dim_value, 0) if len(dims) > axis else None


@attrs.define
class _Reader(Values):
    """Reader that turns an ONNX graph into a program, operator by operator."""

    reading: Reading = attrs.field(factory=lambda: Reading(""))
    left_nodes: int = MOST_NODES
    """Number of operators and stored tensors that may still be added."""
    left_links: int = MOST_LINKS
    fixed: int = 1
    """Batch size that the file fixes; 1 if it fixes none."""
    axes: dict[str, int] = attrs.field(factory=dict)
    """Name of an input -> axis of its batch."""
    sizes: dict[str, int] = attrs.field(factory=dict)
    """Name of a dynamic size -> its value, known from the given inputs."""
    unrolled: int = 0
    branch_count: int = 0

    def read(self, model: ModelProto, inputs: Sequence[InputSpec], batch: int | None) -> Program:
        graph = model.graph
        packed = {name: shape for name, shape, _ in find_packed(graph.node)}
        weights = [self.add_stored(one, packed.get(one.name)) for one in graph.initializer]
        free = _list_free(model)
        self.axes = find_batch_axes(model)
        self.fixed = find_fixed_batch(model) or 1
        taken = match_inputs(self.name, [one.name for one in free], inputs)
        for one in sorted(free, key=lambda one: one.name not in taken):
            self.name_sizes(one.name, one.type, taken.get(one.name), batch)
        given = [self.add_input(one.name, one.type, taken.get(one.name), batch) for one in free]
        for value in given:
            check_shape(f"input {value.name[:80]!r}", value.shape)
        for node in graph.node:
            self.add(node)
        outputs = [self.values[one.name] for one in graph.output if one.name in self.values]
        return Program(
            name=self.name,
            nodes=self.nodes,
            inputs=given,
            outputs=outputs,
            weights=weights,
            producer=f"{model.producer_name} {model.producer_version}".strip(),
            opset=self.opsets.get("", self.opsets.get("ai.onnx", 0)),
            assumed=tuple(dict.fromkeys(self.assumed)),
            branch_count=self.branch_count,
        )

    def add_stored(self, tensor: TensorProto, shape: tuple[int, int] | None) -> Value:
        """Register a stored tensor and return it. Packed codes get the shape of their weights, and count as real
        numbers like those behind a DequantizeLinear: the precision of a run sets their width.
        """
        value = self.add_weight(tensor)
        if shape is None:
            return value
        return self.keep(attrs.evolve(value, shape=shape, dtype="fp32", item_size=4, known=None), 1)

    def name_sizes(self, name: str, declared: TypeProto, spec: InputSpec | None, batch: int | None) -> None:
        """Store the values of an input's named dynamic sizes, which other inputs may share."""
        dims = declared.tensor_type.shape.dim
        is_given = spec is not None and len(spec.shape) == len(dims)
        values = spec.shape if spec is not None and is_given else (batch or 1,)
        for dim, size in zip(dims if is_given else dims[self.axes[name] :], values, strict=False):
            if dim.dim_param:
                self.sizes.setdefault(dim.dim_param, size)

    def add_input(self, name: str, declared: TypeProto, spec: InputSpec | None, batch: int | None) -> Value:
        """Add an input with its dynamic sizes filled in and return it; a dynamic batch axis gets the batch size."""
        kind = declared.tensor_type.elem_type
        dtype, size = DTYPES.get(kind, ("", 0))
        if not dtype:
            raise ModelError(f"{self.name}: input {name!r} is not a tensor")
        dims = declared.tensor_type.shape.dim
        sizes: list[int | None] = [
            one.dim_value if one.HasField("dim_value") and one.dim_value > 0 else None for one in dims
        ]
        if spec is not None:
            fits = len(sizes) == len(spec.shape) and all(a in (None, b) for a, b in zip(sizes, spec.shape, strict=True))
            if not fits:
                raise UsageError(
                    f"{self.name}: input {name} is {_show(sizes, dims)}, not {'x'.join(map(str, spec.shape))}"
                )
            return self.keep(Value(name, spec.shape, dtype, size, is_input=True), kind)
        axis = self.axes[name]
        if len(sizes) > axis and sizes[axis] is None:
            sizes[axis] = self.sizes.get(dims[axis].dim_param) or batch or 1
        elif len(sizes) > axis and batch not in (None, self.fixed, sizes[axis]):
            raise UsageError(
                f"{self.name}: input {name} begins with {sizes[axis]}, which the file fixes: leave --batch out"
            )
        sizes = [one or self.sizes.get(dim.dim_param) for one, dim in zip(sizes, dims, strict=True)]
        if None in sizes:
            shown = "x".join("..." if one is None else str(one) for one in sizes)
            raise UsageError(
                f"{self.name}: input {name} is {_show(sizes, dims)}: give its open sizes, as --input {name}={shown}"
            )
        return self.keep(Value(name, tuple(one or 0 for one in sizes), dtype, size, is_input=True), kind)

    def spend(self, nodes: int, links: int) -> None:
        """Subtract from the operators, inputs and outputs that may still be added; ModelError below zero."""
        self.left_nodes -= nodes
        self.left_links -= links
        if self.left_nodes < 0 or self.left_links < 0:
            raise ModelError(f"it has more than {MOST_NODES:,} operators, or {MOST_LINKS:,} inputs and outputs of them")

    def add(self, proto: NodeProto) -> None:
        """Add an operator; if all of its inputs are known, add only its computed outputs."""
        op, read = proto.op_type, list(proto.input)  # each look into a message makes an object
        self.reading.part = f"{op} {proto.name[:80]!r}"
        self.spend(1, len(read) + len(proto.output))
        if not any(proto.output):
            raise ModelError(f"{self.reading.part} has no output")
        attributes = read_attributes(proto)
        if op in ("If", "Loop"):
            (self.add_branch if op == "If" else self.add_loop)(proto)
            return
        if op == "Scan":
            raise ModelError(f"Scan {proto.name!r} has no formula: it runs a subgraph for each step")
        if op == "Constant":
            self.add_constant(proto)
            return
        inputs = [self.find(one, proto) for one in read]
        if op in ("Shape", "Size") and inputs and inputs[0] is not None:
            self.add_size(proto, inputs[0], attributes)
            return
        present = list_present(inputs)
        node = Node(op, proto.name or f"{op}_{len(self.nodes)}", inputs, [], attributes)
        outputs = node.outputs = self.infer(proto, node)
        is_known = bool(present) and all(one.known is not None for one in present)
        is_small = is_known and sum(one.count for one in (*present, *outputs)) <= MOST_COMPUTED
        if is_small and self.compute(proto, node):
            return
        if present and all(one.is_weight for one in present) and op in CARRIED:
            for output in outputs:
                output.is_weight = True
        for output in outputs:
            output.is_fixed = all(one.is_weight or one.is_fixed for one in present)
        self.nodes.append(node)

    def add_branch(self, proto: NodeProto) -> None:
        """Add one branch of a condition: the branch taken if that is known, else the one with more matrix products."""
        condition = self.find(proto.input[0], proto)
        branches = {one.name: one.g for one in proto.attribute}
        if {*branches} != {"then_branch", "else_branch"}:
            raise ModelError(f"If {proto.name!r} lacks one of its two branches")
        if condition is not None and condition.known is not None:
            taken = branches["then_branch" if bool(condition.known.reshape(-1)[0]) else "else_branch"]
        else:
            self.branch_count += 1
            taken = max(branches.values(), key=_weigh)
        self.spend(len(taken.initializer), 0)
        for tensor in taken.initializer:
            self.add_weight(tensor)
        for node in taken.node:
            self.add(node)
        for outer, inner in zip(proto.output, taken.output, strict=False):
            self.rename(outer, self.find(inner.name, proto))

    def add_loop(self, proto: NodeProto) -> None:
        """Add the operators of each step of a loop; ModelError if the number of steps is unknown."""
        import numpy as np

        body = next((one.g for one in proto.attribute if one.name == "body"), None)
        state = len(proto.input) - 2
        if body is None or len(body.input) != 2 + state or len(body.output) < 1 + state:
            raise ModelError(f"Loop {proto.name!r} has no subgraph that takes and returns its {state} values")
        count, condition = (self.find(one, proto) for one in (*proto.input, "", "")[:2])
        most = None if count is None or count.known is None else int(count.known.reshape(-1)[0])
        if most is None or (condition is not None and condition.known is None):
            raise ModelError(
                f"Loop {proto.name!r} has no formula: how often it runs its {len(body.node)} operators depends on data"
            )
        carried = [self.find(one, proto) for one in proto.input[2:]]
        kept: list[list[Value]] = [[] for _ in body.output[1 + len(carried) :]]
        for step in range(most):
            if condition is not None and condition.known is not None and not bool(condition.known.reshape(-1)[0]):
                break
            self.unrolled += max(len(body.node), 1)
            if self.unrolled > MOST_UNROLLED:
                raise ModelError(f"Loop {proto.name!r} runs more than {MOST_UNROLLED:,} operators")
            self.keep_known(body.input[0].name, np.array(step, np.int64))
            self.keep_known(body.input[1].name, np.array(True))
            for inner, outer in zip(body.input[2:], carried, strict=True):
                self.rename(inner.name, outer)
            self.spend(len(body.initializer), 0)
            for tensor in body.initializer:
                self.add_weight(tensor)
            for node in body.node:
                self.add(node)
            condition, *made = (self.find_made(one.name, proto) for one in body.output)
            carried = [*made[: len(carried)]]
            for one, value in zip(kept, made[len(carried) :], strict=True):
                one.append(value)
        for name, last in zip(proto.output, carried, strict=False):
            self.rename(name, last)
        for name, values in zip(proto.output[len(carried) :], kept, strict=False):
            self.stack(name, values, proto)

    def find_made(self, name: str, proto: NodeProto) -> Value:
        """Return a value that the body of a loop returns; ModelError if it has no name."""
        value = self.find(name, proto)
        if value is None:
            raise ModelError(f"Loop {proto.name!r} returns a value without a name")
        return value

    def stack(self, name: str, values: Sequence[Value], proto: NodeProto) -> None:
        """Add a value that stacks one value of each step of a loop."""
        if not name or not values:
            return
        first = values[0]
        made = Value(name, (len(values), *first.shape), first.dtype, first.item_size)
        self.rename(name, made)
        self.nodes.append(Node("PACK", proto.name, list(values), [made], {"axis": 0}))


def check_functions(model: ModelProto) -> None:
    """Raise ModelError for local functions that call themselves, or that expand to more than a graph may have.

    The expanded size is counted before anything is expanded, because functions that call each other twice double it.
    """
    known = {(one.domain, one.name, one.overload): one for one in model.functions}
    sizes: dict[tuple[str, str, str], tuple[int, int]] = {}

    def measure(nodes: Iterable[NodeProto], calls: tuple[tuple[str, str, str], ...]) -> tuple[int, int]:
        """Return (operators, bytes) of nodes after their functions are expanded; `calls` lead to them."""
        count = size = 0
        for node in nodes:
            key = (node.domain, node.op_type, node.overload)
            if key in calls:
                raise ModelError(f"the local function {node.op_type[:80]!r} calls itself")
            if len(calls) > DEEPEST_CALL:
                raise ModelError(f"local functions call each other {DEEPEST_CALL} deep or more")
            if key in known and key not in sizes:
                sizes[key] = measure(known[key].node, (*calls, key))
            inner = [sizes.get(key, (1, node.ByteSize()))]
            inner += [measure(one.g.node, calls) for one in node.attribute if one.HasField("g")]
            count, size = count + sum(one for one, _ in inner), size + sum(one for _, one in inner)
        if count > MOST_NODES or size > MOST_EXPANDED:
            raise ModelError(f"its local functions expand to more than {MOST_NODES:,} operators or {MOST_EXPANDED:,} "
                             "bytes")  # fmt: skip
        return count, size

    measure(model.graph.node, ())
    for key, function in known.items():
        if key not in sizes:
            sizes[key] = measure(function.node, (key,))


def _show(sizes: Sequence[int | None], dims: Sequence[Any]) -> str:
    """Return sizes as text, with dynamic sizes shown by their names."""
    return "x".join(str(one if one is not None else dim.dim_param or "?") for one, dim in zip(sizes, dims, strict=True))


def match_inputs(name: str, free: Sequence[str], inputs: Sequence[InputSpec]) -> dict[str, InputSpec]:
    """Return name -> specification of the given inputs; those without a name are matched in order.

    Raise UsageError for an unknown input.
    """
    named: dict[str, InputSpec] = {one.name: one for one in inputs if one.name}
    unknown = sorted(named.keys() - {*free})
    if unknown:
        raise UsageError(f"{name} has no input {unknown[0]}; it has {', '.join(free)}")
    rest = [one for one in free if one not in named]
    plain = [one for one in inputs if not one.name]
    if len(plain) > len(rest):
        raise UsageError(f"{name} has {len(free)} inputs, {len(inputs)} are given")
    return named | dict(zip(rest, plain, strict=False))


def _weigh(graph: GraphProto) -> tuple[int, int]:
    """Return (number of operators with MACs, number of operators) of a graph and of the graphs nested in it."""
    own = [one for one in graph.node if one.op_type not in IDLE]
    nested = [_weigh(one.g) for node in own for one in node.attribute if one.HasField("g")]
    products = sum(any(part in one.op_type for part in PRODUCTS) for one in own)
    return products + sum(one for one, _ in nested), len(own) + sum(one for _, one in nested)
