"""Energy and cost of a million inferences, as formulas for Python and for columns of SQL views."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import CodeType
from typing import Final

FORMULAS: Final[Mapping[str, str]] = {
    "inferences_per_year": "throughput_per_s * utilization * 3600.0 * hours_per_year",
    "inferences_per_life": "inferences_per_year * lifetime_years",
    "powered_j": "energy_per_inference_j + (idle_w * (1.0 - utilization) + module_w) / utilization / throughput_per_s",
    "kwh_per_million": "powered_j * pue * 1e6 / 3.6e6",
    "gco2_per_million": "kwh_per_million * gco2_per_kwh",
    "rented_usd_per_million": "usd_per_hour * 1e6 / (throughput_per_s * utilization) / 3600.0",
    "purchase_usd_per_million": "purchase_usd / inferences_per_life * 1e6",
    "energy_usd_per_million": "kwh_per_million * usd_per_kwh",
    "host_usd_per_million": "host_share * purchase_usd_per_million + host_energy_share * energy_usd_per_million",
    "bought_usd_per_million": "purchase_usd_per_million + energy_usd_per_million + host_usd_per_million",
}
"""Result -> formula over earlier results and the use of a chip, in syntax that Python and SQL share.

A chip is powered or rented for 1 / (throughput x utilization) seconds per inference. It works for 1 / throughput and
idles for the rest. Rent includes energy and a host. A bought chip costs its price, its energy, and the host's share of
both; the share of energy is omitted if the energy already includes the host (`host` of the site). `utilization` is
the busy share of powered or rented hours. `pue` is 1 outside data centres. `module_w` is the power of the rest of the
module or SoC that a chip is a part of.
"""


def split_formula(formula: str) -> list[str]:
    """Split a formula into names, numbers and operators."""
    return formula.replace("(", "( ").replace(")", " )").split()


@cache
def _compiled() -> dict[str, tuple[CodeType, list[str]]]:
    return {
        name: (compile(text, name, "eval"), [word for word in split_formula(text) if word.isidentifier()])
        for name, text in FORMULAS.items()
    }


def add_up(use: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the use of a chip with the results of `FORMULAS` added, such as the cost of a million inferences.

    A result is None if one of its inputs is unknown.
    """
    numbers = dict(use)
    for name, (code, needed) in _compiled().items():
        is_known = all(numbers[one] is not None for one in needed)
        numbers[name] = eval(code, {}, numbers) if is_known else None
    ways = [numbers["rented_usd_per_million"], numbers["bought_usd_per_million"]]
    numbers["usd_per_million"] = min((cost for cost in ways if cost is not None), default=None)
    return numbers
