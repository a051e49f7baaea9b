"""Reference of the commands: a page for each, from the same records as `--help all`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from joulemap.cli.app import EXIT_CODES
from joulemap.cli.help import Entry
from joulemap.cli.overview import list_commands, list_groups
from tools.manual import Manual, read_manual

SPECIAL: Final = re.compile(r"([\\*_<>\[\]$#|~{}])")
"""Characters that Markdown or HTML would read as markup."""


def write_commands() -> Mapping[str, str]:
    """Return the pages of the reference, name -> text."""
    manuals = {name: read_manual(name) for name in list_commands()}
    pages = {f"commands/{name}.md": "\n".join(_write_page(manual)) for name, manual in manuals.items()}
    return {"commands/index.md": "\n".join(_write_index(manuals)), **pages}


def _write_index(manuals: Mapping[str, Manual]) -> Iterator[str]:
    yield "# Every command\n"
    yield "As `joulemap COMMAND --help all` prints them. [Commands](../cli.md) has what they share.\n"
    for title, names in list_groups().items():
        yield f"## {title}\n\n| command | |\n|---|---|"
        for name in names:
            yield f"| [`{manuals[name].path}`]({name}.md) | {escape(manuals[name].paragraphs[0])} |"
        yield ""
    yield f"{_write_codes()}\n"
    yield "```{toctree}\n:hidden:"
    yield from manuals
    yield "```"


def _write_page(manual: Manual) -> Iterator[str]:
    yield f"# {manual.path}\n"
    yield from _write_manual(manual, "##")
    yield _write_codes()


def _write_codes() -> str:
    return "\n".join(
        ("## Exit codes\n", *(f"- {escape(one)}" for one in EXIT_CODES), "\n[More](../cli.md#exit-codes).\n")
    )


def _write_manual(manual: Manual, level: str) -> Iterator[str]:
    yield from (f"{escape(one)}\n" for one in manual.paragraphs)
    for inner in manual.commands:
        yield f"{level} {inner.path}\n"
        yield from _write_manual(inner, f"{level}#")
    if manual.commands:
        return
    yield f"```text\n{manual.usage}\n```\n"
    if manual.examples:
        yield "\n".join((f"{level} Examples\n\n```sh", *manual.examples, "```\n"))
    yield f"```{{program}} {manual.path}\n```\n"
    yield from _write_entries(f"{level} Arguments", manual.arguments)
    yield from _write_entries(f"{level} Options", manual.options)


def _write_entries(heading: str, entries: Sequence[Entry]) -> Iterator[str]:
    if entries:
        yield f"{heading}\n"
    for one in entries:
        yield f"````{{option}} {one.names.replace(' / ', ', ')}\n\n{escape(one.meaning)}\n````\n"


def escape(text: str) -> str:
    """Return a text with all markup escaped, except inside backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return "".join(parts)
