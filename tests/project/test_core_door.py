"""Wings use the core through its door: the names of its rooms in `door.toml`, and public names of other wings.

What passes by the door is counted, and only falls.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import joulemap
from tools.public import read_door

PACKAGE: Final = Path(joulemap.__file__).parent

MOST_MODULES: Final = 40
MOST_NAMES: Final = 358

PUBLIC: Final = ("joulemap", "joulemap.extend", "joulemap.records")
"""Public modules of the core beside its rooms."""

DOORS: Final = ("joulemap.wing.llm.option", "joulemap.wing.llm.serve")
"""Modules of a wing that other wings may use."""

PAST: Final = 397
"""Names of the core that wings import past the door. It only falls; the goal is 0."""

MOST_OF_WINGS: Final = 65
"""Names that wings list in `door.toml` for other wings, beside `DOORS`."""

PAST_WINGS: Final = 0
"""Names of other wings that wings import from their inner modules."""


def list_imports() -> Iterator[tuple[str, str, str]]:
    """Yield (wing, module, name) of each import of ours in wings."""
    for path in (PACKAGE / "wing").rglob("*.py"):
        wing, *inner = path.relative_to(PACKAGE / "wing").parts
        if "generated" in inner:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "joulemap":
                yield from ((wing, node.module or "", alias.name) for alias in node.names)


@pytest.mark.wings
def test_the_door_is_small_and_used() -> None:
    door = read_door()
    names = {(room, name) for room, homes in door.items() for name in homes}
    of_wings = {(room, name) for room, name in names if room.startswith("joulemap.wing.")}
    assert len(door) + len(PUBLIC) <= MOST_MODULES
    assert len(names - of_wings) <= MOST_NAMES
    assert len(of_wings) <= MOST_OF_WINGS
    assert names <= {(module, name) for wing, module, name in list_imports() if module != f"joulemap.wing.{wing}"}


def test_the_door_has_the_names_of_its_rooms() -> None:
    text = tomllib.loads((PACKAGE / "door.toml").read_text(encoding="utf-8"))
    for room, modules in text.items():
        for module, names in modules.items():
            path = PACKAGE.joinpath(*room.split("."), *module.split("."))
            assert path.with_suffix(".py").is_file() or path.is_dir(), f"{room}.{module}"
            assert names == sorted(names, key=str.lower), f"{room}.{module}"


def test_fewer_names_pass_by_the_door() -> None:
    door = {(room, name) for room, homes in read_door().items() for name in homes}
    past, others = set(), set()
    for wing, module, name in list_imports():
        if module.startswith("joulemap.wing."):
            if module.split(".")[2] != wing and module.count(".") > 2 and module not in DOORS:
                others.add((wing, module, name))
        elif module not in PUBLIC and (module, name) not in door:
            past.add((module, name))
    assert len(past) <= PAST, f"{len(past)} names of {len({module for module, _ in past})} modules: {sorted(past)}"
    assert len(others) <= PAST_WINGS, f"{len(others)}: {sorted(others)}"
