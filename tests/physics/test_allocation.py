"""What a discrete allocation wastes: tiles, waves, units and padding worked out by hand, and as SQL shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare import assert_close
from convolution import run
from gpu_case import single
from joulemap.catalog.load import load_catalogue
from joulemap.workspace import Workspace

COLUMNS = "units_used_count, units_total_count, tile_count, wave_count, wave_fill_fraction, padding_fraction"

CONV = "conv2d(batch={},channels_in={},channels_out={},size={},kernel={},padding={})"


@pytest.mark.parametrize(
    ("name", "hardware", "precision", "used", "units", "tiles", "waves", "useful"),
    [
        # 7 x 7 positions by 512 channels in blocks of 32 x 32: 2 x 16 blocks; of their 64 rows 49 are outputs
        (CONV.format(1, 512, 512, 7, 3, 1), "kpu_t256", "fp32", 32, 51, 32, 1, 49 / 64),
        # the same MACs from 56 x 56 positions of 64 channels: 98 x 2 blocks in four waves, nothing padded
        (CONV.format(1, 64, 64, 56, 3, 1), "kpu_t256", "fp32", 51, 51, 196, 4, 1.0),
        # 32 x 32 is the smallest tile of fp32: 132 products of one each fill the chip, one more has a wave to itself
        ("bmm(b=132,m=32,n=32,k=64)", "h100_sxm5", "fp32", 132, 132, 132, 1, 1.0),
        ("bmm(b=133,m=32,n=32,k=64)", "h100_sxm5", "fp32", 132, 132, 133, 2, 1.0),
        # K = N = 129 take 2 x 2 weight tiles of 128 x 128; 256 rows are one block of each
        ("gemm(m=256,n=129,k=129)", "tpu_v4", "bf16", 4, 8, 4, 1, 129**2 / 256**2),
        ("gemm(m=256,n=128,k=128)", "tpu_v4", "bf16", 1, 8, 1, 1, 1.0),
        # loading the weights takes as long as 128 rows: an array is not free before, so 100 rows occupy it as long
        ("gemm(m=100,n=128,k=128)", "tpu_v4", "bf16", 1, 8, 1, 1, 100 / 128),
        # register blocks of 6 rows x 16 lanes over 60 cores: the 61st waits for a second wave
        ("gemm(m=360,n=16,k=64)", "xeon_8490h", "fp32", 60, 60, 60, 1, 1.0),
        ("gemm(m=366,n=16,k=64)", "xeon_8490h", "fp32", 60, 60, 61, 2, 1.0),
        # 17 x 17 outputs take 3 x 2 blocks, 18 x 32
        ("gemm(m=17,n=17,k=64)", "xeon_8490h", "fp32", 6, 60, 6, 1, 17 * 17 / (18 * 32)),
        # 3 x 3 positions in blocks of 8, 17 channels in blocks of 16, both ways; four images on three cores
        (CONV.format(4, 17, 17, 3, 1, 0), "dpu_b4096x3_zcu102", "int8", 3, 3, 4, 2, 9 * 17 * 17 / (16 * 32 * 32)),
        # 65 is two blocks of 64, in all three dimensions
        ("gemm(m=65,n=65,k=65)", "tda4vm_c7x_mma", "int8", 1, 1, 4, 4, (65 / 128) ** 3),
        # 5 x 4 blocks of 32 x 32 outputs on 16 cores: four wait for a second wave; of the 128 columns 120 are outputs
        ("gemm(m=160,n=120,k=4096)", "cloud_ai_100_pro", "int8", 16, 16, 20, 2, 120 / 128),
        # 2 x 2 weight tiles of 128 x 128 on the one engine of two that has a single request, 512 rows each
        ("gemm(m=512,n=129,k=129)", "inferentia2", "bf16", 1, 2, 4, 4, 129**2 / 256**2),
        # tiles of 16 x 16 outputs, 65 of them on 64 units; K = 17 takes two vectors of 16 lanes
        ("gemm(m=1040,n=16,k=17)", "plasticine", "fp32", 64, 64, 65, 2, 17 / 32),
    ],
)
def test_tiles_fill_waves_of_units(
    name: str, hardware: str, precision: str, used: int, units: int, tiles: int, waves: int, useful: float
) -> None:
    found = run(load_catalogue().hardware[hardware], precision, single(name))
    rows = found.subgraphs
    assert (rows.units_used_count.tolist(), rows.tile_count.tolist(), rows.wave_count.tolist()) == (
        [used],
        [tiles],
        [waves],
    )
    assert found.units_total_count == units
    assert_close(found.mac_count / float(rows.executed_mac_count[0]), useful)


def test_shares_are_shares_and_a_subgraph_adds_up_its_kernels(database: Path) -> None:
    rows = Workspace(database).sql(
        f"SELECT hardware, {COLUMNS}, mac_count, executed_mac_count FROM subgraph_results"
    ).records()  # fmt: skip
    assert len(rows) > 200
    for row in rows:
        assert row["units_used_count"] <= row["units_total_count"]
        assert row["executed_mac_count"] >= row["mac_count"]
        if row["wave_count"]:
            places = row["wave_count"] * row["units_total_count"]
            assert_close(row["wave_fill_fraction"], row["tile_count"] / places)
            assert row["wave_fill_fraction"] <= 1.0
        else:
            assert row["wave_fill_fraction"] is None
            # the units are the vector units of its two cores, not its eight MXUs
            assert row["hardware"] != "tpu_v4" or row["units_used_count"] == row["units_total_count"] == 2
        if row["mac_count"]:
            assert_close(1.0 - row["padding_fraction"], row["mac_count"] / row["executed_mac_count"])
        else:
            assert row["padding_fraction"] is None
