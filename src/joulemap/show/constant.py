"""Words and tables on constants: which reverses the order of two chips, which moves a metric most, what each rests on,
and what to measure next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import attrs

from joulemap.ask.constant import TIMES, ConstantAnswer, EvidenceAnswer, Evident, Sensitivity, SensitivityAnswer, Varied
from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Share, Subject, Swing, Turn
from joulemap.domain.constant import MEANINGS
from joulemap.domain.metric import METRIC
from joulemap.domain.table import Table, first_of_each
from joulemap.domain.value import show_constant
from joulemap.physics.record.constant import STATIC
from joulemap.show.caveat import show_middle, show_range
from joulemap.show.choice import MOST_WHY, describe_beyond, finish, name_metric
from joulemap.show.column import lay_columns, show_table
from joulemap.show.page import Asked, Figures, Page, compose_runs, draw_figure, fill_steps, first_and_rest
from joulemap.show.present.cell import mark_projected, number, show_odds, show_quantity, show_span
from joulemap.show.present.document import Document, Lines, Section
from joulemap.show.present.picture import Picture
from joulemap.show.present.template import Template
from joulemap.show.run import title_runs
from joulemap.show.run_name import join_names, name_all, name_first, name_run
from joulemap.show.title import Title

DIGITS: Final = 3
"""Significant digits of constants in lines and main tables; the detailed tables show more digits."""

MOST_NAMED: Final = 2
"""Maximum runs whose range the line on trust states."""

STAYS: Final = Template(
    "{winner} stays ahead on {noun}[ ({chance:chance} sure)]: no single number is likely to reverse it"
    "[; {loser} wins at batch {batches:and}][; a tie at batch {ties:and}]"
)
UNLESS: Final = Template("{winner} leads by {ratio:x}, but not with {turn}")
CLOSE: Final = Template(
    "{winner} or {loser}: a tie on {noun}[ ({chance:chance} for {winner})][; measure first: {name} of {owner}]"
)
TURN: Final = Template("{name} of {owner} at {after}[, not {before}][ ({odds})]")
ABOVE: Final = Template("just above {value}")
BELOW: Final = Template("just below {value}")
BOTH: Final = "both chips"

AT_BATCH: Final = Template("{loser} wins at batch {batches:and}[; a tie at batch {ties:and}]")
NEAREST: Final = Template("nearest: {turn}")
NEXT: Final = Template("next: {turn}")

LIKELY: Final = 0.1
"""Minimum probability of a reversal by one constant that the first line names."""

MEASURE: Final = Template("measure next: {name} of {owner} ({basis}), {share:%} of the uncertainty")
SHARES: Final = Template("uncertainty: {parts:list}")
PART: Final = Template("{share:%} from {owner}")
ODDS: Final = Template("chance of the other order: {odds:odds}[; of half the lead or less: {half:odds}]")

MOVES: Final = Template(
    "Measure the {name} of {chip} first ([{ends}, ]{basis}): it moves {noun} most, {values}[ (predicted {value})]"
)
MOVES_OTHER: Final = Template("{noun} of {chip} moves most with {name} ([{ends}, ]{basis}): {values}")
STILL: Final = Template("No constant changes {noun} on {chips:and}")
RANGE: Final = Template("80 % range of {chip}: {range}")


def describe_turn(facts: Facts) -> str:
    """Return the first line: the likeliest reversal of two runs, or the constant that moves one run most."""
    return _describe_reversal(facts) if facts.of(Choice) else _describe_swing(facts)


def _describe_reversal(facts: Facts) -> str:
    """Return how firm the order of two runs is: what to measure in a tie, the likeliest reversal, or that none is
    likely.
    """
    (choice,) = facts.of(Choice)
    winner, loser = (name_run(facts.runs[one]) for one in choice.runs)
    given = {"winner": winner, "loser": loser, "noun": _name_asked(facts), "ratio": choice.ratio}
    if choice.tied:
        first = [one for one in facts.of(Share) if one.axis][:1]
        named = [{"name": one.name, "owner": name_owner(one.runs, facts.runs)} for one in first]
        lines = [CLOSE(chance=choice.probability, **given, **one) for one in (*named, {"name": "", "owner": ""})]
    else:
        likely = [one for one in list_turns(facts) if (one.probability or 0.0) >= LIKELY][:1]
        heads = [describe_change(one, facts.runs, has_before=some) for one in likely for some in (True, False)]
        batches = _list_batches(facts)
        stays = [STAYS(chance=choice.probability, **some, **given) for some in (batches, dict.fromkeys(batches))]
        lines = [UNLESS(turn=head, **given) for head in heads] or stays
    return finish(lines)


def _list_batches(facts: Facts) -> dict[str, list[str]]:
    """Return the batch sizes at which the other run wins, and those at which it leads in a tie."""
    turns = facts.turns("batch")
    return {name: [str(one.after) for one in turns if one.is_tied == is_tied]
            for name, is_tied in (("batches", False), ("ties", True))}  # fmt: skip


def list_turns(facts: Facts) -> list[Turn]:
    """Return the reversals by constants, likeliest first."""
    return [one for one in facts.of(Turn) if one.name]


def describe_change(turn: Turn, runs: Mapping[int, Subject], *, has_before: bool = True) -> str:
    """Return the constant of a reversal, the value that it would need, and how likely that is."""
    before, after = (
        show_value(_number(one), one.unit) for one in (turn.before, turn.after) if isinstance(one, Quantity)
    )
    if before == after:
        is_more = _number(turn.after) > _number(turn.before)
        before, after = "", (ABOVE if is_more else BELOW)(value=after)
    return TURN(
        name=turn.name,
        owner=name_owner(turn.of, runs),
        after=after,
        before=before if has_before else "",
        odds=show_odds(turn.probability),
    )


def _number(value: object) -> float:
    return value.value if isinstance(value, Quantity) else 0.0


@number
def show_value(value: float | None, unit: str, digits: int = DIGITS) -> str:
    """Return the value of a constant; the scale of a time is a factor, such as 2x; empty for None."""
    if value is None:
        return ""
    shown = show_constant(value, "1" if unit == TIMES else unit, digits)
    return f"{shown}{TIMES}" if unit == TIMES else shown


def name_owner(ids: Sequence[int], runs: Mapping[int, Subject]) -> str:
    """Return the chip of a constant, or that it is one of both chips."""
    return BOTH if len(ids) > 1 else join_names(name_all(runs, ids))


def _describe_swing(facts: Facts) -> str:
    """Return the constant that moves the metric of the first run most."""
    noun = _name_asked(facts)
    firsts = _list_firsts(facts)
    if not firsts:
        return STILL(noun=noun, chips=name_all(facts.runs, facts.runs)) + "."
    entries = {one.run: one.values[facts.asked[0]] for one in facts.of(Entry)}
    value = entries[firsts[0].run]
    shown = (show_middle(value), "")
    return finish([_fill(MOVES, firsts[0], facts.runs, noun=noun, value=one) for one in shown])


def describe_swings(facts: Facts) -> dict[str, str]:
    """Return hardware -> a line on the constant that moves its metric most."""
    noun = _name_asked(facts)
    return {facts.runs[one.run].hardware: _fill(MOVES_OTHER, one, facts.runs, noun=noun) for one in _list_firsts(facts)}


def _name_asked(facts: Facts) -> str:
    """Return the name of the metric that the answer is about."""
    return name_metric(facts.asked[0])


def _list_firsts(facts: Facts) -> list[Swing]:
    """Return the largest swing of each run."""
    return list(first_of_each(facts.of(Swing), lambda one: one.run).values())


def _fill(template: Template, swing: Swing, runs: Mapping[int, Subject], **more: str) -> str:
    ends = [show_value(one.value, one.unit) for one in swing.ends]
    values = [show_middle(one) for one in swing.values]
    return template(
        name=swing.name,
        chip=name_first(runs, swing),
        ends=show_span(*ends) if len(ends) > 1 else "",
        basis=swing.basis,
        values=show_span(values[0], values[-1]),
        **more,
    )


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: other reversals, what to measure next, and the uncertainty of each chip."""
    runs = facts.runs
    lines, choices = list(describe_swings(facts).values())[1:], facts.of(Choice)
    batches = _list_batches(facts)
    if batches["batches"] and choices[0].tied:  # a decision without a tie names them
        lines.append(AT_BATCH(loser=name_run(runs[choices[0].runs[1]]), **batches))
    turns = list_turns(facts)
    nearest = [one for one in turns if (one.probability or 0.0) < LIKELY or choices[0].tied][:1]
    lines += [NEAREST(turn=describe_change(one, runs)) for one in nearest]
    lines += [NEXT(turn=describe_change(one, runs)) for one in turns[1:] if one.of != turns[0].of][:1]
    shares = facts.of(Share)
    lines += [
        MEASURE(name=one.name, owner=name_owner(one.runs, runs), basis=one.basis, share=one.share)
        for one in shares
        if one.axis
    ][:1]
    sides = [PART(share=one.share, owner=name_owner(one.runs, runs)) for one in shares if not one.axis]
    return [*lines, *([SHARES(parts=sides)] if sides else [])]


