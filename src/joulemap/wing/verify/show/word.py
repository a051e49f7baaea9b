"""Words of measurements for the core and for what computes: caveats, supposed changes, and numbers without a score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from joulemap.ask import Caveat, Facts, Finding
from joulemap.show import Template, Words, list_notes
from joulemap.show.caveat import describe_values
from joulemap.system import Reason

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
    "empty": Template("{field} is empty"),
    "unusable": Template("{field} is {value}, expected a finite number {bound} 0"),
    "scope": Template("{quantity} is not predicted for this scope"),
}
"""Code of a reason -> why a number is not scored."""

SINGLE_RUN: Final = Template("{precision}, batch {batch}, {runtime}")
SERVED_RUN: Final = Template(
    "{engine}[ on {devices} devices][ with {others}, layers {split}], {weights} weights[, {cache} cache], {scope}, "
    "prompt {prompt}, output {output}, {batch} {requests} in flight"
)
WIDE: Final = "16-bit"
REQUEST, REQUESTS = "request", "requests"


def describe_change(kind: str, values: Mapping[str, Any]) -> str:
    """Return a supposed change of a setting."""
    return CHANGES.get(kind, REPLACED)(**values)


def describe_condition(kind: str, values: Mapping[str, Any]) -> str:
    """Return the sentence on a condition of a measurement."""
    if kind == "left_out":
        counts = values["reasons"]
        told = "; ".join(f"{count}: {text}" if len(counts) > 1 else text for text, count in counts)
        values = {**values, "reasons": told}
    return describe_values(kind, values)


def list_conditions(facts: Facts) -> list[str]:
    """Return the conditions that the line on trust does not have."""
    return list_notes(keep_conditions(facts), is_beyond_trust=True)


def keep_conditions(facts: Facts) -> Facts:
    """Return the conditions that are said neither below the table nor among the reasons."""
    kept = tuple(one for one in facts.of(Caveat) if one.kind not in ELSEWHERE)
    return attrs.evolve(facts, facts=kept)


def join_conditions(findings: Iterable[Finding]) -> str:
    """Return conditions of a measurement in one text, which is stored with it."""
    return "; ".join(describe_values(one.kind, one.values) for one in findings)


def make_reason(code: str, values: Mapping[str, Any]) -> Reason:
    """Return the reason why a number is not scored."""
    return Reason(text=REASONS[code](**values), code=code, values=values)
