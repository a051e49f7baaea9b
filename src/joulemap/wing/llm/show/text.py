"""Text of the answers about served language models, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.show.present.template import Template
from joulemap.wing.llm.phase import ANSWER, PROMPT

TITLE: Final = Template("{model}[ (same sizes as {like})]")
ABOUT: Final = Template(
    "{requests}, {precisions:and}{stored}[, {cache} cache], {engine}[, arrivals at {rate_per_s:1/s}][, {flown}]{served}"
)
LENGTHS: Final = Template("prompt {prompt:#}, output {output:#}")
BATCH_REQUESTS: Final = Template("{lengths}[, batch {batches:and}]")
FILE_REQUESTS: Final = Template("requests of {requests}")

POOL: Final[Mapping[str, str]] = {"prompts": PROMPT.name, "answers": ANSWER.name}

# tables
BATCHES_HEADING: Final = Template("Batches of requests that arrive together[, {lengths}]")
BATCHES: Final = (
    "hardware @label | batch batch! | tokens/s ~tokens_per_s | decode J/token output_token_j | "
    "range -output_token_j:output_token_half_width | TPOT between_s | "
    "TPOT range -between_s:between_half_width | TTFT first_token_s | USD/M output tokens #output_usd_per_million? | "
    "memory memory_fraction | largest batch largest_batch | longest context #largest_context! | "
    "decode limit decode_bound | prefill limit prefill_bound | request latency request_s | "
    "tokens/s per user ~user_tokens_per_s | tokens/s per device ~device_tokens_per_s"
)
BATCHES_DRAWN: Final = "range"
BATCHES_KEPT: Final = "batch | TPOT | range | TTFT | USD/M output tokens | memory | largest batch"
BATCHES_RANKED: Final = "tokens/s | decode J/token"
GOALS: Final[Mapping[str, tuple[str, str]]] = {
    "first_token": ("TTFT", "first_token_s"),
    "between_tokens": ("TPOT", "between_s"),
    "energy": ("decode J/token", "output_token_j"),
    "cost": ("USD/M output tokens", "output_usd_per_million"),
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
LOADS_RANKED: Final = Template("p99 TTFT | tokens/s | J/token | {assumed}")
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
    "*output tokens output_usd_per_million:output_usd_half_width | price price_text? | "
    "prompt CO2 prompt_gco2_per_million | output CO2 output_gco2_per_million"
)
INTERVALS: Final = (
    "hardware @label | *batch | *TTFT first_token_s:first_token_half_width | *TPOT between_s:between_half_width | "
    "J/prompt token prompt_token_j:prompt_token_half_width | *decode J/token output_token_j:output_token_half_width | "
    "first decode step first_step_s | last decode step last_step_s"
)
DETAILS: Final = ("Memory of one device", "Phases", "Cost and carbon per million tokens", "80 % intervals")

# notes
ENGINE_NOTE: Final = (
    "without --engine, vLLM is used. GGUF files run on llama.cpp unless --engine names another engine. If all hardware "
    "is CPUs outside data centres or Apple GPUs, llama.cpp is the default for every model, with q4_k_m weights unless "
    "--precision or --weight-precision is given; on NPUs of Qualcomm or Rockchip it is Genie with int4 weights or "
    "RKLLM at int8"
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
    "cost: {use}[, {idle}][; {counted}]; carbon includes cooling (PUE); `joulemap cost --details` lists the other "
    "assumptions"
)
IDLE_HOURS: Final = "idle hours included"
DECODE_COST: Final = "output tokens are decode alone; prompt tokens cost extra (--details)"
"""Scope of the cost of a batch's output tokens."""
WHOLE_COST: Final = "output tokens include their prompts"
"""Scope of the cost of a load's output tokens."""
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
