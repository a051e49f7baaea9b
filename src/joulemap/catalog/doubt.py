"""The doubt that ships: how far predictions were off, what runs share of it, what bases of prices leave open."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import attrs

from joulemap.catalog.digest import DATA
from joulemap.catalog.sheet import read_records
from joulemap.domain.doubt import BasisSpread, Doubt, ErrorScale, ErrorShare, ServingScale

FOLDER: Final = DATA / "doubt"
SCALES: Final = FOLDER / "scale.csv"
SHARES: Final = FOLDER / "share.csv"
SPREADS: Final = FOLDER / "spread.csv"
SERVED: Final = FOLDER / "serving.csv"

SCALE_COLUMNS: Final = tuple(field.name for field in attrs.fields(ErrorScale))
SERVED_COLUMNS: Final = tuple(field.name for field in attrs.fields(ServingScale))
SHARE_COLUMNS: Final = ("quantity", "factor", "share", "basis", "source")


@cache
def load_doubt() -> Doubt:
    """Return the doubt that ships."""
    return Doubt(
        scales=read_records(ErrorScale, SCALES),
        shares=read_records(ErrorShare, SHARES),
        spreads=read_records(BasisSpread, SPREADS),
        served=read_records(ServingScale, SERVED),
    )


def write_doubt(scales: Sequence[ErrorScale], shares: Sequence[ErrorShare]) -> None:
    """Replace the scales and shares that ship."""
    _write(SCALES, SCALE_COLUMNS, [attrs.asdict(one) | {"half_width": f"{one.half_width:.4g}"} for one in scales])
    _write(
        SHARES,
        SHARE_COLUMNS,
        [
            {
                "quantity": one.quantity,
                "factor": one.factor,
                "share": f"{one.share.value:.2g}",
                "basis": one.share.basis,
                "source": one.share.source,
            }
            for one in shares
        ],
    )


def write_served_doubt(scales: Sequence[ServingScale]) -> None:
    """Replace the scales of served models that ship."""
    _write(SERVED, SERVED_COLUMNS, [attrs.asdict(one) | {"half_width": f"{one.half_width:.4g}"} for one in scales])


def _write(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
