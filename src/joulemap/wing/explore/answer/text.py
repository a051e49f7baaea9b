"""Text of the answers about designs, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.present.template import Template
from joulemap.system.record import frozen
from joulemap.wing.explore.design.rule import MEMORY_SHARE

# explore
BRACKETS: Final = "four of five measurements should fall inside the brackets (80 % intervals)"

TITLE: Final = Template("{models}, {settings:list}: designs based on {chips:list}")
MODEL_SHARE: Final = Template("{name} {share:set %}")
BATCH: Final = Template("batch {batch}")
CHIP_COUNT: Final = Template("{count:n chip}")


BEST: Final = (
    "best by objective | *value | *design | gain over the unchanged chip own_ratio | "
    "other designs statistically tied like_count"
)
FRONT_HEADING: Final = "Front"
OUTCOMES: Final[Mapping[str, str]] = {
    "energy_per_inference_j": "energy",
    "latency_s": "latency",
    "throughput_per_s": "throughput",
    "average_power_w": "power",
    "area_mm2": "area, mm2",
    "die_cost_usd": "die cost",
    "clock_fraction": "share of full clock",
}
"""Column of a design's outcome -> heading in the table."""
DIES: Final = Template("{area} ({dies} dies)")
BAND_HEADING: Final = Template("Statistically tied with the front ({band_count:#})")
MARGINS_HEADING: Final = "Elasticities at the best designs, including dependent constants"
MARGINS: Final = "best by objective | parameter | value | effect on of | % per % elasticity"
REFUSED_HEADING: Final = "Cannot run"
REFUSED: Final = "reason | designs design_count"

MISSED_TARGET: Final = Template("no value gives {label} {target} exactly; the nearest is {value}")
BEYOND: Final = Template("beyond existing hardware: {constants}")
BEYOND_MOST: Final = Template("{name} {value} (maximum of any {known} in the catalogue: {most}, {chip})")
BEYOND_LEAST: Final = Template("{name} {value} (minimum of any {known} in the catalogue: {most}, {chip})")
ANY_CHIP: Final = "chip"
STILL: Final = Template("at {place}, {objective} hardly depends on {parameters:or}")
EFFECT: Final = Template(
    "at {place}, {objective} changes by {changes:and}[; the power limit lowers the clock there to {clock:%} of the "
    "full clock]"
)
BEST_DESIGN: Final = Template("the design with the best {objective}")
THIS_DESIGN: Final = "this design"
CHANGE: Final = Template("{change} % for 1 % more {parameter}")

SHARED: Final = (
    "designs based on one chip share most of their error, so differences smaller than these intervals can be "
    "significant"
)
NOT_SURE: Final = "uncertainty unknown: the base chip does not run the models, or its error is not known"

RATE: Final = Template("evaluated {count:n design}[ of {total:#}], {rate:#} per second[; {known} more from the lake]")
ALL_KNOWN: Final = Template("{count:n design}[ of {total:#}], all from the lake")
VARIED: Final = Template("varied by default: {names:list}; choose with --vary units=16:1024:*2")
OVERSIZE: Final = Template(
    "{count:#} of {total:n design} on the front {exceed} the reticle limit of one die, {reticle:plain} mm2 "
    "({source}; {basis}): up to {largest_mm2:plain} mm2, which is {dies} dies in a package; die cost assumes equal "
    "dies, without packaging and die-to-die links"
)
OVERSIZE_CHIP: Final = Template("{chip} itself has {own_mm2:plain} mm2 by the same estimate")
RULE: Final = Template("{text} ({basis})")


@frozen(kw_only=True)
class Rule:
    """Sentence on a scaling rule of dependent constants, with its basis and source."""

    text: str
    basis: str
    source: str


