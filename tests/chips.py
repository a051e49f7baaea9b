"""The catalogue as parameters of tests: a chip of each form at once, the others with `make test-slow`."""

from __future__ import annotations

from typing import Final

import pytest
from _pytest.mark import ParameterSet

from joulemap.catalog.load import load_catalogue
from joulemap.domain.hardware import Hardware

ALL: Final = tuple(load_catalogue().hardware.values())


def form(hardware: Hardware) -> tuple[object, ...]:
    """Return what decides which formulas a chip takes: its class, what its geometry names and its kinds of memory."""
    levels = tuple((level.kind, level.per) for level in hardware.memory_levels)
    return hardware.architecture, frozenset(hardware.geometry), levels


FORMS: Final = tuple({form(one): one for one in reversed(ALL)}.values())
"""The first chip of each form."""


def _parameter(hardware: Hardware) -> ParameterSet:
    return pytest.param(hardware, id=hardware.id, marks=() if hardware in FORMS else pytest.mark.slow)


EVERY: Final = tuple(map(_parameter, ALL))
"""Every chip; those with the form of an earlier one are slow."""
