"""Slices of the slow tests: each case is in exactly one, and CI takes another one each time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import Slicing
from sample import place_in_slice, read_slice

ROOT = Path(__file__).parents[2]
COUNT = 12


def collect(*arguments: str) -> list[str]:
    """Return the ids of the cases in this file that pytest selects."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *arguments, __file__], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode in (0, 5), done.stdout + done.stderr  # 5: the slice has no case of this file
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_a_case_has_one_slice_and_slices_have_as_many() -> None:
    nodes = [f"tests/test_{file}.py::test_case[{case}]" for file in range(40) for case in range(200)]
    sizes = Counter(place_in_slice(node, COUNT) for node in nodes)
    assert sorted(sizes) == list(range(1, COUNT + 1))
    mean = len(nodes) / COUNT
    assert all(abs(size - mean) < 0.15 * mean for size in sizes.values())
    assert place_in_slice("tests/test_zoo.py::test_x[resnet18]", COUNT) == 10, "a case stays where it is"


@pytest.mark.parametrize("text", ["", "0/12", "13/12", "3", "3/", "/12", "a/b", "-1/12", "1/0"])
def test_another_slice_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="expected a number and a count"):
        read_slice(text)


def test_slices_together_are_all_that_is_selected() -> None:
    nodes = [f"tests/test_{file}.py::test_case[{case}]" for file in range(7) for case in range(9)]
    selected: list[str] = []
    for number in range(1, COUNT + 1):
        left: list[str] = []
        items: Any = [SimpleNamespace(nodeid=node, get_closest_marker=lambda _: None) for node in nodes]
        config: Any = SimpleNamespace(
            hook=SimpleNamespace(pytest_deselected=lambda items, left=left: left.extend(items))
        )
        Slicing(f"{number}/{COUNT}").pytest_collection_modifyitems(config, items)
        assert len(left) + len(items) == len(nodes)
        selected += [one.nodeid for one in items]
    assert sorted(selected) == sorted(nodes)


@pytest.mark.slow
def test_slices_together_are_the_slow_tests() -> None:
    whole = collect("-m", "slow")
    parts = [node for number in (1, 2) for node in collect("-m", "slow", "--slice", f"{number}/2")]
    assert sorted(parts) == sorted(whole)
    assert len(set(whole)) == len(whole) > 1


def turn(place: Path) -> str:
    return subprocess.run([place / ".ci" / "slice"], capture_output=True, text=True, check=True).stdout.strip()


def git(place: Path, *arguments: str) -> None:
    own = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *own, *arguments], cwd=place, check=True, capture_output=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize("commits", [1, 11, 12])
def test_the_number_of_commits_chooses_the_slice(commits: int, tmp_path: Path) -> None:
    whole, exported, shallow = tmp_path / "whole", tmp_path / "exported", tmp_path / "shallow"
    whole.mkdir()
    shutil.copytree(ROOT / ".ci", whole / ".ci")
    git(whole, "init")
    git(whole, "add", ".")
    for number in range(commits):
        git(whole, "commit", "--allow-empty", "-m", str(number))
    assert turn(whole) == f"{commits % COUNT + 1}/{COUNT}"
    git(tmp_path, "clone", "--depth", "1", whole.as_uri(), str(shallow))
    shutil.copytree(ROOT / ".ci", exported / ".ci")
    inside = whole / "inside"
    shutil.copytree(ROOT / ".ci", inside / ".ci")
    for place in (exported, inside, shallow):
        number, count = read_slice(turn(place))
        assert count == COUNT
        assert 1 <= number <= COUNT
        if commits > 1:
            assert turn(place) == turn(exported)
