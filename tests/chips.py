"""The catalogue as parameters of tests: a chip of each form at once, the others with `make test-slow`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import attrs
import pytest
from _pytest.mark import ParameterSet

from joulemap.catalog.load import load_catalogue
from joulemap.domain.hardware import Hardware

ALL: Final = tuple(attrs.evolve(one, compiler=None) for one in load_catalogue().hardware.values())
"""Each as if its compiler ran every operator: what falls to a host has tests of its own."""


LEAST_BYTES: Final = 2.1e8
"""Memory of the smallest chip that holds the models of most tests; microcontrollers have tests of their own."""

ROOMY: Final = tuple(one for one in ALL if one.memory_capacity.value >= LEAST_BYTES)
"""Chips whose memory holds the models of most tests."""


def find(name: str) -> Hardware:
    """Return the chip of an id."""
    return next(one for one in ALL if one.id == name)


def form(hardware: Hardware) -> tuple[object, ...]:
    """Return what decides which formulas a chip takes: its class, what its geometry names and its kinds of memory."""
    levels = tuple((level.kind, level.per) for level in hardware.memory_levels)
    return hardware.architecture, frozenset(hardware.geometry), levels


FORMS: Final = tuple({form(one): one for one in reversed(ROOMY)}.values())
"""The first chip of each form."""


def _parameters(quick: Collection[Hardware]) -> tuple[ParameterSet, ...]:
    return tuple(pytest.param(one, id=one.id, marks=() if one in quick else pytest.mark.slow) for one in ROOMY)


EVERY: Final = _parameters(FORMS)
"""Every chip; those with the form of an earlier one are slow."""
CLASSES: Final = _parameters(list({one.architecture: one for one in reversed(ROOMY)}.values()))
"""Every chip; those of the class of an earlier one are slow."""
