"""Laws of decisions: one rule of ties, sale, limits and metrics, however a question is asked."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from joulemap.catalog.sheet import load_scenarios
from laws.door import DECODERS, SERVERS, Doors, _of, list_named
from laws.ordered import list_pairs
from laws.panel import draw_chips, find_chip, list_chips, list_networks

CLOSE: Final = re.compile(r"tie|as good|same")
PERCENT: Final = re.compile(r"(over |under )?\d+ %")
TELLS: Final = {"energy": r"energy[^.;]*\([^)]*sure\)", "latency": r"(?:faster|slower) \([^)]*sure\)"}
BATCHES: Final = ("1", "8", "32")
VALUES: Final = ("status", "objective_value", "objective_half_width", "usd_per_million", "latency_s", "energy_j")


def list_choices(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of an answer, the deciding one first."""
    return [one for one in answer["facts"] if one["fact"] == "choice"]


def name_taken(answer: dict[str, Any], choice: dict[str, Any]) -> str:
    """Return the hardware that is the best by a choice."""
    name: str = answer["runs"][str(choice["runs"][0])]["hardware"]
    return name


@cache
def list_unlisted() -> list[str]:
    """Return the chips on sale of which nobody knows whether they run every operator."""
    known = ((name, find_chip(name)) for name in list_chips())
    return [name for name, one in known if one.is_available and one.compiler is not None and one.compiler.is_unlisted]


def draw_question(rng: random.Random, count: int, kind: str = "") -> tuple[str, list[str], tuple[str, ...]]:
    """Return a random network, chips and precision; the kind of chips is drawn unless it is given: any, on sale, one on
    sale among others, alike, one of which nobody knows what it runs, or one without the precision.
    """
    precision = rng.choice(("fp32", "fp16", "bf16", "int8"))
    unlisted = rng.choice(list_unlisted())
    kind = kind or rng.choice(("any", "sold", "one sold", "alike", "unlisted", "lacking"))
    if kind == "unlisted":
        precision = rng.choice(sorted(find_chip(unlisted).peaks))
    every = [name for name in draw_chips(rng, 200) if precision in find_chip(name).peaks]
    lacking = rng.choice([name for name in list_chips() if precision not in find_chip(name).peaks])
    sold = [one for one in every if find_chip(one).is_available]
    unsold = [one for one in every if one not in sold]
    first = find_chip(rng.choice(sold))
    alike = [one for one in sold if find_chip(one).microarchitecture == first.microarchitecture]
    of_class = [one for one in sold if find_chip(one).architecture == first.architecture]
    chips = {
        "any": every,
        "sold": sold,
        "one sold": [*sold[:1], *unsold],
        "alike": [*dict.fromkeys((*alike, *of_class))],
        "unlisted": [unlisted, *sold[:1]],
        "lacking": [*sold[:1], lacking, *sold[1:]],
    }[kind]
    return rng.choice(list_networks()), chips[:count], ("--precision", precision)


def try_decisions(doors: Doors, rng: random.Random) -> None:
    """Check the first line of compare, and that of the same question without a chip that is worse by every metric."""
    court = doors.court
    model, chips, settings = draw_question(rng, 4, rng.choice(("", "lacking")))
    _check_default(doors, model)
    words = ("compare", model, ",".join(chips), *settings)
    answer = doors.ask(*words)
    if answer is None or not list_choices(answer):
        return
    _check_line(doors, answer, words, chips)
    rows = _list_ran(answer)
    worst = max(rows, key=lambda row: row["energy_j"], default=None)
    is_alone = len(rows) < 3 or worst is None or worst["latency_s"] < max(row["latency_s"] for row in rows)
    if not is_alone and worst is not None:
        fewer = ("compare", model, ",".join(one for one in chips if one != worst["hardware"]), *settings)
        other = doors.ask(*fewer)
        told = [one and PERCENT.sub("", one["answer"].partition("; ")[0]) for one in (answer, other)]
        if other is not None and " other" not in answer["answer"] + other["answer"]:
            court.same("worse chip", told[0], told[1], _of(words, fewer))


def _check_default(doors: Doors, model: str) -> None:
    """Compare a network on the default chips: one of each class, of which the one to take is sold."""
    words = ("compare", model)
    if (answer := doors.ask(*words)) is not None:
        classes = {find_chip(row["hardware"]).architecture for row in answer["rows"]}
        doors.court.same("default chips", classes, {"cpu", "gpu", "tpu", "kpu"}, _of(words))
        taken = name_taken(answer, list_choices(answer)[0])
        doors.court.same("default chips", find_chip(taken).is_available, True, _of(words))


