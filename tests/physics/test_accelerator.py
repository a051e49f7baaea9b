"""DSPs, NPUs, DPUs and CGRAs: what holds on every one of them, whatever its engine looks like."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import chips
from compare import assert_close
from convolution import MACS, convolution, count, run
from joulemap.catalog.chip import load_hardware
from joulemap.catalog.starter import minimal_text
from joulemap.physics.kernel import form_kernels
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.system.errors import UnsupportedError
from models import ConvBlock, Depthwise, Fourier, Residual, SelfAttention, columns, image, trace_zoo
from sample import each

CATEGORIES = {
    "dsp": {
        "vliw_front_end",
        "scalar",
        "vector_unit",
        "matrix_unit",
        "register_file",
        "local_memory",
        "dma",
        "synchronization",
        "dram",
    },
    "npu": {"tensor_engine", "buffers", "vector_engine", "sram", "noc", "scheduler", "off_chip"},
    "dpu": {
        "convolution_engine",
        "fpga_fabric",
        "misc_engine",
        "on_chip_buffers",
        "control",
        "data_movers",
        "processing_system",
        "off_chip",
    },
    "cgra": {
        "pattern_compute",
        "configuration",
        "pattern_memory",
        "interconnect",
        "control",
        "address_generation",
        "off_chip",
    },
}
ALL = [one for one in chips.ALL if one.architecture in CATEGORIES]
SETTINGS = [pytest.param(one, precision, id=f"{one.id}-{precision}") for one in ALL for precision in one.peaks]


@cache
def resnet18(batch: int) -> WorkloadColumns:
    return columns_of(trace_zoo("resnet18", batch))


@cache
def works() -> dict[str, WorkloadColumns]:
    return {
        "resnet18": resnet18(1),
        "convolution": convolution(),
        "block": columns(ConvBlock(), image(2, 3, 8)),
        "residual": columns(Residual(), image(1, 4, 8)),
        "depthwise": columns(Depthwise(), image(1, 8, 6)),
        "self attention": columns(SelfAttention(), torch.empty(2, 5, 16, device="meta")),
        "uncounted": columns(Fourier(), torch.empty(2, 8, device="meta")),
    }


def fitting(hardware: Hardware) -> dict[str, WorkloadColumns]:
    """Return the works that fit into the chip's memory: the weights of resnet18 exceed that of a microcontroller."""
    fits = hardware.memory_capacity.value > 64e6
    return {name: work for name, work in works().items() if fits or name != "resnet18"}


@pytest.mark.parametrize("architecture", CATEGORIES)
def test_the_smallest_file_of_a_class_is_enough(architecture: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(minimal_text(architecture))
    hardware = load_hardware(path)
    for precision in hardware.peaks:
        assert run(hardware, precision, convolution()).latency_fs > 0


@each(ALL, lambda one: one.id)
def test_a_reference_table_has_at_least_fifteen_actions_in_the_categories_of_its_class(hardware: Hardware) -> None:
    actions = [one for one in hardware.reference if one.category not in ("board", "static")]
    assert len(actions) >= 15
    assert {one.category for one in actions} - {"links"} == CATEGORIES[hardware.architecture]


@pytest.mark.sample(8)
@pytest.mark.parametrize("runtime", RUNTIME_NAMES)
@pytest.mark.parametrize(("hardware", "precision"), SETTINGS)
def test_no_run_moves_less_than_what_enters_and_leaves(hardware: Hardware, precision: str, runtime: str) -> None:
    for name, work in fitting(hardware).items():
        found = run(hardware, precision, work, runtime)
        kernels = form_kernels(work, precision, runtime)
        compulsory = kernels.entering_bytes.sum() + kernels.leaving_bytes.sum()
        if "resident_programs" not in hardware.geometry:
            compulsory += kernels.weight_bytes.sum()
        assert found.subgraphs.dram_bytes.sum() >= compulsory * (1.0 - 1e-12), name
        lines = count(found, "dram", "read") + count(found, "dram", "write")
        if "host_link_lanes" in hardware.geometry:
            lines += sum(count(found, "host_link", one) for one in ("read", "write", "input", "output"))
        assert_close(lines, float(found.subgraphs.dram_bytes.sum()), rel=1e-9)


@pytest.mark.sample(8)
@pytest.mark.parametrize(("hardware", "precision"), SETTINGS)
def test_macs_are_priced_once_each(hardware: Hardware, precision: str) -> None:
    rows = [row for row, one in enumerate(hardware.reference) if one.action.endswith("_mac")]
    macs = {"resnet18": 1_814_073_344, "convolution": MACS}
    for name in macs.keys() & fitting(hardware).keys():
        found = run(hardware, precision, works()[name])
        counted = found.ledger.action_count[np.isin(found.ledger.action_index, rows)].sum()
        assert_close(float(counted), float(macs[name]), rel=1e-12)


@each(ALL, lambda one: one.id)
def test_a_missing_precision_is_refused_with_those_that_exist(hardware: Hardware) -> None:
    with pytest.raises(UnsupportedError, match=f"{hardware.id} has no fp64; it has {', '.join(hardware.peaks)}"):
        run(hardware, "fp64", convolution())
