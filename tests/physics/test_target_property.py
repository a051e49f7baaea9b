"""What holds on every target of the catalogue: fusion, batch, and the bytes of every memory level.

docs/memory.md and docs/time.md say the same in words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import numpy as np
import pytest
import torch
from hypothesis import assume, given, strategies as st

import chips
from chips import CLASSES, FORMS
from convolution import run as evaluate
from joulemap.physics.architecture import find_architecture
from joulemap.physics.architecture.gpu.time import ACTIVATED_BYTES
from joulemap.physics.bulk import Together
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.ledger import ActionCounts
from joulemap.physics.placement import Placement
from joulemap.physics.record.configuration import PRECISION_BYTES
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.run import RunColumns, SubgraphColumns
from joulemap.physics.stream import count_copies
from joulemap.physics.traffic import SWEPT, held_share
from joulemap.physics.workload import Floats, WorkloadColumns
from joulemap.system.errors import UnsupportedError
from models import SelfAttention, columns, shipped
from variants import uncapped, with_caches

EACH = pytest.mark.parametrize("hardware", CLASSES)
TARGETS: Final = st.sampled_from([one.id for one in FORMS])


READS: Final = {
    "cpu": [["l1.read"], ["l2.read"], ["l3.read"]],
    "gpu": [["l1.load", "shared_memory.write"], ["l2.read"], ["l3.read"]],
    "tpu": [["vmem.read", "weight_fifo.write"], ["cmem.read"]],
    "kpu": [["l1_stream.read"], ["l2_tile.read"], ["l3.read"]],
    "dsp": [["local_memory.read"]],
    "npu": [["sram.read"]],
    "dpu": [["feature_buffer.read", "weight_buffer.read"]],
    "cgra": [["pmu.read"]],
}
"""Levels from the units outward: the actions that read what the level behind it brought."""

WRITES: Final = {
    "cpu": ["l1.write", "l2.write", "l3.write"],
    "gpu": ["l1.store"],
    "tpu": ["vmem.write"],
    "kpu": ["l1_stream.write", "l3.write"],
    "dsp": ["local_memory.write"],
    "npu": ["sram.write"],
    "dpu": ["feature_buffer.write"],
    "cgra": ["pmu.write"],
}
"""Levels that every result passes."""

WORDS: Final = {"cgra": 4.0}
"""Bytes of an element on chip where that does not follow the precision."""


def precisions(hardware: Hardware) -> tuple[str, ...]:
    """Return the slowest and the fastest of what a chip computes in, which are other units where it has several."""
    ordered = sorted(hardware.peaks, key=lambda one: hardware.peaks[one].rate.value)
    return tuple(dict.fromkeys((ordered[0], ordered[-1])))


@cache
def works(batch: int = 1) -> dict[str, WorkloadColumns]:
    """Convolutions of all kinds and a residual sum, squeeze and excitation, attention."""
    return {
        "resnet18": shipped("resnet18", batch),
        "mobilenet_v3_small": shipped("mobilenet_v3_small", batch),
        "self attention": columns(SelfAttention(), torch.empty(2 * batch, 65, 16, device="meta")),
    }


@cache
def together() -> Together:
    """Return the works, ready to be evaluated to totals together."""
    return Together(tuple(works().values()))


def runs(
    hardware: Hardware, batch: int = 1, runtimes: Sequence[str] = RUNTIME_NAMES
) -> Iterator[tuple[tuple[str, str, str], RunColumns]]:
    """Yield every run of the works on a chip that it can hold, with model, precision and runtime; at least one."""
    is_empty = True
    for (name, work), precision, runtime in itertools.product(works(batch).items(), precisions(hardware), runtimes):
        try:
            found = evaluate(hardware, precision, work, runtime)
        except UnsupportedError:
            continue
        is_empty = False
        yield (name, precision, runtime), found
    assert not is_empty, f"{hardware.id} runs nothing"


@cache
def uncapped_runs(hardware_id: str, batch: int = 1) -> dict[tuple[str, str, str], RunColumns]:
    """Return the runs of a chip without power cap: under one, idle units leak into the budget of the busy ones."""
    return dict(runs(uncapped(chips.find(hardware_id)), batch))


def by_subgraph(found: SubgraphColumns, values: Floats, count: int) -> Floats:
    """Return a column of a run with a row for each subgraph of the workload, 0 where it does not run."""
    spread = np.zeros(count)
    spread[found.subgraph_index] = values
    return spread


def placed(work: WorkloadColumns, hardware: Hardware, precision: str, runtime: str) -> tuple[KernelColumns, Placement]:
    kernels = form_kernels(work, precision, runtime)
    return kernels, find_architecture(hardware.architecture).place(kernels, hardware)


def summed(counts: ActionCounts, names: list[str]) -> Floats | None:
    """Return the counts of these actions, per operator; None if the hardware has none of them."""
    found = [counts[one, other] for one, other in (name.split(".") for name in names) if (one, other) in counts]
    return sum(found[1:], found[0]) if found else None


@given(
    target=TARGETS,
    factors=st.tuples(st.floats(1e-3, 1e3), st.floats(1.0, 20.0)),
    data=st.data(),
)
@pytest.mark.slow
def test_a_larger_memory_moves_and_costs_no_more(
    target: str, factors: tuple[float, float], data: st.DataObject
) -> None:
    hardware = chips.find(target)
    name, precision, runtime = data.draw(st.sampled_from(sorted(uncapped_runs(hardware.id))))
    small = with_caches(uncapped(hardware), factors[0])
    before, after = (
        evaluate(one, precision, works()[name], runtime) for one in (small, with_caches(small, factors[1]))
    )
    assert (after.subgraphs.dram_bytes <= before.subgraphs.dram_bytes * (1.0 + 1e-12)).all()
    # at the same price per access, which a larger memory would not have
    assert after.energy_fj <= before.energy_fj * (1.0 + 1e-9)


def _skip_contexts(hardware: Hardware) -> None:
    if "dataflow_intervals" in hardware.geometry:
        pytest.skip("a fabric is cut into contexts by time, not by bytes: images leave it between them")


@pytest.mark.sample(4)
@EACH
def test_what_fits_is_not_read_again(hardware: Hardware) -> None:
    _skip_contexts(hardware)
    for (name, precision, runtime), found in runs(with_caches(uncapped(hardware), 1e6), runtimes=("fused", "graph")):
        kernels, placement = placed(works()[name], with_caches(hardware, 1e6), precision, runtime)
        # a scratchpad streams the weights of every image, run or copy of the model, and a CGRA its configuration
        images = works()[name].batch if hardware.architecture == "dpu" else 1
        weights = kernels.weight_bytes * images * count_copies(kernels, hardware)
        configuration = getattr(placement, "configuration_bytes", 0.0)
        moved = kernels.entering_bytes + kernels.leaving_bytes + weights + configuration
        assert found.subgraphs.dram_bytes.sum() <= moved.sum() * (1.0 + 1e-12), (name, precision, runtime)


@given(target=TARGETS, factor=st.floats(1e-3, 1e3), data=st.data())
def test_fusing_moves_no_more_in_a_memory_of_any_size(target: str, factor: float, data: st.DataObject) -> None:
    hardware = chips.find(target)
    name, precision, _ = data.draw(st.sampled_from(sorted(uncapped_runs(hardware.id))))
    other = with_caches(uncapped(hardware), factor)
    assume("dataflow_intervals" not in other.geometry)  # a fabric is cut into contexts by time, not by bytes
    work = works()[name]
    together, apart = (evaluate(other, precision, work, one).subgraphs for one in ("fused", "graph"))
    fused, separate = (by_subgraph(one, one.dram_bytes, work.subgraph_count) for one in (together, apart))
    if PRECISION_BYTES[precision] < ACTIVATED_BYTES:  # a compiled GEMM writes wider values for an activation to read
        separate += by_subgraph(together, together.pass_bytes, work.subgraph_count)
    assert (fused <= separate * (1.0 + 1e-12)).all()


@EACH
def test_dram_moves_what_enters_and_leaves_and_weights_that_are_not_held(hardware: Hardware) -> None:
    level = hardware.memory_levels[-1]
    if level.name == "flash":
        pytest.skip("activations of a microcontroller stay in its SRAM")
    capacity = level.capacity.value * (1 if level.per == "chip" else hardware.units)
    for name, precision, runtime in uncapped_runs(hardware.id):
        work = works()[name]
        kernels, placement = placed(work, hardware, precision, runtime)
        live = kernels.peak_activation_bytes
        if "resident_programs" in hardware.geometry or "samples_at_once" in hardware.geometry:
            live /= work.batch
        keeps = level.kind == "cache" or "resident_programs" in hardware.geometry
        held = float(held_share(kernels.total_weight_bytes + live, capacity, SWEPT)) if keeps else 0.0
        if keeps and hardware.architecture == "tpu":  # its compiler pins a part
            held = min(max(float((capacity - live) / kernels.total_weight_bytes), 0.0), 1.0)
        read = kernels.entering_bytes + (1.0 - held) * kernels.weight_bytes
        assert (placement.dram_read_bytes >= read * (1.0 - 1e-12)).all(), (name, precision, runtime)
        assert (placement.dram_write_bytes >= kernels.leaving_bytes * (1.0 - 1e-12)).all(), (name, precision, runtime)


@EACH
def test_every_level_passes_on_what_the_one_behind_it_brings(hardware: Hardware) -> None:
    architecture = find_architecture(hardware.architecture)
    for name, precision, runtime in uncapped_runs(hardware.id):
        kernels, placement = placed(works()[name], hardware, precision, runtime)
        counts = architecture.count(kernels, placement, hardware)
        words = WORDS[hardware.architecture] / PRECISION_BYTES[precision] if hardware.architecture in WORDS else 1.0
        crossing = (kernels.input_bytes + kernels.weight_bytes) * words
        read = [summed(counts, names) for names in READS[hardware.architecture]]
        levels = [level for level in read if level is not None and level.any()]
        for position, level in enumerate(levels):
            # a GPU's L2 finds what an earlier kernel left there, so that an L3 behind it may see nothing of it
            if hardware.architecture != "gpu" or position < 2:
                assert (level >= crossing * (1.0 - 1e-9)).all(), (name, precision, runtime, position)
        dram = placement.dram_read_bytes - getattr(placement, "configuration_bytes", 0.0)
        for inner, outer in itertools.pairwise([*levels, dram * words]):
            assert (inner >= outer * (1.0 - 1e-9) - 1e-6).all(), (name, precision, runtime)
        for action in WRITES[hardware.architecture]:
            written = summed(counts, [action])
            if written is not None:
                assert (written >= kernels.output_bytes * words * (1.0 - 1e-9)).all(), (name, precision, action)
