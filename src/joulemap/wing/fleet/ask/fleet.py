"""Fleets: how many of each chip serve a demand, their monthly cost, and their headroom to the latency targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

import attrs

from joulemap.ask import (
    Checks,
    Choice,
    Entry,
    Facts,
    Finding,
    Limit,
    PairedRun,
    Quantity,
    Refusal,
    RunAnswer,
    Scope,
    Subject,
    check_runs,
    choose,
    list_sold,
    represent,
    weigh_findings,
)
from joulemap.catalog import load_models
from joulemap.domain import DEPLOYED, TIE_RATIO, Settings, Table, find_model_name, make_table
from joulemap.generated.cost import AssumedNumber
from joulemap.plan import Source
from joulemap.plan.price import find_chip
from joulemap.system import UnsupportedError, UsageError, frozen
from joulemap.wing.fleet.capacity.mixture import SAVED, mix
from joulemap.wing.fleet.capacity.rank import OBJECTIVES, Terms, list_queues
from joulemap.wing.fleet.capacity.row import LATE, OK, WATCHED, FleetRow, first_of_each
from joulemap.wing.fleet.capacity.sized import SizedFleets, size_devices
from joulemap.wing.fleet.demand import Demand, Level, Objective
from joulemap.wing.fleet.generated.row import FleetWinner, LevelRow, MixedRow, QueueRow
from joulemap.wing.llm.serve import SERVING, Serving

LEAST_ENERGY: Final = "least_energy"
"""Metric of the choice of the fleet with the least energy, if the objective chooses another one."""

PUBLISHED: Final = "published"
"""Metric of the choice among fleets that run the checkpoint as published."""

TARGETS: Final = {"p99_s": "p99_latency_s", "first_token_s": "first_token_p99_s", "between_s": "between_p99_s"}
"""Field of a demand with a target -> field of a fleet with the p99 that must not exceed it."""

VALUES: Final[Mapping[str, tuple[str, str]]] = {
    "cost": ("cost_per_month", "USD"),
    "energy": ("kwh_per_month", "kWh"),
    "carbon": ("gco2_per_month", "g"),
    "power": ("power_w", "W"),
    "devices": ("device_count", ""),
    "devices_per_server": ("server_device_count", ""),
    "likely_devices": ("likely_device_count", ""),
    "enough": ("enough_fraction", ""),
    "capacity": ("carried_ratio", ""),
    "utilization": ("utilization_fraction", ""),
    "owned": ("owned_device_count", ""),
    "rented": ("rented_per_month", "USD"),
    "bought": ("bought_per_month", "USD"),
}
"""Metric of a fleet -> field of a row, and unit."""


@frozen(kw_only=True)
class FleetAnswer(RunAnswer):
    """Fleets for a demand, best first by the objective; refused fleets come last."""

    is_billed: ClassVar[bool] = True

    about = ("demand", "shares", "levels", "pay", "engine")

    demand: Demand
    shares: Mapping[str, float]
    """Model -> its share of the requests."""
    pay: str
    engine: str = ""
    """Inference engine of a language model, with its date; empty for any other model."""
    facts: Facts
    """Decision, targets, rows and caveats, from which all sentences are made."""
    serving: Serving | None = None
    """Lengths and cache of a language model's requests; None for any other model."""
    rows: Table[FleetRow]
    winners: Table[FleetWinner]
    mixtures: Table[MixedRow]
    """Fleets of several kinds of hardware: those that beat any fleet of one kind, and those with separate prefill and
    decode pools of a language model, best first.
    """
    at_rates: Table[LevelRow]
    """Utilization and power of each fleet at each rate."""
    queue: Table[QueueRow]
    """Waiting times of the best fleets as the rate grows."""
    assumptions: Table[AssumedNumber]

    @property
    def levels(self) -> tuple[Level, ...]:
        """Request rates of the demand, highest first."""
        return self.demand.levels

    @property
    def ok(self) -> tuple[FleetRow, ...]:
        """Fleets that meet all targets and limits, the best by the objective first."""
        return tuple(row for row in self.rows if row.status == OK)

    @property
    def is_met(self) -> bool:
        """True if a fleet of one or two kinds of hardware meets every target and limit."""
        return bool(self.ok or self.mixtures.rows)

    def find_checks(self) -> Checks:
        """Return the commands that measure a prediction of the best fleet of each chip.

        They measure a batch of each model, the largest that the fleet forms, or the load of one language-model server.
        """
        best = [row for row in first_of_each(self.ok) if row.batch is not None]
        if self.serving is not None:
            from joulemap.wing.llm.serve import ServedRun, check_served

            served = (
                ServedRun(row.label, row.hardware, row.precision, row.batch, row.server_device_count, rate)
                for row in best
                if row.batch is not None and (rate := self.find_server_rate(row))
            )
            return check_served(next(iter(self.shares)), self.serving, served, self.scope.spell)
        runs = [PairedRun(row.hardware, row.precision, row.batch or 1, row.runtime) for row in best]
        return Checks.join(check_runs(model, runs, spell=self.scope.spell) for model in self.shares)

    def find_server_rate(self, row: FleetRow) -> float:
        """Return the requests per second that one server of a fleet of language models gets at the highest rate."""
        return self.demand.peak_per_s * row.server_device_count / (row.device_count or 1)

    @property
    def best(self) -> Table[FleetRow]:
        """Best fleet of each chip, of those that meet all targets and limits."""
        return self.rows.with_rows(first_of_each(self.ok))

    @property
    def costed(self) -> Table[FleetRow]:
        """Fleets of `best`, and those that a further choice names."""
        further = [one.run for one in self.facts.of(Choice) if one.metric == LEAST_ENERGY]
        named = {id(row) for row in (*self.best, *(self.rows[key - 1] for key in further))}
        return self.rows.with_rows(row for row in self.ok if id(row) in named)

    @property
    def watched_rates(self) -> Table[LevelRow]:
        """Utilization and power of the first fleets of `best` at each rate; none for a demand of one rate."""
        watched = [row.label for row in self.best.rows[:WATCHED]] if len(self.levels) > 1 else []
        return self.at_rates.with_rows(row for row in self.at_rates if row.label in watched)

    @property
    def missed(self) -> Table[FleetRow]:
        """Fleets that miss a target or limit."""
        return self.rows.with_rows(row for row in self.rows if row.status != OK)

    @property
    def joined(self) -> str:
        """Table with the fleet of two kinds of hardware that the first line names; empty for one kind."""
        first = next(iter(self.facts.of(Choice)), None)
        return "" if first is None or first.run <= len(self.rows) else "mixtures"


