"""Laws of command lines: options drawn two at a time from the command line's own tables, over all commands.

A new option is drawn without a change here if it is a flag, has choices or is a number; else it needs values in
`options.toml`. Relations compare an answer with itself and with that of the same question typed otherwise.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
from typer.main import get_command

from joulemap.cli.app import build
from joulemap.cli.overview import find_commands
from joulemap.cli.tool import list_tools
from joulemap.domain.metric import METRIC
from joulemap.system.errors import ExitCode
from joulemap.system.record import frozen
from laws.court import Court
from laws.door import BRIEF, DECODERS, SERVERS, Doors, _of
from laws.panel import OPERATORS, draw_chips, find_chip

VALUES: Final[Mapping[str, list[str]]] = tomllib.loads(Path(__file__).with_name("options.toml").read_text())

HIDDEN: Final = frozenset(
    {"--db", "--format", "--output-file", "--quiet", "--verbose", "--help", "--show", "--hardware"}
    | {"--model", "--limit", "--jobs", "--timeout", "--max-rows"}
    | {
        "--chip-link",
        "--random",
        "--search",
        "--points",
    }
)
"""Options that say where or how an answer is written, and those that name files or take minutes."""

CHIP: Final = "{chip}"
"""Part of a value that stands for one of the chips of the line."""

BARE: Final = ("--show=wide", "--show=notes", "--show=details")
"""Flags that change only what people see."""


@frozen(kw_only=True)
class Form:
    """What a command needs before its options."""

    models: tuple[str, ...]
    least: int
    most: int
    """Minimum and maximum number of chips."""
    given: tuple[str, ...] = ()
    """Options without which the command refuses."""
    chips: str = ""
    """Option that names the chips; empty for arguments."""
    is_served: bool = False


NETWORKS: Final = ("resnet18", "mobilenet_v2", "mlp", "vit_b_16", "squeezenet1_0", "alexnet", "attention_head")

FORMS: Final = {
    "compare": Form(models=(*NETWORKS, *OPERATORS), least=1, most=4),
    "recommend": Form(models=NETWORKS, least=1, most=4),
    "sweep": Form(models=NETWORKS, least=1, most=3),
    "pareto": Form(models=NETWORKS, least=1, most=4),
    "cost": Form(models=NETWORKS, least=1, most=4),
    "explain": Form(models=(*NETWORKS, *OPERATORS), least=2, most=2),
    "flip": Form(models=NETWORKS, least=2, most=2),
    "analyze": Form(models=(*NETWORKS, *OPERATORS), least=1, most=1),
    "edp": Form(models=NETWORKS, least=1, most=1),
    "utilization": Form(models=NETWORKS, least=1, most=3),
    "fusion": Form(models=NETWORKS, least=1, most=1),
    "sensitivity": Form(models=NETWORKS, least=1, most=1),
    "llm": Form(models=DECODERS, least=1, most=2, is_served=True),
    "fleet": Form(models=NETWORKS, least=1, most=3, given=("--rate=100/s", "--p99=50ms")),
    "train": Form(
        models=("resnet18", "mobilenet_v2", "llama-3.2-1b"), least=1, most=2, given=("--batch=8",), is_served=True
    ),
    "place": Form(models=NETWORKS, least=2, most=2, given=("--link=pcie4x16",), chips="--on"),
    "explore": Form(models=NETWORKS, least=1, most=1, given=("--vary=tdp=x0.5,x1",), chips="--like"),
    "model show": Form(models=NETWORKS, least=0, most=0),
    "hardware list": Form(models=(), least=0, most=0),
}
"""Command -> what a line of it begins with."""


@frozen
class Line:
    """Command line: words before the options, and the options."""

    command: str
    words: tuple[str, ...]
    options: tuple[tuple[str, str], ...]

    def spell(self, *more: str) -> tuple[str, ...]:
        """Return the words of the line, with `more` at its end."""
        options = (f"{name}={value}" if value else name for name, value in self.options)
        return (*self.command.split(), *self.words, *options, *more)


def _list_parameters(name: str) -> list[Any]:
    found: Any = get_command(build(name.split()))
    for word in name.split():
        found = found.commands[word]
    return list(found.params)


@cache
def list_options(command: str) -> dict[str, Any]:
    """Return option -> parameter of a command, as its help lists them."""
    parameters = (one for one in _list_parameters(command) if one.param_type_name == "option" and not one.hidden)
    return {max(one.opts, key=len): one for one in parameters}


def draw_value(rng: random.Random, name: str, parameter: Any) -> str | None:
    """Return a value for an option, empty for a flag; None for an option that is not drawn."""
    if name in HIDDEN or parameter.type.name in ("path", "file"):
        return None
    if parameter.is_flag:
        return ""
    if name in VALUES:
        return rng.choice(VALUES[name])
    if choices := getattr(parameter.type, "choices", None):
        return str(rng.choice(list(choices)))
    if parameter.type.name in ("integer", "float", "integer range", "float range"):
        return rng.choice(("0", "1", "2", "3", "1000"))
    return None


def draw_line(rng: random.Random) -> Line:
    """Return a random command line with up to two options in addition to those that its command needs."""
    command = rng.choice(sorted(FORMS.keys() & {*find_commands(), "model show", "hardware list"}))
    form = FORMS[command]
    count = rng.randint(form.least, form.most)
    chips = rng.sample(SERVERS, count) if form.is_served else draw_chips(rng, count) if count else []
    known = list_options(command)
    options = [(name, value) for name, _, value in (one.partition("=") for one in form.given)]
    for name in rng.sample(sorted(known), min(len(known), rng.choice((0, 1, 2, 2, 2)))):
        value = draw_value(rng, name, known[name])
        if value is not None and name not in dict(options):
            options.append((name, value.replace(CHIP, rng.choice(chips) if chips else "l4")))
    options += [(form.chips, ",".join(chips))] if form.chips else []
    words = [rng.choice(form.models)] if form.models else []
    return Line(command, tuple(words + ([] if form.chips else chips)), tuple(options))


def try_pairs(doors: Doors, rng: random.Random) -> None:
    """Ask a random command line, and check its answer or its refusal."""
    line = draw_line(rng)
    court, words = doors.court, line.spell()
    code, out, messages = doors.say(*words)
    court.same("an answer or a line", _find_fault(code, out, messages), "", _of(words))
    other = rng.choice(sorted(FORMS))
    foreign = sorted({*list_options(other)} - {*list_options(line.command)} - HIDDEN - {"-v", "-q", "-h"})
    if foreign:
        name = rng.choice(foreign)
        value = draw_value(rng, name, list_options(other)[name])
        asked = line.spell(f"{name}={value}" if value else name)
        refused, _, _ = doors.say(*asked)
        court.same("listed options", refused, int(ExitCode.USAGE), _of(asked))
    _compare_tool(court, line)
    if code:
        doors.court.refused[f"{line.command}: {messages.strip()[:60]}"] += 1
        return
    asked = (*words, "--format", "json")
    done, text, _ = doors.say(*asked)
    answer = json.loads(text) if done == 0 else None
    court.same("machine formats", answer is not None, True, _of(asked))
    if not isinstance(answer, dict):
        return
    court.same("numbers of an answer", list(_list_odd(answer)), [], _of(asked))
    _compare_table(doors, words, answer)
    _compare_default(doors, line, answer, rng)
    if answer.get("answer") and out:
        told = " ".join(out.split())
        court.same("one first line", told.startswith(" ".join(answer["answer"].split())), True, _of(words))
    _compare_order(doors, line, answer)
    for step in rng.sample(answer.get("next_steps", []), min(2, len(answer.get("next_steps", [])))):
        court.same("next runs", doors.say(*shlex.split(step)[1:])[0], 0, _of(words, shlex.split(step)[1:]))
    if line.command == "recommend":
        _check_limits(doors, words, answer)
    if line.command == "pareto":
        _check_front(doors, words, answer)


def _compare_tool(court: Court, line: Line) -> None:
    """Spell a call of the command's tool with 0 for each option: it is a word of the command line."""
    tool = list_tools().get(line.command.replace(" ", "_"))
    for key, parameter in tool.parameters.items() if tool is not None else ():
        if tool is not None and parameter.param_type_name == "option" and not parameter.is_flag:
            needed = {one: "l4" for one, other in tool.parameters.items() if other.required}
            spelled = " ".join(tool.spell({**needed, key: 0}))
            court.same(
                "MCP and commands", f"{max(parameter.opts, key=len)} 0" in spelled, True, _of((line.command, key))
            )


