"""One value as text: for people with SI prefixes, for programs untouched."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.name import PROJECTED
from joulemap.domain.table import Column
from joulemap.system.units import format_si

PROJECTION_NOTE: Final = f"{PROJECTED} can be neither bought nor rented: `joulemap hardware show ID` says why"

_SUFFIXES: Final = ("_bytes_per_s", "_per_s", "_bytes", "_fraction", "_ratio", "_count", "_js", "_fj", "_j", "_s", "_w")
_SI_UNITS: Final = {"J", "s", "W", "B", "J/B", "Js", "1/s", "B/s", "Hz", "ops/s", "ops/J", "fJ", "g"}
_PLAIN_UNITS: Final = {"USD", "USD/h", "kWh"}
_AMOUNTS: Final = {"s", "J", "B"}


MOST_TEXTS: Final = 50_000
"""Values of a column whose texts are remembered."""

REPEATED: Final = ("VARCHAR", "DECIMAL", "ENUM", "DATE", "TIME", "DOUBLE", "FLOAT", "BOOLEAN", "UUID")
"""How the types begin of columns whose texts are remembered, and of those whose values count."""

COUNTED: Final = "INT"
"""What stands in the type of every whole number."""


def write_cells(
    columns: Sequence[Column], batch: Sequence[tuple[Any, ...]], texts: Sequence[Texts]
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row of a batch as texts, those of each column made by its own."""
    made = [
        map(text.__getitem__ if _repeats(column.type) else text.make, values)
        for column, text, values in zip(columns, texts, zip(*batch, strict=True), strict=True)
    ]
    return zip(*made, strict=True)


def _repeats(kind: str) -> bool:
    """Return whether the values of a type are alike where they are equal, and not lists or mappings."""
    return not kind.endswith("]") and (kind.startswith(REPEATED) or kind.endswith((COUNTED, "INTEGER")))


class Texts(dict[Any, str]):
    """Value -> its text, made where it is not remembered: columns repeat themselves.

    Zeros are made each time, for they are equal whatever their sign is.
    """

    def __init__(self, make: Callable[[Any], str]) -> None:
        self.make = make

    def __missing__(self, value: Any) -> str:
        text = self.make(value)
        if value and value == value:
            if len(self) >= MOST_TEXTS:
                self.clear()
            self[value] = text
        return text


def heading(column: Column) -> str:
    """Return a column's heading for people: its name without the unit, which stands beside each value.

    A column of a typed statement has no meaning of its own and keeps its name.
    """
    name = column.name
    if not column.meaning:
        return name
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix) and not name.endswith(f"_per{suffix}"):
            name = name.removesuffix(suffix)
            name += " share" if suffix == "_fraction" and not name.endswith("share") else ""
            name += " ratio" if suffix == "_ratio" else ""
            break
    return name.replace("_", " ").strip()


def show_in(column: Column, value: Any) -> str:
    """Return a column's value for people; in a column of a typed statement, as it is."""
    if column.meaning or value is None:
        return show(value, column.name, column.unit)
    if isinstance(value, float | Decimal):
        return f"{float(value):.6g}"
    if isinstance(value, list | tuple | dict):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(plain(value)) if isinstance(value, bytes) else str(value)


