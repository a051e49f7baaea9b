"""Totals of many points are the sums of their ledgers, and no point depends on those beside it."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping

import attrs
import numpy as np
import pytest
import torch
from torch import nn

from chips import FORMS, find
from compare import assert_close
from joulemap.physics.bulk import Together, form_joined, join
from joulemap.physics.change import point_hardware
from joulemap.physics.column import list_numbers
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.kind import Kinds
from joulemap.physics.law import VARIABLE
from joulemap.physics.ledger import MAX_LINE_FJ
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.point import Points
from joulemap.physics.record.address import CLOCK, MEMORY_BANDWIDTH, STATIC_POWER, UNIT_COUNT, Address, read_number
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.run import RunColumns
from joulemap.physics.total import PointColumns, evaluate_points, evaluate_totals
from joulemap.physics.workload import Floats
from joulemap.system.errors import UnsupportedError
from lazy import Lazy
from models import SelfAttention, columns, shipped
from own_decoder import HEADS, LAYERS, SIZE, Stacked

POINTS = 4
ONE_OF_EACH_CLASS = tuple({one.architecture: one for one in reversed(FORMS)}.values())
SHARES = ("efficiency", "share", "voltage")
"""In the names of coefficients that are shares: none is raised."""

MODELS = ("convolutions", "attention", "recurrence", "decode")


def _evaluator(name: str) -> Evaluator:
    match name:
        case "convolutions":
            return Evaluator(shipped("resnet18"))
        case "attention":
            return Evaluator(columns(SelfAttention(), torch.empty(2, 8, 16, device="meta")))
        case "recurrence":
            return Evaluator(columns(nn.GRU(8, 16, 2, device="meta"), torch.empty(6, 2, 8, device="meta")))
        case _:
            with torch.device("meta"):
                past = torch.empty(LAYERS, 2, 1, HEADS, 40, SIZE)
                return Evaluator(columns(Stacked(), torch.zeros(1, 1, dtype=torch.int64), past))


TDP = Address("quantity", "tdp")

EVALUATORS: Lazy[str, Evaluator] = Lazy(_evaluator)


def vary_clock(hardware: Hardware, ratio: Floats) -> dict[Address, Floats]:
    """Return clocks and peaks that follow them."""
    names = ("clock", "clock_base", "clock_boost", "clock_die")
    varied: dict[Address, Floats] = {
        Address("quantity", name): quantity.value * ratio
        for name in names
        if (quantity := getattr(hardware, name)) is not None
    }
    for name, peak in hardware.peaks.items():
        varied[Address("peak", name, "rate")] = peak.rate.value * ratio
        varied[Address("peak", name, "clock_hz")] = peak.clock_hz * ratio
    return varied


def vary_any(hardware: Hardware, precision: str, seed: int) -> dict[Address, Floats]:
    """Return random numbers of a chip: a power cap that holds some points, and whatever formulas ask for."""
    draw = np.random.default_rng(seed)
    varied = vary_clock(hardware, draw.choice([0.5, 0.8, 1.0, 1.3], POINTS))
    for address, own in zip(*list_numbers(hardware, precision), strict=True):
        if address in varied or address.kind == "peak" or "clock" in address.name or own == 0.0 or draw.random() > 0.4:
            continue
        values = own * np.exp(draw.normal(0.0, 0.5, POINTS))
        if address.kind == "geometry" or address == UNIT_COUNT:
            values = np.maximum(np.rint(values), own if address == UNIT_COUNT else 1.0)
        if any(share in (address.field or address.name) for share in SHARES):
            values = np.minimum(values, own)
        varied[address] = values
    cap = np.maximum(hardware.tdp.value * draw.choice([0.3, 1.0, 3.0], POINTS), hardware.static_power.value * 1.2)
    return {**varied, TDP: cap, STATIC_POWER: np.full(POINTS, hardware.static_power.value)}


def assert_sums(found: PointColumns, index: int, run: RunColumns) -> None:
    """Assert that a point is what the ledger and the parts of its run add up to."""
    assert found.latency_fs[index] == run.latency_fs
    assert found.interval_fs[index] == run.interval_fs
    assert found.energy_fj[index] == run.energy_fj
    names = np.array([action.common_category for action in run.hardware.reference])[run.ledger.action_index]
    for name in set(names.tolist()):
        spent = int(run.ledger.energy_fj[names == name].sum())
        assert spent == (found.category_fj[name][index] if spent else 0), name
    assert sum(found.category_fj.values())[index] == run.energy_fj  # type: ignore[index]
    numbers = ("clock_fraction", "voltage_factor", "uncapped_power_w", "weight_bytes", "activation_bytes", "mac_count",
               "peak_ops_per_s", "memory_bandwidth_bytes_per_s", "throughput_limit")  # fmt: skip
    for name in numbers:
        assert getattr(found, name)[index] == getattr(run, name), name
    assert_close(float(found.dram_bytes[index]), float(run.operators.dram_bytes.sum()))
    assert_close(float(found.moved_bytes[index]), float(run.operators.moved_bytes.sum()))
    assert found.computed_mac_count[index] == run.subgraphs.computed_mac_count.sum()
    longest = np.zeros(3, dtype=np.int64)
    np.add.at(longest, run.subgraphs.bottleneck, run.subgraphs.latency_fs)
    assert (found.bound_fs[index] == longest).all()
    assert found.bottleneck[index] == np.argmax(found.bound_fs[index])
    assert found.share_fs[index].sum() == run.latency_fs


def check(evaluator: Evaluator, hardware: Hardware, precision: str, runtime: str, seed: int) -> int:
    """Return how many points were compared with their ledgers."""
    configuration = Configuration(hardware=hardware.id, precision=precision, runtime=runtime)
    varied = vary_any(hardware, precision, seed)
    found, compared = evaluate_points(evaluator, hardware, configuration, varied), 0
    for index in range(POINTS):
        if refusal := str(found.refusal[index]):
            with pytest.raises((UnsupportedError, ValueError), match=re.escape(refusal)):
                evaluator.evaluate(point_hardware(hardware, varied, index), configuration)
        else:
            assert_sums(found, index, evaluator.evaluate(point_hardware(hardware, varied, index), configuration))
            compared += 1
    return compared


@pytest.mark.sample(2)
@pytest.mark.parametrize("model", MODELS)
def test_totals_are_sums_of_ledgers(model: str) -> None:
    place = MODELS.index(model)
    compared = sum(
        check(EVALUATORS[model], hardware, next(iter(hardware.peaks)), RUNTIME_NAMES[(seed + place) % 4], seed)
        for seed, hardware in enumerate(ONE_OF_EACH_CLASS)
    )
    assert compared > len(ONE_OF_EACH_CLASS)


@pytest.mark.parametrize("hardware", ONE_OF_EACH_CLASS, ids=lambda one: one.id)
def test_a_grid_is_its_points_one_behind_the_other(hardware: Hardware) -> None:
    configuration = Configuration(hardware=hardware.id, precision=next(iter(hardware.peaks)), runtime="fused")
    last = Address("memory", hardware.memory_levels[-1].name, "capacity")
    clocks = vary_clock(hardware, np.array([0.5, 1.0, 1.3])[:, None, None])
    base = read_number(hardware, last)
    tdp = hardware.static_power.value + (hardware.tdp.value - hardware.static_power.value) * np.array([-0.01, 0.1, 4.0])
    grid: dict[Address, Floats] = {
        **clocks,
        last: base * np.array([1e-3, 1.0])[:, None],
        TDP: tdp,
        Address.read("dram.read"): read_number(hardware, Address.read("dram.read")) * np.array([1.0, 2.0])[:, None],
    }
    row = {address: np.broadcast_to(column, (3, 2, 3)).ravel() for address, column in grid.items()}
    together = evaluate_points(EVALUATORS["convolutions"], hardware, configuration, grid)
    apart = evaluate_points(EVALUATORS["convolutions"], hardware, configuration, row)
    assert 6 <= (together.refusal != "").sum() < 18
    for field in attrs.fields(PointColumns):
        if field.name != "spent_fj":
            assert (getattr(together, field.name) == getattr(apart, field.name)).all(), field.name
    assert {key: one.tolist() for key, one in together.spent_fj.items()} == {
        key: one.tolist() for key, one in apart.spent_fj.items()
    }


def test_numbers_that_repeat_along_an_axis_are_taken_once() -> None:
    chip, kernels = find("h100_sxm5"), form_kernels(EVALUATORS["convolutions"].work, "fp16", "engine")
    clock, bandwidth = np.meshgrid(np.array([1e9, 1.5e9, 1.7e9]), np.array([2e12, 3e12]))
    varied = {CLOCK: clock, MEMORY_BANDWIDTH: bandwidth, TDP: np.full((2, 3), 700.0)}
    points = Points.of(kernels, chip, varied, (2, 3))
    assert [points.numbers[one].shape for one in varied] == [(1, 3), (2, 1), (1, 1)]
    assert points.refusal.shape == (2, 3)


def test_totals_of_chips_are_those_of_their_runs() -> None:
    evaluator = pickle.loads(pickle.dumps(EVALUATORS["convolutions"]))
    asked = [
        (one, Configuration(hardware=one.id, precision="int8", runtime="graph")) for one in (*FORMS, find("p100_pcie"))
    ]
    found = evaluate_totals(evaluator, asked)
    for index, run in enumerate(evaluator.evaluate_all(asked)):
        if isinstance(run, RunColumns):
            assert_sums(found, index, run)
        else:
            assert found.refusal[index] == str(run)
    assert any(str(one) for one in found.refusal)


def refusals(hardware: Hardware, varied: Mapping[Address, list[float]]) -> list[str]:
    configuration = Configuration(hardware=hardware.id, precision="bf16", runtime="graph")
    arrays = {address: np.array(column) for address, column in varied.items()}
    found = evaluate_points(EVALUATORS["convolutions"], hardware, configuration, arrays)
    return [str(one) for one in found.refusal]


def test_a_point_is_refused_in_the_words_of_its_record() -> None:
    chip = find("tpu_v4")
    static_w = chip.static_power.value
    assert refusals(chip, {TDP: [static_w, 2.0 * static_w]}) == [
        f"static_power: {static_w:g} W is not below the tdp of {static_w:g} W",
        "",
    ]
    memory = refusals(chip, {Address.read("memory_capacity"): [1e6, 1e9]})
    assert memory == ["tpu_v4 has 1 MB of memory; this configuration needs 26.9 MB", ""]
    with pytest.raises(KeyError, match=r"no number geometry\.nothing"):
        refusals(chip, {Address.read("geometry.nothing"): [1.0, 2.0]})
    with pytest.raises(ValueError, match="numbers of 2 and 3 points"):
        refusals(chip, {TDP: [200.0, 300.0], Address.read("memory_capacity"): [1e9, 2e9, 3e9]})


def test_a_point_alone_is_refused_like_one_of_many_for_more_energy_than_a_point_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each line of its ledger fits; their sum does not."""
    monkeypatch.delenv(VARIABLE)
    evaluator, chip, price = EVALUATORS["convolutions"], find("tpu_v4"), Address.read("dram.read")
    configuration = Configuration(hardware=chip.id, precision="bf16", runtime="graph")
    run = evaluator.evaluate(chip, configuration)
    place = next(number for number, one in enumerate(chip.reference) if Address.of(one) == price)
    longest = float(run.ledger.action_count[run.ledger.action_index == place].max())
    dear_fj = 0.5 * MAX_LINE_FJ / longest
    alone, many = (
        evaluate_points(evaluator, chip, configuration, {price: np.array(prices)}).refusal[0]
        for prices in ([dear_fj], [dear_fj, 1.0])
    )
    assert alone == many == "tpu_v4: its energy exceeds 9223 J, more than a point can hold; use a smaller batch"


