"""TFLite files: counts by hand, against the tracer's, at the precision that they store, and files that are refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from joulemap.construct.source import parse_input
from joulemap.domain.settings import Settings
from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import NO_KEY, Operator, Workload
from joulemap.plan.run import plan_runs
from joulemap.store.check import check_database
from joulemap.system.errors import ModelError, UsageError
from joulemap.wing.file.assemble import assemble
from joulemap.wing.file.lite import load_lite
from joulemap.wing.file.lite_graph import measure_precision, read_lite_program
from joulemap.wing.file.model_file import describe_lite
from joulemap.wing.file.rewrite import join_chains
from joulemap.workspace import Workspace
from lite_file import Graph, Op, Tensor, form_lite, write_lite

ONE = ((1, "i", 1), (2, "i", 1))
"""Strides of 1."""
VALID, RELU, RELU6 = (0, "b", 1), (3, "b", 1), (3, "b", 3)


def read(path: Path, inputs: Sequence[str] = (), batch: int | None = None) -> Workload:
    """Return the fused workload of a file."""
    program = read_lite_program(load_lite(path), path.name, [parse_input(one) for one in inputs], batch)
    return fuse(assemble(join_chains(program), path.name, NO_KEY, batch or 1, ()))


def read_one(tmp_path: Path, tensors: Sequence[Tensor], *operators: Op, inputs: Sequence[str] = ("x",)) -> Workload:
    return read(write_lite(tmp_path / "m.tflite", Graph(tensors, operators, inputs)))


def counts(one: Operator) -> tuple[str, int, int, int]:
    return one.operation, one.mac_count, one.elementwise_count, one.special_count


def constant(name: str, *shape: int, dtype: str = "fp32") -> Tensor:
    return Tensor(name, shape, dtype, data=True)


def test_a_convolution_by_hand(tmp_path: Path) -> None:
    """3 x 3 taps of 4 channels at 8 x 8 positions for 16 channels: 36,864 MACs, the bias, and its activation."""
    tensors = [Tensor("x", (1, 8, 8, 4)), constant("w", 16, 3, 3, 4), constant("b", 16), Tensor("y", (1, 8, 8, 16))]
    work = read_one(tmp_path, tensors, Op("CONV_2D", ["x", "w", "b"], ["y"], [*ONE, RELU]))
    conv, relu = work.operators
    assert counts(conv) == ("conv2d", 8 * 8 * 16 * 4 * 9, 8 * 8 * 16, 0)
    assert counts(relu) == ("relu", 0, 8 * 8 * 16, 0)
    assert (conv.gemm_m, conv.gemm_n, conv.gemm_k, conv.gemm_groups) == (64, 16, 36, 1)
    assert conv.output_shape == (1, 8, 8, 16)
    assert conv.scalars == "kernel=[3, 3] stride=[1, 1] padding=[1, 1] groups=1"
    assert work.weight_bytes == 4 * (16 * 4 * 9 + 16)
    assert work.parameter_count == 16 * 4 * 9 + 16
    assert len(work.subgraphs) == 1


def test_groups_are_those_of_the_channels(tmp_path: Path) -> None:
    """Weights of 2 of 8 channels make 4 groups; a channel of its own makes 8, with 2 results each."""
    tensors = [
        Tensor("x", (1, 6, 6, 8)), constant("w", 16, 3, 3, 2), constant("v", 1, 5, 5, 16),
        Tensor("a", (1, 3, 3, 16)), Tensor("y", (1, 2, 2, 16)),
    ]  # fmt: skip
    strides = [(0, "b", 0), (1, "i", 2), (2, "i", 2)]
    deep = Op("DEPTHWISE_CONV_2D", ["x", "v", ""], ["y"], [VALID, *ONE, (3, "i", 2)])
    work = read_one(tmp_path, tensors, Op("CONV_2D", ["x", "w", ""], ["a"], strides), deep)
    groups, channels = work.operators
    assert (groups.kind, groups.mac_count, groups.gemm_groups) == ("grouped_conv", 9 * 16 * 2 * 9, 4)
    assert (channels.kind, channels.mac_count, channels.gemm_groups) == ("depthwise_conv", 4 * 16 * 25, 8)
    assert groups.scalars == "kernel=[3, 3] stride=[2, 2] padding=[0, 0] groups=4"  # the file pads behind


def test_products_by_hand(tmp_path: Path) -> None:
    """A dense layer over 2 x 2 x 8 elements; scores of 3 heads, 5 queries and 7 keys of 4 elements."""
    tensors = [
        Tensor("x", (2, 2, 2, 8)), constant("w", 10, 32), constant("b", 10), Tensor("a", (2, 10)),
        Tensor("q", (3, 5, 4)), Tensor("k", (3, 7, 4)), Tensor("y", (3, 5, 7)),
    ]  # fmt: skip
    dense = Op("FULLY_CONNECTED", ["x", "w", "b"], ["a"])
    scores = Op("BATCH_MATMUL", ["q", "k"], ["y"], [(1, "?", 1)])
    work = read_one(tmp_path, tensors, dense, scores, inputs=("x", "q", "k"))
    linear, _, product = work.operators
    assert counts(linear) == ("linear", 2 * 10 * 32, 20, 0)
    assert (linear.gemm_m, linear.gemm_n, linear.gemm_k) == (2, 10, 32)
    assert product.mac_count == 3 * 5 * 7 * 4
    assert (product.gemm_m, product.gemm_n, product.gemm_k, product.gemm_groups) == (5, 7, 4, 3)


def test_transposed_and_deep_convolutions_by_hand(tmp_path: Path) -> None:
    """4 x 4 inputs of 6 channels spread over 3 x 3 taps of 5; 27 taps of 2 channels at 4 x 4 x 4 positions for 8."""
    shape = Tensor("s", (4,), "int32", data=[1, 8, 8, 5])
    tensors = [
        shape, constant("w", 5, 3, 3, 6), Tensor("x", (1, 4, 4, 6)), constant("b", 5), Tensor("a", (1, 8, 8, 5)),
        Tensor("z", (1, 4, 4, 4, 2)), constant("v", 3, 3, 3, 2, 8), Tensor("y", (1, 4, 4, 4, 8)),
    ]  # fmt: skip
    spread = Op("TRANSPOSE_CONV", ["s", "w", "x", "b"], ["a"], [(0, "b", 0), (1, "i", 2), (2, "i", 2)])
    deep = Op("CONV_3D", ["z", "v"], ["y"], [(1, "i", 1), (2, "i", 1), (3, "i", 1)])
    first, second = read_one(tmp_path, tensors, spread, deep, inputs=("x", "z")).operators
    assert counts(first) == ("conv_transpose2d", 4 * 4 * 6 * 5 * 9, 8 * 8 * 5, 0)
    assert counts(second) == ("conv3d", 64 * 8 * 2 * 27, 0, 0)


IMAGE = (1, 4, 4, 8)
COUNT = 128
SIMPLE: dict[str, tuple[str, int, int]] = {
    "ADD": ("add", 1, 0), "SUB": ("sub", 1, 0), "MUL": ("mul", 1, 0), "DIV": ("div", 1, 0),
    "MAXIMUM": ("maximum", 1, 0), "MINIMUM": ("minimum", 1, 0), "SQUARED_DIFFERENCE": ("sub", 1, 0),
    "LESS": ("lt", 1, 0), "NOT_EQUAL": ("ne", 1, 0), "FLOOR_DIV": ("floor_divide", 1, 1), "PRELU": ("prelu", 2, 0),
    "LOGICAL_OR": ("logical_or", 1, 0),
    "RELU": ("relu", 1, 0), "RELU6": ("clamp", 2, 0), "RELU_0_TO_1": ("clamp", 2, 0),
    "LEAKY_RELU": ("leaky_relu", 2, 0),
    "ELU": ("elu", 3, 1), "LOGISTIC": ("sigmoid", 2, 1), "TANH": ("tanh", 0, 1), "HARD_SWISH": ("hardswish", 5, 0),
    "GELU": ("gelu", 4, 1), "EXP": ("exp", 0, 1), "RSQRT": ("rsqrt", 0, 1), "SQUARE": ("square", 1, 0),
    "ABS": ("abs", 1, 0), "NEG": ("neg", 1, 0), "SIN": ("sin", 0, 1), "SIGN": ("sign", 1, 0),
}  # fmt: skip
"""Operator -> operation, and its elementwise and special operations for each element."""


@pytest.mark.parametrize("op", SIMPLE)
def test_elementwise_operators_by_hand(tmp_path: Path, op: str) -> None:
    operation, each, special = SIMPLE[op]
    tensors = [Tensor("x", IMAGE), Tensor("z", IMAGE), Tensor("y", IMAGE)]
    one = read_one(tmp_path, tensors, Op(op, ["x", "z"], ["y"]), inputs=("x", "z")).operators[0]
    assert counts(one) == (operation, 0, each * COUNT, special * COUNT)


WINDOW = [(0, "b", 1), (1, "i", 2), (2, "i", 2), (3, "i", 2), (4, "i", 2)]
AXES = Tensor("axes", (2,), "int32", data=[1, 2])
ZEROS = Tensor("zeros", (4, 2), "int32", data=[[0, 0], [1, 1], [1, 1], [0, 0]])
MOVED: dict[str, tuple[Op, tuple[int, ...], tuple[Tensor, ...], str, int]] = {
    "average": (Op("AVERAGE_POOL_2D", ["x"], ["y"], WINDOW), (1, 2, 2, 8), (), "avg_pool", 32 * 5),
    "largest": (Op("MAX_POOL_2D", ["x"], ["y"], WINDOW), (1, 2, 2, 8), (), "max_pool", 32 * 4),
    "mean": (Op("MEAN", ["x", "axes"], ["y"]), (1, 8), (AXES,), "reduce", COUNT + 8),
    "sum": (Op("SUM", ["x", "axes"], ["y"]), (1, 8), (AXES,), "reduce", COUNT + 8),
    "best": (Op("ARG_MAX", ["x", "axes"], ["y"]), (1, 4, 4), (AXES,), "reduce", COUNT + 16),
    "softmax": (Op("SOFTMAX", ["x"], ["y"]), IMAGE, (), "softmax", 4 * COUNT),
    "zeros": (Op("PAD", ["x", "zeros"], ["y"]), (1, 6, 6, 8), (ZEROS,), "constant_pad_nd", 0),
    "mirror": (Op("MIRROR_PAD", ["x", "zeros"], ["y"]), (1, 6, 6, 8), (ZEROS,), "reflection_pad2d", 0),
    "rows": (Op("CONCATENATION", ["x", "x"], ["y"], [(0, "i", 1)]), (1, 8, 4, 8), (), "append", 0),
    "joined": (Op("CONCATENATION", ["x", "x"], ["y"], [(0, "i", 3)]), (1, 4, 4, 16), (), "cat", 0),
    "packed": (Op("PACK", ["x", "x"], ["y"], [(1, "i", 0)]), (2, *IMAGE), (), "append", 0),
    "blocks": (Op("SPACE_TO_DEPTH", ["x"], ["y"], [(0, "i", 2)]), (1, 2, 2, 32), (), "pixel_unshuffle", 0),
    "repeated": (Op("TILE", ["x", "axes"], ["y"]), (1, 8, 4, 8), (AXES,), "repeat", 0),
    "reversed": (Op("REVERSE_V2", ["x", "axes"], ["y"]), IMAGE, (AXES,), "flip", 0),
    "rounded": (Op("QUANTIZE", ["x"], ["y"]), IMAGE, (), "to_copy", 0),
    "cast": (Op("CAST", ["x"], ["y"]), IMAGE, (), "", 0),
    "reshaped": (Op("RESHAPE", ["x"], ["y"]), (1, 128), (), "view", 0),
    "squeezed": (Op("SQUEEZE", ["x"], ["y"]), (4, 4, 8), (), "squeeze", 0),
    "part": (Op("STRIDED_SLICE", ["x", "axes", "axes", "axes"], ["y"]), (1, 2, 4, 8), (AXES,), "slice", 0),
    "chosen": (Op("GATHER", ["x", "axes"], ["y"], [(0, "i", 1)]), (1, 2, 4, 8), (AXES,), "index_select", 0),
}  # fmt: skip
"""Case -> operator, shape of its output, constants, operation and elementwise operations."""


@pytest.mark.parametrize("case", MOVED)
def test_operators_on_several_elements_by_hand(tmp_path: Path, case: str) -> None:
    op, shape, constants, operation, count = MOVED[case]
    work = read_one(tmp_path, [Tensor("x", IMAGE), *constants, Tensor("y", shape)], op)
    if not operation:
        assert not work.operators
        return
    (one,) = work.operators
    assert (one.operation, one.mac_count, one.elementwise_count) == (operation, 0, count)
    assert one.output_shape == shape


def test_images_are_resized_and_parted(tmp_path: Path) -> None:
    """Nearest and bilinear to 8 x 8; the parts of a split are views."""
    axis = Tensor("axis", (), "int32", data=3)
    tensors = [Tensor("x", IMAGE), axis, Tensor("a", (1, 8, 8, 8)), Tensor("b", (1, 8, 8, 8)),
               Tensor("c", (1, 4, 4, 4)), Tensor("d", (1, 4, 4, 4)), Tensor("y", (1, 4, 4, 4))]  # fmt: skip
    work = read_one(
        tmp_path, tensors, Op("RESIZE_NEAREST_NEIGHBOR", ["x"], ["a"]), Op("RESIZE_BILINEAR", ["x"], ["b"]),
        Op("SPLIT", ["axis", "x"], ["c", "d"]), Op("ADD", ["c", "d"], ["y"]),
    )  # fmt: skip
    assert [one.operation for one in work.operators] == [
        "upsample_nearest",
        "upsample_bilinear",
        "split",
        "split",
        "add",
    ]
    assert work.operators[1].elementwise_count > work.operators[0].elementwise_count
    assert [one.is_view for one in work.operators] == [False, False, True, True, False]


def test_chains_of_a_file_are_joined(tmp_path: Path) -> None:
    """x sigmoid(x) is a SiLU; zeros around an image belong to the convolution that reads them."""
    tensors = [
        Tensor("x", IMAGE), ZEROS, Tensor("p", (1, 6, 6, 8)), constant("w", 8, 3, 3, 8), Tensor("c", IMAGE),
        Tensor("s", IMAGE), Tensor("y", IMAGE),
    ]  # fmt: skip
    work = read_one(
        tmp_path, tensors, Op("PAD", ["x", "zeros"], ["p"]), Op("CONV_2D", ["p", "w"], ["c"], [VALID, *ONE]),
        Op("LOGISTIC", ["c"], ["s"]), Op("MUL", ["c", "s"], ["y"]),
    )  # fmt: skip
    assert [one.operation for one in work.operators] == ["conv2d", "silu"]
    assert work.operators[0].scalars == "kernel=[3, 3] stride=[1, 1] padding=[1, 1] groups=1"


def test_a_length_and_a_squared_difference_are_two_operators(tmp_path: Path) -> None:
    tensors = [Tensor("x", (2, 16)), Tensor("n", (2, 16)), Tensor("y", (2, 16))]
    work = read_one(
        tmp_path, tensors, Op("L2_NORMALIZATION", ["x"], ["n"]), Op("SQUARED_DIFFERENCE", ["x", "n"], ["y"])
    )
    assert [one.operation for one in work.operators] == ["moment", "div", "sub", "square"]
    assert [one.elementwise_count for one in work.operators] == [4 * 32, 32, 32, 32]


class Network(nn.Module):
    """Block of a MobileNet with its head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.deep = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1, groups=8)
        self.wide, self.head = nn.Conv2d(8, 16, 1), nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.relu6(self.stem(x))
        x = x + nn.functional.relu6(self.deep(x))
        x = nn.functional.hardswish(self.wide(x)).mean((2, 3))
        made: torch.Tensor = nn.functional.softmax(self.head(x), -1)
        return made


