"""Fleets for language models: servers of one or more devices, each with an equal share of the requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.system import UnsupportedError, frozen
from joulemap.wing.fleet.capacity.cost import HALF_MORE, complete_fleet, make_late
from joulemap.wing.fleet.capacity.row import LOADS, DeviceLoad, Sizing
from joulemap.wing.fleet.demand import MOST_CARRIED, Demand, Level
from joulemap.wing.fleet.generated.row import QueueRow, Station
from joulemap.wing.fleet.show.word import SLOW

if TYPE_CHECKING:
    from joulemap.wing.llm.serve import Case, Limits, Load, SaturatedRates, Served, Spread, Table

NEAR: Final = 1.06
"""Ratio of the lowest missed to the highest met rate of a server at which the search stops."""

LEAST: Final = 1e-4
"""Share of the highest rate tried below which no rate is tried; a server that misses its targets there cannot serve."""

GUESSED: Final = 0.8
"""Share of the capacity without queues at which the search for a server's rate starts."""

STEP: Final = 1.25
"""Ratio of the first two rates tried. Each next ratio is the square of the previous one, until both a met and a missed
rate are found."""

MOST_STEP: Final = 4.0
"""Maximum ratio of two consecutive rates that are tried."""

MORE: Final = 16
"""Servers divided by this number are added per step, at least one, while a p99 exceeds its target."""

MOST_ADDED: Final = 1.5
"""Maximum factor by which steps may increase the number of servers over the estimate from a server's capacity."""


@frozen(kw_only=True, eq=False)
class Server:
    """Server of a language model, with tabulated times of its passes, from which it is simulated at any rate."""

    case: Case
    requests: Load
    table: Table
    limits: Limits
    demand: Demand
    rates: SaturatedRates | None
    """Saturated rates of prefill alone and of decode alone; None if the passes cannot be evaluated."""
    slower: float = 1.0
    """Assumed factor on predicted pass times, such as an end of their interval; 1 for the prediction."""
    most_per_s: float = 0.0
    """Highest tried rate at which the server meets its targets; 0 for none."""

    @property
    def most_in_flight(self) -> int:
        """Maximum concurrent requests of the mean length, by memory and by the engine's limit."""
        return min(self.limits.sequences, self.case.most)

    def serve(self, rate_per_s: float) -> Served:
        """Return the service at a rate, with predicted pass times; callers multiply its times by `slower`."""
        from joulemap.wing.llm.serve import simulate

        return simulate(self.table, attrs.evolve(self.requests, rate_per_s=rate_per_s * self.slower), self.limits)

    def count(self, rate_per_s: float) -> int:
        """Return the number of servers that a rate needs, rounded up to whole nodes."""
        return _fill_nodes(math.ceil(rate_per_s / self.most_per_s), self.case.world, self.demand)

    def find_ratio(self, rate_per_s: float) -> float:
        """Return the highest ratio of a p99 to its target at a rate; infinite if the queue grows without end."""
        return find_worst_ratio(self.serve(rate_per_s), self.demand, self.slower)

    def find_rate(self, guess: float, most: float) -> float:
        """Return the highest rate up to `most` at which the server meets its targets; 0 for none."""
        low, high, rate, step = 0.0, math.inf, min(guess, most), STEP
        while high / max(low, 1e-300) > NEAR:
            if self.find_ratio(rate) <= 1.0:
                low = rate
                if low == most:
                    return most
                rate = min(step * rate, most) if high == math.inf else math.sqrt(low * high)
            else:
                high = rate
                if high < LEAST * most:
                    return 0.0
                rate = math.sqrt(low * high) if low else rate / step
            step = min(step * step, MOST_STEP)
        return low


def find_work_s(rates: SaturatedRates | None) -> float:
    """Return approximate seconds of a server's time per request; infinite if it misses its targets without load."""
    if rates is None or rates.prompts is None or rates.answers is None:
        return math.inf
    return 1.0 / rates.prompts.per_s + 1.0 / rates.answers.per_s


def find_worst_ratio(served: Served, demand: Demand, slower: float = 1.0) -> float:
    """Return the highest ratio of a p99 to its target; infinite if the queue grows without end."""
    if served.is_growing:
        return math.inf
    return max(spread.p99 * slower / promise for _, spread, promise in _list_promised(served, demand))


def _list_promised(served: Served, demand: Demand) -> list[tuple[str, Spread, float]]:
    """Return (quantity, simulated times, target p99 in seconds) of each quantity with a target."""
    targets = (
        ("TTFT", served.first_token, demand.first_token_s),
        ("TPOT", served.token_time, demand.between_s),
        ("latency", served.latency, demand.p99_s),
    )
    return [(quantity, spread, promise) for quantity, spread, promise in targets if promise is not None]


def open_server(case: Case, rates: SaturatedRates | None, demand: Demand) -> Server | str:
    """Return the server of a case with its capacity, or the reason why it cannot serve a request."""
    from joulemap.wing.llm.serve import open_deployment

    question, serving, peak = case.question, case.question.serving, demand.peak_per_s
    load = serving.form_load(peak)
    tiers = serving.read_tiers() if serving.turns > 1 else ()
    try:
        table, limits = open_deployment(case.server, load, question.draft(case.server), tiers=tiers)
        server = Server(case=case, requests=load, table=table, limits=limits, demand=demand, rates=rates)
        guess = GUESSED / find_work_s(rates) or peak
        return attrs.evolve(server, most_per_s=server.find_rate(guess, peak * MOST_CARRIED))
    except UnsupportedError as error:
        return str(error)


