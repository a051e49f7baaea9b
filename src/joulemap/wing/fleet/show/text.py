"""Text of the answer about fleets, in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from joulemap.show.present.template import Template

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Objective

SUBJECT: Final = "How many devices"
TITLE: Final = Template("{models:and}")
ABOUT: Final = Template(
    "[up to {peak}][{rate}], {targets:list}, {precisions:and}[, {runtimes:and}][, {engine}]{served}"
)
MODEL: Final = Template("{share:set %} {name}")
RATE: Final = Template("{rate} requests/s")
ONE_RATE: Final = "1 request/s"
TARGETS: Final[Mapping[str, Template]] = {
    "p99_s": Template("p99 within {target:s}"),
    "first_token_s": Template("p99 TTFT within {target:s}"),
    "between_s": Template("p99 TPOT within {target:s}"),
}

NO_FLEET: Final = Template("no fleet of this hardware meets the latency target: {reasons}")
REASON: Final = Template("{label} ({reason})")
NOTHING_RUNS: Final = "nothing runs it"
OWNED_AND: Final = Template("{owned_device_count} owned and {others} {way}")

MONTHLY: Final[Mapping[Objective, tuple[str, str]]] = {
    "cost": ("USD/month", "#cost_per_month"),
    "energy": ("kWh/month", "#kwh_per_month"),
    "carbon": ("CO2/month", "gco2_per_month"),
}
"""Objective -> heading of its column, and the field that the column shows."""
LATENCIES: Final = "*p99 p99_latency_s"
TOKEN_LATENCIES: Final = "*p99 TTFT first_token_p99_s? | *p99 TPOT between_p99_s?"
FLEETS: Final = Template(
    "hardware @label | *devices | *80 % sure likely_device_count? | sure of devices enough_fraction? | "
    "*{objective} | {latencies} | *batch | delay limit wait | "
    "*utilization utilization_fraction? | *power power_w | capacity carried_ratio | "
    "energy per request energy_per_request_j | {others} | "
    "payment way | price price_text?"
)
DEVICES: Final = Template("{device_count}[ ({low}\N{EN DASH}{high})]", is_number=True)
BATCH: Final = Template("{batch_mean:plain} of {batch}")
CAPACITY: Final = Template("{ratio:x}")
CAPACITY_OVER: Final = Template("over {ratio:plain}x")
UTILIZATION_UNDER: Final = Template("under {share:%}", is_number=True)
LEFT_OUT: Final = Template("Left out: {reasons}")
DELAYED_MEANS: Final = (
    "delayed batching: the first request of a batch waits for others, up to the delay limit, which saves energy"
)

COSTS: Final = (
    "hardware @label | *devices | *rented per month rented_per_month | *bought per month bought_per_month | "
    "CO2 per month gco2_per_month | kWh per month #kwh_per_month | *maximum power power_w | "
    "mean power mean_power_w | *idle power idle_power_w | "
    "time busy busy_fraction | first limit up to 1.5x the load fails_first"
)
QUEUES: Final = (
    "hardware @label | quantity! | *rate rate_per_s | load load_ratio | p50 p50_s | *p99 p99_s | target promise_s | "
    "power power_w"
)
OVERLOADED: Final = "overloaded"
LEVELS: Final = (
    "hardware @label | *rate rate_per_s | share of time share_fraction | *devices device_count | "
    "time busy busy_fraction | *power power_w"
)
MIXTURES: Final = (
    "fleet label | *form | *USD/month #cost_per_month | kWh/month #kwh_per_month | power power_w | "
    "*saving saved_fraction | confidence of saving probability_best?"
)
PAIRS: Final = Template(
    "prefill > decode devices label | *USD/month #cost_per_month | kWh/month #kwh_per_month | "
    "*p99 TTFT first_token_p99_s | *p99 TPOT between_p99_s | handover handover_s | power power_w | "
    "*{objective} relative to one pool regret_ratio | confidence of being better probability_best?"
)
MISSED: Final = "hardware @label | *reason"
MIXED: Final = "Mixed hardware"
PAIRED: Final = "Separate prefill and decode"
DETAILS: Final = (
    "Power and cost",
    "Latency and power at other rates",
    "Fleet at each rate",
    MIXED,
    PAIRED,
    "Missed targets and limits",
)

DIVIDED: Final = Template("each server divides the model over {devices:n device}{experts}")
EXPERTS: Final = ", with whole experts on each"
UNDIVIDED: Final = Template("each {hardware} holds the whole model")
NEAR_DIVISION: Final = Template("servers of {devices:n device} come within {more:%} of it")
EQUAL_DIVISION: Final = Template("servers of {devices:n device} do equally well")
DELAYED: Final = " with delayed batching"
GROWTH: Final = Template(
    "the capacity of {label} is {capacity} the highest rate[; up to 1.5x the load, {first} breaks first]"
)


OWNED_ELSEWHERE: Final = Template("{names:and} (owned, but not among the compared hardware)")
UNPRICED: Final = Template("{names} from the ranking by cost, without a known {price}{other}")
PRICES: Final[Mapping[str, str]] = {"rented": "rent", "bought": "purchase price", "both": "price"}
PAY_BOTH: Final = " (--pay both takes rent or purchase price)"
PRICED: Final = Template("{name} at {price}")
OTHER_SELLER: Final = Template("{names} with prices of another kind of seller (--seller)")
LATE: Final = Template("{names}, which miss the latency target with any number of devices (--details)")
LATE_ONE: Final = Template("{names}, which misses the latency target with any number of devices (--details)")
CHIPS: Final = Template("{count:n chip}")
OVER: Final = Template("{label} ({reason})[; {more:n other fleet} over a limit]")

NOTES: Final = (
    "devices: the fewest that meet the latency target at the highest rate, in whole nodes with --node; requests arrive "
    "at random (Poisson) and share one queue; ranges in brackets show the counts at both "
    "ends of the 80 % interval of predicted times; 80 % sure: devices that suffice with this probability",
    "a free device takes the waiting requests, up to one batch; with delayed batching it starts once the batch is full "
    "or the first request has waited for the delay limit",
    "power: all devices at the highest rate, idle ones included, at the boundary of the title; --max-power always "
    "counts hosts; kWh, cost and carbon also include cooling (PUE)",
    "cost: rent for a month of 730 hours, or the purchase price spread over the lifetime plus electricity and hosts; "
    "owned devices cost only electricity",
    "capacity: the highest rate that the fleet serves within the target, relative to the demanded rate; utilization: "
    "its inverse; time busy (--details): share of time with a batch running, however small the batch",
)

NEXT_LLM: Final = Template("llm {model} {hardware}")
NEXT_RATE: Final = Template("--batch 1 --rate {rate}/s")
NEXT_DEVICES: Final = Template("--devices {server_device_count}")
NEXT_EXPLAIN: Final = Template("explain {model} {hardware} {other}")
NEXT_EDP: Final = Template("edp {model} {hardware}")
NEXT_RUNTIME: Final = Template("--runtime {runtime}")
