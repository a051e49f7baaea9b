"""A fixed sample of what people bring from timm and transformers, and the tool that traces all of it."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]

TIMM: Final = [
    "beit_base_patch16_224",
    "cait_xxs24_224",
    "coat_lite_mini",
    "coatnet_pico_rw_224",
    "convmixer_1024_20_ks9_p14",
    "convit_tiny",
    "convnextv2_atto",
    "crossvit_9_240",
    "davit_tiny",
    "deit_tiny_distilled_patch16_224",
    "densenet121",
    "dla34",
    "edgenext_xx_small",
    "efficientformerv2_s0",
    "efficientnet_b0",
    "efficientvit_m2",
    "eva02_tiny_patch14_224",
    "fastvit_t8",
    "gernet_s",
    "ghostnet_050",
    "hiera_tiny_224",
    "hrnet_w18_small",
    "levit_conv_128s",
    "mambaout_femto",
    "mixer_s16_224",
    "mobilevit_xxs",
    "nf_resnet26",
    "regnetx_002",
    "swinv2_tiny_window8_256",
    "xcit_nano_12_p16_224",
]

TRANSFORMERS: Final = [
    "Albert",
    "Bart",
    "Bert",
    "Bloom",
    "CLIP",
    "ConvNext",
    "DebertaV2",
    "DeiT",
    "Dinov2",
    "DistilBert",
    "Electra",
    "Falcon",
    "Gemma",
    "Gemma2",
    "GPT2",
    "GPTNeo",
    "GPTJ",
    "Llama",
    "MPNet",
    "Mistral",
    "OPT",
    "Phi",
    "Qwen2",
    "Qwen3",
    "Roberta",
    "Segformer",
    "Swin",
    "T5",
    "ViT",
    "Whisper",
]


@cache
def breadth() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "breadth.py"))


def check(name: str) -> None:
    result = breadth()["check"](name)
    assert result.error == ""
    assert result.is_exact is not False, f"{result.mac_count:,} against {result.torch_mac_count:,}"
    assert result.uncounted == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", TIMM)
def test_a_model_of_timm_is_traced_and_counted_as_torch_counts_it(name: str) -> None:
    pytest.importorskip("timm")
    check(f"timm:{name}")


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_model_of_transformers_is_traced_and_counted_as_torch_counts_it(name: str) -> None:
    pytest.importorskip("transformers")
    check(f"hf:{name}")


def test_the_sample_has_sixty_models() -> None:
    assert (len(set(TIMM)), len(set(TRANSFORMERS))) == (30, 30)


@pytest.mark.wings
def test_a_factory_of_the_list_of_others_is_checked_against_torch() -> None:
    others = breadth()["list_others"]()
    assert len(others) == 31
    (name,) = (name for name in others if name.endswith(":deep_q"))
    result = breadth()["check"](name)
    # 8x8 windows of 4 to 32 channels, 4x4 of 32 to 64, then two linear layers
    macs = 20 * 20 * 32 * 4 * 64 + 9 * 9 * 64 * 32 * 16 + 9 * 9 * 64 * 6
    assert (result.name, result.mac_count, result.torch_mac_count, result.error) == ("deep_q", macs, macs, "")
