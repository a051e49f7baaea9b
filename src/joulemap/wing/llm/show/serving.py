"""Words that answers on served language models share: titles, costs, options of next commands, prefix-cache hits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.ask import Quantity
from joulemap.domain import Table
from joulemap.domain.offer import describe_pay
from joulemap.generated.cost import AssumedNumber
from joulemap.show import Template, Text, Title, describe_use, show_range
from joulemap.wing.llm.serving.surface import count_accepted

if TYPE_CHECKING:
    from joulemap.wing.llm.setting import Serving

REUSED: Final = Template(
    "[, {prefix_hit:set %} of prompt tokens in the prefix cache][, {turns} turns of a conversation]"
    "[ with pauses of {pause_s:s}][, evicted prefixes in {tiers:and}]"
)
GUESSED: Final = Template("[, {speculate:n draft token} per step, acceptance {acceptance:set %}]")
SENT: Final = Template(
    ", experts on {expert_devices} devices, the busiest with {expert_load:plain} times the mean tokens"
    "[, {micro_batches} micro-batches]"
)
LATER: Final = Template("[, then {rates:and}], {gained:plain} output tokens per step")

MODEL: Final = "{model}[ (same sizes as {like})]"
LEFT_OUT: Final = Template("Left out: {reasons}")
COST_NOTE: Final = Template(
    "cost: {use}[, {idle}][; {counted}]; carbon includes cooling (PUE); `joulemap cost --show details` lists the other "
    "assumptions"
)
IDLE_HOURS: Final = "idle hours included"
LOAD_HOURS: Final = Template("{pay}, for the hours under load only (--site busy-hours adds idle hours)")

REUSE: Final = Template(
    "[--engine {engine}] [--cache {cache}] [--prefix-hit {hit}] [--turns {turns}] [--pause {pause}]"
)
SPECULATION: Final = Template("--speculate {speculate} --acceptance {rates} [--draft {draft}]")

HITS: Final = Template(
    "[{name}: ]{hits:%} of prompt tokens come from the prefix cache[ ({below:%} from lower tiers)]; a request takes "
    "{energy}[, {uncached} without reuse]"
)


def describe_served(serving: Serving) -> str:
    """Return a phrase for the speculation and the prefix reuse that a question states; empty without both."""
    turns = serving.turns if serving.turns > 1 else None
    reused = REUSED(serving, turns=turns, pause_s=serving.pause_s or None, tiers=serving.cache_tiers or None)
    parts = serving.micro_batches if serving.micro_batches > 1 else None
    sent = SENT(serving, micro_batches=parts) if serving.sends_tokens else ""
    return sent + GUESSED(serving) + describe_later(serving) + reused


def describe_later(serving: Serving) -> str:
    """Return a phrase for the acceptance rates of later draft tokens and the mean tokens per step; empty without
    speculation.
    """
    if serving.speculate is None or serving.acceptance is None:
        return ""
    gained = count_accepted(serving.speculate, serving.acceptance, serving.later_acceptance)
    return LATER(rates=[f"{100.0 * rate:.0f} %" for rate in serving.later_acceptance] or None, gained=gained)


def repeat_reuse(serving: Serving) -> list[str]:
    """Return the options for engine, cache, reuse of prefixes and speculation that differ from their defaults."""
    tiers = [word for tier in serving.cache_tiers for word in ("--cache-tier", tier)]
    given = {
        "hit": None if serving.prefix_hit is None else f"{serving.prefix_hit:g}",
        "turns": serving.turns if serving.turns > 1 else None,
        "pause": f"{serving.pause_s:g}s" if serving.pause_s else None,
        "rates": ",".join(f"{rate:g}" for rate in (serving.acceptance or 0.0, *serving.later_acceptance)),
    }
    guessed = [] if serving.speculate is None else SPECULATION.words(serving, **given)
    return [*REUSE.words(serving, **given), *tiers, *guessed]


def title_model(answer: Any, about: str | Title, form: str = "", **values: Any) -> Title:
    """Return a title that begins with the name of the model, and continues with `form`."""
    named = {"model": answer.alias or answer.model, "like": answer.model if answer.alias else ""}
    return Title(form=Template(MODEL + form), values={**named, **values}, about=about)


def describe_costs(assumptions: Table[AssumedNumber], pay: str, counted: str = "") -> str:
    """Return the note on the hours that are paid, on what cost and carbon include, and on the tokens `counted`."""
    if any(row.assumption == "utilization" and row.value == 1.0 for row in assumptions):
        return COST_NOTE(use=LOAD_HOURS(pay=describe_pay(pay)), idle=None, counted=counted)
    return COST_NOTE(use=describe_use(assumptions, pay), idle=IDLE_HOURS, counted=counted)


def tell_reasons(reasons: Sequence[str]) -> Sequence[Text]:
    """Return the line below a table on what it leaves out; none without a reason."""
    return (Text(LEFT_OUT(reasons="; ".join(reasons))),) if reasons else ()


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
