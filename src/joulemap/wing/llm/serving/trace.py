"""Traces of requests with shared prefixes, in the JSONL format of Mooncake's public traces.

Each line is a request: `timestamp` in milliseconds, `input_length`, `output_length`, and `hash_ids`, a name for each
block of 512 prompt tokens, the last of which may be shorter. Source: kvcache-ai/Mooncake, FAST25-release.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from joulemap.system import FileError, UsageError, read_text
from joulemap.wing.llm.serving.load import LONGEST, MOST_REQUESTS, Prefixes, Requests

SUFFIX: Final = ".jsonl"

BLOCK_TOKENS: Final = 512
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
        prefixes=Prefixes(block_tokens=BLOCK_TOKENS, prompts=blocks) if any(blocks) else None,
    )


def _read_line(row: Any) -> tuple[float, int, int, tuple[int, ...]]:
    if not isinstance(row, dict):
        raise ValueError("is not a JSON object")
    time = row.get("timestamp", 0)
    if isinstance(time, bool) or not isinstance(time, int | float) or not 0 <= time < float("inf"):
        raise ValueError(f"timestamp is {time!r}, expected milliseconds from 0 on")
    prompt, output = (_read_count(row, name) for name in ("input_length", "output_length"))
    names = row.get("hash_ids", [])
    most = -(-prompt // BLOCK_TOKENS)
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
