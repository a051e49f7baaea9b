"""Answers: tables of typed rows, and the facts found in them. Words and pictures are those of the printer."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from joulemap.ask.scope import Scope
from joulemap.domain.printer import find_printer
from joulemap.domain.table import Table
from joulemap.plan.model_name import find_names, list_names
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.check import CheckedRow, Checks
    from joulemap.store.connection import Connection


INFERENCE: Final = "inference"
"""Noun of one evaluation of a model, unless an extension has another noun."""


@frozen(kw_only=True, repr=False)
class Answer:
    """Result of a question; options of `document` select what people see of it."""

    about: ClassVar[tuple[str, ...]] = ()
    """Names of attributes that machine formats list before the tables."""

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

    @property
    def projected(self) -> frozenset[str]:
        """Names of hardware that can be neither bought nor rented, such as projections; output marks them."""
        return frozenset()

    def document(self, **options: Any) -> Any:
        """Return the document for display and programs; `options` select what people see, such as `limit`."""
        return find_printer().draw(self, **options)

    def __repr__(self) -> str:
        return find_printer().draw_text(self)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: figures if vl-convert-python is installed, then the tables."""
        return find_printer().draw_html(self)

    def to_arrow(self) -> Any:
        """Return the main table as a `pyarrow.Table`; see `Table.to_arrow`."""
        return self.document().table.to_arrow()

    def to_pandas(self) -> Any:
        """Return the main table as a `pandas.DataFrame`; MissingPackageError without pandas."""
        return self.document().table.to_pandas()

    def to_polars(self) -> Any:
        """Return the main table as a `polars.DataFrame`; MissingPackageError without polars."""
        return self.document().table.to_polars()

    def find_checks(self) -> Checks | None:
        """Return the commands of benchmark tools that measure the runs of the answer; None without such runs."""
        return None

    def _read_about(self) -> dict[str, Any]:
        return {name: _to_plain(getattr(self, name)) for name in self.about}

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: the question and every table.

        The single row of a table `totals` becomes a record `total`.
        """
        rows: dict[str, Any] = {name: table.records() for name, table in self.own_tables.items()}
        total = {"total": rows.pop("totals")[0]} if "totals" in rows else {}
        return {**self._read_about(), **total, **rows}


@frozen(kw_only=True)
class RunAnswer(Answer):
    """Result of a question about runs."""

    is_billed: ClassVar[bool] = False
    """True if prices, electricity and use of chips are in the answer."""
    scope: Scope

    @property
    def site_values(self) -> dict[str, Mapping[str, str]]:
        """Name -> value, unit and place of the values of the site that the answer depends on."""
        stated = self.scope.settings.site.stated
        is_used = {"host": bool(stated) and any(self.scope.hosts.values()), "link": True}
        return {name: one for name, one in stated.items() if is_used.get(name, self.is_billed)}

    @property
    def projected(self) -> frozenset[str]:
        """Names of hardware that can be neither bought nor rented, such as projections; output marks them."""
        return self.scope.unavailable

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Query results behind the answer, with their SQL."""
        return (*self.own_tables.values(), *self.scope.reading.behind, self.scope.remarks, self.scope.calibrations)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: scope, and every row of every table."""
        used = self.site_values
        site = {"site": used} if used else {}
        return {**self._read_about(), **self.scope.data(), **site, **super().data()}

    @property
    def checked(self) -> Sequence[CheckedRow]:
        """Runs that `--show check` measures; empty for an answer without that option."""
        return ()

    def find_checks(self) -> Checks | None:
        """Return the commands of benchmark tools that measure the runs of the answer; None without such runs."""
        from joulemap.ask.check import Checks, check_runs

        rows, scope = self.checked, self.scope
        if not rows:
            return None
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


def _to_plain(value: Any) -> Any:
    """Return a value of an answer for machine formats; a record becomes a mapping."""
    if isinstance(value, tuple):
        return tuple(map(_to_plain, value))
    return attrs.asdict(value) if attrs.has(type(value)) else value


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
) -> dict[str, Any]:
    """Fetch every table of an answer class; return field -> table. The type of a field names the query.

    `but` lists fields that are not fetched. `more` maps optional fields to their record types. `given` holds
    parameters; each query receives those that it declares. Raises like `fetch_all`.
    """
    from joulemap.store.query import fetch_all

    names = {name: match[1] for field in attrs.fields(answer) if (match := _TABLE.fullmatch(str(field.type)))
             and (name := field.name) not in but}  # fmt: skip
    known = {
        name: one for kind in reversed(answer.__mro__[:-1]) for name, one in vars(sys.modules[kind.__module__]).items()
    }
    return fetch_all(connection, {**{name: known[record] for name, record in names.items()}, **more}, **given)


def count_in(model: str) -> str:
    """Return the noun of one evaluation of a model, to which a plural adds an s: inference or output token."""
    return find_names(model).count_in(model) or INFERENCE


def describe_evaluation(models: Sequence[str], hardware: Sequence[str]) -> tuple[tuple[str, str] | None, str]:
    """Return a model whose evaluation needs an explanation, as (model, noun), and a suggestion of another question.

    Only the first such model is returned; None and an empty text if there is none.
    """
    descriptions = (names.describe_evaluation(models, hardware) for names in list_names())
    return next((one for one in descriptions if one[0]), (None, ""))


def describe_unread(models: Sequence[str]) -> list[str]:
    """Return one sentence per checkpoint part that predictions do not count."""
    return [line for names in list_names() for line in names.describe_unread(models)]
