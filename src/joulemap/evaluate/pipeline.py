"""Place, time, cap, count, price.

    form kernels ─► place ─► latency ─► power cap ─► count ─► price ─► ledger
         └─ the same once more with a kernel per operator: what each would cost on its own

Latencies are rounded to integer femtoseconds per subgraph and split exactly over its operators, so that operators
sum to subgraphs and subgraphs to the run.
"""

from __future__ import annotations

import attrs
import numpy as np

from joulemap.architecture import Architecture, find_architecture
from joulemap.columns.run import OperatorColumns, RunColumns, SubgraphColumns
from joulemap.columns.workload import Floats, Integers, WorkloadColumns, sum_by
from joulemap.domain.configuration import Configuration
from joulemap.domain.hardware import Hardware
from joulemap.energy.ledger import (
    MAX_LINE_FJ,
    ActionCounts,
    dynamic_energy_j,
    price,
    static_counts,
)
from joulemap.errors import UnsupportedError
from joulemap.mapping.kernel import KernelColumns, Placement, form_kernels, share_exactly
from joulemap.units import FJ_PER_J, FS_PER_S


@attrs.define(kw_only=True, eq=False)
class _Timing:
    kernels: KernelColumns
    placement: Placement
    counts: ActionCounts
    dynamic_j: Floats
    """Per operator."""
    kernel_s: Floats
    clock_fraction: float


def evaluate(work: WorkloadColumns, hardware: Hardware, configuration: Configuration) -> RunColumns:
    """Return the run of a workload on a hardware.

    Raises UnsupportedError for a precision that the hardware lacks, for a model that does not fit its memory, or
    for a run beyond the store's range; UnpricedActionError for an action without a price.
    """
    precision = configuration.precision
    if precision not in hardware.peaks:
        raise UnsupportedError(f"{hardware.id} has no {precision}; it has {', '.join(hardware.peaks)}")
    architecture = find_architecture(hardware.architecture)
    _check_memory(work, hardware, configuration)
    own = _time(work, hardware, configuration, architecture)
    if configuration.runtime == "fused":
        alone = _time(work, hardware, attrs.evolve(configuration, runtime="graph"), architecture)
    else:
        alone = own
    kernels, placement = own.kernels, own.placement
    subgraphs, latency_fs = _subgraphs(own, hardware)
    operator_fs = _operator_latency(own, subgraphs, latency_fs)
    own.counts.update(static_counts(operator_fs / FS_PER_S))
    ledger = price(own.counts, hardware, work.operator_count)
    shown = np.flatnonzero(kernels.is_active)
    separate_s = alone.kernels.per_operator(alone.kernel_s)
    separate_static = separate_s * hardware.static_power.value
    peak = hardware.peaks[precision]
    return RunColumns(
        configuration=configuration,
        hardware=hardware,
        units_total_count=placement.units_total,
        peak_ops_per_s=peak.rate.value,
        memory_bandwidth_bytes_per_s=hardware.memory_bandwidth.value,
        weight_bytes=round(kernels.total_weight_bytes),
        activation_bytes=round(kernels.peak_activation_bytes),
        mac_count=int(work.mac_count[kernels.is_active].sum()),
        clock_fraction=own.clock_fraction,
        subgraphs=subgraphs,
        operators=OperatorColumns(
            operator_index=shown,
            subgraph_index=work.subgraph_index[shown],
            latency_fs=operator_fs[shown],
            moved_bytes=kernels.moved_bytes[shown],
            separate_latency_fs=_to_fs(separate_s[shown], hardware),
            separate_energy_fj=_to_integers(
                (alone.dynamic_j + separate_static)[shown] * FJ_PER_J, f"{hardware.id}: the energy"
            ),
        ),
        ledger=ledger,
    )


def _check_memory(work: WorkloadColumns, hardware: Hardware, configuration: Configuration) -> None:
    precision = configuration.precision
    required = work.weight_bytes_at(precision) + work.peak_activation_bytes(
        precision, is_fused=configuration.runtime == "fused"
    )
    capacity = hardware.memory_capacity.value
    if required > capacity:
        raise UnsupportedError(
            f"{hardware.id} has {capacity / 1e9:.3g} GB of memory; this configuration needs {required / 1e9:.1f} GB"
        )


def _to_integers(values: Floats, what: str) -> Integers:
    rounded = np.rint(values)
    if len(rounded) and not float(rounded.max()) < float(MAX_LINE_FJ):
        raise UnsupportedError(f"{what} of one operator exceeds what the store can hold; use a smaller batch")
    return rounded.astype(np.int64)


