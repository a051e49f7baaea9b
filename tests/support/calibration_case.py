"""A calibration of a toy chip."""

from __future__ import annotations

from typing import Any

import attrs

from joulemap.catalog.calibration import (
    calibration_text,
    parse_calibration,
)
from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.calibration import Calibration, CalibrationError, EnergyScale, FittedValue
from joulemap.physics.record.hardware import Hardware
from joulemap.plan.version import formula_version

TARGET = "tpu_v4"


def hardware(name: str = TARGET) -> Hardware:
    return load_catalogue().hardware[name]


def made(target: Hardware, **changes: Any) -> Calibration:
    """Return a calibration by hand: twice as slow, DRAM three times the energy, 50 W of static power."""
    draft = Calibration(
        name="mine",
        hardware=target.id,
        hardware_digest=target.digest,
        formula_version=formula_version(target.architecture),
        data_digest="0123456789abcdef",
        generation=target.generation,
        latency_credibility=0.9,
        energy_credibility=0.9,
        row_count=4,
        latency_count=4,
        energy_count=2,
        runtimes=("fused",),
        precisions=("bf16", "fp32"),
        families=("resnet", "vgg"),
        coefficients={
            name: FittedValue(default=1.0, value=2.0, unit="1", data_weight=0.9)
            for name in ("device_time_scale", "launch_time_scale")
        },
        energy_scales=(
            EnergyScale(
                name="dram",
                factor=3.0,
                actions=(("dram", "read"), ("dram", "write")),
                meaning="memory",
                data_weight=0.9,
            ),
        ),
        static_power=FittedValue(default=target.static_power.value, value=50.0, unit="W", data_weight=0.9),
        errors=(
            CalibrationError(
                quantity="latency",
                split="fitted",
                runtime="",
                precision="",
                batch=0,
                family="",
                row_count=4,
                mean_error_fraction=0.25,
                median_error_fraction=0.125,
                worst_error_fraction=-0.5,
                rank_correlation=1.0,
            ),
        ),
        digest="",
    )
    return parse_calibration(calibration_text(attrs.evolve(draft, **changes)), "mine")
