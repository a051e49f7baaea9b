"""Runs of a workload on any number of configurations.

    form kernels ─► place ─► count ─► power cap ─► latency ─► price ─► ledger
         │                                        └─ or sums: only totals
         └─ repeated with one kernel per call: the cost of each operator as a separate kernel

Kernels are formed here, once for all hardware. `timing` places, counts and times them, at the clock that `pace` and
`power` find; `outcome` builds runs from them. Equivalent chips are evaluated together (`column`), equal kernels once
(`kind`). A model that a chip's compiler runs only in part is evaluated in two parts (`fallback`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import numpy as np

from joulemap.physics.architecture import find_architecture, refuse
from joulemap.physics.column import gather, list_actions, skeleton
from joulemap.physics.kernel import KernelColumns, form_kernels
from joulemap.physics.kind import Kinds
from joulemap.physics.outcome import Asked, Timed, cut_runs
from joulemap.physics.record.configuration import NO_HOST, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.runtime import DEPLOYED_RUNTIME, RUNTIME, SEPARATE_RUNTIME
from joulemap.physics.run import RunColumns, RunTotals
from joulemap.physics.stream import count_streams
from joulemap.physics.sum import Patterns, add_up_runs
from joulemap.physics.timing import count_parts, find_activations, find_parts
from joulemap.physics.workload import Booleans, Integers, Work, WorkloadColumns
from joulemap.system.errors import Reason, UnsupportedError
from joulemap.system.record import define, frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

if TYPE_CHECKING:
    from joulemap.physics.record.compiler import Compiler

Place = tuple[Timed, int, int]
"""(timed kernels of several chips, index of one chip, number of chips)."""

Result = TypeVar("Result")
Ask = TypeVar("Ask", tuple[Hardware, Configuration], tuple[int, Hardware, Configuration])
Make = Callable[[Sequence[Asked]], Sequence[Result]]

BESIDE: Final = {name: SEPARATE_RUNTIME if one.merges else name for name, one in RUNTIME.items()}
"""Runtime -> runtime that shows the cost of its operators as separate kernels."""

ITSELF: Final = {name: name for name in RUNTIME}
"""Runtime -> itself, if nobody reads the cost of separate kernels."""

LEAST_GB: Final = 0.1
"""Minimum capacity that a refusal states in GB; a smaller one is stated in MB."""

TOGETHER: Final = 8192
"""Maximum operators over all hardware evaluated at once; more gain no speed and spill the CPU caches."""


GATHERED: Final = 4096
"""Maximum groups of chips that a cache holds, so that a process that makes chips does not keep them all."""


@define(eq=False)
class Gathering:
    """Cache of `column.skeleton` and `column.gather`, shared by workloads.

    Keys are hardware identities; values hold the hardware, so that no other object can get its identity.
    """

    _skeletons: dict[tuple[int, str, bool], tuple[Hardware, Hashable]] = attrs.field(factory=dict, init=False)
    _gathered: dict[tuple[str | int, ...], tuple[Sequence[Hardware], Hardware]] = attrs.field(factory=dict, init=False)

    def find_skeleton(self, hardware: Hardware, precision: str, *, exchanges: bool) -> Hashable:
        """Return the properties of a chip on which formulas branch (`column.skeleton`), cached.

        `exchanges` is True for a workload that sends data to other devices.
        """
        key = id(hardware), precision, exchanges
        if key not in self._skeletons:
            actions = list_actions(hardware, precision, exchanges=exchanges)
            self._skeletons[key] = hardware, skeleton(hardware, precision, actions)
        return self._skeletons[key][1]

    def gather(self, hardware: Sequence[Hardware], precision: str) -> Hardware:
        """Return chips that differ only in numbers as one chip (`column.gather`), cached."""
        key: tuple[str | int, ...] = precision, *map(id, hardware)
        if len(self._gathered) > GATHERED:
            self._gathered.clear()
            self._skeletons.clear()
        if key not in self._gathered:
            self._gathered[key] = hardware, gather(hardware, precision)
        return self._gathered[key][1]


@frozen
class Busy:
    """Energy and times that a workload takes on a chip."""

    spent_j: float
    taken_s: float
    """Interval between batches."""
    compute_s: float
    """Busy time of the units, at the full clock."""
    product_s: float
    """Part of `compute_s` in operators with products."""
    memory_s: float


@define
class Evaluator:
    """Evaluator of one workload on any number of configurations.

    Kernels depend only on precisions and runtime, so they are formed once for all hardware.
    """

    work: WorkloadColumns
    stretch: Integers | None = None
    """Number of the stretch of consecutive operators that each operator belongs to, if the host calls each stretch;
    else None.
    """
    gathering: Gathering = attrs.field(factory=Gathering, kw_only=True)
    """Hardware cache, shared by the workloads of one question."""
    has_separate: bool = attrs.field(default=True, kw_only=True)
    """False if columns of separate kernels are not needed; they then repeat those of the run."""
    _kernels: dict[tuple[str, str, str], KernelColumns] = attrs.field(factory=dict, init=False)
    _parts: dict[Compiler, tuple[Booleans, tuple[Evaluator, ...]]] = attrs.field(factory=dict, init=False)
    """Compiler -> mask of the operators that fall back, and evaluators of the chip's and the host's part. There are no
    evaluators if no operator falls back.
    """

    def __reduce__(self) -> tuple[type[Evaluator], tuple[WorkloadColumns, Integers | None]]:
        """Pickle only the workload and its stretches; the caches hold functions and are rebuilt."""
        return Evaluator, (self.work, self.stretch)

    def evaluate(self, hardware: Hardware, configuration: Configuration) -> RunColumns:
        """Return the run of the workload on a chip. Raises like the function `evaluate`."""
        (run,) = self.evaluate_all([(hardware, configuration)])
        if isinstance(run, Exception):
            raise run
        return run

    def evaluate_all(self, asked: Sequence[Asked]) -> list[RunColumns | UnsupportedError | KeyError]:
        """Return the run of each configuration, or the exception that `evaluate` raises because of its hardware.

        Hardware on which formulas branch alike is evaluated together, so that many configurations cost little more than
        a few.
        """
        return self._evaluate_all(asked, self.cut)

    def evaluate_totals(self, asked: Sequence[Asked]) -> list[RunColumns | RunTotals | UnsupportedError | KeyError]:
        """Return the totals of each configuration, or the exception that `evaluate` raises because of its hardware.

        A run that a host computes in part, or whose totals exceed 64 bits, is returned with its ledger.
        """
        return self._evaluate_all(asked, self.add_up)

    def measure(self, asked: Sequence[Asked]) -> list[Busy | UnsupportedError | KeyError]:
        """Return energy and times of each configuration; memory is not checked, and no host runs a part."""
        return self._evaluate_alone(asked, self._measure)

    def _evaluate_all(
        self, asked: Sequence[Asked], make: Make[Result]
    ) -> list[RunColumns | Result | UnsupportedError | KeyError]:
        results: dict[int, RunColumns | Result | UnsupportedError | KeyError] = {**self.find_apart(asked)}
        rest = [number for number in range(len(asked)) if number not in results]
        results |= zip(rest, self._evaluate_alone([asked[number] for number in rest], make), strict=True)
        return [results[number] for number in range(len(asked))]

    def find_apart(self, asked: Sequence[Asked]) -> dict[int, RunColumns | UnsupportedError | KeyError]:
        """Return index in `asked` -> run of a configuration whose compiler leaves part of it to a host, or the
        exception if the hardware lacks the precision or the memory; others run the whole workload.
        """
        runs: dict[int, RunColumns | UnsupportedError | KeyError] = {}
        for number, (hardware, configuration) in enumerate(asked):
            try:
                if (run := self._evaluate_parts(hardware, configuration)) is not None:
                    runs[number] = run
                else:
                    self._check(hardware, configuration)
            except (UnsupportedError, KeyError) as error:
                runs[number] = error
        return runs

    def _evaluate_alone(self, asked: Sequence[Asked], make: Make[Result]) -> list[Result | UnsupportedError | KeyError]:
        """Return the result of each configuration of hardware that runs the whole workload."""
        if len(asked) == 1:
            return list(evaluate_alike(asked, make))
        results: dict[int, Result | UnsupportedError | KeyError] = {}
        alike: dict[Hashable, list[int]] = {}
        for number, one in enumerate(asked):
            try:
                alike.setdefault(self.find_kind(*one), []).append(number)
            except (UnsupportedError, KeyError) as error:
                results[number] = error
        most = max(1, TOGETHER // max(1, self.work.operator_count))
        for numbers in alike.values():
            chips = list(dict.fromkeys(id(asked[number][0]) for number in numbers))
            for start in range(0, len(chips), most):
                some = frozenset(chips[start : start + most])
                mine = [number for number in numbers if id(asked[number][0]) in some]
                results |= zip(mine, evaluate_alike([asked[number] for number in mine], make), strict=True)
        return [results[number] for number in range(len(asked))]

    def find_kind(self, hardware: Hardware, configuration: Configuration) -> Hashable:
        """Return what chips have in common that run the workload by the same branches of formulas, at one precision."""
        precision, weights = configuration.arithmetic
        shape = self.gathering.find_skeleton(hardware, precision, exchanges=self._exchanges)
        links = tuple(hardware.links) if self._exchanges else ()
        decided = decides(hardware, self.work, precision, self.work.batch * self.work.inner_batch)
        return shape, links, decided, weights, precision

    @cached_property
    def _exchanges(self) -> bool:
        return bool(self.work.of_kind("communication").any())

    def falls_back(self, hardware: Hardware) -> bool:
        """Return whether the compiler of a chip leaves operators to a host."""
        if hardware.compiler is None:
            return False
        if hardware.compiler not in self._parts:
            from joulemap.physics.fallback import find_fallen, split_work

            mask = find_fallen(self.work, hardware.compiler)
            works = split_work(self.work, mask) if mask.any() else ()
            self._parts[hardware.compiler] = mask, tuple(Evaluator(*part) for part in works)
        return bool(self._parts[hardware.compiler][1])

    def _evaluate_parts(self, hardware: Hardware, configuration: Configuration) -> RunColumns | None:
        """Return the run if the compiler leaves part of it to a host; None if it runs all. Raises like `evaluate`."""
        if not self.falls_back(hardware) or hardware.compiler is None:
            return None
        from joulemap.physics.fallback import check_host, check_parts, configure_host, merge_runs

        mask, (chip, host) = self._parts[hardware.compiler]
        alone = attrs.evolve(hardware, compiler=None)
        if hardware.host == NO_HOST:
            check_parts(self.work, hardware, mask)
            return attrs.evolve(chip.evaluate(alone, configuration), hardware=hardware)
        helper = check_host(self.work, hardware, mask)
        return merge_runs(
            chip.evaluate(alone, configuration),
            host.evaluate(helper, configure_host(helper, configuration, self.work.operation[mask])),
            hardware,
        )

    def _time(self, asked: Sequence[Asked], chips: Iterable[int], runtime: str) -> dict[int, Place]:
        """Return id of a chip -> its place in the timed kernels."""
        return time_chips(self.form(asked[0][1], runtime), asked, chips, self.gathering)

    def _time_all(self, asked: Sequence[Asked]) -> dict[tuple[str, int], Place]:
        """Return (runtime, id of a chip) -> its place in the timed kernels, for configurations at one precision."""
        timed: dict[tuple[str, int], Place] = {}
        for runtime in dict.fromkeys(configuration.runtime for _, configuration in asked):
            chips = [id(chip) for chip, one in asked if one.runtime == runtime]
            timed |= {(runtime, name): index for name, index in self._time(asked, chips, runtime).items()}
        return timed

    def cut(self, asked: Sequence[Asked]) -> list[RunColumns]:
        """Return the runs of configurations at one precision on equivalent hardware."""
        timed = self._time_all(asked)
        separate = BESIDE if self.has_separate else ITSELF
        merged = dict.fromkeys(id(chip) for chip, one in asked if separate[one.runtime] != one.runtime)
        if apart := [name for name in merged if (SEPARATE_RUNTIME, name) not in timed]:
            timed |= {
                (SEPARATE_RUNTIME, name): index for name, index in self._time(asked, apart, SEPARATE_RUNTIME).items()
            }
        cuts: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for number, (chip, one) in enumerate(asked):
            own, index, _ = timed[one.runtime, id(chip)]
            alone, other, _ = timed[separate[one.runtime], id(chip)]
            cuts.setdefault((id(own), id(alone)), []).append((number, index, other))
        by_id = {id(one): (one, count) for one, _, count in timed.values()}
        by_number: dict[int, RunColumns] = {}
        for (own_id, alone_id), each in cuts.items():
            numbers, places, beside = zip(*each, strict=True)
            runs = cut_runs(by_id[own_id], places, by_id[alone_id], beside, [asked[number] for number in numbers])
            by_number |= zip(numbers, runs, strict=True)
        return [by_number[number] for number in range(len(asked))]

    def add_up(self, asked: Sequence[Asked]) -> Sequence[RunColumns | RunTotals]:
        """Return the totals of configurations at one precision on equivalent hardware, or their runs if totals exceed
        64 bits.
        """
        return add_up_all([self], {}, [(0, *one) for one in asked])

    def _measure(self, asked: Sequence[Asked]) -> list[Busy]:
        """Return energy and times of configurations at one precision on equivalent hardware."""
        timed = self._time_all(asked)
        measured = []
        for chip, one in asked:
            own, index, points = timed[one.runtime, id(chip)]
            exact = own.sum_exactly(own.operator_fj) / FJ_PER_J, own.sum_exactly(own.interval_fs) / FS_PER_S
            kernels, (compute, memory) = own.timing.kernels, own.timing.placement.busy_s
            busy = map(kernels.sum_workload, (compute, np.where(kernels.work.has_macs, compute, 0.0), memory))
            numbers = (float(np.broadcast_to(each, (points, 1))[index, 0]) for each in (*exact, *busy))
            measured.append(Busy(*numbers))
        return measured

    def _check(self, hardware: Hardware, configuration: Configuration) -> None:
        """Raise UnsupportedError for a precision that the hardware lacks, or a model that does not fit its memory."""
        if configuration.arithmetic[0] not in hardware.peaks:
            raise UnsupportedError.of(refuse_precision(hardware, configuration.precision))
        kernels = self.form(configuration, configuration.runtime)
        required = float(kernels.total_weight_bytes) + find_activations(kernels, hardware)
        if shortage := find_shortage(hardware.id, required, hardware.memory_capacity.value):
            raise UnsupportedError.of(shortage)

    def form(self, configuration: Configuration, runtime: str) -> KernelColumns:
        """Return the kernels that a runtime launches at the configuration's precisions, cached."""
        precision, weights = configuration.arithmetic
        key = precision, runtime, weights
        formed = self._kernels.get(key)
        if formed is None:
            formed = form_kernels(self.work, *key)
            if self.stretch is not None:
                formed = formed.called_at(self.stretch)
            self._kernels[key] = formed
        return formed


