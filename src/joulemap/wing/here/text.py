"""Text of the answer about this machine, in reading order."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template("This machine: {parts:and}[, {memory}][; {asked:list}]")
TITLE_OF_MODEL: Final = Template("{model} on this machine: {parts:and}[, {memory}][; {asked:list}]")
LENGTHS: Final = Template("prompt {prompt:#}")
OUTPUT: Final = Template("output {output:#}")
NO_PART: Final = "no chip that joulemap knows"
MEMORY: Final = Template("{capacity:B} of memory[ at {rate:B/s}][ ({kind})]")

DEVICES: Final = "Chips"
DEVICE_COLUMNS: Final = (
    "*chip printed | *known as label | class kind | *count count | memory memory_bytes | *usable usable_bytes | "
    "bandwidth memory_bytes_per_s | power limit power_w | *source origin"
)
CATALOGUE: Final = Template("catalogue[; {read:and} from this machine][; {assumed} assumed]")
BANDWIDTH: Final = "bandwidth"
DERIVED: Final = "derived from what the machine reports"
DERIVED_IN_PART: Final = "derived from what the machine reports; bandwidth assumed"
PROBED: Final = "derived, with measured bandwidth"
UNKNOWN: Final = "unknown"

SERVED_COLUMNS: Final = Template(
    "weights weights= | on label{same} | fits! | tokens/s tokens_per_s | "
    "range between_half_width | J/token output_token_j | TTFT first_token_s | power power_w= | "
    "largest context #context_tokens= | electricity, USD/M tokens #usd_per_million | "
    "memory, with reserve memory_fraction"
)
POPULAR_COLUMNS: Final = Template(
    "model | weights weights= | on label{same} | fits! | tokens/s tokens_per_s | J/token output_token_j | "
    "TTFT first_token_s | power power_w= | electricity, USD/M tokens #usd_per_million | "
    "memory, with reserve memory_fraction"
)
RATE: Final = "tokens/s"
RANKED: Final = "tokens/s | J/token"
WITH_CPU: Final = Template("{device}+CPU")
KEPT: Final = "on | weights | range | TTFT"
SAME: Final = "="
"""Sign of the column of chips; if the machine has one chip, the subject names it and the column is dropped (`!`)."""
EVERY: Final = "Language models on every chip"
EVERY_COLUMNS: Final = (
    "*model model | weights weights | *on label | *fits fits | largest context context_tokens | "
    "TTFT first_token_s:first_token_half_width | *tokens/s tokens_per_s | *power power_w | "
    "J/token output_token_j:output_token_half_width | memory, with reserve memory_fraction | refused reason?"
)
RUN: Final = Template("{models}, batch {batch}, {precision}")
OTHER_MODELS: Final = "Other models"
RUN_COLUMNS: Final = (
    "model model! | on label | precision precision! | latency latency_s | range -latency_s:latency_half_width | "
    "energy energy_j:energy_half_width | throughput per_s | power power_w | memory memory_bytes | refused reason?"
)
RUN_KEPT: Final = "model | latency | energy | range | refused"

FITS: Final = "yes"
FITS_NOT: Final = "no"
SPLIT: Final = Template("{layers} of {layer_count} layers")
SPLIT_LABEL: Final = Template("{device} + {host}")
SEVERAL_LABEL: Final = Template("{count} x {device}")

TARIFF: Final = Template(
    "electricity at {usd:plain} USD/kWh, for the energy of the chips, without the rest of the machine"
)
INTERVALS: Final = "`joulemap here MODEL` adds the intervals of every model"
RESERVE: Final = Template(
    "the system and its desktop keep {reserve:B} of {memory:B}, so models use at most {usable:B} on {label}"
)
METAL: Final = (
    "macOS lets the GPU use two thirds of up to 32 GiB of memory and three quarters of more; "
    "`sudo sysctl iogpu.wired_limit_mb=N` raises it"
)
WORKS: Final = Template("no language models on NPUs: llama.cpp has no kernels for {names:and}")
SHARED: Final = Template("{label} shares the machine's memory with the processor")

NO_COUNT: Final = Template("{tool}: {field} is {value}: expected a number from 0 on")
NO_PROCESSOR: Final = Template("{reason}; name a chip instead, as in `joulemap llm llama-3.1-8b ryzen_9_7950x`")
NO_GRAPHICS: Final = "no GPU found; in a container, pass the device and its tool (such as nvidia-smi) through"
NO_DRIVER: Final = Template(
    "{name}: nvidia-smi does not answer; install NVIDIA's driver, or share the GPU with the container"
)
NO_DMIDECODE: Final = (
    "memory bandwidth is assumed, because dmidecode is missing or needs root: use `sudo joulemap here`, or "
    "--memory DDR5-5600x2 (kind, MT/s, 64-bit channels)"
)
NO_MEMORY_SPEED: Final = Template(
    "memory speed unknown: {system} does not report it; state it with --memory DDR5-5600x2"
)
FASTER_MEMORY: Final = Template(
    "the bandwidth of --memory, {rate:B/s}, is {ratio:x} the {known:B/s} that the catalogue has for {label}: check the "
    "number of channels"
)
AMBIGUOUS: Final = Template("{name} may be any of {names:list}: name one with `joulemap llm MODEL NAME`")
NEAREST: Final = Template("{name} is not in the catalogue[; nearest: {near:list}][; {described}]")
SOCKETS: Final = Template("this machine has {count} {label} processors; answers are for one of them")
CORES: Final = Template("answers are for the {count} of {whole} cores of {label} that this machine has")
PROBE: Final = Template("measured: {stream:B/s} stream bandwidth, {product:1/s} fp32 operations[, {idle:W} idle]")
