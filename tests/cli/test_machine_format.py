"""What a command writes in a machine's format is one document, and nothing beside it: stdout is parsed whole."""

from __future__ import annotations

import csv
import ctypes
import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from command import run_alone
from conftest import Run
from example import FILES
from joulemap.cli.overview import list_commands
from joulemap.show.present.format import SCHEMA_VERSION
from joulemap.system.descriptor import silencing
from joulemap.system.errors import ExitCode
from tools.manual import Manual, read_manual

PAIR: Final = ("h100_sxm5", "tpu_v4")

ASKED: Final[dict[str, tuple[str, ...]]] = {
    "compare": ("resnet18", *PAIR),
    "analyze": ("resnet18", "l4"),
    "explain": ("resnet18", *PAIR),
    "pareto": ("resnet18", "--hardware", "l4,t4"),
    "recommend": ("resnet18", "--hardware", "l4,t4", "--max-latency", "50ms"),
    "cost": ("resnet18", "--hardware", "l4,t4"),
    "edp": ("resnet18", "l4"),
    "utilization": ("resnet18", "--hardware", "l4"),
    "sweep": ("resnet18", "--hardware", "l4", "--batch", "1,2"),
    "architectures": ("resnet18",),
    "calibrate": ("RTX-4090", "--precision", "fp16", "--model", "resnet50", "--dry-run"),
    "db info": (),
    "db diff": ("1", "2"),
    "db check": (),
    "diff": ("resnet18", "resnet34", "--hardware", "l4"),
    "explore": ("resnet18", "--like", "kpu_t256", "--vary", "units=16:64:*2", "--precision", "int8"),
    "fleet": ("resnet18", "l4", "--rate", "100/s", "--p99", "50ms", "--batch", "1", "--precision", "fp16"),
    "flip": ("resnet18", *PAIR),
    "fusion": ("resnet18", "l4"),
    "hardware list": (),
    "hardware show": ("l4",),
    "hardware check": ("mine.toml",),
    "llm": ("llama-3.1-8b", "--hardware", "h100_sxm5", "--batch", "1"),
    "measurements tables": (),
    "measurements list": ("--hardware", "H200", "--model", "resnet50"),
    "model list": (),
    "site": (),
    "model show": ("resnet18", "--energy", "l4"),
    "model trace": ("resnet18",),
    "place": ("resnet18", "--on", "cpu,gpu,npu", "--link", "cpu-gpu=25GB/s,cpu-npu=pcie3x4"),
    "query list": (),
    "query run": ("run.list",),
    "evidence": ("l4", "--model", "resnet18"),
    "sensitivity": ("resnet18", "l4"),
    "sql": ("SELECT run_id, hardware FROM runs ORDER BY run_id",),
    "train": ("resnet18", "--hardware", "l4", "--batch", "8"),
    "validate": ("--hardware", "RTX-4090", "--model", "resnet18"),
    "verify": ("vllm.json",),
}
"""Command -> a small question, asked in this order on one database."""

ELSEWHERE: Final = {
    "db export": "its --format is that of an archive",
    "extend check": "needs a package; tests/workspace/test_package.py",
    "hardware sanity": "as `hardware show`, in minutes",
    "lake check": "needs a lake; tests/explore/test_lake.py",
    "lake clean": "needs a lake; tests/explore/test_lake.py",
    "lake list": "needs a lake; tests/explore/test_lake.py",
    "here": "finds this machine; tests/here/test_here.py",
    "measure": "runs on this machine; tests/device/test_measure.py",
}

ANSWERED: Final = {ExitCode.OK, ExitCode.UNSUPPORTED, ExitCode.CHECK_FAILED, ExitCode.BEYOND}


def list_formatted() -> Iterator[str]:
    def inside(manual: Manual) -> Iterator[str]:
        if any("--format" in one.names for one in manual.options):
            yield manual.path.removeprefix("joulemap ")
        for one in manual.commands:
            yield from inside(one)

    for name in list_commands():
        yield from inside(read_manual(name))


