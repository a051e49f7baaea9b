"""Words for the serving of a language model: phrases of titles, options of next commands, and prefix-cache hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from joulemap.ask.fact import Quantity
from joulemap.show.caveat import show_range
from joulemap.show.present.template import Template

if TYPE_CHECKING:
    from joulemap.wing.llm.setting import Serving

REUSED: Final = Template(
    "[, {prefix_hit:set %} of prompt tokens in the prefix cache][, {turns} turns of a conversation]"
    "[ with pauses of {pause_s:s}][, evicted prefixes in {tiers:and}]"
)
GUESSED: Final = Template("[, {speculate:n draft token} per step, acceptance {acceptance:set %}]")
LATER: Final = Template("[, then {rates:and}], {gained:plain} output tokens per step")

HITS: Final = Template(
    "[{name}: ]{hits:%} of prompt tokens come from the prefix cache[ ({below:%} from lower tiers)]; a request takes "
    "{energy}[, {uncached} without reuse]"
)


def describe_served(serving: Serving) -> str:
    """Return a phrase for the speculation and the prefix reuse that a question states; empty without both."""
    turns = serving.turns if serving.turns > 1 else None
    reused = REUSED(serving, turns=turns, pause_s=serving.pause_s or None, tiers=serving.cache_tiers or None)
    return GUESSED(serving) + describe_later(serving) + reused


def describe_later(serving: Serving) -> str:
    """Return a phrase for the acceptance rates of later draft tokens and the mean tokens per step; empty without
    speculation.
    """
    if serving.speculate is None or serving.acceptance is None:
        return ""
    from joulemap.wing.llm.serving.batch import accept

    gained = accept(serving.speculate, serving.acceptance, serving.later_acceptance)
    return LATER(rates=[f"{100.0 * rate:.0f} %" for rate in serving.later_acceptance] or None, gained=gained)


def repeat_reuse(serving: Serving) -> list[str]:
    """Return the options for engine, cache, reuse of prefixes and speculation that differ from their defaults."""
    words = ["--engine", serving.engine] if serving.engine else []
    words += ["--cache", serving.cache] if serving.cache else []
    words += [] if serving.prefix_hit is None else ["--prefix-hit", f"{serving.prefix_hit:g}"]
    words += ["--turns", str(serving.turns)] if serving.turns > 1 else []
    words += ["--pause", f"{serving.pause_s:g}s"] if serving.pause_s else []
    for tier in serving.cache_tiers:
        words += ["--cache-tier", tier]
    if serving.speculate is not None and serving.acceptance is not None:
        rates = ",".join(f"{rate:g}" for rate in (serving.acceptance, *serving.later_acceptance))
        words += ["--speculate", str(serving.speculate), "--acceptance", rates]
        words += ["--draft", serving.draft] if serving.draft else []
    return words


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
