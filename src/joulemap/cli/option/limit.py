"""Options for limits of configurations and queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs

from joulemap.cli.command import option, optional
from joulemap.cli.panel import LIMITS
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Bounds, Limits


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
        from joulemap.cli.value import read_as
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
        from joulemap.cli.value import read_quantity

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
        from joulemap.cli.value import read_as
        from joulemap.domain.settings import Bounds

        return read_as(Bounds, self, max_rows=self.max_rows)
