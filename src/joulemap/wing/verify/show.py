"""Words for verifications: the median error, what is inside its interval, causes, and conditions of measurements."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

import attrs

from joulemap.ask.fact import Caveat, Change, Facts, Quantity, Refusal, Score
from joulemap.ask.finding import Finding
from joulemap.show.caveat import describe_trust, describe_values, list_notes
from joulemap.show.choice import MOST_WHY, MOST_WORDS
from joulemap.show.present.cell import show_interval, show_plain, show_quantity, show_share, show_span
from joulemap.show.present.template import Template
from joulemap.show.refusal import describe_refusal
from joulemap.show.word import Words
from joulemap.system.errors import Reason
from joulemap.system.units import format_si

WORDS: Final = Words(
    caveats={
        "beside": Template("the block took {time} more outside these calls"),
        "busy": Template(
            "the GPU's busy time[ ({busy} per pass)] is compared with the runtime graph[: the profiler slows the host; "
            "--runtime eager compares the elapsed {elapsed}]"
        ),
        "fitted": Template(
            "calibrated: by {count:n measurement}, with a weight of {share:%} against class defaults[; written to "
            "{written_to}]"
        ),
        "can_calibrate": Template("--calibrate fits {hardware} to {count:n measurement}, these included"),
        "copies": Template("with copies to and from the host, a call takes {time}"),
        "each": Template("values are for one of {count:#} {part}s[ and its share of {batch:plain} requests in flight]"),
        "estimated": Template("CodeCarbon may have estimated the energy from a table"),
        "few_calls": Template("the first calls include one-time overheads: call the model more often in the block"),
        "unprompted": Template("the length of the prompts is not stated, and 200 tokens are assumed"),
        "few_requests": Template("only {requests:plain} requests, so that ramp-up and ramp-down count"),
        "invalid": Template("MLPerf calls the result {result}"),
        "left_out": Template("{count:#} of {total:#} {unit}s of {name} left out: {reasons}"),
        "like": Template("{given} is read as {model}, which has as many parameters: --model names another"),
        "no_backward": Template("the backward pass is not predicted: {reason}"),
        "no_module": Template("none of its modules was called: the model or a fast path of torch bypasses them"),
        "not_calibrated": Template("no calibration: {reason}"),
        "other_calls": Template("{count:n call} with other inputs, modes or precisions took {time}, not included"),
        "other_chip": Template("possible cause: --{option} is {stated}, the file states {in_file}"),
        "overridden": Template("--{option} is {stated}, the file states {in_file}"),
        "profiled": Template("the time includes the overhead of torch.profiler (mean of {count:n pass|passes})"),
        "quantized": Template("the log does not state if the model is quantized: --precision int8 if it is"),
        "scaled": Template(
            "later predictions of {engine} on {hardware} multiply the {phase} time by {factor:plain} (from "
            "{count:n model}, weight {share:set %})[; written to {path}]"
        ),
        "spread": Template("measured times vary by {share:%}, because the clocks were not locked"),
        "imported": Template("stored {fresh:n measurement}, {known} known before"),
        "streams": Template("{count} streams share the device, so that each takes longer than alone"),
        "substitute": Template("{field} is {value}: {other} is read instead"),
        "threads": Template("timed with {count:n thread}"),
        "timed": Template(
            "measured on {device} over {count:n call}[ between {first} and {last}: mean of the middle half]"
        ),
        "transposed": Template(
            "copies between layouts take {time} per pass, {share:%} of the GPU's busy time: torch.channels_last avoids "
            "them"
        ),
        "unexplained": Template(
            "the largest difference is in {quantity}, at {ratio:x} the prediction, and no setting that the file leaves "
            "open explains it[; check {suspects}]"
        ),
        "unsteady": Template("times of calls differ by more than {share:set %}: watch on an idle machine"),
        "unstated": Template("--{option} {value} is assumed, as the file does not state it"),
        "window": Template("[median of {windows:n window}: ]{count:n pass|passes} in {time}"),
    },
)

UNDER: Final = ("left_out", "fitted", "scaled", "imported")
"""Kinds of caveats in lines below the table, in this order."""

ELSEWHERE: Final = (*UNDER, "can_calibrate", "other_chip", "unexplained", "transposed")
"""Kinds of caveats that are neither in the line on trust nor among the notes."""

NOUN: Final[Mapping[str, str]] = {
    "latency_s": "latency",
    "throughput_per_s": "throughput",
    "energy_j": "energy",
    "power_w": "power",
    "peak_memory_bytes": "peak memory",
    "time_to_first_token_s": "time to first token",
    "inter_token_latency_s": "time per output token",
    "request_latency_s": "request latency",
    "output_tokens_per_s": "output token throughput",
    "total_tokens_per_s": "total token throughput",
    "energy_per_output_token_j": "energy per output token",
    "energy_per_request_j": "energy per request",
}
"""Measured quantity -> its name."""

HEAD: Final = Template("{error}[: {inside}][; {cause}].")
ERROR: Final = Template("Error {error}")
MEDIAN: Final = Template("Median error {error}")
ONE_IS: Final = Template("{count} is {where} the 80 % range of its prediction")
SOME_ARE: Final = Template("{count} are inside the 80 % ranges of their predictions")
THE_ONE, BOTH, NEITHER = "the measurement", "both measurements", "neither measurement"
ALL: Final = Template("all {judged} measurements")
NONE: Final = Template("none of {judged} measurements")
SOME: Final = Template("{inside} of {judged} measurements")
PAIR: Final = 2
POSSIBLE: Final = Template("possible cause: {change}")
NOT_PREDICTED: Final = "No measurement is predicted."
UNSCORED: Final = Template("not scored: {reasons}")
BY_CHANCE: Final = "80 % ranges: one in five measurements is outside by chance"
NO_INTERVAL: Final = "without an interval"
EFFECT: Final = Template(
    "with {change}, the prediction of {quantity} would be {predicted}, and the measured {measured} would be {verdict}"
    "[; {inside_count} of {judged} configurations would be inside]"
)
FAR: Final = 10.0
"""Ratio of measured and predicted value, in either direction, from which the measurement may be of something else.

