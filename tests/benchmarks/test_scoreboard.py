"""The scoreboard: its numbers by hand, its page from its numbers, and no row in it that coefficients saw."""

from __future__ import annotations

import csv
import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from compare import assert_close
from joulemap.catalog.calibration import SHIPPED
from joulemap.catalog.measurement import load_measurements
from joulemap.catalog.public import load_public_tables

ROOT: Final = Path(__file__).parents[2]

pytestmark = pytest.mark.wings


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    sys.path.append(str(ROOT / "benchmarks"))
    import scoreboard

    yield scoreboard
    sys.path.remove(str(ROOT / "benchmarks"))


def test_errors_are_those_worked_by_hand(board: Any) -> None:
    told = {"source": "s", "quantity": "latency_s", "hardware": "l4", "label": ""}
    rows = [
        board.Scored(**told, measured=2.0, predicted=3.0, half_width=math.log(1.6), peers={"p": 2.2}),  # +50 %; +10 %
        board.Scored(**told, measured=4.0, predicted=3.0, half_width=math.log(1.1), peers={"p": 1.0}),  # -25 %; -75 %
        board.Scored(**told, measured=1.0, predicted=1.1),  # +10 %
    ]
    lines = board.make_lines(rows, rows[:1], {("s", "a coefficient"): 7}, {("s", "no such chip"): 2})
    by_part = {one.part: one for one in lines}
    source, peer = by_part["source"], by_part["peer"]
    for error, expected in ((source.median, 0.25), (source.mean, 0.85 / 3), (source.bias, 0.35 / 3)):
        assert_close(error, expected, rel=1e-12)
    # 3 is within a factor of 1.6 of 2, and not within one of 1.1 of 4; the third has no interval
    assert (source.row_count, source.covered_count, source.interval_count) == (3, 1, 2)
    # only rows that both predict: 50 and 25 beside 10 and 75
    for error, expected in ((peer.mean, 0.375), (peer.bias, 0.125), (peer.peer_mean, 0.425), (peer.peer_bias, -0.325)):
        assert_close(error, expected, rel=1e-12)
    assert (peer.row_count, peer.nearer_count) == (2, 1)
    assert (by_part["class"].name, by_part["class"].quantity, by_part["year"].name) == ("gpu", "time", "2023")
    assert (by_part["seen"].row_count, by_part["refused"].row_count) == (7, 2)


def test_a_change_is_told_as_better_or_worse(board: Any) -> None:
    def line(mean: float, count: int = 3, part: str = "source", name: str = "s") -> Any:
        return board.Line(part=part, name=name, quantity="latency_s", row_count=count, mean=mean)

    tell = board.tell_change
    assert list(tell([line(0.2)], [line(0.1)])) == ["better source s latency_s: 20.0 % of 3 rows, now 10.0 % of 3"]
    assert next(iter(tell([line(0.1)], [line(0.2)]))).startswith("worse")
    assert list(tell([line(0.1)], [line(0.10001)])) == []  # not a tenth of a percent
    assert next(iter(tell([line(0.1)], [line(0.1, 4)]))).startswith("other")
    assert [text.split()[0] for text in tell([line(0.1)], [line(0.1, name="t")])] == ["gone", "new"]


def test_the_page_is_that_of_its_numbers(board: Any) -> None:
    lines = board.read_lines(board.CSV)
    assert board.render(lines) == board.split_page()[0]
    assert board.FIGURE.stat().st_size > 1000
    parts: dict[str, Counter[str]] = {}
    for one in lines:
        kind = board.name_kind(one.quantity) if one.part == "source" else one.quantity
        parts.setdefault(one.part, Counter())[kind] += one.row_count
    assert parts["source"] == parts["class"] == parts["year"]
    assert all(0 <= one.covered_count <= one.interval_count <= one.row_count for one in lines)
    assert all(one.median >= 0.0 and abs(one.bias) <= one.mean + 1e-4 for one in lines)


def test_predictors_of_the_same_rows_share_a_line(board: Any) -> None:
    """Nearest first; those of other rows are apart, and lines of few rows are in the file alone."""
    import scoreboard_page as page

    def line(peer: str, count: int, mean: float, own: float) -> Any:
        told = {"part": "peer", "name": "s", "quantity": "power_w", "row_count": count, "median": own, "mean": own}
        return board.Line(**told, peer=peer, peer_median=mean, peer_mean=mean)

    lines = [
        line("far", 9, 0.9, 0.1),
        line("near", 9, 0.2, 0.1),
        line("other", 12, 0.3, 0.05),
        line("few", 4, 0.3, 0.1),
    ]
    assert list(page._behind(lines))[2:-1] == [
        "| s | power | 12 | 5.0 / 5.0 | other 30.0 / 30.0 |",
        "| s | power | 9 | 10.0 / 10.0 | near 20.0 / 20.0; far 90.0 / 90.0 |",
    ]
    drawn = page.draw(lines)
    assert "s: power (9)" in drawn and "s: power (12)" in drawn and "s: power (4)" not in drawn


def test_energies_of_a_board_in_view_are_not_held_out(board: Any) -> None:
    """A served row has no measurement of a model, and its source is judged instead of its board."""
    own = {"measurement_id": 1, "serving_measurement_id": None, "board": "stm32u575"}
    assert board.is_in_view(own)
    assert not board.is_in_view({**own, "board": "ndp120"})
    assert not board.is_in_view({**own, "measurement_id": None, "serving_measurement_id": 1, "board": "a100_pcie_80gb"})
    known = {"architecture": "gpu", "boundary": "board", "quantity": "energy", "hardware": "l4@60W"}
    (line,) = board._count_evidence([{**known, "measurement_count": 3}], [known, {**known, "quantity": "power"}])
    assert (line.name, line.quantity, line.row_count, line.nearer_count, line.peer) == ("gpu", "board", 3, 1, "l4")


def test_no_row_of_it_was_in_view(board: Any) -> None:
    """Of each source that ships as many numbers are scored as have nothing in `seen`."""
    scored, refused = Counter[str](), Counter[str]()
    for one in board.read_lines(board.CSV):
        if one.part in ("source", "refused"):
            (scored if one.part == "source" else refused)[one.name] += one.row_count
    view = board.sources()["in view"]
    unseen = Counter[str]()
    calibrated = {path.stem for path in SHIPPED.glob("*.toml")}
    for row in dict.fromkeys(load_measurements()):  # a source may say a thing twice
        if not row.seen and row.hardware.partition("@")[0] not in calibrated.union(view):
            figures = (row.latency_s, row.throughput_per_s, row.energy_j, row.power_w, row.peak_memory_bytes)
            unseen[board.name_source(row.source)] += sum(figure is not None for figure in figures)
    shipped = {board.name_source(row.source) for row in load_measurements()}
    assert {name: scored[name] for name in shipped} == {name: unseen[name] for name in shipped}
    for table in load_public_tables().values():
        assert not (not table.is_single and any(scored[source] for source in table.seen))
    for name in ("PipeWeave", "NeuSight", "NeuSight, training"):
        rows = sum(1 for _ in csv.DictReader((board.PEER / board.sources()[name]["rows"]).open(encoding="utf-8")))
        assert scored[name] + refused[name] >= rows, name
