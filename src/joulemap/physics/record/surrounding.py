"""Surroundings of a board at the boundary `system`: host, chassis and power supply.

    wall power = growth x power of the board + host power / boards of the host

Growth and host power are powers at the wall plug. The ledger has three lines for them: the host, counted in seconds;
the loss of the power supply; and everything else that grows with the board (fans, regulators, switches). The last two
are counted in joules of the board.

Source: wall powers of servers and boards, `catalog/data/system/form.csv`.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.physics.record.quantity import Quantity, least_sure
from joulemap.physics.record.reference import (
    CHASSIS_ACTION,
    FJ_PER_J,
    HOST,
    HOST_ACTION,
    SUPPLY_ACTION,
    EnergyAction,
)
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

BOARD_COUNT: Final = "system_board_count"
"""Name of a coefficient of chips at the boundary `system`: number of boards that share one host."""

GROWTH_HALF_WIDTH: Final = "system_growth_half_width"
"""Name of a coefficient of chips at the boundary `system`: half-width of ln(`Surrounding.growth`)."""

HOST_HALF_WIDTH: Final = "system_host_half_width"
"""Name of a coefficient of chips at the boundary `system`: half-width of the logarithm of the host's power."""

KEPT: Final = (BOARD_COUNT, GROWTH_HALF_WIDTH, HOST_HALF_WIDTH)
"""Coefficients that the surroundings add to a chip."""


def _at_least(least: float) -> Any:
    def check(_instance: object, attribute: attrs.Attribute[Any], quantity: Quantity) -> None:
        if quantity.value < least:
            raise ValueError(f"{attribute.name} is {quantity.value:g}, expected at least {least:g}")

    return check


@frozen(kw_only=True)
class Surrounding:
    """Host, chassis and power supply of one kind of computer, described by powers at the wall plug."""

    name: str
    label: str
    """Name in answers, with its article, such as `a server`."""
    board_count: Quantity = attrs.field(validator=_at_least(1.0))
    """Boards that share the host."""
    growth: Quantity = attrs.field(validator=_at_least(1.0))
    """Watts at the wall plug per watt of the boards, without the host."""
    host_power: Quantity = attrs.field(validator=_at_least(0.0))
    """Power of the host at the wall plug, shared by all boards and independent of their power."""
    supply_loss: Quantity = attrs.field(validator=_at_least(0.0))
    """Loss of the power supply as a share of the power at the wall plug."""
    growth_half_width: Quantity = attrs.field(validator=_at_least(0.0))
    """Half-width of the 80 % interval of the logarithm of the growth."""
    host_half_width: Quantity = attrs.field(validator=_at_least(0.0))
    """Half-width of the 80 % interval of the logarithm of the host's power."""

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if the growth is too small to contain the loss of the power supply."""
        if self.growth.value * (1.0 - self.supply_loss.value) < 1.0:
            raise ValueError(
                f"{self.name}: a growth of {self.growth.value:g} is less than a supply loss of "
                f"{self.supply_loss.value:g} alone"
            )

    @property
    def digest(self) -> str:
        """Digest of all numbers of the surroundings."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    @property
    def host_w(self) -> float:
        """Power of the host at the wall plug in watts, divided by the boards that share it."""
        return self.host_power.value / self.board_count.value

    def idle_w(self, static_w: float) -> float:
        """Return the power at the wall plug in watts of a board that draws `static_w`, with its part of the host."""
        return self.growth.value * static_w + self.host_w

    def list_actions(self) -> tuple[EnergyAction, ...]:
        """Return the rows that these surroundings add to a reference table; rows with an energy of 0 are omitted."""
        count, growth, loss = self.board_count, self.growth, self.supply_loss
        share = (
            self.label if count.value == 1.0 else f"1/{count.value:g} of {self.host_power.value:g} W of {self.label}"
        )
        supply = growth.value * loss.value
        rows = (
            self._price(
                HOST_ACTION,
                self.host_w,
                least_sure("derived", self.host_power.basis, count.basis),
                f"{share}, at the wall: {self.host_power.source}",
                category=HOST,
                common_category="static",
                part="static",
                per="s",
                count_formula="seconds of the run",
            ),
            self._price(
                CHASSIS_ACTION,
                growth.value - supply - 1.0,
                least_sure("derived", growth.basis, loss.basis),
                f"{growth.value:g} J at the wall per joule of the board, less the supply's loss: {growth.source}",
                category="chassis",
                common_category="board",
                part="control",
                per="J",
                count_formula="energy of the board",
            ),
            self._price(
                SUPPLY_ACTION,
                supply,
                least_sure("derived", growth.basis, loss.basis),
                f"{loss.value:g} of the power at the wall: {loss.source}",
                category="psu",
                common_category="board",
                part="control",
                per="J",
                count_formula="energy of the board",
            ),
        )
        return tuple(row for row in rows if row.energy_per_action_fj > 0.0)

    def list_coefficients(self) -> Mapping[str, Quantity]:
        """Return the coefficients (`KEPT`) that these surroundings add to a chip."""
        return dict(zip(KEPT, (self.board_count, self.growth_half_width, self.host_half_width), strict=True))

    def _price(self, key: tuple[str, str], joules: float, basis: str, source: str, **fields: Any) -> EnergyAction:
        """Return the row of an action with an energy in joules. Its range follows from the half-width of growth or host
        power.
        """
        width = self.host_half_width if key == HOST_ACTION else self.growth_half_width
        wide = math.exp(width.value)
        return EnergyAction(
            component=key[0],
            action=key[1],
            energy_per_action_fj=max(joules, 0.0) * FJ_PER_J,
            low_fj=max(joules, 0.0) * FJ_PER_J / wide,
            high_fj=max(joules, 0.0) * FJ_PER_J * wide,
            basis=basis,
            source=source,
            **fields,
        )
