"""Locked versions: each has hashes, names no host, and lies within the ranges of the wheel's metadata."""

from __future__ import annotations

import platform
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from joulemap.system import resource
from joulemap.system.errors import ModelError
from joulemap.system.resource import OLDEST_TORCH, need_torch

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = sorted(ROOT.glob("lock/*.txt"))
PYTHONS = sorted(ROOT.glob("lock/python*.txt"))
MACHINES = ("x86_64", "aarch64")


def read_lock(path: Path) -> list[tuple[Requirement, int]]:
    """Return each pinned requirement with the number of its hashes."""
    joined = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]
    return [(Requirement(line.partition(" --hash")[0]), line.count("--hash=sha256:")) for line in lines]


def list_direct(*extras: str) -> Iterator[Requirement]:
    """Yield what the project asks for itself, with extras of extras followed."""
    for line in PROJECT["dependencies"]:
        yield Requirement(line)
    for extra in extras:
        for line in PROJECT["optional-dependencies"][extra]:
            asked = Requirement(line)
            if asked.name == PROJECT["name"]:
                yield from list_direct(*sorted(asked.extras))
            else:
                yield asked


def version_on(path: Path, machine: str, python: str) -> dict[str, str]:
    """Return the version of each package that a lock file gives a machine with a Python, such as `3.12`."""
    system = {
        "platform_machine": machine,
        "sys_platform": "linux",
        "python_version": python,
        "python_full_version": f"{python}.9",
    }
    pinned = [one for one, _ in read_lock(path) if one.marker is None or one.marker.evaluate(system)]
    names = [canonicalize_name(one.name) for one in pinned]
    assert len(names) == len(set(names))
    return {name: str(one.specifier).removeprefix("==") for name, one in zip(names, pinned, strict=True)}


def test_every_supported_python_has_a_lock_file() -> None:
    supported = SpecifierSet(PROJECT["requires-python"])
    assert {path.stem for path in PYTHONS} == {f"python3.{minor}" for minor in range(30) if f"3.{minor}" in supported}


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_every_version_is_exact_and_has_hashes(path: Path) -> None:
    for one, hashes in read_lock(path):
        assert re.fullmatch(r"==[\w.+!]+", str(one.specifier)), one
        assert hashes > 0, one
        assert one.url is None


@pytest.mark.parametrize("path", sorted(ROOT.glob("lock/*")), ids=lambda path: path.name)
def test_no_host_is_named(path: Path) -> None:
    assert re.findall(r"^ *-(?!-hash)[^\n]*|\w+://[^\n]*", path.read_text(encoding="utf-8"), re.MULTILINE) == []


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("path", PYTHONS, ids=lambda path: path.stem)
def test_locked_versions_are_within_the_ranges(path: Path, machine: str) -> None:
    """A range that changes needs `make lock`."""
    locked = version_on(path, machine, path.stem.removeprefix("python"))
    system = {"platform_machine": machine, "sys_platform": "linux"}
    for asked in list_direct("dev"):
        if asked.marker is None or asked.marker.evaluate(system):
            assert asked.specifier.contains(locked[canonicalize_name(asked.name)]), asked


@pytest.mark.parametrize("path", PYTHONS, ids=lambda path: path.stem)
def test_make_install_adds_to_what_make_demo_installs(path: Path) -> None:
    """Another version of a package would be installed in place of the first."""
    python = path.stem.removeprefix("python")
    base = version_on(ROOT / "lock" / "base.txt", MACHINES[0], python)
    assert {canonicalize_name(one.name) for one in list_direct()} <= base.keys()
    assert base.items() <= version_on(path, MACHINES[0], python).items()


def test_the_build_backend_and_pip_are_locked() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    locked = {canonicalize_name(one.name) for one, _ in read_lock(ROOT / "lock" / "build.txt")}
    assert {"pip", "editables", *(Requirement(line).name for line in build)} <= locked


def test_the_environment_of_make_install_has_the_locked_versions() -> None:
    """That environment alone: others test other versions on purpose."""
    if not (Path(sys.prefix) / ".installed").exists():
        pytest.skip("not made by make install")
    from importlib.metadata import version

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    locked = version_on(ROOT / "lock" / f"python{python}.txt", platform.machine(), python)
    assert version("torch") == locked["torch"]


def test_the_oldest_torch_is_the_one_that_the_metadata_asks_for() -> None:
    (bound,) = [one for one in list_direct("torch") if one.name == "torch"]
    assert str(bound.specifier) == f">={OLDEST_TORCH[0]}.{OLDEST_TORCH[1]}"


@pytest.mark.parametrize(
    ("version", "is_taken"),
    [("2.8.1", False), ("1.13.1+cpu", False), ("2.9.0", True), ("2.15.0+cu132", True), ("3.0", True)],
)
def test_an_older_torch_is_refused_in_one_line(version: str, is_taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "package_version", lambda _: version)
    if is_taken:
        need_torch("a trace")
    else:
        with pytest.raises(ModelError, match=rf"needs PyTorch 2\.9 or newer, this is {re.escape(version)}"):
            need_torch("a trace")
