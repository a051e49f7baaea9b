"""Facts on constants: which would make the other of two chips win, and how far each moves a metric of one chip."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Quantity, Refusal, Share, Subject, Swing, Turn
from joulemap.ask.rule import find_caveats, name_weighed
from joulemap.ask.scope import Scope
from joulemap.domain.metric import METRIC, MetricName
from joulemap.physics.interval.error_scale import TOLD_APART

MOST_TURNS: Final = 10
"""Maximum constants among the facts; tables have all."""

UNCERTAINTY: Final = "uncertainty"
"""Whole that shares of constants refer to."""

HALF: Final = 0.5
"""Share of a lead below which it counts as lost by half."""


def is_better(metric: MetricName, value: float, other: float) -> bool:
    """Return whether a value of a metric is better than another one."""
    return (value < other) != METRIC[metric].is_higher_better


def choose(scope: Scope, metric: MetricName, values: Sequence[float], probability: float | None) -> Choice:
    """Return the better of two runs by a metric; `values` has their values."""
    (value_a, value_b), (run_a, run_b) = values, scope.run_ids
    is_first = is_better(metric, value_a, value_b)
    winner, loser = (run_a, run_b) if is_first else (run_b, run_a)
    is_close = probability is not None and probability < TOLD_APART
    return Choice(
        runs=(winner, loser),
        metric=metric,
        value=Quantity(value_a if is_first else value_b, METRIC[metric].unit),
        ratio=max(value_a / value_b, value_b / value_a),
        probability=probability,
        tied=(loser,) if is_close else (),
    )


def find_reversals(
    runs: Mapping[int, Subject],
    choice: Choice,
    caveats: Sequence[Caveat | Refusal],
    rows: Sequence[Any],
    batches: Iterable[Any],
    odds_of_half: float | None,
) -> Facts:
    """Return the facts of a reversal: the better run, constants that would reverse the order, batch sizes at which it
    is the other one, and shares of the uncertainty.

    `runs` are A and B, `rows` the constants, `batches` the better side at each batch size, and `odds_of_half` is the
    probability that the true ratio is at most half of the predicted one.
    """
    run_a, run_b = runs
    sides = {"A": (run_a,), "B": (run_b,), "both": (run_a, run_b)}
    winner, loser = choice.runs
    reverting = sorted((row for row in rows if row.flip_ratio is not None), key=lambda row: -(row.likelihood or 0.0))
    turns = [
        Turn(
            runs=(loser, winner),
            axis=row.constant,
            name=row.word,
            of=sides[row.side],
            before=Quantity(row.value, row.shown_unit),
            after=Quantity(row.flip_value, row.shown_unit),
            probability=row.likelihood,
        )
        for row in reverting
    ]
    own = "A" if winner == run_a else "B"
    other = [row.batch for row in batches if row.winner not in (None, own)]
    half = [Turn(runs=(loser, winner), axis="ratio", after=HALF, probability=odds_of_half)]
    facts = (
        choice,
        *turns[:MOST_TURNS],
        *(one for one in turns[MOST_TURNS:] if one.of not in {known.of for known in turns[:MOST_TURNS]}),
        *(Turn(runs=(loser, winner), axis="batch", after=batch) for batch in other),
        *(half if odds_of_half is not None else ()),
        *_share_out(rows, sides),
        *caveats,
    )
    return Facts(asked=(choice.metric,), runs=runs, facts=facts)


def _share_out(rows: Sequence[Any], sides: Mapping[str, tuple[int, ...]]) -> Iterator[Share]:
    """Yield the share of the uncertainty of the constant with the largest, of those that can reverse the order if some
    can, then of each side.
    """
    moving = [row for row in rows if row.variance_fraction]
    if moving:
        reversing = [row for row in moving if row.flip_ratio is not None]
        first = max(reversing or moving, key=lambda row: row.variance_fraction)
        yield Share(
            runs=sides[first.side],
            metric=UNCERTAINTY,
            axis=first.constant,
            name=first.word,
            basis=first.basis,
            share=first.variance_fraction,
        )
    for side, runs in sides.items():
        share = math.fsum(row.variance_fraction for row in moving if row.side == side)
        if share:
            yield Share(runs=runs, metric=UNCERTAINTY, share=share)


def find_swings(scope: Scope, rows: Sequence[Any], metric: MetricName) -> Facts:
    """Return the facts of a sensitivity: the metric of each run, the constants that move it most, and caveats."""
    ids = {one.configured_hardware: run_id for run_id, one in scope.outlines.items()}
    weighed = name_weighed(metric)
    unit = METRIC[metric].unit
    entries, swings = [], []
    for hardware, run_id in ids.items():
        own = [row for row in rows if row.hardware == hardware]
        if not own or own[0].metric_value is None:
            continue
        outline = scope.outlines[run_id]
        width = outline.energy_half_width if weighed == "energy" else outline.latency_half_width
        is_plain = sum(abs(one) for one in (METRIC[metric].latency_power, METRIC[metric].energy_power)) == 1.0
        value = Quantity(own[0].metric_value, unit, width if is_plain else None)
        entries.append(Entry(runs=(run_id,), values={metric: value}))
        swings += [
            Swing(
                runs=(run_id,),
                axis=row.constant,
                name=row.word,
                basis=row.basis,
                ends=tuple(Quantity(one, row.shown_unit) for one in row.ends),
                values=tuple(Quantity(one, unit) for one in row.metrics),
                share=row.span_fraction,
            )
            for row in own[:MOST_TURNS]
            if row.span_fraction or row.elasticity
        ]
    weights = [Choice(runs=tuple(scope.evaluated_ids[:2]), metric=metric, value=Quantity(0.0, unit))]
    caveats = find_caveats(scope, weights, metric=metric)
    return Facts(asked=(metric,), runs=scope.subjects({}), facts=(*entries, *swings, *caveats))
