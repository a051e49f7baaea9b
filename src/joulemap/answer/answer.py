"""An answer: tables of typed rows, and a document made of them."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import attrs

from joulemap.answer.engine import describe_evaluation, describe_unread
from joulemap.answer.layout import Cell, lay
from joulemap.answer.scope import Scope
from joulemap.domain.module import is_module_name
from joulemap.domain.name import PROJECTED
from joulemap.domain.settings import RunDivision
from joulemap.domain.table import Table
from joulemap.present.cell import PROJECTION_NOTE
from joulemap.present.document import Document, Grid, Lines, Section, draw_columns
from joulemap.present.format import TABLE, write
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.figure.figure import Drawing, Figure
    from joulemap.figure.spec import DrawingName, ShownName
    from joulemap.store.connection import Connection

Figures: TypeAlias = "tuple[Figure, ...]"
Drawings: TypeAlias = "tuple[Drawing, ...]"

NO_TEXTS: Final[Mapping[str, str]] = {}


@frozen(kw_only=True, repr=False)
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

    @classmethod
    def __attrs_init_subclass__(cls) -> None:
        """Show every answer as text, not as its fields, which attrs has just made a text of."""
        if "__repr__" in vars(cls):
            del cls.__repr__

    def document(self) -> Document:
        """Return it for people and programs; each answer has options of what people see of it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        places = ("`.document().notes`", "`.document().details`")
        shown = _without_steps(self.document()).on_screen(notes=False, details=False, hints=places)
        return write(shown, TABLE, shutil.get_terminal_size().columns)

    @property
    def projected(self) -> frozenset[str]:
        """Hardware that is marked: projections, estimates, what cannot be bought."""
        return frozenset()

    def figures(self) -> Figures:
        """Return what is drawn of it; empty where nothing is."""
        return ()

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return what is drawn of it in characters: its figures unless it says else; given the table that is shown."""
        return self.figures()

    def _lay(
        self,
        table: Table[Any],
        columns: str,
        *,
        keep: str = "",
        ranked: str = "",
        limit: int | None = None,
        noun: str = "rows",
        stays: Callable[[Any], bool] | None = None,
        **cells: Cell,
    ) -> Grid:
        """Return rows of a table as people read them, its hardware marked; see `lay`."""
        return lay(
            table,
            columns,
            keep=keep,
            ranked=ranked,
            limit=limit,
            noun=noun,
            stays=stays,
            projected=self.projected,
            cells=cells,
        )

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it: drawn where vl-convert-python is installed, with its tables below."""
        from joulemap.figure.convert import is_installed
        from joulemap.figure.figure import draw_svg

        drawn = [draw_svg(figure) for figure in self.figures()] if is_installed() else []
        figures = "".join(f"<figure>{one}</figure>\n" for one in drawn)
        return f"{figures}{write(_without_steps(self.document()), 'html')}"

    def to_arrow(self) -> Any:
        """Return its main table as a `pyarrow.Table`; see `Table.to_arrow`."""
        return self.document().table.to_arrow()

    def to_pandas(self) -> Any:
        """Return its main table as a `pandas.DataFrame`; MissingPackageError without pandas."""
        return self.document().table.to_pandas()

    def to_polars(self) -> Any:
        """Return its main table as a `polars.DataFrame`; MissingPackageError without polars."""
        return self.document().table.to_polars()

    about: ClassVar[tuple[str, ...]] = ()
    """Attributes that programs get before the tables."""

    def _tell_about(self) -> dict[str, Any]:
        return {name: _tell(getattr(self, name)) for name in self.about}

    def data(self) -> dict[str, Any]:
        """Return what programs get: what was asked, and every row of every table; `totals` has one, `total`."""
        rows: dict[str, Any] = {name: table.records() for name, table in self.own_tables.items()}
        total = {"total": rows.pop("totals")[0]} if "totals" in rows else {}
        return {**self._tell_about(), **total, **rows}


_TABLE: Final = re.compile(r"Table\[(\w+)\]")
"""How the type of a field is written that is a table of a query."""


def fetch_tables(
    connection: Connection, answer: type[Answer], but: Collection[str] = (), **given: Any
) -> dict[str, Table[Any]]:
    """Return field -> its rows, of each table of an answer, whose type says its query; `but` are found otherwise.

    Each query takes those of the parameters that it declares; raises as `fetch_all`.
    """
    from joulemap.store.query import fetch_all

    names = {name: found[1] for field in attrs.fields(answer) if (found := _TABLE.fullmatch(str(field.type)))
             and (name := field.name) not in but}  # fmt: skip
    known = vars(sys.modules[answer.__module__])
    return fetch_all(connection, {name: known[record] for name, record in names.items()}, **given)


