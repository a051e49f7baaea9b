"""Load a stored run as records: its subgraphs with their allocations, their operators, and its whole ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby
from typing import Any, Final, Literal

from joulemap.domain.table import group
from joulemap.generated.analyze import RunTotal
from joulemap.physics.record.workload import Operator, Subgraph, Workload
from joulemap.plan.reader import reading
from joulemap.plan.source import Source
from joulemap.store.connection import Connection
from joulemap.store.library import find_query
from joulemap.store.query import check_runs, fetch, run_query
from joulemap.store.run import find_outlines, find_workload_of
from joulemap.store.workload import read_workload
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

ALLOCATIONS: Final = "run.allocation"
"""Query whose columns are the fields of `Allocation`."""
LEDGER: Final = "run.ledger"
"""Query whose columns are the fields of `LedgerLine`."""

LedgerField = Literal["category", "common_category", "component", "action", "part", "basis"]
"""Field by which lines of the ledger can be grouped."""


@frozen(kw_only=True)
class LedgerLine:
    """Line of the ledger: one action of one operator, with its count, its price and their product."""

    subgraph_index: int
    operator_index: int
    category: str
    """Category of the action in the terms of its architecture class."""
    common_category: str
    """Category of the action that all classes share."""
    component: str
    action: str
    part: str
    """Operand or kind of work; empty if the action has only one."""
    per: str
    """Unit of the count, such as byte or MAC."""
    action_count: float
    energy_per_action_j: float
    energy_fj: int
    """Exact energy of the line: the product, rounded to a femtojoule."""
    energy_j: float
    is_overhead: bool
    """True for all except arithmetic, off-chip memory, board, host and static power."""
    basis: str
    """Basis of the energy per action: measured, published, derived, scaled, recalled or assumed."""
    source: str
    """Document, measurement or arithmetic behind the energy per action."""


@frozen(kw_only=True)
class Allocation:
    """Placement of a subgraph on units of a chip, with its time and bottleneck. Latencies sum to the run exactly."""

    subgraph_index: int
    units_used_count: int
    """Units with work in the fullest wave."""
    units_total_count: int
    """Units available at this precision."""
    unit_name: str
    """Name of the units that do the work: the hardware's main units, or others that take the remaining work."""
    tile_count: float
    wave_count: float
    """Rounds of tiles over the units."""
    wave_fill_fraction: float | None
    """Tiles over waves x units; None without tiles."""
    executed_mac_count: float
    """MAC slots of the tiles, padding included."""
    padding_fraction: float | None
    """Share of `executed_mac_count` without a MAC; None without tiles."""
    kernel_count: int
    latency_fs: int
    """Latency, exact."""
    latency_s: float
    compute_s: float
    """Time of the units, padded tiles and partial waves included."""
    memory_s: float
    """Time of the slowest memory level."""
    launch_s: float
    """Fixed cost of the kernels."""
    pass_s: float
    """Memory time of passes that the runtime adds."""
    bottleneck: str
    """Largest of compute, memory (passes included) and launch time."""
    dram_bytes: float
    """Bytes read and written off chip."""
    moved_bytes: float
    """Bytes across the boundaries of the kernels."""
    pass_bytes: float
    """Bytes read and written again by added passes, and by kernels that move more than their operands."""
    compute_utilization_fraction: float | None
    """Operations computed over those that the peak allows within the latency."""
    bandwidth_utilization_fraction: float | None
    """Attained over published off-chip bandwidth within the latency."""


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
        groups = group(self.lines, lambda line: getattr(line, field))
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
        allocations = [Allocation(**row) for row in _read(connection, ALLOCATIONS, run_id)]
        lines = [LedgerLine(**row) for row in _read(connection, LEDGER, run_id)]
    return _assemble(totals[0], workload, allocations, lines)


def _read(connection: Connection, query: str, run_id: int) -> Iterator[dict[str, Any]]:
    """Return the rows of a query about one run, each as column -> cell."""
    rows = run_query(connection, find_query(query), {"run_id": run_id})
    names = [column.name for column in rows.columns]
    return (dict(zip(names, row, strict=True)) for row in rows.rows)


def _assemble(
    total: RunTotal, workload: Workload, allocations: Iterable[Allocation], lines: Iterable[LedgerLine]
) -> Run:
    operators: dict[int, list[RunOperator]] = {}
    for index, own in groupby(lines, lambda line: line.operator_index):
        mine = tuple(own)
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
