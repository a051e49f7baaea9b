"""Seam between facts and words: questions write no text, words compute nothing, every caveat has its sentence."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import joulemap
from joulemap.ask.rule import WEIGHED, list_sql_rules
from joulemap.show.caveat import CAVEAT
from joulemap.store.library import find_query

SOURCE = Path(joulemap.__file__).parent
ASK = sorted((SOURCE / "ask").rglob("*.py"))
SHOW = sorted((SOURCE / "show").rglob("*.py"))

PARSING = {
    "find", "rfind", "index", "rindex", "partition", "rpartition", "split", "rsplit", "startswith", "endswith", "sub",
    "replace", "removeprefix", "removesuffix", "splitlines", "fullmatch", "match", "search",
}  # fmt: skip
"""Methods that search or cut text."""


def walk(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("path", [*ASK, *SHOW], ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_nothing_searches_text(path: Path) -> None:
    calls = [one for one in walk(path) if isinstance(one, ast.Call)]
    assert not [one.lineno for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr in PARSING]
    imported = {alias.name for one in walk(path) if isinstance(one, ast.Import) for alias in one.names}
    assert "re" not in imported


@pytest.mark.parametrize("path", ASK, ids=lambda path: path.stem)
def test_questions_hold_no_sentence(path: Path) -> None:
    nodes = walk(path)
    documented = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    raised = {id(part) for one in nodes if isinstance(one, ast.Raise) for part in ast.walk(one)}
    texts = [(one, one.value) for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    assert not [text for one, text in texts if id(one) not in documented | raised and text.count(" ") > 2]


@pytest.mark.parametrize("name", list_sql_rules())
def test_every_rule_has_its_words(name: str) -> None:
    columns = {one.name for one in find_query(f"rule.{name}").columns}
    assert {place for place, _ in CAVEAT[name].places} <= columns - set(WEIGHED) | {"chips"}


def test_every_kind_of_caveat_has_its_words_and_its_rule() -> None:
    kinds = {
        part.value
        for path in ASK
        for one in walk(path)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in ("Finding", "Caveat")
        for word in one.keywords
        if word.arg == "kind"
        for part in ast.walk(word.value)
        if isinstance(part, ast.Constant)
    }
    assert kinds | set(list_sql_rules()) == CAVEAT.keys()
