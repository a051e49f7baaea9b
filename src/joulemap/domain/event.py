"""Events: what a class of hardware does, in the words of those who ask, counted from the actions of its ledger.

    count = max(sum of factor x action_count, sum of floor x action_count) / divisor

of each operator; a run's is the sum over its operators.
"""

from __future__ import annotations

from collections.abc import Iterable

from joulemap.domain.reference import ActionKey
from joulemap.system.record import frozen


@frozen(kw_only=True)
class EventTerm:
    """An action that an event is counted or paid by."""

    component: str
    action: str
    factor: float
    """What one of it adds to the count, before the divisor."""
    floor: float
    """What one of it adds to the least that the count is, before the divisor."""
    is_cost: bool
    """Whether its energy is the event's."""

    @property
    def key(self) -> ActionKey:
        """(component, action)."""
        return (self.component, self.action)


@frozen(kw_only=True)
class Event:
    """One kind of event on a class of hardware."""

    architecture: str
    component: str
    event: str
    per: str
    """What one is: `instruction`, `line`, `warp` …"""
    part_of: str
    """The event of the same component that it is a share of; empty for none."""
    meaning: str
    divisor: str
    """Quantity of the hardware that the sum is divided by, e.g. `coefficient.cache_line`; empty for none."""
    terms: tuple[EventTerm, ...]

    @property
    def is_priced(self) -> bool:
        """Whether it has an energy."""
        return any(term.is_cost for term in self.terms)

    @property
    def formula(self) -> str:
        """How its count follows from actions, with the divisor by its name."""
        text = _add((term.key, term.factor) for term in self.terms)
        floor = _add((term.key, term.floor) for term in self.terms)
        if floor:
            text = f"max({text}, {floor})"
        elif self.divisor and " " in text:
            text = f"({text})"
        return f"{text} / {self.divisor}" if self.divisor else text


def _add(terms: Iterable[tuple[ActionKey, float]]) -> str:
    """Return a sum of actions in words, without those of factor 0."""
    text = ""
    for key, factor in terms:
        if factor:
            sign = " - " if factor < 0 else " + " if text else ""
            times = "" if abs(factor) == 1.0 else f"{abs(factor):g} x "
            text += f"{sign}{times}{'.'.join(key)}"
    return text.strip()
