"""Checks before a release, and builds that do not depend on when they are made."""

import tomllib
from pathlib import Path

import duckdb
import pytest

from joulemap.store.engine import read_head
from joulemap.store.template import find_template
from joulemap.system.resource import package_version
from tools import ROOT
from tools.release import check_licence, check_version
from tools.wheel import EPOCH

CITATION = "cff-version: 1.2.0\nversion: 1.2.0\n"


def test_a_version_is_stated_alike_and_dated() -> None:
    assert check_version("1.2.0", CITATION, "# Changes\n\n## 1.2.0, 2027-01-31\n- a\n\n## 1.1.0, 2026-12-01\n") == ""
    assert "CITATION.cff has version 1.2.0" in check_version("1.3.0", CITATION, "## 1.3.0, 2027-01-31\n")
    assert "CITATION.cff has version none" in check_version("1.2.0", "title: a\n", "## 1.2.0, 2027-01-31\n")
    assert "CHANGELOG.md is 1.1.0" in check_version("1.2.0", CITATION, "## 1.1.0, 2027-01-31\n")
    assert "CHANGELOG.md is missing" in check_version("1.2.0", CITATION, "# Changes\n")
    assert "no date" in check_version("1.2.0", CITATION, "## 1.2.0, not yet released\n")
    assert "no date" in check_version("1.2.0", CITATION, "## 1.2.0\n")


def test_nothing_is_ready_without_a_licence(tmp_path: Path) -> None:
    assert "CONTRIBUTING.md" in check_licence(tmp_path, {"license": "MIT"})
    (tmp_path / "LICENSE").write_text("text")
    assert "pyproject.toml" in check_licence(tmp_path, {})
    assert check_licence(tmp_path, {"license": "MIT"}) == ""


def test_the_version_of_this_tree_is_stated_alike() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("CITATION.cff", "CHANGELOG.md")]
    assert "has version" not in check_version(version, *texts)
    assert "expected" not in check_version(version, *texts)


@pytest.mark.skipif(duckdb.__version__ < "2", reason="older engines leave other bytes in free blocks")
@pytest.mark.slow
def test_databases_of_two_builds_are_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name in ("first", "second"):
        monkeypatch.setenv("JOULEMAP_CACHE", str(tmp_path / name))
        monkeypatch.setenv(EPOCH, "1700000000")
        template = find_template("0" * 16, package_version("joulemap"), lambda connection: {})
        assert template is not None
        assert read_head(template.path).identity == template.path.stem.encode()
        made.append(template.path.read_bytes())
    assert made[0] == made[1]
