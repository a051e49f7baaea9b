"""Text of the placement answer, in reading order."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template("{model}, batch {batch}, {precisions:and}, {runtime}, on {box}[ ({chips:list})]")
CHIP: Final = Template("{device}: {chip}")

BEST: Final = {
    "latency": Template("{placement} {form} has the lowest latency: {value:interval s} per batch"),
    "throughput": Template("{placement} {form} has the highest throughput: {value:interval 1/s}"),
    "energy": Template("{placement} {form} uses the least energy: {value:interval J} per batch"),
}
SIMPLEST: Final = {
    "latency": Template("{placement} alone takes {value:interval s} per batch"),
    "throughput": Template("{placement} alone has a throughput of {value:interval 1/s}"),
    "energy": Template("{placement} alone uses {value:interval J} per batch"),
}
"""Goal -> sentence on the best device alone, used if the best mixture is statistically tied with it."""
FORM: Final = Template("({form})")
TIES: Final = Template("statistically tied with {count:n other placement}")
SAVES: Final = {
    "latency": Template("the best mixture, {placement} ({form}), takes {share:%} less time, a statistical tie"),
    "throughput": Template("the best mixture, {placement} ({form}), has {ratio:x} its throughput, a statistical tie"),
    "energy": Template("the best mixture, {placement} ({form}), uses {share:%} less energy, a statistical tie"),
}
AHEAD_OF_MIXTURE: Final = {
    "latency": Template("the best mixture, {placement} ({form}), takes {more:%} more time[ ({sure})]"),
    "throughput": Template("the best mixture, {placement} ({form}), has {share:%} less throughput[ ({sure})]"),
    "energy": Template("the best mixture, {placement} ({form}), uses {more:%} more energy[ ({sure})]"),
}
FAR_AHEAD_OF_MIXTURE: Final = {
    "latency": Template("the best mixture, {placement} ({form}), takes {ratio:x} the time[ ({sure})]"),
    "throughput": AHEAD_OF_MIXTURE["throughput"],
    "energy": Template("the best mixture, {placement} ({form}), uses {ratio:x} the energy[ ({sure})]"),
}
"""Goal -> sentence on the lead of a device alone over the best mixture, if the lead is a factor of at least `FAR`."""
AHEAD_OF_ALONE: Final = {
    "latency": Template("it takes {share:%} less time than {placement} alone[ ({sure})]"),
    "throughput": Template("it has {ratio:x} the throughput of {placement} alone[ ({sure})]"),
    "energy": Template("it uses {share:%} less energy than {placement} alone[ ({sure})]"),
}
"""Goal -> sentence on the lead of a mixture over the best device alone."""
CONFIDENCE: Final = Template("{chance:chance} confidence")
TIED_WITH_IT: Final = "statistically tied"
ONLY_ALONE: Final = "no mixture of devices is possible"
ONLY_MIXTURES: Final = Template("no device runs the whole model ({refusals})")
TAKEN: Final = {"latency": "time per batch", "throughput": "time between batches", "energy": "energy per batch"}
"""Goal -> name of the quantity that the goal minimizes."""

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

COPIES: Final = Template(
    "on {placement}, copying {copied_bytes:B} between devices ({copy_count:n copy|copies}) takes {copy_s:s} of the "
    "{latency_s:s} per batch"
)
SIDE_BY_SIDE: Final = Template(
    "each device runs the whole model on batches of its own; the rate is limited by the {limit}"
)

TIED: Final = Template("{best} ({form}) is statistically tied with {placements:and}")
BUDGET: Final = "the power budget sets the rate; placements at lower power were not searched"
GAP: Final = Template("a {form} that was not examined could lower the {taken} by at most {share:%}")
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
