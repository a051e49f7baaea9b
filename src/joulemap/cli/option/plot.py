"""Options for charts and pages next to an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from joulemap.cli.argument import spell_line
from joulemap.cli.command import option
from joulemap.cli.output import OutputOptions, check_suffix, emit
from joulemap.cli.panel import OUTPUT
from joulemap.cli.voice import voice
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer
    from joulemap.ask.check import CheckedAnswer
    from joulemap.domain.settings import RunDivision
    from joulemap.show.present.document import Document
    from joulemap.workspace import Workspace


@frozen(kw_only=True)
class PlotOptions:
    """Option for a text chart of an answer."""

    panel: ClassVar[str] = OUTPUT
    plot: bool = option(False, "Draw a text chart above the tables.")

    def add(self, document: Document, answer: Answer, *, by: RunDivision = "action", limit: int = 40) -> Document:
        """Return the document of an answer, with its text chart first if requested.

        `by` is the table to draw of an answer with several tables, `limit` the maximum number of rows to draw.
        """
        if not self.plot:
            return document
        from joulemap.show.figure.sketch import make_sketches
        from joulemap.show.present.document import Section, Text

        drawn = [one for drawing in answer.sketched(by) for one in make_sketches(drawing, limit, answer.projected)]
        section = Section("Sketch", drawn)
        nothing = Section("Sketch", Text("nothing to draw: no row has a value"))
        return document.after([section if section.texts else nothing])


def begin_drawing() -> None:
    """Start the process that draws the images of a page; report on stderr if it is not installed."""
    from joulemap.show.figure.convert import INSTALL, is_installed
    from joulemap.show.webpage.page import start_drawing

    if is_installed():
        start_drawing()
    else:
        voice.inform(f"joulemap: figures are text charts; {INSTALL} draws images")


@frozen(kw_only=True)
class PageOptions(PlotOptions):
    """Options for a text chart and an HTML page of an answer."""

    report: Path | None = option(None, "Also write an HTML page with figures.", metavar="FILE.html")

    def workspace(self, output: OutputOptions) -> Workspace:
        """Return the workspace of an output. Raises before any work if the page cannot be written."""
        if self.report is not None:
            from joulemap.system.file import check_output

            check_suffix(self.report, ".html", "a page")
            check_output(self.report, (output.db,), force=output.force)
            begin_drawing()
        return output.workspace()

    def write(
        self,
        document: Document,
        answer: Answer,
        output: OutputOptions,
        *,
        checked: CheckedAnswer | None = None,
    ) -> None:
        """Write the answer, and its page if requested.

        The commands that measure `checked` are added to the answer.
        """
        if self.report is not None:
            from joulemap.show.report import report_answer
            from joulemap.show.webpage.page import write_page

            page = write_page(report_answer(answer, document, command=spell_line()))
            emit(page.rstrip("\n"), self.report, (output.db,), force=output.force)
        output.write(self.add(document, answer), checked)
