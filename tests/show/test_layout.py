"""Tables laid out by a line, records of what others have by name, and options read as a record."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, assert_type, cast

import pytest

from compare import assert_close
from joulemap.cli.value import read_as
from joulemap.domain.column import Col
from joulemap.domain.computed import make_table, take
from joulemap.domain.settings import Limits
from joulemap.domain.table import Row, Table, described
from joulemap.show.column import alter, derived, lay_columns
from joulemap.show.present.document import Grid
from joulemap.show.present.text import longest_line, wrap_command
from joulemap.system.errors import UsageError

if TYPE_CHECKING:
    from joulemap.domain.column import Cell


class Configuration(Row):
    """A configuration."""

    label: Cell[str] = described("hardware", heading="hardware", shown="hardware")
    batch: Cell[int] = described("samples")
    step_s: Cell[float | None] = described("of a step", "s", heading="a step")
    cost: Cell[float | None] = described("of a month", "USD")
    half_width: Cell[float | None] = described("of its logarithm", heading="80 %", shown="±")
    way: Cell[str] = described("rented or bought")
    saved: Cell[float] = described("of a month", "USD", shown="+")
    worth: Cell[float] = described("in its unit", shown="in unit")
    unit: Cell[str] = described("of worth")


ROWS = make_table(
    "rows",
    Configuration,
    [
        Configuration(
            label="l4", batch=1, step_s=0.002, cost=1234.5, half_width=0.1, way="", saved=3.5, worth=2.0, unit="J"
        ),
        Configuration(
            label="t4", batch=1, step_s=None, cost=12.34, half_width=None, way="", saved=-3.5, worth=3.0, unit="s"
        ),
    ],
)


OF = Configuration


def lay(*columns: Col[Configuration], rows: Table[Configuration] = ROWS, projected: str = "", **told: Any) -> Grid:
    return lay_columns(cast("Any", SimpleNamespace(projected=frozenset({projected}))), rows, columns, **told)


def test_columns_have_the_headings_and_formats_of_their_declaration() -> None:
    """exp(0.1) is 1.105."""
    two: Col[Configuration] = derived("twice", lambda row: str(2 * row.batch))
    columns = (OF.label, OF.batch.kept, OF.step_s, OF.cost.headed("price"), OF.half_width.kept, OF.saved, OF.worth)
    drawn = lay(*columns, two, projected="t4")
    assert drawn.headings == ("hardware", "batch", "a step", "price", "80 %", "saved", "worth", "twice")
    assert drawn.rows == (
        ("l4", "1", "2 ms", "1,234 USD", "0.905\N{EN DASH}1.11x", "+3.50 USD", "2 J", "2"),
        ("~t4", "1", "", "12.34 USD", "", "-3.50 USD", "3 s", "2"),
    )
    assert drawn.keep == ("batch", "80 %")
    kept = lay(OF.label.ranking, OF.batch, OF.cost.kept, keep=(OF.batch, OF.way), limit=1)
    assert (kept.keep, kept.ranked) == (("batch", "cost"), ("hardware",))


def test_a_column_may_be_shown_by_a_text_on_its_row() -> None:
    class Won(Row):
        won: Cell[int] = described("times", shown="{won} of {total}")
        total: Cell[int] = described("times")

    answer = cast("Any", SimpleNamespace(projected=frozenset()))
    table = make_table("won", Won, [Won(won=1, total=3)])
    assert lay_columns(answer, table, (Won.won, Won.total)).rows == (("1 of 3", "3"),)
    assert alter((Won.won, Won.total), Won.total.headed("in all"))[1].heading == "in all"


def test_a_column_without_values_or_with_one_alone_is_left_out_where_that_is_asked() -> None:
    drawn = lay(OF.label, OF.way.if_any, OF.batch.if_varied, OF.step_s.if_any, OF.cost.if_varied)
    assert drawn.headings == ("hardware", "a step", "cost")


def test_a_value_is_shown_with_its_interval() -> None:
    """exp(0.1) is 1.105."""
    drawn = lay(OF.label, OF.cost.within(OF.half_width), OF.step_s.within(OF.half_width))
    assert [row[2] for row in drawn.rows] == ["2 ms (1.8\N{EN DASH}2.2)", ""]
    assert drawn.rows[1][1] == "12.34 USD"


def test_an_interval_is_shown_by_its_ends_and_drawn_beside_them() -> None:
    """exp(0.1) is 1.105."""
    span = OF.half_width.headed("span").ends_of(OF.step_s).drawn
    drawn = lay(OF.label, OF.step_s.headed("step"), span, OF.saved.drawn)
    assert [row[2] for row in drawn.rows] == ["1.8\N{EN DASH}2.2 ms", ""]
    interval, difference = drawn.pictures
    assert (interval.kind, interval.after, interval.unit, interval.rows[1]) == ("interval", "span", "s", ())
    assert interval.of == "step"  # whose best cells colour it
    low, value, high = interval.rows[0]
    assert_close(value, 0.002)
    assert_close(high / value, value / low)
    assert_close(high / value, 1.1051709, rel=1e-6)
    assert (difference.kind, difference.after, difference.rows) == ("difference", "saved", ((3.5,), (-3.5,)))
    assert len(lay(OF.label, OF.step_s.within(OF.half_width).drawn, limit=1).pictures[0].rows) == 1


def test_values_that_all_rows_share_are_a_text_of_the_subject() -> None:
    samples = OF.batch.headed("samples").or_common
    drawn = lay(OF.label, samples, OF.cost.or_common, OF.way.or_common)
    assert (drawn.headings, drawn.common) == (("hardware", "cost"), ("samples 1",))
    one = lay(OF.label, samples, rows=ROWS.with_rows(ROWS.rows[:1]))
    assert (one.headings, one.common) == (("hardware", "samples"), ())


def test_a_column_is_that_of_its_rows_and_a_cell_that_of_one() -> None:
    """`Col` hides from the type checker that it is a property, which would make every column `Any`."""
    assert_type(OF.batch, Col[Configuration])
    assert_type(OF.batch.kept.headed("samples"), Col[Configuration])
    assert_type(ROWS[0].batch, int)
    assert_type(ROWS[0].cost, float | None)
    assert (OF.batch.field, ROWS[0].batch, ROWS[0].replace(batch=2).batch) == ("batch", 1, 2)
    with pytest.raises(AttributeError):
        ROWS[0].batch = 2


def test_a_record_takes_what_the_first_of_its_sources_has() -> None:
    first, then = ROWS
    assert take(Configuration, first, then) == first.record()
    assert take(Configuration, object(), then)["label"] == "t4"


@pytest.mark.wings
def test_options_are_read_by_their_names_and_units() -> None:
    from joulemap.wing.explore.option import DesignOptions
    from joulemap.wing.llm.option import ServingOptions

    limits = read_as(Limits, DesignOptions(max_power="15W", max_latency="33ms"))
    assert limits == Limits(max_power_w=15.0, max_latency_s=0.033)
    serving = ServingOptions(rate="4/s", in_flight=None, prompt=100, output_tokens="7").read()
    assert (serving.rate_per_s, serving.prompt, serving.output, serving.requests) == (4.0, 100, 7, "")
    assert serving.handover_bytes_per_s == 50e9
    with pytest.raises(UsageError, match="--max-power: '15' has no unit"):
        read_as(Limits, DesignOptions(max_power="15"))


def test_a_long_command_with_a_comment_is_broken_and_still_runs() -> None:
    words = [f"--word-{place} value" for place in range(9)]
    told = wrap_command(f"echo {' '.join(words)}  # a comment", 40)
    assert longest_line([told]) <= 40
    run = subprocess.run(["/bin/sh", "-c", told], capture_output=True, text=True, check=True)
    assert run.stdout.split() == " ".join(words).split()
