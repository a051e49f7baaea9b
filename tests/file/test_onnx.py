"""ONNX graphs: counts by hand, against the tracer's, and files that are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper, save
from torch import nn

from compare import assert_close
from joulemap.ask.candidate import plan_candidates
from joulemap.construct.source import parse_input
from joulemap.domain.settings import Settings
from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import NO_KEY, Workload
from joulemap.physics.width import Widths
from joulemap.physics.workload import columns_of
from joulemap.plan.run import plan_runs
from joulemap.plan.workload import choose_batches
from joulemap.system.errors import ModelError, UsageError
from joulemap.wing.file.assemble import assemble
from joulemap.wing.file.assembly import view_at
from joulemap.wing.file.graph import find_fixed_batch, read_program
from joulemap.wing.file.model_file import NAMES, find_precision
from joulemap.wing.file.proto import load_onnx
from joulemap.wing.file.rewrite import join_chains
from joulemap.workspace import Workspace

FLOAT = TensorProto.FLOAT


def read(path: Path, inputs: Sequence[str] = (), batch: int | None = 1) -> Workload:
    """Return the fused workload of a file."""
    program = read_program(load_onnx(path), path.name, [parse_input(one) for one in inputs], batch)
    return fuse(assemble(join_chains(program), path.name, NO_KEY, batch or 1, ()))


def write(
    path: Path,
    nodes: Sequence[Any],
    weights: dict[str, Any],
    shape: Sequence[int | str],
    opset: int = 18,
    made: Sequence[int | str] | None = None,
) -> Path:
    """Write a graph from `x` to `y`, whose shape `made` may be unknown."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, made)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), path)
    return path


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


def test_a_convolution_by_hand(tmp_path: Path) -> None:
    """3 x 3 taps of 4 channels at 8 x 8 positions for 16 channels: 36,864 MACs, and the bias."""
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1, 1, 1, 1])
    work = read(write(tmp_path / "m.onnx", [node], {"w": floats(16, 4, 3, 3), "b": floats(16)}, [1, 4, 8, 8]))
    (conv,) = work.operators
    assert (conv.mac_count, conv.elementwise_count) == (8 * 8 * 16 * 4 * 9, 8 * 8 * 16)
    assert (conv.gemm_m, conv.gemm_n, conv.gemm_k) == (64, 16, 36)
    assert work.weight_bytes == 4 * (16 * 4 * 9 + 16)
    assert {one.role: one.byte_count for one in work.accesses if one.role != "weight"} == {
        "input": 4 * 4 * 64,
        "output": 4 * 16 * 64,
    }


def test_quantized_pairs_are_one_product(tmp_path: Path) -> None:
    """Weights at int8 and rounded activations make the product of the plain graph."""
    scale, zero = np.float32(0.1), np.int8(0)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"]),
        helper.make_node("MatMul", ["d", "v"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "s", "z"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "s", "z"], ["y"]),
    ]
    weights = {"s": scale, "z": zero, "w": np.ones((64, 80), np.int8), "b": floats(80)}
    work = read(write(tmp_path / "m.onnx", nodes, weights, [2, 64]))
    (linear,) = (one for one in work.operators if not one.is_view)
    assert (linear.operation, linear.mac_count, linear.elementwise_count) == ("linear", 2 * 64 * 80, 160)


