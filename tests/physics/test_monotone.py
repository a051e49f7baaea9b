"""Engines: no slower than a compiler, and a larger batch takes no longer for each of its items."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, cast

import attrs
import pytest

from chips import CLASSES
from gpu_case import single
from joulemap.physics.bulk import Together
from joulemap.physics.record.hardware import Hardware
from models import shipped

Latencies = Mapping[tuple[str, str], Sequence[int | None]]
"""(precision, runtime) -> the latency of each work in femtoseconds; None where the chip cannot run it."""

RUNTIMES: Final = ("graph", "fused", "engine")


ROUNDED: Final = 1e-9
"""Relative slack of a latency: the time of each kernel is rounded to a femtosecond."""


def _conv(batch: int, channels: int, size: int) -> str:
    sides = f"channels_in={channels},channels_out={channels},size={size}"
    return f"conv2d(batch={batch},{sides},kernel=3,padding=1)"


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


@pytest.mark.slow
@pytest.mark.parametrize("hardware", [one for one in CLASSES if cast("Hardware", one.values[0]).architecture != "cpu"])
def test_an_engine_is_never_slower_than_a_compiler(hardware: Hardware) -> None:
    """Not on CPUs, where rates of engines and of frameworks are fitted to unlike measurements."""
    assert find_slower_engines(hardware, compiled_works()) == {}
    # the convolution before an activation's own kernel has a turn, which a compiler's lacks
    assert find_slower_engines(without_turn(hardware), gated_works()) == {}
