"""An answer: tables of typed rows, and a document made of them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from joulemap.domain.name import PROJECTED
from joulemap.domain.table import Table
from joulemap.present.cell import PROJECTION_NOTE
from joulemap.present.document import Document, Lines, Section, Steps

if TYPE_CHECKING:
    from joulemap.answer.scope import Scope


@attrs.frozen(kw_only=True)
class Answer:
    """What a question hands out. Each answer has a `document`, whose options are what people choose to see of it."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The queries behind it, with their SQL."""
        return tuple(self.own_tables.values())

    @property
    def own_tables(self) -> dict[str, Table[Any]]:
        """Field -> table, of those that are its own."""
        found = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return {name: value for name, value in found.items() if isinstance(value, Table)}

    def data(self) -> dict[str, Any]:
        """Return what programs get: every row of every table; `totals` has one, which is `total`."""
        rows: dict[str, Any] = {name: table.records() for name, table in self.own_tables.items()}
        return {"total": rows.pop("totals")[0], **rows} if "totals" in rows else rows


@attrs.frozen(kw_only=True)
class RunAnswer(Answer):
    """What a question about runs hands out."""

    scope: Scope

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The queries behind it, with their SQL."""
        return (*self.own_tables.values(), self.scope.caveats, self.scope.calibrations)

    def data(self) -> dict[str, Any]:
        """Return what programs get: what it is about, and every row of every table."""
        return {**self.scope.data(), **super().data()}

    def _compose(
        self,
        title: str,
        sections: Sequence[Section],
        table: Table[Any],
        *,
        notes: Sequence[str],
        steps: Iterable[Sequence[str]],
        heading: str = "Notes",
    ) -> Document:
        """Return a document with notes below its sections, and the commands that lead on from it."""
        written = tuple(shlex.join(["joulemap", *step]) for step in steps)
        return Document(
            title=title,
            sections=close_sections(sections, notes, written, heading),
            data={**self.data(), "next_steps": written},
            table=table,
            tables=self.tables,
        )


def find_place(repeated: Sequence[str]) -> list[str]:
    """Return the `--db` among repeated options, the only one that a stored run is asked about with."""
    return list(repeated[repeated.index("--db") :]) if "--db" in repeated else []


def drop_options(repeated: Sequence[str], names: Collection[str]) -> list[str]:
    """Return repeated options without some, each of which has a value."""
    return [
        word
        for index, word in enumerate(repeated)
        if word not in names and not (index and repeated[index - 1] in names)
    ]


def close_sections(
    sections: Sequence[Section], notes: Sequence[str], steps: Sequence[str] = (), heading: str = "Notes"
) -> tuple[Section, ...]:
    """Return sections with notes and next steps below; a mark of projections that is shown is explained."""
    is_marked = any(PROJECTED in text for section in sections for text in section.texts)
    told = [*notes, *((PROJECTION_NOTE,) if is_marked and PROJECTION_NOTE not in notes else ())]
    return (*sections, Section(heading, Lines(told)), Section("Next steps", Steps(tuple(steps))))


def cut_lines(lines: Sequence[str], most: int, noun: str = "") -> list[str]:
    """Return the first lines, and how many more there are."""
    rest = len(lines) - most
    return [*lines[:most], *([f"{rest} more{noun and f' {noun}'}; --format json has all"] if rest > 0 else [])]
