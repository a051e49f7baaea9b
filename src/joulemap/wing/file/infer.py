"""Values of an ONNX graph: constants, values computed from them, and the shapes of all others.

Shapes are inferred one operator at a time, because inference of a whole graph has no limit on memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system.errors import ModelError
from joulemap.wing.file.value import DTYPES, MOST_ELEMENTS, Node, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto


FLOAT: Final = 1

SAME: Final = frozenset(
    {"FastGelu", "Gelu", "QuickGelu", "BiasGelu", "BiasSplitGelu", "SimplifiedLayerNormalization", "RotaryEmbedding",
     "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}
)  # fmt: skip
"""Operators whose outputs have the shape of their first input."""


def infer_contrib(
    op: str, inputs: Sequence[Value | None], attributes: Mapping[str, Any]
) -> list[tuple[tuple[int, ...], int]] | None:
    """Return (shape, element type) of each output of an operator of ONNX Runtime; None for an unknown operator.

    Source: ContribOperators.md of ONNX Runtime.
    """
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


MOST_COMPUTED: Final = 65_536
"""Maximum elements of a value that is computed while a graph is read."""

BROKEN: Final = (RuntimeError, ValueError, TypeError)
"""Errors that the package onnx raises for an operator with invalid inputs or attributes."""

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
    types: dict[str, Any] = attrs.field(factory=dict)
    """Name of a value -> its `TypeProto`."""
    assumed: list[str] = attrs.field(factory=list)
    """Operators whose outputs are assumed to have their maximum size."""
    outside: set[str] = attrs.field(factory=set)
    """Names of constants whose elements are in other files, which are not read."""

    def add_weight(self, tensor: Any) -> Value:
        """Register a stored tensor and return it; its elements are read only if they are few."""
        from onnx import numpy_helper

        shape = tuple(tensor.dims)
        dtype, size = DTYPES.get(tensor.data_type, ("", 0))
        if not dtype or any(one < 0 for one in shape) or math.prod(shape) > MOST_ELEMENTS:
            raise ModelError(f"{self.name}: tensor {tensor.name[:60]!r} has type {tensor.data_type} and shape {shape}")
        known = None
        if tensor.external_data:
            self.outside.add(tensor.name)
        has_data = tensor.raw_data or tensor.float_data or tensor.int64_data or tensor.int32_data or tensor.double_data
        if (has_data or not math.prod(shape)) and not tensor.external_data:
            try:
                known = numpy_helper.to_array(tensor)
            except (TypeError, ValueError):
                known = None
        value = Value(tensor.name, shape, dtype, size, known, is_weight=True)
        return self.keep(value, tensor.data_type)

    def keep(self, value: Value, kind: int) -> Value:
        """Register a value under its name and return it."""
        from onnx import helper

        self.values[value.name] = value
        self.types[value.name] = helper.make_tensor_type_proto(kind, value.shape)
        return value

    def find(self, name: str, proto: NodeProto) -> Value | None:
        """Return a value by its name; None for an empty name, which stands for an omitted input.

        Raise ModelError for a name that no earlier operator writes.
        """
        if not name:
            return None
        found = self.values.get(name)
        if found is None:
            raise ModelError(
                f"{self.name}: {proto.op_type} {proto.name!r} reads {name!r}, which no earlier operator writes"
            )
        return found

    def add_constant(self, proto: NodeProto) -> None:
        """Register the value of a Constant operator."""
        import numpy as np

        attribute = next((one for one in proto.attribute if one.name.startswith("value")), None)
        if attribute is None:
            raise ModelError(f"{self.name}: the constant {proto.name!r} has no value")
        if attribute.HasField("t"):
            tensor = attribute.t
            tensor.name = proto.output[0]
            self.add_weight(tensor)
            return
        numbers = attribute.ints or attribute.floats
        found = np.array(list(numbers) if numbers else attribute.i if attribute.type == 2 else attribute.f)
        found = found.astype(np.int64 if attribute.type in (2, 7) else np.float32)
        self.keep_known(proto.output[0], found)

    def keep_known(self, name: str, found: NDArray[Any]) -> None:
        """Store a computed value under a name."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(found.dtype)
        dtype, size = DTYPES.get(kind, ("fp32", 4))
        self.keep(Value(name, tuple(found.shape), dtype, size, found, is_weight=True), kind)

    def rename(self, name: str, value: Value | None) -> None:
        """Register a value under another name."""
        from onnx import helper

        if name and value is not None:
            self.values[name] = value
            kind = next((kind for kind, (dtype, _) in DTYPES.items() if dtype == value.dtype), 1)
            self.types[name] = helper.make_tensor_type_proto(kind, value.shape)

    def add_size(self, proto: NodeProto, value: Value, attributes: Mapping[str, Any]) -> None:
        """Add the result of `Shape` or `Size`, which is known although the elements of its input are not."""
        import numpy as np

        if proto.op_type == "Size":
            self.keep_known(proto.output[0], np.array(value.count, np.int64))
            return
        start, end = int(attributes.get("start", 0)), attributes.get("end")
        self.keep_known(proto.output[0], np.array(value.shape[start : None if end is None else int(end)], np.int64))

    def compute(self, proto: NodeProto) -> bool:
        """Compute the outputs of an operator from known inputs and store them; return False if that is not possible."""
        from onnx.reference import ReferenceEvaluator

        if proto.domain not in ("", "ai.onnx"):
            return False
        names = list(dict.fromkeys(one for one in proto.input if one))
        try:
            results = ReferenceEvaluator(self._wrap(proto)).run(None, {one: self.values[one].known for one in names})
        except Exception:  # an operator that the evaluator lacks is only inferred
            return False
        for output, found in zip((one for one in proto.output if one), results, strict=False):
            if not hasattr(found, "dtype"):
                return False
            self.keep_known(output, found)
        return True

    def _wrap(self, proto: NodeProto) -> ModelProto:
        """Return an ONNX model with one operator as its graph."""
        from onnx import helper

        graph = helper.make_graph(
            [proto],
            "one",
            [helper.make_value_info(one, self.types[one]) for one in dict.fromkeys(proto.input) if one],
            [helper.make_empty_tensor_value_info(one) for one in proto.output if one],
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=self.ir_version)

    def _infer_function(self, proto: NodeProto) -> dict[str, Any]:
        """Return name -> type of the outputs of an operator that the standard defines by other operators.

        An example is `GreaterOrEqual`.
        """
        from onnx import shape_inference

        return {one.name: one.type for one in shape_inference.infer_shapes(self._wrap(proto)).graph.output}

    def infer(self, proto: NodeProto, inputs: Sequence[Value | None]) -> list[Value]:
        """Return the outputs of an operator with their inferred shapes; ModelError if a shape remains unknown."""
        from onnx import TensorProto, checker, defs, helper, numpy_helper, shape_inference

        outputs = [one for one in proto.output if one]
        if proto.domain not in ("", "ai.onnx"):
            found = infer_contrib(proto.op_type, inputs, read_attributes(proto))
            if found is None:
                raise ModelError(f"{self.name}: operator {proto.domain}.{_call(proto)} is not known")
            return [
                self.keep(Value(one, shape, *DTYPES[kind]), kind)
                for one, (shape, kind) in zip(outputs, found, strict=False)
            ]
        try:
            schema = defs.get_schema(proto.op_type, self.opsets.get("", self.opsets.get("ai.onnx", 1)), "")
            values = [self.values[one] for one in dict.fromkeys(proto.input) if one]
            data = {
                one.name: numpy_helper.from_array(one.known)
                for one in values
                if one.known is not None and one.count <= MOST_COMPUTED
            }
            types = shape_inference.infer_node_outputs(
                schema,
                proto,
                {one: self.types[one] for one in proto.input if one},
                data,
                opset_imports=[helper.make_opsetid(domain, version) for domain, version in self.opsets.items()],
                ir_version=self.ir_version,
            )
            if proto.op_type not in OPEN and not all(one.tensor_type.HasField("shape") for one in types.values()):
                types = self._infer_function(proto)
        except defs.SchemaError as error:
            version = self.opsets.get("", self.opsets.get("ai.onnx", 1))
            raise ModelError(f"{self.name}: {_call(proto)} is not an operator of ONNX's set {version}") from error
        except (checker.ValidationError, shape_inference.InferenceError, *BROKEN) as error:
            reason = self.describe_outside(proto) or str(error).strip().splitlines()[-1][:120]
            raise ModelError(f"{self.name}: {proto.op_type} {proto.name!r} cannot be read: {reason}") from error
        made = []
        for one in outputs:
            declared = types.get(one)
            if proto.op_type in OPEN:
                made.append(self.assume(proto, one))
                continue
            kind = declared.tensor_type.elem_type if declared is not None else TensorProto.UNDEFINED
            dims = (
                declared.tensor_type.shape.dim
                if declared is not None and declared.tensor_type.HasField("shape")
                else None
            )
            if dims is None or not all(dim.HasField("dim_value") for dim in dims):
                reason = self.describe_outside(proto) or "it depends on data"
                raise ModelError(
                    f"{self.name}: the output of {proto.op_type} {proto.name!r} has no known shape: {reason}"
                )
            shape = tuple(dim.dim_value for dim in dims)
            dtype, size = DTYPES.get(kind, ("fp32", 4))
            if math.prod(shape) > MOST_ELEMENTS:
                raise ModelError(
                    f"{self.name}: {proto.op_type} {proto.name!r} has an output of {math.prod(shape):,} elements, "
                    f"expected at most {MOST_ELEMENTS:,}"
                )
            made.append(self.keep(Value(one, shape, dtype, size), kind))
        return made

    def describe_outside(self, proto: NodeProto) -> str:
        """Return a text that says that a constant's elements are in another file; empty if all are in the file."""
        found = next((one for one in proto.input[1:] if one in self.outside), None)
        return f"its constant {found!r} lies in another file, which is not read" if found else ""

    def assume(self, proto: NodeProto, output: str) -> Value:
        """Return the output of an operator whose output size depends on data, at its maximum size."""
        values = [self.values[one] if one else None for one in proto.input]
        first = values[0]
        assert first is not None
        if first.known is None:
            self.assumed.append(proto.op_type)
        if proto.op_type == "NonZero":
            return self.keep(Value(output, (max(len(first.shape), 1), first.count), *DTYPES[7]), 7)
        if proto.op_type == "NonMaxSuppression":
            batch, boxes = first.shape[:2]
            scores, most = values[1], values[2] if len(values) > 2 else None
            classes = scores.shape[1] if scores is not None else 1
            each = int(most.known.reshape(-1)[0]) if most is not None and most.known is not None else boxes
            return self.keep(Value(output, (batch * classes * min(each, boxes), 3), *DTYPES[7]), 7)
        kind = self.types[proto.input[0]].tensor_type.elem_type
        axis = next((one.i for one in proto.attribute if one.name == "axis"), None)
        shape = (first.count,) if axis is None else first.shape
        is_index = list(proto.output).index(output) > 0
        return self.keep(Value(output, shape, *DTYPES[7 if is_index else kind]), 7 if is_index else kind)


def _call(proto: NodeProto) -> str:
    """Return the type and name of a node for an error; an unnamed node is called after its first output."""
    return f"{proto.op_type} {proto.name or next(iter(proto.output), '')!r}"


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
