"""Values of an ONNX graph: constants, values computed from them, and the shapes of all others.

Shapes are inferred one operator at a time, because inference of a whole graph has no limit on memory.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system import ModelError
from joulemap.wing.file.value import DTYPES, MOST_RANK, Node, Value, check_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto, TypeProto
    from onnx.defs import OpSchema


FLOAT: Final = 1
INT64: Final = 7

KINDS: Final = {dtype: kind for kind, (dtype, _) in DTYPES.items()}
"""Dtype -> number of an ONNX element type."""

DOMAINS: Final = ("", "ai.onnx")
"""Names of the domain of standard operators."""

WHOLE: Final = frozenset({"int64", "int32"})
"""Types of the inputs whose elements may decide the shape of an output."""

FLOAT_READERS: Final = frozenset({"Resize", "Upsample", "Range"})
"""Operators for which elements of floating-point inputs decide the shape of an output."""

SHAPES: Final = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1, "Tile": 1, "Resize": 3}
"""Operator -> place of the input that holds a shape, one element per axis of the output."""

MOST_KEY: Final = 64
"""Maximum bytes of known elements in a key of inferred shapes; of longer ones, a digest is the key."""

SAME: Final = frozenset(
    {"FastGelu", "Gelu", "QuickGelu", "BiasGelu", "BiasSplitGelu", "SimplifiedLayerNormalization", "RotaryEmbedding",
     "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}
)  # fmt: skip
"""Operators whose outputs have the shape of their first input."""


def infer_contrib(node: Node) -> list[tuple[tuple[int, ...], int]] | None:
    """Return (shape, element type) of each output of an operator of ONNX Runtime; None for an unknown operator.

    Source: ContribOperators.md of ONNX Runtime.
    """
    if node.op in SAME:
        return [(node.given(0).shape, FLOAT)] * 4
    if node.op == "MatMulNBits":
        return [((*node.given(0).shape[:-1], node.integer("N", least=1)), FLOAT)]
    if node.op in ("FusedMatMul", "MatMulIntegerToFloat", "QGemm", "FusedGemm"):
        right = node.given(1).shape
        if len(right) < 2:
            raise ModelError(f"{node.title} has a second input of the shape {right}, expected two axes or more")
        return [((*node.given(0).shape[:-1], right[-2] if node.integer("transB", 0) else right[-1]), FLOAT)]
    if node.op in ("MultiHeadAttention", "GroupQueryAttention"):
        return _infer_attention(node)
    return None


def _infer_attention(node: Node) -> list[tuple[tuple[int, ...], int]]:
    query = node.given(0).shape
    if len(query) != 3:
        raise ModelError(f"{node.title} has queries of the shape {query}, expected three axes")
    batch, rows, width = query
    heads = node.integer("num_heads", least=1)
    pairs = node.integer("kv_num_heads", heads, least=1)
    past = next((one for one in node.inputs[3:7] if one is not None and len(one.shape) == 4), None)
    length = rows + (past.shape[2] if past is not None else 0)
    cache = ((batch, pairs, length, width // heads), FLOAT)
    return [((batch, rows, width), FLOAT), cache, cache]


MOST_COMPUTED: Final = 65_536
"""Maximum elements of a value that is computed while a graph is read."""

BROKEN: Final = (RuntimeError, ValueError, TypeError)
"""Errors that the package onnx raises for an operator with invalid inputs or attributes."""

COMPUTED: Final = frozenset(
    {"Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat",
     "ConstantOfShape", "Cos", "CumSum", "Div", "Equal", "Exp", "Expand", "EyeLike", "Flatten", "Floor", "Gather",
     "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Log", "Max", "Mean",
     "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "Pow", "Range", "Reciprocal", "ReduceMax",
     "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "ScatterElements", "ScatterND",
     "Sigmoid", "Sign", "Sin", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Trilu",
     "Unique", "Unsqueeze", "Where", "Xor"}
)  # fmt: skip
"""Operators that are computed on known inputs: those of shapes, positions and masks. Their time and memory grow with
their inputs and outputs alone, which other operators, such as a pooling with a large window, exceed.
"""

OPEN: Final = frozenset({"NonZero", "NonMaxSuppression", "Compress", "Unique"})
"""Operators whose output size depends on data."""


@attrs.define
class Values:
    """Values of an ONNX graph by name, and the types that shape inference needs."""

    name: str
    opsets: dict[str, int]
    ir_version: int
    values: dict[str, Value] = attrs.field(factory=dict)
    nodes: list[Node] = attrs.field(factory=list)
    kinds: dict[str, int] = attrs.field(factory=dict)
    """Name of a value -> number of its element type."""
    inferred: dict[Hashable, list[tuple[tuple[int, ...], int]]] = attrs.field(factory=dict)
    """Operator, attributes and inputs -> (shape, element type) of each output. Equal layers share one inference."""
    computed: dict[Hashable, list[NDArray[Any]]] = attrs.field(factory=dict)
    """Operator, attributes and known inputs -> known outputs."""
    assumed: list[str] = attrs.field(factory=list)
    """Operators whose outputs are assumed to have their maximum size."""
    outside: set[str] = attrs.field(factory=set)
    """Names of constants whose elements are in other files, which are not read."""

    def add_weight(self, tensor: Any) -> Value:
        """Register a stored tensor and return it; its elements are read only if they are few, and when needed."""
        name, shape, kind = tensor.name, tuple(tensor.dims), tensor.data_type
        dtype, size = DTYPES.get(kind, ("", 0))
        if not dtype:
            raise ModelError(f"tensor {name[:60]!r} has the unknown type {kind}")
        check_shape(f"tensor {name[:60]!r}", shape)
        if tensor.external_data or tensor.data_location:
            self.outside.add(name)
            return self.keep(Value(name, shape, dtype, size, is_weight=True), kind)
        return self.keep(Value(name, shape, dtype, size, partial(_read_elements, tensor), is_weight=True), kind)

    def keep(self, value: Value, kind: int) -> Value:
        """Register a value under its name and return it."""
        self.values[value.name] = value
        self.kinds[value.name] = kind
        return value

    def find(self, name: str, proto: NodeProto) -> Value | None:
        """Return a value by its name; None for an empty name, which stands for an omitted input.

        Raise ModelError for a name that no earlier operator writes.
        """
        if not name:
            return None
        value = self.values.get(name)
        if value is None:
            raise ModelError(f"{_call(proto)} reads {name[:80]!r}, which no earlier operator writes")
        return value

    def add_constant(self, proto: NodeProto) -> None:
        """Register the value of a Constant operator."""
        import numpy as np

        attribute = next((one for one in proto.attribute if one.name.startswith("value")), None)
        if attribute is None:
            raise ModelError(f"the constant {proto.name[:80]!r} has no value")
        if attribute.HasField("t"):
            tensor = attribute.t
            tensor.name = proto.output[0]
            self.add_weight(tensor)
            return
        numbers = attribute.ints or attribute.floats
        elements = np.array(list(numbers) if numbers else attribute.i if attribute.type == 2 else attribute.f)
        elements = elements.astype(np.int64 if attribute.type in (2, 7) else np.float32)
        self.keep_known(proto.output[0], elements)

    def keep_known(self, name: str, elements: NDArray[Any]) -> None:
        """Store a computed value under a name."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(elements.dtype)
        dtype, size = DTYPES.get(kind, ("fp32", 4))
        self.keep(Value(name, tuple(elements.shape), dtype, size, elements, is_weight=True), kind)

    def rename(self, name: str, value: Value | None) -> None:
        """Register a value under another name."""
        if name and value is not None:
            self.values[name] = value
            self.kinds[name] = KINDS.get(value.dtype, FLOAT)

    def add_size(self, proto: NodeProto, value: Value, attributes: Mapping[str, Any]) -> None:
        """Add the result of `Shape` or `Size`, which is known although the elements of its input are not."""
        import numpy as np

        if proto.op_type == "Size":
            self.keep_known(proto.output[0], np.array(value.count, np.int64))
            return
        start, end = int(attributes.get("start", 0)), attributes.get("end")
        self.keep_known(proto.output[0], np.array(value.shape[start : None if end is None else int(end)], np.int64))

    def compute(self, proto: NodeProto, node: Node) -> bool:
        """Compute the outputs of an operator from known inputs and store them; return False if that is not possible."""
        from onnx.reference import ReferenceEvaluator

        if proto.domain not in DOMAINS or proto.op_type not in COMPUTED or has_outside(proto):
            return False
        key = (_find_key(proto), tuple(one and (one.dtype, one.shape, _digest(one)) for one in node.inputs))
        results = self.computed.get(key)
        if results is None:
            names = list(dict.fromkeys(one for one in proto.input if one))
            try:
                made: Any = ReferenceEvaluator(self._wrap(proto)).run(
                    None, {one: self.values[one].known for one in names}
                )
            except Exception:  # an operator that the evaluator lacks is only inferred
                return False
            if not all(hasattr(one, "dtype") for one in made):
                return False
            results = self.computed[key] = list(made)
        for output, elements in zip((one for one in proto.output if one), results, strict=False):
            self.keep_known(output, elements)
        return True

    def _wrap(self, proto: NodeProto) -> ModelProto:
        """Return an ONNX model with one operator as its graph."""
        from onnx import helper

        graph = helper.make_graph(
            [proto],
            "one",
            [helper.make_value_info(one, self.find_type(one)) for one in dict.fromkeys(proto.input) if one],
            [helper.make_empty_tensor_value_info(one) for one in proto.output if one],
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=self.ir_version)

    def find_type(self, name: str) -> TypeProto:
        """Return the type of a value, as shape inference takes it."""
        from onnx import helper

        return helper.make_tensor_type_proto(self.kinds[name], self.values[name].shape)

    def infer(self, proto: NodeProto, node: Node) -> list[Value]:
        """Return the outputs of an operator with their inferred shapes; ModelError if a shape remains unknown."""
        every = list(proto.output)
        outputs = [one for one in every if one]
        if node.op in OPEN and proto.domain in DOMAINS:
            return [self.assume(proto, node, one) for one in outputs]
        is_read = node.op in FLOAT_READERS
        given = tuple(
            one and (self.kinds[name], one.shape, _digest(one) if is_read or one.dtype in WHOLE else b"")
            for name, one in zip(proto.input, node.inputs, strict=True)
        )
        key = (_find_key(proto), given, tuple(map(bool, every)))
        shapes = self.inferred.get(key)
        if shapes is None:
            made = infer_contrib(node) if proto.domain not in DOMAINS else self._infer_one(proto, outputs)
            if made is None:
                raise ModelError(f"operator {proto.domain}.{_call(proto)} is not known")
            for shape, _ in made:
                check_shape(f"an output of {_call(proto)}", shape)
            shapes = self.inferred[key] = made
        return [
            self.keep(Value(one, shape, *DTYPES.get(kind, DTYPES[FLOAT])), kind)
            for one, (shape, kind) in zip(outputs, shapes, strict=False)
        ]

    def _infer_one(self, proto: NodeProto, outputs: Sequence[str]) -> list[tuple[tuple[int, ...], int]]:
        """Return (shape, element type) of each output of a standard operator."""
        from onnx import checker, defs, helper, numpy_helper, shape_inference

        version = self.opsets.get("", self.opsets.get("ai.onnx", 1))
        self._check_rank(proto)
        values = [self.values[one] for one in dict.fromkeys(proto.input) if one]
        try:
            schema = defs.get_schema(proto.op_type, version, "")
            check_schema(schema, proto)
            types = shape_inference.infer_node_outputs(
                schema,
                proto,
                {one: self.find_type(one) for one in proto.input if one},
                {
                    one.name: numpy_helper.from_array(one.known)
                    for one in values
                    if one.known is not None and one.count <= MOST_COMPUTED
                },
                opset_imports=[helper.make_opsetid(domain, number) for domain, number in self.opsets.items()],
                ir_version=self.ir_version,
            )
            if not all(one.tensor_type.HasField("shape") for one in types.values()):
                inferred = shape_inference.infer_shapes(self._wrap(proto))  # an operator that others define
                types = {one.name: one.type for one in inferred.graph.output}
        except defs.SchemaError as error:
            raise ModelError(f"{_call(proto)} is not an operator of ONNX's set {version}") from error
        except (checker.ValidationError, shape_inference.InferenceError, *BROKEN) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            reason = self.describe_outside(proto) or lines[-1][:120]
            raise ModelError(f"{_call(proto)} cannot be read: {reason}") from error
        return [self._read_type(proto, types.get(one)) for one in outputs]

    def _check_rank(self, proto: NodeProto) -> None:
        """Raise ModelError for a shape of too many axes as an input: inference takes memory for each axis."""
        position = SHAPES.get(proto.op_type)
        if position is None or position >= len(proto.input) or not proto.input[position]:
            return
        if (count := self.values[proto.input[position]].count) > MOST_RANK:
            raise ModelError(f"{_call(proto)} reads a shape of {count:,} axes, expected at most {MOST_RANK}")

    def _read_type(self, proto: NodeProto, declared: TypeProto | None) -> tuple[tuple[int, ...], int]:
        """Return (shape, element type) of an inferred type; ModelError if its shape depends on data."""
        if declared is not None and declared.tensor_type.HasField("shape"):
            dims = declared.tensor_type.shape.dim
            if all(dim.HasField("dim_value") for dim in dims):
                return tuple(dim.dim_value for dim in dims), declared.tensor_type.elem_type
        reason = self.describe_outside(proto) or "it depends on data"
        raise ModelError(f"the output of {_call(proto)} has no known shape: {reason}")

    def describe_outside(self, proto: NodeProto) -> str:
        """Return a text that says that a constant's elements are in another file; empty if all are in the file."""
        if has_outside(proto):
            return "its value lies in another file, which is not read"
        constant = next((one for one in proto.input[1:] if one in self.outside), None)
        return f"its constant {constant!r} lies in another file, which is not read" if constant else ""

    def assume(self, proto: NodeProto, node: Node, output: str) -> Value:
        """Return the output of an operator whose output size depends on data, at its maximum size."""
        first = node.given(0)
        if first.known is None:
            self.assumed.append(proto.op_type)
        kind = self.kinds[proto.input[0]]
        if proto.op_type == "NonZero":
            shape: tuple[int, ...] = (max(len(first.shape), 1), first.count)
        elif proto.op_type == "NonMaxSuppression":
            scores = node.given(1)
            if len(first.shape) != 3 or len(scores.shape) != 3:
                raise ModelError(f"{node.title} has boxes of the shape {first.shape} and scores of the shape "
                                 f"{scores.shape}, expected three axes")  # fmt: skip
            most = (node.numbers(2) or [first.shape[1]])[0]
            shape = (first.shape[0] * scores.shape[1] * min(max(int(most), 0), first.shape[1]), 3)
        else:
            shape = first.shape if "axis" in node.attributes else (first.count,)
        if proto.op_type in ("NonZero", "NonMaxSuppression") or list(proto.output).index(output) > 0:
            kind = INT64
        check_shape(f"an output of {node.title}", shape)
        return self.keep(Value(output, shape, *DTYPES.get(kind, DTYPES[FLOAT])), kind)


