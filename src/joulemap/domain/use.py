"""Needs and costs of a million inferences, as the queries of `cost` add them up, of one configuration at a time."""

from __future__ import annotations

from joulemap.record import frozen

S_PER_H = 3600.0
J_PER_KWH = 3.6e6
MILLION = 1e6


@frozen(kw_only=True)
class Use:
    """How a chip is used, powered and paid for."""

    utilization: float
    """The part of the powered or rented hours that it works."""
    lifetime_years: float
    hours_per_year: float
    pue: float
    """1 outside data centres."""
    usd_per_kwh: float
    host_share: float
    gco2_per_kwh: float
    idle_w: float
    usd_per_hour: float | None
    purchase_usd: float | None

    def kwh(self, energy_per_inference_j: float, throughput_per_s: float) -> float:
        """Return what a million inferences take, with what the chip idles between them."""
        idle_j = self.idle_w * (1.0 - self.utilization) / self.utilization / throughput_per_s
        return (energy_per_inference_j + idle_j) * self.pue * MILLION / J_PER_KWH

    def carbon_g(self, energy_per_inference_j: float, throughput_per_s: float) -> float:
        """Return the CO2 of a million inferences."""
        return self.kwh(energy_per_inference_j, throughput_per_s) * self.gco2_per_kwh

    def cost_usd(self, energy_per_inference_j: float, throughput_per_s: float) -> float | None:
        """Return what a million inferences cost, rented or bought, whichever is less; None without a price."""
        per_hour = throughput_per_s * self.utilization * S_PER_H
        ways = []
        if self.usd_per_hour is not None:
            ways.append(self.usd_per_hour * MILLION / per_hour)
        if self.purchase_usd is not None:
            chip = self.purchase_usd * MILLION / (per_hour * self.hours_per_year * self.lifetime_years)
            power = self.kwh(energy_per_inference_j, throughput_per_s) * self.usd_per_kwh
            ways.append((1.0 + self.host_share) * (chip + power))
        return min(ways, default=None)
