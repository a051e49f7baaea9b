"""Insert today's answers below the questions and commands of the documentation.

python benchmarks/question.py [--write]      --write puts the answers into README and docs/

The database of docs/sql.md is written by `joulemap compare resnet18`, as on the page. The page shows the first rows of
each answer, as `joulemap sql` prints them.

The commands of README and of the other pages run in the order of the page, on a terminal of 80 columns. The comment
above a command selects paragraphs of its output by their beginnings; `+2` adds the next two. A block of Python that
begins with `# NAME.py` is a file in the folder of the commands.

Sentences that repeat numbers of an answer get them from it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from unittest.mock import patch

import attrs

from joulemap.cli.app import run
from joulemap.show.present.document import table_document
from joulemap.show.present.format import TABLE, write
from joulemap.workspace import Workspace

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
MODEL: Final = "resnet18"
SHOWN: Final = 2
"""Rows of an answer that the page shows."""

SHOWN_PARTS: Final = "<!-- shown: "
"""Beginning of the comment that selects the shown paragraphs of an output."""

WIDTH: Final = "80"
"""Columns of the terminal that commands write to."""

QUESTION: Final = re.compile(r"```sql\n(?P<sql>.*?)\n```\n(?:\n```text\n.*?\n```\n)?", re.DOTALL)
"""Pattern of a statement with the answer below it, if there is one."""

COMMAND: Final = re.compile(
    r"<!-- shown: (?P<parts>[^\n]*) -->\n```text\n\$ joulemap (?P<words>[^\n]*)\n.*?```\n", re.DOTALL
)
"""Command with the shown part of its output."""

PART: Final = re.compile(r"(?P<begins>.*?)(?: \+(?P<more>\d+))?")
"""Pattern of a part of an output: its beginning, and the number of following parts that belong to it."""


def answer(workspace: Workspace, statement: str) -> str:
    """Return the first rows of an answer as they are printed."""
    found = workspace.sql(statement)
    text = write(table_document(attrs.evolve(found, rows=found.rows[:SHOWN])), TABLE)
    if len(found.rows) <= SHOWN:
        return text
    table, separator, note = text.partition("\n\n")
    return f"{table}\n…{separator}{note}"


def answer_questions(page: str) -> str:
    """Return the page with an answer under each statement."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "joulemap.duckdb")
        workspace.compare(MODEL)

        def put(question: re.Match[str]) -> str:
            statement = question["sql"]
            return f"```sql\n{statement}\n```\n\n```text\n{answer(workspace, statement)}\n```\n"

        return QUESTION.sub(put, page)


WHY: Final = "plot waterfall resnet50 l4 h100_sxm5 --precision bf16"
"""Command of the picture in README, docs/why.svg."""

OWN_FILE: Final = re.compile(r"```python\n# (?P<name>\w+\.py)\n(?P<code>.*?)```", re.DOTALL)
"""Python file of the reader, which the page shows and its commands name."""


def answer_commands(page: str) -> str:
    """Return the page with the current output below each command; AssertionError for a command that fails."""

    def put(command: re.Match[str]) -> str:
        shown = "\n\n".join(choose(output(command["words"]), command["parts"]))
        return f"<!-- shown: {command['parts']} -->\n```text\n$ joulemap {command['words']}\n{shown}\n```\n"

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        own = {"COLUMNS": WIDTH, "JOULEMAP_DB": "joulemap.duckdb", "JOULEMAP_CALIBRATION": folder}
        for one in OWN_FILE.finditer(page):
            Path(one["name"]).write_text(one["code"], encoding="utf-8")
        with patch.dict(os.environ, own):
            return COMMAND.sub(put, page)