def describe_odds(facts: Facts) -> str:
    """Return the probability of the other order, or the range of the metric of one or two runs."""
    half = next((one.probability for one in facts.turns("ratio")), None)
    odds = [ODDS(odds=1.0 - one.probability, half=half) for one in facts.of(Choice) if one.probability is not None]
    return "; ".join([*odds, *_list_ranges(facts.of(Entry)[:MOST_NAMED], facts.runs)])


def _list_ranges(entries: Iterable[Entry], runs: Mapping[int, Subject]) -> list[str]:
    return [
        RANGE(chip=name_first(runs, one), range=show_range(value))
        for one in entries
        for value in one.values.values()
        if value.half_width
    ]


SENSITIVITY_TITLE: Final = Template("effect of each constant on {metric.label}[, {paid}]")
LARGEST: Final = Template("{chip}: {label} {value}, constants with the largest effect first")
SWING_STEPS: Final = (
    Template("[flip {model} {pair} --metric {metric}]"),
    Template("[compare {model} --hardware {joined} --set {setting}]"),
)
EVIDENCE_STEP: Final = Template("sensitivity {model} {pair} --metric {metric}[ --precision {precision}]")
DRAWN: Final = Template("{metric.label} on {chip}, {value}")
OPERANDS: Final = Template("{row.word} (operand supply)")
FROM: Final = Template("from {end}")
UP_TO: Final = Template("up to {end}")
EVIDENCE_TITLE: Final = Template("numbers that move {metric.label} by a tenth or more")
SAID: Final = Template(
    "Measure the {name} of {chip} first ({basis}): that narrows {noun} most; {known} of {count} numbers behind it are "
    "known."
)
NONE: Final = Template("No number moves {noun} on {chip} by a tenth or more")
STATED: Final = {"measured": "the chip itself", "published": "a document"}
"""Basis -> what a number rests on that was fitted to no measurements."""

