"""Discrete-event simulation of stations: requests wait in a queue, servers take them into their passes, and they end.

    source ─► waiting ─► admitted if memory has room ─► prompt, in chunks ─► a token per pass ─► done ─► source
                 ▲                                              │
                 └──── preempted: no room for one more token ───┘

A station is one queue in front of one server or more. A server is one group of devices (tensor, data or expert
parallel), which runs one pass at a time. The surface prices a pass by its sequences, their mean context and its prompt
tokens. Events are an arrival, the end of an answer and a full cache. Between two events, each decode pass adds one
token of context per sequence, so that any number of passes is summed as a series. Models that answer in one pass are
the case of prompts of one token without an answer, of which `step_tokens` fit a pass.

Source: the schedulers of vLLM 1 (chunked prefill next to decode; the last admitted sequence is preempted and
recomputed), SGLang and TensorRT-LLM, as set in `Limits`.
"""

from __future__ import annotations

import heapq
import math
import operator
from bisect import insort
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Final

from joulemap.system import UnsupportedError
from joulemap.wing.llm.serving.load import Hit, Limits, Load, Log, Requests, Spell
from joulemap.wing.llm.serving.surface import PassCost

NEVER: Final = math.inf
"""Time of an event that never comes."""


def find_fitting(requests: Requests, limits: Limits) -> list[int]:
    """Return the numbers of the requests that fit the KV cache and the context; UnsupportedError if none does."""
    most = limits.cache_tokens - limits.speculated_tokens
    holder = "the cache"
    if limits.context_tokens is not None and limits.context_tokens < most:
        most, holder = limits.context_tokens, "the model's context"
    lengths = [prompt + output for prompt, output in zip(requests.prompt_tokens, requests.output_tokens, strict=True)]
    accepted = [number for number, length in enumerate(lengths) if length <= most]
    if not accepted:
        raise UnsupportedError(
            f"no request fits: the shortest has {min(lengths):,} tokens, {holder} has room for {most:,}"
        )
    return accepted


