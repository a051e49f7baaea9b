"""Facts of an energy-delay product: its values, the parts that make most of it, and what a change would save."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from joulemap.ask.fact import Change, Entry, Fact, Facts, Quantity, Share
from joulemap.ask.part import choose_least, enter, gather
from joulemap.ask.scope import Scope
from joulemap.generated.edp import EdpBound, EdpComparison, EdpCut, EdpPattern, EdpShare, EdpTotal
from joulemap.physics.record.runtime import RUNTIME

HALF: Final = 0.5
"""Share of the product that the largest subgraphs of a fact make."""

WORTH: Final = 0.01
"""Minimum share of the product that a change saves or costs to be a fact."""

FUSION, LAUNCH, HALVING = "fusion", "launch", "halving"
"""Causes of changes, beside the remedies of the query `edp.bound`."""


def find_facts(
    scope: Scope,
    total: EdpTotal,
    *,
    cuts: Iterable[EdpCut],
    subgraphs: Sequence[EdpShare],
    patterns: Sequence[EdpPattern],
    bounds: Sequence[EdpBound],
    comparison: Sequence[EdpComparison],
) -> Facts:
    """Return the facts of one run: its product, that of other hardware, the subgraphs that make half of it, the chips
    with the least product of most subgraphs, and changes that would reduce it.
    """
    runs = (total.run_id,)
    sums = {total.run_id: total.edp_js}
    for row in comparison:
        if row.run_id != total.run_id:
            sums[row.run_id] = sums.get(row.run_id, 0.0) + row.edp_share_js
    half = next(row for row in cuts if row.level == "subgraph" and row.cut_fraction >= HALF)
    facts: list[Fact] = [
        *(choose_least(scope, "edp") if comparison else []),
        enter(scope, total, "edp"),
        *(
            Entry(runs=(run_id,), values={"edp": Quantity(edp, "Js")})
            for run_id, edp in sums.items()
            if run_id != total.run_id
        ),
        Share(
            runs=runs,
            metric="edp",
            level="subgraph",
            share=half.reached_fraction,
            count=half.top_count,
            total=half.total_count,
        ),
        *_count_wins(comparison),
        *_list_changes(total, subgraphs, bounds),
        *(
            Share(
                runs=runs,
                metric="edp",
                level="pattern",
                name=row.fusion_pattern,
                share=row.share_fraction,
                count=row.subgraph_count,
                total=total.subgraph_count,
            )
            for row in patterns[:1]
            if len(patterns) > 1
        ),
    ]
    return gather(scope, "edp", facts)


def _count_wins(comparison: Sequence[EdpComparison]) -> Iterator[Share]:
    """Yield, per run, the number of subgraphs of which it has the least product, most first."""
    wins = Counter(row.run_id for row in comparison if row.is_best)
    total = sum(wins.values())
    for run_id, count in sorted(wins.items(), key=lambda item: (-item[1], item[0])):
        yield Share(runs=(run_id,), metric="wins", level="subgraph", count=count, total=total, share=count / total)


def _list_changes(total: EdpTotal, subgraphs: Sequence[EdpShare], bounds: Sequence[EdpBound]) -> Iterator[Change]:
    """Yield the largest bound of a saving, the effect of fusion or of launches, and that of halving one subgraph."""
    for bound in bounds[:1]:
        if bound.saving_fraction >= WORTH:
            yield _change(total, total.edp_js, bound.edp_js, bound.remedy)
    ratio = total.separate_edp_js / total.edp_js
    if RUNTIME[total.runtime].merges and abs(ratio - 1.0) >= WORTH:
        yield _change(total, total.separate_edp_js, total.edp_js, FUSION)
    elif RUNTIME[total.runtime].launches_each and ratio <= 1.0 - WORTH:
        yield _change(total, total.edp_js, total.separate_edp_js, LAUNCH)
    if len(subgraphs) > 1:
        first = subgraphs[0]
        yield _change(total, total.edp_js, total.edp_js * (1.0 - first.halving_fraction), HALVING, name=first.name)


def _change(total: EdpTotal, before: float, after: float, cause: str, **values: str) -> Change:
    runs = (total.run_id, total.run_id)
    return Change(
        runs=runs, metric="edp", before=Quantity(before, "Js"), after=Quantity(after, "Js"), cause=cause, values=values
    )
