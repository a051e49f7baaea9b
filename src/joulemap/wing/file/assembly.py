"""Builder of a workload: operators, the memory that they read and write, and views of it.

A value is a view where ATen would make one: its elements lie in the memory of another value at other strides. A reshape
that the strides do not allow copies, as in PyTorch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from joulemap.physics import Access, Operator, Tensor
from joulemap.system import ModelError
from joulemap.trace.formula import Call, Cost, count
from joulemap.trace.formula.attention import STEPS, attend
from joulemap.wing.file.call import AtenCall, Turned
from joulemap.wing.file.rewrite import ATTENTION
from joulemap.wing.file.value import Node, Value, list_present

ATTENTIONS: Final = frozenset({ATTENTION, "Attention", "MultiHeadAttention", "GroupQueryAttention"})
"""Attention operators, each of which is counted as three: scores, softmax and weighted sum."""

INDICES: Final = frozenset({"int64", "int32", "uint64", "uint32", "bool", "string"})
"""Dtypes of stored tensors that are positions, sizes and masks rather than learned numbers."""

Strides = tuple[int, ...]


@attrs.define(eq=False)
class MemoryLayout:
    """Location of a value's elements in memory."""

    base: int
    """Index of the tensor that owns the memory; a view has the index of another tensor."""
    strides: Strides
    index: int = -1
    """Index of the tensor that a value has for itself; -1 for none."""


