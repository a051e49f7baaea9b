"""Options for limits of configurations and queries, for prices of chips and for how chips are used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import attrs

from joulemap.cli.command import advanced, option, optional
from joulemap.cli.panel import COST, LIMITS
from joulemap.cli.value import read_as, read_number, read_quantity, split_pairs
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Bounds, Limits, Pay, Price, Seller, Usage

HOURS: Final = 24.0
"""Hours per day, the maximum of `--busy-hours`."""


@frozen(kw_only=True)
class UseLimitOptions:
    """Limits of a configuration while it runs."""

    panel: ClassVar[str] = LIMITS
    max_latency: str = optional("Maximum latency of a batch, e.g. 50ms.", "TIME")
    max_energy: str = optional("Maximum energy of a batch, e.g. 1J.", "ENERGY", is_advanced=True)
    max_energy_per_inference: str = optional("Maximum energy of one inference, e.g. 100mJ.", "ENERGY", is_advanced=True)
    max_memory: str = optional(
        "Maximum memory for weights and activations of a batch, e.g. 512MB.", "SIZE", is_advanced=True
    )
    max_power: str = optional("Maximum power per device with its host.", "POWER")
    min_throughput: str = optional("Minimum inferences per second, e.g. 30/s.", "RATE")

    def read(self) -> Limits:
        """Return the limits in SI units; UsageError names an option that cannot be read."""
        from joulemap.domain.settings import Limits

        return read_as(Limits, self)


@frozen(kw_only=True)
class LimitOptions(UseLimitOptions):
    """Limits of a configuration, its price included."""

    max_price: str = optional(
        "Maximum price per chip: rental, e.g. 2USD/h, or purchase with its host, e.g. 500USD.", "PRICE"
    )

    def read(self) -> Limits:
        """Return the limits in SI units; UsageError names an option that cannot be read."""
        is_rent = "/" in self.max_price
        if self.max_price.strip().replace(".", "", 1).isdigit():
            text = self.max_price
            raise UsageError(
                f"--max-price: {text!r} has no unit: write {text}USD/h to rent a chip, {text}USD to buy one"
            )
        return attrs.evolve(
            super().read(),
            max_price_usd_per_hour=read_quantity("--max-price", self.max_price if is_rent else "", "USD/h"),
            max_purchase_usd=read_quantity("--max-price", "" if is_rent else self.max_price, "USD"),
        )


def rent_option(*, is_advanced: bool) -> Any:
    """Return the option `--price-per-hour`."""
    return option(
        None,
        "Rental prices, e.g. l4=0.40USD/h,t4=0.35USD/h.",
        metavar="CHIP=PRICE",
        is_advanced=is_advanced,
    )


def pay_option(*, is_advanced: bool) -> Any:
    """Return the option `--pay`."""
    return option(
        "",
        "Payment.",
        metavar="rented|bought|both",
        shown="the cheaper; bought at the edge",
        is_advanced=is_advanced,
    )


def _read_prices(option: str, written: Sequence[str] | None, unit: str) -> dict[str, float | None]:
    """Return hardware -> price from texts such as `l4=0.40USD/h`; UsageError names the option and the fault."""
    try:
        pairs = split_pairs(written)
    except UsageError:
        given = ", ".join(written or ())
        raise UsageError(
            f"{option}: cannot read {given}: write HARDWARE=PRICE, each once: l4=0.40{unit},t4=0.35{unit}"
        ) from None
    return {name: read_quantity(f"{option} {name}=", text, unit) for name, text in pairs.items()}


@frozen(kw_only=True)
class UsageOptions:
    """Prices, payment, use and power of a chip."""

    panel: ClassVar[str] = COST
    price_per_hour: list[str] | None = rent_option(is_advanced=True)
    purchase_price: list[str] | None = advanced(
        None, "Purchase prices of chips, e.g. l4=2500USD,t4=900USD.", metavar="CHIP=PRICE"
    )
    price_file: Path | None = advanced(
        None,
        "CSV file with columns hardware, usd_per_hour, purchase_usd and source, or the same as TOML.",
    )
    pay: str = pay_option(is_advanced=True)
    seller: str = advanced(
        "",
        "Kind of price: rent (hyperscaler, cloud, marketplace, reserved or spot) or purchase (list or retail).",
        metavar="NAME",
        shown="the cheapest per chip, without reserved and spot",
    )
    busy_hours: float | None = advanced(
        None,
        "Hours of work per 24 powered or rented hours.",
        metavar="HOURS",
        shown="12",
    )
    lifetime: float | None = advanced(
        None,
        "Service life of a purchased chip in years.",
        metavar="YEARS",
        shown="the catalogue's",
    )
    hours: float | None = advanced(
        None,
        "Hours per year that a purchased chip is powered.",
        metavar="HOURS",
        shown="the catalogue's",
    )
    pue: float | None = advanced(
        None,
        "Power usage effectiveness (PUE) of a datacenter, at least 1.",
        metavar="RATIO",
        shown="the catalogue's",
    )
    electricity: str = advanced("", "Price of electricity, e.g. 0.12USD/kWh.", metavar="PRICE", shown="the catalogue's")
    host_share: float | None = advanced(
        None,
        "Price and electricity of the host, as a fraction of the purchased chip's.",
        metavar="FRACTION",
        shown="the catalogue's, or the price of --host",
    )
    grid: str = advanced("", "Region of the electricity grid, e.g. us, de or Norway.", metavar="REGION", shown="world")
    grid_gco2_per_kwh: float | None = advanced(
        None,
        "Carbon intensity of electricity in g CO2 per kWh.",
        metavar="GRAMS",
        shown="from --grid",
    )

    def read(self) -> Usage:
        """Return the use of a chip; UsageError names an option that is out of range."""
        from joulemap.domain.settings import Usage

        if (hours := self.busy_hours) is not None and not 0.0 < hours <= HOURS:
            raise UsageError(f"--busy-hours is {hours:g}, expected above 0 and at most {HOURS:g}")
        return Usage(
            pay=cast("Pay | None", self.pay or None),
            seller=cast("Seller | None", self.seller or None),
            utilization=None if hours is None else hours / HOURS,
            lifetime_years=self.lifetime,
            hours_per_year=self.hours,
            pue=self.pue,
            usd_per_kwh=read_number("--electricity", self.electricity, "USD/kWh"),
            region=self.grid,
            gco2_per_kwh=self.grid_gco2_per_kwh,
            host_share=self.host_share,
            prices=self._list_prices(),
        )

    def _list_prices(self) -> tuple[Price, ...]:
        """Return the prices; UsageError names an option that cannot be read."""
        from joulemap.ask.price import read_price_file
        from joulemap.domain.settings import Price

        of_file = read_price_file(self.price_file) if self.price_file else ()
        rents = _read_prices("--price-per-hour", self.price_per_hour, "USD/h")
        bought = _read_prices("--purchase-price", self.purchase_price, "USD")
        return (
            *of_file,
            *(Price(hardware=name, usd_per_hour=value) for name, value in rents.items()),
            *(Price(hardware=name, purchase_usd=value) for name, value in bought.items()),
        )


@frozen(kw_only=True)
class BoundOptions:
    """Limits at which a query is stopped."""

    panel: ClassVar[str] = LIMITS
    timeout: float | None = option(
        None, "Stop the query after this many seconds without a row.", metavar="SECONDS", shown="60"
    )
    max_rows: int | None = option(None, "Stop the query above this many rows.", metavar="N")
    max_memory: str = option(
        "",
        "Stop the query above this memory, e.g. 8GB; it never spills to disk.",
        metavar="SIZE",
        shown="4GB, at most half of the machine",
    )

    def read(self) -> Bounds:
        """Return the bounds; UsageError names an option that is out of range."""
        from joulemap.domain.settings import Bounds

        return read_as(Bounds, self, max_rows=self.max_rows)