EDGES: Final[Mapping[str, tuple[str, ...]]] = {
    "--site": ("grid-gco2-per-kwh=0", "host-share=0", "pue=1", "electricity=0USD/kWh", "lifetime=0.001"),
    "--variation": ("1e-300",),
    "--prefix-hit": ("0",),
}
"""Option -> the least values that it takes."""

GRID: Final = "grid-gco2-per-kwh="

RANKED: Final = ("--objective", "--metric", "--x")
"""Options that name what ranks."""


def try_edges(doors: Doors, rng: random.Random) -> None:
    """Ask commands with options and site values at their least, also to rank by what is then 0; and a command with its
    hidden options, and with its details.
    """
    least = {one: {*list_options(one)} & {*EDGES} for one in FORMS}
    ranked = {one: metric for one in FORMS for metric in list_metrics(one) if metric.endswith("carbon")}
    command = rng.choice([one for one, names in least.items() if names])
    others = rng.choice(list_metrics(command) or [""])
    for one, metric in (*ranked.items(), (command, others)):
        edges = [
            f"{name}={edge}"
            for name in sorted(least[one])
            for edge in EDGES[name]
            if edge.startswith(GRID) or rng.random() < 0.8
        ]
        asked = (*_begin(rng, one), *edges, *filter(None, [metric]))
        doors.court.same("an answer or a line", _find_fault(*doors.say(*asked)), "", _of(asked))
    words = _begin(rng, command)
    shown, whole = (doors.run(*words, *more)[1].count("\n") for more in ((), ("--show=details",)))
    doors.court.same("details are everything", whole < shown, False, _of((*words, "--show=details")))
    for other, name in [(one, name) for one in FORMS for name in _list_hidden(one)]:
        spelled = (*_begin(rng, other), f"{name}=int8")
        doors.court.same("listed options", doors.say(*spelled)[0], int(ExitCode.USAGE), _of(spelled))


