"""Door of served language models: other wings import its names and options of commands, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import joulemap
from joulemap.wing.llm import serve
from layers import loaded_after

WINGS: Final = Path(joulemap.__file__).parent / "wing"

MOST_NAMES: Final = 41
"""Names of the door. The number only falls; the goal is 40."""

OF_FLEET: Final = {"client", "option", "serve", "setting", "show", "show.word"}
"""Modules that `fleet` imports for any model."""


def list_imports() -> Iterator[tuple[str, str]]:
    """Yield (module, name) of each import from this wing in another one."""
    for path in WINGS.rglob("*.py"):
        wing, *inner = path.relative_to(WINGS).parts
        if wing != "llm" and "generated" not in inner:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("joulemap.wing.llm"):
                    yield from ((node.module or "", alias.name) for alias in node.names)


def test_other_wings_come_through_the_door() -> None:
    used = set(list_imports())
    doors = {"joulemap.wing.llm", "joulemap.wing.llm.option", serve.__name__}
    assert {module for module, _ in used} <= doors
    assert {name for module, name in used if module == serve.__name__} == {*dir(serve)}
    assert len(dir(serve)) <= MOST_NAMES


def test_each_name_of_the_door_is_there() -> None:
    assert all(getattr(serve, name) is not None for name in dir(serve))


@pytest.mark.parametrize(
    "words",
    [
        "compare resnet18 l4 h100_sxm5",
        "fleet resnet18 l4 --rate 100/s --p99 50ms",
        "train resnet18 h100_sxm5 --batch 32",
    ],
)
def test_questions_about_other_models_load_nothing_of_serving(words: str, tmp_path: Path) -> None:
    """Every database has the error scales of served models, and `fleet` has options and words of servers."""
    called = (
        f"from joulemap.cli.app import run\nassert run({[*words.split(), '--db', str(tmp_path / 'a.duckdb')]!r}) == 0"
    )
    loaded = loaded_after(called, tmp_path)
    inner = {name.removeprefix("joulemap.wing.llm.") for name in loaded if ".wing.llm." in name}
    assert inner <= {"error_scale"} | (OF_FLEET if words.startswith("fleet") else set())
