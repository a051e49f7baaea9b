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
        assert_close(error, expected)
    # 3 is within a factor of 1.6 of 2, and not within one of 1.1 of 4; the third has no interval
    assert (source.row_count, source.covered_count, source.interval_count) == (3, 1, 2)
    # only rows that both predict: 50 and 25 beside 10 and 75
    for error, expected in ((peer.mean, 0.375), (peer.bias, 0.125), (peer.peer_mean, 0.425), (peer.peer_bias, -0.325)):
        assert_close(error, expected)
    assert (peer.row_count, peer.nearer_count) == (2, 1)
    assert (by_part["class"].name, by_part["class"].quantity, by_part["year"].name) == ("gpu", "time", "2023")
    assert (by_part["seen"].row_count, by_part["refused"].row_count) == (7, 2)


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
