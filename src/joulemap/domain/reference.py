"""The energy reference table: what each action of a hardware costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from joulemap.domain.quantity import BASES, Quantity

PARTS: Final = ("compute", "memory", "control", "static")
"""The four parts that every ledger line belongs to."""

COMMON_CATEGORIES: Final = (
    "compute",
    "register",
    "unit_memory",
    "chip_memory",
    "interconnect",
    "off_chip_memory",
    "control",
    "static",
)
"""One taxonomy over all architectures: memory that belongs to one unit, that all units share, and that is off chip."""

ActionKey = tuple[str, str]
"""(component, action): the same key on two architectures means the same physical act."""

STATIC_ACTION: Final[ActionKey] = ("chip", "static_power")
"""Leakage is an action: counted in seconds, priced in watts."""


@attrs.frozen(kw_only=True)
class EnergyAction:
    """One row of the energy reference table of one hardware."""

    category: str
    """The architecture's own grouping, e.g. `register_file`."""
    common_category: str = attrs.field(validator=attrs.validators.in_(COMMON_CATEGORIES))
    component: str
    action: str
    part: str = attrs.field(validator=attrs.validators.in_(PARTS))
    per: str
    """What one count is: `MAC`, `B`, `instruction`, `s` …"""
    energy_per_action_fj: float = attrs.field(validator=attrs.validators.ge(0.0))
    """At this hardware's process node, femtojoules."""
    low_fj: float | None = None
    """Lower end of the plausible range; None where none is known."""
    high_fj: float | None = None
    basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    source: str
    count_formula: str
    """How the count follows from the operator, in the words of the source."""

    @property
    def key(self) -> ActionKey:
        """(component, action)."""
        return (self.component, self.action)


@attrs.frozen
class EnergyReference:
    """The energy reference table of one hardware, in a fixed order."""

    actions: tuple[EnergyAction, ...]
    _position: Mapping[ActionKey, int] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        position: dict[ActionKey, int] = {}
        for index, action in enumerate(self.actions):
            if action.key in position:
                raise ValueError(f"the action {'.'.join(action.key)} stands twice in the reference table")
            position[action.key] = index
        object.__setattr__(self, "_position", position)

    def __len__(self) -> int:
        return len(self.actions)

    def __iter__(self) -> Iterator[EnergyAction]:
        return iter(self.actions)

    def __contains__(self, key: object) -> bool:
        return key in self._position

    def with_static(self, power: Quantity) -> EnergyReference:
        """Return the same table with another price for a second of leakage."""
        return EnergyReference(
            tuple(
                attrs.evolve(action, energy_per_action_fj=power.value * 1e15, basis=power.basis, source=power.source)
                if action.key == STATIC_ACTION
                else action
                for action in self.actions
            )
        )

    def with_factors(self, factors: Mapping[ActionKey, float], source: str) -> EnergyReference:
        """Return the same table with the energies of some actions multiplied, measured by `source`.

        Raises ValueError for an action that has no price.
        """
        for key in factors:
            if key not in self:
                raise ValueError(f"energy_scales: no such action {'.'.join(key)}")
        return EnergyReference(
            tuple(
                attrs.evolve(
                    action,
                    energy_per_action_fj=action.energy_per_action_fj * factors[action.key],
                    low_fj=None,
                    high_fj=None,
                    basis="measured",
                    source=f"{source}; x {factors[action.key]:.5g}: {action.source}",
                )
                if action.key in factors
                else action
                for action in self.actions
            )
        )

    def position(self, key: ActionKey) -> int | None:
        """Return the row of `key`, or None if the action has no price."""
        return self._position.get(key)
