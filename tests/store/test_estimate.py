"""Measured operators, imported and scored in bulk: by hand, against single evaluations, and as rows of a database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Run
from joulemap.domain.operator.name import ARGUMENTS
from joulemap.system.errors import CatalogueError, ExitCode, NoMeasurementError
from joulemap.workspace import Workspace

HEADER = "hardware,model,precision,batch,runtime,latency_s,energy_j,boundary,source\n"


def stored(folder: Path, *lines: str) -> Workspace:
    workspace = Workspace(folder / "own.duckdb")
    path = folder / "mine.csv"
    path.write_text(HEADER + "\n".join(lines))
    workspace.import_measurements(path)
    return workspace


def test_another_spelling_is_the_same_measurement(tmp_path: Path) -> None:
    workspace = stored(tmp_path, 'T4,"gemm(m=8,n=64,k=32)",fp16,1,graph,0.001,,,ours')
    path = tmp_path / "again.csv"
    path.write_text(HEADER + 'T4,"GEMM( n=64, m=8, k=32, bias=false )",fp16,1,graph,0.001,,,ours\n')
    assert workspace.import_measurements(path) == (0, 1)
    rows = workspace.measurements("T4", "gemm(k=32,n=64,m=8)").records()
    assert [row["model"] for row in rows] == ["gemm(m=8,n=64,k=32)"]
    assert workspace.measurements("T4", "GEMM").records() == rows


def test_a_wrong_operator_is_named_and_nothing_is_stored(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"line 3: gemm needs k: write gemm\(m=128,n=4096,k=4096\)"):
        stored(
            tmp_path,
            'T4,"gemm(m=8,n=64,k=32)",fp16,1,graph,0.001,,,ours',
            'T4,"gemm(m=8,n=64)",fp16,1,graph,0.001,,,ours',
        )
    assert not (tmp_path / "own.duckdb").exists()
    with pytest.raises(CatalogueError, match="line 2: unknown model 'gemm'"):
        stored(tmp_path, "T4,gemm,fp16,1,graph,0.001,,,ours")


@pytest.mark.slow
def test_what_cannot_run_has_no_score(tmp_path: Path) -> None:
    large = "gemm(m=1,n=1048576,k=65536)"
    workspace = stored(
        tmp_path,
        'l4,"gemm(m=8,n=64,k=32)",fp16,1,graph,0.001,,,ours',
        f'l4,"{large}",fp16,1,graph,0.001,,,ours',
        f'l4,"gemm(m={2**48},n={2**48},k=1)",fp16,1,graph,0.001,,,ours',
    )
    (row,) = workspace.validate("l4", source="ours").records()
    assert row["measurement_count"] == 1
    rows = workspace.sql("SELECT model, refusal FROM estimates WHERE refusal IS NOT NULL").rows
    assert rows == ((large, "l4 has 24 GB of memory; this configuration needs 137.4 GB"),)
    with pytest.raises(NoMeasurementError, match="no measurement of l4 and nobody"):
        workspace.validate("l4", source="nobody")


def test_sql_knows_every_kind(tmp_path: Path) -> None:
    workspace = stored(tmp_path, 'l4,"gemm(m=8,n=64,k=32)",fp16,1,graph,0.001,,,ours')
    names = [f"{kind}(" for kind in ARGUMENTS] + ["resnet18", "gemm", "my_gemm(m=1)"]
    listed = ", ".join(f"operator_kind('{name}')" for name in names)
    assert workspace.sql(f"SELECT {listed}").rows == ((*ARGUMENTS, "", "", ""),)


def test_the_library_has_the_record_of_an_operator(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workload = workspace.workload("conv2d(kernel=3,channels_in=4,channels_out=8,size=9)", batch=2)
    assert (workload.model, workload.mac_count) == (
        "conv2d(channels_in=4,channels_out=8,size=9,kernel=3)",
        2 * 7 * 7 * 8 * 4 * 9,
    )
    assert workload.key.torch_version == ""
    (row,) = workspace.operators(workload.model, batch=2).records()
    assert (row["operation"], row["mac_count"], row["weight_bytes"]) == ("conv2d", workload.mac_count, 4 * 8 * 4 * 9)


def test_operators_on_the_command_line(joulemap: Run) -> None:
    name = "gemm(m=64,n=256,k=128)"
    done = joulemap("compare", name, "--hardware", "h200_sxm,l4", "--precision", "bf16", "--batch", "1,4",
                    "--runtime", "graph", "--format", "json")  # fmt: skip
    assert done.returncode == ExitCode.OK, done.stderr
    assert "gemm(m=64,n=256,k=128)" in done.stdout
    shown = joulemap("model", "show", name, "--batch", "4", "--format", "json")
    assert json.loads(shown.stdout)["mac_count"] == 4 * 64 * 256 * 128
    named = joulemap("model", "show", "gemm", "--model-arg", "m=64", "--model-arg", "n=256", "--model-arg", "k=128",
                     "--batch", "4", "--format", "json")  # fmt: skip
    assert named.stdout == shown.stdout
    wrong = joulemap("compare", "gemm(m=64,n=256)", "--hardware", "l4")
    assert (wrong.returncode, wrong.stdout) == (ExitCode.USAGE, "")
    assert wrong.stderr == "joulemap: gemm needs k: write gemm(m=128,n=4096,k=4096)\n"
    given = joulemap("compare", name, "--hardware", "l4", "--input", "1,3")
    assert given.returncode == ExitCode.USAGE
    assert given.stderr == "joulemap: gemm takes no --input: its sizes are its arguments\n"