def _write_stored(folder: Path, kind: str, code: Any = np.int8) -> str:
    """Write a product of 64 x 80 weights as a file stores them; codes of quantized ones are of type `code`."""
    scales = {"s": np.float32(0.1), "z": np.asarray(0).astype(code)}
    pair = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
    ]
    widen, cast = (
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["v"]),
        helper.make_node("Cast", ["x"], ["c"], to=10),
    )
    nodes, weight = {
        "coded": ([*pair, widen, helper.make_node("MatMul", ["d", "v"], ["y"])], code),
        "weights": ([widen, helper.make_node("MatMul", ["x", "v"], ["y"])], code),
        "half": ([cast, helper.make_node("MatMul", ["c", "w"], ["y"])], np.float16),
        "plain": ([helper.make_node("MatMul", ["x", "w"], ["y"])], np.float32),
    }[kind]  # fmt: skip
    stored = {**scales, "w": np.ones((64, 80)).astype(weight)}
    return str(write(folder / f"{kind}.onnx", nodes, stored, [2, 64], opset=21))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("kind", "stored"),
    [("coded", ("int8", "")), ("weights", ("", "int8")), ("half", ("fp16", "")), ("plain", ("", ""))],
)
def test_a_file_runs_at_its_stored_precision_unless_one_is_stated(
    kind: str, stored: tuple[str, str], tmp_path: Path
) -> None:
    name = _write_stored(tmp_path, kind)
    assert find_precision(name) == stored
    workspace = Workspace(tmp_path / "x.duckdb")
    workspace.compare(name, hardware="l4")
    workspace.compare(name, hardware="l4", precision="fp32")
    rows = workspace.sql("SELECT precision, weight_precision FROM runs ORDER BY run_id").rows
    usual = stored[0] or "fp32"
    item_bytes = {"int8": 1, "fp16": 2, "fp32": 4}[stored[1] or usual]
    shown = workspace.profile(name).profile
    assert_close(shown.weight_bytes, 64 * 80 * item_bytes, rel=0.04)  # scales of groups
    assert [*dict.fromkeys(rows)] == [*dict.fromkeys([(usual, stored[1] or usual), ("fp32", "fp32")])]


@pytest.mark.parametrize(
    ("kind", "code", "stored"),
    [
        ("weights", ml_dtypes.int4, ("", "int4")),
        ("coded", ml_dtypes.uint4, ("int8", "int4")),
        ("weights", ml_dtypes.float8_e4m3fn, ("", "fp8")),
        ("coded", ml_dtypes.float8_e5m2, ("fp8", "")),
    ],
)
def test_narrow_codes_are_a_precision(kind: str, code: Any, stored: tuple[str, str], tmp_path: Path) -> None:
    name = _write_stored(tmp_path, kind, code)
    assert find_precision(name) == stored
    both = stored[0] or "fp32", stored[1] or stored[0]
    assert plan_runs([name], Settings(hardware=("h100_sxm5",))).settings.precisions == (both,)
    assert read(Path(name)).mac_count == 2 * 64 * 80


