"""What an operator costs in a kernel of its own and in another's: ledger lines, and rules of thumb beside them."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from compare import assert_close
from convolution import run
from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.workload import Workload
from joulemap.physics.workload import columns_of
from models import ConvBlock, image, shipped, trace
from variants import uncapped

ROOT: Final = Path(__file__).parents[2]
CLASSES: Final = ("cpu", "gpu", "tpu", "kpu", "dsp", "npu", "dpu", "cgra")


@cache
def benchmark() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "fusion.py"))


@cache
def block() -> Workload:
    return trace(ConvBlock(), image(2, 3, 32))


def target(architecture: str) -> tuple[Hardware, str]:
    name, precision = benchmark()["TARGETS"][architecture]
    return uncapped(load_catalogue().find(name)), precision


@pytest.mark.parametrize("architecture", CLASSES)
def test_a_hidden_operator_moves_nothing_and_a_separate_one_its_bytes(architecture: str) -> None:
    hardware, precision = target(architecture)
    work = columns_of(block())
    assert [one.operation for one in block().operators] == ["conv2d", "batch_norm", "relu"]
    fused, eager = (run(hardware, precision, work, one) for one in ("fused", "eager"))
    item = {"fp32": 4, "fp16": 2, "bf16": 2, "int8": 1}[precision]
    result = 2 * 8 * 32 * 32 * item
    weights, norm = 8 * 3 * 9 * item, 4 * 8 * item
    # the batch norm reads its four parameters, the relu moves what its kernel writes
    assert fused.operators.moved_bytes.tolist() == [2 * 3 * 32 * 32 * item + weights, norm, result]
    assert eager.operators.moved_bytes.tolist() == [
        2 * 3 * 32 * 32 * item + weights + result,
        2 * result + norm,
        2 * result,
    ]
    assert [one.subgraphs.kernel_count.tolist() for one in (fused, eager)] == [[1], [3]]
    assert fused.subgraphs.launch_s.sum() < eager.subgraphs.launch_s.sum() / 2
    assert (fused.operators.latency_fs[1:] < eager.operators.latency_fs[1:]).all()


@pytest.mark.parametrize("architecture", CLASSES)
def test_the_benefit_of_fusing_is_a_difference_of_counts(architecture: str) -> None:
    hardware, precision = target(architecture)
    work = shipped("mobilenet_v3_small")
    fused, graph = (run(hardware, precision, work, one) for one in ("fused", "graph"))
    assert set(fused.operators.operator_index) <= set(graph.operators.operator_index)
    energy = np.bincount(graph.ledger.operator_index, weights=graph.ledger.energy_fj, minlength=work.operator_count)
    latency = np.zeros(work.operator_count)
    latency[graph.operators.operator_index] = graph.operators.latency_fs
    shown = fused.operators.operator_index
    # every ledger line and every share of a latency is rounded once
    assert np.abs(fused.operators.separate_latency_fs - latency[shown]).max() <= 4
    assert np.abs(fused.operators.separate_energy_fj - energy[shown]).max() <= 4096
    prices = np.array([one.energy_per_action_fj for one in hardware.reference])
    lines = [
        np.bincount(one.ledger.action_index, weights=one.ledger.action_count, minlength=len(prices))
        for one in (graph, fused)
    ]
    benefit = float(fused.operators.separate_energy_fj.sum()) - fused.energy_fj
    assert_close(benefit, float((lines[0] - lines[1]) @ prices), rel=1e-6)
    assert benefit > 0