INT8: Final = "int8"
SUPPLY: Final = f"peak.{INT8}"
"""Constant that sets how fast operands reach the tensor cores of a GPU, at every precision."""

WORD: Final = Template("{word}: {meaning}")
SLOPE: Final = Template("+1 % changes {metric.label} by")

MOST_WORDS: Final = 3
"""Maximum coefficients that a line below the table explains."""

FEWEST: Final = 3
"""Minimum constants listed per chip, even if many chips share the table, and reversals even if none is likely."""


def show_field(name: str, digits: int = 6) -> Callable[[Varied], str]:
    """Return the cell of a value of a constant."""
    return lambda row: show_value(getattr(row, name), row.shown_unit, digits)


def explain_words(rows: Iterable[Varied]) -> list[Lines]:
    """Return what the first coefficients of a table mean, whose names are not those of a data sheet."""
    known = {row.word: row.meaning or MEANINGS.get(row.constant, "") for row in rows if row.kind == "coefficient"}
    told = [WORD(word=word, meaning=meaning) for word, meaning in known.items() if meaning][:MOST_WORDS]
    return [Lines(told)] if told else []


def show_slope(name: str) -> Callable[[Varied], str]:
    """Return the cell of an elasticity, with its sign; empty for None."""

    @number
    def show(row: Varied) -> str:
        value = getattr(row, name)
        return "" if value is None else f"{value:+.3f} %" if abs(value) >= 5e-4 else "0 %"

    return show


def show_metric(name: str) -> Callable[[Sensitivity], str]:
    """Return the cell of a value of the metric of a sensitivity."""
    return lambda row: show_quantity(getattr(row, name), row.metric_unit)


def show_span_of(row: Sensitivity) -> str:
    """Return the range of the metric over the range of a constant."""
    values = [show_quantity(one, row.metric_unit) for one in (*row.metrics[:1], *row.metrics[-1:])]
    return show_span(*values)


def show_ends_of(row: Sensitivity) -> str:
    """Return the range of a constant as text; empty if it is exact. An impossible end is omitted."""
    ends = [show_value(one, row.shown_unit) for one in row.ends]
    if row.spread == "exact" or not ends:
        return ""
    return show_span(*ends) if len(ends) > 1 else (FROM if row.high is None else UP_TO)(end=ends[0])


def title(answer: ConstantAnswer, about: Template, **values: Any) -> Title:
    """Return a title with what the answer is about."""
    return attrs.evolve(title_runs(answer.scope), about=about(metric=METRIC[answer.metric], paid=answer.paid, **values))


