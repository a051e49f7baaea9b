"""Pipelines that make a picture from a text, by name: `sdxl-txt2img`, `flux.1-dev-txt2img(steps=20)`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from joulemap.catalog.digest import DATA
from joulemap.domain.name import fold_name
from joulemap.domain.operator.name import Argument, read_arguments
from joulemap.system.errors import UnknownNameError
from joulemap.system.record import frozen
from joulemap.wing.pipeline import PICTURE


@frozen(kw_only=True)
class Picture:
    """Pipeline that makes one picture from a text."""

    name: str
    steps: int
    """Denoising steps."""
    stages: str
    """Name of the pipeline by its stages."""

    def __str__(self) -> str:
        return f"{self.name}(steps={self.steps})"


@cache
def _read_table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads((DATA / "model" / "txt2img.toml").read_text(encoding="utf-8"))


def list_pictures() -> tuple[str, ...]:
    """Return the names of these pipelines."""
    return tuple(_read_table())


def read_picture(name: str) -> Picture | None:
    """Return the picture that a name states; None for any other name.

    Raises UnknownNameError for an unknown picture, UsageError for wrong arguments.
    """
    found = re.fullmatch(r"\s*([^\s()+]+)\s*(\(.*\))?\s*", name)
    if found is None or not found[1].lower().endswith(PICTURE):
        return None
    table = _read_table()
    spellings = {fold_name(one): known for known, row in table.items() for one in (known, *row["aliases"])}
    known = spellings.get(fold_name(found[1]))
    if known is None:
        raise UnknownNameError("model", found[1], list_pictures())
    usual = table[known]["steps"]
    argument = Argument("steps", usual)
    given = read_arguments(known, name, found[2], (argument,), f"{known}(steps={usual})") if found[2] else {}
    steps = int(given.get(argument.name, usual))
    return Picture(name=known, steps=steps, stages=table[known]["stages"].format(steps=steps))
