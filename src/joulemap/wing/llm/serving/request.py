"""Requests of a load: drawn at random from a seed, or read from a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

import numpy as np

from joulemap.system import FileError, UsageError, read_real, read_text, read_whole
from joulemap.wing.llm.serving.conversation import share_blocks
from joulemap.wing.llm.serving.load import LONGEST, MOST_REQUESTS, Load, Prefixes, Requests
from joulemap.wing.llm.serving.trace import SUFFIX, read_trace

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
