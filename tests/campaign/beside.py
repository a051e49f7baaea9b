"""Foreign files next to a database: text, a pipe, a device, a folder, and the log of a copy."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from unittest.mock import patch

from campaign.program import DATABASE, list_faults, run
from campaign.scene import COMPARE, SCENES, prepare_base, set_up
from campaign.state import read_content
from campaign.trial import Outcome, Trial
from joulemap.store import connection
from joulemap.store.journal import TITLE
from joulemap.workspace import Workspace

DATABASE_CODE: Final = 5
ENDLESS: Final = 30 * 2**30
MODELS: Final = ("squeezenet1_0", "squeezenet1_1", "mobilenet_v2")
QUESTIONS: Final = (("db", "info"), ("sql", "SELECT count(*) FROM runs"), COMPARE, ("db", "check"))


def put_endless(file: Path) -> None:
    """Create a huge sparse file that begins like a journal."""
    with file.open("wb") as stream:
        stream.write(TITLE)
        stream.truncate(ENDLESS)


THINGS: Final[Mapping[str, Callable[[Path], object]]] = {
    "text": lambda file: file.write_text("dear diary", encoding="utf-8"),
    "pipe": os.mkfifo,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "endless": put_endless,
}


def put_beside(trial: Trial) -> Outcome:
    """Run commands with a foreign file in place of the journal or log; each must refuse in one line and keep it."""
    random = trial.random()
    place = trial.place / "place"
    set_up(SCENES[0], trial.stage, place)
    if random.random() < 0.5:
        return _exchange_logs(trial, place)
    what = random.choice(tuple(THINGS))
    file = place / f"{DATABASE}{'.journal' if what == 'endless' or random.random() < 0.5 else '.wal'}"
    THINGS[what](file)
    before = file.lstat()
    failures = []
    for question in QUESTIONS:
        done = run(trial, question, place)
        failures += list_faults(done)
        if done.returncode != DATABASE_CODE:
            failures.append(f"code: {question[0]} exit {done.returncode} with a {what} as {file.suffix}")
    if not os.path.lexists(file) or file.lstat()[:7] != before[:7]:
        failures.append(f"lost: a {what} as {file.suffix}")
    return Outcome(part=f"{what} as {file.suffix}", outcomes={"refused": len(QUESTIONS)}, failures=tuple(failures))


def _exchange_logs(trial: Trial, place: Path) -> Outcome:
    """Add runs to two copies of a database, and put the log of one next to the other, which must be refused."""
    random = trial.random()
    one, other = place / "one.duckdb", place / "other.duckdb"
    for copy in (one, other):
        shutil.copy(place / DATABASE, copy)
        Workspace(copy).compare(random.choice(MODELS), batch=random.randint(2, 40))
    grown = read_content(other)
    with patch.object(connection, "checkpoint", lambda *_: None):
        Workspace(one).compare("alexnet", batch=random.randint(50, 90))
    shutil.copy(f"{one}.wal", f"{other}.wal")
    done = run(trial, ("db", "info", "--db", str(other)), place)
    failures = list_faults(done)
    if done.returncode != DATABASE_CODE:
        failures.append(f"wrong: the log of another copy is applied: exit {done.returncode}")
    os.unlink(f"{other}.wal")
    if read_content(other) != grown:
        failures.append("changed: a copy beside which the log of another lay")
    return Outcome(part="log of a copy", outcomes={"refused": 1}, failures=tuple(failures))


def prepare(stage: Path) -> None:
    """Create the database of the trials."""
    prepare_base(stage)
