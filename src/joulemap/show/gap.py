"""Words on the gap between two configurations: energies as products of power and time, and times as work at a rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from joulemap.ask.fact import Term
from joulemap.show.present.category import name_category
from joulemap.show.present.cell import show_quantity
from joulemap.show.present.template import Template

TERMS: Final[Mapping[str, Template]] = {
    "static": Template(
        "per inference, {rival} draws {rival_price} of static power for {rival_count}, {own} {own_price} for "
        "{own_count}: {share:%} of the gap"
    ),
    "rate": Template(
        "{rival} attains {rival_price} on {rival_count:n inference} ({rival_amount}), {own} {own_price} on {own_count} "
        "({own_amount})"
    ),
}
"""Name of a term -> text."""
PART: Final = Template(
    "per inference, {what} takes {rival_amount} on {rival}, {own_amount} on {own}: {share:%} of the gap"
)
"""Text on a part that has no text in `TERMS`."""


def describe_gap(term: Term, own: str, rival: str) -> str:
    """Return the line on a term of the gap between a configuration and its rival, by their names."""
    shown = {
        f"{whose}_{name}": show_quantity(each.value, each.unit) if each.unit else round(each.value)
        for name, some in (("amount", term.amounts), ("count", term.counts), ("price", term.prices))
        for whose, each in zip(("own", "rival"), some, strict=True)
        if each is not None
    }
    text = TERMS.get(term.name, PART)
    return text(own=own, rival=rival, what=name_category(term.name), share=term.share, **shown)
