"""What the tables of choices share: names of metrics, figures with their units, configurations, assumptions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from joulemap.domain.answer.choice import AssumedNumber
from joulemap.domain.answer.comparison import Caveat
from joulemap.present.cell import PROJECTED, PROJECTION_NOTE, show_quantity
from joulemap.report.note import describe_caveats
from joulemap.report.render import draw_table
from joulemap.units import format_si

MEANING: Final = {
    "latency": "latency of a batch",
    "energy": "energy of a batch",
    "energy_per_inference": "energy of one inference",
    "throughput": "inferences per second",
    "power": "average power while it runs",
    "memory": "weights and peak activations of a batch",
    "edp": "energy x latency of a batch",
    "edp_per_inference": "energy of one inference x latency of its batch",
    "price": "cloud price of one chip",
    "purchase": "purchase price",
    "cost": "cost of a million inferences",
    "carbon": "CO2 of a million inferences",
}
"""Metric -> what it is, and of what."""


def name_goal(metric: str) -> str:
    """Return what being best in a metric means."""
    word = "most" if metric == "throughput" else "lowest"
    return f"{word} {MEANING[metric]}"


BASES_OF_USE: Final = ("cost", "carbon")
"""Metrics that rest on how a chip is used."""

BATCH_NOTE: Final = (
    "latency and memory are of a batch, which every inference of it waits for; a metric per inference says so"
)

PRECISION_NOTE: Final = "whether the model keeps its accuracy at a narrower precision is not part of the comparison"

SHOWN_REASONS: Final = 2
"""Reasons for what cannot run that people see; programs get all."""

WIDE: Final = 60
"""Where a column of sources wraps."""


class Configured(Protocol):
    """A row about one configuration."""

    @property
    def hardware(self) -> str:
        """With its power mode."""

    @property
    def precision(self) -> str:
        """Of the run."""

    @property
    def batch(self) -> int:
        """Of the run."""

    @property
    def runtime(self) -> str:
        """Of the run."""

    @property
    def is_projection(self) -> bool:
        """Whether key numbers of the hardware are projections or estimates."""


def show_figure(value: float | None, unit: str | None) -> str:
    """Return a figure for people: money without a prefix, all else as everywhere; "" for what is not known."""
    if value is None or unit is None:
        return ""
    if unit == "USD/h":
        return f"{value:.4g} {unit}"
    if unit == "USD":
        return f"{show_plain(value)} {unit}"
    if unit == "kWh":
        return f"{show_plain(value)} kWh"
    if unit == "g":
        return format_si(value, "g")
    return show_quantity(value, unit)


def show_plain(value: float) -> str:
    """Return a number to three digits, without an exponent where there are more before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.3g}"


def mark(row: Configured) -> str:
    """Return a row's hardware, marked where its numbers are projections."""
    return f"{PROJECTED}{row.hardware}" if row.is_projection else row.hardware


def name_configuration(row: Configured) -> str:
    """Return a configuration in words, marked where its numbers are projections."""
    runtime = "" if row.runtime == "fused" else f" {row.runtime}"
    return f"{mark(row)} {row.precision} batch {row.batch}{runtime}"


def draw_assumptions(assumptions: Sequence[AssumedNumber], is_markdown: bool) -> str:
    """Return the numbers that costs and carbon rest on, with their sources."""
    rows = [
        (
            row.assumption,
            f"{row.value:,.6g}".rstrip() if row.value < 1000.0 else f"{row.value:,.0f}",
            "" if row.unit == "1" else row.unit,
            row.basis,
            row.source,
            row.note,
        )
        for row in assumptions
    ]
    headings = ("assumption", "value", "unit", "basis", "source", "note")
    return draw_table(headings, rows, is_markdown=is_markdown, widths=(None, None, None, None, WIDE, WIDE))


def describe_refused(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for what cannot run, from (status, reason) of every row."""
    reasons = [reason for status, reason in rows if status == "unsupported"]
    if not reasons:
        return []
    distinct = list(dict.fromkeys(reasons))
    shown = "; ".join(distinct[:SHOWN_REASONS])
    rest = len(distinct) - SHOWN_REASONS
    more = f"; and {rest} more reasons, which --format json has" if rest > 0 else ""
    return [f"{count_configurations(len(reasons))} unsupported: {shown}{more}"]


def describe_rows(rows: Sequence[Configured], caveats: Iterable[Caveat]) -> list[str]:
    """Return what a reader must know of such rows."""
    lines = [BATCH_NOTE]
    if len({row.precision for row in rows}) > 1:
        lines.append(PRECISION_NOTE)
    if any(row.is_projection for row in rows):
        lines.append(PROJECTION_NOTE)
    return lines + describe_caveats(caveats)


def count_configurations(count: int) -> str:
    """Return how many configurations there are, in words."""
    return f"{count:,} configuration{'' if count == 1 else 's'}"


def count_more(total: int, limit: int) -> str:
    """Return a line for the rows that a table leaves out."""
    return f"\nand {total - limit:,} more; --format json has all" if total > limit else ""


def join_sections(title: str, sections: Iterable[tuple[str, str]], is_markdown: bool) -> str:
    """Return the sections that have something to say under a title."""
    if is_markdown:
        return "\n\n".join([f"# {title}", *(f"## {name}\n\n{text}" for name, text in sections if text)])
    return "\n\n".join([title, *(f"{name}\n{text}" for name, text in sections if text)])


def list_lines(lines: Iterable[str]) -> str:
    """Return lines as a list."""
    return "\n".join(f"- {line}" for line in lines)


def write_analyze(model: str, row: Configured, spelling: Mapping[str, str], options: Sequence[str]) -> str:
    """Return the command that takes a configuration apart, ready to paste into a shell."""
    parts = ["joulemap", "analyze", model, spelling.get(row.hardware, row.hardware)]
    parts += ["--precision", row.precision, "--batch", str(row.batch)]
    if row.runtime != "fused":
        parts += ["--runtime", row.runtime]
    return shlex.join([*parts, *options])


def records(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return records as JSON takes them."""
    return [attrs.asdict(row) for row in rows]
