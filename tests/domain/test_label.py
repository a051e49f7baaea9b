"""Labels: each member of a closed set of `physics` has one, and `physics` has none."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pytest

from joulemap import physics
from joulemap.catalog.load import load_catalogue
from joulemap.domain.constant import name_constant, name_number
from joulemap.domain.label import BOUNDARY_LABEL, RUNTIME_LABEL
from joulemap.physics.record.address import Address
from joulemap.physics.record.configuration import BOUNDARY_NAMES
from joulemap.physics.record.constant import list_constants
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.runtime import RUNTIME_NAMES

WORDING = frozenset({"label", "title", "meaning", "description", "help", "note", "notes"})
"""Names of fields with texts for people."""


@pytest.mark.parametrize(
    ("labels", "members"),
    [(RUNTIME_LABEL, RUNTIME_NAMES), (BOUNDARY_LABEL, BOUNDARY_NAMES)],
    ids=["runtime", "boundary"],
)
def test_each_member_has_a_label(labels: Mapping[str, str], members: Sequence[str]) -> None:
    assert list(labels) == list(members)
    assert all(labels.values())


def test_a_name_without_an_entry_is_spelled_from_its_parts() -> None:
    assert name_number(Address.read("tdp")) == "power limit"
    assert name_number(Address.read("dram.read"), "B") == "energy per byte of DRAM read"
    assert name_number(Address.read("memory.l2.capacity")) == "size of L2"
    assert name_number(Address.read("peak.int8")) == "peak at int8"
    chip = load_catalogue().find("l4")
    (clock,) = (one for one in list_constants(chip).values() if one.name == "clock")
    assert name_constant(clock) == "clock"
    assert name_constant(attrs.evolve(clock, address=clock.address._replace(device="gpu"))) == "clock of gpu"


def list_closed_sets() -> Iterator[tuple[str, type[Any]]]:
    """Yield the names of values of modules of `physics` that are records or hold records, with the type of these."""
    for module in pkgutil.walk_packages(physics.__path__, "joulemap.physics."):
        for name, value in vars(importlib.import_module(module.name)).items():
            held = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else (value,)
            yield from (
                (f"{module.name}.{name}", type(one))
                for one in held
                if attrs.has(type(one)) and not isinstance(one, type)
            )


def test_no_record_of_a_closed_set_has_a_text_for_people() -> None:
    """The texts of a `Quantity` state where a number comes from."""
    found = dict(list_closed_sets())
    assert {"Runtime", "Boundary"} <= {kind.__name__ for kind in found.values()}
    worded = {name: {one.name for one in attrs.fields(kind)} & WORDING for name, kind in found.items()}
    assert {name for name, fields in worded.items() if fields and found[name] is not Quantity} == set()
