"""Laws of a crowded database: what else is stored, and the order in which chips are named, change no answer."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import attrs

from joulemap.ask.plot import QUESTIONS
from laws.door import BRIEF, SERVERS, Doors, _of
from laws.pair import FORMS, Line, draw_line, list_metrics
from laws.panel import draw_chips, find_chip, list_chips

CHEAP: Final = (
    "resnet18", "mlp", "conv_block", "mobilenet_v2", "squeezenet1_0", "attention_head", "gemm(m=1,n=512,k=512)",
)  # fmt: skip
"""Models whose runs take little time to store."""

TWO_MODELS: Final = "diff"

PLOT, REPORT, HERE = "plot", "report", "here"
"""Commands that draw a figure, write a page and find chips, beside those whose lines draw options."""

RARE: Final = {TWO_MODELS: 0.1, PLOT: 0.15, REPORT: 0.03, HERE: 0.07}
"""Command -> its share of the questions; a page asks as many questions as it has chapters, each of some seconds."""

MACHINES: Final = tuple(sorted(Path(__file__).parents[1].joinpath("here", "machine").glob("*.json")))
"""Recorded machines."""

PAGE: Final = "page.html"

MARKUP: Final = re.compile(r"<(script|style|svg)\b.*?</\1>|<[^>]*>|\d[\d-]+ \d+:\d+ UTC", re.DOTALL)
"""What people do not read on a page, and when it was written."""

BEFORE: Final = (
    "compare", "recommend", "sweep", "pareto", "cost", "utilization", "analyze", "edp", "fusion", "explain",
)  # fmt: skip
"""Commands that store the other runs, with and without ledgers."""

SETTINGS: Final = (
    (), ("--batch=1",), ("--batch=8",), ("--precision=fp16",), ("--precision=int8",), ("--precision=bf16",),
    ("--runtime=eager",), ("--runtime=engine",), ("--boundary=system",), ("--boundary=chip",), ("--set=clock=x0.8",),
    ("--matmul-precision=highest",), ("--calibration=none",),
)  # fmt: skip
"""Options of the questions that store other runs of a model."""

SERVED: Final = (("--batch=1",), ("--batch=4",), ("--engine=llamacpp",), ("--prompt=128",))
"""Options of those that store other runs of a language model."""

RUN: Final = re.compile(r"(^|_)(run_ids?|runs?|ids?|tied|equal|knee|of|run_a|run_b)$")
"""Names of fields that hold ids of runs."""

NUMBER: Final = re.compile(r"-?\d+")

TOLD: Final = re.compile(r"(?<=run_id=)\d+|(?<=run_[ab]=)\d+|(?<=run )\d+\b|(?<=db diff )\d+ \d+|(?<=\s)\d+$")
"""Ids of runs in texts: those of a command, and the last column of a table."""

APART: Final = frozenset({"created_at", "seconds", "points_per_s", "tally"})
"""Fields that differ by design: dates and times of an evaluation, and how many runs it found stored."""

ORDERED: Final = frozenset({"explain", "flip", "place", "explore", TWO_MODELS, "plot waterfall", "plot flip"})
"""Commands to which the first chip means something else than the second, such as that whose change is explained."""

AS_TYPED: Final = frozenset({"facts", "notes", "asked", "runs", "place"})
"""Fields that name chips in the order of the question, beside what people read first."""


Numbers = dict[tuple[bool, bool, int], int]
"""Ids of facts, of workloads and of runs -> their numbers in a document."""


LISTING: Final = ("how_sure", "unsupported", "refusal", "description")
"""Fields whose sentences list chips in the order of the question: their words are compared."""


def draw_question(rng: random.Random) -> Line:
    """Return a random command line about a small model; many have no more options than the command needs, or rank chips
    that are alike.
    """
    (rare,) = rng.choices((*RARE, ""), (*RARE.values(), 1.0 - sum(RARE.values())))
    if rare:
        return draw_rare(rng, rare)
    line = draw_line(rng)
    form = FORMS[line.command]
    models = [one for one in form.models if one in CHEAP] or list(form.models[:1])
    words = (rng.choice(models), *line.words[1:]) if models else line.words
    metrics = [] if form.is_served or form.chips or len(words) < 2 else list_metrics(line.command)
    if metrics and rng.random() < 0.4:
        metric = rng.choice((*metrics, *(one for one in metrics if one.endswith("memory"))))
        name, _, value = metric.partition("=")
        alike = draw_alike(rng, len(words) - 1)
        return Line(line.command, (words[0], *alike), (*line.options[: len(form.given)], (name, value)))
    needed = {form.chips, *(one.partition("=")[0] for one in form.given)}
    kept = line.options if rng.random() < 0.5 else tuple(one for one in line.options if one[0] in needed)
    return attrs.evolve(line, words=words, options=kept)


def draw_rare(rng: random.Random, command: str) -> Line:
    """Return a random command line of one of `RARE`, about few chips."""
    chips, model = draw_chips(rng, 2), rng.choice(CHEAP)
    if command == TWO_MODELS:
        return Line(command, (*rng.sample(CHEAP, 2), *chips), ())
    if command == HERE:
        return Line(command, (model,), (("--from", str(rng.choice(MACHINES))),))
    if command == PLOT:
        figure = rng.choice(sorted(QUESTIONS))
        command, chips = f"{PLOT} {figure}", chips[: QUESTIONS[figure].hardware_count]
    return Line(command, (model, *chips), (("--batch", rng.choice("128")),))


def draw_alike(rng: random.Random, count: int) -> list[str]:
    """Return chips of one microarchitecture, of which several may have equal values; others where it has too few."""
    first = find_chip(rng.choice(list_chips()))
    known = [one for one in list_chips() if find_chip(one).microarchitecture == first.microarchitecture]
    chips = [*rng.sample(known, min(count, len(known))), *draw_chips(rng, count)]
    return list(dict.fromkeys(chips))[:count]


def split_words(line: Line) -> tuple[list[str], list[str]]:
    """Return the models and the chips of a line."""
    form = FORMS.get(line.command)
    count = 1 + (line.command == TWO_MODELS) if form is None else len(form.models[:1])
    chips = dict(line.options)[form.chips].split(",") if form is not None and form.chips else line.words[count:]
    return list(line.words[:count]), list(chips)


def turn(line: Line) -> Line | None:
    """Return a line with its chips in the opposite order; None where the order has a meaning."""
    models, chips = split_words(line)
    if len(chips) < 2 or line.command in ORDERED or "--by" in dict(line.options):
        return None
    return attrs.evolve(line, words=(*models, *reversed(chips)))


def draw_before(rng: random.Random, line: Line) -> Iterator[tuple[str, ...]]:
    """Yield commands that store other runs: some of the same chips and model, at other settings and beside others."""
    models, chips = split_words(line)
    turned = turn(line)
    if turned is not None and rng.random() < 0.5:
        yield turned.spell()
    is_served = line.command == "llm"
    for _ in range(rng.randint(1, 3)):
        others = rng.sample(SERVERS, 2) if is_served or line.command == "train" else draw_chips(rng, 2)
        some = list(dict.fromkeys((*rng.sample(chips, rng.randint(0, len(chips))), *others)))
        rng.shuffle(some)
        if is_served:
            yield ("llm", *models, *some[:2], *rng.choice(SERVED))
            continue
        command = rng.choice(BEFORE)
        most = FORMS[command].most
        known = [one for one in models if not one.startswith("llama")]
        words = (command, rng.choice((*known, *known, *CHEAP)), *some[: min(most, len(some))])
        yield (*words, *rng.choice(SETTINGS))
        given = [f"{name}={value}" if value else name for name, value in line.options]
        if rng.random() < 0.4:
            yield (*words, *given)


def rename(value: Any, runs: Numbers, name: str = "", is_told: bool = False) -> Any:
    """Return a document with ids of runs in the order of their appearance, without what differs by design.

    Facts number the runs of a served model otherwise than its rows do.
    """
    if isinstance(value, dict):
        if value and all(NUMBER.fullmatch(key) for key in value):
            return {
                _number(int(key), runs, name, is_told): rename(one, runs, key, is_told) for key, one in value.items()
            }
        return {
            key: rename(one, runs, key, is_told or key in ("facts", "runs"))
            for key, one in value.items()
            if key not in APART
        }
    if isinstance(value, list):
        return [rename(one, runs, name, is_told) for one in value]
    if isinstance(value, str):
        return TOLD.sub("#", value)
    if isinstance(value, int) and not isinstance(value, bool) and RUN.search(name):
        return _number(value, runs, name, is_told)
    return value


def _number(one: int, runs: Numbers, name: str, is_told: bool) -> int:
    return runs.setdefault((is_told, name == "workload_id", one), len(runs) + 1)


def gather(value: Any, name: str = "") -> Any:
    """Return a document without ids of runs, each list in one order, and commands and `LISTING` as words."""
    if isinstance(value, dict):
        return {key: gather(one, key) for key, one in value.items() if not RUN.search(key) and key not in AS_TYPED}
    if isinstance(value, list):
        return sorted((gather(one, name) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    if isinstance(value, str) and (name in LISTING or value.startswith("joulemap")):
        return sorted(re.split(r"[\s,;]+", value))
    return value


def find_difference(one: Any, other: Any, path: str = "") -> str:
    """Return where two documents differ first, and how; empty if they are equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(f"{path}.{key}", one.get(key), other.get(key)) for key in {**one, **other}]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{path}[{place}]", *pair) for place, pair in enumerate(zip(one, other, strict=True))]
    else:
        return "" if one == other else f"{path}: {str(one)[:300]} | {str(other)[:300]}"
    return next(filter(None, (find_difference(first, second, place) for place, first, second in pairs)), "")


