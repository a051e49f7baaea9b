"""Whether an answer is drawn too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from joulemap.record import frozen

if TYPE_CHECKING:
    from joulemap.answer.answer import Answer
    from joulemap.domain.settings import ModelDivision, RunDivision
    from joulemap.present.document import Document


@frozen(kw_only=True)
class PlotOptions:
    """Whether an answer is drawn too."""

    plot: Annotated[
        bool,
        typer.Option("--plot", help="Also draw the answer in characters, above its tables; json and csv leave it out."),
    ] = False

    def add(
        self, document: Document, answer: Answer, *, by: RunDivision | ModelDivision = "action", limit: int = 40
    ) -> Document:
        """Return the document of an answer with its sketch first, where one was asked for.

        `by` is the table that is shown, of answers that have several; `limit` how many rows are drawn at most.
        """
        if not self.plot:
            return document
        from joulemap.answer.sketch.answer import sketch_answer
        from joulemap.answer.sketch.choice import Choice

        return document.after(sketch_answer(answer, Choice(by=by, limit=limit)))
