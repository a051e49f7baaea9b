"""Words of training for the core: sentences of caveats, and names of metrics."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template, Words

WORDS: Final = Words(
    caveats={
        "lower_bound": Template("the time of {chips} is a lower bound: kernels that convert operands are not counted"),
        "too_large": Template("batch {batch:#} does not fit in the memory of {chips}[ (it fits with {fits_with})]"),
    },
    nouns={"training_speed": "speed", "energy_per_sample": "energy per sample"},
    better={
        "training_speed": Template("trains {ratio:x} {faster}[ than {rival}]"),
        "energy_per_sample": Template("uses {ratio:x} {less} energy per sample[ than {rival}]"),
    },
)
