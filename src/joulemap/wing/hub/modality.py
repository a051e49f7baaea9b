"""Inputs of a transformers model by name, each made from the sizes in its configuration.

A rule makes an input. It reads the configuration, the configuration's parts for text, images, audio and time series,
and the inputs made before.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import torch

from joulemap.construct import InputSpec
from joulemap.trace.record import MOST_REAL
from joulemap.trace.tensor import DTYPES

TOKENS: Final = 128
"""Tokens of a traced sequence, unless --input says otherwise or the model's limit is lower."""

IMAGE: Final = 224
"""Side of an image in pixels for a model whose configuration states no size, because it takes any."""

SAMPLES: Final = 16_000
"""Audio samples of a waveform: one second at the sampling rate of speech models."""

EVEN_SAMPLES: Final = 38_400
"""Audio samples for models that take only whole frames: a multiple of 320, 640, 1280, 1920 and 2560."""

FRAMES: Final = 3_000
"""Frames of a spectrogram if a configuration has no limit: 30 seconds at 10 ms."""

TEN_SECONDS: Final = 1_001
"""Frames of a spectrogram with a fixed length, at 10 ms."""

WORDS: Final = 16
"""Text tokens next to an image or sound that alone fills the usual sequence length."""

POOLED: Final = 2
"""Side in patches of the square that a model pools to one image token."""

Inputs = dict[str, torch.Tensor]

PARTS: Final = {
    "text": r"text|language|llm|decoder|thinker|lm_",
    "image": r"vision|image|visual|vit|backbone|thinker|encoder",
    "video": r"vision|video|visual|image|thinker|encoder",
    "audio": r"audio|speech|acoustic|sound|thinker|encoder",
}
"""Modality -> pattern of the names of nested configurations that describe it."""


def is_configuration(value: Any) -> bool:
    """Return whether a setting is a nested configuration."""
    return hasattr(value, "__dict__") and not isinstance(value, type | torch.dtype) and not callable(value)


def find_setting(configuration: Any, kind: str, *names: str) -> Any:
    """Return the first setting with one of these names in a configuration or its parts for a modality; None without
    one.

    Parts are searched two levels deep.
    """
    level = [configuration] if configuration is not None else []
    for _ in range(3):
        for place in level:
            for name in names:
                found = getattr(place, name, None)
                if found is not None:
                    return found
        level = [part for place in level for part in _parts(place, kind)]
    return None


def _parts(configuration: Any, kind: str) -> list[Any]:
    return [
        value
        for name, value in vars(configuration).items()
        if (name.endswith("config") or type(value).__name__.endswith("Config"))
        and re.search(PARTS[kind], name)
        and is_configuration(value)
    ]


