"""Reads of stored runs and of facts about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from joulemap.domain.assumed import AssumedEnergy
from joulemap.domain.dimension import spell_labels
from joulemap.physics.record.configuration import LAUNCH
from joulemap.physics.record.runtime import RUNTIMES
from joulemap.store.connection import Connection
from joulemap.store.literal import execute
from joulemap.system.errors import OTHER, Reason
from joulemap.system.record import frozen

DETAILED: Final = "(has_ledger OR refusal IS NOT NULL OR NOT $has_ledger)"
"""SQL condition on runs: with `$has_ledger`, they have a ledger or were refused; without it, any run matches."""


def find_runs(connection: Connection, run_keys: Iterable[str], *, has_ledger: bool = True) -> dict[str, int]:
    """Return run_key -> run_id of the stored runs with these keys; `has_ledger` excludes runs with totals only."""
    statement = f"SELECT run_key, run_id FROM internal.run WHERE list_contains($keys, run_key) AND {DETAILED}"
    rows = execute(connection, statement, {"keys": list(run_keys), "has_ledger": has_ledger}).fetchall()
    return {str(key): int(run_id) for key, run_id in rows}


def find_runs_of(connection: Connection, workload_ids: Collection[int], *, has_ledger: bool = True) -> dict[str, int]:
    """Return run_key -> run_id of the stored runs of workloads; `has_ledger` excludes runs with totals only."""
    statement = (
        f"SELECT run_key, run_id FROM internal.run WHERE workload_id IN (SELECT unnest($workloads)) AND {DETAILED}"
    )
    rows = execute(connection, statement, {"workloads": list(workload_ids), "has_ledger": has_ledger}).fetchall()
    return {str(key): int(run_id) for key, run_id in rows}


def find_all_runs(connection: Connection) -> list[int]:
    """Return the ids of all stored runs, in order."""
    return [
        int(run_id) for (run_id,) in connection.execute("SELECT run_id FROM internal.run ORDER BY run_id").fetchall()
    ]


@frozen
class Outline:
    """Configuration of a stored run, with its prediction intervals or the reason of its refusal."""

    model: str
    batch: int
    refusal: str | None
    """Reason why the run could not be evaluated; None if it was."""
    refusal_code: str | None
    refusal_values: str | None
    """Values of the reason as JSON."""
    hardware: str
    configured_hardware: str
    """Hardware id with its power mode."""
    boundary: str
    """Boundary of the run's energy: chip, board or system."""
    matmul_precision: str
    """Setting of the libraries for products at fp32."""
    precision: str
    weight_precision: str
    """Storage format of the weights of GEMMs; equal to the precision by default."""
    architecture: str
    vendor: str
    hardware_precisions: list[str]
    """Precisions that the hardware supports."""
    is_calibrated: bool
    changes: list[str]
    """Descriptions of hardware numbers that the user changed for the run."""
    package: str
    """Installed package that describes the hardware, with version; empty for any other hardware."""
    needs_host: str
    """Part of a host computer that the hardware needs to run; empty if it needs none."""
    is_node_board: bool
    """True for an accelerator in a server without a slot of its own, which shares the server's host with other boards.
    """
    host: str
    """Host named for the run; empty if none was."""
    runtime: str
    has_helper: bool
    """True if a host computes operators that the hardware's compiler does not support."""
    latency_half_width: float | None
    """Half-width of the 80 % interval of the natural logarithm of latency; this and the next three are None for a
    refused run.
    """
    latency_own_half_width: float | None
    """Part of the half-width that comes from uncertain numbers of this hardware."""
    energy_half_width: float | None
    energy_own_half_width: float | None
    is_new: bool
    """True if no measurement exists for this kind of work on the hardware's class."""
    placement: str
    """Description of a placement on a box and its devices; empty for a single chip."""

    @property
    def reason(self) -> Reason | None:
        """Reason why the run could not be evaluated; None if it was."""
        if self.refusal is None:
            return None
        from joulemap.store.reason import read_values

        return Reason(text=self.refusal, code=self.refusal_code or OTHER, values=read_values(self.refusal_values))


def find_outlines(connection: Connection, run_ids: Sequence[int]) -> dict[int, Outline]:
    """Return run_id -> configuration of the stored runs among these, in the given order."""
    from joulemap.physics.interval.scale import OTHER_WORK

    statement = (
        f"SELECT r.run_id, w.model, r.batch, r.refusal, r.refusal_code, r.refusal_values, v.hardware, "
        f"{spell_labels()['configured_hardware']}, v.boundary, "
        "v.matmul_precision, r.precision, r.weight_precision, v.architecture, v.vendor, p.precisions, "
        "r.calibration_digest <> '', v.changes, v.package, v.needs_host, "
        "v.needs_host = '' AND v.architecture <> 'cpu' AND v.deployment = ['datacenter'] AND r.placement = '', "
        "v.host, r.runtime, v.helper_digest <> '', "
        "t.latency_half_width, t.latency_own_half_width, t.energy_half_width, t.energy_own_half_width, "
        f"coalesce(t.latency_basis = '{OTHER_WORK}', FALSE), r.placement "
        "FROM internal.run AS r JOIN internal.hardware_version AS v USING (hardware_digest) "
        "JOIN internal.workload AS w USING (workload_id) "
        "LEFT JOIN internal.run_total AS t USING (run_id) "
        "LEFT JOIN (SELECT hardware_digest, list(precision) AS precisions FROM internal.hardware_precision "
        "GROUP BY hardware_digest) AS p USING (hardware_digest) "
        "SEMI JOIN (SELECT unnest(?) AS run_id) USING (run_id)"
    )
    rows = execute(connection, statement, [list(run_ids)]).fetchall()
    outlines = {run_id: Outline(*row) for run_id, *row in rows}
    return {run_id: outlines[run_id] for run_id in run_ids if run_id in outlines}


