"""Specifications of figures: `queries/figure/NAME.vN.vl.json`, Vega-Lite without its data.

A specification reads the data named `rows`. Its `usermeta` says what the figure is called, which columns of which query
it draws, how it is told to those who do not see it, how it is drawn in characters, and `parts` that stand in several
places, as `parts.json` has those of several figures: where one belongs stands the text `"{NAME}"`. What is drawn in
characters alone has a `NAME.vN.sketch.json`.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final, Literal, get_args

from joulemap.system.errors import UnknownNameError
from joulemap.system.record import frozen
from joulemap.system.resource import folder

FigureName = Literal[
    "comparison",
    "breakdown",
    "tree",
    "pareto",
    "roofline",
    "rooflines",
    "heatmap",
    "edp",
    "sweep",
    "waterfall",
    "tornado",
    "flip",
    "cost",
    "utilization",
    "frontier",
    "training",
]

AnswerFigureName = Literal["fleet", "queue", "day", "placement", "timeline"]
"""Figures of answers to more than a model and hardware, which the question that draws a figure cannot ask."""

ShownName = FigureName | AnswerFigureName
"""Of any figure."""

DrawingName = ShownName | Literal["models", "ranking", "division", "execution", "events", "parts"]
"""Of a figure, or of what is drawn in characters alone."""

FIGURES: Final[tuple[FigureName, ...]] = get_args(FigureName)


HEAD: Final = {"$schema": "https://vega.github.io/schema/vega-lite/v6.json", "data": {"name": "rows"}}
"""What every specification begins with."""


@frozen(kw_only=True)
class Spec:
    """A figure without its data; one that is drawn in characters alone has no view."""

    name: DrawingName
    version: int
    title: str
    query: str
    """`topic.name@version`, or what computes its rows."""
    reading: str
    """How it is read."""
    columns: tuple[str, ...]
    """Of the query; no other is in the data of a figure."""
    view: dict[str, Any]
    """Vega-Lite."""
    sketch: tuple[dict[str, Any], ...]
    """Each a kind with the keywords of what makes it."""


@cache
def find_spec(name: DrawingName) -> Spec:
    """Return the newest version of a figure or drawing; UnknownNameError for a name that is none."""
    found = {
        int(path.name.split(".")[1].removeprefix("v")): path
        for path in (folder("queries") / "figure").glob(f"{name}.v*.json")
    }
    if not found:
        raise UnknownNameError("figure", name, FIGURES)
    version = max(found)
    view = json.loads(found[version].read_text(encoding="utf-8"))
    told = view.pop("usermeta")
    return Spec(
        name=name,
        version=version,
        title=told.get("title", ""),
        query=told.get("query", ""),
        reading=told.get("description", ""),
        columns=tuple(told.get("columns", ())),
        view={**HEAD, **_place(view, {**_share_parts(), **told.get("parts", {})})} if view else {},
        sketch=tuple(told.get("sketch", ())),
    )


@cache
def _share_parts() -> dict[str, Any]:
    """Return the parts that stand in several figures."""
    shared: dict[str, Any] = json.loads((folder("queries") / "figure" / "parts.json").read_text(encoding="utf-8"))
    return shared


def _place(part: Any, parts: dict[str, Any]) -> Any:
    """Return a part of a specification with each of its `parts` where it is named."""
    if isinstance(part, dict):
        return {name: _place(value, parts) for name, value in part.items()}
    if isinstance(part, list):
        return [_place(value, parts) for value in part]
    is_named = isinstance(part, str) and part[:1] + part[-1:] == "{}" and part[1:-1] in parts
    return _place(parts[part[1:-1]], parts) if is_named else part
