"""The inputs of a model of transformers: by the names that its forward pass takes and the sizes of its configuration.

signature, main_input_name, input_modalities ──► names
configuration and its parts for text, images, audio, time ──► sizes
get_image_features … run once without values ──► how many placeholders the ids need
"""

from __future__ import annotations

import contextlib
import inspect
import math
import re
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import torch

from joulemap.errors import ModelError
from joulemap.trace.argument import tensors_in
from joulemap.trace.literal import HostValues
from joulemap.trace.record import MOST_REAL, Recorder
from joulemap.trace.source import InputSpec
from joulemap.trace.tensor import DTYPES

TOKENS: Final = 128
"""Length of the sequence that a language model is traced with unless --input says otherwise, or its limit is lower."""

IMAGE: Final = 224
"""Size of an image where a configuration has none, because the model takes any."""

SAMPLES: Final = 16_000
"""Samples of raw audio: a second at the rate that speech models are trained at."""

EVEN_SAMPLES: Final = 38_400
"""Samples of raw audio for models that take whole frames alone: a multiple of 320, 640, 1280, 1920 and 2560."""

FRAMES: Final = 3_000
"""Frames of a spectrogram where a configuration has no limit: 30 seconds at 10 ms."""

WORDS: Final = 16
"""Tokens of text beside an image or a sound that takes all of a short sequence."""

Inputs = dict[str, torch.Tensor]

Guesses = Generator[Inputs, str | None, None]
"""What a model may be called with; each is asked for with the error that the one before ended in."""

PARTS: Final = {
    "text": r"text|language|llm|decoder|thinker|lm_",
    "image": r"vision|image|visual|vit|backbone|thinker|encoder",
    "video": r"vision|video|visual|image|thinker|encoder",
    "audio": r"audio|speech|acoustic|sound|thinker|encoder",
}
"""Modality -> what the names of its parts of a configuration contain."""


def is_configuration(value: Any) -> bool:
    """Whether a setting is a part of a configuration, with settings of its own."""
    return hasattr(value, "__dict__") and not isinstance(value, type | torch.dtype) and not callable(value)


def find_setting(configuration: Any, kind: str, *names: str) -> Any:
    """Return the first setting of these names: of a configuration, else of its parts for a modality, however deep."""
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
        if name.endswith("config") and re.search(PARTS[kind], name) and is_configuration(value)
    ]