def find_assumed(connection: Connection, run_ids: Iterable[int]) -> dict[int, AssumedEnergy]:
    """Return run_id -> shares of its energy whose energy per action has the basis `assumed`."""
    statement = (
        "SELECT l.run_id, CAST(sum(l.energy_fj) AS DOUBLE) AS whole_fj, "
        "coalesce(sum(l.energy_fj) FILTER (e.basis = 'assumed'), 0) / nullif(whole_fj, 0e0), "
        "coalesce(sum(l.energy_fj) FILTER (e.basis = 'assumed' AND a.part = 'static'), 0) / nullif(whole_fj, 0e0) "
        "FROM internal.run_action AS l JOIN internal.run AS r USING (run_id) "
        "JOIN internal.action AS a USING (action_id) JOIN internal.energy_per_action AS e "
        "ON e.hardware_digest = r.hardware_digest AND e.action_id = l.action_id "
        "WHERE list_contains($ids, l.run_id) GROUP BY l.run_id"
    )
    rows = execute(connection, statement, {"ids": list(run_ids)}).fetchall()
    return {run_id: AssumedEnergy(*numbers) for run_id, *numbers in rows if None not in numbers}


def find_launches(connection: Connection, run_ids: Iterable[int]) -> tuple[tuple[str, str, bool, float], ...]:
    """Return (hardware, named host or empty, whether it has a host link, seconds per kernel launch) of runs.

    Only runs on GPUs whose kernels a host thread launches one by one count.
    """
    statement = (
        "SELECT v.hardware, v.host, bool_or(l.connects IS NOT NULL), any_value(f.value) "
        "FROM internal.run AS r JOIN internal.hardware_version AS v USING (hardware_digest) "
        "JOIN internal.hardware_fact AS f ON f.hardware_digest = v.hardware_digest AND f.quantity = $launch "
        "LEFT JOIN internal.hardware_link AS l ON l.hardware_digest = v.hardware_digest AND l.connects = 'host' "
        "WHERE list_contains($runtimes, r.runtime) AND v.architecture = 'gpu' AND list_contains($ids, r.run_id) "
        "GROUP BY ALL ORDER BY ALL"
    )
    runtimes = [one.name for one in RUNTIMES if one.launches_each]
    values = {"ids": list(run_ids), "runtimes": runtimes, "launch": f"coefficient.{LAUNCH}"}
    return tuple(execute(connection, statement, values).fetchall())


def count_appending(connection: Connection, run_ids: Iterable[int]) -> tuple[int, ...]:
    """Return the distinct numbers of operators that append rows to keys and values, of the workloads with any."""
    from joulemap.physics.record.workload import APPEND

    statement = (
        "SELECT DISTINCT count(*) FROM internal.workload_operator AS o WHERE o.variant = $append AND o.workload_id IN "
        "(SELECT workload_id FROM internal.run WHERE list_contains($ids, run_id)) GROUP BY o.workload_id ORDER BY ALL"
    )
    rows = execute(connection, statement, {"append": APPEND, "ids": list(run_ids)}).fetchall()
    return tuple(int(count) for (count,) in rows)


def find_projected_hardware(connection: Connection) -> frozenset[str]:
    """Return the ids of stored hardware that can be neither bought nor rented."""
    rows = connection.execute(
        "SELECT DISTINCT hardware FROM internal.hardware_version WHERE unavailable <> ''"
    ).fetchall()
    return frozenset(str(hardware) for (hardware,) in rows)


def find_workload_of(connection: Connection, run_id: int) -> int:
    """Return the workload_id of a stored run."""
    return int(execute(connection, "SELECT workload_id FROM internal.run WHERE run_id = ?", [run_id]).fetchall()[0][0])


def find_subgraphs(connection: Connection, run_ids: Iterable[int]) -> tuple[str, ...]:
    """Return the distinct subgraph names of stored runs, sorted."""
    statement = (
        "SELECT DISTINCT s.name FROM internal.run AS r JOIN internal.workload_subgraph AS s USING (workload_id) "
        "WHERE list_contains(?, r.run_id) ORDER BY s.name"
    )
    return tuple(str(name) for (name,) in execute(connection, statement, [list(run_ids)]).fetchall())


def mark_newest(connection: Connection) -> None:
    """Update the column `is_newest` of all runs after runs were added."""
    connection.execute(
        "UPDATE internal.run SET is_newest = NOT is_newest WHERE is_newest <> (run_id IN (SELECT run_id "
        "FROM newest_runs))"
    )
