"""Words and table of probes of hardware at its limits."""

from __future__ import annotations

from typing import Final

from joulemap.ask.sanity import SanityAnswer
from joulemap.generated.hardware import Probe
from joulemap.show.column import show_table
from joulemap.show.page import Asked, Page, compose
from joulemap.show.present.document import Document, Text
from joulemap.show.present.template import Template

STATES: Final = ("ok", "anchored", "measured", "partial", "low", "high", "unsupported")

COUNTS: Final = Template("{total:n probe}: {counts:list}")
COUNT: Final = Template("{count} {status}")
MEANING: Final = (
    "ok: a matrix product draws 0.6 to 1 of the power cap, a copy at most the cap; low, high: below or above this "
    "range, or over 25 % off a measured copy; partial: the product uses only part of the chip; anchored: unattributed "
    "energy, derived from the power limit, makes up the rest; measured: energies are fitted to a measured load; "
    "the clock also drops slightly below the cap, where a capped run draws less than the cap (coefficient cap_share)"
)


def draw_probes(answer: SanityAnswer, _asked: Asked) -> Document:
    """Return the probes with the number of each status, and what the statuses mean."""
    of, status = Probe, [probe.status for probe in answer.probes]
    counts = [COUNT(count=sum(one == name for one in status), status=name) for name in STATES]
    texts = Text(COUNTS(total=len(status), counts=counts)), Text(MEANING)
    keep = (of.precision, of.status, of.power_ratio, of.model)
    return compose(answer, show_table(answer, "", answer.probes, of.table, *texts, keep=keep), answer.probes)


PAGES: Final = {SanityAnswer: Page[SanityAnswer](draw=draw_probes)}
