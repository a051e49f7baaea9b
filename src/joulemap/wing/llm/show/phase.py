"""Words on prefill and decode: how much more a token costs in decode, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.ask.fact import Change, Choice, Facts, Share
from joulemap.show.present.cell import show_span
from joulemap.show.present.template import Template
from joulemap.wing.llm.phase import ANSWER, PHASE_NAMES

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
BEST: Final = Template("least energy per token: {prefill} in prefill, {decode} in decode")


def describe_phases(facts: Facts) -> str:
    """Return the first line: energy of an output token over that of a prompt token, on each class."""
    changes = [one for one in facts.of(Change) if one.metric == "energy"]
    ratios = [(one.after.value / one.before.value, facts.runs[one.runs[0]].hardware) for one in changes]
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
        (phase,) = facts.runs[one.runs[0]].settings
        spans.setdefault((one.name, phase), []).append(100.0 * one.share)
    shown = {key: _show_span(values, "{:.0f}") for key, values in spans.items()}
    yield PARTS(**{name: shown["compute", name] for name in PHASE_NAMES})
    yield REST(decode=shown["memory", ANSWER.name])


def _describe_best(facts: Facts) -> Iterator[str]:
    prefill, decode = (facts.runs[one.runs[0]].hardware for one in facts.of(Choice))
    yield BEST(prefill=prefill, decode=decode)


def _show_span(values: list[float], form: str) -> str:
    return show_span(*(form.format(value) for value in (min(values), max(values))))
