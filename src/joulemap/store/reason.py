"""Values of stored reasons as JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def write_values(values: Mapping[str, Any]) -> str:
    """Return the values of a reason as stored."""
    return json.dumps(dict(values), ensure_ascii=False)


def read_values(text: str | None) -> dict[str, Any]:
    """Return the values of a stored reason; lists become tuples, as where the reason was made."""
    values = json.loads(text) if text else {}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