@pytest.mark.parametrize(("bits", "scale", "activations"), [(4, np.float16, "fp16"), (8, np.float32, "")])
def test_packed_weights_have_their_bits(bits: int, scale: Any, activations: str, tmp_path: Path) -> None:
    """64 x 80 codes in groups of 32, each group with a scale of 16 bits."""
    packed: dict[str, Any] = {"N": 80, "K": 64, "bits": bits, "block_size": 32}
    node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **packed)
    weights = {"w": np.ones((80, 2, 32 * bits // 8), np.uint8), "s": np.ones(160, scale)}
    name = write(tmp_path / "m.onnx", [node], weights, ["batch", 64])
    assert find_precision(str(name)) == (activations, f"int{bits}:32")
    work = read(name, batch=2)
    assert (work.mac_count, work.parameter_count) == (2 * 64 * 80, 64 * 80 + 160)
    held = Widths(columns_of(work), activations or "fp32", f"int{bits}:32").weight_bytes
    assert held == 64 * 80 * (bits / 8 + 2 / 32)


def test_a_pipeline_runs_at_the_precision_of_its_file(tmp_path: Path) -> None:
    coded, half = (_write_stored(tmp_path, kind) for kind in ("coded", "half"))

    def plan(model: str) -> object:
        return plan_runs([model], Settings(hardware=("l4",))).settings.precisions

    for model in (f"prepare(size=64) + {coded}", f"{coded}:30fps + boxes(count=10,classes=3):1/frame"):
        assert plan(model) == (("int8", "int8"),)
        assert NAMES.list_precisions(model) == (("int8",), ())
    for other in (half, "mobilenet_v2"):
        assert NAMES.list_precisions(f"{coded} + {other}") is None
        with pytest.raises(UsageError):
            plan(f"{coded} + {other}")


def test_an_einsum_is_a_product_of_groups(tmp_path: Path) -> None:
    """Scores of 2 x 3 heads, 5 queries, 7 keys of 11 elements: 2 x 3 x 5 x 7 x 11 MACs."""
    node = helper.make_node("Einsum", ["x", "w"], ["y"], equation="bhid, bhjd -> bhij")
    (one,) = read(write(tmp_path / "m.onnx", [node], {"w": floats(2, 3, 7, 11)}, [2, 3, 5, 11])).operators
    assert one.mac_count == 2 * 3 * 5 * 7 * 11
    assert (one.gemm_m, one.gemm_n, one.gemm_k, one.gemm_groups) == (5, 7, 11, 6)


@pytest.mark.parametrize(("threshold", "boxes"), [(0.0, 2000), (0.25, 250)])
def test_a_score_threshold_keeps_the_assumed_number_of_boxes(tmp_path: Path, threshold: float, boxes: int) -> None:
    # 1,000 boxes of 4 classes pass a threshold, 250 of each; a third of a class survives, up to 300
    node = helper.make_node("NonMaxSuppression", ["x", "scores", "most", "overlap", "least"], ["y"])
    weights = {
        "scores": floats(1, 4, 2000),
        "most": np.array([300]),
        "overlap": np.array([0.5], np.float32),
        "least": np.array([threshold], np.float32),
    }
    (one,) = (
        each
        for each in read(write(tmp_path / "m.onnx", [node], weights, [1, 2000, 4])).operators
        if each.operation == "nms"
    )
    assert one.step_count == 4 * min(300, -(-boxes // 3))


def test_attention_of_the_standard_is_three_operators(tmp_path: Path) -> None:
    """5 queries of 2 heads of 8 elements, and 7 keys: 2 x 5 x 7 x 8 MACs for the scores, as many for the sum."""
    node = helper.make_node("Attention", ["x", "k", "v"], ["y"])
    weights = {"k": floats(1, 2, 7, 8), "v": floats(1, 2, 7, 8)}
    work = read(write(tmp_path / "m.onnx", [node], weights, [1, 2, 5, 8], opset=23))
    assert [one.mac_count for one in work.operators] == [560, 0, 560]


def test_a_chain_whose_inner_value_is_read_elsewhere_is_not_joined(tmp_path: Path) -> None:
    """The distance from the mean is returned too, so that a layer norm cannot hide it."""
    nodes = [
        helper.make_node("ReduceMean", ["x", "axis"], ["m"]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Pow", ["d", "two"], ["p"]),
        helper.make_node("ReduceMean", ["p", "axis"], ["s"]),
        helper.make_node("Add", ["s", "e"], ["a"]),
        helper.make_node("Sqrt", ["a"], ["r"]),
        helper.make_node("Div", ["d", "r"], ["n"]),
    ]
    weights = {"axis": np.array([-1]), "two": np.float32(2.0), "e": np.float32(1e-5)}
    alone = write(tmp_path / "m.onnx", [*nodes, helper.make_node("Relu", ["n"], ["y"])], weights, [4, 16])
    assert [one.operation for one in read(alone).operators] == ["layer_norm", "relu"]
    beside = write(tmp_path / "n.onnx", [*nodes, helper.make_node("Add", ["n", "d"], ["y"])], weights, [4, 16])
    assert "layer_norm" not in [one.operation for one in read(beside).operators]


@pytest.mark.parametrize("op", ["Add", "MatMul"])
def test_a_large_value_of_small_constants_is_not_computed(tmp_path: Path, op: str) -> None:
    """Two rows of 30,000 elements make 900 million: known only by its shape."""
    nodes = [helper.make_node(op, ["a", "b"], ["t"]), helper.make_node("Mul", ["x", "t"], ["y"])]
    shape = {"a": floats(30_000, 1), "b": floats(1, 30_000)}
    work = read(write(tmp_path / "m.onnx", nodes, shape, [1]))
    assert work.operators[-1].output_element_count == 900_000_000


@pytest.mark.parametrize("opset", [12, 16, 22])
def test_an_operator_that_others_define_has_their_shape(tmp_path: Path, opset: int) -> None:
    """GreaterOrEqual is a Less and a Not, or a Greater, an Equal and an Or; BERT's mask has one."""
    nodes = [helper.make_node("GreaterOrEqual", ["x", "c"], ["t"]), helper.make_node("Where", ["t", "x", "c"], ["y"])]
    work = read(write(tmp_path / "m.onnx", nodes, {"c": floats(6)}, [4, 6], opset=opset))
    assert [one.output_element_count for one in work.operators] == [24, 24]


def test_a_reshape_behind_a_transpose_copies(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["t", "s"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
    ]
    work = read(write(tmp_path / "m.onnx", nodes, {"s": np.array([1, 24])}, [1, 4, 6]))
    assert [one.operation for one in work.operators] == ["permute", "reshape", "relu"]
    assert [one.kind for one in work.operators] == ["view", "data_movement", "elementwise"]


@pytest.mark.parametrize(
    ("shape", "strides", "wanted"),
    [
        ((2, 3, 4), (12, 4, 1), (6, 4)),
        ((2, 3, 4), (12, 4, 1), (2, 12)),
        ((4, 3, 2), (1, 4, 12), (12, 2)),
        ((4, 3), (1, 4), (4, 3, 1)),
        ((4, 3), (1, 4), (2, 2, 3)),
        ((1, 4, 1), (7, 1, 3), (4,)),
        ((2, 1, 3), (3, 9, 1), (6,)),
    ],
)
def test_views_are_those_of_torch(shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    tensor = torch.as_strided(torch.zeros(100), shape, strides)
    try:
        expected = tensor.view(wanted).stride()
    except RuntimeError:
        expected = None
    assert view_at(shape, strides, wanted) == expected


class Block(nn.Module):
    """Convolution, attention and a gated network, as an exporter writes them out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 4, 4)
        self.norm = nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(x)).reshape(x.shape[0], 64, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape[0], 64, 32)
        x = x + self.out(mixed)
        hidden = self.up(x)
        made: torch.Tensor = self.down(nn.functional.gelu(hidden) * nn.functional.silu(hidden))
        return made


@pytest.mark.filterwarnings("ignore")
def test_an_export_counts_as_its_trace(tmp_path: Path) -> None:
    module = Block().eval()
    x = torch.zeros(2, 3, 32, 32)
    path = tmp_path / "block.onnx"
    torch.onnx.export(module, (x,), str(path), dynamo=False, opset_version=17, input_names=["x"],
                      dynamic_axes={"x": {0: "n"}})  # fmt: skip
    from joulemap.construct.held import request_module

    traced = fuse(request_module(module, x)[1])
    found = read(path, batch=2)
    for what in ("mac_count", "elementwise_count", "special_count"):
        assert sum(getattr(one, what) for one in found.operators) == sum(getattr(one, what) for one in traced.operators)
    assert found.parameter_count == traced.parameter_count
    assert len(found.subgraphs) == len(traced.subgraphs)
    assert sum(one.fused_byte_count for one in found.accesses) == sum(one.fused_byte_count for one in traced.accesses)
    assert {one.module_path for one in found.operators if one.operation == "linear"} == {"qkv", "out", "up", "down"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layer", [nn.LSTM(8, 16, 2, bidirectional=True), nn.GRU(8, 16), nn.RNN(8, 16)])
def test_a_recurrent_layer_counts_as_its_trace(tmp_path: Path, layer: nn.Module) -> None:
    x = torch.zeros(5, 3, 8)
    path = tmp_path / "layer.onnx"
    torch.onnx.export(layer.eval(), (x,), str(path), dynamo=False, opset_version=17)
    from joulemap.construct.held import request_module

    traced, found = request_module(layer, x)[1], read(path, batch=3)
    for what in ("mac_count", "elementwise_count", "special_count", "step_count", "gemm_k"):
        counts = [[getattr(one, what) for one in work.operators if one.mac_count] for work in (found, traced)]
        assert counts[0] == counts[1]
    assert found.parameter_count == traced.parameter_count


@pytest.mark.parametrize(
    ("taken", "inputs", "batches", "batch"),
    [
        ([30, 2, 8], (), (), 2),
        (["t", "b", 8], ("30x2x8",), (), 2),
        (["t", "b", 8], ("30x1x8",), (4,), 4),
        ([30, "b", 8], (), (4,), 4),
        (["t", "b", 8], (), (4,), None),
    ],
)
def test_the_batch_of_a_recurrent_layer_is_the_second_size(
    tmp_path: Path, taken: list[int | str], inputs: tuple[str, ...], batches: tuple[int, ...], batch: int | None
) -> None:
    """A step of 30 of one sequence is (8 + 16) x 4 x 16 MACs."""
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"]),
        helper.make_node("LSTM", ["a", "w", "r"], ["y"], hidden_size=16),
    ]
    weights = {"b": floats(8), "w": floats(1, 64, 8), "r": floats(1, 64, 16)}
    path = write(tmp_path / "m.onnx", nodes, weights, taken, made=[taken[0], 1, taken[1], 16])
    settings = Settings(batch=batches, inputs=inputs)
    model = NAMES.find_claimed(str(path), settings, next(iter(batches), None))
    if batch is None:  # the number of steps is not known
        with pytest.raises(UsageError):
            NAMES.describe(model, print)
        return
    work = NAMES.describe(model, print)
    assert (model.request.batch, work.batch) == (batch, batch)
    assert sum(one.mac_count for one in work.operators) == batch * 30 * (8 + 16) * 4 * 16


def test_a_transposed_recurrent_layer_has_the_batch_first(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[1, 0, 2]),
        helper.make_node("GRU", ["a", "w", "r"], ["", "y"], hidden_size=16),
    ]
    weights = {"w": floats(1, 48, 8), "r": floats(1, 48, 16)}
    path = write(tmp_path / "m.onnx", nodes, weights, ["b", 30, 8], made=[1, "b", 16])
    assert sum(one.mac_count for one in read(path, batch=4).operators) == 4 * 30 * (8 + 16) * 3 * 16


def test_a_file_is_a_model_of_every_question(tmp_path: Path) -> None:
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    path = write(tmp_path / "m.onnx", [node], {"w": floats(512, 256)}, ["n", 512])
    answer = Workspace(tmp_path / "m.duckdb").compare(str(path), hardware=["l4", "tpu_v4"], batch=(4,))
    assert {row.batch for row in answer.rows} == {4}


def test_reading_needs_no_torch(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], {}, [1, 8])
    code = f"""
import sys
from joulemap.cli import main
sys.argv = ["joulemap", "compare", {str(path)!r}, "l4", "--db", {str(tmp_path / "m.duckdb")!r}]
try: main()
except SystemExit as end: assert not end.code, end.code
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_open_sizes_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], {}, ["n", "s"])
    with pytest.raises(UsageError):
        read(path)
    assert read(path, ["x=1x7"]).operators[0].output_element_count == 7
    for wrong in ("x=1x7x2", "z=1x7"):
        with pytest.raises(UsageError):
            read(path, [wrong])


def test_inputs_share_the_sizes_that_have_a_name(tmp_path: Path) -> None:
    """The batch and the length of the mask are those of the tokens; a height is asked for by its name."""
    tensors = [helper.make_tensor_value_info(name, FLOAT, ["n", "length", 8]) for name in ("x", "mask")]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "mask"], ["y"])], "graph", tensors,
        [helper.make_tensor_value_info("y", FLOAT, None)],
    )  # fmt: skip
    path = tmp_path / "m.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    assert read(path, ["mask=4x16x8"], batch=4).operators[0].output_element_count == 4 * 16 * 8
    with pytest.raises(UsageError, match="length"):
        read(path)


def _loop(path: Path, count: Any, *, keeps: bool = False, inputs: Sequence[str] = ()) -> Path:
    """Write a loop whose step is a product and an activation."""
    state = helper.make_tensor_value_info("s", FLOAT, [1, 8])
    nodes = [
        helper.make_node("MatMul", ["s", "w"], ["p"]),
        helper.make_node("Relu", ["p"], ["t"]),
        helper.make_node("Identity", ["c"], ["d"]),
    ]
    inner = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c", 9, []),
        state,
    ]
    outer = [helper.make_tensor_value_info(name, 9 if name == "d" else FLOAT, None) for name in "dt"]
    body = helper.make_graph(nodes, "body", inner, [*outer, *outer[1:]] if keeps else outer)
    loop = helper.make_node("Loop", ["n", "", "x"], ["e", "y"] if keeps else ["y"], body=body, name="steps")
    weights = {"w": floats(8, 8)} | ({} if inputs else {"n": np.int64(count)})
    free = [helper.make_tensor_value_info(one, 7, []) for one in inputs]
    graph = helper.make_graph(
        [loop], "graph", [helper.make_tensor_value_info("x", FLOAT, [1, 8]), *free],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )  # fmt: skip
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path


def test_the_steps_of_a_loop_are_counted_if_their_number_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("joulemap.wing.file.graph.MOST_UNROLLED", 100)
    path = tmp_path / "m.onnx"
    work = read(_loop(path, 5))
    assert [one.operation for one in work.operators] == ["linear", "relu"] * 5
    assert work.mac_count == 5 * 64
    kept = read(_loop(path, 5, keeps=True)).operators[-1]
    assert (kept.kind, kept.output_shape) == ("data_movement", (5, 1, 8))
    for count, inputs in ((34, ()), (2**60, ()), (5, ("n",))):
        with pytest.raises(ModelError, match="steps"):
            read(_loop(path, count, inputs=inputs))


def test_a_branch_that_computes_is_taken(tmp_path: Path) -> None:
    """One product of 8 x 8 against one copy or two sums; a graph of copies alone has nothing to predict."""
    value = helper.make_tensor_value_info("v", FLOAT, [1, 8])
    product = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["v"])], "product", [], [value])
    copy = helper.make_graph([helper.make_node("Identity", ["x"], ["v"])], "copy", [], [value])
    sums = [helper.make_node("Add", ["x", "x"], ["u"]), helper.make_node("Add", ["u", "x"], ["v"])]
    twice = helper.make_graph(sums, "twice", [], [value])
    test = helper.make_node("Less", ["x", "zero"], ["q"])
    weights = {"w": floats(8, 8), "zero": floats(1)}
    for index, (first, second) in enumerate(((product, copy), (product, twice), (twice, product))):
        node = helper.make_node("If", ["q"], ["y"], then_branch=first, else_branch=second)
        path = write(tmp_path / f"{index}.onnx", [test, node], weights, [1, 8])
        assert read(path).mac_count == 64
        assert read_program(load_onnx(path), path.name, (), 1).branch_count == 1
    path = write(tmp_path / "n.onnx", [helper.make_node("Identity", ["x"], ["y"])], {}, [1, 8])
    with pytest.raises(ModelError):
        Workspace(tmp_path / "m.duckdb").compare(str(path), hardware=["l4"])


