"""What people read fits their terminal, and loses nothing that is not named; programs get everything."""

from __future__ import annotations

import io
import re
import shlex
import time
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from conftest import Run
from joulemap.domain.table import Column, Table
from joulemap.show.present import cell
from joulemap.show.present.arrange import arrange
from joulemap.show.present.cell import (
    Number,
    Remark,
    separate_alike,
    show,
    show_amount,
    show_chance,
    show_chosen_share,
    show_doubt,
    show_price,
    show_quantity,
    show_share,
    show_span,
    show_within,
)
from joulemap.show.present.document import Block, Document, Grid, Lines, Section, Steps, Text
from joulemap.show.present.format import write
from joulemap.show.present.progress import Bar as ProgressBar, describe_left
from sample import thin

WIDTHS = (60, 80, 120, 200)

WORDS = st.text("abcdef_.~", min_size=1, max_size=18)
NUMBERS = st.sampled_from(list(map(Number, ("10.2 mJ", "437 µs", "5.0 %", "31.4k/s", "1,092 USD", "1.03x", "8"))))
CELLS = st.one_of(NUMBERS, st.just(""), WORDS, st.lists(WORDS, min_size=2, max_size=12).map(" ".join))


@st.composite
def grids(draw: st.DrawFn, least: int = 1) -> Grid:
    """Tables of any content, whose headings differ and whose first cells are filled."""
    words = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
    headings = draw(st.lists(words, min_size=1, max_size=15, unique=True))
    rows = draw(st.lists(st.tuples(WORDS, *[CELLS] * (len(headings) - 1)), min_size=least, max_size=20))
    keep = draw(st.lists(st.sampled_from(headings), unique=True))
    return Grid(headings=tuple(headings), rows=tuple(rows), keep=tuple(keep))


CHIPS = Grid(
    headings=("rank", "hardware", "energy per inference", "latency", "purchase price", "source"),
    rows=(
        (
            Number("1"),
            "kpu_t256",
            *map(Number, ("1.64 mJ", "1.02 ms", "1,092 USD")),
            "a price list of the maker, read when it was printed",
        ),
        (Number("2"), "h100_sxm5", Number("14.8 mJ"), Number("437 µs"), "", "a shop"),
    ),
    keep=("hardware", "latency", "energy per inference"),
)


def make(*blocks: Block, title: str = "") -> Document:
    """A document of one section."""
    column = Column(name="energy_j", type="DOUBLE", meaning="energy")
    table = Table[Any](title="made", columns=(column,), rows=((1.5,),), sql="", parameters={})
    return Document(title=title, sections=(Section("", blocks),), data=table.records(), table=table)


def draw(grid: Grid, width: int | None) -> str:
    """The table as text."""
    return write(make(grid), "table", width)


def folded(grid: Grid, width: int | None) -> list[str]:
    """The columns that a table does not show, which it counts, and names as far as a line has room."""
    note = re.search(r"\((\d+) columns? folded: (.*); --show wide shows all\)", " ".join(draw(grid, width).split()))
    arranged = arrange(grid, width)
    hidden = [] if arranged is None else [one for place, one in enumerate(grid.headings) if place not in arranged[0]]
    assert len(hidden) == (int(note[1]) if note else 0)
    assert note is None or all(name in hidden for name in note[2].removesuffix(", …").split(", "))
    return hidden


@given(grids(), st.integers(40, 200))
def test_a_table_fits_and_every_word_is_whole_or_its_column_is_named(grid: Grid, width: int) -> None:
    text = draw(grid, width)
    assert max(map(len, text.split("\n"))) <= width
    assert all(line == line.rstrip() for line in text.split("\n"))
    hidden = folded(grid, width)
    assert grid.headings[0] not in hidden
    words = {word.strip(",") for word in text.split()}
    is_table = any(set(line) == {"-", " "} or set(line) == {"-"} for line in text.split("\n"))
    for index, heading in enumerate(grid.headings):
        if heading not in hidden:
            assert {word.strip(",") for cell in grid.column(index) for word in cell.split()} <= words
            assert not is_table or set(heading.split()) <= words


def test_headings_and_long_text_wrap_before_a_column_folds() -> None:
    assert draw(CHIPS, 80).split("\n") == [
        "                 energy per",
        "rank  hardware    inference  latency  purchase price  source",
        "----  ---------  ----------  -------  --------------  -------------------",
        "   1  kpu_t256      1.64 mJ  1.02 ms       1,092 USD  a price list of the",
        "                                                      maker, read when it",
        "                                                      was printed",
        "   2  h100_sxm5     14.8 mJ   437 µs                  a shop",
    ]


