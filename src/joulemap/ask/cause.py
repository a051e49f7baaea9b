"""Causes of a difference between two runs: roles of actions and kinds of time, each as a count times a price."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.fact import Quantity, Term, TermLevel, TermQuantity
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.role import ROLES

if TYPE_CHECKING:
    from joulemap.ask.scope import Scope
    from joulemap.generated.explain import CategoryDifference, RoleDifference

LEAST_CAUSE: Final = 0.25
"""Minimum share of a difference for a count or a price to be a cause of it."""

FEWEST_PASSES: Final = 1.5
"""Minimum counted MACs per MAC of the model that count as several passes, as of a TPU at fp32."""

RATES: Final = {"launch": "s", "memory": "B/s", "compute": "MAC/s"}
"""Category of time -> unit of its price: seconds per kernel, or work per second."""

WORK: Final = {"launch": "kernel", "memory": "B", "compute": "MAC"}
"""Category of time -> unit of its work."""

STATIC: Final = "static"
"""Category of static power, which is told as a power and a time."""

RESIDUAL: Final = "unattributed"
"""Category of energy that was fitted to what no counter explains."""

UNEXPLAINED: Final = "unexplained"
"""Name of the term of all roles of that category together."""

BATCH: Final = "batch"
"""Unit of work of metrics that are not divided."""

ROLE: Final = "role"
CATEGORY: Final = "category"
"""Levels of terms."""

HOST, IDLE = "counted host", "idle"
"""Terms beside the roles: the host that an energy includes, and the time between inferences at a fixed rate."""

Pair = tuple[int, int]


def find_causes(scope: Scope, pair: Pair, metric: MetricName, batches: Pair = (1, 1)) -> list[Term]:
    """Return the terms of the difference of two runs, largest first: kinds of time for a metric of time alone, roles of
    energy for any metric that contains energy, both for their product, none for others. `batches` are those of a metric
    per inference. Kinds of time need the ledgers of both runs.
    """
    from joulemap.generated.explain import CategoryDifference, RoleDifference
    from joulemap.store.query import fetch

    powers, (run_a, run_b) = METRIC[metric], pair
    given: dict[str, Any] = {"run_a": run_a, "run_b": run_b, "subgraph": ""}
    is_product = powers.energy_power == powers.latency_power == 1.0
    terms: list[Term] = []
    whole = 1.0
    if is_product or (powers.latency_power and not powers.energy_power):
        if batches[0] != batches[1]:
            return []
        parts = fetch(scope.connection, CategoryDifference, metric="edp" if is_product else "latency", **given)
        scope.reading.behind.append(parts)
        terms += list_times(parts, pair)
        whole = 1.0 - sum(one.share or 0.0 for one in terms)
    if powers.energy_power:
        roles = fetch(scope.connection, RoleDifference, **given)
        scope.reading.behind.append(roles)
        per = "" if METRIC[metric].per == BATCH else METRIC[metric].per
        terms += [attrs.evolve(one, per=per) for one in list_roles(roles, pair, batches=batches, whole=whole)]
    return sorted(terms, key=lambda one: -abs(one.share or 0.0))


def compare_rates(scope: Scope, pair: Pair) -> Term:
    """Return the term of the times of two runs, each as operations at a rate, which need no ledger."""
    from joulemap.generated.analyze import RunTotal
    from joulemap.store.query import fetch

    totals = [row for run_id in pair for row in fetch(scope.connection, RunTotal, run_id=run_id)]
    counts = tuple(Quantity(float(one.batch)) for one in totals)
    rates = tuple(Quantity(2.0 * one.mac_count / one.latency_s, "ops/s") for one in totals)
    times = [one.latency_s for one in totals]
    return make_term(pair, "work", "time", "rate", times, "s", counts=counts, prices=rates)


def list_roles(
    rows: Iterable[RoleDifference], pair: Pair, *, macs: Pair = (0, 0), batches: Pair = (1, 1), whole: float = 1.0
) -> Iterator[Term]:
    """Yield a term per role of actions, largest first; the residual roles together are one.

    `macs` are those of the model in each run, `whole` is the share of energy in the explained difference.
    """
    terms: list[Term] = []
    listed = list(rows)
    residual, others = ([row for row in listed if (row.category == RESIDUAL) == one] for one in (True, False))
    for own in (residual, *([row] for row in others)):
        energies = [
            sum(getattr(row, name) for row in own) / batch
            for name, batch in zip(("energy_a_j", "energy_b_j"), batches, strict=True)
        ]
        if any(energies):
            causes = {} if own is residual else _multiply(own[0], macs, batches)
            name = UNEXPLAINED if own is residual else own[0].role
            terms.append(make_term(pair, ROLE, "energy", name, energies, "J", **causes))
    yield from share_out(terms, whole)


def share_out(terms: Sequence[Term], whole: float = 1.0) -> Iterator[Term]:
    """Yield terms with their shares of their sum, largest first; the shares add up to `whole`."""
    net = sum(one.difference.value for one in terms)
    for one in sorted(terms, key=lambda one: -abs(one.difference.value)):
        yield attrs.evolve(one, share=whole * one.difference.value / net if net else None)


def share_energies(
    pair: Pair,
    energies: Mapping[str, tuple[float, float]],
    times: tuple[float, float] | None = None,
    exact: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Term]:
    """Yield a term per category of energies (J) of two runs, largest first.

    With their times (s), static power is a power and a time; `exact` has differences in fJ.
    """
    terms = []
    for name, ends in energies.items():
        known: dict[str, Any] = {"exact": exact[name]} if name in exact else {}
        if times and name == STATIC:
            powers = (Quantity(energy / time, "W") for energy, time in zip(ends, times, strict=True))
            known = {"counts": tuple(Quantity(one, "s") for one in times), "prices": tuple(powers)}
        terms.append(make_term(pair, CATEGORY, "energy", name, ends, "J", **known))
    yield from share_out(terms)


def list_times(rows: Iterable[CategoryDifference], pair: Pair, total: Any = None) -> Iterator[Term]:
    """Yield a term per kind of time, largest first; the units of one subgraph are in `total`."""
    for row in rows:
        if row.quantity == "time":
            amounts = (row.spent_a, row.spent_b)
            yield make_term(pair, CATEGORY, "time", row.category, amounts, "s", row, **_divide(row, total))


def make_term(
    pair: Pair,
    level: TermLevel,
    quantity: TermQuantity,
    name: str,
    amounts: Iterable[float],
    unit: str,
    row: Any = None,
    **more: Any,
) -> Term:
    """Return a term of the difference of two runs, by default of their amounts; `row` has another difference, and its
    share.
    """
    value_a, value_b = (Quantity(one, unit) for one in amounts)
    known: dict[str, Any] = {"difference": Quantity(value_b.value - value_a.value, unit)}
    if row is not None:
        known = {"difference": Quantity(row.difference, row.unit), "share": row.difference_fraction}
    if hasattr(row, "difference_exact"):
        known["exact"] = row.difference_exact
    ends = {"runs": pair, "amounts": (value_a, value_b)}
    return Term(**{**ends, **known, **more}, level=level, quantity=quantity, name=name)


def _multiply(row: RoleDifference, macs: Pair, batches: Pair) -> dict[str, Any]:
    """Return the counts and the energies per count of a role, each if it explains much of the difference."""
    unit = ROLES[row.role].unit if row.role in ROLES else "count"
    is_always = unit == "s" or batches[0] != batches[1]
    has_count, has_price = (
        row.is_shared and (is_always or abs(one) >= LEAST_CAUSE * abs(row.difference_fj))
        for one in (row.by_count_fj, row.by_price_fj)
    )
    per = {"s": "W", "J": ""}.get(unit, "J")
    counts = (row.count_a / batches[0], row.count_b / batches[1])
    sides: Sequence[tuple[float, int]] = tuple(zip((row.count_a, row.count_b), macs, strict=True))
    passes = tuple(count / own if unit == "MAC" and own else 0.0 for count, own in sides)
    return {
        "is_shared": row.is_shared,
        "counts": tuple(Quantity(one, unit) if one else None for one in counts) if has_count else (),
        "prices": tuple(Quantity(one, per) if one is not None else None for one in (row.price_a_j, row.price_b_j))
        if has_price
        else (),
        "passes": passes if max(passes) >= FEWEST_PASSES else (),
    }


def _divide(row: CategoryDifference, total: Any) -> dict[str, Any]:
    """Return the work of a category of time and its rates, each if it explains much of the difference; for one
    subgraph, the units that compute it.
    """
    sides = ((row.work_a, row.spent_a), (row.work_b, row.spent_b))
    has_count, has_price = (
        abs(one) >= LEAST_CAUSE * abs(row.difference_exact) for one in (row.by_count_exact, row.by_price_exact)
    )
    rates: list[Quantity | None] = []
    for work, spent in sides if has_price else ():
        rate = None if not work or not spent else spent / work if row.category == "launch" else work / spent
        rates.append(None if rate is None else Quantity(rate, RATES[row.category]))
    is_of_part = total is not None and total.units_used_a is not None and row.category == "compute"
    units = [
        tuple(getattr(total, f"{name}_{side}") or "" for name in ("units_used", "units_total", "unit_name"))
        for side in ("ab" if is_of_part else "")
    ]
    return {
        "counts": tuple(Quantity(work, WORK[row.category]) if work else None for work, _ in sides)
        if has_count or not has_price
        else (),
        "prices": tuple(rates),
        "units": tuple(units),
        "is_shared": abs(row.by_presence_exact) < LEAST_CAUSE * abs(row.difference_exact),
    }
