"""Number of kernels that joulemap counts for a model, compared with torch's compiler, Inductor.

python benchmarks/kernel_count.py [MODEL ...]     models of packages that are not installed are skipped

Inductor compiles for the CPU, because its scheduler forms the same kernels for any device. Its kernels are the
generated functions plus library calls, counted in the program that it writes; the program is not built. A generated
function that runs several loops one after the other counts once.

Inductor leaves convolutions and GEMMs to libraries, and runs the following operators in a separate kernel. So does
joulemap in `fused` on a GPU: `launches` are the subgraphs that compute, plus one pass after each GEMM with fused
operators, plus each GEMM and reduction of a gate. Models have their own layers at small widths, on which the number of
kernels does not depend; models of transformers have four layers.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from unittest.mock import patch

import attrs
import numpy as np

from joulemap.physics.fuse import fuse
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.workload import NO_KEY, Workload
from joulemap.physics.workload import columns_of

LAYERS: Final = 4
TOKENS: Final = 32
WIDE: Final = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": LAYERS, "num_attention_heads": 4}
"""Size in a configuration of transformers -> its value here."""

TRANSFORMERS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "bert": ("Bert", WIDE),
    "gpt2": ("GPT2", {"n_embd": 64, "n_layer": LAYERS, "n_head": 4}),
    "llama": ("Llama", {**WIDE, "num_key_value_heads": 4}),
    "qwen3": ("Qwen3", {**WIDE, "num_key_value_heads": 2, "head_dim": 16}),
    "t5": ("T5", {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": LAYERS, "num_heads": 4}),
    "mixtral": ("Mixtral", {**WIDE, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "mamba": ("Mamba", {"hidden_size": 64, "num_hidden_layers": 1, "state_size": 4}),
}
"""Name -> (prefix of its classes, configuration)."""

TORCHVISION: Final = (
    "resnet18", "resnet50", "mobilenet_v2", "densenet121", "vit_b_16", "swin_t", "convnext_tiny", "efficientnet_b0",
)  # fmt: skip

CALLS: Final = re.compile(
    r"^\s+(?:\w+ = )?(?:cpp_fused\w*|extern_kernels\.\w+|(?:torch\.ops\.)?aten\.[\w.]+|torch\.ops\.\w+\.[\w.]+)\(",
    re.MULTILINE,
)
"""Pattern of a kernel launch in Inductor's program."""


@attrs.frozen(kw_only=True)
class Count:
    """Kernels of one model."""

    model: str
    inductor: int
    """Generated functions and library calls of Inductor."""
    subgraphs: int
    """Subgraphs of joulemap that compute."""
    launches: int
    """Subgraphs that compute, passes after GEMMs, and further kernels of gates."""

    @property
    def ratio(self) -> float:
        """Launches of joulemap over kernels of Inductor."""
        return self.launches / self.inductor


class _StopError(Exception):
    """Signal that Inductor has written its program, so that it is not built."""


def build(name: str) -> tuple[Any, Any]:
    """Return (model, example input) on the CPU."""
    import torch

    if name in TRANSFORMERS:
        import transformers

        begins, sizes = TRANSFORMERS[name]
        config = getattr(transformers, f"{begins}Config")(vocab_size=100, use_cache=False, **sizes)
        model = getattr(transformers, f"{begins}EncoderModel" if name == "t5" else f"{begins}Model")
        return model(config).eval(), torch.zeros(1, TOKENS, dtype=torch.long)
    import torchvision

    return torchvision.models.get_model(name, weights=None).eval(), torch.zeros(1, 3, 224, 224)


def count_inductor(model: Any, example: Any) -> int:
    """Return the number of kernels that Inductor's program launches."""
    import torch
    from torch._inductor import config, graph

    written: list[str] = []

    def keep(self: Any) -> Any:
        code, _ = self.codegen()
        written.append(code.value)
        raise _StopError

    compiled: Any = torch.compile(model)
    torch._dynamo.reset()
    settings: Any = config.patch(compile_threads=1, fx_graph_cache=False)
    with torch.no_grad(), settings, patch.object(graph.GraphLowering, "compile_to_module", keep):
        try:
            compiled(example)
        except Exception:
            if not written:
                raise
    return sum(len(CALLS.findall(code[code.index("def call(") :])) for code in written)


def count_ours(workload: Workload) -> tuple[int, int]:
    """Return (number of subgraphs that compute, launches of a GPU in `fused`)."""
    kernels = form_kernels(columns_of(workload), "fp16", "fused")
    rides = kernels.per_kernel(kernels.rides.astype(float))
    has_softmax = kernels.per_kernel(kernels.work.of_kind("softmax").astype(float)) > 0.0
    has_product = kernels.per_kernel(kernels.work.has_macs.astype(float)) > 0.0
    is_scan = kernels.step_count > 1.0
    passes = (rides > 0.0) & has_product & ~has_softmax & ~is_scan
    members = kernels.per_kernel(np.ones(kernels.work.operator_count))
    apart = np.where(has_softmax | is_scan, 0.0, members - rides - 1.0)
    return kernels.kernel_count, kernels.kernel_count + int(passes.sum() + apart.sum())


def count(name: str) -> Count:
    """Return the kernels of a model."""
    from joulemap.trace.module import trace_module

    model, example = build(name)
    found = count_inductor(model, example)
    workload = trace_module(model.to("meta"), (example.to("meta"),), key=NO_KEY, model=name, batch=1)
    subgraphs, launches = count_ours(fuse(workload))
    return Count(model=name, inductor=found, subgraphs=subgraphs, launches=launches)


def is_available(name: str) -> bool:
    """Return whether the package of a model is installed."""
    return importlib.util.find_spec("transformers" if name in TRANSFORMERS else "torchvision") is not None


def count_all(names: Sequence[str] = (*TORCHVISION, *TRANSFORMERS)) -> Iterator[Count]:
    """Yield the kernels of each model whose package is installed."""
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    for name in filter(is_available, names):
        try:
            yield count(name)
        except ImportError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)


def tell(counts: Iterator[Count], say: Callable[[str], None]) -> None:
    """Pass a line on each count to `say` as soon as it is known."""
    say(f"{'model':<16} {'inductor':>8} {'subgraphs':>9} {'launches':>8} {'ratio':>5}")
    for one in counts:
        say(f"{one.model:<16} {one.inductor:>8} {one.subgraphs:>9} {one.launches:>8} {one.ratio:>5.2f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join((*TORCHVISION, *TRANSFORMERS)))
    names = parser.parse_args().models or (*TORCHVISION, *TRANSFORMERS)
    tell(count_all(names), lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