def _begin(rng: random.Random, command: str) -> tuple[str, ...]:
    """Return a line of a command on usual chips, with what it needs."""
    form = FORMS[command]
    return (command, rng.choice(form.models), *rng.sample(SERVERS, max(form.least, 1)), *form.given)


def list_metrics(command: str) -> list[str]:
    """Return the options of a command that name what ranks, with each of their values."""
    known = list_options(command)
    choices = {name: getattr(known[name].type, "choices", None) or () for name in RANKED if name in known}
    return [f"{name}={one}" for name, values in choices.items() for one in values]


def _list_hidden(command: str) -> list[str]:
    hidden = (one for one in _list_parameters(command) if one.param_type_name == "option" and one.hidden)
    return [max(one.opts, key=len) for one in hidden if not HIDDEN.intersection(one.opts)]


VARIED: Final = ("tdp", "clock", "memory_bandwidth", "units")

SMALL: Final = ("mlp", "attention_head", "resnet18", "squeezenet1_0")
"""Networks that a smaller chip serves with less energy and a faster one with little more."""

FORKED: Final = ("cpu", "gpu", "tpu", "kpu")

DESIGNED: Final = ("energy", "latency")
"""Objectives of a design that is asked for without any."""


def try_designs(doors: Doors, rng: random.Random) -> None:
    """Vary chips: the design to build is not worse in both objectives than another one of the answer, and loses to the
    unchanged chip in neither if another one does not.
    """
    chips = [one for one in draw_chips(rng, 60) if "fp32" in find_chip(one).peaks]
    halved = [
        one for one in chips if find_chip(one).unit_count.value % 2 == 0 and find_chip(one).architecture in FORKED
    ]
    asked = [(chips[0], rng.choice(NETWORKS), rng.sample(VARIED, 2))]
    asked += [(one, rng.choice(SMALL), ["units", "clock"]) for one in halved[:6]]
    for chip, model, names in asked:
        words = ("explore", model, "--like", chip, *(f"--vary={name}=x0.5,x1,x2" for name in names))
        code, out, messages = doors.say(*words, *BRIEF)
        doors.court.same("an answer or a line", _find_fault(code, out, messages), "", _of(words))
        answer = json.loads(out) if code == 0 else {"facts": []}
        choices = [one for one in answer["facts"] if one["fact"] == "choice"]
        changes = [one for one in answer["facts"] if one["fact"] == "change" and one["metric"] in DESIGNED]
        if not choices or not changes:
            continue
        rows = [(row["energy_per_inference_j"], row["latency_s"]) for row in answer["rows"]]
        own = [row for row in rows if row[0] == choices[0]["value"]["value"]]
        better = [row for row in rows if own and row[0] < own[0][0] * 0.98 and row[1] < own[0][1] * 0.98]
        before = {one["metric"]: one["before"]["value"] for one in changes}
        gains = [[before[name] / value for name, value in zip(DESIGNED, row, strict=True)] for row in rows]
        is_better = any(min(one) > 1.0 and max(one) > 1.03 for one in gains)
        loses = not answer["answer"].startswith("Build") or " at " in answer["answer"]
        doors.court.same("no advice is dominated", bool(better) or (is_better and loses), False, _of(words))


