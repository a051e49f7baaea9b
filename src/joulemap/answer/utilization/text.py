"""Text of `utilization`, in the order in which it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.present.template import Template

ALL_IN_TF32: Final = ("engine",)
"""Runtimes that run all GEMMs of an fp32 run in TF32."""
LOWER: Final = "lower precision"
"""Remedy that may change the accuracy of the model."""
SETTINGS: Final = ("larger batch", "other runtime", "lower power mode")
"""Remedies that keep the hardware and the accuracy."""
GAIN: Final = Template("{gains:and}")
NO_CHANGE: Final = "no change"
RATIO: Final = Template("{ratio:plain}x the {quantity}")

USE_COLUMNS: Final = (
    "hardware | *utilization compute_utilization_fraction | grade compute_grade | *bottleneck, share of time bound | "
    "idle units idle_units_fraction |{remedies} bandwidth bandwidth_utilization_fraction | power average_power_w"
)
REMEDY_COLUMNS: Final = " *remedy choice | *EDP reduction gain |"
USE_KEEP: Final = "utilization | bottleneck, share of time | remedy | EDP reduction | grade"
BOUND: Final = Template("{bound} {share:%}")

FLAG: Final = Template(
    "{level}; {subgraph_count} of {total_count} subgraphs are {bottleneck}-bound and account for "
    "{bottleneck_fraction:%} of the {cost}; {subgraph} alone accounts for {subgraph_fraction:%}, the most of any "
    "subgraph ({worked})"
)
LEVELS: Final[Mapping[str, Template]] = {
    "low_compute": Template("compute utilization is {value_fraction:%}, below {limit_fraction:set %}"),
    "high_bandwidth": Template(
        "{value_fraction:%} of the sustained off-chip bandwidth is in use, above {limit_fraction:set %}"
    ),
    "idle_units": Template("{unit_name}s idle {value_fraction:%} of the time, above {limit_fraction:set %}"),
}
WORKED: Final = Template("[{tiles} on ]{units_used_count} of {units_total_count} {unit_name}s")
NONE_WORKED: Final = Template("none of the {unit_name}s works on it")
OF_HARDWARE: Final = Template("{name}: {lines}")

ROOF_TABLE: Final = "Roofline"
ROOF_COLUMNS: Final = (
    "hardware | *utilization compute_utilization_fraction | *grade compute_grade | *roofline share roofline_fraction | "
    "*roofline grade roofline_grade | *idle units idle_units_fraction | attained attained_ops_per_s | "
    "peak peak_ops_per_s | bandwidth bandwidth_utilization_fraction | "
    "share of sustained bandwidth sustained_bandwidth_fraction | ops per off-chip byte dram_intensity_ops_per_byte | "
    "ridge ops per byte ridge_ops_per_byte | roof | units used units_used_count | units units_total_count | "
    "power average_power_w | efficiency ops_per_j | flags"
)

REMEDY_TABLE: Final = "Remedies"
DISTRIBUTION: Final = Template(
    "{compute_grade}, {compute_utilization_fraction:%} of its peak; kernels by bottleneck: {bounds:list} of the time"
    "[; {unit_name}s idle {idle:%} of the time]"
)
ADVICE: Final = Template("{name}: {distribution}. {better}[ No gain: {vain}.]")
REMEDIES: Final = Template("Better: {remedies}.")
NO_REMEDY: Final = "No remedy that was tried helps."
REMEDY: Final = Template("{remedy}: {gain}")
OTHER_REMEDY: Final = Template("{choice} ({remedy})")

ZONE_TABLE: Final = "Efficient batch sizes"
ZONE_COLUMNS: Final = (
    "hardware | *efficient batches zone_batches | *best batch best_batch | *utilization best_utilization_fraction | "
    "*lowest energy per inference least_energy_per_inference_j | *latency latency_s | *peak memory peak_memory_bytes | "
    "*refused batch refused_batch"
)
ZONE_MEANING: Final = (
    "efficient batches reach at least 90 % of the highest utilization and of the most inferences per joule of any "
    "batch tried; the best batch has the largest product of both, and latency and memory are those of the best batch"
)

PRECISION_TABLE: Final = "Gain of each precision"
PRECISION_COLUMNS: Final = (
    "hardware | *precision | *speedup speedup_ratio | *energy ratio energy_ratio | *peak ratio peak_ratio | "
    "*memory ratio memory_ratio | *utilization compute_utilization_fraction | *baseline baseline_precision"
)
PRECISION_MEANING: Final = (
    "ratios to fp32, or to the widest precision where there is no fp32; the accuracy of the model is not considered"
)

PAIRING_TABLE: Final = "Best hardware per model size"
PAIRING_COLUMNS: Final = (
    "FLOPs least_flop_count | goal | hardware | wins won_count | median median_value | "
    "advantage median_advantage_ratio | utilization median_utilization_fraction | models model_count | "
    "hardware tried hardware_count | runner-up runner_up"
)
PAIRING_KEEP: Final = "goal | hardware | wins | median | utilization"
GOALS: Final[Mapping[str, str]] = {
    "energy": "least energy",
    "latency": "least latency",
    "utilization": "highest utilization",
}
SIZE: Final = Template("{low:~} to {high:~}[ {mark}]")
NO_MACS: Final = Template("no MACs[ {mark}]")
OWN_SIZE: Final = "*"
WINS: Final = Template("{won_count} of {contest_count}")
ADVANTAGE: Final = Template("{ratio:x} better")
RUNNER_UP: Final = Template("{name} ({runner_up_won_count})")
PAIRING_MEANING: Final = Template(
    "size classes by operations of one inference, * marks {model}; from the stored runs at batch {batch}, "
    "{precision}, {runtime}[ {among}]; a contest is one model on two or more chips"
)
ON_THESE: Final = "on the chips above"

SPENT: Final = Template("Most of the time goes to {reasons:list}.")
SPENT_ON: Final = Template("{reason} on {names:and}")
REASONS: Final = {"compute": "compute", "memory": "memory", "launch": "launches"}
"""Bottleneck of a kernel -> what takes the time, as figures name it."""

GRADES: Final = Template("grades by share of the peak, or of the roofline: {bounds:list}, else {last}")
GRADE: Final = Template("{grade} from {least_fraction:set %}")
REMEDY_MEANING: Final = (
    "a remedy is a run that differs in one setting and has at least 5 % less energy x time per inference; of larger "
    "batches, it is the smallest with at least 90 % of the largest reduction. The table shows the setting (batch, "
    "runtime or lower power mode) that reduces it most; a lower precision or another chip only if no setting helps"
)
UNTRACED: Final = Template("other batches were not tried: {untraced}")

INTO_SUBGRAPHS: Final = Template("analyze {model} {worst} --level subgraph")
PAIRING: Final = Template("utilization {model} --hardware {rivals} --pairing")
SWEEP: Final = Template("sweep {model} --hardware {worst}")
