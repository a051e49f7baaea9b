"""Files of the cache: whatever they hold, answers are those without them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from joulemap.system.cache import read_cached, write_cached
from joulemap.workspace import Workspace


@pytest.mark.parametrize("text", ["", "[]", "3", "null", '{"a": ', "\x00"])
def test_a_cache_file_without_an_object_is_empty(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text(text, encoding="utf-8")
    assert read_cached(path) == {}
    write_cached(path, {"a": [1]})
    assert read_cached(path) == {"a": [1]}
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["kept.json"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("damage", [lambda text: "[]", lambda text: re.sub(r"0\.[1-9]\d*", "0.5", text)])
def test_remembered_probabilities_that_were_changed_are_computed_again(
    damage: Callable[[str], str], own_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOULEMAP_CACHE", str(tmp_path / "cache"))

    def probabilities() -> list[float | None]:
        answer = Workspace(own_database).compare("resnet18", hardware=["l4", "t4"], precision="fp32")
        return [row.probability_best for row in answer.recommendations]

    first = probabilities()
    kept = tmp_path / "cache" / "computed.json"
    text = kept.read_text(encoding="utf-8")
    assert json.loads(text) and probabilities() == first
    assert damage(text) != text
    kept.write_text(damage(text), encoding="utf-8")
    assert probabilities() == first
