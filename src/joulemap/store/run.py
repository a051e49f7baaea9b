"""Look up stored runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from joulemap.domain.compiler import UNLISTED_NAME
from joulemap.domain.configuration import LAUNCH
from joulemap.domain.dimension import spell_labels
from joulemap.store.connection import Connection
from joulemap.store.literal import execute
from joulemap.system.record import frozen

DETAILED: Final = "(has_ledger OR refusal IS NOT NULL OR NOT $has_ledger)"
"""SQL condition on runs with enough detail: with a ledger or a refusal if `$has_ledger`, else any."""


def find_runs(connection: Connection, run_keys: Iterable[str], *, has_ledger: bool = True) -> dict[str, int]:
    """Return run_key -> run_id for those of these keys that are stored; `has_ledger` excludes runs with totals only."""
    statement = f"SELECT run_key, run_id FROM internal.run WHERE list_contains($keys, run_key) AND {DETAILED}"
    rows = execute(connection, statement, {"keys": list(run_keys), "has_ledger": has_ledger}).fetchall()
    return {str(key): int(run_id) for key, run_id in rows}


def find_runs_of(connection: Connection, workload_id: int, *, has_ledger: bool = True) -> dict[str, int]:
    """Return run_key -> run_id for stored runs of a workload; `has_ledger` excludes runs with totals only."""
    statement = f"SELECT run_key, run_id FROM internal.run WHERE workload_id = $workload AND {DETAILED}"
    rows = execute(connection, statement, {"workload": workload_id, "has_ledger": has_ledger}).fetchall()
    return {str(key): int(run_id) for key, run_id in rows}


def find_all_runs(connection: Connection) -> list[int]:
    """Return the id of every stored run."""
    return [
        int(run_id) for (run_id,) in connection.execute("SELECT run_id FROM internal.run ORDER BY run_id").fetchall()
    ]


@frozen
class Outline:
    """Configuration of a stored run, and its intervals or refusal."""

    batch: int
    refusal: str | None
    """Reason why the run could not be evaluated; None if it was."""
    hardware: str
    configured_hardware: str
    """Hardware at its power mode."""
    boundary: str
    """Boundary of the run's energy."""
    tf32: str
    """`allowed` if the run's libraries may compute fp32 GEMMs in TF32, else empty."""
    is_calibrated: bool
    changes: list[str]
    """Changed numbers of the run's hardware."""
    needs_host: str
    """Part of a computer that its hardware needs; empty if it needs none."""
    is_node_board: bool
    """True for an accelerator of a server without its own slot: it shares the server's host with other boards."""
    host: str
    """Host that was named for the run; empty if there is none."""
    runtime: str
    has_helper: bool
    """True if a host computes operators that its compiler does not support."""
    latency_half_width: float | None
    """Half width of the 80 % interval of the latency's logarithm; this and the next three are None for a refused run.
    """
    latency_own_half_width: float | None
    """Part of the half-width that is due to the hardware's own numbers."""
    energy_half_width: float | None
    energy_own_half_width: float | None
    is_new: bool
    """True if the run's class has no measurements of this kind of work."""
    placement: str
    """Form of a box's placement and the devices in use; empty for a chip."""


def find_outlines(connection: Connection, run_ids: Sequence[int]) -> dict[int, Outline]:
    """Return run_id -> configuration for the stored ones of these runs, in their order."""
    from joulemap.uncertainty.scale import OTHER_WORK

    statement = (
        f"SELECT r.run_id, r.batch, r.refusal, v.hardware, {spell_labels()['configured_hardware']}, v.boundary, "
        "v.tf32, r.calibration_digest <> '', v.changes, v.needs_host, "
        "v.needs_host = '' AND v.architecture <> 'cpu' AND v.deployment = ['datacenter'] AND r.placement = '', "
        "v.host, r.runtime, v.helper_digest <> '', "
        "t.latency_half_width, t.latency_own_half_width, t.energy_half_width, t.energy_own_half_width, "
        f"coalesce(t.latency_basis = '{OTHER_WORK}', FALSE), r.placement "
        "FROM internal.run AS r JOIN internal.hardware_version AS v USING (hardware_digest) "
        "LEFT JOIN internal.run_total AS t USING (run_id) "
        "SEMI JOIN (SELECT unnest(?) AS run_id) USING (run_id)"
    )
    rows = execute(connection, statement, [list(run_ids)]).fetchall()
    found = {run_id: Outline(*row) for run_id, *row in rows}
    return {run_id: found[run_id] for run_id in run_ids if run_id in found}


