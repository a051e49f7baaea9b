"""Two pools of devices: one works prompts out, the other answers, and the cache of a prompt goes between them.

arrivals ─► pool of prompts, first token ─► cache over the link ─► pool of answers, the other tokens ─► done

Both are servers as `queue` has them, stepped in turn: who is behind in time goes first, and the pool of answers looks
no further ahead than the other has gone. To it a request is a prompt that its cache holds but for the first token.
"""

from __future__ import annotations

from bisect import insort

import attrs

from joulemap.domain.load import Limits, Load, Served
from joulemap.serving.grid import Pass
from joulemap.serving.log import Log
from joulemap.serving.queue import NEVER, Server, accept
from joulemap.serving.request import draw_requests
from joulemap.serving.summary import summarize


def simulate_pools(
    surfaces: tuple[Pass, Pass],
    load: Load,
    limits: tuple[Limits, Limits],
    seed: int = 0,
    *,
    handover_s: float = 0.0,
    handover_token_s: float = 0.0,
) -> Served:
    """Return how a load is served by a pool of prompts and one of answers, in this order; joules are of both.

    A prompt's cache takes `handover_s` and `handover_token_s` for each of its tokens to the other pool.
    """
    requests = draw_requests(load, seed)
    fitting = set(accept(requests, limits[1]))
    log = Log.of(len(requests.prompt_tokens))
    more = attrs.evolve(
        requests,
        cached_tokens=requests.prompt_tokens,
        prompt_tokens=tuple(tokens + 1 for tokens in requests.prompt_tokens),
        output_tokens=tuple(tokens - 1 for tokens in requests.output_tokens),
    )
    answers = Server(surfaces[1], more, attrs.evolve(limits[1], mixes=True, waits=False, request_s=0.0), load, log)
    first = attrs.evolve(requests, output_tokens=(1,) * len(requests.prompt_tokens))
    prompts = Prompts(surfaces[0], first, attrs.evolve(limits[0], mixes=False), load, log)
    prompts.answers, prompts.handover_s, prompts.handover_token_s = answers, handover_s, handover_token_s
    prompts.expect([number for number in accept(first, limits[0]) if number in fitting])
    answers.source = prompts
    while (times := (prompts.next_time(), answers.next_time())) != (NEVER, NEVER):
        answers.horizon = times[0]
        (prompts if times[0] <= times[1] else answers).advance()
    end = max(prompts.now, answers.now)
    for pool in (prompts, answers):
        if pool.now < end:
            pool.rest(end)
    return summarize(log, [prompts.spells, answers.spells], requests, load, limits[1])


class Prompts(Server):
    """A server that hands sequences over when they have their first token."""

    answers: Server
    handover_s: float
    handover_token_s: float

    def leave(self, number: int) -> None:
        """Let a sequence go to the pool of answers, unless its first token is its last."""
        if not self.answers.left[number]:
            super().leave(number)
            return
        self.release(number)
        seconds = self.handover_s + self.handover_token_s * self.requests.prompt_tokens[number]
        insort(self.answers.coming, (self.now + seconds, number))
