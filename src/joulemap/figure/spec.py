"""Specifications of figures: `queries/figure/NAME.vN.vl.json`, Vega-Lite without its data.

A specification reads the data named `rows`. Its `usermeta` says what the figure is called, which columns of which query
it draws, and how it is told to those who do not see it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args

from joulemap.errors import UnknownNameError
from joulemap.record import frozen
from joulemap.resource import folder

FigureName = Literal[
    "comparison",
    "breakdown",
    "tree",
    "pareto",
    "roofline",
    "heatmap",
    "edp",
    "sweep",
    "waterfall",
    "tornado",
    "flip",
    "cost",
    "utilization",
]

FIGURES: Final[tuple[FigureName, ...]] = get_args(FigureName)

SUFFIX: Final = ".vl.json"


@frozen(kw_only=True)
class Spec:
    """A figure without its data."""

    name: FigureName
    version: int
    title: str
    query: str
    """`topic.name@version`, or what computes its rows."""
    description: str
    """Alternative text, with `{subject}` and `{facts}` to fill in."""
    columns: tuple[str, ...]
    """Of the query; no other is in the data of a figure."""
    view: dict[str, Any]
    """Vega-Lite."""


@cache
def find_spec(name: FigureName) -> Spec:
    """Return the newest version of a figure; UnknownNameError for a name that is none."""
    found = {_read_version(path): path for path in (folder("queries") / "figure").glob(f"{name}.v*{SUFFIX}")}
    if name not in FIGURES or not found:
        raise UnknownNameError("figure", name, FIGURES)
    version = max(found)
    view = json.loads(found[version].read_text(encoding="utf-8"))
    told = view.pop("usermeta")
    query = f"{told['query']}@{told['version']}" if told["version"] else told["query"]
    return Spec(
        name=name,
        version=version,
        title=told["title"],
        query=query,
        description=told["description"],
        columns=tuple(told["columns"]),
        view=view,
    )


def _read_version(path: Path) -> int:
    return int(path.name.removesuffix(SUFFIX).rpartition(".v")[2])