def find_reach(requests: Requests, load: Load, limits: Limits) -> tuple[int, int, int]:
    """Return the most concurrent sequences, prompt tokens, and cached tokens per sequence that a pass may have."""
    ahead, count = limits.speculated_tokens + 1, len(requests.prompt_tokens)
    lengths = map(operator.add, requests.prompt_tokens, requests.output_tokens)
    return (
        min(limits.sequences, limits.step_tokens // ahead, load.in_flight or count, count),
        min(limits.step_tokens, sum(requests.prompt_tokens) + sum(requests.output_tokens)),
        min(max(lengths) + ahead, limits.cache_tokens, limits.context_tokens or limits.cache_tokens),
    )


class Source:
    """Clients that send requests: at known times, or each after the end of another one."""

    def __init__(self, requests: Requests, load: Load, gaps_s: Sequence[float] = ()) -> None:
        """Take the clients of a load; `gaps_s` is the time that the client of each request takes to send it."""
        prefixes = requests.prefixes
        self.requests, self.in_flight, self.in_waves = requests, load.in_flight, load.client == "waves"
        self.turns: Sequence[int] = prefixes.next_turn if prefixes else ()
        self.pause_s: Sequence[float] = (prefixes.pause_s if prefixes else ()) or gaps_s
        self.accepted: Collection[int] = ()
        self.later: deque[int] = deque()
        """Requests, or conversations, that start when another ends."""
        self.live = 0
        self.full_until = NEVER
        """Time of the last new conversation."""

    def begin(self, accepted: Sequence[int]) -> list[int]:
        """Return the requests whose arrival is known at the start; each further one arrives when one ends."""
        self.accepted = set(accepted)
        followers = set(self.turns)
        heads = [number for number in accepted if number not in followers]
        first = heads[: self.in_flight]
        self.later.extend(heads[len(first) :])
        self.live = len(first)
        if followers and not self.later:
            self.full_until = self.requests.arrival_s[first[-1]]
        return first

    def follow(self, number: int, now: float) -> list[tuple[float, int]]:
        """Return the arrivals after the end of a request: the next turn, or else the next request, or the next wave."""
        following = [self.turns[number]] if self.turns and self.turns[number] in self.accepted else []
        if not following:
            self.live -= 1
            count = (0 if self.live else self.in_flight or 0) if self.in_waves else 1
            if self.turns and len(self.later) == 1:
                self.full_until = now
            following = [self.later.popleft() for _ in range(min(count, len(self.later)))]
            self.live += len(following)
        return [(now + (self.pause_s[one] if self.pause_s else 0.0), one) for one in following]


class Station:
    """One queue in front of equal servers. A sequence is identified by its number among the requests."""

    def __init__(
        self,
        surface: PassCost,
        requests: Requests,
        limits: Limits,
        load: Load,
        log: Log,
        *,
        servers: int = 1,
        gaps_s: Sequence[float] = (),
        kind: type[Server] | None = None,
    ) -> None:
        """Start idle."""
        self.sequences = find_reach(requests, load, limits)[0]
        self.surface = surface
        self.requests, self.limits, self.log = requests, limits, log
        self.source = Source(requests, load, gaps_s)
        self.coming: deque[tuple[float, int]] = deque()
        """(earliest start time, request number) of future arrivals."""
        self.waiting: deque[int] = deque()
        self.loaded: set[int] = set()
        """Requests whose cached blocks are being moved to the device; they start first, since they hold memory."""
        count = len(requests.prompt_tokens)
        self.done = [0] * count
        """Tokens of each sequence that are in the KV cache so far, during prefill."""
        self.target = list(requests.prompt_tokens)
        """Tokens that each sequence needs in its KV cache before its next token."""
        self.left = list(requests.output_tokens)
        """Output tokens that each sequence still had to generate at its last admission."""
        self.joined = [0] * count
        """Number of decode passes before each sequence joined them; -1 during prefill."""
        self.after: Callable[[int, float], None] = self.end
        """Callback after the last token of a sequence here: its end, or another station."""
        self.servers = [(kind or Server)(self) for _ in range(servers)]

    def expect(self, accepted: Sequence[int]) -> None:
        """Queue the first requests of the source."""
        for number in self.source.begin(accepted):
            self.arrive(number, self.requests.arrival_s[number])
        self.coming = deque(sorted(self.coming))
        self.log.full_until = self.source.full_until

    def arrive(self, number: int, arrival_s: float) -> None:
        """Schedule the arrival of a request."""
        self.log.arrival[number] = arrival_s
        insort(self.coming, (arrival_s + self.limits.request_s, number))

    def end(self, number: int, now: float) -> None:
        """Record the end of a request; the source may send others."""
        self.log.finished[number] = now
        until = self.source.full_until
        for arrival_s, following in self.source.follow(number, now):
            self.arrive(following, arrival_s)
        if self.source.full_until != until:
            self.log.full_until = self.source.full_until

    def take_arrivals(self, now: float) -> None:
        """Queue the requests that have arrived."""
        while self.coming and self.coming[0][0] <= now:
            number = self.coming.popleft()[1]
            if number in self.loaded:
                self.waiting.appendleft(number)
            else:
                self.waiting.append(number)


class Server:
    """Simulation state of one server."""

    def __init__(self, station: Station) -> None:
        """Start idle."""
        self.station, self.limits, self.log = station, station.limits, station.log
        self.spells: list[Spell] = []
        self.horizon = NEVER
        """Time up to which all arrivals are known."""
        self.now = 0.0
        self.passes = 0
        """Number of decode passes so far; ends of answers are counted in decode passes."""
        self.prompts: deque[int] = deque()
        """Active sequences with unfinished prompts."""
        self.running: dict[int, None] = {}
        """All active sequences, in order of admission."""
        self.ends: list[tuple[int, int, int]] = []
        """Heap of (last pass of an answer, sequence, number of preemptions at the time of the entry)."""
        self.answering = 0
        """Number of sequences in decode."""
        self.context = 0.0
        """Cached tokens of all sequences in decode."""
        self.held = 0.0
        """KV cache tokens in use or reserved."""
        self.fresh: list[int] = []
        """Sequences that have had no token from a decode pass since they joined."""
        self.last_pass = 0.0
        """End time of the last decode pass."""
        self.growth = 0.0 if station.limits.reserves_output else station.limits.accepted_tokens

    def list_hits(self) -> tuple[Hit, ...]:
        """Return the hits in each tier of a prefix cache; empty without one."""
        return ()

    def advance(self) -> bool:
        """Advance to the next event; return False if there is none."""
        station = self.station
        coming = station.coming
        if coming and coming[0][0] <= self.now:
            station.take_arrivals(self.now)
        if self.answering:
            self.make_room()
        pieces = self.fill()
        if pieces:
            self.work_prompts(pieces)
        elif self.answering:
            self.answer()
        elif coming:
            self.rest(coming[0][0])
        return bool(self.running or station.waiting or station.coming)

    def make_room(self) -> None:
        """Preempt the most recently admitted sequences until each answer has room for the next pass's tokens."""
        station = self.station
        while self.held + self.growth * self.answering > self.room() and len(self.running) > 1:
            number = next(reversed(self.running))
            del self.running[number]
            self.log.preemptions[number] += 1
            station.waiting.appendleft(number)
            self.held -= self.taken(number)
            self.drop(number)
            if station.joined[number] < 0:
                self.prompts.remove(number)
                continue
            if station.joined[number] == self.passes:
                self.fresh.remove(number)
            else:
                self.log.token_at[number] = self.last_pass
            self.context -= self.taken_by_answer(number)
            self.answering -= 1
            gained = 1 + round((self.passes - station.joined[number]) * self.limits.accepted_tokens)
            gained = min(gained, station.left[number] - 1)
            station.target[number] += gained
            station.left[number] -= gained

    def room(self) -> float:
        """Return the tokens that running requests may hold."""
        return self.limits.cache_tokens

    def drop(self, number: int) -> None:
        """Free the memory that a sequence holds besides its own tokens, when it ends or is preempted."""

    def taken_by_answer(self, number: int) -> float:
        """Return the cached tokens of a sequence in decode."""
        return self.station.target[number] + (self.passes - self.station.joined[number]) * self.limits.accepted_tokens

    def taken(self, number: int) -> float:
        """Return the KV cache tokens that an active sequence occupies or reserves."""
        if self.limits.reserves_output:
            return self.needed(number)
        return self.station.target[number] if self.station.joined[number] < 0 else self.taken_by_answer(number)

    def needed(self, number: int) -> int:
        """Return the KV cache tokens that a sequence needs for admission."""
        room = self.station.target[number]
        if self.limits.reserves_output:
            room += self.station.left[number] + self.limits.speculated_tokens
        return room

    def fill(self) -> list[tuple[int, int]]:
        """Admit waiting requests that fit; return (sequence, tokens) for each prompt in the next prefill pass."""
        limits, station, pieces = self.limits, self.station, []
        budget = limits.step_tokens
        if limits.mixes:
            budget -= self.answering * (limits.speculated_tokens + 1)
        for number in self.prompts:
            if budget <= 0:
                break
            pieces.append((number, min(budget, station.target[number] - station.done[number])))
            budget -= pieces[-1][1]
        most = 0 if limits.waits and self.running else station.sequences
        while budget > 0 and station.waiting and len(self.running) < most:
            number = station.waiting[0]
            if not self.fits(number):
                break
            station.waiting.popleft()
            if not self.admit(number):
                continue
            pieces.append((number, min(budget, station.target[number] - station.done[number])))
            budget -= pieces[-1][1]
        return pieces

    def fits(self, number: int) -> bool:
        """Return whether a waiting request fits in memory beside the running requests."""
        return not self.running or self.held + self.needed(number) + self.growth * self.answering <= self.room()

    def admit(self, number: int) -> bool:
        """Start the prompt of a waiting request; return False if its blocks are still being loaded."""
        self.held += self.needed(number)
        self.running[number] = None
        self.prompts.append(number)
        self.station.done[number] = self.find_cached(number)
        self.station.joined[number] = -1
        return True

    def find_cached(self, number: int) -> int:
        """Return the prompt tokens that a request need not compute."""
        return self.station.requests.cached_tokens[number]

    def work_prompts(self, pieces: list[tuple[int, int]]) -> None:
        """Run one prefill pass; with chunked prefill, also decode one token of each answer."""
        done, target = self.station.done, self.station.target
        tokens, attended = 0, 0.0
        for number, piece in pieces:
            tokens += piece
            attended += piece * (done[number] + 0.5 * piece)
        answers = self.answering if self.limits.mixes else 0
        if tokens == len(pieces) and all(done[number] for number, _ in pieces):
            # a prompt that lacks one token only, such as one of another pool, takes part as an answer does
            context = (self.context * bool(answers) + attended) / (answers + tokens)
            seconds, joules = self.station.surface.find_step(answers + tokens, context)[:2]
        else:
            context = self.context / answers if answers else 0.0
            behind = attended / tokens - 0.5 * tokens
            seconds, joules = self.station.surface.find_mixed(answers, context, tokens, behind)
        self.pass_by(answers, 1, seconds, 0.0, joules, 0.0, tokens)
        for number, piece in pieces:
            done[number] += piece
            if done[number] == target[number]:
                self.prompts.popleft()
                self.begin_decode(number)

    def begin_decode(self, number: int) -> None:
        """Record a sequence's first token and move it to decode."""
        log, left = self.log, self.station.left[number]
        if log.first_token[number] is None:
            log.first_token[number] = self.now
        else:
            log.gaps.append(self.now - log.token_at[number])
            log.gap_ends.append(self.now)
        log.token_at[number] = self.now
        self.station.joined[number] = self.passes
        if left == 1:
            self.leave(number)
            return
        self.answering += 1
        self.fresh.append(number)
        self.context += self.station.target[number]
        last = self.passes + math.ceil((left - 1) / self.limits.accepted_tokens - 1e-9)
        heapq.heappush(self.ends, (last, number, log.preemptions[number]))

    def leave(self, number: int) -> None:
        """Free the KV cache of a sequence, and let it end or go on elsewhere."""
        self.release(number)
        self.station.after(number, self.now)

    def release(self, number: int) -> None:
        """Free the KV cache of a sequence."""
        self.held -= self.taken(number)
        del self.running[number]

    def next_time(self) -> float:
        """Return the time of the next pass or arrival; `NEVER` if there is none."""
        if self.running or self.station.waiting:
            return self.now
        return max(self.now, self.station.coming[0][0]) if self.station.coming else NEVER

    def answer(self) -> None:
        """Run decode passes up to the next event."""
        ends, preemptions, station = self.ends, self.log.preemptions, self.station
        while ends[0][2] != preemptions[ends[0][1]]:
            heapq.heappop(ends)
        answers, gain = self.answering, self.limits.accepted_tokens
        context = self.context / answers
        seconds, joules, longer, dearer, straight = station.surface.find_step(answers, context)
        count = min(ends[0][0] - self.passes, int((straight - context) / gain) + 1)
        if self.growth and len(self.running) > 1:
            count = min(count, int((self.room() - self.held) / (self.growth * answers)))
        longer, dearer = longer * gain, dearer * gain
        if station.coming and not station.waiting and not self.limits.waits and len(self.running) < station.sequences:
            count = min(count, count_until(station.coming[0][0] - self.now, seconds, longer))
        if self.horizon < NEVER:
            count = min(count, count_until(self.horizon - self.now, seconds, longer))
        self.pass_by(answers, max(1, count), seconds, longer, joules, dearer, 0)

    def pass_by(
        self, answers: int, count: int, seconds: float, longer: float, joules: float, dearer: float, prompt: int
    ) -> None:
        """Run `count` passes: the first takes `seconds` and `joules`, each further one `longer` and `dearer` more."""
        start, stall = self.now, self.now - self.last_pass
        self.spells.append(
            (
                start, count, seconds, longer, joules, dearer, answers, prompt, len(self.running),
                stall, len(self.fresh),
            )
        )  # fmt: skip
        self.now = start + count * seconds + longer * (0.5 * count * (count - 1))
        if not answers:
            return
        gain, end = self.limits.accepted_tokens, start + seconds
        for number in self.fresh:
            self.log.gaps.append((end - self.log.token_at[number]) / gain)
            self.log.gap_ends.append(end)
        self.fresh.clear()
        self.last_pass = self.now
        self.passes += count
        self.context += answers * count * gain
        self.held += answers * count * self.growth
        ends, preemptions = self.ends, self.log.preemptions
        while ends and ends[0][0] <= self.passes:
            _, number, preempted = heapq.heappop(ends)
            if preempted == preemptions[number] and number in self.running:
                self.context -= self.taken_by_answer(number)
                self.answering -= 1
                self.leave(number)
        if not self.answering:
            self.context = 0.0

    def rest(self, until: float) -> None:
        """Stay idle until a time."""
        seconds = until - self.now
        idle = (self.now, 1, seconds, 0.0, seconds * self.station.surface.resting_w, 0.0, 0, 0, 0, 0.0, 0)
        self.spells.append(idle)
        self.now = until


def run(front: Sequence[Station], back: Sequence[Station] = ()) -> None:
    """Run stations until no request is left; the server that is earliest in time makes the next step.

    Servers of `back` never step beyond the time of those of `front`, and servers of one queue not beyond each other.
    """
    before, behind = ([one for station in stations for one in station.servers] for stations in (front, back))
    if not behind and len(before) == 1:
        while before[0].advance():
            pass
        return
    while True:
        following = min((*before, *behind), key=lambda server: server.next_time())
        if following.next_time() == NEVER:
            break
        others = before if following in behind else [one for one in before if one is not following]
        peers = following in behind or len(following.station.servers) > 1
        following.horizon = min((one.next_time() for one in others), default=NEVER) if peers else NEVER
        if not following.running and not following.station.waiting:
            following.rest(following.next_time())
        following.advance()
    end = max(server.now for server in (*before, *behind))
    for server in (*before, *behind):
        if server.now < end:
            server.rest(end)


def count_until(gap: float, seconds: float, longer: float) -> int:
    """Return the number of passes that start within `gap` seconds; each takes `longer` more than its predecessor."""
    if seconds >= gap:
        return 1
    half = seconds - 0.5 * longer
    square = half * half + 2.0 * longer * gap
    if longer == 0.0 or square <= 0.0:
        return max(1, math.ceil(gap / seconds))
    return max(1, math.ceil(2.0 * gap / (half + math.sqrt(square))))
