"""Text of the answers about served language models, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.present.template import Template

TITLE: Final = Template(
    "{model}[ (same sizes as {like})]: "
    "{requests}, {precisions:and}{stored}[, {cache} cache], {engine}[, arrivals at {rate_per_s:1/s}]"
    "[, {flown}][, {speculate:n draft token} per step, acceptance {acceptance:set %}][{later}]{reused}"
)
REUSED: Final = Template(
    "[, {prefix_hit:set %} of prompt tokens in the prefix cache][, {turns} turns of a conversation]"
    "[ with pauses of {pause_s:s}][, evicted prefixes in {tiers:and}]"
)
"""Reuse of prefixes, as titles state it."""
GUESSED: Final = Template("[, {speculate:n draft token} per step, acceptance {acceptance:set %}]")
"""Title text for speculative decoding."""
LATER: Final = Template("[, then {rates:and}], {gained:plain} output tokens per step")
LENGTHS: Final = Template("prompt {prompt:#}, output {output:#}")
BATCH_REQUESTS: Final = Template("{lengths}[, batch {batches:and}]")
FILE_REQUESTS: Final = Template("requests of {requests}")

# headline of batches
ENERGY: Final = Template("{label} uses the least decode energy[ {among}]: {value:interval J} per token[ at batch {at}]")
LATENCY: Final = Template("{label} has the lowest TPOT[ {among}]: {value:interval s}[ at batch {at}]")
LATENCY_TOO: Final = Template("it also has the lowest TPOT[ {among}]: {value:interval s}[ at batch {at}]")
AVAILABLE: Final = "of the available chips"
LEADS: Final[Mapping[str, Template]] = {
    "energy": Template(
        ", {advantage_ratio:x} less than {other}[ at batch {other_batch}] "
        "({chance:chance} confidence[ of being the best of {count}])"
    ),
    "between_tokens": Template(
        ", {advantage_ratio:x} lower than {other}[ at batch {other_batch}] "
        "({chance:chance} confidence[ of being the best of {count}])"
    ),
}
"""Goal -> phrase for a winner's lead over the next hardware."""
EQUAL: Final = Template(", the same as {other}")
TIED: Final = Template("statistically tied with {rivals:few}")
ONE: Final = Template(
    "{label} at batch {batch} has a TTFT of {first_token_s:s}, a TPOT of {between_s:s} and a decode energy of "
    "{output_token_j:J} per token"
)
LARGEST: Final = Template(
    "at batch {batch}, its TPOT is {between_s:s}, its throughput {tokens_per_s:~} tokens/s and its decode energy "
    "{output_token_j:J} per token"
)

# headline of a request load, and of two pools
LOAD: Final = Template(
    "{label} has the lowest p99 TTFT: {first_token_p99_s:s}[, {tied}][, {ratio:x} lower than {other}]"
    "[; its p99 TPOT is {between_p99_s:s}]"
)
LOAD_ALONE: Final = Template(
    "Only {label} keeps up with the arrivals; its p99 TTFT is {first_token_p99_s:s}"
    "[ and its p99 TPOT {between_p99_s:s}]"
)
LOAD_OF_ONE: Final = Template("{label} has a p99 TTFT of {first_token_p99_s:s}[ and a p99 TPOT of {between_p99_s:s}]")
LOAD_ENERGY: Final = Template(
    "{uses} {output_token_j:J} per output token (prompts included[; {idle:%} is idle energy])[, {tied}]"
)
LEAST: Final = Template("{label} uses the least energy[ {among}]:")
LEAST_TOO: Final = Template("it also uses the least energy[ {among}]:")
KEEPING_UP: Final = "of those that keep up"
USES: Final = "it uses"
HITS: Final = Template(
    "{prefix_hit_fraction:%} of prompt tokens come from the prefix cache[ ({below:%} from lower tiers)]; a request "
    "takes {request_j:J}[ ({uncached_request_j:J} without reuse)], and its median TTFT is {first_token_s:s}"
    "[ ({uncached_first_token_s:s} without reuse)]"
)
HITS_OF: Final = Template("on {label}, ")
REFUSED: Final = Template(
    "percentiles exclude {refused_count:n request}[ on {where}] too long for the context or the memory"
)
BEHIND: Final = Template("{labels:and} cannot keep up with the arrivals")
OVERLOADED: Final = Template(
    "No deployment keeps up with arrivals at {arrivals_per_s:1/s}: the best, {label}, serves {served_per_s:plain} "
    "requests/s, and its queue grows without limit"
)
OVERLOADED_ONE: Final = Template(
    "{label} cannot keep up with arrivals at {arrivals_per_s:1/s}: it serves {served_per_s:plain} requests/s, and its "
    "queue grows without limit"
)
POOLS: Final = Template(
    "{prompts} for prefill and {answers} for decode"
    "[ serve arrivals at {rate_per_s:1/s} with {prompts_used:%} and {answers_used:%} utilization; {first} saturates "
    "first]"
)
POOL: Final[Mapping[str, str]] = {"prompts": "prefill", "answers": "decode"}
SERVERS: Final = Template("{server_count:n server} of {label}")
POOL_LOAD: Final = Template(
    "the median TTFT is {first_token_s:s} (p99 {first_token_p99_s:s})[ and the median TPOT {between_s:s}]; an output "
    "token takes {output_token_j:J}[, and a million of them cost {output_usd_per_million:plain} USD]"
)

