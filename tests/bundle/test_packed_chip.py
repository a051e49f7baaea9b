"""The bundle of chips is that of today's formulas and data, and any other is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from joulemap.bundle import chip, version
from joulemap.bundle.chip import FILE, REPLACED, load_chips
from joulemap.bundle.record import Reader
from joulemap.bundle.version import STAMP, bundle_version, compute_version
from joulemap.catalog.error_scale import load_doubt
from joulemap.catalog.family import list_members
from joulemap.catalog.load import load_catalogue
from joulemap.system.errors import CatalogueError
from tools import bundle
from tools.packed import Writer

SAMPLE = ("h200_sxm", "h100_pcie", "coral_edge_tpu", "l4", "nrf52840")


def pass_on(value: Any) -> Any:
    """Return a record as the bundle has it, without sources."""
    return Reader(Writer(REPLACED).write({"": value})).find("")


def test_the_bundle_is_of_this_version() -> None:
    assert json.loads(STAMP.read_text())["version"] == bundle_version(), "formulas or data have changed: `make bundle`"
    chips = load_chips()
    assert chips.ids == set(load_catalogue().hardware) | set(list_members())
    assert chips.errors.doubt == pass_on(load_doubt())
    assert FILE.stat().st_size < 220_000


def check_chips(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "list_members", dict)
    if len(names) < 100:
        monkeypatch.setattr(
            bundle,
            "load_catalogue",
            lambda: attrs.evolve(load_catalogue(), hardware={name: load_catalogue().hardware[name] for name in names}),
        )
    plan = bundle.plan_chips()
    found = bundle.bind_chips(plan)
    assert set(found) == set(names)
    chips = load_chips()
    for name, bound in found.items():
        assert chips.find(name) == pass_on(bound), name
    used = bundle.find_calibrations(plan)
    assert {name: one.digest for name, one in used.items()} == {
        name: one for name, one in chips.calibrations.items() if name in names
    }


def test_chips_are_what_runs_use(monkeypatch: pytest.MonkeyPatch) -> None:
    check_chips(SAMPLE, monkeypatch)


@pytest.mark.slow
def test_all_chips_of_the_catalogue_are_what_runs_use(monkeypatch: pytest.MonkeyPatch) -> None:
    check_chips(tuple(load_catalogue().hardware), monkeypatch)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a bundle that a test may change."""
    for path in (FILE, STAMP):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(chip, "FILE", tmp_path / FILE.name)
    monkeypatch.setattr(version, "STAMP", tmp_path / STAMP.name)
    monkeypatch.setattr(chip, "load_chips", chip.load_chips.__wrapped__)
    return tmp_path


def test_a_bundle_of_another_version_is_refused(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chip.load_chips().ids
    monkeypatch.setattr(version, "bundle_version", lambda: "0123456789abcdef")
    with pytest.raises(CatalogueError, match=r"^the bundle of chips was made by other formulas or data: `make bundle`"):
        chip.load_chips()


@pytest.mark.parametrize("change", ["cut", "none", "stamp"])
def test_a_damaged_bundle_is_refused(own: Path, change: str) -> None:
    path = own / FILE.name
    if change == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    elif change == "none":
        path.unlink()
    else:
        (own / STAMP.name).write_text("{}")
    with pytest.raises(CatalogueError, match=r"^the bundle of chips (was changed|cannot be read)[^\n]*: `make bundle`"):
        chip.load_chips()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the package that tests change and restore."""
    package = tmp_path_factory.mktemp("copied") / "joulemap"
    ignored = shutil.ignore_patterns("__pycache__", "measurement", "zoo", "generated", "cli", "answer")
    shutil.copytree(Path(version.__file__).parents[1], package, ignore=ignored)
    return package


@pytest.fixture
def package(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the copy of the package, of which versions are computed."""
    monkeypatch.setattr("joulemap.system.resource._PACKAGE", copied)
    monkeypatch.setattr(version, "DATA", copied / "catalog" / "data")
    bundle_version()  # it is kept, so that of a changed copy may not be the first
    return copied


@contextmanager
def adding(path: Path, more: str) -> Iterator[None]:
    """Add text to a file, which may be new, and restore it at the end."""
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.write_text((before or "") + more, encoding="utf-8")
    try:
        yield
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_text(before, encoding="utf-8")


def test_a_comment_does_not_change_the_version(package: Path) -> None:
    with adding(package / "physics" / "kernel.py", "# a comment\n"):
        assert compute_version() == bundle_version()


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("physics/kernel.py", "\nMORE = 2\n"),
        pytest.param("physics/architecture/npu/tile.py", "\nMORE = 2\n", marks=pytest.mark.slow),
        pytest.param("physics/interval/half_width.py", "\nMORE = 2\n", marks=pytest.mark.slow),
        ("plan/calibration.py", "\nMORE = 2\n"),
        ("catalog/data/doubt/scale.csv", "latency,0,,,,,,1,1,1\n"),
        pytest.param("catalog/data/hardware/l4.toml", "\n", marks=pytest.mark.slow),
        ("catalog/data/family/part/none.toml", "\n"),
        pytest.param("wing/llm/data/error_scale.csv", "\n", marks=pytest.mark.wings),
    ],
)
def test_code_and_data_change_the_version(name: str, more: str, package: Path) -> None:
    with adding(package / name, more):
        assert compute_version() != bundle_version()
