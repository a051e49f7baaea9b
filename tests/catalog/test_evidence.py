"""Measured energies in, and the evidence behind predicted ones: boundaries, idle power that was subtracted, counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest

from compare import assert_close
from conftest import Run
from joulemap.catalog.chip import list_architectures
from joulemap.catalog.error_scale import load_doubt
from joulemap.catalog.measurement import check_single, find_boundary
from joulemap.catalog.sheet import load_models
from joulemap.physics.interval.error_scale import OWN_LEVEL
from joulemap.physics.interval.scale import CLASS_LEVEL, Subject, find_least
from joulemap.plan.catalogue import known_hardware
from joulemap.system.errors import ExitCode
from joulemap.workspace import Workspace

SINGLE: Final = {
    "hardware": "l4", "model": "resnet18", "precision": "fp16", "batch": "1", "runtime": "graph", "latency_s": "0.002",
    "energy_j": "0.05", "boundary": "board", "source": "mine",
}  # fmt: skip

SERVED: Final = {
    "source": "mine", "hardware": "h100_sxm5", "model": "meta-llama/Llama-3.1-8B-Instruct", "scope": "request",
    "prompt_tokens": "100", "output_tokens": "100", "energy_per_output_token_j": "0.5", "power_boundary": "board",
}  # fmt: skip


def read_single(**changes: str) -> Any:
    return check_single({**SINGLE, **changes}, known_hardware(), load_models())


WRONG: Final = {
    "no boundary": ({"boundary": ""}, "energy_j is given without a boundary, expected chip, board, system"),
    "unknown boundary": ({"boundary": "shelf"}, "boundary is 'shelf', expected chip, board, system"),
    "unknown idle": ({"idle_power_w": "net"}, "idle_power_w is 'net', expected the idle power in W"),
    "idle of nothing": ({"energy_j": "", "idle_power_w": "9"}, "idle_power_w is given without energy_j"),
    "no unit": ({"energy": "0.05"}, "energy has no unit in its name, expected energy_j"),
    "energy of a system without a time": ({"boundary": "system", "latency_s": ""}, "needs latency_s or throughput"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_energy_is_one_clear_line(case: str) -> None:
    changes, reason = WRONG[case]
    with pytest.raises(ValueError, match=f"^[^\n]*{re.escape(reason)}[^\n]*$"):
        read_single(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"power_boundary": ""},
        {"power_boundary": "shelf"},
        {"idle_power_w": "unknown"},
        {"energy_per_output_token_j": "", "power_w": "9", "idle_power_w": "5"},
    ],
)
@pytest.mark.wings
def test_so_is_that_of_a_served_model(changes: dict[str, str]) -> None:
    from joulemap.wing.llm.row import check_measured

    with pytest.raises(Exception, match=r"^[^\n]*power[^\n]*$"):
        check_measured({**SERVED, **changes}, known_hardware())


def test_a_scope_may_end_with_its_boundary() -> None:
    told = ("board", "streaming, board", "supply rail of the chip", "package", "Wall")
    assert [find_boundary(one) for one in told] == [
        "board", "board", "chip", "board", "system",
    ]  # fmt: skip
    assert find_boundary("MLPerf Inference, offline") == find_boundary("") == ""


def test_energy_of_a_system_is_power_at_the_wall_of_each_device() -> None:
    # 0.05 J in 2 ms are 25 W; of 2 batches of 4 a second 0.1 W; over two devices half
    assert_close(read_single(boundary="system").wall_power_w, 25.0)
    row = read_single(boundary="wall", latency_s="", throughput_per_s="8", batch="4", device_count="2")
    assert_close(row.wall_power_w, 0.05)
    assert (row.energy_j, row.power_w, row.boundary) == (None, None, "")
    assert_close(read_single(boundary="system", power_w="90", device_count="3").wall_power_w, 30.0)


@pytest.mark.slow
def test_what_was_subtracted_from_a_measurement_is_subtracted_from_its_prediction(tmp_path: Path) -> None:
    """Net energy is E - idle x t; its error is the time's, and the power's as much larger as the power is."""
    workspace = Workspace(tmp_path / "own.duckdb")
    path = tmp_path / "mine.csv"
    rows = [SINGLE | {"idle_power_w": ""}, SINGLE | {"idle_power_w": "10", "source": "mine, net"}]
    path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in map(dict, rows))]) + "\n")
    path.write_text(path.read_text().replace("mine, net", "net"))
    assert workspace.import_measurements(path) == (2, 0)
    (evidence,) = workspace.energy_evidence("l4", source="mine")
    assert (evidence.architecture, evidence.boundary, evidence.measurement_count, evidence.net_count) == (
        "gpu", "board", 1, 0,
    )  # fmt: skip
    workspace.energy_evidence("l4", source="net")
    (gross, time_s), (net, _) = workspace.sql(
        "SELECT e.predicted, r.interval_s FROM energy_errors AS e JOIN runs AS r ON r.run_id = e.run_id "
        "WHERE e.source IN ('mine', 'net') ORDER BY e.source"
    )
    assert_close(net, gross - 10.0 * time_s)
    ((wide, narrow, power),) = workspace.sql(
        "SELECT max(e.half_width), min(e.half_width), any_value(u.power_half_width) FROM energy_errors AS e "
        "JOIN run_uncertainty AS u ON u.run_id = e.run_id WHERE e.source IN ('mine', 'net')"
    )
    assert_close(wide**2 - narrow**2, power**2 * ((gross / net) ** 2 - 1.0))


@pytest.mark.slow
def test_a_wall_power_is_held_out_unless_its_source_gave_the_surroundings(tmp_path: Path) -> None:
    """The growth and the host of a server of cards were fitted to wall powers of MLPerf Inference."""
    workspace = Workspace(tmp_path / "own.duckdb")
    path = tmp_path / "mine.csv"
    rows = [
        SINGLE | {"idle_power_w": "", "boundary": "system", "source": name} for name in ("mine", "MLPerf Inference x")
    ]
    path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")
    workspace.import_measurements(path)
    for source, count in (("mine", 1), ("MLPerf Inference x", 0)):
        (evidence,) = workspace.energy_evidence("l4", source=source)
        assert (evidence.boundary, evidence.measurement_count, evidence.held_out_count) == ("system", 1, count)


def test_the_evidence_on_the_command_line(joulemap: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{','.join(SINGLE)}\n{','.join(SINGLE.values())}\n")
    database = ("--db", str(tmp_path / "own.duckdb"))
    assert joulemap("measurements", "import", str(path), *database).returncode == ExitCode.OK
    done = joulemap("validate", "--evidence", "--hardware", "l4", "--source", "mine", *database)
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.startswith("measured energies: 1 on gpu; 1 of them held out\n")


def test_floors_are_of_each_class_that_has_measured_powers() -> None:
    floors = load_doubt().floors
    assert {(one.architecture, one.evidence) for one in floors} >= {("gpu", "own"), ("gpu", "class"), ("cpu", "class")}
    others = [one for one in floors if (one.architecture, one.evidence) == ("cpu", "class")]
    small, large = sorted(others, key=lambda one: one.most_ops_per_s)
    assert small.half_width.value > large.half_width.value


def test_a_calibrated_chip_of_every_class_has_a_floor() -> None:
    floors = load_doubt().floors
    for architecture in list_architectures():
        subject = Subject(
            work="model", architecture=architecture, runtime="engine", precision="int8", hardware="", ops_per_s=1e14
        )
        assert_close(find_least(floors, subject, OWN_LEVEL), 0.08)
        assert find_least(floors, subject, CLASS_LEVEL - 1) == 0.0