def check_schema(schema: OpSchema, proto: NodeProto) -> None:
    """Raise ModelError for an operator whose inputs, outputs or attributes are not those of its schema.

    Shape inference of the package onnx takes them for granted, and ends the process where some are missing.
    """
    for word, names, least, most in (
        ("inputs", proto.input, schema.min_input, schema.max_input),
        ("outputs", proto.output, schema.min_output, schema.max_output),
    ):
        if not least <= len(names) <= most:
            limit = str(least) if least == most else f"{least} or more" if most > MOST_RANK else f"{least} to {most}"
            raise ModelError(f"{_call(proto)} has {len(names)} {word}, expected {limit}")
    given = {one.name: one for one in proto.attribute}
    for name, expected in schema.attributes.items():
        attribute = given.get(name)
        if attribute is None and expected.required:
            raise ModelError(f"{_call(proto)} lacks its attribute {name}")
        wanted: Any = expected.type
        if attribute is not None and not attribute.ref_attr_name and int(attribute.type) != int(wanted.value):
            raise ModelError(
                f"{_call(proto)} has the attribute {name} of type {int(attribute.type)}, expected {int(wanted.value)}"
            )
    count = given.get("num_outputs")
    if proto.op_type == "Split" and count is not None and count.i != len(proto.output):
        raise ModelError(f"{_call(proto)} has num_outputs={count.i}, but {len(proto.output)} outputs")


