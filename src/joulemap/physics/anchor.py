"""The anchor: unattributed board power, derived from the power limit or from power measured under a load.

Circuit energies omit unpublished parts of a chip: clock trees, sequencers, interfaces, links, waiting units. A board
sold with a power limit (`works_at_limit` in its file) comes near the limit in a large dense GEMM and in a memory copy.
If its ledger explains less than a share of the limit there, the board is assumed to draw that share. The difference
becomes an energy for the time in which units or memories are busy:

    per clock of memory = (share x limit x T - E) / memory time / f      of the copy
    per clock of a unit = (share x limit x T - E) / compute time / f U   of the GEMM at each precision

The vector lanes of a CPU get one energy per clock, the lowest over all precisions. A core's clock tree and sequencers
do not depend on the precision, and only the probe that uses most of the core comes near the limit. Operators without
products, such as the copy, get the lowest energy over all precisions of any class, because no product unit works.

T and E belong to the probe at the default power mode. T is the interval between batches; E includes all other lines of
the board and the contribution of the other energy. Nothing is added if the probe draws that share anyway. At a lower
clock or with disabled units, both energies are counted less often per second. The energy per clock of a unit also
follows the chip's voltage. On an AGX Orin, the rail of the CPU cores draws 15.2 W under stress at 2.2 GHz. Per core and
clock, it draws 0.58 and 0.70 of that at 1.5 and 1.73 GHz. The voltage law gives 0.58 and 0.67 (NVIDIA developer forum
323456).

If a chip's file lacks `works_at_limit`, its limit is a budget. Its energies per action stay as given, and its energy
does not follow `tdp`.

The share is the coefficient `limit_share`, unless power was measured under loads. Then it is the share at which
predicted power equals measured power, in the geometric mean over the loads. If the measured power covers more than the
board, it is only an upper bound:

    power of a load = (E + e_memory x f x memory time + e_unit x f U x compute time) / T          = measured

If a load draws more than measured even without unattributed power, circuit energies are too high. Then one factor
lowers all energies except static power and the shares of regulators, so that

    power of a load = static power + factor x (E / T - static power)                             = measured

The anchor counts time, not MACs or bytes, because a busy chip draws most of its limit at low fractions of its peak.
Convolutional models on one H200 draw 72 % of the limit at batch 32 (median of 79), at 5 to 30 % of the peak. An energy
per MAC or per byte of DRAM traffic would add almost nothing to work bound by on-chip memory or vector units. If batches
overlap, the time is the interval between batches, not the latency.

Energies of GPUs were fitted to boards with HBM, and a board with GDDR draws far more. Its chip runs at the top of its
voltage range, and draws nearly as much while it waits for full bandwidth as while it computes. If all its units work,
such a board draws the share `busy_share` of its limit above what it draws whether they work or not: static power, and
that of memory awake. What this leaves in the copy, whose units work the share w of its time, becomes an energy per
clock of a unit that works, instead of the class's energies per busy clock:

    per clock of a unit = (min(static power + awake + share x limit x w, limit) x T - E) / (1 + loss) / T / f U w

An SM that works costs at most as much as one that issues instructions in every clock (`ISSUE_ACTION`). A board whose
limit is high for its number of SMs and its memory then does not come near it. An SM without a block costs nothing
beyond static power and the chip's clock: kernels that fill few SMs of an H200 draw 117 to 150 of 700 W.

A calibration scales these energies like any other. Other energies fitted to measured board power need no anchor,
regardless of the probes. A chip that works in its host's memory waits for the link. Then a copy is not probed, and a
link-bound GEMM counts only the time of its units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.physics.pipeline import Busy, Evaluator
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.configuration import (
    BUSY_SHARE,
    CHIP,
    CLOCK_ENERGY,
    LIMIT_SHARE,
    STANDBY_ENERGY,
    Configuration,
)
from joulemap.physics.record.hardware import TOLERANCE, Hardware, MeasuredLoad
from joulemap.physics.record.quantity import Quantity, least_sure
from joulemap.physics.record.reference import (
    BOARD,
    CLOCK_ACTION,
    CYCLE_ACTION,
    ISSUE_ACTION,
    MEMORY_ACTION,
    OTHER_ACTION,
    STANDBY_ACTION,
    STATIC_ACTION,
    UNATTRIBUTED,
    ActionKey,
    EnergyAction,
    cycle_action,
    price_by,
)
from joulemap.physics.record.runtime import SEPARATE_RUNTIME
from joulemap.physics.stream import stay_on_device
from joulemap.physics.workload import WorkloadColumns
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import define, frozen
from joulemap.system.units import FJ_PER_J

TRIAL_FJ: Final = 1000.0
"""Energy per clock of a unit in the probe that shows how far this energy raises the probe's."""

