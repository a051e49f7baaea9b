"""Convert units: the scale of each unit in data files, and SI formatting for display."""

from __future__ import annotations

import math
from typing import Final

SI_SCALE: Final[dict[str, tuple[float, str]]] = {
    "1": (1.0, "1"),
    "year": (1.0, "year"),
    "nm": (1.0, "nm"),
    "mm": (1.0, "mm"),
    "bit": (1.0, "bit"),
    "cycle": (1.0, "cycle"),
    "s": (1.0, "s"),
    "us": (1e-6, "s"),
    "B": (1.0, "B"),
    "KiB": (1024.0, "B"),
    "MiB": (1024.0**2, "B"),
    "GiB": (1024.0**3, "B"),
    "GB": (1e9, "B"),
    "GB/s": (1e9, "B/s"),
    "TB/s": (1e12, "B/s"),
    "GT/s": (1e9, "T/s"),
    "MT/s": (1e6, "T/s"),
    "MB": (1e6, "B"),
    "kB": (1e3, "B"),
    "TiB": (1024.0**4, "B"),
    "TB": (1e12, "B"),
    "MB/s": (1e6, "B/s"),
    "GiB/s": (1024.0**3, "B/s"),
    "B/s": (1.0, "B/s"),
    "Hz": (1.0, "Hz"),
    "T/s": (1.0, "T/s"),
    "ops/s": (1.0, "ops/s"),
    "ns": (1e-9, "s"),
    "ms": (1e-3, "s"),
    "kHz": (1e3, "Hz"),
    "MHz": (1e6, "Hz"),
    "GHz": (1e9, "Hz"),
    "GFLOPS": (1e9, "ops/s"),
    "TFLOPS": (1e12, "ops/s"),
    "TOPS": (1e12, "ops/s"),
    "W": (1.0, "W"),
    "mW": (1e-3, "W"),
    "J": (1.0, "J"),
    "pJ": (1e-12, "J"),
    "USD": (1.0, "USD"),
    "USD/h": (1.0, "USD/h"),
    "J/B": (1.0, "J/B"),
    "pJ/B": (1e-12, "J/B"),
}
"""Unit in a data file -> (factor, SI unit); nanometres, which name a process node, are not converted."""

FJ_PER_J: Final = 10**15
FS_PER_S: Final = 10**15

PREFIXES: Final = dict(
    zip(range(-18, 21, 3), ("a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"), strict=True)
)
"""Power of ten -> displayed prefix."""


def format_si(value: float, unit: str, digits: int = 3) -> str:
    """Format a value with an SI prefix and `digits` significant digits, e.g. `12.3 mJ`."""
    if not math.isfinite(value):
        text = str(value).replace("nan", "NaN")
    else:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e") if value else ("0", "0")
        power = int(exponent) // 3 * 3
        number = f"{float(mantissa) * 10 ** (int(exponent) - power):.{digits}g}"
        prefix = PREFIXES.get(power)
        if prefix is not None:
            return f"{number} {prefix}{unit}" if unit else f"{number}{prefix}"
        text = f"{number}e{power}"
    return f"{text} {unit}" if unit else text
