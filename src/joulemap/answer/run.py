"""A run, as rows of several answers tell it. Energy and latency are per batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from joulemap.present.cell import show_share
from joulemap.present.document import Shown, Text

if TYPE_CHECKING:
    from joulemap.answer.scope import Scope
    from joulemap.row.analyze import RunTotal
    from joulemap.row.edp import EdpTotal
    from joulemap.row.fusion import FusionTotal

ENERGY_PARTS: Final = ("compute", "memory", "control", "static")
"""What every energy is split into."""

CATEGORIES: Final = {
    "compute": "computing",
    "register": "registers",
    "unit_memory": "unit memory",
    "chip_memory": "on-chip memory",
    "interconnect": "network",
    "off_chip_memory": "off-chip memory",
    "communication": "links between devices",
    "control": "control",
    "board": "the rest of the board",
    "static": "static power",
}
"""Common category -> what people call it."""

OVERHEAD: Final = "registers, on-chip memory, network and control"
"""What of an energy is architectural overhead: what the macro `is_overhead` adds up."""

BOUNDS: Final = ("compute", "memory", "launch")
"""What may bound the time of a subgraph."""


ONE_BY_ONE: Final = "latency"
"""What limits a throughput where a batch starts after another has ended, at the full clock."""


def limit_columns(rows: Iterable[Any]) -> tuple[Shown[Any], ...]:
    """Return the column of what limits the throughput, where that is not the latency of all."""
    is_told = any((row.throughput_limit or ONE_BY_ONE) != ONE_BY_ONE for row in rows)
    return (("rate limited by", "throughput_limit"),) if is_told else ()


OVERLAPPING: Final = 1.0 - 1e-9
"""Share of the latency below which one batch starts before another has ended."""


def overlaps(interval_s: float | None, latency_s: float | None) -> bool:
    """Whether a batch starts before the one before it has ended."""
    return interval_s is not None and latency_s is not None and interval_s < OVERLAPPING * latency_s


def prove(noun: str, whole: str, *sums: tuple[int, int, str]) -> Text:
    """Return the sentence that compares what rows add up to with their whole: (sum, whole, unit) of each quantity."""
    added, told = (" and ".join(f"{one[place]:,} {one[2]}" for one in sums) for place in (0, 1))
    is_exact = all(one == other for one, other, _ in sums)
    return Text(f"{noun} sum to {added}; {whole} is {told} ({'exact' if is_exact else 'NOT EXACT'})")


def describe_clock(rows: Iterable[Any], scope: Scope) -> list[str]:
    """Return for each hardware that its power cap slows down how far it does."""
    slow = (row for row in rows if row.clock_fraction is not None and row.clock_fraction < 1.0)
    return [
        f"{scope.mark(row.hardware)} runs at {show_share(row.clock_fraction)} of its clock to stay within its power "
        "cap; its peak is that of the full clock"
        for row in slow
    ]


def title_run(row: RunTotal | EdpTotal | FusionTotal, scope: Scope, runtime: str = "") -> str:
    """Return model, hardware and configuration in a line; `runtime` in other words than those of the run."""
    return (
        f"{row.model} on {scope.mark(row.hardware)} ({row.architecture}), batch {row.batch}, {row.precision}, "
        f"{runtime or row.runtime}"
    )
