"""Ranking of fleets: how they are paid for, their limits on power and cost, and their order by the objective."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.ask import Choice, Quantity, choose
from joulemap.domain import first_of_each as find_firsts
from joulemap.physics import LOGISTIC, probability_better
from joulemap.physics.interval.probability import probability_above
from joulemap.system import frozen
from joulemap.wing.fleet.capacity.row import LATE, OK, OVER, WATCHED, FleetRow, Sizing, first_of_each, grow_devices
from joulemap.wing.fleet.generated.row import MixedRow, QueueRow
from joulemap.wing.fleet.show.word import COST_OVER, NO_PRICE, POWER_OVER, SHARE_OVER, TIMES_OVER

if TYPE_CHECKING:
    from joulemap.show import Template
    from joulemap.wing.fleet.demand import Demand, Objective

QUANTILES: Final = 40
"""Number of equally probable errors of the predicted time for which the devices of a fleet are counted."""

OBJECTIVES: Final[Mapping[Objective, tuple[str, str]]] = {
    "cost": ("cost_per_month", "USD"),
    "energy": ("kwh_per_month", "kWh"),
    "carbon": ("gco2_per_month", "g"),
}
"""Objective -> the column to minimize, and its unit."""

TWICE: Final = 2.0
"""Ratio of a value to its limit from which the excess is shown as a ratio, not as a percentage."""


@frozen(kw_only=True)
class Terms:
    """Terms on which fleets are compared: objective and limits of a demand, way of paying, and chips that count."""

    demand: Demand
    pay: str
    """Allowed payment: rented, bought or both."""
    takes_all: bool = False
    """True if chips that cannot be bought or rented count too."""

    def value(self, row: FleetRow | MixedRow) -> float | None:
        """Return the cost per month, or the energy per month for other objectives; carbon is proportional to energy."""
        return row.cost_per_month if self.demand.objective == "cost" else row.kwh_per_month

    def choose_payment(self, row: FleetRow) -> FleetRow:
        """Return the row with its cheapest allowed way of paying.

        Its status becomes refused if the fleet exceeds a limit on power or cost.
        """
        demand = self.demand
        ways = {"rented": row.rented_per_month, "bought": row.bought_per_month}
        is_there = row.chip in demand.owned and (row.device_count or 0) <= demand.owned[row.chip]
        known = {
            way: cost for way, cost in ways.items() if cost is not None and (is_there or self.pay in (way, "both"))
        }
        way = min(known, key=lambda one: known[one], default="")
        row = row.replace(way="owned" if way and is_there else way, cost_per_month=known.get(way))
        over = []
        for limit, value, template in self._list_limits(row):
            if value is not None and value > limit:
                ratio = value / limit
                excess = SHARE_OVER(share=ratio - 1.0) if ratio < TWICE else TIMES_OVER(ratio=ratio)
                over.append(template(value=value, limit=limit, excess=excess, host_power_w=row.host_power_w or None))
        if demand.max_cost_per_month is not None and row.cost_per_month is None:
            over.append(NO_PRICE)
        return row.replace(status=OVER, reason="; ".join(over)) if over and row.status == OK else row

    def is_counted(self, row: FleetRow) -> bool:
        """Return True if the chip of a fleet is available, or if all chips count."""
        return row.is_available or self.takes_all

    def rank(self, sized: Iterable[Sizing]) -> list[Sizing]:
        """Return the fleets, best first by the objective; refused fleets come last."""

        def order(one: Sizing) -> tuple[Any, ...]:
            row = one.row
            value = self._find_excess(row) if row.status == OVER else self.value(row)
            if row.status == LATE:
                value = row.promise_fraction or math.inf
            is_last = value is None or not self.is_counted(row)
            return (row.status != OK, row.status == LATE, is_last, value or 0.0, row.quality is not None, row.label)

        return sorted(sized, key=order)

    def rank_together(self, fleets: Iterable[MixedRow], best: FleetRow | None) -> list[MixedRow]:
        """Return the fleets of several kinds within all limits, best first by the objective, then the surest, with what
        each saves against the `best` fleet of one kind.
        """
        alone = None if best is None else self.value(best)
        kept = [
            (value, row) for row in fleets if (value := self.value(row)) is not None and self._find_excess(row) <= 1.0
        ]
        kept.sort(key=lambda one: (one[0], -(one[1].probability_best or 0.0), one[1].kwh_per_month, one[1].label))
        return [row.replace(saved_fraction=1.0 - value / alone if alone else None) for value, row in kept]

    def _list_limits(self, row: FleetRow | MixedRow) -> Iterator[tuple[float, float | None, Template]]:
        """Yield the limits on power and cost, each with the value of a fleet and the words on a higher one."""
        if self.demand.max_power_w is not None:
            yield self.demand.max_power_w, (row.power_w or 0.0) + (row.host_power_w or 0.0), POWER_OVER
        if self.demand.max_cost_per_month is not None:
            yield self.demand.max_cost_per_month, row.cost_per_month, COST_OVER

    def _find_excess(self, row: FleetRow | MixedRow) -> float:
        """Return the highest ratio of a fleet's power or cost to its limit; infinite if a price is unknown."""
        limits = self._list_limits(row)
        return max((math.inf if value is None else value / limit for limit, value, _ in limits), default=0.0)

    def find_choices(self, rows: Mapping[int, FleetRow]) -> dict[Objective, Choice]:
        """Return objective -> the best of fleets within all targets and limits, and the next hardware."""
        choices: dict[Objective, Choice] = {}
        for objective, (column, unit) in OBJECTIVES.items():
            known = [key for key, row in rows.items() if getattr(row, column)]
            known.sort(key=lambda key: (getattr(rows[key], column), rows[key].quality is not None, rows[key].label))
            best = [*find_firsts(known, lambda key: rows[key].hardware).values()][:2]
            values = {key: Quantity(float(getattr(rows[key], column)), unit) for key in best}
            if not values:
                continue
            chance = None
            if len(best) > 1:
                first, other = best
                ratio = values[other].value / values[first].value
                chance = _find_chance(rows[first], rows[other], objective, ratio)
            choices[objective] = choose(objective, values, lambda *_, chance=chance: chance, chance=chance)
        return choices


def list_queues(ranked: Sequence[Sizing]) -> list[QueueRow]:
    """Return rows on the queues of the best fleets at several rates."""
    return [row for one in first_of_each(ranked)[:WATCHED] for row in one.watch()]


def _find_chance(first: FleetRow, other: FleetRow, objective: Objective, ratio: float) -> float | None:
    """Return the probability that the first of two fleets is better; None if both values are certain.

    `ratio` is the other fleet's value divided by the first one's. A cost grows in steps: a fleet of slower devices
    needs more devices once its capacity is exceeded.
    """
    import numpy as np

    width = math.hypot(first.find_doubt(objective), other.find_doubt(objective))
    if not width:
        return None
    if objective != "cost" or not (first.carried_ratio and other.carried_ratio):
        return probability_better(ratio, width)
    growth, other_growth = (np.log([grow_devices(row, scale) for scale in _list_scales(row)]) for row in (first, other))
    ahead = math.log(ratio) + other_growth[None, :] - growth[:, None]
    return float(probability_above(ahead, math.hypot(first.price_half_width, other.price_half_width)).mean())


def _list_scales(row: FleetRow) -> list[float]:
    """Return equally probable ratios of actual to predicted time of a fleet, from the logistic distribution."""
    shares = [(index + 0.5) / QUANTILES for index in range(QUANTILES)]
    return [(share / (1.0 - share)) ** ((row.time_half_width or 0.0) / LOGISTIC) for share in shares]