def test_a_record_of_a_point_has_its_numbers() -> None:
    chip = find("tpu_v4")
    varied: dict[Address, Floats] = {
        Address.read("peak.bf16"): np.array([1e14]),
        Address.read("dram.read"): np.array([5e3]),
    }
    point = point_hardware(chip, varied, 0)
    assert read_number(point, Address.read("peak.bf16")) == 1e14
    before, after = chip.peaks["bf16"], point.peaks["bf16"]
    assert_close(after.operations_per_clock / before.operations_per_clock, 1e14 / before.rate.value)
    assert read_number(point, Address.read("dram.read")) == 5e3
    assert point.digest != chip.digest
    static = point_hardware(chip, {STATIC_POWER: np.array([50.0])}, 0)
    assert read_number(static, Address.read("chip.static_power")) == 50e15


def test_kinds_stand_for_all_kernels() -> None:
    evaluator = EVALUATORS["convolutions"]
    for runtime in RUNTIME_NAMES:
        kernels = evaluator.form(Configuration(hardware="tpu_v4", precision="bf16", runtime=runtime), runtime)
        kinds = Kinds.of(kernels)
        assert kinds.kernels.kernel_count < kernels.kernel_count
        assert kinds.kernels.times is not None
        assert kinds.kernels.times.sum() == kernels.kernel_count
        for name in ("input_bytes", "weight_bytes", "host_launch_count"):
            assert (getattr(kinds.kernels, name)[kinds.row] == getattr(kernels, name)).all(), name
        assert (kinds.kernels.kernel_index[kinds.row] == kinds.kernel[kernels.kernel_index]).all()


