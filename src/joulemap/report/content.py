"""The data of a page: tables, and figures that refer to them, as a program reads them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

from joulemap.domain.table import Table
from joulemap.figure.figure import Figure
from joulemap.figure.spec import find_spec
from joulemap.present.cell import plain
from joulemap.present.text import make_visible
from joulemap.report.report import Report


def list_content(report: Report, themes: Mapping[str, Any]) -> str:
    """Return the data as JSON: each table once, with its query and columns; figures by their names on the page.

    A figure is a specification, the table whose rows it draws, the columns that it takes of them, and its texts.
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
        "tables": [_describe(table) for table in tables],
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


def _describe(table: Table[Any]) -> dict[str, Any]:
    return {
        "query": table.title,
        "parameters": plain(dict(table.parameters)),
        "columns": [
            {"name": one.name, "type": one.type, "unit": one.unit, "meaning": one.meaning} for one in table.columns
        ],
        "rows": [[_show(value) for value in cells] for cells in table.cells],
    }


def _show(value: Any) -> Any:
    return make_visible(value, keep="") if isinstance(value, str) else plain(value)
