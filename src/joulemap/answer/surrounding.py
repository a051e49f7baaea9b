"""Notes of answers at the boundary `system`: host, power supply losses, and the increase of each board's power."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from joulemap.answer.layout import shorten
from joulemap.present.template import Template
from joulemap.row.run import PluggedHardware

ALONE: Final = Template(
    "the power of {hardware:and} is wall-plug power, because its energies were fitted to measurements at the wall"
)

AROUND: Final = Template(
    "the wall-plug power of {hardware:and} is {growth:plain} times the power of the board"
    "[, plus {host_w:W} for the host ({share})]"
)

UNPLUGGED: Final = Template("left out, because their energy at the wall is not known: {hardware:and} ({reason})")

FALLBACK: Final = Template(
    "the energy of {hardware:and} is that of the {boundary}, without host and power supply ({reason})"
)

SHOWN: Final = 4
"""Maximum chips named on one line."""


def describe_plugged(
    plugged: Iterable[PluggedHardware], unplugged: Mapping[str, str], boundary: str, mark: Callable[[str], str]
) -> list[str]:
    """Return notes on hardware at the wall plug, and on hardware omitted or at a fallback boundary.

    Boards with equal notes share a line.
    """
    groups: dict[tuple[float, float | None, str], list[str]] = {}
    for one in plugged:
        share = one.host_source.partition(": ")[0]
        names = groups.setdefault((one.growth_ratio, one.host_power_w, share), [])
        names += [] if mark(one.hardware) in names else [mark(one.hardware)]
    lines = [
        ALONE(hardware=shorten(names, SHOWN))
        if host_w is None and growth == 1.0
        else AROUND(hardware=shorten(names, SHOWN), growth=growth, host_w=host_w, share=share)
        for (growth, host_w, share), names in groups.items()
    ]
    reasons: dict[str, list[str]] = {}
    for name, reason in unplugged.items():
        reasons.setdefault(reason, []).append(mark(name))
    note = FALLBACK if boundary else UNPLUGGED
    return [
        *lines,
        *(note(hardware=shorten(names, SHOWN), boundary=boundary, reason=reason) for reason, names in reasons.items()),
    ]
