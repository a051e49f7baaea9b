"""Prefix cache of a server: blocks of keys and values that persist after their requests, on the device and in slower
tiers.

    prompt ─► its blocks in order, as far as they are found ─► device: ready; tier: moved to the device first
    evicted, least recently used first ─► next slower tier ─► ... ─► lost

A block is named by a hash of its tokens and of all tokens before it, as in the public traces of Mooncake (Qin et al.,
FAST 2025). Equal names thus mean equal prefixes, and the names are the nodes of a radix tree. A path is touched from
its end on, so that a block is always used after the blocks that follow it, and the least recently used block is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from joulemap.system import define
from joulemap.wing.llm.serving.load import Hit, Tier

DEVICE = "device"
"""Name of the fastest tier, in device memory not used by running requests."""


@define(kw_only=True)
class Shelf:
    """State of a tier: its blocks, least recently used first, and the bytes moved."""

    tier: Tier
    blocks: OrderedDict[int, None]
    most: int
    """Maximum number of blocks."""
    found_tokens: int = 0
    """Prompt tokens that were found in this tier."""
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    free_s: float = 0.0
    """Time at which the last move to the device ends."""

    @property
    def joules(self) -> float:
        """Energy of all moves to and from this tier in joules."""
        return (self.read_bytes + self.written_bytes) * self.tier.j_per_byte


class PrefixCache:
    """Cached blocks on the device and in lower tiers. Pinned blocks, which running requests read, are not evicted."""

    def __init__(self, block_tokens: int, token_bytes: float, tiers: Sequence[Tier]) -> None:
        """Start empty; `token_bytes` is the KV cache of a token on all devices together."""
        self.block_tokens = block_tokens
        self.block_bytes = block_tokens * token_bytes
        self.pins: dict[int, int] = {}
        """Pinned block -> number of requests that read it."""
        self.free: OrderedDict[int, None] = OrderedDict()
        """Unpinned blocks on the device, least recently used first."""
        self.shelves = [
            Shelf(tier=one, blocks=OrderedDict(), most=int(one.capacity_bytes / self.block_bytes)) for one in tiers
        ]
        self.found_tokens = 0
        """Prompt tokens that were found on the device."""
        self.asked_tokens = 0
        """Prompt tokens that were looked up."""

    @property
    def pinned_tokens(self) -> int:
        """Device memory that pinned blocks take, in tokens."""
        return len(self.pins) * self.block_tokens

    def find(self, blocks: Sequence[int]) -> list[int]:
        """Return the tier of each block of a prompt, up to the first one that is missing: 0 for the device, n for tier
        n.
        """
        tiers = []
        for block in blocks:
            if block in self.pins or block in self.free:
                tiers.append(0)
                continue
            tier = next((index for index, one in enumerate(self.shelves, 1) if block in one.blocks), None)
            if tier is None:
                break
            tiers.append(tier)
        return tiers

    def count(self, tiers: Sequence[int], prompt_tokens: int) -> None:
        """Count a prompt's tokens by the tier that they were found in; the last token is always computed."""
        total = 0
        for tier in tiers:
            more = min(self.block_tokens, prompt_tokens - 1 - total)
            total += more
            if tier:
                self.shelves[tier - 1].found_tokens += more
            else:
                self.found_tokens += more
        self.asked_tokens += prompt_tokens

    def pin(self, blocks: Sequence[int], tiers: Sequence[int], now: float) -> float:
        """Pin found blocks and move them to the device; return the time at which all are there.

        A tier moves the blocks of one request at a time, at its bandwidth.
        """
        moved = [0] * len(self.shelves)
        for block, tier in zip(blocks, tiers, strict=False):
            if tier:
                del self.shelves[tier - 1].blocks[block]
                moved[tier - 1] += 1
            self.free.pop(block, None)
            self.pins[block] = self.pins.get(block, 0) + 1
        ready = now
        for shelf, count in zip(self.shelves, moved, strict=True):
            if count:
                size = count * self.block_bytes
                shelf.read_bytes += size
                shelf.free_s = max(now, shelf.free_s) + size / shelf.tier.bytes_per_s
                ready = max(ready, shelf.free_s)
        return ready

    def store(self, blocks: Iterable[int]) -> list[int]:
        """Pin computed blocks that are not on the device yet, and return them."""
        added = [block for block in blocks if block not in self.pins and block not in self.free]
        for block in added:
            self.pins[block] = 1
            for shelf in self.shelves:
                shelf.blocks.pop(block, None)
        return added

    def release(self, blocks: Sequence[int]) -> None:
        """Unpin the blocks of a request, the last one first."""
        for block in reversed(blocks):
            self.pins[block] -= 1
            if not self.pins[block]:
                del self.pins[block]
                self.free[block] = None

    def shrink(self, room_tokens: float) -> None:
        """Evict the least recently used blocks, except pinned ones, until the device holds at most `room_tokens`."""
        most = int(max(0.0, room_tokens - self.pinned_tokens) / self.block_tokens)
        while len(self.free) > most:
            block, _ = self.free.popitem(last=False)
            self._sink(block)

    def _sink(self, block: int) -> None:
        """Write an evicted block to the fastest tier below; blocks evicted there move further down."""
        for shelf in self.shelves:
            if not shelf.most:
                continue
            shelf.blocks[block] = None
            shelf.written_bytes += self.block_bytes
            if len(shelf.blocks) <= shelf.most:
                return
            block, _ = shelf.blocks.popitem(last=False)

    def list_hits(self) -> tuple[Hit, ...]:
        """Return the hits and moves of each tier, the device first."""
        asked = self.asked_tokens
        first = Hit(tier=DEVICE, asked_tokens=asked, found_tokens=self.found_tokens, moved_bytes=0.0, joules=0.0)
        others = (
            Hit(
                tier=one.tier.name,
                asked_tokens=asked,
                found_tokens=one.found_tokens,
                moved_bytes=one.read_bytes + one.written_bytes,
                joules=one.joules,
            )
            for one in self.shelves
        )
        return (first, *others)