UNLIMITED: Final = 10.0
"""Factor on the power limit with which no probe is capped."""

MARGIN: Final = 1e-9
"""Relative margin on the target energy. Without it, rounded ledger lines may add up to less than the target."""

TIGHT: Final = 1e-12
"""Relative change of an energy per action at or below which the iteration has converged."""

MOST_SHARE: Final = 1.0 - 2.0 * MARGIN
"""Largest share of the power limit that the search considers; just below 1, so that no probe exceeds the limit."""

SM: Final = "SM"
"""Name of the units whose energy per clock was fitted to boards."""

STEPS: Final = 1000
"""Maximum iterations to find the unattributed energies of units and of memory, which depend on each other."""


PRODUCT: Final = "gemm(m=4096,n=4096,k=4096)"
"""Operator of the probe `matrix_product`."""

COPY: Final = "elementwise(kind=relu,elements=67108864)"
"""Operator of the probe `stream_copy`: reads one array and writes another, with one operation per element."""

PROBES: Final = (PRODUCT, COPY)
"""Operators of the two probes of board power: a dense GEMM and a memory copy."""


def choose_copy_precision(precisions: Iterable[str]) -> str:
    """Return the precision of the copy probe: fp32 if available, else the first."""
    known = tuple(precisions)
    return "fp32" if "fp32" in known else known[0]


def has_host_memory(hardware: Hardware) -> bool:
    """Return whether a chip works in its host's memory. Off-chip data then crosses the host link, so a copy does not
    load any memory of the board to its limit.
    """
    links = [link.bandwidth.value for link in hardware.links if link.connects == "host"]
    return hardware.memory_bandwidth.value <= max(links, default=0.0) * (1.0 + TOLERANCE)


@frozen(kw_only=True)
class Probe:
    """Predicted energy and busy times of one probe, excluding unattributed power."""

    name: str
    spent_j: float
    static_j: float
    """Part of `spent_j` that static power takes."""
    limit_j: float
    """Energy of the probe at the power limit."""
    compute_s: float
    """Busy time of the probe's units, at the full clock."""
    product_s: float
    """Part of `compute_s` in operators with products."""
    memory_s: float

    def missing_w(self, share: float, busy_s: float, other_j: float) -> float:
        """Return the power in watts that must be added during `busy_s` for the probe to draw `share` of its limit.

        `other_j` is unattributed energy that is already added. The result is 0 if no power is missing.
        """
        missing_j = share * (1.0 + MARGIN) * self.limit_j - self.spent_j - other_j
        return max(missing_j / busy_s, 0.0) if busy_s > 0.0 else 0.0


@frozen(kw_only=True)
class Measured:
    """A load with measured power: its prediction without unattributed power, and its measured energy."""

    load: MeasuredLoad
    probe: Probe
    measured_j: float
    """Measured power times the predicted time."""

    def excess(self, prices: Prices) -> float:
        """Return ln(predicted energy / measured energy). The prediction includes the unattributed power `prices`."""
        probe = self.probe
        units_j = prices.units_w[self.load.precision] * probe.product_s
        units_j += prices.other_w * (probe.compute_s - probe.product_s)
        return math.log((probe.spent_j + prices.memory_w * probe.memory_s + units_j) / self.measured_j)

    @property
    def factor(self) -> float:
        """Factor on all energy except static energy at which the prediction equals the measurement."""
        return (self.measured_j - self.probe.static_j) / (self.probe.spent_j - self.probe.static_j)


@frozen(kw_only=True)
class Prices:
    """Unattributed power in watts: of memory while it is busy, and of units at each precision while they are busy."""

    memory_w: float
    units_w: Mapping[str, float]

    @property
    def other_w(self) -> float:
        """Power of units while they are busy without products."""
        return min(self.units_w.values())


