"""Interface for chapters that wings add to a report on a model."""

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
    """Functions of a report for building a chapter on one model."""

    @property
    def prefix(self) -> str:
        """Start of the name of each chapter; distinguishes models."""
        ...

    def build_chapter(
        self,
        name: str,
        title: str,
        figure: FigureName,
        answer: Answer,
        blocks: Iterable[Block],
        tables: Iterable[tuple[Sequence[Section], Table[Any]]],
    ) -> Chapter:
        """Return the chapter of one answer: its figure, its sentences, and its tables with their queries."""
        ...


class ReportPart:
    """Chapter that a wing adds; the wing registers an instance of a subclass at `report`."""

    name: str
    """Name in the data of a report, and in `asked` of `report`."""
    is_first = False
    """True for a chapter before those of the core."""

    def ask(self, source: Source, model: str, settings: Settings, wanted: Any) -> Answer | None:
        """Return the answer of the chapter; None if the chapter does not apply.

        `settings` select exactly the hardware of the report; `wanted` is the request passed to `report` under this
        name, None for no request.
        """
        raise NotImplementedError(self.name)

    def draw(self, drawn: Drawing, answer: Any) -> Chapter:
        """Return the chapter of an answer, built with the functions of `drawn`."""
        raise NotImplementedError(self.name)

    def describe(self, answer: Any) -> str:
        """Return the line that an answer adds to the verdict; empty if it adds none."""
        del answer
        return ""


def list_parts() -> list[ReportPart]:
    """Return the chapters of all wings."""
    return list(find_parts("report"))
