"""Facts about this machine: a row per model and chip, the largest model that runs, or the best chip for a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from joulemap.ask.fact import Choice, Entry, Facts, Limit, Quantity, Refusal, Subject
from joulemap.ask.finding import Finding
from joulemap.ask.rule import UNKNOWN, weigh_findings
from joulemap.domain.metric import TIE_RATIO
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.physics.interval.probability import probability_better
from joulemap.wing.here.serve import choose_largest, choose_row
from joulemap.wing.llm.serve import READING_RATE

if TYPE_CHECKING:
    from joulemap.wing.here.generated.row import RunHere, ServedHere

RATE: Final = "tokens_per_s"
LARGEST: Final = "largest_model"
FASTEST: Final = "fastest"
"""Metric of the choice of the fastest weights, which are less precise than those of the first choice."""

SERVED_VALUES: Final[Mapping[str, tuple[str, str, str]]] = {
    RATE: ("tokens_per_s", "1/s", "between_half_width"),
    "energy_per_token": ("output_token_j", "J", "output_token_half_width"),
    "first_token": ("first_token_s", "s", "first_token_half_width"),
    "power": ("power_w", "W", ""),
}
"""Metric of a language model -> field of a row, unit, and field with the half-width."""

RUN_VALUES: Final[Mapping[str, tuple[str, str, str]]] = {
    "latency": ("latency_s", "s", "latency_half_width"),
    "energy": ("energy_j", "J", "energy_half_width"),
    "power": ("power_w", "W", ""),
}
"""Metric of another model -> field of a row, unit, and field with the half-width."""


def find_facts(model: str, served: Sequence[ServedHere], runs: Sequence[RunHere], gaps: Iterable[str]) -> Facts:
    """Return the facts of the models on the chips of a machine; a run of the facts is a row of `served` or `runs`.

    `gaps` are sentences on what could not be read from the machine.
    """
    is_served = not model or bool(served)
    rows: Sequence[ServedHere | RunHere] = served if is_served else runs
    values = SERVED_VALUES if is_served else RUN_VALUES
    known = dict(enumerate(rows, 1))
    choices = list(_choose_served(model, served) if is_served else _choose_run(runs))
    unread = [Finding(kind="gap", values={"text": gap}, doubt=UNKNOWN) for gap in gaps]
    entries = [one for key, row in known.items() if (one := _enter(key, row, values)).values]
    refusals = [Refusal(runs=(key,), reason=row.reason) for key, row in known.items() if row.reason]
    least = Quantity(READING_RATE, "1/s")
    limits = [
        Limit(
            runs=one.runs[:1],
            metric=RATE,
            bound=least,
            value=one.value,
            miss=math.log(max(1.0, READING_RATE / one.value.value)),
        )
        for one in choices
        if one.metric == LARGEST
    ]
    return Facts(
        asked=(RATE,) if is_served else ("latency", "energy"),
        runs={key: Subject(hardware=row.label, settings=_list_settings(row)) for key, row in known.items()},
        facts=(*choices, *limits, *refusals, *entries, *weigh_findings(unread, choices)),
    )


def _list_settings(row: ServedHere | RunHere) -> tuple[str, ...]:
    weights = getattr(row, "weights", "")
    return (row.model, weights) if weights else (row.model,)


def _enter(key: int, row: ServedHere | RunHere, values: Mapping[str, tuple[str, str, str]]) -> Entry:
    quantities = {
        metric: Quantity(value, unit, getattr(row, width) if width else None)
        for metric, (field, unit, width) in values.items()
        if (value := getattr(row, field)) is not None
    }
    return Entry(runs=(key,), values=quantities)


def _choose_served(model: str, served: Sequence[ServedHere]) -> Iterator[Choice]:
    """Yield the largest model that is read as it comes; of one model, its most precise fast weights and the fastest."""
    best = choose_row(served) if model else choose_largest(served)
    if best is None or best.tokens_per_s is None:
        return
    keys = {id(row): key for key, row in enumerate(served, 1)}
    own = Quantity(best.tokens_per_s, "1/s", best.between_half_width)
    ratio = best.tokens_per_s / READING_RATE
    yield Choice(runs=(keys[id(best)],), metric=RATE if model else LARGEST, value=own, ratio=None if model else ratio)
    fastest = max(served, key=lambda row: row.tokens_per_s or 0.0)
    if model and fastest.weights != best.weights and fastest.tokens_per_s:
        value = Quantity(fastest.tokens_per_s, "1/s", fastest.between_half_width)
        ratio = fastest.tokens_per_s / best.tokens_per_s
        yield Choice(runs=(keys[id(fastest)], keys[id(best)]), metric=FASTEST, value=value, ratio=ratio)


def _choose_run(runs: Sequence[RunHere]) -> Iterator[Choice]:
    """Yield the chip with the lowest latency; errors of two chips count as independent."""
    timed = {key: row for key, row in enumerate(runs, 1) if row.latency_s}
    ranked = sorted(timed, key=lambda key: timed[key].latency_s or 0.0)
    if not ranked:
        return
    first = timed[ranked[0]]
    value = Quantity(first.latency_s or 0.0, "s", first.latency_half_width)
    if len(ranked) == 1:
        yield Choice(runs=(ranked[0],), metric="latency", value=value)
        return
    second = timed[ranked[1]]
    ratio = (second.latency_s or 0.0) / (first.latency_s or 1.0)
    width = math.hypot(first.latency_half_width or 0.0, second.latency_half_width or 0.0)
    chance = probability_better(ratio, width) if width else None
    is_tied = ratio <= TIE_RATIO or (chance is not None and chance < TOLD_APART)
    tied = (ranked[1],) if is_tied else ()
    yield Choice(runs=tuple(ranked), metric="latency", value=value, ratio=ratio, probability=chance, tied=tied)
