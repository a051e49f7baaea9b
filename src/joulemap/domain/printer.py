"""The printer of answers: they know no words and stand below what shows them, so the package itself names it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

from joulemap.system import printers


class Printer(Protocol):
    """Module that shows answers."""

    @property
    def draw(self) -> Callable[..., Any]:
        """Function that returns the document of an answer, with options that select what people see."""

    def draw_text(self, answer: Any, /) -> str:
        """Return the first screen of an answer as text."""

    def draw_html(self, answer: Any, /) -> str:
        """Return HTML of an answer for a notebook."""

    def compose_report(self, answer: Any, /) -> Any:
        """Return the page of a report."""

    def write_page(self, report: Any, /) -> str:
        """Return a page of a report as HTML."""

    def describe_findings(self, findings: Iterable[Any], /) -> tuple[str, ...]:
        """Return the sentence of each finding."""

    def describe_run(self, row: Any, scope: Any, /) -> str:
        """Return model, hardware and configuration of a run in one line."""

    def describe_products(self, scope: Any, /) -> str:
        """Return what fp32 means in the runs of a scope."""


def find_printer() -> Printer:
    """Return the module that shows answers."""
    (load,) = printers
    return cast("Printer", load())
