"""Options for pages next to an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Unpack

from joulemap.cli.argument import spell_line
from joulemap.cli.command import advanced
from joulemap.cli.output import OutputOptions, check_suffix, emit
from joulemap.cli.panel import OUTPUT
from joulemap.cli.voice import voice
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer
    from joulemap.cli.option.run import ModelOptions
    from joulemap.show.view import Options
    from joulemap.workspace import Workspace


def begin_drawing() -> None:
    """Start the process that draws the images of a page; report on stderr if it is not installed."""
    from joulemap.show.figure.convert import INSTALL, is_installed
    from joulemap.show.webpage.page import start_drawing

    if is_installed():
        start_drawing()
    else:
        voice.inform(f"joulemap: figures are text charts; {INSTALL} draws images")


@frozen(kw_only=True)
class PageOptions:
    """Option for an HTML page of an answer."""

    panel: ClassVar[str] = OUTPUT
    report: Path | None = advanced(None, "Also write an HTML page with figures.", metavar="FILE.html")

    def workspace(self, output: OutputOptions) -> Workspace:
        """Return the workspace of an output. Raises before any work if the page cannot be written."""
        if self.report is not None:
            from joulemap.system.file import check_output

            check_suffix(self.report, ".html", "a page")
            check_output(self.report, (output.db,))
            begin_drawing()
        return output.workspace()

    def present(
        self, answer: Answer, output: OutputOptions, run: ModelOptions | None = None, **options: Unpack[Options]
    ) -> None:
        """Write the answer, and its page if requested."""
        document = output.draw(answer, run, **options)
        if self.report is not None:
            from joulemap.show.report import report_answer
            from joulemap.show.webpage.page import write_page

            page = write_page(report_answer(answer, document, command=spell_line()))
            emit(page.rstrip("\n"), self.report, (output.db,))
        output.write(document, answer)
