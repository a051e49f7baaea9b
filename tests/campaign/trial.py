"""Input and outcome of a trial."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class Trial:
    """Trial of a kind with its folders."""

    kind: str
    seed: int
    number: int
    stage: Path
    """Folder with the prepared files of all trials; read only."""
    place: Path
    """Empty folder of this trial."""
    is_alone: bool = False
    """True to run commands in separate processes, because they ended the worker before."""

    def random(self) -> Random:
        """Return a new random generator of this trial, always with the same sequence."""
        return Random(f"{self.kind} {self.seed} {self.number}")


STATED: Final = "stated"
"""Class of failures that docs/reliability.md states."""


@attrs.frozen(kw_only=True)
class Outcome:
    """Outcome of a trial."""

    part: str
    """Row of the table: the commands or the family of inputs."""
    outcomes: dict[str, int]
    """Result -> count."""
    failures: tuple[str, ...] = ()
    """Texts of the form `class: description`, of which the class `STATED` fails nothing; empty if the trial passed."""
    count: int = 1
    """Number of trials in the table that this one counts as."""
    seconds: float = 0.0
    """Longest wait for a command; 0 if it is not measured."""


Prepare = Callable[[Path], None]
Run = Callable[[Trial], Outcome]


@attrs.frozen(kw_only=True)
class Kind:
    """Method of trials."""

    name: str
    meaning: str
    count: int
    """Number of trials in a whole campaign."""
    limit_s: float
    """Maximum seconds of a trial before it counts as a hang."""
    share: float
    """Relative share of the campaign's time."""
    prepare: Prepare
    """Function that prepares a folder for all trials; it may raise UnavailableError."""
    run: Run


class UnavailableError(Exception):
    """Kind that cannot run on this machine, with the reason."""
