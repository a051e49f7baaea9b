"""Text of `analyze`, of `--by` and of `edp`, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.domain.settings import EnergyDivision, ModelDivision, RunDivision
from joulemap.present.template import Template

PLURALS: Final[Mapping[RunDivision, str]] = {
    "category": "categories",
    "action": "actions",
    "event": "events",
    "subgraph": "subgraphs",
    "operator": "operators",
}

PARTS: Final = ("compute", "memory", "control", "static")
"""Parts that an energy is divided into, in column order."""

BY_PART: Final = " | ".join(f"{part} {part}_energy_j" for part in PARTS)
"""Columns with the energy of each part, in the syntax of `lay`."""

# ---- analyze: one run ------------------------------------------------------------------------------------------------

RUN_TABLE: Final = Template("Energy by {by}")
EVENT_TABLE: Final = Template("Events[ of {subgraph}]")
ALL_ROWS: Final = Template("{title}, all rows")
"""Largest category or part -> displayed name in a headline, if different."""

RUN_COLUMNS: Final[Mapping[RunDivision, str]] = {
    "category": "*category | common categories common_categories | parts | actions kind_count | *energy energy_j | "
    "*energy share share_fraction | largest action largest_action | share of category largest_action_fraction",
    "subgraph": f"# subgraph_index | *subgraph name | pattern fusion_pattern | *energy energy_j | {BY_PART} | "
    "*energy share share_fraction | *latency latency_s | *time share latency_fraction | *bottleneck | units | "
    "tiles tile_count | waves wave_count | wave fill wave_fill_fraction | padding padding_fraction | "
    "*utilization compute_utilization_fraction | bandwidth bandwidth_utilization_fraction | extra passes pass_bytes",
    "operator": f"# operator_index | *operator name | kind | subgraph subgraph_index | *energy energy_j | {BY_PART} | "
    "*energy share share_fraction | *latency latency_s | *time share latency_fraction | "
    "*EDP share edp_share_fraction | fused is_fused | unfused energy separate_energy_j | "
    "unfused latency separate_latency_s | energy saved saved_energy_j | latency saved saved_latency_s | "
    "bias elements bias_element_count | off-chip traffic dram_bytes | extra passes pass_bytes",
}

ACTION_TREE: Final = "action | energy | energy share | count | per | energy each | basis"
ACTION_RUN: Final = "run | {energy_j:J} | {whole:%}"
ACTION_CATEGORY: Final = "  {category} | {energy_j:J} | {share:%}"
OTHER_CATEGORY: Final = ("other category", "other categories")
ACTION_OTHERS: Final = "  {named} | {energy_j:J} | {share:%}"
ACTION_ALONE: Final = (
    "  {category}: {component}.{action} | {energy_j:J} | {share_fraction:%} | {count} | {unit} | {price} | {basis}"
)
ACTION_LINE: Final = (
    "    {component}.{action} | {energy_j:J} | {share_fraction:%} | {count} | {unit} | {price} | {basis}"
)

EVENT_TREE: Final = "event | count | per | share of parent | energy | energy share | energy each"
EVENT_LINE: Final = (
    "{indent}{event} | {count} | {per} | {share_fraction:%} | {energy_j:J} | {run_fraction:%} | {energy_per_event_j:J}"
)
FORMULA_TABLE: Final = "Formulas of the events"
FORMULA_TREE: Final = "event | formula | meaning"
FORMULA_LINE: Final = "{indent}{event} | {formula} | {meaning}"
SHARED_ENERGY: Final = "An action may belong to several events, so energies of events do not sum to the run."

FACTS_TABLE: Final = "Performance"
FACTS: Final = "quantity | value | detail"
RUN_FACTS: Final = (
    "energy | {energy_j:J} | [{each:J} per inference; ]compute {compute_energy_j:J}, memory {memory_energy_j:J}, "
    "control {control_energy_j:J}, static {static_energy_j:J}",
    "overhead | {overhead_energy_j:J} | {overhead_fraction:%} of the energy: {overhead}",
    "latency | {latency_s:s} | {subgraph_count} subgraphs, {operator_count} operators, {kernel_count} kernels",
    "throughput | {throughput_per_s:1/s} | {pace}",
    "energy x delay | {edp_js:Js}",
    "average power | {average_power_w:W} | static {static_power_w:W}, power cap {tdp_w:W}",
    "clock | {clock_hz:Hz} | {clock_fraction:%} of the full clock; energy per action {voltage_factor:%} of that at the "
    "highest voltage",
    "compute utilization | {compute_utilization_fraction:%} | {attained_ops_per_s:ops/s} of {peak_ops_per_s:ops/s}",
    "bandwidth utilization | {bandwidth_utilization_fraction:%} | "
    "{dram_bytes:B} moved; the memory has {memory_bandwidth_bytes_per_s:B/s}",
    "units | {units_used_count}/{units_total_count} {unit_name}s | {tiles} tiles in {waves} waves"
    "[, {wave_fill_fraction:%} filled][; padding {padding_fraction:%} of the MAC slots]",
    "memory | {peak_memory_bytes:B} | weights {weight_bytes:B}, activations {activation_bytes:B}; "
    "{memory_fraction:%} of {memory_capacity_bytes:B}",
)
IN_TURN: Final = "one batch after the other"
OVERLAPPING: Final = Template("batches overlap: one every {interval_s:s}, limited by {throughput_limit}")

BOTTLENECK_TABLE: Final = "Bottlenecks"
BOTTLENECKS: Final = (
    "bottleneck | subgraphs subgraph_count | time latency_s | time share latency_fraction | energy energy_j | "
    "energy share energy_fraction | such time in all subgraphs (overlapping) busy_s"
)

RUN_STEPS: Final = (
    Template("analyze {model} {hardware} --level {deeper}"),
    Template("compare {model}"),
    Template("query run edp.distribution -p run_id={run_id}"),
)

TREE_CAPTION: Final = Template("Largest actions of {energy:J}: {actions:list}.")
TREE_ACTION: Final = Template("{action} {share:%}")
ROOF_CAPTION: Final = Template(
    "{below} of {drawn:n subgraph} have their roof set by memory bandwidth; {nearest.name} comes nearest to its roof, "
    "at {nearest.roofline_fraction:%}; {longest.name} takes longest and reaches {longest.roofline_fraction:%} of its "
    "roof ({longest.bottleneck}-bound)[; {within:n subgraph} without off-chip traffic]"
    "[; {missing:n subgraph} without MACs not drawn]."
)
NO_ROOF: Final = "No subgraph multiplies."

# ---- analyze --by and compare --by: energy of each part --------------------------------------------------------------

ON_HARDWARE: Final = Template("on {hardware:list}")
OF_SUBGRAPH: Final = Template("subgraph {subgraph}")
EVERY: Final = Template("the {level}s")
INSIDE_TABLE: Final = Template("Energy of {subgraph} by {by}[, {model}]")
PARTS_TABLE: Final = Template("Largest {level}s[, {model}]")
WHOLE: Final = "all"
SHARE: Final = "share"
LARGEST_PARTS: Final = ("run share", "largest share")
LARGEST_PART: Final = Template("{largest}, {share:%}")
KINDS: Final[Mapping[ModelDivision, str]] = {"subgraph": "pattern", "operator": "kind"}

EACH_TABLE: Final = Template("Energy of each {level} by {by}")
EACH_COLUMNS: Final[Mapping[EnergyDivision, str]] = {
    "category": "*part name | *category | *energy energy_j | *share share_fraction | @hardware | "
    "*run share run_fraction | largest action largest_action | share of category largest_action_fraction | "
    "common categories common_categories | pattern fusion_pattern",
    "action": "*part name | *component | *action | *energy energy_j | *share share_fraction | @hardware | "
    "*run share run_fraction | count action_count | per | energy each energy_per_action_j | basis | category",
}

INTO_LARGEST: Final = Template("analyze {model} {largest} --subgraph {largest_part} --by action")
INTO_OPERATORS: Final = Template("analyze {model} {hardware} --level operator --subgraph {part} --by category")
INTO_PAIR: Final = Template("explain {model} {a} {b} --level subgraph[ --subgraph {part}]")

# ---- edp: energy x delay of one run ----------------------------------------------------------------------------------

BESIDE_TABLE: Final = "Each subgraph on each chip"
BESIDE: Final = Template("{edp_share_js:Js} ({share_fraction:%})")
BESIDE_MEANING: Final = "cells: additive EDP in Js, and in percent of the energy x delay of that run"
LOWEST: Final = "lowest"
EDP_TABLE: Final = Template("By {by}, in order of additive EDP")
EDP_COLUMNS: Final = (
    "# rank | {by} name |{kind} pattern fusion_pattern |{fused} energy energy_j | latency latency_s | own EDP edp_js | "
    "additive EDP edp_share_js | run share share_fraction | cumulative share cumulative_fraction | "
    "compute compute_share_fraction | memory memory_share_fraction | control control_share_fraction | "
    "static static_share_fraction | saved by halving halving_fraction | bottleneck"
)
EDP_KEEP: Final = "{by} | additive EDP | run share | energy | latency | cumulative share | bottleneck"
EDP_NOTE: Final = (
    "additive EDP: half of (own energy x latency of the run + energy of the run x own latency); it sums to the energy "
    "x delay of the run, but own EDP does not. For a part without time, such as static "
    "energy, the share is half of the saving from its removal"
)
EDP_REST: Final = Template("{share:%} of energy x delay")
WITH_BIASES: Final = "operators and their biases"

EDP_FACTS_TABLE: Final = "Energy x delay"
EDP_FACTS: Final = (
    "energy x delay | {edp_js:Js} | {energy_j:J} x {latency_s:s}",
    "by part | | compute {compute_share_fraction:%}, memory {memory_share_fraction:%}, "
    "control {control_share_fraction:%}, static {static_share_fraction:%}",
    "own EDP | {own_edp_js:Js} | sum of energy x latency of each subgraph: {own_edp_fraction:%} of the run's",
    "subgraphs | {subgraph_count} | {operator_count} operators",
)
CUT_TABLE: Final = Template("Concentration by {by}")
CUT_COLUMNS: Final = "additive EDP cut_fraction | {by}s top_count | reached share reached_fraction | last {by} last"
CUT_COUNT: Final = Template("top {top_count} of {total_count}")
PATTERN_TABLE: Final = "By fusion pattern"
PATTERN_COLUMNS: Final = (
    "fusion pattern fusion_pattern | run share share_fraction | energy energy_j | latency latency_s | "
    "subgraphs subgraph_count | operators operator_count | cumulative share cumulative_fraction | "
    "MAC share mac_fraction | bottleneck | bottleneck share bottleneck_fraction"
)
BOUND_TABLE: Final = "Upper bounds on savings"
BOUND_COLUMNS: Final = (
    "without remedy | EDP saved saving_fraction | EDP left edp_js | latency saved latency_saving_fraction | "
    "energy saved energy_saving_fraction | subgraphs affected subgraph_count"
)
REMEDIES: Final = {
    "roofline": "any gap to the roofline",
    "no_memory_wait": "waiting for memory",
    "full_units": "padding and partly filled waves",
    "no_launch": "fixed cost of kernels",
    "no_static": "static power",
    "no_control": "control energy",
}

EDP_STEPS: Final = (
    Template("edp {model} {hardware} --level {other}"),
    Template("analyze {model} {hardware} --level {other}"),
    Template("query run edp.bound -p run_id={run_id}"),
)
