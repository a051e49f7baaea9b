"""Words for the hits of a prefix cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from joulemap.ask.fact import Quantity
from joulemap.present.template import Template
from joulemap.show.caveat import show_range

HITS: Final = Template(
    "[{name}: ]{hits:%} of prompt tokens come from the prefix cache[ ({below:%} from lower tiers)]; a request takes "
    "{energy}[, {uncached} without reuse]"
)


def describe_hits(values: Mapping[str, Quantity], name: str = "") -> Iterator[str]:
    """Yield a line on the prefix cache of a deployment with these values, unless it has none."""
    if "prefix_hits" not in values:
        return
    below, uncached = values.get("hits_below"), values.get("energy_without_reuse")
    yield HITS(
        name=name,
        hits=values["prefix_hits"].value,
        below=(below.value if below is not None else 0.0) or None,
        energy=show_range(values["energy_per_request"]),
        uncached=None if uncached is None else show_range(uncached),
    )
