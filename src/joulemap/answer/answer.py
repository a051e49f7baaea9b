"""What every answer is: tables of typed rows, and a document made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from joulemap.domain.table import Table

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
