"""Reference of the library: every public name, which Sphinx documents from docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import joulemap
from joulemap.row import Row
from joulemap.store.library import find_query
from joulemap.system.record import frozen
from joulemap.tools.row import spell_type


@frozen
class Part:
    """Page of public names of one kind."""

    page: str
    title: str
    text: str


RECORDS: Final = "domain"
"""Page of records, of which `physics` defines those that formulas read."""

PARTS: Final = (
    Part("workspace", "The workspace", "A database and how to ask it."),
    Part("shortcut", "Functions of the package", "The questions of `Workspace`, asked of the command line's database."),
    Part("settings", "What is asked", "Records and closed sets of names that questions take."),
    Part("answer", "Answers and their rows", "What questions return. A field is called as its query's column."),
    Part(RECORDS, "What things are", "Records of models, hardware, their numbers, and runs."),
    Part("present", "What a command would show", "Documents, of which every format is written."),
    Part("store", "Results of any size", "The database and its statements."),
    Part("errors", "Errors", "Each has the exit code of its command."),
    Part("rest", "Others", "Everything else that is public."),
)


def write_library() -> Mapping[str, str]:
    """Return the pages of the reference, name -> text."""
    found: dict[str, list[str]] = {}
    for name, home in sorted(find_homes().items()):
        found.setdefault(_find_page(home), []).append(name)
    parts = [part for part in PARTS if part.page in found]
    pages = {f"reference/{part.page}.md": "\n".join(_write_page(part, found[part.page])) for part in parts}
    return {"reference/index.md": "\n".join(_write_index(parts, found)), **pages}


def find_homes() -> dict[str, str]:
    """Return public name -> the module that defines it."""
    stub = ast.parse(Path(joulemap.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = (one for one in stub.body if isinstance(one, ast.ImportFrom))
    return {name.name: one.module or "" for one in imports for name in one.names}


def _find_page(home: str) -> str:
    _, *rooms = home.split(".")
    page = rooms[-1] if rooms[-1] == "settings" else RECORDS if rooms[0] == "physics" else rooms[0]
    return page if page in {part.page for part in PARTS} else "rest"


def _write_index(parts: list[Part], found: Mapping[str, list[str]]) -> Iterator[str]:
    yield "# Every public name\n"
    yield "As `joulemap.NAME`. [As a library](../library.md) says how they go together.\n"
    for part in parts:
        yield f"- [{part.title}]({part.page}.md): {' '.join(f'{{py:obj}}`~joulemap.{it}`' for it in found[part.page])}"
    yield "\n```{toctree}\n:hidden:"
    yield from (part.page for part in parts)
    yield "```"


def _write_page(part: Part, names: list[str]) -> Iterator[str]:
    yield f"# {part.title}\n\n{part.text}\n\n```{{eval-rst}}"
    for name in names:
        yield from _write_name(name)
    yield "```"


def _write_name(name: str) -> Iterator[str]:
    value = getattr(joulemap, name)
    if inspect.isclass(value) and issubclass(value, Row) and value is not Row:
        yield f".. autoclass:: joulemap.{name}\n"
        for column in find_query(value.query).columns:
            text = f"{column.unit}: {column.meaning}" if column.unit else column.meaning
            meaning = re.sub(r"([*|\\]|(?<=\w)_\b)", r"\\\1", text)
            yield f"   .. attribute:: {column.name}\n      :type: {spell_type(column)}\n\n      {meaning}\n"
    elif inspect.isclass(value):
        yield f".. autoclass:: joulemap.{name}\n   :members:\n   :undoc-members:\n"
    elif inspect.isfunction(value):
        yield f".. autofunction:: joulemap.{name}\n"
    else:
        yield f".. autodata:: joulemap.{name}\n"
