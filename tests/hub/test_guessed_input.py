"""Inputs of models of transformers: those that a configuration tells, and those that a failure tells."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from joulemap.construct.model import trace_request
from joulemap.construct.source import parse_argument, parse_input
from joulemap.physics.record.workload import Workload
from joulemap.system.errors import ModelError
from joulemap.wing.hub import name as hub_name
from joulemap.wing.hub.hint import take_hint
from joulemap.wing.hub.modality import Guess, Inputs
from joulemap.wing.hub.name import request_hub


class MadeConfig:
    """Settings by keyword; a dictionary is a part with settings of its own."""

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, MadeConfig(**value) if isinstance(value, dict) else value)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MadeConfig:
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return {name: value.to_dict() if isinstance(value, MadeConfig) else value for name, value in vars(self).items()}

    to_diff_dict = to_dict


class Model(nn.Module):
    settings: ClassVar[dict[str, Any]]
    input_modalities: tuple[str, ...] = ("text",)

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config


def trace(monkeypatch: pytest.MonkeyPatch, kind: type[Model], *arguments: str) -> Workload:
    class UsualConfig(MadeConfig):
        def __init__(self, **values: Any) -> None:
            super().__init__(**{**kind.settings, **values})

    made = SimpleNamespace(AutoModel=SimpleNamespace(from_config=kind), UsualConfig=UsualConfig)
    monkeypatch.setitem(sys.modules, "transformers", made)
    monkeypatch.setattr(hub_name, "package_version", lambda name: "1")
    return trace_request(request_hub("hf:Usual", arguments=[parse_argument(text) for text in arguments]))


class Hearing(Model):
    """Takes the places of its mask that are false for padding."""

    settings: ClassVar[dict[str, Any]] = {"num_mel_bins": 8, "vocab_size": 50, "hidden_size": 8, "audio_token_id": 7}
    input_modalities = ("audio", "text")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(50, 8)

    def get_audio_features(self, input_features: Tensor, input_features_mask: Tensor) -> Tensor:
        features = torch.where(input_features_mask[..., None], input_features, 0.0)
        return features[:, ::100]

    def forward(self, input_ids: Tensor, input_features: Tensor, input_features_mask: Tensor) -> Tensor:
        features = self.get_audio_features(input_features, input_features_mask)
        places = input_ids == 7
        if int(places.sum()) != features.shape[0] * features.shape[1]:
            raise ValueError(f"{int(places.sum())} for {features.shape}")
        text: Tensor = self.embed(input_ids)
        return text.masked_scatter(places[..., None], features)


def test_masks_are_booleans_where_a_model_wants_those(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = trace(monkeypatch, Hearing)

    inputs = [tensor for tensor in workload.tensors if tensor.role == "input"]
    assert [(tensor.dtype, tensor.shape) for tensor in inputs] == [
        ("int64", (1, 128)), ("fp32", (1, 3000, 8)), ("bool", (1, 3000)),
    ]  # fmt: skip


class OneKindCache:
    def length(self) -> int:
        raise ValueError("no layer of this kind")


class Caching(Model):
    settings: ClassVar[dict[str, Any]] = {"vocab_size": 50}

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(50, 8)

    def forward(self, input_ids: Tensor, use_cache: bool = True) -> Tensor:
        start = OneKindCache().length() if use_cache else 0
        embedded: Tensor = self.embed(input_ids + start)
        return embedded * 2.0


def test_a_cache_that_fails_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trace(monkeypatch, Caching).notes == (
        "use_cache is assumed to be false: with a cache the forward pass fails",
    )


class VideoSession:
    """What a model keeps of the frames before."""


class Remembering(Model):
    settings: ClassVar[dict[str, Any]] = {}

    def forward(self, session: VideoSession) -> None:
        del session


# as in a module whose annotations are no text
Remembering.forward.__annotations__["session"] = VideoSession


def test_an_input_that_is_no_tensor_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="takes session, a VideoSession, which --input cannot give"):
        trace(monkeypatch, Remembering)


class Pooling(Model):
    """Sees patches, each of their squares as one token, and adds them to the text."""

    settings: ClassVar[dict[str, Any]] = {
        "image_token_id": 7,
        "text_config": {"hidden_size": 16, "vocab_size": 50},
        "vision_config": {"image_size": 20, "patch_size": 4, "hidden_size": 8},
        "adapter_config": {"text_hidden_size": 12},
    }
    input_modalities = ("image", "text")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(50, 16)
        self.patches = nn.Linear(3 * 4 * 4, 8)
        self.adapter = nn.Linear(8, config.adapter_config.text_hidden_size)

    def get_input_embeddings(self) -> nn.Module:
        return self.embed

    def get_image_features(self, pixel_values: Tensor, image_token_pooling: Tensor, image_grids: Tensor) -> Any:
        patches = self.patches(pixel_values).flatten(0, 1)
        pooled = self.adapter(patches[image_token_pooling.clip(0)].sum(1))
        sizes = (image_grids[:, 0] * image_grids[:, 1]).tolist()
        return torch.split(pooled, sizes)

    def forward(
        self,
        input_ids: Tensor,
        pixel_values: Tensor | None = None,
        image_token_pooling: Tensor | None = None,
        image_grids: Tensor | None = None,
    ) -> Tensor:
        text: Tensor = self.embed(input_ids)
        assert pixel_values is not None and image_token_pooling is not None and image_grids is not None
        seen = torch.cat(self.get_image_features(pixel_values, image_token_pooling, image_grids))
        mask = (input_ids == 7)[..., None].expand_as(text)
        return text.masked_scatter(mask, text[mask] + seen.flatten())


def test_patches_are_pooled_and_as_wide_as_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = trace(monkeypatch, Pooling)

    # 5 x 5 patches of 48 values, in 3 x 3 squares
    assert workload.mac_count == 25 * 48 * 8 + 9 * 8 * 16
    assert workload.notes == (
        "adapter_config.text_hidden_size is assumed to be 16, as wide as the text: its default 12 does not fit",
    )


class Shuffling(Model):
    settings: ClassVar[dict[str, Any]] = {
        "pixel_shuffle_factor": 4,
        "vision_config": {"image_size": 28, "patch_size": 2, "num_channels": 3},
    }
    input_modalities = ("image",)

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.patches = nn.Conv2d(3, 8, 2, 2)

    def forward(self, pixel_values: Tensor) -> Tensor:
        shuffled: Tensor = nn.functional.pixel_unshuffle(self.patches(pixel_values), 4)
        return shuffled * 2.0


def test_an_image_is_made_of_whole_squares_of_patches(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = trace(monkeypatch, Shuffling)

    assert workload.mac_count == 16 * 16 * 8 * 3 * 4
    assert workload.notes == (
        "vision_config.image_size is assumed to be 32, whole squares of 4 x 4 patches: its default 28 does not fit",
    )
    assert trace(monkeypatch, Shuffling, "vision_config.image_size=64").notes == ()


def made(**sizes: tuple[int, ...]) -> Inputs:
    return {
        name: torch.ones(size, dtype=torch.int64)
        if name.endswith(("ids", "mask"))
        else torch.empty(size, device="meta")
        for name, size in sizes.items()
    }


@pytest.mark.parametrize(
    ("error", "given", "expected"),
    [
        ("a and b … but got [128, 64] X [80, 32]", made(hidden_states=(1, 128, 64)), {"hidden_states": (1, 128, 80)}),
        (
            "a and b … but got [672, 224] X [588, 32]",
            made(pixel_values=(1, 3, 224, 224)),
            {"pixel_values": (1, 16 * 16, 588)},
        ),
        (
            "a and b … but got [375, 8192] X [1024, 1280]",
            made(input_features=(1, 3000, 1024)),
            {"input_features": (1, 3000, 128)},
        ),
        (
            "Given normalized_shape=[768], expected … but got input of size torch.Size([1, 16000])",
            made(input_values=(1, 16000)),
            {"input_values": (1, 128, 768)},
        ),
        (
            "Invalid channel dimensions in conv1d of [1, 128, 70] and [32, 1, 7] and [32]",
            made(hidden_states=(1, 128, 64)),
            {"hidden_states": (1, 1, 16000)},
        ),
        (
            "Attempting to broadcast a dimension of length 375 at -2! Mismatching argument at index 1 had "
            "torch.Size([1, 375, 32]); but expected shape should be broadcastable to [1, 128, 32]",
            made(input_ids=(1, 128), input_features=(1, 128, 3000)),
            {"input_ids": (1, 375), "input_features": (1, 128, 3000)},
        ),
    ],
)
def test_an_error_says_what_sizes_an_input_has(error: str, given: Inputs, expected: dict[str, tuple[int, ...]]) -> None:
    guess = Guess(module=None, configuration=MadeConfig(), batch=1, given={}, made=dict(given))

    assert take_hint(guess, ModelError(error))
    assert {name: tuple(value.shape) for name, value in guess.made.items()} == expected
    assert not take_hint(guess, ModelError("another"))


def test_what_is_given_is_not_changed() -> None:
    spec = parse_input("hidden_states=1,128,64")
    guess = Guess(
        module=None,
        configuration=MadeConfig(),
        batch=1,
        given={"hidden_states": spec},
        made=made(hidden_states=spec.shape),
    )

    assert not take_hint(guess, ModelError("a and b … but got [128, 64] X [80, 32]"))


class Listening(Model):
    """Takes a sound as a wave and as a spectrogram of the same length."""

    settings: ClassVar[dict[str, Any]] = {"num_mel_bins": 8, "hop_length": 320}
    input_modalities = ("audio",)

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.frames = nn.Conv1d(1, 8, 320, 320)

    def forward(self, input_values: Tensor, input_features: Tensor) -> Tensor:
        framed: Tensor = self.frames(input_values).transpose(1, 2)
        return framed + input_features


def test_a_wave_is_as_long_as_its_spectrogram(monkeypatch: pytest.MonkeyPatch) -> None:
    assert trace(monkeypatch, Listening).operators[-1].output_shape == (1, 50, 8)
