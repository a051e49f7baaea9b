"""Fallback to a host: a model is split into the part that a chip's compiler supports and the rest, and both runs are
merged.

    mask ─► cut ─► two workloads ─► a run of each on its own hardware ─► one run

The chip computes the operators that its compiler supports, the host the rest. They run one after the other, so that
latencies and intervals add up. A value that one part writes and the other reads leaves the first part and enters the
second. It passes through the memory that both can access, at the width of each. The copy therefore counts in the bytes,
time and energy of the chip's boundary and of the host's memory. The host calls the chip once per stretch, a run of
consecutive operators on the chip.

A device alone (`NO_HOST`) leaves out the host's part: its run has rows of the chip's operators only.

The chip draws static power while the host computes, and a counted host while the chip computes. Units and off-chip
bytes are those of the chip.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import attrs
import numpy as np

from joulemap.physics.law import join_laws
from joulemap.physics.ledger import check_range
from joulemap.physics.record.compiler import HOST_WORK, name_sizes
from joulemap.physics.record.configuration import NO_HOST, PRECISION_BYTES, Configuration
from joulemap.physics.record.kind import KINDS
from joulemap.physics.record.reference import HOST_ACTION, STATIC_ACTION, ActionKey, host_key
from joulemap.physics.run import LedgerColumns, OperatorColumns, RunColumns, SubgraphColumns
from joulemap.physics.workload import KIND_CODE, ROLE_CODE, Booleans, Floats, Integers, Texts, WorkloadColumns
from joulemap.system.errors import UnsupportedError
from joulemap.system.units import FS_PER_S

if TYPE_CHECKING:
    from joulemap.physics.record.compiler import Compiler
    from joulemap.physics.record.hardware import Hardware

STATIC_ACTIONS: Final = (STATIC_ACTION, HOST_ACTION)
"""Static power actions of a chip, and of a host whose energy counts; both are charged while either computes."""

KEPT: Final = {
    "first": "only operators before it",
    "stretch": "only one segment without it",
    "each": "the other operators",
}
"""Cut rule of a compiler -> description of the operators that it keeps if it does not support one."""

AROUND_PRECISION: Final = "fp32"
"""Precision at which a host works before and after the model: scales pictures, decodes boxes."""

OFF_CHIP: Final = ("dram_bytes", "separate_dram_bytes")
"""Columns of a merged run that count only the chip's part."""


def find_fallen(work: WorkloadColumns, compiler: Compiler) -> Booleans:
    """Return a mask of the operators that fall back: unsupported ones, and supported ones that the cut rule leaves out.

    Unsupported operators that depend on no input cause no fallback, because they are computed ahead. The host always
    does the work around the model, such as resizing a picture; this work does not cut the model.
    """
    pairs, index = np.unique(np.stack([work.kind.astype(str), work.operation]), axis=1, return_inverse=True)
    named = [(KINDS[int(kind)], operation) for kind, operation in pairs.T.tolist()]
    runs = np.array([compiler.is_run(*one) for one in named], dtype=bool)[index.ravel()]
    sizes = name_sizes(work.kernel, work.stride, work.rank) if compiler.limits else {}
    for limit in compiler.limits:
        is_limited = np.array([limit.names(*one) for one in named], dtype=bool)[index.ravel()]
        runs &= ~is_limited | limit.allows(sizes[limit.size])
    odd: Booleans = ~runs & ~work.is_foldable
    around = np.isin(work.operation, HOST_WORK)
    inside = odd & ~around
    if not inside.any() or compiler.cut == "each":
        return odd
    if compiler.cut == "first":
        behind: Booleans = around | (np.arange(work.operator_count) >= int(np.argmax(inside)))
        return behind
    stretch = np.cumsum(inside)
    macs = np.bincount(stretch.astype(np.intp), weights=np.where(odd, 0.0, work.mac_count))
    outside: Booleans = odd | (stretch != int(np.argmax(macs)))
    return outside


def name_fallen(work: WorkloadColumns, compiler: Compiler, fallen: Booleans) -> str:
    """Return the names of the operations that the compiler does not support, or not at their size, in model order."""
    names = dict[str, None]()
    for at in np.flatnonzero(fallen).tolist():
        kind, operation = KINDS[int(work.kind[at])], str(work.operation[at])
        if not compiler.is_run(kind, operation):
            names[operation] = None
        elif compiler.limits:
            sizes = name_sizes(int(work.kernel[at]), int(work.stride[at]), int(work.rank[at]))
            names[compiler.describe_excess(kind, operation, sizes)] = None
    return ", ".join(filter(None, names))


