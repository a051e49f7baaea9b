"""Malicious lakes, databases, repositories, measured files and calls.

None of their statements or programs may run, no file outside the folder may be read, and a refusal must be one line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb

from campaign.mutate import mutate_bytes, mutate_json
from campaign.program import DATABASE, JOULEMAP, Process, list_faults, run
from campaign.scene import COMPARE, SCENES, prepare_base, set_up
from campaign.trial import Outcome, Trial
from command import Done
from joulemap.cli.tool import check_files
from joulemap.plan import revision
from joulemap.system.errors import ExitCode, ModelError, UsageError

LAKE: Final = "pond"
SECRET: Final = "secret-of-somebody"
MARK: Final = "mark"
SAMPLES: Final = Path(__file__).parents[1] / "data" / "verify"
ALLOWED: Final = frozenset(ExitCode) - {ExitCode.INTERNAL, ExitCode.INTERRUPTED}
SLOW_S: Final = 60.0

ASKED: Final[tuple[tuple[str, ...], ...]] = (
    ("sql", "SELECT * FROM runs LIMIT 3", "--db", LAKE),
    ("sql", "SELECT count(*) FROM points", "--db", LAKE),
    ("lake", "list", LAKE),
    ("lake", "check", LAKE),
    ("lake", "clean", LAKE),
    ("query", "run", "run.list", "--db", LAKE),
)
STATEMENTS: Final = (
    "set_x FROM (SELECT 1) AS p; COPY (SELECT 42) TO '{mark}'; CREATE VIEW v AS SELECT p.run_id",
    "run_id, (SELECT content FROM read_text('{secret}')) AS set_x",
    "run_id FROM read_text('{secret}') AS p; --",
    "x\"; COPY (SELECT 42) TO '{mark}'; --",
    "x'; COPY (SELECT 42) TO '{mark}'; --",
    "set_x, (SELECT getenv('HOME')) AS y",
    "x; ATTACH '{mark}' AS other; --",
)
NUMBERS: Final[tuple[Any, ...]] = (
    1e308,
    5e-324,
    10**18,
    -1,
    0,
    2**63,
    10**400,
    float("nan"),
    float("inf"),
    True,
    None,
    "1e308",
    [],
    {},
)
NAMES: Final = ("a b", "a,b", " a", "a=b", "a@1", "a(b)", "a:b", "a;b", "é", "a\tb", "a b c d", "{x}")


def _lay_out(trial: Trial) -> Path:
    place = trial.place / "place"
    set_up(SCENES[0], trial.stage, place)
    shutil.copytree(trial.stage / LAKE, place / LAKE)
    (trial.place / SECRET).write_text(SECRET, encoding="utf-8")
    return place


def _fill_in(text: str, place: Path) -> str:
    return text.replace("{mark}", str(place.parent / MARK)).replace("{secret}", str(place.parent / SECRET))


def _judge(place: Path, done: Done) -> list[str]:
    """Return the failures of a command: faults, wrong exit codes, foreign code that ran, and files read outside."""
    failures = list_faults(done)
    shown = " ".join(done.args[1:])[:80]
    if not failures and done.returncode not in ALLOWED:
        failures.append(f"code: {shown!r} exit {done.returncode}: {done.stderr.strip()[-200:]}")
    if (place.parent / MARK).exists():
        failures.append(f"ran: {shown!r} ran what a stranger wrote")
    if SECRET in done.stdout.replace(str(place.parent), ""):
        failures.append(f"told: {shown!r} reads a file outside")
    return failures


def _ask(trial: Trial, place: Path, asked: tuple[tuple[str, ...], ...]) -> tuple[dict[str, int], list[str]]:
    outcomes: dict[str, int] = {}
    failures = []
    for one in asked:
        done = run(trial, one, place)
        outcomes[f"exit {done.returncode}"] = outcomes.get(f"exit {done.returncode}", 0) + 1
        failures += _judge(place, done)
    return outcomes, failures


def _pick_shard(random: Random, place: Path) -> Path:
    return random.choice(sorted((place / LAKE).glob("*/*.parquet")))


def forge_footer(trial: Trial, random: Random) -> Outcome:
    """Put a statement or an invalid value into the footer of a shard whose name has the correct digest."""
    from pond import forge

    place = _lay_out(trial)
    text = _fill_in(random.choice(STATEMENTS), place)

    def change(about: dict[str, object]) -> None:
        way = random.randrange(4)
        if way == 0:
            about["varied"][0][random.choice(("column", "name", "unit"))] = text  # type: ignore[index]
        elif way == 1:
            about["fixed"] = {**about["fixed"], random.choice(("model", text)): text}  # type: ignore[dict-item]
        elif way == 2:
            row = about[random.choice(("workloads", "hardware"))][0]  # type: ignore[index]
            row[random.choice(sorted(row))] = text
        else:
            changed = mutate_json(random, about)
            about.clear()
            about.update(changed if isinstance(changed, dict) else {"": changed})

    forge(_pick_shard(random, place), change)
    outcomes, failures = _ask(trial, place, ASKED)
    return Outcome(part="footers of shards", outcomes=outcomes, failures=tuple(failures))


def change_shard(trial: Trial, random: Random) -> Outcome:
    """Change bytes of a shard and the digest in its name: a check must find it, or answers must be unchanged."""
    from pond import name_content

    place = _lay_out(trial)
    whole = run(trial, ASKED[1], place).stdout
    shard = _pick_shard(random, place)
    content = mutate_bytes(random, shard.read_bytes())
    shard.unlink()
    name_content(shard, content)
    checked = run(trial, ASKED[3], place)
    failures = _judge(place, checked)
    done = run(trial, ASKED[1], place)
    failures += _judge(place, done)
    if checked.returncode == 0 and (done.returncode or done.stdout != whole):
        failures.append("wrong: `lake check` says whole of a lake that answers something else")
    outcome = "lake check finds it" if checked.returncode else "lake check passes"
    return Outcome(part="bytes of shards", outcomes={outcome: 1}, failures=tuple(failures))


THINGS: Final[Mapping[str, Callable[[Path], object]]] = {
    "pipe": os.mkfifo,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "loop": lambda file: file.symlink_to(file),
    "folder": Path.mkdir,
    "nothing": lambda file: file.symlink_to(file.with_name("gone")),
    "memory": lambda file: file.symlink_to("/proc/self/mem"),
}


def put_thing(trial: Trial, random: Random) -> Outcome:
    """Put a pipe, a device or another special file in place of a file that is read."""
    place = _lay_out(trial)
    name, thing = random.choice(sorted(THINGS.items()))
    files = {"shard": _pick_shard(random, place), "mark of a lake": place / LAKE / "joulemap-lake.json"}
    files |= {"file": place / random.choice(("own.toml", "own.json", "own.csv", "own.sql", "own.py", "own.pt2"))}
    what = random.choice(sorted(files))
    file = files[what]
    file.unlink(missing_ok=True)
    thing(file)
    asked: tuple[tuple[str, ...], ...] = ASKED
    if what == "file":
        own = file.name
        asked = (
            ("compare", "resnet18", f"./{own}"),
            ("verify", own),
            ("llm", f"./{own}", "l4"),
            ("compare", "resnet18", "l4", "--calibration", own),
            ("measurements", "import", own),
            ("sql", "--file", own),
            ("fleet", own, "l4", "--rate", "1/s", "--p99", "1s"),
            ("compare", f"./{own}:net" if own.endswith("py") else f"./{own}"),
        )
        asked = tuple(random.sample(asked, 3))
    outcomes, failures = _ask(trial, place, asked)
    return Outcome(part=f"{name} as {what}", outcomes=outcomes, failures=tuple(failures))


def fill_lake(trial: Trial, random: Random) -> Outcome:
    """Limit the size of files while a lake is filled: exit code 5 or 2, one line, no partial file."""
    place = _lay_out(trial)
    asked = ("explore", "resnet18", "--like", "tpu_v4", "--random", "200", "--lake", "new", "--jobs", "2")
    with Process.start(asked, place, program=JOULEMAP, file_bytes=random.randint(0, 40_000)) as process:
        done = process.finish()
    failures = _judge(place, done)
    if done.returncode not in (0, ExitCode.DATABASE, ExitCode.USAGE):
        failures.append(f"code: a full disk is exit {done.returncode}: {done.stderr.strip()[-200:]}")
    left = sorted(one.name for one in (place / "new").rglob(".*")) if (place / "new").exists() else []
    if left:
        failures.append(f"debris: {', '.join(left)[:200]}")
    return Outcome(part="lake on a full disk", outcomes={f"exit {done.returncode}": 1}, failures=tuple(failures))


def name_database(trial: Trial, random: Random) -> Outcome:
    """Run commands on a database whose views, tables and columns have statements as names."""
    place = _lay_out(trial)
    name = _fill_in(random.choice(STATEMENTS), place).replace('"', '""')
    ways = (
        f"CREATE VIEW \"{name}\" AS SELECT 1 AS a; UPDATE internal.schema_surface SET digest = 'x', "
        f"names = list_append(names, '{name.replace(chr(39), chr(39) * 2)}')",
        f'ALTER TABLE internal.run ADD COLUMN "{name}" INTEGER',
        f'CREATE TABLE internal."{name}" (a INTEGER PRIMARY KEY); INSERT INTO internal."{name}" VALUES (1)',
        f'ALTER TABLE internal.workload_operator ADD COLUMN "{name}" INTEGER',
        f"CREATE OR REPLACE VIEW runs AS SELECT content AS model FROM read_text('{place.parent / SECRET}')",
    )
    with duckdb.connect(str(place / DATABASE)) as connection:
        connection.execute(random.choice(ways))
    asked = (("db", "check"), ("sql", "SELECT * FROM runs"), ("db", "migrate"), COMPARE, ("db", "export", "out"))
    outcomes, failures = _ask(trial, place, (*asked, ("db", "recover", "new.duckdb")))
    return Outcome(part="names in a database", outcomes=outcomes, failures=tuple(failures))


def name_outside(trial: Trial, random: Random) -> Outcome:
    """Name a file outside the folder that a server allows, by a link with an unusual name."""
    inside, outside = trial.place / "in", trial.place / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret.json").write_text(SECRET)
    link = inside / "".join(random.choice((*NAMES, "x")) for _ in range(random.randint(1, 3)))
    link.symlink_to(outside)
    value = random.choice(("{}", "x={}", "l4,{}", "{},l4", "train({},devices=2)", "HEAD:{}", "{}@5W", "a b {}"))
    told = value.format(random.choice((f"{link.name}/secret.json", str(outside / "secret.json"), "../out/secret.json")))
    try:
        check_files([told], [inside], inside, runs_code=random.random() < 0.5)
    except UsageError:
        return Outcome(part="arguments of a call", outcomes={"refused": 1})
    return Outcome(part="arguments of a call", outcomes={"passed": 1}, failures=(f"outside: {told!r} is let through",))


def measure_oddly(trial: Trial, random: Random) -> Outcome:
    """Import a tool's measurements with one invalid number or name."""
    place = _lay_out(trial)
    sample = random.choice(("vllm.json", "aiperf.json", "trtllm.json", "inferencex.json", "llama_bench.json"))
    document = json.loads((SAMPLES / sample).read_text(encoding="utf-8"))
    holder = document[0] if isinstance(document, list) else document
    name = random.choice(sorted(holder))
    holder[name] = random.choice(
        (*NUMBERS, *(_fill_in(one, place) for one in ("{secret}", "/dev/zero", "../own.json")))
    )
    (place / "own.json").write_text(json.dumps(document), encoding="utf-8")
    outcomes, failures = _ask(trial, place, (("verify", "own.json", "--hardware", "l40s"), ("verify", "own.json")))
    return Outcome(part="measured files", outcomes=outcomes, failures=tuple(failures))


