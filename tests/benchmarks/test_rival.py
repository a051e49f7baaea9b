"""Formulas of other predictors on the scoreboard: numbers worked out by hand, and the scope of each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from compare import assert_close
from joulemap.catalog.load import find_hardware

ROOT: Final = Path(__file__).parents[2]
SIZES: Final = {"layers": 2, "hidden": 100, "heads": 10, "kv_heads": 5, "inner": 400, "vocabulary": 1000}

pytestmark = pytest.mark.wings


@pytest.fixture(scope="module")
def rival() -> Iterator[Any]:
    sys.path.append(str(ROOT / "benchmarks"))
    import rival

    yield rival
    sys.path.remove(str(ROOT / "benchmarks"))


def test_steps_of_blis_are_those_worked_by_hand(rival: Any) -> None:
    shape = rival.Shape(**SIZES)
    # a layer has 2 x 100 x 150 + 2 x 100 x 400 = 110,000 weights; a token after 99 moves 220,000 + 20,200 bytes
    decode = rival.time_by_roofline(shape, "h100_sxm5", [(99, 1)], 1, decodes=True)
    assert_close(decode, 2 * 240_200 / 3.35e12)
    # 2,000 tokens: 440e6 of weights, 2,000 x 999.5 x (4 x 100 + 5 x 10) of scores, 0.4e6 of rotation; two devices
    prefill = rival.time_by_roofline(shape, "h100_sxm5", [(0, 2000)], 2, decodes=False)
    assert_close(prefill, (440e6 + 899.55e6 + 0.4e6) / (989.5e12 * 0.45))
    # three matrices in the network: 150,000 weights; 4 x 50 bytes of each of 100 cached tokens
    decode = rival.time_by_training(shape, "h100_sxm5", [(99, 1)], 1)
    fixed = (2 * 32.09546717 + 4.41684444 + 126.024825) * 1e-6
    assert_close(decode, 2 * (1.36252915 * 300_000 + 1.94710771 * 20_000) / 3.35e12 + fixed)
    # 10 tokens of a prompt of 10: 2 x 10 x 150,000 + 4 x 100 x 10 x 15; two devices exchange 8,000 bytes
    prefill = rival.time_by_training(shape, "h100_sxm5", [(0, 10)], 2, 10)
    moved = 1.36252915 * 300_000 + 0.752037 * 8_000
    assert_close(prefill, 0.152128 * 3_060_000 / 989.5e12 + moved / 3.35e12 + fixed)


def test_trained_physics_agrees_with_its_own_simulation(rival: Any) -> None:
    """Testdata/trained_physics_iter29.json of its source: 6 requests a second of 1.72 s, 750 tokens in and 251 out."""
    qwen = rival.Shape(layers=28, hidden=3584, heads=28, kv_heads=4, inner=18944, vocabulary=152064)
    token = rival.time_by_training(qwen, "h100_sxm5", [(875, 1)] * 10, 1) + rival.TRAINED_HOST_S["token"]
    assert_close(token, 6.766e-3, rel=0.02)


def test_passes_of_llm_viewer_are_those_worked_by_hand(rival: Any) -> None:
    shape = rival.Shape(**SIZES)
    # two sequences after 100 tokens, bytes of a layer: projections 41,600 + 21,200, network 246,000, scores 24,400 and
    # 24,400, softmax 8,000, norms and sums 1,600 each, activation 1,200; the head has 202,200
    decode = rival.time_by_operator(shape, "a100_pcie_80gb", 2, 100, decodes=True)
    assert_close(decode, (2 * 370_000 + 202_200) / 2039e9)
    # one prompt of 10 tokens: 48,000 + 26,000, 270,000, 4,000 + 5,000, 4,000, 8,000 each, 6,000
    prefill = rival.time_by_operator(shape, "a100_pcie_80gb", 1, 10, decodes=False)
    assert_close(prefill, (2 * 379_000 + 202_200) / 2039e9)
    # weights of 4 bits: three quarters of the 300,000 bytes of a layer's weights less, and of the head's 200,000
    narrow = rival.time_by_operator(shape, "a100_pcie_80gb", 2, 100, decodes=True, bits=4)
    assert_close(narrow, (2 * 145_000 + 52_200) / 2039e9)


def test_rules_are_those_worked_by_hand(rival: Any) -> None:
    # 7e9 parameters at batch 64: 1.16653e-6 x 0.488127 x 7 + 4.05293e-5 Wh; 4.750 + 19.964 + 19.474 ms
    assert_close(rival.token_energy_j(7.0, 64), 0.160255, rel=1e-4)
    assert_close(rival.token_latency_s(7.0, 64), 0.0441869, rel=1e-5)
    assert rival.predict_pass("h100_sxm5", "power_w") == {"TDP": 700.0}
    assert_close(rival.predict_pass("h100_sxm5", "energy_j", 32, 0.01)["FLOP / peak"], 7.0)
    assert_close(rival.predict_pass("h100_sxm5", "throughput_per_s", 32, 0.01)["FLOP / peak"], 3200.0)
    assert rival.predict_pass("h100_sxm5", "latency_s") == {}  # nothing without operations
    assert rival.predict_pass("coral_edge_tpu", "power_w") == {}


def test_each_predictor_keeps_to_its_scope(rival: Any) -> None:
    from joulemap.wing.llm.row import ServingRow
    from joulemap.wing.llm.serving.predict import find_deployment

    def peers(**changes: Any) -> set[str]:
        told: dict[str, Any] = {
            "source": "s", "hardware": "h100_sxm5", "model": "llama-2-7b", "scope": "request", "engine": "vllm",
            "weight_precision": "bf16", "prompt_tokens": 100.0, "output_tokens": 11.0, "device_count": 1,
        } | changes  # fmt: skip
        row = ServingRow(**told)
        rows = rival.predict_row(row, find_deployment(row, find_hardware(row.hardware)))
        return {peer for peer, _, _ in rows}

    rules, both = {rival.RULE, rival.TDP}, {rival.ROOFLINE, rival.TRAINED}
    assert peers() == {*rules, *both, rival.VIEWER, rival.ECOLOGITS}
    assert peers(engine="transformers") == {*rules, rival.VIEWER, rival.ECOLOGITS}
    assert peers(hardware="a100_sxm4_80gb", device_count=2) == {*rules, *both}
    assert peers(hardware="l4") == rules
    assert peers(prompt_tokens=None) == rules
    assert peers(hardware="a40", model="google/gemma-2-9b-it") == rules  # its layers differ
