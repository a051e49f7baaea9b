"""Text of a report: titles of its chapters in order, and the sentences between figures."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template("Which hardware for {models:and}?")
MADE: Final = Template("joulemap {version}, {time}")
OF_MODEL: Final = Template("{model}: {line}")
MODELS: Final = "Models side by side"

WHY: Final = Template("Why: {line}")
FLIP: Final = Template("What would flip it: {line}")
SURE: Final = Template("How sure: {line}")

BADGE: Final = Template("{quantity} on {name}")
STANDING: Final = Template("{half_width:±}, {standing}")
SCORED: Final = Template("scored on {measurement_count:n measurement} of {subject}")
SUBJECTS: Final = {"this hardware": "this chip", "its class": "chips of its class"}
UNSCORED: Final = "no measurement of its class: estimated from other classes and widened"

COMPARE: Final = "Every chip side by side"
ENERGY: Final = "Where the energy goes"
TREES: Final = "Energy by hardware, category, action and subgraph"
OTHER_SUBGRAPHS: Final = Template("{count:n other subgraph}")
SMALLER_ACTIONS: Final = Template("{count:n smaller action}")
PARETO: Final = "Latency against energy"
ROOFLINE: Final = "Rooflines"
PARTS: Final = "Best hardware for each subgraph"
EDP: Final = "What makes up energy x delay"
EDP_OF: Final = Template("Findings on {name}")
SWEEP: Final = "Effect of the batch size"
EXPLAIN: Final = "Why they differ"
PAIR: Final = Template("{a} to {b}")
FROM: Final = Template("From {a} to {b}")
BETWEEN: Final = "from one chip to another"
FLIPPED: Final = "What would flip it"
COST: Final = "Cost of a million inferences"
MORE: Final = Template("{count} more {noun}")

ACCURACY: Final = "How predictions for these chips have scored"
ACCURACY_MEANING: Final = (
    "80 % of measurements lie within the interval; a badge names the measurements it was scored on"
)
SCORES: Final = "Scores as a table"
SCORE_COLUMNS: Final = (
    "hardware | quantity | 80 % interval ±half_width | scored on standing | measurements measurement_count | "
    "groups group_count | basis | calibration"
)

SOURCES: Final = "Assumptions and sources"
ASSUMED: Final = Template("{name}: {share:%} of the energy uses assumed numbers")
SOURCE_TABLE: Final = Template("{count:#} sources, by the energy that uses them[, {rest:#} more in the data]")
SOURCE_COLUMNS: Final = ("source", "basis", "numbers", "hardware")

ANSWER: Final = "Side by side"
NOTES: Final = "Assumptions"
QUERIES: Final = "Queries"
REST: Final = "Assumptions and next questions"
