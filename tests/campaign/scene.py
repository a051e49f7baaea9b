"""Commands that trials stop, their databases, and their results without a stop."""

from __future__ import annotations

import contextlib
import csv
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

import attrs

from campaign import fault
from campaign.fault import Fault, read_ledger
from campaign.program import CACHE, DATABASE, JOULEMAP, Process, prepare_place, succeed
from campaign.state import Content, list_files, read_content
from campaign.trial import UnavailableError

Command = tuple[str, ...]

BASE: Final = "base.duckdb"
ARCHIVE: Final = "archive"
MEASUREMENTS: Final = "measured.csv"
SESSION: Final = Path(__file__).with_name("session.py")

STORED: Final[tuple[Command, ...]] = (
    ("compare", "resnet18"),
    ("compare", "alexnet", "--precision", "fp16"),
)
"""Commands that fill the base database."""

ARCHIVED: Final[tuple[Command, ...]] = (
    ("compare", "alexnet", "--precision", "fp16"),
    ("compare", "squeezenet1_1", "--runtime", "eager"),
    ("compare", "shufflenet_v2_x0_5"),
)

COMPARE: Final[Command] = ("compare", "squeezenet1_0")
SWEEP: Final[Command] = ("sweep", "squeezenet1_1", "--batch", "1,2,4")
NEW: Final[Command] = ("compare", "resnet18")
IMPORT: Final[Command] = ("db", "import", "{stage}/archive")
MEASURED: Final[Command] = ("measurements", "import", "{stage}/measured.csv")


@attrs.frozen(kw_only=True)
class Scene:
    """Commands that one process runs in order; each that exits with 0 has acknowledged what it stored."""

    name: str
    commands: tuple[Command, ...]
    weight: int
    """Relative frequency."""
    again: tuple[Command, ...] = ()
    """Commands after a stop; by default the same commands."""
    has_database: bool = True
    has_template: bool = True
    codes: tuple[int, ...] = (5,)
    """Exit codes that report a full disk."""

    def follow(self) -> tuple[Command, ...]:
        """Return the commands after a stop."""
        return self.again or self.commands

    def program(self, stage: Path, log: Path) -> tuple[Sequence[str], Sequence[str]]:
        """Return (arguments of the interpreter, arguments of the program)."""
        commands = [fill(command, stage) for command in self.commands]
        if len(commands) == 1:
            return JOULEMAP, commands[0]
        return (str(SESSION),), (str(log), json.dumps(commands))


SCENES: Final = (
    Scene(name="compare", commands=(COMPARE,), weight=4),
    Scene(name="sweep", commands=(SWEEP,), weight=4),
    Scene(name="import", commands=(IMPORT,), weight=3),
    Scene(name="import measurements", commands=(MEASURED,), weight=1),
    Scene(name="several commands", commands=(COMPARE, IMPORT, MEASURED, SWEEP), weight=2),
    Scene(name="new database", commands=(NEW,), weight=2, has_database=False),
    Scene(name="migrate", commands=(("db", "migrate"),), weight=2, has_database=False),
    Scene(name="import, new database", commands=(IMPORT,), weight=2, has_database=False),
    Scene(name="template", commands=(NEW,), weight=2, has_database=False, has_template=False),
    Scene(
        name="export",
        commands=(("db", "export", "out"),),
        again=(("db", "export", "again"),),
        weight=1,
        codes=(2, 5),
    ),
    Scene(
        name="answer to a file",
        commands=((*NEW, "--output", "out.txt"),),
        again=((*NEW, "--output", "again.txt"),),
        weight=1,
        codes=(2, 5),
    ),
)


@attrs.frozen(kw_only=True)
class Reference:
    """Results of a scene without a stop."""

    before: Content
    after: tuple[Content, ...]
    """Stored content after each command."""
    files: tuple[str, ...]
    """Files in the folder after the commands and those of `again`."""
    call_count: int
    """Number of calls that change files; 0 if they cannot be counted."""
    seconds: float


def fill(command: Sequence[str], stage: Path) -> list[str]:
    """Return the arguments of a command with the prepared folder filled in."""
    return [word.replace("{stage}", str(stage)) for word in command]


def draw_scene(random: Random, scenes: Sequence[Scene] = SCENES) -> Scene:
    """Return a random scene by weight."""
    return random.choices(scenes, [scene.weight for scene in scenes])[0]


def set_up(scene: Scene, stage: Path, place: Path) -> None:
    """Create the folder of a scene, with its database and template."""
    prepare_place(place)
    if scene.has_database:
        shutil.copyfile(stage / BASE, place / DATABASE)
    if scene.has_template:
        for file in (stage / CACHE).iterdir():
            if file.is_file():
                shutil.copyfile(file, place / CACHE / file.name)


def prepare_base(stage: Path) -> None:
    """Create the template, the base database, the archive and the measurements, once."""
    if (stage / BASE).exists():
        return
    make = stage / "make"
    prepare_place(make)
    for command in STORED:
        succeed(command, make)
    shutil.copytree(make / CACHE, stage / CACHE)
    shutil.move(make / DATABASE, stage / BASE)
    for command in (*ARCHIVED, ("db", "export", str(stage / ARCHIVE))):
        succeed(command, make)
    shutil.rmtree(make)
    with (stage / MEASUREMENTS).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("hardware", "model", "precision", "batch", "runtime", "latency_s", "source"))
        writer.writerows(("l4", "resnet18", "fp32", batch, "eager", batch / 1000, "campaign") for batch in range(1, 9))


def prepare_scenes(stage: Path) -> None:
    """Run every scene without a stop and store its results, with its number of calls if they can be counted."""
    prepare_base(stage)
    with contextlib.suppress(UnavailableError):
        fault.build(stage)
    for scene in SCENES:
        find_reference(scene, stage)


def find_reference(scene: Scene, stage: Path) -> Reference:
    """Return the results of a scene without a stop; the scene runs if they are not stored yet."""
    kept = stage / f"scene-{scene.name}.json"
    if not kept.exists():
        kept.write_text(json.dumps(attrs.asdict(_watch(scene, stage))), encoding="utf-8")
    row = json.loads(kept.read_text(encoding="utf-8"))
    return Reference(**row | {name: tuple(row[name]) for name in ("after", "files")})


def _watch(scene: Scene, stage: Path) -> Reference:
    has_faults = (stage / fault.LIBRARY).exists()
    before: Content = {}
    after: list[Content] = []
    with _place(stage) as place:
        set_up(scene, stage, place)
        before = read_content(place / DATABASE)
        for command in scene.commands:
            succeed(fill(command, stage), place)
            after.append(read_content(place / DATABASE))
        for command in scene.again:
            succeed(fill(command, stage), place)
        files = list_files(place)
    with _place(stage) as place:
        set_up(scene, stage, place)
        ledger = place.with_name("ledger")
        extra = Fault().arm(stage, place, ledger) if has_faults else {}
        program, arguments = scene.program(stage, place.with_name("log"))
        started = time.monotonic()
        with Process.start(arguments, place, extra, program) as process:
            done = process.finish()
        seconds = time.monotonic() - started
        if done.returncode:
            raise RuntimeError(f"{scene.name}: exit {done.returncode}: {done.stderr}")
        call_count = read_ledger(ledger)[0] if has_faults else 0
    return Reference(before=before, after=tuple(after), files=tuple(files), call_count=call_count, seconds=seconds)


@contextlib.contextmanager
def _place(stage: Path) -> Iterator[Path]:
    outer = stage / "watched"
    outer.mkdir()
    try:
        yield outer / "place"
    finally:
        shutil.rmtree(outer)
