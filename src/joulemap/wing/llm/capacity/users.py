"""Deployments for a number of users: precision, devices and servers that meet a latency target.

    hardware x precision ─► devices up to a node ─► servers that share the users ─► fewest devices within the target
                                                └─► a prefill pool and a decode pool, if these take fewer devices

Where the fewest devices meet the target with a low probability, more devices are evaluated.

Each user has one request in flight; the next request follows after a pause, if a pause is set. The times are means of
the steady state, in closed form (`serving.steady`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from joulemap.physics import Total, probability_better
from joulemap.system import JoulemapError, UnsupportedError, UsageError, define, frozen
from joulemap.wing.llm.capacity.case import UNSUPPORTED, Case, describe_node
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.capacity.row import NOT_STORED, Stored, name_case
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.capacity.split import cut_prompt, find_residence, find_room, split_pools
from joulemap.wing.llm.decoder.column import Asked
from joulemap.wing.llm.error_scale import AT_ONCE, NEW_LOAD
from joulemap.wing.llm.generated.row import UserRow
from joulemap.wing.llm.phase import ANSWER, PROMPT
from joulemap.wing.llm.serving.deployment import Deployment, guess
from joulemap.wing.llm.serving.steady import Steady, list_passes, run_steady
from joulemap.wing.llm.serving.surface import Passes
from joulemap.wing.llm.show.word import TOO_MANY

MOST_DEVICES: Final = 64
"""Maximum devices of all servers together."""

MOST_TRIED: Final = 6
"""Number of smallest options that are tried one by one before a binary search."""


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

    def miss(self, first_token_s: float, between_s: float) -> float:
        """Return the highest ratio of a time to its target; above 1 if a target is missed."""
        pairs = (first_token_s, self.first_token_s), (between_s, self.between_s)
        return max((time / most for time, most in pairs if most is not None), default=0.0)


@frozen(kw_only=True, eq=False)
class SharedServers:
    """Servers of one chip and precision that share the users."""

    case: Case
    target: LatencyTarget
    servers: int
    prompt_servers: int = 0
    """Servers of a separate prefill pool; 0 if each server does both phases."""
    first_token_s: float
    between_s: float
    request_j: float
    hits: tuple[float, ...] = (0.0,)
    """Share of prompt tokens found on the device and in each lower tier."""
    uncached_j: float | None = None
    """Energy of a request if no prefix is reused; None without a prefix cache."""

    @property
    def question(self) -> Question:
        """Question that the servers answer."""
        return self.case.question

    @property
    def device_count(self) -> int:
        """Number of devices of all servers."""
        return (self.servers + self.prompt_servers) * self.case.world

    @property
    def request_s(self) -> float:
        """Mean time of a request in seconds: no step follows the first token if it is the only one."""
        return self.first_token_s + (self.question.serving.output - 1) * self.between_s

    @property
    def device_s(self) -> float:
        """Device time per request in seconds: all devices over requests per second."""
        return self.device_count / self.per_s

    @property
    def miss(self) -> float:
        """Highest ratio of a mean time to its target; above 1 if the target is missed."""
        return self.target.miss(self.first_token_s, self.between_s)

    @property
    def per_s(self) -> float:
        """Requests of all users per second."""
        return self.target.users / (self.request_s + self.question.serving.pause_s)


def find_deployment(case: Case, target: LatencyTarget) -> SharedServers | str:
    """Return the deployment of a chip and precision with the fewest devices that meets the target.

    If none meets it, return the deployment nearest to the target; if none holds the model, return the reason.
    """
    if case.status == UNSUPPORTED:
        return case.reason
    options = list(list_options(case, target))
    if not options:
        if not _list_holding(case):
            return describe_node(case)
        return TOO_MANY(users=target.users, most=MOST_DEVICES, hardware=case.hardware)
    search = Search(options, target)
    try:
        met = search.find()
    except UnsupportedError as error:
        return str(error)
    missed = [one for one in search.tried.values() if one.miss > 1.0]
    # a server that does both phases is simpler: two pools are chosen only if they take fewer devices
    most, pools = met.device_count - 1 if met else MOST_DEVICES, list[SharedServers]()
    for one in missed:
        if (pool := _split(one, most)) is not None:
            pools.append(pool)
            most = pool.device_count if pool.miss <= 1.0 else most
    fitting = [pool for pool in pools if pool.miss <= 1.0]
    if fitting:
        best = min(fitting, key=lambda one: (one.device_count, one.request_j))
    else:
        best = met or min((*missed, *pools), key=lambda one: one.miss)
    return _add_uncached(best)


def _add_uncached(deployed: SharedServers) -> SharedServers:
    """Return a deployment with `uncached_j` set, if it reuses prefixes and has no separate pools."""
    if not deployed.question.serving.reuses_prefixes or deployed.prompt_servers:
        return deployed
    before = _serve(deployed.case, deployed.servers, deployed.target, reuses=False)
    return attrs.evolve(deployed, uncached_j=before.request_j)


def find_likelier(deployed: SharedServers, paid: Paid, *, likely: float, most_ratio: float) -> SharedServers | None:
    """Return the smallest deployment larger than `deployed` that meets the target with a probability of `likely`.

    Device time per request represents the cost. It grows with the number of devices, so the search ends above
    `most_ratio` times the device time of `deployed`. Two pools are tried only if `deployed` has two, and chosen only if
    they take fewer devices. None if no such deployment exists.
    """
    options = list(list_options(deployed.case, deployed.target))
    search, most_s = Search(options, deployed.target), most_ratio * deployed.device_s
    best, most = None, MOST_DEVICES
    tried: list[SharedServers] = []
    for count in sorted({search.count(index) for index in range(len(options))}):
        least = deployed.device_count // 2 if deployed.prompt_servers else deployed.device_count
        if count <= least:  # pools around so few servers rarely have more devices than the deployment
            continue
        one = search.find_quickest(count)
        if one is None:
            continue
        if count > deployed.device_count:
            if one.device_s > most_s:
                break
            if one.miss <= 1.0 and (_find_chance(one, paid) or 0.0) >= likely:
                best, most = one, count - 1
                break
        tried.append(one)
    for one in tried if deployed.prompt_servers else ():
        pool = _split(one, most)
        is_cheap = pool is not None and deployed.device_count < pool.device_count and pool.device_s <= most_s
        if pool is not None and is_cheap and pool.miss <= 1.0 and (_find_chance(pool, paid) or 0.0) >= likely:
            best, most = pool, pool.device_count - 1
    return None if best is None else _add_uncached(best)


Option = tuple["Case", int]
"""(server, number of servers)."""


def _list_holding(case: Case) -> list[Case]:
    """Return the requested divisions that hold the model and at least one request."""
    asked = case.question.serving.devices
    return [one for one in case.list_divisions() if one.most >= 1 and not (asked and one.devices not in asked)]


def list_options(case: Case, target: LatencyTarget) -> Iterator[Option]:
    """Yield options, sorted by total devices.

    For each division of the model, they are the fewest servers that hold the users, twice as many, and so on.
    """
    options: list[Option] = []
    totals: dict[Asked, Total] = {}
    for one in _list_holding(case):
        one = attrs.evolve(one, deployment=attrs.evolve(one.server, totals=totals))
        servers = 1 if case.question.serving.pause_s else -(-target.users // one.most)
        while servers * one.world <= MOST_DEVICES and servers <= target.users:
            options.append((one, servers))
            servers *= 2
    yield from sorted(options, key=lambda option: (option[0].world * option[1], option[1], option[0].experts))


@define(eq=False)
class Search:
    """Search for the fewest devices among options of one chip and precision, which are sorted by total devices."""

    options: Sequence[Option]
    target: LatencyTarget
    tried: dict[int, SharedServers] = attrs.field(factory=dict)
    """Index of an option -> its deployment."""

    def find(self) -> SharedServers | None:
        """Return the deployment with the fewest devices that meets the target; None if even the largest misses it."""
        last = len(self.options) - 1
        near = range(1, min(MOST_TRIED, last))
        most = max(range(last + 1), key=lambda index: (self.options[index][0].world, self.options[index][1]))
        self.prepare((0, most))
        first = self.serve(0)
        if first.miss <= 1.0:
            return self.find_quickest(first.device_count)
        quickest = self.serve(most)
        if quickest.miss > 1.0:
            return None
        self.prepare(near)
        for index in near:
            one = self.serve(index)
            if one.miss <= 1.0:
                return self.find_quickest(one.device_count)
        # binary search, which assumes that more devices are always faster
        rest = sorted({self.count(index) for index in range(min(MOST_TRIED, last), last + 1)})
        low, high = -1, len(rest) - 1
        while high - low > 1:
            middle = (low + high) // 2
            indices = (index for index in range(1, last + 1) if self.count(index) == rest[middle])
            best = next((one for index in indices if (one := self.serve(index)).miss <= 1.0), None)
            low, high, quickest = (low, middle, best) if best else (middle, high, quickest)
        return self.find_quickest(quickest.device_count)

    def count(self, index: int) -> int:
        """Return the number of devices of the option at this index."""
        case, servers = self.options[index]
        return case.world * servers

    def serve(self, index: int) -> SharedServers:
        """Return the deployment of the option at this index, computed once."""
        if index not in self.tried:
            self.tried[index] = _serve(*self.options[index], self.target)
        return self.tried[index]

    def find_quickest(self, count: int) -> SharedServers | None:
        """Return the deployment of `count` devices that serves the most requests per second.

        Deployments within the target are preferred. Return None if none holds the users.
        """
        indices = [index for index in range(len(self.options)) if self.count(index) == count]
        self.prepare(indices)
        served = []
        for index in indices:
            with contextlib.suppress(JoulemapError):
                served.append(self.serve(index))
        return max(served, key=lambda one: (one.miss <= 1.0, one.per_s), default=None)

    def prepare(self, indices: Iterable[int]) -> None:
        """Evaluate the passes of several options together, which takes little more time than one option.

        Only boards with the same power cap are evaluated together, because their links take a part of it. With pauses,
        conversations or drafts, some passes depend on the results of other passes, so nothing is evaluated here.
        """
        groups: dict[float, tuple[Deployment, list[Asked]]] = {}
        for case, servers in (self.options[index] for index in indices if index not in self.tried):
            load = _find_load(case, servers, self.target)
            if load.pause_s or load.residence or load.speculated_tokens:
                return
            prompt, _ = cut_prompt(load.prompt_tokens, load.cached_tokens, load.step_tokens)
            _, asked = groups.setdefault(case.server.links_w, (case.server, []))
            asked += case.server.ask(Passes.joined((list_passes(load), prompt)))
        for server, asked in groups.values():
            with contextlib.suppress(UnsupportedError):  # an option that needs these passes is refused
                server.evaluate(asked)


def _serve(case: Case, servers: int, target: LatencyTarget, *, reuses: bool = True) -> SharedServers:
    """Return a deployment whose servers each do both phases; without `reuses`, all prompt tokens are computed."""
    question, serving = case.question, case.question.serving
    context = serving.mean_prompt - serving.prompt
    load = _find_load(case, servers, target, reuses=reuses)
    cost = run_steady(guess(case.server, question.draft(case.server)), load)
    hits = tuple(hit * context / serving.mean_prompt for hit in cost.hits) or (load.kept_tokens / load.prompt_tokens,)
    return SharedServers(
        case=case,
        target=target,
        servers=servers,
        first_token_s=cost.first_token_s,
        between_s=cost.step_s,
        request_j=cost.output_token_j * serving.output + cost.moved_j,
        hits=hits,
    )


def _find_load(case: Case, servers: int, target: LatencyTarget, *, reuses: bool = True) -> Steady:
    """Return the load of one server, if `servers` servers share the users."""
    question, stack, each = case.question, case.server.stack, -(-target.users // servers)
    serving = question.serving
    draft, context = question.draft(case.server), serving.mean_prompt - serving.prompt
    residence = None
    if reuses and serving.turns > 1:
        residence = find_residence(case, each, context=context, tokens=serving.mean_prompt + serving.output)
    return Steady(
        in_flight=each,
        prompt_tokens=serving.mean_prompt,
        output_tokens=serving.output,
        room=find_room(case),
        step_tokens=case.server.step_tokens,
        mixes=stack.mixes,
        request_s=stack.value("request"),
        cached_tokens=serving.cached_tokens if reuses else 0.0,
        residence=residence,
        pause_s=serving.pause_s,
        begin_s=(target.first_token_s or 0.0) + serving.output * (target.between_s or 0.0),
        speculated_tokens=draft.guessed_tokens,
        accepted_tokens=draft.accepted_tokens,
    )


def name_servers(deployed: SharedServers) -> str:
    """Return the servers of a deployment, such as `2 of l4 x4` or `1 prefill + 2 decode of mi300x`."""
    case = deployed.case
    server = case.hardware if case.world == 1 else f"{case.hardware} x{case.world}"
    if case.experts > 1:
        server += f" ep{case.experts}"
    if deployed.prompt_servers:
        return f"{deployed.prompt_servers} prefill + {deployed.servers} decode of {server}"
    return f"{deployed.servers} of {server}"


def _split(deployed: SharedServers, most_devices: int) -> SharedServers | None:
    """Return separate pools: the servers of `deployed` for decode, and additional prefill servers.

    Return None if they need over `most_devices` devices, or if the decode pool lacks room.
    """
    case, target = deployed.case, deployed.target
    pools = split_pools(
        case,
        target.users,
        deployed.servers,
        first_token_s=target.first_token_s,
        most_servers=most_devices // case.world - deployed.servers,
    )
    if pools is None:
        return None
    return attrs.evolve(deployed, **attrs.asdict(pools))


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


def form_row(deployed: SharedServers, paid: Paid, quality: str, *, is_published: bool) -> UserRow:
    """Return the row of a deployment."""
    serving, case = deployed.question.serving, deployed.case
    tokens = serving.mean_prompt + serving.output
    usd = None if paid.device_usd_per_s is None else paid.device_usd_per_s * deployed.device_count / deployed.per_s
    carbon = None if paid.gco2_per_j is None else paid.gco2_per_j * deployed.request_j
    return UserRow(
        label=name_servers(deployed),
        hardware=case.hardware,
        precision=case.precision,
        is_published=is_published,
        device_count=case.world,
        expert_device_count=case.experts,
        server_count=deployed.servers,
        prefill_server_count=deployed.prompt_servers,
        total_device_count=deployed.device_count,
        users_per_server=-(-deployed.target.users // deployed.servers),
        largest_users=case.most,
        is_met=deployed.miss <= 1.0,
        target_ratio=deployed.miss,
        met_probability=_find_chance(deployed, paid),
        first_token_s=deployed.first_token_s,
        between_s=deployed.between_s,
        first_token_half_width=_find_first_half_width(deployed, paid),
        between_half_width=SlowHost.of(case.server).widen(paid.between_half_width, deployed.between_s),
        request_s=deployed.request_s,
        tokens_per_s=deployed.per_s * tokens,
        output_tokens_per_s=deployed.per_s * serving.output,
        usd_per_million=None if usd is None else 1e6 * usd / tokens,
        million_j=1e6 * deployed.request_j / tokens,
        gco2_per_million=None if carbon is None else 1e6 * carbon / tokens,
        request_usd=usd,
        request_j=deployed.request_j,
        request_gco2=carbon,
        quality=quality,
        prefix_hit_fraction=sum(deployed.hits) if serving.reuses_prefixes else None,
        tier_hit_fraction=sum(deployed.hits[1:]) if serving.reuses_prefixes else None,
        uncached_request_j=deployed.uncached_j,
    )


def _find_first_half_width(deployed: SharedServers, paid: Paid) -> float | None:
    """Return the half-width of the mean time to first token; None if it is unknown."""
    width, is_alone = paid.first_token_half_width, deployed.target.users <= deployed.servers
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