SETTINGS: Final = ("filter.x.smudge", "filter.x.process", "core.fsmonitor", "core.pager", "diff.external",
                   "diff.x.textconv", "core.sshCommand", "core.hooksPath", "credential.helper",
                   "core.attributesFile", "alias.ls-tree", "core.gitProxy", "gpg.program")  # fmt: skip


def configure_git(trial: Trial, random: Random) -> Outcome:
    """Read a commit of a repository whose git configuration names programs."""
    place = trial.place / "place"
    place.mkdir()
    mark = trial.place / MARK

    def git(*words: str) -> None:
        own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *own, *words], cwd=place, check=True, capture_output=True)

    git("init", "--quiet")
    (place / "net.py").write_text("x = 1\n")
    (place / ".gitattributes").write_text("* filter=x diff=x\n")
    git("add", "--all")
    git("commit", "--quiet", "--message=one")
    program = trial.place / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    program.chmod(0o755)
    for setting in random.sample(SETTINGS, random.randint(1, len(SETTINGS))):
        git("config", setting, str(program))
    here = Path.cwd()
    os.chdir(place)
    failures = []
    try:
        commit = revision._find_commit("HEAD:net.py:net")
        assert commit is not None
        with revision._checked_out(commit) as tree:
            if (tree / "net.py").read_text() != "x = 1\n":
                failures.append("wrong: a file is not as the commit has it")
    except ModelError as error:
        failures.append(f"refused: {error}")
    finally:
        os.chdir(here)
    if mark.exists():
        failures.append("ran: a program of .git/config")
    return Outcome(part="repositories", outcomes={"read": 1}, failures=tuple(failures))


