"""Columns of a type of rows, as tables of answers show them.

`EdpShare.energy_j` is the column `energy_j` of every table of `EdpShare` rows, and `row.energy_j` its cell in one row.
How a table shows a column is said behind it:

    (EdpShare.name.headed("subgraph").kept, EdpShare.energy_j, EdpShare.runtime.if_varied)

A column of another type of rows, or one that does not exist, is an error of the type checker.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar, overload

Kind = TypeVar("Kind")
RowT_contra = TypeVar("RowT_contra", contravariant=True)
Value = TypeVar("Value")

When = Literal["always", "any", "varied", "uncommon"]
"""Condition on which a column is shown: always; if a row has a value; if rows differ; or if rows differ, and else as a
text of the grid's `common`.
"""

if TYPE_CHECKING:
    _Base = object  # a base with `__get__` would make every column that a property returns `Any`
else:
    _Base = property


class Col(_Base, Generic[RowT_contra]):
    """Column of rows: the field that it shows, and how. Read from a row, the attribute is the row's cell."""

    field: str
    heading: str
    """Heading in place of the declared one."""
    make: Callable[[Any], str] | None
    """Function that formats the cell of a row, in place of the declared format."""
    shows: str
    """Field that the cells of `make` show if that is another one, such as the energy of a run."""
    find_run: Callable[[Any], int | None] | None
    """Function that returns the id of the run whose energy the cell shows, for rows without a column of it."""
    half_width: str
    """Field with the half-width, in natural logarithms, of the interval that is shown with the value."""
    of: str
    """Field whose ends this column, a half-width, shows."""
    when: When
    is_kept: bool
    """True for a column that narrow terminals fold late."""
    is_ranking: bool
    """True for a column that ranks the rows; it never folds."""
    is_drawn: bool
    """True for a column beside which a terminal draws its values."""

    def __init__(self, field: str, index: int = 0, /, **told: Any) -> None:
        if not TYPE_CHECKING:
            super().__init__(itemgetter(index))
        vars(self).update(PLAIN, field=field, **told)

    def _with(self, **told: Any) -> Col[RowT_contra]:
        own = {name: getattr(self, name) for name in PLAIN}
        return Col(self.field, **{**own, **told})

    def headed(self, heading: str) -> Col[RowT_contra]:
        """Return the column under another heading."""
        return self._with(heading=heading)

    def by(
        self,
        make: Callable[[RowT_contra], str],
        shows: str = "",
        find_run: Callable[[RowT_contra], int | None] | None = None,
    ) -> Col[RowT_contra]:
        """Return the column with cells that a function, or a template, makes from their rows."""
        return self._with(make=make, shows=shows, find_run=find_run)

    def within(self, half_width: Col[RowT_contra]) -> Col[RowT_contra]:
        """Return the column with the interval of each value."""
        return self._with(half_width=half_width.field)

    def ends_of(self, value: Col[RowT_contra]) -> Col[RowT_contra]:
        """Return this column, a half-width, as the ends of the interval of a value."""
        return self._with(of=value.field)

    @property
    def kept(self) -> Col[RowT_contra]:
        """The column, which narrow terminals fold late."""
        return self._with(is_kept=True)

    @property
    def ranking(self) -> Col[RowT_contra]:
        """The column, which ranks the rows and never folds."""
        return self._with(is_ranking=True)

    @property
    def drawn(self) -> Col[RowT_contra]:
        """The column with a picture of its values: intervals, bars around zero of a difference, or bars from zero."""
        return self._with(is_drawn=True)

    @property
    def if_any(self) -> Col[RowT_contra]:
        """The column, unless no row has a value."""
        return self._with(when="any")

    @property
    def if_varied(self) -> Col[RowT_contra]:
        """The column, unless all rows have the same value."""
        return self._with(when="varied")

    @property
    def or_common(self) -> Col[RowT_contra]:
        """The column, or a text of the grid's `common` if several rows have the same value."""
        return self._with(when="uncommon")


PLAIN: Final = {
    "heading": "", "make": None, "shows": "", "find_run": None, "half_width": "", "of": "", "when": "always",
    "is_kept": False, "is_ranking": False, "is_drawn": False,
}  # fmt: skip
"""Fields of a column that is shown as declared."""

if TYPE_CHECKING:

    class Cell(Generic[Value]):
        """Annotation of a column in a type of rows: a `Col` of the type, and a value of a row."""

        @overload
        def __get__(self, row: None, kind: type[Kind]) -> Col[Kind]: ...
        @overload
        def __get__(self, row: object, kind: Any = ...) -> Value: ...
        def __get__(self, row: Any, kind: Any = ...) -> Any: ...
        def __set__(self, row: Any, value: Value) -> None: ...