def _list_ran(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in answer["rows"] if row["status"] == "ok" and row["is_available"]]


def try_metrics(doors: Doors, rng: random.Random) -> None:
    """Ask for a metric at each level: it decides, its parts are the reasons, and one rule marks the best parts."""
    court, metric = doors.court, rng.choice(("energy", "latency", "edp"))
    model, chips, settings = draw_question(rng, 3)
    words = ("compare", model, ",".join(chips), *settings, "--metric", metric)
    for more in ((), ("--level", "operator"), ("--level", "subgraph")):
        answer = doors.ask(*words, *more)
        if answer is not None and (choices := list_choices(answer)):
            court.same("asked metric", choices[0]["metric"].partition("_")[0], metric, _of((*words, *more)))
            _check_reasons(doors, answer, (*words, *more))
            terms = {one["quantity"] for one in answer["facts"] if one["fact"] == "term"}
            if terms and not more and not choices[0].get("tied") and metric != "energy":
                court.same("reasons", "time" in terms, True, _of(words))
    _, text = doors.run(*words, "--level", "subgraph", "--limit", "10000", "--show=wide")
    counted = re.match(r"Take (\S+): it has the .*? for (?:all )?(\d+) ", text)
    if counted is not None:
        lines = [re.split(r"\s{2,}", line) for line in text.splitlines()]
        marks = sum(counted[1] in cells for cells in lines) - 1  # its name heads a column
        court.same("one mark", marks, int(counted[2]), _of((*words, "--level", "subgraph")))


def try_members(doors: Doors, rng: random.Random) -> None:
    """Compare a list of batches with its members, and flip with comparisons."""
    model, chips, settings = draw_question(rng, 3)
    _compare_batches(doors, model, chips, settings)
    pairs = [one for one in rng.sample(list_pairs(), 200) if all(find_chip(name).is_available for name in one)]
    precision = rng.choice(sorted(find_chip(pairs[0][0]).peaks.keys() & find_chip(pairs[0][1]).peaks.keys()))
    _compare_flip(doors, model, pairs[0], ("--precision", precision))  # of one microarchitecture: close ones


def try_commands(doors: Doors, rng: random.Random) -> None:
    """Ask several commands for the best of the same chips in one configuration."""
    court = doors.court
    model, chips, settings = draw_question(rng, 4)
    same = ("--batch", "1", "--runtime", "fused", "--boundary", "board")
    asked = {
        "compare": ("compare", model, ",".join(chips), *settings, *same),
        "recommend": ("recommend", model, ",".join(chips), *settings, *same),
        "sweep": ("sweep", model, ",".join(chips), *settings, *same),
        "pareto": ("pareto", model, ",".join(chips), *settings, *same),
    }
    answers = {name: answer for name, words in asked.items() if (answer := doors.ask(*words)) is not None}
    chosen = {name: list_choices(one) for name, one in answers.items()}
    found = {name: _read_ranking(answers[name], some[0]) for name, some in chosen.items() if some and name != "pareto"}
    rows = answers["recommend"]["rows"] if "recommend" in answers else []
    if any(row["hostless_value"] != row["objective_value"] for row in rows):
        found.pop("recommend", None)  # it counts hosts
    for (one, first), (other, second) in itertools.pairwise(found.items()):
        court.same("one decision of commands", first, second, _of(asked[one], asked[other]))
    sold = [
        row for row in answers.get("compare", {"rows": ()})["rows"] if row["status"] == "ok" and row["is_available"]
    ]
    for name, some in ((name, some) for name, some in chosen.items() if sold and some):
        taken = answers[name]["runs"][str(some[0]["runs"][0])]["hardware"].partition("@")[0]  # in any power mode
        is_sold = taken in {row["hardware"].partition("@")[0] for row in sold}
        court.same("one rule of sale", is_sold, True, _of(asked[name]))
    _check_broken(doors, answers.get("recommend"), asked["recommend"])


