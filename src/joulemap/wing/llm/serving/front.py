"""Servers of disaggregated pools: prefill servers, with a prefix cache or without, and decode servers.

A turn of a conversation goes to the prefill server that keeps the earlier turns. That server never sees the tokens of
answers, so it computes each answer again with the next prompt. Requests without turns go round-robin to the servers.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

import attrs

from joulemap.wing.llm.serving.load import Hit
from joulemap.wing.llm.serving.queue import Server
from joulemap.wing.llm.serving.reuse import ReusingServer


class Prompts(Server):
    """Prefill server, which hands each sequence to the decode pool after its first token."""

    answers: Sequence[Server]
    handover_s: float
    handover_token_s: float
    peers: Sequence[Server]
    """All servers of the prefill pool."""

    def follow(self, now: float) -> None:
        """Start the next request of the server with the most remaining requests."""
        Server.follow(max(self.peers, key=lambda one: len(one.later)), now)

    def leave(self, number: int) -> None:
        """Send a sequence to the decode pool, unless its first token is its last."""
        server = self.answers[number % len(self.answers)]
        if not server.left[number]:
            super().leave(number)
            return
        self.release(number)
        seconds = self.handover_s + self.handover_token_s * self.requests.prompt_tokens[number]
        insort(server.coming, (self.now + seconds, number))


class ReusingPrompts(Prompts, ReusingServer):
    """Prefill server with a prefix cache of prompts."""

    follow = ReusingServer.follow


class Answers(Server):
    """Decode server; a finished request starts the next turn on the prefill server with its prefix."""

    homes: dict[int, ReusingPrompts]
    """Request -> its prefill server."""

    def leave(self, number: int) -> None:
        """Finish a sequence that has its last token, and let its prefill server start the next turn."""
        self.log.finished[number] = self.now
        self.release(number)
        self.homes[number].resume(number, self.now)


def assign_homes(accepted: Sequence[int], next_turn: Sequence[int], count: int) -> list[list[int]]:
    """Return the requests of each of `count` servers.

    Conversations and lone requests go round-robin; all turns of a conversation go to one server.
    """
    homes: dict[int, int] = {}
    numbers: list[list[int]] = [[] for _ in range(count)]
    heads = 0
    for number in accepted:
        if number not in homes:
            homes[number] = heads % count
            heads += 1
        numbers[homes[number]].append(number)
        if next_turn and next_turn[number] >= 0:
            homes[next_turn[number]] = homes[number]
    return numbers


def sum_hits(hits: Sequence[tuple[Hit, ...]]) -> tuple[Hit, ...]:
    """Return the hits of several servers with the same tiers, summed up by tier."""
    return tuple(
        attrs.evolve(
            tiers[0],
            asked_tokens=sum(hit.asked_tokens for hit in tiers),
            found_tokens=sum(hit.found_tokens for hit in tiers),
            moved_bytes=sum(hit.moved_bytes for hit in tiers),
            joules=sum(hit.joules for hit in tiers),
        )
        for tiers in zip(*hits, strict=True)
    )
