"""Load and write the built-in uncertainty: prediction errors, their correlation between runs, and the
spread of energies per action by basis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

import attrs

from joulemap.catalog.digest import DATA
from joulemap.catalog.sheet import read_records
from joulemap.physics.interval.error_scale import (
    COMPILER_LEVEL,
    OWN_LEVEL,
    BasisSpread,
    Doubt,
    ErrorScale,
    ErrorShare,
    PowerFloor,
    list_error_groups,
)

FOLDER: Final = DATA / "doubt"
SCALES: Final = FOLDER / "scale.csv"
SHARES: Final = FOLDER / "share.csv"
SPREADS: Final = FOLDER / "spread.csv"
FLOORS: Final = FOLDER / "power.csv"

SCALE_COLUMNS: Final = tuple(field.name for field in attrs.fields(ErrorScale) if not field.name.endswith("ops_per_s"))
ALIKE: Final = ("architecture", "work", "runtime", "precision", "hardware")
"""Columns by which boards belong to the group of an error scale; an empty column of the scale matches any board."""


@cache
def load_doubt() -> Doubt:
    """Return the built-in uncertainty, with the error scales of wings."""
    of_wings = (scale for group in list_error_groups() for scale in group.scales)
    return Doubt(
        scales=(*_with_sizes(read_records(ErrorScale, SCALES)), *of_wings),
        shares=read_records(ErrorShare, SHARES),
        spreads=read_records(BasisSpread, SPREADS),
        floors=read_records(PowerFloor, FLOORS),
    )


def load_compilers() -> Mapping[str, str]:
    """Return the compiler of each built-in chip with a known list of operators."""
    from joulemap.catalog.load import load_catalogue

    hardware = load_catalogue().hardware
    return {name: one.compiler.name for name, one in hardware.items() if one.compiler and not one.compiler.is_unlisted}


def _with_sizes(scales: Sequence[ErrorScale]) -> Iterator[ErrorScale]:
    """Yield the scales with the smallest and largest peak among the boards of their group, where these are known."""
    from joulemap.catalog.load import load_catalogue

    hardware = load_catalogue().hardware
    peaks = {
        one.hardware: max(peak.rate.value for peak in hardware[one.hardware].peaks.values())
        for one in scales
        if one.hardware in hardware
    }
    compilers = load_compilers()
    of_boards = [one for one in scales if one.hardware in peaks and one.level == OWN_LEVEL]
    for scale in scales:
        is_joined = scale.level == COMPILER_LEVEL and scale.hardware in hardware
        alike = [name for name in ALIKE if name != "hardware" or not is_joined]
        rates = [
            peaks[one.hardware]
            for one in (of_boards if scale.architecture else ())
            if one.quantity == scale.quantity
            and all(getattr(scale, name) in ("", getattr(one, name)) for name in alike)
            and (not is_joined or compilers.get(one.hardware) == compilers.get(scale.hardware))
        ]
        yield attrs.evolve(scale, least_ops_per_s=min(rates), most_ops_per_s=max(rates)) if rates else scale