def mobile(**narrow: Any) -> Graph:
    """Return the same network; `narrow` is what its tensors and weights share."""
    acts, weights = narrow.get("acts", {}), narrow.get("weights", {})
    bias: dict[str, Any] = {"dtype": "int32", "is_scaled": True} if acts else {}
    shapes = {"x": (1, 16, 16, 3), "a": (1, 8, 8, 8), "b": (1, 8, 8, 8), "c": (1, 8, 8, 8), "d": (1, 8, 8, 16),
              "e": (1, 8, 8, 16), "f": (1, 16), "g": (1, 10), "y": (1, 10)}  # fmt: skip
    held = {"stem": (8, 3, 3, 3), "deep": (1, 3, 3, 8), "wide": (16, 1, 1, 8), "head": (10, 16)}
    tensors = [Tensor(name, shape, **acts) for name, shape in shapes.items()]
    tensors += [Tensor(name, shape, data=True, **weights) for name, shape in held.items()]
    sizes = {"stem": 8, "deep": 8, "wide": 16, "head": 10}
    tensors += [Tensor(f"{name} bias", (size,), data=True, **bias) for name, size in sizes.items()]
    two = [(1, "i", 2), (2, "i", 2), RELU6]
    return Graph(
        [*tensors, AXES],
        [
            Op("CONV_2D", ["x", "stem", "stem bias"], ["a"], two),
            Op("DEPTHWISE_CONV_2D", ["a", "deep", "deep bias"], ["b"], [*ONE, (4, "b", 3)]),
            Op("ADD", ["a", "b"], ["c"]),
            Op("CONV_2D", ["c", "wide", "wide bias"], ["d"], list(ONE)),
            Op("HARD_SWISH", ["d"], ["e"]),
            Op("MEAN", ["e", "axes"], ["f"]),
            Op("FULLY_CONNECTED", ["f", "head", "head bias"], ["g"]),
            Op("SOFTMAX", ["g"], ["y"]),
        ],
    )


