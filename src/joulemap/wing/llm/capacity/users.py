"""Deployments for a number of users: precision, devices and servers that meet a latency target.

    hardware x precision ─► devices up to a node ─► servers that share the users ─► fewest devices within the target
                                                └─► a prefill pool and a decode pool, if these take fewer devices

Where the fewest devices meet the target with a low probability, more devices are evaluated.

Each user has one request in flight, or a conversation with pauses. Times are means over the requests of a simulation of
one server, as with `--in-flight`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from joulemap.domain import take
from joulemap.physics import probability_better
from joulemap.system import UnsupportedError, UsageError, frozen
from joulemap.wing.decoder import ANSWER, PROMPT
from joulemap.wing.llm.capacity.case import UNSUPPORTED, Case, describe_node
from joulemap.wing.llm.capacity.load import forget_cache, read_load, serve_one
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.capacity.row import NOT_STORED, Stored, name_case
from joulemap.wing.llm.capacity.search import Server, Targets, find_wait_s, size_pools
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.error_scale import AT_ONCE, NEW_LOAD
from joulemap.wing.llm.generated.row import UserRow
from joulemap.wing.llm.serving.load import Load, Served
from joulemap.wing.llm.show.word import TOO_MANY

MOST_DEVICES: Final = 64
"""Maximum devices of all servers together."""


@frozen(kw_only=True)
class LatencyTarget:
    """Target mean latency for a number of concurrent users."""

    users: int
    first_token_s: float | None = None
    """Target mean time to first token in seconds; None for no target."""
    between_s: float | None = None
    """Target mean time per output token in seconds; None for no target."""

    def __attrs_post_init__(self) -> None:
        """Raise UsageError for fewer than one user, or without a target."""
        if self.users < 1:
            raise UsageError(f"--users is {self.users}, expected at least 1")
        if self.first_token_s is None and self.between_s is None:
            raise UsageError("--users needs a latency target: add --first-token 1s or --between-tokens 30ms")

    @property
    def means(self) -> Targets:
        """Targets of the mean times of requests."""
        return Targets(first_token_s=self.first_token_s, between_s=self.between_s, statistic="mean")


@frozen(kw_only=True, eq=False)
class SharedServers:
    """Servers of one chip and precision that share the users."""

    case: Case
    target: LatencyTarget
    server_count: int
    prefill_server_count: int = 0
    """Servers of a separate prefill pool; 0 if each server does both phases."""
    first_token_s: float
    between_s: float
    target_ratio: float
    """Highest ratio of a mean time to its target; above 1 if the target is missed."""
    request_j: float
    hits: tuple[float, ...] = (0.0,)
    """Share of prompt tokens found on the device and in each lower tier."""
    uncached_request_j: float | None = None
    """Energy of a request if no prefix is reused; None without a prefix cache."""
    divisions: tuple[Server, ...] = ()
    """All divisions of its case, which share the users."""

    @property
    def question(self) -> Question:
        """Question that the servers answer."""
        return self.case.question

    @property
    def name(self) -> tuple[str, str]:
        """Servers, such as `2 of l4 x4` or `1 prefill + 2 decode of mi300x`, and their precision."""
        case, prefill = self.case, self.prefill_server_count
        server = f"{case.label} ep{case.experts}" if case.experts > 1 else case.label
        pools = f"{prefill} prefill + {self.server_count} decode" if prefill else str(self.server_count)
        return f"{pools} of {server}", case.precision

    @property
    def is_met(self) -> bool:
        """True if all mean times are within the target."""
        return self.target_ratio <= 1.0

    @property
    def users_per_server(self) -> int:
        """Number of concurrent requests of a server."""
        return -(-self.target.users // self.server_count)

    @property
    def total_device_count(self) -> int:
        """Number of devices of all servers."""
        return (self.server_count + self.prefill_server_count) * self.case.world

    @property
    def request_s(self) -> float:
        """Mean time of a request in seconds: no step follows the first token if it is the only one."""
        return self.first_token_s + (self.question.serving.output - 1) * self.between_s

    @property
    def device_s(self) -> float:
        """Device time per request in seconds: all devices over requests per second."""
        return self.total_device_count / self.per_s

    @property
    def per_s(self) -> float:
        """Requests of all users per second."""
        return self.target.users / (self.request_s + find_wait_s(self.question.serving))


def find_deployment(case: Case, target: LatencyTarget) -> SharedServers | str:
    """Return the deployment of a chip and precision with the fewest devices that meets the target.

    If none meets it, return the deployment nearest to the target; if none holds the model, return the reason.
    """
    if case.status == UNSUPPORTED:
        return case.reason
    asked = case.question.serving.devices
    held = [one for one in case.list_divisions() if one.most >= 1 and not (asked and one.devices not in asked)]
    if not held:
        return describe_node(case)
    divisions = _list_divisions(held, target)
    if not divisions:
        return TOO_MANY(users=target.users, most=MOST_DEVICES, hardware=case.hardware)
    try:
        best = _find_least(divisions, target, lambda one: one.is_met)
        if best is None:
            nearest = [one for one in divisions if one.tried] or divisions[-1:]
            best = min((_form(one, target, _count_most(one)) for one in nearest), key=lambda one: one.target_ratio)
        # a server that does both phases is simpler: two pools are chosen only if they take fewer devices
        most = best.total_device_count - 1 if best.is_met else MOST_DEVICES
        best = _find_pools(divisions, target, most) or best
    except UnsupportedError as error:
        return str(error)
    return _add_uncached(attrs.evolve(best, divisions=divisions))


def _list_divisions(held: Sequence[Case], target: LatencyTarget) -> tuple[Server, ...]:
    """Return the servers that hold the users on few enough devices, those of the fewest devices first."""
    kept = list[Server]()
    for case in sorted(held, key=lambda one: (one.world, one.experts)):
        one = Server.of(case, open_load(case, target.users), target.means)
        fewest = 1 if one.load.pause_s else math.ceil(target.users / case.most)
        if fewest * case.world <= MOST_DEVICES:
            first = open_load(case, math.ceil(target.users / fewest))
            kept.append(one if kept else attrs.evolve(one, first=first))
    return tuple(kept)


def _count_most(server: Server) -> int:
    """Return the most servers that may share the users."""
    assert server.load.in_flight is not None
    return min(MOST_DEVICES // server.case.world, server.load.in_flight)


def _find_least(
    divisions: Sequence[Server],
    target: LatencyTarget,
    is_met: Callable[[SharedServers], bool],
    *,
    above: int = 0,
    most_s: float = math.inf,
) -> SharedServers | None:
    """Return the deployment of the fewest devices, more than `above`, that is within the target; None if none is.

    Of equally many devices, it serves the most requests per second. Devices spend at most `most_s` per request.
    """
    best: SharedServers | None = None
    dear = math.inf
    for one in divisions:
        world, fewest = one.case.world, above // one.case.world + 1
        most = _count_most(one) if best is None else min(_count_most(one), best.total_device_count // world)
        if fewest > most or world > dear or one.work_s == math.inf:
            continue
        least = max(one.least, fewest)
        counts = range(least, most + 1)
        most = max((count for count in counts if count * world <= most_s * one.bound_per_s(count)), default=0)
        if least == 1 and counts and not most:
            dear = world  # passes of a request shorten at most in proportion to the devices
        is_slower = (
            best is not None and least * world == best.total_device_count and one.bound_per_s(least) <= best.per_s
        )
        if least > most or is_slower or (most_s < math.inf and _form(one, target, least).device_s > most_s):
            continue

        def is_enough(count: float, server: Server = one) -> bool:
            return is_met(_form(server, target, int(count)))

        count = one.find_fewest(least, least, most, is_enough)
        if count < math.inf:
            found = _form(one, target, int(count))
            best = min(best or found, found, key=lambda one: (one.total_device_count, -one.per_s))
    return best


def _find_pools(divisions: Sequence[Server], target: LatencyTarget, most: int) -> SharedServers | None:
    """Return a prefill pool and a decode pool of the fewest devices, up to `most`, within the target; None if none."""
    best = None
    for one in divisions:
        if most >= 2 * one.case.world and one.work_s < math.inf:
            per_s = one.bound_per_s(1, is_slowest=True)
            pools = size_pools((one, one), one.load, per_s, most)
            if pools is not None:
                whole = _share(one.case, target, pools.counts[1], pools.served, one.load)
                request_j = whole.request_j + pools.handover.joules
                best = attrs.evolve(whole, prefill_server_count=pools.counts[0], request_j=request_j)
                most = best.total_device_count - 1
    return best


def _add_uncached(deployed: SharedServers) -> SharedServers:
    """Return a deployment with `uncached_request_j` set, if it reuses prefixes and has no separate pools."""
    if not deployed.question.serving.reuses_prefixes or deployed.prefill_server_count:
        return deployed
    load = open_load(deployed.case, math.ceil(deployed.target.users / deployed.server_count))
    served, _ = serve_one(deployed.case, forget_cache(load))
    return attrs.evolve(
        deployed, uncached_request_j=served.energy_per_output_token_j * deployed.question.serving.output
    )


def find_likelier(deployed: SharedServers, paid: Paid, *, likely: float, most_ratio: float) -> SharedServers | None:
    """Return the smallest deployment larger than `deployed` that meets the target with a probability of `likely`.

    Device time per request represents the cost. It grows with the number of devices, so the search ends above
    `most_ratio` times the device time of `deployed`. None if no such deployment exists.
    """
    most_s = most_ratio * deployed.device_s

    def is_likely(one: SharedServers) -> bool:
        return one.is_met and one.device_s <= most_s and (_find_chance(one, paid) or 0.0) >= likely

    best = _find_least(deployed.divisions, deployed.target, is_likely, above=deployed.total_device_count, most_s=most_s)
    return best and _add_uncached(best)


def open_load(case: Case, users: int) -> Load:
    """Return the load of a number of users, who keep a request in flight, or a conversation."""
    load = read_load(case.question.change(in_flight=users))
    assert load is not None
    return load


def _form(server: Server, target: LatencyTarget, servers: int) -> SharedServers:
    """Return a deployment whose servers each do both phases."""
    return _share(server.case, target, servers, *server.serve(servers))


def _share(case: Case, target: LatencyTarget, servers: int, served: Served, load: Load) -> SharedServers:
    hits = tuple(hit.found_fraction for hit in served.hits) or (load.cached_tokens / load.prompt_tokens,)
    return SharedServers(
        case=case,
        target=target,
        server_count=servers,
        first_token_s=served.first_token.mean,
        between_s=served.token_time.mean,
        target_ratio=target.means.miss(served),
        request_j=served.energy_per_output_token_j * case.question.serving.output,
        hits=hits,
    )


@frozen(kw_only=True)
class Paid:
    """Cost, carbon and interval widths of one device of a chip, from its stored runs."""

    device_usd_per_s: float | None = None
    gco2_per_j: float | None = None
    first_token_half_width: float | None = None
    between_half_width: float | None = None


def read_paid(case: Case, stored: Stored) -> Paid:
    """Return the cost, the carbon and the intervals of a configuration; empty if it is not stored."""
    known = stored.get(name_case(case), NOT_STORED)
    rows = {row.phase: row for row, _ in known.phases}
    answer, prompt = rows.get(ANSWER.name), rows.get(PROMPT.name)
    first = prompt.latency_half_width if prompt else None
    carbon = None
    if answer is not None and answer.gco2_per_million is not None:
        carbon = answer.gco2_per_million / answer.energy_per_token_j / 1e6
    return Paid(
        device_usd_per_s=None if known.usd_per_s is None else known.usd_per_s / case.world,
        gco2_per_j=carbon,
        first_token_half_width=None if first is None else math.hypot(first, NEW_LOAD),
        between_half_width=answer.latency_half_width if answer else None,
    )


def form_row(deployed: SharedServers, paid: Paid) -> UserRow:
    """Return the row of a deployment."""
    serving, case = deployed.question.serving, deployed.case
    tokens = serving.mean_prompt + serving.output
    usd = (
        None if paid.device_usd_per_s is None else paid.device_usd_per_s * deployed.total_device_count / deployed.per_s
    )
    carbon = None if paid.gco2_per_j is None else paid.gco2_per_j * deployed.request_j
    row: dict[str, Any] = {
        **take(UserRow, deployed, case),
        "label": deployed.name[0],
        "is_published": deployed.question.is_published,
        "device_count": case.world,
        "expert_device_count": case.experts,
        "largest_users": case.most,
        "met_probability": _find_chance(deployed, paid),
        "first_token_half_width": _find_first_half_width(deployed, paid),
        "between_half_width": SlowHost.of(case.server).widen(paid.between_half_width, deployed.between_s),
        "tokens_per_s": deployed.per_s * tokens,
        "output_tokens_per_s": deployed.per_s * serving.output,
        "usd_per_million": None if usd is None else 1e6 * usd / tokens,
        "million_j": 1e6 * deployed.request_j / tokens,
        "gco2_per_million": None if carbon is None else 1e6 * carbon / tokens,
        "request_usd": usd,
        "request_gco2": carbon,
        "quality": "" if deployed.question.is_published else case.quality,
        "prefix_hit_fraction": sum(deployed.hits) if serving.reuses_prefixes else None,
        "tier_hit_fraction": sum(deployed.hits[1:]) if serving.reuses_prefixes else None,
    }
    return UserRow(**row)


def _find_first_half_width(deployed: SharedServers, paid: Paid) -> float | None:
    """Return the half-width of the mean time to first token; None if it is unknown."""
    width, is_alone = paid.first_token_half_width, deployed.target.users <= deployed.server_count
    return width if width is None or is_alone or deployed.question.serving.pause_s else math.hypot(width, AT_ONCE)


def _find_chance(deployed: SharedServers, paid: Paid) -> float | None:
    """Return the probability that both targets are met, as if their errors were independent; None if one is unknown."""
    target, chances = deployed.target, list[float]()
    if target.first_token_s is not None:
        half_width = _find_first_half_width(deployed, paid)
        if half_width is None:
            return None
        chances.append(probability_better(target.first_token_s / deployed.first_token_s, half_width))
    if target.between_s is not None:
        if paid.between_half_width is None:
            return None
        host = SlowHost.of(deployed.case.server)
        chances.append(host.find_chance(target.between_s, deployed.between_s, paid.between_half_width))
    return math.prod(chances) if chances else None


def rank_rows(rows: Sequence[UserRow]) -> list[UserRow]:
    """Return rows within the target by cost, or by energy without a price; then other rows by their ratio to the
    target.
    """
    return sorted(
        rows,
        key=lambda row: (
            not row.is_met,
            row.target_ratio if not row.is_met else 0.0,
            row.usd_per_million is None,
            row.usd_per_million or row.million_j,
        ),
    )
