"""Names of runs in tables and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.fact import Subject
from joulemap.system.name import PROJECTED

MOST_NAMED: Final = 2
"""Maximum names in a sentence; more are counted."""


def name_run(run: Subject) -> str:
    """Return the name of a run, with the mark of hardware that can be neither bought nor rented."""
    name = " ".join((run.hardware, *run.settings))
    return name if run.is_available else f"{PROJECTED}{name}"


def name_first(runs: Mapping[int, Subject], fact: Any) -> str:
    """Return the name of the first run of a fact."""
    return name_run(runs[fact.run])


def drop_settings(runs: Mapping[int, Subject], ids: Iterable[int]) -> dict[int, Subject]:
    """Return the runs, each without its settings if no other of `ids` is on the same hardware."""
    count = Counter(runs[one].hardware for one in dict.fromkeys(ids) if one in runs)
    return {one: run if count[run.hardware] > 1 else attrs.evolve(run, settings=()) for one, run in runs.items()}


def join_names(names: Sequence[str], word: str = "and") -> str:
    """Return a few names in words: `a`, `a and b`, `a and 3 others`."""
    if len(names) <= MOST_NAMED:
        return f" {word} ".join(names)
    return f"{names[0]} and {len(names) - 1} others"


def name_all(runs: Mapping[int, Subject], ids: Iterable[int]) -> list[str]:
    """Return the names of runs, each once."""
    return list(dict.fromkeys(name_run(runs[one]) for one in ids if one in runs))
