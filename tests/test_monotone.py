"""More work is never faster, and more to do it with never slower: on chips as they are, power caps included.

Products, convolutions, attention and tokens with their caches, one at a time, and a whole model.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

import pytest

from chips import CLASSES
from convolution import run as evaluate
from gpu_case import single
from joulemap.domain.hardware import Hardware
from joulemap.model.workload import WorkloadColumns
from joulemap.system.errors import UnsupportedError
from models import shipped
from variants import with_bandwidth

EACH: Final = pytest.mark.parametrize("hardware", CLASSES)

CAPPED: Final = 2e-3
"""What a clock under the cap may take more than a lower one: compute and memory of a kernel share one time."""

LONGER: Final[dict[str, Callable[[int], WorkloadColumns]]] = {
    "rows": lambda size: single(f"gemm(m={size},n=1024,k=1024)"),
    "outputs": lambda size: single(f"gemm(m=256,n={size},k=1024)"),
    "inner": lambda size: single(f"gemm(m=256,n=1024,k={size})"),
    "samples": lambda size: single(_conv(size, 64, 28)),
    "channels": lambda size: single(_conv(1, size, 14)),
    "positions": lambda size: single(_conv(1, 32, size)),
    "groups": lambda size: single(f"{_conv(1, 24 * size, 14)[:-1]},groups={size})"),
    "queries": lambda size: single(_attention(size, 0)),
    "cache": lambda size: single(_attention(1, size)),
    "batch": lambda size: shipped("resnet18", size),
}
"""What grows with a size -> the work."""

SIZES: Final[dict[str, Sequence[int]]] = {
    "groups": (2, 3, 5, 8, 13, 24), "positions": (7, 14, 28, 56, 112), "batch": (1, 2, 3, 8, 17, 32),
}  # fmt: skip
MOSTLY: Final = (16, 33, 64, 100, 128, 257, 512, 1000, 2048)


def _conv(batch: int, channels: int, size: int) -> str:
    sides = f"channels_in={channels},channels_out={channels},size={size}"
    return f"conv2d(batch={batch},{sides},kernel=3,padding=1)"


def _attention(queries: int, cached: int) -> str:
    return f"attention(batch=1,heads=8,kv_heads=8,head_dim=64,queries={queries},cached={cached})"


OPEN: Final[dict[tuple[str, str], str]] = {
    **{
        (one, "channels"): "a library takes Winograd's algorithm from 128 channels on, of fewer multiplications"
        for one in ("apple_m2", "apple_m4", "jetson_orin_nano_8gb", "jetson_orin_nx_16gb")
    },
    ("inferentia2", "queries"): "a block of rows that others fill better",
    ("trainium1", "queries"): "as inferentia2",
    ("gb10", "samples"): "an engine runs a batch in equal parts, and 257 samples have none that fit the cache",
    ("h20", "engine"): "0.04 % of one model at fp8, not explained yet",
}
"""Hardware and what grows -> why it does not hold there yet."""


def _expect(hardware: Hardware, what: str) -> None:
    if (hardware.id, what) in OPEN:
        pytest.xfail(OPEN[hardware.id, what])


@cache
def grown(what: str) -> tuple[WorkloadColumns, ...]:
    return tuple(LONGER[what](size) for size in SIZES.get(what, MOSTLY))


def runs(hardware: Hardware, work: WorkloadColumns) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield (precision, runtime) and latency, of what the hardware can hold."""
    for precision, runtime in itertools.product(hardware.peaks, ("graph", "fused", "engine")):
        try:
            yield (precision, runtime), float(evaluate(hardware, precision, work, runtime).latency_fs)
        except UnsupportedError:
            continue


@pytest.mark.slow
@pytest.mark.parametrize("what", LONGER)
@EACH
def test_more_work_is_never_faster(hardware: Hardware, what: str) -> None:
    _expect(hardware, what)
    found = [dict(runs(hardware, work)) for work in grown(what)]
    for (less, more), key in itertools.product(itertools.pairwise(found), found[0]):
        if key in less and key in more:
            # each kernel's time is rounded to a femtosecond
            assert more[key] >= less[key] * (1.0 - 1e-9), (key, [one.get(key) for one in found])


@pytest.mark.slow
@pytest.mark.parametrize("what", ["outputs", "samples", "queries", "cache", "batch"])
@EACH
def test_a_higher_clock_is_never_slower(hardware: Hardware, what: str) -> None:
    full_mhz = hardware.full_clock.value / 1e6
    modes = [f"{share * full_mhz:.0f}MHz" for share in (0.6, 0.8, 0.9, 0.95, 0.98)]
    chips = [*(hardware.in_mode(mode) for mode in modes), hardware]
    _assert_never_slower(chips, grown(what)[2::3], CAPPED)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["outputs", "samples", "queries", "cache", "batch"])
@EACH
def test_more_bandwidth_is_never_slower(hardware: Hardware, what: str) -> None:
    _expect(hardware, "bandwidth")
    chips = [with_bandwidth(hardware, factor) for factor in (1.0, 1.2, 2.0, 5.0)]
    _assert_never_slower(chips, grown(what)[2::3], CAPPED)


@pytest.mark.slow
@EACH
def test_an_engine_is_never_slower_than_a_compiler(hardware: Hardware) -> None:
    _expect(hardware, "engine")
    for model, batch in itertools.product(("resnet18", "mobilenet_v3_small", "regnet_y_400mf", "vit_b_16"), (1, 8, 64)):
        found = dict(runs(hardware, shipped(model, batch)))
        for precision in hardware.peaks:
            if (precision, "fused") in found:
                assert found[precision, "engine"] <= found[precision, "fused"] * (1.0 + 1e-9), (model, batch, precision)


@pytest.mark.slow
@EACH
def test_nor_is_one_of_a_product_that_nothing_follows(hardware: Hardware) -> None:
    _expect(hardware, "engine")
    for size in (7, 28, 112):
        found = dict(runs(hardware, single(_conv(1, 64, size))))
        for precision in hardware.peaks:
            if (precision, "fused") in found:
                assert found[precision, "engine"] <= found[precision, "fused"] * (1.0 + 1e-9), (size, precision)


def _assert_never_slower(chips: Sequence[Hardware], works: Sequence[WorkloadColumns], tolerance: float) -> None:
    for work in works:
        found = [dict(runs(chip, work)) for chip in chips]
        for (worse, better), key in itertools.product(itertools.pairwise(found), found[0]):
            if key in worse and key in better:
                assert better[key] <= worse[key] * (1.0 + tolerance), (key, [one.get(key) for one in found])
