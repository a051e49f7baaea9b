"""Answers and tables as Arrow, pandas and polars, and as a notebook and a prompt show them."""

from __future__ import annotations

import sys
from datetime import datetime
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from joulemap.domain.table import Column
from joulemap.show.present.document import Document, Grid, Lines, Section, Steps, Text
from joulemap.show.present.format import write
from joulemap.store.query import Rows
from joulemap.system.errors import ExitCode, JoulemapError, MissingPackageError, SqlError
from joulemap.workspace import Workspace

KINDS = ("HUGEINT", "BIGINT", "DECIMAL(38,15)", "VARCHAR", "BOOLEAN", "INTEGER[]", "TIMESTAMP", "INTERVAL")
ROWS: tuple[tuple[Any, ...], ...] = (
    (2**100 + 1, 2**62 + 1, Decimal("0.000000000000001"), "a", True, [1], datetime(2026, 1, 2), "2 days"),
    (None, None, None, None, None, None, None, None),
)
TABLE = Rows(
    title="topic.name@1", columns=tuple(Column(name=f"c{i}", type=kind, meaning="") for i, kind in enumerate(KINDS)),
    rows=ROWS,
)  # fmt: skip


def test_arrow_keeps_types_and_every_digit() -> None:
    arrow = TABLE.to_arrow()
    assert [tuple(row.values()) for row in arrow.to_pylist()] == list(ROWS)
    assert [str(kind) for kind in arrow.schema.types[:3]] == ["decimal128(38, 0)", "int64", "decimal128(38, 15)"]
    empty = Rows(title="t", columns=TABLE.columns, rows=()).to_arrow()
    assert (empty.num_rows, empty.schema.types[:7]) == (0, arrow.schema.types[:7])


def test_pandas_makes_no_float_of_an_integer() -> None:
    pandas = pytest.importorskip("pandas")
    frame = TABLE.to_pandas()
    assert (frame.c0[0], frame.c1[0], str(frame.c1.dtype)) == (2**100 + 1, 2**62 + 1, "Int64")
    assert frame.c1[1] is pandas.NA


def test_polars_makes_no_float_of_an_integer() -> None:
    pytest.importorskip("polars")
    assert TABLE.to_polars().row(0)[:2] == (2**100 + 1, 2**62 + 1)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=f"pip install {package}") as refused:
        getattr(TABLE, f"to_{package}")()
    assert isinstance(refused.value, JoulemapError)
    assert isinstance(refused.value, ImportError)
    assert refused.value.exit_code == ExitCode.USAGE


@pytest.mark.slow
def test_every_answer_is_a_frame_and_a_page(database: Path) -> None:
    workspace = Workspace(database)
    chips = ("h100_sxm5", "tpu_v4")
    answers = (
        workspace.compare("resnet18"),
        workspace.analyze("resnet18", chips[0]),
        workspace.explain("resnet18", *chips),
        workspace.describe_hardware(chips[0]),
        workspace.info(),
        workspace.profile("resnet18"),
    )
    for answer in answers:
        table = answer.document().table
        assert answer.to_arrow().num_rows == len(table)
        assert answer.to_arrow().column_names == list(table.names)
        assert " ".join(answer.document().title.split()) in " ".join(repr(answer).split())
        check_page(answer._repr_html_())


def test_rows_that_nobody_reads_keep_no_writer_out(own_database: Path) -> None:
    workspace = Workspace(own_database)
    with workspace.stream("SELECT * FROM energy_ledger") as opened:
        reader = opened.arrow()
        assert reader.read_next_batch().num_rows > 0
    assert workspace.analyze("resnet18", "l4", precision="int8").total.energy_fj > 0
    with pytest.raises(SqlError, match="statement is closed"):
        reader.read_all()


def test_a_statement_is_arrow_without_a_row_of_python(database: Path) -> None:
    workspace = Workspace(database)
    statement = "SELECT run_id, line_energy_fj, now() AS t FROM energy_ledger ORDER BY ALL LIMIT 5"
    with workspace.stream(statement) as opened:
        arrow = opened.arrow().read_all()
    assert isinstance(arrow, pa.Table)
    assert arrow.select([0, 1]).to_pylist() == workspace.sql(statement).to_arrow().select([0, 1]).to_pylist()


def test_rows_are_short_at_a_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = Rows(title="sql", columns=TABLE.columns, rows=ROWS * 50)
    lines = repr(rows).splitlines()
    assert lines[0] == "sql: 100 rows x 8 columns"
    assert len(lines) == 13
    assert max(map(len, lines)) <= 80
    check_page(rows._repr_html_())


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert "svg" in self.seen or tag in ("svg", "figure") or all(name == "style" for name, _ in attrs)
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(text: str) -> None:
    page = Page()
    page.feed(text)
    assert page.open == []
    drawn = {"figure", "svg", "title", "desc", "g", "path", "rect", "text", "line", "defs", "clippath", "tspan"}
    assert page.seen <= drawn | {
        "div", "h3", "h4", "table", "thead", "tbody", "tr", "th", "td", "p", "ol", "ul", "li", "pre", "br", "code",
    }  # fmt: skip


def test_html_escapes_every_text() -> None:
    evil = "<script>alert('&')</script>"
    grid = Grid(headings=(evil, "n"), rows=(("  " + evil, "1 J"), ("a\nb", "2 J")))
    blocks = (grid, Lines((evil,)), Steps((evil,)), Text(evil))
    document = Document(title=evil, sections=(Section(evil, blocks),), data={}, table=TABLE)
    text = write(document, "html")
    check_page(text)
    assert text.count("&lt;script&gt;") == 7
    assert "&nbsp;&nbsp;&lt;script" in text
