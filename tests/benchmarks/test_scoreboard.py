"""The scoreboard has no row that coefficients saw."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

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
