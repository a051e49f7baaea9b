"""Whether an answer is drawn too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.answer import RunAnswer
    from joulemap.domain.settings import RunDivision
    from joulemap.present.document import Document


@frozen(kw_only=True)
class PlotOptions:
    """Whether an answer is drawn too."""

    plot: Annotated[
        bool,
        typer.Option("--plot", help="Also draw the answer in characters, above its tables; json and csv leave it out."),
    ] = False

    def add(self, document: Document, answer: RunAnswer, *, by: RunDivision = "action", limit: int = 40) -> Document:
        """Return the document of an answer with its sketch first, where one was asked for.

        `by` is the table that is shown, of answers that have several; `limit` how many rows are drawn at most.
        """
        if not self.plot:
            return document
        from joulemap.figure.sketch import make_sketches
        from joulemap.present.document import Section, Text

        projected = answer.scope.projected
        drawn = [one for drawing in answer.sketched(by) for one in make_sketches(drawing, limit, projected)]
        section = Section("Sketch", drawn)
        nothing = Section("Sketch", Text("nothing to draw: no row has a value"))
        return document.after([section if section.texts else nothing])
