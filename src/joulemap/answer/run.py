"""Text and checks on runs, shared by several answers. Energy and latency are per batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from joulemap.present.document import Text
from joulemap.present.template import Template
from joulemap.show.title import Title

if TYPE_CHECKING:
    from joulemap.answer.scope import Scope
    from joulemap.row.analyze import RunTotal
    from joulemap.row.edp import EdpTotal
    from joulemap.row.fusion import FusionTotal

TITLE: Final = Template("{model} on {name} ({architecture}), batch {batch}, {precision}, {runtime}")

EXACT: Final = Template("The {noun} sum exactly to {whole}: {wholes:and}.")
INEXACT: Final = Template("The {noun} do not sum to {whole}: {parts:and} instead of {wholes:and}.")


BOUNDS: Final = ("compute", "memory", "launch")
"""Possible bottlenecks of a subgraph."""


ONE_BY_ONE: Final = "latency"
"""Value of `throughput_limit` for a run at full clock whose batches do not overlap."""


def show_limit(row: Any) -> str:
    """Return the throughput limit of a run for a table cell; empty if batches run one after another."""
    return "" if row.throughput_limit in (None, ONE_BY_ONE) else row.throughput_limit


OVERLAPPING: Final = 1.0 - 1e-9
"""Ratio of interval to latency below which batches overlap."""


def overlaps(interval_s: float | None, latency_s: float | None) -> bool:
    """Return whether a batch starts before the previous one has ended."""
    return interval_s is not None and latency_s is not None and interval_s < OVERLAPPING * latency_s


def prove(noun: str, whole: str, *sums: tuple[int, int, str]) -> Text:
    """Return a sentence that states whether sums of rows equal the whole; each of `sums` is (sum, whole, unit)."""
    parts, wholes = ([f"{one[place]:,} {one[2]}" for one in sums] for place in (0, 1))
    is_exact = all(one == other for one, other, _ in sums)
    return Text((EXACT if is_exact else INEXACT)(noun=noun, parts=parts, whole=whole, wholes=wholes))


def title_run(row: RunTotal | EdpTotal | FusionTotal, scope: Scope, runtime: str = "") -> Title:
    """Return a title with model, hardware and configuration; `runtime` replaces the run's own runtime."""
    values = {
        "model": row.model,
        "name": scope.mark(row.hardware),
        "precision": row.precision,
        "runtime": runtime or row.runtime,
    }
    return Title(form=TITLE, row=row, values=values)
