"""Graph of a TFLite file in terms of ONNX operators, so that rewrites and counts are those of ONNX files.

    first subgraph ─► operator by operator: translate it, and its fused activation as a separate operator
                      IF, CALL, composites ─► the operators of their subgraph

Quantized tensors are counted as real numbers, whose width is the precision of a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system import ModelError, Reading, UsageError
from joulemap.wing.file.graph import CARRIED, WIDE, Program, match_inputs
from joulemap.wing.file.lite import LiteModel, LiteTensor, find_type
from joulemap.wing.file.value import MOST_LINKS, MOST_NODES, Node, Value, check_shape, list_present

if TYPE_CHECKING:
    from joulemap.construct import InputSpec

DEEPEST: Final = 16
"""Maximum depth of nested subgraphs."""

CODES: Final = frozenset({"int8", "uint8", "int16", "int4", "int32", "int64"})
"""Element types that represent real numbers where the tensor has a scale."""

INDICES: Final = frozenset({"int32", "int64", "uint32", "uint64", "bool", "string"})
"""Element types of sizes, positions and masks; an operator on such constants runs once, before inference."""

ACTIVATIONS: Final[Mapping[int, tuple[str, dict[str, float]]]] = {
    1: ("Relu", {}), 2: ("Clip", {"min": -1.0, "max": 1.0}), 3: ("Clip", {"min": 0.0, "max": 6.0}), 4: ("Tanh", {}),
    5: ("Sign", {}),
}  # fmt: skip
"""Code of a fused activation -> ONNX operator and its attributes."""

CLIPPED: Final[Mapping[str, tuple[float, float]]] = {
    "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0),
}  # fmt: skip

SILENT: Final = frozenset({"VAR_HANDLE", "CALL_ONCE"})
"""Operators that only initialize state and are not counted."""

NAMED: Final[Mapping[str, str]] = {
    "ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div", "POW": "Pow", "FLOOR_MOD": "Mod", "EQUAL": "Equal",
    "LESS": "Less", "LESS_EQUAL": "LessOrEqual", "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual",
    "LOGICAL_AND": "And", "LOGICAL_OR": "Or", "LOGICAL_NOT": "Not", "MAXIMUM": "Max", "MINIMUM": "Min",
    "RELU": "Relu", "LEAKY_RELU": "LeakyRelu", "ELU": "Elu", "LOGISTIC": "Sigmoid", "TANH": "Tanh",
    "HARD_SWISH": "HardSwish", "GELU": "Gelu", "EXP": "Exp", "LOG": "Log", "SQRT": "Sqrt", "ABS": "Abs", "NEG": "Neg",
    "FLOOR": "Floor", "CEIL": "Ceil", "ROUND": "Round", "SIN": "Sin", "COS": "Cos", "SIGN": "Sign", "PRELU": "PRelu",
    "SELECT": "Where", "SELECT_V2": "Where", "CAST": "Cast", "SOFTMAX": "Softmax", "LOG_SOFTMAX": "LogSoftmax",
    "RESHAPE": "Reshape", "SQUEEZE": "Squeeze", "EXPAND_DIMS": "Unsqueeze", "BROADCAST_TO": "Expand",
    "MEAN": "ReduceMean", "SUM": "ReduceSum", "REDUCE_MAX": "ReduceMax", "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd", "REDUCE_ANY": "ReduceMax", "REDUCE_ALL": "ReduceMin", "ARG_MAX": "ArgMax",
    "ARG_MIN": "ArgMin", "CUMSUM": "CumSum", "TILE": "Tile", "PAD": "Pad", "PADV2": "Pad",
    "SLICE": "Slice", "STRIDED_SLICE": "Slice", "GATHER": "Gather", "GATHER_ND": "GatherND",
    "SPACE_TO_DEPTH": "SpaceToDepth", "DEPTH_TO_SPACE": "DepthToSpace", "QUANTIZE": "QuantizeLinear",
    "DEQUANTIZE": "DequantizeLinear", "DENSIFY": "DequantizeLinear", "FAKE_QUANT": "Identity", "TOPK_V2": "TopK",
    "ONE_HOT": "OneHot", "RANGE": "Range", "WHERE": "NonZero", "NON_MAX_SUPPRESSION_V4": "NonMaxSuppression",
    "NON_MAX_SUPPRESSION_V5": "NonMaxSuppression", "ADD_N": "Sum", "LOCAL_RESPONSE_NORMALIZATION": "LRN",
}  # fmt: skip
"""TFLite operator -> equivalent ONNX operator; only the name differs."""

OPEN: Final = frozenset({"WHERE", "NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5", "UNIQUE"})
"""Operators whose output size depends on data."""


def read_lite_program(model: LiteModel, name: str, inputs: Sequence[InputSpec], batch: int | None) -> Program:
    """Return the graph of a model at a batch size.

    Raise UsageError for a size that the file fixes or leaves open, ModelError for an operator that cannot be read.
    """
    with Reading(name) as reading:
        return _Reader(name=name, model=model, reading=reading).read(inputs, batch)


def find_lite_batch(model: LiteModel) -> int | None:
    """Return the batch size that a file fixes: 1, or the first size that its inputs and outputs share; None if it is
    open.
    """
    graph = model.graphs[0]
    free, made = ([graph.tensors[index] for index in some] for some in (graph.inputs, graph.outputs))
    if any(0 in one.open_axes for one in free):
        return None
    first = free[0].shape[0] if free and free[0].shape else 1
    return first if all(one.shape[:1] == (first,) for one in made) else 1


@attrs.define
class _Reader:
    """Reader that turns the subgraphs of a TFLite file into nodes with ONNX operators."""

    name: str
    model: LiteModel
    reading: Reading
    nodes: list[Node] = attrs.field(factory=list)
    weights: dict[tuple[int, int], Value] = attrs.field(factory=dict)
    """(subgraph, tensor) -> value of a constant."""
    kept: list[Value] = attrs.field(factory=list)
    """Values of variables that persist from one run to the next."""
    assumed: list[str] = attrs.field(factory=list)
    batch: int = 1
    base: int = 1
    """Batch size in the shapes of the file."""
    step_count: int = 0
    link_count: int = 0

    def read(self, inputs: Sequence[InputSpec], batch: int | None) -> Program:
        graph = self.model.graphs[0]
        free = [graph.tensors[index] for index in graph.inputs]
        specs = match_inputs(self.name, [one.name for one in free], inputs)
        self.set_batch(free, [specs.get(one.name) for one in free], batch)
        given = [attrs.evolve(self.make(one), is_input=True) for one in free]
        outputs = self.walk(0, given, 0)
        return Program(
            name=self.name,
            nodes=self.nodes,
            inputs=given,
            outputs=[*outputs, *self.kept],
            weights=list(self.weights.values()),
            producer=self.model.description,
            opset=3,
            assumed=tuple(dict.fromkeys(self.assumed)),
        )

    def set_batch(self, free: Sequence[LiteTensor], specs: Sequence[InputSpec | None], batch: int | None) -> None:
        """Set the batch size from the given inputs or from `batch`; UsageError for inputs that change another size."""
        is_open = any(0 in one.open_axes for one in free)
        self.base = next((max(one.shape[0], 1) for one in free if 0 in one.open_axes), 1)
        stated = next(
            (spec.shape[0] for one, spec in zip(free, specs, strict=True) if spec and 0 in one.open_axes), None
        )
        self.batch = stated or batch or 1 if is_open else 1
        for one, spec in zip(free, specs, strict=True):
            shape, shown = self.size(one), "x".join("?" if axis in one.open_axes else str(size) for axis, size in
                                                    enumerate(one.shape))  # fmt: skip
            if spec is not None and spec.shape != shape:
                raise UsageError(f"{self.name}: input {one.name} is {shown}, not {'x'.join(map(str, spec.shape))}")
            if spec is None and any(one.open_axes[1:] if 0 in one.open_axes else one.open_axes):
                raise UsageError(
                    f"{self.name}: input {one.name} is {shown}: convert the model with fixed sizes after the batch"
                )
        fixed = free[0].shape[0] if free and free[0].shape else 1
        if not is_open and batch not in (None, find_lite_batch(self.model), fixed):
            raise UsageError(
                f"{self.name}: input {free[0].name} begins with {fixed}, which the file fixes: leave --batch out"
            )

    def size(self, tensor: LiteTensor) -> tuple[int, ...]:
        """Return the shape of a tensor at the batch size of the question."""
        if 0 not in tensor.open_axes or not tensor.shape:
            return tensor.shape
        shape = (max(tensor.shape[0], 1) * self.batch // self.base, *tensor.shape[1:])
        check_shape(f"tensor {tensor.name[:80]!r}", shape)
        return shape

    def make(self, tensor: LiteTensor) -> Value:
        """Return a new value with the shape and type of a tensor."""
        dtype, item_size, _ = find_type(tensor.kind)
        if tensor.is_scaled and dtype in CODES:
            dtype, item_size = "fp32", 4
        return Value(tensor.name, self.size(tensor), dtype, item_size)

    def find_weight(self, graph: int, index: int) -> Value:
        """Return the value of a constant; its elements are known only if they are few."""
        value = self.weights.get((graph, index))
        if value is None:
            tensor = self.model.graphs[graph].tensors[index]
            value = self.weights[graph, index] = attrs.evolve(self.make(tensor), is_weight=True, shape=tensor.shape)
            kind = find_type(tensor.kind)[2]
            if tensor.known and kind:
                import numpy as np

                value.known = np.frombuffer(tensor.known, np.dtype(kind).newbyteorder("<")).reshape(tensor.shape)
        return value

    def walk(self, index: int, given: Sequence[Value], depth: int) -> list[Value]:
        """Add the operators of a subgraph and return its outputs."""
        if not 0 <= index < len(self.model.graphs) or depth > DEEPEST:
            raise ModelError(f"subgraph {index} is missing in the file, or contains itself")
        graph = self.model.graphs[index]
        values: dict[int, Value] = dict(zip(graph.inputs, given, strict=False))

        def find(one: int) -> Value | None:
            if one < 0:
                return None
            tensor = graph.tensors[one]
            if one not in values and tensor.stored_bytes:
                values[one] = self.find_weight(index, one)
            elif one not in values:
                values[one] = attrs.evolve(self.make(tensor), is_input=tensor.is_variable)
            return values[one]

        for operator in graph.operators:
            self.step_count += 1
            self.link_count += len(operator.inputs) + len(operator.outputs)
            if self.step_count > MOST_NODES or self.link_count > MOST_LINKS:
                raise ModelError(
                    f"it has more than {MOST_NODES:,} operators, or {MOST_LINKS:,} inputs and outputs of them"
                )
            if operator.op in SILENT:
                continue
            outputs = [value for one in operator.outputs if (value := find(one)) is not None]
            label = (outputs[0].name if outputs else operator.op).partition(";")[0]
            stage = Node(operator.op, label, [find(one) for one in operator.inputs], outputs, {**operator.options})
            self.reading.part = stage
            made = self.add(stage, depth)
            values.update(zip((one for one in operator.outputs if one >= 0), made, strict=False))
        return [value for one in graph.outputs if (value := find(one)) is not None]

    def add(self, stage: Node, depth: int) -> list[Value]:
        """Add an operator and its activation; return its outputs."""
        op = stage.op
        if op in ("IF", "CALL", "STABLEHLO_COMPOSITE"):
            return self.walk(self.choose(stage), list_present(stage.inputs[op == "IF" :]), depth + 1)
        if op == "READ_VARIABLE" and stage.outputs:
            stage.outputs[0].is_input = True
            return stage.outputs
        if op == "ASSIGN_VARIABLE":
            value = stage.given(1)
            self.kept.append(attrs.evolve(value, name=f"{value.name} kept", is_weight=False, is_input=False))
            self.put(op, stage, [value], [self.kept[-1]], {})
            return []
        if op in ("SHAPE", "RANK"):
            for one in stage.outputs:
                one.is_weight = True
            return stage.outputs
        if not stage.outputs:
            raise ModelError(f"{stage} has no output")
        if op in OPEN:
            self.assumed.append(op)
        activation = ACTIVATIONS.get(stage.attributes.get("activation", 0))
        outputs = stage.outputs
        if activation is not None:
            outputs = [attrs.evolve(stage.outputs[0], name=f"{stage.outputs[0].name} linear"), *stage.outputs[1:]]
        for name, inputs, made, attributes in translate(stage, outputs):
            self.put(name, stage, inputs, made, attributes)
        if activation is not None:
            self.put(activation[0], stage, outputs[:1], stage.outputs[:1], dict(activation[1]))
        return stage.outputs

    def choose(self, stage: Node) -> int:
        """Return the subgraph that an operator calls; for a condition, the branch with more operators."""
        options: Mapping[str, int] = stage.attributes
        if stage.op != "IF":
            return options["subgraph"]
        branches = [options["then"], options["else"]]
        known = [one for one in branches if 0 <= one < len(self.model.graphs)]
        return max(known, key=lambda one: len(self.model.graphs[one].operators), default=-1)

    def put(
        self,
        op: str,
        stage: Node,
        inputs: Sequence[Value | None],
        outputs: list[Value],
        attributes: dict[str, Any],
    ) -> None:
        """Add a node; if it only rearranges constants, mark its outputs as constants."""
        present = list_present(inputs)
        is_constant = bool(present) and all(one.is_weight for one in present)
        for one in outputs:
            one.is_weight = is_constant and (op in CARRIED or one.dtype in INDICES)
            one.is_fixed = bool(present) and all(one.is_weight or one.is_fixed for one in present)
        self.nodes.append(Node(op, stage.name, list(inputs), outputs, attributes))


Made = tuple[str, Sequence[Value | None], list[Value], dict[str, Any]]
"""(operator, inputs, outputs, attributes) of a node in terms of ONNX."""


def translate(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    """Yield the ONNX nodes that an operator corresponds to."""
    if stage.op in FORMS:
        yield from FORMS[stage.op](stage, outputs)
    elif stage.op in CLIPPED:
        low, high = CLIPPED[stage.op]
        yield "Clip", stage.inputs[:1], outputs, {"min": low, "max": high}
    else:
        yield NAMED.get(stage.op, stage.op), stage.inputs, outputs, stage.attributes


def _transpose(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    order = stage.given(1).known
    rank = len(stage.given(0).shape)
    axes = [int(one) for one in order.reshape(-1)] if order is not None else list(range(rank))[::-1]
    if sorted(axes) != list(range(rank)):
        raise ModelError(f"{stage} has the axes {axes}, expected a permutation of {rank} axes")
    yield "Transpose", stage.inputs[:1], outputs, {"perm": axes}


def _split(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    """Yield a node for SPLIT, whose axis is its first input, or for SPLIT_V."""
    yield "Split", [stage.given(1 if stage.op == "SPLIT" else 0)], outputs, {}


def _multiply(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    """Yield a GEMM, and before it a view that transposes the second operand if that is stored transposed."""
    options = stage.attributes
    left, right = stage.given(0), stage.given(1)
    if options.get("adj_x") or len(right.shape) < 2:
        yield "BATCH_MATMUL", [left, right], outputs, options
        return
    if options.get("adj_y"):
        rank = len(right.shape)
        order = [*range(rank - 2), rank - 1, rank - 2]
        turned = attrs.evolve(right, name=f"{right.name} turned", shape=tuple(right.shape[one] for one in order))
        turned.known = None
        yield "Transpose", [right], [turned], {"perm": order}
        right = turned
    yield "MatMul", [left, right], outputs, {}


def _differ(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    """Yield two nodes for a squared difference: a difference and its square."""
    inner = attrs.evolve(outputs[0], name=f"{outputs[0].name} difference")
    yield "Sub", stage.inputs, [inner], {}
    yield "SQUARE", [inner], outputs, {}


def _normalize(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    """Yield nodes that divide by the root of the sum of squares over the last axis."""
    x = stage.given(0)
    length = attrs.evolve(outputs[0], name=f"{outputs[0].name} length", shape=(*x.shape[:-1], 1))
    yield "ReduceL2", [x], [length], {}
    yield "Div", [x, length], outputs, {}


def _transpose_convolve(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    """Yield a transposed convolution without the input that states the shape of its output."""
    yield "TRANSPOSE_CONV", stage.inputs[1:4], outputs, stage.attributes


def _transpose_biased(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    """Yield a transposed convolution of the custom operator, whose input comes before its weights."""
    yield "TRANSPOSE_CONV", [stage.given(1), stage.given(0), *stage.inputs[2:3]], outputs, stage.attributes


def _place(stage: Node, outputs: list[Value]) -> Iterator[Made]:
    """Yield a node for an update of part of a tensor; inputs are the tensor, the update and its position."""
    yield "ScatterND", [stage.given(0), stage.given(2), stage.given(1)], outputs, {}


FORMS: Final[Mapping[str, Callable[[Node, list[Value]], Iterator[Made]]]] = {
    "TRANSPOSE": _transpose, "SPLIT": _split, "SPLIT_V": _split, "BATCH_MATMUL": _multiply,
    "SQUARED_DIFFERENCE": _differ, "L2_NORMALIZATION": _normalize, "TRANSPOSE_CONV": _transpose_convolve,
    "Convolution2DTransposeBias": _transpose_biased, "DYNAMIC_UPDATE_SLICE": _place,
}  # fmt: skip
"""TFLite operator without an equivalent ONNX operator -> function that yields nodes for it."""


def measure_precision(model: LiteModel) -> tuple[str, str]:
    """Return the precision of a model's activations, and of its weights if that is narrower; empty for fp32.

    Weights of 16 bits state the precision of activations too, although the file widens them: hardware with 16-bit
    arithmetic computes with them directly, and only other hardware widens them before the first inference. Source:
    tensorflow.org, post-training float16 quantization.
    """
    graph = model.graphs[0]
    made = {index for one in graph.operators for index in one.outputs if index >= 0}
    sizes: dict[tuple[bool, str], int] = {}
    for index, tensor in enumerate(graph.tensors):
        if index not in made and not (tensor.stored_bytes and len(tensor.shape) > 1):
            continue
        dtype = find_type(tensor.kind)[0]
        is_code = tensor.is_scaled and dtype in ("int8", "uint8", "int4")
        key = bool(tensor.stored_bytes), dtype.removeprefix("u") if is_code else dtype if dtype in WIDE else ""
        sizes[key] = sizes.get(key, 0) + math.prod(tensor.shape)
    activations, weights = (
        max(
            (size, name) for (is_weight, name), size in [*sizes.items(), ((is_stored, ""), 0)] if is_weight == is_stored
        )[1]
        for is_stored in (False, True)
    )
    if weights in WIDE and not activations:
        activations = weights
    return activations, "" if weights == activations else weights
