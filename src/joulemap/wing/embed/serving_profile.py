"""Profile tables of LLMServingSim: times of the layers of a language model, without a GPU to profile.

Format of casys-kaist/LLMServingSim at 5daddb21 (docs/docs/profiler/output-bundle.md and profiler/models/llama.yaml):
`tp1/dense.csv` by tokens, `per_sequence.csv` by sequences and `attention.csv` by the sizes of a pass, in microseconds,
beside `meta.yaml`. The simulator interpolates between the rows.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap import __version__
from joulemap.wing.embed.layer_time import list_sizes, sum_layers
from joulemap.wing.llm.serving.surface import Passes

if TYPE_CHECKING:
    from joulemap.wing.llm.step import StepPredictor

PER_SEQUENCE: Final = ("lm_head", "sampler")


def write_serving_profile(
    steps: StepPredictor,
    folder: str | Path,
    *,
    hardware: str,
    model: str,
    variant: str = "bf16",
    tokens: int = 2048,
    sequences: int = 256,
    context_tokens: int = 16384,
) -> Path:
    """Write the tables to `folder`/`hardware`/`model`/`variant`, and return this folder.

    The names are those of the simulator: labels of its cluster configuration and its `--dtype`. Tables go up to so many
    tokens and sequences per pass and tokens per context. Raises UnsupportedError for a model on several devices or with
    layers that the tables do not have, such as experts.
    """
    sizes, counts = list_sizes(1, tokens), list_sizes(1, sequences)
    dense = [
        (layer, size, time)
        for size, one in zip(sizes, steps.split(Passes.of(0, chunk=sizes)), strict=True)
        for layer, time in {**sum_layers(one), "act_fn": 0.0}.items()
        if layer not in (*PER_SEQUENCE, "attention")
    ]
    per_sequence = [
        (layer, size, sum_layers(one)[layer])
        for size, one in zip(counts, steps.split(Passes.of(counts)), strict=True)
        for layer in PER_SEQUENCE
    ]
    contexts = list_sizes(16, context_tokens, 8)
    prefill = [*itertools.product(list_sizes(16, tokens, 8), (0, *contexts)), (0, 0)]
    decode = [*itertools.product(list_sizes(1, sequences, 4), contexts), (0, 0)]
    shapes = [(*one, *other) for one in prefill for other in decode if one[0] or other[0]]
    columns = [list(column) for column in zip(*shapes, strict=True)]
    passes = Passes.of(columns[2], context=columns[3], chunk=columns[0], chunk_context=columns[1])
    attention = [sum_layers(one)["attention"] for one in steps.split(passes)]
    target = Path(folder) / hardware / model / variant
    (target / "tp1").mkdir(parents=True, exist_ok=True)
    _write(target / "tp1" / "dense.csv", ("layer", "tokens"), sorted(dense))
    _write(target / "tp1" / "per_sequence.csv", ("layer", "sequences"), sorted(per_sequence))
    head = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode")
    _write(target / "tp1" / "attention.csv", head, [(*one, time) for one, time in zip(shapes, attention, strict=True)])
    meta = {
        "profiler_version": f"joulemap {__version__}",
        "vllm_version": "n/a",
        "gpu": hardware,
        "hardware": hardware,
        "model": model,
        "variant": variant,
        "tp_degrees": "[1]",
        "engine_effective": f"{{max_num_batched_tokens: {tokens}, max_num_seqs: {sequences}}}",
    }
    text = "".join(f"{name}: {value}\n" for name, value in meta.items())
    (target / "meta.yaml").write_text(text, encoding="utf-8")
    return target


def _write(path: Path, head: Sequence[str], rows: Iterable[Sequence[str | int | float]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*head, "time_us"])
        writer.writerows([*row[:-1], f"{row[-1]:.6g}"] for row in rows)
