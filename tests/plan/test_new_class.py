"""A new class is a module, a data file and a line in its record; then a chip of it answers like any other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import joulemap
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.plan.version import formula_version
from joulemap.system.resource import folder

PACKAGE = Path(joulemap.__file__).parent

OLD, CHIP = "cgra", "plasticine"
"""Class and chip that the new ones copy."""

ADDED = '    HardwareClass(name="photonic", chip="laser", is_design=True, is_embedded=False),\n)'

PROGRAM = """
import json
import duckdb
from joulemap.catalog.load import load_catalogue
from joulemap.domain.architecture import find_whole_class
from joulemap.domain.operator.name import find_operator
from joulemap.physics.area import Area
from joulemap.physics.interval.error_scale import find_peak
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.workload import NO_KEY
from joulemap.physics.workload import columns_of
from joulemap.plan.selection import select_hardware
from joulemap.domain.settings import Settings
from joulemap.plan.version import formula_version
from joulemap.store.migration import migrate
from joulemap.trace.single import describe

chips = [load_catalogue().find(name) for name in ("laser", "plasticine")]
operator = find_operator("gemm(m=512,n=512,k=512)")
work = columns_of(describe(operator, 1, NO_KEY))
runs = [evaluate(work, chip, Configuration(hardware=chip.id, precision="int8")) for chip in chips]
connection = duckdb.connect()
migrate(connection)
meanings = connection.execute("SELECT comment FROM duckdb_columns() WHERE comment LIKE '%dpu%cgra%'").fetchall()
print(json.dumps({
    "energies": [run.energy_fj for run in runs],
    "areas": [float(Area.of(chip).find_mm2({})[0]) for chip in chips],
    "plural": find_whole_class("photonics"),
    "chosen": [entry.id for entry, _ in select_hardware(Settings(hardware=("photonic",))).pairs],
    "peak": find_peak("photonic", "int8"),
    "meanings": [text for text, in meanings],
    "versions": {name: formula_version(name) for name in ("gpu", "cgra", "photonic")},
}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what a copy of the package with one more class tells."""
    place = tmp_path_factory.mktemp("photonic")
    package = place / "joulemap"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("schemas", "queries"):
        shutil.copytree(folder(name), package / name)
    module = package / "physics" / "architecture" / f"{OLD}.py"
    (module.parent / "photonic.py").write_text(module.read_text())
    shared = package / "catalog" / "data" / "architecture" / f"{OLD}.toml"
    (shared.parent / "photonic.toml").write_text(shared.read_text().replace(f'"{OLD}"', '"photonic"', 1))
    record = package / "domain" / "architecture.py"
    record.write_text(record.read_text().replace("\n)", f"\n{ADDED}", 1))
    chip = package / "catalog" / "data" / "hardware" / f"{CHIP}.toml"
    text = chip.read_text().replace(f'id = "{CHIP}"', 'id = "laser"').replace(f'"{OLD}"', '"photonic"')
    lines = [line for line in text.splitlines() if not line.startswith("aliases")]
    (chip.parent / "laser.toml").write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place), "JOULEMAP_CACHE": str(place / "cache")},
        check=False,
    )
    assert not done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_chip_of_a_new_class_is_evaluated_and_found(told: dict[str, Any]) -> None:
    assert told["energies"][0] == told["energies"][1]
    assert told["areas"][0] == told["areas"][1]
    assert (told["plural"], told["chosen"], told["peak"]) == ("photonic", ["laser"], "int8")


@pytest.mark.slow
def test_meanings_of_columns_list_a_new_class(told: dict[str, Any]) -> None:
    assert told["meanings"]
    assert all("photonic" in text for text in told["meanings"])


@pytest.mark.slow
def test_a_new_class_outdates_no_run_of_another(told: dict[str, Any]) -> None:
    versions = told["versions"]
    assert {name: versions[name] for name in ("gpu", OLD)} == {name: formula_version(name) for name in ("gpu", OLD)}
    assert "photonic" not in CLASS_HARDWARE
    assert len(set(versions.values())) == 3
