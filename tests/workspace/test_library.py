"""What a program that uses joulemap meets beside answers: its version, errors, logger, and how to cancel."""

from __future__ import annotations

import logging
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import joulemap
from joulemap.domain.settings import Settings
from joulemap.store import connection
from joulemap.system import errors
from joulemap.system.errors import UsageError
from joulemap.workspace import Workspace

PAGE = Path(__file__).parents[2] / "docs" / "library.md"

TREE = {
    name: one
    for name, one in vars(errors).items()
    if isinstance(one, type) and issubclass(one, errors.JoulemapError) and one.__module__ == errors.__name__
}


class CancelError(Exception):
    """A program's own."""


def test_the_version_is_that_of_the_distribution() -> None:
    assert joulemap.__version__ == version("joulemap")


def test_every_error_stands_at_the_top() -> None:
    assert {name: getattr(joulemap, name) for name in TREE} == TREE
    assert set(TREE) <= set(joulemap.__all__)


def test_what_takes_time_is_told_the_logger_and_nobody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "joulemap"):
        Workspace(tmp_path / "own.duckdb").compare("resnet18", hardware="l4")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("joulemap", logging.INFO)
    assert "resnet18" in record.getMessage()
    caplog.clear()
    told: list[str] = []
    Workspace(tmp_path / "own.duckdb", talk=told.append).compare("resnet18", hardware="t4")
    assert (len(told), caplog.records) == (1, [])
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_who_waits_for_a_database_reads_so_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.migrate()
    until = time.monotonic() + connection.TELL_AFTER_S + 0.2
    monkeypatch.setattr(connection, "find_earlier", lambda _place: "another" if time.monotonic() < until else "")
    with caplog.at_level(logging.INFO, "joulemap"):
        assert workspace.sql("SELECT 1 AS one").rows
    (record,) = caplog.records
    assert record.name == "joulemap"
    assert "another" in record.getMessage()


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 3])
@pytest.mark.slow
def test_a_question_is_cancelled_by_raising_in_progress(step: int, tmp_path: Path) -> None:
    asked = joulemap.Settings(hardware=("l4", "t4", "tpu_v4"), batch=(1, 2))

    def cancel(done: int, _total: int) -> None:
        if done >= step:
            raise CancelError

    place = tmp_path / "own.duckdb"
    with pytest.raises(CancelError):
        Workspace(place, progress=cancel).sweep("resnet18", asked)
    workspace = Workspace(place)
    assert workspace.check().findings.rows == ()
    stored = len(workspace.sql("SELECT run_id FROM runs").rows)
    answer = workspace.sweep("resnet18", asked)
    assert step - 1 <= stored < answer.tally.run_count == 6
    assert answer.tally.stored_count == stored


@pytest.mark.parametrize(
    "keywords",
    [
        {"hardware": 3},
        {"hardware": ["l4", None]},
        {"batch": 8.0},
        {"precision": 8},
        {"runtime": None},
        {"power_budget_w": "15W"},
        {"changes": 3},
        {"inputs": 3},
    ],
)
def test_a_keyword_of_a_wrong_type_is_named(keywords: dict[str, Any]) -> None:
    (name,) = keywords
    with pytest.raises(UsageError, match=f"{name} is "):
        Settings().with_keywords(cast("Any", keywords))


def test_integers_of_arrays_are_batches_and_no_hardware_is_the_default() -> None:
    settings = Settings().with_keywords(cast("Any", {"batch": np.array([1, 8]), "hardware": None}))
    assert (settings.batch, settings.hardware) == ((1, 8), ())
    assert [type(one) for one in settings.batch] == [int, int]
    assert Settings(batch=cast("Any", np.int64(4))).batch == (4,)


def test_versions_of_a_model_are_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="found a object"):
        Workspace(tmp_path / "a.duckdb").diff(cast("Any", object()), "resnet18")
