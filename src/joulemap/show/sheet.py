"""Pages of answers that are not about runs: a title, a first line, tables, notes and follow-up commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from joulemap.show.page import Figures, add_marks, fill_steps
from joulemap.show.present.document import Document
from joulemap.show.present.template import Template
from joulemap.show.shape import NOTHING, Part
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.answer import Answer


def say_nothing(_answer: Any) -> str:
    """Return no text."""
    return ""


@frozen(kw_only=True)
class Sheet:
    """Texts and parts of an answer; each function takes the answer."""

    title: Callable[[Any], str] = say_nothing
    first: Callable[[Any], str] = say_nothing
    """First line."""
    parts: tuple[Part, ...]
    shown_count: int = 1
    """Number of parts on the first screen; the others are details."""
    trust: Callable[[Any], str] = say_nothing
    notes: Callable[[Any], Iterable[str]] = lambda _: ()
    steps: tuple[str, ...] = ()
    """Follow-up commands, with slots for fields of `row` and for the choices."""
    row: str = ""
    """Field or property of the answer that fills slots of steps."""
    csv: str
    """Table of csv."""
    choices: Callable[..., Mapping[str, Any]] = lambda _answer, **_: NOTHING
    """Function of the answer and the options of `document` that returns values of slots in parts and steps."""
    limit: int | None = None
    """Number of rows of long tables unless given."""

    def headline(self, answer: Any) -> str:
        """Return the first line."""
        return self.first(answer)

    def document(self, answer: Answer, *, limit: int | None = None, **chosen: Any) -> Document:
        """Return the document with `limit` rows of long tables."""
        values = self.choices(answer, **chosen)
        most = self.limit if limit is None else limit
        sections = [part.show(answer, most, values) for part in self.parts]
        shown, details = ([one for own in some for one in own]
                          for some in (sections[: self.shown_count], sections[self.shown_count :]))  # fmt: skip
        steps = map(Template, self.steps) if values.get("has_steps", True) else ()
        row = getattr(answer, self.row) if self.row else None
        return Document(
            title=self.title(answer),
            answer=self.headline(answer),
            sections=tuple(shown),
            sure=self.trust(answer),
            details=tuple(details),
            notes=add_marks(tuple(self.notes(answer)), (*shown, *details)),
            steps=tuple(shlex.join(("joulemap", *words)) for words in fill_steps(steps, row, (), **values)),
            data=answer.data(),
            table=getattr(answer, self.csv),
            tables=answer.tables,
        )

    def figures(self, _answer: Any) -> Figures:
        """Return the figures of an answer; it has none."""
        return ()

    def sketched(self, _answer: Any, _by: str) -> Sequence[Any]:
        """Return the drawings of an answer; it has none."""
        return ()