def check_parts(work: WorkloadColumns, hardware: Hardware, fallen: Booleans) -> str:
    """Return a message that names the operators that the compiler does not support.

    Raises UnsupportedError, naming the operators, if they cannot be compiled at all or no GEMM is left for the chip.
    """
    compiler = hardware.compiler
    if compiler is None:
        raise ValueError(f"{hardware.id} has no compiler")
    names = name_fallen(work, compiler, fallen)
    refused = {
        operation
        for kind, operation in zip(work.kind[fallen].tolist(), work.operation[fallen].tolist(), strict=True)
        if compiler.is_refused(KINDS[kind], operation)
    }
    if refused:
        raise UnsupportedError(
            f"{hardware.id}: {compiler.name} cannot compile {', '.join(sorted(refused))}",
            code="compiler",
            hardware=hardware.id,
            compiler=compiler.name,
            operations=tuple(sorted(refused)),
        )
    names = names.partition(",")[0] if compiler.cut == "first" else names
    fault = f"{hardware.id}: {compiler.name} does not run {names}"
    if not work.mac_count[~fallen].any() and work.mac_count.any() and (hardware.helper or hardware.host == NO_HOST):
        raise UnsupportedError(
            f"{fault}, and keeps {KEPT[compiler.cut]}: no GEMM or convolution is left for the chip",
            code="left_nothing",
            hardware=hardware.id,
            compiler=compiler.name,
            operations=names,
        )
    return fault


def check_host(work: WorkloadColumns, hardware: Hardware, fallen: Booleans) -> Hardware:
    """Return the host that computes the operators that fall back.

    Raises UnsupportedError if no host is set, and like `check_parts`.
    """
    reason = check_parts(work, hardware, fallen)
    if hardware.helper is None:
        raise UnsupportedError(f"{reason}, and no host is set as the fallback", code="no_host", hardware=hardware.id)
    return hardware.helper


def configure_host(host: Hardware, configuration: Configuration, operations: Texts) -> Configuration:
    """Return the configuration of the host's part, at the precisions of `choose_host_precision`."""
    own = configuration.precision, configuration.weight_precision
    precision, weights = choose_host_precision(host, *own, operations)
    return attrs.evolve(
        configuration, hardware=host.id, power_mode=host.power_mode, precision=precision, weight_precision=weights
    )


def choose_host_precision(host: Hardware, precision: str, weight_precision: str, operations: Texts) -> tuple[str, str]:
    """Return the precisions of (activations, weights) of the operations that fall back. If all of them are work around
    the model, they run at `AROUND_PRECISION`.
    """
    asked = AROUND_PRECISION if np.isin(operations, HOST_WORK).all() else precision
    return choose_precision(host, asked, weight_precision)


def choose_precision(host: Hardware, precision: str, weight_precision: str) -> tuple[str, str]:
    """Return the precisions of (activations, weights) on the host.

    A precision that the host supports stays. Otherwise activations and weights have the narrowest wider precision, or
    the host's widest if none is wider.
    """
    if precision in host.peaks:
        return precision, weight_precision
    wider = [name for name in host.peaks if PRECISION_BYTES[name] >= PRECISION_BYTES[precision]]
    nearest = min(wider, key=PRECISION_BYTES.__getitem__) if wider else max(host.peaks, key=PRECISION_BYTES.__getitem__)
    return nearest, ""


def split_work(work: WorkloadColumns, side: Integers | Booleans) -> tuple[tuple[WorkloadColumns, Integers], ...]:
    """Return (workload of a side, stretch number of each operator) for each side.

    Each workload keeps all operators, but only those of its own side compute. Sides are counted from 0. For a chip and
    its host, side 1 is the host's: the operators that fall back.
    """
    is_computed = (work.kind != KIND_CODE["view"]) & ~work.is_foldable
    crossed, stretch = cross(work, side), _number_stretches(is_computed, side)
    return tuple((_keep(crossed, side == one), stretch) for one in range(int(side.max(initial=0)) + 1))


