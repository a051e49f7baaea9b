"""Builds generate code and pack the tables; a checkout without rendered queries, or with a newer one, is refused."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from joulemap.store.library import HEADERS, SHIPPED
from tools.pack import TABLES

ROOT = Path(__file__).parents[2]
GENERATED = SHIPPED.parent.relative_to(ROOT)
WINGS = Path("src", "joulemap", "wing")
QUERY = Path("queries", "edp", "total.v1.sql")

LIST_PACKAGES = """
import sys
before = set(sys.modules)
from tools import generate
generate.main()
print(*{name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)
"""
FIND = """
from joulemap.store.library import find_query
from joulemap.system.errors import UsageError
try:
    print(find_query("edp.total").title)
except UsageError as error:
    print(error)
"""


def run(*arguments: str, tree: Path = ROOT) -> str:
    """Return what a program prints that imports the package of a tree."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / name) for name in ("src", "benchmarks"))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the tree as git has it, without data and tests."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("src", "queries", "schemas", "benchmarks/tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "data", "generated"))
    return tmp_path


def read_generated(tree: Path) -> dict[str, bytes]:
    """Return the generated files of the core and of wings in a tree."""
    folders = (tree / GENERATED, *(tree / WINGS).glob("*/generated"))
    files = (path for folder in folders for path in folder.rglob("*.*") if "__pycache__" not in path.parts)
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in files}


@pytest.mark.slow
def test_a_build_needs_no_more_than_it_states_to_generate(checkout: Path) -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert {*run("-c", LIST_PACKAGES, tree=checkout).split()} <= {
        *("joulemap", "tools", "attr"), *(Requirement(one).name for one in stated)
    }  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize("version", ["standard", "editable"])
@pytest.mark.slow
def test_a_build_of_a_fresh_checkout_generates_its_code(version: str, checkout: Path) -> None:
    pytest.importorskip("hatchling")
    tables = checkout / TABLES
    tables.mkdir(parents=True)
    (tables / "own.csv").write_text("hardware\nl4\n", encoding="utf-8")
    run("-m", "hatchling", "build", "--target", f"wheel:{version}", tree=checkout)
    generated = read_generated(ROOT)
    assert read_generated(checkout) == generated
    if version == "standard":
        (wheel,) = (checkout / "dist").glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            names = [one for one in package.namelist() if "/generated/" in one]
            assert {f"src/{one}": package.read(one) for one in names} == generated
            packed = [one for one in package.namelist() if Path("src", one).parent == TABLES]
            assert {Path(one).name: lzma.decompress(package.read(one)) for one in packed} == {
                "own.csv.xz": b"hardware,l4\n"
            }
    assert [path.name for path in tables.iterdir()] == ["own.csv"]


@pytest.mark.slow
def test_a_checkout_is_refused_until_its_queries_are_rendered_as_they_are(checkout: Path) -> None:
    remedy = "run `make rows`"
    assert run("-c", FIND, tree=checkout) == f"the queries are not rendered: {remedy}"
    run("-m", "tools.generate", tree=checkout)
    assert run("-c", FIND, tree=checkout) == "edp.total@1"
    os.utime(checkout / QUERY, ns=(0, (checkout / HEADERS.relative_to(ROOT)).stat().st_mtime_ns + 1))
    assert run("-c", FIND, tree=checkout) == f"{checkout / QUERY} is newer than the rendered queries: {remedy}"
    run("-m", "tools.generate", tree=checkout)
    assert run("-c", FIND, tree=checkout) == "edp.total@1"
