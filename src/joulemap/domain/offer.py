"""Sellers' offers of hardware, and the price that results for each kind of seller."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from joulemap.domain.settings import WAY_OF
from joulemap.physics.interval.error_scale import FULL_GROUPS, NORMAL
from joulemap.physics.record.quantity import BASES, Quantity, least_sure
from joulemap.physics.record.spread import BASIS_SPREAD
from joulemap.system.record import frozen

TERMS: Final[Mapping[str, str]] = {
    "hyperscaler": "hyperscaler on demand",
    "cloud": "GPU cloud on demand",
    "marketplace": "marketplace",
    "reserved": "GPU cloud reserved",
    "spot": "interruptible",
    "list": "list price",
    "retail": "retail price",
}
"""Kind of seller -> words that an answer puts next to its price."""

MANY: Final[Mapping[str, str]] = {
    "hyperscaler": "hyperscalers on demand",
    "cloud": "GPU clouds on demand",
    "marketplace": "marketplaces",
    "reserved": "reserved GPU clouds",
    "spot": "interruptible (spot) clouds",
    "list": "list prices",
    "retail": "retail prices",
}
"""Kind of seller -> words for several sellers of this kind."""

WAY_UNITS: Final[Mapping[str, str]] = {"rented": "USD/h", "bought": "USD"}
"""Way of paying -> unit of a price."""

WAYS: Final = tuple(WAY_UNITS)
"""Ways of paying for a chip."""

FEW: Final = 5
"""Minimum degrees of freedom from which the spread of a kind of seller is estimated from its offers alone."""

ASSUMED_SPREAD: Final = math.log(1.3)
"""Assumed half-width of ln(price) between sellers if too few chips have several; equal to that of a recalled price."""

BASIS_FACTORS: Final = BASIS_SPREAD
"""Basis -> factor, up or down, that covers 80 % of prices with this basis. Assumed equal to that of other numbers."""


def _is_date(_instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if value and not re.fullmatch(r"20\d\d(-(0[1-9]|1[0-2])(-[0-3]\d)?)?", value):
        raise ValueError(f"{attribute.name} is {value!r}, expected a year, month or day as 2026-09-20")


@frozen(kw_only=True)
class Offer:
    """One seller's price of one chip."""

    hardware: str
    kind: str = attrs.field(validator=attrs.validators.in_(tuple(WAY_OF)))
    """Kind of seller."""
    seller: str = attrs.field(validator=attrs.validators.min_len(1))
    date: str = attrs.field(validator=_is_date)
    """Day, month or year of the price; empty if the source has none."""
    usd: float = attrs.field(validator=attrs.validators.gt(0.0))
    """Price of one device, per hour if rented."""
    unit: str
    basis: str = attrs.field(validator=attrs.validators.in_(BASES))
    source: str = attrs.field(validator=attrs.validators.min_len(1))
    note: str
    """Scope of the price, and how it was computed."""

    def __attrs_post_init__(self) -> None:
        """Raise ValueError if the unit does not fit the kind of seller."""
        if self.unit != WAY_UNITS[self.way]:
            raise ValueError(f"{self.hardware}: unit is {self.unit!r}, expected {WAY_UNITS[self.way]} for {self.kind}")

    @property
    def way(self) -> str:
        """Way of paying: rented or bought."""
        return WAY_OF[self.kind]

    @property
    def quantity(self) -> Quantity:
        """Price as a quantity, with unit, basis and source."""
        return Quantity(value=self.usd, unit=self.unit, basis=self.basis, source=self.source, note=self.note)


@frozen(kw_only=True)
class SellerPrice:
    """Price of one chip at one kind of seller: the median over sellers, each with its newest offer."""

    hardware: str
    way: str
    kind: str
    kind_index: int
    """Position of the kind of seller in `WAY_OF`. Of kinds with equal prices, the first one is compared."""
    usd: float
    half_width: float
    """Half-width of the 80 % interval of ln(price) over sellers."""
    seller: str
    """Key of the price's error: the seller's name if there is only one, else kind and hardware. Errors of prices with
    the same key are correlated.
    """
    price_text: str
    """Description of the price for answers: sellers and dates."""
    offer_count: int
    basis: str
    """Least certain basis of the offers."""
    reference_usd: float
    """Price of the first offer for this chip and way of paying, used where a single price is needed."""
    source: str
    note: str


