"""JSON: everything, in full precision; numbers that are not finite are null."""

from __future__ import annotations

import json
from typing import Any

from joulemap.present.cell import plain
from joulemap.present.document import Document


def write(document: Document, width: int | None = None) -> str:  # noqa: ARG001
    """Return the data of a document."""
    return dump(document.data)


def dump(data: Any) -> str:
    """Return data as JSON text."""
    return json.dumps(plain(data), indent=2, ensure_ascii=False, allow_nan=False)