@define(eq=False)
class Bench:
    """The two probes, evaluated once for many chips together."""

    evaluators: Mapping[str, Evaluator]
    """Operator of a probe -> its evaluator."""
    _found: dict[tuple[str, int, str], tuple[Hardware, Busy | UnsupportedError | KeyError]] = attrs.field(
        factory=dict, init=False
    )
    """(operator, identity of the hardware, precision) -> hardware, and energy and times of the probe."""

    @classmethod
    def of(cls, probes: Mapping[str, WorkloadColumns]) -> Bench:
        """Return a bench for the workload of each probe."""
        return cls({name: Evaluator(work) for name, work in probes.items()})

    def load(self, wanted: Iterable[tuple[str, Hardware, str]]) -> None:
        """Run probes together, each given as (operator, hardware, precision)."""
        for name, evaluator in self.evaluators.items():
            mine = [(hardware, precision) for operator, hardware, precision in wanted if operator == name]
            busy_times = evaluator.measure(
                [(one, _configure(one, precision, SEPARATE_RUNTIME)) for one, precision in mine]
            )
            self._found |= {
                (name, id(hardware), precision): (hardware, busy)
                for (hardware, precision), busy in zip(mine, busy_times, strict=True)
            }

    def run(self, operator: str, hardware: Hardware, precision: str) -> Busy:
        """Return energy and times of a probe that was loaded. Raises KeyError for a number that the hardware lacks."""
        _, busy = self._found[operator, id(hardware), precision]
        if isinstance(busy, Exception):
            raise busy
        return busy


def find_anchor(
    hardware: Hardware, probes: Mapping[str, WorkloadColumns], workloads: Sequence[WorkloadColumns] = ()
) -> tuple[EnergyAction, ...]:
    """Return the energies per action that unattributed board power adds or changes, at the default power mode.

    `probes` maps each of `PROBES` to its workload. `workloads` are those of `hardware.loads`, in order. The result is
    empty if the energies per action were fitted to boards, or for a chip with neither `works_at_limit` nor a measured
    load. Raises KeyError for a number that the hardware lacks, as an evaluation does.
    """
    (actions,) = find_anchors([hardware], probes, [workloads])
    if isinstance(actions, Exception):
        raise actions
    return actions


def find_anchors(
    hardware: Sequence[Hardware],
    probes: Mapping[str, WorkloadColumns],
    workloads: Sequence[Sequence[WorkloadColumns]],
) -> list[tuple[EnergyAction, ...] | UnsupportedError | KeyError]:
    """Return what `find_anchor` returns for each chip, or the exception that it raises; probes of all chips run
    together.
    """
    anchorings = [_Anchoring.of(one) if _is_anchored(one) else None for one in hardware]
    bench = Bench.of(probes)
    bench.load([probe for one in anchorings if one is not None for probe in one.list_probes()])
    anchors: list[tuple[EnergyAction, ...] | UnsupportedError | KeyError] = []
    for one, works in zip(anchorings, workloads, strict=True):
        try:
            anchors.append(() if one is None else one.find_rows(bench, works))
        except (UnsupportedError, KeyError) as error:
            anchors.append(error)
    return anchors


def _is_anchored(hardware: Hardware) -> bool:
    """Return whether a chip has unattributed board power that follows from its power limit or from measured loads."""
    states = BUSY_SHARE in hardware.coefficients or LIMIT_SHARE in hardware.coefficients or bool(hardware.loads)
    return hardware.priced_at == CHIP and states


