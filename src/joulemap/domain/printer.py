"""The printer of answers. What shows answers registers here, because answers stand below it and know no words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from joulemap.system.errors import UsageError


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


_registered: list[Callable[[], Printer]] = []


def print_by(load: Callable[[], Printer]) -> None:
    """Print answers by the module that `load` returns, which is called when something is printed."""
    _registered[:] = [load]


def find_printer() -> Printer:
    """Return the module that shows answers; UsageError before `joulemap.workspace` registered it."""
    if not _registered:
        raise UsageError("nothing shows answers yet: import joulemap.workspace first")
    return _registered[0]()
