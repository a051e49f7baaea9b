"""Packed files: what is read is what was written, and a damaged file is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from joulemap.bundle.pack import (
    MAGIC,
    Column,
    Pack,
    as_numbers,
    as_texts,
    join_texts,
    pack_for_browser,
)
from joulemap.system.errors import CatalogueError
from tools.packed import code_texts, write_pack

NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20)
WORDS = st.lists(st.none() | st.text(st.characters(exclude_characters="\x1f", codec="utf-8"), max_size=4), max_size=20)


@settings(max_examples=settings().max_examples // 3)  # each compresses two sections, as tightly as what ships
@given(numbers=NUMBERS, words=WORDS, missing=st.lists(st.booleans(), min_size=20, max_size=20))
def test_what_is_read_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], words: list[str | None], missing: list[bool]
) -> None:
    path = tmp_path_factory.mktemp("pack") / "one.pack"
    array, mask = np.array(numbers, dtype=np.int64), np.array(missing[: len(numbers)], dtype=bool)
    reals = np.array([0.1, -0.0, 1e300, 2.0**-1074])
    section: dict[str, Column] = {
        "integers": array,
        "masked": np.ma.MaskedArray(array, mask=mask),
        "truths": mask,
        "reals": reals,
        "words": code_texts(words),
    }
    write_pack(path, {"first": {"one": np.arange(3)}, "second": section})
    pack = Pack(path)
    assert pack.names == ("first", "second")
    found = pack.read("second")
    assert list(found) == list(section)
    masked, truths = as_numbers(found["masked"]), as_numbers(found["truths"])
    assert np.array_equal(as_numbers(found["integers"]), array)
    assert np.array_equal(truths, mask)
    assert truths.dtype == bool
    assert as_numbers(found["reals"]).tobytes() == reals.tobytes()
    assert np.array_equal(np.ma.getmaskarray(masked), mask)
    assert np.array_equal(np.ma.filled(masked, 0), np.where(mask, 0, array))
    assert as_texts(found["words"]).list() == words


def test_integers_take_the_narrowest_type_that_holds_them(tmp_path: Path) -> None:
    columns = {"small": np.array([-128, 127]), "more": np.array([-129]), "most": np.array([2**40])}
    write_pack(tmp_path / "a", {"a": columns})
    kinds = [str(as_numbers(one).dtype) for one in Pack(tmp_path / "a").read("a").values()]
    assert kinds == ["int8", "int16", "int64"]


def test_texts_are_joined_without_those_that_no_row_has() -> None:
    first, second = code_texts(["a", "b", None, "a"]), code_texts(["b", "c"])
    joined = join_texts([first.take(slice(1, 4)), second.take(slice(1, 2))])
    assert joined.list() == ["b", None, "a", "c"]
    assert sorted(joined.texts) == ["a", "b", "c"]


def test_a_text_with_the_separator_is_refused() -> None:
    with pytest.raises(ValueError, match=r"U\+001F"):
        code_texts(["a\x1fb"])


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not a packed file"),
        (b"PAR1 and more", "is not a packed file"),
        (b"joulemap pack 2\nand more", "is of another format"),
        (MAGIC + b"\x05\x00\x00\x00{", "cannot be read"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "some.pack"
    path.write_bytes(content)
    with pytest.raises(CatalogueError, match=f"^some.pack {reason}.*: install joulemap again$"):
        Pack(path)
    with pytest.raises(CatalogueError, match=r"^none.pack cannot be read"):
        Pack(tmp_path / "none.pack")


def test_a_damaged_section_is_refused_and_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "some.pack"
    write_pack(path, {"one": {"x": np.arange(100)}, "two": {"x": np.arange(100)}})
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    assert len(Pack(path).read("one")["x"]) == 100
    with pytest.raises(CatalogueError, match=r"^some.pack is damaged"):
        Pack(path).read("two")


def test_a_browser_gets_some_sections_without_xz(tmp_path: Path) -> None:
    """Kept sections hold the same bytes, and one that is damaged is refused as in any packed file."""
    path, own = tmp_path / "whole.pack", tmp_path / "own.pack"
    write_pack(path, {"0 numbers": {"x": np.arange(100)}, "0 names": {"y": code_texts(["a"])}, "index": {}})
    own.write_bytes(pack_for_browser(path, lambda name: name != "0 names"))
    assert b"xz" not in own.read_bytes().lower()[:200]
    assert Pack(own).names == ("0 numbers", "index")
    for name in Pack(own).names:
        assert Pack(own).expand(name) == Pack(path).expand(name)
    own.write_bytes(own.read_bytes()[:-3])
    with pytest.raises(CatalogueError, match=r"^own.pack is damaged"):
        Pack(own).read("index")