def cross(work: WorkloadColumns, side: Integers | Booleans) -> WorkloadColumns:
    """Return the workload in which data between two sides passes through memory: one kernel writes it, another reads
    it.
    """
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
    """Return the operator that last wrote the buffer of each reading access; -1 for none, and for other accesses."""
    count = work.operator_count + 1
    key = work.access_buffer * count + work.access_operator
    is_output = (work.access_role == ROLE_CODE["output"]) & (work.access_buffer >= 0)
    is_input = (work.access_role == ROLE_CODE["input"]) & (work.access_buffer >= 0)
    written = np.sort(key[is_output])
    index = np.searchsorted(written, key, side="left") - 1
    last = written[np.maximum(index, 0)] if len(written) else np.full(len(key), -1)
    has_writer = is_input & (index >= 0) & (last // count == work.access_buffer)
    return np.where(has_writer, last % count, -1)


def _find_crossing(work: WorkloadColumns, side: Integers | Booleans, is_computed: Booleans) -> Booleans:
    """Return a mask of the accesses that move data between sides: reads of a buffer last written on another side, and
    the corresponding writes.
    """
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
    """Return the workload in which only the operators in `mine` compute; the others become views without accesses."""
    kept = mine[work.access_operator]
    accesses = {
        field.name: getattr(work, field.name)[kept]
        for field in attrs.fields(WorkloadColumns)
        if field.name.startswith("access_")
    }
    return attrs.evolve(work, kind=np.where(mine, work.kind, KIND_CODE["view"]), **accesses)


def _number_stretches(is_computed: Booleans, side: Integers | Booleans) -> Integers:
    """Return the stretch number of each operator. Views and constants belong to the stretch before them."""
    rows = np.flatnonzero(is_computed)
    changes = np.zeros(len(side), dtype=np.int64)
    changes[rows[1:]] = side[rows[1:]] != side[rows[:-1]]
    return np.cumsum(changes)


def merge_runs(chip: RunColumns, host: RunColumns, hardware: Hardware) -> RunColumns:
    """Return the run that consists of the chip's part and the host's part, one after the other."""
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
        broken_laws=join_laws([chip, host]),
        suppressed_s=chip.suppressed_s + host.suppressed_s,
        subgraphs=_merge_subgraphs(chip.subgraphs, host.subgraphs),
        operators=OperatorColumns(**{name: column[order] for name, column in operators.items()}),
        ledger=_merge_ledgers(chip, host, hardware),
    )


def _leaked_fj(seconds: Floats, hardware: Hardware, keys: Sequence[ActionKey]) -> Integers:
    """Return the energy of static power actions over these times in femtojoules, each line rounded as in the ledger.

    Raises UnsupportedError for a line beyond 9.2 kJ.
    """
    leaked = np.zeros_like(seconds)
    for key in keys:
        if (at := hardware.reference.position(key)) is not None:
            leaked = leaked + np.rint(seconds * hardware.reference.prices_fj[at])
    check_range(leaked, hardware, "one ledger line")
    return leaked.astype(np.int64)


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
    """Return the ledger of both parts: the chip's lines, the host's as host actions, and static power while the host
    works.
    """
    reference, own = hardware.reference, host.hardware.reference
    row_of = np.array([-1 if (at := reference.position(host_key(one.key))) is None else at for one in own])
    leakage = own.position(STATIC_ACTION)
    if leakage is not None:
        row_of[leakage] = -1
    kept = row_of[host.ledger.action_index] >= 0
    seconds = host.operators.interval_fs / FS_PER_S
    leaks = [(key, at) for key in STATIC_ACTIONS if (at := reference.position(key)) is not None]
    each = len(host.operators.operator_index)
    operator = [chip.ledger.operator_index, host.ledger.operator_index[kept]]
    action = [chip.ledger.action_index, row_of[host.ledger.action_index[kept]]]
    counts = [chip.ledger.action_count, host.ledger.action_count[kept]]
    energy = [chip.ledger.energy_fj, host.ledger.energy_fj[kept]]
    for key, at in leaks:
        is_some = seconds > 0.0
        operator.append(host.operators.operator_index[is_some])
        action.append(np.full(each, at)[is_some])
        counts.append(seconds[is_some])
        energy.append(_leaked_fj(seconds[is_some], hardware, [key]))
    columns = [np.concatenate(one) for one in (operator, action, counts, energy)]
    order = np.lexsort((columns[1], columns[0]))
    return LedgerColumns(
        operator_index=columns[0][order],
        action_index=columns[1][order],
        action_count=columns[2][order],
        energy_fj=columns[3][order],
    )
