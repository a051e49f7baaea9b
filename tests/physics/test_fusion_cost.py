"""What an operator costs in a kernel of its own and in another's: ledger lines, and rules of thumb beside them."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
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
ELEMENTWISE: Final = ("relu", "clamp", "mul", "add", "batch_norm")
SPECIAL: Final = ("silu", "gelu", "softmax")


@cache
def benchmark() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "fusion.py"))


@cache
def costs() -> Mapping[tuple[str, str, int], Any]:
    found: Mapping[tuple[str, str, int], Any] = benchmark()["measure_all"]()
    return found


def kept(operation: str, architecture: str, batch: int) -> float:
    return float(costs()[operation, architecture, batch].kept_fraction)


def separate(operation: str, architecture: str, batch: int) -> float:
    return float(costs()[operation, architecture, batch].separate_ratio)


def every(
    holds: Callable[[str, int], bool], *, classes: tuple[str, ...] = CLASSES, batches: tuple[int, ...] = (1, 8)
) -> bool:
    return all(holds(one, batch) for one in classes for batch in batches)


def of(operation: str) -> tuple[str, ...]:
    """Return the classes whose compilers run an operation."""
    return tuple(one for one in CLASSES if (operation, one, 1) in costs())


def but(*names: str) -> tuple[str, ...]:
    return tuple(one for one in CLASSES if one not in names)


CLAIMS: Final[dict[str, Callable[[], bool]]] = {
    "Hidden costs less than separate for every operator type, class and batch.": lambda: all(
        cost.kept_fraction is None or cost.kept_fraction < 1.0 for cost in costs().values()
    ),
    "leaves at most a third when hidden.": lambda: every(
        lambda one, batch: all(
            kept(operation, one, batch) <= 1 / 3 for operation in ELEMENTWISE if one in of(operation)
        )
    ),
    "A hidden bias costs at most a fifth of a separate ReLU per operation.": lambda: every(
        lambda one, batch: costs()["bias", one, batch].hidden_ratio <= separate("relu", one, batch) / 5,
        classes=but("dpu"),
    ),
    "At batch 1 a hidden ReLU leaves less than 8 % of a separate one on every class": lambda: every(
        lambda one, batch: kept("relu", one, batch) < 0.08, batches=(1,)
    ),
    "a separate batch norm costs 0.4 to 0.8 times a separate ReLU per operation at batch 1": lambda: every(
        lambda one, batch: 0.4 <= separate("batch_norm", one, batch) / separate("relu", one, batch) <= 0.8,
        classes=but("gpu"),
        batches=(1,),
    ),
    "an addition leaves more than a ReLU when hidden at batch 1": lambda: every(
        lambda one, batch: kept("add", one, batch) > kept("relu", one, batch), classes=but("cgra"), batches=(1,)
    ),
    "A separate softmax costs fewer multiples of its arithmetic than a separate ReLU on every class": lambda: every(
        lambda one, batch: separate("softmax", one, batch) < separate("relu", one, batch), classes=of("softmax")
    ),
    "A separate ReLU costs more than 10 operations at the products' price on every class": lambda: every(
        lambda one, batch: costs()["relu", one, batch].separate_multiplier > 10.0
    ),
    "On the GPU and at batch 1 a separate batch norm costs more than 0.8 times a separate ReLU per operation": lambda: (
        separate("batch_norm", "gpu", 1) > 0.8 * separate("relu", "gpu", 1)
    ),
    "A hidden softmax costs less than a separate one, not more, on every class": lambda: every(
        lambda one, batch: kept("softmax", one, batch) < 1.0, classes=of("softmax")
    ),
    "SiLU, GELU and softmax leave more than a ReLU when hidden at batch 1": lambda: every(
        lambda one, batch: all(
            kept(operation, one, batch) > kept("relu", one, batch) for operation in SPECIAL if one in of(operation)
        ),
        classes=but("cgra"),
        batches=(1,),
    ),
    "On CPU, GPU, TPU and NPU a hidden ReLU leaves more at batch 8 than at batch 1": lambda: every(
        lambda one, _batch: kept("relu", one, 8) > kept("relu", one, 1), classes=("cpu", "gpu", "tpu", "npu")
    ),
}
"""What docs/fusion.md says in other words -> whether it holds."""


@pytest.mark.slow
@pytest.mark.parametrize("claim", CLAIMS)
def test_what_is_said_of_hidden_and_separate_operators_holds(claim: str) -> None:
    assert CLAIMS[claim]()


@pytest.mark.slow
@pytest.mark.parametrize("architecture", CLASSES)
def test_arithmetic_is_the_least_that_an_operator_costs(architecture: str) -> None:
    for (operation, one, _batch), cost in costs().items():
        if one == architecture and cost.hidden_ratio is not None:
            assert cost.hidden_ratio >= 1.0 - 1e-9, operation


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
