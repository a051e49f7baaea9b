"""Storage of evaluated runs as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import numpy as np

from joulemap.physics.run import BOTTLENECKS, BOUNDS, RunColumns, RunFacts, RunTotals
from joulemap.store.connection import Connection
from joulemap.store.digest import NAMED, RUN, Digester
from joulemap.store.hardware import identify_actions, read_vocabulary
from joulemap.store.insert import insert_columns, next_id, utc_now
from joulemap.store.reason import write_values
from joulemap.store.run import mark_newest
from joulemap.store.total import (
    HALF,
    copy_actions,
    drop_sums,
    mark_detailed,
    sum_actions,
    write_actions,
    write_totals,
)
from joulemap.system.errors import Reason
from joulemap.system.record import define, frozen


@frozen(kw_only=True)
class RunIdentity:
    """Key and configuration under which a run is stored."""

    run_key: str
    workload_id: int
    hardware_digest: str
    power_mode: str
    batch: int
    point: Mapping[str, str]
    """Further dimension of the configuration -> its value."""
    calibration: str
    """Name of the calibration, or `none`."""
    calibration_digest: str
    """Digest of the calibration; empty without one."""
    formula_version: str
    """Digest that identifies the version of the formulas."""
    package_version: str
    placement: str = ""
    """Description of a placement on a box and its devices; empty for a single chip."""


FACTS: Final = tuple(
    field.name for field in attrs.fields(RunFacts) if field.name not in ("configuration", "hardware", "mac_count")
)
"""Columns of `run` that come from an evaluation, whether it computed totals or a ledger."""

SUMS: Final = (
    "latency_fs", "interval_fs", "compute_fs", "memory_fs", "launch_fs", "mac_count", "computed_mac_count",
    "dram_bytes", "moved_bytes",
)  # fmt: skip
"""Columns of `point_total` that have the same name in `RunTotals`."""

NO_REFUSAL: Final = {"refusal": None, "refusal_code": None, "refusal_values": None}
"""Columns of `run` on the reason of a refusal, for an evaluated run."""

CHUNK_LINES: Final = 1_000_000
"""Ledger lines per transaction; fewer lines cost time, more lines cost memory."""


@define
class RunWriter:
    """Queue of evaluated runs, which are inserted together, one table after the other."""

    connection: Connection
    points: Mapping[str, int] = attrs.field(factory=dict)
    """run_key -> run_id of runs stored as totals that will get a ledger."""
    line_count: int = attrs.field(default=0, init=False)
    """Number of ledger lines in the queue."""
    _rows: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict)
    _detailed: dict[int, float] = attrs.field(factory=dict)
    """run_id of each run stored as totals whose ledger is queued -> its separate_clock_fraction."""
    _next: int | None = None
    _action_ids: dict[str, Any] = attrs.field(factory=dict)
    _vocabulary: dict[tuple[str, ...], int] | None = None

    def add_refusal(self, identity: RunIdentity, reason: Reason) -> int:
        """Queue a configuration that the hardware cannot run, with the reason; return its run id."""
        refusal = {"refusal": reason.text, "refusal_code": reason.code, "refusal_values": write_values(reason.values)}
        return self._add_run(identity, has_ledger=False, **refusal)

    def add(self, identity: RunIdentity, run: RunColumns) -> int:
        """Queue an evaluated run and return its run id, which is the existing one if its totals are stored."""
        run_id = self.points.get(identity.run_key)
        separate = run.separate_clock_fraction
        if run_id is None:
            run_id = self._add_run(identity, has_ledger=True, separate_clock_fraction=separate, **_list_facts(run))
        else:
            self._detailed[run_id] = separate
        action_ids = self._find_actions(identity, run)
        subgraphs, operators, ledger = run.subgraphs, run.operators, run.ledger
        self._append("run_subgraph", run_id, len(subgraphs.subgraph_index), {
            field.name: getattr(subgraphs, field.name) for field in attrs.fields(type(subgraphs))
        } | {"bottleneck": np.array(BOTTLENECKS)[subgraphs.bottleneck]})  # fmt: skip
        self._append("run_operator", run_id, len(operators.operator_index), {
            field.name: getattr(operators, field.name) for field in attrs.fields(type(operators))
        })  # fmt: skip
        subgraph_of = np.zeros(
            int(operators.operator_index.max()) + 1 if len(operators.operator_index) else 1, np.int64
        )
        subgraph_of[operators.operator_index] = operators.subgraph_index
        self._append("ledger_line", run_id, len(ledger.energy_fj), {
            "subgraph_index": subgraph_of[ledger.operator_index],
            "operator_index": ledger.operator_index,
            "action_id": action_ids[ledger.action_index],
            NAMED: ledger.action_index.astype(np.uint16),
            "action_count": ledger.action_count,
            "energy_fj": ledger.energy_fj,
        })  # fmt: skip
        spent = sum_actions(ledger, action_ids)
        self._append("run_action", run_id, len(spent["action_id"]), spent)
        self.line_count += len(ledger.energy_fj)
        return run_id

    def add_totals(self, identity: RunIdentity, run: RunTotals) -> int:
        """Queue a run that has totals only; return its run id."""
        run_id = self._add_run(identity, has_ledger=False, **_list_facts(run))
        sums = {name: [getattr(run, name)] for name in SUMS}
        sums |= {f"{name}_bound_fs": [value] for name, value in zip(BOUNDS, run.bound_fs, strict=True)}
        sums |= {"unit_high": [run.unit_fs >> HALF], "unit_low": [run.unit_fs & (2**HALF - 1)]}
        self._append("point_total", run_id, 1, {name: np.array(value) for name, value in sums.items()})
        self._append("point_action", run_id, len(run.action_index), {
            "action_id": self._find_actions(identity, run)[run.action_index],
            NAMED: run.action_index.astype(np.uint16),
            "action_count": run.action_count,
            "energy_fj": run.action_fj,
        })  # fmt: skip
        self.line_count += len(run.action_index)
        return run_id

    def _find_actions(self, identity: RunIdentity, run: RunFacts) -> Any:
        """Return an array with the action_id of each row of the reference table of a run's hardware."""
        digest = identity.hardware_digest
        if digest not in self._action_ids:
            if self._vocabulary is None:
                self._vocabulary = read_vocabulary(self.connection)
            ids = [self._vocabulary[one] for one in identify_actions(run.hardware)]
            self._action_ids[digest] = np.array(ids, dtype=np.uint16)
        return self._action_ids[digest]

    def flush(self) -> None:
        """Insert all queued runs."""
        self.hand_over()()

    def hand_over(self) -> Callable[[], None]:
        """Empty the queue and return a function that inserts its runs, in any thread; more runs may be queued
        meanwhile.
        """
        rows, self._rows, self.line_count = self._rows, {}, 0
        detailed, self._detailed = self._detailed, {}

        def insert() -> None:
            digester = Digester(self.connection)
            runs, spent = _joined_runs(rows.pop("run", [])), rows.pop("run_action", [])
            parts = {table: digester.conform(table, _joined(rows.pop(table))) for table in list(rows)}
            if runs:
                runs["content_digest"] = digester.digest_runs(runs, parts)
                insert_columns(self.connection, "run", runs)
                digester.change_set(RUN, runs["content_digest"])
            for table in list(parts):
                columns = parts.pop(table)
                columns.pop(NAMED, None)
                insert_columns(self.connection, table, columns)
            drop_sums(self.connection, list(detailed))
            if spent:
                write_actions(self.connection, _joined(spent))
            if detailed:
                mark_detailed(self.connection, detailed)
            if runs:
                copy_actions(self.connection, runs["run_id"][0], runs["run_id"][-1])
                write_totals(self.connection, runs["run_id"][0], runs["run_id"][-1])
            mark_newest(self.connection)

        return insert

    def _append(self, table: str, run_id: int, count: int, columns: dict[str, Any]) -> None:
        block = {"run_id": np.full(count, run_id, dtype=np.int32), **columns}
        self._rows.setdefault(table, []).append(block)

    def _add_run(self, identity: RunIdentity, **facts: Any) -> int:
        if self._next is None:
            self._next = next_id(self.connection, "run", "run_id")
        run_id = self._next
        self._next += 1
        named = attrs.asdict(identity)
        row = {"run_id": run_id, **named.pop("point"), **named, **NO_REFUSAL, **facts}
        row["created_at"] = utc_now()
        self._rows.setdefault("run", []).append(row)
        return run_id


def _list_facts(run: RunFacts) -> dict[str, Any]:
    return {name: getattr(run, name) for name in FACTS}


def _joined(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return column -> concatenated array from several blocks of rows."""
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _joined_runs(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return column -> values of run rows, with None where a refused run lacks a column."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
