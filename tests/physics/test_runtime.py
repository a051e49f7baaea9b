"""A runtime is one record: what follows from it, and that no other code knows its name."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, get_args

import pytest

import joulemap
from joulemap.domain import label
from joulemap.physics.record import runtime as module
from joulemap.physics.record.configuration import BOUNDARY_NAMES
from joulemap.physics.record.runtime import RUNTIME, RUNTIME_NAMES, RUNTIMES, RuntimeName
from joulemap.system.resource import folder as resource_folder

SOURCE: Final = Path(module.__file__)
LABELS: Final = Path(label.__file__)
ROOT: Final = Path(joulemap.__file__).parent

NAMES: Final = "Literal[" + ", ".join(f'"{name}"' for name in RUNTIME_NAMES) + "]"
FIRST: Final = '        Runtime(name="eager"'

ADDED: Final = """\
        Runtime(name="another", launches_each=False, is_captured=False, merges=True, is_built=False, of_class=""),
"""


def read_module(source: str) -> ModuleType:
    """Return the module that this source makes in place of the one of runtimes."""
    made = ModuleType(module.__name__)
    exec(compile(source, str(SOURCE), "exec"), vars(made))
    return made


def test_each_name_has_a_record_and_each_record_a_name() -> None:
    assert tuple(RUNTIME) == get_args(RuntimeName) == RUNTIME_NAMES
    assert [one.name for one in RUNTIMES] == list(RUNTIME_NAMES)


def test_a_name_without_a_record_or_a_property_is_refused() -> None:
    source = SOURCE.read_text(encoding="utf-8")
    assert source.count(NAMES) == source.count(FIRST) == 1
    more = source.replace(NAMES, NAMES.replace("]", ', "another"]'))
    with pytest.raises(KeyError, match="another"):
        read_module(more)
    with pytest.raises(TypeError, match="is_built"):
        read_module(more.replace(FIRST, ADDED.replace(", is_built=False", "") + FIRST))
    assert "another" in read_module(more.replace(FIRST, ADDED + FIRST)).RUNTIME


def list_comparisons(tree: ast.AST, word: str, names: Collection[str]) -> Iterator[ast.Compare | ast.Dict]:
    """Yield comparisons of something called `word` with one of the names, and tables by several of the names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            texts = {one.value for side in sides for one in ast.walk(side) if isinstance(one, ast.Constant)}
            if word in ast.unparse(node) and texts & {*names}:
                yield node
        elif isinstance(node, ast.Dict):
            keys = {one.value for one in node.keys if isinstance(one, ast.Constant)}
            if len(keys & {*names}) > 1:
                yield node


@pytest.mark.parametrize(("word", "names"), [("runtime", RUNTIME_NAMES), ("boundary", BOUNDARY_NAMES)])
def test_no_code_compares_the_name(word: str, names: Collection[str]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path, text in read_files("*.py", names, ROOT)
        if word in text and path not in (SOURCE, LABELS)
        for node in list_comparisons(ast.parse(text), word, names)
    ]
    assert wrong == []


@pytest.mark.parametrize("names", [RUNTIME_NAMES, BOUNDARY_NAMES])
def test_no_check_lists_the_names(names: Collection[str]) -> None:
    listed = [f"'{first}', '{second}'" for first in names for second in names]
    files = read_files("*.sql", names, resource_folder("schemas"))
    assert [path for path, text in files if any(one in text for one in listed)] == []


def read_files(pattern: str, names: Collection[str], *folders: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files that contain one of the names as a string, with their text."""
    for folder in folders:
        for path in folder.rglob(pattern):
            text = path.read_text(encoding="utf-8")
            if any(f'"{name}"' in text or f"'{name}'" in text for name in names):
                yield path, text
