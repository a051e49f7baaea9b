"""Deployments for a number of users: precision, devices and servers that meet a latency target.

    hardware x precision ─► devices up to a node ─► servers that share the users ─► fewest devices within the target
                                                └─► a prefill pool and a decode pool, if these take fewer devices

Where the fewest devices meet the target with a low probability, more devices are evaluated.

Each user has one request in flight, or a conversation with pauses. Times are means over the requests of a simulation of
one server, as with `--in-flight`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from joulemap.physics import Total, probability_better
from joulemap.system import UnsupportedError, UsageError, define, frozen
from joulemap.wing.llm.capacity.case import UNSUPPORTED, Case, describe_node
from joulemap.wing.llm.capacity.load import FULL, forget_cache, read_load, run_pools, serve_one
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.capacity.row import NOT_STORED, Stored, name_case
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.decoder.column import Asked
from joulemap.wing.llm.error_scale import AT_ONCE, NEW_LOAD
from joulemap.wing.llm.generated.row import UserRow
from joulemap.wing.llm.phase import ANSWER, PROMPT
from joulemap.wing.llm.serving.deployment import Deployment, guess
from joulemap.wing.llm.serving.load import CLIENT_S, Load, Served
from joulemap.wing.llm.serving.surface import Passes
from joulemap.wing.llm.setting import Serving
from joulemap.wing.llm.show.word import TOO_MANY

MOST_DEVICES: Final = 64
"""Maximum devices of all servers together."""

MOST_TRIED: Final = 6
"""Maximum number of pools that are simulated for one chip and precision."""


LEAST: Final = 0.95
"""Bound of an option's times, as a share of its times if no request waits for another.

Fewer requests answer at once than there are users where many wait for their prompts. Source: a choice; without it, the
bound of 16 users with prompts of 4,000 tokens on an L4 is 0.6 % above the simulated time per token.
"""


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
        return self.target.users / (self.request_s + find_wait_s(self.question.serving))


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
        best = search.find()
        # a server that does both phases is simpler: two pools are chosen only if they take fewer devices
        most = best.device_count - 1 if best.miss <= 1.0 else MOST_DEVICES
        pools = search.find_pools(1, most) if most > 1 else None
    except UnsupportedError as error:
        return str(error)
    if pools is not None and (pools.miss <= 1.0 or pools.miss < best.miss):
        best = pools
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
    `most_ratio` times the device time of `deployed`. It has two pools only if `deployed` has. None if no such
    deployment exists.
    """
    search = Search(list(list_options(deployed.case, deployed.target)), deployed.target)
    most_s = most_ratio * deployed.device_s

    def is_likely(one: SharedServers) -> bool:
        return one.miss <= 1.0 and one.device_s <= most_s and (_find_chance(one, paid) or 0.0) >= likely

    best, most = None, MOST_DEVICES
    for count in search.counts:
        if count > deployed.device_count and search.find_least_device_s(count) <= most_s:
            one = search.find_quickest(count)
            if one is not None and is_likely(one):
                best, most = one, count - 1
                break
    if deployed.prompt_servers:
        pools = search.find_pools(deployed.device_count + 1, min(most, 2 * deployed.device_count))
        best = pools if pools is not None and is_likely(pools) else best
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


@frozen(kw_only=True)
class Bound:
    """Lower bounds of an option's mean times, without requests that wait for each other.

    A first token takes its own prompt and half of a step at hand. Between two tokens is a decode pass, and the prompts
    of other requests: each adds at least what it takes alone beyond a decode pass, until all passes have one.
    """

    prompt_s: float
    """Time of a prompt that runs alone."""
    first_token_s: float
    between_s: float
    decode_s: float
    """Time per output token if other servers compute the prompts."""

    def count_per_s(self, case: Case, users: int) -> float:
        """Return an upper bound of the requests per second of all users."""
        serving = case.question.serving
        return users / (self.first_token_s + (serving.output - 1) * self.between_s + find_wait_s(serving))


def find_wait_s(serving: Serving) -> float:
    """Return the mean time from the end of an answer to the next request of its user."""
    return serving.pause_s if serving.turns > 1 else CLIENT_S


