"""Texts on constants that would reverse which of two chips is better."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template("constants that would reverse the {metric.label} ranking of {a} (A) and {b} (B)[, {paid}]")
DRAWN_TITLE: Final = Template("{metric.label} of A {a} and B {b}")

COLUMNS: Final = (
    "constant word | *side | *value | *break-even flip_value | *factor flip_ratio | *chance likelihood | "
    "*share of uncertainty variance_fraction | basis"
)
UNCERTAINTY: Final = "uncertainty"
"""Heading of the drawn shares of uncertainty."""
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

NOTES: Final = (
    "each constant is varied alone, between 1/100 and 100 times its value; static power only up to the power limit",
    "chance: probability that the constant is wrong by this much in this direction. The total error is taken "
    "from similar predictions and divided among constants by their share of the uncertainty",
    "share of uncertainty: from the constant's own range, the fit of its class, or its basis; constants are "
    "independent, and a constant of both chips counts once",
    "--details has each constant's name for --set",
)

SAME_ORDER: Final = Template("the order is the same at batch {first} to {last}")

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
