"""Operator lists of compilers against cases of their documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from joulemap.catalog.hardware import read_compiler
from joulemap.catalog.load import load_catalogue
from joulemap.physics.fallback import find_fallen, name_fallen
from joulemap.physics.record.compiler import Compiler, is_single_output, read_window
from joulemap.workspace import Workspace
from models import columns

RUNS, HOST, REFUSED = "runs", "host", "refused"

CASES = [
    # airockchip/rknn-toolkit2 59a913d1, operator list 2.3.2: Softmax is an NPU operator of RK3588 but not of RK3568.
    ("rknn", "conv", "conv2d", RUNS),
    ("rknn", "softmax", "softmax", RUNS),
    ("rknn_rk356x", "softmax", "softmax", HOST),
    ("rknn", "normalization", "layer_norm", RUNS),
    ("rknn", "elementwise", "gelu", RUNS),
    ("rknn", "data_movement", "gather", RUNS),
    ("rknn", "data_movement", "sort", HOST),
    ("rknn", "reduction", "reduce", HOST),
    ("rknn", "elementwise", "exp", HOST),
    ("rknn", "data_movement", "nms", REFUSED),
    ("rknn", "data_movement", "grid_sample", REFUSED),
    ("rknn", "data_movement", "cumsum", REFUSED),
    ("rknn", "conv", "conv3d", REFUSED),
    ("rknn1", "data_movement", "grid_sample", REFUSED),
    # Vela 3.10.0, SUPPORTED_OPS.md.
    ("vela", "conv", "conv2d", RUNS),
    ("vela", "elementwise", "hardswish", RUNS),
    ("vela", "elementwise", "exp", RUNS),
    ("vela", "elementwise", "neg", HOST),
    ("vela", "matmul", "matmul", HOST),
    ("vela", "elementwise", "gelu", HOST),
    ("vela", "data_movement", "sort", HOST),
    ("vela", "conv", "conv3d", HOST),
    ("vela_u85", "matmul", "matmul", RUNS),
    ("vela_u85", "data_movement", "sort", HOST),
    # VeriSilicon/tflite-vx-delegate 3f4759e0, op_map.cc.
    ("tim_vx", "conv", "conv3d", RUNS),
    ("tim_vx", "elementwise", "gelu", RUNS),
    ("tim_vx", "elementwise", "hardswish", RUNS),
    ("tim_vx", "data_movement", "sort", HOST),
    ("tim_vx", "data_movement", "grid_sample", HOST),
    ("tim_vx", "data_movement", "nms", HOST),
    # AXERA-TECH/pulsar2-docs 1d982bba, AX650.
    ("pulsar2", "data_movement", "grid_sample", RUNS),
    ("pulsar2", "data_movement", "sort", RUNS),
    ("pulsar2", "data_movement", "cumsum", RUNS),
    ("pulsar2", "normalization", "layer_norm", RUNS),
    ("pulsar2", "elementwise", "log", HOST),
    ("pulsar2", "conv", "conv3d", REFUSED),
    # axelera-ai-hub/voyager-sdk 366a1df5, onnx-support.md.
    ("voyager", "elementwise", "silu", RUNS),
    ("voyager", "softmax", "softmax", RUNS),
    ("voyager", "elementwise", "gelu", HOST),
    ("voyager", "elementwise", "elu", HOST),
    ("voyager", "normalization", "layer_norm", HOST),
    ("voyager", "data_movement", "sort", HOST),
    # amd/ryzen-ai-documentation 0e172c10, ops_support.rst, at 8 bits.
    ("ryzen_ai", "elementwise", "gelu", RUNS),
    ("ryzen_ai", "data_movement", "sort", RUNS),
    ("ryzen_ai", "data_movement", "grid_sample", HOST),
    ("ryzen_ai", "elementwise", "softplus", HOST),
    ("ryzen_ai", "conv", "conv3d", HOST),
    # D-Robotics/rdk_doc fde2a105 and 0e03fc39, supported_op_list.md.
    ("horizon_bayes", "data_movement", "sort", RUNS),
    ("horizon_bayes", "data_movement", "grid_sample", RUNS),
    ("horizon_bayes", "matmul", "matmul", RUNS),
    ("horizon_bayes", "softmax", "softmax", HOST),
    ("horizon_bayes", "elementwise", "neg", HOST),
    ("horizon_bayes", "conv", "conv3d", HOST),
    ("horizon_bernoulli", "elementwise", "tanh", RUNS),
    ("horizon_bernoulli", "elementwise", "hardsigmoid", HOST),
    ("horizon_bernoulli", "matmul", "matmul", HOST),
    ("horizon_bernoulli", "normalization", "layer_norm", HOST),
    ("horizon_bernoulli", "data_movement", "sort", HOST),
    ("horizon_bernoulli", "data_movement", "grid_sample", REFUSED),
    ("horizon_bernoulli", "conv", "conv3d", REFUSED),
    # sophgo/tpu-mlir 0033e680: OnnxConverter.py and lowerings of BM1684X and BM1684.
    ("tpu_mlir", "conv", "conv3d", RUNS),
    ("tpu_mlir", "elementwise", "gelu", RUNS),
    ("tpu_mlir", "data_movement", "sort", RUNS),
    ("tpu_mlir", "data_movement", "grid_sample", HOST),
    ("tpu_mlir_bm1684", "data_movement", "sort", HOST),
    # openvinotoolkit/npu_compiler 150e2025, ops.td; openvino 01bfc6a8, Supported_Devices.md, column of the VPU.
    ("openvino_npu", "reduction", "nms", RUNS),
    ("openvino_npu", "elementwise", "gelu", RUNS),
    ("openvino_npu", "reduction", "histogram", HOST),
    ("openvino_myriad", "elementwise", "neg", HOST),
    ("openvino_myriad", "matmul", "gru_scan", HOST),
    ("openvino_myriad", "elementwise", "where", RUNS),
    ("openvino_myriad", "conv", "conv3d", HOST),
    ("openvino_myriad", "elementwise", "grid_sample", HOST),
    # onnxruntime/onnxruntime-qnn 48949b66, QNN-ExecutionProvider.md.
    ("qnn_htp", "conv", "conv3d", RUNS),
    ("qnn_htp", "elementwise", "grid_sample", RUNS),
    ("qnn_htp", "elementwise", "mish", HOST),
    ("qnn_htp", "data_movement", "inverse", RUNS),
    ("qnn_htp", "data_movement", "svd", HOST),
    # rockchip-linux/rknn-toolkit 8e30ee7, RKNN_OP_Support_And_Limit.xlsx of 1.7.5.
    ("rknn1", "elementwise", "gelu", RUNS),
    ("rknn1", "normalization", "layer_norm", RUNS),
    ("rknn1", "matmul", "matmul", RUNS),
    ("rknn1", "reduction", "cumsum", RUNS),
    ("rknn1", "elementwise", "softplus", REFUSED),
    ("rknn1", "reduction", "sort", REFUSED),
    ("rknn1", "elementwise", "where", REFUSED),
    # Vela 4.2.0, report of its operators.
    ("vela_u85", "elementwise", "log", HOST),
    ("vela_u85", "elementwise", "where", RUNS),
    ("vela_u85", "data_movement", "gather", RUNS),
    ("vela_u85", "conv", "conv2d kernel=4 stride=4", HOST),
    ("vela_u85", "conv", "conv2d kernel=7 stride=2", RUNS),
    ("vela", "conv", "conv2d kernel=16 stride=16", HOST),
    ("vela", "elementwise", "add rank=5", HOST),
    ("rknn", "pool", "max_pool kernel=13", HOST),
    ("rknn", "depthwise_conv", "conv2d kernel=7", RUNS),
    ("rknn", "depthwise_conv", "conv2d kernel=9", HOST),
    ("rknn", "conv", "conv2d kernel=16 stride=16", HOST),
    ("horizon_bernoulli", "conv", "conv2d kernel=11 stride=4", HOST),
    ("horizon_bernoulli", "pool", "avg_pool kernel=8 stride=8", HOST),
    ("horizon_bernoulli", "pool", "max_pool kernel=13", RUNS),
    # AMD UG1414 3.0, DPUCZDX8G.
    ("vitis_ai", "conv", "conv2d kernel=16 stride=16", HOST),
    ("vitis_ai", "conv", "conv2d kernel=11 stride=4", RUNS),
    # analogdevicesinc/ai8x-training c3d4eb1, README.md.
    ("ai8x", "conv", "conv2d kernel=5", HOST),
    ("ai8x", "conv", "conv2d kernel=3 stride=2", HOST),
    ("ai8x", "conv", "conv1d kernel=9", RUNS),
    ("ai8x", "elementwise", "sigmoid", HOST),
    # Coral, supported operations.
    ("edge_tpu", "elementwise", "leaky_relu", HOST),
    ("edge_tpu", "elementwise", "neg", HOST),
    ("edge_tpu", "elementwise", "add rank=5", HOST),
    # NVIDIA/Deep-Learning-Accelerator-SW 07df2338, operators/README.md.
    ("dla", "elementwise", "minimum", HOST),
    ("dla", "elementwise", "abs", RUNS),
    ("dla", "elementwise", "hardswish", HOST),
    # renesas-rz/rzv_drp-ai_tvm 21b32b3d, test_pattern_table_operator.py.
    ("drp_ai", "pool", "max_pool kernel=3 stride=3", HOST),
    ("drp_ai", "pool", "avg_pool kernel=3 stride=2", HOST),
    # TexasInstruments/edgeai-tidl-tools 95ba2c7, supported_ops_rts_versions.md.
    ("tidl", "depthwise_conv", "conv2d kernel=9", HOST),
    ("tidl", "conv", "conv_transpose2d kernel=3 stride=2", HOST),
    # sbryngelson/ANEForge 067717ab, op-catalog.md and capabilities.md; hollance/neural-engine 06a7632e.
    ("core_ml", "matmul", "lstm_scan", HOST),
    ("core_ml", "matmul", "gru_scan", HOST),
    ("core_ml", "data_movement", "grid_sample", HOST),
    ("core_ml", "reduction", "sort", HOST),
    ("core_ml", "reduction", "cumsum", HOST),
    ("core_ml", "data_movement", "gather", HOST),
    ("core_ml", "elementwise", "eq", RUNS),
    ("core_ml", "elementwise", "round", RUNS),
    ("core_ml", "elementwise", "sin", RUNS),
    ("core_ml", "elementwise", "remainder", HOST),
    ("core_ml", "conv", "conv3d", RUNS),
    ("core_ml", "normalization", "layer_norm", RUNS),
    ("core_ml", "elementwise", "gelu", RUNS),
    ("core_ml", "elementwise", "add rank=6", HOST),
    # HabanaAI/gaudi-pytorch-bridge 5a56187e, Pytorch_Operators.rst and hpu_op.yaml.
    ("synapse", "conv", "conv3d", RUNS),
    ("synapse", "elementwise", "grid_sample", RUNS),
    ("synapse", "reduction", "sort", RUNS),
    ("synapse", "reduction", "scan", RUNS),
    ("synapse", "matmul", "cholesky", RUNS),
    ("synapse", "reduction", "nms", RUNS),
    ("synapse", "pool", "roi_align", RUNS),
    ("synapse", "conv", "deform_conv2d", RUNS),
    ("synapse", "reduction", "fft", HOST),
    ("synapse", "data_movement", "svd", HOST),
    ("synapse", "reduction", "histogram", HOST),
    # aws-neuron/aws-neuron-sdk 81ce03ae, trace, analyze and error codes.
    ("neuronx", "reduction", "fft", HOST),
    ("neuronx", "matmul", "solve", HOST),
    ("neuronx", "matmul", "inverse", RUNS),
    ("neuronx", "reduction", "scan", REFUSED),
    ("neuronx", "reduction", "sort", RUNS),
    ("neuronx", "reduction", "cumsum", RUNS),
    ("neuronx", "elementwise", "gelu", RUNS),
    # tenstorrent/tt-mlir 19c86fca, StableHLOToTTIRPatterns.cpp; pytorch/xla 41398bff, xla_native_functions.yaml.
    ("tt_nn", "conv", "conv3d", RUNS),
    ("tt_nn", "reduction", "sort", RUNS),
    ("tt_nn", "reduction", "cumsum", RUNS),
    ("tt_nn", "elementwise", "gelu", RUNS),
    ("tt_nn", "data_movement", "embedding", RUNS),
    ("tt_nn", "matmul", "cholesky", REFUSED),
    ("tt_nn", "matmul", "qr", REFUSED),
    ("tt_nn", "matmul", "svd", REFUSED),
    ("tt_nn", "reduction", "fft", HOST),
    ("tt_nn", "reduction", "nms", HOST),
    # quic/cloud-ai-sdk e21e04a0, mask_rcnn/README.md; Cloud AI SDK user guide.
    ("qaic", "reduction", "scan", REFUSED),
    ("qaic", "reduction", "nms", HOST),
    ("qaic", "pool", "roi_align", RUNS),
    ("qaic", "elementwise", "gelu", RUNS),
    ("qaic", "reduction", "fft", REFUSED),
    # Documentation that was not read again.
    ("imx500", "normalization", "layer_norm", HOST),
    ("drp_ai", "matmul", "matmul", HOST),
    ("vitis_ai_versal", "conv", "conv3d", RUNS),
    ("vitis_ai_versal", "softmax", "softmax", HOST),
    ("syntiant", "elementwise", "gelu", HOST),
]


class Weighing(nn.Module):
    """A product and the softmax of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.product = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.product(x), -1)


