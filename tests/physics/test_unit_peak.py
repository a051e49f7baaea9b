"""No unit does more operations per second than it has lanes and clocks: every kind of operator on every class."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torchvision import ops

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.physics.architecture import find_architecture
from joulemap.physics.kernel import form_kernels
from joulemap.physics.timing import place
from joulemap.physics.workload import WorkloadColumns, columns_of
from models import Function, meta, trace


def boxes(count: int) -> tuple[Tensor, Tensor]:
    return meta(count, 4), meta(count)


def ids(*shape: int) -> Tensor:
    return torch.zeros(*shape, dtype=torch.int64, device="meta")


LONG, ROWS, IMAGE = meta(2**22), meta(2048, 2048), meta(4, 16, 256, 256)

OPERATORS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "add": (torch.add, (LONG, LONG)),
    "gelu": (functional.gelu, (LONG,)),
    "pow": (lambda x: x.pow(1.5), (LONG,)),
    "lerp": (lambda x: x.lerp(x, 0.5).clamp(0, 1).mul(x).add(x).sin(), (LONG,)),
    "rand": (torch.rand_like, (LONG,)),
    "randn": (torch.randn_like, (LONG,)),
    "sum": (torch.sum, (LONG,)),
    "argmax": (lambda x: x.argmax(-1), (ROWS,)),
    "var": (lambda x: x.var(-1), (ROWS,)),
    "softmax": (lambda x: x.softmax(-1), (ROWS,)),
    "layer_norm": (lambda x: functional.layer_norm(x, (2048,)), (ROWS,)),
    "sort": (lambda x: x.sort()[0], (LONG,)),
    "sort rows": (lambda x: x.sort(-1)[0], (ROWS,)),
    "topk": (lambda x: x.topk(100)[0], (LONG,)),
    "median": (torch.median, (LONG,)),
    "cumsum": (lambda x: x.cumsum(0), (LONG,)),
    "logcumsumexp": (lambda x: x.logcumsumexp(-1), (ROWS,)),
    "nonzero": (torch.nonzero, (LONG,)),
    "unique": (torch.unique, (LONG,)),
    "searchsorted": (torch.searchsorted, (meta(65536), LONG)),
    "bincount": (lambda x: torch.bincount(x, minlength=16), (ids(2**20),)),
    "nms": (lambda x, s: ops.nms(x, s, 0.5), boxes(8400)),
    "batched_nms": (lambda x, s: ops.batched_nms(x, s, ids(len(s)), 0.5), boxes(4096)),
    "roi_align": (lambda x, b: ops.roi_align(x, [b], 7), (IMAGE[:1], meta(1000, 4))),
    "cdist": (lambda x, y: torch.cdist(x, y), (meta(2048, 64), meta(2048, 64))),
    "max_pool": (lambda x: functional.max_pool2d(x, 13, 1, 6), (IMAGE,)),
    "bicubic": (lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"), (IMAGE,)),
    "roll": (lambda x: x.roll((3, 5), (0, 1)), (ROWS,)),
    "gather": (lambda x, i: x[i], (ROWS, ids(4096))),
    "fft": (lambda x: torch.fft.rfft(x).real, (LONG,)),
    "cholesky": (torch.linalg.cholesky, (meta(512, 512),)),
}  # fmt: skip


@cache
def columns(name: str) -> WorkloadColumns:
    function, inputs = OPERATORS[name]
    return columns_of(trace(Function(function), *inputs))


def seconds_of(name: str, chip: str, precision: str = "fp32") -> float:
    hardware = load_catalogue().find(chip)
    kernels = form_kernels(columns(name), precision, "graph")
    placement = place(kernels, hardware, find_architecture(hardware.architecture))
    return float((placement.launch_s + np.maximum(placement.compute_s, placement.memory_s)).sum())


def test_non_maximum_suppression_takes_a_step_for_each_box_that_survives() -> None:
    kernels = form_kernels(columns("nms"), "fp32", "graph")
    pairs = 2800 * 8400 - 2800 * 8401 // 2  # a third survives; each is compared with the half of 8400 on average
    assert kernels.work.elementwise_count.tolist() == [13.0 * pairs]
    assert kernels.work.step_count.tolist() == [2800.0]
    gpu, cpu = load_catalogue().find("h100_sxm5"), load_catalogue().find("xeon_8490h")
    clock = gpu.clock_boost.value if gpu.clock_boost else gpu.clock.value
    step = gpu.coefficient("step_cost.local") + gpu.coefficient("chain_clocks.nms") / clock
    # the comparisons of a step may overlap with its chain in part: the norm of both is at most their sum
    least = 2800 * step
    rest = 13.0 * pairs / (gpu.unit_count.value * gpu.geometry["issue_slots_per_unit"].value * clock)
    assert least <= seconds_of("nms", "h100_sxm5") <= least + rest + 20e-6
    # one core compares all pairs, whatever the number of cores
    clocks = 13.0 * pairs * cpu.coefficient("serial_clocks.nms")
    assert_close(seconds_of("nms", "xeon_8490h"), clocks / cpu.peaks["fp32"].clock_hz, rel=0.01)


def test_a_core_sorts_a_row_and_cores_share_rows() -> None:
    cpu = load_catalogue().find("xeon_8490h")
    units = cpu.peaks["fp32"].unit_count
    second = cpu.peaks["fp32"].clock_hz / cpu.coefficient("serial_clocks.sort")
    assert_close(seconds_of("sort", "xeon_8490h"), 22 * 2**22 / second, rel=0.01)
    turns = -(-2048 // units)
    assert_close(seconds_of("sort rows", "xeon_8490h"), turns * 11 * 2048 / second, rel=0.05)
