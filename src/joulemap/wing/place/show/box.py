"""Words and tables for one box: its devices, and what joins them."""

from __future__ import annotations

from typing import Final

from joulemap.show import Asked, Document, Page, Section, Template, compose, fill_steps, show_table
from joulemap.show.present.document import Lines
from joulemap.wing.place.ask.box import BoxAnswer
from joulemap.wing.place.generated.row import BoxJoin, BoxPart

TITLE: Final = Template("{box}: {name}")
SUMMARY: Final = Template("{count:n device}[ that share {power_w:W}].")

STEP: Final = Template("place resnet50 {box}")


def draw_box(answer: BoxAnswer, asked: Asked) -> Document:
    """Return the document of a box: its devices, links and doubts."""
    doubts = [Section("Doubts", Lines(answer.doubts))] if answer.doubts else []
    return compose(
        answer,
        [
            *show_table(answer, "Devices", answer.parts, BoxPart.table),
            *show_table(answer, "Links and shared memories", answer.joins, BoxJoin.table),
        ],
        answer.parts,
        title=TITLE(answer),
        headline=SUMMARY(answer, count=sum(part.alike_count for part in answer.parts)),
        details=doubts,
        steps=fill_steps([STEP], answer, asked.repeated),
    )


PAGES: Final = {BoxAnswer: Page[BoxAnswer](draw=draw_box)}
