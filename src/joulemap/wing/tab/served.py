"""Answer about a GPU: the language models that it runs for one user, how fast, and at what energy per token."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from joulemap.ask import Quantity
from joulemap.domain.value import read_value
from joulemap.physics import list_constants
from joulemap.prediction import find_constant
from joulemap.show import show_quantity
from joulemap.show.caveat import RANGES
from joulemap.system import JoulemapError, ModelError, UnknownNameError, frozen
from joulemap.wing.decoder import GGUF, LOCAL_ENGINE, find_decoder, find_engine, list_decoders
from joulemap.wing.llm.serve import READING_RATE, Passes, predict_step
from joulemap.wing.tab import show
from joulemap.wing.tab.draw import draw_intervals
from joulemap.wing.tab.state import Answer, State, find_plain, read_whole

MOST_MODELS: Final = 30
"""Maximum models of one answer; a browser takes a tenth of a second for each."""

WEIGHTS: Final = ("q3_k_m", "q4_k_m", "q5_k_m", "q6_k", "q8_0", "bf16")
"""Weight formats that the form offers; a link may have others."""

WIDE: Final = ("fp16", "fp32")
"""Precisions of activations on a chip that lacks that of the checkpoint."""

SLIDERS: Final = {"power": "tdp", "bandwidth": "memory_bandwidth"}
"""Field with a percentage -> number of the chip that it scales."""

LEAST_PERCENT: Final = 10
MOST_PERCENT: Final = 1000

MOST_TOKENS: Final = 10_000_000


@frozen(kw_only=True)
class Served:
    """Language model on a chip for one user: its first output token after a prompt."""

    model: str
    command: str
    rate: Quantity | None = None
    """Output tokens per second; None if the chip does not run the model."""
    energy: Quantity | None = None
    """Energy of one output token."""
    first: Quantity | None = None
    """Time to the first token."""
    refusal: str = ""


def serve(state: State) -> Answer:
    """Return which language models a chip runs; one of them is a file if the state names it."""
    chip = find_plain(state["chip"])
    prompt = read_whole(state, "prompt", 1, MOST_TOKENS)
    factors = {
        name: f"x{percent / 100:g}"
        for field, name in SLIDERS.items()
        if (percent := read_whole(state, field, LEAST_PERCENT, MOST_PERCENT)) != 100
    }
    models = (state["file"],) if state["file"] else [one.strip() for one in state["models"].split(",")][:MOST_MODELS]
    rows = [_serve_one(model, chip.id, state["weights"], prompt, factors) for model in models]
    running = sorted((one for one in rows if one.rate is not None), key=_find_rate, reverse=True)
    best = _choose(rows)
    drawn = {
        heading: [(_shorten(one.model), value, "") for one in running if (value := find(one)) is not None]
        for heading, find in DRAWN.items()
    }
    changes = [f"{name}={factor}" for name, factor in factors.items()]
    return {
        "title": show.SERVED(
            label=chip.name,
            engine=find_engine(LOCAL_ENGINE).label,
            weights="" if state["file"] else state["weights"],
            prompt=prompt,
            changes=changes or None,
        ),
        "command": best.command,
        "line": _describe(chip.id, best, rows),
        "why": [],
        "trust": RANGES if running else "",
        "left_out": [show.REFUSED(model=_shorten(one.model), reason=one.refusal) for one in rows if one.refusal],
        "links": [],
        "blocks": [draw_intervals(heading, rows) for heading, rows in drawn.items() if rows],
    }


DRAWN: Final[Mapping[str, Callable[[Served], Quantity | None]]] = {
    show.RATE: lambda one: one.rate,
    show.TOKEN: lambda one: one.energy,
    show.FIRST: lambda one: one.first,
}
"""Heading of a picture -> value that it draws for each model."""


def _choose(rows: Sequence[Served]) -> Served:
    """Return the largest model at reading speed, else the fastest one; rows are in the order of their size."""
    fluent = [one for one in rows if _find_rate(one) >= READING_RATE]
    return fluent[-1] if fluent else max(rows, key=_find_rate)


def _find_rate(one: Served) -> float:
    return one.rate.value if one.rate is not None else 0.0


def _describe(label: str, best: Served, rows: Sequence[Served]) -> str:
    """Return the decision in one sentence."""
    if best.rate is None or best.energy is None:
        return show.RUNS_NONE(label=label) if len(rows) > 1 else show.RUNS_NOT(label=label, model=_shorten(best.model))
    given: dict[str, Any] = {
        "label": label,
        "model": _shorten(best.model),
        "total": len(rows),
        "reading": show.PER_SECOND(rate=f"{READING_RATE:g}"),
        "rate": show.PER_SECOND(rate=show_quantity(best.rate.value, best.rate.unit)),
        "joules": show_quantity(best.energy.value, best.energy.unit),
    }
    if len(rows) == 1:
        return show.RUNS_ONE(**given)
    return (show.RUNS if best.rate.value >= READING_RATE else show.RUNS_SLOWLY)(**given)


def _serve_one(model: str, chip: str, weights: str, prompt: int, factors: Mapping[str, str]) -> Served:
    """Return the first output token after a prompt, as `joulemap llm --output 2` states it; ModelError for a damaged
    file.
    """
    is_file = model.lower().endswith(GGUF)
    options = ["--batch", "1", "--prompt", str(prompt), "--output", "2", "--engine", LOCAL_ENGINE]
    try:
        record = find_plain(chip)
        precision, weights = ("", "") if is_file else (_find_precision(model, chip), weights)
        options += [] if is_file else ["--precision", precision, "--weight-precision", weights]
        options += [part for name, factor in factors.items() for part in ("--set", f"{name}={factor}")]
        known = list_constants(record)
        changes = {name: read_value(factor, find_constant(known, name, ())) for name, factor in factors.items()}
        steps = predict_step(
            model, chip, engine=LOCAL_ENGINE, precision=precision, weight_precision=weights, changes=changes
        )
        found = steps.price(Passes.of([1.0, 1.0], tokens=[float(prompt), 1.0], context=[0.0, float(prompt)]))
        refusal = next((str(one) for one in found.refusal if one), "")
    except JoulemapError as error:
        if is_file and isinstance(error, ModelError):
            raise  # a damaged file says nothing about the chip
        found, refusal = None, str(error)
    name = f"./{_shorten(model)}" if is_file else model
    command = shlex.join(["joulemap", "llm", name, chip, *options])
    if found is None or refusal:
        return Served(model=model, command=command, refusal=refusal)
    first, seconds, joules = float(found.latency_s[0]), float(found.latency_s[1]), float(found.energy_j[1])
    return Served(
        model=model,
        command=command,
        rate=Quantity(1.0 / seconds, "", _find_width(float(found.latency_high_s[1]), seconds)),
        energy=Quantity(joules, "J", _find_width(float(found.energy_high_j[1]), joules)),
        first=Quantity(first, "s", _find_width(float(found.latency_high_s[0]), first)),
    )


def _find_precision(model: str, chip: str) -> str:
    """Return the precision of the checkpoint if the chip has it, else a wide one."""
    decoder = find_decoder(model)
    if decoder is None:
        raise UnknownNameError("language model", model, list_decoders())
    record = find_plain(chip)
    known = (decoder.choose_precision(record, find_engine(LOCAL_ENGINE))[0], *WIDE)
    return next((one for one in known if one in record.peaks), known[0])


def _find_width(high: float, value: float) -> float | None:
    """Return the half-width of an interval; None without an interval."""
    return None if math.isnan(high) else math.log(high / value)


def _shorten(model: str) -> str:
    """Return the name of a model, without the folder of a file."""
    return model.rpartition("/")[2]
