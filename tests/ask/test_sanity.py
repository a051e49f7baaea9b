"""Top down: chips at their limit draw what such chips draw."""

from __future__ import annotations

import json

import pytest

from conftest import Run
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.measurement import load_measurements
from joulemap.system.errors import ExitCode
from joulemap.workspace import Workspace

MEASURED_CHIPS = ("a100_sxm4_80gb", "a100_sxm4_40gb", "h100_sxm5", "h200_sxm", "tpu_v4")


@pytest.fixture(scope="module")
def everything() -> list[dict[str, object]]:
    return Workspace("never-made.duckdb").sanity().probes.records()


@pytest.mark.slow
def test_every_target_is_probed_at_every_precision(everything: list[dict[str, object]]) -> None:
    products = {(row["hardware"], row["precision"]) for row in everything if row["model"] == "matrix_product"}
    catalogue = {name: one for name, one in load_catalogue().hardware.items() if not one.sold_in}
    assert products == {(name, precision) for name, chip in catalogue.items() for precision in chip.peaks}
    assert {row["hardware"] for row in everything if row["model"] == "stream_copy"} == set(catalogue)


@pytest.mark.slow
def test_what_draws_little_was_fitted_to_boards(everything: list[dict[str, object]]) -> None:
    catalogue = load_catalogue().hardware
    low = [row for row in everything if row["status"] == "low"]
    assert len(low) < 15
    for row in low:
        if catalogue[str(row["hardware"])].is_projection:
            continue
        assert catalogue[str(row["hardware"])].priced_at == "board", row


@pytest.mark.slow
def test_a_probe_is_measured_where_a_load_was(everything: list[dict[str, object]]) -> None:
    catalogue = load_catalogue().hardware
    measured = [row for row in everything if row["status"] == "measured"]
    run = {row["hardware"] for row in everything if row["status"] != "unsupported"}
    assert {row["hardware"] for row in measured} == {one.id for one in catalogue.values() if one.loads} & run
    for row in measured:
        for load in catalogue[str(row["hardware"])].loads:
            assert f"{load.model} at {load.precision}" in str(row["reason"]) or "the clock drops to" in str(
                row["reason"]
            ), row


@pytest.mark.slow
@pytest.mark.parametrize("hardware", MEASURED_CHIPS)
def test_a_large_product_draws_most_of_the_cap(hardware: str, everything: list[dict[str, object]]) -> None:
    rows = [row for row in everything if row["hardware"] == hardware and row["model"] == "matrix_product"]
    assert len(rows) == len(load_catalogue().hardware[hardware].peaks)
    for row in rows:
        assert 0.6 <= float(str(row["power_ratio"])) <= 1.0 + 1e-9, row


@pytest.mark.slow
def test_a_stream_copy_draws_what_was_measured(everything: list[dict[str, object]]) -> None:
    (row,) = (row for row in everything if row["hardware"] == "h200_sxm" and row["model"] == "stream_copy")
    assert 0.75 <= float(str(row["measured_ratio"])) <= 1.25
    measured = next(one for one in load_measurements() if (one.hardware, one.model) == (row["hardware"], "stream_copy"))
    assert row["measured_power_w"] == measured.power_w


@pytest.mark.slow
def test_sanity_on_the_command_line(joulemap: Run) -> None:
    done = joulemap("hardware", "sanity", "A100", "kpu_t64@6W")
    assert done.returncode == ExitCode.OK
    assert "kpu_t64@6W" in done.stdout
    assert "probes: " in done.stdout
    rows = json.loads(joulemap("hardware", "sanity", "--hardware", "A100", "--format", "json").stdout)
    assert {row["hardware"] for row in rows["probes"]} == {"a100_sxm4_80gb"}
    unknown = joulemap("hardware", "sanity", "--hardware", "a1000")
    assert unknown.returncode == ExitCode.UNKNOWN_NAME
