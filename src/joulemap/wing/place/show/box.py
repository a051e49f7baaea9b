"""Words and tables for one box: its devices, and what joins them."""

from __future__ import annotations

from typing import Final

from joulemap.show import Part, Sheet, Template
from joulemap.show.present.document import Lines
from joulemap.wing.place.ask.box import BoxAnswer

TITLE: Final = Template("{box}: {name}")
SUMMARY: Final = Template("{count:n device}[ that share {power_w:W}].")

PAGES: Final = {
    BoxAnswer: Sheet(
        title=TITLE,
        first=lambda answer: SUMMARY(answer, count=sum(part.alike_count for part in answer.parts)),
        csv="parts",
        steps=("place resnet50 {box}",),
        choices=lambda answer, **_: {"box": answer.box},
        shown_count=2,
        parts=(
            Part(
                title="Devices",
                table="parts",
                columns="device | *hardware | *alike_count | memory | layout",
            ),
            Part(
                title="Links and shared memories",
                table="joins",
                columns="joined_by | *devices devices | *bandwidth_bytes_per_s | *latency_s | energy_per_byte_j | "
                "basis | source",
            ),
            Part(title="Doubts", table="doubts", draw=lambda answer, *_, **__: Lines(answer.doubts)),
        ),
    )
}