def test_few_rows_whose_important_columns_do_not_fit_are_blocks_with_a_name() -> None:
    assert draw(CHIPS, 22).split("\n\n")[1].split("\n") == [
        "rank 2, h100_sxm5",
        "  energy per inference",
        "    14.8 mJ",
        "  latency",
        "    437 µs",
        "  source",
        "    a shop",
    ]


def test_one_row_that_says_what_matters_is_a_row() -> None:
    one = attrs.evolve(CHIPS, rows=CHIPS.rows[:1])
    assert folded(one, 40) == ["purchase price", "source"]


def test_numbers_stand_right_and_words_left() -> None:
    grid = Grid(
        headings=("hardware", "energy", "units"), rows=(("a", Number("10.2 mJ"), "x8"), ("bb", "unsupported", "x10"))
    )
    assert grid.numbers == frozenset()
    more = attrs.evolve(grid, rows=(*grid.rows, ("c", Number("5 mJ"), "x9")))
    assert more.numbers == {1}
    assert draw(more, 80).split("\n")[2:] == [
        "a             10.2 mJ  x8",
        "bb        unsupported  x10",
        "c                5 mJ  x9",
    ]
    noted = attrs.evolve(more, rows=(*more.rows, ("d", Remark("1 in 20"), "")))
    assert noted.numbers == frozenset()
    sides = write(make(more), "markdown").split("\n")[1].strip("|").split("|")
    assert [side.endswith(":") for side in sides] == [False, True, False]


def test_a_number_stays_with_its_unit() -> None:
    text = write(make(Lines(("moved 606 kB at 3.35 TB/s, that is 65 % of it",))), "table", 24)
    assert text.split("\n") == ["- moved 606 kB at", "  3.35 TB/s, that is", "  65 % of it"]


def test_nothing_of_an_input_is_obeyed_where_markdown_is_shown() -> None:
    evil = "<script>x</script>![a](http://b)`"
    chips = Grid(headings=("hardware", evil), rows=((evil, "x < 5"),))
    text = write(make(chips, Lines((evil,)), Steps((evil,)), Text(evil), title=evil), "markdown")
    *rest, step = sorted(text.split("\n"), key=lambda line: line.startswith("- `` "))
    assert step == f"- `` {evil} ``"
    assert not any("<s" in line or "](" in line for line in rest)
    assert "x < 5" in text


@pytest.mark.parametrize("form", ["markdown", "csv", "json"])
def test_formats_for_programs_know_no_width(form: str) -> None:
    texts = {write(make(CHIPS), form, width) for width in (40, 200, None)}
    assert len(texts) == 1
    expected = {"csv": "energy_j\n1.5", "json": '[\n  {\n    "energy_j": 1.5\n  }\n]'}
    text = texts.pop()
    if form in expected:
        assert text == expected[form]
    else:
        assert all(cell in text for cells in (CHIPS.headings, *CHIPS.rows) for cell in cells)


DRAWN = re.compile("[│├●┤─█░▏▎▍▌▋▊▉▁▂▃▄▅▆▇…·○⠁-⣿]")
"""Characters of a picture, and the mark of a shortened heading."""


@pytest.mark.parametrize(
    "arguments",
    thin(
        [
            ("compare", "resnet18"),
            ("compare", "resnet18", "--level", "run"),
            ("compare", "resnet18", "--metric", "efficiency", "--show=details"),
            ("analyze", "resnet18", "h100_sxm5", "--level", "operator"),
            ("explain", "resnet18", "h100_sxm5", "tpu_v4", "--level", "category"),
            ("edp", "resnet18", "tpu_v4"),
            ("utilization", "resnet18", "--hardware", "tpu_v4"),
            ("hardware", "show", "tpu_v4"),
            ("model", "show", "resnet18"),
            ("query", "list"),
            ("sql", "SELECT * FROM runs ORDER BY run_id LIMIT 2"),
        ],
        2,
    ),
    ids=lambda arguments: " ".join(arguments[:2]),
)
@pytest.mark.slow
def test_what_commands_say_fits(arguments: tuple[str, ...], joulemap: Run, own_database: Path) -> None:
    piped = joulemap(*arguments, "--db", own_database).stdout
    assert "columns folded" not in piped
    words = {word.strip(",") for word in piped.split()}
    for width in WIDTHS:
        variables = {"COLUMNS": str(width)}
        text = joulemap(*arguments, "--db", own_database, variables=variables).stdout
        for line in text.splitlines():
            assert len(line) <= width or max(map(len, line.split())) > width - 9
            assert line == line.rstrip()
        assert "\n\n\n" not in text
        said = re.sub(r"\(\d+\s+columns?\s+folded:[^;]*;\s+--show\s+wide\s+shows\s+all[^)]*\)", "", text)
        # pictures and their axes follow the width, and a backslash joins the lines of a command
        plain = [word for word in said.split() if not DRAWN.search(word) and not set(word) <= {*"-+\\"}]
        assert {word.strip(",") for word in plain} <= words
    narrow, wide = (
        joulemap(*arguments, "--db", own_database, "--show=wide", variables={"COLUMNS": one}).stdout
        for one in ("60", "200")
    )
    assert narrow == wide


