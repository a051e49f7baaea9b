"""A run: its parts add up exactly, it keeps to its power, and it refuses what it cannot do."""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np
import pytest
import torch

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.physics.kernel import form_kernels
from joulemap.physics.pipeline import Evaluator, evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import EnergyReference, host_key
from joulemap.physics.record.runtime import MODES
from joulemap.physics.run import RunColumns, RunTotals
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.system.errors import UnsupportedError
from joulemap.system.units import FS_PER_S
from models import Depthwise, Embedded, Fourier, Masked, Residual, SelfAttention, columns, image, trace_zoo
from variants import scaled, uncapped, with_power

FOUR = tuple(load_catalogue().find(name) for name in map(CLASS_HARDWARE.__getitem__, ("cpu", "gpu", "tpu", "kpu")))


@cache
def works() -> dict[str, WorkloadColumns]:
    return {
        "resnet18": columns_of(trace_zoo("resnet18")),
        "residual": columns(Residual(), image(1, 4, 8)),
        "depthwise": columns(Depthwise(), image(1, 8, 6)),
        "self attention": columns(SelfAttention(), torch.empty(2, 5, 16, device="meta")),
        "masked": columns(Masked(), torch.empty(2, 8, device="meta")),
        "embedded": columns(Embedded(), torch.empty(2, 5, dtype=torch.int64, device="meta")),
        "uncounted": columns(Fourier(), torch.empty(2, 8, device="meta")),
    }


def run(work: WorkloadColumns, hardware: Hardware, precision: str = "fp32", runtime: str = "fused") -> RunColumns:
    return evaluate(work, hardware, Configuration(hardware=hardware.id, precision=precision, runtime=runtime))


@pytest.mark.parametrize("hardware", FOUR, ids=lambda one: one.id)
def test_a_tight_cap_lowers_the_clock_until_power_meets_it(hardware: Hardware) -> None:
    work = works()["resnet18"]
    free = run(work, uncapped(hardware))
    dynamic_w = free.energy_fj / free.latency_fs - hardware.static_power.value
    tight = run(work, with_power(hardware, hardware.static_power.value + 0.25 * dynamic_w))
    assert free.clock_fraction == 1.0
    assert 0.25 < tight.clock_fraction < 0.5
    share = hardware.coefficient("cap_share")
    allowed_w = hardware.static_power.value + share * 0.25 * dynamic_w
    assert_close(tight.energy_fj / tight.latency_fs, allowed_w, rel=1e-6)


@pytest.mark.parametrize("hardware", FOUR, ids=lambda one: one.id)
def test_macs_are_priced_once_each(hardware: Hardware) -> None:
    work = works()["resnet18"]
    found = run(work, hardware, "bf16")
    priced = [
        row for row, one in enumerate(hardware.reference) if one.action.endswith("_mac") and one.part == "compute"
    ]
    counted = found.ledger.action_count[np.isin(found.ledger.action_index, priced)].sum()
    assert found.mac_count == 1_814_073_344
    # a TPU takes the single row of the classifier, 512 x 1000, to its vector unit
    elsewhere = 512_000 if hardware.architecture == "tpu" else 0
    # the padding of a GPU's tiles multiplies zeros
    padding = float(found.subgraphs.executed_mac_count.sum()) - 1_814_073_344 if hardware.architecture == "gpu" else 0.0
    assert padding >= 0.0
    assert_close(float(counted), 1_814_073_344 - elsewhere + 0.32 * padding)


@pytest.mark.parametrize("runtime", MODES)
@pytest.mark.parametrize("hardware", FOUR, ids=lambda one: one.id)
def test_dram_lines_are_the_bytes_of_the_subgraphs(hardware: Hardware, runtime: str) -> None:
    found = run(works()["resnet18"], hardware, runtime=runtime)
    rows = [row for row, one in enumerate(hardware.reference) if one.key in (("dram", "read"), ("dram", "write"))]
    priced = float(found.ledger.action_count[np.isin(found.ledger.action_index, rows)].sum())
    assert_close(priced, float(found.subgraphs.dram_bytes.sum()))
    # at least the image in and the classes out
    assert priced >= 3 * 224 * 224 * 4 + 1000 * 4


@pytest.mark.parametrize("name", ["resnet18", "self attention"])
@pytest.mark.parametrize("hardware", FOUR, ids=lambda one: one.id)
def test_alone_an_operator_costs_what_a_graph_of_kernels_charges(hardware: Hardware, name: str) -> None:
    work = works()[name]
    fused, graph = (run(work, uncapped(hardware), runtime=runtime) for runtime in ("fused", "graph"))
    alone = dict(
        zip(fused.operators.operator_index.tolist(), fused.operators.separate_latency_fs.tolist(), strict=True)
    )
    charged = dict(zip(graph.operators.operator_index.tolist(), graph.operators.latency_fs.tolist(), strict=True))
    # nothing of either is folded, so both have the same operators
    assert alone.keys() == charged.keys()
    for operator, latency_fs in alone.items():
        assert abs(charged[operator] - latency_fs) <= 1
    assert_close(float(fused.operators.separate_energy_fj.sum()), float(graph.energy_fj))


