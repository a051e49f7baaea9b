"""Records of simulated servers: spells of identical passes, and the times of each request."""

from __future__ import annotations

import math
from typing import Final

from joulemap.system import define

Spell = tuple[float, int, float, float, float, float, int, int, int, float, int]
"""One spell, a series of passes of the same sequences: start; number of passes; seconds of the first pass and increase
per further pass; joules likewise; sequences that get tokens; prompt tokens per pass; active sequences; time since the
last pass that gave tokens; sequences whose first token from a decode pass falls in the first pass.
"""

FIELDS: Final = (
    "start", "passes", "seconds", "longer", "joules", "dearer",
    "answers", "prompt", "running", "stall", "fresh",
)  # fmt: skip
"""Field names of a spell, in order."""


@define(kw_only=True)
class Log:
    """Lists that grow while a server works; the per-request lists have one element for each request."""

    gaps: list[float]
    """Seconds between tokens that span several passes, of sequences that just joined or were recomputed."""
    gap_ends: list[float]
    """End time of each gap in `gaps`."""
    arrival: list[float | None]
    first_token: list[float | None]
    finished: list[float | None]
    token_at: list[float]
    """Time of each request's last token, recorded when the request joins decode or is preempted."""
    preemptions: list[int]
    full_from: float = 0.0
    """Time from which the number of active conversations is steady; earlier turns are not counted."""
    full_until: float = math.inf
    """Time of the last new conversation, after which the load falls; infinite without conversations."""

    @staticmethod
    def of(count: int) -> Log:
        """Return an empty log for `count` requests."""
        return Log(
            gaps=[],
            gap_ends=[],
            arrival=[None] * count,
            first_token=[None] * count,
            finished=[None] * count,
            token_at=[0.0] * count,
            preemptions=[0] * count,
        )
