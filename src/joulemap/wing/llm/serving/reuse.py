"""Server whose requests reuse the prefixes of earlier ones, and whose conversations have several turns.

    waiting ─► found blocks pinned ─► moved from a slower tier, if some are there ─► rest computed ─► blocks stored
    done ─► blocks unpinned ─► evicted when running requests need the memory

Blocks on the device take the memory that running requests leave. A block that several requests read is held once.

Servers of disaggregated pools are prefill servers, with a prefix cache or without, and decode servers. A turn of a
conversation goes to the prefill server that keeps the earlier turns. That server never sees the tokens of answers, so
it computes each answer again with the next prompt. Requests without turns go round-robin to the servers.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Sequence

import attrs

from joulemap.wing.llm.serving.grid import Pass
from joulemap.wing.llm.serving.load import Hit, Limits, Load, Log, Requests
from joulemap.wing.llm.serving.prefix import PrefixCache
from joulemap.wing.llm.serving.queue import Server


def forget_prefixes(requests: Requests) -> Requests:
    """Return requests that share no blocks; conversations keep their turns."""
    assert requests.prefixes is not None
    prefixes = attrs.evolve(requests.prefixes, prompts=[()] * len(requests.prompt_tokens), answers=())
    return attrs.evolve(requests, prefixes=prefixes)


class ReusingServer(Server):
    """Server with a prefix cache; the tokens held for a request exclude its pinned blocks."""

    def __init__(self, surface: Pass, requests: Requests, limits: Limits, load: Load, log: Log) -> None:
        """Start idle with an empty prefix cache."""
        super().__init__(surface, requests, limits, load, log)
        assert requests.prefixes is not None
        self.prefixes = requests.prefixes
        self.cache = PrefixCache(self.prefixes.block_tokens, limits.token_bytes, limits.tiers)
        self.read: dict[int, list[int]] = {}
        """Request that is running or being loaded -> its pinned blocks."""
        self.reused_tokens: dict[int, int] = {}
        """Request in `read` -> prompt tokens that it reuses."""
        self.loaded: set[int] = set()
        """Requests whose blocks are being moved to the device; memory is reserved for the rest of their prompts."""
        self.accepted: set[int] = set()
        log.full_from = self.prefixes.filled_s

    def expect(self, accepted: list[int]) -> None:
        """Queue the first turns of conversations; each later turn is queued when the turn before it ends."""
        self.accepted = set(accepted)
        later = set(self.prefixes.next_turn)
        first = [number for number in accepted if number not in later]
        super().expect(first)
        self.coming = deque(sorted(self.coming))
        if later and not self.later:
            self.log.full_until = self.requests.arrival_s[first[-1]]

    def list_hits(self) -> tuple[Hit, ...]:
        """Return the hits and moves of each tier, the device first."""
        return self.cache.list_hits()

    def enqueue(self, number: int) -> None:
        """Queue a request; a request whose blocks have arrived starts first, since it holds memory."""
        if number in self.loaded:
            self.waiting.appendleft(number)
        else:
            super().enqueue(number)

    def room(self) -> float:
        """Return the tokens that running requests may hold in addition to pinned blocks."""
        return self.limits.cache_tokens - self.cache.pinned_tokens

    def needed(self, number: int) -> int:
        """Return the tokens of a request that are in no pinned block."""
        return super().needed(number) - self._count_read(number)

    def taken(self, number: int) -> float:
        """Return the tokens that an active sequence holds outside pinned blocks."""
        if self.limits.reserves_output:
            return self.needed(number)
        return super().taken(number) - self._count_read(number)

    def _count_read(self, number: int) -> int:
        return len(self.read.get(number, ())) * self.cache.block_tokens

    def fits(self, number: int) -> bool:
        """Return whether a request fits in memory beside the running requests, if all unpinned blocks are evicted."""
        if number in self.loaded or not (self.running or self.loaded):
            return True
        cache, blocks = self.cache, self.prefixes.prompts[number]
        cache.shrink(self.limits.cache_tokens - self.held)
        tiers = cache.find(blocks)
        more = sum(block not in cache.pins for block, _ in zip(blocks, tiers, strict=False)) * cache.block_tokens
        private = super().needed(number) - len(tiers) * cache.block_tokens
        return self.held + private + more + self.growth * self.answering <= self.room()

    def admit(self, number: int) -> bool:
        """Start a request, or move its blocks to the device first; return whether it runs."""
        cache = self.cache
        if number not in self.read:
            blocks = self.prefixes.prompts[number]
            cache.shrink(self.limits.cache_tokens - self.held)
            tiers = cache.find(blocks)
            self.reused_tokens[number] = min(len(tiers) * cache.block_tokens, self.target[number] - 1)
            if self._is_counted(number):
                cache.count(tiers, self.requests.prompt_tokens[number])
            ready = cache.pin(blocks, tiers, self.now)
            self.read[number] = list(blocks[: len(tiers)])
            if ready > self.now:
                self.held += self.needed(number)
                self.loaded.add(number)
                insort(self.coming, (ready, number))
                return False
        if number in self.loaded:
            self.loaded.remove(number)
            self.held -= self.needed(number)
        super().admit(number)
        cache.shrink(self.limits.cache_tokens - self.held)
        return True

    def _is_counted(self, number: int) -> bool:
        """Return whether a request is in the steady state and was not preempted."""
        arrival = self.log.arrival[number]
        is_full = arrival is not None and self.log.full_from <= arrival <= self.log.full_until
        return is_full and not self.log.preemptions[number]

    def find_cached(self, number: int) -> int:
        """Return the prompt tokens that a request need not compute."""
        return max(self.reused_tokens[number], self.requests.cached_tokens[number])

    def begin_decode(self, number: int) -> None:
        """Store the blocks of a finished prompt."""
        self._store(number, self.prefixes.prompts[number])
        super().begin_decode(number)

    def _store(self, number: int, blocks: Sequence[int]) -> None:
        added = self.cache.store(blocks)
        self.read[number] += added
        self.held -= len(added) * self.cache.block_tokens

    def release(self, number: int) -> None:
        """Release a sequence; its prefix blocks stay cached until they are evicted."""
        if self.prefixes.answers:
            self._store(number, self.prefixes.answers[number])
        super().release(number)
        self.drop(number)

    def drop(self, number: int) -> None:
        """Unpin the blocks of a request."""
        self.cache.release(self.read.pop(number))
        self.cache.shrink(self.limits.cache_tokens - self.held)

    def leave(self, number: int) -> None:
        """Finish a request, and start the next turn of its conversation, or else the next conversation."""
        self.log.finished[number] = self.now
        self.release(number)
        self.resume(number, self.now)

    def resume(self, number: int, now: float) -> None:
        """Start the turn that follows request `number` after a pause, or else the next conversation."""
        following = self.prefixes.next_turn[number] if self.prefixes.next_turn else -1
        if following in self.accepted:
            self.arrive(following, now + self._find_pause(following))
        else:
            self.follow(now)

    def _find_pause(self, number: int) -> float:
        return self.prefixes.pause_s[number] if self.prefixes.pause_s else 0.0

    def follow(self, now: float) -> None:
        """Start the next conversation after a pause. At the last one, record the time after which the load falls."""
        if self.later:
            if len(self.later) == 1:
                self.log.full_until = now
            number = self.later.popleft()
            self.arrive(number, now + self._find_pause(number))


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
