"""Words on prefill and decode: how much more a token costs in decode, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from joulemap.ask import Change, Choice, Facts, Share
from joulemap.domain import Col
from joulemap.generated.architectures import ArchitectureSummary
from joulemap.physics import spell_precision
from joulemap.show import (
    MOST_WHY,
    Asked,
    Document,
    Grid,
    Page,
    Section,
    Template,
    Title,
    compose_runs,
    count_left_out_below,
    derived,
    fill_steps,
    lay_columns,
    show_quantity,
    show_share,
    show_span,
    show_table,
)
from joulemap.wing.decoder import ANSWER, PHASE_NAMES, find_phase
from joulemap.wing.llm.ask.phases import PhasesAnswer

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
EXPLAIN: Final = Template("explain {model} {hardware} {other} {words} --runtime {runtime}")
SERVE: Final = Template("llm {name}")
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


def name_phase(answer: PhasesAnswer) -> Col[ArchitectureSummary]:
    """Return the column of the phase of a pass, which depends on its number of tokens."""
    return derived("phase", lambda row: find_phase(answer.count_tokens(row)).name)


def lay_passes(answer: PhasesAnswer) -> Grid:
    """Return the table of passes: energy and time per token, and shares of the energy."""
    of, phase = ArchitectureSummary, name_phase(answer)
    energy: Col[ArchitectureSummary] = derived(
        "J/token", lambda row: show_quantity((row.energy_j or 0.0) / answer.count_tokens(row), "J")
    )
    time: Col[ArchitectureSummary] = derived(
        "time/token", lambda row: show_quantity((row.latency_s or 0.0) / answer.count_tokens(row), "s")
    )
    chip: Col[ArchitectureSummary] = derived(
        "on chip", lambda row: show_share(sum(getattr(row, f"{name}_fraction") or 0.0 for name in ON_CHIP))
    )
    columns = (
        of.architecture, phase, energy, time, of.compute_fraction, chip, of.off_chip_memory_fraction,
        of.control_fraction, of.board_fraction, of.unattributed_fraction, of.static_fraction,
        of.compute_utilization_fraction, of.hardware, of.precision,
    )  # fmt: skip
    kept = (phase, energy, of.compute_fraction, chip)
    keep = (*kept, of.off_chip_memory_fraction, of.static_fraction, of.control_fraction)
    return lay_columns(answer, answer.shown, columns, keep=keep)


def draw_phases(answer: PhasesAnswer, asked: Asked) -> Document:
    """Return the document of prefill and decode."""
    of, first, last = ArchitectureSummary, answer.pairs[0][1], answer.pairs[-1][1]
    traffic: Col[ArchitectureSummary] = derived(
        "off-chip bytes", lambda row: f"{row.off_chip_bytes_per_mac or 0.0:.2g} B"
    )
    each = (
        of.architecture, name_phase(answer).kept, of.energy_per_mac_j.headed("energy").kept,
        of.compute_per_mac_j.kept, traffic.kept, of.macs_per_order.if_any, of.order_name.if_any,
        of.memory_time_fraction,
    )  # fmt: skip
    steps = fill_steps(
        [*([EXPLAIN] if last is not first else []), SERVE],
        first,
        asked.repeated,
        hardware=answer.scope.spell(first.hardware),
        other=answer.scope.spell(last.hardware),
        words=spell_precision(first.precision),
        name=answer.model,
    )
    return compose_runs(
        answer,
        answer.facts,
        count_left_out_below(answer.scope, [Section("", lay_passes(answer))] if answer.shown else []),
        answer.rows,
        title=Title(form=Template("{model}"), row=answer, about=ABOUT(answer)),
        headline=describe_phases(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        details=show_table(answer, "Energy per MAC", answer.shown, each),
        steps=steps,
    )


PAGES: Final = {PhasesAnswer: Page[PhasesAnswer](draw=draw_phases)}