@frozen(kw_only=True)
class _Anchoring:
    """A chip, and the hardware on which its probes run."""

    hardware: Hardware
    alone: Hardware
    """Hardware with inputs and outputs in its own memory."""
    trials: tuple[Hardware, ...]
    """Hardware without a power limit, whose units draw no energy and `TRIAL_FJ` per clock; empty unless the board has a
    `busy_share`.
    """

    @classmethod
    def of(cls, hardware: Hardware) -> _Anchoring:
        busy = hardware.coefficients.get(BUSY_SHARE)
        trials: tuple[Hardware, ...] = ()
        if busy is not None:
            unlimited = attrs.evolve(hardware.tdp, value=hardware.tdp.value * UNLIMITED)
            awake = _describe_awake(hardware)
            rows = (_describe_cycle(energy_fj, energy_fj, busy, "") for energy_fj in (0.0, TRIAL_FJ))
            trials = tuple(
                attrs.evolve(hardware, tdp=unlimited, reference=hardware.reference.with_actions([row, *awake]))
                for row in rows
            )
        return cls(hardware=hardware, alone=stay_on_device(hardware), trials=trials)

    def list_probes(self) -> list[tuple[str, Hardware, str]]:
        """Return the probes that the chip needs, as (operator, hardware, precision)."""
        copied = choose_copy_precision(self.hardware.peaks)
        if self.trials:
            return [(COPY, one, copied) for one in self.trials]
        copies = [] if has_host_memory(self.hardware) else [(COPY, self.alone, copied)]
        return [*copies, *((PRODUCT, self.alone, precision) for precision in self.hardware.peaks)]

    def find_rows(self, bench: Bench, workloads: Sequence[WorkloadColumns]) -> tuple[EnergyAction, ...]:
        """Return the energies per action that the anchor adds or changes."""
        hardware = self.hardware
        busy, least = (hardware.coefficients.get(name) for name in (BUSY_SHARE, LIMIT_SHARE))
        if busy is not None:
            return self._price_running(bench, busy)
        copied = choose_copy_precision(hardware.peaks)
        copy = None if has_host_memory(hardware) else self._probe(bench, COPY, copied, "a stream copy")
        products = {
            precision: self._probe(bench, PRODUCT, precision, f"a product of 4096 x 4096 x 4096 at {precision}")
            for precision in hardware.peaks
        }
        alike = _find_alike(hardware)
        measured = [
            _measure(hardware, load, work) for load, work in zip(hardware.loads, workloads, strict=bool(workloads))
        ]

        def solve(share: float) -> Prices:
            return _solve(share, copy, products, alike)

        share = _find_share(measured, solve, 0.0 if least is None else least.value)
        prices = solve(share)
        source = _describe_loads(measured)
        rows = [_price(hardware, copy, MEMORY_ACTION, prices.memory_w, share, source)] if copy is not None else []
        rows += [
            _price(hardware, one, cycle_action(name), prices.units_w[name], share, source)
            for name, one in products.items()
        ]
        least_probe = products[min(prices.units_w, key=prices.units_w.__getitem__)]
        rows.append(_price(hardware, least_probe, OTHER_ACTION, prices.other_w, share, source))
        factor = _find_factor(measured) if share == 0.0 else 1.0
        return (*_scale(hardware, factor, source), *(one for one in rows if one.energy_per_action_fj > 0.0))

    def _probe(self, bench: Bench, operator: str, precision: str, name: str) -> Probe:
        hardware = self.alone
        probe = _describe_probe(hardware, bench.run(operator, hardware, precision), name)
        if not has_host_memory(hardware) or probe.memory_s <= probe.compute_s:
            return probe
        static_w = hardware.static_power.value
        waits_s = probe.limit_j / hardware.tdp.value - probe.compute_s
        return attrs.evolve(
            probe,
            spent_j=probe.spent_j - static_w * waits_s,
            static_j=static_w * probe.compute_s,
            limit_j=hardware.tdp.value * probe.compute_s,
        )

    def _price_running(self, bench: Bench, busy: Quantity) -> tuple[EnergyAction, ...]:
        """Return the energy per clock of a unit that works with which a stream copy draws the share `busy` of the power
        limit, times the share of its time in which units work, above the power of the awake board.
        """
        hardware, copied = self.hardware, choose_copy_precision(self.hardware.peaks)
        bare, one = (_describe_probe(trial, bench.run(COPY, trial, copied), "a stream copy") for trial in self.trials)
        taken_s, each_j = bare.limit_j / (hardware.tdp.value * UNLIMITED), one.spent_j - bare.spent_j
        limit_j = hardware.tdp.value * taken_s
        loss = 1.0 + hardware.reference.loss_j
        full = float(PowerLaw.of(hardware).energy_factor(np.ones(1))[0])
        whole_j = TRIAL_FJ / FJ_PER_J * loss * full * hardware.clock.value * hardware.units * taken_s
        standby_w = hardware.coefficients[STANDBY_ENERGY].value * hardware.memory_bandwidth.value * loss
        awake_j = bare.static_j + standby_w * taken_s
        drawn_j = min(busy.value * each_j / whole_j * limit_j + awake_j, limit_j)
        energy_fj, most_fj = (max(one - bare.spent_j, 0.0) / each_j * TRIAL_FJ for one in (drawn_j, limit_j))
        source = (
            f"a stream copy draws {drawn_j / taken_s:.3g} W: static power and memory awake, {awake_j / taken_s:.3g} W, "
            f"and {busy.value:.3g} of the power limit of {hardware.tdp.value:g} W while all units work; counted "
            f"actions and static power explain {bare.spent_j / taken_s:.3g} W, this action the rest; {busy.source}"
        )
        working = hardware.reference.position(ISSUE_ACTION) if hardware.unit_name == SM else None
        if working is not None and (issue_fj := hardware.reference.prices_fj[working]) < energy_fj:
            energy_fj, source = issue_fj, f"at most as {'.'.join(ISSUE_ACTION)}, which is less than: {source}"
        return (_describe_cycle(energy_fj, max(most_fj, energy_fj), busy, source), *_describe_awake(hardware))


