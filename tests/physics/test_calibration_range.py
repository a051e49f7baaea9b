"""Valid ranges of coefficients: any calibration that can be written can be evaluated on any shipped model."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final
from unittest.mock import patch

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from calibration_case import made
from compare import assert_close
from joulemap.calibrate.free_parameter import FARTHEST, free_coefficients, rounded
from joulemap.catalog.calibration import calibration_text, read_calibration
from joulemap.catalog.chip import list_architectures
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.catalog.spread import load_spreads, scale_unattributed
from joulemap.physics.law import VARIABLE
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.calibration import MOST_FACTOR, Calibration, FittedValue
from joulemap.physics.record.coefficient import MOST_RATIO, RANGES, check_coefficient, check_fitted, fitted_range
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import STATIC_ACTION
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.run import RunColumns
from joulemap.plan.anchor import anchor_hardware
from joulemap.system.errors import CatalogueError, UnsupportedError
from models import shipped

MODELS: Final = tuple(load_models())
FEW: Final = ("mobilenet_v3_small", "transformer_encoder_layer")
"""Convolutions, depthwise ones too, and products: what coefficients are of."""
BATCHES: Final = (1, 8)


@pytest.fixture(autouse=True, scope="module")
def _marking() -> Iterator[None]:
    """Mark a run that breaks a law instead of raising: a calibration may claim any speed of a memory."""
    with patch.dict(os.environ, {VARIABLE: ""}):
        yield


@cache
def evaluator(model: str, batch: int) -> Evaluator:
    return Evaluator(shipped(model, batch if load_shipped()[model].is_affine else 1))


@cache
def chips(architecture: str) -> tuple[Hardware, ...]:
    return tuple(anchor_hardware(one) for one in load_catalogue().hardware.values() if one.architecture == architecture)


def fitted(hardware: Hardware, positions: dict[str, float], factor: float, static: float) -> Calibration:
    """Return a calibration of a chip, as its file gives it: coefficients at these places of their range, 0 to 1."""
    spreads = load_spreads(hardware.architecture).within(hardware)
    spread_of = {one.name: one.spread for one in spreads.coefficients}
    coefficients = {}
    for one in free_coefficients(hardware, spread_of):
        low, high = one.bounds
        value = rounded(one.value(low + (high - low) * positions[one.name]))
        coefficients[one.name] = FittedValue(
            default=one.default, value=value, unit=hardware.coefficients[one.name].unit, data_weight=0.9
        )
    scales = [one.scale for one in (*spreads.energy_scales, *scale_unattributed(hardware.reference))]
    scales = [attrs.evolve(one, factor=factor) for one in scales if STATIC_ACTION not in one.actions]
    own = hardware.static_power.value
    watts = min(own * MOST_FACTOR ** (2.0 * static - 1.0), hardware.most_static_w)
    return made(
        hardware,
        coefficients=coefficients,
        energy_scales=tuple(scales),
        static_power=FittedValue(default=own, value=watts, unit="W", data_weight=0.9),
    )


def faults(run: RunColumns) -> Iterator[str]:
    """Yield the columns of a run that no database takes: negative, or not a number."""
    for record in (run.subgraphs, run.operators, run.ledger):
        for field in attrs.fields(type(record)):
            column = np.asarray(getattr(record, field.name))
            if not np.isfinite(column).all() or (column < 0).any():
                yield f"{type(record).__name__}.{field.name}"
    if not 0.0 < run.clock_fraction <= 1.0:
        yield "clock_fraction"


def shrink(calibration: Calibration) -> Calibration:
    """Return a calibration with the lowest energies and static power that it could have."""
    assert calibration.static_power is not None
    scales = tuple(attrs.evolve(one, factor=1.0 / MOST_FACTOR) for one in calibration.energy_scales)
    watts = calibration.static_power.default / MOST_FACTOR
    return attrs.evolve(
        calibration, energy_scales=scales, static_power=attrs.evolve(calibration.static_power, value=watts)
    )


def check(hardware: Hardware, calibration: Calibration, model: str, batch: int, runtime: str) -> None:
    under = hardware.calibrated(calibration)
    for precision in hardware.peaks:
        one = evaluator(model, batch)
        configuration = Configuration(
            hardware=hardware.id, precision=precision, batch=int(one.work.batch), runtime=runtime
        )
        try:
            run = one.evaluate(under, configuration)
        except (
            UnsupportedError
        ):  # of its compiler or memory, as without a calibration; or the store holds no such energy
            try:
                one.evaluate(hardware, configuration)
            except UnsupportedError:
                continue
            try:
                run = one.evaluate(hardware.calibrated(shrink(calibration)), configuration)
            except UnsupportedError as error:  # a small core at its slowest takes hours for a large model
                if error.code != "range":
                    raise
                continue
        assert list(faults(run)) == [], (hardware.id, model, configuration)


@st.composite
def calibrations(draw: st.DrawFn, architecture: str) -> tuple[Hardware, Calibration]:
    hardware = draw(st.sampled_from(chips(architecture)))
    places = st.one_of(st.sampled_from((0.0, 1.0)), st.floats(0.0, 1.0))
    names = [one.name for one in load_spreads(architecture).coefficients]
    positions = dict(zip(names, draw(st.lists(places, min_size=len(names), max_size=len(names))), strict=True))
    factor = draw(st.floats(1.0 / MOST_FACTOR, MOST_FACTOR))
    return hardware, fitted(hardware, positions, factor, draw(st.floats(0.0, 1.0)))


@pytest.mark.slow
@pytest.mark.parametrize("architecture", list_architectures())
@settings(max_examples=60)
@given(data=st.data())
def test_every_calibration_can_be_evaluated_at_length(architecture: str, data: st.DataObject) -> None:
    hardware, calibration = data.draw(calibrations(architecture))
    model, batch = data.draw(st.sampled_from(MODELS)), data.draw(st.sampled_from(BATCHES))
    check(hardware, calibration, model, batch, data.draw(st.sampled_from(RUNTIME_NAMES)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", [0.0, 1.0])
@pytest.mark.parametrize("architecture", list_architectures())
def test_the_ends_of_every_range_can_be_evaluated(architecture: str, place: float) -> None:
    hardware = chips(architecture)[0]
    names = [one.name for one in load_spreads(architecture).coefficients]
    calibration = fitted(hardware, dict.fromkeys(names, place), MOST_FACTOR if place else 1.0 / MOST_FACTOR, place)
    for model in FEW:
        for runtime in RUNTIME_NAMES:
            check(hardware, calibration, model, 1, runtime)


def test_defaults_lie_in_their_ranges() -> None:
    for hardware in load_catalogue().hardware.values():
        for name, one in hardware.coefficients.items():
            check_coefficient(name, one.value)
        for spread in load_spreads(hardware.architecture).coefficients:
            assert FARTHEST * spread.spread <= math.log(MOST_RATIO)


@pytest.mark.parametrize(
    ("name", "value", "is_valid"),
    [
        ("traffic_ratio.roll", 1.0, True),
        ("traffic_ratio.roll", 0.98, False),
        ("dram_efficiency.planar", 1.0, True),
        ("dram_efficiency.planar", 1.01, False),
        ("dram_efficiency", 0.0, False),
        ("peak_share.tensor", 1.08, False),
        ("peak_share.winograd.vector", 1.38, True),
        ("start_clocks.light", 0.0, True),
        ("start_clocks.light", -1.0, False),
        ("start_clocks.light", math.inf, False),
        ("start_clocks.light", math.nan, False),
        ("device_time_scale", 0.9, True),
    ],
)
def test_ranges_by_hand(name: str, value: float, *, is_valid: bool) -> None:
    if is_valid:
        check_coefficient(name, value)
        return
    with pytest.raises(ValueError, match="is not"):
        check_coefficient(name, value)


def test_a_fit_is_held_to_more() -> None:
    assert fitted_range("device_time_scale") == (1.0, math.inf)
    for default, value in ((1.0, 0.9), (1.0, 21.0), (1.0, 0.0)):
        with pytest.raises(ValueError, match=r"is|differs"):
            check_fitted("device_time_scale", default, value)
    check_fitted("start_clocks.light", 1.0, 20.0)
    assert all(low <= high for low, high in RANGES.values())


OUT_OF_RANGE: Final = {"traffic_ratio.roll": (2.0, 0.98), "start_clocks.light": (2070.0, 1e9)}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_a_file_beyond_a_range_is_refused(name: str, tmp_path: Path) -> None:
    hardware = load_catalogue().hardware["rtx_4090"]
    default, value = OUT_OF_RANGE[name]
    unit = hardware.coefficients[name].unit
    inside = made(
        hardware,
        coefficients={name: FittedValue(default=default, value=1.5 * default, unit=unit, data_weight=0.5)},
    )
    path = tmp_path / "mine.toml"
    path.write_text(calibration_text(inside).replace(f"value = {1.5 * default!r}", f"value = {value!r}"))
    with pytest.raises(CatalogueError, match=re.escape(f"coefficients.{name}: {value:g} ")):
        read_calibration(path)


def test_a_default_that_the_hardware_has_not_is_refused() -> None:
    hardware = load_catalogue().hardware["rtx_4090"]
    fraud = FittedValue(default=0.02, value=0.05, unit="1", data_weight=0.5)
    calibration = made(hardware, coefficients={"dram_efficiency.planar": fraud})
    with pytest.raises(ValueError, match=r"its default is 0\.02, but rtx_4090 has 0\.92"):
        hardware.calibrated(calibration)


def test_static_power_stays_below_the_cap() -> None:
    hardware = load_catalogue().hardware["rtx_4090"]
    own = hardware.static_power.value
    too_much = FittedValue(default=own, value=hardware.tdp.value, unit="W", data_weight=0.5)
    calibration = made(hardware, coefficients={}, energy_scales=(), static_power=too_much)
    with pytest.raises(ValueError, match="is not below the tdp of power mode default"):
        hardware.calibrated(calibration)


def test_static_power_stays_below_what_was_measured_under_a_load() -> None:
    hardware = load_catalogue().hardware["jetson_agx_orin_cpu"]  # 60 W at most; 27.4 and 19.67 W under loads
    assert_close(hardware.most_static_w, 0.95 * 19.67)
    too_much = FittedValue(default=hardware.static_power.value, value=40.0, unit="W", data_weight=0.5)
    with pytest.raises(ValueError, match=r"27\.4 W is not above the static power of 40 W"):
        hardware.calibrated(made(hardware, coefficients={}, energy_scales=(), static_power=too_much))


@pytest.mark.parametrize("name", list(load_catalogue().hardware))
def test_every_chip_takes_the_greatest_static_power(name: str) -> None:
    hardware = load_catalogue().hardware[name]
    own = hardware.static_power.value
    most = FittedValue(default=own, value=hardware.most_static_w, unit="W", data_weight=0.9)
    calibration = made(hardware, coefficients={}, energy_scales=(), static_power=most)
    assert_close(hardware.calibrated(calibration).static_power.value, hardware.most_static_w)