@pytest.mark.parametrize(("name", "kind", "asked", "expected"), CASES)
def test_documented_cases(name: str, kind: str, asked: str, expected: str) -> None:
    known = read_compiler(name)
    compiler = Compiler(
        name=known.name, cut=known.cut, operators=tuple(known.operators), basis=known.basis, source=known.source
    )
    operation, *given = asked.split()
    sizes = {"kernel": 1, "stride": 1, "rank": 4} | {one.split("=")[0]: int(one.split("=")[1]) for one in given}
    runs = compiler.is_run(kind, operation) and not compiler.describe_excess(kind, operation, sizes)
    assert (REFUSED if compiler.is_refused(kind, operation) else RUNS if runs else HOST) == expected


@pytest.mark.parametrize(
    ("scalars", "window"),
    [
        ("kernel=[3, 5] stride=[2, 2] padding=[1, 1] groups=24", (5, 2)),
        ("kernel=[1, 7, 7] stride=[1, 2, 2]", (7, 2)),
        ("kernel=[2, 2] stride=[]", (2, 2)),  # The step of a pool without a stride is its window.
        ("kernel=[16] stride=8", (16, 8)),
        ("steps=12", (1, 1)),
    ],
)
def test_windows_are_read(scalars: str, window: tuple[int, int]) -> None:
    assert read_window(scalars) == window


