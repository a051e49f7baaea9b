"""Requests of a load: drawn at random from a seed, read from a file, or turns of conversations with pauses between.

    turn n: prompt = context of turn n - 1, its answer included, + new tokens;   context = prompt + answer

Blocks are numbered by conversation and place, so that a turn's prompt begins with the blocks of all turns before it.
The last token of an answer is not in the KV cache, since no pass has read it.

A trace has the JSONL format of Mooncake's public traces. Each line is a request: `timestamp` in milliseconds,
`input_length`, `output_length`, and `hash_ids`, a name for each block of 512 prompt tokens, the last of which may be
shorter. Source: kvcache-ai/Mooncake, FAST25-release.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import attrs
import numpy as np

from joulemap.system import FileError, UsageError, read_real, read_text, read_whole
from joulemap.wing.llm.serving.load import LONGEST, MOST_REQUESTS, Load, Prefixes, Requests

BLOCK_TOKENS: Final = 16
"""Tokens of a block. Source: default block size of vLLM's KV cache (documentation of engine arguments)."""

MOST_BLOCKS: Final = 256
"""Maximum blocks of a generated conversation. Longer conversations get larger blocks, which lowers hits by at most 0.4
%.
"""

RESERVED: Final = 1 << 40
"""Block numbers that each conversation reserves, so that no two conversations share a number."""

COUNTED: Final = 1000
"""Minimum requests or turns in the statistics, so that ten lie beyond the p99."""

GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0
"""Inverse of the golden ratio, whose multiples modulo 1 are spread evenly for any count."""


