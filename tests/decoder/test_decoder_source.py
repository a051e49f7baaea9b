"""Passes of decoders beside transformers' own classes, traced: products, parameters, weights, caches, to the digit."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from joulemap.construct.held import request_module
from joulemap.physics.record.workload import APPEND, NO_KEY, Workload
from joulemap.wing.decoder.network.config import Decoder
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.layer import describe_step
from joulemap.wing.decoder.network.read import read_config

pytestmark = pytest.mark.slow

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: its classes are compared with"
)

CASES = 20

WIDER = ("deepseek_v3", "falcon")
"""Of which transformers caches keys and values of all heads, engines what they are made of."""


class Pass(torch.nn.Module):
    """A pass of a model of transformers, with a past of so many tokens or none."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        with torch.device("meta"):
            self.model = transformers.AutoModelForCausalLM.from_config(config).eval()

    def forward(self, ids: torch.Tensor, past: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        cache = transformers.DynamicCache()
        for index, (keys, values) in enumerate(past):
            cache.update(keys, values, index)
        out = self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        logits: torch.Tensor = out.logits
        return logits


def sizes(family: str, chance: random.Random) -> dict[str, Any]:
    """Return a configuration of a family by chance."""
    pairs = chance.choice((1, 2, 4))
    heads, width = pairs * chance.choice((1, 2, 3)), chance.choice((16, 32, 64))
    config: dict[str, Any] = {
        "model_type": family,
        "num_hidden_layers": chance.choice((1, 2, 3, 5)),
        "num_attention_heads": heads,
        "num_key_value_heads": pairs,
        "head_dim": width,
        "hidden_size": heads * width * (1 if family in ("falcon", "qwen2") else chance.randint(1, 4)),
        "intermediate_size": 8 * chance.randint(5, 60),
        "vocab_size": chance.randint(100, 5000),
        "tie_word_embeddings": chance.random() < 0.5,
        "max_position_embeddings": 4096,
    }
    routed = {
        "num_experts_per_tok": chance.randint(1, 4),
        "moe_intermediate_size": 8 * chance.randint(2, 12),
    }
    if family == "falcon":
        config |= {
            "new_decoder_architecture": True,
            "num_kv_heads": pairs,
            "ffn_hidden_size": config["intermediate_size"],
        }
        del config["head_dim"]
    if family == "qwen3_moe":
        config |= routed | {"num_experts": chance.choice((4, 8, 13)), "mlp_only_layers": [0]}
    if family == "deepseek_v3":
        config |= routed | {
            "n_routed_experts": 8,
            "n_group": 2,
            "topk_group": 2,
            "n_shared_experts": chance.randint(1, 2),
            "first_k_dense_replace": 1,
            "q_lora_rank": chance.choice((None, 24)),
            "kv_lora_rank": 16,
            "qk_nope_head_dim": 32,
            "qk_rope_head_dim": 16,
            "v_head_dim": 24,
            "num_key_value_heads": heads,
        }
        del config["head_dim"]
    return config


def trace(config: dict[str, Any], decoder: Decoder, step: DecoderPass, batch: int) -> tuple[Workload, int, int]:
    """Return a pass of transformers as traced, its parameters, and the bytes of those that it reads."""
    told = transformers.AutoConfig.for_model(**config)
    module = Pass(told)
    held = [layer.mixer for layer in decoder.layers]
    past = [
        tuple(torch.empty(batch, one.kv_heads, step.cached, one.head_dim, device="meta") for _ in "kv")  # type: ignore[union-attr]
        for one in held
        if step.cached
    ]
    ids = torch.zeros(batch, step.tokens, dtype=torch.int64)
    _, workload = request_module(module, (ids, past))
    names = {name.removeprefix("model.") for name, _ in module.model.named_parameters(remove_duplicate=False)}
    read = {
        tensor.name: tensor.byte_count
        for tensor in workload.tensors
        if tensor.role == "parameter" and tensor.name.removeprefix("model.").removeprefix("model.") in names
    }
    return workload, sum(one.numel() for one in module.model.parameters()), sum(read.values())


@pytest.mark.parametrize("family", ["llama", "qwen3", "qwen2", "falcon", "qwen3_moe", "deepseek_v3"])
@pytest.mark.parametrize("case", range(CASES))
def test_a_pass_counts_what_the_trace_of_transformers_counts(family: str, case: int) -> None:
    chance = random.Random(f"{family} {case}")
    config = sizes(family, chance)
    decoder = read_config(config, family)
    is_prompt = family in WIDER or chance.random() < 0.5
    step = DecoderPass(tokens=chance.randint(8, 70)) if is_prompt else DecoderPass(cached=chance.randint(1, 300))
    batch = chance.choice((1, 2, 5))
    theirs, parameters, weight_bytes = trace(config, decoder, step, batch)
    ours = describe_step(decoder, step, batch, NO_KEY)
    assert (ours.mac_count, ours.parameter_count, ours.weight_bytes) == (theirs.mac_count, parameters, weight_bytes)
    if step.cached:
        length = step.cached + step.tokens
        assert cache_bytes(ours, length) == cache_bytes(theirs, length) > 0


def cache_bytes(workload: Workload, length: int) -> int:
    """Return the bytes of all to which rows are appended so that it is so long."""
    appends = {
        index
        for index, one in enumerate(workload.operators)
        if one.variant == APPEND and one.output_shape[-2] == length
    }
    return sum(
        workload.tensors[access.tensor_index].byte_count
        for access in workload.accesses
        if access.operator_index in appends and access.role == "output"
    )
