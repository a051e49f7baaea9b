"""Document of a fleet answer: tables, figures, the best fleet, its headroom, runner-up and confidence."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.candidate import enclose_seller
from joulemap.domain.doubt import TIE_RATIO, TOLD_APART
from joulemap.domain.table import Column, Table
from joulemap.domain.weight import spell_precision
from joulemap.present.cell import join_names, show, show_quantity, show_share
from joulemap.present.document import Document, Section, Text, show_under
from joulemap.row.cost import AssumedNumber
from joulemap.system.record import frozen
from joulemap.wing.fleet.answer import text
from joulemap.wing.fleet.capacity.cost import OBJECTIVES
from joulemap.wing.fleet.capacity.mixture import BY_THE_HOUR, SAVED, MixedRow
from joulemap.wing.fleet.capacity.pair import PairRow
from joulemap.wing.fleet.capacity.row import (
    DELAYED,
    LATE,
    NEAR,
    OK,
    WATCHED,
    FleetRow,
    FleetWinner,
    LevelRow,
    QueueRow,
    first_of_each,
)
from joulemap.wing.fleet.demand import MOST_CARRIED, Demand

if TYPE_CHECKING:
    from joulemap.answer.check import Checks
    from joulemap.domain.settings import Serving
    from joulemap.wing.fleet.demand import Level

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

LEAST_SHARE: Final = 0.001
"""Smallest share of a target that is shown; a smaller one is shown as a bound."""

_SERVER: Final = re.compile(r" x(\d+)\b")
"""Pattern of the devices per server in the name of a fleet, such as ` x4`."""

P99: Final = {"p99_s": "p99_latency_s", "first_token_s": "first_token_p99_s", "between_s": "between_p99_s"}
"""Field of a demand with a target -> field of a fleet with the p99 that must not exceed it."""


@frozen(kw_only=True)
class FleetAnswer(RunAnswer):
    """Fleets for a demand, best first by the objective; refused fleets come last."""

    about = ("demand", "shares", "levels", "pay", "engine")

    demand: Demand
    shares: Mapping[str, float]
    """Model -> its share of the requests."""
    levels: tuple[Level, ...]
    """Request rates of the demand, highest first."""
    pay: str
    engine: str
    """Inference engine of a language model, with its date; empty for any other model."""
    reused: str = ""
    """Title's text on reused prefixes of a language model's prompts; empty if no prefix is reused."""
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
        from joulemap.answer.check import Checks, PairedRun, check_runs
        from joulemap.wing.llm.answer.check import ServedRun, check_served

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
        return self.levels[0].rate_per_s * row.server_device_count / (row.device_count or 1)

    def title(self) -> str:
        """Return the models, the demand and its targets as a title."""
        models = [
            name if len(self.shares) == 1 else text.MODEL(name=name, share=share) for name, share in self.shares.items()
        ]
        rate = self._show_rate()
        targets = {name: getattr(self.demand, name) for name in text.TARGETS}
        runtime = self.scope.describe_runtime()
        return text.TITLE(
            models=models,
            peak=rate if len(self.levels) > 1 else "",
            rate="" if len(self.levels) > 1 else rate,
            targets=[text.TARGETS[name](target=value) for name, value in targets.items() if value is not None],
            runtime=runtime.rpartition(", ")[0] if self.engine else runtime,
            engine=self.engine,
            reused=self.reused,
        )

    def figures(self) -> Figures:
        """Return figures of the values of fleets, of their queues at several rates, and of utilization at each rate of
        the day.
        """
        from joulemap.figure.figure import make_figure

        best, subject = first_of_each(self.ok), self.scope.bounded(self.title())
        if not best:
            return ()
        drawn = [make_figure("fleet", self.rows.with_rows(best), subject, self._find_headline())]
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
        named = {id(row) for row in (*shown, *self._find_other_energy())}  # an insight names the second one's figures
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
        if any(row.label.endswith(DELAYED) for row in table):
            below = (Text(text.DELAYED_MEANS), *below)
        sections = [show_under("", fleets, *below) if shown else Section("", below)]
        others = [Section(title, drawn) for title, drawn in zip(text.DETAILS, details, strict=True)]
        if form := self._find_untied():  # the fleet in the headline has its row in the answer
            sections.append(others.pop(text.DETAILS.index(text.PAIRED if form == text.PAIR_FORM else text.MIXED)))
        return self._compose(
            self.title(),
            tuple(sections),
            self.rows,
            answer=self._find_headline(),
            insights=self._list_insights(),
            sure=self._describe_interval(),
            details=others,
            notes=[*text.NOTES, *self.scope.describe()],
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
            given = self.scope.repeat_boundary([rows[0].hardware], repeated)
            return [[*text.NEXT_LLM.words(**named), *precision, *devices, *asked, *given]]
        step = text.NEXT_EXPLAIN if len(chips) > 1 else text.NEXT_EDP
        given = self.scope.repeat_boundary((row.hardware for row in rows), repeated)
        return [[*step.words(**named), *precision, *text.NEXT_RUNTIME.words(best), *given]]

    def _find_together(self) -> tuple[MixedRow | PairRow, str, float | None] | None:
        """Return the fleet of two kinds that saves most, its form, and the fraction that it saves; None if none saves
        enough.

        It is a mixture or has separate prefill and decode pools. The fraction is None if no fleet of one kind meets the
        demand.
        """
        found: list[tuple[float, MixedRow | PairRow, str]] = [
            *((row.saved_fraction, row, row.form) for row in self.mixtures),
            *((1.0 - (row.regret_ratio or 0.0), row, text.PAIR_FORM) for row in self.pairs),
        ]
        saved, row, form = max(found, key=lambda one: one[0], default=(0.0, None, ""))
        if row is None or saved <= 1.0 - SAVED:
            return None
        return row, form, saved if self.ok else None

    def _find_untied(self) -> str:
        """Return the form of the fleet of two kinds that the headline names; empty if it names a fleet of one kind."""
        found = self._find_together()
        return "" if found is None or (self._winner is not None and _is_tied(found[0])) else found[1]

    @property
    def _winner(self) -> FleetWinner | None:
        """Best fleet of one kind by the objective."""
        return next((row for row in self.winners if row.objective == self.demand.objective), None)

    def _describe_assumed(self, headline: str, chosen: Collection[int] | None) -> str:
        """Return a sentence on the assumed share of the energies in a headline.

        By default, it refers to the fleets that meet the demand.
        """
        return super()._describe_assumed(headline, chosen or {row.run_id for row in first_of_each(self.ok)})

    def _find_headline(self) -> str:
        """Return the headline: the best fleet by the objective, and its lead."""
        found, winner = self._find_together(), self._winner
        if found is None:
            alone = self._describe_without_price() if winner is None else self._describe_best(winner)
            return alone[:1].upper() + alone[1:]
        row, form, saved = found
        parts = self._spell_parts(row, form)
        if winner is not None and _is_tied(row):
            tied = text.TOGETHER_TIED[self.demand.objective](parts=parts, saved=saved)
            return f"{self._describe_best(winner)}. {tied}"
        column, unit = OBJECTIVES[self.demand.objective]
        best = None if winner is None else self._find_row(winner)
        together = text.TOGETHER(
            row,
            parts=parts,
            value=show(getattr(row, column), "", unit),
            least=text.LEAST[self.demand.objective],
            pue=None if best is None or self.demand.objective == "cost" else best.pue_ratio,
            rate=self._name_rate(),
        )
        if winner is None or best is None or saved is None:
            return f"{together}; {self._describe_without_price()}"
        value, chance = show(winner.value, "", winner.unit), row.probability_best
        saves = text.TOGETHER_SAVES(
            saved=saved, chance=chance, fleet=self._count(best), value=value, without=_name_others(form)
        )
        return f"{together}. {saves}"

    def _spell_parts(self, row: MixedRow | PairRow, form: str) -> str:
        """Return the servers of a mixture or of two pools as a noun phrase."""
        label = row.label.replace(DELAYED, text.DELAYED)
        if form == text.PAIR_FORM:
            prefill, _, decode = label.partition(" > ")
            return text.POOLS(prefill=_count_servers(prefill), decode=_count_servers(decode))
        parts = label.split(", ") if form == BY_THE_HOUR else map(_count_servers, label.split(" + "))
        return text.PARTS(parts=list(parts), form=form)

    def _name_rate(self) -> str:
        """Return a noun phrase for the rate at which a fleet's power is stated."""
        return text.HIGHEST_RATE if len(self.levels) > 1 else self._show_rate()

    def _show_rate(self) -> str:
        peak = self.levels[0].rate_per_s
        is_whole = peak >= WHOLE_RATE and peak == round(peak)
        return text.ONE_RATE if peak == 1.0 else text.RATE(rate=f"{peak:,.0f}" if is_whole else f"{peak:,.3g}")

    def _name(self, label: str) -> str:
        """Return a fleet's label as it reads in a sentence."""
        return self.scope.mark(label).replace(DELAYED, text.DELAYED)

    def _count(self, row: FleetRow) -> str:
        """Return a fleet's label with its number of devices, and of servers if a server has several devices."""
        servers = None if row.device_count is None else row.device_count // row.server_device_count
        several = row.server_device_count > 1 and servers is not None
        return (text.SERVERS_OF if several else text.DEVICES_OF)(row, name=self._name(row.label), servers=servers)

    def _find_row(self, winner: FleetWinner) -> FleetRow:
        return next(row for row in self.ok if row.label == winner.label)

    def _describe_without_price(self) -> str:
        first = self.rows[0]
        template = text.NO_PRICE if first.status == OK else text.NO_LIMITS
        return template(first, fleet=self._count(first))

    def _describe_best(self, winner: FleetWinner) -> str:
        """Return a sentence on the best fleet of one kind, and on the next hardware."""
        row, least, found = self._find_row(winner), text.LEAST[self.demand.objective], self._find_together()
        is_cost, each = self.demand.objective == "cost", text.EACH if (row.device_count or 0) > 1 else ""
        best = text.BEST(
            row,
            fleet=self._count(row),
            pue=None if is_cost else row.pue_ratio,
            among=text.AMONG[_name_others(found[1])] if found else text.AMONG_ALL,
            least=least,
            value=show(winner.value, "", winner.unit),
            paid=_format_payment(row) if is_cost else None,
            price=enclose_seller(row.price_told, each) if is_cost else None,
            utilization=format_utilization(row),
            rate=self._name_rate(),
        )
        return f"{best}{self._describe_runner_up(winner)}"

    def _describe_runner_up(self, winner: FleetWinner) -> str:
        if not winner.runner_up or winner.regret_ratio is None:
            return ""
        name, chance = self._name(winner.runner_up), winner.probability_best
        if winner.regret_ratio <= TIE_RATIO or (chance is not None and chance < TOLD_APART):
            ratio = winner.regret_ratio if winner.regret_ratio > TIE_RATIO else None
            return f". {text.TIED[self.demand.objective](name=name, ratio=ratio)}"
        runner_up = text.RUNNER_UP[self.demand.objective]
        return f". {runner_up(name=name, ratio=winner.regret_ratio, chance=chance)}"

    def _list_insights(self) -> list[str]:
        """Return sentences on headroom, devices per server and loss of quality of the best fleet, and on the lowest
        energy.
        """
        best = next(iter(self.ok), None)
        if best is None:
            return []
        found = [] if best.promise_fraction is None else [self._describe_headroom(best)]
        found += self._describe_division(best)
        if best.quality is not None:
            found.append(text.QUALITY(best, published=self._describe_published()))
        found += [
            text.LEAST_ENERGY(
                row, fleet=self._count(row), value=row.kwh_per_month, pue=row.pue_ratio, rate=self._name_rate()
            )
            for row in self._find_other_energy()
        ]
        return found

    def _find_other_energy(self) -> list[FleetRow]:
        """Return the lowest-energy fleet as a list; empty if it is the best fleet by the objective too."""
        energy = next((row for row in self.winners if row.objective == "energy"), None)
        best = next(iter(self.ok), None)
        if energy is None or best is None or (best.kwh_per_month or math.inf) < TIE_RATIO * energy.value:
            return []
        return [next(one for one in self.rows if one.label == energy.label)]

    def _describe_published(self) -> str:
        """Return a phrase for the best fleet with the checkpoint as published; empty if none meets all targets."""
        row = next((one for one in self.ok if one.quality is None), None)
        column, unit = OBJECTIVES[self.demand.objective]
        value = None if row is None else getattr(row, column)
        return (
            "" if row is None or value is None else text.PUBLISHED(fleet=self._count(row), value=show(value, "", unit))
        )

    def _describe_headroom(self, best: FleetRow) -> str:
        """Return a sentence on the p99 closest to its target, on the capacity, and on the limits that break first."""
        known = [
            (value / target, name, value, target)
            for name, field in P99.items()
            if (value := getattr(best, field)) is not None and (target := getattr(self.demand, name))
        ]
        share, name, value, target = max(known)
        first, _, then = best.fails_first.partition(", then ")
        return text.HEADROOM(
            name=self._name(best.label) if self._find_untied() else "",
            nearest=text.NEAREST[name](value=value, share=_format_share(share), target=target),
            rate=text.HIGHEST_RATE if len(self.levels) > 1 else text.DEMANDED_RATE,
            capacity=format_capacity(best),
            first=first,
            then=then,
        )

    def _describe_division(self, best: FleetRow) -> list[str]:
        """Return a sentence on the devices per server of the best fleet, and on another number with similar results."""
        if not self.demand.is_of_tokens or self._find_untied():  # the headline names another fleet
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
        found = division(best, devices=best.server_device_count, experts=experts)
        if ratio <= NEAR:
            near_by = text.NEAR_DIVISION if ratio > TIE_RATIO else text.EQUAL_DIVISION
            return [f"{found}; {near_by(devices=devices, more=ratio - 1.0)}"]
        return [found] if best.server_device_count > 1 else []

    def _list_left_out(self) -> Iterator[str]:
        """Yield notes on hardware that was not compared or cannot serve the demand, with the reasons."""
        if self.scope.settings.hardware or self.serving is not None:
            kept_chips = {row.chip for row in self.rows}  # in another precision
            lost = (reason for reason in self.scope.refusals if reason.partition(" ")[0] not in kept_chips)
            yield from (_enclose_precisions(self.scope.mark(reason)) for reason in lost)
        late = [row for row in self.rows if row.status == LATE]
        over = [row for row in self.rows if row.status not in (OK, LATE)]
        kept = {row.hardware for row in self.rows if row.status != LATE}
        if missed := [name for name in dict.fromkeys(row.hardware for row in late) if name not in kept]:
            late_text = text.LATE_ONE if len(missed) == 1 else text.LATE
            yield late_text(names=_name_some([*map(self.scope.mark, missed)]))
        if not self.ok:
            over = over[1:]  # the first is the headline
        if over:
            yield text.OVER(over[0], label=self._name(over[0].label), more=len(over) - 1 or None)
        if self.demand.objective == "cost":
            without = (row.hardware for row in self.ok if row.cost_per_month is None and not row.unlike_told)
            if unpriced := list(dict.fromkeys(without)):
                other = "" if self.pay == "both" else text.PAY_BOTH
                names = _name_some([*map(self.scope.mark, unpriced)])
                yield text.UNPRICED(names=names, price=text.PRICES[self.pay], other=other)
            if unlike := {self.scope.mark(row.chip): row.unlike_told for row in self.ok if row.unlike_told}:
                priced = [text.PRICED(name=name, price=price.partition(", ")[0]) for name, price in unlike.items()]
                yield text.OTHER_SELLER(names=_name_some(priced))
        if unused := sorted(set(self.demand.owned) - {row.chip for row in self.rows}):
            yield text.OWNED_ELSEWHERE(names=unused)

    def _describe_interval(self) -> str:
        """Return a note on the interval of the best fleet's number of devices; empty if the interval is unknown."""
        best = next(iter(self.ok), None)
        if best is None or not best.device_low_count or not best.device_high_count:
            return ""
        low, high = best.device_low_count, best.device_high_count
        name = self._name(best.label) if self._find_untied() else ""
        return (text.SURE_OF_ONE if low == high else text.SURE)(name=name, low=low, devices=high)


