"""Specifications of figures: `queries/figure/NAME.vN.vl.json`, Vega-Lite without its data.

A specification reads the data named `rows`. Its `usermeta` has the title, the query, the drawn columns, a description
for readers who cannot see the figure, and the sketches. It may also have `parts`, pieces of the specification by name.
The text `"{NAME}"` stands for a part. `parts.json` has the parts that several figures use. `series` names the column
that colours tell apart and the column of its chips, and `legends` the entries that a legend has only if a row needs
them. A drawing without an image has a `NAME.vN.sketch.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from joulemap.domain.figure import FIGURES, DrawingName
from joulemap.show.present.category import DRAWN, NUMBERED
from joulemap.show.present.palette import CATEGORY_COLOURS, COLOURS
from joulemap.system.errors import UnknownNameError
from joulemap.system.record import frozen
from joulemap.system.resource import folder

HEAD: Final = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "data": {"name": "rows"}}
"""First keys of every specification."""

_AMOUNT: Final = re.compile(r"amount\((datum\.\w+), ('[^']*'|[\w.]+)(?:, '([^']*)')?\)")
"""Call of `amount` in an expression."""


@frozen(kw_only=True)
class Series:
    """Column that colours and shapes tell apart."""

    label: str
    """Column with the name of a series."""
    chip: str
    """Column with the chip that a series belongs to."""
    least: str = ""
    """Column whose minimum orders the series, lowest first, if a figure draws only the first `most`."""
    most: int | None = None


@frozen(kw_only=True)
class Spec:
    """Specification of a figure without its data; the `view` of a drawing without an image is empty."""

    name: DrawingName
    version: int
    title: str
    query: str
    """Query of the rows, `topic.name@version`, or the code that computes them."""
    reading: str
    """Explanation of how to read the figure."""
    columns: tuple[str, ...]
    """Columns of the query that are drawn; the data of a figure has only these."""
    view: dict[str, Any]
    """Vega-Lite without its data."""
    sketch: tuple[dict[str, Any], ...]
    """Declarations of charts in characters, for `joulemap.show.figure.sketch`."""
    series: Series | None
    """Series that have a colour and shape each; None if a figure does not colour chips."""
    legends: Mapping[str, Mapping[str, Mapping[str, Any]]]
    """Placeholder of a legend's entries -> entry -> columns with the values that a row of this entry has. The value
    true stands for any value except null, false and 0.
    """


@cache
def find_spec(name: DrawingName) -> Spec:
    """Return the newest version of a figure or drawing; UnknownNameError for an unknown name."""
    versions = {
        int(path.name.split(".")[1].removeprefix("v")): path
        for path in (folder("queries") / "figure").glob(f"{name}.v*.json")
    }
    if not versions:
        raise UnknownNameError("figure", name, FIGURES)
    version = max(versions)
    view = json.loads(versions[version].read_text(encoding="utf-8"))
    meta = view.pop("usermeta")
    return Spec(
        name=name,
        version=version,
        title=meta.get("title", ""),
        query=meta.get("query", ""),
        reading=meta.get("description", ""),
        columns=tuple(meta.get("columns", ())),
        view={**HEAD, **place_parts(view, {**_share_parts(), **meta.get("parts", {})})} if view else {},
        sketch=tuple(meta.get("sketch", ())),
        series=Series(**meta["series"]) if "series" in meta else None,
        legends={**_list_categories(meta.get("columns", ())), **meta.get("legends", {})},
    )


def _list_categories(columns: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the legend of energy categories, each of which needs a row with energy; empty without such columns."""
    if not {"common_category", "energy_j"} <= set(columns):
        return {}
    entries = zip(NUMBERED, DRAWN, strict=True)
    return {"categories": {name: {"common_category": category, "energy_j": True} for name, category in entries}}


@cache
def _share_parts() -> dict[str, Any]:
    """Return the parts that several figures share: those of the file, colours by name, and expressions on the energy
    categories.
    """
    number = f"indexof({json.dumps(DRAWN)}, datum.common_category)"
    shared: dict[str, Any] = json.loads((folder("queries") / "figure" / "parts.json").read_text(encoding="utf-8"))
    return {
        **shared,
        **{name: one.fill for name, one in COLOURS.items()},
        "category_colours": [COLOURS[CATEGORY_COLOURS[name]].fill for name in DRAWN],
        "category_names": list(NUMBERED),
        "category_name": f"{json.dumps(NUMBERED)}[{number}]",
        "category_number": f"{number} + 1",
    }


def place_parts(part: Any, parts: dict[str, Any]) -> Any:
    """Return a part of a specification with the named `parts` inserted at each placeholder.

    In expressions, `amount(NUMBER, UNIT)` or `amount(NUMBER, UNIT, FORMAT)` stands for the number with an SI prefix and
    its unit, as in `50 mJ` and `5k/s`.
    """
    if isinstance(part, dict):
        return {name: place_parts(value, parts) for name, value in part.items()}
    if isinstance(part, list):
        return [place_parts(value, parts) for value in part]
    if isinstance(part, str) and "amount(" in part:
        return _AMOUNT.sub(_write_amount, part)
    is_named = isinstance(part, str) and part[:1] + part[-1:] == "{}" and part[1:-1] in parts
    return place_parts(parts[part[1:-1]], parts) if is_named else part


def _write_amount(call: re.Match[str]) -> str:
    number, unit, form = call.groups(default="~s")
    space = "' '" if unit.startswith("'") else f"({unit} ? ' ' : '')"
    before = "''" if unit.startswith("'/") else space
    return f"replace(format({number}, '{form}'), regexp('([^0-9.]?)$'), {before} + '$1') + {unit}"