def fleet(
    source: Source,
    model: str,
    settings: Settings = DEPLOYED,
    *,
    demand: Demand,
    serving: Serving = SERVING,
) -> FleetAnswer:
    """Return how many of each chip serve a demand, with the best fleet by the objective first.

    `model` gets all requests that are not for the models of `demand.beside`. Devices are identical and share one queue.
    A free device takes a batch of the waiting requests. A language model with a target for its first token or between
    tokens is served as `llm` serves it. Raise the errors of `compare`; UsageError for an invalid demand;
    UnsupportedError, with the nearest hardware, if no fleet meets the target.
    """
    demand = _resolve(demand, settings)
    if demand.is_of_tokens:
        from joulemap.wing.fleet.capacity.served import size_deployments

        fleets = size_deployments(source, model, settings, demand, serving)
    elif demand.p99_s is None:
        raise UsageError("name a latency target: --p99 15ms; for a language model --first-token and --between-tokens")
    elif serving != SERVING:
        raise UsageError(
            "--prompt, --engine and other options of a server apply to a language model with --first-token or "
            "--between-tokens, not to --p99: leave them out"
        )
    else:
        fleets = size_devices(source, model, settings, demand)
    return _rank(fleets, demand)


def _resolve(demand: Demand, settings: Settings) -> Demand:
    """Return the demand with ids of owned chips and the catalogue's names of models; UsageError for an invalid file."""
    owned = {find_chip(name): count for name, count in (demand.owned or settings.site.owned).items()}
    beside = {find_model_name(name, load_models()): share for name, share in demand.beside.items()}
    demand = attrs.evolve(demand, owned=owned, beside=beside)
    demand.check()
    return demand


