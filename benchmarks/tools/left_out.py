"""Descriptions of boards without their own measured power, to compute the errors of a new board.

`data/doubt/left_out.csv` lists the numbers that were measured on a board or fitted to it. For each it has the value
that the rule for unmeasured boards gives. `loads` removes the measured loads.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from math import inf
from typing import Any, Final

from joulemap.catalog.chip import load_content
from joulemap.catalog.digest import DATA
from joulemap.catalog.sheet import Row, read_rows
from joulemap.physics.record.hardware import Hardware

PATH: Final = DATA / "doubt" / "left_out.csv"

ENDING: Final = "_left_out"
"""Suffix of the id of a board that is described without its measurements."""

LOADS: Final = "loads"
STATIC: Final = "static_power"
IDLE: Final = "idle_power"
QUANTITIES: Final = (STATIC, "tdp")


@cache
def read_left_out() -> Mapping[str, tuple[Row, ...]]:
    """Return board -> its numbers that are replaced."""
    by_hardware: dict[str, list[Row]] = defaultdict(list)
    for row in read_rows(PATH):
        by_hardware[row["hardware"]].append(row)
    return {name: tuple(rows) for name, rows in by_hardware.items()}


def describe_left_out(name: str) -> Hardware:
    """Return a board of `left_out.csv` with the replaced numbers; its id has the suffix `ENDING`.

    Raises CatalogueError if a number is invalid.
    """
    text = (DATA / "hardware" / f"{name}.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    for row in read_left_out()[name]:
        _replace(content, row)
    return load_content({**content, "id": f"{name}{ENDING}", "aliases": []}, str(PATH))


def _replace(content: dict[str, Any], row: Row) -> None:
    """Replace one number in the content of a hardware file; ValueError for a number that the file does not have."""
    number, _, mode = row["number"].partition("@")
    value, basis = float(row["value"]), "assumed"
    component, _, action = number.partition(".")
    if number == LOADS:
        del content[LOADS]
    elif number in QUANTITIES:
        modes = [one for one in content.get("power_modes", ()) if one["name"] == mode]
        (quantities,) = modes if mode else [content["quantities"]]
        quantities[number] |= {"value": value, "unit": row["unit"], "basis": basis}
        if quantities.get(IDLE, {}).get("value", 0.0) > quantities.get(STATIC, {}).get("value", inf):
            # measured on the board too, and a file with an idle power above the active one is refused
            del quantities[IDLE]
    elif action:
        prices = content["energy_overrides"]
        (price,) = (one for one in prices if (one["component"], one["action"]) == (component, action))
        price |= {"energy_pj": value, "basis": basis, "source": row["source"]}
    else:
        others = [one for one in content.get("coefficients", ()) if one["name"] != number]
        changed = {"name": number, "value": value, "unit": row["unit"], "basis": basis, "source": row["source"]}
        content["coefficients"] = [*others, changed]
