"""What stands below an answer: what a reader must know about it, and the commands that go on from it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from joulemap.domain.answer.calibration import RunCalibration
from joulemap.domain.answer.comparison import Caveat

SHOWN_SHARE: Final = 0.0005
"""A share of the energy below this is no line of its own."""


def describe_recalled(fraction: float | None, hardware: str) -> list[str]:
    """Return the line on energy that unchecked public numbers price; none where it rounds to nothing."""
    if not fraction or fraction < SHOWN_SHARE:
        return []
    return [
        f"{fraction * 100:.1f} % of the energy of {hardware} is priced by public numbers not checked at their source"
    ]


def describe_caveats(caveats: Iterable[Caveat]) -> list[str]:
    """Return a line for each thing that the trace had to assume or could not count."""
    return [
        f"not counted: {row.operator_count} x {row.text}: only bytes"
        if row.kind == "uncounted"
        else f"traced: {row.text}"
        for row in caveats
    ]


def describe_calibrations(calibrations: Iterable[RunCalibration]) -> list[str]:
    """Return a line for each calibration that an answer rests on: where it is from and how well it does."""
    lines = []
    for row in calibrations:
        errors = [
            f"{error * 100:.1f} % of {name}"
            for name, error in (("latency", row.latency_error_fraction), ("energy", row.energy_error_fraction))
            if error is not None
        ]
        rows = f"{row.measurement_count} measurement{'' if row.measurement_count == 1 else 's'}"
        families = f"{row.family_count} famil{'y' if row.family_count == 1 else 'ies'}"
        lines.append(
            f"{row.hardware} is calibrated by {row.calibration} ({row.place}), fitted to {rows} of {families}"
            + (f", median error {' and '.join(errors)}" if errors else "")
            + "; `--calibration none` leaves it out"
        )
    return lines


def repeat_settings(precision: str, runtime: str) -> list[str]:
    """Return the options of a run's settings, as a follow-up command must repeat them; none for defaults."""
    return [
        text
        for name, value, default in (("--precision", precision, "fp32"), ("--runtime", runtime, "fused"))
        if value != default
        for text in (name, value)
    ]


def repeat_place(options: Sequence[str]) -> list[str]:
    """Return the `--db` among repeated options, the only one that a stored run is asked about with."""
    return list(options[options.index("--db") :]) if "--db" in options else []


def write_steps(steps: Iterable[Sequence[str]]) -> list[str]:
    """Return commands ready to paste into a shell."""
    return [shlex.join(["joulemap", *step]) for step in steps]
