"""Documents of answers about runs: the subject, the tables, the reasons, the trust, and what to ask next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import attrs

from joulemap.ask.fact import Facts, Quantity
from joulemap.show.caveat import describe_trust, find_unpriced, list_notes
from joulemap.show.choice import finish
from joulemap.show.layout import is_whole, show_assumed
from joulemap.show.present.cell import PROJECTION_NOTE
from joulemap.show.present.document import Document, EnergyCell, Grid, Lines, Section, Text
from joulemap.show.present.template import Template
from joulemap.show.refusal import count_left_out
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.run_name import join_names
from joulemap.show.title import Title, bind
from joulemap.system.name import PROJECTED, is_module_name
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer, RunAnswer
    from joulemap.ask.scope import Scope
    from joulemap.domain.figure import DrawingName, ShownName
    from joulemap.domain.settings import Division
    from joulemap.domain.table import Table
    from joulemap.show.figure.figure import Drawing, Figure
    from joulemap.show.present.sketch import Sketch

Figures: TypeAlias = "tuple[Figure, ...]"
Drawings: TypeAlias = "tuple[Drawing, ...]"

LOST: Final = Template("{line}; {names} left out")
"""First line with named chips that run nothing of what was asked."""

STORED: Final = ("query", "db")
"""Commands about stored runs."""

PICTURE_ROWS: Final = 6
"""Lines of the chart of a first screen, without its axes."""

NO_TEXTS: Final[Mapping[str, str]] = {}

AnyAnswer = TypeVar("AnyAnswer", bound="Answer")


@frozen(kw_only=True)
class Asked:
    """Options that select what people see of an answer; a page takes those that it knows."""

    limit: int | None = None
    """Number of rows of long tables."""
    repeated: Sequence[str] = ()
    """Options that follow-up commands repeat."""
    by: Division | None = None
    """Parts that the first table lists."""
    again: Sequence[str] = ()
    """Models and options of the command, in place of the repeated ones."""
    depth: int | None = None
    """Levels of modules."""

    def most(self, usual: int) -> int:
        """Return the number of rows of long tables, `usual` unless it was selected."""
        return usual if self.limit is None else self.limit


def draw_nothing(_answer: Any) -> tuple[()]:
    """Return no figures."""
    return ()


@frozen(kw_only=True)
class Page(Generic[AnyAnswer]):
    """Functions that show one type of answers."""

    draw: Callable[[AnyAnswer, Asked], Document]
    draw_figures: Callable[[AnyAnswer], Figures] = draw_nothing
    sketch: Callable[[AnyAnswer, Division], Drawings] | None = None
    """Drawings of the parts that a terminal shows; by default the figures."""

    def sketched(self, answer: AnyAnswer, by: Division) -> Drawings:
        """Return the drawings of parts `by` that a terminal shows."""
        return self.draw_figures(answer) if self.sketch is None else self.sketch(answer, by)


def compose(
    answer: Answer,
    sections: Iterable[Section],
    table: Table[Any],
    *,
    title: str = "",
    headline: str = "",
    reasons: Iterable[str] = (),
    details: Iterable[Section] = (),
    notes: Iterable[str] = (),
    steps: Iterable[Sequence[str]] = (),
    words: Mapping[str, Any] = NO_TEXTS,
    facts: Facts | None = None,
    trust: str = "",
    picture: Callable[[], Drawings] = tuple,
) -> Document:
    """Return the document of an answer that is not about runs.

    `table` is that of csv; `words` are further texts for machine formats. With `facts` the first line is a decision
    from them, and they tell the trust unless `trust` does. Of the drawings of `picture` a terminal shows the first one
    above the tables, unless it has at most one point.
    """
    shown, hidden, own = tuple(sections), tuple(details), answer.data()
    sure = trust or ("" if facts is None else describe_trust(facts))
    decided = {} if facts is None else {"answer": headline, "how_sure": sure, **list_facts(facts)}
    return Document(
        title=title,
        answer=headline,
        sections=shown,
        insights=tuple(reasons),
        is_decision=facts is not None,
        sure=sure,
        details=hidden,
        notes=add_marks([*notes], (*shown, *hidden)),
        steps=tuple(dict.fromkeys(shlex.join(("joulemap", *words)) for words in steps)),
        data={**own, **words, **decided} if words or decided else own,  # a list has no texts beside it
        table=table,
        tables=answer.tables,
        picture=partial(draw_picture, picture, answer),
    )


def compose_runs(
    answer: RunAnswer,
    facts: Facts,
    sections: Iterable[Section],
    table: Table[Any],
    *,
    headline: str,
    reasons: Iterable[str] = (),
    trust: str = "",
    details: Iterable[Section] = (),
    title: Title | None = None,
    beside: str = "",
    told: Iterable[str] | None = None,
    notes: Iterable[str] = (),
    steps: Iterable[Sequence[str]] = (),
    words: Mapping[str, Any] = NO_TEXTS,
    picture: Callable[[], Drawings] = tuple,
) -> Document:
    """Return the document of an answer about runs.

    `beside` follows the boundary of the title, by default that of the runs; the lines `told` below the tables say by
    default what a model means. Others as for `compose`.
    """
    from joulemap.ask.answer import describe_evaluation, describe_unread

    scope = answer.scope
    named = [scope.spell(one) for one in scope.hardware] if scope.settings.hardware else []
    what, instead = describe_evaluation(scope.models, named)
    if told is None:
        told = (*describe_unread(scope.models), *([instead] if instead else []))
    shown, hidden = (*sections, *(Section("", Text(line)) for line in told)), tuple(details)
    subject, listed = title or title_runs(scope), [*reasons]
    line = add_lost(headline, list_lost(scope, facts))
    said = Section("", Lines((str(subject), line, *listed)))
    marked = add_marks([*notes, *list_notes(facts)], (said, *shown, *hidden))
    grids = [one for part in shown for one in part.blocks if isinstance(one, Grid)]
    drawn = [one.kind for grid in grids for one in grid.pictures if not one.yields]
    sure = describe_trust(facts, trust, is_drawn="interval" in drawn)
    sure = "; ".join(filter(None, (sure, _describe_site(answer.site_values))))
    insights = tuple(one for one in listed if one not in line)
    texts = {"answer": line, "insights": [*insights], "how_sure": sure}
    is_held = any(map(is_module_name, scope.models))  # only this program has the model
    written = () if is_held else tuple(shlex.join(["joulemap", *_drop_foreign(step, scope)]) for step in steps)
    show_own = partial(show_share, scope)
    return Document(
        title=bind(subject, find_conditions(scope), beside, dict([what]) if what else NO_TEXTS),
        answer=line,
        sections=tuple(section.with_shares(show_own) for section in shown),
        insights=insights,
        is_decision=True,
        sure=sure,
        details=tuple(section.with_shares(show_own) for section in hidden),
        notes=marked,
        steps=written,
        data={
            **{name: value for name, value in texts.items() if value},
            **answer.data(),
            **list_facts(facts),
            **words,
            "notes": marked,
            "next_steps": written,
        },
        table=table,
        tables=answer.tables,
        picture=partial(draw_picture, picture, answer),
    )


def first_and_rest(parts: Iterable[Sequence[Section]]) -> tuple[Sequence[Section], list[Section]]:
    """Return the sections of the first part that has some, and those of the other parts."""
    first, *others = [some for some in parts if some] or [()]
    return first, [one for some in others for one in some]


def count_left_out_below(scope: Scope, sections: Sequence[Section]) -> list[Section]:
    """Return sections with a line directly below the first that counts what has no result."""
    below = tell_left_out(scope)
    return [attrs.evolve(one, blocks=(*one.blocks, *below), is_tight=True) for one in sections[:1]] + [*sections[1:]]


def _drop_foreign(step: Sequence[str], scope: Scope) -> list[str]:
    """Return a follow-up command without changes of hardware that it does not name."""
    named = {name for word in step for name in word.split(",")}
    foreign = tuple(f"{name}:" for name in map(scope.spell, scope.hardware) if name not in named)
    lost = {at for at, word in enumerate(step) if step[at - 1] == "--set" and word.startswith(foreign)}
    return [word for at, word in enumerate(step) if not {at, at + 1} & lost]


def _describe_site(values: Mapping[str, Mapping[str, str]]) -> str:
    """Return where the values of a site stand, such as `site: joulemap.toml (grid de, pue 1.2)`; empty for none."""
    by_place: dict[str, list[str]] = {}
    for name, one in values.items():
        by_place.setdefault(one["from"], []).append(f"{name} {one['value']}")
    places = ", ".join(f"{place} ({', '.join(named)})" for place, named in by_place.items())
    return f"site: {places}" if places else ""


def tell_left_out(scope: Scope) -> tuple[Text, ...]:
    """Return a line for below a table that counts what was left out."""
    budget = scope.selection.budget
    line = count_left_out(scope.refusals_by_reason, budget.limit if budget is not None else "")
    return (Text(line),) if line else ()


def list_lost(scope: Scope, facts: Facts) -> dict[str, str]:
    """Return named chip -> reason for which no run of it has a result or a price; none if no run has a result."""
    ran = {scope.outlines[one].hardware for one in scope.evaluated_ids}
    lost = {chip: one.reason for one in scope.refusals_by_reason for chip in one.hardware if chip not in ran}
    return {**lost, **find_unpriced(facts)} if scope.settings.hardware and ran else {}


def add_lost(line: str, lost: Mapping[str, str]) -> str:
    """Return a first line with the named chips that run nothing, and why if that is one short reason."""
    if not lost or not line:
        return line
    head, (name, reason) = line.removesuffix("."), next(iter(lost.items()))
    told = [f"{head}; {reason}"] if len(lost) == 1 and name in reason else []
    return finish([*told, LOST(line=head, names=join_names(sorted(lost)))])


def show_share(scope: Scope, energy: EnergyCell) -> str:
    """Return the assumed share of an energy for a table cell; empty for a share up to a third, or for a part of a
    run.
    """
    whole = scope.assumed.get(energy.run_id)
    is_part = whole is not None and energy.field == "energy_j" and not is_whole(whole, energy.value)
    return "" if is_part else show_assumed(whole)


def draw_figure(
    scope: Scope,
    name: ShownName,
    table: Table[Any],
    subject: Title | None = None,
    facts: str = "",
    texts: Mapping[str, str] = NO_TEXTS,
) -> Figure:
    """Return a figure of rows; `subject` defaults to the scope's title. See `make_figure`."""
    from joulemap.show.figure.figure import make_figure

    line = bind(subject or title_runs(scope), find_conditions(scope))
    made = make_figure(name, table, line, facts, texts)
    return attrs.evolve(made, projected=scope.unavailable, about=str(subject.about) if subject is not None else "")


