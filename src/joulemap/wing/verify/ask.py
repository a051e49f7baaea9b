"""Facts of a verification: a score per measurement, what was not scored, and the likeliest cause of the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask.fact import Facts, Quantity, Refusal, Score, Subject
from joulemap.ask.finding import Finding
from joulemap.ask.rule import weigh_findings

if TYPE_CHECKING:
    from joulemap.wing.verify.answer.cause import CauseRow
    from joulemap.wing.verify.answer.record import VerifiedRow

LIKELY: Final = ("assumed", "open", "stated")
"""Standings of causes that do not contradict a file."""


def find_facts(
    rows: Sequence[VerifiedRow], causes: Sequence[CauseRow], units: Mapping[str, str], other_chip: str
) -> Facts:
    """Return the facts of measured rows; a run of the facts is a row.

    `units` maps a quantity to its unit. `other_chip` is a note on a chip that the file names in place of the user's.
    """
    known = dict(enumerate(rows, 1))
    scores = [_score(key, row, units) for key, row in known.items() if row.measured is not None and row.predicted]
    refusals = [Refusal(runs=(key,), reason=row.reason) for key, row in known.items() if row.reason]
    caveats = weigh_findings([*_find_causes(scores, causes, other_chip)], ())
    return Facts(
        asked=tuple(dict.fromkeys(row.quantity for row in rows)),
        runs={
            key: Subject(hardware=row.hardware, settings=(row.model, row.configuration)) for key, row in known.items()
        },
        facts=(*scores, *refusals, *caveats),
    )


def _score(key: int, row: VerifiedRow, units: Mapping[str, str]) -> Score:
    assert row.measured is not None
    assert row.predicted is not None
    unit = units[row.quantity]
    width = math.log(row.high / row.predicted) if row.high else None
    return Score(
        runs=(key,),
        metric=row.quantity,
        predicted=Quantity(row.predicted, unit, width),
        measured=Quantity(row.measured, unit),
        is_inside=row.is_inside,
    )


def _find_causes(scores: Sequence[Score], causes: Sequence[CauseRow], other_chip: str) -> Iterator[Finding]:
    """Yield the cause that explains most of what is outside, if there is one."""
    if not any(one.is_inside is False for one in scores):
        return
    best = next((row for row in causes if row.standing in LIKELY), None)
    if other_chip:
        yield Finding(kind="other_chip", values={"text": other_chip})
    elif best is not None and best.inside_count:
        yield Finding(kind="cause", values={"change": best.change, "standing": best.standing})
