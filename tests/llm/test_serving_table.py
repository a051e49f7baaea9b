"""Measurements of language models as they are served: stored, predicted, scored; what is refused is told."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import joulemap.wing.llm.prediction as plan
from compare import assert_close
from conftest import Run
from joulemap.catalog.public import find_public_table
from joulemap.domain.table import Table
from joulemap.generated.validate import PredictionScore
from joulemap.physics.interval.error_scale import FULL_GROUPS
from joulemap.physics.record.hardware import Hardware
from joulemap.store.connection import writing
from joulemap.system.errors import CatalogueError, ExitCode, NoMeasurementError, Reason
from joulemap.wing.llm.error_fit import ASSUMED, ServingResidual, fit_served
from joulemap.wing.llm.error_scale import ServedDoubt, ServingScale, join_served_energy, load_served_doubt
from joulemap.wing.llm.row import COLUMNS, Prediction, ServingRow
from joulemap.workspace import Workspace

HEAD = "source,hardware,model,scope,engine,batch,prompt_tokens,output_tokens,device_count,weight_precision,"
FIGURES = "inter_token_latency_s,output_tokens_per_s,energy_per_output_token_j,power_w,power_boundary\n"
ROWS = (
    "one stand,H100,meta-llama/Llama-3.1-8B,steady_serving,vllm,8,1000,500,1,bf16,0.01,800,0.5,400,board\n"
    "one stand,h100_sxm5,meta-llama/Llama-3.1-8B,steady_serving,vllm,16,1000,500,1,bf16,0.02,800,,,board\n"
    "other stand,a100_sxm4_80gb,meta-llama/Llama-3.1-8B,steady_serving,vllm,7.5,1000,500,1,bf16,0.02,400,0.8,300,"
    "board\n"
    "other stand,abacus_9000,own/model,request,vllm,1,1000,500,1,bf16,1,1,,,board\n"
    "other stand,h100_sxm5,own/model,request,vllm,1,1000,,1,bf16,1,1,,,board\n"
)


Scored = tuple[Workspace, Table[PredictionScore], list[ServingRow]]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Five rows: of two boards that are known, of one that is not, of a model that is not."""
    path = tmp_path / "served.csv"
    path.write_text(HEAD + FIGURES + ROWS)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ServingRow]:
    """The rows that a prediction was asked for: each is predicted twice too slow, at the power that was measured."""
    return _predict_made_up(monkeypatch)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scored]:
    """A workspace with the five rows, their scores by hardware, and the rows that a prediction was asked for."""
    folder = tmp_path_factory.mktemp("scored")
    (folder / "served.csv").write_text(HEAD + FIGURES + ROWS)
    with pytest.MonkeyPatch.context() as patch:
        asked = _predict_made_up(patch)
        workspace = Workspace(folder / "own.duckdb")
        workspace.import_measurements(folder / "served.csv")
        yield workspace, workspace.validate(by="hardware", source="stand"), asked


def _predict_made_up(patch: pytest.MonkeyPatch) -> list[ServingRow]:
    rows: list[ServingRow] = []

    def predict(given: Sequence[ServingRow], hardware: Hardware, _others: object) -> list[Prediction | Reason]:
        rows.extend(given)
        assert {row.hardware for row in given} == {hardware.id}
        return [_predict(row) for row in given]

    patch.setattr("joulemap.wing.llm.serving.predict.predict", predict)
    return rows


def _predict(row: ServingRow) -> Prediction | Reason:
    if row.model.startswith("own/"):
        return Reason(text=f"no decoder ships: {row.batch:g}", code="unknown_model")
    assert row.inter_token_latency_s is not None and row.output_tokens_per_s is not None
    return Prediction(
        inter_token_latency_s=2.0 * row.inter_token_latency_s,
        output_tokens_per_s=row.output_tokens_per_s / 2.0,
        power_w=row.power_w,
    )


