"""Events of an architecture class under their common names, counted from ledger actions.

    count = max(sum of factor x action_count, sum of floor x action_count) / divisor

The formula holds per operator; the count of a run is the sum over its operators.
"""

from __future__ import annotations

from collections.abc import Iterable

from joulemap.physics.record.reference import ActionKey
from joulemap.system.record import frozen


@frozen(kw_only=True)
class EventTerm:
    """Action that contributes to the count or the energy of an event."""

    component: str
    action: str
    factor: float
    """Contribution of one action to the count, before the divisor."""
    floor: float
    """Contribution of one action to the lower bound of the count, before the divisor."""
    is_cost: bool
    """True if the action's energy belongs to the event."""

    @property
    def key(self) -> ActionKey:
        """Ledger key: (component, action)."""
        return (self.component, self.action)


@frozen(kw_only=True)
class Event:
    """One kind of event on an architecture class."""

    architecture: str
    component: str
    event: str
    per: str
    """Unit of the count: `instruction`, `line`, `warp` …"""
    part_of: str
    """Larger event of the same component that this event is part of; empty if there is none."""
    meaning: str
    divisor: str
    """Hardware quantity that divides the sum, e.g. `coefficient.cache_line`; empty if there is none."""
    terms: tuple[EventTerm, ...]

    @property
    def is_priced(self) -> bool:
        """True if the event has an energy."""
        return any(term.is_cost for term in self.terms)

    @property
    def formula(self) -> str:
        """Formula of a count in terms of actions, with the name of its divisor."""
        text = _add((term.key, term.factor) for term in self.terms)
        floor = _add((term.key, term.floor) for term in self.terms)
        if floor:
            text = f"max({text}, {floor})"
        elif self.divisor and " " in text:
            text = f"({text})"
        return f"{text} / {self.divisor}" if self.divisor else text


def _add(terms: Iterable[tuple[ActionKey, float]]) -> str:
    """Format a weighted sum of actions, omitting terms with factor 0."""
    text = ""
    for key, factor in terms:
        if factor:
            sign = " - " if factor < 0 else " + " if text else ""
            times = "" if abs(factor) == 1.0 else f"{abs(factor):g} x "
            text += f"{sign}{times}{'.'.join(key)}"
    return text.strip()
