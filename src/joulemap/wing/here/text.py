"""Text of the answer about this machine, in reading order."""

from __future__ import annotations

from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template("This machine: {parts:and}[, {memory}]")
TITLE_OF_MODEL: Final = Template("{model} on this machine: {parts:and}[, {memory}]")
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

SERVED: Final = Template("Language model: prompt {prompt:#}, output {output:#}, one user, {engine}")
SERVED_COLUMNS: Final = (
    "*on label | *weights weights | *fits fits | largest context context_tokens | "
    "*TTFT first_token_s:first_token_half_width | *tokens/s tokens_per_s | *power power_w | "
    "*J/token output_token_j:output_token_half_width | "
    "*electricity, USD/M tokens #usd_per_million | memory, with reserve memory_fraction | *refused reason?"
)
POPULAR: Final = Template("Language models, each where it is fastest: prompt {prompt:#}, output {output:#}, {engine}")
POPULAR_COLUMNS: Final = (
    "*model model | *weights weights | *fits fits | *on label | TTFT first_token_s | "
    "*tokens/s tokens_per_s | *power power_w | J/token output_token_j | "
    "electricity, USD/M tokens #usd_per_million | memory, with reserve memory_fraction"
)
EVERY: Final = "Language models on every chip"
EVERY_COLUMNS: Final = (
    "*model model | weights weights | *on label | *fits fits | largest context context_tokens | "
    "TTFT first_token_s:first_token_half_width | *tokens/s tokens_per_s | *power power_w | "
    "J/token output_token_j:output_token_half_width | memory, with reserve memory_fraction | refused reason?"
)
RUN: Final = Template("{models}, batch {batch}, {precision}")
OTHER_MODELS: Final = "Other models"
RUN_COLUMNS: Final = (
    "*model model | *on label | precision precision! | *latency latency_s:latency_half_width | *throughput per_s | "
    "*energy energy_j:energy_half_width | power power_w | memory memory_bytes | *refused reason?"
)

FITS: Final = "yes"
FITS_NOT: Final = "no"
SPLIT: Final = Template("{layers} of {layer_count} layers")
SPLIT_LABEL: Final = Template("{device} + {host}")
SEVERAL_LABEL: Final = Template("{count} x {device}")

BEST: Final = Template(
    "{label} runs {model} in {weights} at {rate}[, with a TTFT of {first_token_s:s}][, {power_w:W}]"
    "[ and {output_token_j:J} per token][; {fastest} is less precise but faster: {most}][ on {where}]"
)
NOTHING: Final = Template("{model} runs on no chip of this machine: {reasons}")
REASON: Final = Template("[with {weights} weights, ]{label} {reason}")
LARGEST: Final = Template(
    "{model} is the largest model predicted to reach reading speed ({least:plain} tokens/s): {rate} on {label}"
)
SLOW: Final = Template(
    "No model is predicted to reach reading speed ({least:plain} tokens/s); the fastest is {model}: {rate} on {label}"
)
NOTHING_FITS: Final = "None of the listed language models fits"
NO_DEVICE: Final = "No chip of this machine can be predicted"
FASTEST: Final = Template("{label} runs {model} fastest: {latency:interval s} and {energy_j:J} per {unit}{lead}")
PER_INFERENCE: Final = "inference"
PER_BATCH: Final = Template("batch of {batch}")
LEAD: Final = Template(", {ratio:x} faster than {other}[ ({chance:chance} confidence)]")
TIED: Final = Template(", statistically tied with {other}")
ONLY: Final = Template("{label} runs {model} in {latency:interval s} with {energy_j:J} per {unit}")

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
NO_GRAPHICS: Final = (
    "no GPU found by lspci, nvidia-smi, rocm-smi or xpu-smi (on Windows, Get-CimInstance); in a container, pass the "
    "device and its tool through"
)
NO_DRIVER: Final = Template(
    "{name}: nvidia-smi does not answer; install NVIDIA's driver, or share the GPU with the container"
)
NO_DMIDECODE: Final = (
    "memory speed unknown, because dmidecode is missing or needs root; the bandwidth of chips that use this memory is "
    "assumed. Use `sudo joulemap here`, or state kind, MT/s and number of 64-bit channels with --memory DDR5-5600x2"
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
