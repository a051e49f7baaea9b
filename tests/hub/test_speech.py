"""Whisper's encoder and a step of its decoder: parameters as published, MACs by hand."""

from __future__ import annotations

import pytest

from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.system.errors import UsageError
from joulemap.wing.hub.speech import CACHED, SIZES, build_whisper

PUBLISHED = {
    "tiny": 37_184_640, "base": 71_825_920, "small": 240_582_912, "medium": 762_321_920, "large_v2": 1_541_384_960,
    "large_v3": 1_541_570_560, "turbo": 806_958_080,
}  # fmt: skip
"""Size -> parameters of the released checkpoint, without the sine waves that are the encoder's positions."""

POSITIONS = 30 * 100 // 2


@pytest.mark.parametrize("size", PUBLISHED)
def test_both_parts_have_the_published_parameters(size: str) -> None:
    models = load_models()
    assert (
        sum(models[f"whisper_{size}_{part}"].parameter_count or 0 for part in ("encoder", "decoder")) == PUBLISHED[size]
    )


@pytest.mark.parametrize("size", PUBLISHED)
def test_macs_of_a_clip_and_of_a_token_by_hand(size: str) -> None:
    layers, decoder_layers, width, mels, vocabulary = SIZES[size]
    square = width * width
    convolutions = 3 * (mels * width * 2 * POSITIONS + square * POSITIONS)
    # four projections and eight of the perceptron a layer, both products of attention, and two for the decoder
    encoder = convolutions + layers * POSITIONS * (12 * square + 2 * POSITIONS * width)
    encoder += decoder_layers * POSITIONS * 2 * square
    # two projections less for the audio, whose keys are there
    step = decoder_layers * (14 * square + 2 * (CACHED + 1 + POSITIONS) * width) + vocabulary * width
    shipped = load_shipped()
    assert shipped[f"whisper_{size}_encoder"].mac_count == encoder
    assert shipped[f"whisper_{size}_decoder"].mac_count == step


def test_a_length_is_an_argument_within_the_positions() -> None:
    module, mel = build_whisper("whisper_tiny_encoder", {"seconds": 20})
    assert tuple(mel.shape) == (1, 80, 2_000)
    assert [tuple(one.shape) for one in module.buffers()] == [(1_000, 384)]
    _, inputs = build_whisper("whisper_tiny_decoder", {"cached": 100, "seconds": 20})
    assert {tuple(one.shape) for one in inputs[2:]} == {(1, 6, 100, 64), (1, 6, 1_000, 64)}
    assert len(inputs) == 2 + 4 * 4


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("whisper_tiny_encoder", "cached", 3),
        ("whisper_tiny_encoder", "seconds", 31),
        ("whisper_base_decoder", "cached", 448),
        ("whisper_base_decoder", "seconds", 0),
        ("whisper_base_decoder", "cached", True),
    ],
)
def test_other_arguments_are_refused(name: str, argument: str, value: object) -> None:
    with pytest.raises(UsageError):
        build_whisper(name, {argument: value})
