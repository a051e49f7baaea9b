"""References to hardware: parsing and formatting of the names that people and answers use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

import attrs

from joulemap.physics.record.target import DEFAULT_MODE
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

CHANNEL_BITS: Final = 64
"""Data width of one channel of DDR memory. Source: JEDEC JESD79-5 (DDR5: two subchannels of 32 bits)."""

FASTEST: Final = 14_400
"""Highest data rate of memory in MT/s. Source: JEDEC JESD209-6 (LPDDR6)."""

_CONFIGURATION: Final = r"((?:LP)?DDR[1-6]X?)-([1-9]\d{2,4})x([1-9]\d?)"

_CHANNELS: Final = r"(\d+)ch\b"
"""Pattern of the number of channels in the memory type of a chip, as in `DDR5-4800 8ch`."""


class MemoryConfiguration(NamedTuple):
    """Memory modules of a computer."""

    kind: str
    transfers_per_s: float
    width_bits: int

    @classmethod
    def read(cls, text: str) -> MemoryConfiguration:
        """Return the configuration that a text such as `DDR5-5600x2` states; UsageError for any other form."""
        match = re.fullmatch(_CONFIGURATION, text.strip(), re.IGNORECASE)
        if match is None or int(match[2]) > FASTEST:
            raise UsageError(
                f"memory {text}: expected kind, MT/s up to {FASTEST:,} and 64-bit channels, as DDR5-5600x2 or "
                "LPDDR5X-8000x2"
            )
        return cls(match[1].upper(), float(match[2]) * 1e6, CHANNEL_BITS * int(match[3]))

    @property
    def bytes_per_s(self) -> float:
        """Peak bandwidth."""
        return self.transfers_per_s * self.width_bits / 8.0

    def check_fit(self, chip: str, memory_type: str, bus_bits: float | None) -> None:
        """Raise UsageError if a chip has no DDR modules, or fewer memory channels than this configuration."""
        if not re.search(r"(?<!G)DDR", memory_type):
            raise UsageError(f"{chip} has {memory_type} instead of memory modules: leave out {self.kind}")
        channels = re.search(_CHANNELS, memory_type)
        width = bus_bits or (CHANNEL_BITS * int(channels[1]) if channels else None)
        if width is None or self.width_bits <= width:
            return
        rate, most = f"{self.transfers_per_s / 1e6:.0f}", int(width) // CHANNEL_BITS
        way_out = f"give its 64-bit channels, not its modules, as {self.kind}-{rate}x{most}"
        raise UsageError(
            f"{chip} has a memory bus of {width:g} bits, not of {self.width_bits}: "
            + (way_out if most else f"set its bandwidth, as {chip}[memory_bandwidth={width / 8e3 * float(rate):g}GB/s]")
        )


@frozen
class HardwareRef:
    """Reference to a chip: name, constants set in brackets, and power mode, as in `l4[tdp=60W;clock=1GHz]@900MHz`.

    `+ddr5-5600x2` sets the memory bandwidth from data rate and channels: `ryzen_9_7950x+ddr5-5600x2`.
    """

    id: str
    """Id, alias, class or path, as written."""
    settings: str = ""
    """Brackets with the constants that are set, as written, such as `[tdp=60W]`."""
    mode: str = ""
    """Power mode, as written; empty for the default mode."""
    memory: MemoryConfiguration | None = attrs.field(default=None, eq=False)
    """Memory modules that were stated in place of a memory bandwidth; None if none were stated."""

    @classmethod
    def read(cls, text: str) -> HardwareRef:
        """Parse a reference; the mode follows the first `@` that is not part of a printed name."""
        if " @" in text:  # Intel's printed names end in a clock
            from joulemap.domain.printed import drop_clock

            text = drop_clock(text)
        label, _, mode = text.partition("@")
        plain, bracket, settings = label.partition("[")
        if plain.endswith(" ") and "=" not in settings:  # a remark, as in `Navi 31 [Radeon RX 7900 XTX]`
            return cls(label, "", mode)
        chip, _, memory = plain.rpartition("+")
        if memory.lower().startswith(("ddr", "lpddr")):
            modules = MemoryConfiguration.read(memory)
            bandwidth = f"memory_bandwidth={modules.bytes_per_s / 1e9:.6g}GB/s"
            settings = f"{bandwidth};{settings}" if bracket else f"{bandwidth}]"
            return cls(chip, f"[{settings}", mode, modules)
        return cls(plain, bracket + settings, mode)

    @classmethod
    def at(cls, label: str, mode: str) -> HardwareRef:
        """Return the reference to a chip at a power mode. The default mode is left out, as in answers."""
        return cls(label, "", "" if mode == DEFAULT_MODE else mode)

    @property
    def label(self) -> str:
        """Chip with its `--set` constants, without its power mode."""
        return self.id + self.settings

    @property
    def changes(self) -> tuple[tuple[str, str], ...]:
        """Names and new values of the constants in brackets. Raises UsageError if a part is not NAME=VALUE."""
        if not self.settings:
            return ()
        parts = [part.partition("=") for part in self.settings.removeprefix("[").removesuffix("]").split(";")]
        if not self.settings.endswith("]") or not all(name.strip() and value.strip() for name, _, value in parts):
            raise UsageError(f"{self.label}: write NAME[CONSTANT=VALUE;…], as l4[tdp=60W;clock=1GHz]")
        return tuple((name.strip(), value.strip()) for name, _, value in parts)

    def __str__(self) -> str:
        """Return the reference as text, in the form that `read` parses."""
        return f"{self.label}@{self.mode}" if self.mode else self.label


def name_configured(hardware: str, mode: str) -> str:
    """Return the name of a chip at a power mode in answers."""
    return str(HardwareRef.at(hardware, mode))


def name_variant(hardware: str, changes: Iterable[tuple[str, str]]) -> str:
    """Return the id of a chip with changed numbers."""
    return f"{hardware}[{';'.join(f'{name}={value}' for name, value in changes)}]"
