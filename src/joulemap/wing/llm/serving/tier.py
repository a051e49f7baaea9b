"""Tiers of a prefix cache below the devices, as options write them, with the energy of their moves."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from joulemap.catalog import DATA
from joulemap.system import UsageError, parse_si
from joulemap.wing.llm.serving.load import Tier

ENERGIES: Final = DATA / "model" / "tier.toml"
"""File with the energy per byte of each kind of tier."""

FORM: Final = re.compile(r"(?P<name>[a-z]+):(?P<capacity>[^@]*B)(?:@(?P<rate>.*B/s))?")
"""Form of a tier: its name, capacity and bandwidth."""

EXAMPLE: Final = "host:200GB@50GB/s"


@cache
def load_energies() -> Mapping[str, Mapping[str, Any]]:
    """Return kind of tier -> its constants."""
    return tomllib.loads(ENERGIES.read_text(encoding="utf-8"))


def read_tier(text: str) -> Tier:
    """Return a tier written as `host:200GB@50GB/s`; UsageError for another form."""
    match = FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--cache-tier {text!r}: write a name, capacity and bandwidth, such as {EXAMPLE}")
    known = load_energies()
    if match["name"] not in known:
        raise UsageError(f"--cache-tier {text!r}: no tier {match['name']!r}; there are {', '.join(known)}")
    if match["rate"] is None:
        raise UsageError(f"--cache-tier {text!r} has no bandwidth: write {text.strip()}@50GB/s")
    try:
        capacity, rate = parse_si(match["capacity"], "B"), parse_si(match["rate"], "B/s")
    except ValueError as error:
        raise UsageError(f"--cache-tier {text!r}: {error}; write {EXAMPLE}") from None
    if not (capacity >= 1.0 and rate >= 1.0):
        raise UsageError(f"--cache-tier {text!r}: capacity and bandwidth must be above 0")
    return Tier(
        name=match["name"],
        capacity_bytes=capacity,
        bytes_per_s=rate,
        j_per_byte=float(known[match["name"]]["j_per_byte"]["value"]),
    )
