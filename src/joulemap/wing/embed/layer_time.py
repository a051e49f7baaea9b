"""Times of the layers of a language model, under the names that simulators of serving give them (vLLM's attributes)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from joulemap.system import UnsupportedError

if TYPE_CHECKING:
    from joulemap.wing.llm.serve import Passes, StepPredictor

LAYER: Final[Mapping[str, str]] = {
    r"(input|post_attention)_layernorm": "layernorm",
    r"self_attn\.[qkv]_proj": "qkv_proj",
    r"self_attn\.[qk]_norm": "qk_norm",
    r"self_attn\.rotary": "rotary_emb",
    r"self_attn\.(append|attention)_?.*": "attention",
    r"self_attn\.o_proj": "o_proj",
    r"mlp\.(up|gate)_proj": "gate_up_proj",
    r"mlp\.down_proj": "down_proj",
}
"""Subgraph of a layer -> layer. An activation is part of the GEMM before it."""

OTHERS: Final[Mapping[str, str]] = {
    "embed_tokens": "embedding",
    "norm": "final_layernorm",
    "lm_head": "lm_head",
    "lm_head.last": "lm_head",
    "engine.logit": "sampler",
}
"""Subgraph outside of layers -> layer."""

NORMS: Final = 2
"""Norms of a layer, whose mean time is that of `layernorm`."""


def list_sizes(first: int, last: int, ratio: int = 2) -> list[int]:
    """Return numbers below `last` from `first` on, each `ratio` times the one before, and `last`."""
    numbers, number = [], first
    while number < last:
        numbers.append(number)
        number *= ratio
    return [*numbers, last]


def sum_layers(parts: Mapping[str, float]) -> Mapping[str, float]:
    """Return layer of the tables -> microseconds in the second layer of the model, whose parts all later ones have."""
    times: defaultdict[str, float] = defaultdict(float)
    for name, seconds in parts.items():
        inside = re.fullmatch(r"layers\.(\d+)\.(.*)", name)
        if inside and inside[1] != "1":
            continue
        layer = OTHERS.get(name)
        if inside:
            layer = next((one for pattern, one in LAYER.items() if re.fullmatch(pattern, inside[2])), None)
        elif name.startswith("engine.") and layer is None:
            continue  # time of the engine's host, which simulators model apart
        if layer is None:
            raise UnsupportedError(f"the tables of simulators have no layer for {name}", code="parts")
        times[layer] += 1e6 * seconds / (NORMS if layer == "layernorm" else 1)
    return times


def time_layers(steps: StepPredictor, passes: Passes) -> list[Mapping[str, float] | UnsupportedError]:
    """Return layer -> microseconds as `sum_layers` for each pass, or the refusal of one that memory does not hold."""
    flat = passes.flatten()
    return [_time_one(steps, flat.take(np.array([number]))) for number in range(flat.sequences.size)]


def _time_one(steps: StepPredictor, one: Passes) -> Mapping[str, float] | UnsupportedError:
    try:
        (parts,) = steps.split(one)
    except UnsupportedError as error:
        if error.code != "memory":
            raise
        return error
    return sum_layers(parts)
