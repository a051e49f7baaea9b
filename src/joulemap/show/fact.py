"""Facts as values of texts: `tell(TEXT, fact, facts)` is the text on one fact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from joulemap.ask.fact import AboutRuns, Change, Facts, Quantity, Turn
from joulemap.show.caveat import show_middle
from joulemap.show.present.template import Template
from joulemap.show.run_name import name_run

NO_FACTS: Final[Mapping[str, AboutRuns | None]] = {}


def read(fact: Any, facts: Facts) -> dict[str, Any]:
    """Return the values of a fact for a text: its fields, named runs, and shown quantities."""
    fields = {one.name: getattr(fact, one.name) for one in attrs.fields(type(fact)) if one.name != "runs"}
    fields |= fields.get("values", {})
    names = [name_run(facts.runs[one]) for one in fact.runs if one in facts.runs]
    of = [name_run(facts.runs[one]) for one in (fact.of if isinstance(fact, Turn) else ())]
    change = {}
    if isinstance(fact, Change) and fact.before.value:
        saving = 1.0 - fact.after.value / fact.before.value
        change = {"saving": saving if saving >= 0.0 else None, "more": -saving if saving < 0.0 else None}
    shown = {
        name: show_middle(one) if isinstance(one, Quantity) and one.unit != "1" else getattr(one, "value", one)
        for name, one in fields.items()
    }
    named = {"run": next(iter(names), ""), "rival": next(iter(names[1:]), ""), "of": next(iter(of), "")}
    return {**shown, **change, **named}


def tell(
    text: Template, fact: AboutRuns, facts: Facts, /, beside: Mapping[str, AboutRuns | None] = NO_FACTS, **more: Any
) -> str:
    """Return a text on one fact, with the values of `read` and `more` in its slots.

    A fact in `beside` has the slots that begin with its name and an underscore; they are empty if it is None.
    """
    values = {**read(fact, facts), **more}
    for name, one in beside.items():
        if one is None:
            values |= dict.fromkeys(slot for slot, _ in text.slots if slot.startswith(f"{name}_"))
        else:
            values |= {f"{name}_{key}": value for key, value in read(one, facts).items()}
    return text(**values)
