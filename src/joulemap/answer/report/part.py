"""Chapters that wings add to a report on a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from joulemap.system.wing import find_parts

if TYPE_CHECKING:
    from joulemap.answer.answer import Answer
    from joulemap.answer.report.chapter import Drawn
    from joulemap.domain.settings import Settings
    from joulemap.plan.source import Source
    from joulemap.webpage.report import Chapter


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

    def draw(self, drawn: Drawn, answer: Any) -> Chapter:
        """Return the chapter of an answer; `drawn` has the means of the report to make one."""
        raise NotImplementedError(self.name)

    def describe(self, answer: Any) -> str:
        """Return the line of an answer in the verdict; empty for none."""
        del answer
        return ""


def list_parts() -> list[ReportPart]:
    """Return the chapters of all wings."""
    return list(find_parts("report"))