@pytest.mark.parametrize("hardware", FOUR, ids=lambda one: one.id)
def test_what_depends_on_no_input_costs_nothing_when_fused(hardware: Hardware) -> None:
    work = works()["masked"]
    assert run(work, hardware).operators.operator_index.tolist() == [1]
    assert run(work, hardware, runtime="graph").operators.operator_index.tolist() == [0, 1]


@pytest.mark.parametrize("hardware", FOUR, ids=lambda one: one.id)
def test_an_uncounted_operator_still_costs_its_bytes_and_its_time(hardware: Hardware) -> None:
    found = run(works()["uncounted"], hardware)
    # 16 real numbers in, 16 complex numbers out
    assert found.subgraphs.moved_bytes.tolist() == [64.0 + 128.0]
    assert found.latency_fs > 0


def test_memory_is_weights_and_live_activations() -> None:
    found = run(works()["resnet18"], FOUR[0], "fp16")
    kernels = form_kernels(works()["resnet18"], "fp16", "fused")
    assert found.weight_bytes == kernels.total_weight_bytes
    # 11,689,512 parameters and 9,600 running statistics of two bytes, whose counters are not read
    assert found.weight_bytes == 2 * (11_689_512 + 9_600)
    # the largest moment: the stem's result of 64 x 112 x 112 and what the pooling makes of it
    assert found.activation_bytes == 2 * 64 * (112 * 112 + 56 * 56)


def test_a_precision_that_is_missing_is_refused_with_those_that_exist() -> None:
    with pytest.raises(UnsupportedError, match="xeon_8490h has no fp8; it has fp64, fp32, fp16, bf16, int8"):
        run(works()["residual"], load_catalogue().find("xeon_8490h"), "fp8")


def test_a_model_that_does_not_fit_is_refused_with_what_it_needs() -> None:
    hardware = load_catalogue().find("h100_sxm5")
    small = attrs.evolve(hardware, memory_capacity=scaled(hardware.memory_capacity, 1e-4))
    assert run(works()["residual"], small).latency_fs > 0
    with pytest.raises(UnsupportedError, match=r"h100_sxm5 has 8 MB of memory; this configuration needs [0-9.]+ MB"):
        run(works()["resnet18"], small)


def test_stored_times_explain_the_latency_under_a_cap() -> None:
    found = evaluate(works()["resnet18"], FOUR[3], Configuration(hardware="kpu_t256", precision="bf16"))
    assert found.clock_fraction < 1.0
    rows = found.subgraphs
    explained = rows.launch_s + rows.pass_s + np.maximum(rows.compute_s, rows.memory_s)
    for latency_fs, seconds in zip(rows.latency_fs, explained, strict=True):
        assert_close(float(latency_fs), float(seconds) * FS_PER_S, rel=1e-6)


def test_rows_of_a_table_that_no_formula_counts_do_not_part_chips() -> None:
    plain = load_catalogue().find("l4")
    row = next(iter(plain.reference))
    helper = attrs.evolve(row, component=host_key(row.key)[0])
    wider = attrs.evolve(plain, reference=EnergyReference((helper, *plain.reference.actions)))
    slower = attrs.evolve(wider, clock_die=None, clock_boost=attrs.evolve(plain.full_clock, value=1e9))
    evaluator = Evaluator(works()["self attention"])
    asked = [(chip, Configuration(hardware="l4", precision="fp16", runtime="fused")) for chip in (plain, wider, slower)]
    assert len({evaluator.find_kind(*one) for one in asked}) == 1
    for together in (evaluator.evaluate_all(asked), evaluator.evaluate_totals(asked)):
        for one, found in zip(asked, together, strict=True):
            (alone,) = evaluator.evaluate_all([one])
            assert isinstance(alone, RunColumns) and isinstance(found, RunColumns | RunTotals)
            assert _sum_actions(found) == _sum_actions(alone)
            assert attrs.astuple(found, recurse=False)[:2] == attrs.astuple(alone, recurse=False)[:2]
        same, shifted, _ = map(_sum_actions, together)
        assert shifted == {place + 1: energy for place, energy in same.items()}


def _sum_actions(run: RunColumns | RunTotals | Exception) -> dict[int, int]:
    """Return row of the reference table -> energy of a run in femtojoules."""
    assert not isinstance(run, Exception)
    if isinstance(run, RunTotals):
        rows, energies = run.action_index, run.action_fj
    else:
        rows, energies = run.ledger.action_index, run.ledger.energy_fj
    return {row: int(energies[rows == row].sum()) for row in np.unique(rows).tolist()}
