"""CGRA: one layer by hand on a toy, configuration, and what fuses into one pipeline."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from chip import DRAM_BYTES_PER_S, LAUNCH_S, cgra
from compare import assert_close
from convolution import INPUT, MACS, OUTPUT, WEIGHT, compute_s, convolution, count, run
from models import columns

CONFIGURATION = 1024
MOVED = INPUT + WEIGHT + OUTPUT


class Chain(nn.Module):
    """Doubles, as often as asked."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.length):
            x = x + x
        return x


def test_a_convolution_is_inner_products_over_the_lanes() -> None:
    # 49 x 8 tiles of 16 x 16 over 16 PCUs: 25 waves of 256 inner products of 72 vectors, and 32 to fill
    found = run(cgra(), "fp32", convolution())
    assert found.subgraphs.tile_count.tolist() == [392]
    assert found.subgraphs.wave_count.tolist() == [25]
    assert_close(compute_s(found), 25 * (256 * 72 + 32) / 1e9)
    assert_close(float(found.subgraphs.memory_s[0]), 4 * MOVED / DRAM_BYTES_PER_S)
    assert_close(float(found.subgraphs.launch_s[0]), LAUNCH_S + CONFIGURATION / DRAM_BYTES_PER_S)


def test_a_configuration_is_read_once_and_goes_to_every_unit() -> None:
    found = run(cgra(), "fp32", convolution())
    assert found.subgraphs.dram_bytes.tolist() == [4 * MOVED + CONFIGURATION]
    assert count(found, "configuration", "load") == 16 * CONFIGURATION
    assert count(found, "configuration", "start") == 1
    assert count(found, "functional_unit", "fp32_mac") == MACS
    # half of the last wave, and the fill: lanes wait
    assert_close(count(found, "functional_unit", "idle_cycle"), 25 * 18_464 * 16 * 8 - MACS)


@pytest.mark.parametrize(("precision", "item"), [("fp16", 2), ("int8", 1)])
def test_narrow_precisions_save_dram_and_nothing_on_chip(precision: str, item: int) -> None:
    wide, narrow = (run(cgra(), one, convolution()) for one in ("fp32", precision))
    assert compute_s(narrow) == compute_s(wide)
    assert count(narrow, "pmu", "read") == count(wide, "pmu", "read")
    assert narrow.subgraphs.dram_bytes.tolist() == [item * MOVED + CONFIGURATION]


def test_a_chain_of_operations_streams_through_the_stages() -> None:
    x = torch.empty(1, 16_384, device="meta")
    one, six = (run(cgra(), "fp32", columns(Chain(length), x)) for length in (1, 6))
    # 64 tiles of 256 elements in four waves: 32 vectors and 32 to fill, for each operator
    assert_close(compute_s(one), 4 * (32 + 32) / 1e9)
    assert_close(compute_s(six), 6 * compute_s(one))
    assert one.latency_fs < six.latency_fs < 6 * one.latency_fs


def test_what_rides_on_a_product_takes_no_time() -> None:
    plain = nn.Conv2d(64, 128, 3, padding=1, bias=False, device="meta")
    fused = nn.Sequential(plain, nn.ReLU())
    x = torch.empty(1, 64, 28, 28, device="meta")
    alone, together = (run(cgra(), "fp32", columns(module, x)) for module in (plain, fused))
    assert compute_s(together) == compute_s(alone)
    apart = run(cgra(), "fp32", columns(fused, x), runtime="graph")
    assert compute_s(apart) > compute_s(together)
    # the relu is configured too
    assert count(together, "configuration", "load") == 17 * CONFIGURATION
