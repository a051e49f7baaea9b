"""What the ten questions of docs/sql.md answer, put under each of them.

python benchmarks/question.py [--write]      --write puts the answers into docs/sql.md

The database is that of the page: `joulemap compare resnet18`, made for the occasion. Of each answer the first rows
stand in the page, as `joulemap sql` prints them.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import Final

import attrs

from joulemap.present.document import table_document
from joulemap.present.format import TABLE, write
from joulemap.workspace import Workspace

PAGE: Final = Path(__file__).parents[1] / "docs" / "sql.md"
MODEL: Final = "resnet18"
SHOWN: Final = 5
"""Rows of an answer that stand in the page."""

QUESTION: Final = re.compile(r"```sql\n(?P<sql>.*?)\n```\n(?:\n```text\n.*?\n```\n)?", re.DOTALL)
"""A statement with the answer under it, if there is one."""


def answer(workspace: Workspace, statement: str) -> str:
    """Return the first rows of an answer as they are printed."""
    found = workspace.sql(statement)
    text = write(table_document(attrs.evolve(found, rows=found.rows[:SHOWN])), TABLE)
    if len(found.rows) <= SHOWN:
        return text
    table, separator, note = text.partition("\n\n")
    return f"{table}\n…{separator}{note}"


def answered(page: str, workspace: Workspace) -> str:
    """Return the page with an answer under each statement."""

    def put(question: re.Match[str]) -> str:
        statement = question["sql"]
        return f"```sql\n{statement}\n```\n\n```text\n{answer(workspace, statement)}\n```\n"

    return QUESTION.sub(put, page)


def main() -> None:
    """Print the page with its answers, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"into docs/{PAGE.name}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder) / "joulemap.duckdb")
        workspace.compare(MODEL)
        text = answered(PAGE.read_text(encoding="utf-8"), workspace)
    if arguments.write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
