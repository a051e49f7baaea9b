"""Options for limits of configurations and queries, for prices of chips and for their use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from joulemap.cli.command import option
from joulemap.cli.value import read_number, read_quantity, split_assignments
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.offer import Seller
    from joulemap.domain.settings import Bounds, Limits, Pay, Price, Usage

HOURS: Final = 24.0
"""Of a day."""


@frozen(kw_only=True)
class UseLimitOptions:
    """What a configuration must keep to while it runs."""

    max_latency: str = option("", "At most this latency of a batch, e.g. 50ms.", shown="any")
    max_energy: str = option("", "At most this energy of a batch, e.g. 1J.", shown="any")
    max_energy_per_inference: str = option("", "At most this energy of one inference, e.g. 100mJ.", shown="any")
    max_memory: str = option("", "At most this memory for weights and activations of a batch, e.g. 512MB.", shown="any")
    max_power: str = option("", "At most this power of the chip and the host it needs, e.g. 15W.", shown="any")
    min_throughput: str = option("", "At least so many inferences, e.g. 30/s.", shown="any")

    def read(self) -> Limits:
        """Return the limits in SI units; UsageError names the option that cannot be read."""
        from joulemap.domain.settings import Limits

        return Limits(
            max_latency_s=read_quantity("--max-latency", self.max_latency, "s"),
            max_energy_j=read_quantity("--max-energy", self.max_energy, "J"),
            max_energy_per_inference_j=read_quantity("--max-energy-per-inference", self.max_energy_per_inference, "J"),
            max_memory_bytes=read_quantity("--max-memory", self.max_memory, "B"),
            max_power_w=read_quantity("--max-power", self.max_power, "W"),
            min_throughput_per_s=read_quantity("--min-throughput", self.min_throughput, "1/s"),
        )


@frozen(kw_only=True)
class LimitOptions(UseLimitOptions):
    """What a configuration must keep to."""

    max_price: str = option(
        "", "At most this price of a chip: rented, e.g. 2USD/h, or bought, e.g. 500USD.", shown="any"
    )

    def read(self) -> Limits:
        """Return the limits in SI units; UsageError names the option that cannot be read."""
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


@frozen(kw_only=True)
class PriceOptions:
    """What a person pays for chips, in place of the catalogue's prices."""

    price_per_hour: list[str] | None = option(None, "Your rent of a chip, e.g. l4=0.40USD/h; repeat for several.")
    purchase_price: list[str] | None = option(None, "What you pay for one, e.g. l4=2500USD; repeat for several.")
    price_file: Path | None = option(
        None,
        "CSV with the columns hardware, usd_per_hour, purchase_usd and source, or TOML with a table of them "
        "for each hardware. What is given beside it counts more.",
    )

    def read(self) -> tuple[Price, ...]:
        """Return the prices; UsageError names the option that cannot be read."""
        from joulemap.answer.price import read_price_file
        from joulemap.domain.settings import Price

        of_file = read_price_file(self.price_file) if self.price_file else ()
        rents = _read_prices("--price-per-hour", self.price_per_hour, "USD/h")
        bought = _read_prices("--purchase-price", self.purchase_price, "USD")
        return (
            *of_file,
            *(Price(hardware=name, usd_per_hour=value) for name, value in rents.items()),
            *(Price(hardware=name, purchase_usd=value) for name, value in bought.items()),
        )


def _read_prices(option: str, written: Sequence[str] | None, unit: str) -> dict[str, float | None]:
    """Return hardware -> price of `l4=0.40USD/h`s; UsageError names the option and what is wrong."""
    try:
        pairs = split_assignments(written)
    except UsageError:
        found = ", ".join(written or ())
        raise UsageError(f"{option}: cannot read {found}: write HARDWARE=PRICE, each once: l4=0.40{unit}") from None
    return {name: read_quantity(f"{option} {name}=", text, unit) for name, text in pairs.items()}


@frozen(kw_only=True)
class UsageOptions:
    """How a chip is used and powered."""

    pay: str = option(
        "",
        "Rank what is rented, what is bought, or both in one ranking.",
        metavar="[rented|bought|both]",
        shown="the way that more of the hardware has a price of",
    )
    seller: str = option(
        "",
        "Kind of seller whose prices are compared; view `offers` lists the offers.",
        metavar="[hyperscaler|cloud|marketplace|reserved|spot|list|retail]",
        shown="the kind that most of the hardware has offers of",
    )
    busy_hours: float | None = option(
        None, "Hours of each 24 that a chip is powered or rented in which it works, at most 24.", shown="12"
    )
    lifetime: float | None = option(None, "Years that a bought chip serves.", shown="the catalogue's")
    hours: float | None = option(None, "Hours that a bought chip is powered in a year.", shown="the catalogue's")
    pue: float | None = option(
        None, "Power usage effectiveness of data centres, from 1; 1 elsewhere.", shown="the catalogue's"
    )
    electricity: str = option("", "Its price, e.g. 0.12USD/kWh.", shown="the catalogue's")
    host_share: float | None = option(
        None,
        "What a host adds to the price and electricity of a bought chip, as a share of them; a whole computer "
        "needs none.",
        shown="the catalogue's",
    )
    grid: str = option("", "Where electricity comes from, e.g. us, de or Norway.", shown="world")
    grid_gco2_per_kwh: float | None = option(None, "Grams of CO2 per kWh in place of a grid's.", shown="the grid's")

    def read(self) -> Usage:
        """Return how a chip is used; UsageError names what is out of range."""
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
        )


@frozen(kw_only=True)
class BoundOptions:
    """What a query may take before it is stopped."""

    timeout: float | None = option(None, "Stop it where nothing comes for so many seconds.", shown="60")
    max_rows: int | None = option(None, "Stop it at more rows.", shown="any number")
    max_memory: str = option(
        "",
        "Stop it where it needs more memory, e.g. 8GB; disk is not used in its place.",
        shown="4GB, at most half of the machine's",
    )

    def read(self) -> Bounds:
        """Return the bounds; UsageError names what is out of range."""
        from joulemap.domain.settings import Bounds

        given: dict[str, Any] = {
            "timeout_s": self.timeout,
            "max_memory_bytes": read_quantity("--max-memory", self.max_memory, "B"),
        }
        return Bounds(max_rows=self.max_rows, **{name: value for name, value in given.items() if value is not None})
