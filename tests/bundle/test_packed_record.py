"""Packed records: what is read equals what was written, equal values are one object, and no other type is formed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import attrs
import pytest

from joulemap.bundle.pack import Pack, as_texts
from joulemap.bundle.record import Reader
from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.quantity import Quantity
from tools.packed import Writer, write_pack

CHIPS = load_catalogue().hardware


def pass_on(tmp_path: Path, values: dict[str, Any], replaced: dict[str, str] | None = None) -> Reader:
    write_pack(tmp_path / "a.pack", {"a": Writer(replaced).write(values)})
    return Reader(Pack(tmp_path / "a.pack").read("a"))


def test_chips_are_read_as_they_were_written(tmp_path: Path) -> None:
    reader = pass_on(tmp_path, dict(CHIPS))
    assert set(reader.roots) == set(CHIPS)
    for name in reversed(list(CHIPS)):
        chip = reader.find(name)
        assert chip == CHIPS[name]
        assert repr(chip) == repr(CHIPS[name])
        assert chip.reference.prices_fj == CHIPS[name].reference.prices_fj  # follows from the actions
        assert chip.reference.row(("chip", "static_power")) == CHIPS[name].reference.row(("chip", "static_power"))


def test_a_record_behaves_as_one_that_was_made(tmp_path: Path) -> None:
    chip = pass_on(tmp_path, {"l4": CHIPS["l4"]}).find("l4")
    assert hash(chip.clock) == hash(CHIPS["l4"].clock)
    assert attrs.evolve(chip, id="other").id == "other"
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        chip.id = "other"
    with pytest.raises(ValueError, match="boundary"):
        attrs.evolve(chip, boundary="wall")


def test_numbers_keep_their_type_and_sign(tmp_path: Path) -> None:
    values = {"a": (1, 1.0, True, 0, 0.0, -0.0, False, None, "", "1", 2**60, math.inf), "b": {"k": (), 2: {}}}
    reader = pass_on(tmp_path, values)
    assert repr(reader.find("a")) == repr(values["a"])
    assert reader.find("b") == values["b"]
    with pytest.raises(KeyError):
        reader.find("c")


def test_texts_of_a_field_are_replaced_where_there_are_any(tmp_path: Path) -> None:
    quantity = Quantity(value=2.0, unit="W", basis="measured", source="a book", note="")
    found = pass_on(tmp_path, {"a": quantity}, {"source": "elsewhere", "note": "elsewhere"}).find("a")
    assert found == attrs.evolve(quantity, source="elsewhere")


def test_only_records_of_the_laws_are_packed_and_formed(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"pathlib\.[\w.]+ is no record of joulemap.physics"):
        Writer().write({"a": tmp_path})
    section = dict(Writer().write({"a": CHIPS["l4"].clock}))
    section["type"] = attrs.evolve(as_texts(section["type"]), texts=("subprocess:Popen",))
    with pytest.raises(ValueError, match=r"subprocess:Popen is no record of joulemap\.physics"):
        Reader(section).find("a")
