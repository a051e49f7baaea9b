"""Measured rows of models that are divided between a GPU and a processor, as llama-bench runs them."""

from __future__ import annotations

from itertools import pairwise

import attrs
import pytest

from compare import assert_close
from joulemap.catalog.load import find_hardware
from joulemap.wing.llm.row import Prediction, ServingRow
from joulemap.wing.llm.serving.predict import predict

ROW = ServingRow(
    source="llama-bench",
    hardware="rtx_4090",
    model="gpt-oss-20b",
    scope="decode_step",
    engine="llamacpp",
    prompt_tokens=512.0,
    output_tokens=64.0,
)
LAYERS = 24


def predict_split(split: str) -> Prediction:
    row = attrs.evolve(ROW, other_hardware="ryzen_9_5950x" if split else "", layer_split=split)
    (one,) = predict([row], find_hardware(row.hardware), [find_hardware(name) for name in row.other_chips])
    assert isinstance(one, Prediction)
    return one


@pytest.mark.parametrize("start", ["", "experts "])
def test_each_layer_on_the_processor_takes_longer(start: str) -> None:
    kept = (LAYERS, 20, 12, 0)
    splits = [f"{start}{LAYERS if start else left}/{LAYERS - left}" for left in kept]
    times = [predict_split(one).inter_token_latency_s or 0.0 for one in splits]
    assert_close(times[0], predict_split("").inter_token_latency_s or 0.0)
    assert all(after > before for before, after in pairwise(times))


def test_a_range_is_wider_where_no_run_states_how_its_experts_are_divided() -> None:
    experts, layers = (predict_split(one) for one in ("experts 24/12", "12/12"))
    for name in ("token_half_width", "prompt_half_width"):
        assert getattr(experts, name) > getattr(layers, name) + 0.5


@pytest.mark.parametrize(
    ("others", "split"), [("ryzen_9_5950x", ""), ("", "12/12"), ("a+b", "12/12"), ("a", "12"), ("a", "12/x")]
)
def test_a_division_states_the_layers_of_each_chip(others: str, split: str) -> None:
    with pytest.raises(ValueError, match="layer_split"):
        attrs.evolve(ROW, other_hardware=others, layer_split=split)
