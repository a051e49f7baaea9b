"""Workloads that ship with the package: every model by name, traced at three batches (`make zoo`)."""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

import attrs

from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import SHIPPED, load_models
from joulemap.domain.catalogue import ShippedWorkload
from joulemap.fuse import fuse
from joulemap.hub.build import trace_request
from joulemap.store.connection import transaction, writing
from joulemap.store.workload import write_workload
from joulemap.store.zoo import PROOF_BATCH, write_shipped
from joulemap.system.errors import ModelError
from joulemap.trace.source import resolve_model


def main() -> None:
    """Write the workloads, and print how many there are."""
    models = load_models()
    with tempfile.TemporaryDirectory() as folder, writing(Path(folder) / "zoo.duckdb") as connection:
        for name in models:
            for batch in (1, 2, PROOF_BATCH):
                try:
                    workload = fuse(trace_request(resolve_model(name, models, batch=batch)))
                except ModelError as error:
                    print(f"{name} at batch {batch}: {error}", file=sys.stderr)
                    continue
                with transaction(connection):
                    write_workload(connection, workload)
        shipped = write_shipped(connection, ZOO)
    with SHIPPED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in attrs.fields(ShippedWorkload))
        writer.writerows(attrs.astuple(entry) for entry in shipped)
    size = sum(path.stat().st_size for path in ZOO.iterdir())
    fixed = [entry.model for entry in shipped if not entry.is_affine]
    print(f"{len(shipped)} workloads, {size:,} bytes; at batch 1 only: {', '.join(fixed) or 'none'}")


if __name__ == "__main__":
    main()