def _read_elements(tensor: Any) -> NDArray[Any] | None:
    """Return the elements of a stored tensor; None if they were left out or have another type."""
    from onnx import numpy_helper

    has_data = tensor.raw_data or tensor.float_data or tensor.int64_data or tensor.int32_data or tensor.double_data
    if not has_data and math.prod(tensor.dims):
        return None
    try:
        return numpy_helper.to_array(tensor)
    except (TypeError, ValueError):
        return None


def _find_key(proto: NodeProto) -> tuple[Any, ...]:
    """Return what distinguishes an operator from others, apart from its inputs."""
    return (proto.domain, proto.op_type, *(one.SerializeToString() for one in proto.attribute))


def _digest(value: Value) -> bytes:
    """Return a digest of the known elements of a value; empty if they are unknown."""
    if value.known is None:
        return b""
    if value.known.dtype.hasobject:
        return repr(value.known.tolist()).encode()
    content = value.known.tobytes()
    return content if len(content) <= MOST_KEY else hashlib.sha256(content).digest()


def has_outside(proto: NodeProto) -> bool:
    """Return True if an attribute is a tensor whose elements are in another file, which is never opened."""
    return any(
        any(tensor.external_data or tensor.data_location for tensor in (one.t, *one.tensors, one.sparse_tensor.values))
        for one in proto.attribute
        if one.HasField("t") or one.tensors or one.HasField("sparse_tensor")
    )


def _call(proto: NodeProto) -> str:
    """Return the type and name of a node for an error; an unnamed node is called after its first output."""
    return f"{proto.op_type} {(proto.name or next(iter(proto.output), ''))[:80]!r}"


def read_attributes(proto: NodeProto) -> dict[str, Any]:
    """Return the attributes of an operator as numbers, texts and lists."""
    return dict(_list_attributes(proto))


def _list_attributes(proto: NodeProto) -> Iterator[tuple[str, Any]]:
    for one in proto.attribute:
        if one.type == 1:
            yield one.name, one.f
        elif one.type == 2:
            yield one.name, one.i
        elif one.type == 3:
            yield one.name, one.s.decode("utf-8", "replace")
        elif one.type == 6:
            yield one.name, list(one.floats)
        elif one.type == 7:
            yield one.name, list(one.ints)