INT8 = {"dtype": "int8", "is_scaled": True}


def test_a_file_counts_as_the_trace_of_the_same_network(tmp_path: Path) -> None:
    from joulemap.construct.held import request_module

    traced = fuse(request_module(Network().eval(), torch.zeros(1, 3, 16, 16))[1])
    for name, graph in (
        ("wide", mobile()),
        ("narrow", mobile(acts=INT8, weights=INT8)),
        ("both", mobile(weights=INT8)),
    ):
        found = read(write_lite(tmp_path / f"{name}.tflite", graph))
        for what in ("mac_count", "elementwise_count", "special_count"):
            totals = [sum(getattr(one, what) for one in work.operators) for work in (found, traced)]
            assert totals[0] == totals[1]
        assert found.parameter_count == traced.parameter_count
        assert len(found.subgraphs) == len(traced.subgraphs)
        assert sum(one.fused_byte_count for one in found.accesses) == sum(
            one.fused_byte_count for one in traced.accesses
        )


def test_a_file_runs_at_the_precision_that_it_stores(tmp_path: Path) -> None:
    """Codes of 8 bits throughout; of weights alone; neither."""
    wide = write_lite(tmp_path / "wide.tflite", mobile())
    narrow = write_lite(tmp_path / "narrow.tflite", mobile(acts=INT8, weights=INT8))
    both = write_lite(tmp_path / "both.tflite", mobile(weights=INT8))
    assert [measure_precision(load_lite(one)) for one in (wide, narrow, both)] == [("", ""), ("int8", ""), ("", "int8")]

    def plan(*models: Path, **given: Any) -> tuple[tuple[str, str], ...]:
        return plan_runs([str(one) for one in models], Settings(hardware=("l4",), **given)).settings.precisions

    assert plan(narrow) == (("int8", "int8"),)
    assert plan(both) == (("fp32", "int8"),)
    assert plan(wide) == (("fp32", "fp32"),)
    assert plan(narrow, wide, precision="fp16") == (("fp16", "fp16"),)
    with pytest.raises(UsageError):
        plan(narrow, wide)
    (model,) = plan_runs(str(narrow), Settings(hardware=("l4",))).models
    assert model.names is not None
    assert model.names.describe(model, print).mac_count == read(narrow).mac_count