def read_answer(doors: Doors, words: tuple[str, ...]) -> dict[str, Any]:
    """Return the exit code of a command with what it says, as JSON and with all details, or its refusal; of a page, its
    decision and text.
    """
    is_page = words[0] == REPORT
    form: tuple[str, ...] = BRIEF
    if words[0] in (PLOT, REPORT):
        form = (f"--output={PAGE}",) if is_page else ()
    with patch("joulemap.show.webpage.page.is_installed", return_value=False):  # images say no more than text
        code, out, messages = doors.say(*words, *form)
    if code:
        return {"code": code, "refusal": messages}
    if is_page:
        answer, text = messages, MARKUP.sub("\n", doors.folder.joinpath(PAGE).read_text())
    else:
        answer = rename(json.loads(out), {})
        text = "" if words[0] == PLOT else doors.say(*words, "--show=details")[1]
    lines = [" ".join(TOLD.sub("#", one).split()) for one in text.splitlines()]
    return {"code": code, "answer": answer, "lines": [*filter(None, lines)]}


def try_stored(doors: Doors, rng: random.Random) -> None:
    """Ask a random command line in an empty database, in one with other runs, and with its chips in another order."""
    line = draw_question(rng)
    words, turned = line.spell(), turn(line)
    before = list(draw_before(rng, line))
    empty, crowded, other = (Doors(doors.court) for _ in range(3))
    try:
        answer = read_answer(empty, words)
        for one in before:
            crowded.say(*one)
        crowd = find_difference(answer, read_answer(crowded, words))
        doors.court.same("what else is stored", crowd, "", _of(*before, words))
        if turned is not None:
            both = [gather(one) for one in (answer, read_answer(other, turned.spell()))]
            first, second = ({key: one for key, one in told.items() if key != "lines"} for told in both)
            order = find_difference(first, second)
            doors.court.same("order of chips", order, "", _of(words, turned.spell()))
    finally:
        for each in (empty, crowded, other):
            shutil.rmtree(each.folder)
