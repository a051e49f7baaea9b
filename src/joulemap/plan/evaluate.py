"""Evaluation of planned runs and their queue to the store; one transaction is written while the next fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Final

from joulemap.domain.catalogue import DEFAULT_MODE
from joulemap.physics.pipeline import Asking, Evaluator, evaluate_together
from joulemap.physics.record.calibration import UNCALIBRATED
from joulemap.physics.record.configuration import BOARD, Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import RunColumns, RunTotals
from joulemap.plan.anchor import describe_gap
from joulemap.plan.budget import InHost, bind_hosts
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.change import describe_change, split_changes
from joulemap.plan.kind import HardwareKind, find_kind
from joulemap.plan.run import Plan, PlannedRun
from joulemap.plan.target import AT_BOUNDARY, AtBoundary, AtMode, Calibrated, Target
from joulemap.plan.version import formula_version
from joulemap.store.catalogue import ensure_calibrations, find_calibrations
from joulemap.store.connection import Connection, transaction
from joulemap.store.hardware import find_hardware, read_hardware, write_hardware
from joulemap.store.writer import CHUNK_LINES, RunIdentity, RunWriter
from joulemap.system.background import begin
from joulemap.system.errors import Reason, UnsupportedError
from joulemap.system.record import define, frozen
from joulemap.system.resource import package_version

Targets = Mapping[str, Hardware]
"""Digest of a target -> hardware record with its modifiers applied."""


AHEAD: Final = 50_000
"""Maximum operators evaluated before their runs are queued; a larger number costs memory without a gain."""

NOTHING_RUNS: Final = Reason(
    text="none of the model's operators runs as a kernel, so it takes neither time nor energy", code="no_kernel"
)
"""Reason for refusing a model that consists of views only, on any hardware."""


@frozen
class Job:
    """A workload and its runs that are missing in the database."""

    evaluator: Evaluator
    workload_id: int
    runs: Sequence[PlannedRun]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.runs)


@define
class Queue:
    """Queue of evaluated runs for the database; one transaction is written while the next fills.

    The writer has a separate connection, so that workloads can be read meanwhile.
    """

    writer: RunWriter
    targets: Targets
    has_ledger: bool = True
    """True to store runs with ledgers; runs of a box or with a fallback always have one."""
    _finish: Callable[[], None] | None = None

    def add(self, jobs: Sequence[Job]) -> Iterator[bool]:
        """Evaluate the runs of jobs together and queue them in order; yield True for each refused run."""
        operators = sum(job.evaluator.work.operator_count for job in jobs)
        most = max(1, AHEAD // max(1, operators)) if len(jobs) == 1 else len(max(jobs, key=len).runs)
        for start in range(0, max(map(len, jobs)), most):
            some = [(number, run) for number, job in enumerate(jobs) for run in job.runs[start : start + most]]
            asked = [(number, *self._ask(jobs[number], run)) for number, run in some]
            results = _evaluate([job.evaluator for job in jobs], asked, has_ledger=self.has_ledger)
            for (number, run), result in zip(some, results, strict=True):
                job = jobs[number]
                yield self._queue(job.workload_id, run, job.evaluator.work.batch, result)

    def _ask(self, job: Job, run: PlannedRun) -> tuple[Hardware, Configuration]:
        configuration = Configuration(
            hardware=run.hardware, power_mode=run.power_mode, batch=job.evaluator.work.batch, **run.point
        )
        return self.targets[run.target.digest], configuration

    def _queue(
        self,
        workload_id: int,
        run: PlannedRun,
        batch: int,
        result: RunColumns | RunTotals | UnsupportedError | KeyError,
    ) -> bool:
        """Queue the result of a run; return True if it was refused."""
        target = self.targets[run.target.digest]
        if isinstance(result, KeyError):  # neither the hardware's file nor its class gives the number
            raise describe_gap(run.hardware, result) from result
        identity = RunIdentity(
            run_key=run.run_key,
            workload_id=workload_id,
            hardware_digest=target.digest
            if isinstance(result, UnsupportedError)
            else self._keep(target, result.hardware),
            power_mode=run.power_mode,
            batch=batch,
            point=run.point,
            calibration=run.calibration.label if run.calibration else UNCALIBRATED,
            calibration_digest=run.calibration.digest if run.calibration else "",
            formula_version=formula_version(target.architecture),
            package_version=package_version("joulemap"),
            placement="" if isinstance(result, UnsupportedError) else getattr(result.hardware, "placement", ""),
        )
        if isinstance(result, UnsupportedError):
            self.writer.add_refusal(identity, result.reason)
            return True
        if isinstance(result, RunTotals):
            self.writer.add_totals(identity, result)
        elif not len(result.subgraphs.latency_fs):
            self.writer.add_refusal(identity, NOTHING_RUNS)
            return True
        else:
            self.writer.add(identity, result)
        if self.writer.line_count >= CHUNK_LINES:
            self.store()
        return False

    def _keep(self, target: Hardware, hardware: Hardware) -> str:
        """Return the digest of the hardware that a run used; store the hardware if it is missing.

        A run may change the voltages of the chips in a box, so its hardware can differ from the target.
        """
        if hardware.digest != target.digest:
            self.wait()
            if not find_hardware(self.writer.connection, [hardware.digest]):
                with transaction(self.writer.connection):
                    write_hardware(self.writer.connection, [hardware], package_version("joulemap"))
        return hardware.digest

    def store(self) -> None:
        """Wait for the running transaction, and begin the next with the queued runs."""
        self.wait()
        insert = self.writer.hand_over()

        def commit() -> None:
            with transaction(self.writer.connection):
                insert()

        self._finish = begin(commit)

    def wait(self) -> None:
        """Wait for the running transaction; raises its error."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()

    def close(self) -> None:
        """Store the queued runs and close the connection, so that the file is not kept open."""
        try:
            self.store()
            self.wait()
        finally:
            self.writer.connection.close()


