"""Words on constants: which reverses the order of two chips, which moves a metric most, and what to measure next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from joulemap.ask.fact import Choice, Entry, Facts, Quantity, Share, Subject, Swing, Turn
from joulemap.domain.value import show_constant
from joulemap.show.caveat import show_range
from joulemap.show.choice import MOST_WORDS, describe_choice, name_metric
from joulemap.show.present.cell import show_odds, show_quantity, show_span
from joulemap.show.present.template import Template
from joulemap.show.run_name import join_names, name_all, name_run

DIGITS: Final = 3
"""Significant digits of constants."""

MOST_NAMED: Final = 2
"""Maximum runs whose range the line on trust states."""

TIMES: Final = "x"
"""Unit of a constant that scales a time."""

WINS: Final = Template("{loser} would win with {turn}")
TURN: Final = Template("{name} of {owner} at {after}[, not {before}][ ({odds})]")
LEAD: Final = Template("{winner} leads by {ratio:x}; {head}")
NEARLY: Final = Template("{winner} leads by under 0.5 %; {head}")
ABOVE: Final = Template("just above {value}")
BELOW: Final = Template("just below {value}")
NO_TURN: Final = Template("No single constant reverses the order: {winner} {clause}")
BOTH: Final = "both chips"

AT_BATCH: Final = Template("{loser} wins at batch {batches:and}")
NEXT: Final = Template("next: {turn}")
MEASURE: Final = Template("measure next: {name} of {owner} ({basis}), {share:%} of the uncertainty")
SHARES: Final = Template("uncertainty: {parts:list}")
PART: Final = Template("{share:%} from {owner}")
ODDS: Final = Template("chance of the other order: {odds:odds}[; of half the lead or less: {half:odds}]")

MOVES: Final = Template("The {name} of {chip} ([{ends}, ]{basis}) moves {noun} most: {values}[ (predicted {value})]")
MOVES_OTHER: Final = Template("{noun} of {chip} moves most with {name} ([{ends}, ]{basis}): {values}")
STILL: Final = Template("No constant changes {noun} on {chips:and}")
RANGE: Final = Template("80 % range of {chip}: {range}")

SPREADS: Final = "ranges are from the constant's own entry, the fit of its class, or its basis"
REVERSAL_NOTES: Final = (
    "each constant is varied alone, between 1/100 and 100 times its value; static power only up to the power limit",
    "chance: probability that the constant is wrong by this much in this direction. The total error is taken "
    "from similar predictions and divided among constants by their share of the uncertainty",
    f"share of uncertainty: {SPREADS}; constants are independent, and a constant of both chips counts once",
)
SAME_ORDER: Final = Template("the order is the same at batch {first} to {last}")

SWING_NOTES: Final = (
    "elasticity: percent of the metric per percent of the constant, each constant alone; for a count, the "
    "mean elasticity between half and twice its value",
    f"{SPREADS}; the metric is computed at the value and both ends, not between them. Width: the largest minus the "
    "smallest of these, relative to the run",
)
CAPPED: Final = Template("the power cap lowers the clock of {hardware}, so energies per action change its latency too")
WITHOUT_EFFECT: Final = Template("{count:n other constant} without effect here: --format json")
MEANING: Final = Template("{word}: {meaning}")
MEANINGS: Final = {
    "coefficient.voltage_floor": "lowest voltage, as a share of the highest",
    "coefficient.voltage_knee": "clock below which the voltage no longer falls, as a share of the die's highest clock",
    "coefficient.cap_share": "share of the power limit, above static power, that a long run may draw",
}
"""Coefficient common to all classes -> meaning, used if the class file states none."""


def describe_turn(facts: Facts) -> str:
    """Return the first line: the likeliest reversal of two runs, or the constant that moves one run most."""
    return _describe_reversal(facts) if facts.of(Choice) else _describe_swing(facts)


def _describe_reversal(facts: Facts) -> str:
    """Return the likeliest reversal and the present lead, as far as the line has room."""
    (choice,) = facts.of(Choice)
    winner, loser = (name_run(facts.runs[one]) for one in choice.runs)
    turns = list_turns(facts)
    if not turns:
        return NO_TURN(winner=winner, clause=describe_choice(choice, facts.runs)) + "."
    lead = LEAD if (choice.ratio or 1.0) >= 1.005 else NEARLY
    heads = [
        WINS(loser=loser, turn=describe_change(turns[0], facts.runs, has_before=has_before, has_odds=has_odds))
        for has_before, has_odds in ((True, True), (False, True), (False, False))
    ]
    lines = [*(lead(head=head, winner=winner, ratio=choice.ratio) for head in heads), *heads]
    return next((one for one in lines if one.count(" ") < MOST_WORDS), lines[-1]) + "."


def list_turns(facts: Facts) -> list[Turn]:
    """Return the reversals by constants, likeliest first."""
    return [one for one in facts.of(Turn) if one.name]


def describe_change(turn: Turn, runs: Mapping[int, Subject], *, has_before: bool = True, has_odds: bool = True) -> str:
    """Return the constant of a reversal, the value that it would need, and how likely that is."""
    before, after = (show_value(one) for one in (turn.before, turn.after) if isinstance(one, Quantity))
    if before == after:
        is_more = _number(turn.after) > _number(turn.before)
        before, after = "", (ABOVE if is_more else BELOW)(value=after)
    return TURN(
        name=turn.name,
        owner=name_owner(turn.of, runs),
        after=after,
        before=before if has_before else "",
        odds=show_odds(turn.probability) if has_odds else "",
    )


def _number(value: object) -> float:
    return value.value if isinstance(value, Quantity) else 0.0


def show_value(value: Quantity) -> str:
    """Return the value of a constant; the scale of a time is a factor, such as 2x."""
    shown = show_constant(value.value, "1" if value.unit == TIMES else value.unit, DIGITS)
    return f"{shown}x" if value.unit == TIMES else shown


def name_owner(ids: Sequence[int], runs: Mapping[int, Subject]) -> str:
    """Return the chip of a constant, or that it is one of both chips."""
    return BOTH if len(ids) > 1 else join_names(name_all(runs, ids))


def _describe_swing(facts: Facts) -> str:
    """Return the constant that moves the metric of the first run most."""
    noun = _name_asked(facts)
    firsts = _list_firsts(facts)
    if not firsts:
        return STILL(noun=noun, chips=name_all(facts.runs, facts.runs)) + "."
    entries = {one.runs[0]: one.values[facts.asked[0]] for one in facts.of(Entry)}
    value = entries[firsts[0].runs[0]]
    line = _fill(MOVES, firsts[0], facts.runs, noun=noun, value=show_quantity(value.value, value.unit))
    short = _fill(MOVES, firsts[0], facts.runs, noun=noun, value="")
    return (line if line.count(" ") < MOST_WORDS else short) + "."


def describe_swings(facts: Facts) -> dict[str, str]:
    """Return hardware -> a line on the constant that moves its metric most."""
    noun = _name_asked(facts)
    return {
        facts.runs[one.runs[0]].hardware: _fill(MOVES_OTHER, one, facts.runs, noun=noun) for one in _list_firsts(facts)
    }


def _name_asked(facts: Facts) -> str:
    """Return the name of the metric that the answer is about."""
    return name_metric(facts.asked[0])


def _list_firsts(facts: Facts) -> list[Swing]:
    """Return the largest swing of each run."""
    by_run: dict[int, Swing] = {}
    for one in facts.of(Swing):
        by_run.setdefault(one.runs[0], one)
    return list(by_run.values())


def _fill(template: Template, swing: Swing, runs: Mapping[int, Subject], **more: str) -> str:
    ends = [show_value(one) for one in swing.ends]
    values = [show_quantity(one.value, one.unit) for one in swing.values]
    return template(
        name=swing.name,
        chip=name_run(runs[swing.runs[0]]),
        ends=show_span(*ends) if len(ends) > 1 else "",
        basis=swing.basis,
        values=show_span(values[0], values[-1]),
        **more,
    )


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: other reversals, what to measure next, and the uncertainty of each chip."""
    runs = facts.runs
    lines = list(describe_swings(facts).values())[1:]
    batches = [str(one.after) for one in facts.of(Turn) if one.axis == "batch"]
    if batches:
        loser = next(one.runs[0] for one in facts.of(Turn) if one.axis == "batch")
        lines.append(AT_BATCH(loser=name_run(runs[loser]), batches=batches))
    turns = list_turns(facts)
    lines += [NEXT(turn=describe_change(one, runs)) for one in turns[1:] if one.of != turns[0].of][:1]
    shares = facts.of(Share)
    lines += [measure_next(one, runs) for one in shares if one.axis][:1]
    sides = [PART(share=one.share, owner=name_owner(one.runs, runs)) for one in shares if not one.axis]
    return [*lines, *([SHARES(parts=sides)] if sides else [])]


