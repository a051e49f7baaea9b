"""Words for training: the decision, the total, the parts of a step, and what does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from joulemap.ask.fact import Caveat, Choice, Entry, Facts, Refusal, Share
from joulemap.show.caveat import describe_caveat, show_range
from joulemap.show.choice import MOST_WHY, describe_choices
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run
from joulemap.show.word import Words

PAID: Final = Template("cost and carbon: {use}; `joulemap cost --details` lists the other assumptions")
NEEDS: Final = Template("needs {needed:B} per device, but has {capacity:B} usable")
UNSUPPORTED: Final = Template(
    "{hardware} does not run this model at {precision}[ on {devices:#} devices]"
    "[ (it has {precisions:list}: --precision)]"
)
UNLINKED: Final = Template("{error} (--tensor-devices x --pipeline-devices)")
NOTHING: Final = Template("{runs:and} {why}[ (it fits with {fits_with})]")
EACH: Final = Template("{runs:and}: each {why}[ (it fits with {fits_with})]")
REFUSED_RUN: Final = Template("{label} at batch {batch:#}")

WORDS: Final = Words(
    caveats={
        "lower_bound": Template("the time of {chips} is a lower bound: kernels that convert operands are not counted"),
        "too_large": Template("batch {batch:#} does not fit in the memory of {chips}[ (it fits with {fits_with})]"),
    },
    nouns={"training_speed": "training speed", "energy_per_sample": "energy per sample"},
    better={
        "training_speed": Template("trains {ratio:x} faster[ than {rival}]"),
        "energy_per_sample": Template("uses {ratio:x} less energy per sample[ than {rival}]"),
    },
)

ONLY: Final = Template("{name} trains at {most}{rate} {unit}[ and uses {sample} per sample].")
AT_MOST: Final = "most "
TOKENS, SAMPLES = "tokens/s", "samples/s"
EPOCHS: Final = Template("{epochs:n epoch}")
ALL_SAMPLES: Final = Template("{samples:n sample}")
TOTAL: Final = Template("{amount} on {name} take {time}[ and use {energy}][, for {cost}]")
STEP: Final = Template("time per step on {name}: {shares:list}")
SHARE: Final = Template("{phase} {share:%}")
PHASES: Final[Mapping[str, str]] = {
    "forward_s": "forward",
    "backward_s": "backward",
    "again_s": "recomputation",
    "attention_again_s": "recomputed attention scores",
    "exchange_s": "exposed communication",
    "optimizer_s": "optimizer",
    "bubble_s": "pipeline bubble",
}
"""Part of a step's time -> its name."""
MOST_REFUSED: Final = 2
"""Maximum reasons that the line below the table gives."""


def describe_answer(facts: Facts) -> str:
    """Return the decision by training speed and energy per sample, or the values of the fastest configuration."""
    if choices := facts.of(Choice):
        return describe_choices(choices[:2], facts.runs)
    entry = facts.of(Entry)[0]
    values = entry.values
    unit, rate = (TOKENS, values["tokens_per_s"]) if "tokens_per_s" in values else (SAMPLES, values["samples_per_s"])
    is_bound = any(one.kind == "lower_bound" for one in facts.of(Caveat))
    return ONLY(
        name=name_run(facts.runs[entry.runs[0]]),
        most=AT_MOST if is_bound else "",
        rate=show_quantity(rate.value, "").strip(),
        unit=unit,
        sample=show_range(values["energy_per_sample"]) if "energy_per_sample" in values else None,
    )


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the whole training and on the parts of a step of the fastest configuration."""
    return [*_describe_total(facts), *_describe_step(facts)][:MOST_WHY]


def describe_refused(facts: Facts) -> str:
    """Return a line on configurations that do not run, below the table; empty if all run."""
    large = [describe_caveat(one, facts.runs) for one in facts.of(Caveat) if one.kind == "too_large"]
    return "; ".join([*large, *dict.fromkeys(one.reason for one in facts.of(Refusal))][:MOST_REFUSED])


def _describe_total(facts: Facts) -> Iterator[str]:
    first = facts.of(Entry)[0]
    values = first.values
    if "total" not in values:
        return
    epochs, samples = round(values["epochs"].value), round(values["samples"].value)
    shown = {name: show_range(values[name]) if name in values else None for name in ("total_energy", "total_cost")}
    yield TOTAL(
        amount=ALL_SAMPLES(samples=samples) if values["epochs"].value == 1.0 else EPOCHS(epochs=epochs),
        name=name_run(facts.runs[first.runs[0]]),
        time=show_range(values["total"]),
        energy=shown["total_energy"],
        cost=shown["total_cost"],
    )


def _describe_step(facts: Facts) -> Iterator[str]:
    shares = facts.of(Share)
    if shares:
        name = name_run(facts.runs[shares[0].runs[0]])
        yield STEP(name=name, shares=[SHARE(phase=PHASES[one.name], share=one.share) for one in shares])
