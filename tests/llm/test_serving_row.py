"""Rows of served models: what cells become, and what is no row."""

from __future__ import annotations

import attrs
import pytest

from blank import open_blank
from joulemap.catalog.public import find_public_table
from joulemap.system.errors import UsageError
from joulemap.wing.llm.row import IDLE, NOTES, QUANTITIES, SERVED, ServingRow, read_serving_row

CELLS = {"source": "us", "hardware": "h100_sxm5", "model": "llama-3.1-8b", "scope": "offline"}


def test_empty_cells_are_not_said() -> None:
    row = read_serving_row({**CELLS, "batch": "7.5", "device_count": "", "power_w": "300", "engine": ""})
    assert (row.batch, row.device_count, row.engine) == (7.5, None, "")
    assert row.measured() == {"power_w": 300.0}


def test_notes_say_what_columns_do_not() -> None:
    notes = "weights 4920 bytes; 512 tokens already in the cache; between tokens: median; prompts (short)"
    row = read_serving_row({**CELLS, "notes": notes})
    assert (row.file_bytes, row.cached_tokens, row.statistic, row.prompt_kind) == (4920.0, 512.0, "median", "short")
    assert (row.uses_cache, row.context_tokens) == (True, None)
    row = read_serving_row({**CELLS, "notes": notes, "cached_tokens": "0", "statistic": "mean", "uses_cache": "no"})
    assert (row.cached_tokens, row.statistic, row.uses_cache) == (0.0, "mean", False)


def test_a_median_over_requests_of_their_means_is_a_mean_over_steps() -> None:
    notes = "first token and between tokens: medians over requests; between tokens = mean of each request (TPOT)"
    assert read_serving_row({**CELLS, "notes": notes}).statistic == "mean"


@pytest.mark.parametrize("name", ["public:serving", "public:serving_energy"])
def test_notes_of_shipped_tables_are_read_as_those_of_their_sources(name: str) -> None:
    table = find_public_table(name)
    assert table is not None
    rows = [row for row in table.read_rows() if isinstance(row, ServingRow)]
    assert {row.statistic for row in rows if row.source == "mlenergy"} == {"median"}
    assert {row.statistic for row in rows if row.source == "inferencex"} <= {"mean"}
    assert {row.length_spread for row in rows if row.source == "inferencex"} <= {1.0 / 9.0}
    assert {row.uses_cache for row in rows if row.source == "wilkins"} == {False}
    assert all(row.uses_cache for row in rows if row.source != "wilkins")


def test_a_date_in_seconds_is_a_day() -> None:
    assert read_serving_row({**CELLS, "date": "1752772000"}).date == "2025-07-17"
    assert read_serving_row({**CELLS, "date": "2025-11"}).date == "2025-11"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scope", "online"),
        ("batch", "many"),
        ("power_w", "-1"),
        ("request_latency_s", "inf"),
        ("tensor_parallel", "0"),
        ("uses_cache", "perhaps"),
        ("statistic", "least"),
        ("model", ""),
    ],
)
def test_what_is_no_row_is_refused(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=name):
        read_serving_row({**CELLS, name: text})


def test_every_measured_value_of_a_served_model_is_a_column() -> None:
    def columns(table: str) -> set[str]:
        return {name for name, *_ in open_blank().execute(f"DESCRIBE internal.{table}").fetchall()}

    served = {field.name for field in attrs.fields(ServingRow)}
    assert served == columns("serving_measurement") - {"serving_measurement_id", "content_digest"}
    assert {*QUANTITIES, IDLE, *(column for column, _, _ in NOTES), *SERVED} <= served
    assert set(QUANTITIES) <= columns("serving_prediction")
