"""Words of the facts of fleets, for the core: caveats, and metrics in sentences."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template, Words

WORDS: Final = Words(
    caveats={
        "breaks": Template("up to 1.5x the load, {chips} first breaks the limit of {limits}"),
        "device_count": Template("the 80 % range of {chips} is {low} to {high} devices"),
        "device_price": Template("the price of {chips} counts devices {way} at {price}"),
    },
    nouns={"cost": "cost", "energy": "energy", "carbon": "CO2"},
)