Source: assumed.
"""
SUSPECTS: Final = "the number of passes, the batch size, the units and the warm-up"
SUSPECTS_OF: Final = {"time_to_first_token_s": "whether it includes a queue or a warm-up"}
"""Quantity -> what to check if it is far off, in place of `SUSPECTS`."""

CHANGES: Final[Mapping[str, Template]] = {
    "weight_precision": Template("weights in {new} instead of {old}"),
    "cache_precision": Template("KV cache in {new}"),
    "batch": Template("{new:plain} requests in flight instead of {old:plain}"),
    "runtime": Template("runtime {new} instead of {old}"),
    "default_mode": Template("the default power mode instead of {mode}"),
    "mode": Template("power mode {mode}"),
    "clock": Template("{share:set %} of the clock"),
    "cap": Template("a power cap of {new:plain} W instead of {old:plain} W"),
    "devices": Template("{new:n device} instead of {old}"),
    "cached": Template("half of the prompt in the prefix cache"),
    "copied": Template("{size:B} of inputs copied from the host per batch ({added_s:s})"),
    "kept": Template("weights and inputs kept in {level} between calls ({rate:B/s})"),
}
"""Kind of change -> description; a kind without one replaces a name by another."""

REPLACED: Final = Template("{new} instead of {old}")

OPTION: Final[Mapping[str, str]] = {
    "weight_precision": "precision",
    "precision": "precision",
    "runtime": "runtime",
    "engine": "engine",
    "hardware": "hardware",
}
"""Kind of change -> option of the command that sets it."""

REASONS: Final[Mapping[str, Template]] = {
    "power_limit": Template(
        "{power:W} is impossible for {count:n device} of {hardware}, whose power limit is {limit:W}: it was measured "
        "on another machine, or covers a whole server"
    ),
    "peak_rate": Template(
        "{rate:1/s} operations are impossible for {count:n device} of {hardware}, whose highest peak is {limit:1/s}: "
        "it was measured on another machine or with other sizes"
    ),
    "weight_read": Template(
        "{taken:s} per output token is impossible for {count:n device} of {hardware}, which needs {least:s} to read "
        "the weights once: it was measured on another machine, or with another model or weight format"
    ),
    "scope": Template("{quantity} is not predicted for this scope"),
}
"""Code of a reason -> why a number is not scored."""

ONE: Final = Template("{model} on {hardware}, {configuration} ({format})")
SEVERAL: Final = Template("{case_index:n configuration} ({formats:and})")
SINGLE_RUN: Final = Template("{precision}, batch {batch}, {runtime}")
SERVED_RUN: Final = Template(
    "{engine}[ on {devices} devices], {weights} weights[, {cache} cache], {scope}, prompt {prompt}, "
    "output {output}, {batch} {requests} in flight"
)
WIDE: Final = "16-bit"
REQUEST, REQUESTS = "request", "requests"
WATCHED: Final = Template("watched: {title}")
PER_CALL: Final = Template(
    "a call takes {measured_latency_s:s}, measured here[, plus {backward_s:s} backward]; {prediction}."
)
PREDICTED: Final = Template(
    "the prediction for {hardware} is {latency_s:s} and {energy_j:J}"
    "[, plus {back_s:s} and {back_j:J} for the backward pass]"
)
NO_PREDICTION: Final = Template("no prediction for {hardware}: {refusal}")
DISAGREES: Final = Template(
    "measured {times:x} {direction} than predicted, outside the 80 % interval of {predicted:interval s}: neither "
    "predicted time nor energy holds for this run"
)

CLOSE_DIGITS: Final = 4
"""Significant digits of a measured value that is near an end of its interval, and of the interval."""


def describe_answer(facts: Facts) -> str:
    """Return the median error, the measurements inside their intervals, and a short cause of the others."""
    scores = facts.of(Score)
    judged = [one for one in scores if one.is_inside is not None]
    counted = judged or scores
    if not counted:
        return NOT_PREDICTED
    error = math.expm1(median(abs(math.log(one.measured.value / one.predicted.value)) for one in counted))
    shown = show_share(error) if error < 1.0 else f"{show_plain(1.0 + error)}x"
    given = {
        "error": (ERROR if len(counted) == 1 else MEDIAN)(error=shown),
        "inside": _count_inside(sum(bool(one.is_inside) for one in judged), len(judged)) if judged else None,
    }
    lines = (HEAD(cause=cause, **given) for cause in _list_causes(facts))
    return next((one for one in lines if one.count(" ") < MOST_WORDS), HEAD(cause=None, **given))


def _count_inside(inside: int, judged: int) -> str:
    """Return a clause on how many measurements are inside their intervals."""
    if judged == 1:
        return ONE_IS(count=THE_ONE, where="inside" if inside else "outside")
    if not inside:
        return ONE_IS(count=NEITHER if judged == PAIR else NONE(judged=judged), where="inside")
    if inside == judged:
        return SOME_ARE(count=BOTH if judged == PAIR else ALL(judged=judged))
    some = SOME(inside=inside, judged=judged)
    return ONE_IS(count=some, where="inside") if inside == 1 else SOME_ARE(count=some)


def _find_cause(facts: Facts) -> Change | None:
    """Return the cause that explains most; with another chip in the file, only the chip is one."""
    has_chip = any(one.kind == "other_chip" for one in facts.of(Caveat))
    best = next((one for one in facts.of(Change) if not has_chip or one.values["standing"] == "stated"), None)
    return best if best is not None and best.values["inside_count"] else None


def _list_causes(facts: Facts) -> Iterator[str]:
    """Yield short clauses on the cause of measurements outside their intervals, the fullest first."""
    if all(one.is_inside is not False for one in facts.of(Score)):
        return
    yield from _describe_kind(facts, "other_chip")
    cause = _find_cause(facts)
    if cause is not None:
        yield POSSIBLE(change=describe_change(cause.cause, cause.values))


def describe_change(kind: str, values: Mapping[str, Any]) -> str:
    """Return a supposed change of a setting."""
    return CHANGES.get(kind, REPLACED)(**values)


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the effect of the best cause, or on a difference that nothing explains."""
    chip = _describe_kind(facts, "other_chip") if _find_cause(facts) is None else ()
    effect = [*_describe_effect(facts), *chip, *_describe_furthest(facts)]
    return [*effect, *_describe_kind(facts, "transposed")][:MOST_WHY]