def _to_fs(seconds: Floats, hardware: Hardware) -> Integers:
    return _to_integers(seconds * FS_PER_S, f"{hardware.id}: the latency")


def _time(
    work: WorkloadColumns, hardware: Hardware, configuration: Configuration, architecture: Architecture
) -> _Timing:
    kernels = form_kernels(work, configuration.precision, configuration.runtime)
    placement = architecture.place(kernels, hardware)
    variable = np.maximum(kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s))
    kernel_s = placement.launch_s + variable
    counts = architecture.count(kernels, placement, hardware)
    dynamic_j = dynamic_energy_j(counts, hardware, work.operator_count)
    clock_fraction = _clock_under_cap(float(dynamic_j.sum()), float(kernel_s.sum()), hardware)
    return _Timing(
        kernels=kernels,
        placement=placement,
        counts=counts,
        dynamic_j=dynamic_j,
        kernel_s=kernel_s / clock_fraction,
        clock_fraction=clock_fraction,
    )


def _clock_under_cap(dynamic_j: float, latency_s: float, hardware: Hardware) -> float:
    """Return the share of the nominal clock at which the run's average power stays within TDP.

    E_dynamic / (t / f) + P_static <= TDP. The voltage is taken as fixed, so dynamic energy does not fall with the
    clock: an upper bound on the slowdown.
    """
    if latency_s <= 0.0:
        return 1.0
    budget = hardware.tdp.value - hardware.static_power.value
    return min(1.0, budget * latency_s / dynamic_j) if dynamic_j > 0.0 else 1.0


def _subgraphs(timing: _Timing, hardware: Hardware) -> tuple[SubgraphColumns, Integers]:
    """Return the rows of the subgraphs that run, and their latencies by subgraph index."""
    kernels, placement = timing.kernels, timing.placement
    work = kernels.work
    kernel_subgraph = work.subgraph_index[kernels.leader]
    count = work.subgraph_count

    def total(per_kernel: Floats) -> Floats:
        return sum_by(kernel_subgraph, per_kernel, count)

    def summed(per_operator: Floats) -> Floats:
        return total(kernels.per_kernel(per_operator))

    latency_fs = np.zeros(count, dtype=np.int64)
    np.add.at(latency_fs, kernel_subgraph, _to_fs(timing.kernel_s, hardware))
    shown = np.flatnonzero(np.bincount(kernel_subgraph, minlength=count))
    slower = 1.0 / timing.clock_fraction
    compute = summed(placement.compute_s) * slower
    memory = summed(placement.memory_s) * slower
    launch = total(placement.launch_s) * slower
    units = np.zeros(work.operator_count and count)
    np.maximum.at(units, work.subgraph_index[kernels.is_active], placement.units_used[kernels.is_active])
    bottleneck = np.argmax(np.stack([compute, memory, launch]), axis=0)
    columns = SubgraphColumns(
        subgraph_index=shown,
        latency_fs=latency_fs[shown],
        compute_s=compute[shown],
        memory_s=memory[shown],
        launch_s=launch[shown],
        dram_bytes=summed(placement.dram_read_bytes + placement.dram_write_bytes)[shown],
        moved_bytes=summed(kernels.moved_bytes)[shown],
        tile_count=summed(placement.tile_count)[shown],
        wave_count=summed(placement.wave_count)[shown],
        executed_mac_count=summed(placement.executed_macs)[shown],
        units_used_count=units[shown].astype(np.int64),
        kernel_count=np.bincount(kernel_subgraph, minlength=count)[shown],
        bottleneck=bottleneck[shown],
    )
    return columns, latency_fs


def _operator_latency(timing: _Timing, subgraphs: SubgraphColumns, latency_fs: Integers) -> Integers:
    """Return each operator's exact share of its subgraph's latency: its own time, the launch at the leader."""
    kernels, placement = timing.kernels, timing.placement
    work = kernels.work
    compute = kernels.per_operator(kernels.per_kernel(placement.compute_s))
    memory = kernels.per_operator(kernels.per_kernel(placement.memory_s))
    own = np.where(compute >= memory, placement.compute_s, placement.memory_s)
    weights = own + kernels.at_leader(placement.launch_s)
    active = np.flatnonzero(kernels.is_active)
    shares = np.zeros(work.operator_count, dtype=np.int64)
    position = np.zeros(len(latency_fs), dtype=np.int64)
    position[subgraphs.subgraph_index] = np.arange(len(subgraphs.subgraph_index))
    shares[active] = share_exactly(subgraphs.latency_fs, weights[active], position[work.subgraph_index[active]])
    return shares
