"""Constants of a box by name: of its devices, its links and memories, and the whole box.

gpu.memory_bandwidth      each device that the box calls `gpu`
link.cpu-gpu.bandwidth    links between two devices; latency and energy per byte too
memory.NAME.bandwidth     memory that devices share; capacity and latency too
tdp, price_purchase, …    the whole box

A workload on variations of a box has a fixed placement. It is found once, on the unchanged box; each variation
evaluates the same parts. A box whose number is changed by its user is placed anew instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from joulemap.physics import (
    STATIC,
    Address,
    Change,
    Configuration,
    Constant,
    Evaluator,
    Hardware,
    Quantity,
    RunColumns,
    WorkloadColumns,
    change_hardware,
    extend_digest,
    list_constants,
)
from joulemap.physics.power import PowerLaw
from joulemap.physics.record.address import replace_value, set_fields
from joulemap.physics.record.constant import LOSS, word_changes
from joulemap.physics.record.reference import LOSS_ACTION
from joulemap.physics.variation import FAILURES, Totals, watch_asked
from joulemap.system import FJ_PER_J, FS_PER_S, define
from joulemap.system.record import vary
from joulemap.wing.place.box.candidate import Candidate, run_again
from joulemap.wing.place.box.column import place
from joulemap.wing.place.box.hardware import CONVERSIONS, BoxHardware, combine
from joulemap.wing.place.box.member import Member, find_ways
from joulemap.wing.place.box.problem import build_problem
from joulemap.wing.place.box.run import form_parts
from joulemap.wing.place.record import Box, BoxLink

LINK_FIELDS: Final = ("bandwidth", "latency", "energy")

MEMORY_FIELDS: Final = ("capacity", "bandwidth", "latency")

WHOLE: Final = ("tdp", "price_purchase", "price_cloud")
"""Constants that belong to the whole box."""


def name_link(box: Box, link: BoxLink) -> str:
    """Return the name of a link in addresses: its devices in the order of the box."""
    order = [device.name for device in box.devices]
    return "-".join(sorted(link.between, key=order.index))


def list_box_constants(hardware: BoxHardware) -> dict[str, Constant]:
    """Return name -> constant of an evaluated box."""
    constants = [
        attrs.evolve(one, address=one.address._replace(device=kind))
        for kind, chip in hardware.chips.items()
        for one in list_constants(chip).values()
    ]
    for address, one in _list_joins(hardware):
        constants.append(Constant(address=address, value=one.value, unit=one.unit, basis=one.basis, source=one.source))
    return {one.name: one for one in constants}


def _list_joins(hardware: BoxHardware) -> Iterator[tuple[Address, Quantity]]:
    """Yield (address, quantity) of the links, the memories and the whole box."""
    for link in hardware.box.links:
        for field in LINK_FIELDS:
            yield Address("link", name_link(hardware.box, link), field), getattr(link, field)
    for memory in hardware.box.memories:
        for field in MEMORY_FIELDS:
            yield Address("memory", memory.name, field), getattr(memory, field)
    for name in WHOLE:
        if (quantity := getattr(hardware, name)) is not None:
            yield Address("quantity", name), quantity


def vary_box(hardware: BoxHardware, changes: Sequence[Change]) -> BoxHardware:
    """Return a box with changed numbers of devices, links and memories.

    Its sums over devices are not updated; `change_box` does that.
    """
    chips = {
        kind: change_hardware(chip, [_drop_device(one) for one in changes if one.address.device == kind])
        for kind, chip in hardware.chips.items()
    }
    box, whole = hardware.box, _list_fields(changes, "quantity", "")
    box = attrs.evolve(
        box,
        devices=tuple(attrs.evolve(one, static_power=None) for one in box.devices),  # already part of the chip
        links=tuple(set_fields(one, _list_fields(changes, "link", name_link(box, one))) for one in box.links),
        memories=tuple(set_fields(one, _list_fields(changes, "memory", one.name)) for one in box.memories),
        power=replace_value(hardware.tdp, whole["tdp"]) if "tdp" in whole else box.power,
    )
    return vary(hardware, box=box, devices=tuple(chips[device.name] for _, device in box))


def change_box(hardware: BoxHardware, changes: Sequence[Change], name: str = "") -> BoxHardware:
    """Return an evaluated box with some numbers replaced, and with sums over devices updated.

    The digest and the name change too, as for a changed chip.
    """
    if not changes and not name:
        return hardware
    varied, value = vary_box(hardware, changes), _list_fields(changes, "quantity", "")
    digest = extend_digest(hardware.digest, word_changes(changes, name))
    whole = combine(varied.box, varied.devices, hardware.device_modes, digest)
    prices = {one: replace_value(getattr(whole, one), value[one]) for one in WHOLE[1:] if one in value}
    return attrs.evolve(
        whole,
        **prices,
        id=name or hardware.id,
        described_digest=hardware.described_digest or hardware.digest,
    ).in_mode(hardware.power_mode)


def _drop_device(change: Change) -> Change:
    """Return a change of a box's device as a change of that chip: its address without the device's name."""
    return attrs.evolve(change, address=change.address._replace(device=""))


def _list_fields(changes: Sequence[Change], kind: str, name: str) -> dict[str, float]:
    """Return field -> new value for the link or memory `name`; for the kind `quantity`, name -> new value of the whole
    box.
    """
    mine = [(one.address, one.value) for one in changes if one.address.kind == kind and not one.address.device]
    return {one.field or one.name: value for one, value in mine if name in ("", one.name)}


TIMED: Final = ("unit_count", "clock", "clock_die", "memory_bandwidth", "tdp", STATIC, LOSS)
"""Constants of a busy device that always count as read, because they affect time or power indirectly."""

FREE: Final = 0.98
"""Fraction of a power limit up to which a device is not slowed."""

LEVEL_FIELDS: Final = ("capacity", "bandwidth")

IDLE: Final = ("idle_power", STATIC)
"""Constants that may state the power of a device without a part; the first that the device states counts."""


@define(eq=False)
class VariedBox:
    """Workload at one configuration on variations of a box; its placement is that of the first evaluation."""

    work: WorkloadColumns
    configuration: Configuration
    _placed: Candidate | None = attrs.field(default=None, init=False)
    _parts: dict[int, Evaluator] = attrs.field(factory=dict, init=False)
    """Device -> its part of the model; identical devices side by side have one entry, the first."""
    _runs: dict[tuple[int, str], RunColumns] = attrs.field(factory=dict, init=False)
    """(device, digest of its chip) -> run of its part, which is reused while only other devices vary."""

    def evaluate(self, hardware: Hardware) -> Totals:
        """Return the workload's totals on a variation of the box, at the placement of the first evaluation.

        Raises the errors of a run.
        """
        assert isinstance(hardware, BoxHardware)
        if self._placed is None:
            self._placed = self._prepare(hardware)
        members = hardware.list_members(self.configuration)
        ways = find_ways(hardware.box, members)
        problem = attrs.evolve(self._placed.problem, box=hardware.capped, members=members, ways=ways)
        with np.errstate(all="ignore"):  # a constant that is off by a factor of a hundred may overflow
            runs = {number: self._run(number, members[number]) for number in self._parts}
            placed = run_again(problem, self._placed, runs)
        latency_s, interval_s = (fs / FS_PER_S for fs in placed.times_fs)
        energy_j = placed.energy_j if placed.run is None else placed.run.energy_fj / FJ_PER_J
        parts = _add_up(placed)
        return Totals(
            latency_s=latency_s,
            interval_s=interval_s,
            energy_j=energy_j,
            action_j=parts,
            counted=frozenset(parts),
            spare_w=min(_list_spare_w(placed, energy_j / interval_s)),
            cap_fraction=1.0,
        )

    def evaluate_all(self, hardware: Sequence[Hardware]) -> list[Totals | None]:
        """Return the result of `evaluate` for each box; None where it raises an error.

        All variations of a device are evaluated together, which is faster.
        """
        boxes = [one.list_members(self.configuration) for one in hardware if isinstance(one, BoxHardware)]
        for number, part in self._parts.items():
            chips = {one[number].hardware.digest: one[number] for one in boxes}
            asked = [
                (attrs.evolve(one.hardware, compiler=None), one.configuration)
                for digest, one in chips.items()
                if (number, digest) not in self._runs
            ]
            with np.errstate(all="ignore"):
                runs = part.evaluate_all(asked)
            self._runs |= {(number, one.hardware.digest): one for one in runs if isinstance(one, RunColumns)}
        results: list[Totals | None] = []
        for one in hardware:
            try:
                results.append(self.evaluate(one))
            except FAILURES:
                results.append(None)
        return results

    def _prepare(self, hardware: BoxHardware) -> Candidate:
        problem = build_problem(self.work, hardware.capped, hardware.list_members(self.configuration))
        placed = place(problem, hardware.goal)
        firsts = [mine[0] for mine in problem.kinds.values() if mine[0] in placed.members]
        if placed.run is None:
            self._parts = dict.fromkeys(firsts, Evaluator(self.work, has_separate=False))
        else:
            parts = form_parts(problem, placed.run.devices).items()
            self._parts = {number: attrs.evolve(one, has_separate=False) for number, one in parts}
        return placed

    def _run(self, number: int, member: Member) -> RunColumns:
        """Return the run of a device's part of the model; raises like `Evaluator.evaluate`."""
        key = number, member.hardware.digest
        if key not in self._runs:
            chip = attrs.evolve(member.hardware, compiler=None)
            self._runs[key] = self._parts[number].evaluate(chip, member.configuration)
        return self._runs[key]

    def find_asked(self, hardware: Hardware) -> frozenset[str]:
        """Return the names of the constants on which the result depends, of busy devices, idle devices and links."""
        assert isinstance(hardware, BoxHardware)
        assert self._placed is not None
        at_work = {self._placed.problem.members[number].device.name for number in self._placed.members}
        watched = [watch_asked(chip) for chip in hardware.devices]
        self._runs.clear()
        self.evaluate(attrs.evolve(hardware, devices=tuple(chip for chip, _ in watched)))
        names = {"tdp"}
        for (_, device), (chip, asked) in zip(hardware.box, watched, strict=True):
            if device.name in at_work:
                levels = (
                    Address("memory", one.name, field).own for one in chip.memory_levels for field in LEVEL_FIELDS
                )
                names |= {f"{device.name}.{name}" for name in (*asked(), *levels, *TIMED)}
        for kind, chip in hardware.chips.items():
            if kind not in at_work:
                names.add(f"{kind}.{next(one for one in IDLE if getattr(chip, one) is not None)}")
        if self._placed.run is not None and self._placed.run.copies:
            names |= {
                str(Address("link", name_link(hardware.box, one), field))
                for one in hardware.box.links
                for field in LINK_FIELDS
            }
        return frozenset(names)


