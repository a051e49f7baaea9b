"""Hosts: hardware that is a host itself, and default computers for cards and sticks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

SLOT_HOSTS: Final[Mapping[str, str]] = {
    "PCIe": "xeon_8490h",
    "M.2": "raspberry_pi_5",
    "USB": "raspberry_pi_5",
    "CSI": "raspberry_pi_5",
    "module": "rk3588_cpu",
    "SoC": "rk3588_cpu",
}
"""First word of `Hardware.needs_host` -> default host. A card for a 16-lane slot is in a server or PC."""

SOLE_SLOTS: Final = ("M.2", "USB", "CSI")
"""Slots whose chip has a host for itself. Several PCIe cards share one host, so each counts only a part of it."""


SLOT_LINKS: Final[Mapping[str, str]] = {"PCIe": "pcie", "M.2": "pcie", "USB": "usb", "CSI": "csi"}
"""Word of `Hardware.needs_host` -> kind of link that the slot has."""

WHOLES: Final = ("module", "SoC")
"""First words of `Hardware.needs_host` for a part of a module or SoC. The id of the rest may follow, as `SoC
rk3588_cpu`.
"""


def is_part(needs_host: str) -> bool:
    """Return True if the hardware is a part of a module or SoC. Such a part has no separate price and cannot run
    alone.
    """
    return needs_host.startswith(WHOLES)


def name_whole(needs_host: str) -> str:
    """Return what the hardware is a part of, `module` or `SoC`; empty if it is no part."""
    return needs_host.partition(" ")[0] if is_part(needs_host) else ""


def name_rest(needs_host: str) -> str:
    """Return the id of the rest of the module or SoC that the hardware is a part of; empty where none is named."""
    return needs_host.partition(" ")[2] if is_part(needs_host) else ""


def suggest_host(needs_host: str) -> str:
    """Return the id of a default host for a chip that needs, for example, a `PCIe slot`.

    The host of a part is the rest of its module or SoC, or of a similar SoC if the catalogue lacks its own.
    """
    slots = (host for slot, host in SLOT_HOSTS.items() if needs_host.startswith(slot))
    return name_rest(needs_host) or next(slots, SLOT_HOSTS["PCIe"])


def find_own_host(needs_host: str) -> str:
    """Return the id of the default host that the hardware shares with no other; empty without one."""
    return suggest_host(needs_host) if needs_host.startswith((*WHOLES, *SOLE_SLOTS)) else ""


def fits_ports(needs_host: str, ports: Collection[str]) -> bool:
    """Return True if a host with these kinds of ports has a slot that the hardware needs."""
    needed = {link for slot, link in SLOT_LINKS.items() if slot in needs_host}
    return is_part(needs_host) or not needed or not needed.isdisjoint(ports)


HOST_COLUMNS: Final[Mapping[str, Callable[[str], bool | str]]] = {
    "is_part": is_part,
    "whole": name_rest,
    "own_host": find_own_host,
}
"""Column of a hardware version -> its value for `Hardware.needs_host`; queries read these and never that text."""


def is_host(hardware: Hardware) -> bool:
    """Return True if the hardware needs no separate host: a CPU, or a chip outside data centres that needs no slot.

    A part of a module counts too, because the price of its module includes a host.
    """
    needs_slot = hardware.needs_host and not is_part(hardware.needs_host)
    return not needs_slot and (hardware.architecture == "cpu" or "datacenter" not in hardware.deployment)
