"""Words for the facts about this machine: what it runs, how fast, and what could not be read."""

from __future__ import annotations

import math
from typing import Final

from joulemap.ask.fact import Choice, Entry, Facts, Limit, Quantity, Refusal, Subject
from joulemap.show.choice import describe_choice
from joulemap.show.present.cell import show_interval, show_plain, show_quantity
from joulemap.show.present.template import Template
from joulemap.show.word import Words

TARIFF: Final = Template(
    "electricity at {usd:plain} USD/kWh, for the energy of the chips, without the rest of the machine"
)
RESERVE: Final = Template(
    "the system and its desktop keep {reserve:B} of {memory:B}, so models use at most {usable:B} on {label}"
)
METAL: Final = (
    "macOS lets the GPU use two thirds of up to 32 GiB of memory and three quarters of more; "
    "`sudo sysctl iogpu.wired_limit_mb=N` raises it"
)
WORKS: Final = Template("no language models on NPUs: llama.cpp has no kernels for {names:and}")
SHARED: Final = Template("{label} shares the machine's memory with the processor")
NO_COUNT: Final = Template("{tool}: {field} is {value}: expected a number from 0 on")
NO_PROCESSOR: Final = Template("{reason}; name a chip instead, as in `joulemap llm llama-3.1-8b ryzen_9_7950x`")
NO_GRAPHICS: Final = "no GPU found; in a container, pass the device and its tool (such as nvidia-smi) through"
NO_DRIVER: Final = Template(
    "{name}: nvidia-smi does not answer; install NVIDIA's driver, or share the GPU with the container"
)
NO_DMIDECODE: Final = (
    "memory bandwidth is assumed, because dmidecode is missing or needs root: use `sudo joulemap here`, or "
    "--memory DDR5-5600x2 (kind, MT/s, 64-bit channels)"
)
NO_MEMORY_SPEED: Final = Template(
    "memory speed unknown: {system} does not report it; state it with --memory DDR5-5600x2"
)
FASTER_MEMORY: Final = Template(
    "the bandwidth of --memory, {rate:B/s}, is {ratio:x} the {known:B/s} that the catalogue has for {label}: check the "
    "number of channels"
)
AMBIGUOUS: Final = Template("{name} may be any of {names:list}: name one with `joulemap llm MODEL NAME`")
NEAREST: Final = Template("{name} is not in the catalogue[; nearest: {near:list}][; {described}]")
SOCKETS: Final = Template("this machine has {count} {label} processors; answers are for one of them")
CORES: Final = Template("answers are for the {count} of {whole} cores of {label} that this machine has")
PROBE: Final = Template("measured: {stream:B/s} stream bandwidth, {product:1/s} fp32 operations[, {idle:W} idle]")

WORDS: Final = Words(caveats={"gap": Template("{text}")})

LARGEST: Final = Template(
    "{model} is the largest model that reaches reading speed ({least} tokens/s): {rate} on {name}."
)
UNSURE: Final = Template(
    "{model} is the largest model predicted to reach reading speed ({least} tokens/s), but may miss it: {rate} on"
    " {name}."
)
"""`LARGEST` where the range of the rate includes slower ones."""

SLOW: Final = Template("No model reaches reading speed ({least} tokens/s); {model} is fastest: {rate} on {name}.")
BEST: Final = Template(
    "{name} runs {model} at {rate}[ and {energy} per token] with {weights} weights"
    "[; {fastest} reaches {most} tokens/s]."
)
ONLY: Final = Template("{name} runs {model} in {latency} with {energy} per {unit}.")
FASTEST: Final = Template("{name} runs {model} fastest, in {latency} with {energy} per {unit}[; it {lead}].")
INFERENCE: Final = "inference"
BATCH: Final = Template("batch of {batch}")
NOTHING: Final = Template("{model} runs on no chip of this machine.")
NOTHING_FITS: Final = "None of the listed language models fits."
NO_DEVICE: Final = "No chip of this machine can be predicted."
TOO_LARGE: Final = Template("too large: {models:few}")
REASON: Final = Template("[{weights} on ]{name} {reason}")
MOST_REASONS: Final = 3
"""Maximum chips whose refusals the line below the table explains."""


def describe_answer(facts: Facts, model: str, batch: int) -> str:
    """Return the largest model that is read as it comes, or the best chip for one model."""
    choices = facts.of(Choice)
    if not choices:
        if not facts.runs:
            return NO_DEVICE
        return NOTHING(model=model) if model else NOTHING_FITS
    first = choices[0]
    run = facts.runs[first.runs[0]]
    if first.metric == "largest_model":
        (limit,) = facts.of(Limit)
        slowest = first.value.value * math.exp(-(first.value.half_width or 0.0))
        template = SLOW if limit.miss else LARGEST if slowest >= limit.bound.value else UNSURE
        least = show_plain(limit.bound.value)
        return template(model=run.settings[0], least=least, rate=show_rate(first.value), name=run.hardware)
    values = next(one.values for one in facts.of(Entry) if one.runs[0] == first.runs[0])
    energy = values.get("energy_per_token", values.get("energy"))
    given = {"name": run.hardware, "model": model, "energy": None if energy is None else _show(energy)}
    if first.metric == "latency":
        unit = INFERENCE if batch == 1 else BATCH(batch=batch)
        if len(first.runs) == 1:
            return ONLY(unit=unit, latency=show_interval(first.value.value, "s", first.value.half_width), **given)
        given["latency"] = _show(first.value)
        return FASTEST(unit=unit, lead=describe_choice(first, _bare(facts)), **given)
    other = next((one for one in choices if one.metric == "fastest"), None)
    most = None if other is None else show_quantity(other.value.value, "").strip()
    fastest = None if other is None else facts.runs[other.runs[0]].settings[1]
    return BEST(rate=show_rate(first.value), weights=run.settings[1], fastest=fastest, most=most, **given)


def describe_refused(facts: Facts) -> str:
    """Return a line on what does not fit, below the table; empty if everything runs."""
    refused = {key: one.reason for one in facts.of(Refusal) for key in one.runs}
    running = {facts.runs[one.runs[0]].settings[0] for one in facts.of(Entry) if one.runs[0] not in refused}
    models = dict.fromkeys(facts.runs[key].settings[0] for key in refused)
    large = [one for one in models if one not in running]
    if len({run.settings[0] for run in facts.runs.values()}) > 1:
        return TOO_LARGE(models=large) if large else ""
    last: dict[str, str] = {}
    for key, reason in refused.items():
        run = facts.runs[key]
        weights = run.settings[1] if len(run.settings) > 1 else None
        # the reason of another model names the chip
        last[run.hardware] = REASON(weights=weights, name=run.hardware, reason=reason) if weights else reason
    return "; ".join([*last.values()][:MOST_REASONS])


def show_rate(value: Quantity) -> str:
    """Return tokens per second with their interval."""
    ends = show_interval(value.value, "", value.half_width)
    number = show_quantity(value.value, "").strip()
    return f"{number} tokens/s{ends[len(number) :]}"


def _show(value: Quantity) -> str:
    return show_quantity(value.value, value.unit)


def _bare(facts: Facts) -> dict[int, Subject]:
    """Return the runs with the names of their chips alone."""
    return {key: Subject(hardware=run.hardware) for key, run in facts.runs.items()}
