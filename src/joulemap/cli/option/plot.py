"""Whether an answer is drawn too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from joulemap.cli.argument import spell_line
from joulemap.cli.command import option
from joulemap.cli.output import OutputOptions, check_suffix, emit
from joulemap.cli.voice import voice
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.answer import Answer
    from joulemap.domain.settings import RunDivision
    from joulemap.present.document import Document
    from joulemap.workspace import Workspace


@frozen(kw_only=True)
class PlotOptions:
    """Whether an answer is drawn too."""

    plot: bool = option(False, "Also draw the answer in characters, above its tables; json and csv leave it out.")

    def add(self, document: Document, answer: Answer, *, by: RunDivision = "action", limit: int = 40) -> Document:
        """Return the document of an answer with its sketch first, where one was asked for.

        `by` is the table that is shown, of answers that have several; `limit` how many rows are drawn at most.
        """
        if not self.plot:
            return document
        from joulemap.figure.sketch import make_sketches
        from joulemap.present.document import Section, Text

        drawn = [one for drawing in answer.sketched(by) for one in make_sketches(drawing, limit, answer.projected)]
        section = Section("Sketch", drawn)
        nothing = Section("Sketch", Text("nothing to draw: no row has a value"))
        return document.after([section if section.texts else nothing])


def begin_drawing() -> None:
    """Make ready what draws the images of a page; where it is not installed say so on stderr."""
    from joulemap.figure.convert import INSTALL, is_installed
    from joulemap.webpage.page import start_drawing

    if is_installed():
        start_drawing()
    else:
        voice.inform(f"joulemap: figures are drawn in characters: {INSTALL} draws images")


@frozen(kw_only=True)
class PageOptions(PlotOptions):
    """Whether an answer is drawn too, and the page that it is written to."""

    report: Path | None = option(None, "Also write a page with figures to this .html.")

    def workspace(self, output: OutputOptions) -> Workspace:
        """Return the workspace of an output; raises before anything is asked where the page cannot be written."""
        if self.report is not None:
            from joulemap.system.file import check_output

            check_suffix(self.report, ".html", "a page")
            check_output(self.report, (output.db,), force=output.force)
            begin_drawing()
        return output.workspace()

    def write(self, document: Document, answer: Answer, output: OutputOptions, *, subject: str) -> None:
        """Write the answer, and where one is asked for its page; `subject` says there what the question is."""
        if self.report is not None:
            from joulemap.answer.report.answer import report_answer
            from joulemap.webpage.page import write_page

            page = write_page(report_answer(answer, document, subject=subject, command=spell_line()))
            emit(page.rstrip("\n"), self.report, (output.db,), force=output.force)
        output.write(self.add(document, answer))