def _evaluate(
    evaluators: Sequence[Evaluator], asked: Sequence[Asking], *, has_ledger: bool
) -> list[RunColumns | RunTotals | UnsupportedError | KeyError]:
    """Return the run, totals or error of each configuration; all chips, and all workloads, are evaluated together."""
    results: dict[int, RunColumns | RunTotals | UnsupportedError | KeyError] = {}
    for number, (work, hardware, configuration) in enumerate(asked):
        if (kind := find_kind(hardware.architecture)) is not None:
            results[number] = _evaluate_one(kind, evaluators[work], hardware, configuration)
    rest = [number for number in range(len(asked)) if number not in results]
    if has_ledger:
        for work, evaluator in enumerate(evaluators):
            mine = [number for number in rest if asked[number][0] == work]
            results |= zip(mine, evaluator.evaluate_all([asked[number][1:] for number in mine]), strict=True)
    else:
        results |= zip(rest, evaluate_together(evaluators, [asked[number] for number in rest]), strict=True)
    return [results[number] for number in range(len(asked))]


def _evaluate_one(
    kind: HardwareKind, evaluator: Evaluator, hardware: Hardware, configuration: Configuration
) -> RunColumns | UnsupportedError:
    try:
        return kind.evaluate(evaluator.work, hardware, configuration)
    except UnsupportedError as error:
        return error


Planned = tuple[Plan, PlannedRun]
"""(plan, one of its runs)."""


