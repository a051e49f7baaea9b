"""What every answer is: a scope, tables of typed rows, and a document made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from joulemap.answer.scope import Scope
from joulemap.domain.table import Table
from joulemap.present.document import Document


@attrs.frozen(kw_only=True)
class Answer:
    """What a question hands out."""

    scope: Scope

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The queries behind it, with their SQL."""
        return (*self.own_tables.values(), self.scope.caveats, self.scope.calibrations)

    @property
    def own_tables(self) -> dict[str, Table[Any]]:
        """Field -> table, of those that are its own."""
        found = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return {name: value for name, value in found.items() if isinstance(value, Table)}

    def data(self) -> dict[str, Any]:
        """Return what programs get: every row of every table, beside what it is about; `totals` has one, `total`."""
        rows: dict[str, Any] = {name: table.records() for name, table in self.own_tables.items()}
        if "totals" in rows:
            rows = {"total": rows.pop("totals")[0], **rows}
        return {**self.scope.data(), **rows}

    def document(self, *, repeated: Sequence[str] = ()) -> Document:
        """Return it for people and programs; `repeated` are the options that a follow-up command must repeat."""
        raise NotImplementedError
