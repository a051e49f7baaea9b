"""Document of a fleet answer: tables, figures, the best fleet, its headroom, runner-up and confidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.base import RunAnswer
from joulemap.ask.fact import Choice, Facts
from joulemap.domain.metric import TIE_RATIO
from joulemap.domain.table import Column, Table
from joulemap.generated.cost import AssumedNumber
from joulemap.physics.record.weight import spell_precision
from joulemap.show.page import Figures
from joulemap.show.present.cell import join_names, show_quantity, show_share
from joulemap.show.present.document import Document, Section, Text, show_under
from joulemap.show.refusal import ENCLOSED, describe_refusal
from joulemap.show.run import find_conditions, repeat_boundary
from joulemap.show.title import Title, bind
from joulemap.system.record import frozen
from joulemap.wing.fleet.ask import LEAST_ENERGY
from joulemap.wing.fleet.capacity.rank import OBJECTIVES
from joulemap.wing.fleet.capacity.row import DELAYED, LATE, NEAR, OK, WATCHED, FleetRow, first_of_each
from joulemap.wing.fleet.demand import MOST_CARRIED, Demand
from joulemap.wing.fleet.generated.row import FleetWinner, LevelRow, MixedRow, PairRow, QueueRow
from joulemap.wing.fleet.show import text
from joulemap.wing.fleet.show.fleet import describe_answer, list_reasons
from joulemap.wing.llm.serve import describe_served

if TYPE_CHECKING:
    from joulemap.ask.check import Checks
    from joulemap.wing.fleet.demand import Level
    from joulemap.wing.llm.serve import Serving

OWNED: Final = (Column(name="hardware", type="VARCHAR", meaning="chip of the fleet"),)
"""Columns that the rows of some figures have in addition to their own."""

SHOWN: Final = 12
"""Default number of fleets in a table."""

NAMED: Final = 3
"""Maximum chips that are named in a note on omitted hardware; more are only counted."""

NEARLY: Final = 0.98
"""Share of the highest rate tried; a capacity above it is shown as a lower bound."""

WHOLE_RATE: Final = 10.0
"""Requests per second from which an integer rate is shown with all of its digits."""


@frozen(kw_only=True)
class FleetAnswer(RunAnswer):
    """Fleets for a demand, best first by the objective; refused fleets come last."""

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
    """Fleets of several kinds of hardware that beat any fleet of one kind, best first."""
    pairs: Table[PairRow]
    """Fleets with separate prefill and decode pools of a language model, best first."""
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
        return bool(self.ok or self.pairs.rows)

    def find_checks(self) -> Checks:
        """Return the commands that measure a prediction of the best fleet of each chip.

        They measure a batch of each model, the largest that the fleet forms, or the load of one language-model server.
        """
        from joulemap.ask.check import Checks, PairedRun, check_runs
        from joulemap.wing.llm.serve import ServedRun, check_served

        best = [row for row in first_of_each(self.ok) if row.batch is not None]
        if self.serving is not None:
            served = (
                ServedRun(row.label, row.hardware, row.precision, row.batch, row.server_device_count, rate)
                for row in best
                if row.batch is not None and (rate := self._find_server_rate(row))
            )
            return check_served(next(iter(self.shares)), self.serving, served, self.scope.spell)
        runs = [PairedRun(row.hardware, row.precision, row.batch or 1, row.runtime) for row in best]
        return Checks.join(check_runs(model, runs, spell=self.scope.spell) for model in self.shares)

    def _find_server_rate(self, row: FleetRow) -> float:
        """Return the requests per second that one server of a fleet of language models gets at the highest rate."""
        return self.demand.peak_per_s * row.server_device_count / (row.device_count or 1)

    def title(self) -> Title:
        """Return the models, the demand and its targets as a title."""
        models = [
            name if len(self.shares) == 1 else text.MODEL(name=name, share=share) for name, share in self.shares.items()
        ]
        rate = self._show_rate()
        targets = {name: getattr(self.demand, name) for name in text.TARGETS}
        about = Title(
            form=text.ABOUT,
            values={
                "peak": rate if len(self.levels) > 1 else "",
                "rate": "" if len(self.levels) > 1 else rate,
                "targets": [text.TARGETS[name](target=value) for name, value in targets.items() if value is not None],
                "precisions": self.scope.labels,
                "runtimes": () if self.engine else self.scope.runtimes,
                "engine": self.engine,
                "served": "" if self.serving is None else describe_served(self.serving),
            },
        )
        return Title(form=text.TITLE, values={"models": models}, about=about)

    def figures(self) -> Figures:
        """Return figures of the values of fleets, of their queues at several rates, and of utilization at each rate of
        the day.
        """
        from joulemap.show.figure.figure import make_figure

        best, subject = first_of_each(self.ok), bind(self.title(), find_conditions(self.scope))
        if not best:
            return ()
        drawn = [make_figure("fleet", self.rows.with_rows(best), subject, describe_answer(self.facts))]
        growth = "; ".join(
            text.GROWTH(row, capacity=format_capacity(row), first=row.fails_first) for row in best[:WATCHED]
        )
        for quantity in dict.fromkeys(row.quantity for row in self.queue):
            queue = self.queue.with_rows(row for row in self.queue if row.quantity == quantity)
            drawn.append(make_figure("queue", self._own(queue), f"{subject}: {quantity}", growth))
        labels = [row.label for row in best[:WATCHED]]
        rates = tuple(row for row in self.at_rates if row.label in labels)
        if len({row.rate_per_s for row in rates}) > 1:
            drawn.append(make_figure("day", self._own(self.at_rates.with_rows(rates)), subject))
        return tuple(drawn)

    def _own(self, rows: Table[QueueRow] | Table[LevelRow]) -> Table[tuple[Any, ...]]:
        """Return rows of fleets with the chip of each fleet as an additional column."""
        chips = {row.label: row.hardware for row in self.rows}
        return rows.with_columns(OWNED, ((chips.get(row.label),) for row in rows))

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` fleets, the best of each chip; machine-readable formats list every fleet."""
        shown = first_of_each(self.ok)
        further = [one.runs[0] for one in self.facts.of(Choice) if one.metric == LEAST_ENERGY]
        named = {id(row) for row in (*shown, *(self.rows[key - 1] for key in further))}  # a reason names this fleet
        table, costed = self.rows.with_rows(shown), self.rows.with_rows(row for row in self.ok if id(row) in named)
        first, *rest = sorted(text.MONTHLY, key=lambda objective: objective != self.demand.objective)
        watched = [row.label for row in shown[:WATCHED]] if len(self.levels) > 1 else []
        fleets = self._lay(
            table,
            text.FLEETS(
                objective=" ".join(text.MONTHLY[first]),
                latencies=text.TOKEN_LATENCIES if self.demand.is_of_tokens else text.LATENCIES,
                others=" | ".join(" ".join(text.MONTHLY[one]) for one in rest),
            ),
            limit=limit,
            noun="chips",
            ranked=text.MONTHLY[first][0],
            devices=_format_devices,
            way=_format_payment,
            batch=text.BATCH,
            wait=lambda row: show_quantity(row.wait_s or None, "s"),
            utilization_fraction=format_utilization,
            carried_ratio=format_capacity,
        )
        details = (
            self._lay(costed, text.COSTS, limit=limit, devices=_format_devices),
            self._lay(
                self.queue,
                text.QUEUES,
                p50_s=lambda row: text.OVERLOADED if row.p50_s is None else show_quantity(row.p50_s, "s"),
                p99_s=lambda row: text.OVERLOADED if row.p99_s is None else show_quantity(row.p99_s, "s"),
            ),
            self._lay(
                self.at_rates.with_rows(one for one in self.at_rates if one.label in watched),
                text.LEVELS,
            ),
            self._lay(self.mixtures, text.MIXTURES, limit=limit),
            self._lay(self.pairs, text.PAIRS(objective=self.demand.objective), limit=limit),
            self._lay(
                self.rows.with_rows(row for row in self.rows if row.status != OK),
                text.MISSED,
                limit=limit,
            ),
        )
        left_out = "; ".join(self._list_left_out())
        below = (Text(text.LEFT_OUT(reasons=left_out)),) if left_out else ()
        if any(row.wait_s for row in table):
            below = (Text(text.DELAYED_MEANS), *below)
        sections = [show_under("", fleets, *below) if shown else Section("", below)]
        others = [Section(title, drawn) for title, drawn in zip(text.DETAILS, details, strict=True)]
        if joined := self._find_joined():  # the fleet in the first line has its row in the answer
            sections.append(others.pop(text.DETAILS.index(joined)))
        return self._compose_facts(
            self.facts,
            tuple(sections),
            self.rows,
            title=self.title(),
            answer=describe_answer(self.facts),
            reasons=list_reasons(self.facts),
            details=others,
            notes=[*self._describe_division(), *text.NOTES],
            steps=self._list_steps(repeated),
        )

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        best = next(iter(self.ok), None)
        if best is None:
            return []
        rows = first_of_each(self.ok)[:2]
        chips = [self.scope.spell(row.hardware) for row in rows]
        named = {"model": next(iter(self.shares)), "hardware": chips[0], "other": chips[-1]}
        precision = spell_precision(best.precision)
        if self.demand.is_of_tokens:
            rate = self._find_server_rate(best)
            devices = text.NEXT_DEVICES.words(best) if best.server_device_count > 1 else []
            asked = text.NEXT_RATE.words(rate=f"{rate:.3g}")
            given = repeat_boundary(self.scope, [rows[0].hardware], repeated)
            return [[*text.NEXT_LLM.words(**named), *precision, *devices, *asked, *given]]
        step = text.NEXT_EXPLAIN if len(chips) > 1 else text.NEXT_EDP
        given = repeat_boundary(self.scope, (row.hardware for row in rows), repeated)
        return [[*step.words(**named), *precision, *text.NEXT_RUNTIME.words(best), *given]]

    def _find_joined(self) -> str:
        """Return the title of the details with the fleet of two kinds that the first line names; empty for one kind."""
        first = next(iter(self.facts.of(Choice)), None)
        position = 0 if first is None else first.runs[0] - len(self.rows)
        return "" if position < 1 else text.MIXED if position <= len(self.mixtures) else text.PAIRED

    def _show_rate(self) -> str:
        peak = self.demand.peak_per_s
        is_whole = peak >= WHOLE_RATE and peak == round(peak)
        return text.ONE_RATE if peak == 1.0 else text.RATE(rate=f"{peak:,.0f}" if is_whole else f"{peak:,.3g}")

    def _name(self, label: str) -> str:
        """Return a fleet's label as it reads in a sentence."""
        return self._mark(label).replace(DELAYED, text.DELAYED)

    def _describe_division(self) -> list[str]:
        """Return a sentence on the devices per server of the best fleet, and on another number with similar results."""
        best = next(iter(self.ok), None)
        if best is None or not self.demand.is_of_tokens or self._find_joined():  # the headline names another fleet
            return []
        column, _ = OBJECTIVES[self.demand.objective]
        value = getattr(best, column)
        near = [
            (getattr(row, column) / value, row.server_device_count)
            for row in self.ok
            if (row.hardware, row.precision) == (best.hardware, best.precision)
            and row.server_device_count != best.server_device_count
            and value
            and getattr(row, column) is not None
        ]
        ratio, devices = min(near, default=(2.0 * NEAR, 0))
        division = text.UNDIVIDED if best.server_device_count == 1 else text.DIVIDED
        experts = text.EXPERTS if best.expert_device_count > 1 else ""
        sentence = division(best, devices=best.server_device_count, experts=experts)
        if ratio <= NEAR:
            near_by = text.NEAR_DIVISION if ratio > TIE_RATIO else text.EQUAL_DIVISION
            return [f"{sentence}; {near_by(devices=devices, more=ratio - 1.0)}"]
        return [sentence] if best.server_device_count > 1 else []

    def _list_left_out(self) -> Iterator[str]:
        """Yield notes on hardware that was not compared or cannot serve the demand, with the reasons."""
        if self.scope.settings.hardware or self.serving is not None:
            kept_chips = {row.chip for row in self.rows}  # in another precision
            lost = (one for one in self.scope.refused_runs if not kept_chips.issuperset(one.hardware))
            yield from (describe_refusal(one, ENCLOSED) for one in lost)
        late = [row for row in self.rows if row.status == LATE]
        over = [row for row in self.rows if row.status not in (OK, LATE)]
        kept = {row.hardware for row in self.rows if row.status != LATE}
        if missed := [name for name in dict.fromkeys(row.hardware for row in late) if name not in kept]:
            late_text = text.LATE_ONE if len(missed) == 1 else text.LATE
            yield late_text(names=_name_some([*map(self._mark, missed)]))
        if not self.ok:
            over = over[1:]  # the first is the headline
        if over:
            yield text.OVER(over[0], label=self._name(over[0].label), more=len(over) - 1 or None)
        if self.demand.objective == "cost":
            without = (row.hardware for row in self.ok if row.cost_per_month is None and not row.unlike_price_text)
            if unpriced := list(dict.fromkeys(without)):
                other = "" if self.pay == "both" else text.PAY_BOTH
                names = _name_some([*map(self._mark, unpriced)])
                yield text.UNPRICED(names=names, price=text.PRICES[self.pay], other=other)
            if unlike := {self._mark(row.chip): row.unlike_price_text for row in self.ok if row.unlike_price_text}:
                priced = [text.PRICED(name=name, price=price.partition(", ")[0]) for name, price in unlike.items()]
                yield text.OTHER_SELLER(names=_name_some(priced))
        if unused := sorted(set(self.demand.owned) - {row.chip for row in self.rows}):
            yield text.OWNED_ELSEWHERE(names=unused)


