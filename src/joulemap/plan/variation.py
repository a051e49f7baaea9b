"""One configuration as a function of the constants that it depends on.

Energies are linear in the energies per action while the power cap does not bind, and follow from the ledger's parts.
All other constants require a new evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.domain.hardware_ref import name_configured
from joulemap.domain.host import is_host, is_part, suggest_host
from joulemap.domain.metric import METRIC, VariedMetricName
from joulemap.domain.use import add_up
from joulemap.physics.record.address import USE, Address
from joulemap.physics.record.configuration import BOUNDARY, NO_HOST, Configuration
from joulemap.physics.record.constant import LOSS, OUTSIDE_LIMIT, PROPORTIONAL, STATIC, Change, Constant, check_value
from joulemap.physics.record.product import choose_setting
from joulemap.physics.record.reference import BOARD
from joulemap.physics.record.spread import Spread, find_spread
from joulemap.physics.variation import FAILURES, Totals, Varied
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.kind import HardwareKind, VariedRun, change_numbers, find_kind, list_numbers
from joulemap.store.literal import execute
from joulemap.system.record import define

if TYPE_CHECKING:
    from joulemap.domain.settings import Site
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.workload import WorkloadColumns
    from joulemap.plan.run import Plan
    from joulemap.plan.stored_runs import StoredRuns
    from joulemap.store.connection import Connection

STEP: Final = 1.01
"""Factor on a constant for its elasticity; rounding to whole cycles can outweigh the effect of a smaller step."""

WHOLE_STEP: Final = 2.0
"""Factor by which a count is divided and multiplied for its elasticity; the next integer may leave most of a tile
empty.
"""

BILL: Final = ("price_purchase", "price_cloud", "host_share", "idle_power")
"""Constants that affect the cost of a chip, not the times and energies of its runs."""

TIMED: Final = ("unit_count", "clock", "clock_die", "memory_bandwidth", "tdp", STATIC)
"""Constants of every run, in addition to the constants that formulas read; `clock` also moves the highest clock."""

BILLED: Final = ("cost", "carbon")


@define(eq=False)
class Variation:
    """Workload on a chip, and its results with one constant changed."""

    name: str
    """Hardware id with its power mode."""
    hardware: Hardware
    """Hardware of the run: calibrated, at its mode and boundary, with set constants."""
    batch: int
    varied: VariedRun
    use: Mapping[str, Constant]
    """Constants of usage; empty if no cost is requested."""
    fitted: Mapping[str, float]
    """Name of a coefficient -> spread of its logarithm in the fit of its class; in a box, the name begins with the
    device.
    """
    base: Totals = attrs.field(init=False)
    _found: dict[tuple[str, float], tuple[Totals, bool] | None] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.base = self.varied.evaluate(self.hardware)

    @cached_property
    def constants(self) -> dict[str, Constant]:
        """Constants of the run and its cost, except geometry, which is exact."""
        asked = self.varied.find_asked(self.hardware) | self.base.counted | {*TIMED, LOSS}
        bill = BILL if self.use else ()
        own: dict[str, Constant] = {
            name: one
            for name, one in list_numbers(self.hardware).items()
            if one.value > 0.0
            and (name in asked or name in bill or (one.kind == "memory" and not one.of))
            and not (one.kind == "geometry" and find_spread(one, self.fitted).origin == "exact")
        }
        return {**own, **self.use}

    @property
    def is_capped(self) -> bool:
        """True if the power cap lowers the clock, so that energies per action affect time too."""
        return self.base.spare_w < 0.0

    def spread(self, name: str) -> Spread:
        """Return the uncertainty of a constant."""
        return find_spread(self.constants[name], self.fitted)

    def value_at(self, name: str, factor: float) -> float | None:
        """Return a constant times a factor, rounded if it counts something; None for an invalid value."""
        constant = self.constants[name]
        value = constant.value * factor
        if constant.is_whole:
            value = max(1.0, round(value))
        try:
            check_value(constant, value)
        except ValueError:
            return None
        return value

    def metric(self, metric: VariedMetricName, name: str = "", factor: float = 1.0) -> float | None:
        """Return a metric with a constant scaled by a factor; None if the value is invalid or the price unknown."""
        evaluated = self.totals(name, factor)
        if evaluated is None:
            return None
        totals, _ = evaluated
        throughput = self.batch / totals.interval_s
        if metric in BILLED:
            each = {"energy_per_inference_j": totals.energy_j / self.batch, "throughput_per_s": throughput}
            return add_up({**self._use(name, factor), **each})[METRIC[metric].column]
        return {
            "energy": totals.energy_j,
            "latency": totals.latency_s,
            "throughput": throughput,
            "edp": totals.energy_j * totals.latency_s,
            "power": totals.energy_j / totals.interval_s,
            "efficiency": self.batch / totals.energy_j,
        }[metric]

    def totals(self, name: str, factor: float) -> tuple[Totals, bool] | None:
        """Return (totals with a constant scaled by a factor, True if they are exact); None for an invalid value."""
        if self._is_base(name, factor):
            return self.base, True
        value = self.value_at(name, factor)
        if value is None:
            return None
        if (name, value) not in self._found:
            self.prepare([(name, factor)])
        return self._found[name, value]

    def prepare(self, asked: Iterable[tuple[str, float]]) -> None:
        """Evaluate the totals for each (constant, factor) with only that constant scaled, all in one batch."""
        changed: dict[tuple[str, float], Hardware] = {}
        for name, factor in asked:
            if self._is_base(name, factor) or (value := self.value_at(name, factor)) is None:
                continue
            key, constant = (name, value), self.constants[name]
            if key in self._found:
                continue
            shifted = self._shift(constant, value / constant.value)
            self._found[key] = None if shifted is None else (shifted, True)
            if shifted is None and (other := self._change(constant, value)) is not None:
                changed[key] = other
        for key, totals in zip(changed, self.varied.evaluate_all(list(changed.values())), strict=True):
            self._found[key] = None if totals is None else (totals, False)

    def prepare_all(self, *factors: float) -> None:
        """Evaluate the totals at both ends of each constant's interval, at the steps of its slope, and at these
        factors.
        """
        near = {name: (1.0 / self.spread(name).down, self.spread(name).up) for name in self.constants}
        self.prepare((name, one) for name, ends in near.items() for one in (*ends, *self._steps(name), *factors))

    def _steps(self, name: str) -> tuple[float, ...]:
        """Return the factors at which a constant is evaluated for its slope."""
        constant = self.constants[name]
        if constant.is_whole:
            values = (self.value_at(name, WHOLE_STEP**sign) for sign in (-1.0, 1.0))
            return tuple(value / constant.value for value in values if value is not None)
        return (STEP,)

    def _is_base(self, name: str, factor: float) -> bool:
        """Return True if a change leaves the totals of a run unchanged."""
        return factor == 1.0 or name not in self.constants or name in BILL or name in self.use

    def _change(self, constant: Constant, value: float) -> Hardware | None:
        """Return the hardware with another value of a constant; None if it contradicts other constants."""
        try:
            return change_numbers(self.hardware, (Change.of(constant, value),), is_varied=True)
        except FAILURES:
            return None

    def _shift(self, constant: Constant, factor: float) -> Totals | None:
        """Return the totals at a scaled energy per action, without a new evaluation.

        None without a closed form, for example if the power cap binds.
        """
        if not self._is_ledger(constant):
            return None
        joules = self.base.action_j.get(constant.name, 0.0)
        if joules == 0.0 and (constant.own.startswith(f"{BOARD}.") or constant.name == LOSS):
            return None  # counted and under the power limit, but outside the ledger of this boundary
        if constant.name in OUTSIDE_LIMIT:
            extra_w = 0.0
        elif constant.name == STATIC:
            extra_w = (1.0 - self.base.cap_fraction) * constant.value * (factor - 1.0)
            if constant.value * factor >= self.hardware.tdp.value:
                return None
        else:
            extra_w = joules * (factor - 1.0) / self.base.interval_s
        spare_w = self.base.spare_w - extra_w
        if spare_w < 0.0:
            return None
        return attrs.evolve(self.base, energy_j=self.base.energy_j + joules * (factor - 1.0), spare_w=spare_w)

    def slope(self, metric: VariedMetricName, name: str) -> tuple[float | None, bool]:
        """Return d ln metric / d ln constant, and True if it is exact: from the ledger instead of a step."""
        constant = self.constants[name]
        base = self.metric(metric)
        small = self._steps(name)
        if small == (STEP,) and self.totals(name, STEP) is None:
            small = (1.0 / STEP,)
        is_exact = True
        points = [(0.0, base)]
        for factor in small:
            evaluated = self.totals(name, factor)
            value = self.metric(metric, name, factor) if evaluated is not None and factor != 1.0 else None
            if value is not None:
                points.append((math.log(factor), value))
                is_exact = is_exact and evaluated is not None and evaluated[1]
        if not base or len(points) < 2:
            return None, False
        if is_exact and metric not in BILLED and self._is_ledger(constant):
            share = self.base.action_j.get(name, 0.0) / self.base.energy_j
            return share * {"latency": 0.0, "throughput": 0.0, "efficiency": -1.0}.get(metric, 1.0), True
        (low, at_low), (high, at_high) = min(points), max(points)
        if not at_low or not at_high:
            return None, False
        return math.log(at_high / at_low) / (high - low), is_exact

    def _is_ledger(self, constant: Constant) -> bool:
        is_box = bool(constant.of) and constant.own in (STATIC, LOSS)  # a device draws it for the time of the whole box
        return (constant.is_linear or constant.name in PROPORTIONAL) and not self.is_capped and not is_box

    def _use(self, name: str, factor: float) -> dict[str, float | None]:
        """Return the usage with one of its constants scaled by a factor."""

        def of_use(key: str) -> float:
            return self.use[f"use.{key}"].value * (factor if name == f"use.{key}" else 1.0)

        def own(key: str) -> float | None:
            quantity = getattr(self.hardware, key)
            return None if quantity is None else quantity.value * (factor if name == key else 1.0)

        host, idle = own("host_share"), own("idle_power")
        idle_w = (own(STATIC) or 0.0) if idle is None else idle
        boundary = BOUNDARY[self.hardware.boundary]
        if boundary.is_at_wall:
            idle_w = idle_w * self.hardware.around_factor + self.hardware.host_w
        is_alone = not boundary.includes_board or self.hardware.host == NO_HOST
        assumed = 0.0 if is_alone or is_host(self.hardware) else of_use("host")
        has_host = boundary.is_at_wall or bool(self.hardware.host and self.hardware.needs_host)
        return {
            "utilization": min(of_use("utilization"), 1.0),
            "lifetime_years": of_use("lifetime"),
            "hours_per_year": of_use("hours"),
            "pue": max(of_use("pue"), 1.0) if "datacenter" in self.hardware.deployment else 1.0,
            "usd_per_kwh": of_use("electricity"),
            "host_share": (share := assumed if is_alone or host is None else host),
            "host_energy_share": 0.0 if has_host else share,
            "gco2_per_kwh": of_use("grid"),
            "idle_w": idle_w,
            "module_w": _find_module_w(self.hardware),
            "usd_per_hour": own("price_cloud"),
            "purchase_usd": own("price_purchase"),
        }


def _find_module_w(hardware: Hardware) -> float:
    """Return the static power in watts of the rest of the module or SoC.

    0 if the hardware is not a part of a module or SoC, if its energy already includes the rest, or if it excludes the
    board.
    """
    boundary = BOUNDARY[hardware.boundary]
    is_whole = boundary.is_at_wall or not boundary.includes_board
    if not is_part(hardware.needs_host) or hardware.host or is_whole:
        return 0.0
    host = suggest_host(hardware.needs_host)
    rest = known_hardware((host,)).get(host)
    return 0.0 if rest is None else rest.static_w


def find_variations(runs: StoredRuns, site: Site | None, prices: Mapping[int, Mapping[str, Any]]) -> list[Variation]:
    """Return each run of a plan as a function of its constants; `site` is needed for costs only.

    `prices` is run -> prices that replace those of its hardware. Raises UnknownNameError for an unknown grid.
    """
    from joulemap.catalog.spread import load_spreads
    from joulemap.store.hardware import read_hardware
    from joulemap.store.workload import read_columns

    rows = _read_runs(runs.connection, runs.ids)
    records = read_hardware(runs.connection, [digest for _, _, _, digest, *_ in rows])
    use = {} if site is None else read_use(site)
    works: dict[int, WorkloadColumns] = {}
    kernels: dict[tuple[int, str, str, str], Varied] = {}
    fitted: dict[str, dict[str, float]] = {}

    def fit(architecture: str) -> dict[str, float]:
        if architecture not in fitted:
            fitted[architecture] = {one.name: one.spread for one in load_spreads(architecture).coefficients}
        return fitted[architecture]

    variations = []
    for run_id, name, workload_id, digest, precision, weight_precision, runtime, batch in rows:
        key = workload_id, precision, runtime, weight_precision
        if workload_id not in works:
            works[workload_id] = read_columns(runs.connection, workload_id)
        hardware = attrs.evolve(records[digest], **prices.get(run_id, {}))
        one: dict[str, Any] = {"name": name, "batch": batch, "use": use}
        if (kind := find_kind(hardware.architecture)) is not None:
            fields = {"precision": precision, "weight_precision": weight_precision, "runtime": runtime, "batch": batch}
            variations.append(_vary_kind(kind, runs.plan, works[workload_id], fields, fit, one))
            continue
        if key not in kernels:
            kernels[key] = Varied.of(works[workload_id], *key[1:])
        variations.append(Variation(**one, hardware=hardware, varied=kernels[key], fitted=fit(hardware.architecture)))
    return variations


def _vary_kind(
    kind: HardwareKind,
    plan: Plan,
    work: WorkloadColumns,
    fields: Mapping[str, Any],
    fit: Callable[[str], Mapping[str, float]],
    one: Mapping[str, Any],
) -> Variation:
    """Return a run as a function of its hardware's constants.

    `fields` is the run's configuration; `one` contains the remaining fields of the `Variation`.
    """
    entry, mode = next(pair for pair in plan.selection.pairs if name_configured(pair[0].id, pair[1]) == one["name"])
    record = plan.selection.boxes[entry.described]
    setting = choose_setting(plan.settings.matmul_precision, fields["precision"])
    hardware = plan.target(entry, mode, setting).bind(record)
    return Variation(
        **one,
        hardware=hardware,
        varied=kind.vary(work, Configuration(hardware=entry.id, power_mode=mode, **fields)),
        fitted={
            f"{chip_name}.{name}": spread
            for chip_name, chip in kind.name_chips(hardware).items()
            for name, spread in fit(chip.architecture).items()
        },
    )


def _read_runs(connection: Connection, ids: Sequence[int]) -> list[tuple[int, str, int, str, str, str, str, int]]:
    """Return (run, hardware, workload, digest, precision, weight precision, runtime, batch) of evaluated runs."""
    return execute(
        connection,
        "SELECT run_id, configured_hardware, workload_id, hardware_digest, precision, weight_precision, runtime, batch "
        "FROM run_configurations WHERE list_contains($ids, run_id) AND refusal IS NULL "
        "ORDER BY list_position($ids, run_id)",
        {"ids": list(ids)},
    ).fetchall()


GIVEN: Final = {
    "utilization": "utilization",
    "lifetime": "lifetime_years",
    "hours": "hours_per_year",
    "pue": "pue",
    "electricity": "usd_per_kwh",
    "host": "host_share",
}
"""Assumption of the catalogue -> field of `Site` that replaces it."""


def read_use(site: Site) -> dict[str, Constant]:
    """Return the use of a site as constants, `use.utilization` and so on; UnknownNameError for an unknown grid."""
    from joulemap.catalog.sheet import find_region, load_assumptions

    quantities = {one.name: one.quantity for one in load_assumptions()}
    quantities["grid"] = find_region(site.region or "world").intensity
    given = {name: getattr(site, field) for name, field in GIVEN.items()} | {"grid": site.gco2_per_kwh}
    return {
        str(Address(USE, name)): Constant(
            address=Address(USE, name),
            value=quantity.value if given.get(name) is None else given[name],
            unit=quantity.unit,
            basis=quantity.basis if given.get(name) is None else "published",
            source=quantity.source if given.get(name) is None else "the question",
        )
        for name, quantity in quantities.items()
        if name in given
    }
