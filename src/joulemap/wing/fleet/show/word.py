"""Words of fleets: reasons of refusals, and for the core caveats and metrics in sentences."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template, Words

ALONE: Final = Template("one request alone takes {slowest:s}, more than the {target:s} target")
TRIED: Final = Template("p99 exceeds the {target:s} target with every number of devices tried")
SLOW: Final = Template("p99 TTFT is {first_token_s:s}[ and p99 TPOT {between_s:s}] even at almost no load")
POWER_OVER: Final = Template(
    "power of {value:W}[ ({host_power_w:W} of it for hosts)] is {excess} the limit of {limit:W}"
)
COST_OVER: Final = Template("cost of {value:USD} per month is {excess} the limit of {limit:USD}")
NO_PRICE: Final = "price is not known"
SHARE_OVER: Final = Template("{share:%} over")
TIMES_OVER: Final = Template("{ratio:x}")

WORDS: Final = Words(
    caveats={
        "breaks": Template("up to 1.5x the load, {chips} first breaks the limit of {limits}"),
        "device_count": Template("the 80 % range of {chips} is {low} to {high} devices"),
        "device_price": Template("the price of {chips} counts devices {way} at {price}"),
    },
    nouns={"cost": "cost", "energy": "energy", "carbon": "CO2"},
)
