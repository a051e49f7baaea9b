"""Design space: the varied constants of a chip and their values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, Self

import numpy as np

from joulemap.domain.value import read_values
from joulemap.physics import CLOCK, SHORT, Area, Constant, Floats, Hardware, Integers, list_constants
from joulemap.physics.change import open_to_change
from joulemap.physics.record.constant import match_names
from joulemap.system import UsageError, find_nearest, frozen
from joulemap.wing.explore.design.rule import Law, check_together

USUAL: Final = {
    "unit_count": (0.125, 0.25, 0.5, 1.0, 2.0, 4.0),
    "clock": (0.25, 0.5, 0.75, 1.0),
    "memory_bandwidth": (0.5, 1.0, 2.0),
}
"""Constant that is varied by default -> factors of the chip's own value."""

MOST_NUMBERED: Final = 2**62
"""Maximum designs of a space; larger numbers do not fit in 64 bits."""

MOST_DRAWN: Final = 10_000_000
"""Maximum designs sampled at random; the number of each sampled design is kept in memory."""

MOST_POINTS: Final = 100_000_000
"""Maximum designs evaluated exhaustively; larger spaces must be sampled or searched."""


@frozen(kw_only=True)
class VariedConstant:
    """Varied constant of a chip and its values."""

    constant: Constant
    values: tuple[float, ...]

    @property
    def name(self) -> str:
        """Name of the varied constant."""
        return self.constant.name

    @cached_property
    def column(self) -> Floats:
        """Values of the parameter as an array."""
        return np.array(self.values)


@frozen(kw_only=True)
class Space:
    """All designs based on one chip: the Cartesian product of all parameter values."""

    hardware: Hardware
    parameters: tuple[VariedConstant, ...]
    law: Law

    @classmethod
    def of(cls, hardware: Hardware, vary: Mapping[str, str | Sequence[float]], label: str = "--vary {}={}") -> Self:
        """Return the design space of a chip; `vary` is constant -> values as written.

        Raises UsageError for values that cannot be read and constants that contradict each other. `label` formats a
        constant and its values in errors.
        """
        constants = list_constants(hardware)
        parameters: dict[str, VariedConstant] = {}
        for written, values in vary.items():
            shown = label.format(written, values)
            constant = constants[_find_name(written, constants, hardware.id, shown)]
            if constant.name in parameters:
                raise UsageError(f"{shown}: {constant.name} is varied twice")
            try:
                texts = [values] if isinstance(values, str) else list(values)
                distinct = tuple(dict.fromkeys(one for text in texts for one in read_values(text, constant)))
            except ValueError as error:
                raise UsageError(f"{shown}: {error}") from error
            if not distinct:
                raise UsageError(f"{shown}: no value is given")
            parameters[constant.name] = VariedConstant(constant=constant, values=distinct)
        check_together(parameters)
        hardware = open_to_change(hardware, (CLOCK, *(one.constant.address for one in parameters.values())))
        law = Law(hardware=hardware, area=Area.of(hardware), constants=constants)
        return cls(hardware=hardware, parameters=tuple(parameters.values()), law=law)

    @property
    def size(self) -> int:
        """Number of designs in the space."""
        return math.prod(len(one.values) for one in self.parameters)

    def draw(self, count: int, seed: int) -> Integers:
        """Return the numbers of `count` distinct designs, drawn uniformly at random; all designs if there are fewer."""
        if count >= self.size:
            return np.arange(self.size, dtype=np.int64)
        generator = np.random.default_rng(seed)
        if self.size <= MOST_POINTS // 10:
            return np.sort(generator.choice(self.size, size=count, replace=False)).astype(np.int64)
        numbers = np.empty(0, dtype=np.int64)
        while len(numbers) < count:
            more = self._draw_numbers(generator, count - len(numbers))
            numbers = np.unique(np.concatenate([numbers, more]))
        return numbers

    def _draw_numbers(self, generator: np.random.Generator, count: int) -> Integers:
        sides = [generator.integers(0, len(one.values), size=count) for one in self.parameters]
        return self.number(sides)

    def number(self, places: Sequence[Integers]) -> Integers:
        """Return the numbers of designs; `places` has the position of each parameter's value."""
        number = np.zeros(np.shape(places[0]) if places else 1, dtype=np.int64)
        for one, index in zip(self.parameters, places, strict=True):
            number = number * len(one.values) + index
        return number

    def end_block(self, start: int, most: int) -> int:
        """Return the end of the largest sub-grid of at most `most` designs that begins at design `start`."""
        size = self.size
        for one in self.parameters:
            count, size = len(one.values), size // len(one.values)
            if size <= most and start % size == 0:
                return start + size * min(count - start // size % count, most // size)
        return start + 1

    def values_at(self, numbers: Integers) -> dict[str, Floats]:
        """Return parameter -> values of the designs with these numbers; the last parameter varies fastest."""
        rest, columns = np.asarray(numbers, dtype=np.int64), {}
        for one in reversed(self.parameters):
            rest, index = np.divmod(rest, len(one.values))
            columns[one.name] = one.column[index]
        return dict(reversed(columns.items()))


def vary_usual(hardware: Hardware) -> dict[str, tuple[float, ...]]:
    """Return the constants that are varied by default, each with its values; unit counts are integers."""
    constants = list_constants(hardware)
    varied = {name: [constants[name].value * one for one in ratios] for name, ratios in USUAL.items()}
    varied["unit_count"] = [max(1.0, round(one)) for one in varied["unit_count"]]
    return {name: tuple(dict.fromkeys(values)) for name, values in varied.items()}


def _find_name(written: str, constants: dict[str, Constant], hardware: str, label: str) -> str:
    matched = match_names(written.strip(), constants)
    if len(matched) == 1:
        return matched[0]
    if matched:
        raise UsageError(f"{label}: it may be {' or '.join(matched)}: name one")
    names = [(short, short) for short, name in SHORT.items() if name in constants]
    near = find_nearest(written, [*names, *((name, name.partition(".")[2] or name) for name in constants)])
    known = ", ".join(("clock", *(name for name, _ in names), "tdp"))
    more = f"it has {known} and more: `joulemap sensitivity MODEL {hardware}` lists them"
    advice = f"did you mean {' or '.join(near)}?" if near else more
    raise UsageError(f"{label}: {hardware} has no constant {written!r}; {advice}")