def test_half_floats_behind_a_conversion_are_weights(tmp_path: Path) -> None:
    tensors = [Tensor("x", (1, 16)), Tensor("h", (8, 16), "fp16", data=True), Tensor("w", (8, 16)), Tensor("y", (1, 8))]
    work = read_one(tmp_path, tensors, Op("DEQUANTIZE", ["h"], ["w"]), Op("FULLY_CONNECTED", ["x", "w"], ["y"]))
    (linear,) = work.operators
    assert linear.mac_count == 128
    assert (work.parameter_count, work.weight_bytes) == (128, 4 * 128)
    path = tmp_path / "m.tflite"
    assert measure_precision(load_lite(path)) == ("fp16", "")
    assert plan_runs([str(path)], Settings(hardware=("l4",))).settings.precisions == (("fp16", "fp16"),)
    assert plan_runs([str(path)], Settings(hardware=("epyc_9654",))).settings.precisions == (("fp32", "fp16"),)
    shown = Workspace(tmp_path / "x.duckdb").profile(str(path))
    assert (shown.profile.weight_bytes, shown.precision) == (2 * 128, "fp16")
    program = read_lite_program(load_lite(path), "m", (), None)
    assert "--precision fp32" in describe_lite(program, ("fp16", ""))[-1]
    assert not any("fp32" in note for note in describe_lite(program, ("", "int8")))