@pytest.mark.parametrize(
    ("shape", "is_single"),
    [((1, 64, 1, 1), True), ((1, 1, 1, 64), True), ((1, 25, 5, 64), False), ((1, 64, 1, 5), False), ((1, 64), True)],
)
def test_an_output_of_one_position_has_its_channels_first_or_last(shape: tuple[int, ...], *, is_single: bool) -> None:
    # Vela 3.10, constraint_stride_width_no_upper_limit: any stride where the output is one position high and wide
    assert is_single_output(shape) == is_single


@pytest.mark.parametrize("entry", ["relu kernel", "relu depth=1-3", "relu kernel=1-x", "conv.conv2d stride="])
def test_wrong_limits_are_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        Compiler(name="c", cut="each", operators=(entry,), basis="assumed", source="s")


def test_an_operator_beyond_a_limit_falls_back() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.Conv2d(8, 8, 3), nn.MaxPool2d(5)).to("meta")
    work = columns(net, torch.empty(1, 3, 64, 64, device="meta"))
    compiler = Compiler(
        name="c", cut="each", basis="assumed", source="s",
        operators=("any rank=0-4", "conv.conv2d stride=1-3", "pool kernel=1,3"),
    )  # fmt: skip
    fallen = find_fallen(work, compiler)
    assert work.operation[fallen].tolist() == ["conv2d", "max_pool"]
    assert name_fallen(work, compiler, fallen) == "conv2d of stride 4 (limit 1-3), max_pool of kernel 5 (limit 1 or 3)"


