"""Random invalid ONNX, TFLite and GGUF files: valid small files with a few changes of their structure or bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import attrs
import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import gguf_file
from campaign.mutate import mutate_bytes
from gguf_file import form_gguf
from joulemap.wing.file.call import RULES
from joulemap.wing.file.lite import load_schema
from lite_file import TYPES, Graph, Op, Tensor, form_lite

INTEGERS: Final = (-1, 0, 1, 2, 3, 4, 7, 64, -5, 255, 2**16, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS: Final = (0.0, -1.0, 1e-45, 1e38, float("inf"), float("-inf"), float("nan"))
TEXTS: Final = ("", "x", "ij,jk->ik", "...i,i->i", "bhqd,bhkd->bhqk", "nearest", "linear", "\x1b[2J", "a" * 5000, "é\n")
CONTRIB: Final = "com.microsoft"


def _node(op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, Any]) -> NodeProto:
    """Return a node; an operator with a dot has a domain."""
    domain, _, name = op.rpartition(".")
    return helper.make_node(name, inputs, outputs, name=f"/layer/{outputs[0]}", domain=domain, **attributes)


FORMS: Final[Mapping[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "model_file.json").read_text(encoding="utf-8")
)
"""Small valid models that together have most operators: nodes and weights, operators and tensors."""


def _make_weight(kind: str, value: Any) -> Any:
    """Return an array of numbers, or of ones where a shape is given."""
    name, *ones = kind.split()
    return np.ones(value, name) if ones else np.array(value, name)


@cache
def list_onnx() -> tuple[ModelProto, ...]:
    """Return small valid models that together have most operators."""
    image = (1, 4, 8, 8)
    held: dict[str, Any] = {
        f"@{op}": helper.make_graph([_node(op, ["x"], ["o"], {})], op, [], [_value("o", None)])
        for op in ("Relu", "Exp")
    }
    held["@body"] = helper.make_graph(
        [_node("Add", ["s", "x"], ["t"], {}), _node("Identity", ["c"], ["d"], {})], "body",
        [_value("i", (), 7), _value("c", (), 9), _value("s", image)], [_value("d", (), 9), _value("t", image)],
    )  # fmt: skip
    held["@zero"] = helper.make_tensor("v", 1, [1], [0.0])
    function = helper.make_function(
        "own", "twice", ["a"], ["b"], [_node("Relu", ["a"], ["c"], {}), _node("Add", ["c", "a"], ["b"], {})],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    opsets = [helper.make_opsetid(name, version) for name, version in (("", 18), (CONTRIB, 1), ("own", 1))]
    made = []
    for form in FORMS["onnx"]:
        nodes = [
            _node(op, inputs, outputs, {name: held.get(str(one), one) for name, one in attributes.items()})
            for op, inputs, outputs, attributes in form["nodes"]
        ]
        weights = [numpy_helper.from_array(_make_weight(*one), name) for name, one in form["weights"].items()]
        graph = helper.make_graph(nodes, "graph", [_value("x", form["x"])], [_value("y", None)], weights)
        made.append(helper.make_model(graph, opset_imports=opsets, functions=[function]))
    return tuple(made)


def _value(name: str, shape: Sequence[int] | None, kind: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def change_onnx(random: Random) -> bytes:
    """Return a changed ONNX file."""
    model = ModelProto()
    model.CopyFrom(random.choice(list_onnx()))
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        random.choices(*zip(*ONNX_WAYS, strict=True))[0](random, model)
    content = model.SerializeToString()
    return mutate_bytes(random, content) if random.random() < 0.1 else content


def _change_attribute(random: Random, model: ModelProto) -> None:
    node = random.choice(_list_nodes(model))
    way = random.randrange(4)
    if way == 0 and node.attribute:
        del node.attribute[random.randrange(len(node.attribute))]
        return
    name = random.choice(node.attribute).name if node.attribute else random.choice(("axis", "group", "value", "to"))
    kept = [one for one in node.attribute if one.name != name]
    value: Any = random.choice(
        (random.choice(INTEGERS), random.choice(FLOATS), random.choice(TEXTS),
         [random.choice(INTEGERS) for _ in range(random.randrange(1, 6))], [random.choice(FLOATS)],
         numpy_helper.from_array(np.ones(random.choice(((), (2,), (0,))), random.choice((np.float32, np.int64))), "t"))
    )  # fmt: skip
    before = [one for one in node.attribute if one.name == name]
    del node.attribute[:]
    if way == 1 and before and before[0].ints:
        value = [random.choice((one, random.choice(INTEGERS))) for one in before[0].ints][: random.randrange(6)] or [0]
    if way == 2 and before and before[0].type == AttributeProto.INT:
        value = random.choice(INTEGERS)
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def _change_inputs(random: Random, model: ModelProto) -> None:
    node = random.choice(_list_nodes(model))
    names = node.input if random.random() < 0.7 else node.output
    known = [one for other in _list_nodes(model) for one in (*other.input, *other.output)] + ["", "nothing"]
    if not names:
        names.append(random.choice(known))
        return
    at = random.randrange(len(names))
    way = random.randrange(4)
    if way == 0:
        del names[at]
    elif way == 1:
        names.append(names[at])
    elif way == 2:
        names[at] = ""
    else:
        names[at] = random.choice(known)


def _change_operator(random: Random, model: ModelProto) -> None:
    node = random.choice(_list_nodes(model))
    node.op_type = random.choice((*RULES, "LSTM", "GRU", "Scan", "Constant", "If", "Loop", "Attention", "Nothing"))
    node.domain = random.choice(("", "", "", CONTRIB, "own", "ai.onnx"))


def _change_order(random: Random, model: ModelProto) -> None:
    nodes = list(model.graph.node)
    if random.random() < 0.5:
        random.shuffle(nodes)
    else:
        nodes.append(random.choice(nodes))
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _change_weight(random: Random, model: ModelProto) -> None:
    graph = random.choice(_list_graphs(model))
    if not graph.initializer:
        return
    tensor = random.choice(graph.initializer)
    way = random.randrange(6)
    if way == 0:
        tensor.data_type = random.randrange(30)
    elif way == 1:
        del tensor.dims[:]
        tensor.dims.extend(random.choice(INTEGERS) for _ in range(random.randrange(5)))
    elif way == 2 and tensor.dims:
        tensor.dims[random.randrange(len(tensor.dims))] = random.choice(INTEGERS)
    elif way == 3:
        tensor.raw_data = mutate_bytes(random, tensor.raw_data)
    elif way == 4:
        tensor.external_data.add(key="location", value=random.choice(("/etc/passwd", "../x", "gone.bin")))
        tensor.data_location = TensorProto.EXTERNAL
    else:
        values = [random.choice((*INTEGERS, *FLOATS)) for _ in range(random.randrange(5))]
        dtype = np.float64 if any(isinstance(one, float) for one in values) else np.int64
        tensor.CopyFrom(numpy_helper.from_array(np.array(values, dtype), tensor.name))


def _change_input(random: Random, model: ModelProto) -> None:
    value = random.choice([*model.graph.input, *model.graph.output])
    kind = value.type.tensor_type
    way = random.randrange(4)
    if way == 0:
        kind.elem_type = random.randrange(30)
    elif way == 1:
        value.type.sequence_type.elem_type.tensor_type.elem_type = 1
    elif way == 2 and kind.shape.dim:
        random.choice(kind.shape.dim).dim_param = random.choice(("N", ""))
    else:
        kind.shape.dim.add().dim_value = random.choice(INTEGERS)


def _change_version(random: Random, model: ModelProto) -> None:
    way = random.randrange(4)
    if way == 0:
        (random.choice(model.opset_import) if model.opset_import else model.opset_import.add()).version = random.choice(
            (1, 6, 9, 11, 13, 21, 23, 999, 0, -1)
        )
    elif way == 1:
        model.ir_version = random.choice(INTEGERS)
    elif way == 2:
        del model.opset_import[:]
    else:
        model.functions[0].node[0].op_type = "twice"
        model.functions[0].node[0].domain = "own"


def _list_graphs(model: ModelProto) -> list[GraphProto]:
    graphs = [model.graph]
    for graph in graphs:
        graphs += [one.g for node in graph.node for one in node.attribute if one.HasField("g")]
    return graphs


def _list_nodes(model: ModelProto) -> list[NodeProto]:
    nodes = [node for graph in _list_graphs(model) for node in graph.node]
    return [*nodes, *(node for one in model.functions for node in one.node)]


ONNX_WAYS: Final[tuple[tuple[Callable[[Random, ModelProto], None], int], ...]] = (
    (_change_attribute, 6), (_change_inputs, 5), (_change_operator, 3), (_change_order, 1), (_change_weight, 4),
    (_change_input, 2), (_change_version, 1),
)  # fmt: skip


@cache
def list_lite() -> tuple[tuple[Graph, ...], ...]:
    """Return the graphs of small valid TFLite files that together have most operators."""

    def graph(form: Mapping[str, Any]) -> Graph:
        tensors = [
            Tensor(name, tuple(shape), **{key: one for part in more for key, one in part.items()})
            for name, shape, *more in form["tensors"]
        ]
        return Graph(tensors=tensors, operators=[Op(*one) for one in form["operators"]])

    return tuple(tuple(map(graph, forms)) for forms in FORMS["lite"])


SIZES: Final = (0, 1, 2, 3, 8, -1, 2**16, 2**31 - 1)


def change_lite(random: Random) -> bytes:
    """Return a changed TFLite file."""
    graphs = list(random.choice(list_lite()))
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        at = random.randrange(len(graphs))
        graphs[at] = random.choice((_change_tensor, _change_lite_operator, _change_lite_operator))(random, graphs[at])
    content = form_lite(*graphs)
    return mutate_bytes(random, content) if random.random() < 0.3 else content


def _change_tensor(random: Random, graph: Graph) -> Graph:
    tensors = list(graph.tensors)
    at = random.randrange(len(tensors))
    one = tensors[at]
    way = random.randrange(5)
    if way == 0 and one.data is None:
        one = attrs.evolve(one, shape=tuple(random.choice(SIZES) for _ in range(random.randrange(7))))
    elif way == 1 and one.shape and one.data in (None, True):
        sizes = list(one.shape)
        sizes[random.randrange(len(sizes))] = random.choice(SIZES if one.data is None else SIZES[:5])
        one = attrs.evolve(one, shape=tuple(abs(size) for size in sizes) if one.data else tuple(sizes))
    elif way == 2 and one.data is None:
        one = attrs.evolve(one, dtype=random.choice(sorted(TYPES)), is_scaled=random.random() < 0.5)
    elif way == 3:
        one = attrs.evolve(one, open_axes=(random.randrange(4),))
    else:
        one = attrs.evolve(one, is_variable=True, name=random.choice(TEXTS) or "y")
        return attrs.evolve(graph, tensors=[*tensors, one])
    tensors[at] = one
    return attrs.evolve(graph, tensors=tensors)


def _change_lite_operator(random: Random, graph: Graph) -> Graph:
    operators = list(graph.operators)
    at = random.randrange(len(operators))
    one = operators[at]
    names = [tensor.name for tensor in graph.tensors]
    way = random.randrange(6)
    if way == 0:
        one = attrs.evolve(one, name=random.choice(load_schema()["operators"]))
        if one.name == "CUSTOM":
            return graph
    elif way in (1, 2):
        which = "inputs" if way == 1 else "outputs"
        given = list(getattr(one, which))
        if given and random.random() < 0.4:
            del given[random.randrange(len(given))]
        elif random.random() < 0.5:
            given.append(random.choice([*names, ""]))
        elif given:
            given[random.randrange(len(given))] = random.choice([*names, ""])
        one = attrs.evolve(one, inputs=given) if which == "inputs" else attrs.evolve(one, outputs=given)
    elif way == 3:
        numbers = {"b": (0, 1, -1, 5, 127), "i": (0, 1, 2, -1, 2**31 - 1)}
        changed = [(field, code, random.choice(numbers[code])) for field, code, _ in one.options]
        one = attrs.evolve(one, options=[kept for kept in changed if random.random() < 0.8])
    elif way == 4:
        one = attrs.evolve(one, options=[])
    else:
        operators.insert(random.randrange(len(operators) + 1), random.choice(operators))
    operators[at] = one
    return attrs.evolve(graph, operators=operators)


@cache
def list_gguf() -> tuple[tuple[dict[str, Any], list[Any]], ...]:
    """Return (keys, tensors) of small valid GGUF files."""
    return (
        gguf_file.small_hybrid("granitehybrid", "M*M*"), gguf_file.small_hybrid("nemotron_h_moe", "M*-E"),
        gguf_file.small_hybrid("nemotron_h", "M*-"), gguf_file.small_llama_4(), gguf_file.deepseek_v2_lite(),
        gguf_file.mamba_2_8b(), gguf_file.phi_3_mini(), gguf_file.gemma_3_4b(),
    )  # fmt: skip


ARCHITECTURES: Final = ("llama", "qwen2", "mamba", "bert", "gemma3", "deepseek2", "x")
NAMES: Final = ("", "token_embd.weight", "blk.99.attn_q.weight", "blk.x", "é")


def change_gguf(random: Random) -> bytes:
    """Return a changed GGUF file."""
    values, tensors = random.choice(list_gguf())
    values, tensors = dict(values), list(tensors)
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        key = random.choice(sorted(values))
        way = random.randrange(8)
        if way == 0:
            del values[key]
        elif way in (1, 2):
            values[key] = random.choice(
                ("x", "", "llama", True, 0, 1, 3, 2**32 - 1, 65_537, [1, 2], [0] * 40, [True, False], ["a", "b"])
            )
        elif way == 3:
            values["general.architecture"] = random.choice(ARCHITECTURES)
        elif way == 4:
            del tensors[random.randrange(len(tensors)) :][: random.randint(1, 4)]
        elif way == 5:
            at = random.randrange(len(tensors))
            name, shape, kind = tensors[at]
            shape = [random.choice((one, random.choice((0, 1, 2, 256, 2**20, 2**40, 2**62)))) for one in shape]
            tensors[at] = name, shape[: random.randrange(1, 4)], random.choice((kind, kind, "f32"))
        elif way == 6:
            tensors.append(random.choice(tensors))
        else:
            at = random.randrange(len(tensors))
            tensors[at] = random.choice(NAMES), *tensors[at][1:]
    content = form_gguf(values, tensors, random.choice((3, 3, 3, 3, 2, 4)))
    chance = random.random()
    if chance < 0.1:
        counts = [random.choice((0, 1, 2**20, 2**63, len(tensors) + 1, len(values))) for _ in range(2)]
        content = content[:8] + struct.pack("<QQ", *counts) + content[24:]
    return mutate_bytes(random, content) if chance > 0.7 else content


FORMATS: Final[Mapping[str, Callable[[Random], bytes]]] = {
    "onnx": change_onnx, "tflite": change_lite, "gguf": change_gguf,
}  # fmt: skip
"""Suffix of a file -> function that returns a changed one."""