@define(eq=False)
class Search:
    """Search for the fewest devices among options of one chip and precision, which are sorted by total devices.

    A few passes bound the times of each option. Only options whose bounds meet the target are simulated.
    """

    options: Sequence[Option]
    target: LatencyTarget
    tried: dict[int, SharedServers] = attrs.field(factory=dict)
    """Index of an option -> its simulated deployment."""
    bounds: dict[int, Bound] = attrs.field(factory=dict)

    def find(self) -> SharedServers:
        """Return the deployment with the fewest devices that meets the target, or the nearest to it."""
        most = max(range(len(self.options)), key=lambda index: (self.options[index][0].world, self.options[index][1]))
        if any(self.find_miss(index) <= 1.0 for index in (0, most)):
            for count in self.counts:
                best = self.find_quickest(count)
                if best is not None and best.miss <= 1.0:
                    return best
        if not self.tried:
            self.serve(min(range(len(self.options)), key=self.find_miss))
        return min(self.tried.values(), key=lambda one: one.miss)

    @property
    def counts(self) -> list[int]:
        """Numbers of devices of all options, the fewest first."""
        return sorted({self.count(index) for index in range(len(self.options))})

    def count(self, index: int) -> int:
        """Return the number of devices of the option at this index."""
        case, servers = self.options[index]
        return case.world * servers

    def find_miss(self, index: int) -> float:
        """Return a lower bound of the ratio by which an option misses the target; above 1 if it cannot meet it."""
        bound = self.bound(index)
        return self.target.miss(bound.first_token_s, bound.between_s)

    def find_per_s(self, index: int) -> float:
        """Return an upper bound of the requests per second of an option."""
        return self.bound(index).count_per_s(self.options[index][0], self.target.users)

    def find_least_device_s(self, count: int) -> float:
        """Return a lower bound of the device time per request of all options with `count` devices."""
        return count / max(map(self.find_per_s, self._list(count)))

    def _list(self, count: int) -> list[int]:
        """Return the indices of the options with `count` devices."""
        return [index for index in range(len(self.options)) if self.count(index) == count]

    def bound(self, index: int) -> Bound:
        """Return the bounds of an option; those of the fewest devices, or else of all options, are found at once."""
        if index not in self.bounds:
            fewest = self._list(self.counts[0])
            self.prepare(fewest if index in fewest else range(len(self.options)))
        return self.bounds[index]

    def serve(self, index: int) -> SharedServers:
        """Return the deployment of the option at this index, simulated once."""
        if index not in self.tried:
            self.tried[index] = _serve(*self.options[index], self.target)
        return self.tried[index]

    def find_quickest(self, count: int) -> SharedServers | None:
        """Return the deployment of `count` devices that serves the most requests per second.

        Deployments within the target are preferred. Return None if none can meet it.
        """
        best: SharedServers | None = None
        for index in sorted(self._list(count), key=self.find_per_s, reverse=True):
            if best is not None and best.miss <= 1.0 and self.find_per_s(index) <= best.per_s:
                break
            if self.find_miss(index) <= 1.0:
                one = self.serve(index)
                best = one if best is None else max(best, one, key=lambda one: (one.miss <= 1.0, one.per_s))
        return best

    def find_pools(self, least: int, most: int) -> SharedServers | None:
        """Return a prefill pool and a decode pool of the fewest devices from `least` to `most` that meet the target.

        The servers of an option decode. If no pools meet the target, return the nearest of those tried; None if too
        few devices keep up with the prompts.
        """
        target, tried = self.target, list[SharedServers]()
        found: list[tuple[int, int, int]] = []
        for index, (case, servers) in enumerate(self.options):
            bound, serving = self.bound(index), case.question.serving
            fewest = 1
            if not serving.pause_s:
                cycle_s = bound.first_token_s + serving.output * bound.decode_s
                fewest = math.ceil(target.users * bound.prompt_s / cycle_s / FULL)
            if target.miss(bound.prompt_s, bound.decode_s) <= 1.0:
                found += [
                    (count * case.world, index, count - servers)
                    for count in range(servers + fewest, most // case.world + 1)
                    if count * case.world >= least
                ]
        slow: set[int] = set()
        """Options whose decode servers miss the target, with any number of prefill servers."""
        for _, index, prompt_servers in sorted(found):
            if index in slow or len(tried) == MOST_TRIED:
                continue
            tried.append(_split(*self.options[index], prompt_servers, target))
            if tried[-1].miss <= 1.0:
                break
            if target.miss(0.0, tried[-1].between_s) > 1.0:
                slow.add(index)
        return min(tried, key=lambda one: (one.miss > 1.0, one.miss), default=None)

    def prepare(self, indices: Iterable[int]) -> None:
        """Evaluate the bounds of options together, which takes little more time than one option.

        Only boards with the same power cap are evaluated together, because their links take a part of it.
        """
        asked = {index: _list_alone(*self.options[index], self.target) for index in indices if index not in self.bounds}
        groups: dict[float, tuple[Deployment, list[Asked]]] = {}
        for index, (passes, _) in asked.items():
            server = self.options[index][0].server
            if not self.options[index][0].question.serving.speculate:
                groups.setdefault(server.links_w, (server, []))[1].extend(server.ask(passes))
        for server, some in groups.values():
            with contextlib.suppress(UnsupportedError):  # an option that needs these passes is refused
                server.evaluate(some)
        for index, (passes, pieces) in asked.items():
            self.bounds[index] = self._bound(index, passes, pieces)

    def _bound(self, index: int, passes: Passes, pieces: float) -> Bound:
        case, servers = self.options[index]
        draft, serving = case.question.draft(case.server), case.question.serving
        try:
            chunk_s, step_s = guess(case.server, draft).price(passes).seconds.tolist()
        except UnsupportedError:
            if len(self.options) == 1:
                raise
            return Bound(prompt_s=math.inf, first_token_s=math.inf, between_s=math.inf, decode_s=math.inf)
        others = 0 if serving.pause_s else -(-self.target.users // servers) - 1
        prompt_s = case.server.stack.value("request") + chunk_s * pieces
        steps = max(1.0, (serving.output - 1) / draft.accepted_tokens)
        more_s = others * max(0.0, chunk_s * pieces - step_s) / (steps + pieces)
        return Bound(
            prompt_s=prompt_s,
            first_token_s=LEAST * (prompt_s + 0.5 * step_s * (others > 0)),
            between_s=LEAST * min(step_s + more_s, max(step_s, chunk_s)) / draft.accepted_tokens,
            decode_s=LEAST * step_s / draft.accepted_tokens,
        )


def _list_alone(case: Case, servers: int, target: LatencyTarget) -> tuple[Passes, float]:
    """Return the mean pass of a lone prompt and the first decode pass of all requests, and the number of passes of the
    prompt.
    """
    serving = case.question.serving
    cached = serving.mean_prompt - serving.prompt if serving.turns > 1 else serving.cached_tokens
    fresh = serving.mean_prompt - cached
    size = min(fresh, case.server.step_tokens)
    each = 1 if serving.pause_s else -(-target.users // servers)
    prompt = Passes.of(0.0, chunk=size, chunk_context=cached + (fresh - size) / 2.0)
    answer = Passes.of(each, context=serving.mean_prompt)
    return Passes.joined((prompt, answer)), fresh / size


def _load(case: Case, users: int) -> Load:
    """Return the load of a number of users, who keep a request in flight, or a conversation."""
    serving = attrs.evolve(case.question.serving, in_flight=users)
    load = read_load(attrs.evolve(case.question, serving=serving))
    assert load is not None
    return load


def _serve(case: Case, servers: int, target: LatencyTarget, *, reuses: bool = True) -> SharedServers:
    """Return a deployment whose servers each do both phases; without `reuses`, all prompt tokens are computed."""
    load = _load(case, -(-target.users // servers))
    served, own = serve_one(case, load if reuses else forget_cache(load))
    return _form(case, target, servers, served, own)


def _split(case: Case, servers: int, prompt_servers: int, target: LatencyTarget) -> SharedServers:
    """Return separate pools of prefill servers and of `servers` for decode."""
    load = _load(case, target.users)
    served, handover, _ = run_pools(load, (case, case), (prompt_servers, servers))
    whole = _form(case, target, servers, served, load)
    return attrs.evolve(whole, prompt_servers=prompt_servers, request_j=whole.request_j + handover.joules)


def _form(case: Case, target: LatencyTarget, servers: int, served: Served, load: Load) -> SharedServers:
    hits = tuple(hit.found_fraction for hit in served.hits) or (load.cached_tokens / load.prompt_tokens,)
    return SharedServers(
        case=case,
        target=target,
        servers=servers,
        first_token_s=served.first_token.mean,
        between_s=served.token_time.mean,
        request_j=served.energy_per_output_token_j * case.question.serving.output,
        hits=hits,
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
