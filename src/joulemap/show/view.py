"""Documents, figures and sentences of answers, by the page of each type: the printer that the package names.

The page of an answer of `ask.NAME` stands in `PAGES` of `show.NAME`; that of a wing's `ask`, in the wing's `show`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import attrs

from joulemap.show.caveat import describe_values
from joulemap.show.page import Asked
from joulemap.show.present.document import Document
from joulemap.show.present.format import TABLE, write
from joulemap.show.run import describe_products as describe_products, describe_run as describe_run

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer
    from joulemap.ask.finding import Finding
    from joulemap.ask.report import ReportAnswer
    from joulemap.domain.settings import Division
    from joulemap.show.page import Figures, Page
    from joulemap.show.webpage.report import Report


class Options(TypedDict, total=False):
    """Keywords of `draw`, which are the fields of `Asked`."""

    limit: int | None
    repeated: Sequence[str]
    by: Division | None
    again: Sequence[str]
    depth: int | None


def _import_show(answer: Answer) -> Any:
    """Return the module that shows answers of a class."""
    return import_module(re.sub(r"\.ask\b", ".show", type(answer).__module__, count=1))


def find_page(answer: Answer) -> Page[Any]:
    """Return what shows answers of a class."""
    pages: Mapping[type[Answer], Page[Any]] = _import_show(answer).PAGES
    return pages[type(answer)]


def draw(answer: Answer, **options: Unpack[Options]) -> Document:
    """Return the document of an answer for display and programs."""
    return find_page(answer).draw(answer, Asked(**options))


def draw_figures(answer: Answer) -> Figures:
    """Return the figures (charts) of an answer; empty if it has none."""
    return find_page(answer).draw_figures(answer)


def draw_text(answer: Answer) -> str:
    """Return the first screen of an answer as text, without commands; Python callers use methods instead."""
    places = ("`.document().notes`", "`.document().details`")
    shown = attrs.evolve(draw(answer), steps=()).on_screen(notes=False, details=False, hints=places)
    return write(shown, TABLE, shutil.get_terminal_size().columns)


def draw_html(answer: Answer) -> str:
    """Return HTML for a notebook: figures if vl-convert-python is installed, then the tables."""
    from joulemap.show.figure.convert import is_installed
    from joulemap.show.figure.figure import draw_svg

    drawn = [draw_svg(figure) for figure in draw_figures(answer)] if is_installed() else []
    figures = "".join(f"<figure>{one}</figure>\n" for one in drawn)
    return f"{figures}{write(attrs.evolve(draw(answer), steps=()), 'html')}"


def compose_report(answer: ReportAnswer) -> Report:
    """Return the page of a report."""
    report: Report = _import_show(answer).compose_report(answer)
    return report


def write_page(report: Report) -> str:
    """Return one page that needs no network."""
    from joulemap.show.webpage.page import write_page

    return write_page(report)


def describe_findings(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the sentence of each finding."""
    return tuple(describe_values(one.kind, one.values) for one in findings)
