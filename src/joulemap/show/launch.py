"""Page of the measured kernel launch times of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.ask.launch import HostAnswer
from joulemap.domain.label import MEASURED_HOST
from joulemap.domain.measurement import LARGEST_SPREAD
from joulemap.show.layout import lay_facts
from joulemap.show.present.template import Template
from joulemap.show.shape import Part
from joulemap.show.sheet import Sheet

TITLE: Final = Template("this machine launches a kernel in {launch_s:s}")
TIMES: Final = ("timed on {device} | {call_s:s}", "launch on a GPU beside it | {launch_s:s}")
TIMED_NOTE: Final = "timed: a hundred calls of PyTorch from Python: convolutions, norms, relus and sums of one pixel"
SCALED_NOTE: Final = Template(
    "estimated, because this machine has no GPU: {ratio:x} the time of a call on the CPU itself, the ratio of measured "
    "clocks between {host} with a GPU and a Zen 5 without one; --device cuda measures it"
)
SPREAD_NOTE: Final = Template("not reliable: the spread is {spread_fraction:%}; measure on an idle machine")


def list_notes(answer: HostAnswer) -> Iterator[str]:
    """Yield notes on the timed calls, and on an estimated or unreliable time."""
    pace = answer.pace
    yield TIMED_NOTE
    if pace.is_scaled:
        yield SCALED_NOTE(ratio=pace.launch_s / pace.call_s, host=MEASURED_HOST)
    if pace.spread_fraction > LARGEST_SPREAD:
        yield SPREAD_NOTE(pace)


PAGES: Final = {
    HostAnswer: Sheet(
        title=lambda answer: TITLE(answer.pace),
        parts=(
            Part(
                table="paces",
                draw=lambda answer, *_, **__: lay_facts("kind of call | time", TIMES, answer.pace),
            ),
        ),
        notes=list_notes,
        steps=("compare resnet18 --hardware {chip} --runtime eager --set {chip}:{setting}",),
        csv="paces",
    )
}