def sketch(name: DrawingName, table: Table[Any], texts: Mapping[str, str] = NO_TEXTS) -> Drawing:
    """Return a text drawing of rows; see `make_drawing`."""
    from joulemap.show.figure.figure import make_drawing

    return make_drawing(name, table, texts)


def draw_picture(make: Callable[[], Drawings], answer: Answer) -> Sketch | None:
    """Return the first of the drawings of an answer as the chart of a first screen; None without any, or with one
    point.
    """
    drawings = make()
    if not drawings:
        return None
    from joulemap.show.figure.sketch import make_sketches
    from joulemap.show.present.sketch import Chart

    for made in make_sketches(drawings[0], PICTURE_ROWS, answer.projected):
        assert isinstance(made, Chart)
        if sum(len(curve.points) for curve in made.curves) > 1:
            return attrs.evolve(made, title="", rows=PICTURE_ROWS)
    return None


def fill_steps(steps: Iterable[Template], row: object, repeated: Sequence[str], /, **values: Any) -> list[list[str]]:
    """Return follow-up commands, each with the options of the original command in the slot `repeated` or at the end; a
    command of `STORED` repeats only `--db`. A command that is an optional part as a whole is left out without a value.
    """
    filled = [(step.words(row, **values, repeated=repeated), step) for step in steps]
    stored = repeated[repeated.index("--db") :] if "--db" in repeated else ()
    return [
        words if any(name == "repeated" for name, _ in step.slots)
        else [*words, *(stored if words[0] in STORED else repeated)]
        for words, step in filled
        if words
    ]  # fmt: skip


