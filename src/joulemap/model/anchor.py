"""The anchor: what the power limit says that a chip at work draws beyond the prices of its circuits.

Energies of circuits leave out what nobody published of a chip: clock trees, sequencers, interfaces, links, units that
wait. A chip that is sold with a power limit comes near it in a large dense product and in a copy of its memory; one
that draws less than `LEAST_SHARE` of it there is taken to draw that share, and the difference has a price for the time
in which units or memories are busy:

    per second of memory = (share x limit x T - E) / memory time          of the copy
    per clock of a unit  = (share x limit x T - E) / compute time / f U   of the product at each precision

T and E are those of the probe at the default power mode, T from one batch to the next, E with all other lines of the
board, also what the other price adds to it; nothing is added where the probe draws as much by itself. A mode changes
neither price: a clock or units that are off lower how often they are paid in a second.

Time and not MACs or bytes is what is counted, because a chip at work draws most of its limit however little of its peak
is used: convolutional models on one H200 draw 72 % of it at batch 32, in the median of 79, at 5 to 30 % of the peak.
Per MAC or per byte of DRAM traffic, what is bound by on-chip memory or by vector units would add next to nothing.

A calibration scales them, as it does other prices. Prices that were fitted to what boards drew need no anchor, whatever
they say of a probe. A chip whose off-chip memory is its host's waits for the link: a copy says nothing of it, and a
product that the link bounds counts for the time of its units alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

import attrs

from joulemap.domain.configuration import CHIP
from joulemap.domain.hardware import TOLERANCE, Hardware
from joulemap.domain.key import WorkloadKey
from joulemap.domain.operator.name import find_operator
from joulemap.domain.operator.workload import describe
from joulemap.domain.reference import MEMORY_ACTION, ActionKey, EnergyAction, cycle_action
from joulemap.model.architecture import find_architecture
from joulemap.model.kernel import form_kernels
from joulemap.model.ledger import close_counts, operator_fj
from joulemap.model.pipeline import share_interval, share_latency, time_kernels
from joulemap.model.workload import WorkloadColumns, columns_of
from joulemap.units import FJ_PER_J, FS_PER_S

LEAST_SHARE: Final = 0.6
"""Of the power limit that a large product and a copy draw at least. Measured on one H200 of 700 W: products 653 to
714 W, a copy 603 W."""

MARGIN: Final = 1e-9
"""Above it, so that rounded lines do not add up to less."""

TIGHT: Final = 1e-12
"""Relative change of a price from which on it is found."""

STEPS: Final = 1000
"""At most, to find the prices: each probe has time of units and of memory."""

RUNTIME: Final = "graph"
"""One kernel without the host, as such probes are measured."""

PRODUCT: Final = "gemm(m=4096,n=4096,k=4096)"
"""What `matrix_product` is."""

COPY: Final = "elementwise(kind=relu,elements=67108864)"
"""What `stream_copy` is: one array read and another written, an operation per element."""


def choose_copy_precision(precisions: Iterable[str]) -> str:
    """Return the precision that a copy is probed at: fp32, else the first."""
    known = tuple(precisions)
    return "fp32" if "fp32" in known else known[0]


def has_host_memory(hardware: Hardware) -> bool:
    """Whether what leaves the chip crosses the link to its host: no board memory works at its limit in a copy then."""
    links = [link.bandwidth.value for link in hardware.links if link.connects == "host"]
    return hardware.memory_bandwidth.value <= max(links, default=0.0) * (1.0 + TOLERANCE)


@attrs.frozen(kw_only=True)
class Probe:
    """What a probe takes without what is unattributed."""

    name: str
    spent_j: float
    limit_j: float
    """What it would take at the power limit."""
    compute_s: float
    """Of its units, at the full clock."""
    memory_s: float

    def missing_w(self, busy_s: float, other_j: float) -> float:
        """Return the power that is missing in a part of its time, where other prices add so much energy; 0 for none."""
        missing_j = LEAST_SHARE * (1.0 + MARGIN) * self.limit_j - self.spent_j - other_j
        return max(missing_j / busy_s, 0.0) if busy_s > 0.0 else 0.0


def find_unattributed(hardware: Hardware) -> tuple[EnergyAction, ...]:
    """Return the prices of what is unattributed, of a hardware at its default power mode; none where prices are whole.

    Raises KeyError for a number that the hardware lacks, as an evaluation does.
    """
    if hardware.priced_at != CHIP:
        return ()
    copied = choose_copy_precision(hardware.peaks)
    copy = None if has_host_memory(hardware) else _probe(hardware, COPY, copied, "a stream copy")
    products = {
        precision: _probe(hardware, PRODUCT, precision, f"a product of 4096 x 4096 x 4096 at {precision}")
        for precision in hardware.peaks
    }
    memory_w, units_w = 0.0, dict.fromkeys(products, 0.0)
    for _ in range(STEPS):
        before = memory_w
        if copy is not None:
            memory_w = copy.missing_w(copy.memory_s, units_w[copied] * copy.compute_s)
        units_w = {name: one.missing_w(one.compute_s, memory_w * one.memory_s) for name, one in products.items()}
        if abs(memory_w - before) <= TIGHT * memory_w:
            break
    found = [_price(hardware, copy, MEMORY_ACTION, memory_w)] if copy is not None else []
    found += [_price(hardware, one, cycle_action(name), units_w[name]) for name, one in products.items()]
    return tuple(one for one in found if one.energy_per_action_fj > 0.0)


def _probe(hardware: Hardware, operator: str, precision: str, name: str) -> Probe:
    kernels = form_kernels(_columns(operator), precision, RUNTIME)
    timing = time_kernels(kernels, hardware, find_architecture(hardware.architecture))
    interval_s = share_interval(timing, share_latency(timing, hardware)) / FS_PER_S
    counts = close_counts(timing.counts, hardware, interval_s, timing.row_factor)
    spent_j = float(operator_fj(counts, hardware, timing.row_factor).sum()) / FJ_PER_J
    compute_s, memory_s = (float(one.sum()) for one in timing.placement.busy_s)
    taken_s = float(interval_s.sum())
    if has_host_memory(hardware) and memory_s > compute_s:
        spent_j -= hardware.static_power.value * (taken_s - compute_s)
        taken_s = compute_s
    return Probe(
        name=name,
        spent_j=spent_j,
        limit_j=hardware.tdp.value * taken_s,
        compute_s=compute_s,
        memory_s=memory_s,
    )


def _price(hardware: Hardware, probe: Probe, key: ActionKey, power_w: float) -> EnergyAction:
    is_memory = key == MEMORY_ACTION
    component, action = key
    busy_s = probe.memory_s if is_memory else probe.compute_s
    per_count = FJ_PER_J if is_memory else FJ_PER_J / (hardware.clock.value * hardware.units)
    most_w = max((probe.limit_j - probe.spent_j) / busy_s, power_w) if busy_s > 0.0 else power_w
    return EnergyAction(
        category="board",
        common_category="board",
        component=component,
        action=action,
        part="memory" if is_memory else "compute",
        per="s" if is_memory else "cycle",
        energy_per_action_fj=power_w * per_count,
        low_fj=0.0,
        high_fj=most_w * per_count,
        basis="derived",
        source=(
            f"{probe.name} draws {LEAST_SHARE:g} of the power limit of {hardware.tdp.value:g} W at least; circuits, "
            f"memory, regulators and static power are {probe.spent_j / probe.limit_j * hardware.tdp.value:.3g} W of it"
        ),
        count_formula="memory time" if is_memory else "compute time · f · U",
    )


@cache
def _columns(operator: str) -> WorkloadColumns:
    found = find_operator(operator)
    assert found is not None, operator
    key = WorkloadKey(source=operator, input_spec="", torch_version="", torchvision_version="", tracer_version="")
    return columns_of(describe(found, 1, key))