def test_a_fixed_batch_is_not_changed(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], {}, [2, 8])
    with pytest.raises(UsageError):
        read(path, batch=4)


@pytest.mark.parametrize(
    ("taken", "made", "batch"),
    [
        ([1, 3, 8, 8], [1, 3, 8, 8], 1),
        ([4, 3, 8, 8], [4, 3, 8, 8], 4),
        ([3, 8, 8], [8, 8], 1),  # a single image begins with its channels
        ([4, 3, 8, 8], None, 1),
        (["n", 3, 8, 8], ["n", 3, 8, 8], None),
    ],
)
def test_the_batch_of_a_file_is_what_its_inputs_and_outputs_share(
    tmp_path: Path, taken: list[int | str], made: list[int | str] | None, batch: int | None
) -> None:
    path = write(tmp_path / "m.onnx", [helper.make_node("Relu", ["x"], ["y"])], {}, taken, made=made)
    assert find_fixed_batch(load_onnx(path)) == batch


@pytest.mark.parametrize("own", [1, 4])
def test_a_question_about_a_file_with_a_fixed_batch_asks_at_that_batch(tmp_path: Path, own: int) -> None:
    """Questions try several batch sizes by default; most files of exporters fix theirs at 1."""
    path = write(tmp_path / "m.onnx", [helper.make_node("Gemm", ["x", "w"], ["y"])], {"w": floats(512, 256)},
                 [own, 512], made=[own, 256])  # fmt: skip
    settings = Settings(hardware=("l4",))
    assert {one.request.batch for one in plan_candidates(str(path), settings).models} == {own}
    assert choose_batches([str(path)], settings, (1, 8)) == (own,)
    assert choose_batches(["resnet18"], settings, (1, 8)) == (1, 8)
    assert plan_runs([str(path)], settings).models[0].request.batch == own
    for stated in {1, own + 1} - {own}:
        with pytest.raises(UsageError):
            read(path, batch=stated)