# tables
BATCHES_HEADING: Final = Template("Batches of requests that arrive together[, {lengths}]")
BATCHES: Final = (
    "hardware @label | batch | TTFT first_token_s | TPOT between_s | tokens/s ~tokens_per_s | "
    "decode J/token output_token_j | decode USD/M tokens #output_usd_per_million? | memory memory_fraction | "
    "largest batch largest_batch | decode limit decode_bound | prefill limit prefill_bound | "
    "request latency request_s | J/prompt token prompt_token_j | tokens/s per user ~user_tokens_per_s | "
    "tokens/s per device ~device_tokens_per_s"
)
BATCHES_KEPT: Final = "batch | TPOT | decode J/token | TTFT | tokens/s | decode USD/M tokens | memory | largest batch"
BATCHES_RANKED: Final = "TPOT | decode J/token | decode USD/M tokens"
GOALS: Final[Mapping[str, tuple[str, str]]] = {
    "first_token": ("TTFT", "first_token_s"),
    "between_tokens": ("TPOT", "between_s"),
    "energy": ("decode J/token", "output_token_j"),
    "cost": ("decode USD/M tokens", "output_usd_per_million"),
}
"""Goal -> heading and field of its column."""
LIMIT: Final = Template("{bound} {share:%}")
LOADS_HEADING: Final = "Requests: medians, and p99 where stated"
LOADS: Final = Template(
    "hardware @label | *TTFT first_token_s | *p99 TTFT first_token_p99_s | *TPOT between_s? | "
    "*p99 TPOT between_p99_s? | p99 ITL gap_p99_s? | *tokens/s ~output_tokens_per_s | *J/token output_token_j | "
    "{assumed}*USD/M output tokens #output_usd_per_million | *power power_w | idle energy idle_fraction | "
    "request latency request_s | keeps up up | preemptions preemption_count | refused refused_count | "
    "handover handover_s? | handover energy handover_j? | "
    "*prefix hits prefix_hit_fraction? | *J/request request_j? | *J/request without reuse uncached_request_j? | "
    "hits in lower tiers tier_hit_fraction? | prefill J/request request_prompt_j? | "
    "decode J/request request_answer_j? | cache transfer J/request request_moved_j? | idle J/request request_idle_j?"
)
LOADS_RANKED: Final = Template("p99 TTFT | J/token | {assumed}")
POOLS_TABLE: Final = (
    "pool | *server @label | *servers server_count | *requests/s per server #each_per_s | utilization use_fraction | "
    "balanced device ratio balance"
)
BALANCE: Final = Template("{balanced_device_count:plain} per {other} device")
LEFT_OUT: Final = Template("Left out: {reasons}")
UNSUPPORTED_COUNT: Final = Template("{count:n chip} without the precision (--notes)")

MEMORY: Final = (
    "hardware @label | *batch | *weights weight_bytes | *KV cache cache_bytes | activations activation_bytes | "
    "reserved reserved_bytes | *used memory_fraction | *largest batch largest_batch | "
    "*longest context #largest_context | minimum devices needed_device_count"
)
PHASES: Final = (
    "hardware @label | *batch | *phase | *time phase_s | *one pass without engine run_latency_s | "
    "*J/token energy_per_token_j | power per device device_power_w | *limit bound | *run run_id"
)
COSTS: Final = (
    "hardware @label | *batch | payment way | *prompt tokens prompt_usd_per_million | "
    "*output tokens output_usd_per_million:output_usd_half_width | price price_told? | "
    "prompt CO2 prompt_gco2_per_million | output CO2 output_gco2_per_million"
)
INTERVALS: Final = (
    "hardware @label | *batch | *TTFT first_token_s:first_token_half_width | *TPOT between_s:between_half_width | "
    "J/prompt token prompt_token_j:prompt_token_half_width | *J/token output_token_j:output_token_half_width | "
    "first decode step first_step_s | last decode step last_step_s"
)
DETAILS: Final = ("Memory of one device", "Phases", "Cost and carbon per million tokens", "80 % intervals")