def _rank(fleets: SizedFleets, demand: Demand) -> FleetAnswer:
    """Return an answer with the best fleet first; UnsupportedError if no fleet meets the latency target."""
    stored = fleets.stored
    terms = Terms(demand=demand, pay=stored.stations[0].pay, takes_all=fleets.scope.settings.takes_all)
    paid = [attrs.evolve(one, row=terms.choose_payment(one.row)) for one in fleets.sized]
    ranked = terms.rank(paid)
    rows = [one.row for one in ranked]
    available = list_sold((one for one in ranked if one.row.status == OK), lambda one: terms.is_counted(one.row))
    best = next((one.row for one in available if terms.value(one.row) is not None), None)
    pairs = fleets.pair(terms, best)
    if all(row.status == LATE for row in rows) and not pairs:
        reasons = "; ".join(f"{row.label} ({row.reason})" for row in rows[:2]) or "nothing runs it"
        raise UnsupportedError(f"no fleet of this hardware meets the latency target: {reasons}")
    keys = {id(one): key for key, one in enumerate(ranked, 1)}
    choices = terms.find_choices({keys[id(one)]: one.row for one in available})
    mixtures = terms.rank_together([*mix(available, terms, best), *pairs], best)
    return FleetAnswer(
        scope=fleets.scope,
        facts=find_facts(fleets.scope, stored.findings, rows, choices, mixtures, demand),
        demand=demand,
        shares=fleets.shares,
        pay=terms.pay,
        engine=fleets.engine,
        serving=fleets.serving,
        rows=make_table("fleet", FleetRow, rows),
        winners=make_table("fleet winners", FleetWinner, [_name(one, rows) for one in choices.values()]),
        mixtures=make_table("fleet mixtures", MixedRow, mixtures),
        at_rates=make_table("fleet rates", LevelRow, [level for one in fleets.sized for level in one.levels]),
        queue=make_table("fleet queue", QueueRow, list_queues(available)),
        assumptions=stored.assumptions,
    )


def _name(choice: Choice, rows: Sequence[FleetRow]) -> FleetWinner:
    """Return the names of the best fleet by an objective and of the next hardware."""
    label, runner_up = (*(rows[key - 1].label for key in choice.runs), "")[:2]
    return FleetWinner(
        objective=choice.metric,
        label=label,
        value=choice.value.value,
        unit=choice.value.unit,
        runner_up=runner_up,
        regret_ratio=choice.ratio,
        probability_best=choice.probability,
    )


def find_facts(
    scope: Scope,
    findings: Sequence[Finding | Refusal],
    rows: Sequence[FleetRow],
    best_by: Mapping[Objective, Choice],
    together: Sequence[MixedRow],
    demand: Demand,
) -> Facts:
    """Return the facts of fleets; a run of the facts is a row of one kind, then of `together`.

    `findings` are about the stored runs of the rows, `best_by` has the best fleet of one kind by each objective.
    """
    known = dict(enumerate(rows, 1))
    joined = dict(enumerate(together, len(rows) + 1))
    kept = {key: row for key, row in known.items() if row.status == OK}
    choices = [*_choose(kept, joined, best_by, demand)]
    named = {id(row) for row in first_of_each(kept.values())} | {id(known[1])}
    chosen = {key for one in choices for key in one.runs}
    shown = {key: row for key, row in known.items() if id(row) in named or key in chosen}
    stored: dict[int, list[int]] = {}
    for key, row in shown.items():
        stored.setdefault(row.run_id, []).append(key)
    caveats = weigh_findings([*represent(findings, stored), *_find_own(shown, demand)], choices)
    best = next((key for key in kept), None)
    limits = [] if best is None else [*_list_limits(best, known[best], demand)]
    missed = [] if kept else [Refusal(runs=(key,), reason=row.reason) for key, row in known.items() if row.reason][:1]
    entries = [Entry.read(key, row, VALUES) for key, row in (*shown.items(), *joined.items())]
    runs = {
        key: Subject(hardware=row.label, is_available=scope.outlines[row.run_id].hardware not in scope.unavailable)
        for key, row in known.items()
    }
    return Facts(
        asked=(demand.objective,),
        runs={**runs, **{key: Subject(hardware=row.label) for key, row in joined.items()}},
        facts=(*choices, *limits, *missed, *entries, *caveats),
    )


