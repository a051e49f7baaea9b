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
    ("rknn", "conv", "conv2d", RUNS),
    ("rknn", "normalization", "layer_norm", RUNS),
    ("rknn", "elementwise", "gelu", RUNS),
    ("rknn", "data_movement", "sort", HOST),
    ("rknn", "data_movement", "nms", HOST),
    ("rknn", "data_movement", "grid_sample", HOST),
    ("rknn", "conv", "conv3d", REFUSED),
    ("rknn1", "data_movement", "grid_sample", REFUSED),
    ("rknn1", "normalization", "layer_norm", HOST),
    ("qnn_htp", "conv", "conv3d", RUNS),
    ("qnn_htp", "data_movement", "grid_sample", RUNS),
    ("qnn_htp", "data_movement", "sort", RUNS),
    ("qnn_htp", "data_movement", "svd", HOST),
    ("qnn_htp", "data_movement", "fft", HOST),
    ("core_ml", "conv", "conv3d", HOST),
    ("core_ml", "data_movement", "grid_sample", HOST),
    ("core_ml", "data_movement", "sort", HOST),
    ("core_ml", "data_movement", "embedding", HOST),
    ("core_ml", "softmax", "softmax", RUNS),
    ("ryzen_ai", "conv", "conv3d", HOST),
    ("ryzen_ai", "elementwise", "gelu", RUNS),
    ("tim_vx", "elementwise", "hardswish", RUNS),
    ("tim_vx", "data_movement", "nms", HOST),
    ("tt_nn", "data_movement", "sort", RUNS),
    ("tt_nn", "data_movement", "nms", HOST),
    ("qaic", "data_movement", "sort", RUNS),
    ("qaic", "data_movement", "fft", HOST),
    ("neuronx", "data_movement", "fft", HOST),
    ("neuronx", "data_movement", "svd", HOST),
    ("neuronx", "conv", "conv3d", RUNS),
    ("synapse", "data_movement", "scan", HOST),
    ("pulsar2", "data_movement", "grid_sample", RUNS),
    ("pulsar2", "conv", "conv3d", REFUSED),
    ("horizon_bayes", "data_movement", "grid_sample", RUNS),
    ("horizon_bayes", "softmax", "softmax", HOST),
    ("horizon_bernoulli", "matmul", "matmul", HOST),
    ("horizon_bernoulli", "normalization", "layer_norm", HOST),
    ("tpu_mlir", "conv", "conv3d", RUNS),
    ("voyager", "normalization", "layer_norm", HOST),
    ("voyager", "elementwise", "silu", RUNS),
    ("vela", "conv", "conv2d", RUNS),
    ("vela", "matmul", "matmul", HOST),
    ("vela", "elementwise", "gelu", HOST),
    ("vela_u85", "matmul", "matmul", RUNS),
    ("vela_u85", "data_movement", "sort", HOST),
    ("openvino_npu", "elementwise", "gelu", RUNS),
    ("openvino_npu", "data_movement", "svd", HOST),
    ("openvino_myriad", "data_movement", "grid_sample", HOST),
    ("imx500", "normalization", "layer_norm", HOST),
    ("drp_ai", "matmul", "matmul", HOST),
    ("vitis_ai_versal", "conv", "conv3d", RUNS),
    ("vitis_ai_versal", "softmax", "softmax", HOST),
    ("syntiant", "depthwise_conv", "conv2d", RUNS),
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
