"""A database as large as months of work make one, asked everything at each step."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "growth.py"


@pytest.mark.slow
def test_a_grown_database_answers_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARK.parent)
    assert runpy.run_path(str(BENCHMARK))["grow"](tmp_path / "grown.duckdb", 8_000, 2) == []


def test_examples_of_every_command_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARK.parent)
    asked = {words[0] for words in runpy.run_path(str(BENCHMARK))["list_examples"]()}
    assert asked >= {"compare", "explain", "pareto", "recommend", "cost", "sweep", "sql", "query", "report", "validate"}