PRICES: Final = re.compile(r"^\w+ ([\d,]+) .*?for ([\d.,]+) USD per month to be .*?; ([\d,]+) for ([\d.,]+) USD would")
"""First line of a fleet with the prices of two numbers of devices."""


def try_fleets(doors: Doors, rng: random.Random) -> None:
    """Compare the two prices of a fleet's first line with their numbers of devices."""
    rate = rng.choice((500, 3000, 20000))
    words = ("fleet", rng.choice(NETWORKS), *rng.sample(SERVERS, 2), f"--rate={rate}/s", "--p99=15ms")
    told = PRICES.search(" ".join(doors.run(*words)[1].split()))
    if told is not None:
        many, dear, few, cheap = (float(one.replace(",", "")) for one in told.groups())
        doors.court.equal("price of the advice", dear / many, cheap / few, _of(words))


def _find_fault(code: int, out: str, messages: str) -> str:
    """Return what is wrong with how a command ended; empty if it answered, or refused in one line."""
    if code in (ExitCode.INTERNAL, ExitCode.DATABASE) or "Traceback" in messages or "internal error" in messages:
        return messages.strip()[-200:] or f"exit {code}"
    if code and not out and messages.count("joulemap: ") != 1:  # a terminal wraps a long line
        return f"not one line: {messages[:100]}"
    return "" if out or messages.strip() else "silent"


def _list_odd(value: Any, path: str = "") -> Iterator[str]:
    """Yield the places of numbers that are not finite, of shares beyond 0 to 1, and of text that Python wrote."""
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _list_odd(one, f"{path}.{name}")
    elif isinstance(value, list):
        for one in value:
            yield from _list_odd(one, path)
    elif isinstance(value, float) and path.rpartition(".")[2].startswith("probability"):
        yield from [path] if not 0.0 <= value <= 1.0 else []
    elif isinstance(value, float):
        yield from [] if math.isfinite(value) else [path]
    elif isinstance(value, str) and any(word in value for word in WRITTEN):
        yield path


WRITTEN: Final = ("np.float", "np.int", "<object", " nan ", " counts on ")
"""Text that only Python writes, and that of an action without a noun."""


def _compare_table(doors: Doors, words: tuple[str, ...], answer: dict[str, Any]) -> None:
    """Compare the rows of CSV with a table of JSON that has its columns."""
    asked = (*words, "--format", "csv")
    code, text, _ = doors.say(*asked)
    rows = list(csv.DictReader(io.StringIO(text))) if code == 0 else []
    doors.court.same("machine formats", code, 0, _of(asked))
    tables = [one for one in answer.values() if isinstance(one, list) and one and isinstance(one[0], dict)]
    alike = [one for one in tables if rows and len(one) == len(rows) and {*rows[0]} <= {*one[0]}]
    if alike:
        numbers = [[_read(row[name]) for name in row] for row in rows]
        known = [[[one[name] for name in rows[0]] for one in table] for table in alike]
        doors.court.same("machine formats", any(_is_same(one, numbers) for one in known), True, _of(asked))


