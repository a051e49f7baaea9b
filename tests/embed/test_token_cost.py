"""Energy and carbon per token for leaderboards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from compare import assert_close
from joulemap import Passes, predict_step
from joulemap.system.errors import UnknownNameError, UsageError
from joulemap.wing.embed import TokenCost, predict_token_costs, write_token_costs

FRANCE = 44.18
"""Grams of CO2 equivalent per kWh in 2024: a row of catalog/data/cost/grid.csv."""


@pytest.fixture(scope="module")
def costs() -> tuple[TokenCost, ...]:
    return predict_token_costs(
        ["llama-3.2-1b", "llama-3.1-70b"], ["h100_sxm5", "l4"], batch=8, context_tokens=512, region="fr", pue=1.2
    )


def test_tokens_cost_what_their_steps_cost(costs: tuple[TokenCost, ...]) -> None:
    exact = predict_step("llama-3.2-1b", "h100_sxm5").price(Passes.of([1, 8], tokens=[512, 1], context=[0, 512]))
    assert costs[0].prompt_token_j == exact.energy_j[0] / 512
    assert costs[0].output_token_j == exact.energy_j[1] / 8
    assert costs[0].output_token_low_j == exact.energy_low_j[1] / 8
    assert costs[0].prompt_token_high_j == exact.energy_high_j[0] / 512


def test_a_joule_per_token_is_so_much_carbon(costs: tuple[TokenCost, ...]) -> None:
    # 1 J per token is 1 MJ, or 1 / 3.6 kWh, per million tokens
    grams = 1.2 * FRANCE / 3.6
    for phase in ("prompt", "output"):
        for end in ("", "_low", "_high"):
            expected = grams * getattr(costs[1], f"{phase}_token{end}_j")
            assert_close(getattr(costs[1], f"{phase}_gco2_per_million{end}"), expected)


def test_a_model_that_does_not_fit_is_refused_with_its_reason(costs: tuple[TokenCost, ...]) -> None:
    assert [(one.model, one.hardware) for one in costs if one.refusal] == [
        ("llama-3.1-70b", "h100_sxm5"),
        ("llama-3.1-70b", "l4"),
    ]
    assert "of them for weights" in costs[3].refusal
    assert costs[3].output_token_j is None
    (several,) = predict_token_costs(["llama-3.1-70b"], ["h100_sxm5"], devices=4)
    assert several.refusal == ""


def test_bad_input_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match=r"pue is 0\.9, expected a number of at least 1"):
        predict_token_costs(["llama-3.2-1b"], ["l4"], pue=0.9)
    with pytest.raises(UnknownNameError, match="unknown grid region 'mars'"):
        predict_token_costs(["llama-3.2-1b"], ["l4"], region="mars")
    with pytest.raises(UnknownNameError, match="unknown language model 'llama-9'"):
        predict_token_costs(["llama-9"], ["l4"])


@pytest.mark.parametrize(
    "given",
    [
        {"batch": -1},
        {"batch": 2.5},
        {"batch": 0},
        {"context_tokens": -5},
        {"context_tokens": 0},
        {"devices": 0},
        {"region": None},
        {"pue": "1.2"},
        {"pue": [1.2, 1.3]},
        {"pue": float("nan")},
        {"models": [1]},
        {"models": None},
        {"hardware": [None]},
    ],
)
def test_numbers_and_names_that_no_cost_has_are_refused(given: Mapping[str, object]) -> None:
    (name,) = given
    with pytest.raises(UsageError, match=f"{name}(:| is)"):
        predict_token_costs(**{"models": ["llama-3.2-1b"], "hardware": ["l4"], **given})  # type: ignore[arg-type]


def test_a_name_alone_is_a_list_of_one(costs: tuple[TokenCost, ...]) -> None:
    (alone,) = predict_token_costs("llama-3.2-1b", "l4", batch=8, context_tokens=512, region="fr", pue=1.2)
    assert alone == costs[1]


def test_a_chip_that_cannot_run_a_pass_refuses_its_row_alone() -> None:
    able, unable = predict_token_costs(["falcon-mamba-7b"], ["l20", "kpu_t256"])
    assert "scan" in unable.refusal
    assert (able.refusal, unable.output_token_j) == ("", None)
    assert predict_token_costs("falcon-mamba-7b", "l20") == (able,)


def test_what_cannot_be_written_leaves_no_file(costs: tuple[TokenCost, ...], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the costs have 1"):
        write_token_costs([*costs, 1], tmp_path / "token.csv")  # type: ignore[list-item]
    assert not [*tmp_path.iterdir()]
    (tmp_path / "notes.csv").write_text("mine\n", encoding="utf-8")
    for path in (
        tmp_path,
        tmp_path / "none" / "token.csv",
        tmp_path / "notes.csv" / "token.csv",
        tmp_path / "notes.csv",
    ):
        with pytest.raises(UsageError):
            write_token_costs(costs, path)
    (tmp_path / "notes.csv").unlink()
    write_token_costs(costs, tmp_path / "notes.csv")
    assert (tmp_path / "notes.csv").read_text(encoding="utf-8").startswith("model,hardware,")
