"""Words on prefill and decode: how much more a token costs in decode, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from joulemap.ask import Change, Choice, Facts, Share
from joulemap.physics import spell_precision
from joulemap.show import Part, Shape, Template, Title, show_quantity, show_share, show_span
from joulemap.wing.llm.ask.phases import PhasesAnswer
from joulemap.wing.llm.phase import ANSWER, PHASE_NAMES, find_phase

ON_CHIP: Final = ("register", "on_chip_memory", "interconnect")
"""Energy categories of data that stays on the chip."""

RATIOS: Final = Template("An output token uses {ratios:and} the energy of a prompt token")
SPAN: Final = Template("An output token uses {least:x} to {most:x} the energy of a prompt token")
RATIO: Final = Template("{ratio:x} ({architecture})")
MOST_RATIOS: Final = 4
"""Maximum classes in the first line; more are a range."""

REUSE: Final = Template(
    "off-chip bytes per MAC: {prefill} B in prefill, {decode} B in decode, which uses a weight once"
)
PARTS: Final = Template("computing: {prefill} % of the energy in prefill, {decode} % in decode")
REST: Final = Template("off-chip memory and static power: {decode} % of the energy in decode")
ABOUT: Final = Template("a token of a {prompt:#}-token prompt and the next output token, batch 1")
EXPLAIN: Final = "explain {model} {hardware} {other} {words} --runtime {runtime}"
BEST: Final = Template("least energy per token: {prefill} in prefill, {decode} in decode")


def describe_phases(facts: Facts) -> str:
    """Return the first line: energy of an output token over that of a prompt token, on each class."""
    changes = [one for one in facts.of(Change) if one.metric == "energy"]
    ratios = [(one.after.value / one.before.value, facts.runs[one.run].hardware) for one in changes]
    if len(ratios) > MOST_RATIOS:
        values = [ratio for ratio, _ in ratios]
        return SPAN(least=min(values), most=max(values)) + "."
    return RATIOS(ratios=[RATIO(ratio=ratio, architecture=name) for ratio, name in ratios]) + "."


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on traffic per MAC, shares of the energy, and the best class of both phases."""
    return [*_describe_traffic(facts), *_describe_shares(facts), *_describe_best(facts)]


def _describe_traffic(facts: Facts) -> Iterator[str]:
    changes = [one for one in facts.of(Change) if one.metric == "traffic"]
    ends = [one.before.value for one in changes], [one.after.value for one in changes]
    prefill, decode = (_show_span(values, "{:.2g}") for values in ends)
    yield REUSE(prefill=prefill, decode=decode)


def _describe_shares(facts: Facts) -> Iterator[str]:
    spans: dict[tuple[str, str], list[float]] = {}
    for one in facts.of(Share):
        (phase,) = facts.runs[one.run].settings
        spans.setdefault((one.name, phase), []).append(100.0 * one.share)
    shown = {key: _show_span(values, "{:.0f}") for key, values in spans.items()}
    yield PARTS(**{name: shown["compute", name] for name in PHASE_NAMES})
    yield REST(decode=shown["memory", ANSWER.name])


def _describe_best(facts: Facts) -> Iterator[str]:
    prefill, decode = (facts.runs[one.run].hardware for one in facts.of(Choice))
    yield BEST(prefill=prefill, decode=decode)


def _show_span(values: list[float], form: str) -> str:
    return show_span(*(form.format(value) for value in (min(values), max(values))))


def show_cells(answer: PhasesAnswer) -> Mapping[str, Any]:
    """Return the cells of a pass that depend on its number of tokens."""
    return {
        "each": lambda row: show_quantity((row.energy_j or 0.0) / answer.count_tokens(row), "J"),
        "time": lambda row: show_quantity((row.latency_s or 0.0) / answer.count_tokens(row), "s"),
        "phase": lambda row: find_phase(answer.count_tokens(row)).name,
    }


def choose(answer: PhasesAnswer, **_: Any) -> Mapping[str, Any]:
    """Return the title, and the values of slots in the follow-up commands."""
    first, last = answer.pairs[0][1], answer.pairs[-1][1]
    return {
        "title": Title(form=Template("{model}"), row=answer, about=ABOUT(answer)),
        "row": first,
        "hardware": answer.scope.spell(first.hardware),
        "other": answer.scope.spell(last.hardware),
        "words": spell_precision(first.precision),
        "name": answer.model,
        "dropped": () if last is not first else (EXPLAIN,),
    }


PHASES: Final = Shape(
    first=describe_phases,
    why=list_reasons,
    parts=(
        Part(
            table="shown",
            columns="architecture | phase | J/token each | time/token time | compute_fraction | on chip chip | "
            "off_chip_memory_fraction | control_fraction | board_fraction | unattributed_fraction | static_fraction | "
            "compute_utilization_fraction | hardware | precision",
            lay={
                "keep": "phase each compute_fraction chip off_chip_memory_fraction static_fraction control_fraction",
                "chip": lambda row: show_share(sum(getattr(row, f"{name}_fraction") or 0.0 for name in ON_CHIP)),
            },
            cells=show_cells,
            counts_left_out=True,
        ),
        Part(
            title="Energy per MAC",
            table="shown",
            columns="architecture | *phase | *energy energy_per_mac_j | *compute_per_mac_j | *off-chip bytes bytes | "
            "macs_per_order? | order_name? | memory_time_fraction",
            lay={"bytes": lambda row: f"{row.off_chip_bytes_per_mac or 0.0:.2g} B"},
            cells=show_cells,
        ),
    ),
    choices=choose,
    steps=(EXPLAIN, "llm {name}"),
)

PAGES: Final = {PhasesAnswer: PHASES}