def _name_some(names: Sequence[str]) -> str:
    """Return the names of chips if they are few, else their number."""
    return join_names(names) if len(names) <= NAMED else text.CHIPS(count=len(names))


def format_capacity(row: FleetRow) -> str:
    """Return the capacity as a multiple of the highest rate, or as a lower bound; empty if it is unknown."""
    if row.carried_ratio is None:
        return ""
    if row.carried_ratio > NEARLY * MOST_CARRIED:
        return text.CAPACITY_OVER(ratio=MOST_CARRIED)
    return text.CAPACITY(ratio=row.carried_ratio)


def format_utilization(row: FleetRow) -> str:
    """Return the utilization at the highest rate as text; an upper bound if the capacity is only known to be large."""
    if row.carried_ratio is not None and row.carried_ratio > NEARLY * MOST_CARRIED:
        return text.UTILIZATION_UNDER(share=1.0 / (NEARLY * MOST_CARRIED))
    return show_share(row.utilization_fraction)


def _format_payment(row: FleetRow) -> str:
    """Return the payment of a fleet, such as `rented` or `4 owned and 3 rented`; empty without a price."""
    if row.way in ("", "owned") or not row.owned_device_count:
        return row.way
    return text.OWNED_AND(row, others=(row.device_count or 0) - row.owned_device_count)


def _format_devices(row: FleetRow) -> str:
    low, high = row.device_low_count, row.device_high_count
    return text.DEVICES(row, low=None if low == high else low, high=high)
