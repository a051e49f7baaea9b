"""Numbers in the sentences of the wings: each is recomputed from the rows of the answer that it stands above."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from joulemap.answer.answer import Answer
from joulemap.domain.settings import Settings
from joulemap.present.cell import show_chance, show_share
from joulemap.wing.explore.design.best import name_parameter
from joulemap.wing.fleet.demand import Demand
from joulemap.wing.llm.answer.offload import OffloadAnswer
from joulemap.workspace import Workspace

TESTS: Final = Path(__file__).parents[1]

PREFIXES: Final = {"p": 1e-12, "n": 1e-9, "µ": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}

RANGE: Final = re.compile(r" ?\([^()]*\d[^()]*\N{EN DASH}[^()]*\)")
"""Ends of an interval, which stand in brackets."""

ROUNDED: Final = 0.006
"""Largest relative error of a number of three digits."""


def read(text: str, unit: str) -> list[float]:
    """Return the numbers of a text that have a unit, in SI units; ends of intervals are left out."""
    found = re.findall(rf"(?<![\w.,])([\d,]*\.?\d+) ?([pnµmkMG]?){unit}(?!\w)", RANGE.sub("", text))
    return [float(number.replace(",", "")) * PREFIXES[prefix] for number, prefix in found]


def check(text: str, unit: str, *values: float | None) -> None:
    """Fail unless the numbers of a text that have a unit are these values, each of them at least once."""
    said, expected = read(text, unit), [one for one in values if one is not None]
    near = {place: [one for one in expected if math.isclose(number, one, rel_tol=ROUNDED)] for place, number in
            enumerate(said)}  # fmt: skip
    wrong = [said[place] for place, found in near.items() if not found]
    missing = [one for one in expected if not any(math.isclose(number, one, rel_tol=ROUNDED) for number in said)]
    assert not wrong and not missing, f"{text!r} in {unit!r}: wrong {wrong}, missing {missing}"


def parts(answer: Answer) -> tuple[str, Sequence[str]]:
    document = answer.document()
    return str(document.answer), document.insights


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("prose") / "prose.duckdb")