def test_codes_of_four_bits_have_two_in_a_byte(tmp_path: Path) -> None:
    tensors = [Tensor("x", (1, 16)), Tensor("w", (8, 16), "int4", data=True, is_scaled=True), Tensor("y", (1, 8))]
    path = write_lite(tmp_path / "m.tflite", Graph(tensors, [Op("FULLY_CONNECTED", ["x", "w"], ["y"])]))
    assert measure_precision(load_lite(path)) == ("", "int4")
    assert read(path).parameter_count == 128


def test_an_open_batch_is_set_and_a_fixed_one_is_not(tmp_path: Path) -> None:
    def path(name: str, *axes: int) -> Path:
        tensors = [Tensor("x", (1, 16), open_axes=axes), constant("w", 8, 16), Tensor("y", (1, 8), open_axes=axes)]
        return write_lite(tmp_path / name, Graph(tensors, [Op("FULLY_CONNECTED", ["x", "w"], ["y"])]))

    free, fixed, open_inside = path("free.tflite", 0), path("fixed.tflite"), path("inside.tflite", 0, 1)
    assert [read(free, batch=size).mac_count for size in (None, 1, 4)] == [128, 128, 512]
    assert read(free, ["x=4x16"]).mac_count == 512
    assert read(fixed, ["1x16"], batch=1).mac_count == 128
    for refused, inputs, batch in (
        (fixed, (), 4), (fixed, ("x=4x16",), None), (free, ("x=4x8",), None), (free, ("z=4x16",), None),
        (open_inside, (), None),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            read(refused, inputs, batch)


def test_state_is_read_and_kept(tmp_path: Path) -> None:
    """A ring of 3 rows: the last 2 are read and joined to the new one, and 2 are kept."""
    tensors = [
        Tensor("x", (1, 1, 8)), Tensor("handle", (), "resource"), Tensor("s", (1, 2, 8)), Tensor("j", (1, 3, 8)),
        Tensor("k", (1, 2, 8)), constant("w", 4, 8), Tensor("y", (1, 3, 4)), AXES,
    ]  # fmt: skip
    work = read_one(
        tmp_path, tensors, Op("VAR_HANDLE", [], ["handle"]), Op("READ_VARIABLE", ["handle"], ["s"]),
        Op("CONCATENATION", ["s", "x"], ["j"], [(0, "i", 1)]), Op("SLICE", ["j", "axes", "axes"], ["k"]),
        Op("ASSIGN_VARIABLE", ["handle", "k"], []), Op("FULLY_CONNECTED", ["j", "w"], ["y"]),
    )  # fmt: skip
    assert [one.operation for one in work.operators] == ["append", "slice", "clone", "linear"]
    assert work.mac_count == 3 * 8 * 4
    joined = {one.role: one.byte_count for one in work.accesses if one.operator_index == 0}
    assert joined["output"] == 4 * 24


def _branch(width: int) -> Graph:
    inner = [Tensor("a", (1, 8)), Tensor("y", (1, width))]
    weights = [Tensor("w", (width, 8), data=True), Tensor("b", (1, 8))]
    operators = [Op("RELU", ["a"], ["b"]), Op("FULLY_CONNECTED", ["b", "w"], ["y"])][-1 - (width > 4) :]
    if width <= 4:
        operators = [Op("FULLY_CONNECTED", ["a", "w"], ["y"])]
    return Graph([*inner, *weights], operators, ("a",))


def test_the_larger_branch_and_the_inside_of_a_composite_are_counted(tmp_path: Path) -> None:
    tensors = [Tensor("c", (), "bool"), Tensor("x", (1, 8)), Tensor("y", (1, 8))]
    condition = Graph(tensors, [Op("IF", ["c", "x"], ["y"], [(0, "i", 1), (1, "i", 2)])], ("c", "x"))
    work = read(write_lite(tmp_path / "if.tflite", condition, _branch(4), _branch(8)))
    assert [one.operation for one in work.operators] == ["relu", "linear"]
    composite = Graph(tensors[1:], [Op("STABLEHLO_COMPOSITE", ["x"], ["y"], [(1, "i", 1)])])
    work = read(write_lite(tmp_path / "composite.tflite", composite, _branch(8)))
    assert work.mac_count == 64
    itself = Graph(tensors[1:], [Op("CALL", ["x"], ["y"], [(0, "I", 0)])])
    with pytest.raises(ModelError):
        read(write_lite(tmp_path / "itself.tflite", itself))


def test_a_recurrent_layer_by_hand(tmp_path: Path) -> None:
    """5 steps of 3 sequences: a product of 8 inputs for 4 gates of 16 units, and one of 16 units in each step."""
    gates = [constant(f"w{index}", 16, 8) for index in range(4)] + [constant(f"r{index}", 16, 16) for index in range(4)]
    biases = [constant(f"b{index}", 16) for index in range(4)]
    states = [Tensor(name, (3, 16), is_variable=True) for name in ("h", "c")]
    tensors = [Tensor("x", (3, 5, 8)), *gates, *biases, *states, Tensor("y", (3, 5, 16))]
    given = ["x", *(one.name for one in gates), "", "", "", *(one.name for one in biases), "", "", "h", "c"]
    work = read_one(tmp_path, tensors, Op("UNIDIRECTIONAL_SEQUENCE_LSTM", given, ["y"]))
    product, scan = work.operators
    assert counts(product) == ("linear", 15 * 64 * 8, 15 * 64, 0)
    assert counts(scan) == ("lstm_scan", 15 * 64 * 16, 15 * 16 * 14, 15 * 16 * 5)
    assert scan.step_count == 5
    assert work.weight_bytes == 4 * (64 * 8 + 64 * 16 + 64)


@pytest.mark.parametrize("op", ["WHILE", "custom Mystery", "UNIDIRECTIONAL_SEQUENCE_LSTM", "L2_POOL_2D"])
def test_an_operator_without_a_formula_is_named(tmp_path: Path, op: str) -> None:
    with pytest.raises(ModelError, match=op.removeprefix("custom ")):
        read_one(tmp_path, [Tensor("x", IMAGE), Tensor("y", IMAGE)], Op(op, ["x"], ["y"]))


def test_a_detector_ends_in_a_suppression(tmp_path: Path) -> None:
    tensors = [
        Tensor("x", (1, 100, 4)), Tensor("s", (1, 100, 5)), constant("anchors", 100, 4), Tensor("y", (1, 10, 4)),
        Tensor("n", ()),
    ]  # fmt: skip
    (one,) = read_one(
        tmp_path, tensors, Op("custom TFLite_Detection_PostProcess", ["x", "s", "anchors"], ["y", "n"]),
        inputs=("x", "s"),
    ).operators  # fmt: skip
    assert one.operation == "nms"
    assert one.elementwise_count > 0


def test_operators_that_do_not_fit_their_tensors_are_refused(tmp_path: Path) -> None:
    for shape, weight in (((8,), (8, 3, 3, 8)), (IMAGE, (8,)), (IMAGE, (8, 3, 3, 0)), ((1, 4, 4, 0), (8, 3, 3, 0))):
        tensors = [Tensor("x", shape), Tensor("w", weight), Tensor("y", IMAGE)]
        with pytest.raises(ModelError):
            read_one(tmp_path, tensors, Op("CONV_2D", ["x", "w"], ["y"], list(ONE)), inputs=("x", "w"))
    cycle = [Tensor("x", (4,)), Tensor("a", (4,)), Tensor("y", (4,))]
    with pytest.raises(ModelError):
        read_one(tmp_path, cycle, Op("ADD", ["x", "y"], ["a"]), Op("RELU", ["a"], ["y"]))


WHOLE = form_lite(mobile())


def test_a_damaged_file_is_refused_or_read(tmp_path: Path) -> None:
    """Cut anywhere, or with any of its bytes changed: one error of its kind, or a graph."""
    path = tmp_path / "m.tflite"
    chance = random.Random(7)
    damaged = [WHOLE[:size] for size in range(0, len(WHOLE), 197)]
    for _ in range(150):
        changed = bytearray(WHOLE)
        for _ in range(chance.choice((1, 4))):
            changed[chance.randrange(len(changed))] = chance.choice((0, 1, 127, 255, chance.randrange(256)))
        damaged.append(bytes(changed))
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            read(path)
        except (ModelError, UsageError):
            refused += 1
    assert refused > len(WHOLE) // 197


@pytest.mark.parametrize("content", [b"", b"TFL3", b"\0" * 64, WHOLE[:4] + b"TFL2" + WHOLE[8:], b"\x10\0\0\0TFL3" * 9])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"m\.tflite"):
        read(path)
    with pytest.raises(ModelError):
        load_lite(tmp_path)
    with pytest.raises(ModelError):
        load_lite(tmp_path / "absent.tflite")


@pytest.mark.slow
def test_shapes_that_contradict_each_other_are_refused_before_they_are_stored(tmp_path: Path) -> None:
    tensors = [Tensor("x", (1, 64)), Tensor("w", (80, 64), data=True), Tensor("y", (7, 3))]
    (tmp_path / "m.tflite").write_bytes(
        form_lite(Graph(tensors=tensors, operators=[Op("FULLY_CONNECTED", ["x", "w"], ["y"])]))
    )
    workspace = Workspace(tmp_path / "x.duckdb")
    workspace.compare("mlp", hardware="l4")
    with pytest.raises(ModelError, match="linear"):
        workspace.compare(str(tmp_path / "m.tflite"), hardware="l4")
    assert not check_database(workspace.path)
