"""Workloads that ship with the package: every model by name, traced at three batches (`make zoo`).

python -m tools.zoo                   traces every model
python -m tools.zoo NAME ...          traces these and keeps the others, if they ship by today's rules
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import attrs

from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import SHIPPED, load_models, load_shipped
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.domain.catalogue import ShippedWorkload
from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import Workload
from joulemap.plan.model import find_outdated
from joulemap.store.connection import Connection, transaction, writing
from joulemap.store.workload import find_workloads, write_workloads
from joulemap.store.zoo import Shipped, read_operators, read_shipped
from joulemap.system.errors import ModelError, UsageError
from joulemap.system.resource import package_version
from joulemap.trace.formula.own import noting_formulas
from joulemap.trace.version import workload_version
from tools.shipped import PROOF_BATCH, SECOND_BATCH, write_shipped

BATCHES: Final = (1, 2, PROOF_BATCH)
"""Batches at which a model is traced."""

ABOVE: Final = (SECOND_BATCH,)
"""Further batches at which a model is traced that runs other operators at batch 1."""


def keep(connection: Connection, names: Collection[str]) -> None:
    """Copy the shipped workloads of models into the database; UsageError if one was made by other rules."""
    entries = [entry for entry in load_shipped().values() if entry.model in names]
    stale = [entry.model for entry in entries if entry.model in find_outdated()]
    if stale:
        raise UsageError(
            f"{len(stale)} built-in models were traced by other rules, such as {stale[0]}: trace every model"
        )
    wanted = [
        Shipped(entry.model, batch, workload_key=f"{entry.model}:{batch}")
        for entry in entries
        for batch in (*BATCHES, *ABOVE)
        if entry.ships(batch)
    ]
    with transaction(connection):
        read_shipped(connection, ZOO, wanted)


def write_workload(connection: Connection, workload: Workload) -> int:
    """Store a workload and return its id; a workload with the same key is not stored again."""
    (number,) = find_workloads(connection, [workload.key.digest]).values() or write_workloads(
        connection, [(workload, {})]
    )
    return number


def main(names: Collection[str] = ()) -> None:
    """Trace the models with these names, or all without names; write the workloads and print their number."""
    models = load_models()
    wanted = {package for name in names or models if (package := models[name].package)}
    missing = sorted(package for package in wanted if package_version(package) == "absent")
    if missing:
        raise UsageError(f"{' and '.join(missing)} must be installed: pip install 'joulemap[models]'")
    with tempfile.TemporaryDirectory() as folder, writing(Path(folder) / "zoo.duckdb") as connection:
        if names:
            keep(connection, models.keys() - set(names))

        kept = read_operators(ZOO) if names else {}
        asked = {name: set(own) for name, own in kept.items() if name not in names}

        def trace(name: str, batches: Sequence[int]) -> None:
            for batch in batches:
                try:
                    with noting_formulas() as own:
                        workload = fuse(trace_request(resolve_model(name, models, batch=batch)))
                    asked.setdefault(name, set()).update(own)
                except ModelError as error:
                    print(f"{name} at batch {batch}: {error}", file=sys.stderr)
                    continue
                with transaction(connection):
                    write_workload(connection, workload)

        for name in names or models:
            trace(name, BATCHES)
        shipped = write_shipped(connection, ZOO, asked, workload_version)
        other = [entry.model for entry in shipped if not entry.ships_any and (not names or entry.model in names)]
        for name in other:
            trace(name, ABOVE)
        if other:
            shipped = write_shipped(connection, ZOO, asked, workload_version)
    with SHIPPED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in attrs.fields(ShippedWorkload))
        writer.writerows(attrs.astuple(entry) for entry in shipped)
    size = sum(path.stat().st_size for path in ZOO.iterdir())
    fixed = [entry.model for entry in shipped if not entry.ships_any]
    print(f"{len(shipped)} workloads, {size:,} bytes; at batch 1 only: {', '.join(fixed) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
