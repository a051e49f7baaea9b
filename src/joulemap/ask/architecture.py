"""Facts of a contrast of architecture classes: which uses the least energy, the largest part of each, and caveats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from joulemap.ask.fact import Entry, Facts, Quantity, Share
from joulemap.ask.scope import Scope
from joulemap.ask.standing import choose, find_beyond, find_own_caveats, list_choosable, rank, read_value
from joulemap.generated.architectures import ArchitectureSummary
from joulemap.generated.compare import Standing

PARTS: Final = (
    "compute", "register", "on_chip_memory", "interconnect", "off_chip_memory", "control", "board", "static",
)  # fmt: skip
"""Parts of the energy, ordered from arithmetic outwards."""

ENERGY: Final = "energy"


def find_facts(scope: Scope, rows: Sequence[ArchitectureSummary]) -> Facts:
    """Return the facts of a contrast: the class with the least energy, one of unavailable hardware with less, a row per
    class, its largest part and its time in launches, and caveats.
    """
    standings = rank(scope, ENERGY)
    had = set(list_choosable(scope, scope.evaluated_ids))
    choice = choose([row for row in standings if row.run_id in had])
    summaries = {row.run_id: row for row in rows}
    subjects = scope.subjects({})
    return Facts(
        asked=(ENERGY,),
        runs={
            run_id: attrs.evolve(one, architecture=scope.outlines[run_id].architecture)
            for run_id, one in subjects.items()
        },
        facts=(
            choice,
            *find_beyond(scope, standings, [choice]),
            *(_enter(row, summaries[row.run_id]) for row in standings),
            *_divide(rows),
            *find_own_caveats(scope, [choice], ENERGY),
        ),
    )


def find_share(row: ArchitectureSummary, part: str) -> float:
    """Return a part's share of the energy (0 to 1); 0 for a refused run."""
    return getattr(row, f"{part}_fraction") or 0.0


def find_largest(row: ArchitectureSummary, parts: Iterable[str] = PARTS) -> str:
    """Return the part of a run with the most energy."""
    return max(parts, key=lambda part: find_share(row, part))


def _enter(row: Standing, summary: ArchitectureSummary) -> Entry:
    """Return the energy of a run, that of computing per MAC, and the architectural overhead over that of computing."""
    own = {
        "compute_per_mac": None if not summary.mac_count else summary.compute_per_mac_j,
        "overhead": summary.overhead_ratio,
    }
    units = {"compute_per_mac": "J", "overhead": ""}
    values = {name: Quantity(value, units[name]) for name, value in own.items() if value is not None}
    return Entry(runs=(row.run_id,), values={ENERGY: read_value(row), **values})


def _divide(rows: Iterable[ArchitectureSummary]) -> Iterator[Share]:
    """Yield the largest part of the energy of each run, and its share of time in launches."""
    for row in rows:
        if row.energy_fj is not None:
            part = find_largest(row)
            yield Share(runs=(row.run_id,), metric=ENERGY, name=part, share=find_share(row, part))
            if row.launch_time_fraction is not None:
                yield Share(runs=(row.run_id,), metric="latency", name="launch", share=row.launch_time_fraction)