def test_a_stated_input_takes_the_batch_of_the_question(tmp_path: Path) -> None:
    """Eight inputs by --batch or by --input are one run; an input of one is no statement against the batch."""
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    path = write(tmp_path / "m.onnx", [node], {"w": floats(512, 256)}, ["n", 512])
    workspace = Workspace(tmp_path / "m.duckdb")
    ways: tuple[dict[str, Any], ...] = ({"inputs": ("x=8,512",)}, {"inputs": ("x=1,512",), "batch": (8,)})
    (first,), (second,) = (workspace.compare(str(path), hardware=["l4"], **one).rows for one in ways)
    assert (first.batch, first.energy_j, first.latency_s) == (second.batch, second.energy_j, second.latency_s)
    with pytest.raises(UsageError):
        workspace.compare(str(path), hardware=["l4"], inputs=("x=4,512",), batch=(8,))


def _range(path: Path) -> Path:
    nodes = [
        helper.make_node("Range", ["a", "b", "c"], ["r"]),
        helper.make_node("Cast", ["r"], ["f"], to=FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    return write(path, nodes, {"a": np.int64(0), "b": np.int64(2**50), "c": np.int64(1)}, [1])


def _cycle(path: Path) -> Path:
    return write(path, [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])], {}, [1])


def _unknown(path: Path) -> Path:
    return write(path, [helper.make_node("Loop", ["", "", "x"], ["y"])], {}, [1])


