"""Cases of which a part is enough for each run of the tests; the others run with `make test-slow`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Case = TypeVar("Case")


def thin(cases: Iterable[Case], every: int) -> list[Case | ParameterSet]:
    """Return the cases; of each `every` in turn the first is run always, the others are marked slow."""
    return [case if number % every == 0 else _slow(case) for number, case in enumerate(cases)]


def _slow(case: object) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
    return pytest.param(case, marks=pytest.mark.slow)
