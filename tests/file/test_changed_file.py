"""Changed model files: each is read, or refused in one line that names the file and the operator."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, load, numpy_helper, save

from campaign.reader import SLOW_S, read_one
from gguf_file import form_gguf, small_hybrid
from joulemap.domain.settings import Settings
from joulemap.plan.workload import find_model, find_workload_of
from joulemap.system.errors import ModelError
from joulemap.system.reading import ContradictionError
from lite_file import Field, Graph, Op, Tensor, Writer, form_lite
from model_file import CONTRIB, FORMATS


@pytest.mark.parametrize("count", [150, pytest.param(500, marks=pytest.mark.slow)])
def test_changed_files_are_read_or_refused_in_one_line(tmp_path: Path, count: int) -> None:
    outcomes, failures = Counter[str](), []
    for number in range(count):
        suffix = sorted(FORMATS)[number % len(FORMATS)]
        path = tmp_path / f"{number}.{suffix}"
        path.write_bytes(FORMATS[suffix](Random(f"{suffix} {number}")))
        started = time.process_time()
        outcome, failure = read_one(path)
        outcomes[outcome] += 1
        failures += [failure] * bool(failure) + [path.name] * (time.process_time() - started > SLOW_S)
    assert not failures
    assert outcomes["read"] > count / 10 < outcomes["refused"]


def _refusal(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        find_workload_of(find_model(str(path), Settings(), None), print)
    assert not isinstance(caught.value, ContradictionError)
    assert path.name in str(caught.value)
    return str(caught.value)


def write_onnx(path: Path, nodes: list[Any], weights: dict[str, Any], shape: tuple[int, ...], **more: Any) -> Path:
    """Write a graph from `x` to `y` at operator set 18."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    opsets = [helper.make_opsetid(name, 18 if not name else 1) for name in ("", CONTRIB, "own")]
    save(helper.make_model(graph, opset_imports=opsets, **more), path)
    return path


def _contrib(op: str, inputs: list[str], **attributes: Any) -> Any:
    return helper.make_node(op, inputs, ["y"], domain=CONTRIB, **attributes)


CODES = {"w": np.zeros((80, 2, 16), np.uint8), "s": np.ones(160, np.float32)}
BROKEN: dict[str, tuple[Any, dict[str, Any], tuple[int, ...]]] = {
    "block_size": (_contrib("MatMulNBits", ["x", "w", "s"], K=64, N=80, bits=4), CODES, (2, 64)),
    "group=-1": (
        helper.make_node("Conv", ["x", "w"], ["y"], group=-1),
        {"w": np.ones((16, 4, 3, 3), np.float32)},
        (1, 4, 8, 8),
    ),
    "2x-5": (helper.make_node("TopK", ["x", "k"], ["y", "i"]), {"k": np.array([-5])}, (2, 64)),
    "num_heads=0": (_contrib("MultiHeadAttention", ["x", "x", "x"], num_heads=0), {}, (1, 4, 64)),
    "kv_num_heads=0": (
        _contrib("GroupQueryAttention", ["x", "x", "x"], num_heads=4, kv_num_heads=0),
        {},
        (1, 4, 64),
    ),
    "input 2": (_contrib("FusedMatMul", ["x"]), {}, (1, 64)),
    "(64,)": (helper.make_node("NonMaxSuppression", ["x", "x"], ["y"]), {}, (64,)),
}


@pytest.mark.parametrize("word", BROKEN)
def test_a_broken_operator_is_named_with_its_fault(word: str, tmp_path: Path) -> None:
    node, weights, shape = BROKEN[word]
    text = _refusal(write_onnx(tmp_path / "m.onnx", [node], weights, shape))
    assert word in text
    assert node.op_type in text


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_numbers_that_are_not_finite_are_counted(number: float, tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "m"], ["a"]), helper.make_node("Clip", ["a", "m", "m"], ["y"])]
    path = write_onnx(tmp_path / "m.onnx", nodes, {"m": np.float32(number)}, (2, 4))
    work = find_workload_of(find_model(str(path), Settings(), None), print)
    assert [one.output_element_count for one in work.operators] == [8, 8]


