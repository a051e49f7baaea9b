"""Write JSON: all data in full precision, null for non-finite numbers, control characters escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from joulemap.domain.table import Table
from joulemap.show.present.cell import Texts, plain, write_cells
from joulemap.show.present.document import Document
from joulemap.show.present.format import Page
from joulemap.show.present.text import escape_json


def write(document: Document, page: Page) -> str:  # noqa: ARG001
    """Return the data of a document as JSON."""
    return dump(document.data)


def write_rows(head: Table[Any], batches: Iterable[Sequence[tuple[Any, ...]]], page: Page) -> Iterator[str]:  # noqa: ARG001
    """Yield a JSON array in pieces, with one object per row."""
    keys = [f"    {dump(name)}: " for name in head.names]
    texts = [Texts(partial(_write_field, key)) for key in keys]
    before = "["
    for batch in filter(None, batches):
        rows = map(",\n".join, write_cells(head.columns, batch, texts))
        yield before + "\n  {\n" + "\n  },\n  {\n".join(rows) + "\n  }"
        before = ","
    yield "[]" if before == "[" else "\n]"


def _write_field(key: str, value: Any) -> str:
    return key + dump(value).replace("\n", "\n    ")


def dump(data: Any) -> str:
    """Return data as JSON text."""
    return escape_json(json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False))
