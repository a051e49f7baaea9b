"""What must never get worse: more hardware, fusion; and what a larger batch may cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch

from joulemap.catalog.load import load_catalogue
from joulemap.domain.catalogue import DEFAULT_HARDWARE
from joulemap.domain.configuration import OPERAND_ONLY, RUNTIMES, Configuration
from joulemap.domain.hardware import Hardware
from joulemap.model.pipeline import evaluate
from joulemap.model.run import RunColumns
from joulemap.model.workload import WorkloadColumns, columns_of
from models import Depthwise, Residual, SelfAttention, columns, image, trace_zoo
from sample import thin
from variants import uncapped, with_bandwidth, with_caches, with_clock, with_units

FOUR = tuple(load_catalogue().find(name) for name in DEFAULT_HARDWARE)
SETTINGS = [
    pytest.param(hardware, precision, id=f"{hardware.id}-{precision}")
    for hardware in FOUR
    for precision in hardware.peaks
]

BETTER: dict[str, Callable[[Hardware], Hardware]] = {
    "twice the DRAM bandwidth": lambda hardware: with_bandwidth(hardware, 2.0),
    "four times the caches": lambda hardware: with_caches(hardware, 4.0),
    "twice the units": lambda hardware: with_units(hardware, 2),
    "seven times the units": lambda hardware: with_units(hardware, 7),
    "a clock half as fast again": lambda hardware: with_clock(hardware, 1.5),
}


@cache
def resnet18(batch: int) -> WorkloadColumns:
    return columns_of(trace_zoo("resnet18", batch))


@cache
def works() -> dict[str, WorkloadColumns]:
    return {
        "resnet18": resnet18(1),
        "residual": columns(Residual(), image(1, 4, 8)),
        "depthwise": columns(Depthwise(), image(1, 8, 6)),
        "self attention": columns(SelfAttention(), torch.empty(2, 5, 16, device="meta")),
    }


def run(work: WorkloadColumns, hardware: Hardware, precision: str, runtime: str = "fused") -> RunColumns:
    return evaluate(work, hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime))


@pytest.mark.sample(3)
@pytest.mark.parametrize("change", BETTER)
@pytest.mark.parametrize(("hardware", "precision"), SETTINGS)
def test_better_hardware_is_never_slower(hardware: Hardware, precision: str, change: str) -> None:
    # without a power cap: under one, idle units leak into the budget of the busy ones
    plain = uncapped(hardware)
    better = BETTER[change](plain)
    for name, work in works().items():
        for runtime in RUNTIMES:
            before, after = (run(work, target, precision, runtime) for target in (plain, better))
            assert after.latency_fs <= before.latency_fs + len(after.subgraphs.latency_fs), (name, runtime)


@pytest.mark.parametrize(("hardware", "precision"), thin(SETTINGS, 2))
def test_something_gets_faster_with_everything_better(hardware: Hardware, precision: str) -> None:
    better = with_clock(with_units(with_caches(with_bandwidth(uncapped(hardware), 2.0), 4.0), 2), 1.5)
    before, after = (run(resnet18(1), target, precision) for target in (uncapped(hardware), better))
    assert after.latency_fs < before.latency_fs


@pytest.mark.parametrize(("hardware", "precision"), thin(SETTINGS, 2))
def test_fusing_moves_no_more_and_takes_no_longer(hardware: Hardware, precision: str) -> None:
    for name, work in works().items():
        fused, graph, eager = (run(work, uncapped(hardware), precision, one) for one in ("fused", "graph", "eager"))
        assert fused.subgraphs.dram_bytes.sum() <= graph.subgraphs.dram_bytes.sum(), name
        assert fused.subgraphs.moved_bytes.sum() <= graph.subgraphs.moved_bytes.sum(), name
        # of a kernel's members, each waits for its slower level: of bytes that hardly matter, up to 1e-4 more
        assert fused.latency_fs <= graph.latency_fs * (1.0 + 1e-4), name
        assert graph.latency_fs <= eager.latency_fs, name
        assert fused.energy_fj <= graph.energy_fj <= eager.energy_fj, name


@pytest.mark.sample(8)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("hardware", "precision"), SETTINGS)
def test_a_larger_batch_costs_no_less(hardware: Hardware, precision: str, runtime: str) -> None:
    runs = [run(resnet18(batch), hardware, precision, runtime) for batch in (1, 2, 8)]
    assert [one.latency_fs for one in runs] == sorted(one.latency_fs for one in runs)
    assert [one.energy_fj for one in runs] == sorted(one.energy_fj for one in runs)


@pytest.mark.sample(8)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("hardware", "precision"), SETTINGS)
def test_two_of_a_batch_cost_at_most_twice_one(hardware: Hardware, precision: str, runtime: str) -> None:
    # where caches hold everything: in a real one, twice the batch may no longer fit and cost more than twice
    roomy = with_caches(uncapped(hardware), 1e6)
    for batch in (1, 4):
        one, two = (run(resnet18(size), roomy, precision, runtime) for size in (batch, 2 * batch))
        assert two.latency_fs <= 2 * one.latency_fs
        assert two.energy_fj <= 2 * one.energy_fj
        assert two.mac_count == 2 * one.mac_count


@pytest.mark.parametrize(("hardware", "precision"), thin(SETTINGS, 2))
def test_macs_and_compulsory_traffic_do_not_depend_on_the_hardware(hardware: Hardware, precision: str) -> None:
    reference = run(resnet18(1), FOUR[0], "fp32")
    found = run(resnet18(1), hardware, precision)
    assert found.mac_count == reference.mac_count
    width, moved = found.weight_bytes / reference.weight_bytes, found.subgraphs.moved_bytes.sum()
    whole = reference.subgraphs.moved_bytes.sum()
    if precision in OPERAND_ONLY:  # what is not the operand of a product with weights has 16 bits
        assert width * whole < moved < 0.5 * whole
    else:
        assert moved == width * whole
