"""Whisper, a speech recognizer, by name: its encoder and one step of its decoder are separate models.

    whisper_base_encoder, whisper_large_v3_encoder, …  mel spectrogram of 30 s to states, once a clip
    whisper_base_decoder, whisper_large_v3_decoder, …  next token, against caches, once for each token

The encoder also computes the keys and values of all cross-attention layers, which the decoder reads at every step. The
decoder runs once per token. Thus `whisper_base_encoder:0.1/s + whisper_base_decoder:40/frame` is a clip every ten
seconds with 40 tokens, and `whisper_base(tokens=40)` is one such clip. `--model-arg seconds=20` sets the length of a
clip, and `cached=100` the tokens before the step. Source: Radford et al., Robust Speech Recognition via Large-Scale
Weak Supervision, 2022, Table 1 and released code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from joulemap.system import UsageError
from joulemap.trace.module import build_on_meta

FAMILY: Final = "whisper"
"""Family of these networks in the catalogue."""


class Size(NamedTuple):
    """Layers, width and vocabulary of a Whisper network."""

    encoder_layers: int
    decoder_layers: int
    width: int
    mels: int = 80
    """Mel bands of the spectrogram."""
    vocabulary: int = 51_865
    """Number of tokens that the model can output."""


SIZES: Final[Mapping[str, Size]] = {
    "tiny": Size(4, 4, 384),
    "base": Size(6, 6, 512),
    "small": Size(12, 12, 768),
    "medium": Size(24, 24, 1024),
    "large_v2": Size(32, 32, 1280),
    "large_v3": Size(32, 32, 1280, mels=128, vocabulary=51_866),
    "turbo": Size(32, 4, 1280, mels=128, vocabulary=51_866),
}
"""Name of a Whisper size -> its layers, width and vocabulary."""

HEAD: Final = 64
"""Elements per attention head."""

FRAMES_PER_S: Final = 100
"""Spectrogram frames per second of audio."""

MOST_TOKENS: Final = 448
"""Maximum tokens of a transcript, for which the decoder has position embeddings."""

MOST_SECONDS: Final = 30
"""Maximum length of a clip in seconds, for which the encoder has position embeddings."""

CACHED: Final = 32
"""Default number of tokens already decoded before a decoder step."""

Caches = tuple[torch.Tensor, torch.Tensor]
"""(keys, values) of one attention layer, each of shape (batch, heads, positions, HEAD)."""


class Attention(nn.Module):
    """Attention with its own query and output projections; the caller provides keys and values."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`: batch, positions, width."""
        mixed: torch.Tensor = functional.scaled_dot_product_attention(_split(self.query(x)), keys, values)
        result: torch.Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return result