def parse(form: str, text: str) -> None:
    if form == "json":
        assert isinstance(json.loads(text), dict | list)
        return
    rows = list(csv.reader(io.StringIO(text)))
    assert rows
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(set(rows[0])) == len(rows[0])
    assert all(name.replace("_", "").isalnum() for name in rows[0]), rows[0]


def prepare(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    done = run_alone(["hardware", "template", "--like", "l4"], folder, {})
    (folder / "mine.toml").write_text(done.stdout, encoding="utf-8")


@pytest.mark.wings
def test_every_command_with_a_format_is_asked() -> None:
    assert set(list_formatted()) == set(ASKED) | set(ELSEWHERE)


def check(command: str, form: str, folder: Path) -> None:
    done = run_alone([*command.split(), *ASKED[command], "--format", form], folder, {})
    assert done.returncode in ANSWERED, (command, done.stderr)
    try:
        parse(form, done.stdout)
    except (AssertionError, ValueError) as error:
        pytest.fail(f"{command} --format {form}: {error!r}: {done.stdout[:300]!r}")


LOUD_SOLVER: Final = """
import ctypes
import pathlib
import sys

import highspy


class Loud(highspy.Highs):
    def __init__(self):
        super().__init__()
        ctypes.CDLL(None).puts(b"a banner")

    def run(self):
        _, is_loud = self.getOptionValue("output_flag")
        if is_loud:
            ctypes.CDLL(None).puts(b"a log")
        pathlib.Path("solved").write_text("")
        return super().run()


highspy.Highs = Loud

from joulemap.cli.app import main

sys.argv = ["joulemap", *sys.argv[1:]]
main()
"""
"""The command line with a solver that prints to the stream of C, whatever the version of the library prints."""


@pytest.mark.slow  # 4 s: a process that imports the solver
@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.wings
def test_a_solver_that_prints_leaves_stdout_to_the_document(form: str, tmp_path: Path) -> None:
    """The search alone leaves a gap for inception_v3 on this box, so that the solver is made and runs."""
    pytest.importorskip("highspy")
    box = ("--on", "cpu,gpu,npu", "--link", "cpu-gpu=25GB/s,cpu-npu=pcie3x4")
    program = [sys.executable, "-c", LOUD_SOLVER, "place", "inception_v3", *box, "--format", form]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == ExitCode.OK, done.stderr
    assert (tmp_path / "solved").exists()
    parse(form, done.stdout)


@pytest.mark.slow
def test_stdout_is_the_document_of_every_command(tmp_path: Path) -> None:
    """As JSON and as CSV in turn, each in a process: test_cli asks every command for every format."""
    prepare(tmp_path)
    for command, form in zip(ASKED, itertools.cycle(("json", "csv"))):
        check(command, form, tmp_path)


def test_what_a_library_prints_is_discarded(capfd: pytest.CaptureFixture[str]) -> None:
    os.write(1, b"before\n")
    with silencing():
        os.write(1, b"inside\n")
        ctypes.CDLL(None).puts(b"below")
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "before\nafter\n"


LISTED: Final = (("hardware", "list"), ("sql", "SELECT 1 AS a UNION ALL SELECT 2"), ("query", "run", "run.list"))


@pytest.mark.parametrize("words", LISTED)
def test_a_table_alone_has_the_head_of_every_document_where_that_is_asked_for(
    words: tuple[str, ...], joulemap: Run, database: Path
) -> None:
    asked = (*words, "--db", str(database), "--format", "json")
    rows = json.loads(joulemap(*asked).stdout)
    whole = json.loads(joulemap(*asked, variables={"JOULEMAP_ENVELOPE": "1"}).stdout)
    assert isinstance(rows, list)
    assert whole["rows"] == rows != []
    assert (whole["schema_version"], whole["command"]) == (
        SCHEMA_VERSION,
        " ".join(words[:2] if words[0] != "sql" else words[:1]),
    )
    assert whole["program"].startswith("joulemap ")
