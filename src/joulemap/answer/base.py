"""Base classes of answers: tables of typed rows, and a document built from them."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import attrs

from joulemap.answer.engine import describe_evaluation, describe_unread
from joulemap.answer.layout import fill, is_whole, lay, show_assumed
from joulemap.answer.run import find_conditions, list_scope, title_runs
from joulemap.domain.settings import RunDivision
from joulemap.domain.table import Table
from joulemap.present.cell import PROJECTION_NOTE, mark_projected
from joulemap.present.document import Document, EnergyCell, Grid, Lines, Section, Text, draw_columns
from joulemap.present.format import TABLE, write
from joulemap.present.template import Template
from joulemap.show.refusal import count_left_out, describe_left_out
from joulemap.show.title import Title, bind
from joulemap.system.name import PROJECTED, is_module_name
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.check import CheckedRow, Checks
    from joulemap.ask.fact import Facts, Refusal
    from joulemap.ask.scope import Scope
    from joulemap.figure.figure import Drawing, Figure
    from joulemap.figure.spec import DrawingName, ShownName
    from joulemap.store.connection import Connection

Figures: TypeAlias = "tuple[Figure, ...]"
Drawings: TypeAlias = "tuple[Drawing, ...]"

NO_TEXTS: Final[Mapping[str, str]] = {}


@frozen(kw_only=True, repr=False)
class Answer:
    """Result of a question; options of `document` select what people see of it."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Query results behind the answer, with their SQL."""
        return tuple(self.own_tables.values())

    @property
    def own_tables(self) -> dict[str, Table[Any]]:
        """Name -> table, for every field of the answer that holds a table."""
        values = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return {name: value for name, value in values.items() if isinstance(value, Table)}

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        """Remove the `__repr__` that attrs generated, so that every answer prints as text."""
        if "__repr__" in vars(cls):
            del cls.__repr__

    def document(self) -> Document:
        """Return the document for display and programs; its options select what people see."""
        raise NotImplementedError

    def __repr__(self) -> str:
        places = ("`.document().notes`", "`.document().details`")
        shown = _without_steps(self.document()).on_screen(notes=False, details=False, hints=places)
        return write(shown, TABLE, shutil.get_terminal_size().columns)

    @property
    def projected(self) -> frozenset[str]:
        """Names of hardware that can be neither bought nor rented, such as projections; output marks them."""
        return frozenset()

    def figures(self) -> Figures:
        """Return the figures (charts) of the answer; empty if it has none."""
        return ()

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return the text drawings that a terminal shows; by default, the figures themselves are drawn as text."""
        return self.figures()

    def _lay(self, table: Table[Any], columns: str, **shown: Any) -> Grid:
        """Return rows of a table as a grid, with projected hardware marked; `shown` holds further options of `lay`."""
        return lay(table, columns, projected=self.projected, **shown)

    def _fill(self, template: Template, row: object = None, /, **values: Any) -> str:
        """Return the text of a template, with projected hardware of the row marked."""
        return fill(template, row, self.projected, **values)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: figures if vl-convert-python is installed, then the tables."""
        from joulemap.figure.convert import is_installed
        from joulemap.figure.figure import draw_svg

        drawn = [draw_svg(figure) for figure in self.figures()] if is_installed() else []
        figures = "".join(f"<figure>{one}</figure>\n" for one in drawn)
        return f"{figures}{write(_without_steps(self.document()), 'html')}"

    def to_arrow(self) -> Any:
        """Return the main table as a `pyarrow.Table`; see `Table.to_arrow`."""
        return self.document().table.to_arrow()

    def to_pandas(self) -> Any:
        """Return the main table as a `pandas.DataFrame`; MissingPackageError without pandas."""
        return self.document().table.to_pandas()

    def to_polars(self) -> Any:
        """Return the main table as a `polars.DataFrame`; MissingPackageError without polars."""
        return self.document().table.to_polars()

    about: ClassVar[tuple[str, ...]] = ()
    """Names of attributes that machine formats list before the tables."""

    def _read_about(self) -> dict[str, Any]:
        return {name: _to_plain(getattr(self, name)) for name in self.about}

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: the question and every table.

        The single row of a table `totals` becomes a record `total`.
        """
        rows: dict[str, Any] = {name: table.records() for name, table in self.own_tables.items()}
        total = {"total": rows.pop("totals")[0]} if "totals" in rows else {}
        return {**self._read_about(), **total, **rows}


_TABLE: Final = re.compile(r"Table\[(\w+)\]")
"""Pattern of the type annotation of a field that holds the rows of a query."""


NO_RECORDS: Final[Mapping[str, type[Any]]] = {}


def fetch_tables(
    connection: Connection,
    answer: type[Answer],
    but: Collection[str] = (),
    *,
    more: Mapping[str, type[Any]] = NO_RECORDS,
    **given: Any,
) -> dict[str, Table[Any]]:
    """Fetch every table of an answer class; return field -> table. The type of a field names the query.

    `but` lists fields that are not fetched. `more` maps optional fields to their record types. `given` holds
    parameters; each query receives those that it declares. Raises like `fetch_all`.
    """
    from joulemap.store.query import fetch_all

    names = {name: match[1] for field in attrs.fields(answer) if (match := _TABLE.fullmatch(str(field.type)))
             and (name := field.name) not in but}  # fmt: skip
    known = vars(sys.modules[answer.__module__])
    return fetch_all(connection, {**{name: known[record] for name, record in names.items()}, **more}, **given)


@frozen(kw_only=True)
class RunAnswer(Answer):
    """Result of a question about runs."""

    scope: Scope

    @property
    def projected(self) -> frozenset[str]:
        """Names of hardware that can be neither bought nor rented, such as projections; output marks them."""
        return self.scope.unavailable

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Query results behind the answer, with their SQL."""
        return (*self.own_tables.values(), self.scope.remarks, self.scope.calibrations)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: scope, and every row of every table."""
        return {**self._read_about(), **list_scope(self.scope), **super().data()}

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs that `--check` measures; empty for an answer without that option."""
        return ()

    def find_checks(self) -> Checks:
        """Return the commands of benchmark tools that measure the runs of the answer."""
        from joulemap.answer.check import Checks, check_runs

        rows, scope = self.checked, self.scope
        models = {getattr(row, "model", scope.models[0]): None for row in rows}
        return Checks.join(
            check_runs(
                model,
                [row for row in rows if getattr(row, "model", model) == model],
                spell=scope.spell,
                matmul_precision=scope.settings.matmul_precision,
            )
            for model in models
        )

    def _bind(self, title: Title | None = None, meanings: Mapping[str, str] = NO_TEXTS) -> str:
        """Return a subject line with the conditions of the runs; by default that of the scope."""
        return bind(title or title_runs(self.scope), find_conditions(self.scope), self._beside_boundary, meanings)

    def _count_left_out(self) -> tuple[Text, ...]:
        """Return a line for below a table: how much was left out; the notes have the reasons."""
        return self._tell_left_out(count_left_out)

    def _describe_left_out(self) -> tuple[Text, ...]:
        """Return a line for below a table: what was left out, with one reason of each kind."""
        return self._tell_left_out(describe_left_out)

    def _tell_left_out(self, describe: Callable[[Sequence[Refusal], str], str]) -> tuple[Text, ...]:
        budget = self.scope.selection.budget
        line = describe(self.scope.refusals_by_reason, budget.limit if budget is not None else "")
        return (Text(line),) if line else ()

    def _mark(self, text: str) -> str:
        """Return a text that begins with a chip's id, marked if the chip can be neither bought nor rented."""
        return mark_projected(text, self.projected)

    def _show_share(self, energy: EnergyCell) -> str:
        """Return the assumed share of an energy for a table cell; empty for a share up to a third, or for a part of a
        run.
        """
        whole = self.scope.assumed.get(energy.run_id)
        is_part = whole is not None and energy.field == "energy_j" and not is_whole(whole, energy.value)
        return "" if is_part else show_assumed(whole)

    @property
    def _beside_boundary(self) -> str:
        """Text after the boundary on an additional part of the values, such as ` plus host`; empty by default."""
        return ""

    def _lay_out(
        self,
        title: Title,
        sections: Sequence[Section],
        table: Table[Any],
        *,
        answer: str,
        insights: Sequence[str],
        heading: str = "",
        is_decision: bool = False,
        sure: str,
        details: Sequence[Section],
        notes: tuple[str, ...],
        steps: tuple[str, ...],
        meanings: Mapping[str, str] = NO_TEXTS,
        data: Mapping[str, Any] = NO_TEXTS,
    ) -> Document:
        """Return the document of these texts and sections, with assumed shares in tables; `data` is for programs."""
        texts = {"answer": answer, "insights": list(insights), "how_sure": sure}
        return Document(
            title=self._bind(title, meanings),
            answer=answer,
            sections=tuple(section.with_shares(self._show_share) for section in sections),
            insights=tuple(insights),
            heading=heading,
            is_decision=is_decision,
            sure=sure,
            details=tuple(section.with_shares(self._show_share) for section in details),
            notes=notes,
            steps=steps,
            data={
                **{name: value for name, value in texts.items() if value},
                **self.data(),
                **data,
                "notes": notes,
                "next_steps": steps,
            },
            table=table,
            tables=self.tables,
        )

    def _compose_facts(
        self,
        facts: Facts,
        sections: Sequence[Section],
        table: Table[Any],
        *,
        title: Title | None = None,
        answer: str,
        reasons: Sequence[str] = (),
        trust: str = "",
        details: Sequence[Section] = (),
        notes: Sequence[str] = (),
        steps: Iterable[Sequence[str]],
        told: Sequence[str] | None = None,
    ) -> Document:
        """Return the document of facts: the decision, sections, reasons, trust, notes and follow-up commands.

        `title` defaults to the title of the scope; `notes` precede those of caveats and settings. `told` are lines
        below the table, by default those on the model's name. `trust` begins the line on trust in place of what ranges
        mean.
        """
        from joulemap.show.caveat import describe_trust, list_notes
        from joulemap.show.plain import list_facts

        is_held = any(map(is_module_name, self.scope.models))
        written = () if is_held else tuple(shlex.join(["joulemap", *step]) for step in steps)
        named = [self.scope.spell(one) for one in self.scope.hardware] if self.scope.settings.hardware else []
        what, instead = describe_evaluation(self.scope.models, named)
        title = title or title_runs(self.scope)
        if told is None:
            told = (*describe_unread(self.scope.models), *([instead] if instead else []))
        shown = (*sections, *(Section("", Text(line)) for line in told))
        notes = [*notes, *list_notes(facts)]
        return self._lay_out(
            title,
            shown,
            table,
            answer=answer,
            insights=reasons,
            is_decision=True,
            sure=describe_trust(facts, trust),
            details=details,
            notes=add_marks(notes, (Section("", Lines((str(title), answer, *reasons))), *shown, *details)),
            steps=written,
            meanings=dict([what]) if what else NO_TEXTS,
            data=list_facts(facts),
        )

    def _draw_figure(
        self,
        name: ShownName,
        table: Table[Any],
        subject: Title | None = None,
        facts: str = "",
        texts: Mapping[str, str] = NO_TEXTS,
    ) -> Figure:
        """Return a figure of rows; `subject` defaults to the scope's title. See `make_figure`."""
        from joulemap.figure.figure import make_figure

        line = bind(subject or title_runs(self.scope), find_conditions(self.scope))
        made = make_figure(name, table, line, facts, texts)
        return attrs.evolve(
            made, projected=self.scope.unavailable, about=str(subject.about) if subject is not None else ""
        )

    def _sketch(self, name: DrawingName, table: Table[Any], texts: Mapping[str, str] = NO_TEXTS) -> Drawing:
        """Return a text drawing of rows; see `make_drawing`."""
        from joulemap.figure.figure import make_drawing

        return make_drawing(name, table, texts)

    def _fill_steps(
        self, steps: Iterable[Template], row: object, repeated: Sequence[str], /, **values: Any
    ) -> list[list[str]]:
        """Return follow-up commands, each with the options of the original command; a `query` command repeats only
        `--db`.
        """
        filled = (step.words(row, **values) for step in steps)
        return [[*words, *(keep_database(repeated) if words[0] == "query" else repeated)] for words in filled]

    def _show(self, table: Table[Any], columns: Sequence[str], *, keep: Sequence[str] = ()) -> Grid:
        """Return a grid of these columns of a table, with projected hardware marked; an empty table gives an empty
        grid.
        """
        return draw_columns(table, columns=columns, keep=keep, is_bare=True, projected=self.scope.unavailable)


def _to_plain(value: Any) -> Any:
    """Return a value of an answer for machine formats; a record becomes a mapping."""
    if isinstance(value, tuple):
        return tuple(map(_to_plain, value))
    return attrs.asdict(value) if attrs.has(type(value)) else value


def _without_steps(document: Document) -> Document:
    """Return a document without its shell commands; Python callers use methods instead."""
    return attrs.evolve(document, steps=())


def keep_database(repeated: Sequence[str]) -> list[str]:
    """Return `--db` and its value from repeated options; a command on a stored run needs no other option."""
    return list(repeated[repeated.index("--db") :]) if "--db" in repeated else []


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
