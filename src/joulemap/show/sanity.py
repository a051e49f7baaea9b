"""Words and table of probes of hardware at its limits."""

from __future__ import annotations

from typing import Final

from joulemap.ask.sanity import SanityAnswer
from joulemap.show.present.document import Block, Grid, Text
from joulemap.show.present.template import Template
from joulemap.show.shape import Part
from joulemap.show.sheet import Sheet

STATES: Final = ("ok", "anchored", "measured", "partial", "low", "high", "unsupported")

COUNTS: Final = Template("{total:n probe}: {counts:list}")
COUNT: Final = Template("{count} {status}")
MEANING: Final = (
    "ok: a matrix product draws 0.6 to 1 of the power cap, a copy at most the cap; low, high: below or above this "
    "range, or over 25 % off a measured copy; partial: the product uses only part of the chip; anchored: unattributed "
    "energy, derived from the power limit, makes up the rest; measured: energies are fitted to a measured load; "
    "the clock also drops slightly below the cap, where a capped run draws less than the cap (coefficient cap_share)"
)


def draw_probes(answer: SanityAnswer, grid: Grid) -> tuple[Block, ...]:
    """Return the probes with the number of each status, and what the statuses mean."""
    status = [probe.status for probe in answer.probes]
    counts = [COUNT(count=sum(one == name for one in status), status=name) for name in STATES]
    return grid, Text(COUNTS(total=len(status), counts=counts)), Text(MEANING)


PAGES: Final = {
    SanityAnswer: Sheet(
        csv="probes",
        parts=(
            Part(
                table="probes",
                columns="hardware | model | precision | status | average_power_w | tdp_w | power_ratio | "
                "uncapped_ratio | unattributed_share_fraction | compute_utilization_fraction | "
                "bandwidth_utilization_fraction | measured_power_w | measured_ratio | reason",
                lay={"keep": "precision status power_ratio model"},
                make=draw_probes,
            ),
        ),
    )
}
