"""Shards that somebody else made: their footers run nothing, and what is not joulemap's is refused in one line."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import Run
from joulemap.wing.explore.lake.database import survey
from joulemap.wing.explore.lake.fill import fill
from joulemap.wing.explore.lake.footer import FooterError, parse_footer
from joulemap.workspace import Workspace
from pond import Cell, evaluate_cell, forge, name_content

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shard of a hundred points in a lake; copied by each test."""
    lake = tmp_path_factory.mktemp("footer") / "lake"
    fill(lake, [Cell(0)], evaluate_cell)
    return lake


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "lake"))


def find(lake: Path) -> Path:
    (shard,) = lake.glob("*/*.parquet")
    return shard


def vary(**values: Any) -> Change:
    return lambda about: about["varied"][0].update(values)


def put(**values: Any) -> Change:
    return lambda about: about.update(values)


WRITES = "set_clock_hz FROM (SELECT 1) AS p; COPY (SELECT 42) TO '{mark}'; CREATE VIEW other AS SELECT p.run_id"
READS = "run_id, (SELECT content FROM read_text('{mark}')) AS set_x"

FOOTERS: dict[str, Change] = {
    "unknown key": put(more=1),
    "another format": put(format=99),
    "format of another type": put(format="1"),
    "no points": put(point_count=0),
    "negative points": put(point_count=-1),
    "points that are not there": put(point_count=99),
    "too many points": put(point_count=2**40),
    "more refused than points": put(refused_count=101),
    "another question": put(question="0" * 32),
    "varied is not a list": put(varied={}),
    "fixed has another type": lambda about: about["fixed"].update(batch="2"),
    "fixed has an unknown column": lambda about: about["fixed"].update(more=2),
    "fixed is of another class": lambda about: about["fixed"].update(architecture="gpu"),
    "a column twice": lambda about: about["varied"].append(about["varied"][0]),
    "a column that is not there": lambda about: about["varied"].append(
        {"name": "tdp", "column": "set_tdp_w", "unit": "W", "low": 1.0, "high": 2.0}
    ),
    "a column of another name": vary(column="set_tdp_w"),
    "a column that is no constant's": vary(column="latency_fs"),
    "a name in braces": vary(name="{told}"),
    "not finite": vary(low=float("nan")),
    "a workload that lacks a key": lambda about: about["workloads"][0].pop("model"),
    "hardware with another": lambda about: about["hardware"][0].update(more=""),
    "a setting that nobody has": lambda about: about["hardware"][0].update(matmul_precision="none"),
    "a boundary that nobody has": lambda about: about["hardware"][0].update(boundary="none"),
    "no key": lambda about: about.pop("units"),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("change", FOOTERS.values(), ids=list(FOOTERS))
def test_a_footer_that_joulemap_does_not_write_is_refused(lake: Path, change: Change) -> None:
    shard = forge(find(lake), change)
    found = survey(lake)
    assert ([one.path for one, _ in found.damaged], found.shards) == ([shard], ())


@pytest.mark.sample(1)
@pytest.mark.parametrize("change", FOOTERS.values(), ids=list(FOOTERS))
def test_commands_tell_of_such_a_footer_and_leave_it_out(lake: Path, change: Change, joulemap: Run) -> None:
    shard = forge(find(lake), change)
    done = joulemap("sql", "SELECT count(*) FROM points", "--db", lake, "-f", "csv")
    assert (done.returncode, done.stdout.split()[1], str(shard) in done.stderr) == (0, "0", True)
    assert joulemap("lake", "check", lake).returncode == 6


def test_a_lake_of_whole_systems_is_read(lake: Path, joulemap: Run) -> None:
    forge(find(lake), lambda about: about["hardware"][0].update(boundary="system", hardware_digest="new"))
    stored = "SELECT priced_at, boundary FROM internal.hardware_version WHERE hardware_digest = 'new'"
    done = joulemap("sql", stored, "--db", lake, "-f", "csv")
    assert (done.returncode, done.stdout.splitlines()[1:], done.stderr) == (0, ["board,system"], "")


def test_a_footer_with_a_key_twice_or_unknown_is_refused_as_files_of_the_catalogue_are() -> None:
    with pytest.raises(FooterError, match="the key 'format' occurs twice"):
        parse_footer('{"format": 1, "format": 2}')
    with pytest.raises(FooterError, match="its footer: unknown key formt, did you mean format"):
        parse_footer('{"formt": 1}')


@pytest.mark.sample(3)
@pytest.mark.parametrize("column", [WRITES, READS, 'set_"quoted', "set_ä", "", "set_" + "x" * 100_000])
def test_a_column_of_a_footer_runs_no_statement(lake: Path, column: str, joulemap: Run) -> None:
    mark = lake / "mark"
    forge(find(lake), vary(column=column.replace("{mark}", str(mark))))
    done = joulemap("sql", "SELECT count(*) FROM runs", "--db", lake, "-f", "csv")
    assert (done.returncode, done.stdout.split()[1], mark.exists()) == (0, "0", False)
    assert len(done.stderr.splitlines()) == 1


def test_the_engine_reaches_nothing_but_shards_while_a_lake_is_opened(
    lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where a name were trusted: the statement that it makes is refused."""
    from joulemap.wing.explore.lake import database as module

    mark = lake.parent / "mark"
    mark.write_text("secret")
    views = module._views
    told = f"SELECT content FROM read_text('{mark}');"
    monkeypatch.setattr(module, "_views", lambda *given: told + views(*given))
    with pytest.raises(Exception, match="disabled by configuration"):
        Workspace(lake).sql("SELECT 1")


def test_a_statement_reads_no_other_file_of_a_lake(lake: Path, joulemap: Run) -> None:
    other = lake / "other.csv"
    other.write_text("a\n1\n")
    for more in ((), ("-f", "parquet", "-o", str(lake / "out.parquet"))):
        assert joulemap("sql", f"SELECT * FROM read_csv('{other}')", "--db", lake, *more).returncode == 8


def test_rows_are_saved_to_the_one_file_that_is_named(lake: Path, joulemap: Run) -> None:
    out = lake.parent / "out.parquet"
    assert joulemap("sql", "SELECT * FROM runs", "--db", lake, "-f", "parquet", "-o", out).returncode == 0
    assert out.stat().st_size > 0


@pytest.mark.parametrize("text", ["[]", "{", "null", '"x"', "[" * 100_000, '{"format": 1}', ""])
def test_a_text_that_is_no_footer_is_refused(text: str) -> None:
    with pytest.raises(FooterError):
        parse_footer(text)


def drop(name: str) -> Callable[[Any], Any]:
    return lambda table: table.drop_columns([name])


def replace(name: str, value: Any) -> Callable[[Any], Any]:
    def alter(table: Any) -> Any:
        import pyarrow as pa

        column = table.column(name).to_pylist()
        column[1] = value
        return table.set_column(table.column_names.index(name), name, pa.array(column, table.schema.field(name).type))

    return alter


def change_type(name: str) -> Callable[[Any], Any]:
    def alter(table: Any) -> Any:
        import pyarrow as pa

        texts = pa.array([str(one) for one in table.column(name).to_pylist()])
        return table.set_column(table.column_names.index(name), name, texts)

    return alter


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "alter",
    [drop("latency_fs"), drop("set_clock_hz"), drop("batch"), change_type("energy_fj"), change_type("set_clock_hz"),
     lambda table: table.slice(0, 99), lambda table: table.append_column("more", table.column("energy_fj"))],
    ids=["no latency", "no constant", "no batch", "text", "constant as text", "a row less", "a column more"],
)  # fmt: skip
def test_a_shard_with_other_columns_is_left_out(lake: Path, alter: Callable[[Any], Any]) -> None:
    shard = forge(find(lake), alter=alter)
    assert [one.path for one, _ in survey(lake).damaged] == [shard]
    assert Workspace(lake).sql("SELECT count(*) FROM points").rows == ((0,),)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "alter",
    [replace("energy_fj", 5), replace("latency_fs", -1), replace("latency_fs", None), replace("set_clock_hz", 5.0),
     replace("model", "other"), replace("refusal", "no"), replace("moved_bytes", None), replace("dram_bytes", 1e999)],
    ids=["energy", "negative", "no latency", "question", "fixed", "refused", "whole", "infinite"],
)  # fmt: skip
def test_a_check_reads_every_row(lake: Path, alter: Callable[[Any], Any], request: pytest.FixtureRequest) -> None:
    table: list[str] = []

    def see(rows: Any) -> Any:
        table.extend(rows.column_names)
        return alter(rows) if request.node.callspec.id != "whole" else rows

    forge(find(lake), alter=see)
    found = survey(lake, is_thorough=True)
    assert (len(found.shards), len(found.damaged)) == ((1, 0) if request.node.callspec.id == "whole" else (0, 1))


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def put_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def put_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def put_noise(path: Path) -> None:
    path.unlink()
    name_content(path, b"PAR1 this is none PAR1")


@pytest.mark.sample(1)
@pytest.mark.parametrize("put_there", [put_pipe, put_link, put_loop, put_folder, put_noise])
def test_what_is_no_shard_under_the_name_of_one_is_told(
    lake: Path, put_there: Callable[[Path], None], joulemap: Run
) -> None:
    put_there(find(lake))
    done = joulemap("sql", "SELECT count(*) FROM points", "--db", lake, "-f", "csv")
    assert (done.returncode, done.stdout.split()[1], len(done.stderr.splitlines())) == (0, "0", 1)
    assert joulemap("lake", "check", lake).returncode == 6
    assert json.loads(joulemap("lake", "clean", lake, "-f", "json").stdout)["shards"][0]["state"] == "damaged"
    filled = fill(lake, [Cell(0)], evaluate_cell) if put_there is not put_folder else None
    assert filled is None or Workspace(lake).sql("SELECT count(*) FROM points").rows == ((100,),)


@pytest.mark.parametrize("put_there", [put_pipe, put_link, put_loop, put_folder])
def test_what_is_no_file_as_the_mark_of_a_lake_is_told(
    lake: Path, put_there: Callable[[Path], None], joulemap: Run
) -> None:
    put_there(lake / "joulemap-lake.json")
    done = joulemap("lake", "list", lake)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_what_a_killed_process_left_is_garbage_at_once(lake: Path, joulemap: Run) -> None:
    """A file of this machine that nobody holds a lock on; one that is held is under work."""
    host = "".join(filter(str.isalnum, socket.gethostname()))[:20]
    left, held = (find(lake).with_name(f".{digit * 32}.{host}-1-aa.part") for digit in "01")
    left.write_bytes(b"12345")
    with held.open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        gone = json.loads(joulemap("lake", "clean", lake, "--remove", "-f", "json").stdout)
    assert (gone["removed_count"], left.exists(), held.exists()) == (1, False, True)


def test_a_disk_that_is_full_is_told_in_one_line(tmp_path: Path, joulemap: Run) -> None:
    import resource

    asked = ("explore", "resnet18", "--like", "tpu_v4", "--random", "200")
    kept = ("--lake", tmp_path / "lake", "--db", tmp_path / "runs.duckdb")
    whole = joulemap(*asked, *kept)
    assert whole.returncode == 0, whole.stderr
    shutil.rmtree(tmp_path / "lake")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        done = joulemap(*asked, *kept)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (done.returncode, len(done.stderr.splitlines())) == (5, 1), done.stderr
    assert list((tmp_path / "lake").glob("*/.*")) == []
