"""Facts of batches that arrive together: a row per configuration, the best hardware by each goal, and limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from joulemap.ask import (
    UNKNOWN,
    Choice,
    Entry,
    Facts,
    Finding,
    Quantity,
    Scope,
    Share,
    Value,
    choose,
    find_caveats,
)
from joulemap.domain import first_of_each
from joulemap.wing.decoder import ANSWER, PHASE_NAMES
from joulemap.wing.llm.ask.served import (
    COST,
    DECODE_ENERGY,
    FIRST,
    OTHER_INTERVALS,
    RATE,
    TIME,
    ExaminedDeployment,
    find_served,
    name_runs,
    represent,
)
from joulemap.wing.llm.capacity.case import OK, TOO_LARGE
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.generated.row import ServedPhase, ServedRow, ServedWinner

GOALS: Final[Mapping[str, str]] = {
    "between_tokens": TIME, "cost": COST, "energy": DECODE_ENERGY, "first_token": FIRST
}  # fmt: skip
"""Goal of a winner, most important first -> metric."""

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "batch": ("batch", ""),
    RATE: ("tokens_per_s", "1/s"),
    DECODE_ENERGY: ("output_token_j", "J", "output_token_half_width"),
    TIME: ("between_s", "s", "between_half_width"),
    FIRST: ("first_token_s", "s", "first_token_half_width"),
    COST: ("output_usd_per_million", "USD", "output_usd_half_width"),
}
"""Metric -> field of a row, unit, and field with the half-width."""


def find_facts(
    scope: Scope,
    question: Question,
    rows: Sequence[ServedRow],
    phases: Iterable[ServedPhase],
    winners: Iterable[ServedWinner],
    *,
    hosts: Mapping[str, SlowHost],
    hours: float | None,
) -> Facts:
    """Return the facts of batches; a run of the facts is a row, because rows may share a stored run.

    `hosts` maps hardware to its slow hosts, `hours` is the paid hours of a day in which it works.
    """
    steps = {(row.label, row.batch): row for row in phases if row.phase == ANSWER.name}
    deployed = [
        ExaminedDeployment.of(
            key,
            row,
            steps.get((row.label, row.batch)),
            hosts,
            run_id=row.decode_run_id,
            half_width=row.output_token_half_width,
            weight_bytes=row.model_bytes,
            largest_context=row.largest_context,
        )
        for key, row in enumerate(rows, 1)
    ]
    served = {key: row for key, row in enumerate(rows, 1) if row.status == OK}
    entries = {key: Entry.read(key, row, VALUES) for key, row in served.items()}
    labels = {key: row.label for key, row in served.items()}
    choices = [*_choose(winners, entries, labels)] if len({*labels.values()}) > 1 else []
    most_context = question.decoder.context_length
    own = (
        *find_served((one for one in deployed if one.key in served), question.stack.label, most_context=most_context),
        *_find_refused(rows),
        *_find_prices(served, hours),
        *_find_divided(served, question),
        *_find_settings(served),
    )
    caveats = find_caveats(
        scope, choices, metric="energy", more=own, stands_for=represent(deployed), but=OTHER_INTERVALS
    )
    return Facts(
        asked=(TIME, COST),
        runs=name_runs(scope, deployed),
        facts=(
            *choices,
            *_list_bounds(served),
            *entries.values(),
            *caveats,
        ),
    )


def _choose(
    winners: Iterable[ServedWinner], entries: Mapping[int, Entry], labels: Mapping[int, str]
) -> Iterator[Choice]:
    """Yield the best hardware by each goal at its best batch, then the other hardware by rank.

    A goal without a value of the first two by the first goal, such as a cost without its price, decides nothing.
    """
    leaders: set[str] = set()
    known = {row.goal: row for row in winners}
    for goal, metric in GOALS.items():
        if (winner := known.get(goal)) is None:
            continue
        known_values = {key: one.values[metric] for key, one in entries.items() if metric in one.values}
        ranked = sorted(known_values, key=lambda key: (known_values[key].value, key))
        best = first_of_each(ranked, labels.__getitem__)
        leaders = leaders or {winner.label, winner.runner_up or winner.label}
        if not leaders <= best.keys():
            continue
        rival = best.get(winner.runner_up or "")
        choice = choose(metric, {key: known_values[key] for key in best.values()}, chance=winner.probability_best)
        choice = attrs.evolve(choice, ahead=winner.probability_ahead if rival in choice.runs[1:2] else choice.ahead)
        yield attrs.evolve(choice, tied=tuple(best[one] for one in winner.rivals if one in best))


def _list_bounds(served: Mapping[int, ServedRow]) -> Iterator[Share]:
    """Yield what limits each phase of each configuration."""
    for phase in PHASE_NAMES:
        for key, row in served.items():
            bound, share = getattr(row, f"{phase}_bound"), getattr(row, f"{phase}_bound_fraction")
            if bound and share is not None:
                yield Share(runs=(key,), metric="time", within=phase, name=bound, share=share)


def _find_refused(rows: Sequence[ServedRow]) -> Iterator[Finding]:
    """Yield the smallest batch of each hardware that does not fit in its memory."""
    refused: dict[str, tuple[int, ServedRow]] = {}
    for key, row in enumerate(rows, 1):
        if row.status == TOO_LARGE:
            refused.setdefault(row.label, (key, row))
    for key, row in refused.values():
        yield Finding(kind="memory", run_id=key, values={"reason": row.reason})


def _find_divided(served: Mapping[int, ServedRow], question: Question) -> Iterator[Finding]:
    """Yield the number of devices that each hardware needs for the weights, if it is more than one.

    The number is told only if it follows from the memory, not from the question. The engine is named if its devices
    have different layers and so take turns, which is told of a requested number of devices too.
    """
    is_divided = not (question.serving.devices or question.alike or question.serving.data_devices > 1)
    engine = question.stack.label if question.stack.divides_layers else ""
    several = ((key, row) for key, row in reversed(list(served.items())) if row.device_count > 1)
    divided = {row.hardware if is_divided else row.label: (key, row) for key, row in several}
    for key, row in divided.values():
        values: dict[str, Value] = {"engine": engine}
        if is_divided:
            weights = Quantity(row.model_bytes, "B")
            values |= {"weights": weights, "device_count": row.device_count, "precision": row.precision}
            yield Finding(kind="divided", run_id=key, values=values)
        elif engine:
            yield Finding(kind="turns", run_id=key, values=values)


def _find_settings(served: Mapping[int, ServedRow]) -> Iterator[Finding]:
    """Yield the setting of the system without which a GPU cannot hold the model."""
    for key, row in served.items():
        if row.setting:
            yield Finding(kind="setting", run_id=key, values={"setting": row.setting}, doubt=UNKNOWN)


def _find_prices(served: Mapping[int, ServedRow], hours: float | None) -> Iterator[Finding]:
    """Yield the price of a device behind each cost."""
    for key, row in served.items():
        if row.way and row.price_text and row.output_usd_per_million is not None:
            values = {"way": row.way, "price": row.price_text, "hours": hours}
            yield Finding(kind="price", run_id=key, values=values)
