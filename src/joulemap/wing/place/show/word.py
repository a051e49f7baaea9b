"""Words of placements for the core: sentences of caveats, and names of metrics."""

from __future__ import annotations

from typing import Final

from joulemap.show import Template, Words

LACKING: Final = Template("{compiler} does not run {operators:list}")
"""Reason why a device cannot run the whole model."""

WORDS: Final = Words(
    caveats={
        "budget": Template("the power budget sets the rate of {chips}; placements at lower power were not searched"),
        "unexamined": Template("a {form} that was not examined could save at most {share:%} against {chips}"),
    },
    nouns={"throughput": "throughput"},
    better={"throughput": Template("has {ratio:x} {more} throughput[ than {rival}]")},
)
