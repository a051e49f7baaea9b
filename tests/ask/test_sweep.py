"""Many runs in one call: the same rows as one by one, each stored once, and none lost or half there after a kill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.runtime import RuntimeName
from joulemap.plan.run import RunTally
from joulemap.store import writer
from joulemap.system.errors import DatabaseError, UnknownNameError, UsageError
from joulemap.workspace import Workspace

MODELS = ("resnet18", "mobilenet_v2")
HARDWARE = tuple({one.architecture: one.id for one in load_catalogue().hardware.values()}.values())
"""One of each class."""
BATCHES = (1, 8)
PRECISIONS: tuple[Precision, ...] = ("fp16", "int8")
RUNTIMES: tuple[RuntimeName, ...] = ("fused", "eager")
RUN_COUNT = len(MODELS) * len(HARDWARE) * len(BATCHES) * len(PRECISIONS) * len(RUNTIMES)


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Everything stored about the runs, under their keys instead of their numbers."""
    connection = duckdb.connect(str(path), read_only=True)
    tables = {
        table: connection.execute(
            "SELECT r.run_key, t.* EXCLUDE (run_id) "
            f"FROM internal.{table} AS t JOIN internal.run AS r USING (run_id) ORDER BY ALL"
        ).fetchall()
        for table in ("run_subgraph", "run_operator", "ledger_line")
    }
    tables["run"] = connection.execute(
        "SELECT r.* EXCLUDE (run_id, workload_id, created_at, content_digest), w.workload_key FROM internal.run AS r "
        "JOIN internal.workload AS w USING (workload_id) ORDER BY run_key"
    ).fetchall()
    connection.close()
    return tables


def evaluate(path: Path) -> RunTally:
    return Workspace(path).evaluate(MODELS, hardware=HARDWARE, batch=BATCHES, precision=PRECISIONS, runtime=RUNTIMES)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "swept.duckdb"
    tally = evaluate(path)
    assert tally.run_count == RUN_COUNT
    assert tally.stored_count == 0
    assert tally.refused_count > 0
    path.chmod(0o444)
    return path


@pytest.mark.slow
def test_a_sweep_stores_what_single_questions_store_to_the_last_bit(swept: Path, tmp_path: Path) -> None:
    path = tmp_path / "single.duckdb"
    workspace = Workspace(path)
    for model in MODELS:
        for batch in BATCHES:
            for precision in PRECISIONS:
                for runtime in RUNTIMES:
                    workspace.compare(model, hardware=HARDWARE, batch=batch, precision=precision, runtime=runtime)
    single, together = rows(path), rows(swept)
    for table, expected in single.items():
        assert together[table] == expected, table


@pytest.mark.sample(1)
def test_a_sweep_adds_up(swept: Path) -> None:
    assert Workspace(swept).check().findings.rows == ()


def test_the_tally_is_what_the_database_says(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "tally.duckdb")
    first = workspace.evaluate("resnet18", hardware=["h100_sxm5", "tpu_v4"])
    assert first == RunTally(stored_count=0, evaluated_count=2, refused_count=0)
    second = workspace.evaluate(["resnet18"], hardware=["tpu_v4", "h100_sxm5"], precision=["fp32", "fp16"])
    assert second == RunTally(stored_count=2, evaluated_count=1, refused_count=1)
    answer = workspace.sql("SELECT count(*), count(refusal), max(refusal) FROM internal.run")
    assert answer.rows == ((4, 1, "tpu_v4 has no fp16; it has fp32, bf16, int8"),)


def test_what_is_stored_is_only_read(swept: Path) -> None:
    before = swept.stat().st_mtime_ns
    assert evaluate(swept) == RunTally(stored_count=RUN_COUNT, evaluated_count=0, refused_count=0)
    assert swept.stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on_where_it_stopped(swept: Path, tmp_path: Path) -> None:
    path = tmp_path / "killed.duckdb"
    program = f"""
import joulemap.store.writer
from joulemap.workspace import Workspace
joulemap.store.writer.CHUNK_LINES = 10_000
talk = lambda message: print(message, flush=True)
Workspace({str(path)!r}, talk=talk).evaluate(
    {MODELS!r}, hardware={HARDWARE!r}, batch={BATCHES!r}, precision={PRECISIONS!r}, runtime={RUNTIMES!r}
)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "mobilenet_v2 at batch 1" in line:
            process.kill()
            break
    process.stdout.close()
    process.wait(timeout=60)
    workspace = Workspace(path)
    assert workspace.check().findings.rows == ()
    tally = evaluate(path)
    assert tally.run_count == RUN_COUNT
    assert tally.stored_count > 0
    assert tally.evaluated_count > 0
    assert workspace.check().findings.rows == ()
    assert rows(path) == rows(swept)


def test_a_transaction_that_fails_is_an_error_and_leaves_no_rows_and_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "full.duckdb"

    def refuse(*_arguments: object) -> None:
        raise duckdb.IOException("no space left")

    monkeypatch.setattr(writer, "insert_columns", refuse)
    with pytest.raises(DatabaseError, match="no space left"):
        Workspace(path).evaluate("resnet18", hardware=["tpu_v4"])
    other = f"import duckdb; duckdb.connect({str(path)!r}).close()"
    subprocess.run([sys.executable, "-c", other], check=True)
    monkeypatch.undo()
    assert Workspace(path).evaluate("resnet18", hardware=["tpu_v4"]).evaluated_count == 1


def test_one_model_under_two_spellings_is_evaluated_once(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text("import torch\n\n\ndef make():\n    return torch.nn.Linear(8, 4), torch.zeros(1, 8)\n")
    spellings = [f"{source}:make", f"{tmp_path}/../{tmp_path.name}/model.py:make"]
    tally = Workspace(tmp_path / "own.duckdb").evaluate(spellings, hardware=["tpu_v4", "kpu_t256"])
    assert tally == RunTally(stored_count=2, evaluated_count=2, refused_count=0)


def test_a_sweep_that_asks_for_nothing_or_for_what_is_not_there_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "none.duckdb"
    with pytest.raises(UsageError, match="name a model"):
        Workspace(path).evaluate([])
    with pytest.raises(UsageError, match="name a precision"):
        Workspace(path).evaluate(["resnet18"], precision=())
    with pytest.raises(UnknownNameError, match="resnet19"):
        Workspace(path).evaluate(["resnet18", "resnet19"])
    with pytest.raises(UsageError, match="unknown precision 'fp12'"):
        Workspace(path).evaluate(["resnet18"], precision=("fp32", "fp12"))  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="h100_sxm4"):
        Workspace(path).evaluate(["resnet18"], hardware=["h100_sxm4"])
    assert not path.exists()
