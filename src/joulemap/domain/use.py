"""Needs and costs of a million inferences, written once: Python evaluates the formulas, and SQL has them as columns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import CodeType
from typing import Final

FORMULAS: Final[Mapping[str, str]] = {
    "inferences_per_year": "throughput_per_s * utilization * 3600.0 * hours_per_year",
    "inferences_per_life": "inferences_per_year * lifetime_years",
    "powered_j": "energy_per_inference_j + idle_w * (1.0 - utilization) / utilization / throughput_per_s",
    "kwh_per_million": "powered_j * pue * 1e6 / 3.6e6",
    "gco2_per_million": "kwh_per_million * gco2_per_kwh",
    "rented_usd_per_million": "usd_per_hour * 1e6 / (throughput_per_s * utilization) / 3600.0",
    "purchase_usd_per_million": "purchase_usd / inferences_per_life * 1e6",
    "energy_usd_per_million": "kwh_per_million * usd_per_kwh",
    "host_usd_per_million": "host_share * (purchase_usd_per_million + energy_usd_per_million)",
    "bought_usd_per_million": "purchase_usd_per_million + energy_usd_per_million + host_usd_per_million",
}
"""What is added up -> how, of what stands above it and of how a chip is used, in the signs that Python and SQL share.

A chip is powered (or rented) for 1 / (throughput x utilization) seconds an inference: it works for 1 / throughput, and
idles for the rest. A rent contains energy and a host; a bought chip costs its price, its energy, and the share of both
that the host it needs adds. `utilization` is the part of the powered or rented hours that it works, `pue` is 1 outside
data centres.
"""


def _split(formula: str) -> list[str]:
    """Return the names, numbers and signs of a formula."""
    return formula.replace("(", "( ").replace(")", " )").split()


@cache
def _compiled() -> dict[str, tuple[CodeType, list[str]]]:
    return {
        name: (compile(text, name, "eval"), [word for word in _split(text) if word.isidentifier()])
        for name, text in FORMULAS.items()
    }


def add_up(use: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return what a million inferences need and cost; None of what rests on something that is not known."""
    found = dict(use)
    for name, (code, needed) in _compiled().items():
        is_known = all(found[one] is not None for one in needed)
        found[name] = eval(code, {}, found) if is_known else None
    ways = [found["rented_usd_per_million"], found["bought_usd_per_million"]]
    found["usd_per_million"] = min((cost for cost in ways if cost is not None), default=None)
    return found


def fill_costs(sql: str) -> str:
    """Return SQL with the formulas as columns where it says so, of a relation p that has what they rest on."""
    columns = []
    for name, text in FORMULAS.items():
        words = [f"p.{word}" if word.isidentifier() and word not in FORMULAS else word for word in _split(text)]
        columns.append(f"{' '.join(words)} AS {name}")
    return sql.replace("p.{costs}", ",\n        ".join(columns))
