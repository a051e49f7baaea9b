"""Words of designs of chips for the core: sentences of caveats, and names of metrics."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template, Words

WORDS: Final = Words(
    caveats={
        "oversize": Template(
            "{count:n design} of the front beyond the reticle limit of one die, {limit_mm2:plain} mm2: "
            "up to {most_mm2:plain} mm2"
        ),
        "beyond": Template(
            "beyond existing hardware: {name} {value} ({end} of any [{class} ]chip in the catalogue: {most}, {chip})"
        ),
        "missed_target": Template("no value gives {objective} {target} exactly; the nearest is {value}"),
    },
)