def test_a_table_is_stored_once_and_listed_as_it_was_told(table: Path, tmp_path: Path, joulemap: Run) -> None:
    database = tmp_path / "own.duckdb"
    workspace = Workspace(database)
    assert workspace.import_measurements(table) == (5, 0)
    notes: list[str] = []
    reader, writer = os.pipe()  # a pipe can be read once
    os.write(writer, table.read_bytes())
    os.close(writer)
    assert workspace.import_measurements(f"/dev/fd/{reader}", note=notes.append) == (0, 5)
    os.close(reader)
    assert all(name in notes[0] for name in ("abacus_9000", "own/model"))
    assert not any(name in notes[0] for name in ("h100", "Llama"))
    rows = workspace.served_measurements().records()
    assert [row["batch"] for row in rows if row["source"] == "one stand"] == [8.0, 16.0]
    assert {row["hardware"] for row in rows} == {"h100_sxm5", "a100_sxm4_80gb", "abacus_9000"}
    assert [row["output_tokens"] for row in workspace.served_measurements("H100", "OWN", "other").records()] == [None]
    # what the list says is a table of the same rows, as csv and as json
    for form in ("csv", "json"):
        done = joulemap("measurements", "list", "--served", "--format", form, "--db", database)
        assert done.returncode == ExitCode.OK
        again = tmp_path / f"again.{form}"
        again.write_text(done.stdout)
        assert workspace.import_measurements(again) == (0, 5)
    told = json.loads((tmp_path / "again.json").read_text())
    assert set(COLUMNS) == set(told[0]) - {"serving_measurement_id"}


