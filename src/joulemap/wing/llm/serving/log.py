"""What simulated servers leave behind: spells of passes that are alike, and the times of each request."""

from __future__ import annotations

from typing import Final

from joulemap.system.record import frozen

Spell = tuple[float, int, float, float, float, float, int, int, int, float, float, int]
"""Start, passes; seconds of the first, what each next is longer by; joules likewise; sequences that get tokens, prompt
tokens of a pass, sequences in work, tokens cached at the start; time since the last pass that gave tokens, and
sequences whose first token from a pass of answers is in the first."""

FIELDS: Final = (
    "start", "passes", "seconds", "longer", "joules", "dearer",
    "answers", "prompt", "running", "cached", "stall", "fresh",
)  # fmt: skip
"""Names of the numbers of a spell."""


@frozen(kw_only=True)
class Log:
    """Lists that grow while a server works; those of requests have a place for each."""

    gaps: list[float]
    """Times between tokens that are no pass's alone: of those that just joined, or were worked out again."""
    gap_ends: list[float]
    """When each of these gaps ended."""
    arrival: list[float | None]
    first_token: list[float | None]
    finished: list[float | None]
    token_at: list[float]
    """When each had its last token, where it joined or was preempted."""
    preemptions: list[int]

    @staticmethod
    def of(count: int) -> Log:
        """Return the empty log of so many requests."""
        return Log(
            gaps=[],
            gap_ends=[],
            arrival=[None] * count,
            first_token=[None] * count,
            finished=[None] * count,
            token_at=[0.0] * count,
            preemptions=[0] * count,
        )
