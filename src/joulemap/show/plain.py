"""Facts as data: kind, runs, values with units, and weights, so that a program never parses a sentence."""

from __future__ import annotations

import math
from typing import Any

import attrs

from joulemap.ask.fact import Facts, Quantity


def to_plain(value: Any) -> Any:
    """Return a value of a fact as a mapping, list, number or text; empty fields are left out."""
    if isinstance(value, Quantity):
        width = {"half_width": value.half_width} if value.half_width else {}
        return {"value": to_plain(value.value), "unit": value.unit, **width}
    if attrs.has(type(value)):
        fields = {one.name: getattr(value, one.name) for one in attrs.fields(type(value))}
        return {name: to_plain(one) for name, one in fields.items() if one not in (None, (), "", {})}
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    if isinstance(value, dict):
        return {str(name): to_plain(one) for name, one in value.items()}
    return [to_plain(one) for one in value] if isinstance(value, tuple | list) else value


def list_facts(facts: Facts) -> dict[str, Any]:
    """Return what an answer asks, its runs, and its facts by type."""
    listed = [{"fact": type(one).__name__.lower(), **to_plain(one)} for one in facts.facts]
    return {"asked": list(facts.asked), "runs": to_plain(dict(facts.runs)), "facts": listed}
