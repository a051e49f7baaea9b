"""An interval of other formulas or error scales is never served, and no run is evaluated to renew it."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import attrs
import duckdb
import pytest

import joulemap
from joulemap.catalog.error_scale import FOLDER
from joulemap.physics.interval import half_width
from joulemap.physics.interval.half_width import Errors, HalfWidths, Spent
from joulemap.plan import catalogue, evaluate, reader
from joulemap.plan.version import INTERVAL_INPUTS, INTERVALS, formula_version, interval_version, list_interval_code
from joulemap.system import resource
from joulemap.system.errors import DatabaseError
from joulemap.system.resource import list_code, read_code
from joulemap.workspace import Workspace

PACKAGE = Path(joulemap.__file__).parent
ASKED = "SELECT hardware, latency_half_width, energy_half_width FROM run_uncertainty ORDER BY ALL"
READ = "SELECT run_id, energy_j, content_digest FROM runs JOIN internal.run USING (run_id) ORDER BY ALL"


def test_all_error_scales_are_in_the_version() -> None:
    assert {PACKAGE / name for name in INTERVAL_INPUTS if name.endswith(".csv")} == set(FOLDER.glob("*.csv"))


def test_no_formula_of_a_run_reads_an_interval() -> None:
    intervals = set(list_code(INTERVALS))
    for name, path in list_code("physics").items():
        if name in intervals:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [f"{node.module}.{one.name}" for one in node.names] if isinstance(node, ast.ImportFrom) else []
            assert not any(one.startswith("joulemap.physics.interval") for one in names), name


@pytest.mark.wings
def test_formulas_and_error_scales_change_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "joulemap"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "zoo", "profile"))
    monkeypatch.setattr(resource, "_PACKAGE", package)

    def read() -> str:
        return read_code(*list_interval_code())

    before = read()
    assert before == interval_version()
    for name, more in (
        ("physics/interval/half_width.py", "\nMORE = 2\n"),
        ("physics/interval/error_scale.py", "\nFULL_GROUPS = 3.0\n"),
        ("store/total.py", "\nMORE = 2\n"),
        ("wing/train/error_scale.py", "\nMORE = 2\n"),
        ("catalog/data/doubt/scale.csv", "latency,0,,,,,,1,1,1\n"),
    ):
        kept = (package / name).read_text()
        (package / name).write_text(kept + more)
        assert read() != before, name
        (package / name).write_text(kept)
    (package / "physics" / "kernel.py").write_text("MORE = 2\n")
    assert read() == before


def widen(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Make intervals twice as wide, as a change of their formulas does."""
    combine = half_width.combine_errors

    def double(latency: Errors, power: Errors, spent: Spent) -> HalfWidths:
        found = combine(latency, power, spent)
        return HalfWidths(**{name: 2.0 * width for name, width in attrs.asdict(found).items()})

    monkeypatch.setattr(half_width, "combine_errors", double)
    for module in (catalogue, reader):
        monkeypatch.setattr(module, "interval_version", lambda: version)


@pytest.mark.parametrize("asks", ["sql", "compare"])
@pytest.mark.slow
def test_intervals_of_stored_runs_follow_their_formulas(
    own_database: Path, monkeypatch: pytest.MonkeyPatch, asks: str
) -> None:
    workspace = Workspace(own_database)
    workspace.compare("resnet18", hardware="l4,tpu_v4", precision="int8")
    before = list(workspace.sql(ASKED))
    energies = list(workspace.sql(READ))
    widen(monkeypatch, "another")
    monkeypatch.setattr(evaluate, "_evaluate", None)  # an evaluation would fail
    if asks == "compare":
        workspace.compare("resnet18", hardware="l4,tpu_v4", precision="int8")
    after = list(workspace.sql(ASKED))
    assert [name for name, *_ in after] == [name for name, *_ in before]
    assert [[2.0 * one for one in widths] for _, *widths in before] == [list(widths) for _, *widths in after]
    assert list(workspace.sql(READ)) == energies
    with duckdb.connect(str(own_database), read_only=True) as connection:
        assert connection.execute("SELECT version FROM internal.interval_version").fetchall() == [("another",)]


def test_a_database_that_cannot_be_renewed_serves_no_old_interval(
    own_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(own_database)
    widen(monkeypatch, "another")

    def refuse(*_: object) -> None:
        raise DatabaseError("it cannot be written")

    monkeypatch.setattr(catalogue, "writing", refuse)
    with pytest.raises(DatabaseError, match="cannot be written"):
        workspace.sql(ASKED)


def test_runs_and_intervals_have_versions_of_their_own() -> None:
    assert len({interval_version(), formula_version("gpu"), formula_version("cpu")}) == 3