@given(
    words=st.lists(
        st.sampled_from(["resnet18", "--show=wide", "--batch 1", "'my net.py:Net'", '"it\'s"']), max_size=12
    ),
    width=st.integers(40, 100),
)
def test_a_shell_reads_a_broken_command_as_the_whole(words: list[str], width: int) -> None:
    command = " ".join(["joulemap", *words])
    shown = write(make(Steps((command,), "Next")), "table", width)
    assert shlex.split(shown.replace("\\\n", " ")) == ["Next", *shlex.split(command)]
    assert max(map(len, shown.splitlines())) <= width


def test_a_pipe_gets_80_columns_of_an_answer_and_whole_rows(joulemap_process: Run, own_database: Path) -> None:
    unset = {"COLUMNS": ""}
    text = joulemap_process("compare", "resnet18", "--db", own_database, variables=unset).stdout
    assert all(len(line) <= 80 or str(own_database) in line for line in text.splitlines())
    rows = joulemap_process(
        "sql", "SELECT repeat('x', 200) AS long, 1 AS one", "--db", own_database, variables=unset
    ).stdout
    assert len(rows.splitlines()[0]) > 200


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.54, "USD", "0.54 USD"),
        (15.283, "USD", "15.28 USD"),
        (1092.4, "USD", "1,092 USD"),
        (0.0581, "USD", "0.0581 USD"),
        (0.8048, "USD/h", "0.8048 USD/h"),
        (21740.0, "W", "21.7 kW"),
        (7.08e-4, "J", "708 µJ"),
        (299.9, "s", "300 s"),
        (300.0, "s", "5 min"),
        (1830.0, "s", "30.5 min"),
        (-1830.0, "s", "-30.5 min"),
        (7200.0, "s", "2 h"),
        (3.6e6, "s", "1,000 h"),
    ],
)
def test_prefixes_are_of_si_units_alone_and_money_has_cents(value: float, unit: str, text: str) -> None:
    assert show_quantity(value, unit) == text
    assert show(value, "", unit) == text


def test_a_number_without_a_unit_has_no_prefix_below_one() -> None:
    assert [show_quantity(value, "") for value in (0.652, 2360.0)] == ["0.652", "2.36k"]


@pytest.mark.parametrize(
    ("per", "amount", "price"),
    [("J", "708 µJ", "12.0 %"), ("s", "708 µs", "120 mW"), ("B", "708 µB", "120 mJ/B"), ("MAC", "708µ", "120 mJ")],
)
def test_an_amount_has_the_unit_that_it_is_counted_in(per: str, amount: str, price: str) -> None:
    assert (show_amount(7.08e-4, per), show_price(0.12, per)) == (amount, price)


@pytest.mark.parametrize(
    ("half_width", "text"), [(0.4, "72 mJ"), (0.04, "72.4 mJ"), (1.2, "72 mJ"), (None, "72.4 mJ"), (0.001, "72.4 mJ")]
)
def test_digits_end_where_the_interval_begins(half_width: float | None, text: str) -> None:
    assert show_within(0.07241, "J", half_width) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        (("24 mJ", "54 mJ"), "24\N{EN DASH}54 mJ"),
        (("989 µs", "1.65 ms"), "989 µs\N{EN DASH}1.65 ms"),
        (("5.0 %", "25.0 %"), "5.0\N{EN DASH}25.0 %"),
        (("8", "32"), "8\N{EN DASH}32"),
        (("8", "8"), "8"),
        (("3 W",), "3 W"),
    ],
)
def test_a_range_is_written_one_way(ends: tuple[str, ...], text: str) -> None:
    assert show_span(*ends) == text


