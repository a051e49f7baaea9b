"""`joulemap evidence`: numbers that move a result by a tenth, what each rests on, and what to measure next."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from conftest import Run
from joulemap.ask.constant import KNOWN, EvidenceAnswer
from joulemap.physics.interval.error_scale import MOVING, SCALED
from joulemap.system.errors import ExitCode, UnknownNameError, UnsupportedError, UsageError
from joulemap.workspace import Workspace

SERVED = "llama-3.1-8b(cached=2048,engine=vllm)"


@pytest.fixture(scope="module")
def answer(workspace: Workspace) -> EvidenceAnswer:
    return workspace.evidence("resnet18", hardware="l4")


def test_each_number_moves_the_result_by_a_tenth(answer: EvidenceAnswer, workspace: Workspace) -> None:
    assert answer.rows
    assert all(abs(row.elasticity) >= MOVING for row in answer.rows)
    moved = workspace.sensitivity("resnet18", hardware="l4", precision="bf16", metric="latency").rows
    stated = [row for row in moved if row.value != 1.0 or row.constant not in SCALED]
    expected = {row.constant: row.elasticity for row in stated if abs(row.elasticity or 0.0) >= MOVING}
    assert {row.constant: row.elasticity for row in answer.rows} == expected


def test_the_number_with_the_largest_share_leads_and_shares_are_of_all_numbers(answer: EvidenceAnswer) -> None:
    shares = [row.uncertainty_fraction or 0.0 for row in answer.rows]
    assert shares == sorted(shares, reverse=True)
    assert 0.0 < math.fsum(shares) <= 1.0 + 1e-9
    said = answer.document().answer
    assert answer.rows[0].word in said
    assert answer.known_count == sum(row.basis in KNOWN for row in answer.rows)


def test_a_precision_is_the_nearest_to_16_bits(workspace: Workspace) -> None:
    assert workspace.evidence("resnet18", hardware="hailo_8l").scope.precisions == (("int8", "int8"),)


@pytest.mark.wings
@pytest.mark.parametrize("repeated", [(), ("--precision", "bf16")])
def test_the_next_command_states_the_precision_once(answer: EvidenceAnswer, repeated: tuple[str, ...]) -> None:
    (step,) = answer.document(repeated=repeated).steps
    assert str(step).count("--precision") == 1


@pytest.mark.wings
def test_an_engine_shows_the_measurements_behind_its_numbers(workspace: Workspace) -> None:
    """The time per layer has the counts of its file, in the answer and in SQL; a run has its half-width."""
    rows = {row.constant: row for row in workspace.evidence(SERVED, hardware="h100_sxm5", runtime="engine").rows}
    layer = rows["coefficient.overhead.layer"]
    assert layer.sources == 1
    assert layer.half_width > 0.0
    assert rows["memory_bandwidth"].sources is None
    ((sources, boards, models),) = workspace.sql(
        "SELECT DISTINCT f.sources, f.boards, f.models FROM hardware_facts AS f "
        "WHERE f.hardware = 'h100_sxm5' AND f.quantity = 'coefficient.overhead.layer'"
    ).rows
    assert (sources, boards, models) == (layer.sources, layer.boards, layer.models)
    ((thin,),) = workspace.sql(
        "SELECT max(thin_half_width) FROM run_uncertainty WHERE model LIKE 'llama-3.1-8b(%' AND hardware = 'h100_sxm5'"
    ).rows
    assert thin >= layer.half_width  # of the thinnest number that launches wait for


@pytest.mark.parametrize("named", ["l4,t4", "gpus"])
def test_several_chips_are_refused(workspace: Workspace, named: str) -> None:
    with pytest.raises(UsageError, match="one chip"):
        workspace.evidence("resnet18", hardware=named)


def test_an_unknown_chip_is_one_line(joulemap: Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        Workspace(tmp_path / "none.duckdb").evidence("resnet18", hardware="no_such_chip")
    done = joulemap("evidence", "no_such_chip")
    assert done.returncode == ExitCode.UNKNOWN_NAME
    assert len(done.stderr.splitlines()) == 1


def test_a_chip_that_cannot_run_the_precision_is_refused(workspace: Workspace) -> None:
    with pytest.raises(UnsupportedError, match="hailo_8l has no fp32"):
        workspace.evidence("mobilenet_v2", hardware="hailo_8l", precision="fp32")
