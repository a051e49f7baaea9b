"""Words of the page that the command line does not have: headings, and the decision about a GPU."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template

SUBJECT: Final = Template("{model}, batch {batch}, {precision}, {runtime}, board")
DIFFERENCE: Final = Template("{subject}: energy of {first} (A) and {second} (B)")
NO_NAME: Final = "no chip is named: write ids, separated by commas"
NO_CHIP: Final = "None of these chips can run this. Choose another precision, or other chips."
TWO_CHIPS: Final = "Name two chips that run this model, to see why their energies differ."
TOO_MANY: Final = Template("{count} more chips are left out, because the page compares at most {most} at once")

ENERGY: Final = "Energy per batch"
LATENCY: Final = "Latency of a batch"
PARTS: Final = "Parts of the energy"
FRONT: Final = "Energy against latency"
WATERFALL: Final = Template("From the energy of {first} to that of {second}")
ON_FRONT: Final = Template("{name}: {latency}, {energy}[; on the Pareto front with {chance} confidence]")
LEGEND: Final = (
    "Filled: on the Pareto front with at least 80 % confidence. Ring: on it as predicted. Grey: another chip is better "
    "in both."
)
WHY: Final = "Why does the winner need less energy than"
SUM: Final = Template("the parts add up to the difference of {second} and {first}, to the femtojoule: {parts}")

SERVED: Final = Template(
    "{label} with {engine}, one user[, weights {weights}], first token after a prompt of {prompt:n token}"
    "[, {changes:and}]"
)
RATE: Final = "Output tokens per second"
TOKEN: Final = "Energy per output token"
FIRST: Final = "Time to first token"
PER_SECOND: Final = Template("{rate} tokens/s")
RUNS: Final = Template(
    "Run {model} on {label}: {rate} at {joules} per token, the largest of {total} models at reading speed, {reading}."
)
RUNS_SLOWLY: Final = Template(
    "Run {model} on {label}: {rate}, the fastest; none of {total} models reaches reading speed, {reading}."
)
RUNS_ONE: Final = Template("Expect {rate} at {joules} per token from {model} on {label}.")
RUNS_NOT: Final = Template("{label} does not run {model}.")
RUNS_NONE: Final = Template("{label} runs none of these models.")
REFUSED: Final = Template("{model}: {reason}")

MATCHED: Final = Template("This browser draws with {printed}, which is {chip}.")
SEVERAL: Final = Template("This browser draws with {printed}, which may be {chips:or}. The first is chosen.")
UNMATCHED: Final = Template("This browser draws with {printed}, which is not in the catalogue. Choose a chip.")
HIDDEN: Final = "This browser does not say which GPU it has. Choose a chip."

OTHER_FILE: Final = Template(
    "{file} needs packages that a browser lacks: install {package} and run `joulemap compare {file}`."
)
UNKNOWN_FILE: Final = Template("{file} is not a GGUF file. Drop a file whose name ends with .gguf.")
