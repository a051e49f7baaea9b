"""Packed workloads: they are what a database holds, at every batch that ships."""

from __future__ import annotations

from pathlib import Path

import attrs
import numpy as np
import pytest

from blank import open_blank
from joulemap.bundle import workload
from joulemap.bundle.pack import as_numbers
from joulemap.bundle.workload import GROWING, READ, ROW, STEPS, open_zoo
from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import load_shipped
from joulemap.physics.workload import WorkloadColumns
from joulemap.store.workload import read_columns
from joulemap.store.zoo import Shipped, read_shipped
from tools.packed import code_texts
from tools.shipped import BLOCK_ROWS, write_zoo

SAMPLE = ("stream_copy", "resnet50", "mlp", "maxvit_t", "swin_v2_t")
FIELDS = [one.name for one in attrs.fields(WorkloadColumns) if one.init]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [*SAMPLE, *sorted(load_shipped().keys() - set(SAMPLE))])
def test_columns_are_those_of_a_database(name: str) -> None:
    zoo = open_zoo(ZOO)
    for batch in (1, 2, 7):
        assert zoo.ships(name, batch) == load_shipped()[name].ships(batch)
        if not zoo.ships(name, batch):
            continue
        connection = open_blank()
        (number,) = read_shipped(connection, ZOO, [Shipped(name, batch, workload_key="a")])
        stored, packed = read_columns(connection, number), zoo.form_columns(name, batch)
        for field in FIELDS:
            one, other = getattr(stored, field), getattr(packed, field)
            assert np.array_equal(one, other), (batch, field)
            if isinstance(one, np.ndarray):
                assert one.dtype.kind == other.dtype.kind, field


def test_all_models_ship_in_blocks_that_decode_fast() -> None:
    zoo = open_zoo(ZOO)
    assert set(zoo.models) == set(load_shipped())
    rows: dict[int, int] = {}
    for place in zoo.places.values():
        used = place.rows["workload_access"]
        rows[place.block] = rows.get(place.block, 0) + used.stop - used.start
    assert max(rows.values()) < 2 * BLOCK_ROWS
    assert (ZOO / workload.FILE).stat().st_size < 750_000


def test_a_growing_number_and_a_reference_are_restored_by_hand() -> None:
    """v(b) = v b + e (b - 1): 10 at batch 1 and 30 at 3 grows by 10; a constant 7 has an excess of -7."""
    columns = {
        "byte_count": np.array([10, 7], dtype=np.int8),
        "byte_count_excess": np.array([0, -7], dtype=np.int8),
        "birth_index": np.array([3, 2], dtype=np.int8),
        "death_index": np.ma.MaskedArray(np.array([5, 0], dtype=np.int8), mask=[False, True]),
        "release_index": np.array([100, 100], dtype=np.int8),
    }
    found = workload.restore_table("workload_buffer", columns, 3)
    assert as_numbers(found["byte_count"]).tolist() == [30, 7]
    assert as_numbers(found["birth_index"]).tolist() == [3, 5]
    assert as_numbers(found["death_index"]).tolist() == [5, None]
    assert as_numbers(found["release_index"]).tolist() == [100, 200]
    assert as_numbers(found["buffer_index"]).tolist() == [0, 1]


def test_tables_of_a_workload_are_complete() -> None:
    (tables,) = open_zoo(ZOO).restore_all([("mlp", 2)])
    assert set(tables) == set(GROWING) == set(ROW) == set(STEPS)
    assert "is_matrix" not in tables["workload_tensor"]
    assert set(READ["workload_operator"]) <= set(tables["workload_operator"])


def test_rows_of_another_order_are_refused(tmp_path: Path) -> None:
    ordered, other = code_texts(["a", "b"]), code_texts(["b", "a"])
    tables = {table: {"model": ordered} for table in GROWING}
    tables["workload_tensor"] = {"model": ordered, "shape": code_texts(["1x2", "2"])}
    with pytest.raises(ValueError, match="not in the order"):
        write_zoo(tmp_path, {}, {**tables, "workload_edge": {"model": other}})