@attrs.define(kw_only=True)
class Guess:
    """Guess of a model's inputs: the facts that it follows, and the inputs made so far."""

    module: Any
    configuration: Any
    batch: int
    given: Mapping[str, InputSpec]
    """Name -> input given by the user."""
    is_turned: bool = False
    """True for the less common layouts: several images per sample, and audio frames before bins."""
    scale: int = 1
    size: int = 0
    """Image size in pixels that an error stated; 0 to use that of the configuration."""
    counts: dict[str, int] = attrs.field(factory=dict)
    """Modality -> number of features stated in an error."""
    has_boolean_masks: bool = False
    """True if an error stated that masks must be boolean."""
    made: Inputs = attrs.field(factory=dict)

    @property
    def accepted(self) -> tuple[str, ...]:
        """Names of the arguments of the forward pass."""
        return tuple(parameters_of(self.module))

    def setting(self, kind: str, *names: str) -> Any:
        """Return the first setting with one of these names for a modality; None without one."""
        return find_setting(self.configuration, kind, *names)

    def number(self, kind: str, *names: str) -> int:
        """Return the first of these settings that is a positive integer; 0 if none is."""
        for name in names:
            found = self.setting(kind, name)
            found = found[0] if isinstance(found, list | tuple) and found else found
            if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                return found
        return 0

    def tokens(self) -> int:
        """Return the tokens per text sequence."""
        for name in ("input_ids", "decoder_input_ids"):
            if name in self.given and len(self.given[name].shape) > 1:
                return self.given[name].shape[1]
        most = self.number("text", "max_position_embeddings")
        return min(TOKENS, most) if most else TOKENS

    def image(self) -> tuple[int, int]:
        """Return the height and width of an image in pixels."""
        spec = next((spec for name, spec in self.given.items() if "pixel" in name and len(spec.shape) > 3), None)
        if spec is not None:
            return spec.shape[-2], spec.shape[-1]
        size = self.size or self.setting("image", "image_size") or IMAGE
        if isinstance(size, Mapping):
            size = size.get("height", IMAGE)
        height, width = (size[-2], size[-1]) if isinstance(size, list | tuple) and len(size) > 1 else (size, size)
        if not isinstance(height, int) or not isinstance(width, int):
            height = width = IMAGE
        return height * self.scale, width * self.scale

    def channels(self) -> int:
        """Return the number of channels of an image."""
        return self.number("image", "num_channels", "in_channels", "in_chans") or 3

    def patch(self) -> int:
        """Return the side of an image patch in pixels."""
        return self.number("image", "patch_size", "spatial_patch_size") or 14

    def grid(self) -> tuple[int, int]:
        """Return the patches along an image's height and width, rounded down to multiples of the merge size."""
        merge = self.number("image", "spatial_merge_size", "merge_size", "downsample_factor") or 2
        height, width = self.image()
        return tuple(max(size // self.patch() // merge, 1) * merge for size in (height, width))  # type: ignore[return-value]

    def frames(self) -> int:
        """Return the number of frames of a spectrogram."""
        positions = self.number("audio", "max_source_positions")
        return self.number("audio", "max_length") or (2 * positions if positions else FRAMES)


def parameters_of(module: Any) -> dict[str, inspect.Parameter]:
    """Return name -> parameter of a module's forward pass, without `*args` and `**kwargs`."""
    return {
        name: parameter
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if parameter.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    }


Rule = Callable[[Guess], torch.Tensor | None]


def floats(*sizes: int) -> torch.Tensor:
    """Return activations of these sizes, without storage."""
    return torch.empty(sizes, device="meta")


def ones(*sizes: int) -> torch.Tensor:
    """Return an integer mask of these sizes, all 1, which masks nothing."""
    return torch.ones(sizes, dtype=torch.int64)


def zeros(*sizes: int) -> torch.Tensor:
    """Return an integer tensor of these sizes, all 0."""
    return torch.zeros(sizes, dtype=torch.int64)


def find_word(guess: Guess) -> int:
    """Return the id of an ordinary token, to which the configuration gives no special meaning."""
    special = {
        value
        for place in (guess.configuration, *_parts(guess.configuration, "text"))
        for name, value in vars(place).items()
        if isinstance(value, int) and re.search(r"token|_id$|_idx$|index", name)
    }
    most = guess.number("text", "vocab_size") or 100
    return next((value for value in range(5, most) if value not in special), 0)


def _decoder_text(guess: Guess) -> torch.Tensor:
    given = guess.given.get("decoder_input_ids")
    length = given.shape[1] if given is not None and len(given.shape) > 1 else guess.tokens()
    most = guess.number("text", "max_target_positions")
    ids = torch.full((guess.batch, min(length, most) if most else length), find_word(guess))
    channels = getattr(getattr(guess.configuration, "decoder_config", None), "num_channels", 1)
    return ids[..., None].expand(*ids.shape, channels).clone() if isinstance(channels, int) and channels > 1 else ids


def _patch_width(guess: Guess) -> int:
    """Return the values per patch that the model's patch embedding takes; 0 without a layer of that name."""
    for name, layer in guess.module.named_modules():
        weight = getattr(layer, "weight", None)
        if "patch_embed" in name and isinstance(weight, torch.Tensor) and weight.dim() >= 2:
            return math.prod(weight.shape[1:])
    return 0


def _is_flat(guess: Guess) -> bool:
    return not {"image_grid_thw", "grid_thw"}.isdisjoint(guess.accepted)


def _pixels(guess: Guess) -> torch.Tensor:
    channels, patch = guess.channels(), guess.patch()
    frames = guess.setting("video", "num_frames")
    if _is_flat(guess):
        rows, columns = guess.grid()
        patches = guess.batch * rows * columns
        depth = guess.number("image", "temporal_patch_size") or 1
        if guess.is_turned:
            return floats(patches, channels, patch, patch)
        return floats(patches, _patch_width(guess) or channels * depth * patch * patch)
    if "image_token_pooling" in guess.accepted:
        return floats(guess.batch, math.prod(_whole_patches(guess)), channels * patch * patch)
    if "spatial_shapes" in guess.accepted:
        rows, columns = guess.grid()
        return floats(guess.batch, rows * columns, channels * patch * patch)
    height, width = guess.image()
    image: tuple[int, ...] = (
        channels,
        min(height, width) if "prompt_pixel_values" in guess.accepted else height,
        width,
    )
    if "aspect_ratio_ids" in guess.accepted:
        return floats(guess.batch, 1, guess.number("image", "max_num_tiles") or 4, *image)
    if guess.is_turned:
        return _several(guess, image)
    return floats(guess.batch, frames, *image) if isinstance(frames, int) else floats(guess.batch, *image)


def _several(guess: Guess, image: tuple[int, ...]) -> torch.Tensor:
    """Return a tensor with several images per sample: a pair, tiles, or one.

    A small tensor has values, because some models look for empty images.
    """
    count = 2 if "labels" in guess.accepted and "input_ids" not in guess.accepted else 1
    tiled = _tiled(guess)
    if tiled is not None:
        count = (tiled[0] // image[1]) * (tiled[1] // image[2]) + 1
    sizes = (guess.batch, count, *image)
    return torch.ones(sizes) if math.prod(sizes) <= MOST_REAL else floats(*sizes)


def _tiled(guess: Guess) -> tuple[int, int] | None:
    """Return the height and width in pixels of an image that a model cuts into tiles; None if it cuts none."""
    sizes = guess.setting("image", "image_grid_pinpoints")
    return (int(sizes[0][0]), int(sizes[0][1])) if isinstance(sizes, list | tuple) and sizes else None


def _video(guess: Guess) -> torch.Tensor:
    if _is_flat(guess):
        return _pixels(guess)
    frames = guess.number("video", "num_frames", "frames_per_clip") or 8
    return floats(guess.batch, frames, guess.channels(), *guess.image())


def _thw(guess: Guess) -> torch.Tensor:
    return torch.tensor([[1, *guess.grid()]] * guess.batch)


def _patches(guess: Guess) -> torch.Tensor:
    return torch.tensor([guess.grid()] * guess.batch)


def _whole_patches(guess: Guess) -> tuple[int, int]:
    """Return the whole patches along the height and width of an image."""
    height, width = guess.image()
    return max(height // guess.patch(), 1), max(width // guess.patch(), 1)


def _pooled_patches(guess: Guess) -> torch.Tensor:
    """Return a (image tokens x patches) tensor of patch numbers that each token pools; -1 for a missing patch."""
    rows, columns = _whole_patches(guess)
    tall, wide = _pooled_grid(guess)
    places = torch.full((guess.batch, tall * POOLED, wide * POOLED), -1)
    places[:, :rows, :columns] = torch.arange(guess.batch * rows * columns).reshape(guess.batch, rows, columns)
    squares = places.reshape(guess.batch, tall, POOLED, wide, POOLED).transpose(2, 3)
    return squares.reshape(-1, POOLED * POOLED)


def _pooled_grid(guess: Guess) -> tuple[int, int]:
    rows, columns = _whole_patches(guess)
    return -(-rows // POOLED), -(-columns // POOLED)


def _pixel_mask(guess: Guess) -> torch.Tensor | None:
    pixels = guess.made.get("pixel_values")
    if pixels is None:
        return None
    if pixels.dim() == 3:
        return ones(*pixels.shape[:2])
    return ones(*pixels.shape[:-3], *pixels.shape[-2:])


def _spectrogram(guess: Guess) -> torch.Tensor | None:
    bins = guess.number(
        "audio", "num_mel_bins", "feature_projection_input_dim", "input_feat_size", "input_feat_per_channel", "n_mels",
        "mel_bins", "num_mels", "feature_size", "input_dim", "input_channels",
    )  # fmt: skip
    bins = bins or _first_width(guess)
    if not bins:
        return None
    hop = _hop(guess)
    if hop:
        return floats(guess.batch, SAMPLES // hop, bins)
    if "is_longer" in guess.accepted:  # audio is cut or repeated to ten seconds, as one channel of an image
        return floats(guess.batch, 1, TEN_SECONDS, bins)
    if (
        bool(guess.setting("audio", "max_source_positions") and guess.number("audio", "num_mel_bins"))
        != guess.is_turned
    ):
        return floats(guess.batch, bins, guess.frames())
    return floats(guess.batch, guess.frames(), bins)


def _first_width(guess: Guess) -> int:
    """Return the input width of the model's first linear or 1D convolution layer; 0 if there is none."""
    for layer in guess.module.modules():
        if isinstance(layer, torch.nn.Linear | torch.nn.Conv1d):
            return int(layer.weight.shape[1])
    return 0


def _hop(guess: Guess) -> int:
    """Return the audio samples per spectrogram frame of a model that takes waveform and spectrogram; else 0."""
    return guess.number("audio", "hop_length") if {"input_values", "input_features"} <= {*guess.accepted} else 0


def _wave(guess: Guess) -> torch.Tensor:
    spectrogram = guess.made.get("input_features")
    if spectrogram is not None and _hop(guess):
        return floats(guess.batch, 1, spectrogram.shape[1] * _hop(guess))
    frames, bins = guess.number("audio", "max_length"), guess.number("audio", "num_mel_bins")
    if frames and bins:
        return floats(guess.batch, frames, bins)
    channels = guess.number("audio", "audio_channels")
    samples = SAMPLES if guess.scale == 1 else EVEN_SAMPLES
    if guess.is_turned or channels:
        return floats(guess.batch, channels or 1, samples)
    return floats(guess.batch, samples)


def _wave_mask(guess: Guess) -> torch.Tensor | None:
    wave = guess.made.get("input_values")
    return None if wave is None else ones(guess.batch, wave.shape[-1])


def _frame_mask(guess: Guess) -> torch.Tensor | None:
    features = guess.made.get("input_features", guess.made.get("audio_input_features"))
    if features is None or features.dim() < 3:
        return None
    bins = guess.number("audio", "num_mel_bins")
    return ones(guess.batch, features.shape[2] if features.shape[1] == bins else features.shape[1])


def _marks(guess: Guess) -> torch.Tensor | None:
    """Return the modality of each token id: 0 for text, 1 for images, 2 for video and 3 for audio."""
    ids = guess.made.get("input_ids")
    if ids is None:
        return None
    marks = torch.zeros_like(ids)
    for mark, kind in enumerate(("image", "video", "audio"), 1):
        token = find_placeholder(guess, kind)
        if token is not None:
            marks[ids == token] = mark
    return marks


def _places(guess: Guess) -> torch.Tensor | None:
    """Return a mask of the token ids: 1 where an image query replaces the id, else 0."""
    ids, count = guess.made.get("input_ids"), guess.number("image", "latent_query_num")
    if ids is None or not count:
        return None
    places = torch.zeros_like(ids)
    places[:, 1 : 1 + count] = 1
    return places


def _hidden(guess: Guess) -> torch.Tensor | None:
    if "grid_thw" in guess.accepted:
        return _pixels(guess)
    width = guess.number("text", "hidden_size", "d_model")
    sizes = (width, guess.tokens()) if guess.is_turned else (guess.tokens(), width)
    return floats(guess.batch, *sizes) if width else None


def _encoded(guess: Guess) -> torch.Tensor | None:
    width = guess.number("text", "encoder_hidden_size", "cross_attention_dim", "hidden_size", "d_model")
    return floats(guess.batch, guess.tokens(), width) if width else None


def _past(guess: Guess) -> torch.Tensor | None:
    length = guess.number("text", "context_length")
    if not length:
        return None
    lags = guess.setting("text", "lags_sequence")
    length += max(lags) if isinstance(lags, list | tuple) and lags else 0
    series = guess.number("text", "num_input_channels", "input_size") or 1
    return (
        floats(guess.batch, length, series)
        if series > 1 or "num_input_channels" in vars(guess.configuration)
        else (floats(guess.batch, length))
    )


def _times(name: str) -> Rule:
    def make(guess: Guess) -> torch.Tensor | None:
        past = guess.made.get("past_values")
        if past is None:
            return None
        length = past.shape[1] if name == "past" else guess.number("text", "prediction_length")
        count = guess.number("text", "num_time_features")
        return floats(guess.batch, length, count)

    return make


def _steps(*names: str) -> Rule:
    """Return the rule for an input of a trajectory, of shape (batch, steps, width)."""

    def make(guess: Guess) -> torch.Tensor | None:
        width = guess.number("text", *names) if names else 1
        return floats(guess.batch, 20, width) if width else None

    return make


def _like(name: str, *, value: int = 1) -> Rule:
    """Return the rule for an input of constant integers with the sizes of another input."""

    def make(guess: Guess) -> torch.Tensor | None:
        other = guess.made.get(name)
        return None if other is None else torch.full(other.shape, value)

    return make


RULES: Final[dict[str, Rule]] = {
    "input_ids": lambda guess: torch.full((guess.batch, guess.tokens()), find_word(guess)),
    "decoder_input_ids": _decoder_text,
    "pixel_values": _pixels,
    "pixel_values_videos": _video,
    "image_pixel_values": _pixels,
    "high_res_pixel_values": lambda guess: floats(guess.batch, guess.channels(), 1024, 1024),
    "prompt_pixel_values": _pixels,
    "prompt_masks": _pixels,
    "image": _pixels,
    "frame": _pixels,
    "image_grid_thw": _thw,
    "grid_thw": _thw,
    "image_grid_hw": _patches,
    "spatial_shapes": _patches,
    "image_token_pooling": _pooled_patches,
    "image_grids": lambda guess: torch.tensor([[*_pooled_grid(guess), 0, 0]] * guess.batch),
    "image_num_crops": lambda guess: ones(guess.batch),
    "target_sizes": _patches,
    "merge_sizes": lambda guess: torch.full((guess.batch,), guess.number("image", "spatial_merge_size") or 1),
    "image_merge_sizes": lambda guess: torch.full((guess.batch,), guess.number("image", "spatial_merge_size") or 1),
    "image_embeds_position_mask": _places,
    "image_sizes": lambda guess: torch.tensor([_tiled(guess) or guess.image()] * guess.batch),
    "pixel_mask": _pixel_mask,
    "pixel_attention_mask": _pixel_mask,
    "patch_attention_mask": lambda guess: torch.ones((guess.batch, *guess.grid()), dtype=torch.bool),
    "input_features": _spectrogram,
    "audio_input_features": _spectrogram,
    "audio_mel": _spectrogram,
    "input_values": _wave,
    "input_features_mask": _frame_mask,
    "feature_attention_mask": _frame_mask,
    "audio_mel_mask": lambda guess: torch.zeros(guess.made["audio_mel"].shape[:2], dtype=torch.bool),
    "padding_mask": _wave_mask,
    "mm_token_type_ids": _marks,
    "moe_mm_token_type_ids": _marks,
    "attention_mask": lambda guess: _like("input_ids")(guess) if "input_ids" in guess.made else _frame_mask(guess),
    "decoder_attention_mask": _like("decoder_input_ids"),
    "token_type_ids": _like("input_ids", value=0),
    "qformer_input_ids": lambda guess: torch.full((guess.batch, WORDS), find_word(guess)),
    "task_inputs": lambda guess: torch.full(
        (guess.batch, guess.number("text", "task_seq_len") or 77), find_word(guess)
    ),
    "lang_ids": lambda guess: zeros(guess.batch),
    "input_shape_ids": _like("input_ids", value=0),
    "input_pronunciation_ids": _like("input_ids", value=0),
    "bbox": lambda guess: zeros(guess.batch, guess.tokens(), 4),
    **dict.fromkeys(
        ("decoder_input_values", "inputs_embeds", "inputs"), lambda guess: _embeddings(guess, guess.tokens())
    ),
    "hidden_states": _hidden,
    "encoder_hidden_states": _encoded,
    "query_embeds": lambda guess: _embeddings(guess, guess.number("text", "num_query_tokens") or 32),
    "visual_feats": lambda guess: floats(guess.batch, 36, guess.number("image", "visual_feat_dim")),
    "visual_pos": lambda guess: floats(guess.batch, 36, guess.number("image", "visual_pos_dim") or 4),
    "past_values": _past,
    "past_observed_mask": lambda guess: torch.ones_like(guess.made["past_values"]),
    "past_values_padding": _like("past_values", value=0),
    "freq": lambda guess: zeros(guess.batch, 1),
    "past_time_features": _times("past"),
    "future_time_features": _times("future"),
    "future_values": lambda guess: floats(guess.batch, guess.number("text", "prediction_length")),
    "states": _steps("state_dim"),
    "actions": _steps("act_dim"),
    "rewards": _steps(),
    "returns_to_go": _steps(),
    "timesteps": lambda guess: zeros(guess.batch, 20),
    "aspect_ratio_ids": lambda guess: ones(guess.batch, 1),
    "aspect_ratio_mask": lambda guess: ones(guess.batch, 1, guess.number("image", "max_num_tiles") or 4),
}
"""Name of an input -> rule that makes it; a rule may use inputs that are listed before its own."""

ALONE: Final = frozenset(
    {"inputs_embeds", "hidden_states", "query_embeds", "inputs", "pixel_values_videos", "grid_thw"}
)
"""Inputs that replace other inputs and are not added to them."""


def _embeddings(guess: Guess, length: int) -> torch.Tensor | None:
    width = guess.number("text", "hidden_size", "d_model")
    return floats(guess.batch, length, width) if width else None


def _by_ending(guess: Guess, name: str) -> torch.Tensor | None:
    """Return an input that has no rule, made according to the suffix of its name (ids, mask, embeddings); else None."""
    if name.endswith("_ids"):
        return zeros(guess.batch, guess.tokens())
    if name.endswith("_mask"):
        return ones(guess.batch, guess.tokens())
    return _embeddings(guess, guess.tokens()) if name.endswith(("_embeds", "hidden_states")) else None


def is_integer_mask(name: str, value: torch.Tensor) -> bool:
    """Return whether an input is an integer mask."""
    return name.endswith("mask") and value.dtype == torch.int64


def make_input(guess: Guess, name: str) -> torch.Tensor | None:
    """Return an input with the sizes given by the user, else made by its rule; None without both."""
    spec = guess.given.get(name)
    rule = RULES.get(name)
    try:
        made = rule(guess) if rule is not None else _by_ending(guess, name)
    except KeyError:
        made = None
    if spec is None:
        return made.bool() if guess.has_boolean_masks and made is not None and is_integer_mask(name, made) else made
    dtype = DTYPES[spec.dtype]
    if made is not None and made.shape == spec.shape and not made.is_floating_point():
        return made.to(dtype)
    if dtype.is_floating_point or math.prod(spec.shape) > 2**24:
        return torch.empty(spec.shape, dtype=dtype, device="meta")
    if name.endswith("input_ids"):
        return torch.full(spec.shape, find_word(guess), dtype=dtype)
    return torch.ones(spec.shape, dtype=dtype) if "mask" in name else torch.zeros(spec.shape, dtype=dtype)


def find_placeholder(guess: Guess, kind: str) -> int | None:
    """Return the token id that stands for a feature of a modality; None if there is none."""
    names = [f"{kind}_token_id", f"{kind}_token_index", f"{kind}_token"]
    found = guess.setting("text", *names)
    return found if isinstance(found, int) and found >= 0 else None
