"""A data file that breaks a rule is refused in one line that names file, key and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare import assert_close
from joulemap.catalog.digest import DATA
from joulemap.catalog.hardware import resolve_hardware
from joulemap.catalog.parser import MAX_FILE_BYTES, read_file
from joulemap.catalog.schema import ArchitectureFile, HardwareFile
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import Quantity
from joulemap.physics.record.reference import EnergyReference
from joulemap.system.errors import CatalogueError

SHIPPED = (DATA / "hardware" / "tpu_v4.toml").read_text()
CLASS = (DATA / "architecture" / "tpu.toml").read_text()
CLOCK = 'clock = { value = 1.05, unit = "GHz"'


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
    return text.replace(old, new)


def load(folder: Path, *, chip: str = SHIPPED, shared: str = CLASS) -> Hardware:
    """Read and resolve as the catalogue does."""
    (folder / "chip.toml").write_text(chip)
    (folder / "class.toml").write_text(shared)
    record, _ = read_file(folder / "chip.toml", HardwareFile)
    architecture, _ = read_file(folder / "class.toml", ArchitectureFile)
    return resolve_hardware(record, architecture)


def test_the_shipped_file_is_accepted(tmp_path: Path) -> None:
    assert load(tmp_path).id == "tpu_v4"


UNREADABLE = {
    "unknown key": (CLOCK, f'colour = "red"\n{CLOCK}', "quantities: unknown key colour; known: unit_count"),
    "unknown key of a number": (
        CLOCK,
        f"{CLOCK}, tolerance = 3",
        "quantities.clock: unknown key tolerance; known: value",
    ),
    "mistyped key": ("tdp = {", "tpd = {", "unknown key tpd, did you mean tdp?"),
    "missing key": ('architecture = "tpu"', "", "architecture: missing"),
    "missing source": (
        'geometry]\narray_rows = { value = 128, unit = "1", basis = "published", source = "jax_jax_src" }',
        'geometry]\narray_rows = { value = 128, unit = "1", basis = "published" }',
        "geometry.array_rows.source: missing",
    ),
    "text for a number": (CLOCK, 'clock = { value = "1.05", unit = "GHz"', "expected a number, found '1.05'"),
    "truth for a number": (CLOCK, 'clock = { value = true, unit = "GHz"', "expected a number, found True"),
    "number for a text": ('vendor = "Google"', "vendor = 3", "vendor: expected a text, found 3"),
    "duplicate key": ('vendor = "Google"', 'vendor = "Google"\nvendor = "Intel"', "duplicate key vendor at line 4"),
    "duplicate table": ("[geometry]", "[geometry]\n[geometry]", "not valid TOML"),
    "broken syntax": ("[geometry]", "[geometry", "not valid TOML"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_file_is_refused(case: str, tmp_path: Path) -> None:
    old, new, reason = UNREADABLE[case]
    with pytest.raises(CatalogueError) as caught:
        load(tmp_path, chip=changed(SHIPPED, old, new))
    assert "/chip.toml: " in str(caught.value)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


CONTRADICTORY = {
    "wrong dimension": (CLOCK, 'clock = { value = 1.05, unit = "GB"', "clock: unit 'GB' measures B, expected Hz"),
    "unknown unit": (CLOCK, 'clock = { value = 1.05, unit = "GigaHertz"', "clock: unknown unit 'GigaHertz'"),
    "unlisted source": (
        'array_columns = { value = 128, unit = "1", basis = "published", source = "jax_jax_src" }',
        'array_columns = { value = 128, unit = "1", basis = "published", source = "hearsay" }',
        r"geometry.array_columns: source 'hearsay' is not in \[sources\]",
    ),
    "unknown basis": (
        'array_columns = { value = 128, unit = "1", basis = "published"',
        'array_columns = { value = 128, unit = "1", basis = "guessed"',
        "geometry.array_columns: basis is 'guessed'",
    ),
    "half a column": (
        "array_columns = { value = 128,",
        "array_columns = { value = 127.5,",
        "geometry.array_columns: 127.5 is not a whole number",
    ),
    "peak out of reach": (
        'rate = { value = 275, unit = "TFLOPS"',
        'rate = { value = 300, unit = "TFLOPS"',
        r"peaks.bf16: 8 units x 32768 operations x 1.05 GHz = 2.753e\+14 ops/s, but the rate is 3e\+14",
    ),
    "unknown precision": ("[peaks.bf16]", "[peaks.bf17]", "peaks.bf17: unknown precision"),
}


@pytest.mark.parametrize("case", CONTRADICTORY)
def test_a_contradictory_file_is_refused(case: str, tmp_path: Path) -> None:
    old, new, reason = CONTRADICTORY[case]
    with pytest.raises(ValueError, match=reason):
        load(tmp_path, chip=changed(SHIPPED, old, new))


def test_a_source_may_not_be_empty() -> None:
    with pytest.raises(ValueError, match="every number needs a source"):
        Quantity(value=1.0, unit="W", basis="measured", source=" ")


def test_a_file_that_is_too_large_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(SHIPPED + "#" * MAX_FILE_BYTES)
    with pytest.raises(CatalogueError, match=r"chip\.toml: cannot be read: too large: longer than 1,000,000 bytes"):
        read_file(path, HardwareFile)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CatalogueError, match=r"chip\.toml: not valid TOML"):
        read_file(path, HardwareFile)


OVERRIDE = """
[[energy_overrides]]
component = "{component}"
action = "{action}"
energy_pj = 12.5
basis = "measured"
source = "a bench"
"""


def test_an_override_replaces_price_basis_and_source(tmp_path: Path) -> None:
    hardware = load(tmp_path, chip=SHIPPED + OVERRIDE.format(component="dma", action="descriptor"))
    (priced,) = (one for one in hardware.reference if one.key == ("dma", "descriptor"))
    assert_close(priced.energy_per_action_fj, 12_500.0)
    assert (priced.basis, priced.source, priced.low_fj) == ("measured", "a bench", None)


def test_an_override_of_no_action_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"energy_overrides: no such action dram\.refresh"):
        load(tmp_path, chip=SHIPPED + OVERRIDE.format(component="dram", action="refresh"))


ACTION = """
[[actions]]
category = "control"
component = "{component}"
action = "{action}"
part = "{part}"
common_category = "control"
per = "op"
role = "instruction"
energy_pj = {energy_pj}
scaling = "logic"
low_pj = 1
high_pj = 2
basis = "assumed"
source = "a book"
count = "n"
"""


def an_action(component: str = "new", action: str = "act", part: str = "control", energy_pj: float = 1.5) -> str:
    return ACTION.format(component=component, action=action, part=part, energy_pj=energy_pj)


def test_an_action_that_scales_needs_its_node(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"actions\.new\.act: scaling logic needs node_nm"):
        load(tmp_path, shared=CLASS + an_action())


def test_an_action_may_stand_only_once(tmp_path: Path) -> None:
    once = an_action().replace('per = "op"', 'per = "op"\nnode_nm = 7')
    with pytest.raises(ValueError, match=r"the action new\.act is listed twice"):
        load(tmp_path, shared=CLASS + once + once)


@pytest.mark.parametrize(("part", "energy_pj"), [("magic", 1.5), ("control", -1.5)])
def test_an_action_needs_a_known_part_and_a_price_that_is_not_negative(
    part: str, energy_pj: float, tmp_path: Path
) -> None:
    once = an_action(part=part, energy_pj=energy_pj).replace('per = "op"', 'per = "op"\nnode_nm = 7')
    with pytest.raises(ValueError, match=r"part|energy_per_action_fj"):
        load(tmp_path, shared=CLASS + once)


def test_positions_in_a_reference_are_rows(tmp_path: Path) -> None:
    reference: EnergyReference = load(tmp_path).reference
    for row, one in enumerate(reference):
        assert reference.position(one.key) == row
    assert reference.position(("dram", "refresh")) is None
