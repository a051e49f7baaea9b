"""Markdown: every section with all columns."""

from __future__ import annotations

from tabulate import tabulate

from joulemap.present.document import Block, Document, Grid, Lines, Steps
from joulemap.present.format import Page


def write(document: Document, page: Page) -> str:  # noqa: ARG001
    """Return the sections of a document."""
    parts = [f"# {document.title}"] if document.title else []
    for section in document.shown:
        text = "\n\n".join(filter(None, map(_block, section.blocks)))
        parts.append(f"## {section.title}\n\n{text}" if section.title else text)
    return "\n\n".join(parts)


def _block(block: Block) -> str:
    if isinstance(block, Grid):
        rows = [[_cell(cell, is_tree=block.is_tree) for cell in row] for row in block.rows]
        if not block.texts:
            return ""
        sides = ["right" if index in block.numbers else "left" for index in range(len(block.headings))]
        return tabulate(
            rows, headers=list(map(_cell, block.headings)), tablefmt="pipe", disable_numparse=True, colalign=sides
        )
    if isinstance(block, Lines):
        return "\n".join(f"- {line}" for line in block.texts)
    if isinstance(block, Steps):
        return "\n".join(f"- `{command}`" for command in block.texts)
    return block.text


def _cell(cell: str, *, is_tree: bool = False) -> str:
    """Return a cell that does not end its own row; in a tree, the spaces before it are seen."""
    rest = cell.lstrip(" ") if is_tree else cell
    return "&nbsp;" * (len(cell) - len(rest)) + rest.replace("|", "\\|").replace("\n", "<br>")
