"""Points that a lake keeps, as columns again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from joulemap.store.shard import TOTALS, find_shard
from joulemap.system.errors import DatabaseError


def read_points(lake: Path, folder: str, question: str, names: Sequence[str]) -> dict[str, Any]:
    """Return columns of the answer to a block, by folder and digest: 0 for numbers of a refused point, empty for texts.

    Raises DatabaseError where the lake has no shard of it.
    """
    import pyarrow.parquet as pq

    shard = find_shard(lake / folder, question)
    if shard is None:
        raise DatabaseError(f"{lake}: a shard has gone; run again")
    table = pq.read_table(shard.path, columns=list(names))
    found = {}
    for name in names:
        column = table.column(name)
        if TOTALS[name][0] == "string":
            found[name] = np.array([text or "" for text in column.to_pylist()], dtype=object)
        else:
            found[name] = column.fill_null(0).to_numpy()
    return found
