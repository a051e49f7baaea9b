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
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

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
    return Requests(
        prompt_tokens=trace.prompt_tokens,
        output_tokens=trace.output_tokens,
        arrival_s=tuple(arrivals.tolist()),
        cached_tokens=trace.cached_tokens,
    )


def _draw_lengths(draw: np.random.Generator, mean: int, spread: float, count: int) -> np.ndarray:
    most = round(spread * mean)
    return draw.integers(max(1, mean - most), mean + most, size=count, endpoint=True)


def read_requests(path: Path) -> Requests:
    """Read requests from a CSV file with the columns of `COLUMNS`, in order of arrival, or from a JSONL trace.

    Raise UsageError, naming the lines, for an unreadable file, for invalid lines and for lines out of order.
    """
    if path.suffix == SUFFIX:
        return read_trace(path)
    try:
        lines = csv.reader(read_text(path).splitlines())
    except FileError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    names = [name.strip() for name in next(lines, [])]
    lacking = [name for name in NEEDED if name not in names]
    if lacking:
        raise UsageError(f"{path}, line 1: no column {' or '.join(lacking)}; columns are {', '.join(COLUMNS)}")
    indices = {name: names.index(name) for name in COLUMNS if name in names}
    rows: list[tuple[float, int, int, int]] = []
    spoken: list[str] = []
    faults, latest = [], 0.0
    for cells in lines:
        if any(cell.strip() for cell in cells):
            try:
                row = _read_request({name: cells[index] for name, index in indices.items()})
                if row[0] < latest:
                    raise ValueError(
                        f"arrival_s is {row[0]:g}, earlier than the {latest:g} of a line above: sort the file"
                    )
                latest = row[0]
                rows.append(row)
                spoken += [cells[names.index(CONVERSATION)].strip()] if CONVERSATION in names else []
            except IndexError:
                faults.append(f"line {lines.line_num}: {len(cells)} cells, {len(names)} expected")
            except ValueError as error:
                faults.append(f"line {lines.line_num}: {error}")
    if faults:
        more = f"; and {len(faults) - SHOWN_FAULTS} more" if len(faults) > SHOWN_FAULTS else ""
        raise UsageError(f"{path}, {'; '.join(faults[:SHOWN_FAULTS])}{more}")
    if not 0 < len(rows) <= MOST_REQUESTS:
        raise UsageError(f"{path} has {len(rows):,} requests, expected 1 to {MOST_REQUESTS:,}")
    arrivals, prompts, outputs, cached = zip(*rows, strict=True)
    if spoken and any(cached):
        raise UsageError(f"{path} has {CONVERSATION} and cached_tokens: leave out one, as both state the reused tokens")
    return Requests(
        prompt_tokens=prompts,
        output_tokens=outputs,
        arrival_s=tuple(arrival - arrivals[0] for arrival in arrivals),
        cached_tokens=cached,
        prefixes=_share(spoken, prompts, outputs) if spoken else None,
    )


def _share(spoken: list[str], prompts: tuple[int, ...], outputs: tuple[int, ...]) -> Prefixes:
    """Return the blocks of requests by the names of their conversations; a request without a name shares no blocks."""
    known: dict[str, int] = {}
    names = (name or f"\n{index}" for index, name in enumerate(spoken))
    return share_blocks([known.setdefault(name, len(known)) for name in names], prompts, outputs)


def _read_request(cells: dict[str, str]) -> tuple[float, int, int, int]:
    arrival = _read(cells, "arrival_s", 0)
    prompt = _read(cells, "prompt_tokens", 1)
    cached = _read(cells, "cached_tokens", 0)
    if cached >= prompt:
        raise ValueError(f"cached_tokens is {cached:g}, expected fewer than the {prompt:g} of the prompt")
    return float(arrival), int(prompt), int(_read(cells, "output_tokens", 1)), int(cached)


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


def read_trace(path: Path) -> Requests:
    """Read a trace; UsageError, naming the line, if a line is invalid or out of order."""
    try:
        lines = read_text(path).splitlines()
    except FileError as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    rows: list[tuple[float, int, int, tuple[int, ...]]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _read_line(json.loads(line))
        except ValueError as error:
            fault = "is not a JSON object" if isinstance(error, json.JSONDecodeError) else str(error)
            raise UsageError(f"{path}, line {number}: {fault}") from None
        if rows and row[0] < rows[-1][0]:
            raise UsageError(
                f"{path}, line {number}: timestamp is {row[0]:g}, earlier than the {rows[-1][0]:g} of a line above: "
                "sort the file"
            )
        rows.append(row)
    if not 0 < len(rows) <= MOST_REQUESTS:
        raise UsageError(f"{path} has {len(rows):,} requests, expected 1 to {MOST_REQUESTS:,}")
    times, prompts, outputs, blocks = zip(*rows, strict=True)
    return Requests(
        prompt_tokens=prompts,
        output_tokens=outputs,
        arrival_s=tuple((time - times[0]) / 1e3 for time in times),
        cached_tokens=(0,) * len(prompts),
        prefixes=Prefixes(block_tokens=TRACE_TOKENS, prompts=blocks) if any(blocks) else None,
    )


def _read_line(row: Any) -> tuple[float, int, int, tuple[int, ...]]:
    if not isinstance(row, dict):
        raise ValueError("is not a JSON object")
    time = row.get("timestamp", 0)
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time < float("inf"):
        raise ValueError(f"timestamp is {time!r}, expected milliseconds from 0 on")
    prompt, output = (_read_count(row, name) for name in ("input_length", "output_length"))
    names = row.get("hash_ids", [])
    most = -(-prompt // TRACE_TOKENS)
    if not isinstance(names, list) or not all(type(one) is int for one in names):
        raise ValueError("hash_ids is not a list of whole numbers")
    if len(names) > most:
        raise ValueError(f"hash_ids has {len(names)} blocks, the {prompt:,} tokens of the prompt have at most {most}")
    return float(time), prompt, output, tuple(names)


def _read_count(row: dict[str, Any], name: str) -> int:
    value = row.get(name)
    if type(value) is not int or not 1 <= value <= LONGEST:
        shown = "missing" if value is None else repr(value)
        raise ValueError(f"{name} is {shown}, expected 1 to {LONGEST:,}")
    return value