def share_blocks(
    conversations: Sequence[int], prompts: Sequence[int], outputs: Sequence[int], block_tokens: int = BLOCK_TOKENS
) -> Prefixes:
    """Return the blocks of requests, given the number of each request's conversation, its prompt tokens and output
    tokens.
    """

    def count(conversation: int, tokens: int) -> range:
        first = conversation * RESERVED
        return range(first, first + tokens // block_tokens)

    columns = list(zip(conversations, prompts, outputs, strict=True))
    return Prefixes(
        block_tokens=block_tokens,
        prompts=[count(conversation, prompt) for conversation, prompt, _ in columns],
        answers=[count(conversation, prompt + output - 1) for conversation, prompt, output in columns],
    )


def form_conversations(load: Load, seed: int, filled_s: float) -> Load:
    """Return a load of conversations at a rate of turns or with a number of concurrent conversations.

    The first wave of concurrent conversations starts at even intervals within `filled_s`, at evenly spread turns, with
    the context already computed. Turns before `filled_s` and turns after the last conversation began are not counted.
    Pauses are exponential: with equal pauses, turns that once shared a pass would share all later ones.
    """
    wave = load.in_flight or 0
    early = 0.0 if load.rate_per_s is None else filled_s * load.rate_per_s
    many = math.ceil((max(load.requests, COUNTED) + early) / load.turns) + 2 * wave
    if many * load.turns > MOST_REQUESTS:
        raise UsageError(f"{many * load.turns:,} turns, expected at most {MOST_REQUESTS:,}")
    shares = GOLDEN * np.arange(1, wave + 1) % 1.0
    begins = np.concatenate([np.floor(shares * load.turns).astype(int), np.zeros(many - wave, dtype=int)])
    draw, heads = np.random.default_rng(seed), np.zeros(many)
    if load.rate_per_s is not None:
        gaps = draw.exponential(1.0, many)
        heads = np.cumsum(gaps) / gaps.mean() / load.rate_per_s * load.turns
    elif wave:
        heads[:wave] = filled_s * np.arange(wave) / wave
    conversations = np.repeat(np.arange(many), (load.turns - begins).astype(np.intp))
    turns = np.concatenate([np.arange(begin, load.turns, dtype=np.int64) for begin in begins])
    is_begun = (conversations < wave) & (np.diff(conversations, prepend=-1) > 0)
    prompts = (turns * (load.prompt_tokens + load.output_tokens) + load.prompt_tokens).tolist()
    outputs = [load.output_tokens] * len(prompts)
    coarser = -(-max(prompts) // (BLOCK_TOKENS * MOST_BLOCKS))
    following = np.where(turns == load.turns - 1, -1, np.arange(1, len(prompts) + 1))
    prefixes = attrs.evolve(
        share_blocks(conversations.tolist(), prompts, outputs, BLOCK_TOKENS * coarser),
        next_turn=following.tolist(),
        pause_s=draw.exponential(load.pause_s, len(prompts)).tolist(),
        filled_s=filled_s,
    )
    trace = Requests(
        prompt_tokens=tuple(prompts),
        output_tokens=tuple(outputs),
        arrival_s=tuple(heads[conversations].tolist()),
        cached_tokens=tuple(np.where(is_begun, np.array(prompts) - 1, 0).tolist()),
        prefixes=prefixes,
    )
    return attrs.evolve(load, trace=trace, rate_per_s=None, turns=1, requests=len(prompts), is_steady=False)


COLUMNS: Final = ("arrival_s", "prompt_tokens", "output_tokens", "cached_tokens")
"""Columns of a request file, in any order; without `arrival_s` all arrive at once, without `cached_tokens` none are
cached."""

CONVERSATION: Final = "conversation"
"""Optional column: prompts of one conversation share a prefix that includes earlier answers."""

NEEDED: Final = ("prompt_tokens", "output_tokens")
"""Columns that a request file must have."""

SHOWN_FAULTS: Final = 3
"""Maximum lines that an error names."""


def draw_requests(load: Load, seed: int) -> Requests:
    """Return the requests of a load: the same for the same seed, on any server.

    The mean rate of the drawn requests equals that of the load exactly. If the load keeps requests in flight, arrivals
    are not known beforehand and are zero. A trace with prefixes keeps its arrival times.
    """
    draw = np.random.default_rng(seed)
    trace = load.trace
    count = load.requests if trace is None else len(trace.prompt_tokens)
    if trace is None:
        prompts = _draw_lengths(draw, load.prompt_tokens, load.spread_fraction, count)
        trace = Requests(
            prompt_tokens=tuple(prompts.tolist()),
            output_tokens=tuple(_draw_lengths(draw, load.output_tokens, load.spread_fraction, count).tolist()),
            arrival_s=(0.0,) * count,
            cached_tokens=tuple(np.minimum(load.cached_tokens, prompts - 1).tolist()),
        )
    if (load.rate_per_s is None and load.in_flight is None) or trace.prefixes is not None:
        return trace
    arrivals = np.zeros(count)
    if load.rate_per_s is not None:
        gaps = draw.exponential(1.0, count)
        arrivals = np.cumsum(gaps) / gaps.mean() / load.rate_per_s
    return attrs.evolve(trace, arrival_s=tuple(arrivals.tolist()))


def draw_gaps(load: Load, seed: int) -> tuple[float, ...]:
    """Return the time that the client of each request takes to send it; empty if it takes none.

    It is random for clients that are independent of each other, and constant for a single client.
    """
    if not load.gap_s:
        return ()
    count = load.requests if load.trace is None else len(load.trace.prompt_tokens)
    if load.client != "steady":
        return (load.gap_s,) * count
    return tuple(np.random.default_rng([seed, 1]).exponential(load.gap_s, count).tolist())


def _draw_lengths(draw: np.random.Generator, mean: int, spread: float, count: int) -> np.ndarray:
    most = round(spread * mean)
    return draw.integers(max(1, mean - most), mean + most, size=count, endpoint=True)


def read_requests(path: Path) -> Requests:
    """Read requests from a CSV file with the columns of `COLUMNS`, in order of arrival, or from a JSONL trace.

    Raise UsageError, naming the lines, for an unreadable file, for invalid lines and for lines out of order.
    """
    try:
        lines = read_text(path).splitlines()
    except FileError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    is_trace = path.suffix == SUFFIX
    rows: list[_Request] = []
    faults = []
    for number, read in _list_objects(lines) if is_trace else _list_cells(lines, path):
        try:
            row = read()
            if rows and row.arrival < rows[-1].arrival:
                name = "timestamp" if is_trace else "arrival_s"
                raise ValueError(
                    f"{name} is {row.arrival:g}, earlier than the {rows[-1].arrival:g} of a line above: sort the file"
                )
            rows.append(row)
        except ValueError as error:
            fault = "is not a JSON object" if isinstance(error, json.JSONDecodeError) else str(error)
            faults.append(f"line {number}: {fault}")
    if faults:
        more = f"; and {len(faults) - SHOWN_FAULTS} more" if len(faults) > SHOWN_FAULTS else ""
        raise UsageError(f"{path}, {'; '.join(faults[:SHOWN_FAULTS])}{more}")
    if not 0 < len(rows) <= MOST_REQUESTS:
        raise UsageError(f"{path} has {len(rows):,} requests, expected 1 to {MOST_REQUESTS:,}")
    arrivals, prompts, outputs, cached, spoken, blocks = zip(*rows, strict=True)
    prefixes = Prefixes(block_tokens=TRACE_TOKENS, prompts=blocks) if any(blocks) else None
    if spoken[0] is not None:
        if any(cached):
            raise UsageError(
                f"{path} has {CONVERSATION} and cached_tokens: leave out one, as both state the reused tokens"
            )
        prefixes = _share(spoken, prompts, outputs)
    return Requests(
        prompt_tokens=prompts,
        output_tokens=outputs,
        arrival_s=tuple((arrival - arrivals[0]) / (1e3 if is_trace else 1.0) for arrival in arrivals),
        cached_tokens=cached,
        prefixes=prefixes,
    )


class _Request(NamedTuple):
    """Request of a file."""

    arrival: float
    """Arrival time as the file states it."""
    prompt: int
    output: int
    cached: int = 0
    conversation: str | None = None
    """Name of its conversation; None for a file without conversations."""
    blocks: tuple[int, ...] = ()


def _list_cells(lines: Sequence[str], path: Path) -> Iterator[tuple[int, Callable[[], _Request]]]:
    """Yield the number and the reader of each line of a CSV file; UsageError for a column that is missing."""
    table = csv.reader(lines)
    names = [name.strip() for name in next(table, [])]
    lacking = [name for name in NEEDED if name not in names]
    if lacking:
        raise UsageError(f"{path}, line 1: no column {' or '.join(lacking)}; columns are {', '.join(COLUMNS)}")
    for cells in table:
        if any(cell.strip() for cell in cells):
            yield table.line_num, partial(_read_cells, names, cells)


def _read_cells(names: Sequence[str], row: Sequence[str]) -> _Request:
    if len(row) <= max(names.index(name) for name in (*COLUMNS, CONVERSATION) if name in names):
        raise ValueError(f"{len(row)} cells, {len(names)} expected")
    cells = dict(zip(names, row, strict=False))
    prompt, cached = _read(cells, "prompt_tokens", 1), _read(cells, "cached_tokens", 0)
    if cached >= prompt:
        raise ValueError(f"cached_tokens is {cached:g}, expected fewer than the {prompt:g} of the prompt")
    return _Request(
        arrival=float(_read(cells, "arrival_s", 0)),
        prompt=int(prompt),
        output=int(_read(cells, "output_tokens", 1)),
        cached=int(cached),
        conversation=cells[CONVERSATION].strip() if CONVERSATION in names else None,
    )


def _share(spoken: Sequence[str], prompts: tuple[int, ...], outputs: tuple[int, ...]) -> Prefixes:
    """Return the blocks of requests by the names of their conversations; a request without a name shares no blocks."""
    known: dict[str, int] = {}
    names = (name or f"\n{index}" for index, name in enumerate(spoken))
    return share_blocks([known.setdefault(name, len(known)) for name in names], prompts, outputs)


def _read(cells: dict[str, str], name: str, least: int) -> float:
    if name not in cells:
        return least
    text = cells[name].strip()
    if not text and name == "cached_tokens":
        return least
    if not text:
        raise ValueError(f"{name} is empty, expected {least} to {LONGEST:,}")
    try:
        number = read_real(text) if name == "arrival_s" else read_whole(text)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if not least <= number <= LONGEST:
        raise ValueError(f"{name} is {text}, expected {least} to {LONGEST:,}")
    return number


SUFFIX: Final = ".jsonl"

TRACE_TOKENS: Final = 512
"""Tokens of a block in these traces."""


def _list_objects(lines: Sequence[str]) -> Iterator[tuple[int, Callable[[], _Request]]]:
    """Yield the number and the reader of each line of a trace."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, partial(_read_object, line)


def _read_object(line: str) -> _Request:
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError("is not a JSON object")
    time = row.get("timestamp", 0)
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time < math.inf:
        raise ValueError(f"timestamp is {time!r}, expected milliseconds from 0 on")
    prompt, output = (_read_count(row, name) for name in ("input_length", "output_length"))
    names = row.get("hash_ids", [])
    most = -(-prompt // TRACE_TOKENS)
    if not isinstance(names, list) or not all(type(one) is int for one in names):
        raise ValueError("hash_ids is not a list of whole numbers")
    if len(names) > most:
        raise ValueError(f"hash_ids has {len(names)} blocks, the {prompt:,} tokens of the prompt have at most {most}")
    return _Request(arrival=float(time), prompt=prompt, output=output, blocks=tuple(names))


def _read_count(row: dict[str, Any], name: str) -> int:
    value = row.get(name)
    if type(value) is not int or not 1 <= value <= LONGEST:
        shown = "missing" if value is None else repr(value)
        raise ValueError(f"{name} is {shown}, expected 1 to {LONGEST:,}")
    return value
