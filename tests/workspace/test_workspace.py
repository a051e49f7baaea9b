from __future__ import annotations

import ast
import lzma
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path, PurePath
from typing import Any

import duckdb
import pytest

import joulemap
from compare import assert_close
from joulemap.ask.hardware_file import template_text
from joulemap.catalog.chip import _read_class
from joulemap.catalog.digest import DATA, catalogue_digest
from joulemap.catalog.load import load_catalogue
from joulemap.construct import model as build_model
from joulemap.domain.catalogue import HardwareEntry
from joulemap.domain.settings import Limits, Settings
from joulemap.plan.catalogue import find_catalogue, known_hardware
from joulemap.plan.run import plan_runs
from joulemap.question import Question
from joulemap.store.connection import _create
from joulemap.store.template import Template, find_template
from joulemap.system.errors import UnknownNameError, UnsupportedError, UsageError
from joulemap.system.resource import package_version
from joulemap.workspace import Workspace
from tools.stub import METHODS, find_stub

DEFAULT = ("xeon_8490h", "h100_sxm5", "tpu_v4", "rtx_4090")


@pytest.fixture
def untraceable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any tracing fail, so that a test proves that none happens."""

    def refuse(request: object) -> None:
        raise AssertionError(f"traced {request}")

    monkeypatch.setattr(build_model, "trace_request", refuse)


def test_the_same_question_is_stored_once_and_needs_no_trace(own_database: Path, untraceable: None) -> None:
    workspace = Workspace(own_database)
    first = workspace.compare("resnet18")
    assert workspace.compare("resnet18").scope.run_ids == first.scope.run_ids
    other = workspace.compare("resnet18", precision="int8")
    assert not set(other.scope.run_ids) & set(first.scope.run_ids)


def test_a_precision_that_a_target_lacks_is_a_row_beside_the_others(database: Path, untraceable: None) -> None:
    rows = {row.hardware: row for row in Workspace(database).compare("resnet18", precision="fp16").rows}
    assert rows["tpu_v4"].status == "unsupported"
    assert rows["tpu_v4"].reason == "tpu_v4 has no fp16; it has fp32, bf16, int8"
    assert rows["tpu_v4"].energy_j is None
    assert all(rows[name].status == "ok" for name in DEFAULT if name != "tpu_v4")


def test_a_precision_that_no_target_has_is_an_error(own_database: Path, untraceable: None) -> None:
    with pytest.raises(UnsupportedError, match="tpu_v4 has no fp8"):
        Workspace(own_database).compare("resnet18", hardware=["tpu_v4", "kpu_t256"], precision="fp8")


def test_ratios_are_relative_to_the_baseline(database: Path) -> None:
    rows = {row.hardware: row for row in Workspace(database).compare("resnet18", baseline="tpu_v4").rows}
    assert rows["tpu_v4"].ratio == 1.0
    gpu, tpu = rows["h100_sxm5"], rows["tpu_v4"]
    assert gpu.energy_j and tpu.energy_j and gpu.ratio
    assert_close(gpu.ratio, gpu.energy_j / tpu.energy_j)
    first = Workspace(database).compare("resnet18", hardware=["h100_sxm5", "tpu_v4"])
    assert {row.baseline_hardware for row in first.rows} == {"tpu_v4"}  # the least energy


def test_hardware_is_chosen_by_name_by_class_or_both(database: Path, untraceable: None) -> None:
    workspace = Workspace(database)
    of_both = {"h100_sxm5", "xeon_8490h"}
    assert {row.hardware for row in workspace.compare("resnet18", architecture=["gpu", "cpu"]).rows} == of_both
    whole = {one.id for one in load_catalogue().hardware.values() if one.architecture in ("kpu", "cgra")}
    assert (
        {row.hardware for row in workspace.compare("resnet18", hardware=["KPUs", "cgras"]).rows} == whole > {"kpu_t256"}
    )
    with pytest.raises(UnknownNameError, match="unknown architecture 'quantum'; known: cgra, cpu, dpu, dsp"):
        workspace.compare("resnet18", architecture=["quantum"])
    twice = workspace.compare("resnet18", hardware=["tpu_v4", "xeon_8490h", "tpu_v4"])
    assert [row.baseline_hardware for row in twice.rows] == ["tpu_v4", "tpu_v4"]
    with pytest.raises(UsageError, match="no hardware is one of tpu_v4 and of architecture cpu"):
        workspace.compare("resnet18", hardware=["tpu_v4"], architecture=["cpu"])
    with pytest.raises(UnknownNameError, match="did you mean h100_sxm5"):
        workspace.compare("resnet18", hardware=["h100_sxm4"])


def test_every_level_adds_up_to_the_femtojoule(database: Path) -> None:
    connection = duckdb.connect(str(database), read_only=True)
    for view, key in (("subgraph_results", "subgraph_index"), ("operator_results", "operator_index")):
        worst = connection.execute(
            f"""
            SELECT max(abs(v.energy_j - e.energy_fj / 1e15)) FROM {view} AS v
            JOIN (SELECT run_id, {key}, sum(energy_fj) AS energy_fj FROM internal.ledger_line GROUP BY ALL) AS e
            USING (run_id, {key})
            """
        ).fetchall()
        assert worst == [(0.0,)]
    rows = connection.execute(
        "SELECT r.energy_j, sum(l.line_energy_j) FROM energy_ledger AS l JOIN runs AS r USING (run_id) GROUP BY ALL"
    ).fetchall()
    assert rows
    for stored, summed in rows:
        assert isinstance(summed, Decimal)
        assert float(summed) == stored
    parts = connection.execute(
        """
        SELECT max(abs(energy_j - (compute_energy_j + memory_energy_j + control_energy_j + static_energy_j)) / energy_j)
        FROM subgraph_results
        """
    ).fetchall()
    assert parts[0][0] < 1e-14


@pytest.mark.parametrize("batch", [0, -1, 10**7])
def test_a_batch_out_of_range_is_refused(batch: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"batch is {batch}, expected"):
        Workspace(tmp_path / "x.duckdb").compare("resnet18", batch=batch)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_path_of_the_library_is_the_name_that_it_writes(tmp_path: Path, untraceable: None) -> None:
    chip = tmp_path / "mine.toml"
    chip.write_text(template_text("l4", ""))
    paths: Any = (PurePath("resnet18"), [chip])
    (row,) = Workspace(tmp_path / "x.duckdb").compare(paths[0], hardware=paths[1], precision="bf16").rows
    assert row.hardware == "my_l4"


def test_values_of_the_wrong_type_are_refused(database: Path) -> None:
    workspace: Any = Workspace(database)
    with pytest.raises(UsageError, match="run_id is '1'"):
        workspace.run("1")
    with pytest.raises(UsageError, match="arguments is"):
        workspace.compare("mlp", arguments=("width=8",))
    with pytest.raises(UsageError, match="max_latency_s is True"):
        Limits(max_latency_s=True)


@pytest.mark.slow
def test_a_changed_file_never_rewrites_old_answers(
    own_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.toml"
    text = (DATA / "hardware" / "h100_sxm5.toml").read_text().replace('id = "h100_sxm5"', 'id = "mine"')
    text = re.sub("^aliases = .*$", "", text, flags=re.MULTILINE)
    path.write_text(text)
    monkeypatch.setenv("JOULEMAP_HARDWARE", str(path))
    workspace = Workspace(own_database)
    before = workspace.compare("resnet18", hardware=["mine"], calibration="none")
    assert workspace.compare("resnet18", hardware=["mine"], calibration="none").scope.run_ids == before.scope.run_ids
    bandwidth = "memory_bandwidth = { value = 3350,"
    assert bandwidth in text
    slower = re.sub(r"(memory_bus_width|memory_data_rate) = .*", "", text)
    path.write_text(slower.replace(bandwidth, "memory_bandwidth = { value = 1675,"))
    after = workspace.compare("resnet18", hardware=["mine"], calibration="none")
    assert after.scope.run_ids != before.scope.run_ids
    stored = workspace.sql(f"SELECT energy_j FROM runs WHERE run_id = {before.scope.run_ids[0]}").rows
    assert stored == ((before.rows[0].energy_j,),)
    facts = workspace.sql(
        "SELECT value, max(is_current) FROM hardware_facts WHERE hardware = 'mine' AND quantity = 'memory_bandwidth' "
        "GROUP BY value ORDER BY value"
    ).rows
    assert facts == ((3.35e12 / 2, True), (3.35e12, False))


@pytest.mark.slow
def test_a_users_program_runs_as_type_checked(own_database: Path) -> None:
    program = Path(__file__).parents[1] / "support" / "user_program.py"
    command = [sys.executable, str(program), str(own_database)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=own_database.parent)
    hardware, energy, difference, speedup = done.stdout.split()
    assert hardware in DEFAULT
    assert float(energy) > 0.0
    assert int(difference) != 0
    assert 1.0 < float(speedup) <= 2.0


def spell_names(parameters: Iterable[str]) -> list[str]:
    return [name for name in parameters if name not in ("self", "source", "database", "keywords")]


@pytest.mark.wings
def test_a_question_is_a_method_as_its_stub_and_its_declaration_say() -> None:
    stub = ast.parse(find_stub(METHODS).read_text(encoding="utf-8")).body[-1]
    assert isinstance(stub, ast.ClassDef)
    told = {one.name: one for one in reversed(stub.body) if isinstance(one, ast.FunctionDef)}
    questions = {name: one for name, one in vars(Workspace).items() if isinstance(one, Question)}
    assert set(questions) == set(told)
    for name, question in questions.items():
        method = getattr(Workspace, name)
        declared = getattr(import_module(question.home), name)
        assert (method.__name__, method.__doc__) == (name, declared.__doc__)
        seen = signature(method)
        assert spell_names(seen.parameters) == spell_names(signature(declared).parameters)
        assert list(seen.parameters) == [one.arg for one in ast.walk(told[name].args) if isinstance(one, ast.arg)]
        assert seen.return_annotation == ast.unparse(told[name].returns or ast.Constant(None))


def test_a_function_of_the_package_is_its_question() -> None:
    for name in ("compare", "plot", "export", "run", "sql"):
        method, function = signature(getattr(Workspace, name)), getattr(joulemap, name)
        assert function is getattr(joulemap, name)
        assert list(signature(function).parameters.values()) == list(method.parameters.values())[1:]
    assert not hasattr(joulemap, "migrate")


def test_a_first_comparison_finds_its_hardware_in_the_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    monkeypatch.setattr("joulemap.plan.evaluate.write_hardware", lambda _, fresh, *rest: written.extend(fresh))
    Workspace(tmp_path / "new.duckdb").compare("gemm(m=8,n=8,k=8)")
    assert written == []


@pytest.mark.slow
def test_a_template_that_another_process_removed_is_found_or_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, own, entries = find_catalogue(), tmp_path / "own.duckdb", known_hardware()
    assert made is not None
    make = cache(lambda _: Template(Path(shutil.copyfile(made, own)), entries))
    monkeypatch.setattr("joulemap.plan.catalogue._make_template", make)
    assert find_catalogue() == own
    own.unlink()
    Workspace(tmp_path / "new.duckdb").compare("gemm(m=8,n=8,k=8)")
    assert own.exists()
    _create(tmp_path / "other.duckdb", tmp_path / "no.duckdb")  # removed after it was found
    assert Workspace(tmp_path / "other.duckdb").compare("gemm(m=8,n=8,k=8)").rows


def test_a_first_answer_needs_no_other_template_than_that_of_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> dict[str, HardwareEntry]:
        pytest.fail("the catalogue was stored anew")

    made = find_catalogue()
    assert made is not None
    asked = catalogue_digest(), package_version("joulemap"), refuse
    shipped = tmp_path / "wheel"
    shipped.mkdir()
    (shipped / f"{made.name}.xz").write_bytes(lzma.compress(made.read_bytes(), preset=0))
    (shipped / f"{made.stem}.json").write_bytes(made.with_suffix(".json").read_bytes())
    monkeypatch.setattr("joulemap.store.template.SHIPPED", shipped)
    monkeypatch.setenv("JOULEMAP_CACHE", str(tmp_path / "cache"))
    copied = find_template(*asked)
    assert copied is not None
    assert copied.path.parent == tmp_path / "cache"
    assert copied.path.read_bytes() == made.read_bytes()
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("JOULEMAP_CACHE", str(tmp_path / "blocked"))
    there = find_template(*asked)
    assert there is not None
    assert there.path.read_bytes() == made.read_bytes()
    assert there.entries == copied.entries
    (shipped / f"{made.name}.xz").write_bytes(b"damaged")
    assert find_template(*asked) is None


def test_a_plan_counts_the_runs_that_it_has() -> None:
    asked = Settings(
        hardware=("tpu_v4", "h100_sxm5"), precision=("bf16", "int8"), runtime=("fused", "eager"), batch=(1, 8)
    )
    plan = plan_runs(("resnet18", "vgg13"), asked)
    assert plan.run_count == len(plan.models) * len(plan.runs("")) == 2 * 2 * 2 * 2 * 2


def test_the_file_of_a_class_is_read_once() -> None:
    load_catalogue()
    assert _read_class.cache_info().misses == _read_class.cache_info().currsize
