"""Inputs that nobody means: options, files and statements, each judged by what joulemap says to it.

A family makes inputs of one sort: the arguments of a command, and the files that they name.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final

import attrs

from campaign.mutate import draw_word, mutate_bytes, mutate_json, mutate_text
from campaign.option import draw_command
from campaign.program import CACHE, DATABASE, TEMPORARY, list_faults, prepare_place, run, run_apart
from campaign.scene import ARCHIVE, BASE, prepare_base
from campaign.seed import DEEDS, ERRORS, MODELS, STATEMENTS
from campaign.state import list_files, read_content
from campaign.trial import Outcome, Trial
from command import Done
from joulemap.errors import ExitCode, JoulemapError
from joulemap.resource import folder

ALLOWED: Final = frozenset(ExitCode) - {ExitCode.INTERNAL, ExitCode.INTERRUPTED}
REREAD_FRACTION: Final = 0.05
"""Part of the trials after which the database is read whole."""

SLOW_S: Final = 30.0
HIDDEN: Final = (".", f"{TEMPORARY}/", f"{CACHE}/.")
"""How the names of drafts begin."""

FILE: Final = "{file}"
CATALOGUE: Final = Path(__file__).parents[2] / "src" / "joulemap" / "catalog" / "data"
QUERIES: Final = folder("queries")
PROGRAM: Final = "program.pt2"


@attrs.frozen
class Input:
    """What one person types, and the files that lie there: name -> content."""

    arguments: Sequence[str]
    files: Mapping[str, bytes] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Family:
    """Inputs of one sort."""

    name: str
    weight: int
    make: Callable[[Random, Path], Input]
    """Given what was prepared, returns an input."""
    runs_code: bool = False


Content = Callable[[Random], bytes]
Command = tuple[str, ...]


def of_arguments(draw: Callable[[Random], Sequence[str]]) -> Callable[[Random, Path], Input]:
    """Return what makes inputs of arguments alone."""
    return lambda random, _stage: Input(draw(random))


def of_file(name: str, draw: Content, commands: Sequence[Command]) -> Callable[[Random, Path], Input]:
    """Return what makes inputs of one file and a command about it, in which {file} is its name."""

    def make(random: Random, _stage: Path) -> Input:
        content = draw(random)
        return Input([word.replace(FILE, name) for word in random.choice(commands)], {name: content})

    return make


def of_examples(pattern: str, root: Path) -> Content:
    """Return what changes one of the files that ship."""
    examples = sorted(root.glob(pattern))

    def draw(random: Random) -> bytes:
        return mutate_text(random, random.choice(examples).read_text(encoding="utf-8"))

    return draw


def draw_model(random: Random) -> bytes:
    """Return a file of a model."""
    text = random.choice(MODELS)
    text = text.replace("{error}", random.choice(ERRORS)).replace("{deed}", random.choice(DEEDS))
    return mutate_text(random, text) if random.random() < 0.5 else text.encode()


def draw_statement(random: Random) -> Sequence[str]:
    """Return a command that runs a statement."""
    text = random.choice(STATEMENTS)
    if random.random() < 0.6:
        text = mutate_text(random, text).decode("utf-8", errors="replace").replace("\0", "")
    words = ["sql", text]
    while random.random() < 0.3:
        name = random.choice(("model", "batch", draw_word(random)))
        words += ["-p", f"{name}={random.choice(('8', 'resnet18', '[[1]]', draw_word(random)))}".replace("\0", "")]
    if random.random() < 0.3:
        words += ["--format", random.choice(("json", "csv", "markdown"))]
    return words


def draw_archive(random: Random, stage: Path) -> Input:
    """Return an archive with one file changed, its digest repaired or not."""
    files = {path.name: path.read_bytes() for path in sorted((stage / ARCHIVE).iterdir())}
    manifest = json.loads(files["manifest.json"])
    name = random.choice(sorted(files))
    way = random.randrange(4)
    if name == "manifest.json" or way == 0:
        changed = mutate_json(random, manifest)
        text = json.dumps(changed)
        files["manifest.json"] = mutate_text(random, text) if random.random() < 0.3 else text.encode()
    elif way == 1:
        del files[name]
    else:
        other = random.choice(sorted(files))
        files[name] = files[other] if random.random() < 0.2 else mutate_bytes(random, files[name])
        if way == 2:
            manifest["entries"][Path(name).stem]["digest"] = hashlib.sha256(files[name]).hexdigest()
            files["manifest.json"] = json.dumps(manifest).encode()
    return Input(["db", "import", "broken"], {f"broken/{name}": content for name, content in files.items()})


def draw_program(random: Random, stage: Path) -> Input:
    """Return a saved program with some bytes changed."""
    content = mutate_bytes(random, (stage / PROGRAM).read_bytes())
    return Input(["model", "show", "changed.pt2"], {"changed.pt2": content})


CHECK_HARDWARE: Final[Sequence[Command]] = (
    ("hardware", "check", FILE),
    ("hardware", "show", FILE),
    ("compare", "alexnet", "--hardware", FILE),
)
CALIBRATED: Final[Sequence[Command]] = (
    ("compare", "alexnet", "--hardware", "h200_sxm", "--calibration", FILE),
    ("hardware", "show", "h200_sxm", "--calibration", FILE),
)

FAMILIES: Final = (
    Family(name="options", weight=34, make=of_arguments(draw_command)),
    Family(
        name="hardware", weight=15, make=of_file("own.toml", of_examples("hardware/*.toml", CATALOGUE), CHECK_HARDWARE)
    ),
    Family(
        name="calibration", weight=8, make=of_file("own.toml", of_examples("calibration/*.toml", CATALOGUE), CALIBRATED)
    ),
    Family(
        name="measurements",
        weight=10,
        make=of_file(
            "own.csv", of_examples("measurement/h200_probes.csv", CATALOGUE), (("measurements", "import", FILE),)
        ),
    ),
    Family(
        name="query files",
        weight=4,
        make=of_file(
            "own/topic/name.v1.sql", of_examples("*/*.sql", QUERIES), (("query", "list", "--queries", "own"),)
        ),
    ),
    Family(name="SQL", weight=20, make=of_arguments(draw_statement)),
    Family(name="archives", weight=4, make=draw_archive),
    Family(
        name="models",
        weight=8,
        make=of_file("own.py", draw_model, (("model", "show", f"{FILE}:make", "--input", "1,8"),)),
        runs_code=True,
    ),
    Family(name="saved programs", weight=3, make=draw_program, runs_code=True),
)


def prepare(stage: Path) -> None:
    """Make what inputs are changed from."""
    prepare_base(stage)
    if not (stage / PROGRAM).exists():
        import torch

        module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        torch.export.save(torch.export.export(module, (torch.zeros(1, 8),)), stage / PROGRAM)


def feed(trial: Trial) -> Outcome:
    """Give joulemap one input of a family."""
    random = trial.random()
    family = random.choices(FAMILIES, [one.weight for one in FAMILIES])[0]
    return feed_family(trial, family, random)


def feed_family(trial: Trial, family: Family, random: Random) -> Outcome:
    """Give joulemap one input; it must answer, or refuse in one line, and leave nothing."""
    place = trial.place / "place"
    prepare_place(place)
    shutil.copyfile(trial.stage / BASE, place / DATABASE)
    for file in (trial.stage / CACHE).iterdir():
        if file.is_file():
            shutil.copyfile(file, place / CACHE / file.name)
    made = family.make(random, trial.stage)
    for name, content in made.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    started = time.monotonic()
    done = (run_apart if family.runs_code else run)(trial, made.arguments, place)
    seconds = time.monotonic() - started
    failures = _judge(done, seconds)
    left = [
        name
        for name in list_files(place)
        if name.startswith((".", f"{TEMPORARY}/", f"{CACHE}/.")) and name != f"{TEMPORARY}/"
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
    """Return what is not as it was among the runs that were there."""
    try:
        before, found = read_content(base), read_content(path)
    except JoulemapError as error:
        return [f"lost: {error}"]
    changed = [key for key in before if found.get(key) != before[key]]
    return [f"lost: {len(changed)} of {len(before)} runs"] if changed else []
