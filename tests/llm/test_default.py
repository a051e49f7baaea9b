"""Law: a default that is spelled out changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from joulemap.domain.default import SERVED
from joulemap.plan.source import Source
from joulemap.wing.decoder.engine.stack import find_stack
from joulemap.wing.decoder.network.pass_name import find_decoder
from joulemap.wing.llm.capacity.model import ServedModel
from joulemap.wing.llm.serving.surface import Passes
from joulemap.wing.llm.setting import Serving
from joulemap.wing.llm.step import predict_step


def deploy(source: Source, model: str, chip: str, settings: dict[str, Any], serving: dict[str, Any]) -> Any:
    """Return what all digits of a configuration follow from, and the configurations."""
    asked = attrs.evolve(SERVED, **{"hardware": (chip,), "batch": (1, 8), **settings})
    question, _, cases = ServedModel(name=model, settings=asked, serving=Serving(**serving)).list_cases(source)
    fields = [
        (one.label, one.precision, one.batch, one.status, one.most, one.run.target.digest, one.run.point["runtime"])
        for one in cases
    ]
    return [*fields, question.stack.id, question.serving.cache, question.serving.output], question, cases[0]


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
@pytest.mark.parametrize(("model", "chip"), [("gpt-oss-20b", "h100_sxm5"), ("ministral-3-14b", "l4")])
def test_a_step_with_the_weights_of_its_checkpoint_spelled_out(model: str, chip: str, engine: str) -> None:
    decoder = find_decoder(model)
    assert decoder is not None and decoder.published is not None
    steps = Passes.of([1.0], context=[512.0])
    usual = predict_step(model, chip, engine=engine).price(steps)
    spelled = predict_step(model, chip, engine=engine, weight_precision=decoder.published.weights).price(steps)
    assert (spelled.latency_s, spelled.energy_j) == (usual.latency_s, usual.energy_j)


@pytest.mark.parametrize("weights", ["q4_k_m", "q8_0", "iq4_xs"])
def test_formats_of_gguf_files_alone_run_on_llamacpp(tmp_path: Path, weights: str) -> None:
    source = Source(path=tmp_path / "own.duckdb")
    for chip in ("l4", "mi300x"):
        settings = {"weight_precision": (weights,)}
        assert deploy(source, "llama-3.1-8b", chip, settings, {})[1].stack == find_stack("llamacpp")
        assert deploy(source, "llama-3.1-8b", chip, settings, {"engine": "vllm"})[1].stack == find_stack("vllm")


@pytest.mark.parametrize(
    ("chip", "engine", "precision"),
    [
        ("rtx_5090", "vllm", "fp4"),
        ("rtx_5090", "vllm@2025-06", "bf16"),
        ("b200_sxm", "sglang", "fp4"),
        ("h100_sxm5", "vllm", "bf16"),
    ],
)
def test_named_fp4_weights_are_multiplied_as_the_release_of_the_engine_does(
    chip: str, engine: str, precision: str, tmp_path: Path
) -> None:
    source = Source(path=tmp_path / "own.duckdb")
    _, _, usual = deploy(source, "qwen3-8b", chip, {"weight_precision": ("nvfp4",)}, {"engine": engine})
    assert usual.precision == f"{precision}/nvfp4"
    steps = Passes.of([8.0], context=[512.0])
    named = predict_step("qwen3-8b", chip, engine=engine, weight_precision="nvfp4").price(steps)
    spelled = predict_step("qwen3-8b", chip, engine=engine, weight_precision="nvfp4", precision=precision)
    assert named.latency_s == spelled.price(steps).latency_s
