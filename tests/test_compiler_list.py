"""Operator lists of compilers against cases of their documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulemap.catalog.hardware import read_compiler
from joulemap.catalog.load import load_catalogue
from joulemap.domain.compiler import Compiler
from joulemap.workspace import Workspace

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
    ("rknn1", "normalization", "layer_norm", HOST),
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
    # Documentation that was not read again.
    ("qnn_htp", "conv", "conv3d", RUNS),
    ("qnn_htp", "data_movement", "grid_sample", RUNS),
    ("qnn_htp", "data_movement", "svd", HOST),
    ("core_ml", "conv", "conv3d", HOST),
    ("core_ml", "data_movement", "embedding", HOST),
    ("tt_nn", "data_movement", "nms", HOST),
    ("qaic", "data_movement", "fft", HOST),
    ("neuronx", "data_movement", "svd", HOST),
    ("synapse", "data_movement", "scan", HOST),
    ("openvino_npu", "elementwise", "gelu", RUNS),
    ("openvino_myriad", "data_movement", "grid_sample", HOST),
    ("imx500", "normalization", "layer_norm", HOST),
    ("drp_ai", "matmul", "matmul", HOST),
    ("vitis_ai_versal", "conv", "conv3d", RUNS),
    ("vitis_ai_versal", "softmax", "softmax", HOST),
    ("syntiant", "elementwise", "gelu", HOST),
]


@pytest.mark.parametrize(("name", "kind", "operation", "expected"), CASES)
def test_documented_cases(name: str, kind: str, operation: str, expected: str) -> None:
    known = read_compiler(name)
    compiler = Compiler(
        name=known.name, cut=known.cut, operators=tuple(known.operators), basis=known.basis, source=known.source
    )
    runs = compiler.is_run(kind, operation, frozenset(compiler.operators))
    assert (REFUSED if compiler.is_refused(kind, operation) else RUNS if runs else HOST) == expected


def test_every_accelerator_on_sale_has_a_list() -> None:
    unlisted = {name for name, one in load_catalogue().hardware.items() if one.compiler and one.compiler.is_unlisted}
    assert unlisted == {"groq_tsp_v1", "kpu_t256", "kpu_t64", "kpu_t768", "plasticine"}


def test_operators_are_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "none.duckdb")
    answer = workspace.hardware("rk3588_npu")
    support = {row.operator: row.support for row in answer.list_operators()}
    assert support["conv.conv2d"] == RUNS and support["conv.conv3d"] == REFUSED
    assert not workspace.hardware("l4").list_operators()
