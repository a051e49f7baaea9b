"""Pages of answers: what an answer says, shows and suggests is a record, a `Shape`, which this module carries out.

Functions of the facts have its lines; parts select a table of the answer and hold its columns; steps are texts.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.answer import describe_evaluation, describe_unread
from joulemap.ask.fact import Facts
from joulemap.show.caveat import describe_trust, list_notes
from joulemap.show.choice import MOST_WHY, describe_beyond
from joulemap.show.layout import lay_facts
from joulemap.show.page import (
    Drawings,
    Figures,
    _describe_site,
    _drop_foreign,
    add_lost,
    add_marks,
    draw_picture,
    fill_steps,
    lay_rows,
    list_facts,
    list_lost,
    show_share,
    tell_left_out,
)
from joulemap.show.present.document import Block, Document, Lines, Section, Text
from joulemap.show.present.template import Template
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.title import bind
from joulemap.system.name import is_module_name
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.scope import Scope

RESERVED: Final = (
    "asked", "beside", "dropped", "has_reasons", "has_steps", "is_alone", "limited", "notes", "omitted",
    "options", "row", "shown", "steps", "title", "told",
)  # fmt: skip
"""Choices that a page reads itself (`Page.choices`). All others fill slots; one named like a table has its rows."""

NOTHING: Final[Mapping[str, Any]] = {}


@frozen(kw_only=True)
class Part:
    """Section of an answer: rows of a table in columns, or facts of its first row; texts have slots for the choices."""

    title: str = ""
    """Title; the slot `count` is the number of rows."""
    table: str = ""
    """One of the choices, or a field or property of the answer, with the rows; nothing is shown if it is None or empty.
    """
    rows: str = ""
    """Field or property with the rows if other parts have them, too; an empty table is shown."""
    columns: str | Sequence[str] = ""
    """Columns in the language of `lay`, or one line per fact of the first row as for `lay_facts`."""
    is_long: int = 0
    """Number of limits up to which rows, and sections of a divided part, are shown; 0 for all."""
    lay: Mapping[str, Any] = NOTHING
    """Further options of `lay`, with slots in texts."""
    cells: Callable[[Any], Mapping[str, Any]] = lambda _: NOTHING
    """Function of the answer that returns cells which depend on it."""
    draw: Callable[..., Block | Iterable[Block]] | None = None
    """Function of the answer, the grid, the limit and the choices that returns blocks, for what is peculiar."""
    make: Callable[[Any, Any], Block | Iterable[Block]] | None = None
    """Function of the answer and the grid alone, in place of `draw`."""
    is_tight: bool = False
    """True if the blocks are lines without space between them."""
    counts_left_out: bool = False
    """True if a line directly below the first section counts what has no result."""
    divide: Callable[[Any], Iterable[tuple[Mapping[str, Any], Any]]] | None = None
    """Function of the answer that returns the choices and the rows of each of several sections."""

    def show(self, answer: Any, limit: int | None, values: Mapping[str, Any]) -> list[Section]:
        """Return the sections of an answer with `limit` rows of a long table; none without rows."""
        if self.divide is not None:
            most = limit and limit * self.is_long
            parts: list[tuple[Mapping[str, Any], Any]] = [
                ({**values, **own}, rows) for own, rows in islice(self.divide(answer), most or None)
            ]
        else:
            name = self.rows or self.table.format(**values)
            chosen = "" if name in RESERVED else values.get(name, "")
            parts = [(values, getattr(answer, name) if isinstance(chosen, str) else chosen)]
        kept = parts if self.rows or self.divide else [one for one in parts if one[1]]
        drawn = [self._draw(answer, rows, limit, {"table": self.table, **own}) for own, rows in kept]
        if not self.counts_left_out or not drawn:
            return drawn
        below = tell_left_out(answer.scope)
        return [attrs.evolve(drawn[0], blocks=(*drawn[0].blocks, *below), is_tight=True), *drawn[1:]]

    def _draw(self, answer: Any, rows: Any, limit: int | None, values: Mapping[str, Any]) -> Section:
        grid: Any = rows
        if not isinstance(self.columns, str):
            grid = lay_facts("quantity | value | detail", self.columns, rows[0], **self.cells(answer))
        elif self.columns:
            options = {name: one.format(**values) if isinstance(one, str) else one for name, one in self.lay.items()}
            most = {"limit": limit and limit * self.is_long} if self.is_long else {}
            grid = lay_rows(answer, rows, self.columns.format(**values), **self.cells(answer), **most, **options)
        if self.make is not None:
            blocks = self.make(answer, grid)
        else:
            blocks = self.draw(answer, grid, limit, **values) if self.draw is not None else grid
        title = self.title.format(**{"count": len(rows), **values})
        return Section(title, blocks, is_tight=self.is_tight)


@frozen(kw_only=True)
class Page:
    """Parts of an answer and its figures: what a `Shape`, about runs, and a `Sheet`, about anything else, share."""

    parts: tuple[Part, ...]
    csv: str = "rows"
    """Table of csv."""
    notes: Callable[[Any], Iterable[str]] = lambda _: ()
    choices: Callable[..., Mapping[str, Any]] = lambda _answer, **chosen: chosen
    """Function of the answer and the options of `document` that returns the values of slots in lines, parts and steps.

    A sheet reads two of them: `title`, in place of its function, and `has_steps`. A shape reads: `title`; `row` and
    `options` of the steps in place of the repeated ones, `steps` in place of its own, those `dropped`, and `asked`,
    which are the words of further ones; `notes`; `beside` the boundary of the title; `has_reasons`; the tables of the
    parts that are `shown` in place of the first one with rows, or `omitted`; `is_alone` if the shown part needs no
    title; `limited`, the only table whose rows are limited; the lines `told` below the table. So
    `{"shown": ["operators"], "noun": "operators"}` shows one part, and fills `{noun}` in texts.
    """
    words: Callable[[Any], Mapping[str, Any]] = lambda _: NOTHING
    """Function of the answer that returns further texts for machine formats."""
    draw: Callable[[Any], Figures] = lambda _: ()
    sketch: Callable[[Any, Any], Drawings] | None = None
    """Drawings of the parts that a terminal shows; by default the figures."""
    picture: Callable[[Any], Drawings] = lambda _: ()
    """Drawings of which a terminal shows the first one above the tables, unless it has at most one point."""

    def figures(self, answer: Any) -> Figures:
        """Return the figures (charts) of an answer."""
        return self.draw(answer)

    def sketched(self, answer: Any, by: str) -> Drawings:
        """Return the drawings of parts `by` that a terminal shows."""
        return self.draw(answer) if self.sketch is None else self.sketch(answer, by)


@frozen(kw_only=True)
class Shape(Page):
    """Lines, parts and follow-up commands of an answer."""

    first: Callable[[Facts], str] = lambda _: ""
    """First line."""
    why: Callable[[Facts], Sequence[str]] = describe_beyond
    """Lines on why, most important first."""
    most_why: int | None = MOST_WHY
    """Maximum lines on why; None for all."""
    trust: Callable[[Facts], str] = lambda _: ""
    steps: tuple[str, ...] = ()
    opening: Callable[[Any], str] | None = None
    """Function of the answer that returns the first line, where it says what the facts lack."""
    limit: int = 6
    """Number of rows of long tables unless given."""

    def headline(self, answer: Any) -> str:
        """Return the first line."""
        return self.first(answer.facts) if self.opening is None else self.opening(answer)

    def explain(self, facts: Facts) -> list[str]:
        """Return the lines on why, most important first."""
        return list(self.why(facts))[: self.most_why]

    def document(
        self, answer: Any, *, limit: int | None = None, repeated: Sequence[str] = (), **chosen: Any
    ) -> Document:
        """Return the document with `limit` rows of long tables; commands repeat the options of the asked one."""
        facts, scope, most = answer.facts, answer.scope, self.limit if limit is None else limit
        values = self.choices(answer, limit=most, repeated=repeated, **chosen)
        first, details = self._choose_sections(answer, most, values)
        headline = add_lost(self.headline(answer), list_lost(scope, facts))
        reasons = self.explain(facts) if values.get("has_reasons", True) else []
        title = values.get("title") or title_runs(scope)
        named = [scope.spell(one) for one in scope.hardware] if scope.settings.hardware else []
        what, instead = describe_evaluation(scope.models, named)
        told = values.get("told")
        if told is None:
            told = (*describe_unread(scope.models), *([instead] if instead else []))
        shown = (*first, *(Section("", Text(line)) for line in told))
        said = Section("", Lines((str(title), headline, *reasons)))
        notes = [*self.notes(answer), *values.get("notes", ()), *list_notes(facts)]
        marked = add_marks(notes, (said, *shown, *details))
        sure = "; ".join(filter(None, (describe_trust(facts, self.trust(facts)), _describe_site(answer.site_values))))
        reasons = [one for one in reasons if one not in headline]
        texts = {"answer": headline, "insights": reasons, "how_sure": sure}
        steps = self._fill_steps(scope, repeated, values)
        show_own = partial(show_share, scope)
        return Document(
            title=bind(title, find_conditions(scope), values.get("beside", ""), dict([what]) if what else NOTHING),
            answer=headline,
            sections=tuple(section.with_shares(show_own) for section in shown),
            insights=tuple(reasons),
            is_decision=True,
            sure=sure,
            details=tuple(section.with_shares(show_own) for section in details),
            notes=marked,
            steps=steps,
            data={
                **{name: value for name, value in texts.items() if value},
                **answer.data(),
                **list_facts(facts),
                **self.words(answer),
                "notes": marked,
                "next_steps": steps,
            },
            table=getattr(answer, self.csv.format(**values)),
            tables=answer.tables,
            picture=partial(draw_picture, partial(self.picture, answer), answer),
        )

    def _choose_sections(
        self, answer: Any, most: int, values: Mapping[str, Any]
    ) -> tuple[list[Section], list[Section]]:
        """Return the sections of the first screen, and the others."""
        omitted, only = values.get("omitted", ()), values.get("limited")
        drawn = [
            (one, own)
            for one in self.parts
            if one.table not in omitted
            for own in one.show(answer, most if only in (None, one.table) else None, values)
        ]
        shown = values.get("shown")
        if shown is None:
            first = [own for part, own in drawn if part is drawn[0][0]]
        else:
            first = [own for name in shown for part, own in drawn if part.table == name]
        details = [own for _, own in drawn if not any(own is one for one in first)]
        return [attrs.evolve(own, title="") for own in first] if values.get("is_alone") else first, details

    def _fill_steps(self, scope: Scope, repeated: Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the follow-up commands; none for a model that only this program holds."""
        if any(map(is_module_name, scope.models)):
            return ()
        steps = [Template(one) for one in values.get("steps", self.steps) if one not in values.get("dropped", ())]
        filled = fill_steps(steps, values.get("row"), values.get("options", repeated), **values)
        made = [*values.get("asked", ()), *filled]
        return tuple(shlex.join(["joulemap", *_drop_foreign(step, scope)]) for step in made)