def _branchless(path: Path) -> Path:
    return write(path, [helper.make_node("If", ["x"], ["y"])], {}, [1])


def _unmade(path: Path) -> Path:
    value = helper.make_tensor_value_info("v", FLOAT, [1])
    empty = helper.make_graph([], "empty", [], [value])
    return write(path, [helper.make_node("If", ["x"], ["y"], then_branch=empty, else_branch=empty)], {}, [1])


def _scan(path: Path) -> Path:
    return write(path, [helper.make_node("Scan", ["x"], ["y"])], {}, [1])


def _new(path: Path) -> Path:
    return write(path, [helper.make_node("Relu", ["x"], ["y"])], {}, [1], opset=99)


def _odd(path: Path) -> Path:
    return write(path, [helper.make_node("MyRelu", ["x"], ["y"])], {}, [1])


def _cut(path: Path) -> Path:
    write(path, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": floats(64, 64)}, [1, 64])
    path.write_bytes(path.read_bytes()[:-4000])
    return path


def _other(path: Path) -> Path:
    path.write_bytes(b"PK\3\4 an archive")
    return path


def _missing(path: Path) -> Path:
    return path


@pytest.mark.parametrize(
    "make", [_range, _cycle, _unknown, _branchless, _unmade, _scan, _new, _odd, _cut, _other, _missing]
)
def test_files_that_are_refused(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(ModelError):
        read(make(tmp_path / "m.onnx"))


def test_a_shape_outside_of_the_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", [helper.make_node("Reshape", ["x", "s"], ["y"])], {"s": np.array([2, 4])}, [1, 8])
    import onnx

    model = onnx.load(path)
    save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    with pytest.raises(ModelError, match="another file"):
        read(path)


def test_weights_outside_of_the_file_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": floats(64, 64)}, [1, 64])
    import onnx

    model = onnx.load(path)
    save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    assert read(path).mac_count == 64 * 64
