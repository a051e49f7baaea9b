"""Tables of every command: rows that can be told apart, metrics that stay, cut rows that are counted.

The document behind each is held to the JSON Schema of its command as well: a question is asked once for both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

import attrs
import pytest

from conftest import Run
from document_schema import check_document
from joulemap.cli.output import OutputOptions, _put_head
from joulemap.domain.column import Col
from joulemap.domain.computed import make_table
from joulemap.domain.table import Row, Table, described
from joulemap.show.column import lay_columns
from joulemap.show.present.arrange import arrange
from joulemap.show.present.document import Document, Grid, Section, choose_rows
from joulemap.show.present.format import Page
from joulemap.show.present.writer.json import dump
from joulemap.show.present.writer.table import _describe_folded, write
from joulemap.workspace import Workspace

if TYPE_CHECKING:
    from joulemap.domain.column import Cell

WIDTH = 80

COMMANDS = [
    "compare resnet18 l4 t4 orin_nano --precision fp16,int8 --batch 1,8",
    "compare resnet18 orin_nano@7W orin_nano@15W --runtime fused,eager",
    "compare resnet18 l4 t4 --metric latency --limit 1",
    "compare resnet18 l4 t4 --metric efficiency",
    "compare resnet18 l4 t4 --level subgraph --limit 3",
    "recommend mobilenet_v2 l4 t4 orin_nano --max-latency 20ms --precision fp16,int8 --limit 2",
    "pareto resnet18 l4 t4 orin_nano --precision fp16,int8 --limit 3",
    "cost resnet18 l4 t4 --precision fp16,int8 --site pay=both --limit 1",
    "sweep resnet18 l4 t4 --batch 1,8,64 --precision fp16,int8 --limit 2",
    "sweep resnet18 l4 t4 --batch 1,8 --precision fp16,int8 --level batch --limit 5",
    "fleet resnet50 l4 t4 --rate 1000/s --p99 50ms --precision fp16,int8 --limit 1",
    "llm llama-3.2-1b l4 h100_sxm5 --precision bf16,fp8 --batch 1,8 --limit 4",
    "llm llama-3.2-1b h100_sxm5 --precision bf16,fp8 --batch 8 --in-flight 8",
    "train resnet18 h100_sxm5 l4 --precision bf16,fp32 --batch 64",
    "explore resnet18 --like orin_nano --random 60 --precision fp16,int8 --batch 1,8 --limit 5",
    "explore resnet18 --like orin_nano --random 60 --objective edp,power",
    "flip resnet18 l4 t4 --precision fp16 --limit 3",
    "sensitivity resnet18 l4 t4 --precision fp16 --limit 3",
    "explain resnet18 l4 t4 --precision fp16 --limit 3",
    "edp resnet18 l4 --precision fp16 --limit 3",
    "fusion resnet18 l4 --precision fp16 --limit 2",
    "utilization resnet18 l4 t4 --precision fp16 --limit 1",
    "analyze resnet18 l4 --precision fp16 --level subgraph --limit 3",
    "validate --hardware h100_sxm5 --model resnet50 --by batch",
]


def grids(document: Document) -> Iterator[tuple[str, Grid]]:
    for section in (*document.sections, *document.details):
        yield from ((section.title, block) for block in section.blocks if isinstance(block, Grid) and block.rows)


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", COMMANDS)
def test_rows_can_be_told_apart_and_cut_ones_are_counted(command: str, joulemap: Run, workspace: Workspace) -> None:
    documents: list[Document] = []
    written: list[dict[str, Any]] = []
    original = OutputOptions.write

    def keep(self: OutputOptions, document: Document, *answer: Any, **options: Any) -> None:
        documents.append(document)
        written.append(json.loads(dump(_put_head(document, is_wrapped=False).data)))
        original(self, document, *answer, **options)

    with patch.object(OutputOptions, "write", keep):
        asked = (*command.split(), "--show=details", "--db", workspace.path)
        done = joulemap(*asked, variables={"COLUMNS": str(WIDTH)})
    assert done.returncode == 0, done.stderr
    (document,) = documents
    if not command.startswith("validate"):  # rows alone, as of a table
        check_document(written[0], command)
    shown = " ".join(done.stdout.split())
    for title, grid in grids(document.on_screen(notes=False, details=True)):
        names = [tuple(row[index] for index in named(grid)) for row in grid.rows]
        assert len(set(names)) == len(names), (title, grid.headings, grid.distinguishing)
        arranged = arrange(grid, WIDTH)
        assert arranged is None or set(grid.fixed) <= set(arranged[0]), (title, grid.headings)
        if grid.cut:
            assert 0 < grid.cut_of - grid.cut <= len(grid.rows), title
            assert grid.cut_text in shown


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", ["analyze mlp l4", "edp resnet18 l4", "explain mlp l4 t4", "architectures mlp"])
def test_details_are_everything(command: str, joulemap: Run, workspace: Workspace) -> None:
    done = joulemap(*command.split(), "--show=details", "--db", workspace.path)
    assert done.returncode == 0, done.stderr
    assert not {"--limit", "--show details:", "not shown"} & {
        *re.findall(r"--limit|--show details:|not shown", done.stdout)
    }
    if command.startswith("architectures"):  # the principle of each class, with its source
        assert "Stored program" in done.stdout and "Systolic array" in done.stdout


def named(grid: Grid) -> list[int]:
    """Return the columns that name a row: the first, those that tell rows apart, else all texts."""
    if grid.distinguishing:
        return [index for index, name in enumerate(grid.headings) if not index or name in grid.distinguishing]
    return [index for index in range(len(grid.headings)) if not index or index not in grid.numbers]


class Configuration(Row):
    """A configuration."""

    label: Cell[str] = described("hardware")
    precision: Cell[str] = described("of activations")
    batch: Cell[int] = described("samples")
    energy_j: Cell[float] = described("of a batch", "J")
    latency_s: Cell[float] = described("of a batch", "s")


def lay(table: Table[Configuration], *columns: Col[Configuration], **told: Any) -> Grid:
    return lay_columns(cast("Any", SimpleNamespace(projected=frozenset())), table, columns, **told)


def rows(*precisions: str) -> list[Configuration]:
    return [
        Configuration(label="l4", precision=precision, batch=8, energy_j=index, latency_s=0.1)
        for index, precision in enumerate(precisions, 1)
    ]


def test_a_dimension_that_rows_differ_in_becomes_a_column_which_never_folds() -> None:
    table = make_table("rows", Configuration, rows("fp16", "int8"))
    of = Configuration
    drawn = lay(table, of.label.headed("hardware"), of.energy_j.kept, of.latency_s.ranking)
    assert drawn.headings == ("hardware", "precision", "energy", "latency")
    assert [row[1] for row in drawn.rows] == ["fp16", "int8"]
    assert (drawn.distinguishing, drawn.ranked, drawn.fixed) == (("precision",), ("latency",), [0, 1, 3])
    one = lay(make_table("rows", of, rows("fp16")), of.label.headed("hardware"), of.energy_j.kept)
    assert (one.headings, one.distinguishing) == (("hardware", "energy"), ())


def test_what_tells_rows_apart_stays_where_a_terminal_is_narrow() -> None:
    headings = ("hardware", "energy", "power", "precision", "latency")
    rows = tuple(("l4", "1 mJ", "2 W", one, "3 ms") for one in ("fp16", "int8"))
    grid = Grid(headings=headings, rows=rows, keep=("energy",), distinguishing=("precision",), ranked=("latency",))
    text = write(Document(title="", sections=(Section("", grid),), data={}, table=EMPTY), Page(30))
    assert text.splitlines()[0].split() == ["hardware", "precision", "latency"]
    many = attrs.evolve(grid, rows=tuple((*row[:3], f"{row[3]}{index}", row[4]) for index in range(3) for row in rows))
    narrow = write(Document(title="", sections=(Section("", many),), data={}, table=EMPTY), Page(22))
    assert narrow.splitlines()[0] == "l4, fp160" and narrow.count("latency 3 ms") == 6


def test_the_named_row_stays_and_the_cut_ones_are_counted() -> None:
    """Of five rows the limit keeps two and the fourth is named: two are cut."""
    some = rows("fp64", "fp32", "fp16", "int8", "int4")
    table = make_table("rows", Configuration, some)
    of = Configuration
    columns = (of.label.headed("hardware"), of.precision, of.energy_j)
    drawn = lay(table, *columns, limit=2, noun="chips", stays=some[3].__eq__)
    assert [row[1] for row in drawn.rows] == ["fp64", "fp32", "int8"]
    assert drawn.cut_text == "2 of 5 chips not shown; --limit 5 shows all"
    assert choose_rows("abcd", None) == ("a", "b", "c", "d") and lay(table, of.label, limit=5).cut_text == ""


EMPTY = make_table("rows", Configuration, [])


@pytest.mark.parametrize(("names", "told"), [(("a", "b"), "2 columns folded: a, b;"), (("a", "b, c"), "a; b, c;")])
def test_folded_columns_can_be_counted(names: tuple[str, ...], told: str) -> None:
    grid = Grid(headings=("kept", *names), rows=(("1", "2", "3"),))
    assert told in _describe_folded(grid, [0], 80)
