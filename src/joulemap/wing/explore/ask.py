"""Facts of an exploration: the best design by each objective, the size of the front, and what weakens both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Share, Subject
from joulemap.ask.finding import Finding
from joulemap.ask.rule import UNKNOWN, weigh_findings
from joulemap.physics.record.silicon import RETICLE

if TYPE_CHECKING:
    from joulemap.wing.explore.design.best import BestDesign, Beyond, Oversize
    from joulemap.wing.explore.design.outcome import Objective

ALIKE: Final = "tied"
"""Level of the share of the other designs that are statistically tied with the best by an objective."""


def find_facts(
    best: Sequence[BestDesign],
    objectives: Sequence[str],
    counts: Mapping[str, int],
    *,
    oversize: Oversize | None,
    beyond: Iterable[tuple[str, Beyond]],
    missed: Iterable[tuple[Objective, float, float]],
) -> Facts:
    """Return the facts of designs; a run of the facts is a design that is best by an objective.

    `counts` has the numbers of designs by kind; `oversize` has the designs of the front that exceed one die. `beyond`
    has constants that no existing chip has, with their names for people. `missed` has targets that the best design
    misses: objective, target and nearest value.
    """
    keys = {index: key for key, index in enumerate(dict.fromkeys(row.design_index for row in best), 1)}
    choices = [
        Choice(
            runs=(keys[row.design_index],),
            metric=row.objective,
            value=Quantity(row.value, row.unit, row.half_width),
            ratio=row.own_ratio,
        )
        for row in best
    ]
    entries = [
        Entry(
            runs=(key,),
            values={
                row.objective: Quantity(row.value, row.unit, row.half_width)
                for row in best
                if row.design_index == index
            },
        )
        for index, key in keys.items()
    ]
    whole = counts.get("points", 0) - 1
    alike = [
        Share(
            runs=(keys[row.design_index],),
            metric=row.objective,
            level=ALIKE,
            share=row.like_count / whole,
            total=row.like_count,
        )
        for row in best
        if whole > 0 and row.like_count
    ]
    sizes = Entry(runs=(), values={name: Quantity(float(count)) for name, count in counts.items()})
    findings = [*_find_missed(missed), *_find_own(list(keys.values()), oversize, beyond)]
    caveats = weigh_findings(findings, choices)
    names = {keys[row.design_index]: row.design for row in best}
    return Facts(
        asked=tuple(objectives),
        runs={key: Subject(hardware=name) for key, name in names.items()},
        facts=(*choices, *alike, *entries, sizes, *caveats),
    )


def _find_missed(missed: Iterable[tuple[Objective, float, float]]) -> Iterator[Finding]:
    """Yield targets that the best design misses."""
    for objective, target, nearest in missed:
        ends = {"target": Quantity(target, objective.unit), "value": Quantity(nearest, objective.unit)}
        yield Finding(kind="missed_target", values={"objective": objective.label, **ends}, doubt=UNKNOWN)


def _find_own(
    keys: Sequence[int], oversize: Oversize | None, beyond: Iterable[tuple[str, Beyond]]
) -> Iterator[Finding]:
    """Yield designs larger than one die, and constants that no existing chip has."""
    if oversize is not None:
        values = {"count": oversize.design_count, "limit_mm2": RETICLE.value, "most_mm2": oversize.largest_mm2}
        for key in keys:
            yield Finding(kind="oversize", run_id=key, values=values, doubt=UNKNOWN)
    for name, one in beyond:
        ends = {"value": Quantity(one.value, one.unit), "most": Quantity(one.most, one.unit)}
        chip = {"end": "maximum" if one.value > one.most else "minimum", "class": one.known, "chip": one.chip}
        yield Finding(kind="beyond", values={"name": name, **ends, **chip}, doubt=UNKNOWN)