def _choose(
    kept: Mapping[int, FleetRow],
    joined: Mapping[int, MixedRow],
    best_by: Mapping[Objective, Choice],
    demand: Demand,
) -> Iterator[Choice]:
    """Yield the best fleet, with a fleet of two kinds first if it is surely better, then further choices."""
    column, unit = OBJECTIVES[demand.objective]
    alone = best_by.get(demand.objective)
    key, row = next(iter(joined.items()), (0, None))  # the best one saves most
    if row is not None and (row.saved_fraction is None or row.saved_fraction > 1.0 - SAVED):
        chance = row.probability_best
        values = {key: Quantity(getattr(row, column) or 0.0, unit)}
        if alone is not None:
            values[alone.run] = alone.value
        both = choose(demand.objective, values, lambda *_: chance, chance=chance)
        ordered = [alone, both] if both.tied else [both, alone]
        yield from (one for one in ordered if one is not None)
    elif alone is not None:
        yield alone
    if kept:
        yield from _choose_others(kept, best_by.get("energy"), column, unit)


def _choose_others(kept: Mapping[int, FleetRow], energy: Choice | None, column: str, unit: str) -> Iterator[Choice]:
    """Yield the fleet with the least energy and the best one in the checkpoint's precision, if they are others."""
    first, best = next(iter(kept.items()))
    if energy is not None and (best.kwh_per_month or math.inf) >= TIE_RATIO * energy.value.value:
        ratio = (best.kwh_per_month or 0.0) / energy.value.value
        yield Choice(runs=(energy.run, first), metric=LEAST_ENERGY, value=energy.value, ratio=ratio)
    own = next(((key, row) for key, row in kept.items() if row.quality is None), None)
    if best.quality is not None and own is not None and (value := getattr(own[1], column)) is not None:
        yield Choice(runs=(own[0], first), metric=PUBLISHED, value=Quantity(value, unit))


def _list_limits(key: int, row: FleetRow, demand: Demand) -> Iterator[Limit]:
    """Yield the targets of the best fleet, the nearest first."""
    known = [
        (value / target, name, value, target)
        for name, field in TARGETS.items()
        if (value := getattr(row, field)) is not None and (target := getattr(demand, name))
    ]
    for ratio, name, value, target in sorted(known, reverse=True):
        miss = math.log(max(1.0, ratio))
        yield Limit(runs=(key,), metric=name, bound=Quantity(target, "s"), value=Quantity(value, "s"), miss=miss)


def _find_own(shown: Mapping[int, FleetRow], demand: Demand) -> Iterator[Finding]:
    """Yield prices with their interval, numbers of devices at both ends of theirs, losses of quality, and the limit
    that breaks first.
    """
    for key, row in shown.items():
        if row.price_text:
            width = row.bought_half_width if row.price_text == row.purchase_text else row.rented_half_width
            doubt = width if demand.objective == "cost" else 0.0
            yield Finding(
                kind="device_price", run_id=key, values={"way": row.way, "price": row.price_text}, doubt=doubt
            )
        low, high = row.device_low_count, row.device_high_count
        if low and high and low < high:
            doubt = 0.5 * math.log(high / low)
            yield Finding(kind="device_count", run_id=key, values={"low": low, "high": high}, doubt=doubt)
        if row.quality is not None:
            yield Finding(kind="quality", run_id=key, values={"precision": row.precision, "quality": row.quality})
        if row.fails_first:
            yield Finding(kind="breaks", run_id=key, values={"limits": row.fails_first})