def _enclose_precisions(reason: str) -> str:
    """Return the reason of a refusal with its second part in brackets; a semicolon would separate it from other
    reasons.
    """
    first, _, second = reason.partition("; ")
    return f"{first} ({second})" if second else first


def _name_some(names: Sequence[str]) -> str:
    """Return the names of chips if they are few, else their number."""
    return join_names(names) if len(names) <= NAMED else text.CHIPS(count=len(names))


def _name_others(form: str) -> str:
    """Return a noun phrase for the fleets with which a fleet of this form is compared."""
    return text.WITHOUT_POOLS if form == text.PAIR_FORM else text.WITHOUT_MIXTURE


def _count_servers(part: str) -> str:
    """Return a part such as `4 l4 x2 bf16` with its number of servers, if a server has several devices."""
    devices, _, name = part.partition(" ")
    each = _SERVER.search(name)
    if each is None:
        return part
    return text.SERVERS_OF(servers=int(devices) // int(each[1]), name=name, device_count=devices)


def _format_share(share: float) -> str:
    """Return a share of a target as text; a share that rounds to 0 is shown as a bound."""
    return show_share(share) if share >= LEAST_SHARE else text.SHARE_UNDER


def _is_tied(row: MixedRow | PairRow) -> bool:
    """Return whether a fleet of two kinds is statistically tied with the best fleet of one kind."""
    return row.probability_best is not None and row.probability_best < TOLD_APART


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
