"""Catalogue as test parameters: one chip of each form by default, all others with `make test-slow`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs
import pytest
from _pytest.mark import ParameterSet

from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.hardware import Hardware

ALL: Final = tuple(attrs.evolve(one, compiler=None) for one in load_catalogue().hardware.values())
"""Chips as if their compilers supported every operator; operators on the host have their own tests."""


LEAST_BYTES: Final = 2.1e8
"""Minimum memory for the models of most tests; microcontrollers have their own tests."""

ROOMY: Final = tuple(one for one in ALL if one.memory_capacity.value >= LEAST_BYTES)
"""Chips whose memory holds the models of most tests."""


def find(name: str) -> Hardware:
    """Return the chip with an id."""
    return next(one for one in ALL if one.id == name)


def form(hardware: Hardware) -> tuple[object, ...]:
    """Return the properties that select a chip's formulas: class, names of its geometry, and kinds of memory levels."""
    levels = tuple((level.kind, level.per) for level in hardware.memory_levels)
    return hardware.architecture, frozenset(hardware.geometry), levels


FORMS: Final = tuple({form(one): one for one in reversed(ROOMY)}.values())
"""First chip of each form."""


def _parameters(quick: Collection[Hardware]) -> tuple[ParameterSet, ...]:
    return tuple(pytest.param(one, id=one.id, marks=() if one in quick else pytest.mark.slow) for one in ROOMY)


EVERY: Final = _parameters(FORMS)
"""All chips with enough memory; those with the form of an earlier one are marked slow."""
CLASSES: Final = _parameters(list({one.architecture: one for one in reversed(ROOMY)}.values()))
"""All chips with enough memory; those of the class of an earlier one are marked slow."""
