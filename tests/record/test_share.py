"""Tables that people share: what they state, what is refused, and that an import takes them back."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import attrs
import pytest

from conftest import Run
from joulemap.domain.measurement import Measurement
from joulemap.plan.source import Source
from joulemap.system.errors import CatalogueError, ExitCode, NoMeasurementError, UsageError
from joulemap.wing.record.result import read_results
from joulemap.wing.record.share import Statement, share_measurements
from joulemap.workspace import Workspace

SAMPLES = Path(__file__).parents[1] / "data" / "verify"

NOTHING = dict.fromkeys(("model", "hardware", "precision", "runtime", "engine"), "") | dict.fromkeys(
    ("batch", "devices", "replicas", "passes", "prompt", "output")
)
"""Options that state nothing."""

STATED = Statement(
    power="NVML counter, board", machine="H200 at 700 W", software="driver 580, torch 2.11",
    date="2026-05-17", person="me",
)  # fmt: skip

ZEUS = NOTHING | {"hardware": "H200", "precision": "fp16", "batch": 32, "runtime": "graph", "passes": 300}


def read(text: str) -> list[dict[str, str]]:
    """Return the rows of a table."""
    return list(csv.DictReader(io.StringIO(text)))


def test_a_file_becomes_a_table_that_states_what_it_takes_to_repeat_it(tmp_path: Path) -> None:
    text = share_measurements(Source(path=tmp_path / "none.duckdb"), [SAMPLES / "zeus.csv"], ZEUS, STATED)
    (row,) = read(text)
    assert row["source"] == "me"
    assert row["boundary"] == "board"
    assert row["conditions"].startswith(
        "measured on 2026-05-17; H200 at 700 W; driver 580, torch 2.11; power: NVML counter, board; "
    )
    assert "seen" not in row
    path = tmp_path / "mine.csv"
    path.write_text(text)
    workspace = Workspace(tmp_path / "a.duckdb")
    assert workspace.import_measurements(path) == (1, 0)
    (result,) = read_results(path, NOTHING, "", pytest.fail)
    assert result.date == "2026-05-17"  # a record scores it by its own day


def test_a_served_model_keeps_its_columns_and_day() -> None:
    facts = NOTHING | {"hardware": "rtx_4090"}
    text = share_measurements(
        Source(path=Path("none.duckdb")), [SAMPLES / "llama_bench.json"], facts, attrs.evolve(STATED, power="none")
    )
    rows = read(text)
    assert {row["weight_precision"] for row in rows} == {"gguf_q4_k_m"}
    assert {row["date"][:2] for row in rows} == {"20"}
    assert all("H200 at 700 W" in row["notes"] and "power:" not in row["notes"] for row in rows)


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"power": ""}, "state how power was read"),
        ({"power": " "}, "state how power was read"),
        ({"power": "none"}, "--power must say how it was read"),
        ({"machine": ""}, "add --machine"),
        ({"software": ""}, "add --software"),
        ({"person": ""}, "add --person"),
        ({"date": ""}, "add --date"),
    ],
)
def test_a_missing_statement_is_named(changes: dict[str, str], option: str) -> None:
    with pytest.raises(UsageError, match=option):
        share_measurements(
            Source(path=Path("none.duckdb")), [SAMPLES / "zeus.csv"], ZEUS, attrs.evolve(STATED, **changes)
        )


def test_numbers_beyond_the_hardware_and_assumed_settings_are_refused(tmp_path: Path) -> None:
    source, fast = Source(path=tmp_path / "none.duckdb"), tmp_path / "zeus.csv"
    fast.write_text((SAMPLES / "zeus.csv").read_text().replace("355.3", "955.3"))
    assert fast.read_text() != (SAMPLES / "zeus.csv").read_text()
    with pytest.raises(UsageError, match="is impossible"):
        share_measurements(source, [fast], ZEUS, STATED)
    with pytest.raises(UsageError, match="does not state runtime"):
        share_measurements(source, [SAMPLES / "zeus.csv"], ZEUS | {"runtime": ""}, STATED)
    both = [SAMPLES / "trtexec.log", SAMPLES / "localscore.tsv"]
    with pytest.raises(UsageError, match="share one kind"):
        share_measurements(source, both, NOTHING | {"hardware": "rtx_3090"}, STATED)


def test_only_own_rows_of_a_database_are_shared(tmp_path: Path) -> None:
    path = tmp_path / "own.duckdb"
    workspace = Workspace(path)
    with pytest.raises(NoMeasurementError, match="does not exist"):
        share_measurements(Source(path=path), [], NOTHING, STATED)
    table = tmp_path / "rows.csv"
    own = Measurement(
        hardware="l4", model="resnet50", precision="fp16", batch=8, runtime="eager", scope="board", latency_s=0.0101,
        source="joulemap measure on NVIDIA L4", conditions="torch 2.11; NVIDIA L4",
    )  # fmt: skip
    names = ("hardware", "model", "precision", "batch", "runtime", "scope", "latency_s", "source", "conditions")
    table.write_text(",".join(names) + "\n" + ",".join(str(getattr(own, name)) for name in names) + "\n")
    workspace.import_measurements(table)
    measured = Statement(power="none", machine="", software="", date="2026-05-17", person="")
    (row,) = read(share_measurements(Source(path=path), [], NOTHING, measured))
    assert (row["hardware"], row["latency_s"], row["source"]) == ("l4", "0.0101", "joulemap measure on NVIDIA L4")
    assert row["conditions"] == "measured on 2026-05-17; torch 2.11; NVIDIA L4"
    with pytest.raises(NoMeasurementError, match="no measurements of your own"):
        share_measurements(Source(path=path), [], NOTHING, measured, served=True)


def test_the_command_writes_a_file_and_refuses_without_power(joulemap: Run, tmp_path: Path) -> None:
    sample = str(SAMPLES / "localscore.tsv")
    refused = joulemap("share", sample)
    assert refused.returncode == ExitCode.USAGE
    assert "--power" in refused.stderr
    done = joulemap(
        "share", sample, "--power", "none", "--machine", "RTX 3090", "--software", "llamafile", "--person", "me",
        "-o", str(tmp_path / "mine.csv"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row,) = read((tmp_path / "mine.csv").read_text())
    assert (row["prompt_kind"], row["date"], row["hardware"]) == ("localscore", "2025-03-19", "rtx_3090")


@pytest.mark.parametrize("date", ["5%", "2026-02-31", "2099-01-01", "2026-05"])
def test_a_stated_date_is_a_day_that_has_come(joulemap: Run, tmp_path: Path, date: str) -> None:
    with pytest.raises(UsageError, match="--date is "):
        share_measurements(
            Source(path=tmp_path / "none.duckdb"), [SAMPLES / "zeus.csv"], ZEUS, attrs.evolve(STATED, date=date)
        )
    path = tmp_path / "mine.csv"
    done = joulemap("share", str(SAMPLES / "zeus.csv"), "--power", "none", "--date", date, "-o", str(path))
    assert (done.returncode, done.stderr.count("\n")) == (ExitCode.USAGE, 1)
    assert not path.exists()


def test_a_file_dated_in_the_future_is_not_shared_nor_kept(joulemap: Run, tmp_path: Path) -> None:
    path, database = tmp_path / "llama_bench.json", tmp_path / "own.duckdb"
    path.write_text((SAMPLES / "llama_bench.json").read_text().replace("2025-", "2036-"))
    assert "2036-" in path.read_text()
    with pytest.raises(UsageError, match="rtx_4090: date is '2036-04-24', which is in the future"):
        share_measurements(
            Source(path=database), [path], NOTHING | {"hardware": "rtx_4090"}, attrs.evolve(STATED, power="none")
        )
    kept = joulemap("verify", str(path), "--hardware", "rtx_4090", "--keep", "--db", str(database))
    assert kept.returncode == ExitCode.CATALOGUE
    assert not database.exists()


def test_a_run_that_cannot_be_shared_is_told(tmp_path: Path) -> None:
    path = tmp_path / "llama_bench.json"
    first, *others = json.loads((SAMPLES / "llama_bench.json").read_text())
    path.write_text(json.dumps([first | {"avg_ts": -1.0, "avg_ns": -1.0}, first, *others]))
    notes: list[str] = []
    share_measurements(
        Source(path=tmp_path / "none.duckdb"), [path], NOTHING | {"hardware": "rtx_4090"},
        attrs.evolve(STATED, power="none"), note=notes.append,
    )  # fmt: skip
    assert len(notes) == 1
    assert f"1 of {2 + len(others)} runs of llama_bench.json left out" in notes[0]


@pytest.mark.parametrize("day", ["2026-02-31", "2099-01-01"])
def test_an_import_refuses_a_date_that_cannot_be(tmp_path: Path, day: str) -> None:
    database, table = tmp_path / "own.duckdb", tmp_path / "rows.csv"
    table.write_text(
        "hardware,model,precision,batch,runtime,latency_s,source,conditions\n"
        f"l4,resnet50,fp16,8,eager,0.0101,me,measured on {day}\n"
    )
    with pytest.raises(CatalogueError, match=f"nothing imported: resnet50 on l4: date is '{day}'"):
        Workspace(database).import_measurements(table)
    table.write_text(
        "source,hardware,model,scope,batch,inter_token_latency_s,date\n"
        f"me,rtx_4090,llama-3.1-8b,decode_step,1,0.01,{day}\n"
    )
    with pytest.raises(CatalogueError, match=f"nothing imported: llama-3.1-8b on rtx_4090: date is '{day}'"):
        Workspace(database).import_measurements(table)
    assert not database.exists()