def show(value: Any, name: str, unit: str = "") -> str:
    """Return a value for people."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    if isinstance(value, int | float | Decimal):
        return _show_number(value, name, unit)
    return str(value)


def _show_number(value: int | float | Decimal, name: str, unit: str) -> str:
    if name.startswith("probability") or name.endswith("_probability"):
        return show_chance(float(value))
    if name.endswith("_fraction"):
        return _show_fraction(float(value))
    if name.endswith("_ratio") or name == "ratio":
        return f"{float(value):.3g}x"
    if name.endswith("_fj"):
        return f"{int(value):,} fJ"
    if unit in _SI_UNITS:
        return show_quantity(float(value), unit)
    if unit in _PLAIN_UNITS:
        return _show_plain_unit(float(value), unit)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 10_000 and number.is_integer() else f"{number:.4g}"


def _show_fraction(value: float) -> str:
    """Return a fraction in percent to one decimal: `100 %` of a whole, `over 99.9 %` of what only rounds to it."""
    percent = round(value * 100.0, 1) + 0.0
    if percent == 100.0:
        return "100 %" if value >= WHOLE else "over 99.9 %"
    return f"{percent:.1f} %"


WHOLE: Final = 1.0 - 1e-9
"""Fraction from which on it is a whole: sums of floating-point parts may miss 1 by less."""

WHOLE_USD: Final = 100.0
"""Amount from which on money is shown without cents."""

LEAST_CENTS_USD: Final = 0.1
"""Amount from which on money is shown in cents; less has three significant digits."""


def _show_plain_unit(value: float, unit: str) -> str:
    """Return a number of a unit that takes no SI prefix: money with its cents."""
    if unit == "USD" and LEAST_CENTS_USD <= abs(value) < WHOLE_USD:
        return f"{value:.2f} {unit}"
    return f"{show_plain(value, 4 if unit == 'USD/h' else 3)} {unit}"


def show_amount(count: float, per: str) -> str:
    """Return how often an action happens; of one that is counted in seconds, joules or bytes, that amount."""
    return show_quantity(count, per if per in _AMOUNTS else "")


def show_price(energy_j: float | None, per: str) -> str:
    """Return the energy of one action: a power, a share or an energy per byte where it is counted in such a unit."""
    if per == "J":
        return show_share(energy_j)
    return show_quantity(energy_j, {"s": "W", "B": "J/B"}.get(per, "J"))


def show_within(value: float | None, unit: str, half_width: float | None) -> str:
    """Return a number to the digits that the half-width of its logarithm leaves; to three where none is known."""
    if value is None or not value or not half_width or unit in _PLAIN_UNITS:
        return show_quantity(value, unit)
    digits = min(3, max(0, math.ceil(-math.log10(half_width))) + 1)
    return show_quantity(float(f"{value:.{max(digits, 2) - 1}e}"), unit)


DASH: Final = "\N{EN DASH}"
"""Between the ends of a range."""


def show_span(*ends: str) -> str:
    """Return a range of two shown values: the unit once where both have it, one value where they agree."""
    if len(set(ends)) < 2:
        return "".join(ends[:1])
    first, last = ends[0], ends[-1]
    is_alike = first.partition(" ")[2] == last.partition(" ")[2]
    return f"{first.partition(' ')[0] if is_alike else first}{DASH}{last}"


LEAST_RATE: Final = 1e-3
"""A second: from it on to 1 a rate has no prefix, since that would be read as a unit, as in m/s."""


LEAST_MINUTES_S: Final = 300.0
"""Time from which on it is shown in minutes."""

LEAST_HOURS_S: Final = 7200.0
"""Time from which on it is shown in hours."""


def _show_long_time(seconds: float) -> str:
    scale, unit = (60.0, "min") if abs(seconds) < LEAST_HOURS_S else (3600.0, "h")
    number = float(f"{seconds / scale:.2e}")
    return f"{number:,.0f} {unit}" if abs(number) >= 100.0 else f"{number:.3g} {unit}"


def show_quantity(value: float | None, unit: str) -> str:
    """Return a number with SI prefix and unit, a long time in `min` or `h`, a rate per second; nothing for None."""
    if value is None:
        return ""
    if unit == "s" and math.isfinite(value) and abs(value) >= LEAST_MINUTES_S:
        return _show_long_time(value)
    if unit in _PLAIN_UNITS:
        return _show_plain_unit(value, unit)
    if unit == "1":
        return f"{value:.4g}"
    if unit == "1/s":
        return f"{value:.3g}/s" if LEAST_RATE <= value < 1.0 else f"{format_si(value, '')}/s"
    return format_si(value, unit)


def show_signed(value: float | None, unit: str) -> str:
    """Return a difference with its sign, SI prefix and unit; nothing for None."""
    return f"{'+' if value and value > 0 else ''}{show_quantity(value, unit)}"


def show_share(value: float | None) -> str:
    """Return a computed fraction in percent, to one decimal: `12.5 %`; nothing for None."""
    return show(value, "share_fraction")


def show_chosen_share(value: float | None) -> str:
    """Return a fraction that somebody chose in percent, to as many digits as it has: `70 %`; nothing for None."""
    return "" if value is None else f"{100.0 * value:.6g} %"


MOST_SURE: Final = 0.99
"""Beyond it a probability is told as more than this: errors are not known so well."""


LEAST_SURE: Final = 0.01
"""Below it a probability is told as less than this, for the same reason."""


def show_chance(probability: float | None) -> str:
    """Return a probability as people read it: `93 %`, `over 99 %`, `under 1 %`; empty for none."""
    if probability is None:
        return ""
    if probability > MOST_SURE:
        return f"over {show_chosen_share(MOST_SURE)}"
    if probability < LEAST_SURE:
        return f"under {show_chosen_share(LEAST_SURE)}"
    return f"{probability * 100:.0f} %"


RAREST: Final = 1e-3
"""Chance below which it is no longer told apart from others."""

FEW_TIMES: Final = 4.0
"""Once in fewer times than this is told with a decimal."""


def show_odds(probability: float | None) -> str:
    """Return how often something is so, as people say it of what is rare: `1 in 20`; empty for none."""
    if probability is None:
        return ""
    if probability < RAREST:
        return "under 1 in 1000"
    once = 1.0 / probability
    return f"1 in {once:.1f}".removesuffix(".0") if once < FEW_TIMES else f"1 in {float(f'{once:.2g}'):.0f}"


WIDE: Final = 0.5
"""Half-width of a logarithm from which on an interval is told as a factor: its ends are too unlike for one share."""


def show_doubt(half_width: float | None) -> str:
    """Return how far a figure may be off, of the half-width of its logarithm: `±12 %`, or `x/÷1.9`; empty for none."""
    if half_width is None:
        return ""
    return f"±{math.sinh(half_width) * 100:.0f} %" if half_width < WIDE else f"x/÷{math.exp(half_width):.2g}"


def show_count(count: int, noun: str, plural: str = "") -> str:
    """Return how many there are of a noun: `1 row`, `2 rows`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def show_units(used: int | None, total: int | None, name: str) -> str:
    """Return how many units of how many work; nothing where that is not known."""
    return "" if used is None else f"{used}/{total} {name}s"


def show_plain(value: float | None, digits: int = 3) -> str:
    """Return a number to so many digits, in full where there are more before the point; nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 10.0 ** (digits - 1) else f"{value:.{digits}g}"


def mark_projected(hardware: str, projected: frozenset[str]) -> str:
    """Return a hardware's name, or a text that begins with it, marked if it is one of these."""
    name = HardwareRef.read(hardware.partition(" ")[0]).label
    return f"{PROJECTED}{hardware}" if name in projected else hardware


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: full precision, no NaN, bytes as the engine writes them."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, bytes):
        return "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02X}" for byte in value)
    return value if value is None or isinstance(value, str | int | bool) else str(value)
