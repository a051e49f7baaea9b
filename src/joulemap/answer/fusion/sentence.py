"""Sentences on fusion; each is built from figures of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from joulemap.answer.scope import SHOWN_FRACTION
from joulemap.present.cell import join_names, show_count, show_quantity, show_share
from joulemap.row.fusion import FusionPattern, FusionSubgraph, FusionTotal

MERGED = "a compiler adds a bias in the convolution's kernel, where it has one of its own otherwise"
PASSED = "what follows a library's product runs in a pass of its own, which writes and reads its result again"
STREAMED = "more goes off chip"
CACHED = "fewer live activations leave the weights room on chip"
BUSIER = "the one kernel keeps its units busy for longer than its members do apart"
COMPILED = "a compiler's own kernel takes the place of the framework's"
LAUNCHED = "in eager the host launches every kernel"


def tell_saving(total: FusionTotal) -> list[str]:
    """Return the savings of fusion in the run, or that there is nothing to fuse."""
    if not total.fused_subgraph_count:
        every = f"each of the {total.subgraph_count} subgraphs" if total.subgraph_count > 1 else "the only subgraph"
        return [f"nothing is fused: {every} is one operator, or one call, and a kernel of its own in every runtime"]
    saved = {
        "energy": total.saved_energy_fraction,
        "latency": total.saved_latency_fraction,
        "energy x delay": total.saved_edp_fraction,
    }
    gains = [f"{show_share(share)} of the {name}" for name, share in saved.items() if share is not None and share >= 0]
    costs = [f"{show_share(-share)} of the {name}" for name, share in saved.items() if share is not None and share < 0]
    kernels = f"{total.kernel_count} kernels in place of {total.separate_kernel_count}"
    lines = [f"fusing saves {join_names(gains)}: {kernels}"] if gains else []
    return lines + ([f"fusing costs {join_names(costs)}" + ("" if gains else f": {kernels}")] if costs else [])


def tell_bytes(total: FusionTotal) -> list[str]:
    """Return the change in bytes moved and in bytes off chip."""
    if not total.fused_subgraph_count:
        return []
    moved = f"{show_share(total.saved_moved_fraction)} of the bytes that operators read and write stay inside kernels"
    if total.saved_dram_bytes > 0:
        return [f"{moved}; {_bytes(total.saved_dram_bytes)} less go off chip, {show_share(total.saved_dram_fraction)}"]
    if total.saved_dram_bytes < 0:
        return [f"{moved}; {_bytes(-total.saved_dram_bytes)} more go off chip"]
    return [f"{moved}; off chip go as many bytes as separately: what is handed on fits on chip either way"]


def tell_largest(patterns: Iterable[FusionPattern], total: FusionTotal) -> list[str]:
    """Return the pattern with the largest saving; empty if there are fewer than two patterns."""
    rows = list(patterns)
    if len(rows) < 2 or not total.fused_subgraph_count or total.saved_edp_js <= 0:
        return []
    largest = rows[0]
    return [
        f"{largest.fusion_pattern} saves most: {show_quantity(largest.saved_energy_j, 'J')} and "
        f"{show_quantity(largest.saved_latency_s, 's')} in {show_count(largest.subgraph_count, 'subgraph')}, "
        f"{show_share(largest.saved_edp_share_fraction)} of the energy x delay saved"
    ]


def tell_passes(total: FusionTotal) -> list[str]:
    """Return the bytes of extra passes added by the runtime, fused and separate."""
    lines = []
    if total.pass_bytes:
        kernels = f"{total.passed_count} of {total.subgraph_count} fused kernels"
        lines.append(f"passes move {_bytes(total.pass_bytes)} again in {kernels}: {PASSED}")
    if total.separate_pass_bytes:
        lines.append(
            f"separately, passes move {_bytes(total.separate_pass_bytes)} again: a convolution adds its bias in a "
            "kernel of its own"
        )
    return lines


def tell_bias(total: FusionTotal) -> list[str]:
    """Return that biases are part of their operators; empty without biases."""
    if not total.biased_count:
        return []
    verb = "adds a bias as part of itself" if total.biased_count == 1 else "add a bias as part of themselves"
    additions = show_count(total.bias_addition_count, "addition")
    return [
        f"{show_count(total.biased_count, 'operator')} {verb}, fused or not: {additions} of "
        f"{show_count(total.bias_element_count, 'element')}"
    ]


def tell_costs(subgraphs: Iterable[FusionSubgraph], total: FusionTotal) -> list[str]:
    """Return the subgraphs in which fusion costs energy or time, with reasons."""
    losses = [row for row in subgraphs if _is_fused(row) and min(row.saved_energy_fj, row.saved_latency_fs) < 0]
    return [
        f"fusing costs in {show_count(len(rows), 'subgraph')}, {_worst(rows)}: {_change(rows)} than separately; "
        f"{reason}"
        for reason, rows in _group(losses, lambda row: _why_it_costs(row, total)).items()
    ]


def tell_unfused(subgraphs: Iterable[FusionSubgraph], total: FusionTotal) -> list[str]:
    """Return the changes in subgraphs that are one kernel either way, with reasons."""
    changed = [
        row
        for row in subgraphs
        if row.kernel_count and not _is_fused(row) and (row.saved_energy_fj or row.saved_latency_fs)
    ]
    lines = []
    for reason, rows in _group(changed, lambda row: _why_it_changes(row, total)).items():
        if not _weigh(rows, total):
            continue
        verb = "is one kernel either way and takes" if len(rows) == 1 else "are one kernel either way and take"
        lines.append(f"{show_count(len(rows), 'subgraph')} {verb} {_change(rows)}: {reason}")
    return lines


def _is_fused(row: FusionSubgraph) -> bool:
    return 0 < row.kernel_count < row.separate_kernel_count


def _weigh(rows: Sequence[FusionSubgraph], total: FusionTotal) -> bool:
    """Return whether the rows' total saving is large enough to show in the run's digits."""
    energy, latency = sum(row.saved_energy_fj for row in rows), sum(row.saved_latency_fs for row in rows)
    is_energy = abs(energy) > SHOWN_FRACTION * total.separate_energy_fj
    return is_energy or abs(latency) > SHOWN_FRACTION * total.separate_latency_fs


def _why_it_costs(row: FusionSubgraph, total: FusionTotal) -> str:
    if row.pass_bytes > row.separate_pass_bytes:
        return PASSED
    if total.clock_fraction < total.separate_clock_fraction:
        return _capped(total)
    return STREAMED if row.saved_dram_bytes < 0 else BUSIER


def _why_it_changes(row: FusionSubgraph, total: FusionTotal) -> str:
    if total.separate_runtime == "eager":
        return LAUNCHED
    if row.separate_pass_bytes > row.pass_bytes:
        return MERGED
    if row.saved_dram_bytes > 0:
        return CACHED
    return COMPILED if total.clock_fraction == total.separate_clock_fraction else _capped(total)


def _capped(total: FusionTotal) -> str:
    return (
        f"the power cap leaves {show_share(total.clock_fraction)} of the clock fused and "
        f"{show_share(total.separate_clock_fraction)} separately"
    )


def _group(rows: Iterable[FusionSubgraph], reason: Callable[[FusionSubgraph], str]) -> dict[str, list[FusionSubgraph]]:
    found: dict[str, list[FusionSubgraph]] = {}
    for row in rows:
        found.setdefault(reason(row), []).append(row)
    return found


def _change(rows: Sequence[FusionSubgraph]) -> str:
    """Return the change of energy and time of fused rows relative to separate ones."""
    energy, latency = sum(row.saved_energy_j for row in rows), sum(row.saved_latency_s for row in rows)
    parts = sorted((value, unit) for value, unit in ((energy, "J"), (latency, "s")) if value)
    if energy * latency >= 0.0:
        told = " and ".join(show_quantity(abs(value), unit) for value, unit in ((energy, "J"), (latency, "s")) if value)
        return f"{told} {_direction(energy + latency)}"
    return " but ".join(f"{show_quantity(abs(value), unit)} {_direction(value)}" for value, unit in parts)


def _direction(saved: float) -> str:
    return "less" if saved >= 0.0 else "more"


def _worst(rows: Sequence[FusionSubgraph]) -> str:
    worst = min(rows, key=lambda row: (row.saved_edp_share_js, row.subgraph_index))
    return worst.name if len(rows) == 1 else f"most in {worst.name}"


def _bytes(value: float) -> str:
    return show_quantity(value, "B")