def _read_ranking(answer: dict[str, Any], choice: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the best chip of a choice, and those that are tied with it."""
    names = {int(run): one["hardware"] for run, one in answer["runs"].items()}
    close = {names[run] for run in (*choice.get("tied", ()), *choice.get("equal", ()))}
    return names[choice["runs"][0]], sorted(close - {names[choice["runs"][0]]})


def _check_broken(doors: Doors, answer: dict[str, Any] | None, words: tuple[str, ...]) -> None:
    """Check that a recommendation takes, of tied chips, the best or one as good by the metric that breaks the tie."""
    first, *others = list_choices(answer) if answer is not None else [{}]
    if answer is None or answer["best"] is None or not first.get("tied") or not others:
        return
    next_one = others[0]
    close = {next_one["runs"][0], *next_one.get("tied", ()), *next_one.get("equal", ())}
    doors.court.same("a tie is broken by the next metric", answer["best"]["run_id"] in close, True, _of(words))


def _check_line(doors: Doors, answer: dict[str, Any], words: tuple[str, ...], chips: Sequence[str]) -> None:
    """Check what a first line says of ties, sale, and chips without a result."""
    court, told, choices = doors.court, answer["answer"], list_choices(answer)
    rows = {row["hardware"]: row for row in answer["rows"] if row["status"] == "ok"}
    taken = name_taken(answer, choices[0])
    is_sold = any(row["is_available"] for row in rows.values())
    court.same("on sale", rows[taken]["is_available"], is_sold, _of(words))
    form = TELLS.get(choices[0]["metric"])
    if form and choices[0].get("tied"):
        court.same("ties are told", bool(re.search(form, told)) and not CLOSE.search(told), False, _of(words))
    lost = [name for name in chips if name not in rows]
    named = list_named(told, lost)
    court.same("named chips", bool(lost) and not named and "left out" not in told, False, _of(words))
    compiler = find_chip(taken).compiler
    if compiler is not None and compiler.is_unlisted:
        court.same("unknown support", "% sure" in told.partition(";")[0], False, _of(words))


def try_servers(doors: Doors, rng: random.Random) -> None:
    """Compare the first line and the next step of language models on several chips."""
    chips = rng.sample(SERVERS, 3)
    words = ("llm", rng.choice(DECODERS[:3]), ",".join(chips), "--batch", rng.choice(("1", "8", "1,8,64")))
    doors.ask(*words)


def _compare_batches(doors: Doors, model: str, chips: Sequence[str], settings: tuple[str, ...]) -> None:
    """Compare a list of batches with each of its members."""
    words = ("compare", model, ",".join(chips), *settings, "--batch")
    whole = doors.ask(*words, ",".join(BATCHES))
    each = [doors.ask(*words, one) for one in BATCHES]
    if whole is None or not all(each):
        return
    alone = {(row["hardware"], row["batch"]): row for one in each if one for row in one["rows"]}
    for row in whole["rows"]:
        own = alone[row["hardware"], row["batch"]]
        first, second = ([one[name] for name in ("status", "latency_s", "energy_j")] for one in (row, own))
        doors.court.same("list is its members", first, second, _of((*words, ",".join(BATCHES))))
    sold = [one for one in whole["rows"] if one["status"] == "ok" and one["is_available"]]
    ran = sold or [one for one in whole["rows"] if one["status"] == "ok"]
    if choices := list_choices(whole):
        metrics = [one["metric"] for one in choices]  # latencies of unlike batches are of unlike work
        doors.court.same("list is its members", "latency" in metrics, False, _of((*words, ",".join(BATCHES))))
        least = min(row["energy_per_inference_j"] for row in ran)
        doors.court.equal("winner", choices[0]["value"]["value"], least, _of((*words, ",".join(BATCHES))))


def _check_reasons(doors: Doors, answer: dict[str, Any], words: tuple[str, ...]) -> None:
    """Check that the parts of the gap of a decision, if it is divided, add up to all of it."""
    shares = [one["share"] for one in answer["facts"] if one["fact"] == "term" and one.get("share") is not None]
    if shares:
        doors.court.equal("reasons add up", sum(shares), 1.0, _of(words))


def try_lists(doors: Doors, rng: random.Random) -> None:
    """Compare a recommendation, or a cost, among batches and precisions with those at each of them."""
    court, model = doors.court, rng.choice(list_networks())
    chips = [one for one in draw_chips(rng, 12) if {"fp16", "int8"}.intersection(find_chip(one).peaks)][:3]
    goal = rng.choice(("energy_per_inference", "latency", "edp", "edp_per_inference", "throughput"))
    words = rng.choice((("recommend", model, ",".join(chips), "--objective", goal), ("cost", model, ",".join(chips))))
    batches, precisions = rng.choice((("1", "8"), ("1", "32"), ("4", "7"))), ("fp16", "int8")
    whole = (*words, "--batch", ",".join(batches), "--precision", ",".join(precisions))
    answer = doors.ask(*whole)
    rows = {} if answer is None else {_key(row): row for row in answer["rows"]}
    if answer is not None:
        _check_reasons(doors, answer, whole)
    for batch, precision in itertools.product(batches, precisions) if answer else ():
        asked = (*words, "--batch", batch, "--precision", precision)
        other = doors.ask(*asked)
        if other is None or answer is None:
            continue
        for row in other["rows"]:
            first, second = ([one.get(name) for name in VALUES] for one in (row, rows.get(_key(row), {})))
            court.same("list is its members", first, second, _of(whole, asked))
        pairs = [_read_pair(one) for one in (answer, other)]
        if pairs[0] and pairs[1] and pairs[0][0] == pairs[1][0]:
            court.same("one decision of a list", pairs[0][1], pairs[1][1], _of(whole, asked))


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the configuration of a row."""
    return tuple(row.get(name) for name in ("hardware", "precision", "batch", "runtime", "way"))


def _read_pair(answer: dict[str, Any]) -> tuple[list[Any], list[Any]] | None:
    """Return the first two configurations of a decision, and how they compare; None with fewer."""
    rows = {row["run_id"]: row for row in answer["rows"]}
    for choice in list_choices(answer)[:1]:
        if len(choice["runs"]) > 1 and {*choice["runs"][:2]} <= rows.keys():
            tied = choice["runs"][1] in choice.get("tied", ())
            return [_key(rows[run]) for run in choice["runs"][:2]], [tied, choice.get("ratio"), choice.get("ahead")]
    return None


def _compare_flip(doors: Doors, model: str, pair: Sequence[str], settings: tuple[str, ...]) -> None:
    """Compare the ties of flip at each batch with those of a comparison at that batch."""
    words = ("flip", model, *pair, *settings)
    flipped = doors.ask(*words)
    for row in [] if flipped is None else flipped["batches"]:
        if str(row["batch"]) in BATCHES and row["winner"]:
            asked = ("compare", model, ",".join(pair), *settings, "--batch", str(row["batch"]))
            other = doors.ask(*asked)
            if other is not None and (choices := list_choices(other)) and choices[0]["metric"] == "energy":
                doors.court.same("one rule of ties", row["is_tied"], bool(choices[0].get("tied")), _of(words, asked))


def try_limits(doors: Doors, rng: random.Random) -> None:
    """Compare a scenario with its limits, the prices of a question in two commands, and a sweep with its limit."""
    court, model = doors.court, rng.choice(list_networks())
    case = rng.choice([one for one in load_scenarios().values() if not one.is_pulse])
    limited = {"deployment": ",".join(case.deployment), "kind": ",".join(case.kinds)}
    limited |= {"power-budget": f"{case.power_budget.value!r}W"} if case.power_budget is not None else {}
    spelled = [f"--where={name}={value}" for name, value in limited.items() if value]
    limits = rng.choice(((), ("--min-throughput", "10/s"), ("--min-throughput", "30/s", "--max-power", "5W")))
    asked = [("recommend", model, *words, *limits) for words in ((f"--where=scenario={case.name}",), spelled)]
    pair = [doors.ask(*one) for one in asked]
    found = [one and [(row["hardware"], row["status"], row["objective_value"]) for row in one["rows"]] for one in pair]
    court.same("scenario is its limits", found[0], found[1], _of(*asked))
    chips = [one for one in draw_chips(rng, 30) if find_chip(one).is_available][:3]
    prices = ("--site", "price-per-hour=" + ",".join(f"{one}={rng.choice((0.1, 1, 4))}USD/h" for one in chips))
    costs = [(*words, ",".join(chips), *prices) for words in (("cost", model), ("recommend", model))]
    one, other = doors.ask(*costs[0]), doors.ask(*costs[1], "--objective", "cost")
    if one is not None and other is not None and one["best"] is not None and other["best"] is not None:
        court.equal("own prices", one["best"]["usd_per_million"], other["best"]["objective_value"], _of(*costs))
    limit_s = rng.choice((1e-3, 5e-3, 20e-3))
    _, mixed, settings = draw_question(rng, 4, "one sold")
    plain = ("sweep", model, ",".join(mixed), *settings)
    doors.ask(*plain)
    words = ("sweep", model, ",".join(chips), "--max-latency", f"{limit_s}s")
    answer = doors.ask(*words)
    if answer is not None:
        points = {row["run_id"]: row["latency_s"] for row in answer["points"]}
        held = [points[run] for choice in list_choices(answer) for run in choice["runs"] if run in points]
        court.same("sweep keeps its limit", [one for one in held if one > limit_s], [], _of(words))