def lie_densely(shape: Sequence[int]) -> Strides:
    """Return the strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def view_at(shape: Sequence[int], strides: Strides, wanted: Sequence[int]) -> Strides | None:
    """Return the strides of a tensor's memory under another shape; None if a reshape must copy.

    Dimensions that are split or merged must be adjacent in memory. Source: ATen, `computeStride`.
    """
    if not shape or 0 in shape:
        return lie_densely(wanted)
    viewed = [0] * len(wanted)
    left, base = len(wanted) - 1, strides[-1]
    held = seen = 1
    for axis in reversed(range(len(shape))):
        held *= shape[axis]
        if axis and (shape[axis - 1] == 1 or strides[axis - 1] == held * base):
            continue
        while left >= 0 and (seen < held or wanted[left] == 1):
            viewed[left] = seen * base
            seen *= wanted[left]
            left -= 1
        if seen != held:
            return None
        if axis:
            base, held, seen = strides[axis - 1], 1, 1
    return None if left >= 0 else tuple(viewed)


@attrs.define
class Assembly:
    """Builder of a workload from a file's graph."""

    operators: list[Operator] = attrs.field(factory=list)
    tensors: list[Tensor] = attrs.field(factory=list)
    accesses: list[Access] = attrs.field(factory=list)
    edges: dict[tuple[int, int, int], None] = attrs.field(factory=dict)
    layouts: dict[int, MemoryLayout] = attrs.field(factory=dict)
    """id() of a value -> its location in memory."""
    held: list[Value] = attrs.field(factory=list)
    names: Counter[str] = attrs.field(factory=Counter)
    makers: dict[int, int] = attrs.field(factory=dict)
    """Index of a tensor -> index of the operator that writes it."""
    items: list[int] = attrs.field(factory=list)
    """Bytes per element of each tensor that scale with precision; 0 for tensors of fixed width."""

    def lay_out(self, value: Value) -> MemoryLayout:
        """Return the location of a value; an input or a weight gets memory at its first use."""
        layout = self.layouts.get(id(value))
        if layout is None:
            if not (value.is_input or value.is_weight):
                raise ModelError(f"{value.name!r} is read before an operator writes it")
            is_learned = value.dtype not in INDICES
            layout = self.own(value, "input" if value.is_input else "parameter" if is_learned else "constant")
        return layout

    def own(self, value: Value, role: str, producer: int | None = None, byte_count: int | None = None) -> MemoryLayout:
        """Give a value a tensor and memory of its own, and return its location."""
        index = len(self.tensors)
        self.tensors.append(
            Tensor(
                shape=value.shape,
                dtype=value.dtype,
                byte_count=value.byte_count if byte_count is None else byte_count,
                role=role,
                name=value.name if role in ("parameter", "constant") else "",
                producer_index=producer,
            )
        )
        self.items.append(value.item_bytes)
        if producer is not None:
            self.makers[index] = producer
        self.held.append(value)
        layout = self.layouts[id(value)] = MemoryLayout(index, lie_densely(value.shape), index)
        return layout

    def see(self, value: Value, base: MemoryLayout, strides: Strides) -> None:
        """Make a value a view of the memory at `base`."""
        self.held.append(value)
        self.layouts[id(value)] = MemoryLayout(base.base, strides, base.base)

    def add(self, aten: str, cost: Cost, output: Value | None, path: str, own: bool, label: str = "") -> int:
        """Add an operator and return its index."""
        word = label or cost.operation
        name = path if own and path else f"{path}.{word}" if path else word
        self.names[name] += 1
        name = name if self.names[name] == 1 else f"{name}:{self.names[name]}"
        shape, dtype = (output.shape, output.dtype) if output is not None else ((), "")
        is_foldable = output is not None and output.is_fixed
        self.operators.append(cost.operator(name, path, f"aten.{aten}.default", shape, dtype, is_foldable=is_foldable))
        return len(self.operators) - 1

    def read(self, operator: int, values: Iterable[Value], limits: dict[int, int] | None = None) -> None:
        """Record the values that an operator reads; bytes that two values share count once.

        `limits` is id() of a value -> maximum bytes read, as for a gather.
        """
        most = limits or {}
        read: dict[int, tuple[Value, int]] = {}
        for value in values:
            layout = self.lay_out(value)
            size = min(_touched(value, layout.strides), most.get(id(value), 2**60))
            before = read[layout.base][1] if layout.base in read else 0
            whole = self.tensors[layout.base].byte_count
            read[layout.base] = value, min(before + size, max(whole, size))
            maker = self.makers.get(layout.base)
            if maker is not None:
                self.edges[maker, operator, layout.base] = None
        for base, (value, size) in read.items():
            tensor = self.tensors[base]
            role = "weight" if tensor.role in ("parameter", "constant") else "input"
            self.access(operator, base, role, size, value.item_bytes)

    def access(self, operator: int, base: int, role: str, size: int, item_bytes: int) -> None:
        """Record that an operator reads or writes `size` bytes of a tensor."""
        self.accesses.append(
            Access(
                operator_index=operator,
                tensor_index=base,
                role=role,
                byte_count=size,
                item_bytes=item_bytes,
                is_boundary=self.tensors[base].role == "input",
            )
        )

    def write(self, operator: int, values: Iterable[Value]) -> None:
        """Record the values that an operator writes."""
        for value in values:
            layout = self.own(value, "activation", operator)
            self.access(operator, layout.base, "output", value.byte_count, value.item_bytes)

    def write_part(self, operator: int, value: Value, share: int) -> None:
        """Record that an operator writes one of `share` equal parts of a value, after other operators wrote parts
        before it.
        """
        layout = self.layouts.get(id(value)) or self.own(value, "activation", operator)
        self.makers[layout.base] = operator
        self.access(operator, layout.base, "output", value.byte_count // share, value.item_bytes)

    def add_view(self, node: Node, call: AtenCall, path: str) -> None:
        """Add a view for an operator that moves no data; a copy where the memory layout requires one."""
        source = node.given(0)
        layout = self.lay_out(source)
        for output in node.outputs[: None if call.aten == "split" else 1]:
            strides = _find_strides(call, source, layout, output)
            if strides is None:
                operator = self.add("clone", Cost(kind="data_movement", operation="reshape"), output, path, False)
                self.read(operator, [source])
                self.write(operator, [output])
                continue
            operator = self.add(call.aten, Cost(kind="view", operation=call.aten), output, path, False)
            maker = self.makers.get(layout.base)
            if maker is not None:
                self.edges[maker, operator, layout.base] = None
            self.see(output, layout, strides)

    def add_call(self, node: Node, aten_call: AtenCall, path: str, own: bool) -> None:
        """Add an operator that computes or moves data, with its reads and writes."""
        outputs = node.outputs
        seen = [Turned(outputs[0], shape=aten_call.output_shape), *outputs[1:]] if aten_call.output_shape else outputs
        call = Call(aten_call.args, {}, tuple(seen))  # type: ignore[arg-type]
        cost = count(aten_call.aten, call)
        operator = self.add(aten_call.aten, cost, outputs[0], path, own)
        values = list(_list_values(aten_call.args))
        limits: dict[int, int] = {}
        if cost.gathers and values:
            rows = outputs[0].count if cost.gathered_count is None else cost.gathered_count
            limits[id(values[0])] = rows * values[0].item_size
        self.read(operator, values, limits)
        self.write(operator, outputs)

    def add_attention(self, node: Node, path: str) -> None:
        """Add the three operators of attention: scores, softmax and weighted sum."""
        query, key, value, mask = (node.value(index) for index in range(4))
        if query is None or key is None or value is None:
            raise ModelError(
                f"{node.op} {node.name!r} has queries, keys and values in one tensor, which is not supported"
            )
        shape, columns, width = measure_attention(node, query, key, value)
        steps = attend(shape, columns, width, score_operations=2 if mask is not None else 1)
        scores = (*shape[:-1], columns)
        inner = [Value(f"{node.name}.{step}", scores, query.dtype, query.item_size) for step in STEPS[:2]]
        output = node.outputs[0]
        for step, cost, reads, made in zip(
            STEPS,
            steps,
            (list_present((query, key, mask)), inner[:1], [inner[1], value]),
            (inner[0], inner[1], output),
            strict=True,
        ):
            operator = self.add("scaled_dot_product_attention", cost, made, path, False, step)
            self.read(operator, reads)
            self.write(operator, [made])
        for cache in node.outputs[1:]:
            self.see(cache, self.lay_out(output), lie_densely(cache.shape))
        if len(output.shape) == 4:  # kernels leave the heads of a token beside each other
            batch, heads, rows, width = output.shape
            del batch
            self.layouts[id(output)].strides = (heads * rows * width, width, heads * width, 1)


def measure_attention(node: Node, query: Value, key: Value, value: Value) -> tuple[tuple[int, ...], int, int]:
    """Return the shape of the queries (batch, heads, rows, width), the number of keys, and the width of a head's
    values.

    If the heads are not an axis of the operands, an attribute of the node states their number.
    """
    if node.op == ATTENTION:
        return query.shape, key.shape[-1] if node.attributes["keys_last"] else key.shape[-2], value.shape[-1]
    past = next((one for one in node.inputs[3:] if one is not None and len(one.shape) == 4 and not one.is_weight), None)
    before = past.shape[2] if past is not None and len(node.outputs) > 1 else 0
    if len(query.shape) == 4:
        return query.shape, key.shape[-2] + before, value.shape[-1]
    heads = int(node.attributes.get("q_num_heads", node.attributes.get("num_heads", 0)))
    pairs = int(node.attributes.get("kv_num_heads", heads)) or heads
    if not heads or query.shape[-1] % heads or value.shape[-1] % pairs:
        raise ModelError(f"{node.op} {node.name!r} does not state its number of heads")
    batch, rows, width = query.shape
    return (batch, heads, rows, width // heads), key.shape[-2] + before, value.shape[-1] // pairs


def _touched(value: Value, strides: Strides) -> int:
    """Return the bytes of memory that a value covers; elements repeated by a stride of 0 count once."""
    if 0 not in strides:
        return value.byte_count
    return value.item_size * math.prod(size for size, step in zip(value.shape, strides, strict=True) if step)


def _find_strides(call: AtenCall, source: Value, layout: MemoryLayout, output: Value) -> Strides | None:
    """Return the strides of an operator's output as a view; None if it must be a copy."""
    strides = layout.strides
    if call.aten == "permute":
        return tuple(strides[one] for one in call.args[1])
    if call.aten in ("view", "squeeze", "unsqueeze"):
        return view_at(source.shape, strides, output.shape)
    if call.aten == "expand":
        missing = len(output.shape) - len(source.shape)
        sizes, steps = (1,) * missing + source.shape, (0,) * missing + strides
        return tuple(
            0 if size == 1 and wanted != 1 else step
            for size, step, wanted in zip(sizes, steps, output.shape, strict=True)
        )
    if len(output.shape) == len(source.shape):
        return strides
    dropped = len(source.shape) - len(output.shape)
    pairs = enumerate(zip(source.shape, output.shape, strict=False))
    axis = next((index for index, (one, other) in pairs if one != other), len(output.shape))
    return (*strides[:axis], *strides[axis + dropped :])


def _list_values(args: Iterable[Any]) -> Iterable[Value]:
    """Yield the tensors among the arguments of a call, including those in lists; numbers are skipped."""
    for one in args:
        if isinstance(one, Turned):
            yield one.value
        elif isinstance(one, Value):
            yield one
        elif isinstance(one, list) and one and isinstance(one[0], Value):
            yield from one
