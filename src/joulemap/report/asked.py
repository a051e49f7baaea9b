"""What an explanation shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

UNITS: Final = {"energy": "J", "latency": "s", "edp": "Js", "memory": "B"}

METRICS: Final = {"energy": "energy", "latency": "latency", "edp": "energy x delay", "memory": "memory"}


def write_lines(lines: Sequence[str]) -> str:
    """Return a list of sentences."""
    return "\n".join(f"- {line}" for line in lines)


def list_steps(steps: Sequence[str], is_markdown: bool) -> str:
    """Return commands under each other."""
    return "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)
