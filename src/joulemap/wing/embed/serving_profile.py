"""Profile tables of LLMServingSim: times of the layers of a language model, without a GPU to profile.

Format of casys-kaist/LLMServingSim at 5daddb21 (docs/docs/profiler/output-bundle.md and profiler/models/llama.yaml):
`tp1/dense.csv` by tokens, `per_sequence.csv` by sequences and `attention.csv` by the sizes of a pass, in microseconds,
beside `meta.yaml`. The simulator interpolates between the rows.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from joulemap import __version__
from joulemap.prediction import check_count, check_names
from joulemap.system import UsageError, check_output, make_folder, write_text
from joulemap.wing.embed.layer_time import list_sizes, sum_layers, time_layers
from joulemap.wing.llm.serve import Passes, StepPredictor

PER_SEQUENCE: Final = ("lm_head", "sampler")

PLAIN: Final = re.compile(r"\w[\w.+-]*")
"""Name of a folder inside of another one."""


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
    tokens and sequences per pass and tokens per context; attention that memory does not hold has no row. Files that
    joulemap did not write are never replaced.

    Raises UnsupportedError for a model on several devices, with layers that the tables do not have, such as experts, or
    beyond the memory of the device. Raises UsageError for a name that is no folder, a size below 1, or a file that
    cannot be written. No table is written then.
    """
    target = _find_folder(Path(folder), hardware=hardware, model=model, variant=variant)
    tokens, sequences = check_count("tokens", tokens), check_count("sequences", sequences)
    context_tokens = check_count("context_tokens", context_tokens)
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
    attention = time_layers(steps, passes)
    head = ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode")
    rows = [(*one, time["attention"]) for one, time in zip(shapes, attention, strict=True) if isinstance(time, Mapping)]
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
    texts = {
        target / "tp1" / "dense.csv": _form(("layer", "tokens"), sorted(dense)),
        target / "tp1" / "per_sequence.csv": _form(("layer", "sequences"), sorted(per_sequence)),
        target / "tp1" / "attention.csv": _form(head, rows),
        target / "meta.yaml": "".join(f"{name}: {value}\n" for name, value in meta.items()),
    }
    make_folder(target / "tp1")
    for path in texts:
        check_output(path)
    for path, text in texts.items():
        write_text(path, text)
    return target


def _find_folder(folder: Path, **names: str) -> Path:
    """Return the folder of names in a folder; UsageError for a name that is no folder there."""
    check_names(**names)
    for kind, name in names.items():
        parts = name.split("/") if kind == "model" else [name]
        if not all(PLAIN.fullmatch(part) for part in parts):
            expected = "a name or org/name" if kind == "model" else "a name"
            raise UsageError(f"{kind} is {name!r}, expected {expected} of letters, digits, '.', '_', '+' and '-'")
        folder = folder.joinpath(*parts)
    return folder


def _form(head: Sequence[str], rows: Iterable[Sequence[str | int | float]]) -> str:
    """Return the text of a table of times."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*head, "time_us"])
    writer.writerows([*row[:-1], f"{row[-1]:.6g}"] for row in rows)
    return text.getvalue()
