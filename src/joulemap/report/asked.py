"""What every comparison in depth shares: its title, its notes, how its commands are repeated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import attrs

from joulemap.present.cell import PROJECTED, PROJECTION_NOTE
from joulemap.query.level import Asked
from joulemap.report.note import describe_calibrations, describe_caveats, repeat_settings

UNITS: Final = {"energy": "J", "latency": "s", "edp": "Js", "memory": "B"}

METRICS: Final = {"energy": "energy", "latency": "latency", "edp": "energy x delay", "memory": "memory"}

Section = tuple[str, str]


def mark(hardware: str, is_projection: bool) -> str:
    """Return a hardware's name, marked where its key numbers are projections or estimates."""
    return f"{PROJECTED}{hardware}" if is_projection else hardware


def title(asked: Asked) -> str:
    """Return what was asked in one line."""
    batch = " and ".join(str(size) for size in asked.batches)
    return f"{', '.join(asked.models)}, batch {batch}, {asked.precision}, {asked.runtime}"


def notes(asked: Asked, shown: Collection[str]) -> list[str]:
    """Return what a reader must know; `shown` is the text that was drawn, where projections may be marked."""
    lines = [f"unsupported: {reason}" for reason in asked.refusals]
    if any(PROJECTED in text for text in shown):
        lines.append(PROJECTION_NOTE)
    return lines + describe_calibrations(asked.calibrations) + describe_caveats(asked.caveats)


def assemble(heading: str, sections: Sequence[Section], is_markdown: bool) -> str:
    """Return sections under a heading; one without text is left out."""
    if is_markdown:
        return "\n\n".join([f"# {heading}", *(f"## {name}\n\n{text}" for name, text in sections if text)])
    return "\n\n".join([heading, *(f"{name}\n{text}" for name, text in sections if text)])


def write_lines(lines: Sequence[str]) -> str:
    """Return a list of sentences."""
    return "\n".join(f"- {line}" for line in lines)


def list_steps(steps: Sequence[str], is_markdown: bool) -> str:
    """Return commands under each other."""
    return "\n".join(f"- `{line}`" if is_markdown else f"  {line}" for line in steps)


def describe(asked: Asked) -> dict[str, Any]:
    """Return what programs get of the question."""
    return {
        "models": asked.models,
        "batches": asked.batches,
        "precision": asked.precision,
        "runtime": asked.runtime,
        "run_ids": asked.run_ids,
        "unsupported": asked.refusals,
        "caveats": [attrs.asdict(row) for row in asked.caveats],
        "calibrations": [attrs.asdict(row) for row in asked.calibrations],
    }


def repeat(asked: Asked, options: Sequence[str]) -> list[str]:
    """Return the options that a follow-up command must repeat."""
    return [*repeat_settings(asked.precision, asked.runtime), *options]


def spell(asked: Asked, hardware: str) -> str:
    """Return a hardware as it must be asked for again."""
    return asked.spelling.get(hardware, hardware)