def _function(name: str, called: str) -> Any:
    """Return a local function that calls another one, or an operator, twice."""
    domain = "own" if called.startswith("f") else ""
    nodes = [helper.make_node(called, [one], [two], domain=domain) for one, two in ("ab", "bc")]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["c"], nodes, opsets)


@pytest.mark.parametrize(("last", "word"), [("Relu", "expand"), ("f0", "itself")])
def test_local_functions_are_counted_before_they_are_expanded(last: str, word: str, tmp_path: Path) -> None:
    """Forty functions of which each calls the next twice are 2^40 operators."""
    names = [f"f{index}" for index in range(40)]
    functions = [_function(name, called) for name, called in zip(names, [*names[1:], last], strict=True)]
    node = helper.make_node("f0", ["x"], ["y"], domain="own")
    path = write_onnx(tmp_path / "m.onnx", [node], {}, (1, 4), functions=functions)
    started = time.process_time()
    assert word in _refusal(path)
    assert time.process_time() - started < 1.0


class SharingWriter(Writer):
    """Writer that writes a table once, however many tables refer to it."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[int, int] = {}

    def table(self, fields: Mapping[int, Field]) -> int:
        """Return the position of a table, and write it if it is not yet in the file."""
        if id(fields) not in self.places:
            self.places[id(fields)] = super().table(fields)
        return self.places[id(fields)]


def test_tables_that_share_a_vector_are_refused_before_they_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 32 kB, in which 2,000 operators share a vector of 6,000 inputs: 12 million numbers."""
    operator = {0: ("I", 0), 1: ("vector:i", [0] * 6000), 2: ("vector:i", [1])}
    monkeypatch.setattr("lite_file.Writer", SharingWriter)
    monkeypatch.setattr("lite_file._form_operator", lambda *_: operator)
    operators = [Op("CONCATENATION", [], [])] * 2000
    path = tmp_path / "m.tflite"
    path.write_bytes(form_lite(Graph(tensors=[Tensor("x", (1,)), Tensor("y", (1,))], operators=operators)))
    assert path.stat().st_size < 100_000
    assert "memory" in _refusal(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("embedding_length", None),
        ("block_count", "many"),
        ("attention.head_count", "x"),
        ("ssm.inner_size", [1, 2]),
        ("block_count", 2**32 - 1),
    ],
)
def test_a_header_without_a_count_names_its_key(key: str, value: Any, tmp_path: Path) -> None:
    values, tensors = small_hybrid("nemotron_h", "M*-")
    values.pop(f"nemotron_h.{key}")
    if value is not None:
        values[f"nemotron_h.{key}"] = value
    path = tmp_path / "m.gguf"
    path.write_bytes(form_gguf(values, tensors))
    _refusal(path)


@pytest.mark.parametrize("op", ["ConstantOfShape", "Constant"])
def test_a_value_in_another_file_is_never_read(op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_bytes(b"\0" * 8)
    value = helper.make_tensor("v", TensorProto.INT64, [1], [0])
    value.ClearField("int64_data")
    value.data_location = TensorProto.EXTERNAL
    value.external_data.add(key="location", value="secret")
    nodes = [
        helper.make_node(op, ["k"] if op == "ConstantOfShape" else [], ["s"], value=value),
        helper.make_node("Expand", ["x", "s"], ["y"]),
    ]
    path = write_onnx(tmp_path / "m.onnx", nodes, {"k": np.array([1])}, (1,))
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("onnx.external_data_helper.load_external_data_for_tensor", lambda *one: opened.append(one))
    assert "Expand" in _refusal(path) or "another file" in _refusal(path)
    assert not opened


@pytest.mark.parametrize("op", ["Reshape", "Expand", "Tile"])
def test_a_shape_of_too_many_axes_is_refused_before_it_takes_memory(op: str, tmp_path: Path) -> None:
    path = write_onnx(tmp_path / "many.onnx", [helper.make_node(op, ["x", "r"], ["y"])], {"r": [1, 4]}, (1, 4))
    model = load(path)
    model.graph.initializer[0].dims[:] = [2**31]  # as its data contradict
    save(model, path)
    assert "2,147,483,648 axes" in _refusal(path)
