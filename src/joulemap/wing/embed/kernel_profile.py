"""Profile of kernels for BLIS, the simulator of inference-sim/inference-sim: `--latency-model kernel-lookup`.

Format of its branch `training` at 0ba6f035 (sim/latency/kernel_profile.go): microseconds of a layer by tokens (`gemm`),
by prompts and their length (`context_attention`) and by sequences and their context (`generation_attention`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from joulemap import __version__
from joulemap.prediction import check_count, check_names
from joulemap.system import UnsupportedError, check_output, write_text
from joulemap.wing.embed.layer_time import list_sizes, sum_layers, time_layers
from joulemap.wing.llm.serve import Passes, StepPredictor

GEMMS: Final = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")


def write_kernel_profile(
    steps: StepPredictor,
    path: str | Path,
    *,
    gpu: str,
    model: str,
    tokens: int = 4096,
    sequences: int = 256,
    context_tokens: int = 4096,
) -> None:
    """Write a kernel profile up to so many tokens and sequences per pass and tokens per context.

    The names are those of the simulator. A file that joulemap did not write is never replaced. Raises as
    `write_serving_profile` does.
    """
    check_names(gpu=gpu, model=model)
    tokens, sequences = check_count("tokens", tokens), check_count("sequences", sequences)
    context_tokens = check_count("context_tokens", context_tokens)
    check_output(Path(path))
    sizes, counts, prompts = list_sizes(1, tokens), list_sizes(1, sequences, 4), list_sizes(1, 16, 4)
    lengths, contexts = list_sizes(64, max(tokens // 4, 1), 4), list_sizes(64, context_tokens, 4)
    passes = steps.split(Passes.of(0, chunk=sizes))
    layers = [sum_layers(one) for one in passes]
    length, prompt = np.meshgrid(lengths, prompts, indexing="ij")
    context, count = np.meshgrid(contexts, counts, indexing="ij")
    prefill = time_layers(steps, Passes.of(prompt, tokens=length))
    decode = time_layers(steps, Passes.of(count, context=context))
    heads = [sum_layers(one)["lm_head"] for one in steps.split(Passes.of(counts))]
    depth = len({one[0] for name in passes[0] if (one := re.match(r"layers\.\d+", name))})

    profile = {
        "gpu": gpu,
        "backend": "joulemap",
        "version": __version__,
        "model": model,
        "tp": 1,
        "num_layers": depth,
        "num_moe_layers": 0,
        "num_dense_layers": depth,
        "gemm": {"tokens": sizes, "latency_us": [sum(one[name] for name in GEMMS) for one in layers]},
        "context_attention": {"batch_size": prompts, "isl": lengths, "latency_us": _fold(prefill, prompts)},
        "generation_attention": {"tokens": counts, "context": contexts, "latency_us": _fold(decode, counts)},
        "allreduce": {"tokens": sizes, "latency_us": [0.0] * len(sizes)},
        "logits_gemm": {"tokens": counts, "latency_us": heads},
    }
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in profile.items())  # JSON is YAML
    write_text(Path(path), text)


def _fold(times: Sequence[Mapping[str, float] | UnsupportedError], counts: Sequence[int]) -> list[list[float]]:
    """Return the times of attention, each row with those of all counts at one length.

    The loader requires a time for every count. Those that memory does not hold follow from the largest that it does,
    because attention reads as many more bytes. Raises the refusal of a length of which memory holds none.
    """
    rows: list[list[float]] = []
    for number, one in enumerate(times):
        place = number % len(counts)
        if place == 0:
            rows.append([])
        if isinstance(one, Mapping):
            rows[-1].append(one["attention"])
        elif place == 0:
            raise one
        else:
            rows[-1].append(rows[-1][-1] * counts[place] / counts[place - 1])
    return rows
