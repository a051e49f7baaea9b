"""Builds render the queries and pack the tables; a checkout without queries, or with a newer one, is refused."""

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
from joulemap.tools.pack import TABLES

ROOT = Path(__file__).parents[2]
RENDERED = SHIPPED.relative_to(ROOT)
QUERY = Path("queries", "edp", "total.v1.sql")

LIST_PACKAGES = """
import sys
before = set(sys.modules)
from joulemap.tools.query import spell_files
spell_files()
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
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the tree as git has it, without data and tests."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("src", "queries", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "data", "sql"))
    return tmp_path


def test_a_build_needs_no_more_than_it_states_to_render() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert {*run("-c", LIST_PACKAGES).split()} <= {"joulemap", "attr", *(Requirement(one).name for one in stated)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("version", ["standard", "editable"])
def test_a_build_of_a_fresh_checkout_renders_the_queries(version: str, checkout: Path) -> None:
    pytest.importorskip("hatchling")
    tables = checkout / TABLES
    tables.mkdir(parents=True)
    (tables / "own.csv").write_text("hardware\nl4\n", encoding="utf-8")
    run("-m", "hatchling", "build", "--target", f"wheel:{version}", tree=checkout)
    rendered = {path.name: path.read_bytes() for path in SHIPPED.iterdir()}
    assert {path.name: path.read_bytes() for path in (checkout / RENDERED).iterdir()} == rendered
    if version == "standard":
        (wheel,) = (checkout / "dist").glob("*.whl")
        with zipfile.ZipFile(wheel) as package:
            names = [one for one in package.namelist() if Path("src", one).parent == RENDERED]
            assert {Path(one).name: package.read(one) for one in names} == rendered
            packed = [one for one in package.namelist() if Path("src", one).parent == TABLES]
            assert {Path(one).name: lzma.decompress(package.read(one)) for one in packed} == {
                "own.csv.xz": b"hardware\nl4\n"
            }
    assert [path.name for path in tables.iterdir()] == ["own.csv"]


@pytest.mark.slow
def test_a_checkout_is_refused_until_its_queries_are_rendered_as_they_are(checkout: Path) -> None:
    remedy = "run `make rows`, or `python -m joulemap.tools.query`"
    assert run("-c", FIND, tree=checkout) == f"the queries are not rendered: {remedy}"
    run("-m", "joulemap.tools.query", tree=checkout)
    assert run("-c", FIND, tree=checkout) == "edp.total@1"
    os.utime(checkout / QUERY, ns=(0, (checkout / RENDERED / HEADERS.name).stat().st_mtime_ns + 1))
    assert run("-c", FIND, tree=checkout) == f"{checkout / QUERY} is newer than the rendered queries: {remedy}"
    run("-m", "joulemap.tools.query", tree=checkout)
    assert run("-c", FIND, tree=checkout) == "edp.total@1"
