"""Scope of a question: the same whether its runs are planned or named, and known after its connection is closed."""

from __future__ import annotations

import pickle
from pathlib import Path

from joulemap.ask.scope import Scope
from joulemap.store.connection import reading
from joulemap.workspace import Workspace
from layers import loaded_after

CHIPS = ("l4", "tpu_v4", "coral_edge_tpu")


def test_runs_named_by_ids_have_the_scope_of_their_question(workspace: Workspace) -> None:
    answer = workspace.compare(
        "resnet18", hardware=CHIPS, precision=("fp32", "bf16", "int8"), batch=8, runtime=("fused", "engine")
    )
    asked = answer.scope.data()
    with reading(workspace.path) as connection:
        scope = Scope.of_runs(connection, answer.scope.run_ids)
        scope.read()
    named = scope.data()
    assert asked == named
    assert asked["precisions"] == ("fp32", "bf16", "int8") and asked["runtimes"] == ("fused", "engine")
    assert len(scope.run_ids) == 3 * 3 * 2
    assert {*scope.evaluated_ids, *scope.refused} == {*scope.run_ids}
    assert scope.evaluated_ids == answer.scope.evaluated_ids and scope.refusals


def test_an_answer_can_be_copied(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=CHIPS, precision="int8")
    copy = pickle.loads(pickle.dumps(answer))
    assert copy == answer == workspace.compare("resnet18", hardware=CHIPS, precision="int8")
    assert copy.document().data == answer.document().data


def test_an_answer_prints_in_a_process_that_asked_nothing(workspace: Workspace, tmp_path: Path) -> None:
    """Such as one that got it from a pool of workers."""
    answer = workspace.compare("resnet18", hardware=CHIPS, precision="int8")
    (tmp_path / "answer").write_bytes(pickle.dumps(answer))
    loaded = loaded_after("import pickle, pathlib\nstr(pickle.loads(pathlib.Path('answer').read_bytes()))", tmp_path)
    assert "joulemap.show.compare" in loaded and "joulemap.workspace" not in loaded


def test_a_part_of_a_scope_knows_its_own_runs_alone(workspace: Workspace) -> None:
    scope = workspace.compare("resnet18", hardware=CHIPS, precision="int8").scope
    kept = [run_id for run_id, one in scope.outlines.items() if one.hardware != "l4"]
    part = scope.part(kept)
    assert part.run_ids == tuple(kept) and part.hardware == ("coral_edge_tpu", "tpu_v4")
    assert scope.part(scope.run_ids).reading is scope.reading  # nothing is read again
    assert part.selection is scope.selection
    assert part.doubts == {name: width for name, width in scope.doubts.items() if name != "l4"}
