"""Random invalid ONNX, TFLite and GGUF files: valid small files with a few changes of their structure or bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
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

Put = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]
"""(operator, inputs, outputs, attributes) of a node; an operator with a dot has a domain."""


def _node(put: Put) -> NodeProto:
    op, inputs, outputs, attributes = put
    domain, _, name = op.rpartition(".")
    return helper.make_node(name, list(inputs), list(outputs), name=f"/layer/{outputs[0]}", domain=domain, **attributes)


def _weight(*shape: int, kind: Any = np.float32) -> Any:
    return np.ones(shape, kind)


@cache
def list_onnx() -> tuple[ModelProto, ...]:
    """Return small valid models that together have most operators."""
    image, tokens = (1, 4, 8, 8), (1, 6, 64)
    branch = [helper.make_graph([_node((op, ["x"], ["o"], {}))], op, [], [_value("o", None)]) for op in ("Relu", "Exp")]
    body = helper.make_graph(
        [_node(("Add", ["s", "x"], ["t"], {})), _node(("Identity", ["c"], ["d"], {}))], "body",
        [_value("i", (), 7), _value("c", (), 9), _value("s", image)], [_value("d", (), 9), _value("t", image)],
    )  # fmt: skip
    function = helper.make_function(
        "own", "twice", ["a"], ["b"], [_node(("Relu", ["a"], ["c"], {})), _node(("Add", ["c", "a"], ["b"], {}))],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    count = {"n": np.array(3), "true": np.array(True), "k": np.array([2]), "f": np.float32(0.5)}
    shapes = {"r": np.array([1, -1]), "z": np.array([0]), "sizes": np.array([1, 4, 16, 16]), "idx": np.array([[0, 1]])}
    forms: tuple[tuple[tuple[int, ...], Sequence[Put], Mapping[str, Any]], ...] = (
        (image, [("Conv", ["x", "w", "b"], ["c"], {"pads": [1] * 4, "strides": [1, 1], "group": 1}),
                 ("BatchNormalization", ["c", "b", "b", "b", "b"], ["n"], {}), ("Relu", ["n"], ["a"], {}),
                 ("MaxPool", ["a"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
                 ("GlobalAveragePool", ["p"], ["g"], {}), ("Flatten", ["g"], ["l"], {"axis": 1}),
                 ("Gemm", ["l", "v", "u"], ["y"], {"transB": 1})],
         {"w": _weight(8, 4, 3, 3), "b": _weight(8), "v": _weight(10, 8), "u": _weight(10)}),
        (tokens, [("MatMul", ["x", "w"], ["q"], {}), ("Reshape", ["q", "heads"], ["h"], {}),
                  ("Transpose", ["h"], ["t"], {"perm": [0, 2, 1, 3]}),
                  ("Transpose", ["h"], ["k"], {"perm": [0, 2, 3, 1]}), ("MatMul", ["t", "k"], ["s"], {}),
                  ("Mul", ["s", "f"], ["m"], {}), ("Softmax", ["m"], ["o"], {"axis": -1}),
                  ("MatMul", ["o", "t"], ["e"], {}), ("LayerNormalization", ["x", "g"], ["y"], {"axis": -1})],
         {"w": _weight(64, 64), "heads": np.array([0, 0, 4, 16]), "g": _weight(64), **count}),
        (tokens, [("LSTM", ["x", "w", "r"], ["a"], {"hidden_size": 8}), ("Squeeze", ["a", "z1"], ["b"], {}),
                  ("ReduceMean", ["b"], ["c"], {"keepdims": 0}), ("Clip", ["x", "f", "f"], ["d"], {}),
                  ("Concat", ["x", "d"], ["y"], {"axis": 1})],
         {"w": _weight(1, 32, 64), "r": _weight(1, 32, 8), "z1": np.array([1]), **count}),
        (image, [("Shape", ["x"], ["s"], {}), ("Gather", ["s", "z"], ["g"], {"axis": 0}),
                 ("Concat", ["g", "z"], ["h"], {"axis": 0}), ("Reshape", ["x", "r"], ["a"], {}),
                 ("Slice", ["a", "z", "k"], ["b"], {}), ("Resize", ["x", "", "", "sizes"], ["e"], {"mode": "linear"}),
                 ("TopK", ["a", "k"], ["v", "i"], {"axis": -1}), ("Cast", ["i"], ["y"], {"to": 1})],
         {**count, **shapes}),
        (image, [("Less", ["f", "f"], ["w"], {}),
                 ("If", ["w"], ["a"], {"then_branch": branch[0], "else_branch": branch[1]}),
                 ("Loop", ["n", "true", "x"], ["b"], {"body": body}), ("own.twice", ["b"], ["c"], {}),
                 ("Einsum", ["c", "c"], ["y"], {"equation": "abij,abjk->abik"})], count),
        (tokens, [(f"{CONTRIB}.MatMulNBits", ["x", "w", "s"], ["a"], {"K": 64, "N": 80, "bits": 4, "block_size": 32}),
                  (f"{CONTRIB}.GroupQueryAttention", ["x", "x", "x"], ["b"], {"num_heads": 4, "kv_num_heads": 4}),
                  (f"{CONTRIB}.MultiHeadAttention", ["b", "b", "b"], ["c"], {"num_heads": 4}),
                  (f"{CONTRIB}.FusedMatMul", ["c", "v"], ["d"], {"transB": 0}),
                  (f"{CONTRIB}.SkipLayerNormalization", ["d", "x", "g"], ["y"], {})],
         {"w": _weight(80, 2, 16, kind=np.uint8), "s": _weight(160), "v": _weight(64, 64), "g": _weight(64)}),
        (tokens, [("QuantizeLinear", ["x", "f", "q"], ["a"], {}), ("DequantizeLinear", ["a", "f", "q"], ["b"], {}),
                  ("DequantizeLinear", ["w", "f", "q"], ["c"], {}), ("MatMul", ["b", "c"], ["d"], {}),
                  ("Erf", ["d"], ["e"], {}), ("Pow", ["e", "f"], ["g"], {}), ("Where", ["m", "g", "f"], ["y"], {})],
         {"w": _weight(64, 64, kind=np.int8), "q": np.int8(0), "m": _weight(64, kind=np.bool_), **count}),
        ((1, 6, 4), [("NonMaxSuppression", ["x", "w", "k"], ["a"], {}), ("GatherND", ["x", "idx"], ["b"], {}),
                     ("ConstantOfShape", ["r1"], ["c"], {"value": helper.make_tensor("v", 1, [1], [0.0])}),
                     ("Tile", ["c", "r1"], ["d"], {}), ("Expand", ["x", "big"], ["e"], {}),
                     ("Pad", ["x", "pads"], ["f1"], {}), ("OneHot", ["idx", "n", "two"], ["g"], {}),
                     ("Range", ["n", "n", "n"], ["h"], {}),
                     ("Split", ["x"], ["s1", "s2"], {"axis": -1, "num_outputs": 2}),
                     ("ConvTranspose", ["x3", "wt"], ["t"], {}), ("CumSum", ["x", "n0"], ["y"], {})],
         {"w": _weight(1, 2, 6), "r1": np.array([2, 3]), "big": np.array([2, 1, 1]),
          "pads": np.array([0, 1, 0, 0, 1, 0]), "two": _weight(2), "x3": _weight(1, 4, 6),
          "wt": _weight(4, 2, 3), "n0": np.array(0), **count, **shapes}),
    )  # fmt: skip
    made = []
    for shape, puts, weights in forms:
        graph = helper.make_graph(
            [_node(one) for one in puts], "graph", [_value("x", shape)], [_value("y", None)],
            [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
        )  # fmt: skip
        opsets = [helper.make_opsetid(name, version) for name, version in (("", 18), (CONTRIB, 1), ("own", 1))]
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

    def graph(shape: tuple[int, ...], operators: Sequence[Op], *tensors: Tensor) -> Graph:
        return Graph(tensors=[Tensor("x", shape), *tensors], operators=operators)

    window = [(0, "b", 0), (1, "i", 1), (2, "i", 1), (3, "i", 2), (4, "i", 2)]
    image = (1, 8, 8, 4)
    return (
        (graph(image, [Op("CONV_2D", ["x", "w", "b"], ["c"], [(0, "b", 0), (1, "i", 1), (2, "i", 1), (3, "b", 1)]),
                       Op("DEPTHWISE_CONV_2D", ["c", "d"], ["e"], [(0, "b", 0), (1, "i", 1), (2, "i", 1)]),
                       Op("AVERAGE_POOL_2D", ["e"], ["p"], window), Op("MEAN", ["p", "axes"], ["m"]),
                       Op("FULLY_CONNECTED", ["m", "f"], ["l"]), Op("SOFTMAX", ["l"], ["y"])],
               Tensor("w", (8, 3, 3, 4), data=True), Tensor("b", (8,), data=True), Tensor("d", (1, 3, 3, 8), data=True),
               Tensor("c", (1, 8, 8, 8)), Tensor("e", (1, 8, 8, 8)), Tensor("p", (1, 8, 8, 8)), Tensor("m", (1, 8)),
               Tensor("f", (10, 8), data=True), Tensor("l", (1, 10)), Tensor("y", (1, 10)),
               Tensor("axes", (2,), "int32", data=[1, 2])),),
        (graph((1, 6, 8), [Op("TRANSPOSE", ["x", "perm"], ["t"]), Op("BATCH_MATMUL", ["x", "t"], ["s"], [(1, "b", 0)]),
                           Op("RESHAPE", ["s", "new"], ["r"]), Op("CONCATENATION", ["r", "r"], ["c"], [(0, "i", 1)]),
                           Op("SPLIT", ["axis", "c"], ["u", "v"]), Op("PACK", ["u", "v"], ["k"], [(1, "i", 0)]),
                           Op("GATHER", ["k", "at"], ["g"]), Op("ADD", ["g", "g"], ["a"]), Op("QUANTIZE", ["a"], ["q"]),
                           Op("SQUARED_DIFFERENCE", ["a", "g"], ["h"]), Op("L2_NORMALIZATION", ["h"], ["y"])],
               Tensor("perm", (3,), "int32", data=[0, 2, 1]), Tensor("t", (1, 8, 6)), Tensor("s", (1, 6, 6)),
               Tensor("new", (2,), "int32", data=[1, 36]), Tensor("r", (1, 36)), Tensor("c", (1, 72)),
               Tensor("axis", (), "int32", data=1), Tensor("u", (1, 36)), Tensor("v", (1, 36)), Tensor("k", (2, 1, 36)),
               Tensor("at", (1,), "int32", data=[0]), Tensor("g", (1, 1, 36)), Tensor("a", (1, 1, 36)),
               Tensor("q", (1, 1, 36), "int8", is_scaled=True), Tensor("h", (1, 1, 36)), Tensor("y", (1, 1, 36))),),
        (graph(image, [Op("IF", ["cond", "x"], ["i"], [(0, "i", 1), (1, "i", 2)]),
                       Op("TRANSPOSE_CONV", ["o", "w", "i"], ["t"], window[:3]),
                       Op("RESIZE_BILINEAR", ["t", "size"], ["z"]), Op("NON_MAX_SUPPRESSION_V4", ["bx", "sc"], ["n"]),
                       Op("custom TFLite_Detection_PostProcess", ["bx", "sc"], ["y"])],
               Tensor("cond", (), "bool"), Tensor("i", image), Tensor("o", (4,), "int32", data=[1, 8, 8, 2]),
               Tensor("w", (2, 3, 3, 4), data=True), Tensor("t", (1, 8, 8, 2)),
               Tensor("size", (2,), "int32", data=[4, 4]), Tensor("z", (1, 4, 4, 2)), Tensor("bx", (5, 4), data=True),
               Tensor("sc", (5,), data=True), Tensor("n", (5,), "int32"), Tensor("y", (1, 5, 4))),
         Graph(tensors=[Tensor("x", image), Tensor("y", image)], operators=[Op("RELU", ["x"], ["y"])]),
         Graph(tensors=[Tensor("x", image), Tensor("y", image)], operators=[Op("CALL", ["x"], ["y"], [(0, "i", 1)])])),
    )  # fmt: skip


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
