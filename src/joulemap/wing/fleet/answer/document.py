"""Document of a fleet answer: tables, figures, and sentences on the best fleet, its headroom, runner-up and
confidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.answer import Figures, RunAnswer
from joulemap.answer.scope import TIE_RATIO
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision
from joulemap.present.cell import (
    join_names,
    show,
    show_chance,
    show_chosen_share,
    show_count,
    show_quantity,
    show_share,
)
from joulemap.present.document import Document, Section
from joulemap.row.cost import AssumedNumber
from joulemap.system.record import frozen
from joulemap.wing.fleet.answer.mixture import SAVED, MixedRow
from joulemap.wing.fleet.answer.pair import PairRow
from joulemap.wing.fleet.answer.row import (
    LATE,
    NEAR,
    OBJECTIVES,
    OK,
    WATCHED,
    FleetRow,
    FleetWinner,
    LevelRow,
    QueueRow,
    first_of_each,
    show_carried,
    show_utilization,
)
from joulemap.wing.fleet.demand import Demand

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Level, Objective

SHOWN: Final = 12
"""Default number of fleets in a table."""

NOTES: Final = (
    "devices: the fewest that meet the latency target at the highest rate; requests arrive at random (Poisson) and "
    "share one queue; in brackets the count at both ends of the 80 % interval of predicted times",
    "a free device takes the waiting requests, at most one batch; wait: how long the first request of a batch waits "
    "for others, where that saves energy and meets the target",
    "power: all devices at the highest rate, idle ones included; --max-power also counts hosts that this leaves out; "
    "cooling is in cost and carbon alone",
    "cost: a month of 730 hours, rented for all of it, or bought and spread over the lifetime with electricity and "
    "hosts; owned devices cost electricity",
    "carries: how many times the highest rate the fleet serves within the target; utilization: its inverse, the "
    "share of that capacity which the highest rate uses; time busy (--details): share of time with a batch running, "
    "however small the batch",
)

MONTHLY: Final[Mapping[Objective, str]] = {
    "cost": "USD/month #cost_per_month",
    "energy": "kWh/month #kwh_per_month",
    "carbon": "CO2/month gco2_per_month",
}
"""Objective -> its column."""

VERBS: Final[Mapping[Objective, str]] = {"cost": "costs", "energy": "uses", "carbon": "emits"}
"""Objective -> verb of a sentence about a fleet's value."""

COSTS: Final = (
    "hardware @label | *devices | *rented rented_per_month | *bought bought_per_month | CO2 gco2_per_month | "
    "kWh #kwh_per_month | *at most power_w | mean mean_power_w | *idle idle_power_w | "
    "time busy busy_fraction | first limit at 1.5x the load fails_first"
)


