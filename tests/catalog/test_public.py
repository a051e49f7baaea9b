"""Public tables of measurements: what ships, read without a database; imported by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compare import assert_close
from conftest import Run
from joulemap.catalog.family import list_members
from joulemap.catalog.measurement import load_measurements
from joulemap.catalog.public import PREFIX, PublicTable, find_public_table, load_public_tables
from joulemap.catalog.sheet import load_models
from joulemap.domain.operator.name import is_operator, spell
from joulemap.physics.record.configuration import PRECISION_BYTES
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.plan.catalogue import known_hardware
from joulemap.system.errors import ExitCode, UnknownNameError
from joulemap.workspace import Workspace

SMALL = "mamf_ceilings"


def table(name: str) -> PublicTable:
    entry = find_public_table(PREFIX + name)
    assert entry is not None
    return entry


FRAMEWORKS = table("neural_compressor_doubtful")

SINGLE = sorted(name for name, one in load_public_tables().items() if one.is_single)
"""Tables of single runs."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SINGLE)
def test_a_table_says_where_it_is_from_and_what_it_is(name: str) -> None:
    one = table(name)
    assert one.address == f"public:{name}"
    assert one.title and one.conditions and one.licence
    assert re.search(r"commits? [0-9a-f]{7}| [0-9.]+ on PyPI|https://docs\.", one.source)
    assert one.runtime in RUNTIME_NAMES
    rows, models = one.read(), load_models()
    assert len(set(rows)) == len(rows) > 0
    assert set(one.seen) <= {row.hardware.partition("@")[0] for row in rows}
    for row in rows:
        assert spell(row.model) == row.model
        assert is_operator(row.model) or row.model in models or row.model.startswith("train(")
        assert row.hardware.partition("@")[0] in {*known_hardware(), *list_members()}
        assert row.precision in PRECISION_BYTES
        seconds = row.batch / row.throughput_per_s if row.throughput_per_s else row.latency_s
        assert seconds is not None and 1e-7 < seconds < 100.0
        assert row.conditions.startswith(one.conditions)
    told = {row.conditions.removeprefix(one.conditions).removeprefix("; ") for row in rows}
    assert told - {""} == set(one.condition.values())


def test_rows_are_those_of_their_sources() -> None:
    rows = {row.model: row for row in table(SMALL).read() if row.hardware == "h100_sxm5" and row.precision == "bf16"}
    one = rows["gemm(m=2048,n=2048,k=13312)"]  # 794.5 TFLOP/s
    assert_close(one.latency_s, 2 * 2048 * 2048 * 13312 / 794.5e12, rel=1e-6)
    power = {(row.hardware, row.model): row for row in table("aic_gemm_power").read()}
    drawn = power["b200_sxm", "gemm(m=1,n=51200,k=65536)"]  # 1.075193 ms, 706.6 W
    assert_close(drawn.latency_s, 1.075193e-3, rel=1e-6)
    assert_close(drawn.energy_j, 1.075193e-3 * 706.6, rel=1e-6)


def test_a_locked_clock_is_the_mode_that_a_row_was_measured_at() -> None:
    assert {row.hardware for row in table("energaizer").read()} == {"a100_pcie_40gb@900MHz"}


def test_energy_of_a_step_under_a_power_limit_is_that_of_its_epoch() -> None:
    rows = {(row.hardware, row.batch): row for row in table("zeus_power_limits").read()}
    one = rows["a40@200W", 128]  # an epoch of 1,281,167 images: 3992.39 s, 715,541 J
    assert_close(one.latency_s, 3992.39 * 128 / 1_281_167, rel=1e-5)
    assert_close(one.energy_j, 715_541 * 128 / 1_281_167, rel=1e-5)
    assert_close((one.energy_j or 0.0) / (one.latency_s or 1.0), 179.2, rel=1e-3)
    assert {name.partition("@")[0] for name, _ in rows} == {"a40", "v100_pcie_32gb"}


def test_they_are_in_no_database_before_they_are_asked_for(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    ships = len(set(load_measurements()))
    assert len(workspace.measurements()) == ships
    rows = table(SMALL).read()
    assert workspace.import_measurements(PREFIX + SMALL) == (len(rows), 0)
    assert workspace.import_measurements(PREFIX + SMALL) == (0, len(rows))
    assert len(workspace.measurements()) == ships + len(rows)


def test_an_unknown_table_is_one_line(joulemap: Run) -> None:
    with pytest.raises(UnknownNameError, match="did you mean neusight"):
        find_public_table("public:neusigt")
    done = joulemap("measurements", "import", "public:mamf")
    assert done.returncode == ExitCode.UNKNOWN_NAME
    assert "unknown public table 'mamf'" in done.stderr
    assert find_public_table("mine.csv") is None


def test_an_import_says_why_a_table_is_doubtful(joulemap: Run) -> None:
    done = joulemap("measurements", "import", "public:llmservingsim_doubtful")
    assert done.returncode == 0
    assert done.stdout == "public:llmservingsim_doubtful: 20 measurements stored, 0 already present\n"
    assert done.stderr.count("\n") == 1 and done.stderr.endswith(f"{table('llmservingsim_doubtful').doubt}\n")
    assert joulemap("measurements", "import", f"public:{SMALL}").stderr == ""


def test_rates_of_frameworks_on_a_xeon_are_those_of_their_source() -> None:
    rows = {(row.model, row.precision, row.conditions.rpartition("; ")[2]): row for row in FRAMEWORKS.read()}
    assert len(rows) == 38 and {row.hardware for row in rows.values()} == {"xeon_8480"}
    # of two variants in ONNX Runtime, 1,574.38 and 1,564.15 samples a second of 14 processes
    assert rows["resnet50", "int8", "ONNX Runtime 1.18.1"].throughput_per_s == 1574.38
    assert rows["resnet18", "fp32", "PyTorch 2.3.0, quantized after training"].throughput_per_s == 602.47


def test_tables_are_listed_with_their_rows(tmp_path: Path) -> None:
    listed = {row.name: row for row in Workspace(tmp_path / "new.duckdb").measurement_tables()}
    assert listed.keys() == {one.address for one in load_public_tables().values()}
    assert listed["public:mamf_ceilings"].measurement_count == 18 and not listed["public:mamf_ceilings"].doubt
    assert listed["public:neusight_doubtful"].measurement_count == 1374 and listed["public:neusight_doubtful"].doubt
