"""Laws of answers: one question at several doors, what the first line says, and orders among answers of commands."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import tempfile
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

import joulemap
from command import list_steps, run_here
from joulemap.physics.law import RAISE, SEPARATOR, VARIABLE
from joulemap.physics.record.reference import HOST, UNATTRIBUTED
from joulemap.system.errors import ExitCode
from joulemap.system.record import define
from laws.court import Court
from laws.panel import OPERATORS, draw_chips, find_chip, list_networks
from laws.question import Question

SMALL: Final = 40_000_000
"""Maximum parameters of a network whose ledgers a trial stores."""

DECODERS: Final = ("llama-3.2-1b", "llama-3.1-8b", "qwen3-8b", "gpt-oss-20b", "phi-4", "mixtral-8x7b", "llama-3.1-70b")
SERVERS: Final = (
    "l4",
    "h100_sxm5",
    "rtx_4090",
    "rtx_3090",
    "a100_sxm_80gb",
    "mi300x",
    "l40s",
    "b200",
    "h200_sxm",
    "a10",
)
BRIEF: Final = ("--format", "json")


LONGER: Final = (
    ("--prompt", "prompt", "first_token_s"),
    ("--prompt", "context", "between_s"),
    ("--output", "context", "between_s"),
)
"""Option for a longer request, and the law on a time that it lengthens."""


@define
class Doors:
    """Commands of one process, on a database of its own."""

    court: Court
    folder: Path = attrs.field(factory=lambda: Path(tempfile.mkdtemp(prefix="joulemap-laws-")))

    def run(self, *words: str) -> tuple[int, str]:
        """Return (exit code, output) of a command."""
        code, out, messages = self.say(*words)
        if code:
            self.court.refused[f"{words[0]}: {messages.strip()[:70]}"] += 1
        return code, out

    def say(self, *words: str) -> tuple[int, str, str]:
        """Return (exit code, output, messages) of a command; no command ends in an internal error or breaks a law of
        evaluation, but for the check of a file, which refuses a chip that does.
        """
        given = {"JOULEMAP_DB": str(self.folder / "laws.duckdb"), "COLUMNS": "80", VARIABLE: RAISE}
        done = run_here(words, self.folder, given)
        self.court.same("no internal error", done.returncode == ExitCode.INTERNAL, False, _of(words))
        is_checked = words[:2] == ("hardware", "check")
        broken = re.search(r" breaks ([\w ,]+)$", done.stderr.strip()) if done.returncode and not is_checked else None
        for name in broken[1].split(SEPARATOR) if broken else ():
            self.court.report(name, math.inf, 0.0, _of(words))
        return done.returncode, done.stdout, done.stderr

    def ask(self, *words: str) -> dict[str, Any] | None:
        """Return the answer of a command as JSON; None if it was refused."""
        code, text = self.run(*words, *BRIEF)
        if code:
            return None
        answer: dict[str, Any] = json.loads(text)
        _check_pair(self.court, answer, words)
        return answer

    @cached_property
    def words(self) -> Sequence[str]:
        """Names of small models."""
        return (*list_networks(), *OPERATORS)


def _of(*each: Sequence[str]) -> tuple[Question, ...]:
    return tuple(Question(words=tuple(words)) for words in each)


def list_named(text: str, chips: Iterable[str]) -> list[str]:
    """Return the chips that a text names."""
    return [one for one in chips if re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text)]


def _check_pair(court: Court, answer: Any, words: Sequence[str]) -> None:
    """Check that the first line and each comparison after Next are about one pair of the chips that were compared."""
    choices = [one for one in answer.get("facts", ()) if one["fact"] == "choice"] if isinstance(answer, dict) else []
    chips = {
        answer["runs"][str(run)]["hardware"] for one in choices for run in one["runs"] if str(run) in answer["runs"]
    }
    pair = list_named(answer["answer"], chips) if chips else []
    for step in answer.get("next_steps", ()) if len(pair) > 1 else ():
        if re.match("joulemap (explain|flip) ", step):
            court.same("one pair", {*list_named(step, chips)} - {*pair}, set(), _of(words))


def _draw_alike(rng: random.Random, count: int) -> tuple[list[str], str]:
    """Return random chips that have a precision in common, and the precision."""
    precision = rng.choice(("fp32", "fp16", "bf16", "int8"))
    chips = [name for name in draw_chips(rng, 40) if precision in find_chip(name).peaks]
    return chips[:count], precision


def _read(answer: dict[str, Any]) -> dict[str, tuple[float, float]]:
    """Return chip -> (latency, energy) of an answer of compare."""
    return {row["hardware"]: (row["latency_s"], row["energy_j"]) for row in answer["rows"] if row["status"] == "ok"}


def try_answers(doors: Doors, rng: random.Random) -> None:
    """Compare the answers of commands and of the library to one question."""
    court = doors.court
    model = rng.choice(doors.words)
    chips, precision = _draw_alike(rng, 3)
    runtime = rng.choice(("eager", "graph", "fused", "engine"))
    settings = ("--precision", precision, "--runtime", runtime)
    words = ("compare", model, ",".join(chips), *settings)
    answer = doors.ask(*words)
    if answer is None:
        return
    cells = _read(answer)
    if not cells:
        return
    _compare_doors(doors, words, cells, model, precision, runtime, settings)
    turned = ("compare", model, ",".join(reversed(chips)), *settings)
    other = doors.ask(*turned)
    court.same("order of chips", cells, other and _read(other), _of(words, turned))
    spelled = (*words, "--batch", "1", "--boundary", "board", "--metric", "energy", "--level", "summary")
    other = doors.ask(*spelled)
    court.same(
        "spelled default", (cells, answer["answer"]), other and (_read(other), other["answer"]), _of(words, spelled)
    )
    _compare_choice(doors, words, answer, cells)
    _compare_boundaries(doors, words, cells)
    two = ("compare", model, ",".join(chips[:2]), *settings)
    fewer = doors.ask(*two)
    if fewer is not None:
        kept = {name: one for name, one in cells.items() if name in chips[:2]}
        court.same("third chip", kept, _read(fewer), _of(words, two))
        first, second = ({name: one["half_widths"].get(name) for name in kept} for one in (answer, fewer))
        court.same("third chip", first, second, _of(words, two))
        for one in fewer["recommendations"]:
            if len(one["probabilities"]) == 2:
                court.equal("probabilities", sum(one["probabilities"]), 1.0, _of(two))


EXACT: Final = {
    "energy": ("difference_fj", "energy_difference_fj"),
    "latency": ("latency_difference_fs", "latency_difference_fs"),
    "edp": ("edp_difference_exact", "edp_difference_exact"),
}
"""Metric -> exact difference of two runs or of a part of them, and that of a subgraph in the list of all."""


def try_divisions(doors: Doors, rng: random.Random) -> None:
    """Divide the difference of two runs and one run: a part is the same wherever it stands, and parts sum to it."""
    court, model = doors.court, rng.choice(doors.words)
    chips, precision = _draw_alike(rng, 2)
    metric = rng.choice(sorted(EXACT))
    words = ("explain", model, *chips, "--precision", precision, "--metric", metric)
    whole = doors.ask(*words)
    if whole is None or not whole["subgraphs"]:
        return
    own = rng.choice(whole["subgraphs"])
    alone = (*words, "--subgraph", own["name"])
    part = doors.ask(*alone)
    name, listed = EXACT[metric]
    court.same("one division", part and part["total"][name], own[listed], _of(words, alone))
    for asked, answer in ((words, whole), (alone, part)):
        if answer is not None:
            total = answer["total"][name]
            sums = sum(row["difference_exact"] for row in answer["categories"])
            court.same("one division", sums, total, _of(asked))
    single = (model, chips[0], "--precision", precision)
    run, edp = (doors.ask(command, *single) for command in ("analyze", "edp"))
    if run is None or edp is None:
        return
    spent = sum(row["energy_fj"] for row in run["actions"] if row["common_category"] == UNATTRIBUTED)
    share = sum(one["share"] for one in run["facts"] if one["fact"] == "share" and one.get("name") == UNATTRIBUTED)
    if spent:
        court.equal("one residual", spent / run["total"]["energy_fj"], share, _of(("analyze", *single)))
    named = {row["common_category"] for row in run["actions"] if row["action"].startswith(f"{UNATTRIBUTED}_")}
    court.same("one residual", named <= {UNATTRIBUTED, HOST}, True, _of(("analyze", *single)))  # all of a host's is one
    lists = [
        {row["operator_index"]: (row["energy_fj"], row["latency_fs"]) for row in one["operators"]} for one in (run, edp)
    ]
    court.same("one list of parts", lists[0], lists[1], _of(("analyze", *single), ("edp", *single)))


def _compare_doors(
    doors: Doors,
    words: tuple[str, ...],
    cells: dict[str, tuple[float, float]],
    model: str,
    precision: str,
    runtime: str,
    settings: tuple[str, ...],
) -> None:
    court = doors.court
    for name, (seconds, joules) in cells.items():
        one = joulemap.predict(model, name, precision=precision, runtime=runtime)
        own = Question(model=model, hardware=name, precision=precision, runtime=runtime)
        court.equal("predict and compare", one.latency_s, seconds, (own,))
        court.equal("predict and compare", one.energy_j, joules, (own,))
    name, (seconds, joules) = next(iter(cells.items()))
    apart = ("analyze", model, name, *settings)
    if (total := doors.ask(*apart)) is not None:
        court.equal(
            "analyze and compare",
            [total["total"]["latency_s"], total["total"]["energy_j"]],
            [seconds, joules],
            _of(words, apart),
        )
    run = total["run_ids"][0] if total is not None else 0
    query = ("sql", f"SELECT latency_s, energy_j FROM runs WHERE run_id = {run}")
    code, text = doors.run(*query, *BRIEF)
    if code == 0:
        found = json.loads(text)
        (row,) = found if isinstance(found, list) else found["rows"]
        court.equal("SQL and compare", list(row.values()), [seconds, joules], _of(words, query))
    sums = (
        "sql",
        "SELECT CAST(sum(l.line_energy_fj) AS VARCHAR) AS lines, CAST(any_value(t.energy_fj) AS VARCHAR) AS run "
        f"FROM energy_ledger AS l JOIN internal.run_total AS t USING (run_id) WHERE run_id = {run}",
    )
    code, text = doors.run(*sums, *BRIEF)
    if code == 0:
        found = json.loads(text)
        (row,) = found if isinstance(found, list) else found["rows"]
        court.same("ledger", row["lines"], row["run"], _of(words, sums))
    tdp = float(find_chip(name).clock.value)
    present = ("compare", model, name, *settings, "--set", f"clock={tdp!r}Hz")
    if (same := doors.ask(*present)) is not None:
        (values,) = list(_read(same).values()) or [(np.nan, np.nan)]
        court.equal("present value", values, (seconds, joules), _of(words, present))


def _compare_choice(
    doors: Doors, words: tuple[str, ...], answer: dict[str, Any], cells: dict[str, tuple[float, float]]
) -> None:
    court = doors.court
    energy = next((one for one in answer["recommendations"] if one["goal"] == "energy"), None)
    if energy is not None and not energy["is_among"]:
        court.equal("winner", cells[energy["hardware"]][1], min(joules for _, joules in cells.values()), _of(words))
    named = [name for name in re.findall(r"[a-z][a-z0-9_]+", answer["answer"]) if name in cells or "_" in name]
    known = {*cells, *words[2].split(",")}  # of a chip that was left out, the line says so
    court.same("first line", [name for name in named if name not in known], [], _of(words))
    _, text = doors.run(*words)
    for step in list_steps(text.replace(" \\\n", " ")):
        done, _ = doors.run(*step)
        court.same("next runs", done, 0, _of(words, step))


def _compare_boundaries(doors: Doors, words: tuple[str, ...], cells: dict[str, tuple[float, float]]) -> None:
    court = doors.court
    each = [doors.ask(*words, "--boundary", name) for name in ("chip", "system")]
    inside, outside = (_read(one) if one else {} for one in each)
    for chip, (_, joules) in cells.items():
        if chip in inside:
            court.compare("boundary", inside[chip][1], joules, _of((*words, "--boundary", "chip")))
        if chip in outside:
            court.compare("boundary", joules, outside[chip][1], _of((*words, "--boundary", "system")))
    hosted = doors.ask(*words, "--site", "host=ryzen_9_5950x")
    for chip, (seconds, joules) in (_read(hosted) if hosted else {}).items():
        name = chip.partition("[")[0]
        if name in cells and find_chip(name).helper is None:  # a helper's part would move to the other host
            own_s, own_j = cells[name]
            lowered = min(own_j / joules, own_j * seconds / (joules * own_s))
            court.compare("host", lowered, 1.0, _of((*words, "--site", "host=ryzen_9_5950x")))


def try_choices(doors: Doors, rng: random.Random) -> None:
    """Compare recommendations among more candidates, under looser limits, and costs at lower prices."""
    court, model = doors.court, rng.choice(list_networks())
    chips = draw_chips(rng, 8)
    base = ("recommend", model, "--max-latency")
    few, many = (*base, "50ms", "--hardware", ",".join(chips[:4])), (*base, "50ms", "--hardware", ",".join(chips))
    loose = (*base, "500ms", "--hardware", ",".join(chips[:4]))
    least = _find_best(doors.ask(*few))
    for law, words in (("candidates", many), ("looser limit", loose)):
        if not np.isnan(least):
            court.compare(law, _find_best(doors.ask(*words)), least, _of(few, words))


def _find_best(answer: dict[str, Any] | None) -> float:
    """Return the least energy per inference of the configurations that meet all limits; NaN without one."""
    rows = [] if answer is None else [row for row in answer["rows"] if row["status"] == "feasible"]
    return min((row["energy_per_inference_j"] for row in rows), default=np.nan)


def try_served(doors: Doors, rng: random.Random) -> None:
    """Compare language models: longer prompts and contexts, more sequences, more devices, loads, and two doors."""
    court, model, chip = doors.court, rng.choice(DECODERS), rng.choice(SERVERS)
    batches = (1, 2, 8, 32)
    words = ("llm", model, chip, "--batch", ",".join(map(str, batches)))
    answer = doors.ask(*words)
    rows = [] if answer is None else [row for row in answer["rows"] if row["status"] == "ok"]
    for first, second in itertools.pairwise(rows):
        if first["device_count"] == second["device_count"]:
            court.compare("sequences", first["between_s"], second["between_s"], _of(words))
    for row in rows:
        total = row["first_token_s"] + row["between_s"] * 255
        court.equal("phases", total, row["request_s"], _of(words))
    option, law, value = rng.choice(LONGER)
    short, long = (("llm", model, chip, "--batch", "4", option, size) for size in ("512", "3072"))
    pair = [doors.ask(*one) for one in (short, long)]
    if all(pair):
        (a,), (b,) = (one["rows"] for one in pair if one)
        if a["status"] == b["status"] == "ok" and a["device_count"] == b["device_count"]:
            court.compare(law, a[value], b[value], _of(short, long))
    _compare_devices(doors, model, chip)
    loads = [("llm", model, chip, "--in-flight", str(count)) for count in sorted(rng.sample((1, 4, 16), 2))]
    found = [_find_load(doors.ask(*one)) for one in loads]
    for first, second, asked in zip(found, found[1:], loads, strict=False):
        if first and second:
            court.compare("in flight", first["between_s"], second["between_s"], _of(asked))
    cached = (*words[:3], "--in-flight", "64", "--prefix-hit", "0.9")
    if rows and (load := _find_load(doors.ask(*cached))) and load["prefix_hit_fraction"]:
        held = [row["largest_batch"] for row in rows if row["device_count"] == load["device_count"]]
        if held:
            court.compare("hits fit", load["prefix_hit_fraction"], 0.9 * min(1.0, max(held) / 64.0), _of(cached))
    arriving = (*words[:3], "--rate", "0.2/s", "--format", "csv")
    court.same("machine formats", "np." in doors.run(*arriving)[1], False, _of(arriving))
    for row, asked in zip(found, loads, strict=True):
        if row:
            ends = [row[f"{name}_p{q}_s"] for q in (90, 99) for name in ("first_token", "between", "gap")]
            court.compare("quantiles", ends[:3], ends[3:], _of(asked))


def _find_load(answer: dict[str, Any] | None) -> dict[str, Any] | None:
    rows = [] if answer is None else answer["loads"]
    return rows[0] if rows else None


def _compare_devices(doors: Doors, model: str, chip: str) -> None:
    words = ("llm", model, chip, "--batch", "4", "--devices", "1,2,4,8")
    answer = doors.ask(*words)
    rows = [] if answer is None else [row for row in answer["rows"] if row.get("weight_bytes")]
    held = [sum(row[f"{name}_bytes"] for name in ("weight", "cache", "activation", "reserved")) for row in rows]
    doors.court.compare("device memory", held[1:], held[:-1], _of(words))


def try_steps(court: Court, rng: random.Random) -> None:
    """Compare exact steps of language models over contexts and numbers of sequences."""
    model, chip = rng.choice(DECODERS), rng.choice(SERVERS)
    predictor = joulemap.predict_step(model, chip)
    contexts = np.array([128.0, 512.0, 2048.0, 8192.0])
    for sequences in (1, 4, 16):
        cost = predictor.price(joulemap.Passes.of(sequences, context=contexts))
        own = Question(words=("llm", model, chip, "--batch", str(sequences)))
        held = np.where(np.isnan(cost.latency_s[1:]), np.nan, cost.latency_s[:-1])
        court.compare("context", held, cost.latency_s[1:], (own,))


def try_training(doors: Doors, rng: random.Random) -> None:
    """Compare training steps: ZeRO stages, LoRA, recomputation, and what a step consists of, also behind PCIe."""
    court, model = doors.court, rng.choice((*("llama-3.2-1b", "resnet50", "vit_b_16") * 3, "llama-3.1-8b", "qwen3-8b"))
    chip = rng.choice(("h100_sxm5", "a100_sxm_80gb", "rtx_3090", "mi300x", "b200"))
    batch = rng.choice(("8", "64")) if model in ("resnet50", "vit_b_16") else "8"
    base = ("train", model, chip, "--devices", "8", "--batch", batch)

    def ask(*more: str) -> dict[str, Any] | None:
        answer = doors.ask(*base, *more)
        rows = [] if answer is None else answer["rows"]
        if not rows or not rows[0].get("weight_bytes"):
            return None
        held = sum(rows[0][f"{name}_bytes"] for name in ("weight", "gradient", "state", "activation", "reserved"))
        return {**rows[0], "device_bytes": held}

    stages = sorted(rng.sample("0123", 2))
    less, more = (ask("--zero", stage) for stage in stages)
    if less and more:
        court.compare("ZeRO", more["device_bytes"], less["device_bytes"], _of((*base, "--zero", stages[1])))
    whole, again = ask(), ask("--recompute")
    if whole and again:
        court.compare("recompute", again["device_bytes"], whole["device_bytes"], _of((*base, "--recompute")))
        court.compare("recompute costs", whole["step_s"], again["step_s"], _of((*base, "--recompute")))
    shared = (*base[:1], rng.choice(("resnet50", "vit_b_16")), rng.choice(("rtx_3090", "l4", "l40s")), *base[3:-1], "8")
    behind = doors.ask(*shared)
    for row in (whole, again, less, more, *([] if behind is None else behind["rows"])):
        if row and row["step_s"]:
            names = ("forward", "backward", "again", "exchange", "optimizer", "bubble")
            court.compare("step parts", row["step_s"], sum(row.get(f"{name}_s") or 0.0 for name in names), _of(base))
            shares = row["memory_bound_fraction"] + (row.get("exchange_s") or 0.0) / row["step_s"]
            court.compare("shares of a step", shares, 1.0, _of(base, shared))
    adapted = ask("--lora", "16") if model not in ("resnet50", "vit_b_16") else None
    if whole and adapted:
        court.compare("LoRA", adapted["device_bytes"], whole["device_bytes"], _of((*base, "--lora", "16")))
