"""Texts that compare one model, several models or parts of models, or that rank hardware for a deployment."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

# One model on several chips

PER_BATCH: Final = "per batch"
OTHERS_PER_BATCH: Final = "all but energy per batch"

EACH: Final = " per inference"

COLUMNS: Final = Template(
    "hardware | *precision precision! | *batch batch! | *runtime runtime! | {label} {energy} | "
    "energy range -{energy}:energy_half_width | [*{ratio_heading} {ratio} | ]placement placement? | "
    "latency latency_s | latency range -latency_s:latency_half_width | *energy x delay edp_js | "
    "throughput throughput_per_s= | *power average_power_w= | utilization compute_utilization_fraction= | "
    "overhead overhead_fraction= | memory peak_memory_bytes= | busy units units_used_count="
)
RATIO: Final = "ratio"
RATIO_TO: Final = Template("ratio to {baseline}")
BEST_TITLE: Final = "Best of all hardware"
BEST_OF_GOAL: Final = (
    "goal | *best hardware | confidence of being best probability_best | *value | *advantage advantage_ratio | "
    "next best runner_up | "
    "best available available_hardware | value of best available available_value"
)


DISTRIBUTION: Final = Template("query run edp.distribution -p run_id={run_id} {place}")
STEPS_OF_ONE: Final = (Template("analyze {model} {hardware} {repeated}"), DISTRIBUTION)
STEPS_OF_VARIANT: Final = (
    Template("analyze {model} {hardware} {precision} --batch {row.batch} --runtime {row.runtime} {others}"),
    Template("edp {model} {hardware} {precision} --batch {row.batch} --runtime {row.runtime} {others}"),
)
STEPS: Final = (
    Template("{question} {model} {rival} {best} {repeated}[ --metric {other_metric}]"),
    DISTRIBUTION,
    Template("query run {query} -p run_ids={run_ids} -p metric={metric} {place}"),
)

# Several models, and the parts of models

PARTS_TITLE: Final = Template("{metric} of each {part}")
MODELS_TITLE: Final = Template("{metric} of each model")
FIGURES_HEADING: Final = "Figures (per batch)"

PART_HEADINGS: Final = {"subgraph": ("subgraph", "pattern"), "operator": ("operator", "kind")}
WINNER: Final = ("best", "advantage")
MORE_ON: Final = Template("more on {name}")
BEST_AVAILABLE: Final = "best available"
ALIKE: Final = Template("{tied_count} tied")
REFUSED: Final = "unsupported"
NO_HARDWARE: Final = "none"
FIGURES: Final = (
    "model | hardware | status | *energy energy_j | *latency latency_s | power average_power_w | "
    "utilization compute_utilization_fraction | throughput throughput_per_s | energy x delay edp_js | "
    "memory peak_memory_bytes | operations per joule ops_per_j"
)

STEPS_OF_PARTS: Final = Template("explain {model} {other} {best} --metric {metric} {repeated}")
STEPS_OF_SUBGRAPHS: Final = Template("analyze {model} {best} --level subgraph {repeated}")
STEPS_OF_MODELS: Final = (
    Template("compare {model} --level subgraph --hardware {some} --metric {metric} {repeated}"),
    Template("compare {models} --level detailed --hardware {best} {repeated}"),
)

# Hardware ranked for a deployment

ALLOCATION: Final = Template("Subgraphs on {rank}. {hardware}")
SUBGRAPHS: Final = Template("{metric} of each subgraph")
MODEL: Final = "Operators of the model"
NUMBERS_TITLE: Final = "Numbers of each chip"
STRENGTHS_TITLE: Final = "Strengths and weaknesses"
SPREADS_TITLE: Final = "Utilization of each chip"

RANKING: Final = (
    "*inferences/J inferences_per_j", "*latency latency_s", "*power average_power_w", "inferences/s throughput_per_s",
    "class architecture", "energy/inference energy_per_inference_j", "TDP tdp_w",
    "utilization compute_utilization_fraction", "busy units units_used_count", "microarchitecture", "rank",
)  # fmt: skip
"""Columns of a ranking beside the hardware, most important first."""
RANGE: Final = "range"
RANKED: Final = {
    "latency": "latency",
    "throughput": "inferences/s",
    "power": "power",
    "efficiency": "inferences/J",
    "energy": "energy/inference",
}
"""Metric -> heading of its column."""

PLACED: Final = (
    "subgraph | *latency latency_s | *bottleneck | *busy units units_used_count | "
    "*utilization compute_utilization_fraction | *energy energy_j | share of latency latency_fraction | "
    "tiles tile_count | waves wave_count | pattern fusion_pattern"
)

MIX: Final = (
    "operators kind | *subgraphs subgraph_count | *count operator_count | share of operators operator_fraction | "
    "MACs mac_count | *share of MACs mac_fraction"
)

STRENGTHS: Final = (
    "*hardware | *aspect | *verdict | *value | ratio to the median median_ratio? | grade? | unit unit_name?"
)

NUMBERS: Final = "*hardware | section | *quantity | *value | basis"
SPREADS: Final = (
    "hardware | *mean utilization mean_utilization_fraction | *lowest min_utilization_fraction | "
    "lowest subgraph min_name | *highest max_utilization_fraction | highest subgraph max_name | "
    "time without MACs idle_time_fraction | compute-bound time compute_time_fraction | "
    "memory-bound time memory_time_fraction | launch-bound time launch_time_fraction"
)

STEPS_OF_RANKING: Final = (
    Template("compare {model} --level detailed --hardware {best} {repeated}"),
    Template("explain {model} {other} {best} {repeated}"),
)
