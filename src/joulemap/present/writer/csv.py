"""CSV: the one table of a document, every column, with the numbers that JSON would show.

Null is an empty cell, a list is JSON.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from joulemap.present.cell import plain
from joulemap.present.document import Document


def write(document: Document, width: int | None = None) -> str:  # noqa: ARG001
    """Return the table of a document."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(document.table.names)
    for cells in document.table.cells:
        writer.writerow([_cell(plain(value)) for value in cells])
    return buffer.getvalue().rstrip("\n")


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return repr(value) if isinstance(value, float) else value