@pytest.mark.parametrize(
    ("half_width", "text"),
    [
        (0.12, "0.887\N{EN DASH}1.13x"),
        (0.2499, "0.779\N{EN DASH}1.28x"),  # exp(-0.2499) = 0.7789, exp(0.2499) = 1.2839
        (0.25, "0.78\N{EN DASH}1.3x"),
        (0.4825, "0.62\N{EN DASH}1.6x"),  # 1.63 J (1 to 2.6 J)
        (1.0, "0.37\N{EN DASH}2.7x"),
    ],
)
def test_the_half_width_of_a_logarithm_is_shown_as_factors(half_width: float, text: str) -> None:
    assert show_doubt(half_width) == text


@pytest.mark.parametrize(
    ("name", "unit", "meaning", "words"),
    [
        ("energy_j", "J", "of the batch", "energy"),
        ("energy_j", "", "of the batch", "energy_j"),
        ("energy_j", "", "", "energy_j"),
        ("idle_units_fraction", "", "of all units", "idle units share"),
    ],
)
def test_a_heading_leaves_out_a_unit_only_where_values_show_it(name: str, unit: str, meaning: str, words: str) -> None:
    assert cell.heading(Column(name=name, type="DOUBLE", unit=unit, meaning=meaning)) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0 %"),
        (0.125, "12.5 %"),
        (0.9994, "99.9 %"),
        (0.9996, "over 99.9 %"),
        (1.0, "100 %"),
        (0.1 * 3 + 0.7, "100 %"),
        (1.0 - 1e-12, "100 %"),
        (1.004, "100.4 %"),
        (-0.05, "-5.0 %"),
    ],
)
def test_a_share_is_100_percent_only_of_a_whole(value: float, text: str) -> None:
    assert show_share(value) == show(value, "latency_fraction") == text


@pytest.mark.parametrize("name", ["probability_best", "energy_probability"])
def test_a_probability_is_never_100_or_0_percent(name: str) -> None:
    for value, text in ((1.0, "over 99 %"), (0.996, "over 99 %"), (0.934, "93 %"), (0.01, "1 %"), (0.002, "under 1 %")):
        assert show(value, name) == show_chance(value) == text


def test_a_chosen_share_has_the_digits_that_it_was_chosen_with() -> None:
    assert [show_chosen_share(one) for one in (0.7, 0.025, 1.0, 1 / 3)] == ["70 %", "2.5 %", "100 %", "33.3333 %"]


def test_a_bound_is_a_number_of_its_column() -> None:
    rows = tuple((show_chance(one), name) for one, name in ((1.0, "x"), (0.12, "y"), (0.001, "z")))
    assert Grid(headings=("a", "b"), rows=rows).numbers == {0}


def test_integers_of_a_column_are_separated_alike() -> None:
    assert separate_alike(["131,072", "7498", "38"]) == ["131,072", "7,498", "38"]
    assert separate_alike(["7498", "38"]) == ["7498", "38"]
    assert separate_alike(["131,072", "7498 mm2", ""]) == ["131,072", "7498 mm2", ""]


def test_progress_appears_after_a_second_and_disappears(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short work draws nothing; long work says what is done and what is left, and leaves no line."""
    from rich.console import Console

    seen = io.StringIO()
    bar = ProgressBar(console=Console(file=seen, force_terminal=True, width=80))
    bar.open("reading")
    bar.move(1, 4)
    bar.close()
    assert seen.getvalue() == "" and not bar.is_open
    monkeypatch.setattr("joulemap.show.present.progress.DELAY_S", 0.01)
    bar.open("reading")
    deadline = time.monotonic() + 10.0
    while "reading" not in seen.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    bar.move(3, 4)
    bar.say("counting \x1b[31m")
    time.sleep(0.3)  # the line is drawn ten times a second
    bar.close()
    shown = seen.getvalue()
    assert "3 of 4" in shown and "counting \\x1b[31m" in shown and "None" not in shown
    assert shown.endswith("\x1b[2K")  # the last line is cleared


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((0, None, None, 12.4), "12 s"),
        ((3, 1456, None, 1.0), "3 of 1,456"),
        ((700, 1400, 4.6, 5.0), "700 of 1,400, about 5 s left"),
    ],
)
def test_progress_says_what_is_left(given: tuple[float, float | None, float | None, float], told: str) -> None:
    assert describe_left(*given) == told
