"""Hosts: hardware that is a host itself, and default computers for cards and sticks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

SLOT_HOSTS: Final[Mapping[str, str]] = {"PCIe": "xeon_8490h", "M.2": "raspberry_pi_5", "USB": "raspberry_pi_5"}
"""First word of `needs_host` -> default host; a card for a 16-lane slot sits in a server or PC."""

SOLE_SLOTS: Final = ("M.2", "USB")
"""Slots whose chip has a host for itself; PCIe cards share one, so only a part of it is counted."""


def suggest_host(needs_host: str) -> str:
    """Return the hardware id of a default host for a chip that needs, for example, a `PCIe slot`."""
    return next((host for slot, host in SLOT_HOSTS.items() if needs_host.startswith(slot)), SLOT_HOSTS["PCIe"])


def is_host(hardware: Hardware) -> bool:
    """Return True for a CPU, and for a chip or board outside data centres that needs no slot."""
    return not hardware.needs_host and (hardware.architecture == "cpu" or "datacenter" not in hardware.deployment)
