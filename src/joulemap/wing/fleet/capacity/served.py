"""Fleets for language models: servers of one or more devices, each with an equal share of the requests.

    every number of devices up to a node ─► bound of its servers ─► the few that may be best ─► simulated

A number of devices is skipped if even the bound of its servers exceeds `NEAR` times the best simulated value.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import attrs

from joulemap.ask import Refusal, Scope
from joulemap.domain import DEPLOYED, Settings
from joulemap.plan import Plan, Source
from joulemap.system import UnsupportedError, UsageError, define
from joulemap.wing.fleet.capacity.cost import HALF_MORE, complete_fleet, make_late
from joulemap.wing.fleet.capacity.pair import pair_servers
from joulemap.wing.fleet.capacity.row import LOADS, NEAR, DeviceLoad, Sizing
from joulemap.wing.fleet.capacity.sized import SizedFleets, read_stored
from joulemap.wing.fleet.demand import MOST_CARRIED, Demand, Level
from joulemap.wing.fleet.generated.row import QueueRow, Station
from joulemap.wing.fleet.show.word import SLOW
from joulemap.wing.llm.serve import (
    OK,
    OTHER_INTERVALS,
    Case,
    Question,
    Served,
    ServedModel,
    Server,
    Serving,
    keep_better,
    opening_passes,
    refuse,
)

LEAST: Final = 1e-4
"""Share of the estimated rate of a server below which no rate is tried: it cannot serve if it misses its targets there.
"""

GUESSED: Final = 0.8
"""Share of the capacity without queues at which the search for a server's rate starts."""

MORE: Final = 16
"""Servers divided by this number are added per step, at least one, while a p99 exceeds its target."""

MOST_ADDED: Final = 1.5
"""Maximum factor by which steps may increase the number of servers over the estimate from a server's capacity."""

ROUNDS: Final = 3
"""Maximum number of divisions that are simulated for one chip and precision."""


@define(kw_only=True, eq=False)
class Division:
    """Server of a language model that a demand may use."""

    plan: Plan
    server: Server
    demand: Demand
    refusal: str = ""
    """Reason why it cannot serve a request, known once it is simulated."""
    most_per_s: float = 0.0
    """Highest rate at which one server meets its targets, once it is simulated; 0 for none."""

    @property
    def case(self) -> Case:
        """Configuration of the server."""
        return self.server.case

    @property
    def order(self) -> tuple[float, int, int]:
        """Sort key by which divisions are simulated: the estimate, then devices, then expert devices."""
        return self.estimate, self.case.world, self.case.experts

    @property
    def bound(self) -> float:
        """Lower bound of the devices, or joules per request, that servers of this division need.

        It is infinite if none meets the targets.
        """
        return self._count(min)

    @property
    def estimate(self) -> float:
        """Estimate of the devices, or joules per request, if prompts and answers share a server's time."""
        return self._count(lambda *_: 1.0 / self.server.work_s)

    @property
    def value(self) -> float:
        """Devices, or joules per request, that the simulated servers need; infinite if they miss the targets."""
        rate = self.demand.peak_per_s
        if not self.most_per_s:
            return math.inf
        count = self.count(rate)
        if self.demand.objective == "cost":
            return float(count * self.case.world)
        return self.serve(rate / count).power_w * count / rate

    def _count(self, join: Callable[[float, float], float]) -> float:
        prompts, answers, demand = self.server.prompts, self.server.answers, self.demand
        if prompts is None or answers is None:
            return math.inf
        if demand.objective != "cost":
            return prompts.joules + answers.joules
        count = math.ceil(demand.peak_per_s / join(prompts.per_s, answers.per_s))
        return float(demand.round_up(count * self.case.world))

    def open(self) -> None:
        """Find the capacity of the server, or why it cannot serve."""
        guess = self.demand.peak_per_s * self.server.work_s / GUESSED
        try:
            self.most_per_s = self.find_rate(guess if guess < math.inf else 1.0)
        except UnsupportedError as error:
            self.refusal = str(error)

    def find_rate(self, guess: float, slower: float = 1.0) -> float:
        """Return the highest rate at which a server meets its targets; 0 for none.

        `guess` is a number of servers, and `slower` an assumed factor on predicted times of passes.
        """
        least, most = 1.0 / MOST_CARRIED, max(guess, 1.0) / LEAST
        servers = self.server.find_fewest(guess, least, most, lambda count: self.server.miss(count, slower) <= 1.0)
        return self.demand.peak_per_s / servers

    def serve(self, rate_per_s: float) -> Served:
        """Return the service of one server at a rate."""
        return self.server.serve(self.demand.peak_per_s / rate_per_s)[0]

    def count(self, rate_per_s: float) -> int:
        """Return the number of servers that a rate needs, rounded up to whole nodes."""
        return _fill_nodes(math.ceil(rate_per_s / self.most_per_s), self.case.world, self.demand)


