"""Configurations without a result: refused runs, and hardware that was left out before anything ran."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from joulemap.ask.fact import BOUNDARY, BUDGET, CALIBRATION, PORT, Quantity, Refusal
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.table import group
from joulemap.plan.selection import Selection
from joulemap.store.run import Outline


def find_refused(outlines: Mapping[int, Outline], unavailable: Collection[str]) -> Iterator[Refusal]:
    """Yield the refusals of runs, one per reason."""
    for ids in group((one for one in outlines if outlines[one].refusal), lambda one: outlines[one].refusal).values():
        first = outlines[ids[0]]
        if first.reason is not None:
            chips = dict.fromkeys(outlines[one].hardware for one in ids)
            yield Refusal.of(first.reason, tuple(ids), tuple(chips), is_available=first.hardware not in unavailable)


def find_left_out(selection: Selection, unavailable: Collection[str]) -> Iterator[Refusal]:
    """Yield the hardware that budget, boundary, host or calibration excludes, each with its reason."""
    found: list[tuple[str, str, str, dict[str, Any]]] = [
        (BUDGET, name, str(excess), {"least": Quantity(excess.least_w, "W"), "has_host": excess.has_host})
        for name, excess in selection.left_out.items()
    ]
    unplugged = {} if selection.fallback_boundary else selection.unplugged
    excluded = [(BOUNDARY, unplugged), (PORT, selection.portless), (CALIBRATION, selection.miscalibrated)]
    found += [(code, *one, {}) for code, reasons in excluded for one in reasons.items()]
    for code, name, reason, values in found:
        label = HardwareRef.read(name).label
        yield Refusal(
            runs=(),
            reason=reason,
            code=code,
            values={"hardware": name, **values},
            hardware=(label,),
            is_available=label not in unavailable,
        )
