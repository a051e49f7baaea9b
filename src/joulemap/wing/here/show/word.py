"""Words about this machine for what reads and matches it: what could not be read, and what is assumed."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template, Words

TARIFF: Final = Template(
    "electricity at {usd:plain} USD/kWh, for the energy of the chips, without the rest of the machine"
)
RESERVE: Final = Template(
    "the system and its desktop keep {reserve:B} of {memory:B}, so models use at most {usable:B} on {label}"
)
WORKS: Final = Template("no language models on NPUs: llama.cpp has no kernels for {names:and}")
SHARED: Final = Template("{label} shares the machine's memory with the processor")
NO_COUNT: Final = Template("{tool}: {field} is {value}: expected a number from 0 on")
NO_PROCESSOR: Final = Template("{reason}; name a chip instead, as in `joulemap llm llama-3.1-8b ryzen_9_7950x`")
NO_PROFILER: Final = "processor unknown: neither sysctl nor system_profiler answers"
NO_CIM: Final = "processor unknown: Get-CimInstance Win32_Processor does not answer"
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

WORDS: Final = Words(caveats={"gap": Template("{text}")})
MEMORY_LINE: Final = Template("{capacity:B} of memory[ at {rate:B/s}][ ({kind})]")
DERIVED: Final = Template("derived from what the machine reports[; {assumed} assumed]")
PROBED: Final = "derived, with measured bandwidth"
CATALOGUE: Final = Template("catalogue[; {read:and} from this machine][; {assumed} assumed]")

VERIFY: Final = Template("{command} | joulemap verify - --hardware {hardware}[ {facts}]")

VERIFY_OWN: Final = Template(
    "joulemap hardware detect --output this.toml && {command} | "
    "JOULEMAP_HARDWARE=this.toml joulemap verify - --hardware {hardware}[ {facts}]"
)
"""Shell command that describes a chip missing from the catalogue, then checks a prediction for it."""

SPLIT: Final = Template("{layers} of {layer_count} layers")
SPLIT_EXPERTS: Final = Template("experts of {layers} of {layer_count} layers")
SPLIT_LABEL: Final = Template("{device} + {host}")
JOINED: Final = " + "
SEVERAL_LABEL: Final = Template("{count} x {device}")
