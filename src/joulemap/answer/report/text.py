"""Text of a report: titles of its chapters in order, and the sentences between figures."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template("Which hardware for {models:and}?")
MADE: Final = Template("joulemap {version}, {time}")
OF_MODEL: Final = Template("{model}: {line}")
MODELS: Final = "Models side by side"

BADGE: Final = Template("{quantity} on {name}")
STANDING: Final = Template("{half_width:±}, {standing}")
SCORED: Final = Template("scored on {measurement_count:n measurement} of {subject}")
SUBJECTS: Final = {"this hardware": "this chip", "its class": "chips of its class"}
UNSCORED: Final = "no measurements of its class, so the interval comes from other classes and is wider"

COMPARE: Final = "All chips side by side"
ENERGY: Final = "Where the energy goes"
TREES: Final = "Energy by hardware, category, action and subgraph"
OTHER_SUBGRAPHS: Final = Template("{count:n other subgraph}")
SMALLER_ACTIONS: Final = Template("{count:n smaller action}")
PARETO: Final = "Pareto front of latency and energy"
TABLE: Final = "As a table"
ROOFLINE: Final = "Utilization and rooflines"
PARTS: Final = "Best chip for each subgraph"
EDP: Final = "Energy-delay product by subgraph"
EDP_OF: Final = Template("Findings on {name}")
SWEEP: Final = "Effect of the batch size"
EXPLAIN: Final = "Why the chips differ"
PAIR: Final = Template("{a} to {b}")
FROM: Final = Template("From {a} to {b}")
BETWEEN: Final = "pair of chips"
FLIPPED: Final = "What could reverse the order"
COST: Final = "Cost of a million inferences"
MORE: Final = Template("{count} more")

ACCURACY: Final = "Accuracy on these chips"
ACCURACY_MEANING: Final = (
    "80 % of the measurements should fall inside the interval. Each badge says which measurements it was scored on."
)
SCORES: Final = "Scores as a table"
SCORE_COLUMNS: Final = (
    "hardware | quantity | 80 % interval ±half_width | scored on standing | measurements measurement_count | "
    "groups group_count | basis | calibration"
)

SOURCES: Final = "Assumptions and sources"
SOURCE_TABLE: Final = Template("{count:#} sources, by the energy that depends on them[; {rest:#} more in the data]")
SOURCE_COLUMNS: Final = ("source", "basis", "numbers", "hardware")

FOLD: Final = Template("{title}: {fold}")
ANSWER: Final = "Side by side"
NOTES: Final = "Notes and assumptions"
QUERIES: Final = "Queries"
REST: Final = "Assumptions and next questions"