def _read(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _is_same(values: list[list[Any]], others: list[list[Any]]) -> bool:
    """Return whether the numbers of two tables are equal; other cells may be written differently."""
    return all(
        math.isclose(one, other, rel_tol=1e-9, abs_tol=0.0)
        for row, written in zip(values, others, strict=True)
        for one, other in zip(row, written, strict=True)
        if isinstance(one, int | float) and not isinstance(one, bool) and isinstance(other, float)
    )


def _compare_order(doors: Doors, line: Line, answer: dict[str, Any]) -> None:
    """Compare an answer with that about the same chips in another order."""
    count = len(FORMS[line.command].models[:1])
    chips = line.words[count:]
    if len(chips) < 2 or line.command in ("explain", "flip") or "--by" in dict(line.options):
        return
    turned = attrs.evolve(line, words=(*line.words[:count], *reversed(chips)))
    other = doors.ask(*turned.spell())
    told = None if other is None else other.get("answer")
    doors.court.same("order of chips", told, answer.get("answer"), _of(line.spell(), turned.spell()))


LIMITED: Final = {
    "latency": ("latency_s", 1.0), "memory": ("peak_memory_bytes", 1.0), "energy": ("total_energy_j", 1.0),
    "energy_per_inference": ("total_energy_per_inference_j", 1.0), "power": ("total_power_w", 1.0),
    "throughput": ("throughput_per_s", -1.0),
}  # fmt: skip
"""Limit -> column of a recommendation, and 1 if it is an upper limit."""


def _check_limits(doors: Doors, words: tuple[str, ...], answer: dict[str, Any]) -> None:
    """Check that a configuration is feasible if it meets every limit, and only then."""
    bounds = [(*LIMITED[one["limit_name"]], one["bound"]) for one in answer["limits"] if one["limit_name"] in LIMITED]
    if len(bounds) < len(answer["limits"]) or not bounds:
        return
    for row in answer["rows"]:
        known = [(row[name] * sign, bound * sign) for name, sign, bound in bounds if row[name] is not None]
        if row["status"] in ("feasible", "infeasible") and len(known) == len(bounds):
            meets = all(value <= bound + 1e-9 * abs(bound) for value, bound in known)
            doors.court.same("limits hold", row["status"] == "feasible", meets, _of(words))


def _check_front(doors: Doors, words: tuple[str, ...], answer: dict[str, Any]) -> None:
    """Check that nothing on a front is dominated, and that everything beside it is."""
    signs = [-1.0 if METRIC[answer[axis]].is_higher_better else 1.0 for axis in "xy"]
    rows = [row for row in answer["rows"] if row["status"] in ("front", "dominated")]
    places = [(signs[0] * row["x_value"], signs[1] * row["y_value"]) for row in rows]
    front = [place for row, place in zip(rows, places, strict=True) if row["status"] == "front"]
    doors.court.same("front", bool(front), any(row["x_value"] and row["y_value"] for row in answer["rows"]), _of(words))
    for row, (x, y) in zip(rows, places, strict=True):
        is_over = any(one <= x and other <= y and (one, other) != (x, y) for one, other in front)
        doors.court.same("front", row["status"] == "dominated", is_over, _of(words))


def _compare_default(doors: Doors, line: Line, answer: dict[str, Any], rng: random.Random) -> None:
    """Compare an answer with that of the same line in which the default of another option is spelled out."""
    given = dict(line.options)
    spelled = [
        (name, str(one.default))
        for name, one in list_options(line.command).items()
        if name not in given and name not in HIDDEN and not one.is_flag
        if isinstance(one.default, str | int | float) and str(one.default)
    ]
    if spelled:
        name, value = rng.choice(spelled)
        asked = line.spell(f"{name}={value}", "--format", "json")
        code, text, _ = doors.say(*asked)
        other = json.loads(text) if code == 0 else {}
        doors.court.same("spelled default", other.get("answer"), answer.get("answer"), _of(line.spell(), asked))
