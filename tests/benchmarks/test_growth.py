"""A database as large as months of work make one, asked everything within a limit of memory."""

from __future__ import annotations

import resource
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "growth.py"

MOST_BYTES = 6 << 30
"""Most memory that the process may write to: compare.recommendation about all 13,000 configurations needs over 4 GB."""


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))


@pytest.mark.slow
@pytest.mark.long
def test_a_grown_database_answers_everything(tmp_path: Path) -> None:
    script = [sys.executable, str(BENCHMARK), "--runs", "8000", "--steps", "1", "--brief"]
    done = subprocess.run(
        [*script, "--keep", str(tmp_path / "grown.duckdb")], capture_output=True, text=True, preexec_fn=limit_memory
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["0 failures"]), done.stdout + done.stderr


def test_examples_of_every_command_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARK.parent)
    list_examples = runpy.run_path(str(BENCHMARK))["list_examples"]
    asked = {words[0] for words in list_examples()}
    assert asked >= {"compare", "explain", "pareto", "recommend", "cost", "sweep", "sql", "query", "report", "validate"}
    assert sorted(words[0] for words in list_examples(is_brief=True)) == sorted(asked - {"lake"})
