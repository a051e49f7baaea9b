"""Words for verifications: how many measurements are inside their intervals, the median error, and a cause."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Final

from joulemap.ask.fact import Caveat, Facts, Refusal, Score
from joulemap.present.cell import show_share
from joulemap.present.template import Template
from joulemap.show.caveat import describe_caveat
from joulemap.show.choice import MOST_WORDS
from joulemap.show.word import Words

WORDS: Final = Words(
    caveats={"cause": Template("possible cause: {change}"), "other_chip": Template("possible cause: {text}")},
)

INSIDE: Final = Template("{inside} of {judged} measurements are inside the 80 % intervals of their predictions")
BOTH_INSIDE: Final = "Both measurements are inside the 80 % intervals of their predictions"
ALL_INSIDE: Final = Template("All {judged} measurements are inside the 80 % intervals of their predictions")
ONE_INSIDE: Final = Template("1 of {judged} measurements is inside the 80 % interval of its prediction")
NEITHER_INSIDE: Final = "Neither measurement is inside the 80 % interval of its prediction"
NONE_INSIDE: Final = Template("None of the {judged} measurements is inside the 80 % interval of its prediction")
ONE_JUDGED: Final = {
    True: "The measurement is inside the 80 % interval of its prediction",
    False: "The measurement is outside the 80 % interval of its prediction",
}
PAIR: Final = 2
WHOLE: Final = Template("{inside} (median error {error})[; {cause}].")
LIKELIEST: Final = Template("most likely cause: {change}")
NOT_JUDGED: Final = "No measured quantity has an interval"
NOT_PREDICTED: Final = "No measurement is predicted"
UNSCORED: Final = Template("not scored: {reasons}")


ONE: Final = Template("{model} on {hardware}, {configuration} ({format})")
SEVERAL: Final = Template("{case_index:n configuration} ({formats:and})")
SINGLE_RUN: Final = Template("{precision}, batch {batch}, {runtime}")
SERVED_RUN: Final = Template(
    "{engine}[ on {devices} devices], {weights} weights[, {cache} cache], {scope}, prompt {prompt}, "
    "output {output}, {batch} {requests} in flight"
)
WIDE: Final = "16-bit"
REQUEST, REQUESTS = "request", "requests"
TOO_MUCH_POWER: Final = Template(
    "{power:W} is impossible for {count:n device} of {hardware}, whose power limit is {limit:W}: it was measured on "
    "another machine, or covers a whole server"
)
TOO_MANY_OPERATIONS: Final = Template(
    "{rate:1/s} operations are impossible for {count:n device} of {hardware}, whose highest peak is {limit:1/s}: it "
    "was measured on another machine or with other sizes"
)
TOO_FAST_A_STEP: Final = Template(
    "{taken:s} per output token is impossible for {count:n device} of {hardware}, which needs {least:s} to read the "
    "weights once: it was measured on another machine, or with another model or weight format"
)
OUT_OF_SCOPE: Final = Template("{quantity} is not predicted for this scope")
UNEXPLAINED: Final = Template(
    "the largest difference is in {quantity}, at {ratio:x} the prediction, and no setting that the file leaves open "
    "explains it"
)
FAR_OFF: Final = Template("check {suspects}")
SUSPECTS: Final = "the number of passes, the batch size, the units and the warm-up"
SUSPECTS_OF_FIRST_TOKEN: Final = "whether it includes a queue or a warm-up"
EFFECT: Final = Template(
    "with {change}, the prediction of {quantity} would be {predicted}, and the measured {measured} would be {verdict}"
    "[; {inside_count} of {judged} configurations would be inside]"
)
CALIBRATED: Final = Template(
    "the last column uses a calibration to {row_count:n measurement}, which counts {latency_credibility:%}; class "
    "defaults count {defaults:%}"
)
CALIBRATED_SERVED: Final = Template(
    "later predictions of {engine} on {hardware} multiply {parts:and}; their intervals keep their width[; {left}]; "
    "written to {place}"
)
PART: Final = Template("the {phase} time by {factor:plain} (from {count:n model}, weight {weight:set %})")
FEW_MODELS: Final = Template("prefill is unchanged, because it needs {least} models and {count} was measured")
UNFITTED: Final = Template(
    "nothing to calibrate on {hardware}: expected a decode rate of a single request, or prompts of {least} models"
)
INHERITED: Final = Template(
    "{hardware} has the calibration of {other}, which a new file would replace: fit it with `joulemap calibrate`"
)
CALIBRATION_KEPT: Final = Template("; written to {place}")
CALIBRATION_OFFERED: Final = "; --calibrate keeps it"
CAN_CALIBRATE: Final = Template("--calibrate fits {hardware} to {count:n measurement}, the ones above included")
NOT_CALIBRATED: Final = Template("no calibration: {error}")
STORED: Final = Template("stored {fresh:n measurement}, {known} known before")
LEFT_OUT: Final = Template("{count} of {total} runs of {file} left out: {reasons}")
VARIED: Final[Mapping[str, Template]] = {
    "weight_precision": Template("weights in {new} instead of {old}"),
    "cache_precision": Template("KV cache in {new}"),
    "engine": Template("{new} instead of {old}"),
    "batch": Template("{new:plain} requests in flight instead of {old:plain}"),
    "precision": Template("{new} instead of {old}"),
    "runtime": Template("runtime {new} instead of {old}"),
}
"""Column that a cause changes -> description of the change."""

OTHER_HARDWARE: Final = Template("{new} instead of {old}")
DEFAULT_MODE: Final = Template("the default power mode instead of {mode}")
OTHER_MODE: Final = Template("power mode {mode}")
CLOCK: Final = Template("{share:set %} of the clock")
CAP: Final = Template("a power cap of {new:plain} W instead of {old:plain} W")
DEVICES: Final = Template("{new:n device} instead of {old}")
CACHED: Final = "half of the prompt in the prefix cache"
COPIED: Final = Template("{size:B} of inputs copied from the host per batch ({added_s:s})")
KEPT: Final = Template("weights and inputs kept in {level} between calls ({rate:B/s})")
FORMAT: Final = Template("{name}: {url}")
MOST_CAUSES: Final = Template(
    "of the {count} configurations outside, causes were evaluated for the {most} furthest off"
)
OVERRIDDEN: Final = Template("--{option} is {stated}, the file states {found}")
ONE_DEVICE: Final = "one device is assumed, as the file does not state it: --devices sets another number"
WIDE_WEIGHTS: Final = "16-bit weights are assumed, as the file does not state them: --precision sets another format"
PUBLISHED_WEIGHTS: Final = Template(
    "{weights} weights are assumed, as the model is published: the file does not state them; --precision sets another "
    "format"
)
REPLICAS: Final = Template(
    "{count} replicas share {batch:plain} requests in flight: measured and predicted values are of one replica, with "
    "its share of requests, rates and power"
)
DIVIDED: Final = Template("{count} devices together; values are divided by that number")
AT_ONCE: Final = Template("all {requests:plain} requests arrived at once")
BURST: Final = Template(
    "{share:%} of the requests arrived together at the start: predicted means of the time to first token and of the "
    "request include their wait"
)
FEW_REQUESTS: Final = Template(
    "only {requests:plain} requests: ramp-up and ramp-down weigh as much as the steady state"
)
FEW_LAYERS: Final = Template(
    "{layers:plain} of {layer_count} layers are on the GPU, and a prediction is for one chip: see `joulemap here`"
)
PARTLY_ON_HOST: Final = "a part of the model is in host memory, and a prediction is for one chip"
CACHE_TYPES: Final = Template("its KV cache is in {types:and}: only f16, bf16, f32 and q8_0 are predicted")
LIKE: Final = Template("llama-bench names it {given}: {model} has as many parameters; --model names another")
MEDIAN: Final = "median GPU compute time"
OPENVINO_MEDIAN: Final = "median latency; --precision int8 names a quantized model, which the log does not state"
WITH_COPIES: Final = Template("{whole} with copies to and from the host")
STREAMS: Final = Template("{streams} streams share the device: each takes longer than alone")
SPREAD: Final = Template("trtexec warns of a spread of {percent:plain} %: clocks were not locked")
PROFILED: Final = Template("{basis} under torch.profiler, including its overhead")
HOST_BOUND: Final = Template(
    "the GPU was busy for {busy_s:s} of {elapsed_s:s} per pass, because the profiler slows the host: the busy time is "
    "compared with the runtime graph; --runtime eager compares the elapsed time"
)
KERNEL_TIME: Final = (
    "Self CUDA time is the sum of kernel times without the gaps between them, so it is compared with the runtime graph"
)
TRANSPOSED: Final = Template(
    "copies between layouts take {seconds:s} per pass, {share:%} of the GPU's busy time: "
    "model.to(memory_format=torch.channels_last) avoids them, and predictions assume that layout"
)
PROFILER_STEPS: Final = Template("mean of {count} profiler steps")
PASSES: Final = Template("{count} passes")
TIMER: Final = Template("{title}[; {threads}]")
WINDOW: Final = Template("{name}[, {meter}]: {count} passes in {seconds:plain} s")
METER: Final = Template("median of {windows:n window}")
CODECARBON: Final = Template("{columns:and}[, {guess}]")
ESTIMATED: Final = "which CodeCarbon may have estimated from a table"
MLPERF: Final = Template("MLPerf {scenario}[, result {result}]")
MLPERF_BATCH: Final = Template("batch {batch} is assumed, as the log does not state it: --batch sets another")
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
CALLS: Final = Template(
    "measured on {device} over {count:n call}[ between {first_s:s} and {last_s:s}: mean of the middle half]"
)
UNSTEADY: Final = Template("unreliable: these differ by more than {share:set %}; watch on an idle machine")
FEW_CALLS: Final = "the first calls include one-time overheads: call the model more often inside the block"
OTHER_CALLS: Final = Template("{count:n call} with other inputs, modes or precisions took {seconds:s}, not included")
NO_MODULE: Final = "none of its modules was called: the model or a fast path of torch bypasses them"
COMPILED: Final = "a compiled module is timed as a whole: its kernels contain operators of several modules"
BESIDE: Final = Template("the block took {seconds:s} more for {work}")
BESIDE_TRAINING: Final = "loss, optimizer steps and other work"
BESIDE_INFERENCE: Final = "other work"
NO_BACKWARD: Final = Template("the backward pass is not predicted: {error}")


def describe_answer(facts: Facts) -> str:
    """Return the measurements inside their intervals, the median error, and a short cause of the others."""
    return _conclude(facts)[0]


def _conclude(facts: Facts) -> tuple[str, bool]:
    """Return the first line, and whether it has room for the cause."""
    scores = facts.of(Score)
    judged = [one for one in scores if one.is_inside is not None]
    if not judged:
        return f"{NOT_JUDGED if scores else NOT_PREDICTED}.", False
    error = median(abs(math.log(one.measured.value / one.predicted.value)) for one in judged)
    given = {
        "inside": _count_inside(sum(bool(one.is_inside) for one in judged), len(judged)),
        "error": show_share(math.expm1(error)),
    }
    cause = describe_cause(facts)
    whole = WHOLE(cause=cause or None, **given)
    has_room = bool(cause) and whole.count(" ") < MOST_WORDS
    return whole if has_room else WHOLE(cause=None, **given), has_room


def describe_cause(facts: Facts) -> str:
    """Return the likeliest cause of measurements outside their intervals; empty without one."""
    for one in facts.of(Caveat):
        if one.values.get("standing") == "assumed":
            return LIKELIEST(change=one.values["change"])
        return describe_caveat(one, facts.runs)
    return ""


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on a cause that the first line has no room for, and on what was not scored."""
    cause = "" if _conclude(facts)[1] else describe_cause(facts)
    found = [cause] if cause else []
    reasons = dict.fromkeys(one.reason for one in facts.of(Refusal))
    return [*found, *([UNSCORED(reasons="; ".join(reasons))] if reasons else [])]


def _count_inside(inside: int, judged: int) -> str:
    """Return a clause on how many measurements are inside their intervals."""
    if judged == 1:
        return ONE_JUDGED[inside == 1]
    if judged == PAIR and inside != 1:
        return BOTH_INSIDE if inside else NEITHER_INSIDE
    if inside == judged:
        return ALL_INSIDE(judged=judged)
    return (INSIDE if inside > 1 else ONE_INSIDE if inside else NONE_INSIDE)(inside=inside, judged=judged)
