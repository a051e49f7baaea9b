"""Evidence of fitted numbers: the sources, boards and models behind each, as data beside its source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from evidence_case import FITTED, REFUSED
from hardware_text import coefficient, write
from joulemap.catalog.chip import list_architectures, load_class, load_hardware
from joulemap.catalog.link import find_link_default, read_links
from joulemap.catalog.load import find_hardware
from joulemap.catalog.parser import parse_content
from joulemap.catalog.schema import ClassCoefficientEntry, CoefficientTableEntry
from joulemap.physics.record.address import Address, find_action
from joulemap.physics.record.quantity import Evidence, Quantity, read_evidence
from joulemap.physics.record.reference import price_by
from joulemap.system.errors import CatalogueError
from joulemap.system.record import frozen

UNFITTED_CLASS: Final = {
    "cpu mesh.hop": "a published energy, at another process node",
    "gpu crossbar.load": "length of wires; the fit only agrees",
    "gpu crossbar.store": "length of wires; the fit only agrees",
}
"""Measured or scaled number of a class without evidence -> reason."""


def list_class_numbers() -> Iterator[tuple[str, str, Evidence | None]]:
    """Yield each coefficient and energy of the classes, and each coefficient of links: its name, basis and evidence."""
    for name in list_architectures():
        shared = load_class(name, "")
        yield from ((f"{name} {one.name}", one.basis, one.evidence) for one in shared.coefficients)
        yield from ((f"{name} {one.component}.{one.action}", one.basis, one.evidence) for one in shared.actions)
    yield from ((f"link {one.name}", one.basis, one.evidence) for one in read_links().coefficients)


def test_the_numbers_of_a_class_that_have_evidence_are_the_fitted_ones() -> None:
    numbers = list(list_class_numbers())
    assert {name for name, basis, evidence in numbers if basis in FITTED and evidence is None} == UNFITTED_CLASS.keys()
    assert [name for name, basis, evidence in numbers if basis not in FITTED and evidence is not None] == []


def test_a_chip_has_the_evidence_of_its_class() -> None:
    chip = find_hardware("a100_pcie_40gb")
    assert chip.coefficients["voltage_floor"].evidence == Evidence(sources=1, boards=1, models=14)
    assert chip.coefficients["attention_start_clocks.mla_flash"].evidence == Evidence(sources=1, boards=5, models=1)
    assert chip.coefficients["attention_start_clocks"].evidence == Evidence(sources=1, boards=3, models=1)
    priced = find_action(chip, Address("price", "tensor_core.fp16_mac"))
    assert priced.evidence == Evidence(sources=2, boards=2, models=32)
    assert find_link_default("nvlink", "4").latency.evidence == Evidence(sources=1, boards=2, models=1)


def test_a_number_is_measured_on_the_chips_that_it_was_fitted_to_and_scaled_on_others() -> None:
    listed = [(name, entry) for name in list_architectures() for entry in load_class(name, "a test").coefficients]
    listed = [(name, entry) for name, entry in listed if entry.chips]
    assert {name for name, _ in listed} == {"cpu", "gpu", "npu"}
    for name, entry in listed:
        assert entry.basis in ("scaled", "derived"), entry.name
        assert all(find_hardware(chip).architecture == name for chip in entry.chips)
    bases = {chip: find_hardware(chip).coefficients["operand_reach.tensor"].basis for chip in ("l40s", "a40")}
    assert bases == {"l40s": "measured", "a40": "scaled"}


@pytest.mark.parametrize("case", REFUSED)
def test_evidence_in_part_is_refused(case: str) -> None:
    entry, reason = REFUSED[case]
    with pytest.raises(ValueError, match=rf"^{reason}$"):
        read_evidence(entry)


def test_evidence_is_not_part_of_a_number() -> None:
    bare = Quantity(value=1.0, unit="s", basis="measured", source="a board")
    backed = attrs.evolve(bare, evidence=Evidence(sources=1, boards=2, models=3))
    assert (backed, repr(backed)) == (bare, repr(bare))
    assert attrs.evolve(backed, value=2.0).evidence == backed.evidence
    fields = {"category": "board", "common_category": "board", "part": "control", "per": "s", "count_formula": "time"}
    old, new = (price_by(one, ("overhead", "wait"), **fields) for one in (bare, backed))
    assert (new, repr(new), new.evidence) == (old, repr(old), backed.evidence)


@frozen(kw_only=True)
class Numbers:
    """Numbers of a class's file."""

    coefficients: list[ClassCoefficientEntry] = attrs.field(factory=list)
    coefficient_tables: list[CoefficientTableEntry] = attrs.field(factory=list)


COEFFICIENT: Final = '[[coefficients]]\nname = "reach"\nvalue = 1\nunit = "1"\nbasis = "measured"\nsource = "mine"\n'

TABLE: Final = (
    '[[coefficient_tables]]\nname = "kernel"\nbasis = "scaled"\nsource = "mine"\nspread = 0.2\n'
    'columns = [{ name = "share", unit = "1", meaning = "share" }]\nsources = 1\nboards = 3\nmodels = 2\n'
    "[coefficient_tables.rows]\nany = { share = 0.5 }\n"
)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("sources = 1", r"coefficients\[0\]: boards and models missing beside sources"),
        ("sources = 1\nboards = 1\nmodels = 0", r"coefficients\[0\]: models is 0, expected a whole number from 1"),
        ('sources = "two"', r"coefficients\[0\]\.sources: expected a whole number, found 'two'"),
        ("evidence = 1", r"coefficients\[0\]: unknown key evidence"),
    ],
)
def test_a_coefficient_with_evidence_in_part_is_refused(more: str, reason: str) -> None:
    with pytest.raises(CatalogueError, match=rf"^gpu\.toml: {reason}"):
        parse_content("gpu.toml", f"{COEFFICIENT}{more}\n".encode(), Numbers)


def test_a_row_of_a_table_has_the_evidence_of_the_table_unless_it_has_its_own() -> None:
    own = "wide = { share = 0.7, sources = 2, boards = 4, models = 5 }\n"
    (table,) = parse_content("gpu.toml", f"{TABLE}{own}".encode(), Numbers).coefficient_tables
    assert {one.name: (one.value, one.evidence) for one in table.entries()} == {
        "kernel_share": (0.5, Evidence(sources=1, boards=3, models=2)),
        "kernel_share.wide": (0.7, Evidence(sources=2, boards=4, models=5)),
    }


def test_a_row_with_evidence_in_part_is_refused() -> None:
    own = "wide = { share = 0.7, boards = 4 }\n"
    (table,) = parse_content("gpu.toml", f"{TABLE}{own}".encode(), Numbers).coefficient_tables
    with pytest.raises(ValueError, match=r"^coefficient_tables\.kernel\.rows\.wide: sources and models missing beside"):
        table.entries()


def test_a_chip_brings_the_evidence_of_its_own_coefficient(tmp_path: Path) -> None:
    text = coefficient("host_launch", "5", "us") + "sources = 2\nboards = 3\nmodels = 4\n"
    assert load_hardware(write(tmp_path, text)).coefficients["host_launch"].evidence == Evidence(
        sources=2, boards=3, models=4
    )