@attrs.define(kw_only=True)
class Guess:
    """What is known of a model's inputs, and the ones made so far."""

    module: Any
    configuration: Any
    batch: int
    given: Mapping[str, InputSpec]
    """By name, as they were asked for."""
    is_turned: bool = False
    """Whether inputs have the rarer of two layouts: several images for each sample, frames of sound before bins."""
    scale: int = 1
    size: int = 0
    """Of an image, where an error told it; 0 for that of the configuration."""
    counts: dict[str, int] = attrs.field(factory=dict)
    """Modality -> features of it, where an error told them."""
    made: Inputs = attrs.field(factory=dict)

    @property
    def accepted(self) -> tuple[str, ...]:
        """Names that the forward pass takes."""
        return tuple(_parameters(self.module))

    def setting(self, kind: str, *names: str) -> Any:
        """Return the first setting of these names, for a modality; None where there is none."""
        return find_setting(self.configuration, kind, *names)

    def number(self, kind: str, *names: str) -> int:
        """Return a setting that is a positive whole number, or 0."""
        for name in names:
            found = self.setting(kind, name)
            found = found[0] if isinstance(found, list | tuple) and found else found
            if isinstance(found, int) and not isinstance(found, bool) and found > 0:
                return found
        return 0

    def tokens(self) -> int:
        """Return the length of a sequence of text."""
        for name in ("input_ids", "decoder_input_ids"):
            if name in self.given and len(self.given[name].shape) > 1:
                return self.given[name].shape[1]
        most = self.number("text", "max_position_embeddings")
        return min(TOKENS, most) if most else TOKENS

    def image(self) -> tuple[int, int]:
        """Return the height and width of an image."""
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
        """Return the channels of an image."""
        return self.number("image", "num_channels", "in_channels", "in_chans") or 3

    def patch(self) -> int:
        """Return the side of a patch of an image."""
        return self.number("image", "patch_size", "spatial_patch_size") or 14

    def grid(self) -> tuple[int, int]:
        """Return the patches along height and width, in whole groups that are merged."""
        merge = self.number("image", "spatial_merge_size", "merge_size", "downsample_factor") or 2
        height, width = self.image()
        return tuple(max(size // self.patch() // merge, 1) * merge for size in (height, width))  # type: ignore[return-value]

    def frames(self) -> int:
        """Return the frames of a spectrogram."""
        positions = self.number("audio", "max_source_positions")
        return self.number("audio", "max_length") or (2 * positions if positions else FRAMES)


def _parameters(module: Any) -> dict[str, inspect.Parameter]:
    return {
        name: parameter
        for name, parameter in inspect.signature(module.forward).parameters.items()
        if parameter.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    }


def wanted_names(module: Any, configuration: Any) -> list[str]:
    """Return the names of the inputs that a model cannot do without, in the order of its forward pass."""
    parameters = _parameters(module)
    modalities = _modalities(module)
    main = getattr(module, "main_input_name", ())
    wanted = {main} if isinstance(main, str) else set(main)
    wanted |= {name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
    if modalities & {"image", "video"}:
        wanted.add("pixel_values")
        if "pixel_values" not in parameters:
            wanted.update(("pixel_values_videos", "image_pixel_values"))
    if "audio" in modalities:
        wanted.update(("input_features", "input_values", "audio_input_features"))
    if getattr(configuration, "is_encoder_decoder", False) and "decoder_input_ids" in parameters:
        wanted.add("decoder_input_ids")
    elif "text" in modalities:
        wanted.add("input_ids")
    if wanted & {"pixel_values", "pixel_values_videos"}:
        wanted.update(_WITH_IMAGES)
        if "pixel_values" in parameters:
            wanted.discard("pixel_values_videos" if main != "pixel_values_videos" else "")
    if wanted & {"input_features", "audio_input_features"}:
        wanted.update(_WITH_AUDIO)
    if "inputs_embeds" in wanted and "input_ids" in parameters:
        wanted.discard("inputs_embeds")
    if "token_index" in wanted or "inputs" in wanted:
        wanted.add("input_ids")
    return [name for name in parameters if name in wanted]


_WITH_IMAGES: Final = ("image_grid_thw", "grid_thw", "mm_token_type_ids", "moe_mm_token_type_ids", "spatial_shapes")
_WITH_AUDIO: Final = ("input_features_mask", "feature_attention_mask", "audio_feature_lengths")
"""Inputs that tell what lies in others."""


def _modalities(module: Any) -> set[str]:
    found = getattr(module, "input_modalities", ())
    return {found} if isinstance(found, str) else set(found or ())


Rule = Callable[[Guess], torch.Tensor | None]


def _floats(*sizes: int) -> torch.Tensor:
    return torch.empty(sizes, device="meta")


def _ones(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes, dtype=torch.int64)


def _zeros(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.int64)


def _word(guess: Guess) -> int:
    """Return an id that stands for a word: none that a configuration gives a meaning."""
    special = {
        value
        for place in (guess.configuration, *_parts(guess.configuration, "text"))
        for name, value in vars(place).items()
        if isinstance(value, int) and re.search(r"token|_id$|_idx$|index", name)
    }
    most = guess.number("text", "vocab_size") or 100
    return next((value for value in range(5, most) if value not in special), 0)


def _text(guess: Guess) -> torch.Tensor:
    return torch.full((guess.batch, guess.tokens()), _word(guess))


def _decoder_text(guess: Guess) -> torch.Tensor:
    given = guess.given.get("decoder_input_ids")
    length = given.shape[1] if given is not None and len(given.shape) > 1 else guess.tokens()
    most = guess.number("text", "max_target_positions")
    ids = torch.full((guess.batch, min(length, most) if most else length), _word(guess))
    channels = getattr(getattr(guess.configuration, "decoder_config", None), "num_channels", 1)
    return ids[..., None].expand(*ids.shape, channels).clone() if isinstance(channels, int) and channels > 1 else ids


def _patch_width(guess: Guess) -> int:
    """Return the values of a patch as the layer takes them that reads patches; 0 where none is named so."""
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
            return _floats(patches, channels, patch, patch)
        return _floats(patches, _patch_width(guess) or channels * depth * patch * patch)
    if "spatial_shapes" in guess.accepted:
        rows, columns = guess.grid()
        return _floats(guess.batch, rows * columns, channels * patch * patch)
    height, width = guess.image()
    image = (channels, min(height, width) if "prompt_pixel_values" in guess.accepted else height, width)
    if guess.is_turned:
        return _several(guess, image)
    return _floats(guess.batch, frames, *image) if isinstance(frames, int) else _floats(guess.batch, *image)


def _several(guess: Guess, image: tuple[int, ...]) -> torch.Tensor:
    """Return the images of each sample: a pair, tiles, or one; with values, for some models look for empty ones."""
    count = 2 if "labels" in guess.accepted and "input_ids" not in guess.accepted else 1
    tiled = _tiled(guess)
    if tiled is not None:
        count = (tiled[0] // image[1]) * (tiled[1] // image[2]) + 1
    sizes = (guess.batch, count, *image)
    return torch.ones(sizes) if math.prod(sizes) <= MOST_REAL else _floats(*sizes)


def _tiled(guess: Guess) -> tuple[int, int] | None:
    """Return the height and width of an image that is cut into tiles, None where a model cuts none."""
    sizes = guess.setting("image", "image_grid_pinpoints")
    return (int(sizes[0][0]), int(sizes[0][1])) if isinstance(sizes, list | tuple) and sizes else None


def _video(guess: Guess) -> torch.Tensor:
    if _is_flat(guess):
        return _pixels(guess)
    frames = guess.number("video", "num_frames", "frames_per_clip") or 8
    return _floats(guess.batch, frames, guess.channels(), *guess.image())


def _thw(guess: Guess) -> torch.Tensor:
    return torch.tensor([[1, *guess.grid()]] * guess.batch)


def _patches(guess: Guess) -> torch.Tensor:
    return torch.tensor([guess.grid()] * guess.batch)


def _pixel_mask(guess: Guess) -> torch.Tensor | None:
    pixels = guess.made.get("pixel_values")
    if pixels is None:
        return None
    if pixels.dim() == 3:
        return _ones(*pixels.shape[:2])
    return _ones(*pixels.shape[:-3], *pixels.shape[-2:])


def _spectrogram(guess: Guess) -> torch.Tensor | None:
    bins = guess.number(
        "audio", "num_mel_bins", "feature_projection_input_dim", "input_feat_size", "input_feat_per_channel", "n_mels",
        "mel_bins", "num_mels", "feature_size", "input_dim", "input_channels",
    )  # fmt: skip
    bins = bins or _first_width(guess)
    if not bins:
        return None
    if (
        bool(guess.setting("audio", "max_source_positions") and guess.number("audio", "num_mel_bins"))
        != guess.is_turned
    ):
        return _floats(guess.batch, bins, guess.frames())
    return _floats(guess.batch, guess.frames(), bins)


def _first_width(guess: Guess) -> int:
    """Return the width that the first layer takes; 0 where there is none that has one."""
    for layer in guess.module.modules():
        if isinstance(layer, torch.nn.Linear | torch.nn.Conv1d):
            return int(layer.weight.shape[1])
    return 0


def _wave(guess: Guess) -> torch.Tensor:
    frames, bins = guess.number("audio", "max_length"), guess.number("audio", "num_mel_bins")
    if frames and bins:
        return _floats(guess.batch, frames, bins)
    channels = guess.number("audio", "audio_channels")
    samples = SAMPLES if guess.scale == 1 else EVEN_SAMPLES
    if guess.is_turned or channels:
        return _floats(guess.batch, channels or 1, samples)
    return _floats(guess.batch, samples)


def _frame_mask(guess: Guess) -> torch.Tensor | None:
    features = guess.made.get("input_features", guess.made.get("audio_input_features"))
    if features is None or features.dim() < 3:
        return None
    bins = guess.number("audio", "num_mel_bins")
    return _ones(guess.batch, features.shape[2] if features.shape[1] == bins else features.shape[1])


def _marks(guess: Guess) -> torch.Tensor | None:
    """Return 0 for text, 1 for images, 2 for video and 3 for sound, of each id."""
    ids = guess.made.get("input_ids")
    if ids is None:
        return None
    marks = torch.zeros_like(ids)
    for mark, kind in enumerate(("image", "video", "audio"), 1):
        token = _placeholder(guess, kind)
        if token is not None:
            marks[ids == token] = mark
    return marks


def _hidden(guess: Guess) -> torch.Tensor | None:
    if "grid_thw" in guess.accepted:
        return _pixels(guess)
    width = guess.number("text", "hidden_size", "d_model")
    sizes = (width, guess.tokens()) if guess.is_turned else (guess.tokens(), width)
    return _floats(guess.batch, *sizes) if width else None


def _past(guess: Guess) -> torch.Tensor | None:
    length = guess.number("text", "context_length")
    if not length:
        return None
    lags = guess.setting("text", "lags_sequence")
    length += max(lags) if isinstance(lags, list | tuple) and lags else 0
    series = guess.number("text", "num_input_channels", "input_size") or 1
    return (
        _floats(guess.batch, length, series)
        if series > 1 or "num_input_channels" in vars(guess.configuration)
        else (_floats(guess.batch, length))
    )


def _times(name: str) -> Rule:
    def make(guess: Guess) -> torch.Tensor | None:
        past = guess.made.get("past_values")
        if past is None:
            return None
        length = past.shape[1] if name == "past" else guess.number("text", "prediction_length")
        count = guess.number("text", "num_time_features")
        return _floats(guess.batch, length, count)

    return make


def _steps(*names: str) -> Rule:
    """Return (batch, steps, width) of a trajectory."""

    def make(guess: Guess) -> torch.Tensor | None:
        width = guess.number("text", *names) if names else 1
        return _floats(guess.batch, 20, width) if width else None

    return make


def _like(name: str, *, value: int = 1) -> Rule:
    """Return whole numbers of the sizes of another input."""

    def make(guess: Guess) -> torch.Tensor | None:
        other = guess.made.get(name)
        return None if other is None else torch.full(other.shape, value)

    return make


RULES: Final[dict[str, Rule]] = {
    "input_ids": _text,
    "decoder_input_ids": _decoder_text,
    "pixel_values": _pixels,
    "pixel_values_videos": _video,
    "image_pixel_values": _pixels,
    "high_res_pixel_values": lambda guess: _floats(guess.batch, guess.channels(), 1024, 1024),
    "prompt_pixel_values": _pixels,
    "prompt_masks": _pixels,
    "image": _pixels,
    "frame": _pixels,
    "image_grid_thw": _thw,
    "grid_thw": _thw,
    "image_grid_hw": _patches,
    "spatial_shapes": _patches,
    "target_sizes": _patches,
    "merge_sizes": lambda guess: torch.full((guess.batch,), guess.number("image", "spatial_merge_size") or 1),
    "image_merge_sizes": lambda guess: torch.full((guess.batch,), guess.number("image", "spatial_merge_size") or 1),
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
    "mm_token_type_ids": _marks,
    "moe_mm_token_type_ids": _marks,
    "attention_mask": lambda guess: _like("input_ids")(guess) if "input_ids" in guess.made else _frame_mask(guess),
    "decoder_attention_mask": _like("decoder_input_ids"),
    "token_type_ids": _like("input_ids", value=0),
    "qformer_input_ids": lambda guess: torch.full((guess.batch, WORDS), _word(guess)),
    "task_inputs": lambda guess: torch.full((guess.batch, guess.number("text", "task_seq_len") or 77), _word(guess)),
    "input_shape_ids": _like("input_ids", value=0),
    "input_pronunciation_ids": _like("input_ids", value=0),
    "bbox": lambda guess: _zeros(guess.batch, guess.tokens(), 4),
    "inputs_embeds": lambda guess: _embeddings(guess, guess.tokens()),
    "inputs": lambda guess: _embeddings(guess, guess.tokens()),
    "hidden_states": _hidden,
    "query_embeds": lambda guess: _embeddings(guess, guess.number("text", "num_query_tokens") or 32),
    "visual_feats": lambda guess: _floats(guess.batch, 36, guess.number("image", "visual_feat_dim")),
    "visual_pos": lambda guess: _floats(guess.batch, 36, guess.number("image", "visual_pos_dim") or 4),
    "past_values": _past,
    "past_observed_mask": lambda guess: torch.ones_like(guess.made["past_values"]),
    "past_values_padding": _like("past_values", value=0),
    "freq": lambda guess: _zeros(guess.batch, 1),
    "past_time_features": _times("past"),
    "future_time_features": _times("future"),
    "future_values": lambda guess: _floats(guess.batch, guess.number("text", "prediction_length")),
    "states": _steps("state_dim"),
    "actions": _steps("act_dim"),
    "rewards": _steps(),
    "returns_to_go": _steps(),
    "timesteps": lambda guess: _zeros(guess.batch, 20),
    "aspect_ratio_ids": lambda guess: _ones(guess.batch, 1),
    "aspect_ratio_mask": lambda guess: _ones(guess.batch, 1, guess.number("image", "max_num_tiles") or 4),
}
"""Name of an input -> what makes it; a rule may look at the inputs before it."""

ALONE: Final = frozenset(
    {"inputs_embeds", "hidden_states", "query_embeds", "inputs", "pixel_values_videos", "grid_thw"}
)
"""Inputs that stand in the place of others: they are not given beside them."""


def _embeddings(guess: Guess, length: int) -> torch.Tensor | None:
    width = guess.number("text", "hidden_size", "d_model")
    return _floats(guess.batch, length, width) if width else None


def _by_ending(guess: Guess, name: str) -> torch.Tensor | None:
    """Return what a name without a rule says by its ending: ids, a mask, or what text becomes."""
    if name.endswith("_ids"):
        return _zeros(guess.batch, guess.tokens())
    if name.endswith("_mask"):
        return _ones(guess.batch, guess.tokens())
    return _embeddings(guess, guess.tokens()) if name.endswith(("_embeds", "hidden_states")) else None


def _make(guess: Guess, name: str) -> torch.Tensor | None:
    spec = guess.given.get(name)
    rule = RULES.get(name)
    try:
        made = rule(guess) if rule is not None else _by_ending(guess, name)
    except KeyError:
        made = None
    if spec is None:
        return made
    dtype = DTYPES[spec.dtype]
    if made is not None and made.shape == spec.shape and not made.is_floating_point():
        return made.to(dtype)
    if dtype.is_floating_point or math.prod(spec.shape) > 2**24:
        return torch.empty(spec.shape, dtype=dtype, device="meta")
    if name.endswith("input_ids"):
        return torch.full(spec.shape, _word(guess), dtype=dtype)
    return torch.ones(spec.shape, dtype=dtype) if "mask" in name else torch.zeros(spec.shape, dtype=dtype)


def _placeholder(guess: Guess, kind: str) -> int | None:
    names = [f"{kind}_token_id", f"{kind}_token_index", f"{kind}_token"]
    found = guess.setting("text", *names)
    return found if isinstance(found, int) and found >= 0 else None


def _name_placeholders(configuration: Any) -> None:
    """Give a placeholder an id where a configuration leaves it open: the last ones of the vocabulary."""
    most = find_setting(configuration, "text", "vocab_size")
    for back, kind in enumerate(_FEATURES, 1):
        for name in (f"{kind}_token_id", f"{kind}_token_index"):
            if isinstance(most, int) and name in vars(configuration) and getattr(configuration, name) is None:
                setattr(configuration, name, most - back)


_FEATURES: Final = {
    "image": ("pixel_values", "get_image_features"),
    "video": ("pixel_values_videos", "get_video_features"),
    "audio": ("input_features", "get_audio_features"),
}
"""Modality -> (its input, the method that makes features of it, one for each placeholder)."""


def _fill_placeholders(guess: Guess) -> None:
    """Put as many placeholders among the ids as images and sounds have features; ModelError where they do not fit."""
    ids = guess.made.get("input_ids")
    if ids is None:
        return
    needed = 0
    row: list[int] = []
    for kind, (name, method) in _FEATURES.items():
        token = _placeholder(guess, kind)
        if kind == "audio" and name not in guess.made:
            name = "input_values"
        if token is None or name not in guess.made:
            continue
        count = guess.counts.get(kind) or _count_features(guess, method)
        needed += count // guess.batch
        row += [token] * (count // guess.batch)
    if not row:
        return
    length = ids.shape[1] if "input_ids" in guess.given else max(ids.shape[1], len(row) + WORDS)
    if length < len(row):
        raise ModelError(
            f"input_ids has {length} tokens, of which images, video and sound take {len(row)}: "
            f"give --input input_ids={guess.batch},{len(row) + WORDS} or more, or smaller ones of these"
        )
    words = [_word(guess)] * (length - len(row))
    guess.made["input_ids"] = torch.tensor([words[:1] + row + words[1:]] * guess.batch)


def _text_width(guess: Guess) -> int:
    """Return the width of what text becomes, as the layer has it that text enters."""
    with contextlib.suppress(Exception):
        return int(guess.module.get_input_embeddings().weight.shape[-1])
    return guess.number("text", "hidden_size", "d_model")


@contextlib.contextmanager
def _running(module: Any) -> Iterator[None]:
    """Have what runs inside run as it is traced."""
    recorder = Recorder(module)
    with warnings.catch_warnings(), torch.inference_mode(), recorder, HostValues(recorder):
        yield


def _count_features(guess: Guess, method: str) -> int:
    """Return how many features a model makes of its images or sounds; 0 where it does not say."""
    make = getattr(guess.module, method, None) or getattr(getattr(guess.module, "model", None), method, None)
    if make is None:
        return 0
    taken = inspect.signature(make).parameters
    arguments = {name: value for name, value in guess.made.items() if name in taken and name != "input_ids"}
    extra = {name: _make(guess, name) for name in taken if name in _NEEDED_BY_FEATURES and name not in arguments}
    found = None
    for more in ({}, {name: value for name, value in extra.items() if value is not None}):
        with contextlib.suppress(Exception), _running(guess.module):
            warnings.simplefilter("ignore")
            found = make(**arguments, **more)
        if found is not None:
            guess.made.update((name, value) for name, value in more.items() if name in guess.accepted)
            break
    if found is None:
        return 0
    pooled = getattr(found, "pooler_output", None)
    if pooled is None:
        pooled = getattr(found, "last_hidden_state", None)
    if pooled is None:
        pooled = found[0] if isinstance(found, tuple) and found and isinstance(found[0], list | tuple) else found
    width = _text_width(guess)
    values = sum(tensor.numel() for tensor in tensors_in(pooled))
    if width and values % width == 0:
        return values // width
    return sum(math.prod(tensor.shape[:-1]) for tensor in tensors_in(pooled))


_NEEDED_BY_FEATURES: Final = ("image_sizes", "image_grid_thw", "pixel_attention_mask", "pixel_mask", "spatial_shapes",
    "input_features_mask", "feature_attention_mask", "target_sizes", "attention_mask", "image_merge_sizes")  # fmt: skip


def _follow(guess: Guess) -> None:
    """Put placeholders among the ids, and make what is as long as they are."""
    _fill_placeholders(guess)
    for entry in ("mm_token_type_ids", "moe_mm_token_type_ids", "attention_mask", "token_type_ids", "bbox"):
        ids = guess.made.get("input_ids")
        if entry not in guess.made or ids is None or entry in guess.given:
            continue
        made = _zeros(*ids.shape, 4) if entry == "bbox" else _make(guess, entry)
        if made is not None:
            guess.made[entry] = made


def _complete(guess: Guess, names: Sequence[str], name: str) -> Inputs:
    """Return the inputs of these names; ModelError names those whose sizes are not known."""
    order = [*RULES]
    for entry in sorted(names, key=lambda entry: order.index(entry) if entry in order else len(order)):
        made = _make(guess, entry)
        if made is not None:
            guess.made[entry] = made
    _follow(guess)
    required = {
        entry for entry, parameter in _parameters(guess.module).items() if parameter.default is inspect.Parameter.empty
    }
    main = getattr(guess.module, "main_input_name", "")
    missing = [entry for entry in names if entry not in guess.made and (entry in required or entry == main)]
    if missing or not guess.made:
        raise ModelError(
            f"{name} takes {', '.join(missing) or 'inputs'}, of sizes that its configuration does not tell: "
            f"give each of {', '.join(names or guess.accepted)} as --input NAME=sizes[:dtype], batch first"
        )
    return {entry: guess.made[entry] for entry in guess.accepted if entry in guess.made}


def guess_inputs(module: Any, configuration: Any, batch: int, given: Mapping[str, InputSpec], name: str) -> Guesses:
    """Yield what a model may be called with, the likeliest first; ModelError where a configuration tells too little.

    Inputs that are given are among them. What follows is for models that the first does not do for, and is asked for
    with the error that it ended in: as wide as the error says that a layer takes it, with the masks, sizes and boxes
    that the forward pass takes, and with several images for each sample, or larger ones.
    """
    _name_placeholders(configuration)
    wanted = wanted_names(module, configuration)
    accepted = _parameters(module)
    unknown = [entry for entry in given if entry not in accepted]
    if unknown and accepted:
        import difflib

        near = difflib.get_close_matches(unknown[0], accepted, n=2)
        hint = f"; did you mean {' or '.join(near)}?" if near else f"; it takes {', '.join(accepted)}"
        raise ModelError(f"{name} takes no input {unknown[0]}{hint}")
    names = [entry for entry in accepted if entry in wanted or entry in given]
    more = [entry for entry in accepted if entry in names or (entry in RULES and entry not in ALONE)]
    if "pixel_values_videos" in accepted and "pixel_values" not in accepted and "pixel_values_videos" not in more:
        more.append("pixel_values_videos")
    tries = (
        (names, False, 1),
        (more, False, 1),
        (names, True, 1),
        (more, True, 1),
        (names, False, 2),
        (names, True, 2),
        (names, False, 4),
    )
    tries = tuple(one for index, one in enumerate(tries) if one not in tries[:index])
    for index, (entries, is_turned, scale) in enumerate(tries):
        guess = Guess(
            module=module, configuration=configuration, batch=batch, given=given, is_turned=is_turned, scale=scale
        )
        try:
            inputs = _complete(guess, entries, name)
        except ModelError:
            if not index:
                raise
            continue
        error = yield inputs
        size = _SIZES.search(error or "")
        if size is not None and not guess.size:
            with contextlib.suppress(ModelError):
                inputs = _complete(attrs.evolve(guess, size=int(size[1]), made={}), entries, name)
                error = yield inputs
        features = _FEATURES_FOUND.search(error or "")
        if features is not None:
            guess.counts[features[1].lower()] = int(features[2])
            with contextlib.suppress(ModelError):
                _follow(guess)
            inputs = {entry: guess.made[entry] for entry in accepted if entry in guess.made}
            error = yield inputs
        while (widened := _widen(inputs, error or "", given)) is not None:
            guess.made = widened
            with contextlib.suppress(ModelError):
                _follow(guess)
            inputs = {entry: guess.made[entry] for entry in accepted if entry in guess.made}
            error = yield inputs


_SIZES: Final = re.compile(r"doesn't match model \((\d+)")
_FEATURES_FOUND: Final = re.compile(
    r"(Image|Video|Audio) features and \w+ tokens do not match, tokens: \d+, features: (\d+)"
)
_WIDTHS: Final = re.compile(r"got \[\d+, (\d+)\] X \[(\d+), \d+\]")


def _widen(inputs: Inputs, error: str, given: Mapping[str, InputSpec]) -> Inputs | None:
    """Return inputs with the one widened whose width an error says that a layer does not take; None for any other."""
    found = _WIDTHS.search(error)
    if found is None:
        return None
    own, width = int(found[1]), int(found[2])
    for name, value in inputs.items():
        if name in given or not value.is_floating_point() or value.dim() < 2 or value.shape[-1] != own:
            continue
        if value.dim() != 4:
            return {**inputs, name: _floats(*value.shape[:-1], width)}
        batch, channels, rows, columns = value.shape
        patch = math.isqrt(width // channels)
        if 0 < patch <= min(rows, columns):
            return {**inputs, name: _floats(batch, (rows // patch) * (columns // patch), width)}
    return None


def describe_inputs(module: torch.nn.Module, given: Mapping[str, torch.Tensor]) -> str:
    """Return what a model was given and what it takes, for the message of a forward pass that failed."""
    shown = ", ".join(f"{name}={'x'.join(map(str, value.shape))}" for name, value in given.items()) or "nothing by name"
    return f"given {shown}; its --input NAME=sizes[:dtype] may name {', '.join(_parameters(module))}"