def _add_up(placed: Candidate) -> dict[str, float]:
    """Return device and action -> joules: for each energy per action, the energy of a batch that scales with it.

    The losses of voltage regulators are included.
    """
    members = placed.problem.members
    energies: dict[str, float] = defaultdict(float)
    for number, (part, share) in placed.parts.items():
        reference, kind = part.hardware.reference, members[number].device.name
        action = part.ledger.action_index.astype(np.intp)
        spent = np.bincount(action, part.ledger.energy_fj, len(reference)) * share / FJ_PER_J
        lossy = reference.position(LOSS_ACTION)
        lost = reference.loss_j if lossy is not None and spent[lossy] > 0.0 else 0.0
        for row, joules in zip(reference, spent.tolist(), strict=True):
            if joules > 0.0:
                energies[".".join((kind, *row.key))] += joules * (1.0 + lost * row.is_delivered)
    kinds = {one.name: one.device.name for one in members}
    for line in placed.run.between if placed.run is not None else ():
        if line.action in CONVERSIONS.values():
            name = f"{kinds[line.device]}.{line.component}.{line.action.removeprefix('convert_')}"
            energies[name] += line.energy_fj / FJ_PER_J
    return dict(energies)


def _list_spare_w(placed: Candidate, drawn_w: float) -> Iterator[float]:
    """Yield the margins in watts between drawn power and limit, of each part and of the whole box.

    For unlike devices side by side, or close to a limit, the margin is negative, which enforces a full evaluation.
    """
    budget = placed.problem.box.power
    if budget is not None:
        yield budget.value - drawn_w
    chips = {number: placed.problem.members[number].hardware for number in placed.members}
    if placed.run is not None:
        for number, part in placed.run.parts.items():
            yield float(PowerLaw.of(chips[number]).limit_w) - part.uncapped_power_w
        return
    each_w, limit_w = drawn_w / len(chips), float(PowerLaw.of(next(iter(chips.values()))).limit_w)
    is_free = len({chip.digest for chip in chips.values()}) == 1 and each_w < FREE * limit_w
    yield limit_w - each_w if is_free else -1.0
