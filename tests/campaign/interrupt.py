"""Ctrl-C at random moments: a command must end within a second, with one line or with its answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from campaign.aftermath import judge
from campaign.program import Process, list_faults
from campaign.scene import SCENES, Scene, draw_scene, find_reference, prepare_scenes, set_up
from campaign.trial import Outcome, Trial
from command import Done

INTERRUPTED: Final = 130
LIMIT_S: Final = 1.0
PATIENCE_S: Final = 10.0
"""Time after which an interrupt counts as ignored."""

ENDLESS_S: Final = 1.5
"""Maximum time before the interrupt of a command that never ends."""

INTERPRETER: Final = "the interpreter began"
QUESTION: Final = "question"

SEARCH: Final = ("explore", "resnet18", "--like", "tpu_v4", "--random", "200000", "--jobs", "2")
SEARCH_S: Final = 8.0
"""Maximum time before the interrupt of a search, in which its processes start and work."""

QUESTIONS: Final = (
    SEARCH,
    ("sql", "SELECT sum(range) FROM range(1000000000000)"),
    ("sql", "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t"),
    (
        "sql",
        "SELECT count(*) FROM energy_ledger AS a, energy_ledger AS b, energy_ledger AS c WHERE a.action < b.action",
    ),
    ("sql", "SELECT a.range FROM range(1000000000) AS a ORDER BY hash(a.range)"),
    ("sql", "SELECT range FROM range(900000)"),
    ("db", "check"),
    ("pareto", "resnet18", "--where", "architecture=gpu"),
    ("query", "run", "run.list"),
    ("model", "trace", "resnet18"),
)

SINGLE: Final = tuple(scene for scene in SCENES if len(scene.commands) == 1)
_QUESTION_FRACTION: Final = 0.3


def prepare(stage: Path) -> None:
    """Run the scenes without interrupts, to know their times."""
    prepare_scenes(stage)


def interrupt(trial: Trial, scenes: Sequence[Scene] = SINGLE) -> Outcome:
    """Interrupt a command at a random moment of its run time."""
    random = trial.random()
    if random.random() < _QUESTION_FRACTION:
        asked = random.choice(QUESTIONS)
        scene = Scene(name=QUESTION, commands=(asked,), weight=1)
        return _interrupt(trial, scene, random.uniform(0.0, SEARCH_S if asked is SEARCH else ENDLESS_S))
    scene = draw_scene(random, scenes)
    return _interrupt(trial, scene, random.uniform(0.0, find_reference(scene, trial.stage).seconds))


def _interrupt(trial: Trial, scene: Scene, moment: float) -> Outcome:
    place = trial.place / "place"
    set_up(scene, trial.stage, place)
    program, arguments = scene.program(trial.stage, trial.place / "log")
    with Process.start(arguments, place, program=program) as process:
        process.wait(moment)
        sent = time.monotonic()
        process.interrupt()
        has_ended = process.wait(PATIENCE_S)
        seconds = time.monotonic() - sent
        if not has_ended:
            process.kill()
        done = process.finish()
    what = f"{' '.join(arguments)[:60]!r} after {moment:.3f} s"
    if not has_ended:
        return Outcome(
            part=scene.name, outcomes={"ignored": 1}, failures=(f"hang: {what}: no end within {PATIENCE_S:.0f} s",)
        )
    if is_early(done):
        return Outcome(part=scene.name, outcomes={f"before {INTERPRETER}": 1})
    failures = [f"{one} ({what})" for one in _judge_end(done, seconds)]
    if scene.name != QUESTION:
        failures += judge(trial, scene, find_reference(scene, trial.stage), int(done.returncode == 0), place)
    return Outcome(part=scene.name, outcomes={f"exit {done.returncode}": 1}, failures=tuple(failures), seconds=seconds)


def is_early(done: Done) -> bool:
    """Return whether the signal came before joulemap's code ran, so that the interpreter handled it."""
    if done.returncode not in (-2, INTERRUPTED, 1):
        return False
    if "Traceback (most recent call last)" in done.stderr:
        return "joulemap/" not in done.stderr
    return done.returncode == -2 or "during Python" in done.stderr or done.stderr.startswith("Fatal Python error")


def _judge_end(done: Done, seconds: float) -> list[str]:
    failures = []
    if done.returncode not in (0, INTERRUPTED):
        failures.append(f"code: exit {done.returncode}: {done.stderr.strip()[-200:]}")
    else:
        failures += list_faults(done)
    if seconds > LIMIT_S:
        failures.append(f"slow: {seconds:.2f} s")
    return failures
