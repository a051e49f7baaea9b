"""Precisions in which a question with a latency target tries a model: as published, in fp8 and with int4 weights."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.catalog.digest import DATA
from joulemap.domain.configuration import Precision
from joulemap.wing.llm.capacity.case import Case, list_served

if TYPE_CHECKING:
    from joulemap.domain.settings import Serving, Settings
    from joulemap.plan.run import Plan
    from joulemap.plan.source import Source
    from joulemap.wing.llm.capacity.question import Question
    from joulemap.wing.llm.decoder.config import Decoder

PRECISIONS: Final[tuple[tuple[tuple[Precision, ...], tuple[str, ...]], ...]] = ((("fp8",), ()), ((), ("int4",)))
"""(activation precisions, weight precisions) to try in addition to the published ones; an empty tuple keeps the
default.
"""

WIDE: Final = ("bf16", "fp16", "fp32")
"""Weight precisions that lose no quality."""

QUALITIES: Final = DATA / "model" / "quality.toml"
"""File with the published quality loss of each weight precision."""


@cache
def load_qualities() -> Mapping[str, str]:
    """Return weight precision -> published loss of quality, in words."""
    found = tomllib.loads(QUALITIES.read_text(encoding="utf-8"))
    return {name: str(entry["value"]) for name, entry in found.items()}


def list_choices(
    source: Source, model: str, settings: Settings, serving: Serving
) -> list[tuple[Question, Plan, list[Case]]]:
    """Return (question, plan, cases of all chips) for each precision to try."""
    first = list_served(source, model, settings, serving)
    found = [first]
    if settings.precision or settings.weight_precision:
        return found
    targets = {case.run.target.digest: case.target for case in first[2]}
    for precision, weights in PRECISIONS:
        if _is_narrower(first[0].decoder, weights):
            narrow = attrs.evolve(settings, precision=precision, weight_precision=weights)
            found.append(list_served(source, model, narrow, serving, targets))
    return found


def _is_narrower(decoder: Decoder, weights: Sequence[str]) -> bool:
    """Return whether a precision has fewer bits than the checkpoint as published."""
    published = decoder.published
    if published is None or not published.weights:
        return True
    return bool(weights) and "8" in published.weights


def find_quality(case: Case) -> str:
    """Return the published loss of quality of a configuration's precision; empty for weights of at least 16 bits."""
    weights = case.run.point["weight_precision"]
    return "" if weights in WIDE else load_qualities().get(weights, "unknown")
