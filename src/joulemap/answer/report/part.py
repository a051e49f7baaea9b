"""Chapters that wings add to a report on a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from joulemap.answer.answer import Answer
    from joulemap.domain.settings import Settings
    from joulemap.domain.table import Table
    from joulemap.figure.spec import FigureName
    from joulemap.plan.source import Source
    from joulemap.present.document import Section
    from joulemap.webpage.report import Block, Chapter


class Drawing(Protocol):
    """Means of a report to make a chapter on one model."""

    @property
    def prefix(self) -> str:
        """Beginning of the name of each chapter, which tells models apart."""
        ...

    def tell(
        self,
        name: str,
        title: str,
        figure: FigureName,
        answer: Answer,
        told: Iterable[Block],
        tables: Iterable[tuple[Sequence[Section], Table[Any]]],
    ) -> Chapter:
        """Return the chapter of one answer: its figure, what is told of it, and its tables with those behind them."""
        ...


class ReportPart:
    """One chapter that a wing adds; it registers an instance of a subclass at `report`."""

    name: str
    """Name in the data of a report, and in `asked` of `report`."""
    is_first = False
    """True for a chapter before those of the core."""

    def ask(self, source: Source, model: str, settings: Settings, wanted: Any) -> Answer | None:
        """Return the answer of the chapter, None where the question does not arise.

        `settings` take the hardware of the report and no other; `wanted` is what `report` was asked for by this name,
        None for nothing.
        """
        raise NotImplementedError(self.name)

    def draw(self, drawn: Drawing, answer: Any) -> Chapter:
        """Return the chapter of an answer; `drawn` has the means of the report to make one."""
        raise NotImplementedError(self.name)

    def describe(self, answer: Any) -> str:
        """Return the line of an answer in the verdict; empty for none."""
        del answer
        return ""


def list_parts() -> list[ReportPart]:
    """Return the chapters of all wings."""
    return list(find_parts("report"))