def output(words: str) -> str:
    """Return the output of a command."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        code = run(shlex.split(words))
    assert code == 0, words
    return stream.getvalue()


def choose(text: str, parts: str) -> Iterator[str]:
    """Yield the named parts of an output, and `…` for the rest; AssertionError for a missing part."""
    found = text.strip("\n").split("\n\n")
    kept: set[int] = set()
    for part in parts.split("; "):
        named = PART.fullmatch(part)
        assert named is not None
        begins = re.compile(rf"(\s.*\n)*{re.escape(named['begins'])}")  # a long heading may start with its last words
        first = next((index for index, one in enumerate(found) if begins.match(one)), None)
        assert first is not None, f"no part begins with {named['begins']!r}"
        kept.update(range(first, first + 1 + int(named["more"] or 0)))
    for index, one in enumerate(found):
        if index in kept:
            yield one
        elif index - 1 in kept:
            yield "…"


@attrs.frozen
class Prose:
    """Numbers of a sentence, which are those of an answer elsewhere in the documentation."""

    page: str
    sentence: str
    """Part of the page with `{}` in place of each number; any white space stands for a space."""
    source: str
    """Page or picture with the answer."""
    numbers: str
    """Pattern of the answer, with groups named `n1`, `n2` … in the order of the sentence."""

    def update(self, page: str, source: str) -> str:
        """Return the page with the numbers of the answer; AssertionError if either has no such part."""
        held = r"\s+".join(map(re.escape, self.sentence.split())).replace(r"\{\}", r"(\S+)")
        found, given = re.search(held, page), re.search(self.numbers, source, re.DOTALL | re.MULTILINE)
        assert found is not None, self.sentence
        assert given is not None, self.numbers
        for index in range(len(found.groups()), 0, -1):
            page = page[: found.start(index)] + given[f"n{index}"] + page[found.end(index) :]
        return page


SURE: Final = r"^\| 85 to 95 \| (?P<{pairs}>[\d,]+) \| [\d.]+ \| (?P<{right}>[\d.]+) \|$"
"""Row of the table of confidence and correctness, docs/accuracy.md."""

PROSE: Final = (
    Prose(
        "README.md",
        "![{} mJ on an L4, {} mJ on an H100: static power adds {} mJ](docs/why.svg)",
        "docs/why.svg",
        r">A l4</text>(<[^>]*>)*static power<.*?>(?P<n1>[\d.]+) mJ<.*?>\+(?P<n3>[\d.]+) mJ<.*>(?P<n2>[\d.]+) mJ<",
    ),
    Prose("README.md", "85 to 95 % sure of, {} % were right.", "docs/accuracy.md", SURE.format(pairs="n2", right="n1")),
    Prose(
        "docs/answer.md",
        "85 to 95 % confidence were right in {} % of {} pairs.",
        "docs/accuracy.md",
        SURE.format(pairs="n2", right="n1"),
    ),
    Prose(
        "docs/tutorial.md",
        "({} of {} mJ and {} of {} mJ in step 2)",
        "docs/tutorial.md",
        r"^total +(?P<n2>[\d.]+) mJ +(?P<n4>[\d.]+) mJ .*?^computing +(?P<n1>[\d.]+) mJ +(?P<n3>[\d.]+) mJ ",
    ),
)
"""Sentences with numbers of answers."""


def update_prose(read: Callable[[str], str]) -> dict[str, str]:
    """Return the name of each page with such sentences -> its text with today's numbers; `read` returns a file."""
    pages: dict[str, str] = {}
    for one in PROSE:
        pages[one.page] = one.update(pages.get(one.page) or read(one.page), read(one.source))
    return pages


def list_pages() -> Iterator[tuple[Path, Callable[[str], str]]]:
    """Yield the pages with answers, each with the function that updates it."""
    yield DOCS / "sql.md", answer_questions
    for page in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))):
        if SHOWN_PARTS in page.read_text(encoding="utf-8"):
            yield page, answer_commands


def main() -> None:
    """Print the pages with their answers, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into README and docs/")
    arguments = parser.parse_args()
    if arguments.write:
        (DOCS / "why.svg").unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            code = run([*shlex.split(WHY), "--db", f"{folder}/why.duckdb", "--output", str(DOCS / "why.svg")])
            assert code == 0, WHY
    for page, put in list_pages():
        text = put(page.read_text(encoding="utf-8"))
        if arguments.write:
            page.write_text(text, encoding="utf-8")
        else:
            print(text, end="")
    if arguments.write:
        for name, text in update_prose(lambda name: (ROOT / name).read_text(encoding="utf-8")).items():
            (ROOT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