@frozen(kw_only=True)
class FleetAnswer(RunAnswer):
    """Fleets for a demand, the best by the objective first, and refused ones last."""

    about = ("demand", "shares", "levels", "pay", "engine")

    demand: Demand
    shares: Mapping[str, float]
    """Model -> its share of the requests."""
    levels: tuple[Level, ...]
    """Request rates, highest first."""
    pay: str
    engine: str
    """Inference engine of a language model, with its date; empty for other models."""
    rows: Table[FleetRow]
    winners: Table[FleetWinner]
    mixtures: Table[MixedRow]
    """Fleets of several kinds that are better than any of one kind, best first."""
    pairs: Table[PairRow]
    """Pools of two kinds for a language model, one for prompts and one for answers, best first."""
    at_rates: Table[LevelRow]
    """Utilization and power of each fleet at each rate."""
    queue: Table[QueueRow]
    """Queues of the best fleets as the rate grows."""
    assumptions: Table[AssumedNumber]

    @property
    def ok(self) -> tuple[FleetRow, ...]:
        """Fleets that meet all targets and limits, the best by the objective first."""
        return tuple(row for row in self.rows if row.status == OK)

    @property
    def is_met(self) -> bool:
        """True if a fleet of one or two kinds of hardware meets every target and limit."""
        return bool(self.ok or self.pairs.rows)

    def title(self) -> str:
        """Return the models, the demand and its targets as a title."""
        models = join_names(
            [
                name if len(self.shares) == 1 else f"{show_chosen_share(share)} {name}"
                for name, share in self.shares.items()
            ]
        )
        peak = self.levels[0].rate_per_s
        rate = f"{peak:,.0f} requests/s" if peak >= 10.0 and peak == round(peak) else f"{peak:,.3g} requests/s"
        rate = "1 request/s" if peak == 1.0 else rate
        day = f"at most {rate}" if len(self.levels) > 1 else rate
        how = self.scope.describe_runtime()
        if self.engine:
            how = f"{how.rpartition(', ')[0]}, {self.engine}"
        return f"{models}: {', '.join([day, *_tell_promises(self.demand), how])}"

    def figures(self) -> Figures:
        """Return figures of the fleets' values, of their queues at higher rates, and of the day."""
        from joulemap.figure.figure import make_figure

        best, subject = first_of_each(self.ok), self.scope.bounded(self.title())
        if not best:
            return ()
        drawn = [make_figure("fleet", attrs.evolve(self.rows, rows=tuple(best)), subject, self._say_best())]
        growth = "; ".join(map(_tell_growth, best[:WATCHED]))
        for quantity in dict.fromkeys(row.quantity for row in self.queue):
            queue = attrs.evolve(self.queue, rows=tuple(row for row in self.queue if row.quantity == quantity))
            drawn.append(make_figure("queue", queue, f"{subject}: {quantity}", growth))
        labels = [row.label for row in best[:WATCHED]]
        rates = tuple(row for row in self.at_rates if row.label in labels)
        if len({row.rate_per_s for row in rates}) > 1:
            drawn.append(make_figure("day", attrs.evolve(self.at_rates, rows=rates), subject))
        return tuple(drawn)

    def document(self, *, limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` fleets, each hardware's best; machine-readable formats list every fleet."""
        shown = first_of_each(self.ok)
        table = attrs.evolve(self.rows, rows=tuple(shown))
        first, *others = sorted(MONTHLY, key=lambda objective: objective != self.demand.objective)
        told = [row.label for row in shown[:WATCHED]] if len(self.levels) > 1 else []
        fleets = self._lay(
            table,
            f"hardware @label | *devices | *{MONTHLY[first]} | *first token first_token_p99_s? | "
            f"*between between_p99_s? | {'' if self.demand.is_of_tokens else '*p99 p99_latency_s | '}*batch | wait | "
            f"*utilization utilization_fraction? | *power power_w | carries | J/request energy_per_request_j | "
            f"{' | '.join(MONTHLY[one] for one in others)} | way | "
            "price price_told?",
            limit=limit,
            noun="hardware",
            ranked=MONTHLY[first].rpartition(" ")[0],
            devices=_tell_devices,
            way=lambda row: _describe_way(row).removeprefix(", "),
            batch=lambda row: f"{row.batch_mean:.3g} of {row.batch}",
            wait=lambda row: show_quantity(row.wait_s or None, "s"),
            utilization_fraction=show_utilization,
            carries=lambda row: show_carried(row.carried_ratio),
        )
        details = {
            "Power and cost": self._lay(table, COSTS, limit=limit, devices=_tell_devices),
            "The queue at other rates": self._lay(
                self.queue,
                "hardware @label | of quantity! | *rate rate_per_s | of the highest load_ratio | p50 p50_s | "
                "*p99 p99_s | target promise_s | power power_w",
                p50_s=lambda row: "overloaded" if row.p50_s is None else show_quantity(row.p50_s, "s"),
                p99_s=lambda row: "overloaded" if row.p99_s is None else show_quantity(row.p99_s, "s"),
            ),
            "At each rate": self._lay(
                attrs.evolve(self.at_rates, rows=tuple(one for one in self.at_rates if one.label in told)),
                "hardware @label | *rate rate_per_s | of the time share_fraction | *devices device_count | "
                "time busy busy_fraction | *power power_w",
            ),
            "Mixed": self._lay(
                self.mixtures,
                "fleet label | *form | *USD/month #cost_per_month | kWh/month #kwh_per_month | power power_w | "
                "*saved saved_fraction",
                limit=limit,
            ),
            "Prompts and answers apart": self._lay(
                self.pairs,
                "prompts > answers label | *USD/month #cost_per_month | kWh/month #kwh_per_month | "
                "*first token first_token_p99_s | *between between_p99_s | handover handover_s | power power_w | "
                "*of one kind regret_ratio",
                limit=limit,
            ),
            "Missed targets and limits": self._lay(
                attrs.evolve(self.rows, rows=tuple(row for row in self.rows if row.status != OK)),
                "hardware @label | *why reason",
                limit=limit,
            ),
        }
        return self._compose(
            self.title(),
            (Section("", (fleets,) if shown else ()),),
            self.rows,
            answer=self._say_best(),
            insights=self._insights(),
            sure=self._say_sure(),
            details=[Section(title, drawn) for title, drawn in details.items()],
            notes=[*NOTES, *self.scope.describe()],
            steps=self._steps(repeated),
        )

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        chips = [self.scope.spell(row.hardware) for row in first_of_each(self.ok)[:2]]
        model = next(iter(self.shares))
        best = next(iter(self.ok), None)
        if best is None:
            return []
        precision = spell_precision(best.precision)
        if self.demand.is_of_tokens:
            rate = (self.levels[0].rate_per_s * best.server_device_count) / (best.device_count or 1)
            devices = ["--devices", str(best.server_device_count)] if best.server_device_count > 1 else []
            asked = ["--batch", "1", "--rate", f"{rate:.3g}/s"]
            return [["llm", model, *chips[:1], *precision, *devices, *asked, *repeated]]
        runtime = ["--runtime", best.runtime]
        return [["explain" if len(chips) > 1 else "edp", model, *chips, *precision, *runtime, *repeated]]

    def _find_together(self) -> tuple[MixedRow | PairRow, str, str] | None:
        """Return the fleet of two kinds that beats any of one kind, its form, and by how much; None without one.

        If both mixtures and prompt and answer pools beat it, return the better of them.
        """
        found: list[tuple[float, MixedRow | PairRow, str]] = [
            *((row.saved_fraction, row, row.form) for row in self.mixtures),
            *((1.0 - (row.regret_ratio or 0.0), row, "prompts > answers") for row in self.pairs),
        ]
        saved, row, form = max(found, key=lambda one: one[0], default=(0.0, None, ""))
        if row is None or saved <= 1.0 - SAVED:
            return None
        return row, form, f"{show_share(saved)} less than" if self.ok else ""

    def _say_best(self) -> str:
        """Return a sentence on the best fleet by the objective."""
        found, alone = self._find_together(), self._say_best_of_one()
        if found is None:
            return alone
        row, form, less = found
        column, unit = OBJECTIVES[self.demand.objective]
        value = show(getattr(row, column), "", unit)
        text = f"{row.label} ({form}): {value} a month, {show_quantity(row.power_w, 'W')} at the highest rate"
        return f"{text}; {less} the best of one kind, {alone}" if less else f"{text}; of one kind {alone}"

    def _say_best_of_one(self) -> str:
        """Return a sentence on the best fleet of one kind."""
        winner = next((row for row in self.winners if row.objective == self.demand.objective), None)
        if winner is None:
            first = self.rows[0]
            if first.status != OK:
                return f"no fleet meets all limits; {first.label}: {first.reason}"
            return (
                "no fleet that meets all targets and limits has a known price; "
                f"{first.device_count} {self.scope.mark(first.label)}: {show_quantity(first.power_w, 'W')}"
            )
        row = next(row for row in self.ok if row.label == winner.label)
        value = show(winner.value, "", winner.unit)
        paid = _describe_way(row) + (f" at {row.price_told}" if row.price_told else "")
        text = f"{row.device_count} {self.scope.mark(row.label)}{paid}: {value} a month"
        used = f" and {share} of its capacity" if (share := show_utilization(row)) else ""
        text += f", {show_quantity(row.power_w, 'W')}{used} at the highest rate"
        if winner.runner_up and winner.regret_ratio is not None:
            other = f"{winner.regret_ratio:.3g}x as much" if winner.regret_ratio > TIE_RATIO else "as much"
            text += f"; {self.scope.mark(winner.runner_up)} {VERBS[self.demand.objective]} {other}"
        return text

    def _insights(self) -> list[str]:
        """Return the best fleet's headroom, the lowest-energy fleet, and the hardware that cannot serve the demand."""
        best = next(iter(self.ok), None)
        told = []
        if best is not None and best.promise_fraction is not None:
            first, _, then = best.fails_first.partition(", ")
            fails = f"; at 1.5x the load, {first} is the first limit to break" + (f", {then}" if then else "")
            alone = f"{self.scope.mark(best.label)} alone: " if self._find_together() else ""
            told.append(
                f"{alone}{_describe_nearest(best, self.demand)}; it carries {show_carried(best.carried_ratio)} the "
                f"highest rate{fails if first else ''}"
            )
        told += self._describe_division()
        goals = {row.objective: row for row in self.winners}
        energy = goals.get("energy")
        if energy is not None and best is not None and energy.label != best.label:
            row = next(one for one in self.rows if one.label == energy.label)
            told.append(
                f"{self.scope.mark(energy.label)} uses the least energy: {show(energy.value, '', 'kWh')} a month, "
                f"{show_quantity(row.power_w, 'W')} with {show_count(row.device_count or 0, 'device')}"
            )
        told_first = (self._find_together() or (None,))[0]
        if self.mixtures.rows and self.mixtures[0] is not told_first:
            mixed = self.mixtures[0]
            told.append(
                f"mixed, {mixed.label} ({mixed.form}) take {show_share(mixed.saved_fraction)} less"
                " than the best of one kind"
            )
        if self.pairs.rows and self.pairs[0] is not told_first:
            told.append(self._say_pair())
        late = [row for row in self.rows if row.status == LATE]
        over = [row for row in self.rows if row.status not in (OK, LATE)]
        unused = sorted(set(self.demand.owned) - {row.chip for row in self.rows})
        if unused:
            told.append(f"you own {join_names(unused)}, which is not among the compared hardware")
        unpriced = list(
            dict.fromkeys(row.hardware for row in self.ok if row.cost_per_month is None and not row.unlike_told)
        )
        if unpriced and self.demand.objective == "cost":
            price = {"rented": "rent", "bought": "purchase price"}.get(self.pay, "price")
            more = [f"{len(unpriced) - 3} more"] if unpriced[3:] else []
            other = "" if price == "price" else " (--pay both takes either)"
            told.append(f"no {price} is known for {join_names([*unpriced[:3], *more])}: not compared by cost{other}")
        unlike = {self.scope.mark(row.chip): row.unlike_told for row in self.ok if row.unlike_told}
        if unlike and self.demand.objective == "cost":
            names = "; ".join(f"{name} {price}" for name, price in list(unlike.items())[:3])
            told.append(f"not compared by cost, as the price is of another kind of seller: {names} (--seller)")
        kept = {row.hardware for row in self.rows if row.status != LATE}
        missed = [name for name in dict.fromkeys(row.hardware for row in late) if name not in kept]
        if missed:
            more = [f"{len(missed) - 3} more"] if missed[3:] else []
            names = join_names([*map(self.scope.mark, missed[:3]), *more])
            verb = "misses" if len(missed) == 1 else "miss"
            told.append(f"{names} {verb} the latency target with any number of devices (--details)")
        if best is None:
            over = over[1:]
        if over:
            told.append(
                f"{over[0].label}: {over[0].reason}" + (f"; {len(over) - 1} more miss a limit" if over[1:] else "")
            )
        return told

    def _describe_division(self) -> list[str]:
        """Return the number of devices per server of the best fleet, and another number that is close to it."""
        best = next(iter(self.ok), None)
        if best is None or not self.demand.is_of_tokens:
            return []
        column, _ = OBJECTIVES[self.demand.objective]
        value = getattr(best, column)
        others = [
            row
            for row in self.ok
            if (row.hardware, row.precision) == (best.hardware, best.precision)
            and row.server_device_count != best.server_device_count
        ]
        if best.server_device_count == 1:
            text = f"each {best.hardware} holds the whole model"
        else:
            experts = " and whole experts among them" if best.expert_device_count > 1 else ""
            text = f"each server divides the model over {best.server_device_count} devices{experts}"
        near = [(getattr(row, column) / value, row) for row in others if value and getattr(row, column) is not None]
        for ratio, row in sorted(near, key=lambda pair: pair[0])[:1]:
            if ratio <= NEAR:
                more = f"{show_share(ratio - 1.0)} more" if ratio > TIE_RATIO else "as much"
                devices = show_count(row.server_device_count, "device")
                return [f"{text}; servers of {devices} would take {more}, too close to call"]
        return [text] if best.server_device_count > 1 else []

    def _say_pair(self) -> str:
        """Return the value of separate prompt and answer pools, relative to the best fleet of one kind."""
        pair = self.pairs[0]
        text = f"prompts and answers apart, {pair.label}"
        if pair.regret_ratio is None or pair.regret_ratio < SAVED:
            less = 1.0 - (pair.regret_ratio or 0.0)
            return f"{text} take {show_share(less)} less than the best of one kind"
        return f"{text} take {pair.regret_ratio:.3g}x the best of one kind, which needs no link"

    def _say_sure(self) -> str:
        told = []
        winner = next((row for row in self.winners if row.objective == self.demand.objective), None)
        if winner is not None and winner.probability_best is not None:
            sure = f"{'of one kind ' if self._find_together() else ''}{show_chance(winner.probability_best)}"
            told.append(
                f"{sure} that {winner.label} takes less than {winner.runner_up}"
                + ("" if winner.probability_best >= TOLD_APART else ": statistically tied")
            )
        best = next(iter(self.ok), None)
        if best is not None and best.device_low_count and best.device_high_count:
            low, high = best.device_low_count, best.device_high_count
            told.append(
                f"{low} to {high} devices with 80 % confidence"
                if low != high
                else f"{show_count(low, 'device')} with 80 % confidence"
            )
        return "; ".join(told)


def _tell_growth(row: FleetRow) -> str:
    carried = f"{row.label} carries {show_carried(row.carried_ratio)} the highest rate"
    return f"{carried}; at 1.5x the load, {row.fails_first} breaks" if row.fails_first else carried


def _tell_promises(demand: Demand) -> list[str]:
    """Return the latency targets in words."""
    told = [(demand.p99_s, ""), (demand.first_token_s, " first token"), (demand.between_s, " between tokens")]
    return [f"p99{what} within {show_quantity(value, 's')}" for value, what in told if value is not None]


def _describe_nearest(row: FleetRow, demand: Demand) -> str:
    """Return the p99 that is nearest to its target: `p99 is 13.5 ms, 90 % of the 15 ms target`."""
    told = (
        ("p99", row.p99_latency_s, demand.p99_s),
        ("p99 time to first token", row.first_token_p99_s, demand.first_token_s),
        ("p99 time between tokens", row.between_p99_s, demand.between_s),
    )
    known = [(value / target, what, value, target) for what, value, target in told if value is not None and target]
    share, what, value, target = max(known)
    return f"{what} is {show_quantity(value, 's')}, {show_share(share)} of the {show_quantity(target, 's')} target"


def _describe_way(row: FleetRow) -> str:
    """Return how a fleet is paid for: `, rented`, or `, 4 owned and 3 rented`."""
    if row.way in ("", "owned") or not row.owned_device_count:
        return f", {row.way}" if row.way else ""
    return f", {row.owned_device_count} owned and {(row.device_count or 0) - row.owned_device_count} {row.way}"


def _tell_devices(row: FleetRow) -> str:
    low, high = row.device_low_count, row.device_high_count
    spread = f" ({low}-{high})" if low is not None and high is not None and low != high else ""
    return f"{row.device_count}{spread}"
