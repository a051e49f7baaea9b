"""Fewest servers of a language model that carry a load within latency targets, on the simulated station.

a division of the model ─► bounds from a few passes ─► servers that share the load ─► fewest within the targets
two of them ─► a prefill pool and a decode pool ─► servers are added to the pool that misses its target
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, Literal

import attrs

from joulemap.system import UnsupportedError, frozen
from joulemap.wing.llm.capacity.case import Case, Handover
from joulemap.wing.llm.capacity.load import run_pools, serve_one
from joulemap.wing.llm.serving.load import CLIENT_S, Load, Log, Served, Spread, Window
from joulemap.wing.llm.serving.serve import SaturatedRates, Throughput, find_limits, find_saturated_rates, list_knots
from joulemap.wing.llm.setting import Serving

NEAR: Final = 1.06
"""Ratio of the fewest servers within the targets to the most that miss them at which a search stops."""

STEP: Final = 1.25
"""Ratio of the first two numbers of servers that are tried. Each next ratio is the square of the previous one, until
both a number within the targets and one that misses them are found."""

MOST_STEP: Final = 4.0
"""Maximum ratio of two consecutive numbers that are tried."""

LEAST: Final = 0.95
"""Bound of a server's times with requests in flight, as a share of its times if no request waits for another.

Fewer requests answer at once than are in flight where many wait for their prompts. Source: a choice; without it, the
bound of 16 users with prompts of 4,000 tokens on an L4 is 0.6 % above the simulated time per token.
"""

ROUNDS: Final = 16
"""Maximum numbers of servers of two pools that are tried."""

GOOD: Final = 2.0
"""Ratio of a time to its target above which the number of servers grows by half per step, instead of by one."""


@frozen(kw_only=True)
class Targets:
    """Latency targets of the requests of a load."""

    first_token_s: float | None = None
    between_s: float | None = None
    """Target time per output token, as a mean over each request."""
    latency_s: float | None = None
    statistic: Literal["mean", "p99"] = "p99"
    """Statistic over the requests that the targets are for."""

    def list_promised(self, served: Served) -> list[tuple[str, Spread, float]]:
        """Return (quantity, simulated times, target in seconds) of each quantity with a target."""
        targets = (
            ("TTFT", served.first_token, self.first_token_s),
            ("TPOT", served.token_time, self.between_s),
            ("latency", served.latency, self.latency_s),
        )
        return [(quantity, spread, promise) for quantity, spread, promise in targets if promise is not None]

    def miss(self, served: Served, slower: float = 1.0) -> float:
        """Return the highest ratio of a time to its target; infinite if the queue grows without end."""
        if served.is_growing:
            return math.inf
        promised = self.list_promised(served)
        return max((getattr(spread, self.statistic) * slower / promise for _, spread, promise in promised), default=0.0)


def find_wait_s(serving: Serving) -> float:
    """Return the mean time from the end of an answer to the next request of its client."""
    return serving.pause_s if serving.turns > 1 else CLIENT_S


@frozen(kw_only=True, eq=False)
class Server:
    """Division of a model over the devices of a server, which carries a share of a load."""

    case: Case
    load: Load
    """Load of all servers together: a rate, or a number of requests in flight."""
    targets: Targets
    first: Load | None = None
    """Load of one server that is probably tried first; None if unknown."""
    tried: dict[float, tuple[Served, Load]] = attrs.field(factory=dict)
    """Number of servers -> their simulated service."""

    @staticmethod
    def of(case: Case, load: Load, targets: Targets) -> Server:
        """Return the server of a case, whose passes are evaluated once."""
        case = attrs.evolve(case, deployment=attrs.evolve(case.server, totals={}))
        return Server(case=case, load=load, targets=targets)

    @cached_property
    def rates(self) -> SaturatedRates | None:
        """Saturated rates of prefill alone and of decode alone; None if its passes cannot be evaluated."""
        serving, most_s = self.case.question.serving, self.targets.between_s
        slack = 1.0 if self.load.in_flight is None else LEAST
        server, draft, first = self.case.server, self.case.question.draft(self.case.server), self.first
        try:
            rates = find_saturated_rates(
                server,
                float(serving.mean_prompt),
                float(serving.output),
                cached_tokens=serving.mean_prompt - serving.prompt if serving.turns > 1 else serving.cached_tokens,
                most_s=None if most_s is None else most_s / slack,
                draft=draft,
                in_flight=self.load.in_flight,
                later=[list_knots(first, find_limits(server, first, draft)).passes] if first else (),
            )
        except UnsupportedError:
            return None
        is_late = self.targets.first_token_s is not None and slack * rates.alone_s > self.targets.first_token_s
        return attrs.evolve(rates, prompts=None) if is_late else rates

    @property
    def prompts(self) -> Throughput | None:
        """Throughput of prompts alone; None if one pass exceeds the target for the first token."""
        return self.rates.prompts if self.rates else None

    @property
    def answers(self) -> Throughput | None:
        """Throughput of answers alone; None if a single sequence exceeds the target between tokens."""
        return self.rates.answers if self.rates else None

    @property
    def work_s(self) -> float:
        """Approximate seconds of a server's time per request; infinite if it misses its targets without load."""
        if self.prompts is None or self.answers is None:
            return math.inf
        return 1.0 / self.prompts.per_s + 1.0 / self.answers.per_s

    @property
    def least(self) -> int:
        """Lower bound of the servers that hold the requests in flight within the targets."""
        assert self.load.in_flight is not None
        assert self.rates is not None
        held = min(float(self.case.most), self.rates.most)
        return 1 if self.load.pause_s else math.ceil(self.load.in_flight / held)

    def bound_per_s(self, servers: int, *, is_slowest: bool = False) -> float:
        """Return an upper bound of the requests per second of all requests in flight, without those that wait.

        If `is_slowest`, it is the rate of servers that answer as many at once as their targets and memory allow.
        """
        rates, serving = self.rates, self.case.question.serving
        if rates is None:
            return 0.0
        assert self.load.in_flight is not None
        each = rates.most if is_slowest else 1 if self.load.pause_s else math.ceil(self.load.in_flight / servers)
        request_s = rates.alone_s + (serving.output - 1) * rates.find_between(min(each, self.load.in_flight))
        if not is_slowest:  # each request meets the prompts of all others
            request_s = LEAST * (request_s + (each - 1) * rates.beside_s)
        return self.load.in_flight / (request_s + find_wait_s(serving))

    def serve(self, servers: float) -> tuple[Served, Load]:
        """Return the service of one of several servers that share the load evenly, and its load, simulated once."""
        if servers not in self.tried:
            in_flight, rate = self.load.in_flight, self.load.rate_per_s
            share = attrs.evolve(
                self.load,
                in_flight=in_flight and math.ceil(in_flight / servers),
                rate_per_s=rate and rate / servers,
            )
            served, own = serve_one(self.case, share)
            self.tried[servers] = attrs.evolve(served, log=Log.of(0)), own
        return self.tried[servers]

    def miss(self, servers: float, slower: float = 1.0) -> float:
        """Return the highest ratio of a time to its target if servers share the load.

        `slower` is an assumed factor on predicted times of passes, such as an end of their interval.
        """
        return self.targets.miss(self.serve(servers / slower)[0], slower)

    def find_fewest(
        self, guess: float, least: float, most: float, is_met: Callable[[float], bool] | None = None
    ) -> float:
        """Return the fewest servers, from `least` to `most`, within the targets; infinite if even the most miss them.

        The number is whole for requests in flight. At a rate it may be a fraction, whose inverse is the multiple of the
        rate that one server carries. `is_met` tells whether a number is within the targets, if they alone do not.
        """
        is_whole, check = self.load.in_flight is not None, is_met or (lambda servers: self.miss(servers) <= 1.0)
        met, missed, count, step = math.inf, 0.0, min(max(guess, least), most), STEP
        while met - missed > 1.0 if is_whole else met > NEAR * missed:
            if check(count):
                met = count
                if met <= least:
                    break
                count = math.sqrt(met * missed) if missed else max(count / step, least)
            else:
                missed = count
                if missed >= most:
                    break
                count = math.sqrt(met * missed) if met < math.inf else min(step * count, most)
            step = min(step * step, MOST_STEP)
            count = min(math.ceil(count), most if met == math.inf else met - 1.0) if is_whole else count
        return met


