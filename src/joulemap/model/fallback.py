"""A model that a chip's compiler does not run whole: its two parts, and their runs as one.

    mask ─► cut ─► two workloads ─► a run of each on its own hardware ─► one run

The chip computes what its compiler runs, the host the rest, one after the other, so that latencies and intervals add
up. A value that one part makes and the other reads leaves the first and enters the second: it is written to the memory
that both reach and read there, at the width of each, so that the copy is in the bytes, time and energy of the chip's
own edge and of the host's memory. The host calls the chip once for each stretch of operators that it runs.

The chip draws static power while the host computes, and a host that is counted while the chip does. Units and bytes off
chip are those of the chip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from joulemap.domain.configuration import PRECISION_BYTES, Configuration
from joulemap.domain.kind import KINDS
from joulemap.domain.reference import HOST_ACTION, STATIC_ACTION, ActionKey, host_key
from joulemap.model.run import LedgerColumns, OperatorColumns, RunColumns, SubgraphColumns
from joulemap.model.workload import KIND_CODE, ROLE_CODE, Booleans, Floats, Integers, WorkloadColumns
from joulemap.system.errors import UnsupportedError
from joulemap.system.units import FS_PER_S

if TYPE_CHECKING:
    from joulemap.domain.compiler import Compiler
    from joulemap.domain.hardware import Hardware

STATIC_ACTIONS: Final = (STATIC_ACTION, HOST_ACTION)
"""Static power actions of a chip, and of a counted host, while either computes."""

KEPT: Final = {"first": "what is before it", "stretch": "one stretch without it", "each": "the rest"}
"""Where a compiler cuts -> what it keeps, beside an operator that it does not run."""

OFF_CHIP: Final = ("dram_bytes", "separate_dram_bytes")
"""Columns that are of the chip alone."""


def find_fallen(work: WorkloadColumns, compiler: Compiler) -> Booleans:
    """Return the operators that the host computes: what the compiler does not run, and what its cut leaves.

    What depends on no input is computed ahead.
    """
    known = frozenset(compiler.operators)
    pairs, place = np.unique(np.stack([work.kind.astype(str), work.operation]), axis=1, return_inverse=True)
    runs = [compiler.is_run(KINDS[int(kind)], operation, known) for kind, operation in pairs.T.tolist()]
    odd = ~np.array(runs, dtype=bool)[place.ravel()] & ~work.is_foldable
    if not odd.any() or compiler.cut == "each":
        return odd
    if compiler.cut == "first":
        behind: Booleans = np.arange(work.operator_count) >= int(np.argmax(odd))
        return behind
    stretch = np.cumsum(odd)
    macs = np.bincount(stretch, weights=np.where(odd, 0.0, work.mac_count))
    outside: Booleans = odd | (stretch != int(np.argmax(macs)))
    return outside


def name_fallen(work: WorkloadColumns, compiler: Compiler, fallen: Booleans) -> str:
    """Return the operations that the compiler itself does not run, the first in the model first."""
    known = frozenset(compiler.operators)
    names = dict.fromkeys(
        operation
        for kind, operation in zip(work.kind[fallen].tolist(), work.operation[fallen].tolist(), strict=True)
        if not compiler.is_run(KINDS[kind], operation, known)
    )
    return ", ".join(names)


def check_host(work: WorkloadColumns, hardware: Hardware, fallen: Booleans) -> Hardware:
    """Return the host that computes what falls back.

    UnsupportedError names the operators where there is none, or where no product is left for the chip.
    """
    compiler = hardware.compiler
    if compiler is None:
        raise ValueError(f"{hardware.id} has no compiler")
    names = name_fallen(work, compiler, fallen)
    names = names.partition(",")[0] if compiler.cut == "first" else names
    told = f"{hardware.id}: {compiler.name} does not run {names}"
    if hardware.helper is None:
        raise UnsupportedError(f"{told}, and no host computes that")
    if not work.mac_count[~fallen].any() and work.mac_count.any():
        raise UnsupportedError(f"{told}, and keeps {KEPT[compiler.cut]}: no product of the model is left for the chip")
    return hardware.helper


def configure_host(host: Hardware, configuration: Configuration) -> Configuration:
    """Return how the host runs its part of a configuration."""
    precision, weights = choose_precision(host, configuration.precision, configuration.weight_precision)
    return attrs.evolve(
        configuration, hardware=host.id, power_mode=host.power_mode, precision=precision, weight_precision=weights
    )


def choose_precision(host: Hardware, precision: str, weight_precision: str) -> tuple[str, str]:
    """Return what the host computes at, (activations, weights): the same, or the narrowest of its own that holds it."""
    if precision in host.peaks:
        return precision, weight_precision
    wider = [name for name in host.peaks if PRECISION_BYTES[name] >= PRECISION_BYTES[precision]]
    return min(wider or host.peaks, key=lambda name: PRECISION_BYTES[name]), ""


def split_work(work: WorkloadColumns, side: Integers | Booleans) -> tuple[tuple[WorkloadColumns, Integers], ...]:
    """Return the workload of each side, the same operators of which each has its own, and which stretch of one part or
    another each operator is of.

    Sides are counted from 0; of a chip and its host, the host's is what has fallen.
    """
    is_computed = (work.kind != KIND_CODE["view"]) & ~work.is_foldable
    crossed, stretch = cross(work, side), _number_stretches(is_computed, side)
    return tuple((_keep(crossed, side == one), stretch) for one in range(int(side.max(initial=0)) + 1))


def cross(work: WorkloadColumns, side: Integers | Booleans) -> WorkloadColumns:
    """Return the workload where what one side hands to another leaves the kernel that makes it, and is read again."""
    is_computed = (work.kind != KIND_CODE["view"]) & ~work.is_foldable
    is_crossing = _find_crossing(work, side, is_computed)
    inside = (work.access_fused_bytes <= 0.0) & is_crossing
    first = np.zeros(len(inside), dtype=bool)
    rows = np.flatnonzero(inside)
    keys = np.stack([work.subgraph_index[work.access_operator], work.access_tensor, work.access_role])[:, rows]
    first[rows[np.unique(keys, axis=1, return_index=True)[1]]] = True
    return attrs.evolve(
        work,
        access_fused_bytes=np.where(first, work.access_bytes, work.access_fused_bytes),
        access_is_boundary=work.access_is_boundary | is_crossing,
    )


def find_writers(work: WorkloadColumns) -> Integers:
    """Return which operator wrote what each access reads: the last before it of the buffer; -1 where none did."""
    count = work.operator_count + 1
    key = work.access_buffer * count + work.access_operator
    is_output = (work.access_role == ROLE_CODE["output"]) & (work.access_buffer >= 0)
    is_input = (work.access_role == ROLE_CODE["input"]) & (work.access_buffer >= 0)
    written = np.sort(key[is_output])
    place = np.searchsorted(written, key, side="left") - 1
    last = written[np.maximum(place, 0)] if len(written) else np.full(len(key), -1)
    has_writer = is_input & (place >= 0) & (last // count == work.access_buffer)
    return np.where(has_writer, last % count, -1)


def _find_crossing(work: WorkloadColumns, side: Integers | Booleans, is_computed: Booleans) -> Booleans:
    """Return the accesses by which one part hands on to another: who wrote a buffer last is on another side."""
    writer = find_writers(work)
    other = side[writer] != side[work.access_operator]
    reads = (writer >= 0) & other & is_computed[writer] & is_computed[work.access_operator]
    count = work.operator_count + 1
    is_output = (work.access_role == ROLE_CODE["output"]) & (work.access_buffer >= 0)
    written = work.access_buffer * count + work.access_operator
    handed = work.access_buffer[reads] * count + writer[reads]
    mask: Booleans = reads | (is_output & np.isin(written, handed))
    return mask


def _keep(work: WorkloadColumns, mine: Booleans) -> WorkloadColumns:
    """Return the workload with some of its operators alone: others only rename memory, and read and write nothing."""
    kept = mine[work.access_operator]
    accesses = {
        field.name: getattr(work, field.name)[kept]
        for field in attrs.fields(WorkloadColumns)
        if field.name.startswith("access_")
    }
    return attrs.evolve(work, kind=np.where(mine, work.kind, KIND_CODE["view"]), **accesses)


def _number_stretches(is_computed: Booleans, side: Integers | Booleans) -> Integers:
    """Return which stretch of one part or the other each operator is of; views and constants are of the one before."""
    rows = np.flatnonzero(is_computed)
    changes = np.zeros(len(side), dtype=np.int64)
    changes[rows[1:]] = side[rows[1:]] != side[rows[:-1]]
    return np.cumsum(changes)


def merge_runs(chip: RunColumns, host: RunColumns, hardware: Hardware) -> RunColumns:
    """Return the run of both parts, one after the other, on the chip in its host."""
    operators = {
        field.name: np.concatenate([getattr(chip.operators, field.name), _of_host(host.operators, field.name)])
        for field in attrs.fields(OperatorColumns)
    }
    count = len(chip.operators.operator_index)
    alone_s = host.operators.separate_latency_fs / FS_PER_S
    operators["separate_energy_fj"][count:] += _leaked_fj(alone_s, hardware, STATIC_ACTIONS) - _leaked_fj(
        alone_s, host.hardware, (STATIC_ACTION,)
    )
    order = np.argsort(operators["operator_index"], kind="stable")
    return attrs.evolve(
        chip,
        hardware=hardware,
        weight_bytes=chip.weight_bytes + host.weight_bytes,
        activation_bytes=max(chip.activation_bytes, host.activation_bytes),
        mac_count=chip.mac_count + host.mac_count,
        subgraphs=_merge_subgraphs(chip.subgraphs, host.subgraphs),
        operators=OperatorColumns(**{name: column[order] for name, column in operators.items()}),
        ledger=_merge_ledgers(chip, host, hardware),
    )


def _leaked_fj(seconds: Floats, hardware: Hardware, keys: Sequence[ActionKey]) -> Integers:
    """Return the static power of a hardware over these times, each line rounded as the ledger rounds it."""
    prices = [hardware.reference.prices_fj[at] for key in keys if (at := hardware.reference.position(key)) is not None]
    leaked: Integers = sum((np.rint(seconds * price) for price in prices), np.zeros_like(seconds)).astype(np.int64)
    return leaked


def _of_host(columns: OperatorColumns | SubgraphColumns, name: str) -> Integers | Floats:
    column: Integers | Floats = getattr(columns, name)
    return np.zeros_like(column) if name in (*OFF_CHIP, "units_used_count") else column


def _merge_subgraphs(chip: SubgraphColumns, host: SubgraphColumns) -> SubgraphColumns:
    index = np.union1d(chip.subgraph_index, host.subgraph_index)
    places = [np.searchsorted(index, one.subgraph_index) for one in (chip, host)]
    merged: dict[str, Integers | Floats] = {"subgraph_index": index}
    longer = np.zeros(len(index), dtype=np.int64)
    longer[places[0]] = chip.latency_fs
    for field in attrs.fields(SubgraphColumns):
        if field.name == "subgraph_index":
            continue
        first, second = getattr(chip, field.name), _of_host(host, field.name)
        total = np.zeros(len(index), dtype=np.result_type(first, second))
        total[places[0]] = first
        if field.name == "bottleneck":
            is_longer = host.latency_fs > longer[places[1]]
            total[places[1][is_longer]] = second[is_longer]
        else:
            total[places[1]] += second
        merged[field.name] = total
    return SubgraphColumns(**merged)  # type: ignore[arg-type]


def _merge_ledgers(chip: RunColumns, host: RunColumns, hardware: Hardware) -> LedgerColumns:
    """Return the lines of both: the chip's, the host's under its names, and static power while the host computes."""
    reference, own = hardware.reference, host.hardware.reference
    place = np.array([-1 if (at := reference.position(host_key(one.key))) is None else at for one in own])
    leakage = own.position(STATIC_ACTION)
    if leakage is not None:
        place[leakage] = -1
    kept = place[host.ledger.action_index] >= 0
    seconds = host.operators.interval_fs / FS_PER_S
    leaks = [at for key in STATIC_ACTIONS if (at := reference.position(key)) is not None]
    each = len(host.operators.operator_index)
    operator = [chip.ledger.operator_index, host.ledger.operator_index[kept]]
    action = [chip.ledger.action_index, place[host.ledger.action_index[kept]]]
    counts = [chip.ledger.action_count, host.ledger.action_count[kept]]
    energy = [chip.ledger.energy_fj, host.ledger.energy_fj[kept]]
    for at in leaks:
        is_some = seconds > 0.0
        operator.append(host.operators.operator_index[is_some])
        action.append(np.full(each, at)[is_some])
        counts.append(seconds[is_some])
        energy.append(np.rint(seconds[is_some] * reference.prices_fj[at]).astype(np.int64))
    columns = [np.concatenate(one) for one in (operator, action, counts, energy)]
    order = np.lexsort((columns[1], columns[0]))
    return LedgerColumns(
        operator_index=columns[0][order],
        action_index=columns[1][order],
        action_count=columns[2][order],
        energy_fj=columns[3][order],
    )