WRONG = {
    "a figure below 0": (
        "a,h100_sxm5,m,request,vllm,1,9,9,1,bf16,-1,,,",
        "line 3: 'inter_token_latency_s' must be > 0",
    ),
    "endless": ("a,h100_sxm5,m,request,vllm,1,9,9,1,bf16,inf,,,", "inter_token_latency_s is 'inf', expected a finite"),
    "no number": (
        "a,h100_sxm5,m,request,vllm,1,9,9,1,bf16,soon,,,",
        "inter_token_latency_s is 'soon', expected a number",
    ),
    "half a device": ("a,h100_sxm5,m,request,vllm,1,9,9,1.5,bf16,1,,,", "device_count is '1.5', expected a number"),
    "no model": ("a,h100_sxm5,,request,vllm,1,9,9,1,bf16,1,,,", "model is empty"),
    "nothing measured": ("a,h100_sxm5,m,request,vllm,1,9,9,1,bf16,,,,", "none of time_to_first_token_s"),
    "no such scope": ("a,h100_sxm5,m,always,vllm,1,9,9,1,bf16,1,,,", "'scope' must be in"),
    "too few cells": ("a,h100_sxm5", "line 3: fewer cells than the header has"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_line_is_named_and_nothing_is_stored(case: str, tmp_path: Path) -> None:
    line, reason = WRONG[case]
    path = tmp_path / "wrong.csv"
    path.write_text(HEAD + FIGURES + ROWS.splitlines()[0] + "\n" + line + (",board\n" if line.count(",") > 1 else "\n"))
    workspace = Workspace(tmp_path / "own.duckdb")
    with pytest.raises(CatalogueError) as raised:
        workspace.import_measurements(path)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(workspace.served_measurements()) == 0


def test_an_unknown_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text("source,hardware,model,scope,output_tokens_per_s,colour\na,h100_sxm5,m,request,1,red\n")
    with pytest.raises(CatalogueError, match="line 2: unknown column colour; known: source, hardware"):
        Workspace(tmp_path / "own.duckdb").import_measurements(path)


@pytest.mark.slow
def test_each_measured_quantity_has_a_score(scored: Scored) -> None:
    workspace, answer, asked = scored
    scores = {(row["hardware"], row["quantity"]): row for row in answer.records()}
    assert len(asked) == 4  # the fifth is of hardware that is not known
    # twice as long is 1.0 too much, half the rate 0.5 too little
    h100 = scores["h100_sxm5", "inter_token_latency_s"]
    assert (h100["measurement_count"], h100["part"], h100["seen_fraction"]) == (2, "served", 0.0)
    assert_close(h100["mean_error_fraction"], 1.0)
    assert_close(scores["h100_sxm5", "output_tokens_per_s"]["bias_fraction"], -0.5)
    assert scores["a100_sxm4_80gb", "power_w"]["mean_error_fraction"] == 0.0
    by_source = {
        (row["part"], row["quantity"]): row for row in workspace.validate(by="source", source="stand").records()
    }
    assert {row["hardware"] for row in by_source.values()} == {"all"}
    assert by_source["other stand, served", "power_w"]["measurement_count"] == 1
    assert {row["part"] for row in workspace.validate("H100", by="engine", source="stand").records()} == {"vllm"}
    errors = workspace.sql("SELECT quantity, error_fraction, run_id, engine, batch FROM prediction_errors").records()
    assert len(errors) == sum(row["measurement_count"] for row in answer.records()) == 8
    assert {row["engine"] for row in errors} == {"vllm"} and 7.5 in {row["batch"] for row in errors}


def test_what_is_not_predicted_is_kept_with_its_reason(scored: Scored) -> None:
    workspace, answer, _ = scored
    assert any("5 rows" in note and "abacus_9000" in note and "no decoder ships" in note for note in answer.notes)
    refused = {(row["hardware"], row["refusal"]): row for row in workspace.serving_refusals().records()}
    assert refused["h100_sxm5", "no decoder ships: 1"]["quantity_count"] == 2
    # energies of three rows were measured and are not among what was predicted of them
    missing = [row for (_, reason), row in refused.items() if "energy_per_output_token_j" in reason]
    assert sum(row["measurement_count"] for row in missing) == 2
    ((count,),) = workspace.sql("SELECT count(*) FROM serving_refusals").rows
    ((scored,),) = workspace.sql("SELECT count(*) FROM prediction_errors").rows
    assert count + scored == workspace.sql("SELECT count(*) FROM serving_predictions").rows[0][0] == 14
    with pytest.raises(NoMeasurementError, match="measurement of"):
        workspace.validate(source="nobody at all")


@pytest.mark.slow
def test_predictions_are_read_until_what_they_follow_from_changes(
    table: Path, tmp_path: Path, asked: list[ServingRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.import_measurements(table)
    first = workspace.validate(by="hardware", source="stand")
    workspace.validate(by="hardware", source="one stand")
    assert len(asked) == 4
    monkeypatch.setattr(plan, "serving_version", lambda: "another")
    assert workspace.validate(by="hardware", source="stand").records() == first.records()
    assert len(asked) == 8
    # the newest of each measurement stands in place of the one before, and the database is as it was written
    assert workspace.sql("SELECT count(*) FROM serving_predictions WHERE formula_version LIKE '%another'").rows == (
        (14,),
    )
    with writing(workspace.path) as connection:
        connection.execute("UPDATE internal.serving_prediction SET power_w = 1 WHERE power_w IS NOT NULL")
        connection.execute("UPDATE internal.serving_measurement SET batch = 2 WHERE batch = 1")
    broken = [row["rule"] for row in workspace.check().findings.records()]
    assert sum("measurement of serving" in rule for rule in broken) == 2
    assert sum("prediction of serving" in rule for rule in broken) == 2


def test_rows_that_ship_say_what_they_are() -> None:
    one = find_public_table("public:serving")
    assert one is not None and not one.is_single
    rows = [row for row in one.read_rows() if isinstance(row, ServingRow)]
    assert 300 <= len(rows) <= 1500 and len(set(rows)) == len(rows)
    assert {row.source for row in rows} == set(one.condition)
    assert set(one.seen) <= set(one.condition)
    # no source has more than three in ten rows, and each says what its rows depend on
    assert max(sum(row.source == name for row in rows) for name in one.condition) < 0.3 * len(rows)
    assert all(row.measured() and one.condition[row.source] in row.notes for row in rows)


A = ServingResidual(
    quantity="output_tokens_per_s", vendor="N", engine="e 2024", hardware="h", model="m", source="s", error=0.1
)


def test_a_scale_is_what_most_errors_are_below_shrunk_to_the_group_above() -> None:
    scales = fit_served([A])
    assert [one.level for one in scales] == [0, 1, 2]
    assert [(one.vendor, one.engine, one.chips) for one in scales] == [("", "", ""), ("N", "", ""), ("N", "e", "h")]
    # one part each time: h^2 = (0.1^2 + 2 above^2) / 3
    width = ASSUMED
    for scale in scales:
        width = math.sqrt((0.1**2 + FULL_GROUPS * width**2) / (1.0 + FULL_GROUPS))
        assert_close(scale.half_width, width)


def test_times_have_one_scale_powers_another_and_energies_none() -> None:
    first, rate, power = (
        attrs.evolve(A, quantity=name) for name in ("time_to_first_token_s", "total_tokens_per_s", "power_w")
    )
    assert [(one.quantity, one.row_count) for one in fit_served([first, A, rate, power])] == [
        *[("time", 3)] * 3,
        *[("power", 1)] * 3,
    ]
    assert fit_served([attrs.evolve(A, quantity="energy_per_output_token_j")]) == ()
    assert_close(join_served_energy(0.3, 0.4), math.sqrt(0.09 + 0.16 - 0.8 * 0.12))
    assert join_served_energy(0.3, 0.0) == 0.3


def test_a_group_is_as_wide_as_most_of_its_boards_whatever_the_worst_errs() -> None:
    """Nine boards err by 0.1 and one by 3.5: the 80 % quantile of the ten is 0.1."""

    def widths(worst: float) -> list[float]:
        boards = [attrs.evolve(A, hardware=f"h{place}", error=0.1) for place in range(9)]
        return [one.half_width for one in fit_served([*boards, attrs.evolve(A, hardware="i", error=worst)])]

    assert widths(0.1) == widths(3.5)


def test_rows_of_one_source_on_a_board_count_once() -> None:
    def fit(*rows: ServingResidual) -> ServingScale:
        return fit_served(rows)[-1]

    other = attrs.evolve(A, model="n", error=-0.1)
    assert (fit(A, other).group_count, fit(A, other).row_count) == (1, 2)
    assert_close(fit(A, other).half_width, fit(A).half_width)
    second = fit(A, attrs.evolve(other, source="t"))
    assert second.group_count == 2
    assert second.half_width < fit(A).half_width


FULL = ServedDoubt(
    scales=tuple(
        ServingScale(quantity=quantity, level=level, vendor=vendor, engine=engine, half_width=width, group_count=1,
            row_count=1, chips="h i" if engine else "")
        for quantity, level, vendor, engine, width in (
            ("time", 0, "", "", 0.4), ("time", 1, "N", "", 0.3), ("time", 2, "N", "e", 0.2),
            ("power", 0, "", "", 0.15), ("power", 1, "N", "", 0.1),
        )
    ),
)  # fmt: skip


def test_an_unmeasured_chip_engine_or_load_is_wider() -> None:
    """A new server adds 0.1, a new chip 0.15, a new engine of a vendor 0.25, admission under load 0.3; powers none."""

    def width(
        vendor: str, engine: str, hardware: str, quantity: str = "inter_token_latency_s", scope: str = ""
    ) -> float:
        found = FULL.half_width(quantity, vendor=vendor, engine=engine, hardware=hardware, scope=scope)
        assert found is not None
        return found

    assert_close(width("N", "e 2024", "h"), math.hypot(0.2, 0.1))
    assert_close(width("N", "e", "j"), math.hypot(0.2, 0.15))
    assert_close(width("N", "f", "h"), math.hypot(0.3, 0.25))
    assert_close(width("A", "e", "h"), math.hypot(0.4, 0.25))
    assert_close(width("N", "e", "h", "power_w"), math.hypot(0.1, 0.15))
    assert_close(width("A", "e", "h", "power_w"), math.hypot(0.15, 0.15))
    energy = join_served_energy(math.hypot(0.2, 0.1), math.hypot(0.1, 0.15))
    assert_close(width("N", "e", "h", "energy_per_request_j"), energy)
    first = "time_to_first_token_s"
    assert width("N", "e", "h", first, "offline") == width("N", "e", "h")
    assert_close(width("N", "e", "h", first, "steady_serving"), math.sqrt(0.2**2 + 0.1**2 + 0.3**2))
    assert FULL.half_width("latency", vendor="N", engine="e", hardware="h") is None


def test_a_prompt_without_a_named_backend_is_wider() -> None:
    """On a GPU of AMD or Intel 0.9 is added; not to tokens, powers, a named backend, NVIDIA or a processor."""
    first, wide = "time_to_first_token_s", math.sqrt(0.4**2 + 0.25**2 + 0.9**2)

    def width(engine: str, vendor: str = "AMD", quantity: str = first, scope: str = "", kind: str = "gpu") -> float:
        like: dict[str, Any] = {
            "vendor": vendor,
            "engine": engine,
            "hardware": "h",
            "scope": scope,
            "architecture": kind,
        }
        return FULL.half_width(quantity, **like) or 0.0

    usual = math.hypot(0.4, 0.25)
    assert_close(width("llamacpp 2026"), wide)
    assert_close(width("llamacpp 2026", "Intel"), wide)
    assert_close(width("llamacpp 2026", quantity="total_tokens_per_s", scope="prefill_step"), wide)
    assert_close(width("llamacpp@vulkan 2026"), usual)
    assert_close(width("llamacpp 2026", "NVIDIA"), usual)
    assert_close(width("llamacpp 2026", kind="cpu"), usual)
    assert_close(width("llamacpp 2026", quantity="inter_token_latency_s"), usual)
    assert_close(width("llamacpp 2026", quantity="power_w", scope="prefill_step"), math.hypot(0.15, 0.15))


def test_an_unnamed_backend_widens_in_sql_as_in_python(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.evaluate("alexnet", hardware=["l4"])
    for quantity, scope in (
        ("time_to_first_token_s", "request"),
        ("total_tokens_per_s", "prefill_step"),
        ("energy_per_request_j", "prefill_step"),
        ("inter_token_latency_s", "request"),
    ):
        for engine in ("llamacpp 2026", "llamacpp@vulkan 2026"):
            texts = ", ".join(f"'{one}'" for one in (quantity, "AMD", engine, "rx_7900_xtx", scope))
            ((found,),) = workspace.sql(f"SELECT serving_half_width({texts}, 1e0, of_architecture := 'gpu')").rows
            named: dict[str, Any] = {
                "vendor": "AMD",
                "engine": engine,
                "hardware": "rx_7900_xtx",
                "architecture": "gpu",
            }
            assert_close(found, load_served_doubt().half_width(quantity, **named, scope=scope))


@pytest.mark.slow
def test_the_finest_group_holds_in_python_and_in_sql(table: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.import_measurements(table)
    scales = load_served_doubt().scales
    places = [(one.vendor, one.engine, hardware) for one in scales for hardware in (*one.chips.split()[:1], "none")]
    for quantity in ("output_tokens_per_s", "time_to_first_token_s", "power_w", "energy_per_request_j"):
        for vendor, engine, hardware in places:
            texts = ", ".join(f"'{one}'" for one in (quantity, vendor, engine, hardware, "steady_serving"))
            ((found,),) = workspace.sql(f"SELECT serving_half_width({texts}, 1e0)").rows
            named: dict[str, Any] = {"vendor": vendor, "engine": engine, "hardware": hardware}
            expected = load_served_doubt().half_width(quantity, **named, scope="steady_serving")
            assert_close(found, expected)


@pytest.mark.slow
def test_the_better_of_two_is_named_rightly_by_source(table: Path, tmp_path: Path, asked: list[ServingRow]) -> None:
    rows = list(csv.DictReader((HEAD + FIGURES + ROWS).splitlines()))
    # the same question on another board: slower, as predicted
    table.write_text(
        HEAD + FIGURES + ROWS + ROWS.splitlines()[0].replace("H100", "a100_sxm4_80gb").replace("0.01,800", "0.03,300")
    )
    assert len(rows) == 5
    workspace = Workspace(tmp_path / "own.duckdb")
    workspace.import_measurements(table)
    workspace.validate(source="stand")
    pairs = {(row["source"], row["quantity"]): row for row in workspace.query("validate.pair").records()}
    assert pairs["one stand", "inter_token_latency_s"]["pair_count"] == 1
    assert pairs["all", "output_tokens_per_s"]["right_fraction"] == 1.0
    assert ("other stand", "output_tokens_per_s") not in pairs
