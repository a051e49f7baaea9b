"""Damaged database files: every command must answer correctly or refuse."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

import damage
from campaign import fault
from campaign.fault import Fault
from campaign.program import CACHE, DATABASE, Process, check, list_faults, prepare_place, run, succeed
from campaign.scene import BASE, COMPARE, SCENES, prepare_base, set_up
from campaign.trial import STATED, Outcome, Trial, UnavailableError
from command import Done
from damage import BLOCK_BYTES, HEADER_BYTES
from joulemap.system.errors import ExitCode

DATABASE_CODE: Final = 5
CHECK_CODE: Final = 6

COMMITTED: Final = "committed.duckdb"
"""Database whose last commit is only in its log."""

ANSWERS: Final = "answers.json"
QUESTIONS: Final = (
    ("sql", "SELECT model, hardware, precision, energy_j, latency_s, peak_memory_bytes FROM runs ORDER BY ALL"),
    ("sql", "SELECT run_id, category, action, sum(line_energy_fj) AS e FROM energy_ledger GROUP BY ALL ORDER BY ALL"),
    ("sql", "SELECT run_id, operator_index, operation, latency_s, energy_j FROM operator_results ORDER BY ALL"),
    ("sql", "SELECT hardware, quantity, value, unit, source FROM hardware_facts ORDER BY ALL"),
    ("analyze", "resnet18", "h100_sxm5"),
    ("compare", "resnet18"),
    ("compare", "alexnet", "--precision", "fp16"),
    ("hardware", "show", "l4"),
    ("measurements", "list", "--hardware", "l4"),
    ("edp", "resnet18", "tpu_v4"),
)
ASKED_COUNT: Final = 3
LOG_FRACTION: Final = 0.15
"""Share of trials that damage the log of a database, or a database with a log."""


def flip_header(content: bytearray, random: Random) -> None:
    """Change one to eight bytes in the headers."""
    for _ in range(random.randint(1, 8)):
        content[random.randrange(min(len(content), HEADER_BYTES))] ^= random.randint(1, 255)


def flip_bytes(content: bytearray, random: Random) -> None:
    """Change one to eight bytes."""
    for _ in range(random.randint(1, 8)):
        content[random.randrange(len(content))] ^= random.randint(1, 255)


def cut_blocks(content: bytearray, random: Random) -> None:
    """Cut whole blocks off the end."""
    del content[len(content) - BLOCK_BYTES * random.randint(1, 4) :]


def swap_blocks(content: bytearray, random: Random) -> None:
    """Exchange two whole blocks."""
    count = (len(content) - HEADER_BYTES) // BLOCK_BYTES
    starts = (HEADER_BYTES + BLOCK_BYTES * index for index in random.sample(range(count), 2))
    first, second = (slice(start, start + BLOCK_BYTES) for start in starts)
    content[first], content[second] = content[second], content[first]


def append(content: bytearray, random: Random) -> None:
    """Append random bytes."""
    content += random.randbytes(random.randint(1, BLOCK_BYTES))


WAYS: Final[Mapping[str, Callable[[bytearray, Random], object]]] = {
    "bytes changed": flip_bytes,
    "header": flip_header,
    "bit flipped": damage.flip_bit,
    "page cleared": damage.clear_page,
    "page scrambled": damage.scramble_page,
    "page moved": damage.move_page,
    "block moved": damage.move_block,
    "blocks swapped": swap_blocks,
    "blocks cut off": cut_blocks,
    "cut": damage.cut_end,
    "noise after the end": append,
}
WHOLE_BLOCK_WAYS: Final = ("block moved", "blocks swapped")
"""Damage that only `db check` promises to find: each block is intact by its own checksum."""
LOG_WAYS: Final = ("bytes changed", "bit flipped", "page cleared", "page scrambled", "cut", "noise after the end")


def prepare(stage: Path) -> None:
    """Create the databases to damage, and store their correct answers."""
    prepare_base(stage)
    if (stage / ANSWERS).exists():
        return
    answers = {"whole": _ask_all(stage, BASE)}
    with contextlib.suppress(UnavailableError):
        fault.build(stage)
        _leave_log(stage)
        answers["committed"] = _ask_all(stage, COMMITTED)
    (stage / ANSWERS).write_text(json.dumps(answers), encoding="utf-8")


def ask_damaged(trial: Trial) -> Outcome:
    """Damage a database, run some commands on it, and check it."""
    random = trial.random()
    answers: dict[str, dict[str, str]] = json.loads((trial.stage / ANSWERS).read_text(encoding="utf-8"))
    has_log = "committed" in answers and random.random() < LOG_FRACTION
    place = trial.place / "place"
    prepare_place(place)
    shutil.copytree(trial.stage / CACHE, place / CACHE, dirs_exist_ok=True)
    for file in _files(trial.stage, COMMITTED if has_log else BASE):
        shutil.copyfile(file, place / f"{DATABASE}{file.suffix if file.suffix == '.wal' else ''}")
    damaged = place / DATABASE
    if has_log and random.random() < 0.5:
        damaged = place / f"{DATABASE}.wal"
    way = random.choice(LOG_WAYS if damaged.suffix == ".wal" else tuple(WAYS))
    content = bytearray(damaged.read_bytes())
    WAYS[way](content, random)
    damaged.write_bytes(content)
    allowed = [answers["whole"], *((answers["committed"],) if has_log else ())]
    outcomes: Counter[str] = Counter()
    failures = []
    for question in random.sample(QUESTIONS, ASKED_COUNT):
        word, broken = _judge(run(trial, question, place), [one[_name(question)] for one in allowed])
        outcomes[word] += 1
        failures += broken
    checked = check(trial, place)
    if checked.returncode not in (0, DATABASE_CODE, CHECK_CODE):
        failures.append(f"code: db check exit {checked.returncode}: {checked.stderr.strip()[-200:]}")
    elif checked.returncode != CHECK_CODE:
        failures += list_faults(checked)
    is_found = checked.returncode != 0
    outcomes["db check finds it" if is_found else "db check passes"] += 1
    if any(one.startswith("wrong") for one in failures):
        word = "db check finds it" if is_found else "db check passes it"
        name = STATED if is_found and way in WHOLE_BLOCK_WAYS else "wrong"
        failures = [f"{name}{one[5:]} ({word})" if one.startswith("wrong") else one for one in failures]
    return Outcome(part=f"log, {way}" if damaged.suffix == ".wal" else way, outcomes=outcomes, failures=tuple(failures))


def _judge(done: Done, allowed: list[str]) -> tuple[str, list[str]]:
    if done.returncode == 0:
        if done.stdout in allowed:
            return "right", []
        return "wrong", [f"wrong: {' '.join(done.args[1:])[:120]!r} answers something else"]
    if done.returncode == ExitCode.INTERNAL and "db check" in done.stderr and len(done.stderr.splitlines()) == 1:
        return "refused by the engine", []
    faults = list_faults(done)
    if faults:
        return "failed", faults
    if done.returncode != DATABASE_CODE:
        return "failed", [f"code: {' '.join(done.args[1:])[:80]!r} exit {done.returncode}: {done.stderr.strip()[:200]}"]
    return "refused", []


def _name(question: tuple[str, ...]) -> str:
    return " ".join(question)


def _files(stage: Path, name: str) -> list[Path]:
    return [file for file in (stage / name, stage / f"{name}.wal") if file.exists()]


def _ask_all(stage: Path, name: str) -> dict[str, str]:
    """Return command -> answer on an intact database."""
    place = stage / "asked" / "place"
    prepare_place(place)
    shutil.copytree(stage / CACHE, place / CACHE, dirs_exist_ok=True)
    answers = {}
    for question in QUESTIONS:
        for file in _files(stage, name):
            shutil.copyfile(file, place / f"{DATABASE}{file.suffix if file.suffix == '.wal' else ''}")
        answers[_name(question)] = succeed(question, place).stdout
    shutil.rmtree(place.parent)
    return answers


def _leave_log(stage: Path) -> None:
    """Stop a command between its commit and the checkpoint after it, so that the commit is only in the log."""
    scene = SCENES[0]
    assert scene.commands == (COMPARE,)
    place = stage / "logged" / "place"
    set_up(scene, stage, place)
    program, arguments = scene.program(stage, place.with_name("log"))
    chosen = Fault(kind="before", call=1, only=f"pwrite64 /{DATABASE}")
    with Process.start(arguments, place, chosen.arm(stage, place, place.with_name("ledger")), program) as process:
        process.finish()
    for file in _files(place, DATABASE):
        shutil.copyfile(file, stage / f"{COMMITTED}{'.wal' if file.suffix == '.wal' else ''}")
    shutil.rmtree(place.parent)
