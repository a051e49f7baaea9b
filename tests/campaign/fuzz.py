"""Random invalid inputs, judged by joulemap's answer.

A family returns inputs of one kind: the arguments of a command, and the files that they name.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import attrs

import fuzz
from campaign.mutate import mutate_bytes, mutate_json
from campaign.program import CACHE, DATABASE, TEMPORARY, list_faults, prepare_place, run, run_apart
from campaign.scene import ARCHIVE, BASE, prepare_base
from campaign.state import list_files, read_content
from campaign.trial import Outcome, Trial
from command import Done
from fuzz import RAN, Input
from joulemap.system.errors import ExitCode, JoulemapError

ALLOWED: Final = frozenset(ExitCode) - {ExitCode.INTERNAL, ExitCode.INTERRUPTED}
LONGEST: Final = 120_000
"""Maximum bytes of a word of a command line; the limit of Linux is 128 KiB."""

REREAD_FRACTION: Final = 0.05
"""Share of trials after which the whole database is read."""

SLOW_S: Final = 30.0
HIDDEN: Final = (".", f"{TEMPORARY}/", f"{CACHE}/.")
"""Prefixes of the names of temporary files."""

WEIGHTS: Final = {"options": 30, "hardware": 15, "calibration": 6, "measurements": 10, "query files": 5, "SQL": 20}


@attrs.frozen(kw_only=True)
class Family:
    """Inputs of one kind."""

    name: str
    weight: int
    """Relative frequency."""
    make: Callable[[Random, Path], Input]
    """Function that returns an input from random numbers and the prepared folder."""
    runs_code: bool = False


def ignoring_stage(draw: Callable[[Random], Input]) -> Callable[[Random, Path], Input]:
    """Return the function as one that also takes the prepared folder, and ignores it."""
    return lambda random, _stage: draw(random)


def draw_archive(random: Random, stage: Path) -> Input:
    """Return an archive with one changed file, with or without a corrected digest."""
    files = {path.name: path.read_bytes() for path in sorted((stage / ARCHIVE).iterdir())}
    manifest = json.loads(files["manifest.json"])
    name = random.choice(sorted(files))
    way = random.randrange(4)
    if name == "manifest.json" or way == 0:
        changed = mutate_json(random, manifest)
        text = json.dumps(changed)
        files["manifest.json"] = mutate_bytes(random, text.encode()) if random.random() < 0.3 else text.encode()
    elif way == 1:
        del files[name]
    else:
        other = random.choice(sorted(files))
        files[name] = files[other] if random.random() < 0.2 else mutate_bytes(random, files[name])
        if way == 2:
            new = f"{name.partition('-')[0]}-{hashlib.sha256(files[name]).hexdigest()[:16]}.parquet"
            manifest["files"][new] = manifest["files"].pop(name)
            files |= {new: files.pop(name), "manifest.json": json.dumps(manifest).encode()}
    return Input(["db", "import", "broken"], {f"broken/{name}": content for name, content in files.items()})


def draw_model(random: Random) -> Input:
    """Return a command with an invalid or unusual model file, name or input size."""
    import bad_model

    way = random.random()
    if way < 0.6:
        return Input(["model", "show", "own.py:net"], {"own.py": bad_model.bad_file(random)})
    if way < 0.8:
        return Input(["model", "show", bad_model.bad_name(random)])
    return Input(["model", "show", "mlp", "--input", bad_model.bad_input(random)])


def draw_program(random: Random) -> Input:
    """Return a damaged saved program."""
    import bad_model

    content = bad_model.damage_program(random, bad_model.save_program())
    return Input(["model", "show", "own.pt2"], {"own.pt2": content})


FAMILIES: Final = (
    *(Family(name=name, weight=WEIGHTS[name], make=ignoring_stage(draw)) for name, draw in fuzz.FAMILIES.items()),
    Family(name="archives", weight=4, make=draw_archive),
    Family(name="models", weight=7, make=ignoring_stage(draw_model), runs_code=True),
    Family(name="saved programs", weight=3, make=ignoring_stage(draw_program), runs_code=True),
)


def prepare(stage: Path) -> None:
    """Create the files from which inputs are changed."""
    prepare_base(stage)


def feed(trial: Trial) -> Outcome:
    """Run joulemap on one input of a family."""
    random = trial.random()
    family = random.choices(FAMILIES, [one.weight for one in FAMILIES])[0]
    return feed_family(trial, family, random)


def _hand_over(word: str) -> str:
    """Return a word that can be an argument: without zero bytes and surrogates, and at most `LONGEST` bytes."""
    return word.replace("\0", "").encode("utf-8", "replace")[:LONGEST].decode("utf-8", "ignore")


def feed_family(trial: Trial, family: Family, random: Random) -> Outcome:
    """Run joulemap on one input; it must answer, or refuse in one line and leave no files."""
    place = trial.place / "place"
    prepare_place(place)
    shutil.copyfile(trial.stage / BASE, place / DATABASE)
    for file in (trial.stage / CACHE).iterdir():
        if file.is_file():
            shutil.copyfile(file, place / CACHE / file.name)
    made = family.make(random, trial.stage)
    arguments = [_hand_over(word) for word in made.arguments]
    for name, content in made.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    started = time.monotonic()
    done = (run_apart if family.runs_code else run)(trial, arguments, place)
    seconds = time.monotonic() - started
    failures = _judge(done, seconds)
    if made.then and done.returncode == ExitCode.OK:
        failures += _judge(run(trial, made.then, place), 0.0)
    if (place / RAN).exists() and not family.runs_code:
        failures.append(f"ran: code that {' '.join(done.args[1:])[:80]!r} is handed")
    left = [
        name
        for name in list_files(place)
        if name.startswith(HIDDEN) and name != f"{TEMPORARY}/" and not name.startswith(tuple(filter(None, arguments)))
    ]
    if left:
        failures.append(f"debris: {', '.join(left)[:200]} after {' '.join(done.args[1:])[:80]!r}")
    if random.random() < REREAD_FRACTION:
        failures += _reread(trial.stage / BASE, place / DATABASE)
    return Outcome(part=family.name, outcomes={f"exit {done.returncode}": 1}, failures=tuple(failures))


def _judge(done: Done, seconds: float) -> list[str]:
    shown = repr(" ".join(done.args[1:])[:120])
    failures = list_faults(done)
    if not failures and done.returncode not in ALLOWED:
        failures.append(f"code: {shown} exit {done.returncode}: {done.stderr.strip()[-200:]}")
    if seconds > SLOW_S:
        failures.append(f"hang: {shown} took {seconds:.0f} s")
    is_table = not any(word in ("json", "csv", "parquet") for word in done.args)
    for name, text in (("stderr", done.stderr), ("stdout", done.stdout if is_table else "")):
        if "\x1b" in text or "\x07" in text:
            failures.append(f"escape: {shown} prints an escape on {name}")
    return [ascii(failure)[1:-1] for failure in failures]


def _reread(base: Path, path: Path) -> list[str]:
    """Return a failure if stored runs were lost or changed, else nothing."""
    try:
        before, after = read_content(base), read_content(path)
    except JoulemapError as error:
        return [f"lost: {error}"]
    changed = [key for key in before if after.get(key) != before[key]]
    return [f"lost: {len(changed)} of {len(before)} runs"] if changed else []
