"""Disks that are full from one write on, and size limits of files: no data is lost, and commands refuse in one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from campaign.aftermath import count_acknowledged, judge
from campaign.fault import build, read_ledger
from campaign.kill import draw_fault
from campaign.program import Process, list_faults
from campaign.scene import SCENES, Reference, Scene, draw_scene, find_reference, prepare_scenes, set_up
from campaign.trial import Outcome, Trial
from command import Done

LIMITED_FRACTION: Final = 0.25
"""Share of trials with a limit on the size of files."""


def prepare(stage: Path) -> None:
    """Run the scenes without faults, and count their writes."""
    build(stage)
    prepare_scenes(stage)


def fill_disk(trial: Trial, scenes: Sequence[Scene] = SCENES) -> Outcome:
    """Run a scene whose disk is full from one of its writes on, or whose files have a size limit."""
    random = trial.random()
    scene = draw_scene(random, scenes)
    reference = find_reference(scene, trial.stage)
    place, log = trial.place / "place", trial.place / "log"
    set_up(scene, trial.stage, place)
    done, where = _run_full(trial, scene, reference, place, log, random)
    acknowledged = count_acknowledged(log, done.returncode, len(scene.commands))
    failures = list_faults(done)
    if not failures and done.returncode not in (0, *scene.codes):
        failures.append(f"code: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    failures += judge(trial, scene, reference, acknowledged, place)
    return Outcome(
        part=scene.name,
        outcomes={f"exit {done.returncode}": 1},
        failures=tuple(f"{failure} ({where})" for failure in failures),
    )


def _run_full(
    trial: Trial, scene: Scene, reference: Reference, place: Path, log: Path, random: Random
) -> tuple[Done, str]:
    program, arguments = scene.program(trial.stage, log)
    if random.random() < LIMITED_FRACTION:
        largest = max((file.stat().st_size for file in place.rglob("*") if file.is_file()), default=0)
        file_bytes = random.randint(0, largest + 2**20)
        with Process.start(arguments, place, program=program, file_bytes=file_bytes) as process:
            return process.finish(), f"files up to {file_bytes} bytes"
    chosen = draw_fault(random, reference.call_count, ("full",))
    ledger = trial.place / "ledger"
    with Process.start(arguments, place, chosen.arm(trial.stage, place, ledger), program) as process:
        done = process.finish()
    _, where = read_ledger(ledger)
    return done, f"full at call {chosen.call} {where}"
