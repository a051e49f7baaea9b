"""Run everything that takes hours, one step after another, and write one page (`make night`).

python benchmarks/night.py [--folder build/night] [--only STEP ...] [--hours 3] [--resume] [--list]

Each step is a program of its own with a time limit. The page has a row per step (outcome, time, processor time), the
lines of its output that tell most, and how these differ from the last night in the folder. Exit code 1 if a step failed
or was not reached. A killed night leaves the page, and the log of every step that ran; `--resume` runs what the newest
night of the same commit lacks.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs

from joulemap.system.record import frozen
from joulemap.system.resource import package_version

ROOT: Final = Path(__file__).parents[1]

PYTHON: Final = sys.executable

SHOWN: Final = 25
"""Maximum lines of a step on the page."""


@frozen(kw_only=True)
class Step:
    """Program of a night."""

    name: str
    command: tuple[str, ...]
    minutes: float
    """Time limit."""
    folder: str = ""
    """Folder below the root in which it runs."""
    tells: str = ""
    """Pattern of the lines that the page shows; the last lines if empty."""


ELSEWHERE: Final = " ".join(
    (
        "--ignore=tests/tab",
        "--ignore=tests/embed",
        "--deselect=tests/project/test_example.py::test_every_example_answers_in_order",
    )
)
"""Options that leave out of the slow suite what the steps `page` and `examples` run."""

STEPS: Final = (
    Step(
        name="slow",
        command=("env", f"PYTEST_ADDOPTS={ELSEWHERE}", "make", "tests-slow"),
        minutes=75,
        tells=r"passed|failed|^(FAILED|ERROR) |processor",
    ),
    Step(name="newest", command=("make", "test-newest"), minutes=25, tells=r"passed|failed|^(FAILED|ERROR) |^\w+ +\d"),
    Step(name="oldest", command=("make", "test-oldest"), minutes=25, tells=r"passed|failed|^(FAILED|ERROR) |^\w+ +\d"),
    Step(name="campaign", command=(PYTHON, "-m", "campaign", "--minutes", "20"), minutes=30, folder="tests"),
    Step(name="laws", command=(PYTHON, "-m", "laws", "--seconds", "3600"), minutes=65, folder="tests"),
    Step(name="examples", command=(PYTHON, "benchmarks/examples.py", "--docs", "--together"), minutes=35),
    Step(name="growth", command=(PYTHON, "benchmarks/growth.py", "--brief"), minutes=20),
    Step(name="accuracy", command=(PYTHON, "benchmarks/accuracy.py", "--print"), minutes=15, tells=r"^\|.*\d"),
    Step(name="scoreboard", command=(PYTHON, "benchmarks/scoreboard.py"), minutes=15),
    Step(name="startup", command=(PYTHON, "benchmarks/startup.py"), minutes=5),
    Step(name="evaluate", command=(PYTHON, "benchmarks/evaluate.py"), minutes=5),
    Step(
        name="page", command=(PYTHON, "-m", "pytest", "-q", "-n", "2", "tests/tab", "tests/embed", "-m", ""), minutes=20
    ),
    Step(name="documentation", command=("make", "docs"), minutes=10),
)


@frozen(kw_only=True)
class Outcome:
    """Result of a step."""

    code: int
    """Exit code; -1 if the time was up."""
    took_s: float
    spent_s: float
    """Processor time of the step and all its processes; unknown if the time was up."""
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """Outcome in a word or two."""
        return {0: "ok", -1: "time was up"}.get(self.code, f"exit {self.code}")


@frozen(kw_only=True)
class Night:
    """Outcomes of a night by step."""

    date: str
    commit: str
    version: str
    steps: Mapping[str, Outcome]

    @classmethod
    def read(cls, path: Path) -> Night:
        """Return the night in a file."""
        noted = json.loads(path.read_text(encoding="utf-8"))
        steps = {name: Outcome(**{**one, "lines": tuple(one["lines"])}) for name, one in noted.pop("steps").items()}
        return cls(**noted, steps=steps)


def run(step: Step, log: Path, limit_s: float) -> Outcome:
    """Run a step with its output in a log; all of its processes end at the limit."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with log.open("wb") as file:
        process = subprocess.Popen(
            step.command, cwd=ROOT / step.folder, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(limit_s)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = -1
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = choose_lines(log.read_text(encoding="utf-8", errors="replace"), step.tells)
    return Outcome(code=code, took_s=time.monotonic() - start, spent_s=spent, lines=lines)


def choose_lines(text: str, tells: str) -> tuple[str, ...]:
    """Return the last lines of an output that a page shows: those that match a pattern, or any."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip() and re.search(tells, line)]
    return tuple(lines[-SHOWN:])


def compare(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """Return the lines that went (-) and came (+), in their order."""
    made = difflib.unified_diff(old, new, lineterm="", n=0)
    return tuple(line for line in made if not line.startswith(("---", "+++", "@@")))


def write_page(night: Night, last: Night | None, steps: Sequence[Step]) -> str:
    """Return the page of a night in Markdown; steps without an outcome were not reached."""
    return "\n".join(_list_lines(night, last, steps)) + "\n"


def _list_lines(night: Night, last: Night | None, steps: Sequence[Step]) -> Iterator[str]:
    yield f"# Night of {night.date}"
    yield ""
    yield f"joulemap {night.version}, commit {night.commit}" + (
        f"; compared with {last.date}, commit {last.commit}." if last else "; the first night in this folder."
    )
    yield ""
    yield "| step | outcome | last | minutes | of a processor | last |"
    yield "|---|---|---|---|---|---|"
    for step in steps:
        now, then = night.steps.get(step.name), last.steps.get(step.name) if last else None
        cells = (
            step.name, now.text if now else "not reached", then.text if then else "",
            f"{now.took_s / 60:.1f}" if now else "", f"{now.spent_s / 60:.1f}" if now and now.code >= 0 else "",
            f"{then.spent_s / 60:.1f}" if then and then.code >= 0 else "",
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    for step in steps:
        if (now := night.steps.get(step.name)) is None:
            continue
        then = last.steps.get(step.name) if last else None
        yield from ("", f"## {step.name}", "```text", *now.lines, "```")
        if then is not None:
            changed = compare(then.lines, now.lines)
            yield from ("", "Since the last night:", "```diff", *changed, "```") if changed else ("", "As last night.")


def find_nights(folder: Path) -> Iterator[Night]:
    """Yield the nights in a folder, the newest first."""
    return map(Night.read, sorted(folder.glob("????-??-??T*.json"), reverse=True))


def main() -> int:
    """Run the steps; return 1 if one failed or was not reached."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "night")
    parser.add_argument("--only", nargs="+", choices=[one.name for one in STEPS], default=[])
    parser.add_argument("--hours", type=float, default=3.0)
    parser.add_argument("--resume", action="store_true", help="run what the newest night of this commit lacks")
    parser.add_argument("--list", action="store_true", help="print the steps with their limits")
    asked = parser.parse_args()
    steps = [one for one in STEPS if not asked.only or one.name in asked.only]
    if asked.list:
        for one in steps:
            print(f"{one.name:<14} {one.minutes:>4.0f} min  {' '.join(one.command)}")
        return 0
    folder: Path = asked.folder
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 3600.0 * asked.hours
    commit = subprocess.run(["git", "rev-parse", "--short=9", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    night = Night(
        date=f"{datetime.now(UTC):%Y-%m-%dT%H%M}", commit=commit.stdout.strip(), version=package_version("joulemap"),
        steps={},
    )  # fmt: skip
    nights = find_nights(folder)
    last = next(nights, None)
    if asked.resume and last is not None and last.commit == night.commit:
        night, last = last, next(nights, None)
    page = folder / "page.md"
    for step in steps:
        left = end - time.monotonic()
        if left > 0 and step.name not in night.steps:
            outcome = run(step, folder / f"{step.name}.log", min(60.0 * step.minutes, left))
            night = attrs.evolve(night, steps={**night.steps, step.name: outcome})
            print(f"{step.name}: {outcome.text}, {outcome.took_s / 60:.1f} min", flush=True)
            noted = json.dumps(attrs.asdict(night), indent=1)
            (folder / f"{night.date}.json").write_text(f"{noted}\n", encoding="utf-8")
        page.write_text(write_page(night, last, steps), encoding="utf-8")
    print(page)
    return int(any(step.name not in night.steps or night.steps[step.name].code for step in steps))


if __name__ == "__main__":
    sys.exit(main())
