"""Workloads that ship: they are what the installed torch traces, at any batch that they promise."""

from __future__ import annotations

import itertools
from pathlib import Path

import attrs
import pytest

from blank import open_blank
from joulemap.bundle.workload import GROWING, SHAPES
from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.construct import model as build_model
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import Workload
from joulemap.physics.width import Widths
from joulemap.plan.model import find_outdated
from joulemap.store.connection import Connection
from joulemap.store.zoo import Shipped, read_shipped
from joulemap.system.resource import package_version
from joulemap.workspace import Workspace
from tools.zoo import write_workload

SAMPLE = ("resnet18", "attention_head", "shufflenet_v2_x0_5", "swin_t", "densenet121")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in sorted(load_models()) if name not in SAMPLE]
CLASSIFIERS = [name for name, entry in sorted(load_models().items()) if entry.task == "classification"]


def traced(name: str, batch: int) -> Workload:
    return fuse(trace_request(resolve_model(name, load_models(), batch=batch)))


def rows(connection: Connection, workload_id: int, table: str) -> list[tuple[object, ...]]:
    """Everything that a workload says in a table, whatever torch called its operators."""
    columns = [row[0] for row in connection.execute(f"DESCRIBE internal.{table}").fetchall() if row[0] != "workload_id"]
    return connection.execute(
        f"SELECT {', '.join(columns)} FROM internal.{table} WHERE workload_id = ? ORDER BY ALL", [workload_id]
    ).fetchall()


def summary(connection: Connection, workload_id: int) -> list[tuple[object, ...]]:
    """MACs and bytes of each fusion pattern."""
    return connection.execute(
        """
        SELECT s.pattern, sum(o.mac_count), sum(a.byte_count), sum(a.fused_byte_count)
        FROM internal.workload_operator AS o
        JOIN internal.workload_subgraph AS s USING (workload_id, subgraph_index)
        JOIN (
            SELECT operator_index, sum(byte_count) AS byte_count, sum(fused_byte_count) AS fused_byte_count
            FROM internal.workload_access WHERE workload_id = $id GROUP BY operator_index
        ) AS a USING (operator_index)
        WHERE o.workload_id = $id GROUP BY s.pattern ORDER BY s.pattern
        """,
        {"id": workload_id},
    ).fetchall()


def assert_shipped_is_traced(name: str, batch: int) -> None:
    if package := load_models()[name].package:
        pytest.importorskip(package)
    connection = open_blank()
    anew = write_workload(connection, traced(name, batch))
    (shipped,) = read_shipped(connection, ZOO, [Shipped(name, batch, workload_key="shipped")])
    if load_shipped()[name].torch_version == package_version("torch"):
        for table in GROWING:
            assert rows(connection, shipped, table) == rows(connection, anew, table), (name, table)
    else:  # operator lists differ between torch versions: what they add up to does not
        assert summary(connection, shipped) == summary(connection, anew), name
    whole = "SELECT parameter_count, weight_bytes, notes, batch FROM internal.workload WHERE workload_id = ?"
    assert connection.execute(whole, [shipped]).fetchall() == connection.execute(whole, [anew]).fetchall()


def test_every_model_that_can_be_traced_ships() -> None:
    models, shipped = load_models(), load_shipped()
    assert {name for name, entry in models.items() if entry.is_traceable} == set(shipped)
    assert len(shipped) >= 128
    assert sum(path.stat().st_size for path in ZOO.iterdir()) < 800_000


def test_what_ships_was_made_by_the_rules_of_today() -> None:
    assert sorted(find_outdated()) == [], "tracing, fusing or a formula has changed: `make zoo` (five minutes)"


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", [*SAMPLE, *SLOW])
def test_a_shipped_workload_is_what_the_installed_torch_traces(name: str) -> None:
    assert_shipped_is_traced(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "batch"), list(zip(CLASSIFIERS, itertools.cycle((2, 8, 32)))))