def _choose(waiting: Sequence[Division]) -> Iterator[Division]:
    """Yield the divisions of one chip that may be close to the best, in their order, each simulated before the next."""
    opened: list[Division] = []
    for one in waiting:
        least = NEAR * min((each.value for each in opened), default=math.inf)
        if opened and (one.bound > least or one.bound == math.inf):
            continue
        opened.append(one)
        yield one
        if len(opened) == ROUNDS:
            return


def size_deployments(
    source: Source,
    model: str,
    settings: Settings,
    demand: Demand,
    serving: Serving,
) -> SizedFleets:
    """Return how many servers of each chip meet the targets of a language model."""
    if demand.beside:
        raise UsageError("a fleet serves a language model alone: --beside is for other kinds of models")
    published = settings.precision == DEPLOYED.precision
    settings = attrs.evolve(settings, batch=(1,), precision=() if published else settings.precision)
    choices = ServedModel(name=model, settings=settings, serving=serving).list_choices(source)
    question, whole, every = choices[0]
    report = source.progress or (lambda _done, _total: None)
    source.talk("simulating servers (1 of 3) …")
    opened = open_servers(choices, demand, report)
    if not opened:
        raise refuse(every)
    source.talk("evaluating the chosen servers (2 of 3) …")
    groups = [(one.case.question, one.plan, [one.case]) for one in opened]
    with opening_passes(source, groups) as (connection, (_, decode)):
        scope, engine = Scope.of_plan(whole, connection, decode), question.stack.name
        stored = read_stored(scope, settings, metric=demand.deciding, engine=engine, but=OTHER_INTERVALS)
        scope.read()
    served = {one.case.hardware for one in opened}
    lost = {case.hardware: case.refusal for case in every if case.hardware not in served}
    if settings.hardware:
        unstored = (
            Refusal(runs=(-number,), reason=reason, hardware=(chip,))
            for number, (chip, reason) in enumerate(lost.items(), 1)
        )
        scope = attrs.evolve(scope, unstored=tuple(unstored))
    stations = {row.run_id: row for row in stored.stations}
    source.talk("counting devices (3 of 3) …")
    sized = size_servers([(one, stations[run_id]) for one, run_id in zip(opened, decode, strict=True)], report)
    if len(choices) > 1:
        stored_so = whole if question.is_published else None
        narrow = [None if one.plan is stored_so else one.case.quality for one in opened]
        rows = (one.row.replace(quality=loss) for one, loss in zip(sized, narrow, strict=True))
        sized = [attrs.evolve(one, row=row) for one, row in zip(sized, rows, strict=True)]
    both = [(one.server, row) for one, row in zip(opened, sized, strict=True) if not one.refusal]
    return SizedFleets(
        scope=scope,
        stored=stored,
        shares={question.decoder.name: 1.0},
        sized=sized,
        pair=partial(pair_servers, question, both),
        engine=f"{question.stack.label} {question.stack.date}",
        serving=serving,
    )


def open_servers(
    choices: Sequence[tuple[Question, Plan, Sequence[Case]]], demand: Demand, report: Callable[[int, int], None]
) -> list[Division]:
    """Return the simulated servers of each chip, each with its division, or with the reason why it cannot serve.

    `choices` are those of `ServedModel.list_choices`, the checkpoint as published first. All precisions of a chip share
    one search, which begins with the published one. The cases include refused ones, each with the fewest devices that
    hold the model. If the question names numbers of devices or a box, exactly these divisions are returned. `report`
    gets the numbers of simulated divisions and of those that may be.
    """
    searches: dict[tuple[object, ...], list[Division]] = {}
    for question, plan, every in choices:
        load = question.serving.form_load(demand.peak_per_s)
        is_named = bool(question.serving.devices or question.alike)
        for case in every:
            cases = case.list_divisions() if not is_named else [case] if case.status == OK else []
            servers = keep_better([Server.of(one, load, demand.tails) for one in cases])
            ready = sorted(
                (Division(plan=plan, server=one, demand=demand) for one in servers), key=lambda one: one.order
            )
            points = case.run.point.values() if len(choices) == 1 else ()
            key = (question, case) if is_named else (case.run.target, *points)
            known = searches.setdefault(key, [])
            known[1:] = sorted([*known[1:], *ready], key=lambda one: one.order)
        _release(question)
    opened: list[Division] = []
    running = [_choose(one) for one in searches.values()]
    while chosen := [one for search in running if (one := next(search, None)) is not None]:
        chosen.sort(key=lambda one: (one.case.devices, one.case.experts))
        for index, one in enumerate(chosen):
            one.open()
            opened.append(one)
            report(len(opened), len(opened) + len(chosen) - index - 1)
            following = chosen[index + 1] if index + 1 < len(chosen) else None
            if following is None or following.case.devices != one.case.devices:
                _release(one.case.question)
    return [one for search in searches.values() for one in search if one in opened]


def _release(question: Question) -> None:
    """Free the cached passes of a question; their kernels reference each other, so reference counts do not."""
    question.workloads.release()
    gc.collect()


