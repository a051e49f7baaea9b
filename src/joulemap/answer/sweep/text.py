"""Text of the sweep over batch sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.domain.settings import SweepDivision
from joulemap.present.template import Template

TITLE: Final = Template("{models:list}, {batches}, {hardware:n chip}, {precisions:list}, {runtimes:list}")
MANY_MODELS: Final = Template("{count} models")
BATCH: Final = Template("batch {first}")
BATCHES: Final = Template("batch {first} to {last}")

SERIES: Final = Template("{model} on {name}")

ENERGY_HEADING: Final = "energy per inference"
THROUGHPUT_HEADING: Final = "throughput"
RATIO_HEADING: Final = "ratio"
TREND_HEADING: Final = "by batch"

HEADINGS: Final[Mapping[SweepDivision, str]] = {
    "hardware": "Best batch of each chip",
    "batch": "Every batch",
    "winner": "Best hardware at each batch",
    "crossing": "Pairs whose order reverses",
}
COLUMNS: Final[Mapping[SweepDivision, Template]] = {
    "hardware": Template(
        f"{{varying}}*hardware | *{ENERGY_HEADING} energy_per_inference_j | *{THROUGHPUT_HEADING} throughput_per_s | "
        f"*{RATIO_HEADING} ratio | "
        "[*throughput within {budget} budget_throughput_per_s | ]energy range energy_range | "
        "lowest latency least_latency_s | latency at highest throughput throughput_latency_s | "
        "throughput limit throughput_limit? | "
        "efficient batches zone_low_batch | power at efficient batches zone_low_power_w | "
        "largest batch run largest_batch | share of linear scaling largest_batch_scaling_ratio"
    ),
    "batch": Template(
        "{varying}*hardware | *batch | *latency latency_s | *throughput throughput_per_s | "
        "throughput limit throughput_limit? | speedup over batch 1 speedup_ratio | "
        "share of linear scaling batch_scaling_ratio | *energy per inference energy_per_inference_j | "
        "*power average_power_w | inferences per joule ~inferences_per_j | efficient is_in_zone | "
        "utilization compute_utilization_fraction | "
        "bandwidth utilization bandwidth_utilization_fraction | memory peak_memory_bytes"
    ),
    "winner": Template(
        "{varying}*metric | *batch | *best winner | *value | advantage advantage_ratio | "
        "*confidence probability_ahead | candidates candidate_count | *new best is_change"
    ),
    "crossing": Template(
        "{varying}*metric | *from batch batch | *overtaker | *overtaken | values overtaker_value | "
        "values before previous_overtaker_value"
    ),
}
NOT_REACHED: Final = "none"
LATENCY: Final = Template("[{least_latency_s:s} at {least_latency_batch}]")
THROUGHPUT: Final = Template("[{throughput_per_s:1/s} at {throughput_batch}]")
ENERGY: Final = Template("[{energy_per_inference_j:J} at {energy_batch}]")
IN_BUDGET: Final = Template("[{budget_throughput_per_s:1/s} at {budget_batch}]")
PAIR: Final = Template("{one} against {other}")
PAIR_BEFORE: Final = Template("{one} against {other} at batch {batch}")
ADVANTAGE: Final = Template("[{advantage_ratio:x} better than {runner_up}]")
TIED: Final = Template("tied with {runner_up}")

BOUNDS: Final[Mapping[str, str]] = {
    "compute": "compute",
    "operands": "operand supply",
    "memory": "memory",
    "launch": "kernel launches",
    "communication": "communication",
}
"""Bottleneck of the latency -> displayed name as a throughput limit of batches that run one after another."""

EVALUATED: Final = Template("{new} runs evaluated now, {stored} stored before; {count:n batch size|batch sizes}")
EFFICIENT: Final = (
    "efficient batches: those around the lowest-energy batch with at least 90 % of its inferences per joule"
)
SCALING: Final = "share of linear scaling: throughput / (batch size x throughput at batch 1)"
NO_SCALING: Final = "share of linear scaling needs a run at batch 1"

STEP_DEEPER: Final = Template("sweep {models} --level {level} {again} {repeated}")
STEPS: Final = (
    Template("utilization {model} {hardware} --batch {batch} {precision} [--runtime {runtime}] {repeated}"),
    Template("edp {model} {hardware} --batch {batch} {precision} [--runtime {runtime}] {repeated}"),
)