def _describe_effect(facts: Facts) -> Iterator[str]:
    cause = _find_cause(facts)
    if cause is None:
        return
    measured = next(one.measured for one in facts.of(Score) if one.runs[0] == cause.runs[0])
    shown, inside = show_both(measured, cause.after), cause.values["is_inside"]
    yield EFFECT(
        change=describe_change(cause.cause, cause.values),
        quantity=NOUN[cause.metric],
        measured=shown[0],
        predicted=shown[1],
        verdict=NO_INTERVAL if inside is None else "inside" if inside else "outside",
        inside_count=cause.values["inside_count"],
        judged=cause.values["judged_count"] if cause.values["judged_count"] != 1 else None,
    )


def _describe_furthest(facts: Facts) -> Iterator[str]:
    for one in facts.of(Caveat):
        if one.kind == "unexplained":
            name, ratio = str(one.values["quantity"]), one.values["ratio"]
            suspects = SUSPECTS_OF.get(name, SUSPECTS) if _is_far(one) else None
            yield WORDS.caveats[one.kind](quantity=NOUN[name], ratio=ratio, suspects=suspects)


def _is_far(caveat: Caveat) -> bool:
    """Return True if a measurement is so far from its prediction that it may be of something else."""
    ratio = float(caveat.values["ratio"])  # type: ignore[arg-type]
    return max(ratio, 1.0 / ratio) >= FAR


def _describe_kind(facts: Facts, kind: str) -> Iterator[str]:
    yield from (describe_condition(one.kind, one.values) for one in facts.of(Caveat) if one.kind == kind)


