"""One workload on variations of a box, each with its parts where they are on the box as it stands.

What another number would make of the placement is left out: a variation says what the same parts take then. Setting
the number places anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import numpy as np

from joulemap.box.candidate import Candidate, run_again
from joulemap.box.column import place, pose_box, run_placed
from joulemap.box.constant import LINK_FIELDS, list_kinds, name_link
from joulemap.box.hardware import CONVERSIONS, BoxHardware, device_key
from joulemap.box.member import find_ways
from joulemap.box.problem import Problem
from joulemap.domain.configuration import Configuration
from joulemap.domain.constant import LOSS, STATIC
from joulemap.domain.hardware import Hardware
from joulemap.domain.reference import LOSS_ACTION
from joulemap.model.power import PowerLaw
from joulemap.model.run import RunColumns
from joulemap.model.variation import Totals, watch_asked
from joulemap.model.workload import WorkloadColumns
from joulemap.system.record import define
from joulemap.system.units import FJ_PER_J, FS_PER_S

TIMED: Final = ("unit_count", "clock", "clock_die", "memory_bandwidth", "tdp", STATIC, LOSS)
"""What else a device's part depends on."""

FREE: Final = 0.98
"""Of a power limit: a device that draws less of it is not held by it."""

LEVEL_FIELDS: Final = ("capacity", "bandwidth")

IDLE: Final = ("idle_power", STATIC)
"""What a device without a part counts by, the first that it has."""


@define(eq=False)
class VariedBox:
    """A workload at one configuration on a box, placed when it is first evaluated."""

    work: WorkloadColumns
    configuration: Configuration
    _problem: Problem | None = attrs.field(default=None, init=False)
    _placed: Candidate | None = attrs.field(default=None, init=False)

    def evaluate(self, hardware: Hardware, like: str = "") -> Totals:
        """Return what the workload takes on a box, its parts where they were the first time; raises as a run does."""
        del like
        assert isinstance(hardware, BoxHardware)
        if self._problem is None or self._placed is None:
            self._problem = pose_box(self.work, hardware, self.configuration)
            self._placed = place(self._problem, hardware)
        members = hardware.list_members(self.configuration)
        problem = attrs.evolve(self._problem, members=members, ways=find_ways(hardware.box, members))
        with np.errstate(all="ignore"):  # numbers that are wrong by a hundred may have no answer
            placed = run_again(problem, hardware.capped, self._placed)
            run = run_placed(problem, hardware, self.configuration, placed)
        parts = dict(_add_up(hardware, run))
        interval_s = run.interval_fs / FS_PER_S
        return Totals(
            latency_s=run.latency_fs / FS_PER_S,
            interval_s=interval_s,
            energy_j=run.energy_fj / FJ_PER_J,
            action_j=parts,
            counted=frozenset(parts),
            spare_w=min(_list_spare_w(hardware, problem, placed, run.energy_fj / FJ_PER_J / interval_s)),
            cap_fraction=1.0,
        )

    def find_asked(self, hardware: Hardware) -> frozenset[str]:
        """Return the constants that the run of a box asks for: of devices with a part, of idle ones, of what joins."""
        assert isinstance(hardware, BoxHardware)
        assert self._placed is not None
        assert self._problem is not None
        at_work = {self._problem.members[number].device.name for number in self._placed.members}
        watched = [watch_asked(chip) for chip in hardware.devices]
        self.evaluate(attrs.evolve(hardware, devices=tuple(chip for chip, _ in watched)))
        found = {"tdp"}
        for (_, device), (chip, asked) in zip(hardware.box, watched, strict=True):
            if device.name in at_work:
                levels = (f"memory.{one.name}.{field}" for one in chip.memory_levels for field in LEVEL_FIELDS)
                found |= {f"{device.name}.{name}" for name in (*asked(), *levels, *TIMED)}
        for kind, chip in list_kinds(hardware).items():
            if kind not in at_work:
                found.add(f"{kind}.{next(one for one in IDLE if getattr(chip, one) is not None)}")
        if self._placed.run is not None and self._placed.run.copies:
            found |= {f"{name_link(hardware.box, one)}.{field}" for one in hardware.box.links for field in LINK_FIELDS}
        return frozenset(found)


def _add_up(hardware: BoxHardware, run: RunColumns) -> Iterator[tuple[str, float]]:
    """Yield each price of a device with the joules that are in proportion to it, what regulators lose of them too."""
    spent: dict[int, int] = {}
    for at, energy_fj in zip(run.ledger.action_index.tolist(), run.ledger.energy_fj.tolist(), strict=True):
        spent[at] = spent.get(at, 0) + energy_fj
    reference = run.hardware.reference

    def read(kind: str, key: tuple[str, str]) -> float:
        at = reference.position(device_key(kind, key))
        return 0.0 if at is None else spent.get(at, 0) / FJ_PER_J

    for kind, chip in list_kinds(hardware).items():
        lost = chip.reference.loss_j if read(kind, LOSS_ACTION) > 0.0 else 0.0
        for row in chip.reference:
            component, action = row.key
            is_delivered = row.common_category not in ("board", "static")
            joules = read(kind, row.key) * (1.0 + lost * is_delivered)
            if component == "dram" and action in CONVERSIONS:
                joules += read(kind, (component, CONVERSIONS[action]))
            if joules > 0.0:
                yield f"{kind}.{component}.{action}", joules


def _list_spare_w(hardware: BoxHardware, problem: Problem, placed: Candidate, drawn_w: float) -> Iterator[float]:
    """Yield the power that each part, and all of the box, stays below its limit; of whole batches side by side on
    unlike devices, or near a limit, none, so that everything is evaluated.
    """
    budget = hardware.capped.power
    if budget is not None:
        yield budget.value - drawn_w
    chips = {number: problem.members[number].hardware for number in placed.members}
    if placed.run is not None:
        for number, part in placed.run.parts.items():
            yield float(PowerLaw.of(chips[number]).limit_w) - part.uncapped_power_w
        return
    each_w, limit_w = drawn_w / len(chips), float(PowerLaw.of(next(iter(chips.values()))).limit_w)
    is_free = len({chip.digest for chip in chips.values()}) == 1 and each_w < FREE * limit_w
    yield limit_w - each_w if is_free else -1.0
