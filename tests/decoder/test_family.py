"""Families of decoders as data: blocks counted by hand, published sizes, unknown types, and files of one's own."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from deployed import known_decoder
from joulemap.physics.record.workload import NO_KEY
from joulemap.system.errors import ModelError, UnknownFamilyError
from joulemap.wing.decoder.network.config import Attention, Experts, Recurrence
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.family import FOLDER, ROOT, load_family
from joulemap.wing.decoder.network.layer import describe_step
from joulemap.wing.decoder.network.pass_name import find_decoder
from joulemap.wing.decoder.network.read import read_config
from joulemap.wing.decoder.network.row import Piece
from joulemap.wing.decoder.network.select import count_pairs

WIDTH, VOCABULARY, INNER, HEADS, HEAD = 256, 1000, 512, 8, 32
BASE: dict[str, Any] = {
    "hidden_size": WIDTH, "vocab_size": VOCABULARY, "intermediate_size": INNER, "num_hidden_layers": 1,
    "num_attention_heads": HEADS, "num_key_value_heads": 2, "head_dim": HEAD, "max_position_embeddings": 100_000,
}  # fmt: skip
NETWORK = 3 * WIDTH * INNER
HEAD_MACS = VOCABULARY * WIDTH
LATENT = {"q_lora_rank": 64, "kv_lora_rank": 128, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 48}
LATENT_PRODUCTS = (
    WIDTH * 64 + 64 * HEADS * (32 + 16) + WIDTH * (128 + 16) + HEADS * 128 * (32 + 48) + HEADS * 48 * WIDTH
)
INDEX = {"index_topk": 100, "index_n_heads": 4, "index_head_dim": 32}
DELTA = {
    "full_attention_interval": 2, "linear_num_value_heads": 4, "linear_value_head_dim": 32,
    "linear_key_head_dim": 16, "linear_num_key_heads": 2, "linear_conv_kernel_dim": 4,
}  # fmt: skip


def macs(config: dict[str, Any], step: DecoderPass, batch: int = 1) -> int:
    return describe_step(read_config({**BASE, **config}, "own"), step, batch, NO_KEY).mac_count - batch * HEAD_MACS


def count_weights(config: dict[str, Any]) -> int:
    return describe_step(read_config({**BASE, **config}, "own"), DecoderPass(), 1, NO_KEY).parameter_count


def test_a_gate_and_a_window_are_counted_by_hand() -> None:
    projections = 2 * WIDTH * HEADS * HEAD + 2 * WIDTH * 2 * HEAD
    seen: tuple[dict[str, Any], ...] = ({"model_type": "llama"}, {"model_type": "mistral", "sliding_window": 10})
    for config, rows in zip(seen, (51, 10), strict=True):
        assert macs(config, DecoderPass(cached=50)) == projections + NETWORK + 2 * HEADS * HEAD * rows


def test_experts_are_counted_by_hand() -> None:
    config = {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
    projections = 2 * WIDTH * HEADS * HEAD + 2 * WIDTH * 2 * HEAD
    assert macs(config, DecoderPass(cached=9)) == projections + 2 * HEADS * HEAD * 10 + 4 * WIDTH + 2 * 3 * WIDTH * 64


ATTENTION = 2 * WIDTH * HEADS * HEAD + 2 * WIDTH * 2 * HEAD + 2 * HEADS * HEAD * 10
"""MACs of attention for a token after nine others."""

EXPERT = 3 * WIDTH * 64
SPARSE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
ERNIE = {
    "moe_num_experts": 4, "moe_k": 2, "moe_num_shared_experts": 2, "moe_intermediate_size": 64,
    "moe_layer_start_index": 1, "moe_layer_end_index": 1, "moe_layer_interval": 1,
}  # fmt: skip
SEARCHED = [
    {"attention": {"no_op": False, "replace_with_linear": False, "n_heads_in_group": 4},
     "ffn": {"no_op": False, "replace_with_linear": False, "ffn_mult": 3.0}},
    {"attention": {"no_op": True}, "ffn": {"no_op": False, "replace_with_linear": False, "ffn_mult": 0.8}},
    {"attention": {"no_op": True}, "ffn": {"no_op": True}},
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "products"),
    [
        pytest.param(
            {"model_type": "exaone_moe", **SPARSE, "num_shared_experts": 1, "mlp_layer_types": ["dense", "sparse"],
             "num_hidden_layers": 2, "sliding_window_pattern": "LG", "sliding_window": 128,
             "layer_types": ["sliding_attention", "full_attention"]},
            2 * ATTENTION + NETWORK + 4 * WIDTH + 3 * EXPERT, id="exaone_moe",
        ),
        pytest.param(
            {"model_type": "ernie4_5_moe", **ERNIE, "num_hidden_layers": 3},
            3 * ATTENTION + 2 * NETWORK + 4 * WIDTH + 4 * EXPERT, id="ernie4_5_moe",
        ),
        pytest.param(
            {"model_type": "afmoe", **SPARSE, "num_dense_layers": 1, "num_hidden_layers": 2},
            2 * (ATTENTION + WIDTH * HEADS * HEAD) + NETWORK + 4 * WIDTH + 2 * EXPERT, id="afmoe",
        ),
        pytest.param(
            {"model_type": "git", "architectures": ["Grok1ForCausalLM"], **SPARSE, "residual_moe": True},
            ATTENTION + NETWORK + 4 * WIDTH + 2 * EXPERT, id="grok1",
        ),
        pytest.param(
            {"model_type": "longcat_flash", **LATENT, "num_layers": 1, "ffn_hidden_size": INNER, "n_routed_experts": 4,
             "zero_expert_num": 4, "moe_topk": 4, "expert_ffn_hidden_size": 64},
            2 * (LATENT_PRODUCTS + HEADS * (128 + 16 + 128) * 10) + 2 * NETWORK + 4 * WIDTH + 2 * EXPERT, id="longcat",
        ),
        pytest.param(
            {"model_type": "nemotron-nas", "block_configs": SEARCHED, "num_hidden_layers": 3},
            ATTENTION + NETWORK + 3 * WIDTH * 256, id="nemotron-nas",
        ),
    ],
)  # fmt: skip
def test_published_layouts_are_counted_by_hand(config: dict[str, Any], products: int) -> None:
    assert macs(config, DecoderPass(cached=9)) == products


def test_layers_of_published_hybrids_are_those_that_they_list() -> None:
    minimax = {"model_type": "minimax_text_01", "attn_type_list": [0, 1], "num_local_experts": 4}
    linear, full = read_config({**BASE, **minimax, "num_experts_per_tok": 2, "num_hidden_layers": 2}, "own").layers
    assert isinstance(linear.mixer, Recurrence)
    assert (linear.mixer.state_count, linear.mixer.tail_count) == (HEADS * HEAD * HEAD, 0)
    assert isinstance(full.mixer, Attention)
    states = {"mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4}
    bamba = {"model_type": "bamba", "attn_layer_indices": [1], **states, "num_hidden_layers": 2}
    mixers = [layer.mixer for layer in read_config({**BASE, **bamba}, "own").layers]
    assert [isinstance(one, Attention) for one in mixers] == [False, True]


def test_a_recurrence_without_a_convolution_is_counted_by_hand() -> None:
    """Queries, keys, values and a gate of 256 elements, and two rates per head; a state is updated without GEMMs."""
    config = {"model_type": "minimax_text_01", "attn_type_list": [0], "num_local_experts": 1, "num_experts_per_tok": 1}
    projections = WIDTH * (3 * 256 + 256 + 2 * HEADS) + 256 * WIDTH
    assert macs(config, DecoderPass(cached=9)) == projections + WIDTH + NETWORK
    assert macs(config, DecoderPass(tokens=4)) > 4 * projections


def test_a_layer_with_the_keys_of_the_layer_before_caches_none() -> None:
    config = {"model_type": "hunyuan", **SPARSE, "use_cla": True, "cla_share_factor": 2, "num_hidden_layers": 2}
    assert read_config({**BASE, **config}, "own").cache_bytes(1) == 2 * 2 * HEAD * 2


def test_a_window_that_is_switched_off_is_read() -> None:
    read = read_config({**BASE, "model_type": "newest", "sliding_window": 100, "use_sliding_window": False}, "own")
    assert read.layers == read_config({**BASE, "model_type": "llama"}, "own").layers


def test_an_indexer_scores_all_tokens_and_a_hundred_are_attended_to() -> None:
    dense, sparse = {"model_type": "deepseek_v3", **LATENT}, {"model_type": "deepseek_v32", **LATENT, **INDEX}
    row = HEADS * (128 + 16 + 128)
    index = 64 * 4 * 32 + WIDTH * 32 + WIDTH * 4
    for cached in (49, 99, 4999):
        length = cached + 1
        assert macs(dense, DecoderPass(cached=cached)) == LATENT_PRODUCTS + NETWORK + row * length
        scores = 4 * 32 * length
        assert macs(sparse, DecoderPass(cached=cached)) == LATENT_PRODUCTS + NETWORK + index + scores + row * min(
            length, 100
        )


def test_a_layer_that_shares_a_selection_has_no_indexer() -> None:
    config = {"model_type": "glm_moe_dsa", **LATENT, **INDEX, "num_hidden_layers": 2}
    both = macs(config, DecoderPass(cached=499))
    shared = macs({**config, "indexer_types": ["full", "shared"]}, DecoderPass(cached=499))
    assert both - shared == 64 * 4 * 32 + WIDTH * 32 + WIDTH * 4 + 4 * 32 * 500


def test_delta_layers_that_are_listed_from_1_alternate_with_latent_attention() -> None:
    linear = {"kda_layers": [1, 2], "full_attn_layers": [3], "num_heads": 8, "head_dim": 32}
    config = {"model_type": "kimi_linear", **LATENT, "num_hidden_layers": 3, "linear_attn_config": linear}
    kinds = [layer.mixer.kind for layer in read_config(BASE | config, "kimi").layers if layer.mixer is not None]
    assert kinds == ["delta", "delta", "latent"]


@pytest.mark.parametrize(("ratio", "cached"), [(0, 999), (4, 999), (128, 1279)])
def test_compressed_attention_is_counted_by_hand(ratio: int, cached: int) -> None:
    config = {
        "model_type": "deepseek_v4", "num_key_value_heads": 1, "q_lora_rank": 64, "qk_rope_head_dim": 16, "hc_mult": 4,
        "o_groups": 2, "o_lora_rank": 24, "sliding_window": 50, "compress_ratios": [ratio], **INDEX,
        "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "n_shared_experts": 1,
    }  # fmt: skip
    products = WIDTH * 64 + 64 * HEADS * HEAD + WIDTH * HEAD + HEADS * HEAD * 24 + 2 * 24 * WIDTH
    experts = 4 * WIDTH + 3 * 3 * WIDTH * 64
    streams = 2 * (4 * 6) * (4 * WIDTH) + 4 * (4 * WIDTH)
    length = cached + 1
    rows = length // ratio if ratio else 0
    if ratio == 4:  # projections are twice as wide, and an indexer selects 100 rows
        products += 4 * WIDTH * HEAD + 4 * WIDTH * 32 + 64 * 4 * 32 + WIDTH * 4 + 4 * 32 * rows
    if ratio == 128:
        products += 2 * WIDTH * HEAD
    attention = 2 * HEADS * HEAD * (50 + min(rows, 100 if ratio == 4 else rows))
    assert macs(config, DecoderPass(cached=cached)) == products + experts + streams + attention


def test_delta_rules_and_state_spaces_are_counted_by_hand() -> None:
    delta = {"model_type": "qwen3_5", **DELTA}
    products = WIDTH * (4 * 32 + 2 * 2 * 16) + WIDTH * 4 * 32 + 2 * WIDTH * 4 + 4 * 32 * WIDTH
    convolution = (4 * 32 + 2 * 2 * 16) * 4
    # the update of a state has no products, and the state is of one size at any length
    assert (
        macs(delta, DecoderPass(cached=50)) == macs(delta, DecoderPass(cached=5000)) == products + NETWORK + convolution
    )
    mamba = {"model_type": "mamba2", "num_heads": 4, "head_dim": 32, "state_size": 16, "n_groups": 1}
    products = WIDTH * (2 * 4 * 32 + 2 * 16 + 4) + 4 * 32 * WIDTH
    assert macs(mamba, DecoderPass(cached=50)) == products + (4 * 32 + 2 * 16) * 4


def test_heads_of_an_indexer_select_blocks_of_tokens() -> None:
    sparse = {
        "sparse_attention_freq": [1], "sparse_block_size": 8, "sparse_topk_blocks": 4, "sparse_index_dim": 16,
        "sparse_num_index_heads": 2,
    }  # fmt: skip
    config = {"model_type": "minimax_m3", "sparse_attention_config": sparse}
    projections = 2 * WIDTH * HEADS * HEAD + 2 * WIDTH * 2 * HEAD
    index = WIDTH * 2 * 16 + WIDTH * 16
    for length in (20, 32, 5000):  # 4 blocks of 8 tokens
        attention = 2 * HEADS * HEAD * min(length, 32)
        assert (
            macs(config, DecoderPass(cached=length - 1)) == projections + NETWORK + index + 2 * 16 * length + attention
        )
    decoder = read_config(BASE | config, "sparse")
    flat = {
        "model_type": "minimax_m3_vl_text", "layer_types": ["minimax_m3_sparse"], "mlp_layer_types": ["dense"],
        "num_local_experts": 4, "index_block_size": 8, "index_topk_blocks": 4, "index_head_dim": 16, "index_n_heads": 2,
    }  # fmt: skip
    assert read_config(BASE | flat, "flat").layers == decoder.layers
    assert decoder.cache_bytes(100) == 100 * 2.0 * (2 * 2 * HEAD + 16)
    assert decoder.cache_bytes(100, devices=2) == 100 * 2.0 * (2 * HEAD + 16)  # each device has all index keys
    workload = describe_step(decoder, DecoderPass(cached=4999), 1, NO_KEY)
    written = {
        one.operation: one.output_element_count for one in workload.operators if one.operation in ("bmm", "topk")
    }
    assert written == {"bmm": 2 * 5000 // 8, "topk": 2 * 4}


def test_experts_at_a_lower_width_and_gates_are_counted_by_hand() -> None:
    linear = {"kda_layers": [], "full_attn_layers": [1], "num_heads": 8, "head_dim": 32}
    routed = {"num_experts": 16, "num_experts_per_token": 4, "num_shared_experts": 2, "moe_intermediate_size": 64}
    config = {"model_type": "kimi_k3", **LATENT, **routed, "linear_attn_config": linear}
    experts = 16 * WIDTH + 3 * WIDTH * 2 * 64
    attention = LATENT_PRODUCTS + HEADS * (128 + 16 + 128) * 50
    plain = macs(config, DecoderPass(cached=49))
    assert plain == attention + experts + 4 * 3 * WIDTH * 64
    config |= {"routed_expert_hidden_size": 96, "mla_use_output_gate": True}
    gate = WIDTH * HEADS * 48
    assert macs(config, DecoderPass(cached=49)) == attention + gate + experts + 4 * 3 * 96 * 64 + 2 * WIDTH * 96


def test_values_may_be_narrower_than_keys() -> None:
    config = {
        "model_type": "mimo_v2_flash", "num_hidden_layers": 2, "hybrid_layer_pattern": [0, 1], "v_head_dim": 24,
        "swa_num_attention_heads": HEADS, "swa_num_key_value_heads": 4, "swa_v_head_dim": 24, "sliding_window": 16,
    }  # fmt: skip
    projections = sum(WIDTH * (HEADS + pairs) * (HEAD + 24) for pairs in (2, 4))
    attention = HEADS * (HEAD + 24) * (50 + 16)
    assert macs(config, DecoderPass(cached=49)) == projections + 2 * NETWORK + attention
    named = {**config, "layer_types": ["full_attention", "sliding_attention"]}
    del named["hybrid_layer_pattern"]
    assert macs(named, DecoderPass(cached=49)) == projections + 2 * NETWORK + attention
    assert read_config(BASE | config, "narrow").cache_bytes(50) == 2.0 * (HEAD + 24) * (2 * 50 + 4 * 16)


def test_each_head_may_have_a_gate_and_windows_more_heads() -> None:
    """One layer sees all tokens; the other, with experts, sees 16 with three times the heads."""
    config = {
        "model_type": "step3p7", "num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"],
        "num_attention_groups": 2, "attention_other_setting": {"num_attention_heads": 3 * HEADS}, "sliding_window": 16,
        "use_head_wise_attn_gate": True, "moe_layers_enum": "1", "moe_num_experts": 4, "moe_top_k": 2,
        "moe_intermediate_size": 64, "share_expert_dim": 32,
    }  # fmt: skip
    attention = sum(
        2 * WIDTH * HEAD * (heads + 2) + WIDTH * heads + 2 * heads * HEAD * seen
        for heads, seen in ((HEADS, 50), (3 * HEADS, 16))
    )
    experts = WIDTH * 4 + 3 * WIDTH * (2 * 64 + 32)
    assert macs(config, DecoderPass(cached=49)) == attention + NETWORK + experts
    listed = {**config, "moe_layers_enum": [1]}
    assert read_config(BASE | listed, "own").layers == read_config(BASE | config, "own").layers
    assert read_config(BASE | {**config, "moe_layers_enum": "0, 1"}, "own").layers[0].network is not None


def test_layers_in_words_are_those_of_the_letters() -> None:
    sizes = {
        "model_type": "nemotron_h", "mamba_num_heads": 4, "mamba_head_dim": 32, "ssm_state_size": 16, "n_groups": 1,
        "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
        "moe_shared_expert_intermediate_size": 64,
    }  # fmt: skip
    letters = read_config({**BASE, **sizes, "hybrid_override_pattern": "ME*-"}, "own")
    words = read_config({**BASE, **sizes, "layers_block_type": ["mamba", "moe", "attention", "mlp"]}, "own")
    assert letters.layers == words.layers
    assert len(words.layers) == 4


def test_state_spaces_and_attention_alternate_as_the_configuration_says() -> None:
    # Granite 4: mamba2 with 16 heads of 32, state 16, one group; the shared MLP of each layer, with or without experts.
    space = {"mamba_n_heads": 16, "mamba_d_head": 32, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4}
    granite = {
        "model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"], "num_hidden_layers": 2, **space,
        "shared_intermediate_size": 128, "num_local_experts": 0, "num_experts_per_tok": 0,
    }  # fmt: skip
    inner, keys = 16 * 32, 2 * 16
    mamba = WIDTH * (2 * inner + keys + 16) + 5 * (inner + keys) + inner * WIDTH + inner + 3 * 16
    attention = 2 * WIDTH * HEADS * HEAD + 2 * WIDTH * 2 * HEAD
    norms, table, shared = 5 * WIDTH, 2 * VOCABULARY * WIDTH, 3 * WIDTH * 128
    assert count_weights(granite) == mamba + attention + 2 * shared + norms + table
    experts = 2 * (4 * WIDTH + 4 * NETWORK)
    mixed = {**granite, "num_local_experts": 4, "num_experts_per_tok": 2}
    assert count_weights(mixed) == mamba + attention + 2 * shared + experts + norms + table
    # Jamba: mamba with 512 channels, state 16, rank 16; attention in layer 1 of 2, experts in layer 1 of 2.
    jamba = {
        "model_type": "jamba", "num_hidden_layers": 2, "attn_layer_period": 2, "attn_layer_offset": 1,
        "expert_layer_period": 2, "expert_layer_offset": 1, "num_experts": 4, "num_experts_per_tok": 2,
        "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_dt_rank": 16, "mamba_expand": 2,
    }  # fmt: skip
    decoder = read_config({**BASE, **jamba}, "own")
    assert [isinstance(layer.mixer, Attention) for layer in decoder.layers] == [False, True]
    assert [isinstance(layer.network, Experts) for layer in decoder.layers] == [False, True]
    assert decoder.cache_bytes(1000) == 2.0 * (1000 * 2 * 2 * HEAD + 512 * 16 + 512 * 3)


def test_states_are_stored_as_the_configuration_says() -> None:
    # 4 heads of 32 x 16 states and 3 tokens of a convolution with 4 x 32 + 2 x 2 x 16 channels, in one of two layers.
    config = {**BASE, **DELTA, "model_type": "qwen3_5", "num_hidden_layers": 2}
    states, tails, rows = 4 * 32 * 16, 3 * (4 * 32 + 2 * 2 * 16), 1000 * 2 * 2 * HEAD
    narrow, wide = (read_config({**config, **key}, "own") for key in ({}, {"mamba_ssm_dtype": "float32"}))
    assert narrow.cache_bytes(1000) == 2 * (states + tails + rows)
    assert wide.cache_bytes(1000) == 4 * states + 2 * (tails + rows)
    assert wide.cache_bytes(1000, item_bytes=1.0) == 4 * states + 2 * tails + rows
    assert wide.digest == narrow.digest


def test_short_convolutions_are_counted_by_hand() -> None:
    # LFM2-1.2B: 10 of 16 layers mix three tokens, the others attend; 8,192 = 12,288 x 2 / 3. Published: 1,170,340,608.
    lfm2 = {
        "model_type": "lfm2", "hidden_size": 2048, "block_ff_dim": 12288, "block_auto_adjust_ff_dim": True,
        "block_ffn_dim_multiplier": 1.0, "block_multiple_of": 256, "conv_L_cache": 3, "conv_bias": False,
        "conv_dim": 2048, "full_attn_idxs": [2, 5, 8, 10, 12, 14], "num_attention_heads": 32,
        "num_key_value_heads": 8, "num_hidden_layers": 16, "vocab_size": 65536,
    }  # fmt: skip
    decoder = read_config(lfm2, "own")
    step = describe_step(decoder, DecoderPass(cached=999), 1, NO_KEY)
    assert step.parameter_count == 1_170_340_608
    assert decoder.notes == ()
    products = 10 * 4 * 2048**2 + 6 * 2 * 2048 * (2048 + 512) + 16 * 3 * 2048 * 8192
    assert step.mac_count == products + 10 * 2048 * 3 + 6 * 2 * 1000 * 2048 + 65536 * 2048
    assert decoder.cache_bytes(1000) == 2.0 * (6 * 1000 * 2 * 8 * 64 + 10 * 2048 * 2)


def test_attention_beside_a_state_space_is_counted_by_hand() -> None:
    # Falcon-H1-0.5B: every layer has both. Published: 521,411,104.
    falcon = {
        "model_type": "falcon_h1", "head_dim": 64, "hidden_size": 1024, "intermediate_size": 2048,
        "mamba_d_conv": 4, "mamba_d_head": 64, "mamba_d_ssm": 1536, "mamba_d_state": 128, "mamba_n_groups": 1,
        "mamba_n_heads": 24, "mamba_rms_norm": False, "mlp_expansion_factor": 8, "num_attention_heads": 8,
        "num_hidden_layers": 36, "num_key_value_heads": 2, "vocab_size": 32784, "ssm_multipliers": [0.3, 0.2],
    }  # fmt: skip
    decoder = read_config(falcon, "own")
    assert describe_step(decoder, DecoderPass(), 1, NO_KEY).parameter_count == 521_411_104
    assert decoder.notes == ()
    assert (decoder.recurrent_count, len(decoder.score_heads)) == (36, 36)
    states = 1536 * 128 + 3 * (1536 + 2 * 128)
    assert decoder.cache_bytes(1000) == 2.0 * 36 * (1000 * 2 * 2 * 64 + states)
    halves = describe_step(decoder, DecoderPass(devices=2, cached=99), 1, NO_KEY)
    assert halves.mac_count < describe_step(decoder, DecoderPass(cached=99), 1, NO_KEY).mac_count
    with pytest.raises(ModelError, match="state"):
        read_config({**falcon, "mamba_d_state": 0}, "own")
    wide = read_config({**falcon, "head_dim": 128}, "own").layers[0].beside
    assert isinstance(wide, Recurrence) and (wide.heads, wide.head_dim) == (24, 64)  # not the width of attention


@pytest.mark.parametrize(
    ("model_type", "text", "parameters"),
    [
        ("gemma3", {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                    "num_hidden_layers": 34, "sliding_window": 1024}, 3_880_263_168),
        ("llava", {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064}, 6_738_939_904),
        ("llava_next", {"model_type": "mistral", "vocab_size": 32064}, 7_242_256_384),
        ("paligemma", {"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384, "num_hidden_layers": 18,
                       "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 257216}, 2_508_662_784),
    ],
)  # fmt: skip
def test_a_nested_configuration_omits_sizes_of_its_class(
    model_type: str, text: dict[str, Any], parameters: int
) -> None:
    decoder = read_config({"model_type": model_type, "text_config": text}, "own")
    assert describe_step(decoder, DecoderPass(), 1, NO_KEY).parameter_count == parameters
    assert decoder.notes == ()
    if "hidden_size" not in text:
        with pytest.raises(ModelError, match="the configuration has no"):
            read_config(text, "own")


def test_a_key_that_a_known_type_does_not_read_is_named() -> None:
    assert read_config({**BASE, "model_type": "llama", "rope_theta": 1e6}, "own").notes == ()
    (note,) = read_config({**BASE, "model_type": "llama", "frob_dim": 64}, "own").notes
    assert "frob_dim" in note


def test_an_activation_without_a_gate_has_two_products() -> None:
    apertus = {
        **BASE, "hidden_size": 4096, "intermediate_size": 21504, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 131072, "hidden_act": "xielu", "qk_norm": True,
    }  # fmt: skip
    layer = 2 * 4096 * (4096 + 1024) + 2 * 4096 * 21504 + 2 * 4096 + 2 * 128
    for model_type in ("apertus", "newest"):
        decoder = read_config({**apertus, "model_type": model_type}, "own")
        found = describe_step(decoder, DecoderPass(), 1, NO_KEY).parameter_count
        assert found == 32 * layer + 4096 + 2 * 131072 * 4096
    gated = {**BASE, "model_type": "newest", "hidden_act": "gelu"}
    assert macs(gated, DecoderPass()) - macs({**gated, "hidden_act": "relu2"}, DecoderPass()) == WIDTH * INNER


def test_classes_name_the_family_of_an_unknown_type() -> None:
    routed = {"num_local_experts": 8, "num_experts_per_tok": 2, "attn_type_list": [1], "rotary_dim": 16}
    known = read_config({**BASE, **routed, "model_type": "minimax_m2"}, "own")
    named = {**BASE, **routed, "model_type": "minimax", "architectures": ["MiniMaxM2ForCausalLM"]}
    assert read_config(named, "own").layers == known.layers
    with pytest.raises(UnknownFamilyError):
        read_config({**named, "architectures": ["NewestForCausalLM"]}, "own")
    assert read_config({**named, "model_type": "gpt2", "n_embd": WIDTH}, "own").layers != known.layers


def test_rows_that_tokens_see_are_summed() -> None:
    for cached, tokens, ratio, most in ((0, 10, 1, 0), (3, 5, 4, 0), (7, 20, 4, 3), (0, 9, 1, 4), (50, 3, 4, 5)):
        seen = [token // ratio for token in range(cached + 1, cached + tokens + 1)]
        told = sum(min(one, most) if most else one for one in seen)
        assert count_pairs(Piece("", 1, tokens, cached), ratio, most) == told


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("name", "billions", "active"),
    # sizes that their makers publish: all parameters, and those of one token
    [
        ("deepseek-v4-flash", 284, 13),
        ("deepseek-v4-pro", 1573, 49),
        ("deepseek-v3.2", 672, 37),
        ("glm-5", 744, 41),
        ("kimi-k3", 2779, 104),
        ("kimi-k2", 1026, 32),
        ("mimo-v2-flash", 309, 15),
        ("minimax-m3", 426, 25),  # 428 with the image encoder
        ("nemotron-3-ultra-550b-a55b", 549, 55),
        ("step-3.7-flash", 197, 11),  # 196 and 11
    ],
)
def test_sizes_are_those_published(name: str, billions: int, active: int) -> None:
    decoder = known_decoder(name)
    workload = describe_step(decoder, DecoderPass(), 1, NO_KEY)
    assert (round(workload.parameter_count / 1e9), round(workload.mac_count / 1e9)) == (billions, active)


def test_a_family_is_at_most_forty_lines() -> None:
    for path in FOLDER.glob("*.toml"):
        load_family(path.stem)
        if path.stem not in (ROOT, "gemma4"):
            assert len(path.read_text().splitlines()) <= 40, path.name


def test_an_unknown_type_is_read_by_its_keys_and_says_so() -> None:
    plain = read_config({**BASE, "model_type": "newest"}, "own")
    assert plain.layers == read_config({**BASE, "model_type": "llama"}, "own").layers
    assert "'newest'" in plain.notes[0] and "attention" in plain.notes[0]
    routed = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "first_k_dense_replace": 1}
    mixed = read_config({**BASE, **LATENT, **routed, "num_hidden_layers": 3, "model_type": "newest"}, "own")
    assert [isinstance(layer.network, Experts) for layer in mixed.layers] == [False, True, True]
    hybrid = read_config({**BASE, **DELTA, "num_hidden_layers": 4, "model_type": "newest"}, "own")
    assert [isinstance(layer.mixer, Attention) for layer in hybrid.layers] == [False, True, False, True]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"model_type": "newest", "frobnicate_dim": 64}, "frobnicate_dim"),
        ({"model_type": "newest", "layer_types": ["conv"]}, "conv"),
        ({"model_type": "qwen3", "layer_types": ["conv"]}, "conv"),
        ({"model_type": "deepseek_v4"}, "hc_mult"),
        ({"model_type": "gpt_oss", "num_hidden_layers": 24, "layer_types": ["full_attention"] * 10}, "10 entries"),
    ],
)
def test_an_unknown_block_is_one_line(change: dict[str, Any], word: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_config({**BASE, **change}, "own")
    assert word in str(caught.value) and "\n" not in str(caught.value)
    assert isinstance(caught.value, UnknownFamilyError) == (change["model_type"] == "newest")


def test_only_a_limit_may_be_infinite(tmp_path: Path) -> None:
    for key, is_read in (("time_step_limit", True), ("hidden_size", False)):
        (tmp_path / "config.json").write_text(json.dumps({**BASE, "model_type": "llama", key: [0.0, float("inf")]}))
        with nullcontext() if is_read else pytest.raises(ModelError, match="finite"):
            assert find_decoder(str(tmp_path))


def test_a_file_of_ones_own_describes_a_type(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**BASE, "model_type": "newest", "frob_heads": 4}))
    (tmp_path / "family.toml").write_text('like = "llama"\n[attention]\nkv_heads = "need(frob_heads)"\nnorm = "head"\n')
    decoder = find_decoder(str(tmp_path))
    assert decoder is not None
    assert isinstance(decoder.layers[0].mixer, Attention)
    assert (decoder.layers[0].mixer.kv_heads, decoder.layers[0].mixer.norm) == (4, "head")
    for text, word in (
        ("[attention]\nheds = 4\n", "heds"),
        ('[attention]\nheads = "frob_heads"\n', "frob_heads"),
        ('[attention]\nheads = "__import__(1)"\n', "__import__"),
        ('[attention]\nheads = "10 ** 9"\n', "10 ** 9"),
        ('[let]\nheads = "pairs"\npairs = "heads"\n', "itself"),
        ('[frob]\nblock = "frob"\n', "frob"),
        ('like = "none"\n', "like"),
        ("[", "family.toml"),
    ):
        (tmp_path / "family.toml").write_text(text)
        with pytest.raises(ModelError) as caught:
            find_decoder(str(tmp_path))
        assert word in str(caught.value) and "\n" not in str(caught.value), str(caught.value)
