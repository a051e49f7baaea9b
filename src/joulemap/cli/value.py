"""Conversion of texts of the command line to values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

from joulemap.physics.record.configuration import MAX_BATCH
from joulemap.system.config import placing
from joulemap.system.errors import UsageError
from joulemap.system.name import split_names
from joulemap.system.number import parse_quantity, read_real, read_whole

Record = TypeVar("Record")

MOST_BATCHES: Final = 10_000
"""Maximum batch sizes in one list."""


def read_quantity(option: str, text: str, unit: str) -> float | None:
    """Return a quantity such as `30W` or `16GB` in `unit`, None for an empty text; UsageError names the option."""
    if not text:
        return None
    with placing(option):
        value = parse_quantity(text, unit)
        if not value > 0.0:
            raise UsageError(f"{text!r} is not above 0")
    return value


UNITS: Final = {"_bytes_per_s": "B/s", "_per_s": "1/s", "_bytes": "B", "_s": "s", "_j": "J", "_w": "W"}
"""Suffix of a field name -> unit of its value."""


def read_as(record: type[Record], options: object, **given: Any) -> Record:
    """Return a record with the values of the options of the same names; a suffix such as `_w` sets the unit.

    `given` holds fields that are converted elsewhere. UsageError names an option that cannot be read.
    """
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(record)  # type: ignore[arg-type]
    for name in (field.name for field in fields if field.name not in given):
        end = next((one for one in UNITS if name.endswith(one)), "")
        value = getattr(options, name, None)
        if end and hasattr(options, name.removesuffix(end)):
            option = name.removesuffix(end)
            value = getattr(options, option)
            if isinstance(value, str):
                value = read_quantity(f"--{option.replace('_', '-')}", value, UNITS[end])
        if value is not None:
            given[name] = str(value) if isinstance(value, Path) else value
    return record(**given)


def read_counts(option: str, text: str) -> tuple[int, ...]:
    """Return the integers of a list such as `1,2,4`; UsageError names the option."""
    try:
        return tuple(read_whole(part) for part in split_names(text))
    except ValueError as error:
        raise UsageError(f"{option}: {error}; write 1,2,4,8") from None


def read_batches(text: str) -> tuple[int, ...]:
    """Return the batch sizes of a list such as `1,2,4` or `1,2,4,...,128`; dots continue equal steps or factors.

    Raises UsageError for any other text.
    """
    batches: list[int] = []
    is_open = False
    for part in split_names(text):
        if part in ("...", "…"):
            is_open = True
            continue
        try:
            number = read_whole(part)
        except ValueError as error:
            raise UsageError(f"--batch: {error}; write 1,8,32 or 1,2,4,...,128") from None
        if not 1 <= number <= MAX_BATCH:
            raise UsageError(f"batch is {number}, expected a whole number from 1 to {MAX_BATCH}")
        if is_open:
            batches += _fill(batches, number, text)
            is_open = False
        batches.append(number)
        _check_count(len(batches))
    if is_open:
        raise UsageError(f"cannot read the batches {text!r}: write 1,2,4 or 1,2,4,...,128")
    return tuple(dict.fromkeys(batches))


def _check_count(count: int) -> None:
    if count > MOST_BATCHES:
        raise UsageError(f"--batch: {count:,} batches, expected at most {MOST_BATCHES:,}")


def _fill(batches: list[int], last: int, text: str) -> list[int]:
    """Return the numbers for which the dots in a list stand, up to but without `last`."""
    pairs = list(pairwise(batches))
    steps, factors = {b - a for a, b in pairs}, {b / a for a, b in pairs}
    filled, number = [], batches[-1] if batches else 0
    if len(steps) == 1 and min(steps) > 0:
        _check_count((last - number) // min(steps))
        filled = list(range(number + min(steps), last, min(steps)))
        number = filled[-1] + min(steps) if filled else number + min(steps)
    elif len(factors) == 1 and min(factors) > 1 and min(factors).is_integer():
        while (number := number * int(min(factors))) < last:
            filled.append(number)
    if number != last:
        raise UsageError(
            f"the dots in {text!r} do not reach {last}: write at least two numbers with equal steps or factors before "
            "them, e.g. 1,2,4,...,128"
        )
    return filled


def split_assignments(written: Sequence[str] | None) -> dict[str, str]:
    """Return key -> value of texts such as `key=value`; UsageError for another form or a repeated key."""
    pairs: dict[str, str] = {}
    for item in written or ():
        key, separator, value = item.partition("=")
        if not separator or not key:
            raise UsageError(f"parameter {item!r} does not have the form key=value")
        if key in pairs:
            raise UsageError(f"parameter {key} is given twice")
        pairs[key] = value
    return pairs


def split_pairs(written: Sequence[str] | None) -> dict[str, str]:
    """Return name -> value of texts such as `l4=0.40USD/h,t4=0.35USD/h`; UsageError as in `split_assignments`."""
    return split_assignments([part for text in written or () for part in split_names(text)])


def read_shares(option: str, written: Sequence[str] | None) -> dict[str, float]:
    """Return name -> fraction of texts such as `energy=5%,latency=10%`; UsageError names the option."""
    by_name: dict[str, float] = {}
    for item in (part for text in written or () for part in split_names(text)):
        name, _, text = (part.strip() for part in item.partition("="))
        try:
            if not text.endswith("%"):
                raise ValueError
            share = read_real(text.removesuffix("%").strip()) / 100.0
        except ValueError as error:
            expected = f"{name or 'energy'}=5%"
            raise UsageError(f"{option}: {item!r} is not a percentage, expected e.g. {expected}") from error
        if by_name.setdefault(name.lower(), share) != share:
            raise UsageError(f"{option}: {name} is given twice")
    return by_name
