"""Server whose requests reuse the prefixes of earlier ones, and whose conversations have several turns.

    waiting ─► found blocks pinned ─► moved from a slower tier, if some are there ─► rest computed ─► blocks stored
    done ─► blocks unpinned ─► evicted when running requests need the memory

Blocks on the device take the memory that running requests leave. A block that several requests read is held once.

In disaggregated pools, a turn of a conversation goes to the prefill server that keeps the earlier turns. That server
never sees the tokens of answers, so it computes each answer again with the next prompt. Requests without turns go
round-robin to the servers.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

import attrs

from joulemap.wing.llm.serving.load import Hit, Requests
from joulemap.wing.llm.serving.prefix import PrefixCache
from joulemap.wing.llm.serving.station import Server, Station


def forget_prefixes(requests: Requests) -> Requests:
    """Return requests that share no blocks; conversations keep their turns."""
    assert requests.prefixes is not None
    prefixes = attrs.evolve(requests.prefixes, prompts=[()] * len(requests.prompt_tokens), answers=())
    return attrs.evolve(requests, prefixes=prefixes)


class ReusingServer(Server):
    """Server with a prefix cache; the tokens held for a request exclude its pinned blocks."""

    def __init__(self, station: Station) -> None:
        """Start idle with an empty prefix cache."""
        super().__init__(station)
        prefixes, limits = station.requests.prefixes, station.limits
        assert prefixes is not None
        self.prefixes = prefixes
        self.cache = PrefixCache(prefixes.block_tokens, limits.token_bytes, limits.tiers)
        self.read: dict[int, list[int]] = {}
        """Request that is running or being loaded -> its pinned blocks."""
        self.reused_tokens: dict[int, int] = {}
        """Request in `read` -> prompt tokens that it reuses."""
        self.log.full_from = prefixes.filled_s

    def list_hits(self) -> tuple[Hit, ...]:
        """Return the hits and moves of each tier, the device first."""
        return self.cache.list_hits()

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
        if number in self.station.loaded or not (self.running or self.station.loaded):
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
            self.reused_tokens[number] = min(len(tiers) * cache.block_tokens, self.station.target[number] - 1)
            if self._is_counted(number):
                cache.count(tiers, self.station.requests.prompt_tokens[number])
            ready = cache.pin(blocks, tiers, self.now)
            self.read[number] = list(blocks[: len(tiers)])
            if ready > self.now:
                self.held += self.needed(number)
                self.station.loaded.add(number)
                insort(self.station.coming, (ready, number))
                return False
        if number in self.station.loaded:
            self.station.loaded.remove(number)
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
        return max(self.reused_tokens[number], self.station.requests.cached_tokens[number])

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
