"""Language models of transformers, to the digit of what their configurations say. Needs the package transformers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import Workload
from joulemap.trace.module import trace_module
from models import KEY

pytestmark = pytest.mark.slow

WIDTH, LAYERS, HIDDEN, CACHED = 4096, 32, 14336, 2048
KEYS = 8 * 128
"""Of a token: eight heads of 128."""
PROJECTIONS = 2 * WIDTH * WIDTH + 2 * WIDTH * KEYS
EXPERT = 3 * WIDTH * HIDDEN
VOCABULARY = 128_256


def tokens(count: int) -> Tensor:
    return torch.empty(1, count, dtype=torch.int64, device="meta")


def traced(module: nn.Module, *args: Any, **kwargs: Any) -> Workload:
    return fuse(trace_module(module, args, kwargs, key=KEY, model="large", batch=1, may_change=True))


def weights_read(workload: Workload) -> int:
    return sum(access.byte_count for access in workload.accesses if access.role == "weight")


@pytest.mark.parametrize(("count", "hit"), [(1, 2), (2048, 8)])
@pytest.mark.parametrize("implementation", ["grouped_mm", "eager"])
def test_mixtral_routes_each_token_to_two_experts(implementation: str, count: int, hit: int) -> None:
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(
            transformers.MixtralConfig(), experts_implementation=implementation, dtype=torch.bfloat16
        )
    workload = traced(model, input_ids=tokens(count))
    router = 8 * WIDTH
    attention = 2 * count * count * WIDTH
    assert workload.mac_count == LAYERS * (count * (PROJECTIONS + router + 2 * EXPERT) + attention)
    layer = PROJECTIONS + router + hit * EXPERT + 2 * WIDTH
    embedded, frequencies = count * WIDTH, 64
    assert weights_read(workload) == 2 * (LAYERS * layer + WIDTH + embedded) + 4 * frequencies


class Decoder(nn.Module):
    """A language model that sees one token behind keys and values that are given."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, token: Tensor, held: list[tuple[Tensor, Tensor]]) -> Tensor:
        transformers = pytest.importorskip("transformers")
        cache = transformers.DynamicCache()
        for layer, (keys, values) in enumerate(held):
            cache.update(keys, values, layer)
        out: Tensor = self.model(input_ids=token, past_key_values=cache, use_cache=True).logits
        return out


def llama() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    configuration = transformers.LlamaConfig(
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=32,
        num_key_value_heads=8,
        intermediate_size=HIDDEN,
        vocab_size=VOCABULARY,
        max_position_embeddings=8192,
    )
    with torch.device("meta"):
        module: nn.Module = transformers.LlamaForCausalLM(configuration).to(torch.bfloat16)
    return module


def test_llama_reads_a_prompt() -> None:
    workload = traced(llama(), input_ids=tokens(2048))
    assert workload.mac_count == 16_469_052_096_512
    assert workload.skipped_mac_count == LAYERS * 2 * WIDTH * 2048 * 2047 // 2


def test_llama_says_the_next_token() -> None:
    held = [
        tuple(torch.empty(1, 8, CACHED, 128, dtype=torch.bfloat16, device="meta") for _ in "kv") for _ in range(LAYERS)
    ]
    workload = traced(Decoder(llama()), tokens(1), held)
    assert workload.mac_count == 8_041_791_488
    products = [index for index, one in enumerate(workload.operators) if one.kind == "linear"]
    assert sum(a.byte_count for a in workload.accesses if a.operator_index in products and a.role == "weight") == (
        15_009_316_864
    )
    attended = [index for index, one in enumerate(workload.operators) if one.kind == "matmul" and one.variant == ""]
    whole = 2 * (CACHED + 1) * KEYS
    assert sum(a.byte_count for a in workload.accesses if a.operator_index in attended and a.byte_count == whole) == (
        268_566_528
    )
