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
from joulemap.box.constant import list_kinds
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
        for (_, device), (_, asked) in zip(hardware.box, watched, strict=True):
            if device.name in at_work:
                found |= {f"{device.name}.{name}" for name in (*asked(), *TIMED)}
        for kind, chip in list_kinds(hardware).items():
            if kind not in at_work:
                found.add(f"{kind}.{next(one for one in IDLE if getattr(chip, one) is not None)}")
        if self._placed.run is not None and self._placed.run.copies:
            found |= {f"link.{'-'.join(link.between)}.{field}" for link in hardware.box.links
                      for field in ("bandwidth", "latency", "energy")}  # fmt: skip
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
    """Yield the power that each part, and all of the box, stays below its limit."""
    budget = hardware.capped.power
    if budget is not None:
        yield budget.value - drawn_w
    ran = placed.run
    for number in placed.members:
        chip = problem.members[number].hardware
        part = None if ran is None else ran.parts[number]
        yield float(PowerLaw.of(chip).limit_w) - (drawn_w if part is None else part.uncapped_power_w)
