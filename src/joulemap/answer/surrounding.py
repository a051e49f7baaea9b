"""Notes of answers at the boundary `system`: what surrounds each board at the wall plug."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.present.template import Template
from joulemap.store.connection import Connection
from joulemap.store.literal import execute
from joulemap.system.record import frozen

ALONE: Final = Template("system: power at the wall plug, {hardware:and}: nothing is added to the board")

AROUND: Final = Template(
    "system: power at the wall plug, {hardware:and}: {factor:plain} J per joule of the board"
    "[, and {host_w:W} of a host ({told})]"
)

UNPLUGGED: Final = Template("left out: {hardware:and}: no boundary system: {reason}")

FALLBACK: Final = Template("energy at the {boundary}, without host and power supply: {hardware:and}: {reason}")


@frozen(kw_only=True)
class Plugged:
    """Hardware at the wall plug."""

    hardware: str
    factor: float
    """Energy at the wall per joule of the board, the host excluded."""
    host_w: float | None
    """Power of the host that one board carries; None for none."""
    told: str
    """Origin of the host's power, with the share of a server that one board carries; empty for none."""


def find_plugged(connection: Connection, run_ids: Sequence[int]) -> tuple[Plugged, ...]:
    """Return the hardware of runs at the boundary `system`, by name."""
    statement = (
        "SELECT v.hardware, "
        "1e0 + coalesce(sum(e.energy_per_action_fj) FILTER (a.component IN ('chassis', 'psu')), 0e0) / 1e15, "
        "any_value(e.energy_per_action_fj) FILTER (a.component = 'host' AND a.action = 'static_power') / 1e15, "
        "coalesce(any_value(e.source) FILTER (a.component = 'host' AND a.action = 'static_power'), '') "
        "FROM internal.hardware_version AS v "
        "JOIN internal.energy_per_action AS e ON e.hardware_digest = v.hardware_digest "
        "JOIN internal.action AS a ON a.action_id = e.action_id "
        "WHERE v.boundary = 'system' AND v.hardware_digest IN "
        "(SELECT r.hardware_digest FROM internal.run AS r WHERE list_contains($ids, r.run_id)) "
        "GROUP BY v.hardware_digest, v.hardware ORDER BY ALL"
    )
    rows = execute(connection, statement, {"ids": list(run_ids)}).fetchall()
    return tuple(
        Plugged(hardware=name, factor=factor, host_w=host_w, told=told.partition(": ")[0])
        for name, factor, host_w, told in rows
    )


def describe_plugged(plugged: Sequence[Plugged], unplugged: Mapping[str, str], boundary: str) -> list[str]:
    """Return the notes on hardware at the wall plug, and on hardware left out or at a fallback boundary.

    Alike ones are on one line.
    """
    groups: dict[tuple[float, float | None, str], list[str]] = {}
    for one in plugged:
        names = groups.setdefault((one.factor, one.host_w, one.told), [])
        names += [] if one.hardware in names else [one.hardware]
    lines = [
        ALONE(hardware=names)
        if host_w is None and factor == 1.0
        else AROUND(hardware=names, factor=factor, host_w=host_w, told=told)
        for (factor, host_w, told), names in groups.items()
    ]
    reasons: dict[str, list[str]] = {}
    for name, reason in unplugged.items():
        reasons.setdefault(reason, []).append(name)
    told = FALLBACK if boundary else UNPLUGGED
    return [*lines, *(told(hardware=names, boundary=boundary, reason=reason) for reason, names in reasons.items())]
