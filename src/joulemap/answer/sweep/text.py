"""Text of the sweep over batch sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.domain.settings import SweepDivision
from joulemap.present.template import Template

TITLE: Final = Template("{models}, {batches}, {hardware:n chip}, {precisions:list}, {runtimes:list}: {runs:n run}")
MANY_MODELS: Final = Template("{count} models")
BATCH: Final = Template("batch {first}")
BATCHES: Final = Template("{count} batch sizes from {first} to {last}")

FRUGAL: Final = Template(
    "{name} uses the least energy per inference{among}: {energy_per_inference_j:J} at batch {energy_batch}"
    "[, {ratio:x} less than {other}][, within 0.5 % of {equal}][ ({tied})]."
)
SWIFT: Final = Template(
    "{name} {also}has the highest throughput: {throughput_per_s:1/s} at batch {throughput_batch}"
    "[, {ratio:x} that of {other}][, within 0.5 % of {equal}][ ({tied})]."
)
STATISTICALLY_TIED: Final = "statistically tied"
ALONE: Final = Template(
    "{name} uses the least energy per inference at batch {energy_batch}: {energy_per_inference_j:J}. "
    "Its throughput is highest at batch {throughput_batch}: {throughput_per_s:1/s}."
)
OF_MODEL: Final = Template("{model}: {best}")
SERIES: Final = Template("{model} on {name}")
MORE_MODELS: Final = Template("The table shows {count:n more model}.")
AMONG: Final = " of the available chips"
BEYOND_ENERGY: Final = Template(
    "{name} is not available, but would use {energy_per_inference_j:J} at batch {energy_batch}[, {ratio:x} less]."
)
BEYOND_THROUGHPUT: Final = Template(
    "{name} is not available, but would reach {throughput_per_s:1/s} at batch {throughput_batch}[, {ratio:x} more]."
)

HEADINGS: Final[Mapping[SweepDivision, str]] = {
    "hardware": "Best batch of each chip",
    "batch": "Every batch",
    "winner": "Best hardware at each batch",
    "crossing": "Pairs whose order reverses",
}
COLUMNS: Final[Mapping[SweepDivision, Template]] = {
    "hardware": Template(
        "{varying}*hardware | [*within {budget} budget_throughput_per_s | ]*lowest latency least_latency_s | "
        "*highest throughput throughput_per_s | latency at highest throughput throughput_latency_s | "
        "throughput limit throughput_limit? | *lowest energy per inference energy_per_inference_j | "
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

GROUP: Final = Template("{settings:list}: ")
CHANGING: Final = Template("{group}{metric}: {winner} is best {where}[ (statistically tied {ties:and})]{moves}")
AT_EVERY_BATCH: Final = "at every batch"
AT_BATCH: Final = Template("at batch {batch}")
UP_TO_BATCH: Final = Template("from batch {batch} to {last}")
FROM_BATCH: Final = Template("from batch {batch}")
MOVES: Final = Template(", then {winner} {where}[ (statistically tied {ties:and})]")
REPLACES: Final = Template(" (which {previous_winner} cannot run)")
TIE: Final = Template("with {runner_up}[ {where}]")
AT_BATCHES: Final = Template("at batch {batches:and}")
FALL: Final = Template(
    "{name}: throughput falls from {most:1/s} at batch {batch} to {last:1/s} at batch {largest}[, because {reason}]"
)
LEAST_FALL: Final = 0.95
"""Share of the highest throughput; if the largest batch reaches less, a sentence explains the fall."""
SPILLS: Final = Template(
    "activations no longer fit on chip, and off-chip traffic per inference rises from {before:B} to {after:B}"
)
LEAST_SPILL: Final = 1.2
"""Minimum increase of off-chip bytes per inference, as a ratio, that explains a fall of throughput."""
CLOCKED: Final = Template("the power cap lowers the clock to {clock_fraction:%}")
BOUNDS: Final[Mapping[str, str]] = {
    "compute": "compute",
    "operands": "operand supply",
    "memory": "memory",
    "launch": "kernel launches",
    "communication": "communication",
}
"""Bottleneck of the latency -> displayed name as a throughput limit of batches that run one after another."""

OVERTAKING: Final = Template("{group}{metric}: {overtaker} overtakes {overtaken} from batch {batch} ({values})")

EVALUATED: Final = Template("{new} runs evaluated now, {stored} stored before")
BEYOND_BUDGET: Final = Template(
    "{names:and} exceeds {budget:s} at every batch; its lowest latency is {least_latency_s:s}, at batch "
    "{least_latency_batch}"
)
ALL_BEYOND_BUDGET: Final = Template(
    "{names:and} exceed {budget:s} at every batch; {nearest} comes nearest, with {least_latency_s:s} at batch "
    "{least_latency_batch}"
)
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
