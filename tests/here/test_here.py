"""Answers about recorded machines: what fits, how fast, and the commands that measure the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.fact import Caveat, Choice, Refusal
from joulemap.show.present.document import Grid
from joulemap.show.present.format import write
from joulemap.system.errors import UsageError
from joulemap.wing.here.serve import FITS, FITS_NOT, Asked, choose_largest, choose_row
from joulemap.workspace import Workspace

MACHINES = Path(__file__).parent / "machine"


@pytest.mark.slow
def test_each_chip_has_its_own_reason(tmp_path: Path) -> None:
    answer = Workspace(tmp_path / "here.duckdb").here(
        "resnet18", recorded=MACHINES / "macbook_m4.json", precision="int4"
    )
    reasons = {row.label: row.reason for row in answer.runs}
    assert len(reasons) == 3
    for label, reason in reasons.items():
        assert [one for one in reasons if f"{one} " in reason] == [label] and "[" not in reason


@pytest.mark.slow
def test_a_model_larger_than_the_card_is_divided_with_the_processor(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "here.duckdb")
    asked = Asked(weights="q4_k_m", usd_per_kwh=0.36)
    answer = workspace.here("llama-3.1-8b", recorded=MACHINES / "laptop_rtx_no_driver.json", asked=asked)
    served = [row for row in answer.served if row.tokens_per_s and row.output_token_j]
    rows = {row.label.partition("_")[0]: row for row in answer.served if " + " not in row.label}
    (divided,) = [row for row in answer.served if " + " in row.label]
    assert rows["rtx"].fits == FITS_NOT and rows["core"].fits == FITS
    assert max(served, key=lambda row: row.tokens_per_s or 0.0) == divided
    assert divided.between_half_width is not None
    assert choose_row(answer.served.rows) == divided
    for row in served:
        joules, rate = row.output_token_j or 0.0, row.tokens_per_s or 0.0
        assert_close(row.power_w, joules * rate, rel=0.05)
        assert_close(row.usd_per_million, joules / 3.6 * 0.36)
    choice, fastest = answer.facts.of(Choice)[0], max(served, key=lambda row: row.tokens_per_s or 0.0)
    assert answer.served[choice.runs[0] - 1] == divided == fastest
    assert (choice.metric, choice.value.value) == ("tokens_per_s", divided.tokens_per_s)
    refused = {key for one in answer.facts.of(Refusal) for key in one.runs}
    assert refused == {place for place, row in enumerate(answer.served, 1) if row.reason}
    layers = divided.fits.split()[0]
    assert any(f"-ngl {layers} " in check for check in answer.checks)
    assert all(check.endswith("--hardware rtx_3060_laptop_gpu --host core_i7_12700h") for check in answer.checks)


@pytest.mark.slow
def test_a_stated_link_carries_the_weights_of_prompts(tmp_path: Path) -> None:
    workspace, place = Workspace(tmp_path / "here.duckdb"), MACHINES / "gaming_pc.json"
    asked = Asked(weights="q4_k_m")

    def wait(link: str) -> float:
        answer = workspace.here("llama-3.1-70b", recorded=place, asked=asked, link=link)
        (divided,) = [row for row in answer.served if " + " in row.label]
        return divided.first_token_s or 0.0

    own, wide, narrow = map(wait, ("", "pcie4x16", "pcie3x1"))
    assert_close(own, wide, rel=1e-3)
    assert wide < narrow
    for link, name in (("usb3", "gaming_pc"), ("pcie9x4", "gaming_pc"), ("pcie3x4", "macbook_m4")):
        with pytest.raises(UsageError, match="link"):
            workspace.here("resnet18", recorded=MACHINES / f"{name}.json", link=link)


@pytest.mark.slow
def test_the_format_of_a_checkpoint_spelled_out_changes_nothing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "here.duckdb")
    usual, spelled, whole = (
        workspace.here(
            "gpt-oss-20b", recorded=MACHINES / "macbook_m3_max.json", asked=Asked(weights=weights)
        ).served.rows
        for weights in ("", "mxfp4", "mxfp4+q8_0")
    )
    assert usual == spelled == whole


def test_the_headline_names_the_fastest_chip_with_the_weights_that_it_names() -> None:
    """The processor reaches 44 tokens a second with narrow weights, and half of them with wide ones: the card's 28."""
    rows = [
        SimpleNamespace(label=label, weights=weights, tokens_per_s=rate)
        for label, weights, rate in (
            ("card", "q8_0", 28.0), ("processor", "q8_0", 27.0), ("processor", "q3_k_m", 44.0), ("card", "q3_k_m", 39.0)
        )
    ]  # fmt: skip
    assert choose_row(cast("list[Any]", rows)) is cast("Any", rows[0])