def newest_offers(offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Return the newest offer for each chip, kind of seller and seller, in the given order."""
    newest: dict[tuple[str, str, str], Offer] = {}
    for one in offers:
        key = one.hardware, one.kind, one.seller
        if key not in newest or one.date > newest[key].date:
            newest[key] = one
    return tuple(newest.values())


def reference_offers(offers: Iterable[Offer]) -> dict[tuple[str, str], Offer]:
    """Return (hardware, way of paying) -> first offer, used where a single price is needed."""
    by_way: dict[tuple[str, str], Offer] = {}
    for one in offers:
        by_way.setdefault((one.hardware, one.way), one)
    return by_way


def _square(prices: Sequence[float]) -> float:
    """Return the sample variance of ln(price)."""
    logs = [math.log(one) for one in prices]
    mean = sum(logs) / len(logs)
    return sum((one - mean) ** 2 for one in logs) / (len(logs) - 1)


def pool_spreads(groups: Mapping[tuple[str, str], Sequence[Offer]]) -> dict[str, float]:
    """Return kind of seller -> half-width of ln(price) between sellers of one chip, pooled over chips.

    Kinds with too few offers (`FEW`) get the spread of all kinds with the same way of paying, or else `ASSUMED_SPREAD`.
    """
    freedom: dict[str, int] = defaultdict(int)
    total: dict[str, float] = defaultdict(float)
    for (_, kind), offers in groups.items():
        if len(offers) > 1:
            for key in (kind, WAY_OF[kind]):
                freedom[key] += len(offers) - 1
                total[key] += (len(offers) - 1) * _square([one.usd for one in offers])
    spread = {key: NORMAL * math.sqrt(total[key] / freedom[key]) for key in freedom if freedom[key] >= FEW}
    return {kind: spread.get(kind, spread.get(way, ASSUMED_SPREAD)) for kind, way in WAY_OF.items()}


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0


def _half_width(offers: Sequence[Offer], pooled: float) -> float:
    """Return the half-width of ln(price) from the sellers' spread, shrunk toward that of their kind, and from the
    basis.
    """
    degrees = len(offers) - 1
    own = NORMAL**2 * _square([one.usd for one in offers]) if degrees else 0.0
    square = (degrees * own + FULL_GROUPS * pooled**2) / (degrees + FULL_GROUPS)
    basis = sum(math.log(BASIS_FACTORS[one.basis]) ** 2 for one in offers) / len(offers) ** 2
    return math.sqrt(square + basis)


def _describe_dates(offers: Sequence[Offer]) -> str:
    months = sorted({one.date[:7] for one in offers if one.date})
    if not months:
        return "undated"
    return months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}"


def summarize_offers(offers: Sequence[Offer]) -> tuple[SellerPrice, ...]:
    """Return the price of each chip at each kind of seller that offers it."""
    groups: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for one in newest_offers(offers):
        groups[one.hardware, one.kind].append(one)
    pooled = pool_spreads(groups)
    references = reference_offers(offers)
    kinds = list(WAY_OF)
    prices = []
    for (hardware, kind), group in sorted(groups.items(), key=lambda one: (one[0][0], kinds.index(one[0][1]))):
        is_one = len(group) == 1
        name = f"{group[0].seller}, {TERMS[kind]}" if is_one else f"median of {len(group)} {MANY[kind]}"
        prices.append(
            SellerPrice(
                hardware=hardware,
                way=WAY_OF[kind],
                kind=kind,
                kind_index=kinds.index(kind),
                usd=math.exp(_median(math.log(one.usd) for one in group)),
                half_width=_half_width(group, pooled[kind]),
                seller=group[0].seller if is_one else f"{kind} {hardware}",
                price_text=f"{name}, {_describe_dates(group)}",
                offer_count=len(group),
                basis=least_sure(*(one.basis for one in group)),
                reference_usd=references[hardware, WAY_OF[kind]].usd,
                source="; ".join(dict.fromkeys(one.source for one in group)),
                note=group[0].note
                if is_one
                else "; ".join(f"{one.seller} {one.usd:g}" for one in sorted(group, key=lambda one: one.usd)),
            )
        )
    return tuple(prices)


def describe_pay(pay: str, kind: str = "") -> str:
    """Return the way of paying for chips, and the kind of seller if one is requested."""
    way = " or ".join(WAYS) if pay == "both" else pay
    return f"{way} ({MANY[kind]})" if kind else way
