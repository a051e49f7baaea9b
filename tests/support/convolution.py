"""One convolution on one chip and figures of its run, for values computed by hand."""

from __future__ import annotations

from functools import cache, lru_cache

import attrs
from torch import nn

from joulemap.catalog.load import load_catalogue
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import WorkloadColumns
from models import columns, image
from variants import uncapped

MACS = 784 * 128 * 576
"""MACs of a 3 x 3 convolution over 28 x 28 with 64 to 128 channels, a GEMM of 784 x 128 x 576."""
INPUT, WEIGHT, OUTPUT = 64 * 784, 64 * 128 * 9, 128 * 784
"""Elements of the convolution's tensors."""


@cache
def convolution(channels: int = 64, outputs: int = 128, groups: int = 1, batch: int = 1) -> WorkloadColumns:
    """Return a 3 x 3 convolution over 28 x 28."""
    module = nn.Conv2d(channels, outputs, 3, padding=1, groups=groups, bias=False, device="meta")
    return columns(module, image(batch, channels, 28))


def target(name: str) -> Hardware:
    """Return the hardware with a power cap that is never reached."""
    return uncapped(load_catalogue().find(name))


def with_level(hardware: Hardware, name: str, capacity_bytes: float) -> Hardware:
    """Return the hardware with another capacity of one memory level."""
    levels = tuple(
        attrs.evolve(level, capacity=attrs.evolve(level.capacity, value=capacity_bytes))
        if level.name == name
        else level
        for level in hardware.memory_levels
    )
    return attrs.evolve(hardware, memory_levels=levels)


evaluator = lru_cache(maxsize=16)(Evaluator)
"""Return the cached evaluator of a workload, because forming its kernels takes half the time of a run."""


def run(hardware: Hardware, precision: str, work: WorkloadColumns, runtime: str = "fused") -> RunColumns:
    """Return the run of a workload on a chip."""
    configuration = Configuration(hardware=hardware.id, precision=precision, runtime=runtime)
    return evaluator(work).evaluate(hardware, configuration)


def compute_s(evaluated: RunColumns) -> float:
    """Return the compute time of all subgraphs together."""
    return float(evaluated.subgraphs.compute_s.sum())


def count(evaluated: RunColumns, component: str, action: str) -> float:
    """Return the count of an action in all operators together."""
    position = evaluated.hardware.reference.position((component, action))
    assert position is not None, (component, action)
    return float(evaluated.ledger.action_count[evaluated.ledger.action_index == position].sum())
