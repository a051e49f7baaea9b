"""Templates: the text of an answer, with slots for values.

Sentences of an answer are templates of `joulemap.show`, or of a wing's `show`; columns and cells of a table are at the
head of the module that lays it out. A template is called with a row, whose fields fill its slots, and with further
values by name:

    SLOWER = Template("{hardware} takes {latency_s:s}[, {ratio:x} the latency of {other}]")
    SLOWER(row, hardware="l4", ratio=1.25, other="h100")     # l4 takes 2.5 ms, 1.25x the latency of h100

The text after a colon is the format of a value, one of `FORMATS` or an SI unit. A part in square brackets is omitted
if one of its values is None or empty.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from string import Formatter
from types import ModuleType
from typing import Any, Final

from joulemap.domain.metric import METRIC
from joulemap.show.present.cell import (
    Number,
    Remark,
    is_number,
    join_names,
    name_unit,
    number,
    show_chance,
    show_chosen_share,
    show_count,
    show_doubt,
    show_interval,
    show_odds,
    show_plain,
    show_quantity,
    show_share,
    show_signed,
    show_span,
)
from joulemap.system.record import frozen

FORMATS: Final[Mapping[str, Callable[[Any], str]]] = {
    "": lambda value: _show_text(value),
    "%": show_share,
    "set %": show_chosen_share,
    "chance": show_chance,
    "odds": show_odds,
    "x": number(lambda value: f"{show_plain(value)}x"),
    "±": show_doubt,
    "plain": show_plain,
    "#": number(lambda value: f"{value:,}"),
    "and": lambda values: join_names(list(values)),
    "or": lambda values: join_names(list(values), "or"),
    "few": lambda values: _join_few(list(values)),
    "words": name_unit,
    "metric": lambda name: METRIC[name].label,
    "list": ", ".join,
    "range": lambda ends: show_span(*ends),
    "category": lambda name: _find_category().name_category(name),
    "bound": lambda name: _find_category().name_bound(name),
    "~": number(lambda value: show_quantity(value, "")),
}
"""Name of a format -> function that formats a value.

In order: text, share in percent, chosen share, probability, odds, ratio, half-width, plain number, integer with
separators, texts joined by `and` or `or`, the first few texts with a count of the others, unit of a count in words,
label of a metric, texts joined by commas, range of two texts, energy category by its name, bottleneck by what limits,
number with SI prefix and no unit.
"""


def _show_text(value: Any) -> str:
    if isinstance(value, Number | Remark):
        return value
    return Number(value) if is_number(value) else str(value)


def _find_category() -> ModuleType:
    from joulemap.show.present import category

    return category


FEW: Final = 3
"""Maximum texts that `few` joins before it counts the others."""


INTERVAL: Final = "interval "
"""Prefix of a format for a pair of value and half-width (natural logarithm), such as `interval J`."""

COUNT: Final = "n "
"""Prefix of a format for a count with its noun, such as `n subgraph` or `n query|queries`."""

_UNIT: Final = re.compile(r"\+?(?:[A-Za-z]+(?:/[A-Za-z]+)?|1/s|1)")
"""Format of a quantity: its unit; a `+` before it shows the sign of a difference."""

_PARTS: Final = re.compile(r"\[([^\[\]]*)\]")


def _join_few(texts: list[str]) -> str:
    rest = len(texts) - FEW
    return join_names([*texts[:FEW], *([f"{rest} more"] if rest > 0 else [])])


def format_value(value: Any, form: str) -> str:
    """Format a value in one of the formats of templates; ValueError for an unknown format."""
    if form in FORMATS:
        return FORMATS[form](value)
    if form.startswith(COUNT):
        return show_count(value, *form.removeprefix(COUNT).split("|"))
    if form.startswith(INTERVAL):
        number, half_width = value
        return show_interval(number, form.removeprefix(INTERVAL), half_width)
    if not _UNIT.fullmatch(form):
        raise ValueError(f"no format of templates: {form!r}")
    return show_signed(value, form[1:]) if form[0] == "+" else show_quantity(value, form)


class _Writer(Formatter):
    """Python's formatter with the formats of templates."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return format_value(value, format_spec)


_WRITER: Final = _Writer()


def join_clauses(texts: Iterable[str]) -> str:
    """Join clauses and sentences with semicolons; only the caller ends the result with a full stop."""
    return "; ".join(text.rstrip(".") for text in texts if text)


class _Values(dict[str, Any]):
    """Values for the slots of a template, by name; a name that was not given is looked up in the row."""

    def __init__(self, row: object, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.row = row

    def __missing__(self, name: str) -> Any:
        return getattr(self.row, name)


@frozen
class Template:
    """Text with slots for values; calling it fills them."""

    text: str
    is_number: bool = False
    """True if the text is a number with its unit; a text that is a single slot is one if its value is."""

    def __call__(self, row: object = None, /, **values: Any) -> str:
        """Return the text, filled with `values` and the fields of `row`; AttributeError if a slot has no value."""
        given = _Values(row, values)
        kept = [text for text, is_optional in self._parts if not (is_optional and _lacks_value(text, given))]
        if self._only_slot is not None and kept:
            name, form = self._only_slot
            return format_value(_WRITER.get_field(name, (), given)[0], form)
        text = "".join(_WRITER.vformat(text, (), given) for text in kept)
        return Number(text) if self.is_number and text else text

    def words(self, row: object = None, /, **values: Any) -> list[str]:
        """Return the words of a command. Each word is filled separately, so that a value with spaces stays one word.

        If a word is a single slot and its value is a list, each item becomes a word. An optional part may have several
        words.
        """
        given = _Values(row, values)
        text = "".join(text for text, is_optional in self._parts if not (is_optional and _lacks_value(text, given)))
        words: list[str] = []
        for word in shlex.split(text):
            name = word[1:-1] if word.startswith("{") and word.endswith("}") else ""
            value = _WRITER.get_field(name, (), given)[0] if name.replace(".", "_").isidentifier() else None
            words += map(str, value) if isinstance(value, list | tuple) else [_WRITER.vformat(word, (), given)]
        return [word for word in words if word]

    @cached_property
    def _parts(self) -> tuple[tuple[str, bool], ...]:
        """Parts of the text, each with True if it is optional."""
        return tuple((text, bool(index % 2)) for index, text in enumerate(_PARTS.split(self.text)) if text)

    @cached_property
    def _only_slot(self) -> tuple[str, str] | None:
        """Name and format of the only slot of a text without other words; None for any other text."""
        parts = list(_WRITER.parse(self.text.strip("[]")))
        is_only = len(parts) == 1 and not parts[0][0] and parts[0][1] is not None
        return (str(parts[0][1]), parts[0][2] or "") if is_only else None

    @cached_property
    def required(self) -> frozenset[str]:
        """Names of the slots outside of optional parts."""
        return frozenset(name for text, is_optional in self._parts if not is_optional for name in _list_slots(text))

    @property
    def slots(self) -> tuple[tuple[str, str], ...]:
        """Name and format of each slot in the text."""
        return tuple((name, form or "") for _, name, form, _ in _WRITER.parse(self.text) if name is not None)


def _list_slots(text: str) -> Iterator[str]:
    return (name for _, name, _, _ in _WRITER.parse(text) if name is not None)


def _lacks_value(text: str, given: Mapping[str, Any]) -> bool:
    return any(_is_missing(_WRITER.get_field(name, (), given)[0]) for name in _list_slots(text))


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str | tuple | list) and not value)
