"""Format one value as text: with SI prefixes for display, unchanged for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import wraps
from typing import Any, Final, ParamSpec

from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.table import Column
from joulemap.physics.interval.error_scale import TOLD_APART
from joulemap.system.name import PROJECTED
from joulemap.system.units import format_si

PROJECTION_NOTE: Final = (
    f"{PROJECTED} marks hardware that can be neither bought nor rented; `joulemap hardware show ID` gives the reason"
)

PROJECTION_MARK: Final = f"{PROJECTED} cannot be bought"
"""`PROJECTION_NOTE` in a few words, for the first table of a screen."""

_UNIT_SUFFIXES: Final = ("_bytes_per_s", "_per_s", "_bytes", "_js", "_j", "_s", "_w")
_SUFFIXES: Final = (*_UNIT_SUFFIXES, "_fraction", "_ratio", "_count", "_fj")
_SI_UNITS: Final = {"J", "s", "W", "B", "J/B", "Js", "1/s", "B/s", "Hz", "ops/s", "ops/J", "fJ", "g"}
SPELLED: Final = {"Js": "J·s"}
"""Unit -> how people write it."""

_PLAIN_UNITS: Final = {"USD", "USD/h", "kWh", "mm2"}
AMOUNTS: Final = {"s", "J", "B"}
"""Units that the count of an action has; other counts have the name of what is counted beside them."""


class Number(str):
    """Formatted number, with its unit or interval; columns of numbers are aligned to the right."""

    __slots__ = ()


class Remark(str):
    """Text that stands in place of a number or beside it, which makes its column align to the left."""

    __slots__ = ()


def is_number(value: Any) -> bool:
    """Return True for a number; truth values are none."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


Given = ParamSpec("Given")


def number(make: Callable[Given, str]) -> Callable[Given, str]:
    """Make a function that formats numbers return them as `Number`; an empty text stays a text."""

    @wraps(make)
    def format_number(*given: Given.args, **named: Given.kwargs) -> str:
        text = make(*given, **named)
        return Number(text) if text else text

    return format_number


MOST_TEXTS: Final = 50_000
"""Maximum cached texts per column."""

REPEATED: Final = ("VARCHAR", "DECIMAL", "ENUM", "DATE", "TIME", "DOUBLE", "FLOAT", "BOOLEAN", "UUID")
"""Prefixes of the types of columns whose texts are cached; integer types are recognized by `COUNTED`."""

COUNTED: Final = "INT"
"""Substring of every integer type."""


def write_cells(
    columns: Sequence[Column], batch: Sequence[tuple[Any, ...]], texts: Sequence[Texts]
) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row of a batch as texts; `texts` holds one cache per column."""
    made = [
        map(text.__getitem__ if _repeats(column.type) else text.make, values)
        for column, text, values in zip(columns, texts, zip(*batch, strict=True), strict=True)
    ]
    return zip(*made, strict=True)


def _repeats(kind: str) -> bool:
    """Return True if equal values of a type have equal texts; False for lists and mappings."""
    return not kind.endswith("]") and (kind.startswith(REPEATED) or kind.endswith((COUNTED, "INTEGER")))


class Texts(dict[Any, str]):
    """Cache of value -> text, because values in columns repeat.

    Zeros are not cached, because 0.0 and -0.0 are equal but have different texts.
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
    """Return the heading of a column: its name without the unit, because each value shows the unit.

    A column of a user's SQL statement keeps its name, and so does one whose query states no unit for its values.
    """
    is_bare = not column.unit and column.name.endswith(_UNIT_SUFFIXES)
    return name_words(column.name) if column.meaning and not is_bare else column.name


def name_words(name: str) -> str:
    """Return the name of a column in words, without its unit."""
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix) and not name.endswith(f"_per{suffix}"):
            name = name.removesuffix(suffix)
            name += " share" if suffix == "_fraction" and not name.endswith("share") else ""
            name += " ratio" if suffix == "_ratio" else ""
            name += "s" if suffix == "_count" and "s_" not in name and not name.endswith("ed") else ""
            break
    return name.replace("_", " ").strip()