@frozen(kw_only=True, eq=False)
class Pools:
    """Prefill pool and decode pool within their targets."""

    counts: tuple[int, int]
    served: Served
    windows: tuple[Window, Window]
    handover: Handover


def size_pools(servers: tuple[Server, Server], load: Load, per_s: float, most: float = math.inf) -> Pools | None:
    """Return the pools of a server for prompts and one for answers that carry a load within the targets of the first.

    `per_s` is the rate of the load. Servers are added to the pool that misses its target. The result is None after
    `ROUNDS` pools that miss, and if more than `most` devices are needed.
    """
    (first, second), targets = servers, servers[0].targets
    if first.prompts is None or second.answers is None:
        return None
    rates = first.prompts.per_s, second.answers.per_s
    counts = [max(1, math.ceil(per_s / each)) for each in rates]
    for _ in range(ROUNDS):
        if counts[0] * first.case.world + counts[1] * second.case.world > most:
            break
        served, windows, handover, _ = run_pools(load, (first.case, second.case), (counts[0], counts[1]))
        if targets.miss(served) <= 1.0:
            return Pools(counts=(counts[0], counts[1]), served=served, windows=windows, handover=handover)
        shares = [
            0.0 if promise is None else getattr(spread, targets.statistic) / promise
            for spread, promise in ((served.first_token, targets.first_token_s), (served.token_time, targets.between_s))
        ]
        if served.is_growing or max(shares) <= 1.0:
            used = [per_s / each / count for each, count in zip(rates, counts, strict=True)]
            shares = [max(share, use) if use == max(used) else share for share, use in zip(shares, used, strict=True)]
        for index, share in enumerate(shares):
            if share > 1.0 or share == max(shares):
                counts[index] += 1 if share < GOOD else max(1, counts[index] // 2)
    return None


def keep_better(servers: Sequence[Server]) -> list[Server]:
    """Return one server per number of devices: the faster one, with or without experts split over devices."""
    by_count: dict[int, Server] = {}
    for one in servers:
        other = by_count.setdefault(one.case.world, one)
        if one.work_s < other.work_s:
            by_count[one.case.world] = one
    return list(by_count.values())
