"""Separate prefill and decode pools that serve a number of users, in closed form.

    prompt ─► one of the prefill servers, one prompt at a time (M/D/1) ─► KV cache over the link ─► decode pool

A turn of a conversation goes to the prefill server that keeps the turns before it. That server never sees the tokens of
answers, so it computes the previous answer with the new prompt. The kept tokens, the time of a request and the requests
in flight depend on each other, and are found by iteration.
"""

from __future__ import annotations

import itertools
import math

from joulemap.system import frozen
from joulemap.wing.llm.capacity.case import Case
from joulemap.wing.llm.capacity.load import FULL, count_kept
from joulemap.wing.llm.serving.batch import grow
from joulemap.wing.llm.serving.deployment import guess
from joulemap.wing.llm.serving.steady import ROUNDS, Residence, round_flight
from joulemap.wing.llm.serving.surface import Passes


@frozen(kw_only=True)
class Split:
    """Latency and energy of a prefill pool and a decode pool."""

    prompt_servers: int
    first_token_s: float
    between_s: float
    request_j: float
    hits: tuple[float, ...]
    """Share of prompt tokens found on the prefill servers and in each lower tier."""


def find_room(case: Case) -> float:
    """Return the number of requests that fit in a server's memory, at the mean context of a conversation's turns."""
    question = case.question
    if question.serving.turns == 1 or case.room is None:
        return case.most
    each = case.room.cache(question.serving.mean_prompt + question.serving.output)
    return min(case.room.free / each, case.server.sequence_limit) if each else case.most


def find_residence(case: Case, users: float, *, context: float, tokens: float) -> Residence:
    """Return the prefix cache for the contexts of a server's users, in device memory and in the tiers below.

    A context has `tokens` tokens. The next turn reuses `context` of them if they are found.
    """
    question, room = case.question, case.room
    assert room is not None
    tiers, size = question.serving.read_tiers(), question.decoder.cache_bytes(round(tokens), room.item_bytes)
    each = room.cache(round(tokens))
    below = itertools.accumulate(
        (tier.capacity_bytes / size if size else math.inf for tier in tiers),
        initial=room.free / each if each else math.inf,
    )
    moved = size * context / tokens
    return Residence(
        context_tokens=context,
        capacities=tuple(one / users for one in below),
        reused_fraction=context / tokens,
        load_s=tuple(moved / tier.bytes_per_s for tier in tiers),
        move_j=tuple(moved * tier.j_per_byte for tier in tiers),
    )


def split_pools(
    case: Case, users: int, servers: int, *, first_token_s: float | None, most_servers: int
) -> Split | None:
    """Return a decode pool of `servers` with the fewest prefill servers that meet the target mean time to first token.

    If one prompt alone takes longer than the target, return the first number above 1 that keeps up. Return None if more
    than `most_servers` are needed, or if the decode pool has no room for the requests in flight.
    """
    if most_servers < 1:
        return None
    pools = _Pools(case, users, servers)
    for count in range(1, most_servers + 1):
        prompt_pool = pools.find(count)
        if prompt_pool is None:
            continue
        one, prompt_s = prompt_pool
        is_late = first_token_s is not None and one.first_token_s - pools.handover.seconds > first_token_s
        if not is_late or (count > 1 and first_token_s is not None and prompt_s > first_token_s):
            return None if pools.is_full else one
    return None


def cut_prompt(prompt: float, cached: float, step_tokens: float) -> tuple[Passes, float]:
    """Return the mean prefill pass of one prompt and the number of such passes; `cached` tokens are in the KV cache."""
    size = min(prompt - cached, step_tokens)
    behind = cached + max(0.0, prompt - cached - size) / 2.0
    return Passes.of([0.0], chunk=size, chunk_context=behind), (prompt - cached) / size


