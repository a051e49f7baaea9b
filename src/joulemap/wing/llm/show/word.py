"""Words of served language models: reasons of refusals, and for the core caveats and metrics in sentences."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template, Words

FOREIGN: Final = Template("{hardware}: {engine} runs only on chips of {vendors:and}")
OTHER_CHIPS: Final = Template("{hardware}: {engine} runs only on {chips:and}")
NO_PRECISION: Final = Template("{hardware} has no {precision}[ (it has {precisions:list})][; try `--engine {engine}`]")
NO_METHOD: Final = Template(
    "{engine} does not run {weights} weights[ ({method})]; it runs {methods:and}, and plain formats such as int4"
)
BUSY: Final = Template("{engine} runs at most {most:n sequence} at once, not the batch of {batch}")
SHORTAGE: Final = Template(
    "needs {lacking:B} more than its usable {capacity:B}[ with {setting}] for batch {batch}[ ({fitting} would fit)]"
)
WEIGHTS: Final = Template(
    "needs {needed:B} for weights and the engine, but has {capacity:B} usable[ with {setting}]"
    "[ ({fitting} would fit at batch {batch})]"
)
MEMORY_LACKS: Final = Template("the {memory} lacks {lacking:B}")
DIVIDED: Final = Template("{error}[ ({fitting} would fit)]")
UNCOMPILED: Final = Template("{error}[ (`--engine {engine}` does)]")
TOO_MANY: Final = Template("{users:n user} need more than {most} devices of {hardware}")
WIDE_CACHE: Final = Template(
    "the KV cache of {hardware:and} is in 16 bits beside 4-bit weights; `--cache fp8` halves it, as NVIDIA's FP4 "
    "checkpoints do"
)

WORDS: Final = Words(
    caveats={
        "context": Template(
            "{chips} holds at most {tokens:#} tokens per sequence at this batch; the model's context is {most:#}"
        ),
        "divided": Template(
            "{chips}: {precision} weights of {weights} with their cache need {device_count} devices"
            "[, which take turns, because {engine} gives each its own layers]"
        ),
        "experts_away": Template("rates with experts on a processor were not measured and may be off by {ratio:x}"),
        "excluded": Template("percentiles of {chips} exclude {count:n request} too long for the context or the memory"),
        "memory": Template("{chips}: {reason}"),
        "precision": Template("precisions differ: {chips} runs in {precision}"),
        "price": Template("the cost of {chips} counts devices {way} at {price}[, busy {hours:plain} of 24 hours]"),
        "quality": Template("published quality loss of {precision} on {chips}: {quality}"),
        "setting": Template("{chips} holds the model only with {setting}"),
        "slow_host": Template(
            "{chips} may be host-bound: in {share:set %} of the servers measured with {engine}, a slow host adds "
            "{added_s} to each step"
        ),
        "turns": Template("the devices of {chips} take turns, because {engine} gives each its own layers"),
        "unmeasured": Template(
            "{engine} was not measured on {chips}[ or another chip of {vendor}], which widens the range"
        ),
    },
    nouns={
        "energy_per_token": "energy per token",
        "decode_energy_per_token": "decode energy per token",
        "time_per_token": "TPOT",
        "first_token": "TTFT",
        "first_token_p99": "p99 TTFT",
        "usd_per_million": "cost",
        "energy_per_million": "energy",
    },
    better={
        "decode_energy_per_token": Template("uses {ratio:x} {less} decode energy per token[ than {rival}]"),
        "energy_per_token": Template("uses {ratio:x} {less} energy per token[ than {rival}]"),
        "time_per_token": Template("has {ratio:x} {lower} TPOT[ than {rival}]"),
        "first_token": Template("has {ratio:x} {lower} TTFT[ than {rival}]"),
        "first_token_p99": Template("has {ratio:x} {lower} p99 TTFT[ than {rival}]"),
        "usd_per_million": Template("costs {ratio:x} {less}[ than {rival}]"),
    },
)
