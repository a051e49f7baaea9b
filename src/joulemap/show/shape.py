"""Pages of answers: what an answer says, shows and suggests is a record, a `Shape`, which this module carries out.

Lines select facts and hold a text; parts select a table of the answer and hold its columns; steps are texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import attrs

from joulemap.ask.engine import INFERENCE
from joulemap.ask.fact import Change, Choice, Entry, Facts, Quantity, Share, Turn
from joulemap.show.caveat import show_middle
from joulemap.show.choice import MOST_WHY, describe_beyond, describe_choices, finish
from joulemap.show.layout import lay_facts
from joulemap.show.page import Drawings, Figures, compose, draw_picture, fill_steps, lay_rows, tell_left_out
from joulemap.show.present.document import Block, Document, Section
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run
from joulemap.system.record import frozen

TAGS: Final = ("metric", "level", "axis", "cause", "kind", "case")
"""Fields of a fact that a selector names, after the type of the fact: `share pattern`, `change fusion`."""

RESERVED: Final = (
    "asked", "beside", "dropped", "has_reasons", "has_steps", "is_alone", "limited", "notes", "omitted",
    "options", "row", "shown", "steps", "title", "told",
)  # fmt: skip
"""Choices that a page reads itself (`Page.choices`). All others fill slots; one named like a table has its rows."""

NOTHING: Final[Mapping[str, Any]] = {}
EMPTY: Final = Template("")


class _Lacking:
    """Row without any value: a slot that no fact fills is empty, so that its optional part is left out."""

    def __getattr__(self, _name: str) -> None:
        return None


def select(facts: Facts, selector: str) -> list[Any]:
    """Return the facts that a selector names. The share of an only part is never said."""
    kind, *tags = selector.split()
    return [
        one
        for one in facts.facts
        if type(one).__name__.lower() == kind
        and {*tags} <= {getattr(one, name, None) for name in TAGS}
        and not (isinstance(one, Share) and one.total == 1)
    ]


def read(fact: Any, facts: Facts) -> dict[str, Any]:
    """Return the values of a fact for a text: its fields, named runs, and shown quantities."""
    fields = {one.name: getattr(fact, one.name) for one in attrs.fields(type(fact)) if one.name != "runs"}
    fields |= fields.get("values", {})
    names = [name_run(facts.runs[one]) for one in fact.runs if one in facts.runs]
    of = [name_run(facts.runs[one]) for one in (fact.of if isinstance(fact, Turn) else ())]
    change = {}
    if isinstance(fact, Change) and fact.before.value:
        saving = 1.0 - fact.after.value / fact.before.value
        change = {"saving": saving if saving >= 0.0 else None, "more": -saving if saving < 0.0 else None}
    shown = {
        name: show_middle(one) if isinstance(one, Quantity) and one.unit != "1" else getattr(one, "value", one)
        for name, one in fields.items()
    }
    named = {"run": next(iter(names), ""), "rival": next(iter(names[1:]), ""), "of": next(iter(of), "")}
    return {**shown, **change, **named}


@frozen
class Line:
    """Text on facts: one line per fact of the first selector, or with `each` one line on all of them.

    Further selectors add the values of their first fact of the same run and metric; `share time as time` adds those of
    any metric to slots such as `time_share`. `text` may map a tag of the fact to a text, and `more` returns further
    values of a fact.
    """

    text: Mapping[str, Template]
    selectors: tuple[str, ...]
    each: Template | None = None
    more: Callable[[Any], Mapping[str, Any]] = lambda _: NOTHING

    def tell(self, facts: Facts, **values: Any) -> Iterator[str]:
        """Yield the lines; none without a fact. `values` fill the slots that facts leave."""
        found = select(facts, self.selectors[0])
        choices, entries = facts.of(Choice), facts.of(Entry)
        several = {"own": name_run(facts.runs[entries[0].run])} if choices and entries else {}
        several["per"] = choices[0].per if choices else INFERENCE
        values = {**several, **values}
        rows = [{**values, **self._read_more(one, facts), **read(one, facts), **self.more(one)} for one in found]
        if self.each is not None and rows:
            yield self.text[""](_Lacking(), **{**rows[0], "each": [self.each(_Lacking(), **row) for row in rows]})
        elif self.each is None:
            yield from (self._choose(one)(_Lacking(), **row) for one, row in zip(found, rows, strict=True))

    def _choose(self, fact: Any) -> Template:
        values = getattr(fact, "values", NOTHING)
        tags = (str(getattr(fact, name, values.get(name, ""))) for name in TAGS)
        return next((self.text[tag] for tag in tags if tag and tag in self.text), self.text.get("", EMPTY))

    def _read_more(self, fact: Any, facts: Facts) -> dict[str, Any]:
        more: dict[str, Any] = {}
        for selector in self.selectors[1:]:
            wanted, _, prefix = selector.partition(" as ")
            found = next((read(one, facts) for one in select(facts, wanted) if _is_alike(one, fact, bool(prefix))), {})
            more |= {f"{prefix}_{name}" if prefix else name: value for name, value in found.items()}
        return more


def _is_alike(one: Any, fact: Any, is_named: bool) -> bool:
    metrics = {getattr(each, "metric", None) for each in (one, fact)} - {None}
    return one.runs[:1] == fact.runs[:1] and (is_named or len(metrics) < 2)


def line(text: str | Mapping[str, str], *selectors: str, each: str = "", **more: Any) -> Line:
    """Return the line of a text and the selectors of its facts."""
    texts = text if isinstance(text, Mapping) else {"": text}
    made = {tag: Template(one) for tag, one in texts.items()}
    return Line(made, selectors, Template(each) if each else None, **more)


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
    csv: str
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

    first: Line | Callable[[Facts], str] = lambda _: ""
    """First line of one run, or of facts without a choice; a function tells the whole line."""
    why: tuple[Line, ...] | Callable[[Facts], Sequence[str]] = ()
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
        if self.opening is not None:
            return self.opening(answer)
        return self.tell(answer.facts, **self.choices(answer, limit=self.limit, repeated=()))

    def tell(self, facts: Facts, **values: Any) -> str:
        """Return the first line of facts; `values` fill the slots that facts leave."""
        choices = facts.of(Choice)
        if not isinstance(self.first, Line):
            return self.first(facts)
        if choices:
            return describe_choices(choices[:1], facts.runs)
        return finish([*self.first.tell(facts, **values)] or [""])

    def explain(self, facts: Facts) -> list[str]:
        """Return the lines on why, most important first."""
        if not isinstance(self.why, tuple):
            return list(self.why(facts))[: self.most_why]
        return [*describe_beyond(facts), *(text for one in self.why for text in one.tell(facts))][: self.most_why]

    def document(
        self, answer: Any, *, limit: int | None = None, repeated: Sequence[str] = (), **chosen: Any
    ) -> Document:
        """Return the document with `limit` rows of long tables; commands repeat the options of the asked one."""
        facts, most = answer.facts, self.limit if limit is None else limit
        values = self.choices(answer, limit=most, repeated=repeated, **chosen)
        omitted, is_alone = values.get("omitted", ()), values.get("is_alone", False)
        only = values.get("limited")
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
        steps = [Template(one) for one in values.get("steps", self.steps) if one not in values.get("dropped", ())]
        options = values.get("options", repeated)
        made = compose(
            answer,
            facts,
            [attrs.evolve(own, title="") if is_alone else own for own in first],
            getattr(answer, self.csv.format(**values)),
            title=values.get("title"),
            headline=self.tell(facts, **values) if self.opening is None else self.opening(answer),
            reasons=self.explain(facts) if values.get("has_reasons", True) else (),
            trust=self.trust(facts),
            details=[own for _, own in drawn if not any(own is one for one in first)],
            notes=[*self.notes(answer), *values.get("notes", ())],
            steps=[*values.get("asked", ()), *fill_steps(steps, values.get("row"), options, **values)],
            beside=values.get("beside", ""),
            words=self.words(answer),
            told=values.get("told"),
        )
        return attrs.evolve(made, picture=partial(draw_picture, self.picture, answer))
