"""DPUs: one layer by hand over the three parallelisms, images over cores, and what the Arm cores must do."""

from __future__ import annotations

import pytest
import torch

from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, WEIGHT, compute_s, convolution, count, run, target, with_level
from joulemap.errors import UnsupportedError
from models import Attention, columns

ZCU102 = "dpu_b4096x3_zcu102"
MOVED = INPUT + WEIGHT + OUTPUT


def test_a_convolution_takes_pixels_and_channels_in_blocks() -> None:
    # 784 pixels in 98 eights, 64 channels in 4 sixteens, 9 taps, 128 channels out in 8 sixteens, at 70 %
    found = run(target(ZCU102), "int8", convolution())
    assert_close(compute_s(found), 98 * 4 * 9 * 8 / 0.7 / 281e6, rel=1e-9)
    assert found.subgraphs.units_used_count.tolist() == [1]
    assert count(found, "dsp_slice", "int8_mac") == MACS
    # no padding: what is idle is the efficiency
    assert_close(count(found, "dsp_slice", "idle_cycle"), MACS * (1 / 0.7 - 1), rel=1e-9)


def test_channels_that_do_not_fill_a_block_are_padded() -> None:
    # 20 channels take two blocks of 16, as 32 do
    assert_close(
        compute_s(run(target(ZCU102), "int8", convolution(20, 20))),
        compute_s(run(target(ZCU102), "int8", convolution(32, 32))),
        rel=1e-12,
    )


def test_few_channels_take_the_taps_of_a_row_along() -> None:
    # three channels x three taps are nine of sixteen: three steps, not nine
    found = run(target(ZCU102), "int8", convolution(3, 16))
    assert_close(compute_s(found), 98 * 3 / 0.7 / 281e6, rel=1e-9)


def test_a_depthwise_convolution_takes_the_misc_engine() -> None:
    # 784 pixels in fours, 64 channels in sixteens, 9 taps, at half efficiency
    found = run(target(ZCU102), "int8", convolution(64, 64, 64))
    assert_close(compute_s(found), 196 * 4 * 9 / 0.5 / 281e6, rel=1e-9)


@pytest.mark.parametrize(("batch", "rounds"), [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3)])
def test_each_image_has_a_core(batch: int, rounds: int) -> None:
    found = run(target(ZCU102), "int8", convolution(batch=batch))
    assert_close(compute_s(found), rounds * 98 * 4 * 9 * 8 / 0.7 / 281e6, rel=1e-9)
    assert found.subgraphs.units_used_count.tolist() == [min(batch, 3)]
    # and streams the weights for itself
    assert found.subgraphs.dram_bytes.tolist() == [batch * MOVED]
    assert count(found, "weight_buffer", "write") == batch * WEIGHT


def test_one_core_reaches_memory_through_its_own_ports() -> None:
    # 32 bytes per clock are less than 60 % of 19.2 GB/s; three cores meet that limit
    one, three = (run(target(ZCU102), "int8", convolution(batch=batch)) for batch in (1, 3))
    assert_close(float(one.subgraphs.memory_s[0]), MOVED / (32 * 281e6), rel=1e-9)
    assert_close(float(three.subgraphs.memory_s[0]), 3 * MOVED / (19.2e9 * 0.6), rel=1e-9)


def test_an_operand_that_the_buffers_do_not_hold_moves_again() -> None:
    # the input is the smaller operand: in buffers of half its size, weights pass twice
    found = run(with_level(target(ZCU102), "buffer", INPUT / 2), "int8", convolution())
    assert found.subgraphs.dram_bytes.tolist() == [MOVED + WEIGHT]


def test_attention_runs_on_the_arm_cores() -> None:
    heads = torch.empty(1, 4, 16, 8, device="meta")
    found = run(target(ZCU102), "int8", columns(Attention(), heads, heads, heads))
    macs, scores = 2 * 4 * 16 * 16 * 8, 4 * 16 * 16
    # one operation to scale a score, four and a special function of twenty for its softmax
    operations = macs + scores + 4 * scores + 20 * scores
    assert count(found, "processor", "operation") == operations
    assert count(found, "dsp_slice", "int8_mac") == 0
    assert_close(compute_s(found), operations / 4e9, rel=1e-9)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int4"])
def test_other_precisions_are_refused(precision: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{ZCU102} has no {precision}; it has int8"):
        run(target(ZCU102), precision, convolution())
