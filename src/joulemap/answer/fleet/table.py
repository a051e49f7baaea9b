"""Tables of fleets, as they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.fleet.mixture import MixedRow
from joulemap.answer.fleet.pair import PairRow
from joulemap.answer.fleet.row import OK, FleetRow, FleetWinner, LevelRow, QueueRow, show_carried
from joulemap.domain.fleet import Demand
from joulemap.domain.table import Table
from joulemap.present.cell import show, show_plain, show_quantity
from joulemap.present.document import Grid, grid
from joulemap.row.cost import AssumedNumber
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.fleet import Level


@frozen(kw_only=True)
class FleetTables(RunAnswer):
    """What an answer about fleets holds, and how it is drawn."""

    demand: Demand
    shares: Mapping[str, float]
    """Model -> its share of the requests."""
    levels: tuple[Level, ...]
    """Rates, the highest first."""
    pay: str
    rows: Table[FleetRow]
    winners: Table[FleetWinner]
    mixtures: Table[MixedRow]
    """Fleets of several kinds that take less than any of one, the best first."""
    pairs: Table[PairRow]
    """Of a language model: pools of two kinds, one for prompts and one for answers, the best first."""
    at_rates: Table[LevelRow]
    """What each fleet does at each rate."""
    queue: Table[QueueRow]
    """How the queues of the best fleets grow with the rate."""
    assumptions: Table[AssumedNumber]

    @property
    def ok(self) -> tuple[FleetRow, ...]:
        """Fleets that keep promises and limits, the best of the objective first."""
        return tuple(row for row in self.rows if row.status == OK)

    def _draw_fleets(self, table: Table[FleetRow], limit: int) -> Grid:
        cells: dict[str, Any] = {
            "cost": ("USD/month", lambda row: show_plain(row.cost_per_month)),
            "energy": ("kWh/month", lambda row: show_plain(row.kwh_per_month)),
            "carbon": ("CO2/month", "gco2_per_month"),
        }
        first = cells.pop(self.demand.objective)
        served = any(row.first_token_p99_s is not None for row in table)
        times: tuple[Any, ...] = (
            (("first token", "first_token_p99_s"), ("between", "between_p99_s"))
            if served
            else (("p99", "p99_latency_s"),)
        )
        return grid(
            table,
            (
                ("hardware", lambda row: self.scope.mark(row.label)),
                ("devices", _tell_devices),
                first,
                *times,
                ("batch", lambda row: f"{row.batch_mean:.3g} of {row.batch}"),
                ("wait", lambda row: show_quantity(row.wait_s, "s") if row.wait_s else ""),
                ("busy", "busy_fraction"),
                ("power", "power_w"),
                ("carries", lambda row: show_carried(row.carried_ratio)),
                ("J/request", "energy_per_request_j"),
                *cells.values(),
                ("way", "way"),
            ),
            limit=limit,
            keep=("devices", first[0], *(name for name, _ in times), "batch", "power"),
        )

    def _draw_costs(self, table: Table[FleetRow], limit: int) -> Grid:
        return grid(
            table,
            (
                ("hardware", lambda row: self.scope.mark(row.label)),
                ("devices", _tell_devices),
                ("rented", lambda row: show(row.rented_per_month, "", "USD")),
                ("bought", lambda row: show(row.bought_per_month, "", "USD")),
                ("CO2", "gco2_per_month"),
                ("kWh", lambda row: show_plain(row.kwh_per_month)),
                ("at most", "power_w"),
                ("mean", "mean_power_w"),
                ("idle", "idle_power_w"),
                ("grown by half, fails first", "fails_first"),
            ),
            limit=limit,
            keep=("devices", "rented", "bought", "at most", "idle"),
        )

    def _draw_levels(self, shown: Sequence[FleetRow]) -> Grid:
        labels = [row.label for row in shown]
        return grid(
            attrs.evolve(self.at_rates, rows=tuple(one for one in self.at_rates if one.label in labels)),
            (
                ("hardware", lambda row: self.scope.mark(row.label)),
                ("rate", "rate_per_s"),
                ("of the time", "share_fraction"),
                ("devices", "device_count"),
                ("busy", "busy_fraction"),
                ("power", "power_w"),
            ),
            limit=len(labels) * len(self.levels),
            keep=("rate", "devices", "power"),
        )

    def _draw_queue(self) -> Grid:
        return grid(
            self.queue,
            (
                ("hardware", lambda row: self.scope.mark(row.label)),
                *((("of", "quantity"),) if len({row.quantity for row in self.queue}) > 1 else ()),
                ("rate", "rate_per_s"),
                ("of the highest", "load_ratio"),
                ("half within", lambda row: "ever more" if row.p50_s is None else show_quantity(row.p50_s, "s")),
                ("99 of 100", lambda row: "ever more" if row.p99_s is None else show_quantity(row.p99_s, "s")),
                ("promised", "promise_s"),
                ("power", "power_w"),
            ),
            keep=("rate", "99 of 100"),
        )

    def _draw_mixed(self, limit: int) -> Grid:
        return grid(
            self.mixtures,
            (
                ("fleet", "label"),
                ("form", "form"),
                ("USD/month", lambda row: show_plain(row.cost_per_month)),
                ("kWh/month", lambda row: show_plain(row.kwh_per_month)),
                ("power", "power_w"),
                ("saved", "saved_fraction"),
            ),
            limit=limit,
            keep=("form", "USD/month", "saved"),
        )

    def _draw_pairs(self, limit: int) -> Grid:
        return grid(
            self.pairs,
            (
                ("prompts > answers", "label"),
                ("USD/month", lambda row: show_plain(row.cost_per_month)),
                ("kWh/month", lambda row: show_plain(row.kwh_per_month)),
                ("first token", "first_token_p99_s"),
                ("between", "between_p99_s"),
                ("handover", "handover_s"),
                ("power", "power_w"),
                ("of one kind", lambda row: "" if row.regret_ratio is None else f"{row.regret_ratio:.3g}x"),
            ),
            limit=limit,
            keep=("USD/month", "first token", "between", "of one kind"),
        )

    def _draw_missed(self, rows: Sequence[FleetRow], limit: int) -> Grid:
        return grid(
            attrs.evolve(self.rows, rows=tuple(rows)),
            (("hardware", lambda row: self.scope.mark(row.label)), ("why", "reason")),
            limit=limit,
            keep=("why",),
        )


def _tell_devices(row: FleetRow) -> str:
    low, high = row.device_low_count, row.device_high_count
    spread = f" ({low}-{high})" if low is not None and high is not None and low != high else ""
    return f"{row.device_count}{spread}"
