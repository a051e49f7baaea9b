"""Answers that build their documents themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from joulemap.ask import answer as asked
from joulemap.domain.settings import RunDivision
from joulemap.domain.table import Table
from joulemap.show import page
from joulemap.show.layout import fill
from joulemap.show.page import NO_TEXTS, Drawings, Figures
from joulemap.show.present.cell import mark_projected
from joulemap.show.present.document import Document, EnergyCell, Grid, Section, Text, draw_columns
from joulemap.show.present.template import Template
from joulemap.show.title import Title
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.ask.fact import Facts
    from joulemap.domain.figure import DrawingName, ShownName
    from joulemap.show.figure.figure import Drawing, Figure


@frozen(kw_only=True)
class Answer(asked.Answer):
    """Result of a question; options of `document` select what people see of it."""

    def document(self) -> Document:
        """Return the document for display and programs; its options select what people see."""
        raise NotImplementedError

    def figures(self) -> Figures:
        """Return the figures (charts) of the answer; empty if it has none."""
        return ()

    def sketched(self, _by: RunDivision, /) -> Drawings:
        """Return the text drawings that a terminal shows; by default, the figures themselves are drawn as text."""
        return self.figures()

    def _lay(self, table: Table[Any], columns: str, **shown: Any) -> Grid:
        return page.lay_rows(self, table, columns, **shown)

    def _fill(self, template: Template, row: object = None, /, **values: Any) -> str:
        return fill(template, row, self.projected, **values)


@frozen(kw_only=True)
class RunAnswer(Answer, asked.RunAnswer):
    """Result of a question about runs."""

    def _bind(self, title: Title | None = None, meanings: Mapping[str, str] = NO_TEXTS) -> str:
        return page.bind_title(self, title, meanings, self._beside_boundary)

    def _count_left_out(self) -> tuple[Text, ...]:
        return page.tell_left_out(self.scope, is_brief=True)

    def _describe_left_out(self) -> tuple[Text, ...]:
        return page.tell_left_out(self.scope)

    def _mark(self, text: str) -> str:
        return mark_projected(text, self.projected)

    def _show_share(self, energy: EnergyCell) -> str:
        return page.show_share(self.scope, energy)

    @property
    def _beside_boundary(self) -> str:
        """Text after the boundary on an additional part of the values, such as ` plus host`; empty by default."""
        return ""

    def _lay_out(
        self, title: Title, sections: Sequence[Section], table: Table[Any], *, answer: str, **texts: Any
    ) -> Document:
        return page.lay_out(self, title, sections, table, headline=answer, beside=self._beside_boundary, **texts)

    def _compose_facts(
        self, facts: Facts, sections: Sequence[Section], table: Table[Any], *, answer: str, **texts: Any
    ) -> Document:
        return page.compose(self, facts, sections, table, headline=answer, beside=self._beside_boundary, **texts)

    def _draw_figure(
        self,
        name: ShownName,
        table: Table[Any],
        subject: Title | None = None,
        facts: str = "",
        texts: Mapping[str, str] = NO_TEXTS,
    ) -> Figure:
        return page.draw_figure(self.scope, name, table, subject, facts, texts)

    def _sketch(self, name: DrawingName, table: Table[Any], texts: Mapping[str, str] = NO_TEXTS) -> Drawing:
        return page.sketch(name, table, texts)

    def _fill_steps(
        self, steps: Iterable[Template], row: object, repeated: Sequence[str], /, **values: Any
    ) -> list[list[str]]:
        return page.fill_steps(steps, row, repeated, **values)

    def _show(self, table: Table[Any], columns: Sequence[str], *, keep: Sequence[str] = ()) -> Grid:
        return draw_columns(table, columns=columns, keep=keep, is_bare=True, projected=self.scope.unavailable)
