"""Comparison of an answer's CSV tables with its JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any


def read_table(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV table."""
    return list(csv.DictReader(io.StringIO(text)))


def assert_cells(text: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Fail unless a CSV table has the cells of these JSON rows, in order."""
    assert [list(row.items()) for row in read_table(text)] == _spell_rows(rows)


def assert_part(text: str, document: Any) -> None:
    """Fail unless a CSV table has the cells of one of the tables of a JSON answer."""
    parts = document.values() if isinstance(document, dict) else [document]
    tables = [[one] if isinstance(one, dict) else one for one in [document, *parts]]
    shown = [list(row.items()) for row in read_table(text)]
    assert shown in [_spell_rows(rows) for rows in tables if isinstance(rows, list) and _are_rows(rows)]


def _are_rows(rows: Sequence[Any]) -> bool:
    return all(isinstance(row, dict) for row in rows)


def _spell_rows(rows: Sequence[Mapping[str, Any]]) -> list[list[tuple[str, str]]]:
    return [[(name, _spell(value)) for name, value in row.items()] for row in rows]


def _spell(value: object) -> str:
    return "" if value is None else json.dumps(value) if isinstance(value, bool | list | dict) else str(value)
