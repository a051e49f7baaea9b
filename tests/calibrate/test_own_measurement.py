"""Measurements of own models on own hardware are scored and fitted as any other; a row that cannot be is counted."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conftest import Run
from joulemap.plan.catalogue import writing
from joulemap.plan.source import Source
from joulemap.plan.workload import split_measured
from joulemap.system.errors import ExitCode
from joulemap.workspace import Workspace

FILE = """
import torch


def mlp(width: int = 32):
    return torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 16))


def own():
    return torch.nn.Linear(64, 8), torch.zeros(1, 64)
"""

HEAD = "hardware,model,precision,batch,runtime,latency_s,source\n"


@pytest.fixture
def folder(joulemap: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of models and one of a chip that joins the catalogue."""
    (tmp_path / "m.py").write_text(FILE)
    text = joulemap("hardware", "template", "--like", "epyc_9654").stdout
    (tmp_path / "this.toml").write_text(re.sub(r'^id = ".*"$', 'id = "thisbox"', text, flags=re.MULTILINE))
    return tmp_path


def test_names_as_measurements_have_them() -> None:
    assert split_measured("./m.py:mlp(1x128:fp32)") == ("./m.py:mlp", {}, ("1x128:fp32",))
    assert split_measured("./m.py:net(width=8, ids=1x4:int64)") == ("./m.py:net", {"width": "8"}, ("ids=1x4:int64",))
    assert split_measured("./m.py:net(width=8)") == ("./m.py:net", {"width": "8"}, ())
    assert split_measured("resnet18(1x3x64x64:fp32)") == ("resnet18", {}, ("1x3x64x64:fp32",))
    for name in ("resnet18", "gemm(m=1,n=2,k=3)", "llama-3.1-8b(cached=2048)", "./m.py:lm(tokens=4, cached=8)", "x()"):
        assert split_measured(name) is None


@pytest.mark.slow
def test_an_own_measurement_is_scored_and_fitted(joulemap: Run, folder: Path) -> None:
    for words in (("./m.py:mlp", "--input", "1,64"), ("./m.py:mlp", "--input", "8,64", "--model-arg", "width=48")):
        done = joulemap("measure", *words, "--hardware", "./this.toml", "--seconds", "0.1")
        assert done.returncode == ExitCode.OK, done.stderr
    done = joulemap("validate", "--hardware", "thisbox", "--by", "model", "--format", "json")
    text = done.stdout
    assert done.returncode == ExitCode.OK, done.stderr
    assert "./m.py:mlp(1x64:fp32)" in text
    assert "./m.py:mlp(width=48, 8x64:fp32)" in text
    done = joulemap("calibrate", "./this.toml", "--dry-run", "--format", "json")
    assert done.returncode == ExitCode.OK, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["measurement_count"], answer["left_out"]) == (2, [])


@pytest.mark.slow
@pytest.mark.wings
def test_rows_that_cannot_be_scored_are_counted(joulemap: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rows.csv").write_text(
        HEAD
        + "thisbox,./gone.py:mlp,fp32,1,eager,0.001,x\n"
        + 'thisbox,"./m.py:mlp(1x100:fp32)",fp32,1,eager,0.001,x\n'
        + 'thisbox,"./m.py:mlp(1x64:fp32)",fp32,1,eager,0.001,x\n'
        + "thisbox,./m.py:own,fp32,1,eager,0.001,x\n"
        + 'thisbox,"./m.py:mlp(what is this)",fp32,1,eager,0.001,x\n'
        + "thisbox,resnet18,fp32,1,eager,0.03,x\n"
    )
    own = {"JOULEMAP_HARDWARE": str(folder / "this.toml")}
    assert joulemap("measurements", "import", "rows.csv", variables=own).returncode == ExitCode.OK
    done = joulemap("validate", "--hardware", "thisbox", variables=own)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "left out: 3 rows of ./m.py:mlp(1x100:fp32), ./m.py:mlp(1x64:fp32), ./m.py:own" in " ".join(
        done.stdout.split()
    )
    trusted = joulemap("validate", "--hardware", "thisbox", variables={**own, "JOULEMAP_TRUST": "1"})
    told = " ".join(trusted.stdout.split())
    assert trusted.returncode == ExitCode.OK, trusted.stderr
    assert "not scored: 1 row of ./gone.py:mlp: there is no file" in told
    assert "not scored: 1 row of ./m.py:mlp(1x100:fp32)" in told
    assert "not scored: 1 row of ./m.py:mlp(what is this)" in told
    fitted = joulemap("calibrate", "thisbox", "--dry-run", "--format", "json", variables={**own, "JOULEMAP_TRUST": "1"})
    assert fitted.returncode == ExitCode.OK, fitted.stderr
    answer = json.loads(fitted.stdout)
    assert answer["measurement_count"] == 3
    assert len(answer["left_out"]) == 3


@pytest.mark.slow
def test_a_run_at_other_inputs_is_no_prediction_of_a_measurement(joulemap: Run, tmp_path: Path) -> None:
    """ResNet-18 at 64 x 64 is not what was measured at 224 x 224, though it goes by the same name."""
    asked = ("resnet18", "h200_sxm", "--precision", "bf16", "--runtime", "graph", "--batch", "1")
    (tmp_path / "rows.csv").write_text(HEAD + "h200_sxm,resnet18,bf16,1,graph,0.0009,mine\n")
    assert joulemap("measurements", "import", "rows.csv").returncode == ExitCode.OK
    assert joulemap("compare", *asked).returncode == ExitCode.OK
    assert joulemap("compare", *asked, "--input", "1,3,64,64").returncode == ExitCode.OK
    rows = Workspace(tmp_path / "joulemap.duckdb").sql(
        "SELECT DISTINCT w.input_spec FROM scored_measurements AS s JOIN runs AS r ON r.run_id = s.run_id "
        "JOIN internal.workload AS w ON w.workload_id = r.workload_id WHERE s.source = 'mine'"
    )
    assert rows.rows == (("1x3x224x224:fp32 batch=1",),)


@pytest.mark.slow
def test_rows_imported_under_an_older_catalogue_are_scored(tmp_path: Path) -> None:
    file, database = tmp_path / "rows.csv", tmp_path / "r.duckdb"
    file.write_text(HEAD + "l4,resnet18,int8,3,engine,0.001,mine\n")
    workspace = Workspace(database)
    workspace.import_measurements(file)
    with writing(Source(path=database)) as connection:
        connection.execute("UPDATE internal.catalogue_entry SET catalogue_digest = 'older'")
    assert [row.measurement_count for row in workspace.validate(source="mine")] == [1]
