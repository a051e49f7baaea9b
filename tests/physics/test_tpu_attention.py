"""Paged attention on a TPU that is one kernel, worked out by hand on a toy: two cores at 1 GHz, 100 GB/s of DRAM."""

from __future__ import annotations

import numpy as np

from chip import CLOCK_HZ, tpu
from compare import assert_close
from gpu_case import single
from joulemap.physics.architecture.tpu import ARCHITECTURE, TpuPlacement
from joulemap.physics.kernel import KernelColumns, form_kernels

PAGED = "kernel=ragged_paged_attention"


def placed(name: str) -> tuple[TpuPlacement, KernelColumns]:
    kernels = form_kernels(single(name), "bf16", "graph")
    return ARCHITECTURE.place(kernels, tpu()), kernels


def test_sequences_come_one_after_the_other_and_so_do_queries() -> None:
    for batch, queries in ((3, 1), (1, 64)):
        shape = f"batch={batch},queries={queries},cached=448,heads=8,kv_heads=2,head_dim=64"
        (paged, _), (plain, _) = (placed(f"attention({shape}{kernel})") for kernel in ("," + PAGED, ""))
        more = batch * (1000 + queries * 10) / CLOCK_HZ
        assert_close(float(paged.launch_s.sum() - plain.launch_s.sum()), more)
        assert (paged.compute_s == plain.compute_s).all()


def test_pages_are_gathered_slowly() -> None:
    shape = "batch=64,queries=1,cached=4095,heads=8,kv_heads=2,head_dim=64"
    (paged, kernels), (plain, _) = (placed(f"attention({shape}{kernel})") for kernel in ("," + PAGED, ""))
    # keys and values of 4096 tokens, two heads, 64 elements, two bytes
    assert float(kernels.input_bytes.sum()) >= 64 * 2 * 4096 * 2 * 64 * 2
    assert_close(float(paged.memory_s.sum()), float(paged.dram_bytes.sum()) / (0.25 * 100e9))
    assert paged.memory_s.sum() > plain.memory_s.sum()


def test_blocks_behind_a_causal_mask_are_skipped() -> None:
    shape = "queries=256,cached=256,heads=8,kv_heads=2,head_dim=64"
    (causal, kernels), (full, _) = (placed(f"attention({shape},{mask}{PAGED})") for mask in ("causal=true,", ""))
    # the mean query sees 512 keys less half of those of the 255 behind it
    share = (512 - 255 / 2) / 512
    assert_close(float(causal.compute_s.sum()), share * float(full.compute_s.sum()))
    hardware = tpu()
    few, many = (ARCHITECTURE.count(kernels, one, hardware) for one in (causal, full))
    for key in (("mxu", "bf16_mac"), ("vpu", "special_function")):
        assert_close(float(np.sum(few[key])), share * float(np.sum(many[key])))
