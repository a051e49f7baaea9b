"""What putting a hardware file to the test hands out."""

from __future__ import annotations

import attrs


@attrs.frozen
class Default:
    """A number that a hardware file leaves out, as its class fills it in."""

    quantity: str
    value: float
    unit: str
    source: str


@attrs.frozen
class Trial:
    """One configuration that a hardware file was tried on."""

    power_mode: str
    precision: str
    model: str
    runtime: str
    latency_s: float | None
    energy_j: float | None
    clock_fraction: float | None
    """Of the nominal clock; below 1 where the power cap gives way."""
    reason: str
    """Why it cannot run, if it cannot."""


@attrs.frozen(kw_only=True)
class FileCheck:
    """A hardware file that keeps every rule."""

    file: str
    hardware: str
    architecture: str
    defaults: tuple[Default, ...]
    trials: tuple[Trial, ...]
