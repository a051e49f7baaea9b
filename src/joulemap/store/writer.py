"""Evaluated runs to rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
import numpy as np

from joulemap.model.run import BOTTLENECKS, RunColumns
from joulemap.store.connection import Connection
from joulemap.store.digest import NAMED, RUN, Digester
from joulemap.store.hardware import identify_actions, read_vocabulary
from joulemap.store.row import insert_columns, next_id, utc_now
from joulemap.store.run import mark_newest
from joulemap.store.total import sum_actions, write_actions, write_totals
from joulemap.system.record import define, frozen


@frozen(kw_only=True)
class RunIdentity:
    """What a run is stored under."""

    run_key: str
    workload_id: int
    hardware_digest: str
    power_mode: str
    batch: int
    point: Mapping[str, str]
    """Its other dimensions -> their values."""
    calibration: str
    """Label of the calibration, or `none`."""
    calibration_digest: str
    """Empty for none."""
    formula_version: str
    """Digest of the formulas."""
    package_version: str
    placement: str = ""
    """Of a box: form and devices; empty for a chip."""


CHUNK_LINES: Final = 1_000_000
"""Ledger lines that are worth a transaction of their own: fewer cost time, more cost memory."""


@define
class RunWriter:
    """Collects evaluated runs and writes them together, table by table, each run's rows contiguous."""

    connection: Connection
    line_count: int = attrs.field(default=0, init=False)
    """Ledger lines queued."""
    _rows: dict[str, list[dict[str, Any]]] = attrs.field(factory=dict)
    _next: int | None = None
    _action_ids: dict[str, Any] = attrs.field(factory=dict)
    _vocabulary: dict[tuple[str, ...], int] | None = None

    def add_refusal(self, identity: RunIdentity, reason: str) -> int:
        """Queue a configuration that the hardware cannot run; return its run id."""
        return self._add_run(identity, refusal=reason)

    def add(self, identity: RunIdentity, run: RunColumns) -> int:
        """Queue an evaluated run; return its run id."""
        run_id = self._add_run(
            identity,
            units_total_count=run.units_total_count,
            peak_ops_per_s=run.peak_ops_per_s,
            memory_bandwidth_bytes_per_s=run.memory_bandwidth_bytes_per_s,
            weight_bytes=run.weight_bytes,
            activation_bytes=run.activation_bytes,
            clock_fraction=run.clock_fraction,
            clock_hz=run.clock_hz,
            voltage_factor=run.voltage_factor,
            uncapped_power_w=run.uncapped_power_w,
            throughput_limit=run.throughput_limit,
            separate_clock_fraction=run.separate_clock_fraction,
        )
        digest = identity.hardware_digest
        if digest not in self._action_ids:
            if self._vocabulary is None:
                self._vocabulary = read_vocabulary(self.connection)
            ids = [self._vocabulary[identity] for identity in identify_actions(run.hardware)]
            self._action_ids[digest] = np.array(ids, dtype=np.uint16)
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
            "action_id": self._action_ids[digest][ledger.action_index],
            NAMED: ledger.action_index.astype(np.uint16),
            "action_count": ledger.action_count,
            "energy_fj": ledger.energy_fj,
        })  # fmt: skip
        spent = sum_actions(ledger, self._action_ids[digest])
        self._append("run_action", run_id, len(spent["action_id"]), spent)
        self.line_count += len(ledger.energy_fj)
        return run_id

    def flush(self) -> None:
        """Insert everything queued."""
        self.hand_over()()

    def hand_over(self) -> Callable[[], None]:
        """Return what inserts everything queued up to now, in any thread; runs may be queued meanwhile."""
        rows, self._rows, self.line_count = self._rows, {}, 0

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
            if spent:
                write_actions(self.connection, _joined(spent))
            if runs:
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
        row = {"run_id": run_id, **named.pop("point"), **named, "refusal": None, **facts}
        row["created_at"] = utc_now()
        self._rows.setdefault("run", []).append(row)
        return run_id


def _joined(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns of blocks of rows."""
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _joined_runs(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of runs, of which a refused one lacks what only an evaluated one has."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
