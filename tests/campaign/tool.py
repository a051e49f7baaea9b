"""Mutated outputs of a machine's tools: `here` reads them, or refuses them with one line."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from campaign.trial import Outcome, Trial
from fuzz_here import find_faults

EACH: Final = 100
"""Recordings per trial; starting a trial takes as long as reading most of them."""


def prepare(stage: Path) -> None:
    """Prepare nothing: the recorded machines are files of the tests."""
    del stage


def read_outputs(trial: Trial) -> Outcome:
    """Read and match mutated recordings; each must be answered or refused within seconds."""
    faults = find_faults(EACH, first_seed=(trial.seed * 1_000_000 + trial.number) * EACH)
    failures = tuple(f"reader: recording {one.seed}: {one.text}" for one in faults)
    return Outcome(
        part="outputs of tools", outcomes={"read or refused": EACH - len(faults)}, failures=failures, count=EACH
    )
