"""Hosts: which hardware is one itself, and the computers that cards and sticks sit in where nobody names one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

SLOT_HOSTS: Final[Mapping[str, str]] = {"PCIe": "xeon_8490h", "M.2": "raspberry_pi_5", "USB": "raspberry_pi_5"}
"""First word of what a chip needs -> a computer that has it: a card for a slot of 16 lanes sits in a server or PC."""

SOLE_SLOTS: Final = ("M.2", "USB")
"""Slots of chips that have a host by themselves; PCIe cards share one with others, so a share of it is counted."""


def suggest_host(needs_host: str) -> str:
    """Return the hardware id of a computer for a chip that needs, say, a `PCIe slot`."""
    return next((host for slot, host in SLOT_HOSTS.items() if needs_host.startswith(slot)), SLOT_HOSTS["PCIe"])


def is_host(hardware: Hardware) -> bool:
    """Return True for a CPU, and for a chip or board outside data centres that needs no slot."""
    return not hardware.needs_host and (hardware.architecture == "cpu" or "datacenter" not in hardware.deployment)
