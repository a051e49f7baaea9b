"""Top down: chips at their limit draw what such chips draw."""

from __future__ import annotations

import json

import pytest

from conftest import Run
from joulemap.catalog.hardware import LEAST_SHARE
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.measurement import load_measurements
from joulemap.physics.anchor import has_host_memory
from joulemap.physics.record.configuration import BUSY_SHARE, LIMIT_SHARE
from joulemap.physics.stream import DIVIDED
from joulemap.system.errors import ExitCode
from joulemap.workspace import Workspace

MEASURED_CHIPS = ("a100_sxm4_80gb", "a100_sxm4_40gb", "h100_sxm5", "h200_sxm", "tpu_v4")


@pytest.fixture(scope="module")
def everything() -> list[dict[str, object]]:
    return Workspace("never-made.duckdb").sanity().probes.records()


@pytest.mark.slow
def test_every_target_is_probed_at_every_precision(everything: list[dict[str, object]]) -> None:
    products = {(row["hardware"], row["precision"]) for row in everything if row["model"] == "matrix_product"}
    catalogue = load_catalogue().hardware
    assert products == {(name, precision) for name, chip in catalogue.items() for precision in chip.peaks}
    assert {row["hardware"] for row in everything if row["model"] == "stream_copy"} == set(catalogue)


@pytest.mark.slow
def test_no_probe_draws_more_than_the_cap_or_attains_more_than_the_peak(everything: list[dict[str, object]]) -> None:
    for row in everything:
        if row["status"] != "unsupported":
            assert 0.0 < float(str(row["power_ratio"])) <= 1.0 + 1e-9, row
            assert float(str(row["compute_utilization_fraction"])) <= 1.0 + 1e-3, row
            assert float(str(row["bandwidth_utilization_fraction"])) <= 1.0 + 1e-9, row


@pytest.mark.slow
def test_what_is_not_ok_has_a_reason(everything: list[dict[str, object]]) -> None:
    for row in everything:
        assert row["status"] in ("ok", "anchored", "measured", "partial", "low", "unsupported"), row
        if row["status"] != "ok":
            assert row["reason"], row


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
def test_a_product_that_occupies_a_part_of_the_chip_waits_or_has_a_slow_precision(
    everything: list[dict[str, object]],
) -> None:
    catalogue = load_catalogue().hardware
    partial = [row for row in everything if row["status"] == "partial"]
    assert ("h20", "fp64") in {(row["hardware"], row["precision"]) for row in partial}
    for row in partial:
        chip = catalogue[str(row["hardware"])]
        known = [one for one in everything if one["hardware"] == chip.id and one["status"] != "unsupported"]
        ratios = [float(str(one["power_ratio"])) for one in known]
        attained = [float(str(one["attained_ops_per_s"])) for one in known if one["model"] == "matrix_product"]
        is_slow = float(str(row["attained_ops_per_s"])) < 0.5 * max(attained)
        assert is_slow or float(str(row["compute_utilization_fraction"])) < 0.5 or has_host_memory(chip), row
        if chip.priced_at == "board" or BUSY_SHARE in chip.coefficients:  # nearly all power is that of waiting units
            assert is_slow, row
        elif chip.architecture == "cpu":  # one unattributed energy at all precisions: another probe is at the share
            assert max(ratios) >= LEAST_SHARE.value, row
        elif LIMIT_SHARE not in chip.coefficients:
            assert chip.is_projection, row
        else:  # one request has one of the cores, or the chip waits for the link to its host
            assert DIVIDED in chip.geometry or has_host_memory(chip), row
    assert {catalogue[str(row["hardware"])].architecture for row in partial} == {"cgra", "cpu", "gpu", "npu"}


@pytest.mark.slow
def test_an_anchored_probe_draws_the_share_of_the_limit(everything: list[dict[str, object]]) -> None:
    anchored = [row for row in everything if row["status"] == "anchored"]
    assert anchored
    for row in anchored:
        explained = float(str(row["power_ratio"])) * (1.0 - float(str(row["unattributed_share_fraction"])))
        assert explained < LEAST_SHARE.value <= float(str(row["power_ratio"])) <= 1.0 + 1e-9, row


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
def test_a_copy_of_a_chips_own_memory_is_anchored_where_its_prices_are_of_circuits(
    everything: list[dict[str, object]],
) -> None:
    for row in everything:
        chip = load_catalogue().hardware[str(row["hardware"])]
        is_anchored = LIMIT_SHARE in chip.coefficients and not has_host_memory(chip) and not chip.loads
        is_anchored = is_anchored and DIVIDED not in chip.geometry
        if row["model"] == "stream_copy" and row["status"] != "unsupported" and is_anchored:
            assert float(str(row["power_ratio"])) >= LEAST_SHARE.value, row


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
def test_the_cap_is_told_with_what_would_be_drawn_without(everything: list[dict[str, object]]) -> None:
    capped = [
        row for row in everything if row["clock_fraction"] is not None and float(str(row["clock_fraction"])) < 1.0
    ]
    assert capped
    for row in capped:
        assert 0.96 <= float(str(row["power_ratio"])) <= 1.0 + 1e-9
        assert float(str(row["uncapped_ratio"])) > float(str(row["power_ratio"]))
        assert "the clock drops to" in str(row["reason"])


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
