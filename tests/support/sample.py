"""Samples of test cases for each run of the tests; all other cases run with `make test-slow`, whole or in slices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TypeVar
from zlib import crc32

import pytest
from _pytest.mark import ParameterSet

from joulemap.catalog.load import load_catalogue

Case = TypeVar("Case")


def thin(cases: Iterable[Case], every: int) -> list[Case | ParameterSet]:
    """Return the cases; the first of each `every` always runs, the others are marked slow."""
    return [case if number % every == 0 else _slow(case) for number, case in enumerate(cases)]


def each(
    cases: Iterable[Case], name: Callable[[Case], str] = str
) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """Run a test of one argument on all cases as one test, because reporting would take most of the time of fast cases.

    The first failing case is named.
    """

    def decorate(test: Callable[[Case], None]) -> Callable[[], None]:
        def run() -> None:
            for case in cases:
                try:
                    test(case)
                except BaseException as error:
                    error.add_note(f"case: {name(case)}")
                    raise

        run.__name__, run.__module__ = test.__name__, test.__module__
        return run

    return decorate


def sample(items: Sequence[pytest.Item]) -> None:
    """Mark as slow the cases beyond `count` of each test with the mark `sample(count)`, not counting slow ones."""
    marked = [one for one in items if isinstance(one, pytest.Function) and one.get_closest_marker("sample")]
    for _, group in groupby(marked, lambda one: (one.parent, one.originalname)):
        cases = [one for one in group if one.get_closest_marker("slow") is None]
        marker = cases[0].get_closest_marker("sample") if cases else None
        kept = spread([one.name for one in cases], marker.args[0]) if marker else set()
        for one in cases:
            if one.name not in kept:
                one.add_marker(pytest.mark.slow)


def spread(names: Iterable[str], count: int) -> set[str]:
    """Return `count` names of cases that differ most: each has the most words that the earlier ones lack."""
    classes = {one.id: one.architecture for one in load_catalogue().hardware.values()}
    left = sorted(set(names), key=lambda name: crc32(name.encode()))
    kept: set[str] = set()
    seen: set[str] = set()

    def unseen(name: str) -> int:
        return len(words[name] - seen)

    words = {name: set(name.partition("[")[2].rstrip("]").split("-")) for name in left}
    words = {name: own | {classes[word] for word in own if word in classes} for name, own in words.items()}
    while left and len(kept) < count:
        name = max(left, key=unseen)
        left.remove(name)
        kept.add(name)
        seen |= words[name]
    return kept


def read_slice(text: str) -> tuple[int, int]:
    """Return (number, count) of a slice written as `3/12`; pytest.UsageError for anything else."""
    match = re.fullmatch(r"([0-9]{1,4})/([0-9]{1,4})", text)
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise pytest.UsageError(f"--slice is {text!r}, expected a number and a count, such as 3/12")
    return number, count


def place_in_slice(node: str, count: int) -> int:
    """Return the slice, from 1 to `count`, of the test case with this id.

    It follows from the id alone, so that other cases come and go without moving it.
    """
    return crc32(node.encode()) % count + 1


def _slow(case: object) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.slow])
    return pytest.param(case, marks=pytest.mark.slow)
