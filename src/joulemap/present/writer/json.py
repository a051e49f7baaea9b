"""JSON: everything, in full precision; numbers that are not finite are null, what steers a terminal is escaped."""

from __future__ import annotations

import json
from typing import Any

from joulemap.present.cell import plain
from joulemap.present.document import Document
from joulemap.present.format import Page
from joulemap.present.text import escape_json


def write(document: Document, page: Page) -> str:  # noqa: ARG001
    """Return the data of a document."""
    return dump(document.data)


def dump(data: Any) -> str:
    """Return data as JSON text."""
    return escape_json(json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False))
