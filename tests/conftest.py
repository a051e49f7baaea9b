"""Shared database of the session, and the command line as a user runs it."""

from __future__ import annotations

import atexit
import fcntl
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest
from hypothesis import settings

from command import Done, run_alone, run_here
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.runtime import RuntimeName
from joulemap.store import template
from joulemap.store.check import check_database
from joulemap.store.library import name_queries
from joulemap.system.errors import UsageError
from joulemap.workspace import Workspace
from sample import place_in_slice, read_slice, sample

Run = Callable[..., Done]

PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "fp16")
RUNTIMES: tuple[RuntimeName, ...] = ("fused", "graph", "eager")

# a test is no failure if it takes long, because the machine may be shared
settings.register_profile("quick", deadline=None, max_examples=15)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that selects a slice of the tests."""
    parser.addoption("--slice", metavar="NUMBER/COUNT", help="run one slice of the selected tests, such as 3/12")


class Slicing:
    """Deselection of all selected tests but those of one slice."""

    def __init__(self, text: str) -> None:
        self.number, self.count = read_slice(text)

    @pytest.hookimpl(trylast=True)  # what -m and -k leave out is no part of any slice
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the tests of the slice, without those that alone would take longer than it may."""
        places = [
            one.get_closest_marker("long") is None and place_in_slice(one.nodeid, self.count) == self.number
            for one in items
        ]
        config.hook.pytest_deselected(items=[one for one, is_kept in zip(items, places, strict=True) if not is_kept])
        items[:] = [one for one, is_kept in zip(items, places, strict=True) if is_kept]


def pytest_configure(config: pytest.Config) -> None:
    """Isolate tests from the user's cache and calibrations; workers share one folder. Stop if queries are not rendered.

    A run that breaks a law raises. Garbage is collected less often than usual, because with the objects of torch it
    would take 5 % of the time.
    """
    try:
        name_queries()
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    if text := config.getoption("--slice"):
        config.pluginmanager.register(Slicing(text))
    os.environ["JOULEMAP_LAWS"] = "raise"
    gc.set_threshold(100_000, 20, 100)
    atexit.register(gc.unfreeze)
    if "PYTEST_XDIST_WORKER" in os.environ:
        patch.object(template, "_make", partial(_make_once, template._make)).start()
    else:
        os.environ["JOULEMAP_CACHE"] = tempfile.mkdtemp(prefix="joulemap-cache-")
        os.environ["JOULEMAP_CALIBRATION"] = str(Path(os.environ["JOULEMAP_CACHE"]) / "calibration")
    os.environ.pop("JOULEMAP_HARDWARE", None)
    os.environ["JOULEMAP_SITE_FILE"] = os.devnull  # a joulemap.toml above the tests would change their numbers


def _make_once(
    make: Callable[[Path, template.Fill], template.Template], path: Path, fill: template.Fill
) -> template.Template:
    """Make the template of new databases in one of the workers, because it takes seconds of processor time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".making").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return template._read(path) or make(path, fill)


def pytest_unconfigure() -> None:
    """Remove the cache of the tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ.get("JOULEMAP_CACHE", ""), ignore_errors=True)


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Skip the collection of modules that are marked slow, if slow tests are not selected."""
    marks = {one.name for one in getattr(obj, "pytestmark", ()) if isinstance(collector, pytest.Module)}
    return [] if "slow" in marks and collector.config.option.markexpr == "not slow" else None


WING_COMMANDS: Final = frozenset({"explore", "fleet", "here", "lake", "llm", "place", "train", "verify"})


OF_WINGS: Final = ("test_campaign.py", "test_laws.py", "test_rival.py", "test_scoreboard.py")

collect_ignore = [] if find_spec("joulemap.wing") else [f"benchmarks/{name}" for name in OF_WINGS]
"""Files that import wings while they are collected."""


def needs_wings(item: pytest.Item) -> bool:
    """Return True for a test with the mark, and for a case whose parameter is a command of a wing."""
    given = getattr(item, "callspec", None)
    values = given.params.values() if given else ()
    words = [one.split(maxsplit=1) if isinstance(one, str) else one for one in values if isinstance(one, str | tuple)]
    return bool(item.get_closest_marker("wings")) or any(
        one and isinstance(one[0], str) and one[0] in WING_COMMANDS for one in words
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases beyond samples as slow, and drop tests of wings that are not installed."""
    sample(items)
    if find_spec("joulemap.wing") is None:
        items[:] = [item for item in items if not needs_wings(item)]


def pytest_collection_finish() -> None:
    """Exclude the objects of loaded modules from garbage collection, because they stay until the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Exclude all remaining objects from garbage collection, because pytest would collect five times."""
    gc.freeze()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database of resnet18 on the four default hardware at several precisions and runtimes.

    Each module of tests has a copy, because a command that asks about other hardware stores its runs.
    """
    made = Path(os.environ["JOULEMAP_CACHE"]) / "results.duckdb"
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of all workers makes the database
        if not made.exists():
            draft = made.with_suffix(".draft")
            workspace = Workspace(draft)
            for precision in PRECISIONS:
                workspace.evaluate("resnet18", precision=precision)
            for runtime in RUNTIMES:
                workspace.evaluate("resnet18", runtime=runtime)
            draft.chmod(0o444)
            draft.replace(made)
    return Path(shutil.copy(made, tmp_path_factory.mktemp("database")))


@pytest.fixture(autouse=True)
def checking_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check databases in the process of the tests, except tests marked `apart`, in which the engine may crash."""
    if not request.node.get_closest_marker("apart"):
        monkeypatch.setattr("joulemap.store.guard.check_apart", check_database)


@pytest.fixture
def own_database(database: Path, tmp_path: Path) -> Path:
    """Return a copy of the database that the test may change."""
    path = tmp_path / "own.duckdb"
    shutil.copy(database, path)
    path.chmod(0o644)
    return path


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Return an empty workspace that the tests of a module share."""
    return Workspace(tmp_path_factory.mktemp("workspace") / "results.duckdb")


@pytest.fixture
def joulemap(tmp_path: Path) -> Run:
    """Return a function that runs `joulemap` in an empty folder, with the database `joulemap.duckdb` by default."""
    return partial(_run, run_here, tmp_path)


@pytest.fixture
def joulemap_process(tmp_path: Path) -> Run:
    """Return a function that runs `joulemap` in its own process."""
    return partial(_run, run_alone, tmp_path)


def _run(
    way: Callable[[list[str], Path, Mapping[str, str]], Done],
    folder: Path,
    *arguments: object,
    variables: Mapping[str, str] | None = None,
) -> Done:
    return way([str(argument) for argument in arguments], folder, variables or {})
