"""DPUs: one layer by hand on a toy: the three parallelisms, images over cores, and what the Arm cores must do."""

from __future__ import annotations

import attrs
import pytest
import torch

from chip import CLOCK_HZ, dpu, number
from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, WEIGHT, compute_s, convolution, count, run, with_level
from joulemap.system.errors import UnsupportedError
from models import Attention, columns

MOVED = INPUT + WEIGHT + OUTPUT


def test_a_convolution_takes_pixels_and_channels_in_blocks() -> None:
    # 784 pixels in 196 fours, 64 channels in 8 eights, 9 taps, 128 channels out in 16 eights, at 50 %
    found = run(dpu(), "int8", convolution())
    assert_close(compute_s(found), 196 * 8 * 9 * 16 / 0.5 / CLOCK_HZ)
    assert found.subgraphs.units_used_count.tolist() == [1]
    assert count(found, "dsp_slice", "int8_mac") == MACS
    # no padding: what is idle is the efficiency
    assert_close(count(found, "dsp_slice", "idle_cycle"), MACS)


def test_channels_that_do_not_fill_a_block_are_padded() -> None:
    # 20 channels take three blocks of 8, as 24 do
    assert_close(compute_s(run(dpu(), "int8", convolution(20, 20))), compute_s(run(dpu(), "int8", convolution(24, 24))))


def test_few_channels_take_the_taps_of_a_row_along() -> None:
    # two channels x three taps are six of eight: three steps, not nine; 16 channels out are two eights
    found = run(dpu(), "int8", convolution(2, 16))
    assert_close(compute_s(found), 196 * 3 * 2 / 0.5 / CLOCK_HZ)


def test_a_depthwise_convolution_takes_the_misc_engine() -> None:
    # 784 pixels in twos, 64 channels in eights, 9 taps, at a quarter
    found = run(dpu(), "int8", convolution(64, 64, 64))
    assert_close(compute_s(found), 392 * 8 * 9 / 0.25 / CLOCK_HZ)


@pytest.mark.parametrize(("batch", "rounds"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)])
def test_each_image_has_a_core(batch: int, rounds: int) -> None:
    found = run(dpu(), "int8", convolution(batch=batch))
    assert_close(compute_s(found), rounds * 196 * 8 * 9 * 16 / 0.5 / CLOCK_HZ)
    assert found.subgraphs.units_used_count.tolist() == [min(batch, 2)]
    # and streams the weights for itself
    assert found.subgraphs.dram_bytes.tolist() == [batch * MOVED]
    assert count(found, "weight_buffer", "write") == batch * WEIGHT


def test_images_of_a_batch_may_share_the_weights() -> None:
    shared = attrs.evolve(dpu(), geometry={**dpu().geometry, "shared_weights": number(1.0)})
    for batch, copies in ((1, 1), (2, 1), (3, 2)):
        found = run(shared, "int8", convolution(batch=batch))
        assert found.subgraphs.dram_bytes.tolist() == [batch * (INPUT + OUTPUT) + copies * WEIGHT]
        assert count(found, "weight_buffer", "write") == copies * WEIGHT
    # in buffers of half an image, one copy of the weights passes twice for both images
    narrow = with_level(shared, "buffer", INPUT / 2)
    found = run(narrow, "int8", convolution(batch=2))
    assert found.subgraphs.dram_bytes.tolist() == [2 * (INPUT + OUTPUT) + 2 * WEIGHT]


def test_one_core_reaches_memory_through_its_own_ports() -> None:
    # 16 bytes per clock are less than half of 40 GB/s; two cores meet that limit
    one, two = (run(dpu(), "int8", convolution(batch=batch)) for batch in (1, 2))
    assert_close(float(one.subgraphs.memory_s[0]), MOVED / (16 * CLOCK_HZ))
    assert_close(float(two.subgraphs.memory_s[0]), 2 * MOVED / 20e9)


def test_an_operand_that_the_buffers_do_not_hold_moves_again() -> None:
    # the input is the smaller operand: in buffers of half its size, weights pass twice
    found = run(with_level(dpu(), "buffer", INPUT / 2), "int8", convolution())
    assert found.subgraphs.dram_bytes.tolist() == [MOVED + WEIGHT]


def test_attention_runs_on_the_arm_cores() -> None:
    heads = torch.empty(1, 4, 16, 8, device="meta")
    found = run(dpu(), "int8", columns(Attention(), heads, heads, heads))
    macs, scores = 2 * 4 * 16 * 16 * 8, 4 * 16 * 16
    # one operation to scale a score, four and a special function of ten for its softmax
    operations = macs + scores + 4 * scores + 10 * scores
    assert count(found, "processor", "operation") == operations
    assert count(found, "dsp_slice", "int8_mac") == 0
    assert_close(compute_s(found), operations / 1e9)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int4"])
def test_other_precisions_are_refused(precision: str) -> None:
    with pytest.raises(UnsupportedError, match=f"toy_dpu has no {precision}; it has int8"):
        run(dpu(), precision, convolution())
