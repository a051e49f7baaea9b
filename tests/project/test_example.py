"""Every example of help, README and docs, run in order on one database."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from command import run_here
from example import PAGES, ROOT, list_examples, prepare
from joulemap.workspace import Workspace

DATABASE = "joulemap.duckdb"

ASKED_ELSEWHERE = ("validate --by source", "calibrate h200_sxm --dry-run")
"""Examples that take a minute each: test_validation scores by source, and test_calibrate fits the same measurements."""


def test_what_a_shell_would_take_away_is_left() -> None:
    """A `$name` between double quotes is a variable of the shell."""
    for example in list_examples():
        named = [word.partition("=")[0] for flag, word in pairwise(example.words) if flag == "-p"]
        if example.words[0] == "sql" and "--file" not in example.words:
            assert all(f"${name}" in example.words[1] for name in named), example.line


@pytest.mark.slow
@pytest.mark.long
def test_every_example_answers_in_order(tmp_path: Path) -> None:
    """Those of help and README; `make examples` runs those of docs too, and each in a process of its own."""
    script = [sys.executable, str(ROOT / "benchmarks" / "examples.py"), "--together", "--folder", str(tmp_path)]
    for line in ASKED_ELSEWHERE:
        script += ["--without", line]
    done = subprocess.run(script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert Workspace(tmp_path / DATABASE).check().findings.rows == ()


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "report"], ids=lambda page: page.stem)
def test_python_on_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """That of the page about reports reads a file which a browser saves, others the runs of a first command."""
    prepare(tmp_path)
    pytestconfig.addinivalue_line("markers", "joules: the mark of a plugin that a page shows")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOULEMAP_DB", str(tmp_path / DATABASE))
    known: dict[str, object] = {"__name__": page.stem}
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    if any(DATABASE in block for block in blocks):
        assert run_here(["compare", "resnet18"], tmp_path, {}).returncode == 0
    for block in blocks:
        exec(compile(block, f"{page.stem}.md", "exec"), known)