def test_a_window_that_is_placed_once_has_no_step() -> None:
    # Vela: the stride must be 1 to 3 only where the output is higher than 1; 5 x 5 gives 1 of 5 x 5, and 2 of 10 x 10
    compiler = Compiler(name="c", cut="each", operators=("pool stride=1-3",), basis="assumed", source="s")
    for size, fallen in ((5, []), (10, ["avg_pool"])):
        work = columns(nn.AvgPool2d(5), torch.empty(1, 3, size, size, device="meta"))
        assert work.operation[find_fallen(work, compiler)].tolist() == fallen


def test_a_refused_operator_of_an_open_list_does_not_run() -> None:
    work = columns(Weighing(), torch.empty(4, 8, device="meta"))
    open_list = Compiler(name="c", cut="each", operators=("*", "-softmax"), basis="assumed", source="s")
    fallen = find_fallen(work, open_list)
    assert work.operation[fallen].tolist() == ["softmax"] and open_list.is_refused("softmax", "softmax")


def test_every_accelerator_on_sale_has_a_list() -> None:
    unlisted = {name for name, one in load_catalogue().hardware.items() if one.compiler and one.compiler.is_unlisted}
    assert unlisted == {"groq_tsp_v1", "kpu_t256", "kpu_t64", "kpu_t768", "plasticine"}


def test_operators_are_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "none.duckdb")
    answer = workspace.describe_hardware("rk3588_npu")
    support = {row.operator: row.support for row in answer.list_operators()}
    assert support["conv.conv2d"] == RUNS and support["conv.conv3d"] == REFUSED
    assert {row.operator: row.limits for row in answer.list_operators()}["pool.max_pool"] == "kernel=1-7 stride=1-8"
    assert not workspace.describe_hardware("l4").list_operators()
