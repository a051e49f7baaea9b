"""Which runs a question needs, and under which keys they are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs

from joulemap.domain.calibration import CalibrationEntry, calibrated_digest
from joulemap.domain.catalogue import DEFAULT_HARDWARE, DEFAULT_MODE, HardwareEntry, find_entry
from joulemap.domain.configuration import RUNTIMES
from joulemap.domain.hardware import mode_digest
from joulemap.domain.precision import PRECISION_BYTES
from joulemap.errors import UnknownNameError, UsageError
from joulemap.model.version import formula_version

DEPLOYMENTS: Final = ("datacenter", "edge", "embedded")


@attrs.frozen(kw_only=True)
class Choice:
    """Which hardware a question is about, as a person says it."""

    names: tuple[str, ...] = ()
    """Ids or aliases, each with `@MODE` or without; empty for those of the filters, or the default four."""
    architectures: tuple[str, ...] = ()
    deployments: tuple[str, ...] = ()
    power_mode: str = ""
    """Of every name that brings none of its own; empty for the default mode."""


@attrs.frozen(kw_only=True)
class PlannedRun:
    """A run that a question needs."""

    hardware: str
    hardware_digest: str
    """Of the hardware at the default mode, without a calibration."""
    power_mode: str
    calibration: CalibrationEntry | None
    run_key: str

    @property
    def target(self) -> tuple[str, str, str]:
        """(digest of the hardware, digest of the calibration, power mode): what its hardware depends on."""
        return self.hardware_digest, self.calibration.digest if self.calibration else "", self.power_mode


def check_precision(precision: str) -> None:
    """Raise UsageError for a precision that does not exist."""
    if precision not in PRECISION_BYTES:
        raise UsageError(f"unknown precision {precision!r}; known: {', '.join(PRECISION_BYTES)}")


def check_settings(precision: str, runtime: str) -> None:
    """Raise UsageError for a precision or runtime that does not exist."""
    check_precision(precision)
    if runtime not in RUNTIMES:
        raise UsageError(f"unknown runtime {runtime!r}; known: {', '.join(RUNTIMES)}")


def check_filters(architectures: Iterable[str], deployments: Iterable[str], classes: Collection[str]) -> None:
    """Raise UnknownNameError for an architecture class or deployment that does not exist."""
    for architecture in architectures:
        if architecture not in classes:
            raise UnknownNameError("architecture", architecture, classes)
    for deployment in deployments:
        if deployment not in DEPLOYMENTS:
            raise UnknownNameError("deployment", deployment, DEPLOYMENTS)


def select_hardware(known: Mapping[str, HardwareEntry], choice: Choice) -> tuple[tuple[HardwareEntry, str], ...]:
    """Return the (hardware, power mode) pairs of a choice, each once, in the order of asking.

    Raises UnknownNameError for a name that does not exist, UsageError where nothing is left.
    """
    classes = sorted({entry.architecture for entry in known.values()})
    check_filters(choice.architectures, choice.deployments, classes)
    if choice.names:
        pairs = [_find(known, name, choice.power_mode) for name in choice.names]
    else:
        filtered = choice.architectures or choice.deployments or choice.power_mode
        entries = list(known.values()) if filtered else [known[name] for name in DEFAULT_HARDWARE]
        pairs = [(entry, choice.power_mode or DEFAULT_MODE) for entry in entries]
        if choice.power_mode:
            pairs = [(entry, entry.find_mode(mode)) for entry, mode in pairs if entry.has_mode(mode)]
            if not pairs:
                modes = {mode for entry in known.values() for mode in entry.power_modes}
                raise UnknownNameError("power mode", choice.power_mode, modes)
    chosen = tuple(
        dict.fromkeys(
            (entry, mode)
            for entry, mode in pairs
            if (not choice.architectures or entry.architecture in choice.architectures)
            and (not choice.deployments or set(entry.deployment) & set(choice.deployments))
        )
    )
    if not chosen:
        raise UsageError(f"no hardware is {_describe(choice)}; see `joulemap hardware list`")
    return chosen


def _find(known: Mapping[str, HardwareEntry], name: str, power_mode: str) -> tuple[HardwareEntry, str]:
    plain, at, mode = name.partition("@")
    entry = find_entry(known, plain)
    return entry, entry.find_mode(mode if at else power_mode or DEFAULT_MODE)


def _describe(choice: Choice) -> str:
    parts = [
        f"one of {', '.join(choice.names)}" if choice.names else "",
        f"of architecture {' or '.join(choice.architectures)}" if choice.architectures else "",
        f"for {' or '.join(choice.deployments)}" if choice.deployments else "",
        f"with a power mode {choice.power_mode}" if choice.power_mode else "",
    ]
    return " and ".join(part for part in parts if part)


def plan_runs(
    workload_key: str,
    chosen: Sequence[tuple[HardwareEntry, str]],
    *,
    precision: str,
    runtime: str,
    find_calibration: Callable[[str], CalibrationEntry | None],
) -> tuple[PlannedRun, ...]:
    """Return one planned run per hardware and mode; the batch is the workload's."""
    planned = []
    for entry, mode in chosen:
        calibration = find_calibration(entry.id)
        digest = calibrated_digest(entry.digest, calibration.digest) if calibration else entry.digest
        version = formula_version(entry.architecture)
        parts = (workload_key, mode_digest(digest, mode), mode, precision, runtime, version)
        planned.append(
            PlannedRun(
                hardware=entry.id,
                hardware_digest=entry.digest,
                power_mode=mode,
                calibration=calibration,
                run_key=hashlib.sha256("|".join(parts).encode()).hexdigest()[:16],
            )
        )
    return tuple(planned)
