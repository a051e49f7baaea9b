"""ONNX graph with the shape of every value, and the values that do not depend on an input.

    message ─► sizes of inputs ─► node by node: all inputs known? compute it : infer the shapes of its outputs

Shapes are inferred one operator at a time, with the values that it needs: a whole graph would be inferred into memory
without bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system.errors import ModelError, UsageError
from joulemap.wing.file.contrib import infer_contrib
from joulemap.wing.file.value import DTYPES, MOST_ELEMENTS, Node, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto, TypeProto

    from joulemap.trace.source import InputSpec

MOST_COMPUTED: Final = 65_536
"""Maximum elements of a value that is computed while a file is read."""

BROKEN: Final = (RuntimeError, ValueError, TypeError)
"""Errors of the library for an operator with invalid inputs or attributes."""

OPEN: Final = frozenset({"NonZero", "NonMaxSuppression", "Compress", "Unique"})
"""Operators whose output has a size that depends on data."""

MOST_NODES: Final = 1_000_000

MOST_UNROLLED: Final = 20_000
"""Maximum operators of all steps of loops."""

IDLE: Final = frozenset({"Identity", "Constant"})
"""Operators that compute nothing."""

CARRIED: Final = frozenset(
    {"Identity", "Transpose", "Reshape", "Cast", "Unsqueeze", "Squeeze", "Flatten", "DequantizeLinear",
     "QuantizeLinear"}
)  # fmt: skip
"""Operators whose result, of weights, is a weight: an engine computes it once."""


@attrs.define
class Program:
    """Graph ready to be counted."""

    nodes: list[Node]
    inputs: list[Value]
    outputs: list[Value]
    weights: list[Value]
    producer: str
    opset: int
    assumed: tuple[str, ...] = ()
    """Operators whose output size depends on data, and is taken at its largest."""


def read_program(model: ModelProto, name: str, inputs: Sequence[InputSpec], batch: int | None) -> Program:
    """Return the graph of a model at the given sizes.

    Raise UsageError for a size that is open or contradicts the file, ModelError for an operator or a value that cannot
    be read.
    """
    from onnx import defs
    from onnx.inliner import inline_local_functions

    versions = {one.domain: one.version for one in model.opset_import}
    opset, newest = versions.get("", versions.get("ai.onnx", 0)), defs.onnx_opset_version()
    if opset > newest:
        raise ModelError(
            f"{name} has operators of set {opset}; the installed package onnx knows up to {newest}: pip install -U onnx"
        )
    if model.functions:
        model = inline_local_functions(model)
    if len(model.graph.node) > MOST_NODES:
        raise ModelError(f"{name} has {len(model.graph.node):,} operators, at most {MOST_NODES:,} are read")
    return _Reader(name=name, opsets=versions or {"": opset}, ir_version=model.ir_version).read(model, inputs, batch)


@attrs.define
class _Reader:
    """Walk over a graph."""

    name: str
    opsets: dict[str, int]
    ir_version: int
    values: dict[str, Value] = attrs.field(factory=dict)
    nodes: list[Node] = attrs.field(factory=list)
    types: dict[str, Any] = attrs.field(factory=dict)
    """Name of a value -> its type as a message."""
    assumed: list[str] = attrs.field(factory=list)
    """Operators whose outputs are taken at their largest size."""
    sizes: dict[str, int] = attrs.field(factory=dict)
    """Name of an open size -> its value, by the inputs that are given."""
    outside: set[str] = attrs.field(factory=set)
    """Constants whose elements lie in other files, which are not read."""
    unrolled: int = 0

    def read(self, model: ModelProto, inputs: Sequence[InputSpec], batch: int | None) -> Program:
        graph = model.graph
        weights = [self.add_weight(one) for one in graph.initializer]
        names = {one.name for one in graph.initializer}
        free = [one for one in graph.input if one.name not in names]
        taken = match_inputs(self.name, [one.name for one in free], inputs)
        for one in sorted(free, key=lambda one: one.name not in taken):
            self.name_sizes(one.type, taken.get(one.name), batch)
        given = [self.add_input(one.name, one.type, taken.get(one.name), batch) for one in free]
        for node in graph.node:
            self.add(node)
        outputs = [self.values[one.name] for one in graph.output if one.name in self.values]
        return Program(
            nodes=self.nodes,
            inputs=given,
            outputs=outputs,
            weights=weights,
            producer=f"{model.producer_name} {model.producer_version}".strip(),
            opset=self.opsets.get("", self.opsets.get("ai.onnx", 0)),
            assumed=tuple(dict.fromkeys(self.assumed)),
        )

    def add_weight(self, tensor: Any) -> Value:
        """Return a stored tensor; its elements are known if they are few."""
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

    def name_sizes(self, told: TypeProto, spec: InputSpec | None, batch: int | None) -> None:
        """Keep the value of each open size that has a name: inputs share them."""
        dims = told.tensor_type.shape.dim
        values = spec.shape if spec is not None and len(spec.shape) == len(dims) else (batch or 1,)
        for dim, size in zip(dims, values, strict=False):
            if dim.dim_param:
                self.sizes.setdefault(dim.dim_param, size)

    def add_input(self, name: str, told: TypeProto, spec: InputSpec | None, batch: int | None) -> Value:
        """Return an input with open sizes filled in; the first open size is the batch by default."""
        kind = told.tensor_type.elem_type
        dtype, size = DTYPES.get(kind, ("", 0))
        if not dtype:
            raise ModelError(f"{self.name}: input {name!r} is no tensor")
        dims = told.tensor_type.shape.dim
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
        if sizes and sizes[0] is None:
            sizes[0] = self.sizes.get(dims[0].dim_param) or batch or 1
        elif sizes and batch not in (None, 1, sizes[0]):
            raise UsageError(f"{self.name}: input {name} has the batch {sizes[0]}, which is fixed in the file")
        sizes = [one or self.sizes.get(dim.dim_param) for one, dim in zip(sizes, dims, strict=True)]
        if None in sizes:
            shown = "x".join("..." if one is None else str(one) for one in sizes)
            raise UsageError(
                f"{self.name}: input {name} is {_show(sizes, dims)}: give its open sizes, as --input {name}={shown}"
            )
        return self.keep(Value(name, tuple(one or 0 for one in sizes), dtype, size, is_input=True), kind)

    def add(self, proto: NodeProto) -> None:
        """Add an operator, or its value if all of its inputs are known."""
        attributes = _read_attributes(proto)
        if proto.op_type in ("If", "Loop"):
            (self.add_branch if proto.op_type == "If" else self.add_loop)(proto)
            return
        if proto.op_type == "Scan":
            raise ModelError(f"{self.name}: Scan {proto.name!r} has no formula: it runs a subgraph for each step")
        if proto.op_type == "Constant":
            self.add_constant(proto)
            return
        inputs = [self.find(one, proto) for one in proto.input]
        if proto.op_type in ("Shape", "Size") and inputs and inputs[0] is not None:
            self.add_size(proto, inputs[0], attributes)
            return
        told = [one for one in inputs if one is not None]
        outputs = self.infer(proto, inputs)
        is_small = sum(one.count for one in (*told, *outputs)) <= MOST_COMPUTED
        if told and is_small and all(one.known is not None for one in told) and self.compute(proto):
            return
        if told and all(one.is_weight for one in told) and proto.op_type in CARRIED:
            for output in outputs:
                output.is_weight = True
        for output in outputs:
            output.is_fixed = all(one.is_weight or one.is_fixed for one in told)
        name = proto.name or f"{proto.op_type}_{len(self.nodes)}"
        self.nodes.append(Node(proto.op_type, name, list(inputs), outputs, attributes))

    def find(self, name: str, proto: NodeProto) -> Value | None:
        """Return a value by name; None for an input that is left out."""
        if not name:
            return None
        found = self.values.get(name)
        if found is None:
            raise ModelError(f"{self.name}: {proto.op_type} {proto.name!r} reads {name!r}, which nothing makes before")
        return found

    def add_branch(self, proto: NodeProto) -> None:
        """Add the branch of a condition: the one that is taken if that is known, else the one with more operators."""
        condition = self.find(proto.input[0], proto)
        branches = {one.name: one.g for one in proto.attribute}
        if {*branches} != {"then_branch", "else_branch"}:
            raise ModelError(f"{self.name}: If {proto.name!r} has no two branches")
        if condition is not None and condition.known is not None:
            taken = branches["then_branch" if bool(condition.known.reshape(-1)[0]) else "else_branch"]
        else:
            taken = max(branches.values(), key=lambda one: sum(node.op_type not in IDLE for node in one.node))
        for tensor in taken.initializer:
            self.add_weight(tensor)
        for node in taken.node:
            self.add(node)
        for outer, inner in zip(proto.output, taken.output, strict=False):
            self.values[outer] = self.values[inner.name]
            self.types[outer] = self.types[inner.name]

    def add_loop(self, proto: NodeProto) -> None:
        """Add the operators of each step of a loop; ModelError unless their number is known."""
        import numpy as np

        body = next((one.g for one in proto.attribute if one.name == "body"), None)
        state = len(proto.input) - 2
        if body is None or len(body.input) != 2 + state or len(body.output) < 1 + state:
            raise ModelError(
                f"{self.name}: Loop {proto.name!r} has no subgraph that takes and returns its {state} values"
            )
        count, condition = (self.find(one, proto) for one in (*proto.input, "", "")[:2])
        most = None if count is None or count.known is None else int(count.known.reshape(-1)[0])
        if most is None or (condition is not None and condition.known is None):
            raise ModelError(
                f"{self.name}: Loop {proto.name!r} has no formula: how often it runs its {len(body.node)} operators "
                "depends on data"
            )
        carried = [self.find(one, proto) for one in proto.input[2:]]
        kept: list[list[Value]] = [[] for _ in body.output[1 + len(carried) :]]
        for step in range(most):
            if condition is not None and condition.known is not None and not bool(condition.known.reshape(-1)[0]):
                break
            self.unrolled += max(len(body.node), 1)
            if self.unrolled > MOST_UNROLLED:
                raise ModelError(f"{self.name}: Loop {proto.name!r} runs more than {MOST_UNROLLED:,} operators")
            self.keep_known(body.input[0].name, np.array(step, np.int64))
            self.keep_known(body.input[1].name, np.array(True))
            for inner, outer in zip(body.input[2:], carried, strict=True):
                self.rename(inner.name, outer)
            for tensor in body.initializer:
                self.add_weight(tensor)
            for node in body.node:
                self.add(node)
            condition, *made = (self.values[one.name] for one in body.output)
            carried = [*made[: len(carried)]]
            for one, value in zip(kept, made[len(carried) :], strict=True):
                one.append(value)
        for name, last in zip(proto.output, carried, strict=False):
            self.rename(name, last)
        for name, values in zip(proto.output[len(carried) :], kept, strict=False):
            self.stack(name, values, proto)

    def rename(self, name: str, value: Value | None) -> None:
        """Let a value be known under another name too."""
        from onnx import helper

        if name and value is not None:
            self.values[name] = value
            kind = next((kind for kind, (dtype, _) in DTYPES.items() if dtype == value.dtype), 1)
            self.types[name] = helper.make_tensor_type_proto(kind, value.shape)

    def stack(self, name: str, values: Sequence[Value], proto: NodeProto) -> None:
        """Add the values of all steps of a loop as one."""
        if not name or not values:
            return
        first = values[0]
        made = Value(name, (len(values), *first.shape), first.dtype, first.item_size)
        self.rename(name, made)
        self.nodes.append(Node("PACK", proto.name, list(values), [made], {"axis": 0}))

    def add_constant(self, proto: NodeProto) -> None:
        """Add the value of a constant."""
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
        """Keep a computed value."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(found.dtype)
        dtype, size = DTYPES.get(kind, ("fp32", 4))
        self.keep(Value(name, tuple(found.shape), dtype, size, found, is_weight=True), kind)

    def add_size(self, proto: NodeProto, value: Value, attributes: Mapping[str, Any]) -> None:
        """Add the shape of a value, or its number of elements, which are known here."""
        import numpy as np

        if proto.op_type == "Size":
            self.keep_known(proto.output[0], np.array(value.count, np.int64))
            return
        start, end = int(attributes.get("start", 0)), attributes.get("end")
        self.keep_known(proto.output[0], np.array(value.shape[start : None if end is None else int(end)], np.int64))

    def compute(self, proto: NodeProto) -> bool:
        """Keep what an operator computes from known values; False if it is no operator that can be evaluated."""
        from onnx import helper
        from onnx.reference import ReferenceEvaluator

        if proto.domain not in ("", "ai.onnx"):
            return False
        names = list(dict.fromkeys(one for one in proto.input if one))
        graph = helper.make_graph(
            [proto],
            "one",
            [helper.make_value_info(one, self.types[one]) for one in names],
            [helper.make_empty_tensor_value_info(one) for one in proto.output if one],
        )
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=self.ir_version)
        try:
            results = ReferenceEvaluator(made).run(None, {one: self.values[one].known for one in names})
        except Exception:  # an operator that the evaluator lacks is only inferred
            return False
        for output, found in zip((one for one in proto.output if one), results, strict=False):
            if not hasattr(found, "dtype"):
                return False
            self.keep_known(output, found)
        return True

    def infer(self, proto: NodeProto, inputs: Sequence[Value | None]) -> list[Value]:
        """Return the outputs of an operator with their shapes; ModelError if these are not known."""
        from onnx import TensorProto, checker, defs, helper, numpy_helper, shape_inference

        outputs = [one for one in proto.output if one]
        if proto.domain not in ("", "ai.onnx"):
            found = infer_contrib(proto.op_type, inputs, _read_attributes(proto))
            if found is None:
                raise ModelError(f"{self.name}: {proto.domain}.{proto.op_type} {proto.name!r} is not known")
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
        except (checker.ValidationError, defs.SchemaError, shape_inference.InferenceError, *BROKEN) as error:
            reason = self.describe_outside(proto) or str(error).strip().splitlines()[-1][:120]
            raise ModelError(f"{self.name}: {proto.op_type} {proto.name!r} cannot be read: {reason}") from error
        made = []
        for one in outputs:
            told = types.get(one)
            if proto.op_type in OPEN:
                made.append(self.assume(proto, one))
                continue
            kind = told.tensor_type.elem_type if told is not None else TensorProto.UNDEFINED
            dims = told.tensor_type.shape.dim if told is not None and told.tensor_type.HasField("shape") else None
            if dims is None or not all(dim.HasField("dim_value") for dim in dims):
                reason = self.describe_outside(proto) or "it depends on data"
                raise ModelError(
                    f"{self.name}: the output of {proto.op_type} {proto.name!r} has no known shape: {reason}"
                )
            shape = tuple(dim.dim_value for dim in dims)
            dtype, size = DTYPES.get(kind, ("fp32", 4))
            if math.prod(shape) > MOST_ELEMENTS:
                raise ModelError(f"{self.name}: {proto.op_type} {proto.name!r} makes {math.prod(shape):,} elements")
            made.append(self.keep(Value(one, shape, dtype, size), kind))
        return made

    def describe_outside(self, proto: NodeProto) -> str:
        """Return the reason that a constant's elements are not known; empty if all are in the file."""
        found = next((one for one in proto.input[1:] if one in self.outside), None)
        return f"its constant {found!r} lies in another file, which is not read" if found else ""

    def assume(self, proto: NodeProto, output: str) -> Value:
        """Return the output of an operator whose size depends on data, at the largest that it can have."""
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


def _show(sizes: Sequence[int | None], dims: Sequence[Any]) -> str:
    """Return sizes as text; open ones by their names."""
    return "x".join(str(one) if one is not None else dim.dim_param or "?" for one, dim in zip(sizes, dims, strict=True))


def match_inputs(name: str, free: Sequence[str], inputs: Sequence[InputSpec]) -> dict[str, InputSpec]:
    """Return the given inputs by name, unnamed ones in order. Raise UsageError for an unknown input."""
    found: dict[str, InputSpec] = {one.name: one for one in inputs if one.name}
    unknown = sorted(found.keys() - {*free})
    if unknown:
        raise UsageError(f"{name} has no input {unknown[0]}; it has {', '.join(free)}")
    rest = [one for one in free if one not in found]
    plain = [one for one in inputs if not one.name]
    if len(plain) > len(rest):
        raise UsageError(f"{name} has {len(free)} inputs, {len(inputs)} are given")
    return found | dict(zip(rest, plain, strict=False))


def _read_attributes(proto: NodeProto) -> dict[str, Any]:
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