@frozen(kw_only=True)
class RunAnswer(Answer):
    """What a question about runs hands out."""

    scope: Scope

    @property
    def projected(self) -> frozenset[str]:
        """Hardware that is marked: projections, estimates, what cannot be bought."""
        return self.scope.projected

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The queries behind it, with their SQL."""
        return (*self.own_tables.values(), self.scope.caveats, self.scope.calibrations)

    def data(self) -> dict[str, Any]:
        """Return what programs get: what it is about, and every row of every table."""
        return {**self._tell_about(), **self.scope.data(), **super().data()}

    def _describe_assumed(self, headline: str, chosen: Collection[int] | None) -> str:
        """Return how much of the energies in a headline is assumed; empty where it is a third at most."""
        return self.scope.describe_assumed(headline, chosen)

    def _warn_unhosted(self, headline: str, chosen: Collection[int] | None) -> str:
        """Return a clause on hosts that a choice leaves out; empty for an answer that chooses nothing."""
        told = "" if chosen is None else self.scope.warn_unhosted(headline)
        return f"{told}; `recommend` ranks with hosts" if told else ""

    def _compose(
        self,
        title: str,
        sections: Sequence[Section],
        table: Table[Any],
        *,
        answer: str = "",
        insights: Sequence[str] = (),
        heading: str = "",
        sure: str | None = None,
        details: Sequence[Section] = (),
        notes: Sequence[str] | None = None,
        steps: Iterable[Sequence[str]],
        chosen: Collection[int] | None = None,
    ) -> Document:
        """Return a document of what decides, what is told besides, and the commands that lead on from it.

        `chosen` are the runs that `answer` names, where it chooses among the runs of each hardware; None for all.

        How sure it is follows from the spread of the runs, and its notes from their scope, unless they are given.
        There are no commands about a module in a program's memory, which none knows.
        """
        is_held = any(map(is_module_name, self.scope.models))
        written = () if is_held else tuple(shlex.join(["joulemap", *step]) for step in steps)
        sure = self.scope.say_spread() if sure is None else sure
        notes = self.scope.describe_refusals() + self.scope.describe() if notes is None else notes
        found = (
            self.scope.warn_unlisted(answer),
            self._describe_assumed(answer, chosen),
            self._warn_unhosted(answer, chosen),
        )
        if caveats := list(filter(None, found)):
            answer = ". ".join((answer.removesuffix("."), *(f"{one[0].upper()}{one[1:]}" for one in caveats))) + "."
        told = add_marks(notes, (Section("", Lines((title, answer, *insights))), *sections, *details))
        named = [self.scope.spell(one) for one in self.scope.hardware] if self.scope.settings.hardware else []
        what, instead = describe_evaluation(self.scope.models, named)
        unread = [line for line in describe_unread(self.scope.models) if line not in title]
        insights = [*unread, *([instead] if instead else []), *self.scope.tell_fallen(), *insights]
        if what:
            title = title.replace(what[0], f"{what[0]} ({what[1]})", 1)
        said = {"answer": answer, "insights": list(insights), "how_sure": sure}
        return Document(
            title=self.scope.bounded(title),
            answer=answer,
            sections=tuple(section.with_shares(self.scope.show_assumed) for section in sections),
            insights=tuple(insights),
            heading=heading,
            sure=sure,
            details=tuple(section.with_shares(self.scope.show_assumed) for section in details),
            notes=told,
            steps=written,
            data={
                **{name: value for name, value in said.items() if value},
                **self.data(),
                "notes": told,
                "next_steps": written,
            },
            table=table,
            tables=self.tables,
        )

    def _draw_figure(
        self,
        name: ShownName,
        table: Table[Any],
        subject: str = "",
        facts: str = "",
        texts: Mapping[str, str] = NO_TEXTS,
    ) -> Figure:
        """Return rows as a figure, about what was asked unless `subject` says else; see `make_figure`."""
        from joulemap.figure.figure import make_figure

        return make_figure(name, table, self.scope.bounded(subject or self.scope.title), facts, texts)

    def _sketch(self, name: DrawingName, table: Table[Any], texts: Mapping[str, str] = NO_TEXTS) -> Drawing:
        """Return rows as a drawing in characters; see `make_drawing`."""
        from joulemap.figure.figure import make_drawing

        return make_drawing(name, table, texts)

    def _show(self, table: Table[Any], columns: Sequence[str], *, keep: Sequence[str] = ()) -> Grid:
        """Return these columns of a table of several runs, its hardware marked; nothing without rows."""
        return draw_columns(table, columns=columns, keep=keep, is_bare=True, projected=self.scope.projected)


def _tell(value: Any) -> Any:
    """Return a value of an answer as programs get it: a record as a mapping."""
    if isinstance(value, tuple):
        return tuple(map(_tell, value))
    return attrs.asdict(value) if attrs.has(type(value)) else value


def _without_steps(document: Document) -> Document:
    """Return a document without the commands that lead on: a program asks methods, of a database of its own."""
    return attrs.evolve(document, steps=())


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


def add_marks(notes: Sequence[str], sections: Iterable[Section]) -> tuple[str, ...]:
    """Return the notes of sections; a mark of projections that is shown is explained."""
    is_marked = any(PROJECTED in text for section in sections for text in section.texts)
    return (*notes, *((PROJECTION_NOTE,) if is_marked and PROJECTION_NOTE not in notes else ()))