Asking = tuple[int, Hardware, Configuration]
"""(index of a workload, hardware, configuration)."""


def evaluate_together(
    evaluators: Sequence[Evaluator], asked: Sequence[Asking]
) -> list[RunColumns | RunTotals | UnsupportedError | KeyError]:
    """Return the totals of workloads on configurations, as `Evaluator.evaluate_totals` does for one workload.

    Workloads that take the same chips are evaluated together, so that several batch sizes cost little more than one.
    """
    by_number: dict[int, RunColumns | RunTotals | UnsupportedError | KeyError] = {}
    kinds: dict[tuple[int, str, str, str], dict[int, tuple[Hashable, list[int]]]] = {}
    for work, evaluator in enumerate(evaluators):
        mine = [number for number, (one, *_) in enumerate(asked) if one == work]
        apart = evaluator.find_apart([asked[number][1:] for number in mine])
        for index, number in enumerate(mine):
            if index in apart:
                by_number[number] = apart[index]
                continue
            _, hardware, one = asked[number]
            try:
                kind = evaluator.find_kind(hardware, one)
            except (UnsupportedError, KeyError) as error:
                by_number[number] = error
            else:
                key = id(hardware), one.runtime, one.precision, one.weight_precision
                kinds.setdefault(key, {}).setdefault(work, (kind, []))[1].append(number)
    joined: dict[Hashable, KernelColumns] = {}
    alike: dict[Hashable, list[list[int]]] = {}
    for (_, runtime, *_), each in kinds.items():
        group = runtime, tuple((work, kind) for work, (kind, _) in each.items())
        alike.setdefault(group, []).append([number for _, numbers in each.values() for number in numbers])
    for chips in alike.values():
        works = {asked[number][0] for number in chips[0]}
        rows = sum(evaluators[work].work.operator_count for work in works)
        most = max(1, TOGETHER // max(1, rows))
        for start in range(0, len(chips), most):
            numbers = [number for some in chips[start : start + most] for number in some]
            runs = evaluate_alike([asked[number] for number in numbers], partial(add_up_all, evaluators, joined))
            by_number |= zip(numbers, runs, strict=True)
    return [by_number[number] for number in range(len(asked))]


def evaluate_alike(
    asked: Sequence[Ask], make: Callable[[Sequence[Ask]], Sequence[Result]]
) -> Sequence[Result | UnsupportedError | KeyError]:
    """Return what `make` returns for all together; if that fails, for each alone, with exceptions due to hardware."""
    try:
        return make(asked)
    except Exception as error:
        if len(asked) == 1:
            return [refuse(asked[0][-2].architecture, error)]
    return [run for one in asked for run in evaluate_alike([one], make)]


def add_up_all(
    evaluators: Sequence[Evaluator], joined: dict[Hashable, KernelColumns], asked: Sequence[Asking]
) -> Sequence[RunColumns | RunTotals]:
    """Return the totals of configurations at one precision on equivalent hardware, each of which runs the same
    workloads under a runtime, or their runs if totals exceed 64 bits. `joined` caches kernels of joined workloads.
    """
    by_number: dict[int, RunTotals] = {}
    for runtime in dict.fromkeys(one.runtime for _, _, one in asked):
        mine = [number for number, (_, _, one) in enumerate(asked) if one.runtime == runtime]
        works = tuple(dict.fromkeys(asked[number][0] for number in mine))
        forms = [evaluators[work].form(asked[mine[0]][2], runtime) for work in works]
        first = evaluators[works[0]]
        kernels, key = forms[0], tuple(map(id, forms))
        if len(forms) > 1:
            kernels = joined[key] = joined.get(key) or Patterns.join(forms)
        chips = [asked[number][1:] for number in mine]
        timed = time_chips(kernels, chips, dict.fromkeys(id(hardware) for hardware, _ in chips), first.gathering)
        groups: dict[int, list[int]] = {}
        for number in mine:
            groups.setdefault(id(timed[id(asked[number][1])][0]), []).append(number)
        for numbers in groups.values():
            places = [(timed[id(asked[number][1])][1], works.index(asked[number][0])) for number in numbers]
            own, _, points = timed[id(asked[numbers[0]][1])]
            totals = add_up_runs((own, points), places, [asked[number][1:] for number in numbers], forms)
            if totals is None:
                return [run for work, chip, one in asked for run in evaluators[work].cut([(chip, one)])]
            by_number |= zip(numbers, totals, strict=True)
    return [by_number[number] for number in range(len(asked))]


def time_chips(
    kernels: KernelColumns, asked: Sequence[Asked], chips: Iterable[int], gathering: Gathering
) -> dict[int, Place]:
    """Return id of a chip -> its place in the timed kernels. Chips that cut the batches into equally many parts are
    timed together.
    """
    by_id = {id(hardware): hardware for hardware, _ in asked}
    names = list(dict.fromkeys(chips))
    whole = gathering.gather([by_id[one] for one in names], kernels.precision)
    if len(names) == 1:
        return {names[0]: (Timed.of(kernels, whole), 0, 1)}
    part_counts = find_parts(Kinds.of(kernels).kernels, whole)
    parts = [tuple(one) for one in np.broadcast_to(part_counts, (len(names), kernels.workload_count)).tolist()]
    timed: dict[int, Place] = {}
    for counts in dict.fromkeys(parts):
        cut = [name for name, part in zip(names, parts, strict=True) if part == counts]
        some = whole if len(cut) == len(names) else gathering.gather([by_id[one] for one in cut], kernels.precision)
        own = Timed.of(kernels, some, np.array(counts))
        timed |= {name: (own, index, len(cut)) for index, name in enumerate(cut)}
    return timed


def evaluate(work: WorkloadColumns, hardware: Hardware, configuration: Configuration) -> RunColumns:
    """Return the run of a workload on a chip.

    Raises UnsupportedError for a precision that the hardware lacks, for a model that does not fit its memory, or for a
    run beyond the store's range; UnpricedActionError for an action without an energy.
    """
    return Evaluator(work).evaluate(hardware, configuration)


def decides(hardware: Hardware, work: Work, precision: str, batch: float) -> tuple[Any, ...]:
    """Return the values on which formulas branch besides those of `column.skeleton`: numbers, or arrays for several
    chips.
    """
    return (
        *find_architecture(hardware.architecture).decides(hardware, work, precision),
        np.greater(hardware.reference.loss_j, 0.0),
        np.greater(count_streams(hardware, RUNTIME[DEPLOYED_RUNTIME]), 1.0),
        count_parts(batch, hardware)[()],
    )


def refuse_precision(hardware: Hardware, precision: str) -> Reason:
    """Return the reason that a chip lacks a precision."""
    return Reason(
        text=f"{hardware.id} has no {precision}; it has {', '.join(hardware.peaks)}",
        code="precision",
        values={"hardware": hardware.id, "precision": precision, "supported": tuple(hardware.peaks)},
    )


def find_shortage(name: str, required: float, capacity: float) -> Reason | None:
    """Return the reason that the required bytes exceed a chip's memory; None if they fit."""
    return refuse_bytes(name, required, capacity) if required > capacity else None


def refuse_bytes(name: str, required: float, capacity: float) -> Reason:
    """Return the reason that a chip's memory is too small."""
    scale, unit = (1e9, "GB") if capacity >= LEAST_GB * 1e9 else (1e6, "MB")
    has = f"{capacity / scale:.3g} {unit} of memory"
    return Reason(
        text=f"{name} has {has}; this configuration needs {required / scale:,.1f} {unit}",
        code="memory",
        values={"hardware": name, "required_bytes": float(required), "capacity_bytes": float(capacity)},
    )
