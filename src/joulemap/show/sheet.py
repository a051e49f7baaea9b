"""Pages of answers that are not about runs: a title, a first line, tables, reasons, notes and follow-up commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from joulemap.show.caveat import describe_trust
from joulemap.show.page import add_marks, draw_picture, fill_steps, list_facts
from joulemap.show.present.document import Document
from joulemap.show.present.template import Template
from joulemap.show.shape import NOTHING, Page
from joulemap.system.record import frozen


def say_nothing(_answer: Any) -> str:
    """Return no text."""
    return ""


@frozen(kw_only=True)
class Sheet(Page):
    """Texts and parts of an answer; each function takes the answer."""

    title: Callable[[Any], str] = say_nothing
    first: Callable[[Any], str] = say_nothing
    """First line."""
    shown_count: int = 1
    """Number of parts on the first screen; the others are details."""
    reasons: Callable[[Any], Iterable[str]] = lambda _: ()
    """Lines on why, most important first."""
    trust: Callable[[Any], str] = say_nothing
    is_decision: bool = False
    """True if the first line is a decision from the facts, which are in the data and by default tell the trust."""
    steps: tuple[str, ...] | Callable[[Any], Sequence[str]] = ()
    """Follow-up commands, with slots for fields of `row` and for the choices; or a function of the answer that returns
    whole commands.
    """
    row: str = ""
    """Field or property of the answer that fills slots of steps; empty for the answer itself."""
    each: Callable[[Any], Iterable[Mapping[str, Any]]] = lambda _: (NOTHING,)
    """Function of the answer that returns further values of slots; each command is filled with each of them."""
    choices: Callable[..., Mapping[str, Any]] = lambda _answer, **_: NOTHING
    data: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """Function of the answer and its texts by name that returns what programs get; by default tables, and of a
    decision the first line, the trust and the facts.
    """
    limit: int | None = None
    """Number of rows of long tables unless given."""

    def headline(self, answer: Any) -> str:
        """Return the first line."""
        return self.first(answer)

    def document(
        self, answer: Any, *, limit: int | None = None, repeated: Sequence[str] = (), **chosen: Any
    ) -> Document:
        """Return the document with `limit` rows of long tables; commands repeat the options of the asked one."""
        most = self.limit if limit is None else limit
        values = self.choices(answer, limit=most, **chosen)
        sections = [part.show(answer, most, values) for part in self.parts]
        shown, details = ([one for own in some for one in own]
                          for some in (sections[: self.shown_count], sections[self.shown_count :]))  # fmt: skip
        first, reasons, notes = self.headline(answer), list(self.reasons(answer)), list(self.notes(answer))
        sure = self.trust(answer) or (describe_trust(answer.facts) if self.is_decision else "")
        steps = self._fill_steps(answer, values, repeated)
        told = {"answer": first, "insights": reasons, "how_sure": sure, "notes": notes, "next_steps": steps}
        return Document(
            title=values.get("title") or self.title(answer),
            answer=first,
            sections=tuple(shown),
            insights=tuple(reasons),
            is_decision=self.is_decision,
            sure=sure,
            details=tuple(details),
            notes=add_marks(notes, (*shown, *details)),
            steps=tuple(steps),
            data=self._list_data(answer, told),
            table=getattr(answer, self.csv),
            tables=answer.tables,
            picture=partial(draw_picture, partial(self.picture, answer), answer),
        )

    def _fill_steps(self, answer: Any, values: Mapping[str, Any], repeated: Sequence[str]) -> list[str]:
        if callable(self.steps):
            return list(self.steps(answer))
        asked = [Template(one) for one in self.steps] if values.get("has_steps", True) else []
        row = getattr(answer, self.row) if self.row else answer
        filled = (fill_steps(asked, row, repeated, **values, **one) for one in self.each(answer))
        return list(dict.fromkeys(shlex.join(("joulemap", *words)) for some in filled for words in some))

    def _list_data(self, answer: Any, told: Mapping[str, Any]) -> Any:
        if self.data is not None:
            return self.data(answer, told)
        own, words = answer.data(), self.words(answer)
        if not self.is_decision:
            return {**own, **words} if words else own  # a list has no texts beside it
        texts = {"answer": told["answer"], "how_sure": told["how_sure"]}
        return {**own, **words, **texts, **list_facts(answer.facts)}