# insights
TOO_LARGE: Final = Template("not enough memory: {shortages}[; and {more} more]")
SHORTAGE: Final = Template("{label} {reason}")
LIMITS: Final = Template(
    "prefill is[ {mostly}] limited by {prefill} and decode by {decode}[, except {exceptions:and}][ ({others})]"
)
LIMITED_ALIKE: Final = Template(
    "prefill and decode are[ {mostly}] limited by {decode}[, except {exceptions:and}][ ({others})]"
)
LIMITED_DECODE: Final = Template("decode is[ {mostly}] limited by {decode}[, except {exceptions:and}][ ({others})]")
"""Sentence on the limit of decode alone, where no prompt fits in memory as one stored pass."""
MOSTLY: Final = "mostly"
OTHERS: Final = "exceptions: --details"
BOUNDS: Final[Mapping[str, str]] = {
    "memory": "memory bandwidth",
    "operands": "on-chip data movement",
    "launch": "kernel launch overhead",
    "communication": "communication between devices",
    "engine": "engine overhead",
}
"""Limit of a phase -> its name in a sentence, if that differs."""
EXCEPTION: Final = Template("{phase} on {labels:and}[ at batch {batches:and}] ({bound})")
CHEAPEST: Final = Template("{label} costs least[ ({sure})]: {cost}")
ONLY_PRICED: Final = Template("only {label} has a comparable price: {cost}")
CONFIDENCE: Final = Template("{chance:chance} confidence")
COST: Final = Template(
    "{usd:plain} USD per million output tokens at batch {batch}[ and {prompt_usd:plain} USD per million prompt "
    "tokens], "
    "{each}{way} at {price}[, busy {busy_hours:plain} of 24 hours]"
)
EACH_DEVICE: Final = "each device "

# uncertainty
ASSUMED: Final = Template("assumed numbers account for {share} of the energy of an output token[ ({basis})]")
DOUBTED: Final[Mapping[str, str]] = {
    "TTFT": "first_token_half_width",
    "TPOT": "between_half_width",
    "J/token": "output_token_half_width",
}
"""Heading of a quantity -> field with the half-width of its interval."""

ENGINE_NOTE: Final = (
    "without --engine, vLLM is used. GGUF files run on llama.cpp unless --engine names another engine. On CPUs "
    "outside data centres, llama.cpp is the default for every model, with q4_k_m weights unless --precision or "
    "--weight-precision is given"
)
BATCHES_BELOW: Final = Template(
    "--batch applies to the tables of --details only, in which requests arrive together; the next {count} notes "
    "explain their columns"
)
TOKEN_NOTE: Final = Template(
    "decode J/token: energy of an output token after the first, which belongs to prefill. It includes all devices"
    "[ and {hosts}]; `explain` and `edp` show one pass on one device, without engine overhead"
)
HOSTS: Final = "their share of idle host energy"
BATCH_NOTES: Final = (
    "memory: share of a device's memory used by weights, the final cache of the whole batch, activations and the "
    "engine's reserve; largest batch: maximum sequences of this length that fit",
    "limit: largest part of the time: memory (bandwidth), compute, operands (on-chip data movement, with units "
    "computing under 10 % of the time), launch (kernel launch overhead), communication between devices, or engine "
    "overhead (slower kernels than the modelled ones, and host work between passes)",
)
BATCH_NOTE: Final = (
    "TTFT (time to first token): from arrival to the first token, if all requests of a batch arrive together; TPOT "
    "(time per output token): mean over the output of a request, while the cache grows; tokens/s: output tokens of all "
    "sequences over the total request time"
)
LOAD_NOTE: Final = (
    "TTFT (time to first token), TPOT (time per output token) and request latency are medians over requests. The TPOT "
    "of a request is the mean gap between its tokens. ITL (inter-token latency) is a single gap, longer if the pass "
    "also computes a prompt. J/token is per output token, with prompts and idle time included"
)
POOL_NOTE: Final = (
    "balanced device ratio: devices of a pool per device of the other pool at which both saturate at the same rate"
)
SHARED_RUNS: Final = Template(
    "{count:n configuration} of {total} have no separate runs: intervals and limits come from the smallest or "
    "largest batch of the same hardware, whichever is nearer"
)
COST_NOTE: Final = Template(
    "cost: {use}[, {idle}]; carbon includes cooling (PUE); `joulemap cost --details` lists the other assumptions"
)
IDLE_HOURS: Final = "idle hours included"
LOAD_HOURS: Final = Template("{pay}, for the hours under load only (--busy-hours adds idle hours)")
OTHER_WAY: Final = Template(
    "if {way} instead, {label} costs least: {usd:plain} USD per million output tokens at batch {batch}"
)
OTHER_SELLER: Final = Template(
    "cost not compared, because the price is from another kind of seller (--seller): {prices:list}"
)

NEXT_EXPLAIN: Final = Template("explain {model} {hardware} {other}")
NEXT_EDP: Final = Template("edp {model} {hardware}")
NEXT_RUN: Final = Template("--batch {batch} --runtime {runtime}")