class KeyValue(nn.Module):
    """Projections to keys (without bias) and values."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> Caches:
        """Return (keys, values) from `x` of shape (batch, positions, width)."""
        return _split(self.key(x)), _split(self.value(x))


def _split(x: torch.Tensor) -> torch.Tensor:
    """Return a (batch, positions, width) tensor as (batch, heads, positions, HEAD)."""
    heads: torch.Tensor = x.unflatten(-1, (-1, HEAD))
    return heads.transpose(1, 2)


class Perceptron(nn.Sequential):
    """Two linear layers with a GELU between them; the inner width is four times the outer."""

    def __init__(self, width: int) -> None:
        super().__init__(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


class EncoderLayer(nn.Module):
    """Self-attention and MLP, each after a layer normalization."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.keys, self.attention = nn.LayerNorm(width), KeyValue(width), Attention(width)
        self.last_norm, self.mlp = nn.LayerNorm(width), Perceptron(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the shape of `x`."""
        states = self.norm(x)
        x = x + self.attention(states, *self.keys(states))
        result: torch.Tensor = x + self.mlp(self.last_norm(x))
        return result


class Encoder(nn.Module):
    """Whisper encoder: two convolutions, the layers, and projections to keys and values for each decoder layer."""

    positions: torch.Tensor

    def __init__(self, size: Size, seconds: int = MOST_SECONDS) -> None:
        super().__init__()
        width = size.width
        self.first = nn.Conv1d(size.mels, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.register_buffer("positions", torch.empty(seconds * FRAMES_PER_S // 2, width))
        self.layers = nn.Sequential(*(EncoderLayer(width) for _ in range(size.encoder_layers)))
        self.norm = nn.LayerNorm(width)
        self.cross = nn.ModuleList(KeyValue(width) for _ in range(size.decoder_layers))
        self.example_inputs = torch.empty(1, size.mels, seconds * FRAMES_PER_S, device="meta")

    def forward(self, mel: torch.Tensor) -> list[Caches]:
        """Return (keys, values) of the audio for each decoder layer."""
        x = functional.gelu(self.second(functional.gelu(self.first(mel)))).transpose(1, 2)
        states = self.norm(self.layers(x + self.positions))
        return [cross(states) for cross in self.cross]


class DecoderLayer(nn.Module):
    """Self-attention with a cache, attention to the audio, and MLP, each after a layer normalization."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.keys, self.attention = nn.LayerNorm(width), KeyValue(width), Attention(width)
        self.cross_norm, self.cross = nn.LayerNorm(width), Attention(width)
        self.last_norm, self.mlp = nn.LayerNorm(width), Perceptron(width)

    def forward(self, x: torch.Tensor, cache: Caches, audio: Caches) -> tuple[torch.Tensor, Caches]:
        """Return (state of the new token, caches to which its key and value are appended)."""
        states = self.norm(x)
        key, value = self.keys(states)
        cache = torch.cat((cache[0], key), dim=2), torch.cat((cache[1], value), dim=2)
        x = x + self.attention(states, *cache)
        x = x + self.cross(self.cross_norm(x), *audio)
        return x + self.mlp(self.last_norm(x)), cache


class Decoder(nn.Module):
    """One step of the Whisper decoder, which computes the logits of the next token."""

    def __init__(self, size: Size, seconds: int = MOST_SECONDS, cached: int = CACHED) -> None:
        super().__init__()
        layers, width = size.decoder_layers, size.width
        self.tokens = nn.Embedding(size.vocabulary, width)
        self.positions = nn.Embedding(MOST_TOKENS, width)
        self.layers = nn.ModuleList(DecoderLayer(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        token = torch.empty(1, 1, dtype=torch.long, device="meta")
        caches = [
            torch.empty(1, width // HEAD, length, HEAD, device="meta")
            for length in (cached, cached, seconds * FRAMES_PER_S // 2, seconds * FRAMES_PER_S // 2)
            for _ in range(layers)
        ]
        self.example_inputs = (token, token, *caches)

    def forward(self, token: torch.Tensor, position: torch.Tensor, *caches: torch.Tensor) -> list[torch.Tensor]:
        """Return the logits over the vocabulary, followed by the caches with the new token appended."""
        x = self.tokens(token) + self.positions(position)
        count, kept = len(self.layers), []
        for index, layer in enumerate(self.layers):
            keys, values, audio_keys, audio_values = caches[index::count]
            x, cache = layer(x, (keys, values), (audio_keys, audio_values))
            kept += cache
        return [functional.linear(self.norm(x), self.tokens.weight), *kept]


NETWORKS: Final = tuple(f"whisper_{size}_{part}" for size in SIZES for part in ("encoder", "decoder"))
"""Names of the networks."""

MOST: Final = {"seconds": MOST_SECONDS, "cached": MOST_TOKENS - 1}
"""Argument of a network -> its maximum."""


def build_whisper(name: str, arguments: Mapping[str, Any]) -> tuple[nn.Module, Any]:
    """Return (module, example inputs) of a network. Raise UsageError for an unknown argument or an invalid value."""
    size, _, part = name.removeprefix("whisper_").rpartition("_")
    known = ("seconds",) if part == "encoder" else tuple(MOST)
    for argument, value in arguments.items():
        if argument not in known:
            raise UsageError(f"{name} takes no argument {argument}; it takes: {', '.join(known)}")
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST[argument]:
            raise UsageError(f"{name}: {argument} is {value}, expected a whole number from 1 to {MOST[argument]}")
    with build_on_meta():
        module = (Encoder if part == "encoder" else Decoder)(SIZES[size], **arguments)
    return module, module.example_inputs