class _Pools:
    """Prefill and decode pools of one case; the cost of each pass is computed once."""

    def __init__(self, case: Case, users: int, servers: int) -> None:
        """Prepare pools whose decode pool has `servers` servers."""
        self.case, self.users, self.servers = case, users, servers
        question, serving = case.question, case.question.serving
        self.draft = question.draft(case.server)
        self.gain = self.draft.accepted_tokens
        self.prompt = float(serving.mean_prompt)
        self.handover = case.hand_over(case, serving.mean_prompt)
        self.kept = count_kept(self.prompt, serving.prompt, serving.output, serving.turns)
        self.costs: dict[tuple[float, float], tuple[tuple[float, float], tuple[float, float]]] = {}
        self.request_s = 0.0
        self.is_full = False
        """True if the decode pool has no room for the requests in flight of the last evaluation."""

    def price(self, cached: float, each: float) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return (seconds, joules) of a prompt with `cached` tokens in the cache, and of one token of all sequences in
        a batch.

        `each` is the batch size of a decode server.
        """
        if (cached, each) not in self.costs:
            prompt, pieces = cut_prompt(self.prompt, cached, self.case.server.step_tokens)
            contexts, shares = grow(self.prompt, max(1.0, self.case.question.serving.output / self.gain), self.gain)
            surface = guess(self.case.server, self.draft)
            cost = surface.price(Passes.joined((prompt, Passes.of(each, context=contexts))))
            columns = cost.seconds, cost.joules
            prompt_s, prompt_j = (float(one[0]) * pieces for one in columns)
            step_s, step_j = (float(one[1:] @ shares) / self.gain for one in columns)
            self.costs[cached, each] = (prompt_s, prompt_j), (step_s, step_j)
        return self.costs[cached, each]

    def find(self, count: int) -> tuple[Split, float] | None:
        """Return the pools with `count` prefill servers, and the seconds of a prompt; None above `FULL` utilization."""
        case, question, serving = self.case, self.case.question, self.case.question.serving
        steps, pause_s = question.steps, serving.pause_s
        residence = None
        if serving.turns > 1:
            residence = find_residence(case, self.users / count, context=self.kept, tokens=self.prompt)
        begin_s = case.server.stack.value("request")
        seen: set[tuple[float, float]] = set()
        first_s = used = 0.0
        for _ in range(ROUNDS):
            cycle_s = self.request_s + pause_s
            hits = residence.find(first_s, cycle_s - first_s) if residence and self.request_s else ()
            hits = hits or ((1.0,) if residence else ())
            moved_s, moved_j = residence.sum_moves(hits) if residence and len(hits) > 1 else (0.0, 0.0)
            cached = round(sum(hits) * self.kept) if residence else serving.cached_tokens
            part = self.request_s / cycle_s if pause_s and self.request_s else 1.0
            busy = 1.0 - (1.0 - part) ** self.users
            each = float(-(-self.users // self.servers))
            each = round_flight(each * part / busy) if pause_s else each
            if (cached, each) in seen:
                break
            seen.add((cached, each))
            (prompt_s, prompt_j), (step_s, step_j) = self.price(cached, each)
            used = self.users / (prompt_s + self.handover.seconds + steps * step_s + pause_s) * prompt_s / count
            if used > FULL:
                return None
            first_s = begin_s + moved_s + prompt_s * (1.0 + used / (2.0 * (1.0 - used)))
            self.request_s = first_s + self.handover.seconds + steps * step_s
        self.is_full = bool(pause_s) and each > find_room(case)
        idle_j = case.server.resting_w * (1.0 / used - 1.0) * prompt_s
        rest_j = case.server.resting_w * (1.0 - busy) * self.servers * (self.request_s + pause_s) / self.users
        return (
            Split(
                prompt_servers=count,
                first_token_s=first_s + self.handover.seconds,
                between_s=step_s,
                request_j=prompt_j + idle_j + rest_j + moved_j + self.handover.joules + step_j * steps / each,
                hits=tuple(hit * self.kept / self.prompt for hit in hits) or ((serving.prefix_hit or 0.0),),
            ),
            prompt_s,
        )
