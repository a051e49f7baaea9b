"""A floor for prose: sentence length and phrases of README and docs, and beginnings of docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from wording import UNCLEAR

ROOT: Final = Path(__file__).parents[2]

SOURCE: Final = ROOT / "src" / "joulemap"

FRONT: Final = ("CHANGELOG", "CONTRIBUTING", "README")

PAGES: Final = (*FRONT, *sorted(path.stem for path in (ROOT / "docs").glob("*.md")))
"""Pages held to these rules: all."""

LONGEST: Final = 30
"""Maximum words per sentence."""

BLOCKS: Final = re.compile(
    r"^```.*?^```$|^<!-- [a-z]+ -->.*?<!-- end -->|^(?:\||<|!\[|    \S).*?$", re.DOTALL | re.MULTILINE
)
"""Samples, tables, indented commands, comments and figures; none is prose."""

BANNED: Final = (
    "all that ships", "answers all", "can be had", "if it could be had", "dearer", "takes least", "the doubter",
    "is promised", "the promise", "grown by half", "fails first", "may be of how", "no coefficient saw",
    "nearer first", "nobody measured", "that nobody", "one of its own", "turns round", "turn round",
    "in the midst", "so that others", "of what its", "of what may", "chosen with in view", "makes nothing",
    "what for", "scores nothing", "with in view", "come by themselves", "hang on", "hangs on", "what is had",
)  # fmt: skip
"""Phrases that readers stumble over; the field has a term for each."""

SPELLINGS: Final = {
    "arithmetic intensity": r"operational intensity|arithmetic-intensity",
    "break-even": r"break ?even",
    "catalogue": r"(?<!joulemap\.)\bcatalog\b(?![/.`])",
    "data centre": r"data[ -]center|data-centre",
    "data sheet": r"data-?sheet",
    "elementwise": r"element-wise",
    "energy-delay product": r"energy delay product",
    "held out": r"heldout|hold-out",
    "KV cache": r"KV-cache|K/V|key[-/]value",
    "memory-bound": r"memory bound\b|compute bound\b",
    "microcontroller": r"micro-controller",
    "modelled": r"\bmodel(?:ed|ing)\b",
    "multiply-accumulate": r"multiply-add|multiply accumulate",
    "p99": r"\b99th\b|\bP99\b",
    "Pareto front": r"Pareto[- ]frontier|Pareto curve",
    "prefill": r"pre-fill",
    "roofline": r"roof[- ]line\b",
    "speedup": r"speed[- ]up\b",
    "subgraph": r"sub-graph",
    "throughput": r"through-put",
    "time to first token": r"time-to-first-token",
    "utilization": r"utilisation",
}
"""Term of the glossary -> its other spellings, none of which is written."""

ROOMS: Final = (
    "ask", "construct", "calibrate", "catalog", "cli", "device", "domain", "exchange", "physics", "plan",
    "show", "store", "system", "trace",
)  # fmt: skip
"""Packages whose docstrings are held to these rules: all but `generated`, which is made from headers of queries."""

GENERATED: Final = re.compile(r"wing/\w+/generated/row\.py")
"""Files that are generated from headers of queries."""

FRAGMENT: Final = re.compile(
    r"(of|that|what|whatever|which|who|whose|whether|those|these|how|where|when|so many|so much|as|in|at|on|by|to"
    r"|from|for|with|beside|besides|behind|under|over|between|before|beyond|above|below|it|its|they|them|their"
    r"|the same|the other|the one)\b(?!-)",
    re.IGNORECASE,
)
"""Beginnings that lack their noun: a reader of such a docstring alone cannot tell its subject."""


def list_sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page's prose, each on one line, without markup."""
    path = (ROOT if page.isupper() else ROOT / "docs") / f"{page}.md"
    prose = BLOCKS.sub("\n\n", path.read_text(encoding="utf-8"))
    for part in re.split(r"\n\s*\n|\n(?=#|- |\d+\. )", prose):
        plain = re.sub(r"\]\([^)]*\)|[\[*_]", "", " ".join(part.split()))
        yield from re.split(r"(?<=[.?!:;])\s+", plain)


@pytest.mark.parametrize("page", PAGES)
def test_prose_is_short_and_has_no_banned_phrase(page: str) -> None:
    sentences = list(list_sentences(page))
    assert [one for one in sentences if len(one.split()) > LONGEST] == []
    assert [one for one in sentences for phrase in BANNED if phrase in one.lower()] == []