def test_a_batch_that_ships_is_what_the_installed_torch_traces(name: str, batch: int) -> None:
    if load_shipped()[name].is_affine:
        assert_shipped_is_traced(name, batch)
    else:
        assert name.startswith(("maxvit", "swin_v2")), f"{name} is not known to be special at batch 1"


@pytest.mark.slow
def test_a_shipped_model_is_answered_without_tracing_at_any_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_model, "trace_request", lambda request: pytest.fail("traced"))
    workspace = Workspace(tmp_path / "x.duckdb")
    one, many = (workspace.profile("resnet50", batch=batch).profile for batch in (1, 13))
    assert one.is_shipped
    assert many.mac_count == 13 * one.mac_count == 13 * 4_089_184_256
    assert many.weight_bytes == one.weight_bytes
    assert workspace.compare("resnet50", batch=13).rows[0].batch == 13
    assert workspace.check().findings.rows == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_what_ships_and_what_is_traced_add_up_alike(name: str) -> None:
    connection = open_blank()
    anew = write_workload(connection, traced(name, 3))
    (shipped,) = read_shipped(connection, ZOO, [Shipped(name, batch=3, workload_key="shipped")])
    assert summary(connection, shipped) == summary(connection, anew)


def test_what_ships_of_another_tracer_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from joulemap.plan import model

    monkeypatch.setattr(model, "find_outdated", lambda: {"squeezenet1_1"})
    assert not Workspace(tmp_path / "x.duckdb").profile("squeezenet1_1").profile.is_shipped


def test_a_profile_counts_what_the_shapes_say(tmp_path: Path) -> None:
    answer = Workspace(tmp_path / "x.duckdb").profile("vit_b_16")
    assert answer.profile.mac_count == 17_563_828_224
    assert answer.profile.parameter_count == 86_567_656
    assert sum(row.mac_count for row in answer.mix) == answer.profile.mac_count
    assert sum(row.mac_count for row in answer.patterns) == answer.profile.mac_count
    assert sum(row.moved_bytes for row in answer.mix) == answer.profile.moved_bytes
    assert sum(row.fused_moved_bytes for row in answer.patterns) == answer.profile.fused_moved_bytes
    attention = next(row for row in answer.patterns if row.fusion_pattern == "attention")
    assert (attention.subgraph_count, attention.mac_count) == (12, 12 * 2 * 197 * 197 * 768)


def test_the_activation_peak_is_that_of_the_columns(tmp_path: Path) -> None:
    from joulemap.physics.workload import columns_of

    profile = Workspace(tmp_path / "x.duckdb").profile("squeezenet1_1").profile
    columns = columns_of(traced("squeezenet1_1", 1))
    freed = attrs.evolve(columns, buffer_release=columns.buffer_death)
    assert profile.peak_activation_bytes == Widths(freed, "fp32").peak_activation_bytes(is_fused=False)
    assert profile.fused_peak_activation_bytes == Widths(columns, "fp32").peak_activation_bytes(is_fused=True)


def test_shapes_are_stored_where_the_zoo_looks_for_them() -> None:
    connection = open_blank()
    for table, column in SHAPES.items():
        assert column in [row[0] for row in connection.execute(f"DESCRIBE internal.{table}").fetchall()]


def test_many_are_read_as_each_alone() -> None:
    wanted = [Shipped("mlp", 3, "a"), Shipped("alexnet", 1, "b", "1x3x64x64:float32"), Shipped("mlp", 1, "c")]
    together, apart = open_blank(), open_blank()
    ids = read_shipped(together, ZOO, wanted)
    assert ids == [number for one in wanted for number in read_shipped(apart, ZOO, [one])]
    for table in (*GROWING, "workload"):
        own = "EXCLUDE (created_at, content_digest)" if table == "workload" else ""
        rows = [
            one.execute(f"SELECT * {own} FROM internal.{table} ORDER BY ALL").fetchall() for one in (together, apart)
        ]
        assert rows[0] == rows[1] != []
