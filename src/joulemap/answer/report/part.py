"""Interface for chapters that optional extensions add to a report on a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer
    from joulemap.domain.figure import FigureName
    from joulemap.domain.settings import Settings
    from joulemap.domain.table import Table
    from joulemap.plan.source import Source
    from joulemap.show.present.document import Document, Section
    from joulemap.show.webpage.report import Chapter


TABLE: Final = "As a table"


class Drawing(Protocol):
    """Functions that a report offers to an extension for building its chapter on one model."""

    @property
    def prefix(self) -> str:
        """Prefix of the names of all chapters on one model; it distinguishes models."""
        ...

    def build_chapter(
        self,
        name: str,
        title: str,
        figure: FigureName,
        answer: Answer,
        document: Document,
        tables: Iterable[tuple[Sequence[Section], Table[Any]]],
    ) -> Chapter:
        """Return the chapter of one answer: its decision, figure and reasons, and its tables with their queries."""
        ...


class ReportPart:
    """Chapter of an optional extension; the extension registers an instance of a subclass at `report`."""

    name: str
    """Name of the chapter in the data of a report, and in `asked` of `report`."""
    is_first = False
    """True if the chapter comes before the built-in chapters."""
    label = ""
    """Label of the answer's decision in the head of the report; empty to leave it to the chapter."""

    def ask(self, source: Source, model: str, settings: Settings, wanted: Any) -> Answer | None:
        """Return the answer of the chapter; None if the chapter does not apply.

        `settings` select exactly the hardware of the report. `wanted` is the request that `report` got for this
        chapter, or None.
        """
        raise NotImplementedError(self.name)

    def draw(self, drawn: Drawing, answer: Any) -> Chapter:
        """Return the chapter of an answer, built with the functions of `drawn`."""
        raise NotImplementedError(self.name)


def list_parts() -> list[ReportPart]:
    """Return the chapters of all installed extensions."""
    return list(find_parts("report"))