def _each_alone(cls: type[Kinds], kernels: KernelColumns) -> Kinds:
    """Return kinds that group nothing."""
    every = np.arange(kernels.kernel_count)
    return cls(
        kernels=kernels.take(every, np.ones(len(every))), row=np.arange(kernels.work.operator_count), kernel=every
    )


@pytest.mark.wings
def test_layers_of_a_divided_model_are_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass of 32 equal layers on two devices has the kinds of one layer, and the totals of all layers one by one."""
    from joulemap.wing.decoder.network.column import pass_columns
    from joulemap.wing.decoder.network.decoder_pass import DecoderPass
    from joulemap.wing.decoder.network.pass_name import find_decoder

    asked = [(DecoderPass(cached=1000, devices=2, chunk=chunk), batch) for chunk in (0, 500) for batch in (1, 16)]
    model = find_decoder("llama-3.1-8b")
    assert model is not None
    passes = tuple(pass_columns(model, asked).values())
    assert all(one.of_kind("communication").any() for one in passes)
    joined = form_joined(join(passes), "bf16", "engine")
    assert Kinds.of(joined).kernels.kernel_count < joined.kernel_count / 8
    chip = find("h100_sxm5")
    grouped = Together(passes).evaluate(chip, "bf16", "engine")
    monkeypatch.setattr(Kinds, "_find", classmethod(_each_alone))
    alone = Together(passes).evaluate(chip, "bf16", "engine")
    assert [one.latency_fs for one in grouped] == [one.latency_fs for one in alone]
    for one, other in zip(grouped, alone, strict=True):
        assert_close(float(one.energy_fj or 0), float(other.energy_fj or 1))