def show_in(column: Column, value: Any) -> str:
    """Format a value of a column for display; values of a user's SQL statement have no units."""
    if column.meaning or value is None:
        return show(value, column.name, column.unit)
    if isinstance(value, float | Decimal):
        return Number(f"{float(value):.6g}")
    if is_number(value):
        return Number(value)
    if isinstance(value, list | tuple | dict):
        return json.dumps(plain(value), ensure_ascii=False)
    return str(plain(value)) if isinstance(value, bytes) else str(value)


def show(value: Any, name: str, unit: str = "") -> str:
    """Format a value of any type for display; `name` and `unit` are those of its column. Empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    if isinstance(value, list):
        text = " ".join(str(item) for item in value)
        return Number(text) if len(value) == 1 and is_number(value[0]) else text
    if is_number(value):
        return _show_number(value, name, unit)
    if name == CATEGORY:
        from joulemap.show.present.category import name_category

        return name_category(str(value))
    is_measured = name == QUANTITY and str(value).endswith(MEASURED)
    return name_words(str(value)) if is_measured else str(value)


CATEGORY: Final = "common_category"
"""Name of a column whose values are energy categories."""

QUANTITY: Final = "quantity"
"""Name of a column whose values are names of hardware numbers or of measured quantities."""

MEASURED: Final = ("_s", "_j", "_w", "_bytes")
"""Endings of the names of measured quantities, which are shown in words; hardware numbers keep their names."""


@number
def _show_number(value: int | float | Decimal, name: str, unit: str) -> str:
    if name.startswith("probability") or name.endswith("_probability"):
        return show_chance(float(value))
    if name.endswith("_fraction"):
        return _show_fraction(float(value))
    if name.endswith("_ratio") or name == "ratio":
        return f"{show_plain(float(value))}x"
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


def separate_alike(cells: list[str]) -> list[str]:
    """Add a thousands separator to four-digit integers of a column if longer integers in it have one."""
    if not any("," in one and one.replace(",", "").isdecimal() for one in cells):
        return cells
    return [type(one)(f"{int(one):,}") if len(one) == 4 and one.isdecimal() else one for one in cells]


def _show_fraction(value: float) -> str:
    """Format a fraction in percent to one decimal. Values that only round to 100 % are shown as `over 99.9 %`."""
    percent = round(value * 100.0, 1) + 0.0
    if percent == 100.0:
        return "100 %" if value >= WHOLE else "over 99.9 %"
    return f"{percent:.1f} %"


WHOLE: Final = 1.0 - 1e-9
"""Minimum fraction that counts as 1; sums of floating-point parts may be smaller than 1 by rounding."""

WHOLE_USD: Final = 100.0
"""Amount from which money is shown without cents."""

LEAST_CENTS_USD: Final = 1.0
"""Amount from which money is shown in cents.