def stand_nowhere(trial: Trial, random: Random) -> Outcome:
    """Run commands in a deleted folder, with impossible or very long names, or in a terminal of unusual size."""
    place = _lay_out(trial)
    odd: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
        (("compare", "resnet18", "--db", "/proc/x.duckdb"), {}),
        (("compare", "resnet18", "--db", "/proc/self/fd/x.duckdb"), {}),
        (("hardware", "list", "-o", "/proc/self/out.txt"), {}),
        (("db", "export", "/proc/out"), {}),
        (("compare", "resnet18"), {"COLUMNS": random.choice(("1", "0", "-1", "2", "19", "9" * 12)), "LINES": "1"}),
        (("diff", f"{'a' * random.randint(1, 100_000)}:net.py:net", "resnet18"), {}),
        (("compare", "resnet18", "--db", "a\nb.duckdb"), {}),
        (("verify", "a\nb.json"), {}),
        (("explore", "resnet18", "--like", "tpu_v4", "--random", "1000000000", "--limit", "1"), {}),
        (("compare", f"{'a' * random.randint(200, 100_000)}.py:net"), {}),
    )
    arguments, extra = random.choice(odd)
    is_gone = random.random() < 0.3
    program = JOULEMAP
    if is_gone:
        script = "import os, sys; os.mkdir('gone'); os.chdir('gone'); os.rmdir(os.getcwd()); sys.path[:0] = {!r}; "
        paths = [one for one in sys.path if one]
        program = ("-c", script.format(paths) + "from joulemap.cli.app import main; main()")
    with Process.start(arguments, place, extra, program) as process:
        done = process.finish(SLOW_S)
    failures = _judge(place, done)
    part = "a folder that is gone" if is_gone else "places and terminals"
    return Outcome(part=part, outcomes={f"exit {done.returncode}": 1}, failures=tuple(failures))


WAYS: Final = (
    (forge_footer, 6), (change_shard, 4), (put_thing, 6), (fill_lake, 2), (name_database, 3), (name_outside, 3),
    (measure_oddly, 6), (configure_git, 2), (stand_nowhere, 3),
)  # fmt: skip


def attack(trial: Trial) -> Outcome:
    """Run a random attack by weight."""
    random = trial.random()
    way = random.choices([one for one, _ in WAYS], [weight for _, weight in WAYS])[0]
    return way(trial, random)


def prepare(stage: Path) -> None:
    """Create the lake and the database that attacks change."""
    from joulemap.wing.explore.lake.fill import fill
    from pond import Cell, evaluate_cell

    prepare_base(stage)
    if not (stage / LAKE).exists():
        fill(stage / LAKE, map(Cell, range(2)), evaluate_cell)
