"""Fused attention on a GPU, of several queries and of one, by family of kernels: worked out by hand on a toy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from compare import assert_close
from convolution import count, run
from gpu_case import TOY, clocks, kernel_seconds, norm, placed, single, timed
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.runtime import MODES
from joulemap.physics.workload import WorkloadColumns
from models import Function, columns

PASS = 2 * 128 * 64 / (0.75 * 1024) + 128 * 0.5 / 16
"""Clocks of 128 queries of 64 elements for a key: two products, and half of the exponentials on 16 lanes."""


def attention(
    queries: int, heads: int, *, kv_heads: int = 0, cached: int = 0, width: int = 64, batch: int = 1, more: str = ""
) -> WorkloadColumns:
    return single(
        f"attention(batch={batch},queries={queries},cached={cached},heads={heads},kv_heads={kv_heads or heads},"
        f"head_dim={width}{more})"
    )


def busy_s(work: WorkloadColumns, precision: str = "fp16") -> float:
    times, kernels = timed(work, precision)
    products = kernels.work.has_macs
    assert not times.busy_s[~products].any()
    assert len(set(times.busy_s[products].tolist())) == 1
    return float(times.busy_s.sum())


def test_blocks_of_queries_pass_over_their_keys() -> None:
    # 24 heads of 8 blocks of 128 queries each, on 128 units
    work = attention(1024, 24)
    assert_close(busy_s(work), clocks(192 / 128 * (PASS * 1024 + 3000)))
    times, _ = timed(work, "fp16")
    assert times.tiles.max() == 192
    # half as many do not fill the units: each block takes its time
    assert_close(busy_s(attention(1024, 12)), clocks(PASS * 1024 + 3000))
    # keys come in blocks of 64
    assert busy_s(attention(1024, 24, cached=1)) == busy_s(attention(1024, 24, cached=64))


def test_few_queries_are_padded_to_half_a_block() -> None:
    assert_close(busy_s(attention(16, 256, cached=1008)), clocks(2 * (PASS / 2 * 1024 + 3000)))
    assert_close(busy_s(attention(65, 256, cached=959)), clocks(2 * (PASS * 1024 + 3000)))


def test_four_bytes_run_on_vector_lanes() -> None:
    lanes = 2 * 128 * 64 / (0.5 * 128) + 4
    assert_close(busy_s(attention(1024, 24), "fp32"), clocks(192 / 128 * (lanes * 1024 + 3000)))


def test_a_causal_mask_skips_keys() -> None:
    # 1024 keys before the first query, half of the others and of a block of 128, and half a block of 64 keys
    seen = 1024 + (1024 + 128) / 2 + 32
    work = attention(1024, 48, cached=1024, more=",causal=true")
    assert_close(busy_s(work), clocks(384 / 128 * (PASS * seen + 3000)))
    times, kernels = timed(work, "fp16")
    products = kernels.work.has_macs
    for slots, multiplied in zip(times.executed_macs[products], times.multiplied_macs[products], strict=True):
        assert slots == 48 * 1024 * 2048 * 64
        assert_close(float(multiplied), slots * seen / 2048)


def test_heads_that_share_keys_share_blocks() -> None:
    # 6 groups of 8 heads: as many blocks, whose 128 rows are 16 queries of 8 heads
    seen = 1024 + (1024 + 16) / 2 + 32
    work = attention(1024, 48, kv_heads=6, cached=1024, more=",causal=true")
    assert_close(busy_s(work), clocks(384 / 128 * (PASS * seen + 3000)))
    # 16 queries of 8 heads fill a block, of one head they are padded
    assert_close(busy_s(attention(16, 1024, kv_heads=128, cached=1008)), clocks(128 / 128 * PASS * 1024 + 3000))


def test_a_family_that_packs_no_heads_has_a_block_for_each() -> None:
    apart = timed(attention(16, 64, kv_heads=8, more=",kernel=trtllm"), "fp16")[0]
    together = timed(attention(16, 64, kv_heads=8), "fp16")[0]
    assert (apart.tiles.max(), together.tiles.max()) == (64.0, 8.0)


# one query


def test_one_query_streams_its_keys() -> None:
    # 8 pairs of heads and 256 keys: a pair takes 7600 clocks at least, whatever its bytes at 100 a clock
    assert_close(busy_s(attention(1, 32, kv_heads=8, cached=255)), clocks(7600))
    # 129 of them take two turns
    assert_close(busy_s(attention(1, 129, cached=255)), clocks(2 * 7600))
    # keys and values of 8192 elements are 2 x 8192 x 64 x 2 bytes; in 16 parts, one for each unit, the bytes of one
    # part are few, and adding them up takes 4000 clocks
    assert_close(busy_s(attention(1, 8, cached=8191)), clocks(7600 + 4000))


def test_keys_are_split_only_where_it_pays() -> None:
    # 1024 keys: 2621 clocks of bytes are within those of a pair
    times, _ = timed(attention(1, 8, cached=1023), "fp16")
    assert times.tiles.max() == 8
    assert_close(float(times.busy_s.sum()), clocks(7600))
    # at 8 bytes a clock they are 32,768; four parts of 256 keys take 8192, and 4000 to add up
    times, _ = timed(attention(1, 8, cached=1023, more=",kernel=flash_attention_2"), "fp16")
    assert times.tiles.max() == 32
    assert_close(float(times.busy_s.sum()), clocks(8192 + 4000))


# families


def test_a_family_has_its_own_start_and_an_unknown_one_is_the_plain_one() -> None:
    def start_s(work: WorkloadColumns, precision: str = "fp16") -> float:
        times, kernels = timed(work, precision)
        return float(times.start_s[kernels.leader].sum())

    plain = attention(1024, 24, cached=8)
    named = attention(1024, 24, cached=8, more=",kernel=flash_attention_2")
    unknown = attention(1024, 24, cached=8, more=",kernel=of_nobody")
    assert_close(start_s(plain), clocks(6000))
    assert_close(start_s(plain, "fp32"), clocks(30_000))
    # its rows append keys and values to a cache in two passes: read and written, 2 bytes an element, at 0.4 of DRAM
    appended = 2 * (4 * 2 * 64 * 1024 * 24) / (0.4 * 2e12)
    assert_close(start_s(named), clocks(14_000) + appended)
    assert_close(busy_s(named), clocks(192 / 128 * (PASS * 1088 + 3000)))
    assert (start_s(unknown), busy_s(unknown)) == (start_s(plain), busy_s(plain))


@pytest.mark.parametrize("runtime", MODES)
def test_fused_attention_is_one_kernel_without_its_scores(runtime: str) -> None:
    values = 8 * 256 * 64
    work = attention(256, 8)
    placement, kernels = placed(work, "fp16", runtime)
    assert kernels.kernel_count == 1
    # the kernel is what it starts with and the norm of its parts
    times, _ = timed(work, "fp16", runtime)
    (seconds,) = kernel_seconds(placement, kernels)
    parts = norm(float(times.busy_s.sum()), float(times.memory_s.sum()))
    if runtime != "eager":
        assert_close(seconds, clocks(6000 + 1000) + parts)
    # query, key and value in, the result out; no score of 8 x 256 x 256
    assert kernels.moved_bytes.sum() == 4 * values * 2
    found = run(TOY, "fp16", work, runtime)
    assert found.subgraphs.kernel_count.tolist() == [1]
    assert count(found, "kernel", "launch") == 1
    # alone it stands for a layer of a model: what it reads was just made, what it writes is read next
    assert count(found, "dram", "read") + count(found, "dram", "write") == 0
    assert count(found, "load_store_unit", "transfer") == 4 * values * 2


def test_attention_written_out_is_three_kernels_with_its_scores() -> None:
    tokens, heads, width = 256, 8, 64

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return torch.softmax(query @ key, -1) @ value

    shapes = ((1, heads, tokens, width), (1, heads, width, tokens), (1, heads, tokens, width))
    work = columns(Function(attend), *(torch.empty(shape, device="meta") for shape in shapes))
    kernels = form_kernels(work, "fp16", "graph")
    scores, values = heads * tokens * tokens, heads * tokens * width
    assert kernels.kernel_count == 3
    # scores are written, read, written again and read again
    assert kernels.moved_bytes.sum() == (4 * values + 4 * scores) * 2
    assert np.count_nonzero(timed(work, "fp16")[0].busy_s) == 3


# keys that hold their values


LATENT_KEY = 64 * (96 + 64) / (0.75 * 1024)
"""Clocks of 64 heads that share a key of 96 elements, of which 64 are its value."""


def latent(cached: int, heads: int, batch: int = 1, more: str = "") -> WorkloadColumns:
    return attention(
        1, heads, cached=cached, width=96, batch=batch, kv_heads=1, more=f",value_dim=64,latent=true{more}"
    )


def test_all_heads_share_a_latent_key_and_its_bytes_move_once() -> None:
    # 128 sequences of 64 heads, a block each on 128 units; of 65 heads, two rounds
    assert_close(busy_s(latent(4095, 64, 128)), clocks(LATENT_KEY * 4096))
    assert_close(busy_s(latent(4095, 65, 128)), clocks(2 * LATENT_KEY * 4096))
    kernels = timed(latent(4095, 16, 2), "fp16")[1]
    assert kernels.input_bytes.sum() == 2 * (2 * 4096 * 96 + 2 * 16 * 96)
    # one head is latent too: 64 rows are multiplied for it
    assert busy_s(latent(4095, 1, 128)) == busy_s(latent(4095, 64, 128))


def test_one_query_of_latent_keys_is_split_over_units() -> None:
    # 32 sequences on 128 units: four parts each
    assert_close(busy_s(latent(8191, 64, 32)), clocks(LATENT_KEY * 2048 + 4000))


def test_units_without_asynchronous_products_load_before_they_multiply() -> None:
    # the toy has 1024 MACs, of which the family reaches half: a unit takes all 8192 keys of 192 bytes, 50 a clock
    work = latent(8191, 64, 32, ",kernel=trtllm_default")
    assert_close(busy_s(work), clocks((LATENT_KEY * 0.75 / 0.5 + 192 / 50) * 8192))


def test_a_narrow_cache_moves_half_and_is_made_wide_first() -> None:
    wide, narrow = (latent(4095, 64, 128, more) for more in ("", ",cache=fp8"))
    held = 128 * 4096 * 96
    assert timed(wide, "fp16")[1].input_bytes.sum() - timed(narrow, "fp16")[1].input_bytes.sum() == held
    assert busy_s(wide) == busy_s(narrow)
    # integers are made wide as they arrive, by any family that does not copy the whole cache first
    integer = latent(4095, 64, 128, ",cache=int8")
    moved = [timed(one, "fp16")[1].input_bytes.tolist() for one in (integer, narrow)]
    assert moved[0] == moved[1]
    assert busy_s(integer) == busy_s(wide)
    starts = []
    for more in ("", ",cache=fp8"):
        times, kernels = timed(latent(4095, 64, 128, f"{more},kernel=sglang_flash_attention"), "fp16")
        starts.append(float(times.start_s[kernels.leader].sum()))
    assert_close(starts[1] - starts[0], clocks(3500 + 1000) + held * 110 / (128 * 128 * 1e9))


def test_heads_that_share_keys_are_repeated_in_memory_at_fp32() -> None:
    grouped = single("attention(queries=64,heads=8,kv_heads=2,head_dim=32)")

    def moved(work: WorkloadColumns, precision: str, runtime: str) -> float:
        return float(timed(work, precision, runtime)[0].pass_bytes.sum())

    # 6 x 8 heads x 64 keys x 32 for keys and values, 2 x 8 x 64 x 32 for queries, 4 x 8 x 64 x 64 scores: 4 bytes each
    for runtime in ("eager", "graph"):
        assert moved(grouped, "fp32", runtime) == 4.0 * (6 * 16384 + 2 * 16384 + 4 * 32768)
    # fused kernels of 16 bits take shared heads, and so does one of a compiler
    assert moved(grouped, "fp16", "graph") == moved(grouped, "fp32", "engine") == 0.0
    assert moved(single("attention(queries=64,heads=8,head_dim=32)"), "fp32", "graph") == 0.0