def _configure(hardware: Hardware, precision: str, runtime: str) -> Configuration:
    return Configuration(hardware=hardware.id, precision=precision, runtime=runtime)


def _describe_probe(hardware: Hardware, busy: Busy, name: str) -> Probe:
    return Probe(
        name=name,
        spent_j=busy.spent_j,
        static_j=hardware.static_power.value * busy.taken_s,
        limit_j=hardware.tdp.value * busy.taken_s,
        compute_s=busy.compute_s,
        product_s=busy.product_s,
        memory_s=busy.memory_s,
    )


def _describe_cycle(energy_fj: float, most_fj: float, busy: Quantity, source: str) -> EnergyAction:
    component, action = CYCLE_ACTION
    return EnergyAction(
        category=UNATTRIBUTED,
        common_category=UNATTRIBUTED,
        component=component,
        action=action,
        part="control",
        per="cycle",
        energy_per_action_fj=energy_fj,
        low_fj=0.0,
        high_fj=most_fj,
        basis=least_sure("derived", busy.basis),
        source=source,
        count_formula="time in which units work · f · U",
        evidence=busy.evidence,
    )


def _describe_awake(hardware: Hardware) -> tuple[EnergyAction, EnergyAction]:
    """Return the energies of the clock of all units and of memory at full clock; 0 where static power includes them."""
    clock = price_by(
        hardware.coefficients[CLOCK_ENERGY],
        CLOCK_ACTION,
        category="clock",
        common_category="control",
        part="control",
        per="cycle",
        count_formula="kernel time · f · U",
    )
    standby = price_by(
        hardware.coefficients[STANDBY_ENERGY],
        STANDBY_ACTION,
        category="dram",
        common_category="off_chip_memory",
        part="memory",
        per="B",
        count_formula="kernel time · bandwidth of the memory",
    )
    return clock, standby


def _solve(share: float, copy: Probe | None, products: Mapping[str, Probe], alike: Collection[str]) -> Prices:
    """Return the unattributed powers at which each probe draws at least this share of the limit.

    Precisions in `alike` share the lowest power among them.
    """
    prices = Prices(memory_w=0.0, units_w=dict.fromkeys(products, 0.0))
    for _ in range(STEPS):
        before = memory_w = prices.memory_w
        if copy is not None:
            memory_w = copy.missing_w(share, copy.memory_s, prices.other_w * copy.compute_s)
        units_w = {name: one.missing_w(share, one.compute_s, memory_w * one.memory_s) for name, one in products.items()}
        if alike:
            units_w |= dict.fromkeys(alike, min(units_w[name] for name in alike))
        prices = Prices(memory_w=memory_w, units_w=units_w)
        if abs(memory_w - before) <= TIGHT * memory_w:
            break
    return prices


def _find_alike(hardware: Hardware) -> tuple[str, ...]:
    """Return the precisions that share one unattributed energy per clock: those of a CPU's vector lanes."""
    if hardware.architecture != "cpu":
        return ()
    return tuple(name for name in hardware.peaks if f"matrix_macs_per_instruction_{name}" not in hardware.geometry)


