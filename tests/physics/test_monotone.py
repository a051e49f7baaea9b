"""More work is never faster and more resources are never slower, on every chip as it is, its power cap included.

The work is a product, a convolution, attention with its cache, or a whole model. A test evaluates all sizes of all
works on one chip together: one at a time, the same latencies took ten times as long.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final, cast

import attrs
import pytest

from chips import CLASSES
from gpu_case import single
from joulemap.physics.bulk import Together
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.stream import DIVIDED, STREAM_UNITS
from joulemap.physics.workload import WorkloadColumns
from models import shipped
from variants import with_bandwidth

EACH: Final = pytest.mark.parametrize("hardware", CLASSES)

Latencies = Mapping[tuple[str, str], Sequence[int | None]]
"""(precision, runtime) -> the latency of each work in femtoseconds; None where the chip cannot run it."""

RUNTIMES: Final = ("graph", "fused", "engine")

BATCHES: Final = (1, 2, 3, 4, 6)

ROUNDED: Final = 1e-9
"""Relative slack of a latency: the time of each kernel is rounded to a femtosecond."""

CAPPED: Final = 8e-3
"""Relative slack between two clocks under a power cap, whose delay gives a kernel the mean of two clocks."""

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
"""Quantity that grows -> the work at each of its sizes."""

SIZES: Final[dict[str, Sequence[int]]] = {
    "groups": (2, 3, 5, 8, 13, 24), "positions": (7, 14, 28, 56, 112), "batch": (1, 2, 3, 8, 17, 32),
}  # fmt: skip
MOSTLY: Final = (16, 33, 64, 100, 128, 257, 512, 1000, 2048)


def _conv(batch: int, channels: int, size: int) -> str:
    sides = f"channels_in={channels},channels_out={channels},size={size}"
    return f"conv2d(batch={batch},{sides},kernel=3,padding=1)"


def _attention(queries: int, cached: int) -> str:
    return f"attention(batch=1,heads=8,kv_heads=8,head_dim=64,queries={queries},cached={cached})"


RESOURCED: Final = ("outputs", "samples", "queries", "cache", "batch")
"""What grows in the works that are run at several clocks and bandwidths."""

OPEN: Final[dict[tuple[str, str], str]] = {
    **{
        (one, "items"): "a batch of 2 leaves cores idle that one of 3 fills: 0.8 % slower"
        for one in ("epyc_9755", "epyc_9965", "kpu_t768")
    },
}
"""(chip, what grows) -> why the rule does not hold there; a test fails once it does."""


def list_sizes(what: str) -> Sequence[int]:
    """Return the sizes of a work, ascending."""
    return SIZES.get(what, MOSTLY)


@cache
def works() -> Together:
    """Return every work at every size, in the order of `LONGER`."""
    return Together(tuple(make(size) for what, make in LONGER.items() for size in list_sizes(what)))


@cache
def some_works() -> Together:
    """Return every third size of the works that are run at several clocks and bandwidths."""
    return Together(tuple(LONGER[what](size) for what in RESOURCED for size in list_sizes(what)[2::3]))


@cache
def compiled_works() -> Together:
    """Return whole models at several batches, and one convolution that nothing follows."""
    models = itertools.product(("resnet18", "mobilenet_v2", "vit_b_16"), (1, 8, 64))
    alone = [single(_conv(1, 64, size)) for size in (7, 28, 112)]
    return Together((*(shipped(model, batch) for model, batch in models), *alone))


@cache
def gated_works() -> Together:
    """Return models with SiLU, hard swish or gates, which TensorRT computes in kernels of their own."""
    models = itertools.product(("mobilenet_v3_small", "efficientnet_b0", "regnet_y_400mf"), (1, 8, 64))
    return Together(tuple(shipped(model, batch) for model, batch in models))


@cache
def batched_works(model: str) -> Together:
    """Return a model at batches that are multiples of smaller ones."""
    return Together(tuple(shipped(model, batch) for batch in BATCHES))


def without_turn(hardware: Hardware) -> Hardware:
    """Return a chip whose engines' convolutions do no work outside their loop; a GPU's alone have any."""
    coefficients = dict(hardware.coefficients)
    if "turn_clocks" in coefficients:
        coefficients["turn_clocks"] = attrs.evolve(coefficients["turn_clocks"], value=0.0)
    return attrs.evolve(hardware, coefficients=coefficients)


def find_latencies(hardware: Hardware, together: Together) -> Latencies:
    """Return the latencies of works at each precision and runtime of a chip; at least one is known."""
    found = {
        (precision, runtime): [one.latency_fs for one in together.evaluate(hardware, precision, runtime)]
        for precision, runtime in itertools.product(hardware.peaks, RUNTIMES)
    }
    assert any(one is not None for each in found.values() for one in each)
    return found


def is_above(one: int | None, other: int | None, slack: float) -> bool:
    """Whether a latency exceeds another, both known, by more than a slack."""
    return one is not None and other is not None and one > other * (1.0 + slack)


def find_slower_engines(hardware: Hardware, together: Together) -> dict[tuple[int, str], tuple[int | None, int | None]]:
    """Return the latencies by engine and compiler of works that an engine runs slower, by number and precision."""
    found = find_latencies(hardware, together)
    return {
        (number, precision): (engine, compiler)
        for precision in hardware.peaks
        for number, (engine, compiler) in enumerate(
            zip(found[precision, "engine"], found[precision, "fused"], strict=True)
        )
        if is_above(engine, compiler, ROUNDED)
    }


def check_never_slower(chips: Sequence[Hardware]) -> None:
    """Assert that each chip runs every work at least as fast as the chip before it."""
    found = [find_latencies(chip, some_works()) for chip in chips]
    for (worse, better), key in itertools.product(itertools.pairwise(found), found[0]):
        for number, (before, after) in enumerate(zip(worse[key], better[key], strict=True)):
            assert not is_above(after, before, CAPPED), (key, number, [one[key][number] for one in found])


@pytest.mark.slow
@EACH
def test_more_work_is_never_faster(hardware: Hardware) -> None:
    faster: dict[str, object] = {}
    for key, latencies in find_latencies(hardware, works()).items():
        each = iter(latencies)
        for what in LONGER:
            sizes = list(itertools.islice(each, len(list_sizes(what))))
            if any(is_above(less, more, ROUNDED) for less, more in itertools.pairwise(sizes)):
                faster[what] = (*key, sizes)
    known = {what for name, what in OPEN if name == hardware.id and what in LONGER}
    assert {what: one for what, one in faster.items() if what not in known} == {}
    assert faster.keys() >= known


@pytest.mark.sample(3)
@pytest.mark.parametrize("model", ["mlperf_tiny_kws", pytest.param("mobilenet_v2", marks=pytest.mark.slow)])
@EACH
def test_an_engine_takes_no_longer_per_item_of_a_larger_batch(hardware: Hardware, model: str) -> None:
    if "engine_part" not in hardware.coefficients or hardware.coefficients["engine_part"].value > 1.0:
        pytest.skip("its engine runs no small parts of a batch")
    streams_whole_batches = STREAM_UNITS in hardware.geometry and DIVIDED not in hardware.geometry
    slack = 0.01 if (hardware.id, "items") in OPEN else ROUNDED
    for precision in hardware.peaks:
        runs = zip(BATCHES, batched_works(model).evaluate(hardware, precision, "engine"), strict=True)
        rows = [
            (batch, run.latency_fs, run.latency_fs if streams_whole_batches else run.interval_fs)
            for batch, run in runs
            if run.latency_fs
        ]
        for (less, *before), (more, *after) in itertools.combinations(rows, 2):
            for smaller, larger in zip(before, after, strict=True):
                assert not is_above(smaller, larger, slack), (precision, less, more)
                assert more % less or not is_above(larger, more // less * (smaller or 0), slack), (precision, less)


@pytest.mark.slow
@EACH
def test_a_higher_clock_is_never_slower(hardware: Hardware) -> None:
    full_mhz = hardware.full_clock.value / 1e6
    modes = [f"{share * full_mhz:.0f}MHz" for share in (0.6, 0.8, 0.9, 0.95, 0.98)]
    check_never_slower([*(hardware.in_mode(mode) for mode in modes), hardware])


@pytest.mark.slow
@EACH
def test_more_bandwidth_is_never_slower(hardware: Hardware) -> None:
    check_never_slower([with_bandwidth(hardware, factor) for factor in (1.0, 1.2, 2.0, 5.0)])


@pytest.mark.slow
@pytest.mark.parametrize("hardware", [one for one in CLASSES if cast("Hardware", one.values[0]).architecture != "cpu"])
def test_an_engine_is_never_slower_than_a_compiler(hardware: Hardware) -> None:
    """Not on CPUs, where rates of engines and of frameworks are fitted to unlike measurements."""
    assert find_slower_engines(hardware, compiled_works()) == {}
    # the convolution before an activation's own kernel has a turn, which a compiler's lacks
    assert find_slower_engines(without_turn(hardware), gated_works()) == {}
