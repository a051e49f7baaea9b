"""Model configurations from users: regular files of bounded size, with finite numbers and plausible sizes.

This module reads every `config.json`, of models that are traced and of decoders that are derived from their sizes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final

from joulemap.system import FileError, ModelError, read_text

CONFIGURATION_FILE: Final = "config.json"
"""Name of the configuration file in a checkpoint's folder."""

QUANTIZATION_FILES: Final = {"hf_quant_config.json": "modelopt", "quantize_config.json": "gptq"}
"""File name next to a configuration that states the checkpoint's quantization -> its method. Model Optimizer and
AutoGPTQ write such files.
"""

QUANTIZATION: Final = "quantization_config"

MOST_BYTES: Final = 10_000_000
"""Maximum bytes of a configuration file; the longest published files have less than a tenth of this."""

DEEPEST: Final = 50
"""Maximum nesting depth of objects and lists in a configuration."""

LARGEST_COUNT: Final = 2_000_000_000
"""Maximum of a setting without a limit in `LARGEST`; no published configuration has a number above 2^31."""

LARGEST: Final[tuple[tuple[re.Pattern[str], int], ...]] = (
    (re.compile(r"experts(_per_tok)?$|topk$|top_k"), 10_000),
    (re.compile(r"layers?$|^n_layer$|_blocks?$|first_k_dense_replace|_interval$|layer_freq$"), 2_000),
    (re.compile(r"heads?$|_heads_|query_groups?$|group_num$|_groups$"), 16_384),
    (re.compile(r"vocab"), 100_000_000),
    (re.compile(r"position|positions$|seq_len|seq_length|context|window|chunk|max_length"), 1_000_000_000),
    (re.compile(r"^dim$|_dim$|size$|_embd$|^d_model$|^d_ff$|inner$|_rank$|width$|channels$"), 4_194_304),
)
"""(pattern of a setting's name, maximum value); the first pattern that matches applies.

Limits are several times the largest published sizes: 126 layers, 512 experts, 256 heads, a width of 53,248, a
vocabulary of 262,400 and a context of 10 million.
"""


BOUND: Final = "_limit"
"""Suffix of settings whose values may be infinite; no size has such a name."""


def find_limit(name: str) -> int:
    """Return the largest number that a setting of a configuration may have."""
    return next((limit for pattern, limit in LARGEST if pattern.search(name)), LARGEST_COUNT)


def read_configuration(path: Path, name: str) -> dict[str, Any]:
    """Return the settings in a configuration file. `name` is the file's name in error messages.

    Raises ModelError for devices, named pipes, long files, JSON other than an object, deep nesting and numbers that are
    not finite. Limits such as `"time_step_limit": [0.0, Infinity]` of Nemotron-H may be infinite.
    """
    shown = quote(name)
    try:
        text = read_text(path, MOST_BYTES)
        values = json.loads(text, parse_constant=_read_constant)
    except FileError as error:
        raise ModelError(f"{shown} cannot be read: {error}") from error
    except RecursionError as error:
        raise ModelError(f"{shown} is not a configuration: more than {DEEPEST} nested levels") from error
    except ValueError as error:
        raise ModelError(f"{shown} is not JSON: {str(error)[:200]}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{shown} is not a configuration: expected an object with a model_type")
    _check_finite(values, shown)
    return values


def find_quantization_files(path: Path) -> list[Path]:
    """Return the files next to a configuration that may state the quantization of its checkpoint."""
    names = QUANTIZATION_FILES if path.name == CONFIGURATION_FILE else ()
    return [file for name in names if (file := path.with_name(name)).is_file()]


def read_checkpoint_files(path: Path, name: str) -> dict[str, Any]:
    """Return the settings in a configuration file, with the checkpoint's quantization from a file next to it, if any.

    Raises ModelError like `read_configuration`.
    """
    values = read_configuration(path, name)
    for file in find_quantization_files(path):
        stated = read_configuration(file, str(file))
        inner = stated.get("quantization")
        values.setdefault(
            QUANTIZATION,
            {"quant_method": QUANTIZATION_FILES[file.name], **(inner if isinstance(inner, dict) else stated)},
        )
    return values


def _read_constant(text: str) -> float:
    if text == "NaN":
        raise ValueError("NaN is not a number of JSON")
    return float(text)


def _check_finite(values: Mapping[str, Any], shown: str) -> None:
    """Raise ModelError for a number that is not finite, or for nesting beyond `DEEPEST`."""
    waiting: list[tuple[str, Any, int]] = [("", values, 0)]
    while waiting:
        name, value, level = waiting.pop()
        if level > DEEPEST:
            raise ModelError(f"{shown} is not a configuration: more than {DEEPEST} nested levels")
        if isinstance(value, float) and not math.isfinite(value) and not name.endswith(BOUND):
            raise ModelError(f"{shown}: {name} is {value}, expected a finite number")
        if isinstance(value, Mapping):
            waiting += [(str(key), one, level + 1) for key, one in value.items()]
        elif isinstance(value, list):
            waiting += [(name, one, level + 1) for one in value]


def check_sizes(values: Mapping[str, Any], model: str) -> None:
    """Raise ModelError if a size at any depth exceeds its limit. Call this before anything is built from the sizes."""
    for name, value in _list_numbers(values, ""):
        limit = find_limit(name)
        if abs(value) > limit and limit < LARGEST_COUNT:
            raise ModelError(f"{model}: {name} is {_show(value)}, expected at most {limit:,}")


def _list_numbers(value: Any, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _list_numbers(one, str(key))
    elif isinstance(value, list):
        for one in value:
            yield from _list_numbers(one, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def read_whole(name: str, value: Any, model: str, least: int = 0) -> int:
    """Return a setting as an integer. Raise ModelError if it is not a whole number from `least` to its limit."""
    limit = find_limit(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= limit or value != int(value):
        raise ModelError(f"{model}: {name} is {_show(value)}, expected a whole number from {least} to {limit:,}")
    return int(value)


def _show(value: object) -> str:
    """Return a value as a short text for an error message, with thousands separators."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) < LARGEST_COUNT**2 else f"a number of {len(str(value))} digits"
    return repr(value)[:60]