def _find_share(measured: Sequence[Measured], solve: Callable[[float], Prices], least: float) -> float:
    """Return the share of the power limit at which the predicted power of the loads equals their measured power.

    Loads measured at the board determine the share, or `least` if there are none. Loads measured with the system around
    the board can only lower it. The result is 0 if circuits alone draw the measured power.
    """
    whole = [one for one in measured if one.load.covers == "board"]
    share = _match_share(whole, solve, MOST_SHARE) if whole else least
    for one in measured:
        if one.load.covers != "board":
            share = _match_share([one], solve, share)
    return share


def _match_share(measured: Sequence[Measured], solve: Callable[[float], Prices], most: float) -> float:
    """Return the share of the limit, at most `most`, at which the loads' predicted power equals their measured power.

    The geometric mean over the loads counts.
    """

    def excess(share: float) -> float:
        prices = solve(share)
        return sum(one.excess(prices) for one in measured)

    low, high = 0.0, most
    if excess(high) <= 0.0:
        return high
    if excess(low) >= 0.0:
        return low
    while high - low > TIGHT:
        middle = (low + high) / 2.0
        low, high = (low, middle) if excess(middle) > 0.0 else (middle, high)
    return low


def _find_factor(measured: Sequence[Measured]) -> float:
    """Return the factor, at most 1, that lowers circuit energies to the measured power if they exceed it."""
    whole = [one.factor for one in measured if one.load.covers == "board"]
    mean = math.exp(sum(math.log(one) for one in whole) / len(whole)) if whole else 1.0
    return min([1.0, mean, *(one.factor for one in measured if one.load.covers != "board")])


def _scale(hardware: Hardware, factor: float, source: str) -> tuple[EnergyAction, ...]:
    """Return the energies per action multiplied by `factor`, except those of static power and regulators.

    The result is empty if the factor is 1.
    """
    if factor == 1.0:
        return ()
    return tuple(
        attrs.evolve(
            row,
            energy_per_action_fj=row.energy_per_action_fj * factor,
            low_fj=None if row.low_fj is None else row.low_fj * factor,
            high_fj=None if row.high_fj is None else row.high_fj * factor,
            basis=least_sure("scaled", row.basis),
            source=f"{row.source}; x {factor:.4g}, fitted to a measured load: {source}",
        )
        for row in hardware.reference
        if row.key != STATIC_ACTION and row.component != BOARD
    )


def _describe_loads(measured: Sequence[Measured]) -> str:
    """Describe the measured loads in words; empty if there are none."""
    return "; ".join(
        f"{one.load.label} draws {one.load.power.value:.4g} W"
        + ("" if one.load.covers == "board" else " with the system around it")
        + f", {one.load.power.basis}: {one.load.power.source}"
        for one in measured
    )


def _measure(hardware: Hardware, load: MeasuredLoad, work: WorkloadColumns) -> Measured:
    (busy,) = Evaluator(work).measure([(hardware, _configure(hardware, load.precision, load.runtime))])
    if isinstance(busy, Exception):
        raise busy
    probe = _describe_probe(hardware, busy, load.label)
    return Measured(load=load, probe=probe, measured_j=load.power.value * (probe.limit_j / hardware.tdp.value))


def _price(hardware: Hardware, probe: Probe, key: ActionKey, power_w: float, share: float, source: str) -> EnergyAction:
    is_memory = key == MEMORY_ACTION
    component, action = key
    busy_s = probe.memory_s if is_memory else probe.compute_s
    per_count = FJ_PER_J / (hardware.clock.value * (1.0 if is_memory else hardware.units))
    most_w = max((probe.limit_j - probe.spent_j) / busy_s, power_w) if busy_s > 0.0 else power_w
    return EnergyAction(
        category="board",
        common_category=UNATTRIBUTED,
        component=component,
        action=action,
        part="control",
        per="cycle",
        energy_per_action_fj=power_w * per_count,
        low_fj=0.0,
        high_fj=most_w * per_count,
        basis="derived",
        source=(
            f"{probe.name} draws at least {share:.4g} of the power limit of {hardware.tdp.value:g} W; counted actions "
            f"and static power explain {probe.spent_j / probe.limit_j * hardware.tdp.value:.3g} W of it, this action "
            "the rest" + (f"; {source}" if source else "")
        ),
        count_formula="memory time · f" if is_memory else "compute time · f · U",
    )
