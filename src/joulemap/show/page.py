"""Documents of answers about runs: the subject, the tables, the reasons, the trust, and what to ask next."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from joulemap.ask.fact import Facts, Quantity
from joulemap.show.caveat import find_unpriced
from joulemap.show.choice import finish
from joulemap.show.layout import is_whole, lay, show_assumed
from joulemap.show.present.cell import PROJECTION_NOTE
from joulemap.show.present.document import EnergyCell, Grid, Section, Text
from joulemap.show.present.template import Template
from joulemap.show.refusal import count_left_out
from joulemap.show.run import find_conditions, title_runs
from joulemap.show.run_name import join_names
from joulemap.show.title import Title, bind
from joulemap.system.name import PROJECTED

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer
    from joulemap.ask.scope import Scope
    from joulemap.domain.figure import DrawingName, ShownName
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


def lay_rows(answer: Answer, table: Table[Any], columns: str, **shown: Any) -> Grid:
    """Return rows of a table as a grid, with projected hardware marked; `shown` holds further options of `lay`."""
    return lay(table, columns, projected=answer.projected, **shown)


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


def draw_picture(make: Callable[[Any], Drawings], answer: Answer) -> Sketch | None:
    """Return the first of the drawings of an answer as the chart of a first screen; None without any, or with one
    point.
    """
    drawings = make(answer)
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