def describe_condition(kind: str, values: Mapping[str, Any]) -> str:
    """Return the sentence on a condition of a measurement."""
    if kind == "left_out":
        counts = values["reasons"]
        told = "; ".join(f"{count}: {text}" if len(counts) > 1 else text for text, count in counts)
        values = {**values, "reasons": told}
    return describe_values(kind, values)


def list_remarks(facts: Facts) -> list[str]:
    """Return lines below the table: what was left out or not scored, stored and calibrated."""
    reasons = dict.fromkeys(map(describe_refusal, facts.of(Refusal)))
    unscored = [UNSCORED(reasons="; ".join(reasons))] if reasons else []
    return [*unscored, *(line for kind in UNDER for line in _describe_kind(facts, kind))]


def describe_doubt(facts: Facts) -> str:
    """Return the line on trust: what ranges mean, and the conditions that could move a comparison most."""
    judged = any(one.is_inside is not None for one in facts.of(Score))
    return describe_trust(_keep_conditions(facts), BY_CHANCE if judged else "")


def describe_disagreement(facts: Facts) -> str:
    """Return a sentence on a prediction for this machine that misses the measured time; empty if it does not."""
    for one in facts.of(Score):
        if one.is_inside is False:
            ratio = one.measured.value / one.predicted.value
            return DISAGREES(
                times=max(ratio, 1.0 / ratio),
                direction="slower" if ratio > 1.0 else "faster",
                predicted=(one.predicted.value, one.predicted.half_width),
            )
    return ""


def list_conditions(facts: Facts) -> list[str]:
    """Return the conditions that the line on trust does not have."""
    return list_notes(_keep_conditions(facts), is_beyond_trust=True)


def _keep_conditions(facts: Facts) -> Facts:
    kept = tuple(one for one in facts.of(Caveat) if one.kind not in ELSEWHERE)
    return attrs.evolve(facts, facts=kept)


def join_conditions(findings: Iterable[Finding]) -> str:
    """Return conditions of a measurement in one text, which is stored with it."""
    return "; ".join(describe_values(one.kind, one.values) for one in findings)


def make_reason(code: str, values: Mapping[str, Any]) -> Reason:
    """Return the reason why a number is not scored."""
    return Reason(text=REASONS[code](**values), code=code, values=values)


def list_steps(facts: Facts, files: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """Return commands that test the best cause or keep what was measured; `options` are those of the question.

    No command can read standard input again.
    """
    if "-" in files:
        return []
    kinds = {one.kind for one in facts.of(Caveat)}
    own = {name: value for name, value in options.items() if value}
    steps = [{**own, **changed}] if (changed := _find_option(facts)) and len(files) == 1 else []
    is_far = any(_is_far(one) for one in facts.of(Caveat) if one.kind == "unexplained")
    is_written = any(one.values.get("path") for one in facts.of(Caveat))
    if kinds & {"can_calibrate", "fitted"} and not is_far and not is_written:
        steps.append({**own, "calibrate": None})
    if "imported" not in kinds and facts.of(Score) and all(one.is_inside is not False for one in facts.of(Score)):
        steps.append({**own, "keep": None})
    return [shlex.join(["joulemap", "verify", *files, *_spell(one)]) for one in steps]


def _spell(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        yield f"--{name}"
        if value is not None:
            yield str(value)


def _find_option(facts: Facts) -> dict[str, Any]:
    """Return the option that tests the best cause; empty if no option does."""
    chip = next((one.values["hardware"] for one in facts.of(Caveat) if one.kind == "other_chip"), None)
    cause = _find_cause(facts)
    if chip:
        return {"hardware": chip}
    if cause is None:
        return {}
    if "hardware" in cause.values:
        return {"hardware": cause.values["hardware"]}
    return {OPTION[cause.cause]: cause.values["new"]} if cause.cause in OPTION else {}


def show_measured(value: Quantity) -> str:
    """Return a measured or predicted value with its interval."""
    return show_interval(value.value, value.unit, value.half_width)


def show_both(measured: Quantity | None, predicted: Quantity) -> tuple[str, str]:
    """Return a measured value and its prediction; with more digits if an end of the interval looks like the value."""
    width = predicted.half_width
    ends = [predicted.value * math.exp(sign * width) for sign in (-1.0, 1.0)] if width else []
    if measured is None:
        return "", show_measured(predicted)
    if f"{measured.value:.1e}" not in {f"{end:.1e}" for end in ends}:
        return show_measured(measured), show_measured(predicted)
    span = show_span(*(_show_close(Quantity(end, predicted.unit)) for end in ends))
    return _show_close(measured), f"{show_quantity(predicted.value, predicted.unit)} ({span})"


def _show_close(value: Quantity) -> str:
    """Return a value with `CLOSE_DIGITS` digits, for a comparison that depends on them."""
    if not value.unit.isalpha():
        return show_measured(value)
    return format_si(value.value, value.unit, CLOSE_DIGITS)
