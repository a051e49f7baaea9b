"""Text of the placement answer, in reading order."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template("{model}, batch {batch}, {precisions:and}, {runtime}, on {box}[ ({chips:list})]")
CHIP: Final = Template("{device}: {chip}")


COLUMNS: Final = Template(
    "placement | *form | *latency {latency} | *throughput {throughput} | tokens/s #tokens_per_s? | "
    "*energy per sample {energy} | {assumed}probability that the best is better worse_probability | "
    "power average_power_w | copy time copy_s | limited by limit | *refused refusal?"
)
GOALS: Final = {
    "latency": ("latency_s", "latency_half_width"),
    "throughput": ("throughput_per_s", "throughput_half_width"),
    "energy": ("energy_per_inference_j", "energy_half_width"),
}
"""Goal -> (column of a placement with the goal's quantity, column with its half-width)."""


SOLVER: Final = "the extra `solver` searches further: pip install 'joulemap[solver]'"

DEVICES: Final = "Devices of the best placement"
DEVICE_COLUMNS: Final = (
    "device | hardware | precision | subgraphs subgraph_count | busy time busy_s | busy share busy_fraction | "
    "memory share memory_fraction | energy energy_j"
)
SUBGRAPHS: Final = "Subgraphs"
_BY_LATENCY: Final = (
    "subgraph subgraph_index | operations | device | latency latency_s | next best device other | latency there other_s"
)
SUBGRAPH_COLUMNS: Final = {
    "latency": _BY_LATENCY,
    "throughput": _BY_LATENCY,
    "energy": "subgraph subgraph_index | operations | device | energy energy_j | next best device other | "
    "energy there other_j",
}
"""Goal -> columns of the table of subgraphs, by which they are laid out."""
DIFFERENCES: Final = "Energy of the best mixture minus energy of the best device alone"
DIFFERENCE_COLUMNS: Final = "device | component | action | alone first_j | mixture second_j | difference difference_j"
DIFFERENCE: Final = Template("{difference_j:+J}")

NOTES: Final = (
    "alone: the whole model on one device, the others idle; split: each subgraph on one device, in turn or with "
    "branches in parallel; pipeline: consecutive batches on different devices; side by side: each device takes whole "
    "batches",
    "throughput: only the goal throughput lets batches overlap; with other goals, a batch starts when the one before "
    "has ended",
    "energies cover the whole box: devices that run a part draw static power, the others draw idle power; the "
    "ledger includes copies between devices and their conversions",
    "a split is chosen by the cost of each subgraph in a run of the whole model on each device; the table shows "
    "results of the parts, which are then evaluated on their own",
)
ANALYZE: Final = Template("joulemap analyze {model} {hardware}")

TIMELINE: Final = Template("{title}: {placement}, {form}")
TIMES: Final = Template("{name} {seconds:s}")
ENERGY: Final = Template("{title}: energy per batch")
ALONE: Final = Template("A {placement} alone")
MIXTURE: Final = Template("B {placement}, {form}")
ACTION: Final = Template("{device}: {component} {action}")
