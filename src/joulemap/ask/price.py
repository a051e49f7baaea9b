"""Prices that a cost compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from joulemap.ask.candidate import read_usage
from joulemap.domain.metric import METRIC, VariedMetricName
from joulemap.domain.offer import WAYS, describe_pay
from joulemap.domain.settings import Settings
from joulemap.generated.cost import CostOption
from joulemap.physics.record.quantity import Quantity
from joulemap.plan.price import price_parameters
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen


@frozen(kw_only=True)
class ComparedPrices:
    """Prices of the hardware of runs, in the requested way of paying and from comparable sellers."""

    of_run: Mapping[int, Mapping[str, Quantity | None]]
    """Run id -> rent and purchase price of its hardware; None for a price that is not compared."""
    paid: str
    """Way of paying, and kind of seller; empty if no cost is requested."""


def refuse_unpriced(name: str, metric: VariedMetricName, paid: str) -> NoReturn:
    """Raise UnsupportedError about a chip whose cost is unknown, because no price of the compared kind is known."""
    raise UnsupportedError(
        f"the {METRIC[metric].label} of {name} is not known, because it has no price of this kind: {paid} (--site pay "
        "and seller choose another)"
    )


UNPRICED: Final = ComparedPrices(of_run={}, paid="")
"""Prices of a question that asks for no cost."""


def find_prices(connection: Connection, run_ids: Iterable[int], settings: Settings) -> ComparedPrices:
    """Return the prices that `cost` would compare for these runs."""
    (used, way), (_, named) = read_usage(settings, "both"), price_parameters(settings.site.prices)
    by_run: dict[int, dict[str, Quantity | None]] = {}
    pay, kinds = "", set()
    for row in fetch(connection, CostOption, run_ids=list(run_ids), **used, **named, **way):
        pay = row.pay
        known = by_run.setdefault(row.run_id, {"price_cloud": None, "price_purchase": None})
        if row.status == "ok" and row.is_alike and row.way in (pay, *(WAYS if pay == "both" else ())):
            known["price_cloud" if row.way == "rented" else "price_purchase"] = Quantity(
                value=row.price or 0.0,
                unit=row.price_unit or "",
                basis="published" if row.price_basis == "given" else row.price_basis or "",
                source=row.price_source or "",
                note=row.price_text or row.price_note or "",
            )
            kinds.add(row.compared_kind)
    kind = next(iter(kinds)) if len(kinds) == 1 and pay != "both" else ""
    return ComparedPrices(of_run=by_run, paid=describe_pay(pay, kind or ""))
