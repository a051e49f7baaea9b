"""Load a stored run as records: its subgraphs with their allocations, their operators, and its whole ledger."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from joulemap.plan.source import Source, reading
from joulemap.row.analyze import RunTotal
from joulemap.row.run import Allocation, LedgerLine
from joulemap.store.query import check_runs, fetch
from joulemap.store.run import find_outlines, find_workload_of
from joulemap.store.workload import read_workload
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

if TYPE_CHECKING:
    from joulemap.physics.record.workload import Operator, Subgraph, Workload

LedgerField = Literal["category", "common_category", "component", "action", "part", "basis"]
"""Field by which lines of the ledger can be grouped."""


@frozen
class EnergyBreakdown:
    """Lines of the ledger and their exact sum."""

    lines: tuple[LedgerLine, ...]

    def __iter__(self) -> Iterator[LedgerLine]:
        return iter(self.lines)

    @property
    def energy_fj(self) -> int:
        """Exact sum of the lines in femtojoules."""
        return sum(line.energy_fj for line in self.lines)

    @property
    def energy_j(self) -> float:
        """Sum of the lines in joules, rounded once."""
        return self.energy_fj / FJ_PER_J

    @property
    def overhead(self) -> EnergyBreakdown:
        """Lines of architectural overhead: all except arithmetic, off-chip memory, board, host and static power."""
        return EnergyBreakdown(tuple(line for line in self.lines if line.is_overhead))

    def by(self, field: LedgerField) -> dict[str, EnergyBreakdown]:
        """Group the lines by a field; return value -> its lines, most energy first. The groups sum to the whole
        exactly.
        """
        groups: dict[str, list[LedgerLine]] = {}
        for line in self.lines:
            groups.setdefault(getattr(line, field), []).append(line)
        parts = {name: EnergyBreakdown(tuple(lines)) for name, lines in groups.items()}
        return dict(sorted(parts.items(), key=lambda item: (-item[1].energy_fj, item[0])))


@frozen(kw_only=True)
class RunOperator:
    """Operator as a run executed it."""

    operator_index: int
    operator: Operator
    energy: EnergyBreakdown


@frozen(kw_only=True)
class RunSubgraph:
    """Subgraph as a run executed it."""

    subgraph: Subgraph
    allocation: Allocation
    operators: tuple[RunOperator, ...]
    """Operators of the subgraph that use energy, in execution order."""

    @cached_property
    def energy(self) -> EnergyBreakdown:
        """Ledger lines of all operators of the subgraph."""
        return EnergyBreakdown(tuple(line for one in self.operators for line in one.energy))


@frozen(kw_only=True)
class Run:
    """Stored run: run -> subgraph -> operator -> ledger line, with exact sums at every level."""

    total: RunTotal
    workload: Workload
    subgraphs: tuple[RunSubgraph, ...]
    """Executed subgraphs, in execution order."""

    @cached_property
    def energy(self) -> EnergyBreakdown:
        """Whole ledger of the run."""
        return EnergyBreakdown(tuple(line for one in self.subgraphs for line in one.energy))


def run(source: Source, run_id: int) -> Run:
    """Return a stored run as records: its workload, subgraphs, allocations, operators and whole ledger.

    Ids are in `answer.scope.run_ids` and in the SQL views. Raises UnknownNameError for a run that is not stored,
    UnsupportedError with the reason for one that was refused, DatabaseError.
    """
    if isinstance(run_id, bool) or not isinstance(run_id, int):
        raise UsageError(f"run_id is {run_id!r}, expected a whole number")
    with reading(source) as connection:
        check_runs(connection, {"run_id": run_id})
        refusal = find_outlines(connection, [run_id])[run_id].refusal
        if refusal is not None:
            raise UnsupportedError(refusal)
        totals = fetch(connection, RunTotal, run_id=run_id)
        workload = read_workload(connection, find_workload_of(connection, run_id))
        allocations = fetch(connection, Allocation, run_id=run_id)
        lines = fetch(connection, LedgerLine, run_id=run_id)
    return _assemble(totals[0], workload, allocations.rows, lines.rows)


def _assemble(
    total: RunTotal, workload: Workload, allocations: tuple[Allocation, ...], lines: tuple[LedgerLine, ...]
) -> Run:
    operators: dict[int, list[RunOperator]] = {}
    for index, group in groupby(lines, lambda line: line.operator_index):
        mine = tuple(group)
        one = RunOperator(operator_index=index, operator=workload.operators[index], energy=EnergyBreakdown(mine))
        operators.setdefault(mine[0].subgraph_index, []).append(one)
    return Run(
        total=total,
        workload=workload,
        subgraphs=tuple(
            RunSubgraph(
                subgraph=workload.subgraphs[allocation.subgraph_index],
                allocation=allocation,
                operators=tuple(operators.get(allocation.subgraph_index, ())),
            )
            for allocation in allocations
        ),
    )
