"""What a trial is given and what it hands back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import attrs


@attrs.frozen(kw_only=True)
class Trial:
    """One trial of a kind, and where it may work."""

    kind: str
    seed: int
    number: int
    stage: Path
    """Folder with what was prepared for all trials; only read."""
    place: Path
    """Empty folder of this trial."""
    is_alone: bool = False
    """Commands run as processes, because they took the worker along when they ran in it."""

    def random(self) -> Random:
        """Return the random numbers of this trial, from their beginning."""
        return Random(f"{self.kind} {self.seed} {self.number}")


@attrs.frozen(kw_only=True)
class Outcome:
    """What became of a trial."""

    part: str
    """Row of the table: the commands that were tried, or the family of inputs."""
    outcomes: dict[str, int]
    """What happened -> how often."""
    failures: tuple[str, ...] = ()
    """`class: what`, empty where every promise was kept."""
    count: int = 1
    """Trials that this one stands for."""
    seconds: float = 0.0
    """Longest wait of a person in it; 0 where that is not the point."""


Prepare = Callable[[Path], None]
Run = Callable[[Trial], Outcome]


@attrs.frozen(kw_only=True)
class Kind:
    """One way to try."""

    name: str
    meaning: str
    count: int
    """Trials of a whole campaign."""
    limit_s: float
    """Longest that one may take before it counts as a hang."""
    share: float
    """Part of the campaign's time that it may take, relative to the others."""
    prepare: Prepare
    """Puts what all trials need into a folder; raises UnavailableError."""
    run: Run


class UnavailableError(Exception):
    """A kind that cannot be tried on this machine; the text says why."""