RULES: Final[Mapping[str, Rule]] = {
    "rate": Rule(
        text="peaks and on-chip bandwidths scale with units and clock; vector cores of an NPU scale with units",
        basis="derived",
        source="as in a power mode: Hardware.in_mode",
    ),
    "voltage": Rule(
        text="voltage follows the clock by the chip's own power law, extended above its highest clock",
        basis="scaled",
        source="model/power: A100 PCIe at locked clocks, energaizer (ISPASS 2026); extended above",
    ),
    "array": Rule(
        text="peaks scale with the elements of a unit's array",
        basis="derived",
        source="geometry",
    ),
    "wire": Rule(
        text="wire energy scales with the square root of the area",
        basis="assumed",
        source="length of a die",
    ),
    "static": Rule(
        text=(
            f"{100.0 * (1.0 - MEMORY_SHARE):.0f} % of static power scales with the area, {100.0 * MEMORY_SHARE:.0f} % "
            "with the DRAM bandwidth"
        ),
        basis="assumed",
        source="active idle of similar circuits; share of the memory interface",
    ),
    "area": Rule(
        text="area counts units and on-chip memories",
        basis="recalled",
        source="Horowitz 2014, TSMC's claims from node to node; GPUs by four dies, other shares assumed",
    ),
    "limit": Rule(
        text="the power limit stays; a design that draws more runs at a lower clock",
        basis="assumed",
        source="the question; vary tdp to move it",
    ),
}
"""Name of a scaling rule, as `Law.list_used` returns it -> its sentence, basis and source."""

NEXT: Final = Template("joulemap sensitivity {model} {chip}")

SAVED: Final = Template("Best {objective}: {design}.")
SAVED_MODE: Final = Template("Name it as {path}@{mode}.")

NONE_RUNS: Final = Template("{none} runs: {reasons}")
NONE_OF: Final = Template("none of {count:#} designs")
NO_DESIGN: Final = "no design"
REFUSAL: Final = Template("[{count:n design}: ]{reason}")
NONE_MEETS: Final = Template("{none} meets the limits; the nearest is {base} with {values}, whose {missed:and}")
MISSED_LIMIT: Final = Template("{label} of {value} is {excess:x} {option} {limit}")

# explore --all
REGRET_TITLE: Final = Template("{count:n model} on all {chips:n chip} that run any: one chip for all, by {objective}")
REGRET_TITLE_OF_ONE: Final = Template("{model} on all {chips:n chip} that run it, by {objective}")
LEAST_REGRET: Final = Template(
    "{hardware} has the least regret in {objective}: {regret_ratio:x} relative to each model's best chip on average, "
    "and {worst_ratio:x} at worst ({worst_model})"
)
BEST_OF_ALL: Final = Template("{hardware} {leads}{scope}[ ({chance:chance} confidence against {runner_up}{tie})]")
EVERY_MODEL: Final = " for every model"
TIE: Final = Template("[, statistically tied with {count:n chip}]")
LEADS: Final[Mapping[str, str]] = {
    "energy": "uses the least energy",
    "latency": "has the lowest latency",
    "throughput": "has the highest throughput",
}
"""Objective -> verb phrase for the chip that is best by it."""
LEADS_IN: Final = Template("is best in {objective}")
NO_CHIP: Final = "no chip runs all models"
CHIPS_HEADING: Final = "One chip for all models"
CHIPS: Final = (
    "*chip hardware | *regret regret_ratio | *worst ratio worst_ratio | *worst model worst_model | "
    "models model_count | missing?"
)
WINNERS_HEADING: Final = "Best chip of each model"
WINNERS: Final = Template(
    "*model | *best hardware | precision | batch | runtime | *{objective} value | next chip runner_up | "
    "ratio runner_up_ratio | *probability probability? | tied alike?"
)
TIED_MORE: Final = Template("{names:list}[, +{more}]")
SURE_WINNERS: Final = Template(
    "the best chip beats every rival with at least 80 % probability for {sure} of {known:n model}"
)
REGRET_NOTES: Final = (
    Template(
        "regret: geometric mean over models, by their shares, of the chip's value relative to the model's best chip; "
        "each at its best mode, precision, batch and runtime within the limits"
    ),
    Template(
        "probability: that the best chip beats the next; tied: chips among the next {rivals} that are better with more "
        "than 20 % probability"
    ),
    Template("{point_count:n configuration}, {rate:#} per second"),
)
