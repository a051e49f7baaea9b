"""Steps of language models that decode, beside what weights and cache take at the bandwidth of the memory.

The bytes are worked out by hand from the sizes of three models:

    a layer    width² x 2 of q and o, width x 128 KV heads x 2 of k and v, 3 width x hidden of the MLP
    weights    layers x a layer + vocabulary x width, 2 bytes each; at int4 half a byte and 2 bytes for 128 of them
    cache      2 x layers x KV heads x size of a head, 2 bytes each, for each token and sequence

    Llama-3-8B    32 x 218,103,808 + 128,256 x 4,096 = 7,504,658,432    131,072 bytes a token
    Llama-2-7B    32 x 202,375,168 +  32,000 x 4,096 = 6,607,077,376    524,288
    Llama-3.2-1B  16 x  60,817,408 + 128,256 x 2,048 = 1,235,746,816     32,768
"""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from chips import find
from joulemap.physics.fuse import fuse
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.runtime import RuntimeName
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.system.units import FS_PER_S
from joulemap.trace.module import trace_module
from models import KEY

SIZES = {
    "Llama-3-8B": (4096, 8, 128, 14336, 32, 128_256),
    "Llama-2-7B": (4096, 32, 128, 11008, 32, 32_000),
    "Llama-3.2-1B": (2048, 8, 64, 8192, 16, 128_256),
}
"""Width, heads of keys and values and their size, hidden width, layers, vocabulary."""

WEIGHTS = {"Llama-3-8B": 7_504_658_432, "Llama-2-7B": 6_607_077_376, "Llama-3.2-1B": 1_235_746_816}
CACHED = {"Llama-3-8B": 131_072, "Llama-2-7B": 524_288, "Llama-3.2-1B": 32_768}
WEIGHT_BYTES = {"bf16": 2.0, "int4": 0.5 + 2.0 / 128}


class Norm(nn.Module):
    """As models write it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class Layer(nn.Module):
    """Attention to a past that is given, and a gated MLP."""

    def __init__(self, width: int, heads: int, size: int, hidden: int) -> None:
        super().__init__()
        self.size = size
        self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.k, self.v = (nn.Linear(width, heads * size, bias=False) for _ in "kv")
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.first, self.second = Norm(width), Norm(width)

    def forward(self, x: Tensor, turned: tuple[Tensor, Tensor], past: tuple[Tensor, Tensor]) -> tuple[Tensor, object]:
        y = self.first(x)
        q, k, v = (layer(y).unflatten(-1, (-1, self.size)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        k, v = torch.cat((past[0], turn(k, *turned)), 2), torch.cat((past[1], v), 2)
        seen = functional.scaled_dot_product_attention(turn(q, *turned), k, v, enable_gqa=True)
        x = x + self.o(seen.transpose(1, 2).flatten(2))
        y = self.second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), (k, v)


class Decoder(nn.Module):
    """A token of each sequence behind a past of so many."""

    def __init__(self, width: int, heads: int, size: int, hidden: int, layers: int, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, heads, size, hidden) for _ in range(layers))
        self.norm, self.head = Norm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Tensor, turned: tuple[Tensor, Tensor], past: list[tuple[Tensor, Tensor]]) -> object:
        x, made = self.embed(ids), []
        for layer, held in zip(self.layers, past, strict=True):
            x, grown = layer(x, turned, held)
            made.append(grown)
        return self.head(self.norm(x)), made


@cache
def step(model: str, batch: int, cached: int) -> WorkloadColumns:
    width, heads, size, hidden, layers, vocabulary = SIZES[model]
    with torch.device("meta"):
        module = Decoder(width, heads, size, hidden, layers, vocabulary)
        past = [tuple(torch.empty(batch, heads, cached, size) for _ in "kv") for _ in range(layers)]
        inputs = torch.empty(batch, 1, dtype=torch.int64), tuple(torch.empty(batch, 1, 1, size) for _ in "cs"), past
    return columns_of(fuse(trace_module(module, inputs, key=KEY, model=model, batch=batch)))


def run(name: str, model: str, weights: str, batch: int, cached: int, runtime: RuntimeName = "engine") -> RunColumns:
    stored = "" if weights == "bf16" else weights
    configuration = Configuration(
        hardware=name,
        precision="bf16",
        weight_precision=stored,
        batch=batch,
        runtime=runtime,
    )
    return evaluate(step(model, batch, cached), find(name), configuration)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "model", "weights", "batch", "cached", "gigabytes", "milliseconds", "most"),
    [
        ("h100_sxm5", "Llama-3-8B", "bf16", 1, 2048, 15.28, 4.56, 1.55),
        ("h100_sxm5", "Llama-2-7B", "bf16", 16, 2048, 30.39, 9.07, 1.45),
        ("h100_sxm5", "Llama-3-8B", "int4", 1, 2048, 4.14, 1.24, 2.4),
        ("h200_sxm", "Llama-3-8B", "bf16", 1, 2048, 15.28, 3.18, 1.66),
        ("h200_sxm", "Llama-3-8B", "bf16", 16, 2048, 19.30, 4.02, 1.6),
        # check bits share the wires of its memory: operands stream at 0.8 of them
        ("l4", "Llama-3-8B", "bf16", 1, 2048, 15.28, 50.9, 1.3),
        ("l4", "Llama-2-7B", "bf16", 16, 512, 17.51, 58.4, 1.3),
        ("mi300x", "Llama-3-8B", "bf16", 1, 2048, 15.28, 2.88, 1.8),
        ("mi300x", "Llama-2-7B", "bf16", 16, 2048, 30.39, 5.73, 1.6),
        ("tpu_v5e", "Llama-2-7B", "bf16", 1, 1024, 13.75, 16.8, 1.25),
        ("tpu_v5e", "Llama-3-8B", "int4", 1, 2048, 4.14, 5.05, 1.3),
        ("epyc_9654", "Llama-3-8B", "bf16", 1, 2048, 15.28, 33.2, 1.55),
        ("epyc_9654", "Llama-3.2-1B", "bf16", 16, 2048, 3.55, 7.69, 2.2),
    ],
)
def test_a_step_takes_little_longer_than_its_bytes(
    name: str, model: str, weights: str, batch: int, cached: int, gigabytes: float, milliseconds: float, most: float
) -> None:
    moved = WEIGHT_BYTES[weights] * WEIGHTS[model] + batch * cached * CACHED[model]
    assert round(moved / 1e9, 2) == gigabytes
    least_s = moved / find(name).memory_bandwidth.value
    assert abs(least_s * 1e3 / milliseconds - 1.0) < 0.005
    taken_s = float(run(name, model, weights, batch, cached).operators.latency_fs.sum()) / FS_PER_S
    assert 1.0 < taken_s / least_s < most