def ensure_hardware(connection: Connection, planned: Sequence[Planned]) -> Targets:
    """Return target digest -> hardware of the runs, calibrated and at its mode and boundary; store what is missing.

    Hardware of several plans is read, bound and stored together. Raises CatalogueError for a calibration that does not
    fit, or a chip that cannot be mapped.
    """
    if not planned:
        return {}
    stored = read_targets(connection, planned)
    missing = {run.target.digest: (plan, run) for plan, run in planned if run.target.digest not in stored}
    if not missing:
        return stored
    own = {one.digest: one for plan in _list_plans(planned) for one in plan.selection.own.values()}
    split = {digest: split_changes(run.target) for digest, (_, run) in missing.items()}
    before = [(plan, split[digest][0]) for digest, (plan, _) in missing.items()]
    hosts = [(plan, one.host) for plan, target in before for one in target.modifiers if isinstance(one, InHost)]
    begun = read_begun(connection, (*before, *hosts))
    unread = {one.described.digest for _, one in before if one.digest not in begun}
    known = {**read_hardware(connection, unread - own.keys()), **own}
    bind_hosts([host for _, host in hosts], [known[digest] for digest in unread], begun)
    plain = {
        one.digest: one.bind(*begun[one.digest]) if one.digest in begun else one.bind(known[one.described.digest])
        for _, one in before
    }
    targets = {
        digest: reduce(lambda hardware, last: last.apply(hardware), after, changed.apply(plain[one.digest]))
        for digest, (one, changed, after) in split.items()
    }
    changes = {
        digest: [describe_change(one, targets[digest]) for one in changed.changes]
        for digest, (_, changed, _) in split.items()
    }
    fitted = {
        (run.hardware_digest, run.calibration): plan.calibration
        for plan, run in missing.values()
        if run.hardware_digest in unread
    }
    ensure_calibrations(
        connection,
        [
            (entry, use.load(entry, known[digest].architecture), known[digest])
            for (digest, entry), use in fitted.items()
            if entry is not None
        ],
    )
    helpers = [one.helper for one in plain.values() if one.helper is not None]
    needed = {one.digest: one for one in (*helpers, *plain.values(), *targets.values())}
    needed |= {digest: own[digest] for _, run in missing.values() if (digest := run.hardware_digest) in own}
    there = find_hardware(connection, needed)
    fresh = [one for digest, one in needed.items() if digest not in there]
    write_hardware(connection, fresh, package_version("joulemap"), changes)
    return {**stored, **targets}


def _list_plans(planned: Iterable[tuple[Plan, object]]) -> list[Plan]:
    """Return the plans, each once."""
    return list({id(plan): plan for plan, _ in planned}.values())


def read_targets(connection: Connection, planned: Sequence[Planned]) -> Targets:
    """Return target digest -> stored hardware of the runs, where the current formulas would produce the same record.

    Hardware with set constants is omitted, so that it is always rebuilt.
    """
    is_certain = _judge(connection, planned)

    def is_plain(target: Target) -> bool:
        _, changed, after = split_changes(target)
        return not (changed.word or after)

    certain = {run.target.digest for plan, run in planned if is_plain(run.target) and is_certain(plan, run.target)}
    return read_hardware(connection, find_hardware(connection, certain))


def read_begun(connection: Connection, targets: Sequence[tuple[Plan, Target]]) -> dict[str, tuple[Hardware, int]]:
    """Return target digest -> (stored hardware, number of the target's first modifiers that it has), for `Target.bind`.

    It is the hardware with the most modifiers, at least the boundary, that the current formulas would produce again;
    targets without any are omitted.
    """
    is_certain = _judge(connection, targets)
    digests = {one.digest: one.digests[AT_BOUNDARY:] for plan, one in targets if is_certain(plan, one)}
    there = find_hardware(connection, {digest for several in digests.values() for digest in several})
    begun: dict[str, tuple[str, int]] = {}
    for target, several in digests.items():
        counts = [AT_BOUNDARY + index for index, digest in enumerate(several) if digest in there]
        if counts:
            begun[target] = several[counts[-1] - AT_BOUNDARY], counts[-1]
    read = read_hardware(connection, {digest for digest, _ in begun.values()})
    return {target: (read[digest], count) for target, (digest, count) in begun.items()}


def _judge(connection: Connection, planned: Iterable[tuple[Plan, object]]) -> Callable[[Plan, Target], bool]:
    """Return a function that tells whether the digest of a chip of a plan at its boundary determines its record: no
    formula that it does not name was changed since the record was stored.
    """
    fitted = find_calibrations(connection)
    own = {id(plan): {one.digest for one in plan.selection.own.values()} for plan in _list_plans(planned)}

    def is_certain(plan: Plan, target: Target) -> bool:
        described, (used, mode, at, *_) = target.described, (*target.modifiers, None, None, None)
        if described.digest in own[id(plan)] or not isinstance(mode, AtMode) or not isinstance(at, AtBoundary):
            return False
        calibration = plan.calibration.find(described)
        if calibration is None:
            return mode.name == DEFAULT_MODE or not at.boundary == at.priced_at == BOARD
        chip = known_hardware().get(calibration.hardware)
        now = None if chip is None else (chip.digest, formula_version(described.architecture))
        return isinstance(used, Calibrated) and now is not None and fitted.get(used.digest) == now

    return is_certain
