"""What nobody should type or hand over, and does: one line, the right exit code, and nothing lost."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command import run_here
from conftest import Run
from joulemap.cli.voice import write_error
from joulemap.show.present.text import COLOUR
from joulemap.system.errors import ExitCode, SqlError
from joulemap.workspace import Workspace

LONG = "x" * 300
NOT_TEXT = "x\udcff"
DIGITS = "9" * 5000
NESTED = "[" * 100_000
HEAD = "hardware,model,precision,batch,runtime,source,latency_s\n"
QUERY = (
    '/*\nname = {name}\nversion = 1\nschema = 1\nsummary = "s"\ngrain = "one row"\norder = []\n'
    '[columns]\na = {{ type = "INTEGER", meaning = "m" }}\n*/\nSELECT 1 AS a\n'
)

COMMANDS: dict[str, tuple[ExitCode, tuple[str, ...]]] = {
    "extensions": (ExitCode.SQL, ("sql", "UPDATE EXTENSIONS")),
    "long hardware": (ExitCode.CATALOGUE, ("compare", "resnet18", "--hardware", f"{LONG}.toml")),
    "long hardware to check": (ExitCode.CATALOGUE, ("hardware", "check", f"{LONG}.toml")),
    "long statement file": (ExitCode.USAGE, ("sql", "--file", LONG)),
    "long output": (ExitCode.USAGE, ("sql", "SELECT 1", "-o", LONG)),
    "long export": (ExitCode.USAGE, ("db", "export", LONG)),
    "long recover": (ExitCode.DATABASE, ("db", "recover", LONG)),
    "long import": (ExitCode.CATALOGUE, ("db", "import", LONG)),
    "long measurements": (ExitCode.CATALOGUE, ("measurements", "import", f"{LONG}.csv")),
    "long calibration": (ExitCode.CATALOGUE, ("compare", "resnet18", "--calibration", f"./{LONG}.toml")),
    "long queries": (ExitCode.USAGE, ("query", "list", "--queries", LONG)),
    "long run id": (ExitCode.USAGE, ("query", "run", "edp.distribution", "-p", f"run_id={DIGITS}")),
    "long batch": (ExitCode.USAGE, ("compare", "resnet18", "--batch", DIGITS)),
    "long power": (ExitCode.USAGE, ("recommend", "resnet18", "--max-power", DIGITS)),
    "long price": (ExitCode.USAGE, ("cost", "resnet18", "--site", f"electricity={DIGITS}")),
    "long weights": (ExitCode.USAGE, ("compare", "resnet18", "--weight-precision", f"int4:{DIGITS}")),
    "dots without end": (ExitCode.USAGE, ("sweep", "resnet18", "--batch", "1,2,3,...,1000000000")),
    "many by dots": (ExitCode.USAGE, ("sweep", "resnet18", "--batch", "1,2,3,...,1000000")),
    "digits of another script": (ExitCode.USAGE, ("sql", "SELECT 1", "--limit", "\u0663")),
    "parted digits": (ExitCode.USAGE, ("sql", "SELECT 1", "--timeout", "1_0")),
    "parted digits of a batch": (ExitCode.USAGE, ("compare", "resnet18", "--batch", "1_0")),
    "parted digits with a unit": (ExitCode.USAGE, ("recommend", "resnet18", "--max-latency", "1_0ms")),
    "parted digits of a change": (ExitCode.USAGE, ("compare", "resnet18", "l4", "--set", "tdp=x1_0")),
    "parted digits of a run": (ExitCode.USAGE, ("query", "run", "edp.distribution", "-p", "run_id=1_0")),
    "bytes in a statement": (ExitCode.USAGE, ("sql", f"SELECT '{NOT_TEXT}'")),
    "bytes in a comment": (ExitCode.USAGE, ("sql", f"SELECT 1 -- {NOT_TEXT}")),
    "bytes in a parameter": (ExitCode.USAGE, ("sql", "SELECT $a", "-p", f"a={NOT_TEXT}")),
    "bytes in a model": (ExitCode.USAGE, ("compare", NOT_TEXT)),
    "bytes in an output": (ExitCode.USAGE, ("sql", "SELECT 1", "-f", "parquet", "-o", NOT_TEXT)),
    "deep statement": (ExitCode.SQL, ("sql", f"SELECT {'(' * 50_000}1{')' * 50_000}")),
    "carbon of a grid without any": (
        ExitCode.USAGE,
        ("pareto", "mlp", "--x", "carbon", "--site", "grid-gco2-per-kwh=0"),
    ),
    "a lifetime of ages": (ExitCode.USAGE, ("cost", "mlp", "--site", "lifetime=1e300")),
    "nul": (ExitCode.SQL, ("sql", "SELECT 1 AS a \0, 2 AS b")),
}


@pytest.mark.parametrize("case", COMMANDS)
@pytest.mark.sample(14)
def test_a_command_that_cannot_be_meant_is_one_line(case: str, joulemap: Run, own_database: Path) -> None:
    code, arguments = COMMANDS[case]
    done = joulemap(*arguments, variables={"JOULEMAP_DB": str(own_database)})
    assert (done.returncode, done.stdout) == (code, ""), done.stderr[:300]
    assert done.stderr.startswith("joulemap: ")
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 2_100
    assert "internal error" not in done.stderr


@pytest.mark.parametrize("variable", ["JOULEMAP_DB", "JOULEMAP_HARDWARE", "JOULEMAP_QUERIES", "JOULEMAP_CALIBRATION"])
def test_a_variable_that_is_no_text_is_named(variable: str, joulemap: Run) -> None:
    done = joulemap("hardware", "list", variables={variable: NOT_TEXT})
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith(f"joulemap: {variable} is not UTF-8 text")


FILES: dict[str, tuple[ExitCode, str, str | bytes, tuple[str, ...]]] = {
    "nested toml": (ExitCode.CATALOGUE, "a.toml", f"id = {NESTED}", ("hardware", "check")),
    "digits in toml": (ExitCode.CATALOGUE, "a.toml", f"id = {DIGITS}", ("hardware", "check")),
    "no text in toml": (ExitCode.CATALOGUE, "a.toml", b"id = '\xff'", ("hardware", "check")),
    "nested prices": (ExitCode.USAGE, "a.toml", f"l4 = {NESTED}", ("cost", "resnet18", "--site")),
    "nested shares": (ExitCode.USAGE, "a.toml", f"mlp = {NESTED}", ("fleet", "--rate", "1/s", "--p99", "1s")),
    "nested package": (ExitCode.CATALOGUE, "a/pyproject.toml", f"project = {NESTED}", ("extend", "check")),
    "nested json": (ExitCode.CATALOGUE, "a.json", NESTED, ("measurements", "import")),
    "digits in json": (ExitCode.CATALOGUE, "a.json", f'[{{"batch": {DIGITS}}}]', ("measurements", "import")),
    "wide cell": (
        ExitCode.CATALOGUE,
        "a.csv",
        f"{HEAD}tpu_v4,resnet18,fp32,1,fused,{'x' * 131_073},0.1\n",
        ("measurements", "import"),
    ),
    "digits in csv": (
        ExitCode.CATALOGUE,
        "a.csv",
        f"{HEAD}tpu_v4,resnet18,fp32,{DIGITS},fused,s,0.1\n",
        ("measurements", "import"),
    ),
    "a price in parted digits": (
        ExitCode.USAGE,
        "a.csv",
        "hardware,usd_per_hour\nl4,1_0\n",
        ("cost", "resnet18", "--site", "price-file=a.csv", "--site"),
    ),
    "a list for a text": (
        ExitCode.CATALOGUE,
        "a.json",
        '[{"hardware": "l4", "model": "resnet18", "precision": "fp32", "batch": 1, "runtime": "fused", "source": [1], '
        '"latency_s": 1}]',
        ("measurements", "import"),
    ),
    "no text in csv": (ExitCode.CATALOGUE, "a.csv", b"\xff", ("measurements", "import")),
    "no text in sql": (ExitCode.USAGE, "a.sql", b"SELECT \xff", ("sql", "--file")),
    "noise in sql": (ExitCode.SQL, "a.sql", bytes(range(1, 128)), ("sql", "--file")),
    "too much sql": (ExitCode.USAGE, "a.sql", "SELECT 1 --".ljust(20_000_001, "x"), ("sql", "--file")),
    "table for a name": (ExitCode.SQL, "qs/t/a.v1.sql", QUERY.format(name="{}"), ("query", "list", "--queries")),
    "list for a name": (ExitCode.SQL, "qs/t/a.v1.sql", QUERY.format(name="[]"), ("query", "list", "--queries")),
    "nested header": (ExitCode.SQL, "qs/t/a.v1.sql", QUERY.format(name=NESTED), ("query", "list", "--queries")),
    "digits in a header": (ExitCode.SQL, "qs/t/a.v1.sql", QUERY.format(name=DIGITS), ("query", "list", "--queries")),
    "nested manifest": (ExitCode.CATALOGUE, "runs/manifest.json", NESTED, ("db", "import")),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_meant_is_one_line(case: str, joulemap: Run, own_database: Path, tmp_path: Path) -> None:
    code, name, content, command = FILES[case]
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    done = joulemap(*command, name.partition("/")[0], variables={"JOULEMAP_DB": str(own_database)})
    assert (done.returncode, done.stdout) == (code, ""), done.stderr[:300]
    assert done.stderr.count("\n") == 1
    assert "internal error" not in done.stderr


PLACES: dict[str, tuple[ExitCode, Callable[[str], tuple[str, ...]]]] = {
    "statement": (ExitCode.USAGE, lambda name: ("sql", "--file", name)),
    "measurements": (ExitCode.CATALOGUE, lambda name: ("measurements", "import", name)),
    "hardware": (ExitCode.CATALOGUE, lambda name: ("hardware", "check", name)),
    "calibration": (ExitCode.CATALOGUE, lambda name: ("compare", "resnet18", "--calibration", f"./{name}")),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused_without_waiting(
    kind: str, place: str, joulemap: Run, own_database: Path, tmp_path: Path
) -> None:
    code, arguments = PLACES[place]
    (tmp_path / "place.toml").mkdir() if kind == "folder" else os.mkfifo(tmp_path / "place.toml")
    done = joulemap(*arguments("place.toml"), variables={"JOULEMAP_DB": str(own_database)})
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1


def test_a_query_that_is_a_pipe_is_refused(joulemap: Run, tmp_path: Path) -> None:
    (tmp_path / "qs" / "t").mkdir(parents=True)
    os.mkfifo(tmp_path / "qs" / "t" / "a.v1.sql")
    assert joulemap("query", "list", "--queries", "qs").returncode == ExitCode.SQL


def test_a_parameter_nested_too_deep_for_json_is_a_text(joulemap: Run, database: Path) -> None:
    done = joulemap("sql", "SELECT length($a) AS n", "-p", f"a={NESTED}", "-f", "csv", "--db", database)
    assert (done.returncode, done.stdout) == (ExitCode.OK, "n\n100000\n")


def test_a_statement_of_ten_megabytes_is_answered(joulemap: Run, database: Path, tmp_path: Path) -> None:
    (tmp_path / "big.sql").write_text(f"SELECT 1 AS a /*{'x' * 10_000_000}*/")
    assert joulemap("sql", "--file", "big.sql", "-f", "csv", "--db", database).stdout == "a\n1\n"


def test_half_a_pair_in_a_statement_of_a_program_is_refused(database: Path) -> None:
    with pytest.raises(SqlError, match="not text at character 8"):
        Workspace(database).sql("SELECT '\ud800'")


def test_a_folder_whose_name_is_no_text_is_worked_in(joulemap: Run, database: Path, tmp_path: Path) -> None:
    folder = tmp_path / NOT_TEXT
    folder.mkdir()
    for form in ("json", "parquet"):
        asked = ("sql", "SELECT 1 AS one", "--db", str(database), "-f", form, "-o", "answer")
        assert run_here(asked, folder, {}).returncode == ExitCode.OK
    assert [path.name for path in folder.iterdir()] == ["answer"]


def test_a_renamed_level_is_refused_alike_everywhere(joulemap: Run, tmp_path: Path) -> None:
    text = joulemap("hardware", "template", "--like", "kpu_t256").stdout
    (tmp_path / "mine.toml").write_text(text.replace('name = "l3"', 'name = "lx"'))
    refusals = set()
    for command in (
        ("hardware", "check", "mine.toml"),
        ("hardware", "show", "./mine.toml"),
        ("compare", "resnet18", "--hardware", "./mine.toml"),
    ):
        done = joulemap(*command)
        assert done.returncode == ExitCode.CATALOGUE
        refusals.add(done.stderr)
    (refusal,) = refusals
    assert "mine.toml: memory_levels: l3 missing among" in refusal


class Terminal(io.StringIO):
    """Stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("has_colour", [True, False])
def test_a_terminal_shows_an_error_and_its_advice(*, has_colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("NO_COLOR", "" if has_colour else "1")
    write_error("unknown model 'resnet5'; did you mean resnet50?")
    plain = COLOUR.sub("", shown.getvalue())
    assert plain == "error: unknown model 'resnet5'\n  tip: did you mean resnet50?\n"
    assert (plain != shown.getvalue()) == has_colour