def drop_options(repeated: Sequence[str], names: Collection[str]) -> list[str]:
    """Return repeated options without the named options and their values."""
    return [
        word
        for index, word in enumerate(repeated)
        if word not in names and not (index and repeated[index - 1] in names)
    ]


def add_marks(notes: Sequence[str], sections: Iterable[Section]) -> tuple[str, ...]:
    """Return the notes, with an explanation of the projection mark if a section or a note shows the mark."""
    is_marked = any(PROJECTED in text for section in sections for text in section.texts)
    return (*notes, *((PROJECTION_NOTE,) if is_marked and PROJECTION_NOTE not in notes else ()))


def to_plain(value: Any) -> Any:
    """Return a value of a fact as a mapping, list, number or text; empty fields are left out."""
    if isinstance(value, Quantity):
        width = {"half_width": value.half_width} if value.half_width else {}
        return {"value": to_plain(value.value), "unit": value.unit, **width}
    if attrs.has(type(value)):
        fields = {one.name: getattr(value, one.name) for one in attrs.fields(type(value))}
        return {name: to_plain(one) for name, one in fields.items() if one not in (None, (), "", {})}
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    if isinstance(value, dict):
        return {str(name): to_plain(one) for name, one in value.items()}
    return [to_plain(one) for one in value] if isinstance(value, tuple | list) else value


def list_facts(facts: Facts) -> dict[str, Any]:
    """Return what an answer asks, its runs, and its facts by type."""
    listed = [{"fact": type(one).__name__.lower(), **to_plain(one)} for one in facts.facts]
    return {"asked": list(facts.asked), "runs": to_plain(dict(facts.runs)), "facts": listed}
