"""Texts on constants that would reverse which of two chips is better."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template(
    "{title}: constants that would reverse the {metric.label} ranking of {a} (A) and {b} (B)[, {paid}]"
)
DRAWN_TITLE: Final = Template("{title}: {metric.label} of A {a} and B {b}")

WINNER: Final = Template(
    "{winner} has {margin} {direction} {metric.label}{per} than {loser}: {value} against {other}"
    "[ ({doubt})][; the order reverses {reversed}]"
    "[; the order is the same from batch {first} to {last}][; {no_flip}]."
)
PER_MILLION: Final = " per million inferences"
FROM_BATCH: Final = Template("from batch {batch}")
AT_BATCHES: Final = Template("at batch {batches:and}")
MARGIN: Final = Template("{ratio:x}")
LITTLE: Final = "under 0.5 %"
LOWER: Final = "lower"
HIGHER: Final = "higher"
NO_FLIP: Final = "no single constant reverses the order"

COLUMNS: Final = (
    "constant word | *side | *value | *break-even flip_value | *factor flip_ratio | *chance likelihood | "
    "*share of uncertainty variance_fraction | basis"
)
ALL_TITLE: Final = "Every constant, the likeliest to reverse the order first"
ALL_COLUMNS: Final = (
    "constant | *hardware | value | *break-even flip_value | *factor flip_ratio | *chance likelihood | "
    "*share of uncertainty variance_fraction | elasticity ratio_elasticity | *spread low_ratio | spread from spread | "
    "method | *basis | meaning"
)
NOT_BELOW: Final = Template("none up to {limit}")
NEVER: Final = "none"
BOTH: Final = "both chips"
SPREAD: Final = Template("/{down:plain} x{up:plain}")

SIDE: Final = Template(
    "{name} contributes {share:%} of the uncertainty[; the order reverses if {whose} {word} {verb} {flip}][; {no_flip}]"
)
IS, ARE = "is", "are"
ITS, THE = "its", "the"
PLURALS: Final = frozenset({"passes", "clocks", "slots", "bytes", "columns", "rows"})
"""Words in the name of a constant that need a plural verb."""
NO_FLIP_OF_SIDE: Final = "none of its constants alone reverses the order"
FLIP: Final = Template("{there} instead of {value}[ (chance {chance:odds})]")
FLIP_NEAR: Final = Template("slightly {side} {value}[ (chance {chance:odds})]")
ABOVE, BELOW = "above", "below"
FLIP_OF_SCALE: Final = Template("{times:plain} times the prediction (chance {chance:odds})")
NEAREST: Final = Template("the {word} of {owner} at {flip}")
NO_NEAREST: Final = Template("no single constant reverses the order, from 1/{most:plain} to {most:plain} of its value")
MEASURE_NEXT: Final = Template(
    "measure next: the {row.word} of {owner}[ ({meaning})], which is {row.basis} and causes "
    "{row.variance_fraction:%} of the uncertainty"
)

SURE: Final = Template(
    "chance that the order reverses: {odds:odds}[; chance that the lead shrinks by 2x or more: {odds_of_two:odds}]"
)
DOUBT: Final = Template("{chance:chance} confidence[, {tied}]")
TIED: Final = "statistically tied"

NOTES: Final = (
    "each constant is varied alone, between 1/100 and 100 times its value; static power only up to the power limit",
    "chance: probability that the constant is wrong by this much in this direction. The total error is taken "
    "from similar predictions and divided among constants by their share of the uncertainty",
    "share of uncertainty: from the constant's own range, the fit of its class, or its basis; constants are "
    "independent, and a constant of both chips counts once",
    "--details has each constant's name for --set",
)

MEANING: Final = Template("{row.word}: {meaning}")
"""Note that explains a coefficient."""
MEANINGS: Final = {
    "coefficient.voltage_floor": "lowest voltage, as a share of the highest",
    "coefficient.voltage_knee": "clock below which the voltage no longer falls, as a share of the die's highest clock",
    "coefficient.cap_share": "share of the power limit, above static power, that a long run may draw",
}
"""Coefficient common to all classes -> meaning, used if the class file states none."""

STEP_EXPLAIN: Final = Template("explain {model} {pair} --metric {metric} {repeated}")
STEP_SENSITIVITY: Final = Template("sensitivity {model} {pair} --metric {metric} {repeated}")
STEP_TRY: Final = Template("compare {model} --hardware {joined} --set {setting} {repeated}")