def size_servers(
    opened: Sequence[tuple[Server | str, Case, Station]], report: Callable[[int, int], None]
) -> list[Sizing]:
    """Return for each server, or reason why it cannot serve, the fleet that meets the targets, or a row with the reason
    why none does.

    `report` gets the numbers of servers that are done and of all.
    """
    rows: list[Sizing] = []
    for server, case, station in opened:
        report(len(rows), len(opened))
        try:
            if not isinstance(server, str):
                rows.append(_size(server, station))
                continue
            reason = server
        except UnsupportedError as error:
            reason = str(error)
        rows.append(Sizing(row=attrs.evolve(make_late(station, reason), **_name(case)), station=station))
    return rows


def _size(server: Server, station: Station) -> Sizing:
    """Return a fleet whose servers share the requests evenly, or a refusal if one server misses its targets at any
    rate.
    """
    demand, world = server.demand, server.case.world
    peak = demand.peak_per_s
    rate = server.most_per_s
    if rate == 0.0:
        alone = server.serve(LEAST * peak)
        between_s = alone.token_time.p99 if alone.has_gaps else None
        reason = SLOW(first_token_s=alone.first_token.p99, between_s=between_s)
        late = make_late(station, reason, find_worst_ratio(alone, demand))
        return Sizing(row=attrs.evolve(late, **_name(server.case)), station=station)
    count, served = _add_servers(server, peak)
    width = math.exp(station.latency_half_width or 0.0)
    low, high = (_count(attrs.evolve(server, slower=slower), peak, rate) for slower in (1.0 / width, width))
    loads = [_observe(server, level, count, rate) for level in demand.levels]
    row, at_rates = complete_fleet(
        station,
        demand,
        loads,
        devices=count * world,
        idle_w=server.table.resting_w / world,
        power_w=served.power_w * count,
        grown_w=server.serve(HALF_MORE * peak / count).power_w * count,
        carried=rate * count / peak,
        **_name(server.case),
        device_low_count=low and _fill_nodes(low, world, demand) * world,
        device_high_count=high and _fill_nodes(high, world, demand) * world,
        batch=server.most_in_flight,
        batch_mean=peak / count * served.latency.mean,
        wait_s=0.0,
        p50_latency_s=served.latency.p50,
        p99_latency_s=served.latency.p99,
        first_token_p99_s=served.first_token.p99,
        between_p99_s=served.token_time.p99 if served.has_gaps else None,
        promise_fraction=find_worst_ratio(served, demand),
        server_rate_per_s=rate,
        busy_fraction=served.window.busy_fraction,
    )
    return Sizing(
        row=row,
        station=station,
        levels=at_rates,
        serve=lambda rates: [_split_work(server.serve(one)) for one in rates],
        watch=partial(_watch, server, row.label, count, peak),
    )


def _add_servers(server: Server, peak: float) -> tuple[int, Served]:
    """Return the number of servers that meet the targets at the highest rate, and their service.

    Random requests differ at each rate, so a p99 near its target may exceed it at a slightly lower rate.
    """
    count = server.count(peak)
    most = math.ceil(MOST_ADDED * count) + 1
    served = server.serve(peak / count)
    while find_worst_ratio(served, server.demand) > 1.0 and count < most:
        count = _fill_nodes(count + max(1, count // MORE), server.case.world, server.demand)
        served = server.serve(peak / count)
    return count, served


def _watch(server: Server, label: str, count: int, peak: float) -> list[QueueRow]:
    """Return a row for each quantity with a target at several rates near the highest.

    Times are None where the queue grows without end.
    """
    rows, demand = [], server.demand
    for load in LOADS:
        served = server.serve(load * peak / count)
        rows += [
            QueueRow(
                label=label,
                quantity=quantity,
                rate_per_s=load * peak,
                load_ratio=load,
                p50_s=None if served.is_growing else spread.p50,
                p99_s=None if served.is_growing else spread.p99,
                promise_s=promise,
                power_w=None if served.is_growing else served.power_w * count,
            )
            for quantity, spread, promise in _list_promised(served, demand)
        ]
    return rows


def _fill_nodes(count: int, world: int, demand: Demand) -> int:
    """Return the number of servers after rounding up to whole nodes; `world` is the devices of a server."""
    return max(count, demand.round_up(count * world) // world)


def _name(case: Case) -> dict[str, Any]:
    apart = f" ep{case.experts}" if case.experts > 1 else ""
    return {
        "label": f"{case.label}{apart} {case.precision}",
        "server_device_count": case.world,
        "expert_device_count": case.experts,
    }


def _count(server: Server, peak: float, rate: float) -> int | None:
    """Return the number of servers needed for the rate `peak`; None if no number meets the targets.

    `rate` is the estimate with which the search for a server's capacity starts.
    """
    capacity = server.find_rate(rate / server.slower, peak * MOST_CARRIED / server.slower)
    return math.ceil(peak / capacity) if capacity else None


def _observe(server: Server, level: Level, count: int, rate: float) -> DeviceLoad:
    """Return the load of `count` servers at a rate; with release, only as many as the rate needs are powered.

    `rate` is the capacity of one server.
    """
    world = server.case.world
    powered = _fill_nodes(math.ceil(level.rate_per_s / rate), world, server.demand) if server.demand.releases else count
    if level.rate_per_s == 0.0 or powered == 0:
        return DeviceLoad(level=level, devices=powered * world, busy_devices=0.0, batch_w=0.0)
    busy, watts = _split_work(server.serve(level.rate_per_s / powered))
    return DeviceLoad(
        level=level,
        devices=powered * world,
        busy_devices=busy * powered * world,
        batch_w=watts * powered,
    )


def _split_work(served: Served) -> tuple[float, float]:
    """Return the busy fraction of a server, and the watts that it draws for work."""
    return served.window.busy_fraction, served.window.busy_w
