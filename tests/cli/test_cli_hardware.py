"""`joulemap hardware` and `joulemap db diff` as a person runs them."""

from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import pytest

from compare import assert_close
from conftest import Run
from joulemap.system.errors import ExitCode
from joulemap.workspace import Workspace
from sample import thin


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_list_filters(joulemap: Run) -> None:
    everything = records(joulemap("hardware", "list", "--format", "csv").stdout)
    assert len(everything) >= 50
    options = ("--deployment", "edge", "--precision", "int8", "--max-power", "15W", "--min-memory", "1GB")
    few = records(joulemap("hardware", "list", *options, "--format", "csv").stdout)
    assert few == [
        row
        for row in everything
        if "edge" in row["deployment"].split()
        and "int8" in row["precisions"].split()
        and float(row["tdp_w"]) <= 15.0
        and float(row["memory_capacity_bytes"]) >= 1e9
    ]
    assert few
    cheap = records(joulemap("hardware", "list", "--max-price", "100USD", "--format", "csv").stdout)
    assert {row["hardware"] for row in cheap} == {
        row["hardware"] for row in everything if row["price_purchase_usd"] and float(row["price_purchase_usd"]) <= 100
    }
    assert json.loads(joulemap("hardware", "list", "--max-power", "1mW", "--format", "json").stdout) == []


def test_the_list_marks_what_cannot_be_had(joulemap: Run) -> None:
    shown = joulemap("hardware", "list", "--architecture", "kpu").stdout
    assert "~kpu_t64 " in shown
    assert "~ marks hardware that can be neither bought nor rented" in shown
    assert "~" not in joulemap("hardware", "list", "--architecture", "kpu", "--format", "csv").stdout


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name", thin(["xeon_8490h", "H100", "tpu_v4", "KPU-T64", "TDA4VM", "gaudi3", "KV260", "plasticine"], 2)
)
def test_one_of_each_class_shows_every_number_with_its_source(name: str, joulemap: Run) -> None:
    shown = joulemap("hardware", "show", name, "--show=details")
    assert shown.returncode == 0
    for word in ("Roofline", "Numbers", "unit_count", "static_power", "coefficient.", " assumed"):
        assert word in shown.stdout, word
    document = json.loads(joulemap("hardware", "show", name, "--format", "json").stdout)
    assert {fact["quantity"] for fact in document["facts"]} > {"tdp", "clock", "memory_bandwidth"}
    assert all(fact["source"] and fact["basis"] and fact["unit"] for fact in document["facts"])
    fact = {row["quantity"]: row["value"] for row in document["facts"]}
    for row in document["ridge"]:
        assert_close(row["ridge_ops_per_byte"], row["peak_ops_per_s"] / fact["memory_bandwidth"])
    reference = records(joulemap("hardware", "show", name, "--energy", "--format", "csv").stdout)
    implied = [row for row in reference if row["action"].startswith("unattributed_")]  # some by the power limit
    assert 15 <= len(reference) - len(implied) <= document["action_count"] <= len(reference)
    assert all(row["source"] and row["basis"] for row in reference)


def test_what_cannot_be_had_tells_its_reason_and_what_is_estimated(joulemap: Run) -> None:
    shown = joulemap("hardware", "show", "kpu_t64", "--show=notes", "--show=wide").stdout
    assert "~ not available: not for sale" in shown and "key numbers: no chip" in shown
    assert "a research design" in joulemap("hardware", "show", "plasticine", "--show=notes").stdout
    sold = joulemap("hardware", "show", "hailo_10h", "--show=notes").stdout
    assert "~" not in sold and "key numbers: " in sold


