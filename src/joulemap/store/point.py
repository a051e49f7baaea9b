"""Points that a lake keeps, as columns again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from joulemap.store.shard import TOTALS, find_shard
from joulemap.system.errors import DatabaseError

if TYPE_CHECKING:
    from joulemap.domain.block import Block


def read_points(lake: Path, block: Block, names: Sequence[str]) -> dict[str, Any]:
    """Return columns of the answer to a block, by name: 0 for numbers of a refused point, empty for no text.

    Raises DatabaseError where the lake has no shard of it.
    """
    import pyarrow.parquet as pq

    shard = find_shard(lake, block)
    if shard is None:
        raise DatabaseError(f"{lake}: a shard has gone; run again")
    table = pq.read_table(shard.path, columns=list(names))
    found = {}
    for name in names:
        column = table.column(name)
        if TOTALS[name][0] == "string":
            found[name] = np.array([text or "" for text in column.to_pylist()])
        else:
            found[name] = column.fill_null(0).to_numpy()
    return found
