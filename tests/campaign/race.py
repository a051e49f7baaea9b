"""Concurrent use of one database: processes that write and read, and threads that share a workspace."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Final

import attrs

from campaign.program import DATABASE, Process, check
from campaign.scene import BASE, SCENES, STORED, prepare_base, set_up
from campaign.state import read_content
from campaign.trial import Outcome, Trial
from joulemap.system.errors import JoulemapError
from joulemap.workspace import Workspace

WRITER_COUNT: Final = 8
READER_COUNT: Final = 4
ROUND_COUNT: Final = 34
"""Number of commands of one process."""

THREAD_COUNT: Final = 8
CALL_COUNT: Final = 25
"""Number of calls of one thread."""

WAIT_S: Final = 120.0
MODELS: Final = ("alexnet", "squeezenet1_0", "squeezenet1_1", "mobilenet_v2", "resnet18", "shufflenet_v2_x0_5")
READING: Final = (
    ("sql", "SELECT count(*), sum(energy_j) FROM runs"),
    ("query", "run", "run.list"),
    ("db", "check"),
    ("db", "info"),
    *STORED,
)


def prepare(stage: Path) -> None:
    """Create the shared database."""
    prepare_base(stage)


def race_processes(trial: Trial) -> Outcome:
    """Run eight writing and four reading processes, each with a sequence of commands."""
    return race(trial, WRITER_COUNT, READER_COUNT, ROUND_COUNT)


def race(trial: Trial, writer_count: int, reader_count: int, round_count: int) -> Outcome:
    """Run writing and reading processes; every command must succeed, and every run must be stored once."""
    place = trial.place / "place"
    set_up(SCENES[0], trial.stage, place)
    scripts = [_draw_writer(trial.random(), index, round_count) for index in range(writer_count)]
    scripts += [_draw_reader(trial.random(), index, round_count) for index in range(reader_count)]
    with ThreadPoolExecutor(len(scripts)) as pool:
        told = list(pool.map(lambda numbered: _follow(place, *numbered), enumerate(scripts)))
    failures = [failure for person in told for failure in person.failures]
    outcomes: Counter[str] = Counter()
    for person in told:
        outcomes += person.codes
    failures += _judge(trial, place, {command for person in told[:writer_count] for command in person.acknowledged})
    return Outcome(
        part="processes",
        outcomes=outcomes,
        failures=tuple(failures),
        count=sum(len(script) for script in scripts),
        seconds=max(person.longest_s for person in told),
    )


@attrs.define
class Told:
    """Results of one sequence of commands."""

    failures: list[str] = attrs.field(factory=list)
    codes: Counter[str] = attrs.field(factory=Counter)
    acknowledged: list[tuple[str, ...]] = attrs.field(factory=list)
    """Commands that ended with 0."""
    longest_s: float = 0.0
    """Longest time of a command."""


def _follow(place: Path, index: int, script: list[tuple[str, ...]]) -> Told:
    """Run one sequence of commands in order."""
    told = Told()
    for number, command in enumerate(script):
        arguments = [*command, "--db", str(place / DATABASE)]
        desk = place.with_name(f"desk-{index}") / "place"
        (desk / "tmp").mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with Process.start(arguments, desk, {"JOULEMAP_CACHE": str(place / "cache")}) as process:
            done = process.finish(WAIT_S)
        told.longest_s = max(told.longest_s, time.monotonic() - began)
        told.codes[f"exit {done.returncode}"] += 1
        if done.returncode == 0:
            told.acknowledged.append(command)
        else:
            last = done.stderr.strip()[-200:]
            told.failures.append(f"refused: person {index} command {number} exit {done.returncode}: {last}")
    return told


def _draw_writer(random: Random, index: int, count: int) -> list[tuple[str, ...]]:
    """Return commands that each store a new run."""
    random.seed(f"{random.random()} {index}")
    script: list[tuple[str, ...]] = []
    for number in range(count):
        batch = 2 + index + number * WRITER_COUNT
        script.append(("compare", random.choice(MODELS), "--batch", str(batch), "--hardware", "l4,xeon_8490h"))
    return script


def _draw_reader(random: Random, index: int, count: int) -> list[tuple[str, ...]]:
    random.seed(f"{random.random()} {index} reads")
    return [random.choice(READING) for _ in range(count)]


def _judge(trial: Trial, place: Path, asked: set[tuple[str, ...]]) -> list[str]:
    """Return the failures: a broken database, and lost, partial or unexpected runs."""
    failures = []
    done = check(trial, place)
    if done.returncode:
        failures.append(f"broken: db check exit {done.returncode}: {(done.stdout + done.stderr).strip()[:300]}")
    try:
        stored = read_content(place / DATABASE)
    except JoulemapError as error:
        return [*failures, f"lost: {error}"]
    before = read_content(trial.stage / BASE)
    lost = [key for key, digest in before.items() if stored.get(key) != digest]
    if lost:
        failures.append(f"lost: {len(lost)} of {len(before)} runs")
    expected = len(before) + 2 * len(asked)
    if len(stored) != expected:
        failures.append(f"lost: {len(stored)} runs are stored, {expected} were acknowledged")
    return failures


def race_threads(trial: Trial) -> Outcome:
    """Run eight threads on one workspace, with some calls that store new runs."""
    return share(trial, THREAD_COUNT, CALL_COUNT)


def share(trial: Trial, thread_count: int, call_count: int) -> Outcome:
    """Run threads on a shared workspace; every call must succeed, with the answer of a single thread."""
    place = trial.place / "place"
    set_up(SCENES[0], trial.stage, place)
    workspace = Workspace(place / DATABASE)
    told = json.dumps(workspace.compare("resnet18").data(), default=str)
    seeds = [f"{trial.seed} {trial.number} {index}" for index in range(thread_count)]
    with ThreadPoolExecutor(thread_count) as pool:
        failures = [
            failure
            for failures in pool.map(lambda seed: _ask(workspace, Random(seed), call_count, told), seeds)
            for failure in failures
        ]
    failures += _judge_threads(trial, place)
    total = thread_count * call_count
    outcomes = {"answered": total - sum(one.startswith(("refused", "wrong")) for one in failures)}
    return Outcome(part="threads", outcomes=outcomes, failures=tuple(failures), count=total)


def _ask(workspace: Workspace, random: Random, count: int, told: str) -> list[str]:
    def compare_stored() -> bool:
        return json.dumps(workspace.compare("resnet18").data(), default=str) == told

    def count_runs() -> bool:
        ((count,),) = workspace.sql("SELECT count(*) AS n FROM runs WHERE model = 'resnet18'").rows
        return bool(count == 5)

    def compare_new() -> bool:
        rows = workspace.compare(random.choice(MODELS[:2]), batch=random.randint(2, 40), hardware=("l4", "h100_sxm5"))
        return len(rows.rows) == 2

    def check() -> bool:
        return not workspace.check().findings.rows

    calls: tuple[Callable[[], bool], ...] = (compare_stored, count_runs, count_runs, compare_new, compare_new, check)
    failures = []
    for _ in range(count):
        call = random.choice(calls)
        try:
            if not call():
                failures.append(f"wrong: {call.__name__} answered something else")
        except Exception as error:
            failures.append(f"refused: {call.__name__}: {type(error).__name__}: {str(error)[:200]}")
    return failures


def _judge_threads(trial: Trial, place: Path) -> list[str]:
    done = check(trial, place)
    return [f"broken: db check exit {done.returncode}: {done.stdout[:300]}"] if done.returncode else []
