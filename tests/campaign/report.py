"""Counts of a campaign as a table."""

from __future__ import annotations

import platform
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

import attrs

from campaign.trial import STATED, Kind, Outcome

PAGE: Final = Path(__file__).parents[2] / "docs" / "reliability.md"
PRINTED: Final = re.compile(r"(```text\n\$ make campaign\n).*?(\n```)", re.DOTALL)
TOLD: Final = 40
"""Maximum number of printed failures of a kind; the table counts all."""

HEADER: Final = ("kind", "part", "trials", "outcomes", "failures")


@attrs.define
class Count:
    """Row of the table: the trials of one part of a kind."""

    trials: int = 0
    outcomes: Counter[str] = attrs.field(factory=Counter)
    failures: Counter[str] = attrs.field(factory=Counter)
    """Class of failure -> count."""
    seconds: float = 0.0

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a trial."""
        self.trials += outcome.count
        self.outcomes.update(outcome.outcomes)
        self.failures.update(failure.split(":", 1)[0] for failure in outcome.failures)
        self.seconds = max(self.seconds, outcome.seconds)


@attrs.define
class Report:
    """Counts by kind and part."""

    seed: int
    workers: int
    _kinds: dict[str, Kind] = attrs.field(factory=dict)
    _counts: dict[str, dict[str, Count]] = attrs.field(factory=lambda: defaultdict(dict))
    _told: Counter[str] = attrs.field(factory=Counter)
    _left_out: dict[str, str] = attrs.field(factory=dict)

    def add(self, kind: Kind, number: int, outcome: Outcome) -> Iterator[str]:
        """Add a trial; yield a line for each failure with the options that repeat it."""
        self._kinds[kind.name] = kind
        self._counts[kind.name].setdefault(outcome.part, Count()).add(outcome)
        for failure in outcome.failures:
            self._told[kind.name] += 1
            if self._told[kind.name] > TOLD:
                continue
            again = f"--only {kind.name} --seed {self.seed} --trial {number}"
            word = STATED if failure.startswith(STATED) else "FAILED"
            yield f"{word} {again}  {outcome.part}: {' '.join(failure.split())}"

    def leave_out(self, kind: Kind, reason: str) -> None:
        """Note that a kind was not tried."""
        self._kinds[kind.name] = kind
        self._left_out[kind.name] = reason

    def count(self, kind: Kind) -> int:
        """Return the number of trials of a kind."""
        return sum(count.trials for count in self._counts[kind.name].values())

    @property
    def has_failures(self) -> bool:
        """True if a trial failed otherwise than stated."""
        return any(count.failures.keys() - {STATED} for parts in self._counts.values() for count in parts.values())

    def table(self, *, has_parts: bool = True) -> str:
        """Return the counts as aligned columns, and the setting; without parts, outcomes are also omitted."""
        rows: list[tuple[str, ...]] = [HEADER]
        for name, kind in self._kinds.items():
            if name in self._left_out:
                rows.append((name, "", "0", f"left out: {self._left_out[name]}", ""))
                continue
            parts = self._counts[name]
            whole = Count()
            for count in parts.values():
                whole.trials += count.trials
                whole.outcomes += count.outcomes
                whole.failures += count.failures
                whole.seconds = max(whole.seconds, count.seconds)
            rows.append((name, kind.meaning, *_show(whole)))
            if has_parts and len(parts) > 1:
                rows += [("", part, *_show(count)) for part, count in sorted(parts.items())]
        shown = rows if has_parts else [row[:3] + row[4:] for row in rows]
        return f"{_align(shown)}\n\n{self._setting()}"

    def _setting(self) -> str:
        return (
            f"seed {self.seed}, {self.workers} trials at a time, joulemap {version('joulemap')}, "
            f"duckdb {version('duckdb')}, Python {platform.python_version()}, {platform.system()}"
        )


def _show(count: Count) -> tuple[str, str, str]:
    outcomes = [f"{name} {number:,}" for name, number in count.outcomes.most_common()]
    if count.seconds:
        outcomes.append(f"slowest {count.seconds:.2f} s")
    failures = ", ".join(f"{name} {number:,}" for name, number in count.failures.most_common())
    return f"{count.trials:,}", ", ".join(outcomes), failures or "0"


def _align(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) if index == 2 else cell.ljust(width)
                 for index, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def write_page(text: str) -> None:
    """Write the table to docs/reliability.md."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(PRINTED.sub(lambda match: f"{match[1]}{text}{match[2]}", page), encoding="utf-8")
