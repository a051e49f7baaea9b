"""Built-in workloads in a database, read on first use from the files that `make zoo` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from joulemap.bundle.pack import SEPARATOR, Column, Texts, as_numbers, as_texts, join_texts
from joulemap.bundle.workload import GROWING, open_zoo
from joulemap.store.connection import Connection
from joulemap.store.digest import WORKLOAD, Digester
from joulemap.store.insert import describe_arrays, insert_columns, next_id, utc_now
from joulemap.store.literal import execute
from joulemap.store.workload import read_shape
from joulemap.system.record import frozen


@frozen
class Shipped:
    """Request for a shipped workload at a batch size, with the key that it gets in the database."""

    model: str
    batch: int
    workload_key: str
    input_spec: str = ""


def read_shipped(connection: Connection, folder: Path, wanted: Sequence[Shipped]) -> list[int]:
    """Copy shipped workloads into the database and return their ids. The caller holds the transaction.

    Reading many at once takes little longer than one, because a block of workloads is decoded once.
    """
    zoo = open_zoo(folder)
    first = next_id(connection, "workload", "workload_id")
    ids = list(range(first, first + len(wanted)))
    names = ("model", "source", "parameter_count", "weight_bytes", "work", "torch_version", "torchvision_version",
             "tracer_version", "notes")  # fmt: skip
    insert_columns(
        connection,
        "workload",
        {
            "workload_id": ids,
            "workload_key": [one.workload_key for one in wanted],
            "input_spec": [one.input_spec for one in wanted],
            "input_shape": [read_shape(one.input_spec, one.batch) for one in wanted],
            "batch": [one.batch for one in wanted],
            "inner_batch": [1] * len(wanted),
            "created_at": [utc_now()] * len(wanted),
            "content_digest": [""] * len(wanted),
            **{name: [zoo.models[one.model][name] for one in wanted] for name in names},
        },
    )
    tables = zoo.restore_all([(one.model, one.batch) for one in wanted])
    for table in GROWING:
        _insert(connection, table, ids, [one[table] for one in tables])
    Digester(connection).seal(WORKLOAD, ids)
    return ids


def _insert(connection: Connection, table: str, ids: Sequence[int], parts: Sequence[Mapping[str, Column]]) -> None:
    """Insert the rows of workloads into a table; the statement lists the texts of a column once."""
    numbers: dict[str, Any] = {"workload_id": np.repeat(ids, [len(next(iter(one.values()))) for one in parts])}
    if not len(numbers["workload_id"]):  # a single operator has no edges
        return
    lists: dict[str, str] = {}
    for name in parts[0]:
        several = [one[name] for one in parts]
        if isinstance(several[0], Texts):
            texts = join_texts(list(map(as_texts, several)))
            lists[name], numbers[name] = SEPARATOR.join(texts.texts), texts.codes.astype(np.int32) + 1
        else:
            joined = np.ma.concatenate(list(map(as_numbers, several)))  # type: ignore[no-untyped-call]
            numbers[name] = joined if np.ma.getmaskarray(joined).any() else np.ma.getdata(joined)
    arrays, values = describe_arrays(numbers)
    picked = [
        f"string_split(${name}, chr({ord(SEPARATOR)}))[{name}]" if name in lists else value
        for name, value in zip(numbers, values, strict=True)
    ]
    connection.register("_incoming", arrays)
    statement = f"INSERT INTO internal.{table} ({', '.join(numbers)}) SELECT {', '.join(picked)} FROM _incoming"
    execute(connection, statement, lists)
    connection.unregister("_incoming")


def read_operators(folder: Path) -> dict[str, frozenset[str]]:
    """Return model -> operators whose formulas its shipped workloads depend on."""
    return {model: frozenset(one["operators"]) for model, one in open_zoo(folder).models.items()}
