"""One database for the whole session, and the command line as a person runs it."""

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

import pytest
from hypothesis import settings

from command import Done, run_alone, run_here
from joulemap.domain.configuration import Precision, Runtime
from joulemap.store.check import check_database
from joulemap.workspace import Workspace
from sample import sample

Run = Callable[..., Done]

PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "fp16")
RUNTIMES: tuple[Runtime, ...] = ("fused", "graph", "eager")

# a shared machine is as slow as others make it: what takes long is no failure
settings.register_profile("quick", deadline=None, max_examples=15)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("quick")


def pytest_configure() -> None:
    """Keep templates and calibrations of the person who runs the tests away from them; workers share one folder.

    Torch leaves so many objects that collecting garbage as often as usual takes a twentieth of all time.
    """
    gc.set_threshold(100_000, 20, 100)
    atexit.register(gc.unfreeze)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["JOULEMAP_CACHE"] = tempfile.mkdtemp(prefix="joulemap-cache-")
        os.environ["JOULEMAP_CALIBRATION"] = str(Path(os.environ["JOULEMAP_CACHE"]) / "calibration")
    os.environ.pop("JOULEMAP_HARDWARE", None)


def pytest_unconfigure() -> None:
    """Remove the templates of the tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["JOULEMAP_CACHE"], ignore_errors=True)


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Leave out tests all of whose cases are slow before there is an item for each."""
    marks = {one.name for one in getattr(obj, "pytestmark", ()) if isinstance(collector, pytest.Module)}
    return [] if "slow" in marks and collector.config.option.markexpr == "not slow" else None


WING_COMMANDS: Final = frozenset({"explore", "fleet", "here", "lake", "llm", "place", "train", "verify"})


def needs_wings(item: pytest.Item) -> bool:
    """Return True for a test that is marked so, and for a case whose parameter is a command of a wing."""
    given = getattr(item, "callspec", None)
    values = given.params.values() if given else ()
    words = [one.split(maxsplit=1) if isinstance(one, str) else one for one in values if isinstance(one, str | tuple)]
    return bool(item.get_closest_marker("wings")) or any(
        one and isinstance(one[0], str) and one[0] in WING_COMMANDS for one in words
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to `make test-slow` what samples leave out, and leave out tests whose wings are absent."""
    sample(items)
    if find_spec("joulemap.wing") is None:
        items[:] = [item for item in items if not needs_wings(item)]


def pytest_collection_finish() -> None:
    """Take what modules are made of out of what is collected as garbage: it stays until the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Leave what remains to the end of the process: pytest would look for garbage in it five times."""
    gc.freeze()


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """resnet18 on the four default hardware at several precisions and runtimes; never written by a test."""
    made = Path(os.environ["JOULEMAP_CACHE"]) / "results.duckdb"
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of all workers one makes it
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
    """Check databases in the process of the tests, where no crash of the engine is to be feared."""
    if not request.node.get_closest_marker("apart"):
        monkeypatch.setattr("joulemap.store.guard.check_apart", check_database)


@pytest.fixture
def own_database(database: Path, tmp_path: Path) -> Path:
    """A copy that the test may break."""
    path = tmp_path / "own.duckdb"
    shutil.copy(database, path)
    path.chmod(0o644)
    return path


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """An empty one, which a module's tests ask and fill."""
    return Workspace(tmp_path_factory.mktemp("workspace") / "results.duckdb")


@pytest.fixture
def joulemap(tmp_path: Path) -> Run:
    """Run `joulemap` in an empty folder; the database is `joulemap.duckdb` there unless a test says otherwise."""
    return partial(_run, run_here, tmp_path)


@pytest.fixture
def joulemap_process(tmp_path: Path) -> Run:
    """Run `joulemap` as `joulemap` does, in a process of its own, where that is the point."""
    return partial(_run, run_alone, tmp_path)


def _run(
    way: Callable[[list[str], Path, Mapping[str, str]], Done],
    folder: Path,
    *arguments: object,
    variables: Mapping[str, str] | None = None,
) -> Done:
    return way([str(argument) for argument in arguments], folder, variables or {})
