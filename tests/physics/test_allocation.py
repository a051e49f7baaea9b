"""What a discrete allocation wastes, as SQL shows it: tiles, waves, units and padding worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chips import EVERY
from compare import assert_close
from convolution import convolution
from joulemap.physics.architecture import find_architecture
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.workload import WorkloadColumns
from joulemap.workspace import Workspace
from models import Depthwise, Gemm, Mlp, Residual, columns, image

PROGRAM = """
import torch
from torch import nn

def product(m, n, k):
    return nn.Linear(k, n, bias=False), torch.zeros(1, m, k)

def convolution(size, channels, outputs, kernel, batch):
    module = nn.Conv2d(channels, outputs, kernel, padding=kernel // 2, bias=False)
    return module, torch.zeros(batch, channels, size, size)
"""

COLUMNS = "units_used_count, units_total_count, tile_count, wave_count, wave_fill_fraction, padding_fraction"

Allocate = Callable[..., tuple[Any, ...]]


@pytest.fixture(scope="module")
def allocate(tmp_path_factory: pytest.TempPathFactory) -> Allocate:
    """Return the COLUMNS of the one subgraph of a product or convolution on a chip."""
    folder = tmp_path_factory.mktemp("allocation")
    program = folder / "shape.py"
    program.write_text(PROGRAM)
    workspace = Workspace(folder / "results.duckdb")

    def find(shape: str, hardware: str, precision: Precision, **arguments: int) -> tuple[Any, ...]:
        model = shape if "(" in shape else f"{program}:{shape}"
        tally = workspace.evaluate([model], hardware=(hardware,), precision=precision, arguments=arguments)
        assert tally.evaluated_count == 1  # so that it is the newest
        ((*values,),) = workspace.sql(
            f"SELECT {COLUMNS} FROM subgraph_results WHERE run_id = (SELECT max(run_id) FROM runs)"
        ).rows
        return tuple(values)

    return find


@pytest.mark.slow
def test_a_small_feature_map_leaves_a_kpu_mostly_idle(allocate: Allocate) -> None:
    # 7 x 7 positions by 512 channels in blocks of 32 x 32: 2 x 16 blocks; of their 64 rows 49 are outputs
    late = allocate("convolution", "kpu_t256", "fp32", size=7, channels=512, outputs=512, kernel=3, batch=1)
    assert late == (32, 51, 32, 1, 32 / 51, 1 - 49 / 64)
    # the same MACs from 56 x 56 positions of 64 channels: 98 x 2 blocks in four waves, nothing padded
    early = allocate("convolution", "kpu_t256", "fp32", size=56, channels=64, outputs=64, kernel=3, batch=1)
    assert early == (51, 51, 196, 4, 196 / 204, 0.0)


def test_one_thread_block_too_many_is_another_wave(allocate: Allocate) -> None:
    # 32 x 32 is the smallest tile of fp32: 132 products of one each fill the chip, one more has a wave to itself
    assert allocate("bmm(b=132,m=32,n=32,k=64)", "h100_sxm5", "fp32") == (132, 132, 132, 1, 1.0, 0.0)
    assert allocate("bmm(b=133,m=32,n=32,k=64)", "h100_sxm5", "fp32") == (132, 132, 133, 2, 133 / 264, 0.0)


@pytest.mark.slow
def test_a_systolic_array_is_padded_to_its_sides(allocate: Allocate) -> None:
    # K = N = 129 take 2 x 2 weight tiles of 128 x 128; 256 rows are one block of each
    used = allocate("product", "tpu_v4", "bf16", m=256, n=129, k=129)
    assert used == (4, 8, 4, 1, 4 / 8, 1 - 129**2 / 256**2)
    assert allocate("product", "tpu_v4", "bf16", m=256, n=128, k=128) == (1, 8, 1, 1, 1 / 8, 0.0)
    # loading the weights takes as long as 128 rows: an array is not free before, so 100 rows occupy it as long
    assert allocate("product", "tpu_v4", "bf16", m=100, n=128, k=128)[-1] == 1 - 100 / 128


def test_what_runs_on_the_vector_unit_has_no_tile_and_no_padding(allocate: Allocate) -> None:
    # the units are the vector units of its two cores, not its eight MXUs
    assert allocate("product", "tpu_v4", "bf16", m=1, n=8, k=8) == (2, 2, 0, 0, None, 0.0)


def test_a_cpu_has_as_many_places_as_cores(allocate: Allocate) -> None:
    # register blocks of 6 rows x 16 lanes over 60 cores: the 61st waits for a second wave
    assert allocate("product", "xeon_8490h", "fp32", m=60 * 6, n=16, k=64) == (60, 60, 60, 1, 1.0, 0.0)
    assert allocate("product", "xeon_8490h", "fp32", m=61 * 6, n=16, k=64) == (60, 60, 61, 2, 61 / 120, 0.0)
    # 17 x 17 outputs take 3 x 2 blocks, 18 x 32
    assert allocate("product", "xeon_8490h", "fp32", m=17, n=17, k=64) == (
        6, 60, 6, 1, 6 / 60, 1 - 17 * 17 / (18 * 32),
    )  # fmt: skip


def test_a_dpu_pads_pixels_and_channels_and_deals_out_images(allocate: Allocate) -> None:
    # 3 x 3 positions in blocks of 8, 17 channels in blocks of 16, both ways; four images on three cores
    found = allocate("convolution", "dpu_b4096x3_zcu102", "int8", size=3, channels=17, outputs=17, kernel=1, batch=4)
    assert found == (3, 3, 4, 2, 4 / 6, 1 - 9 * 17 * 17 / (16 * 32 * 32))


def test_a_matrix_engine_of_a_dsp_is_padded_in_all_three_dimensions(allocate: Allocate) -> None:
    # 65 is two blocks of 64
    found = allocate("product", "tda4vm_c7x_mma", "int8", m=65, n=65, k=65)
    assert found == (1, 1, 4, 4, 1.0, 1 - (65 / 128) ** 3)


def test_an_npu_that_keeps_outputs_is_padded_to_their_block(allocate: Allocate) -> None:
    # 5 x 4 blocks of 32 x 32 on 16 cores: four wait for a second wave; of the 128 columns 120 are outputs
    found = allocate("product", "cloud_ai_100_pro", "int8", m=160, n=120, k=4096)
    assert found == (16, 16, 20, 2, 20 / 32, 1 - 120 / 128)


def test_an_npu_that_keeps_weights_is_padded_to_their_tile(allocate: Allocate) -> None:
    # 2 x 2 weight tiles of 128 x 128 on the one engine of two that has a single request, 512 rows each
    found = allocate("product", "inferentia2", "bf16", m=512, n=129, k=129)
    assert found == (1, 2, 4, 4, 0.5, 1 - 129**2 / 256**2)


def test_a_cgra_pads_the_inner_dimension_to_its_lanes(allocate: Allocate) -> None:
    # tiles of 16 x 16 outputs, 65 of them on 64 units; K = 17 takes two vectors of 16 lanes
    found = allocate("product", "plasticine", "fp32", m=65 * 16, n=16, k=17)
    assert found == (64, 64, 65, 2, 65 / 128, 1 - 17 / 32)


def works() -> tuple[WorkloadColumns, ...]:
    import torch

    return (
        columns(Residual(), image(2, 4, 9)),
        columns(Depthwise(), image(3, 8, 7)),
        columns(Mlp(), torch.empty(5, 8, device="meta")),
        columns(Gemm(), torch.empty(100, 1024, device="meta")),
        convolution(),
        convolution(groups=4, batch=3),
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("hardware", EVERY)
def test_slots_are_never_fewer_than_the_macs(hardware: Any) -> None:
    architecture = find_architecture(hardware.architecture)
    for work in works():
        for precision in hardware.peaks:
            for runtime in RUNTIME_NAMES:
                kernels = form_kernels(work, precision, runtime)
                executed = architecture.place(kernels, hardware).executed_macs
                macs = kernels.work.mac_count
                assert (executed >= macs).all(), (precision, runtime)
                assert (executed[macs == 0] == 0).all(), (precision, runtime)


def test_shares_are_shares_and_a_subgraph_adds_up_its_kernels(database: Path) -> None:
    rows = Workspace(database).sql(
        f"SELECT run_id, {COLUMNS}, mac_count, executed_mac_count FROM subgraph_results"
    ).records()  # fmt: skip
    assert len(rows) > 200
    for row in rows:
        assert row["units_used_count"] <= row["units_total_count"]
        assert row["executed_mac_count"] >= row["mac_count"]
        assert row["wave_fill_fraction"] is None or 0.0 < row["wave_fill_fraction"] <= 1.0
        if row["mac_count"]:
            assert_close(1.0 - row["padding_fraction"], row["mac_count"] / row["executed_mac_count"], rel=1e-12)
        else:
            assert row["padding_fraction"] is None