Smaller amounts have three significant digits, so that their ratios match the displayed ratios.
"""


def _show_plain_unit(value: float, unit: str) -> str:
    """Format a number whose unit takes no SI prefix; money has cents."""
    if unit == "USD" and LEAST_CENTS_USD <= abs(value) < WHOLE_USD:
        return f"{value:.2f} {unit}"
    return f"{show_plain(value, 4 if unit == 'USD/h' else 3)} {unit}"


@number
def show_amount(count: float, per: str) -> str:
    """Format the count of an action; counts of seconds, joules and bytes have their unit."""
    return show_quantity(count, per if per in AMOUNTS else "")


def name_unit(per: str) -> str:
    """Return the unit of a count in words, such as `warp instruction` for `warp_instruction`."""
    return per.replace("_", " ")


@number
def show_price(energy_j: float | None, per: str) -> str:
    """Format the energy of one action: per second in W, per joule as a share, per byte in J/B, otherwise in J."""
    if per == "J":
        return show_share(energy_j)
    return show_quantity(energy_j, {"s": "W", "B": "J/B"}.get(per, "J"))


@number
def show_within(value: float | None, unit: str, half_width: float | None) -> str:
    """Format a number with the digits that its uncertainty supports; three digits if the uncertainty is unknown.

    `half_width` is the half-width of the interval in natural logarithms.
    """
    has_cents = unit in _PLAIN_UNITS and not (unit == "USD" and abs(value or 0.0) < LEAST_CENTS_USD)
    if value is None or not value or not half_width or has_cents:
        return show_quantity(value, unit)
    digits = min(3, max(0, math.ceil(-math.log10(half_width))) + 1)
    return show_quantity(float(f"{value:.{max(digits, 2) - 1}e}"), unit)


DASH: Final = "\N{EN DASH}"
"""Separator of the ends of a range."""

_DIGITS: Final = "-+.,0123456789"
"""Characters of the number at the beginning of a formatted value; prefix and unit follow the number."""


def show_span(*ends: str) -> str:
    """Format a range of two formatted values: a common unit appears once, and equal values become one."""
    if len(set(ends)) < 2:
        return "".join(ends[:1])
    first, last = ends[0], ends[-1]
    is_alike = first.partition(" ")[2] == last.partition(" ")[2]
    return f"{first.partition(' ')[0] if is_alike else first}{DASH}{last}"


@number
def show_interval(value: float | None, unit: str, half_width: float | None) -> str:
    """Format a number with its interval: the value, then both ends in brackets.

    `half_width` is the half-width of the interval in natural logarithms.
    """
    if value is None or not half_width:
        return show_quantity(value, unit)
    whole = show_quantity(value, unit)
    shown = _show_both(value, unit, half_width)
    units = {one.lstrip(_DIGITS) for one in (whole, *shown)}
    is_alike = math.isfinite(value) and len(units) == 1 and not min(units).startswith(("e-", "e+"))
    ends = [one.removesuffix(min(units)) if is_alike else one for one in shown]
    return f"{whole} ({show_span(*ends)})"


def show_ends(value: float | None, unit: str, half_width: float | None) -> str:
    """Format the ends of the interval of a number: `22-58 mJ`; empty without an interval."""
    return "" if value is None or not half_width else show_span(*_show_both(value, unit, half_width))


def _show_both(value: float, unit: str, half_width: float) -> list[str]:
    """Return the low and the high end of an interval."""
    return [show_within(value * math.exp(sign * half_width), unit, half_width) for sign in (-1.0, 1.0)]


LEAST_RATE: Final = 1e-3
"""Minimum unitless number or rate per second shown without an SI prefix, because `m` reads as a unit."""


LEAST_MINUTES_S: Final = 300.0
"""Seconds from which a time is shown in minutes."""

LEAST_HOURS_S: Final = 7200.0
"""Seconds from which a time is shown in hours."""


def _show_long_time(seconds: float) -> str:
    scale, unit = (60.0, "min") if abs(seconds) < LEAST_HOURS_S else (3600.0, "h")
    number = float(f"{seconds / scale:.2e}")
    return f"{number:,.0f} {unit}" if abs(number) >= 100.0 else f"{number:.3g} {unit}"


TONNE_G: Final = 1e6
"""Grams per tonne. Larger masses are shown in tonnes, because `Mg` reads as milligrams."""


@number
def show_quantity(value: float | None, unit: str) -> str:
    """Format a number with SI prefix and unit, a long time in `min` or `h`, a rate per second; empty for None."""
    if value is None:
        return ""
    if unit == "s" and math.isfinite(value) and abs(value) >= LEAST_MINUTES_S:
        return _show_long_time(value)
    if unit in _PLAIN_UNITS:
        return _show_plain_unit(value, unit)
    if unit == "1":
        return f"{value:.4g}"
    if unit == "g" and abs(value) >= TONNE_G:
        return f"{show_plain(value / TONNE_G)} t"
    if unit in ("", "1/s"):
        number = f"{value:.3g}" if LEAST_RATE <= value < 1.0 else format_si(value, "")
        return f"{number}/s" if unit else number
    if unit == "1/J":
        return f"{format_si(value, '')}/J"
    return format_si(value, SPELLED.get(unit, unit))


@number
def show_bound(value: float, unit: str) -> str:
    """Format a number that the user gave with enough digits to repeat it."""
    return format_si(value, unit, digits=5) if unit in ("W", "s", "J", "B") else show_quantity(value, unit)


@number
def show_signed(value: float | None, unit: str) -> str:
    """Format a difference with sign, SI prefix and unit; empty for None."""
    return f"{'+' if value and value > 0 else ''}{show_quantity(value, unit)}"


def show_share(value: float | None) -> str:
    """Format a computed fraction in percent, to one decimal: `12.5 %`; empty for None."""
    return show(value, "share_fraction")


@number
def show_chosen_share(value: float | None) -> str:
    """Format a chosen fraction in percent, to as many digits as it has: `70 %`; empty for None."""
    return "" if value is None else f"{100.0 * value:.6g} %"


MOST_SURE: Final = 0.99
"""Probability above which only `over` this value is shown, because errors are not known better."""


LEAST_SURE: Final = 0.01
"""Probability below which only `under` this value is shown, because errors are not known better."""


@number
def show_chance(probability: float | None) -> str:
    """Format a probability: `93 %`, `over 99 %`, `under 1 %`; empty for None."""
    if probability is None:
        return ""
    if probability > MOST_SURE:
        return f"over {show_chosen_share(MOST_SURE)}"
    if probability < LEAST_SURE:
        return f"under {show_chosen_share(LEAST_SURE)}"
    percent = round(probability * 100.0)
    least = round(TOLD_APART * 100.0)  # percent from which one option is called better; a tie does not round up to it
    return f"{percent - 1 if is_tied(probability) and percent == least else percent} %"


def is_tied(probability: float | None) -> bool:
    """Return True if a confidence is too low to call one option better than another."""
    return probability is not None and probability < TOLD_APART


RAREST: Final = 1e-3
"""Probability below which only `under 1 in 1000` is shown."""

FEW_TIMES: Final = 4.0
"""Odds denominator below which one decimal is shown."""


def show_odds(probability: float | None) -> str:
    """Format a rare probability as odds: `1 in 20`; empty for None."""
    if probability is None:
        return ""
    if probability < RAREST:
        return "under 1 in 1000"
    once = 1.0 / probability
    return f"1 in {once:.1f}".removesuffix(".0") if once < FEW_TIMES else f"1 in {float(f'{once:.2g}'):.0f}"


WIDE: Final = 0.25
"""Half-width (natural logarithm) from which factors need only two digits; smaller factors would round to 1."""


def show_doubt(half_width: float | None) -> str:
    """Format an interval as factors of the prediction, such as `0.59-1.7x`; empty for None.

    `half_width` is the half-width of the interval in natural logarithms.
    """
    if half_width is None:
        return ""
    digits = 3 if half_width < WIDE else 2
    return f"{math.exp(-half_width):.{digits}g}{DASH}{math.exp(half_width):.{digits}g}x"


def show_count(count: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun: `1 row`, `2 rows`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def split_assumption(source: str) -> tuple[str, bool]:
    """Return a source without the word that marks an assumption, and whether it has it."""
    text = source.removeprefix("assumption: ")
    return text, text != source


def split_names(names: str) -> list[str]:
    """Return the names that a text joins by commas."""
    return names.split(", ")


def show_busy_units(row: Any) -> str:
    """Return the busy units of a row for a table cell; see `show_units`."""
    return show_units(row.units_used_count, row.units_total_count, row.unit_name)


@number
def show_units(used: int | None, total: int | None, name: str) -> str:
    """Format how many of all compute units are busy; empty if unknown."""
    return "" if used is None else f"{used}/{total} {name}s"


@number
def show_plain(value: float | None, digits: int = 3) -> str:
    """Format a number to `digits` digits, or in full if its integer part has more; empty for None."""
    if value is None:
        return ""
    if abs(value) >= 10.0 ** (digits - 1):
        return f"{value:,.0f}"
    shown = f"{value:.{digits}g}"
    return f"{Decimal(shown):f}" if "e-" in shown else shown


def join_names(names: Sequence[str], word: str = "and") -> str:
    """Return names as a list in words: `a, b and c`."""
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def mark_projected(hardware: str, projected: frozenset[str]) -> str:
    """Put the projection mark before a text that begins with the name of projected hardware."""
    name = HardwareRef.read(hardware.partition(" ")[0]).label
    return f"{PROJECTED}{hardware}" if name in projected else hardware


def plain(value: Any) -> Any:
    """Convert a value to JSON types: full precision, null for NaN, bytes in the engine's notation."""
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