def measure_next(share: Share, runs: Mapping[int, Subject]) -> str:
    """Return the constant whose measurement would remove the most uncertainty."""
    return MEASURE(name=share.name, owner=name_owner(share.runs, runs), basis=share.basis, share=share.share)


def describe_odds(facts: Facts) -> str:
    """Return the probability of the other order, or the range of the metric of one or two runs."""
    half = next((one.probability for one in facts.of(Turn) if one.axis == "ratio"), None)
    odds = [ODDS(odds=1.0 - one.probability, half=half) for one in facts.of(Choice) if one.probability is not None]
    return "; ".join([*odds, *_list_ranges(facts.of(Entry)[:MOST_NAMED], facts.runs)])


def _list_ranges(entries: Iterable[Entry], runs: Mapping[int, Subject]) -> list[str]:
    return [
        RANGE(chip=name_run(runs[one.runs[0]]), range=show_range(value))
        for one in entries
        for value in one.values.values()
        if value.half_width
    ]


def describe_batches(facts: Facts, batches: Sequence[int]) -> list[str]:
    """Return a note if the order is the same at all of several batch sizes; empty if it is not."""
    turns = [one for one in facts.of(Turn) if one.axis == "batch"]
    return [SAME_ORDER(first=batches[0], last=batches[-1])] if len(batches) > 1 and not turns else []


def list_swing_notes(capped: Iterable[str], still_count: int) -> list[str]:
    """Return notes on effects of constants: what they mean, hardware at a lowered clock, and constants without any."""
    still = [WITHOUT_EFFECT(count=still_count)] if still_count else []
    return [*SWING_NOTES, *(CAPPED(hardware=name) for name in capped), *still]


def describe_meanings(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Return a note on each coefficient, given its constant, word and meaning in the class file, that has a meaning."""
    pairs = ((word, meaning or MEANINGS.get(constant)) for constant, word, meaning in rows)
    return list(dict.fromkeys(MEANING(word=word, meaning=meaning) for word, meaning in pairs if meaning))
