"""Fixed list of a record: chips, models, and the settings at which results are published.

    whole models      batch 1 at 16 bits in every runtime that differs; batch 8, and 256 on cards of servers, with an
                      engine; int8 with an engine
    language models   llama-bench: 512 prompt tokens, and 128 output tokens of an empty cache
                      LocalScore: means over its nine tests, for its three models
                      servers under a steady load: two lengths, 4 and 64 requests at once, 1 or 8 devices

The list grows with the built-in models; chips and settings stay, so that records can be compared.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from joulemap.bundle import load_chips, open_zoo
from joulemap.catalog import ZOO, load_models
from joulemap.domain.catalogue import find_family
from joulemap.physics import DEPLOYED_RUNTIME, Hardware
from joulemap.system import digest_code, frozen
from joulemap.wing.verify import OFFLINE_BATCH, RANGE_MEAN

CHIPS: Final = Path(__file__).parent / "data" / "chip.toml"

BATCHES: Final = (1, 8)
"""Samples per batch of whole models: what a camera sends, and what a server collects."""

PARTS: Final = ("operator", "block")
"""Families of parts of a model, which nobody publishes results for."""

NARROW: Final = "int8"
"""Precision of quantized models, which inference engines run."""

USUAL: Final = {"cpu": ("fp32", "bf16")}
"""Class -> precisions, most usual first, at which results of whole models are published; `WIDE` for other classes."""

WIDE: Final = ("fp16", "bf16", "fp32")

RUNTIMES: Final = {"gpu": ("eager", "fused", DEPLOYED_RUNTIME), "cpu": ("eager", "fused", DEPLOYED_RUNTIME)}
"""Class -> runtimes in which frameworks run it; other classes have a compiler of their own. CUDA graphs of eager
kernels are left out, because hardly any result states them.
"""

NOMINAL: Final = ((1024, 1024), (8192, 1024))
"""Prompt and output tokens of InferenceX's longest requests."""

LENGTHS: Final = tuple((round(RANGE_MEAN * prompt), round(RANGE_MEAN * output)) for prompt, output in NOMINAL)
"""Mean prompt and output tokens of InferenceX's requests."""

REQUESTS: Final = (4, 64)
"""Requests that are always in flight on a server; InferenceX publishes these most often."""

DEVICES: Final = (1, 8)
"""Numbers of devices; a model that fits one device is predicted on one alone."""

OWNED: Final = "llamacpp"
"""Engine of owners of single chips."""

OWNED_CLASSES: Final = ("gpu", "cpu")

OWNED_WEIGHTS: Final = ("gguf_q4_k_m",)

THREADS: Final = {"llama-2-7b": ("gguf_q4_0",)}
"""Model -> other weights in which threads of ggml-org/llama.cpp collect results by kind of chip."""

PROMPT_TEST: Final = 512
OUTPUT_TEST: Final = 128
"""Tokens of llama-bench's default tests, `pp512` and `tg128`."""

LOCAL_ENGINE: Final = "llamafile"
LOCAL_MODELS: Final = ("llama-3.2-1b", "llama-3.1-8b", "qwen2.5-14b")
"""Models of LocalScore's leaderboard. Source: localscore.ai."""


@frozen(kw_only=True)
class ChipGroup:
    """Chips of a record that were chosen for one reason."""

    name: str
    reason: str
    servers: tuple[str, ...] = attrs.field(converter=tuple)
    """Engines under which servers of language models are predicted on the chips."""
    is_offline: bool
    """True if whole models are predicted in batches of `OFFLINE_BATCH` too."""
    chips: tuple[str, ...] = attrs.field(converter=tuple)


@frozen
class Setup:
    """Chip, precision, runtime and batches at which every whole model is predicted."""

    hardware: str
    precision: str
    runtime: str
    batches: tuple[int, ...]


@cache
def load_groups() -> tuple[ChipGroup, ...]:
    """Return the groups of chips."""
    text = CHIPS.read_text(encoding="utf-8")
    return tuple(ChipGroup(**one) for one in tomllib.loads(text)["groups"])


def list_chips(*, engine: str = "") -> list[str]:
    """Return the ids of all chips, or of those on which servers under an engine are predicted."""
    return [chip for group in load_groups() if not engine or engine in group.servers for chip in group.chips]


def list_servers() -> list[str]:
    """Return the engines under which servers are predicted."""
    return list(dict.fromkeys(engine for group in load_groups() for engine in group.servers))


def list_models() -> list[str]:
    """Return the built-in whole models."""
    known = load_models()
    return [name for name in open_zoo(ZOO).models if find_family(name, known) not in PARTS]


def list_setups() -> list[Setup]:
    """Return the setups of whole models on all chips."""
    return [
        one
        for group in load_groups()
        for chip in group.chips
        for one in _list_setups(load_chips().find(chip), (*BATCHES, OFFLINE_BATCH) if group.is_offline else BATCHES)
    ]


def _list_setups(chip: Hardware, batches: tuple[int, ...]) -> Iterator[Setup]:
    asked = USUAL.get(chip.architecture, WIDE)
    usual = next((name for name in asked if name in chip.peaks), "")
    for runtime in RUNTIMES.get(chip.architecture, (DEPLOYED_RUNTIME,)) if usual else ():
        yield Setup(chip.id, usual, runtime, batches if runtime == DEPLOYED_RUNTIME else BATCHES[:1])
    if NARROW in chip.peaks:
        yield Setup(chip.id, NARROW, DEPLOYED_RUNTIME, batches)


def list_version() -> str:
    """Return a digest of the list, without the models that ship, as sixteen hexadecimal digits."""
    text = f"{digest_code('wing/record/point.py')} {CHIPS.read_text(encoding='utf-8')}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