@pytest.mark.slow
def test_a_new_chip_in_a_minute(joulemap: Run, tmp_path: Path) -> None:
    made = joulemap("hardware", "template", "--like", "tpu_v4", "--output", tmp_path / "mine.toml")
    assert made.returncode == 0
    path = tmp_path / "mine.toml"
    path.write_text(path.read_text().replace("memory_capacity = { value = 32,", "memory_capacity = { value = 64,"))
    checked = joulemap("hardware", "check", "mine.toml")
    assert checked.returncode == 0
    assert checked.stdout.startswith("ok: mine.toml describes my_tpu_v4 (tpu)")
    assert not list(tmp_path.glob("*.duckdb"))
    document = json.loads(
        joulemap("compare", "resnet18", "--hardware", "./mine.toml,tpu_v4", "--format", "json").stdout
    )
    assert {row["hardware"] for row in document["rows"]} == {"my_tpu_v4", "tpu_v4"}
    assert "./mine.toml" in shlex.split(document["next_steps"][0])
    shown = joulemap("hardware", "show", "./mine.toml", "--format", "json")
    assert json.loads(shown.stdout)["hardware"] == "my_tpu_v4"


def test_a_broken_file_is_one_line_and_nothing_is_written(joulemap: Run, tmp_path: Path) -> None:
    text = joulemap("hardware", "template", "--like", "t4").stdout
    cases = {
        "typo.toml": (text.replace("memory_bandwidth =", "memory_bandwith ="), "did you mean memory_bandwidth?"),
        "twice.toml": (
            text.replace('vendor = "NVIDIA"', 'vendor = "NVIDIA"\nvendor = "NVIDIA"'),
            "duplicate key vendor",
        ),
        "noise.toml": ("\x00\x01" * 5_000_000, "too large"),
    }
    for name, (content, reason) in cases.items():
        (tmp_path / name).write_text(content)
        for command in (("hardware", "check", name), ("compare", "resnet18", "--hardware", f"./{name}")):
            done = joulemap(*command)
            assert done.returncode == ExitCode.CATALOGUE, command
            assert done.stdout == ""
            assert done.stderr.startswith(f"joulemap: {name}: ")
            assert reason in done.stderr
            assert len(done.stderr.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == set(cases)


@pytest.mark.slow
def test_a_difference_names_the_constants_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chips = tmp_path / "chips"
    chips.mkdir()
    workspace = Workspace(tmp_path / "results.duckdb")
    from joulemap.catalog.starter import copy_text

    path = chips / "mine.toml"
    path.write_text(copy_text("h100_sxm5"))
    monkeypatch.setenv("JOULEMAP_HARDWARE", str(chips))
    (before,) = workspace.compare("resnet18", hardware=["my_h100_sxm5"], calibration="none").scope.run_ids
    path.write_text(path.read_text().replace("static_power = { value = 130,", "static_power = { value = 100,"))
    (after,) = workspace.compare("resnet18", hardware=["my_h100_sxm5"], calibration="none").scope.run_ids
    answer = workspace.difference(before, after)
    assert [row.setting for row in answer.settings] == ["hardware_digest"]
    assert {row.constant for row in answer.constants} == {
        "static_power",
        "energy.chip.static_power",
        "loaded_power",
    }
    assert answer.explanation is not None
    (term,) = answer.explanation.terms.rows
    moved = {row.constant: row.moved_j for row in answer.constants}
    assert moved["static_power"] is None
    latency = workspace.sql(f"SELECT latency_s FROM runs WHERE run_id = {after}").rows[0][0]
    assert_close(moved["energy.chip.static_power"], -30.0 * latency)
    assert_close(term.difference_j, -30.0 * latency)
    same = workspace.difference(after, after)
    assert (same.settings.rows, same.constants.rows) == ((), ())


@pytest.mark.slow
def test_without_a_place_for_templates_everything_still_works(joulemap: Run, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    variables = {"JOULEMAP_CACHE": str(blocked)}
    done = joulemap("compare", "resnet18", "--hardware", "tpu_v4", "--format", "json", variables=variables)
    assert done.returncode == 0
    assert json.loads(done.stdout)["rows"][0]["status"] == "ok"
    assert joulemap("hardware", "list", "--db", tmp_path / "none.duckdb", variables=variables).returncode == 0
