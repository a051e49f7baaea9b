"""Commands ended by SIGKILL: at random moments, and before, after or within one of their writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from campaign.aftermath import count_acknowledged, judge
from campaign.fault import PAGE_BYTES, Fault, FaultKind, build, read_ledger
from campaign.program import Process
from campaign.scene import SCENES, Scene, draw_scene, find_reference, prepare_scenes, set_up
from campaign.trial import Outcome, Trial

KINDS: Final[tuple[FaultKind, ...]] = ("before", "after", "torn", "torn")
TWICE_FRACTION: Final = 0.25
"""Share of kills at a write after which the next command is also killed."""

LATE_RATIO: Final = 1.1
"""Maximum time of a random kill over the command's time without a kill."""


def prepare(stage: Path) -> None:
    """Run the scenes without kills, to know their times."""
    prepare_scenes(stage)


def prepare_aimed(stage: Path) -> None:
    """Run the scenes without kills, and count their writes."""
    build(stage)
    prepare_scenes(stage)


def kill_at_random(trial: Trial, scenes: Sequence[Scene] = SCENES) -> Outcome:
    """Kill a scene at a random moment of its run time."""
    random = trial.random()
    scene = draw_scene(random, scenes)
    reference = find_reference(scene, trial.stage)
    place, log = trial.place / "place", trial.place / "log"
    set_up(scene, trial.stage, place)
    program, arguments = scene.program(trial.stage, log)
    with Process.start(arguments, place, program=program) as process:
        ended = process.wait(random.uniform(0.0, reference.seconds * LATE_RATIO))
        process.kill()
        done = process.finish()
    acknowledged = count_acknowledged(log, done.returncode, len(scene.commands))
    failures = judge(trial, scene, reference, acknowledged, place)
    return Outcome(part=scene.name, outcomes={"finished" if ended else "killed": 1}, failures=tuple(failures))


def kill_at_write(trial: Trial, scenes: Sequence[Scene] = SCENES) -> Outcome:
    """Kill a scene at one of its writes, and sometimes its repetition too."""
    random = trial.random()
    scene = draw_scene(random, scenes)
    reference = find_reference(scene, trial.stage)
    place, log = trial.place / "place", trial.place / "log"
    set_up(scene, trial.stage, place)
    notes = []
    acknowledged = 0
    for _ in range(2 if random.random() < TWICE_FRACTION else 1):
        done, note = _run_faulty(trial, scene, draw_fault(random, reference.call_count), place, log)
        acknowledged = max(acknowledged, count_acknowledged(log, done, len(scene.commands)))
        log.unlink(missing_ok=True)
        notes.append(note)
    failures = [f"{one} ({'; then '.join(notes)})" for one in judge(trial, scene, reference, acknowledged, place)]
    outcome = "killed" if notes[-1] else "finished"
    return Outcome(part=scene.name, outcomes={outcome: 1}, failures=tuple(failures))


def draw_fault(random: Random, call_count: int, kinds: tuple[FaultKind, ...] = KINDS) -> Fault:
    """Return a fault at one of `call_count` calls."""
    return Fault(
        kind=random.choice(kinds),
        call=random.randint(1, call_count),
        part=random.randint(1, 999),
        align=random.choice((1, PAGE_BYTES)),
    )


def _run_faulty(trial: Trial, scene: Scene, chosen: Fault, place: Path, log: Path) -> tuple[int, str]:
    ledger = trial.place / "ledger"
    program, arguments = scene.program(trial.stage, log)
    with Process.start(arguments, place, chosen.arm(trial.stage, place, ledger), program) as process:
        code = process.finish().returncode
    _, where = read_ledger(ledger)
    return code, f"{chosen.kind} call {chosen.call} {where}" if where else ""
