"""The data of a page: tables, and figures that refer to them, as a program reads them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Collection, Mapping
from typing import Any

from joulemap.domain.table import Table
from joulemap.figure.figure import Figure
from joulemap.figure.spec import find_spec
from joulemap.present.cell import plain
from joulemap.present.text import make_visible
from joulemap.webpage.report import Report


def list_content(report: Report, themes: Mapping[str, Any]) -> str:
    """Return the data as JSON: tables, and figures by their names on the page.

    A table is there once, with its query and the values of each column, of those that nothing but figures are made of
    the columns that they draw. A figure has a specification, the table whose rows it draws, and its texts.
    """
    tables = report.tables
    places = {id(table): index for index, table in enumerate(tables)}
    views: dict[str, int] = {}
    figures = {}
    for name, figure in report.figures.items():
        view = json.dumps(_strip(figure), ensure_ascii=False, sort_keys=True)
        figures[name] = {
            "specification": views.setdefault(view, len(views)),
            "table": places[id(figure.table)],
            "columns": find_spec(figure.name).columns,
            "title": figure.spec["title"],
            "description": figure.description,
            "query": figure.query,
        }
    content = {
        "title": report.title,
        "subject": report.subject,
        "verdict": report.verdict,
        "made": report.made,
        "command": report.command,
        "tables": [_describe(table, report.columns(table)) for table in tables],
        "figures": figures,
        "specifications": [json.loads(view) for view in views],
        "themes": themes,
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def compress(text: str) -> str:
    """Return a text in gzip's format, in letters that HTML leaves alone; the same for the same text."""
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()


def _strip(figure: Figure) -> dict[str, Any]:
    """Return a specification without what it does not share with others of its kind."""
    datasets = {name: rows for name, rows in figure.spec.get("datasets", {}).items() if name != "rows"}
    kept = {name: part for name, part in figure.spec.items() if name not in ("title", "description", "datasets")}
    return {**kept, "datasets": datasets}


def _describe(table: Table[Any], names: Collection[str]) -> dict[str, Any]:
    """Return a table column by column, which packs to two thirds of what its rows do."""
    values = list(zip(*table.cells, strict=True)) or [()] * len(table.columns)
    return {
        "query": table.title,
        "parameters": plain(dict(table.parameters)),
        "row_count": len(table),
        "columns": [
            {
                "name": one.name,
                "type": one.type,
                "unit": one.unit,
                "meaning": one.meaning,
                "values": list(map(_show, values[index])),
            }
            for index, one in enumerate(table.columns)
            if one.name in names
        ],
    }


def _show(value: Any) -> Any:
    return make_visible(value, keep="") if isinstance(value, str) else plain(value)