@frozen
class AssumedEnergy:
    """Part of a run's energy whose energy per action is assumed."""

    energy_fj: float
    """Energy of the whole run."""
    fraction: float
    static_fraction: float
    """Share of the energy that is assumed static power."""

    @classmethod
    def add_up(cls, parts: Iterable[AssumedEnergy]) -> AssumedEnergy:
        """Return the assumed part of a sum of energies; its shares are 0 for a sum of 0."""
        listed = list(parts)
        whole_fj = sum(one.energy_fj for one in listed)
        shares = (
            sum(one.energy_fj * share for one, share in zip(listed, some, strict=True)) / (whole_fj or 1.0)
            for some in ([one.fraction for one in listed], [one.static_fraction for one in listed])
        )
        return cls(whole_fj, *shares)


def find_assumed(connection: Connection, run_ids: Iterable[int]) -> dict[int, AssumedEnergy]:
    """Return run_id -> part of its energy that follows from assumed numbers, from the bases of its ledger."""
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
    """Return (hardware, named host or empty, whether it has a host link, seconds per launch) of runs.

    Only runs in `eager` on GPUs, whose kernels a host thread launches.
    """
    statement = (
        "SELECT v.hardware, v.host, bool_or(l.connects IS NOT NULL), any_value(f.value) "
        "FROM internal.run AS r JOIN internal.hardware_version AS v USING (hardware_digest) "
        "JOIN internal.hardware_fact AS f ON f.hardware_digest = v.hardware_digest AND f.quantity = $launch "
        "LEFT JOIN internal.hardware_link AS l ON l.hardware_digest = v.hardware_digest AND l.connects = 'host' "
        "WHERE r.runtime = 'eager' AND v.architecture = 'gpu' AND list_contains($ids, r.run_id) "
        "GROUP BY ALL ORDER BY ALL"
    )
    values = {"ids": list(run_ids), "launch": f"coefficient.{LAUNCH}"}
    return tuple(execute(connection, statement, values).fetchall())


def find_unlisted_hardware(connection: Connection) -> frozenset[str]:
    """Return the ids of hardware whose compiler has no list of supported operators."""
    rows = execute(
        connection,
        "SELECT DISTINCT v.hardware FROM internal.hardware_operator AS o "
        "JOIN internal.hardware_version AS v ON v.hardware_digest = o.hardware_digest WHERE o.compiler = ?",
        [UNLISTED_NAME],
    ).fetchall()
    return frozenset(name for (name,) in rows)


def find_projected_hardware(connection: Connection) -> frozenset[str]:
    """Return the ids of stored hardware that can be neither bought nor rented."""
    rows = connection.execute(
        "SELECT DISTINCT hardware FROM internal.hardware_version WHERE unavailable <> ''"
    ).fetchall()
    return frozenset(str(hardware) for (hardware,) in rows)


def find_configurations(connection: Connection, run_ids: Iterable[int]) -> tuple[tuple[str, ...], ...]:
    """Return the distinct models, precisions (`bf16/int4` with the weight precision) and runtimes of stored runs."""
    statement = (
        "SELECT model, precision_label, runtime FROM run_configurations WHERE list_contains($ids, run_id) "
        "ORDER BY list_position($ids, run_id)"
    )
    rows = execute(connection, statement, {"ids": list(run_ids)}).fetchall()
    return tuple(tuple(dict.fromkeys(column)) for column in zip(*rows, strict=True))


def find_workload_of(connection: Connection, run_id: int) -> int:
    """Return the workload of a stored run."""
    return int(execute(connection, "SELECT workload_id FROM internal.run WHERE run_id = ?", [run_id]).fetchall()[0][0])


def find_subgraphs(connection: Connection, run_ids: Iterable[int]) -> tuple[str, ...]:
    """Return the distinct names of the subgraphs of stored runs."""
    statement = (
        "SELECT DISTINCT s.name FROM internal.run AS r JOIN internal.workload_subgraph AS s USING (workload_id) "
        "WHERE list_contains(?, r.run_id) ORDER BY s.name"
    )
    return tuple(str(name) for (name,) in execute(connection, statement, [list(run_ids)]).fetchall())


def mark_newest(connection: Connection) -> None:
    """Update the flags of all runs from `newest_runs`, after runs were added."""
    connection.execute(
        "UPDATE internal.run SET is_newest = NOT is_newest WHERE is_newest <> (run_id IN (SELECT run_id "
        "FROM newest_runs))"
    )