def test_a_machine_without_access_answers_what_is_known(joulemap: Run) -> None:
    done = joulemap("here", "--from", str(MACHINES / "nothing.json"), "--format", "json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["devices"] == found["served"] == found["runs"] == []
    assert len(found["gaps"]) == 2  # no processor, no GPU; without chips, the memory does not matter


@pytest.mark.slow
def test_a_recording_of_this_machine_is_read_as_it_was_written(joulemap: Run, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    done = joulemap("here", "resnet18", "--record", str(path), "--format", "json")
    assert done.returncode in (0, 4)
    assert f"wrote {path}" in done.stderr
    again = joulemap("here", "resnet18", "--from", str(path), "--format", "json")
    assert json.loads(again.stdout)["parts"] == json.loads(done.stdout)["parts"]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(MACHINES.glob("*.json")), ids=lambda path: path.stem)
def test_every_recorded_machine_answers_with_and_without_a_model(path: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "here.duckdb")
    asked = Asked(weights="q4_k_m")
    popular, served = (workspace.here(model, recorded=path, asked=asked) for model in ("", "llama-3.1-8b"))
    vision = workspace.here("resnet50", recorded=path)
    if popular.devices and any(row.label for row in popular.devices):
        assert served.served and vision.runs
        assert any(row.tokens_per_s for row in popular.served)
        assert all(row.latency_s for row in vision.runs if not row.reason)
    for answer in (popular, served, vision):
        document = answer.document().on_screen(notes=False, details=False)
        told = document.answer
        names = {name for row in (*answer.served, *answer.runs) for name in (row.label, row.model)}
        for name in sorted(names, key=len, reverse=True):
            told = told.replace(name, "name")
        assert 0 < len(told.split()) <= 25
        assert len(re.findall(r"(?<![\w.])\d[\d,.]*", told)) <= 5
        assert len(write(document, "table", 80).splitlines()) <= 25
        assert len({one.kind for one in answer.facts.of(Caveat)} - {"setting", "experts_away"}) <= 1


@pytest.mark.slow
def test_the_headline_has_the_interval_of_the_answer_about_its_model(tmp_path: Path) -> None:
    workspace, recorded = Workspace(tmp_path / "here.duckdb"), MACHINES / "macbook_m4.json"
    headline = choose_largest(workspace.here(recorded=recorded).served.rows)
    assert headline is not None
    asked = Asked(weights=headline.weights)
    same = [
        row
        for row in workspace.here(headline.model, recorded=recorded, asked=asked).served
        if row.label == headline.label
    ]
    assert [(row.tokens_per_s, row.between_half_width) for row in same] == [
        (headline.tokens_per_s, headline.between_half_width)
    ]


@pytest.mark.slow
def test_the_mark_of_the_best_is_on_the_weights_that_were_chosen(tmp_path: Path) -> None:
    """The most precise weights that reach half of the highest speed are seldom the fastest."""
    recorded = MACHINES / "macbook_m4.json"
    answer = Workspace(tmp_path / "here.duckdb").here("llama-3.2-3b", recorded=recorded)
    (section, *_) = answer.document().sections
    (grid,) = (block for block in section.blocks if isinstance(block, Grid))
    chosen = choose_row(answer.served.rows)
    assert chosen is not None
    ((row, column),) = grid.best
    assert (grid.headings[column], grid.rows[row][column]) == ("weights", chosen.weights)


def test_the_headline_names_the_largest_model_that_is_read_as_it_comes() -> None:
    rates: dict[str, list[float | None]] = {"small": [40.0, 9.0], "middle": [12.0, 5.0], "large": [4.9, None]}
    rows = [SimpleNamespace(model=model, tokens_per_s=rate) for model, some in rates.items() for rate in some]
    assert choose_largest(cast("list[Any]", rows)) is cast("Any", rows[2])
    assert choose_largest(cast("list[Any]", rows), 13.0) is cast("Any", rows[0])
    assert choose_largest(cast("list[Any]", rows[4:])) is cast("Any", rows[4])
    assert choose_largest(cast("list[Any]", rows[5:])) is None


def test_a_model_that_no_chip_runs_is_not_supported(tmp_path: Path) -> None:
    workspace, recorded = Workspace(tmp_path / "here.duckdb"), MACHINES / "old_laptop.json"
    assert not workspace.here("resnet50", recorded=recorded, precision="fp8").runs_model
    with pytest.raises(UsageError, match="--weight-precision"):
        workspace.here("resnet50", recorded=recorded, asked=Asked(weights="int4"))
    # without a model, the popular models include language models
    assert workspace.here(recorded=MACHINES / "nothing.json", asked=Asked(weights="int4")).document().answer
    with pytest.raises(UsageError, match="--precision"):
        workspace.here("llama-3.1-8b", recorded=recorded, precision="int8")
    for asked in (Asked(prompt=1024), Asked(output=64), Asked(usd_per_kwh=0.2)):
        with pytest.raises(UsageError, match="language model"):
            workspace.here("resnet50", recorded=recorded, asked=asked)
    with pytest.raises(UsageError, match="--input"):
        workspace.here("llama-3.1-8b", recorded=recorded, inputs=("ids=1,128:int64",))