def name_pair(answer: ConstantAnswer, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of slots in commands on chips."""
    pair = [answer.scope.spell(name) for name in names]
    return {"model": answer.scope.model, "pair": pair, "joined": ",".join(pair), "metric": answer.metric}


def list_moving(answer: SensitivityAnswer, hardware: str) -> list[Sensitivity]:
    """Return the constants of a chip that move the metric."""
    return [row for row in answer.of(hardware) if row.is_moving]


def choose_swings(moving: Sequence[Sequence[Sensitivity]], limit: int) -> list[Sensitivity]:
    """Return the constants of each chip with the largest effect, static power among them."""
    each, chosen = max(limit // max(len(moving), 1), FEWEST), list[Sensitivity]()
    for rows in moving:
        static = [row for row in rows[each:] if row.constant == STATIC]
        chosen += [*rows[: each - len(static)], *static]
    return chosen


def list_steps(answer: SensitivityAnswer, names: Sequence[str], repeated: Sequence[str]) -> list[list[str]]:
    """Return the follow-up commands: what would reverse the order of two chips, and a comparison at an end."""
    first = next((row for row in answer.rows if row.is_moving and answer.can_set(row)), None)
    at, slots = f"{first.hardware}:" if first and len(names) > 1 else "", name_pair(answer, names[:2])
    setting = f"{at}{first.constant}=x{_find_factor(first):.4g}" if first else ""
    pair = slots["pair"] if len(names) > 1 else []
    return fill_steps(SWING_STEPS, None, repeated, **{**slots, "pair": pair, "setting": setting})


def _find_factor(row: Sensitivity) -> float:
    """Return the upper end of a constant's range divided by its value; the lower end if there is no upper end.

    The factor is rounded towards 1.
    """
    if row.high is not None:
        return math.floor(100.0 * row.high / row.value) / 100.0
    return math.ceil(100.0 * (row.low or row.value) / row.value) / 100.0


def lay_swings(
    answer: SensitivityAnswer, chosen: Sequence[Sensitivity], count: int, way: str, *, is_pair: bool
) -> list[Section]:
    """Return the section of the largest effects with a picture of the range of the metric."""
    of, metric, precisions = Sensitivity, METRIC[answer.metric], answer.scope.precisions
    values = [row.metrics for row in chosen]
    marks = tuple((one[0], one[(len(one) - 1) // 2], one[-1]) if one and one[0] else () for one in values)
    picture = Picture(kind="interval", after=f"{metric.label} over range", rows=marks, unit=metric.unit)
    is_supply = not any(one == INT8 for one, _ in precisions)
    columns = (
        of.word.by(lambda row: OPERANDS(row=row) if row.constant == SUPPLY and is_supply else row.word),
        of.hardware.kept if is_pair else None,
        of.value.by(show_field("value", DIGITS)),
        of.spread.headed("range").by(show_ends_of).kept,
        of.metric_value.headed(f"{metric.label} over range").by(show_span_of).kept,
        of.span_fraction.headed(f"{metric.label} width").ranking.kept,
        of.elasticity.headed(SLOPE(metric=metric)).by(show_slope("elasticity")),
        of.basis.kept,
    )
    return show_table(
        answer,
        "",
        answer.rows.with_rows(chosen),
        columns,
        *explain_words(chosen),
        change=lambda drawn: attrs.evolve(drawn, pictures=(picture,)).out_of(count, len(chosen), "constants", way),
    )


def lay_moving(answer: SensitivityAnswer, title: str, rows: Table[Sensitivity], limit: int) -> list[Section]:
    """Return the section of all constants of a chip that move the metric."""
    of, label = Sensitivity, METRIC[answer.metric].label
    columns = (
        of.constant,
        of.value.by(show_field("value")).kept,
        of.low.by(show_field("low")).kept,
        of.high.by(show_field("high")).kept,
        of.spread,
        of.metric_low.headed(f"{label} at low").by(show_metric("metric_low")),
        of.metric_high.headed(f"{label} at high").by(show_metric("metric_high")),
        of.span_fraction.headed(f"{label} width").ranking.kept,
        of.energy_elasticity.by(show_slope("energy_elasticity")).kept,
        of.latency_elasticity.by(show_slope("latency_elasticity")).kept,
        of.method,
        of.basis.kept,
        of.meaning,
    )
    return [Section(title, lay_columns(answer, rows, columns, limit=limit, noun="constants"))]


def list_chips(answer: SensitivityAnswer) -> Iterator[tuple[Mapping[str, Any], Table[Sensitivity]]]:
    """Yield the constants of each chip and its values for a title."""
    metric = METRIC[answer.metric]
    for name in dict.fromkeys(row.hardware for row in answer.rows):
        rows = list_moving(answer, name)
        shown = show_quantity(rows[0].metric_value, metric.unit) if rows else ""
        chip = mark_projected(name, answer.projected)
        work = " per million inferences" if metric.per == "million inferences" else ""  # no title names it
        yield {"chip": chip, "value": f"{shown}{work}"}, answer.rows.with_rows(rows)


def draw_tornados(answer: SensitivityAnswer) -> Figures:
    """Return a figure for each chip that any constant affects."""
    from joulemap.show.figure.figure import describe_metric

    texts, findings = describe_metric(METRIC[answer.metric]), describe_swings(answer.facts)
    return tuple(
        draw_figure(answer.scope, "tornado", rows, title(answer, DRAWN, **given), findings[rows[0].hardware], texts)
        for given, rows in list_chips(answer)
        if rows.rows
    )


def draw_sensitivity(answer: SensitivityAnswer, asked: Asked) -> Document:
    """Return the document of the constants that move a metric most."""
    most, names = asked.most(6), list(dict.fromkeys(row.hardware for row in answer.rows))
    moving = [list_moving(answer, name) for name in names]
    longest, label = max(map(len, moving)), METRIC[answer.metric].label
    way = f"--limit {longest * len(names)}" if longest > 2 * most else "--show details"
    chosen = choose_swings(moving, most)
    swings = lay_swings(answer, chosen, sum(map(len, moving)), way, is_pair=len(names) > 1)
    each = (
        lay_moving(answer, LARGEST(label=label, **given), rows, 2 * most)
        for given, rows in islice(list_chips(answer), 2 * most or None)
    )
    first, rest = first_and_rest([swings, *each])
    return compose_runs(
        answer,
        answer.facts,
        first,
        answer.rows,
        title=title(answer, SENSITIVITY_TITLE),
        headline=describe_turn(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        trust=describe_odds(answer.facts),
        details=rest,
        steps=list_steps(answer, names, asked.repeated),
    )


def describe_rest(row: Evident) -> str:
    """Return the measurements behind a number, or where it comes from."""
    return STATED.get(row.basis, "no measurement") if row.evidence is None else row.evidence.describe()


def describe_known(answer: EvidenceAnswer) -> str:
    """Return the first line: how many numbers are known, and the one whose measurement would narrow the result most."""
    noun, chip = METRIC[answer.metric].label, mark_projected(answer.scope.hardware[0], answer.projected)
    if not answer.rows:
        return NONE(noun=noun, chip=chip)
    first, count = answer.rows[0], len(answer.rows)
    return SAID(known=answer.known_count, count=count, noun=noun, chip=chip, name=first.word, basis=first.basis)


def draw_evidence(answer: EvidenceAnswer, asked: Asked) -> Document:
    """Return the document of the numbers that move a result, and what each rests on."""
    of, repeated, most = Evident, asked.repeated, asked.most(12)
    columns = (
        of.word.headed("number"),
        of.value.by(show_field("value", DIGITS)).kept,
        of.elasticity.headed(SLOPE(metric=METRIC[answer.metric])).by(show_slope("elasticity")),
        of.basis,
        of.sources.by(describe_rest),
        of.uncertainty_fraction,
    )
    sources = (of.word.headed("number"), of.basis, of.source)
    # the precision of the question, which the other command would not take
    precision = None if "--precision" in repeated else answer.scope.precisions[0][0]
    named = name_pair(answer, answer.scope.hardware[:1])
    return compose_runs(
        answer,
        answer.facts,
        show_table(
            answer, "", answer.rows, columns, *explain_words(answer.rows.rows[:most]), limit=most, noun="numbers"
        ),
        answer.rows,
        title=title(answer, EVIDENCE_TITLE),
        headline=describe_known(answer),
        reasons=describe_beyond(answer.facts)[:MOST_WHY],
        details=show_table(answer, "sources", answer.rows, sources),
        steps=fill_steps([EVIDENCE_STEP], None, repeated, precision=precision, **named),
    )


PAGES: Final = {
    SensitivityAnswer: Page[SensitivityAnswer](draw=draw_sensitivity, draw_figures=draw_tornados),
    EvidenceAnswer: Page[EvidenceAnswer](draw=draw_evidence),
}