def size_servers(opened: Sequence[tuple[Division, Station]], report: Callable[[int, int], None]) -> list[Sizing]:
    """Return for each server, or reason why it cannot serve, the fleet that meets the targets, or a row with the reason
    why none does.

    `report` gets the numbers of servers that are done and of all.
    """
    rows: list[Sizing] = []
    for one, station in opened:
        report(len(rows), len(opened))
        try:
            rows.append(_size(one, station) if not one.refusal else _refuse(one, station, one.refusal))
        except UnsupportedError as error:
            rows.append(_refuse(one, station, str(error)))
    return rows


def _refuse(division: Division, station: Station, reason: str, taken: float | None = None) -> Sizing:
    """Return the row of servers that miss their targets; `taken` is the ratio of their time to the target."""
    late = make_late(station, reason, taken)
    return Sizing(row=late.replace(**_name(division.case)), station=station)


def _size(division: Division, station: Station) -> Sizing:
    """Return a fleet whose servers share the requests evenly, or a refusal if one server misses its targets at any
    rate.
    """
    demand, world, targets = division.demand, division.case.world, division.server.targets
    peak = demand.peak_per_s
    rate = division.most_per_s
    if rate == 0.0:
        alone = division.serve(LEAST * peak)
        between_s = alone.token_time.p99 if alone.has_gaps else None
        reason = SLOW(first_token_s=alone.first_token.p99, between_s=between_s)
        return _refuse(division, station, reason, targets.miss(alone))
    count, served = _add_servers(division, peak)
    width = math.exp(station.latency_half_width or 0.0)
    low, high = (_count(division, peak, slower) for slower in (1.0 / width, width))
    loads = [_observe(division, level, count) for level in demand.levels]
    row, at_rates = complete_fleet(
        station,
        demand,
        loads,
        devices=count * world,
        idle_w=division.case.server.resting_w / world,
        power_w=served.power_w * count,
        grown_w=division.serve(HALF_MORE * peak / count).power_w * count,
        carried=rate * count / peak,
        **_name(division.case),
        device_low_count=low and _fill_nodes(low, world, demand) * world,
        device_high_count=high and _fill_nodes(high, world, demand) * world,
        batch=min(division.case.server.sequence_limit, division.case.most),
        batch_mean=peak / count * served.latency.mean,
        wait_s=0.0,
        p50_latency_s=served.latency.p50,
        p99_latency_s=served.latency.p99,
        first_token_p99_s=served.first_token.p99,
        between_p99_s=served.token_time.p99 if served.has_gaps else None,
        promise_fraction=targets.miss(served),
        server_rate_per_s=rate,
        busy_fraction=served.window.busy_fraction,
    )
    return Sizing(
        row=row,
        station=station,
        levels=at_rates,
        serve=lambda rates: [_split_work(division.serve(one)) for one in rates],
        watch=partial(_watch, division, row.label, count, peak),
    )


def _add_servers(division: Division, peak: float) -> tuple[int, Served]:
    """Return the number of servers that meet the targets at the highest rate, and their service.

    Random requests differ at each rate, so a p99 near its target may exceed it at a slightly lower rate.
    """
    count = division.count(peak)
    most = math.ceil(MOST_ADDED * count) + 1
    while division.server.miss(count) > 1.0 and count < most:
        count = _fill_nodes(count + max(1, count // MORE), division.case.world, division.demand)
    return count, division.serve(peak / count)


def _watch(division: Division, label: str, count: int, peak: float) -> list[QueueRow]:
    """Return a row for each quantity with a target at several rates near the highest.

    Times are None where the queue grows without end.
    """
    rows = []
    for load in LOADS:
        served = division.serve(load * peak / count)
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
            for quantity, spread, promise in division.server.targets.list_promised(served)
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


def _count(division: Division, peak: float, slower: float) -> int | None:
    """Return the number of servers needed for the rate `peak`, if times are longer; None if none meets the targets."""
    capacity = division.find_rate(peak / division.most_per_s * slower, slower)
    return math.ceil(peak / capacity) if capacity else None


def _observe(division: Division, level: Level, count: int) -> DeviceLoad:
    """Return the load of `count` servers at a rate; with release, only as many as the rate needs are powered."""
    world = division.case.world
    powered = division.count(level.rate_per_s) if division.demand.releases else count
    if level.rate_per_s == 0.0 or powered == 0:
        return DeviceLoad(level=level, devices=powered * world, busy_devices=0.0, batch_w=0.0)
    busy, watts = _split_work(division.serve(level.rate_per_s / powered))
    return DeviceLoad(
        level=level,
        devices=powered * world,
        busy_devices=busy * powered * world,
        batch_w=watts * powered,
    )


def _split_work(served: Served) -> tuple[float, float]:
    """Return the busy fraction of a server, and the watts that it draws for work."""
    return served.window.busy_fraction, served.window.busy_w
