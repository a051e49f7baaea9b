"""Rows of fleets: their monthly cost, their power and the limits that break first, or why they miss their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from joulemap.domain import find_unknown, take
from joulemap.domain.use import add_up
from joulemap.wing.fleet.capacity.row import LATE, OK, DeviceLoad, FleetRow, count_likely, find_enough
from joulemap.wing.fleet.generated.row import LevelRow, Station

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Demand

HOURS: Final = 8760.0
"""Hours per year, in which a fleet is always present."""

MONTHS: Final = 12.0
"""Months per year."""

HALF_MORE: Final = 1.5
"""Multiple of the highest rate up to which limits that break are reported."""


def cut_seller(price: str) -> str:
    """Return the text of a price without its seller and date."""
    return price.partition(", ")[0]


def cost_fleet(
    station: Station, loads: Sequence[DeviceLoad], devices: int, owned: int, idle_w: float | None
) -> dict[str, Any]:
    """Return the monthly energy, carbon and cost of a fleet, as fields of its row.

    Owned devices cost only electricity, including the electricity of their hosts, and are powered first. Other devices
    are rented or bought.
    """
    powered = sum(one.level.share * one.devices for one in loads)
    busy = sum(one.level.share * one.busy_devices for one in loads)
    rate = sum(one.level.share * one.level.rate_per_s for one in loads)
    watts = sum(one.level.share * one.batch_w for one in loads)
    purchase = 0.0 if owned >= devices else station.price_purchase_usd
    totals = add_up(
        {
            "throughput_per_s": rate / busy,
            "utilization": busy / powered,
            "energy_per_inference_j": watts / rate,
            "idle_w": idle_w,
            "module_w": station.module_power_w,
            "hours_per_year": HOURS,
            "lifetime_years": station.lifetime_years,
            "pue": station.pue_ratio,
            "gco2_per_kwh": station.gco2_per_kwh,
            "usd_per_kwh": station.usd_per_kwh,
            "usd_per_hour": station.price_cloud_usd_per_hour,
            "purchase_usd": None if purchase is None else purchase * max(devices - owned, 0) / powered,
            "host_share": station.host_share_ratio,
            "host_energy_share": station.host_energy_share_ratio,
        }
    )
    millions = rate * HOURS * 3600.0 / MONTHS / 1e6

    def month(name: str) -> float | None:
        return None if totals[name] is None else cast("float", totals[name]) * millions

    rent = station.price_cloud_usd_per_hour
    months, host = MONTHS * station.lifetime_years, station.host_share_ratio
    hired = sum(one.level.share * max(one.devices - owned, 0) for one in loads)
    module_w = station.module_power_w
    own_w = sum(
        one.level.share * one.draw(idle_w or 0.0, module_w) * min(owned / one.devices, 1.0)
        for one in loads
        if one.devices
    )
    own_kwh = own_w * HOURS / MONTHS / 1e3 * station.pue_ratio * (1.0 + station.host_energy_share_ratio)
    return {
        "owned_device_count": min(owned, devices),
        "busy_mean_fraction": busy / powered,
        "rented_device_per_month": None if rent is None else rent * HOURS / MONTHS,
        "bought_device_per_month": None if purchase is None or host is None else purchase * (1.0 + host) / months,
        "energy_per_request_j": totals["powered_j"],
        "mean_power_w": None if totals["powered_j"] is None else totals["powered_j"] * rate,
        "kwh_per_month": month("kwh_per_million"),
        "gco2_per_month": month("gco2_per_million"),
        "rented_per_month": _add_rent(rent, hired, own_kwh * station.usd_per_kwh),
        "bought_per_month": month("bought_usd_per_million"),
    }


def complete_fleet(
    station: Station,
    demand: Demand,
    loads: Sequence[DeviceLoad],
    *,
    devices: int,
    idle_w: float,
    power_w: float,
    grown_w: float,
    carried: float,
    **columns: Any,
) -> tuple[FleetRow, tuple[LevelRow, ...]]:
    """Return the row of a fleet that meets the targets, with its cost and its first limits, and its row at each rate.

    `idle_w` is the idle power of one device. `power_w` and `grown_w` are the power of all devices at the highest rate
    and at `HALF_MORE` times this rate. `carried` is the capacity relative to the highest rate. The power of the row
    includes the rest of each module or SoC to which a device belongs.
    """
    modules_w = station.module_power_w * devices
    power_w, grown_w = power_w + modules_w, grown_w + modules_w
    hosts, owned = 1.0 + station.host_energy_share_ratio, demand.owned.get(station.hardware_id, 0)
    row = make_late(station, "").replace(
        **columns,
        status=OK,
        device_count=devices,
        carried_ratio=carried,
        utilization_fraction=1.0 / carried if carried else None,
        fails_first=list_failures(carried, demand.max_power_w, hosts * power_w, hosts * grown_w),
        power_w=power_w,
        host_power_w=station.host_energy_share_ratio * power_w,
        idle_power_w=idle_w * devices + modules_w,
        **cost_fleet(station, loads, devices, owned, idle_w),
    )
    row = row.replace(likely_device_count=count_likely(row), enough_fraction=find_enough(row))
    return row, list_levels(row.label, station, loads, idle_w, owned)


def _add_rent(usd_per_hour: float | None, devices: float, owned_usd: float) -> float | None:
    """Return the monthly rent of `devices` plus the cost of owned devices; None if a rent is needed but unknown."""
    if not devices:
        return owned_usd
    return None if usd_per_hour is None else usd_per_hour * HOURS / MONTHS * devices + owned_usd


def list_levels(
    label: str, station: Station, loads: Sequence[DeviceLoad], idle_w: float, owned: int
) -> tuple[LevelRow, ...]:
    """Return one row per request rate: a fleet's utilization and power there."""
    rent = station.price_cloud_usd_per_hour
    return tuple(
        LevelRow(
            label=label,
            rate_per_s=one.level.rate_per_s,
            time_fraction=one.level.share,
            device_count=one.devices,
            busy_fraction=one.busy_devices / one.devices if one.devices else 0.0,
            power_w=one.draw(idle_w, station.module_power_w),
            rented_usd_per_hour=None if rent is None else rent * max(one.devices - owned, 0),
        )
        for one in loads
    )


def list_failures(carried: float, limit_w: float | None, power_w: float, grown_w: float) -> str:
    """Return the limits that break first as the load grows by up to half, in this order; power grows linearly."""
    fails = [(carried, "latency")] if carried < HALF_MORE else []
    if limit_w is not None and grown_w > limit_w:
        part = (limit_w - power_w) / (grown_w - power_w) if grown_w > power_w else 0.0
        fails.append((1.0 + max(part, 0.0) * (HALF_MORE - 1.0), "power"))
    return ", then ".join(what for _, what in sorted(fails))


def make_late(station: Station, reason: str, taken: float | None = None) -> FleetRow:
    """Return the row of hardware that misses its target, with the reason.

    `taken` is the ratio of its latency to the target. Rows of other fleets are made from it by changing fields.
    """
    fields: dict[str, Any] = {**find_unknown(FleetRow), **take(FleetRow, station)}
    fields |= {
        "label": f"{station.hardware} {station.precision}",
        "status": LATE,
        "batch": None,
        "idle_power_w": None,  # the station has it per device, the row needs it for the fleet
        "promise_fraction": taken,
        "time_half_width": station.latency_half_width,
        "reason": reason,
    }
    return FleetRow(
        **fields, server_device_count=1, expert_device_count=1, owned_device_count=0, fails_first="", way=""
    )
