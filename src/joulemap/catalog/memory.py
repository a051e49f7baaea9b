"""Memory that the operating system leaves to models, on chips that use the memory of their machine.

    usable = smaller of (memory - reserve of the system) and (share that the system lends its GPU x memory)

Cards and other devices with a memory of their own have no operating system in it, so all of it is usable.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from joulemap.catalog.digest import DATA
from joulemap.domain.architecture import CLASSES
from joulemap.domain.host import is_part
from joulemap.physics.record.quantity import Quantity
from joulemap.system.errors import CatalogueError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

PATH: Final = DATA / "system" / "memory.csv"

RESERVE: Final = "reserve"
SHARE: Final = "gpu_share"

OWN_MEMORY: Final = ("GDDR", "HBM")
"""Prefixes of memory types that only cards and modules with a memory of their own have."""

NO_SYSTEM: Final = ("SRAM", "flash", "FPGA board", "in the package", "on the module", "of the card", "of the host")
"""Phrases in memory types of devices in whose memory no operating system runs, or whose host is not known."""

DESIGNS: Final = tuple(one.name for one in CLASSES if one.is_design)
"""Classes whose chips are designs, described without a host and its system."""

BOARD_CLASSES: Final = tuple(one.name for one in CLASSES if one.is_embedded)
"""Classes whose chips are on development boards, never in PCs."""

APPLE: Final = "Apple"
JETSON: Final = "jetson"


@frozen(kw_only=True)
class MemoryLimit:
    """Numbers of one operating system, for memories up to a capacity."""

    up_to_bytes: float
    """Largest memory for which the number holds; infinite for the last one."""
    number: Quantity
    setting: str = ""
    """Setting of the system that lends the GPU more, with fields for the memory; empty without one."""


@cache
def load_limits() -> Mapping[tuple[str, str], tuple[MemoryLimit, ...]]:
    """Return (system, quantity) -> its numbers by size of memory; CatalogueError for an invalid table."""
    limits: dict[tuple[str, str], list[MemoryLimit]] = {}
    try:
        with PATH.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                number = Quantity(value=float(row["value"]), unit=row["unit"], basis=row["basis"], source=row["source"])
                most = float(row["up_to_bytes"] or "inf")
                one = MemoryLimit(up_to_bytes=most, number=number, setting=row["setting"])
                limits.setdefault((row["system"], row["quantity"]), []).append(one)
    except (KeyError, TypeError, ValueError) as error:
        raise CatalogueError(f"system/{PATH.name}: {error}") from error
    return {key: tuple(sorted(some, key=lambda one: one.up_to_bytes)) for key, some in limits.items()}


def find_system(hardware: Hardware) -> str:
    """Return the kind of operating system in a chip's memory, as in `memory.csv`; empty for a memory of its own."""
    kind, own_slot = hardware.memory_type, bool(hardware.needs_host) and not is_part(hardware.needs_host)
    if own_slot or hardware.architecture in DESIGNS or kind.startswith((*OWN_MEMORY, "none")):
        return ""
    if any(phrase in kind for phrase in NO_SYSTEM):
        return ""
    if hardware.vendor == APPLE:
        return "macos"
    if _describe_id(hardware).startswith(JETSON):
        return JETSON
    if "datacenter" in hardware.deployment:
        return "server"
    is_board = "embedded" in hardware.deployment or hardware.architecture in BOARD_CLASSES
    return "board" if is_board else "pc"


def find_reserve(hardware: Hardware, capacity_bytes: float | None = None) -> Quantity | None:
    """Return the memory that the system and its desktop keep of `capacity_bytes`, by default of the chip's memory.

    None for a memory of its own.
    """
    limit = _find(hardware, capacity_bytes, RESERVE)
    return None if limit is None else limit.number


def find_share(hardware: Hardware, capacity_bytes: float | None = None) -> Quantity | None:
    """Return the share of the memory that the system lends its GPU; None for other chips, or without a limit."""
    limit = _find_share(hardware, capacity_bytes)
    return None if limit is None else limit.number


def find_usable(hardware: Hardware, capacity_bytes: float | None = None, *, is_set: bool = False) -> float:
    """Return the bytes that the system leaves to models on a chip, of `capacity_bytes` or of the chip's memory.

    With `is_set`, the setting of `describe_setting` lends the GPU all that the system does not keep.
    """
    capacity = hardware.memory_capacity.value if capacity_bytes is None else capacity_bytes
    reserve, share = find_reserve(hardware, capacity), _find_share(hardware, capacity)
    kept = capacity - reserve.value if reserve is not None else capacity
    is_free = share is None or (is_set and bool(share.setting))
    return max(0.0, kept if is_free or share is None else min(kept, capacity * share.number.value))


def describe_setting(hardware: Hardware) -> str:
    """Return the setting of the system that lends a GPU all memory that the system does not keep; empty without one."""
    share, usable = _find_share(hardware, None), find_usable(hardware, is_set=True)
    percent = usable / hardware.memory_capacity.value * 100.0
    return "" if share is None else share.setting.format(mib=usable / 2**20, pages=usable / 4096.0, percent=percent)


def _find_share(hardware: Hardware, capacity_bytes: float | None) -> MemoryLimit | None:
    if hardware.architecture != "gpu":
        return None
    return _find(hardware, capacity_bytes, f"{SHARE}.{hardware.vendor}", SHARE)


def _describe_id(hardware: Hardware) -> str:
    """Return the id of a chip's description, without the changed constants of a variant."""
    return hardware.id.partition("[")[0]


def _find(hardware: Hardware, capacity_bytes: float | None, *quantities: str) -> MemoryLimit | None:
    """Return the first limit that the chip's own rows or its system's state for a capacity; None if neither does."""
    system = find_system(hardware)
    capacity = hardware.memory_capacity.value if capacity_bytes is None else capacity_bytes
    for key in ((name, one) for name in (_describe_id(hardware), system) if system for one in quantities):
        for limit in load_limits().get(key, ()):
            if capacity <= limit.up_to_bytes:
                return limit
    return None