def list_texts() -> Iterator[tuple[str, str]]:
    """Yield name and text of what people read: pages, options, templates of answers, meanings of columns."""
    paths = [ROOT / f"{name}.md" for name in FRONT]
    paths += (ROOT / "docs").glob("*.md")
    paths += (ROOT / "queries").rglob("*.sql")
    paths += (SOURCE / "cli").rglob("*.py")
    paths += [path for path in SOURCE.rglob("*.py") if {"show", "show.py", "text.py"} & {*path.parts}]
    for path in sorted(paths):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def find_phrases(phrases: Mapping[str, str]) -> list[str]:
    """Return file and words of each place where a pattern matches, with the key of the pattern."""
    patterns = {name: re.compile(pattern) for name, pattern in phrases.items()}
    return [
        f"{path}: {match[0]} ({name})"
        for path, text in list_texts()
        for name, pattern in patterns.items()
        for match in pattern.finditer(text)
    ]


def test_a_term_has_one_spelling() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert any(f"| {term} |" in glossary for term in SPELLINGS)
    assert find_phrases(SPELLINGS) == []


def test_help_and_answers_have_no_banned_phrase() -> None:
    assert find_phrases({phrase: rf"(?i)\b{re.escape(phrase)}\b" for phrase in BANNED}) == []


DATA: Final = SOURCE / "catalog" / "data"

TEXT_FOLDERS: Final = ("architecture", "box", "cost", "doubt", "family", "hardware", "link", "system")
"""Folders of data files whose texts answers show."""


@pytest.mark.parametrize("folder", TEXT_FOLDERS)
def test_texts_of_data_files_have_no_unclear_phrase(folder: str) -> None:
    paths = [path for path in sorted((DATA / folder).iterdir()) if path.suffix in (".toml", ".csv")]
    lines = [(path.name, line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines
    assert [f"{name}: {match[0]}" for name, line in lines if (match := UNCLEAR.search(line.partition(" #")[0]))] == []


PERCENT_FORMAT: Final = re.compile(r":[^{}\"'\s]*[0-9]%[^A-Za-z]|[^ ]%%")
"""Format that puts a percent sign next to the number: `:.0%` of Python, `%.0f%%` of SQL."""

UNSPACED: Final = re.compile(r"(?<![=\w.,])\d[\d.,]*%")
"""Percentage without a space; an option's value as `energy=5%` is typed so."""


def list_code() -> Iterator[Path]:
    """Yield the files whose formats make what people read."""
    for folder, pattern in (("src", "*.py"), ("benchmarks", "*.py"), ("queries", "*.sql"), ("schemas", "*.sql")):
        yield from sorted((ROOT / folder).rglob(pattern))


def test_a_percentage_is_written_with_a_space() -> None:
    """`present.cell` writes shares and probabilities; the locale of figures has the space of formats of Vega-Lite."""
    lines = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in list_code()
        for line in path.read_text(encoding="utf-8").splitlines()
        if PERCENT_FORMAT.search(line)
    ]
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        lines += [f"{page.relative_to(ROOT)}: {match[0]}" for match in UNSPACED.finditer(page.read_text("utf-8"))]
    assert lines == []


@pytest.mark.parametrize("line", ['f"{share:.0%}"', 'f"{ratio:+7.1%} of"', "printf('%.0f%%', share)"])
def test_a_format_without_a_space_is_found(line: str) -> None:
    assert PERCENT_FORMAT.search(line)


def list_docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a file, those under fields and constants included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip()


@pytest.mark.parametrize("room", ["", *ROOMS, pytest.param("wing", marks=pytest.mark.wings)])
def test_docstrings_begin_with_their_subject_or_verb(room: str) -> None:
    paths = sorted((SOURCE / room).rglob("*.py") if room else SOURCE.glob("*.py"))
    texts = [
        f"{name}:{line}: {text.splitlines()[0]}"
        for path in paths
        if not GENERATED.fullmatch(name := path.relative_to(SOURCE).as_posix())
        for line, text in list_docstrings(path)
        if FRAGMENT.match(text)
    ]
    assert paths
    assert texts == []


def list_public_names(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each name of a module, class, function or attribute of a file, with its line; not those of local values."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        if isinstance(node, ast.ClassDef | ast.Module):
            fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            yield from ((one.id, one.lineno) for one in fields if isinstance(one, ast.Name))


def test_names_say_what_they_are_of() -> None:
    """`one` is no name of a function, class or attribute; a fraction of a row says what it is a share of."""
    vague = {"one", "share_fraction"}
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for name, line in list_public_names(path)
        if name in vague
    ]
    assert not found
