"""Two pools of servers: one works prompts out, the other answers, and the cache of a prompt goes between them.

arrivals ─► pool of prompts, first token ─► cache over the link ─► pool of answers, the other tokens ─► done

All are servers as `queue` has them, stepped in turn: who is behind in time goes first, and those that answer look no
further ahead than those of prompts have gone. To them a request is a prompt that its cache holds but for the first
token. Requests go to the servers of a pool one after another.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.domain.load import Limits, Load, Served, Window
from joulemap.system.record import frozen
from joulemap.wing.llm.serving.batch import grow, prefill
from joulemap.wing.llm.serving.grid import Pass
from joulemap.wing.llm.serving.log import Log, Spell
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.queue import NEVER, Server, accept
from joulemap.wing.llm.serving.request import draw_requests
from joulemap.wing.llm.serving.settle import Site, settle
from joulemap.wing.llm.serving.summary import sum_within, summarize, tabulate_spells
from joulemap.wing.llm.serving.surface import KNOTS, Passes

if TYPE_CHECKING:
    from joulemap.wing.llm.serving.deployment import Deployment

HANDOVER_J_PER_BYTE: Final = 1e-9
"""Of what goes from a server to another: both network adapters.

Source: 25 W of a ConnectX-7 at 50 GB/s on each side (recalled); switches and optics are not in it."""


@frozen(kw_only=True, eq=False)
class Pool:
    """Servers that are alike."""

    surface: Pass
    limits: Limits
    count: int = 1


@frozen(kw_only=True)
class Work:
    """What the servers of a pool do."""

    idle_fraction: float
    """Of their time."""
    power_w: float
    """Joules of their passes a second, of all of them together; without those of idling."""


def simulate_pools(
    pools: tuple[Pool, Pool], load: Load, seed: int = 0, *, handover_s: float = 0.0, handover_token_s: float = 0.0
) -> tuple[Served, tuple[Work, Work]]:
    """Return how a load is served by a pool of prompts and one of answers, and what each does, in this order.

    A prompt's cache takes `handover_s` and `handover_token_s` for each of its tokens to the other pool. Requests in
    flight are those of each server of prompts.
    """
    prompts, answers = pools
    if load.is_steady:
        site = Site(surface=answers.surface, limits=answers.limits, count=answers.count, reads_prompts=False)
        load = settle(load, site, seed, flights=prompts.count)
    requests = draw_requests(load, seed)
    fitting = set(accept(requests, answers.limits))
    log = Log.of(len(requests.prompt_tokens))
    more = attrs.evolve(
        requests,
        cached_tokens=requests.prompt_tokens,
        prompt_tokens=tuple(tokens + 1 for tokens in requests.prompt_tokens),
        output_tokens=tuple(tokens - 1 for tokens in requests.output_tokens),
    )
    limits = attrs.evolve(answers.limits, mixes=True, waits=False, request_s=0.0)
    behind = [Server(answers.surface, more, limits, load, log) for _ in range(answers.count)]
    first = attrs.evolve(requests, output_tokens=(1,) * len(requests.prompt_tokens))
    accepted = [number for number in accept(first, prompts.limits) if number in fitting]
    before: list[Prompts] = []
    for place in range(prompts.count):
        one = Prompts(prompts.surface, first, attrs.evolve(prompts.limits, mixes=False), load, log)
        one.answers, one.handover_s, one.handover_token_s = behind, handover_s, handover_token_s
        one.expect(accepted[place :: prompts.count])
        one.peers = before
        before.append(one)
    for server in behind:
        server.source = before[0]
    while True:
        known = min(server.next_time() for server in before)
        following = min((*before, *behind), key=lambda server: server.next_time())
        if following.next_time() == NEVER:
            break
        following.horizon = NEVER if following in before else known
        following.advance()
    end = max(server.now for server in (*before, *behind))
    for server in (*before, *behind):
        if server.now < end:
            server.rest(end)
    served = summarize(log, [server.spells for server in (*before, *behind)], requests, load, answers.limits)
    return served, (
        _add_work([server.spells for server in before], served.window),
        _add_work([server.spells for server in behind], served.window),
    )


def _add_work(pools: Sequence[Sequence[Spell]], window: Window) -> Work:
    """Return what servers do in the window of a run."""
    tables = [tabulate_spells(spells) for spells in pools]
    sums = [
        [
            sum_within(table, np.where(is_kept, table[name], 0.0), window.start_s, window.end_s)
            for name, is_kept in (("spent_s", table["running"] == 0), ("spent_j", table["running"] != 0))
        ]
        for table in tables
    ]
    idle_s, busy_j = (sum(column) for column in zip(*sums, strict=True))
    return Work(
        idle_fraction=idle_s / (window.duration_s * len(tables)),
        power_w=busy_j / window.duration_s,
    )


class Prompts(Server):
    """A server that hands sequences over when they have their first token."""

    answers: Sequence[Server]
    handover_s: float
    handover_token_s: float
    peers: Sequence[Server]
    """All servers of its pool."""

    def follow(self, now: float) -> None:
        """Let the next request come to who has most of them left."""
        Server.follow(max(self.peers, key=lambda one: len(one.later)), now)

    def leave(self, number: int) -> None:
        """Let a sequence go to the pool of answers, unless its first token is its last."""
        server = self.answers[number % len(self.answers)]
        if not server.left[number]:
            super().leave(number)
            return
        self.release(number)
        seconds = self.handover_s + self.handover_token_s * self.requests.prompt_tokens[number]
        insort(server.coming, (self.now + seconds, number))


@frozen(kw_only=True)
class Able:
    """What a server does of one part of requests where more always wait."""

    per_s: float
    joules: float
    """Of one."""


@frozen(kw_only=True)
class Ability:
    """Rates of a server at prompts alone and at answers alone."""

    alone_s: float
    """From a prompt to its first token, with nothing else to do."""
    prompts: Able | None
    """None where not even one alone is in time."""
    answers: Able | None
    """None where not even one alone is in time."""


def find_ability(
    deployment: Deployment, prompt_tokens: float, output_tokens: float, *, most_s: float | None = None
) -> Ability:
    """Return what a server does at most of each part of requests, whose steps take `most_s` at most.

    From passes at a few numbers of sequences, between which steps are on straight lines; all are asked for at once.
    """
    stack, room = deployment.stack, Room(deployment=deployment).sequences(prompt_tokens, output_tokens)
    room = max(1.0, min(room, stack.sequence_limit))
    many = max(1.0, stack.step_tokens // prompt_tokens)
    full, full_times = prefill(many, prompt_tokens, 0.0, stack.step_tokens)
    one, one_times = prefill(1.0, prompt_tokens, 0.0, stack.step_tokens)
    counts = np.unique([*np.geomspace(1.0, room, max(2, math.ceil(math.log(room, KNOTS)) + 1)), 1.0])
    steps = max(1.0, output_tokens - 1.0)
    answering = Passes.of(counts, context=prompt_tokens + 0.5 * steps)
    cost = deployment.price(Passes.joined((full, one, answering)))
    ends = np.cumsum([len(full_times), len(one_times)])
    full_s, one_s, step_s = np.split(cost.seconds, ends)
    full_j, _, step_j = np.split(cost.joules, ends)
    most = room if most_s is None else _find_most(counts, step_s, most_s)
    kept = np.union1d(counts[counts <= most], [most]) if most >= 1.0 else np.zeros(0)
    each_s, each_j = (np.interp(kept, counts, column) for column in (step_s, step_j))
    answers = None
    if len(kept):
        best = int(np.argmax(kept / each_s))
        answers = Able(per_s=float(kept[best] / (steps * each_s[best])), joules=float(steps * (each_j / kept).min()))
    return Ability(
        alone_s=float(one_s @ one_times) + stack.value("request"),
        prompts=Able(per_s=many / float(full_s @ full_times), joules=float(full_j @ full_times) / many),
        answers=answers,
    )


def _find_most(counts: NDArray[np.float64], step_s: NDArray[np.float64], most_s: float) -> float:
    """Return the most sequences whose step takes no longer; 0 where that of the fewest does."""
    late = np.flatnonzero(step_s > most_s)
    if not len(late):
        return float(counts[-1])
    if not late[0]:
        return 0.0
    place = int(late[0])
    return float(np.interp(most_s, step_s[place - 1 : place + 1], counts[place - 1 : place + 1]))


def count_prompts(deployment: Deployment, prompt_tokens: float) -> Able:
    """Return how many prompts a server works out in a second where more always wait."""
    many = max(1.0, deployment.stack.step_tokens // prompt_tokens)
    passes, times = prefill(many, prompt_tokens, 0.0, deployment.stack.step_tokens)
    cost = deployment.price(passes)
    return Able(per_s=many / float(cost.seconds @ times), joules=float(cost.joules @ times) / many)


def count_answers(deployment: Deployment, prompt_tokens: float, output_tokens: float) -> Able:
    """Return how many requests a server answers in a second, behind their first token, where its cache is full."""
    steps = max(1.0, output_tokens - 1.0)
    room = Room(deployment=deployment).sequences(prompt_tokens, output_tokens)
    room = max(1.0, min(room, deployment.stack.sequence_limit))
    places, shares = grow(prompt_tokens, steps)
    cost = deployment.price(Passes.of(room, context=places))
    return Able(per_s=room / (steps * float(cost.seconds @ shares)), joules=steps * float(cost.joules @ shares) / room)
