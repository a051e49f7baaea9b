"""Causes of a difference between two runs: roles of actions and kinds of time, each as a count times a price."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.ask.fact import LEADING, Caveat, Facts, Quantity, Term, TermLevel, TermQuantity
from joulemap.domain.metric import METRIC, MetricName
from joulemap.domain.role import ROLES

if TYPE_CHECKING:
    from joulemap.ask.scope import Scope
    from joulemap.generated.explain import CategoryDifference, RoleDifference

LEAST_CAUSE: Final = 0.25
"""Minimum share of a difference that what only one run has makes for both to be unlike."""

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

HOST, IDLE = "counted host", "idle power"
"""Terms beside the roles: the host that an energy includes, and the time between inferences at a fixed rate."""

CONSEQUENT: Final = (RESIDUAL, "board")
"""Categories that explain nothing: energy without a counter, and losses in proportion to all other energy."""

SURROUNDING: Final = (*CONSEQUENT, STATIC, "host", HOST, IDLE)
"""Categories of energy, and terms beside the roles, that no part of the architecture spends."""

MOST: Final = 0.5
"""Share of the difference above which a term is most of it, so that it leads even if it is no architecture."""

LEAST_BUILT: Final = 0.03
"""Minimum share of the difference of the largest term of the architecture that is told."""

MOST_ALONG: Final = 2
"""Maximum causes in the direction of the difference."""

BATCH: Final = "batch"
"""Unit of work of metrics that are not divided."""

ROLE: Final = "role"
CATEGORY: Final = "category"
"""Levels of terms."""

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
        whole = 1.0 - sum(one.part for one in terms)
    if powers.energy_power:
        roles = fetch(scope.connection, RoleDifference, **given)
        scope.reading.behind.append(roles)
        per = "" if METRIC[metric].per == BATCH else METRIC[metric].per
        terms += [attrs.evolve(one, per=per) for one in list_roles(roles, pair, batches=batches, whole=whole)]
    return sorted(terms, key=lambda one: -abs(one.part))


def list_causes(facts: Facts) -> list[Term]:
    """Return the terms of an answer's first pair that have causes, largest first: roles of energy, kinds of time, parts
    of memory.
    """
    terms = facts.of(Term)
    own = [one for one in terms if one.runs == terms[0].runs]
    roles = [one for one in own if one.level == ROLE]
    others = [one for one in list_parts(own) if one.quantity != "energy" or not roles]
    return sorted((*roles, *others), key=lambda one: -abs(one.part))


def list_parts(terms: Iterable[Term]) -> list[Term]:
    """Return the terms by category or contributor, which sum to the difference."""
    return [one for one in terms if one.level in (CATEGORY, "contributor")]


def pick_causes(terms: Sequence[Term], most: int) -> list[Term]:
    """Return about `most` terms that tell a difference, the leading one first; `terms` are in the order of their size.

    The largest term of the architecture leads, unless another term is most of the difference, and is among them if it
    is a `LEAST_BUILT`. What is only in proportion to other terms is among them only if it is most of the difference,
    and a residual never is: nobody can explain it.
    """
    told = [one for one in terms if one.part and _find_category(one) != RESIDUAL]
    told = [one for one in told if _find_category(one) not in CONSEQUENT or abs(one.part) > MOST]
    built = [one for one in told if _find_category(one) not in SURROUNDING]
    along = [one for one in told if one.part > 0.0]
    first = [one for one in along if one in built or one.part > MOST][:1] or along[:1]
    large = [one for one in told if abs(one.part) >= LEADING and one not in first]
    needed = [one for one in built[:1] if one not in first and abs(one.part) >= LEAST_BUILT]
    against = [one for one in large if one.part < 0.0 and most > MOST_ALONG][:1]
    rest = dict.fromkeys((*needed, *against, *(one for one in large if one.part > 0.0)))
    count = min(most, MOST_ALONG + any(one.part < 0.0 for one in (*needed, *against)))
    picked = [*rest][: max(count - len(first), len(needed))]
    return [*first, *sorted(picked, key=lambda one: (one.part < 0.0, -abs(one.part)))]


def find_lack(facts: Facts) -> list[Caveat]:
    """Return the caveat that the residual is the largest part of an energy difference; empty if it is not."""
    terms = list_causes(facts)
    if not terms or _find_category(terms[0]) != RESIDUAL or not terms[0].part:
        return []
    share, ends = terms[0].part, [one.value for one in terms[0].amounts]
    excess = abs(ends[1] - ends[0])
    whole = sum(one.amounts[ends[1] > ends[0]].value for one in terms if one.quantity == "energy")
    bias = math.copysign(math.log(whole / (whole - excess)) if whole > excess else math.inf, share)
    is_within = 0.0 < share <= 1.0
    values = {"share": share if is_within else None, "excess": None if is_within else Quantity(excess, "J")}
    return [Caveat(kind="unnamed", runs=(), values=values, weight=abs(bias), move=abs(bias), bias=bias)]


def _find_category(term: Term) -> str:
    return term.category or term.name


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
            name, category = (RESIDUAL, RESIDUAL) if own is residual else (own[0].role, own[0].category)
            terms.append(make_term(pair, ROLE, "energy", name, energies, "J", category=category, **causes))
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
    """Return the counts and the energies per count of a role."""
    unit = ROLES[row.role].unit if row.role in ROLES else "count"
    per = {"s": "W", "J": "", "B": "J/B"}.get(unit, "J")
    counts = (row.count_a / batches[0], row.count_b / batches[1])
    steps = (row.step_a or unit, row.step_b or unit)
    sides: Sequence[tuple[float, int]] = tuple(zip((row.count_a, row.count_b), macs, strict=True))
    passes = tuple(count / own if unit == "MAC" and own else 0.0 for count, own in sides)
    return {
        "is_shared": row.is_shared,
        "counts": tuple(Quantity(one, step) if one else None for one, step in zip(counts, steps, strict=True)),
        "prices": tuple(Quantity(one, per) if one is not None else None for one in (row.price_a_j, row.price_b_j)),
        "passes": passes if max(passes) >= FEWEST_PASSES else (),
    }


def _divide(row: CategoryDifference, total: Any) -> dict[str, Any]:
    """Return the work of a category of time and its rates; for one subgraph, the units that compute it."""
    sides = ((row.work_a, row.spent_a), (row.work_b, row.spent_b))
    rates: list[Quantity | None] = []
    for work, spent in sides:
        rate = None if not work or not spent else spent / work if row.category == "launch" else work / spent
        rates.append(None if rate is None else Quantity(rate, RATES[row.category]))
    is_of_part = total is not None and total.units_used_a is not None and row.category == "compute"
    units = [
        tuple(getattr(total, f"{name}_{side}") or "" for name in ("units_used", "units_total", "unit_name"))
        for side in ("ab" if is_of_part else "")
    ]
    return {
        "counts": tuple(Quantity(work, WORK[row.category]) if work else None for work, _ in sides),
        "prices": tuple(rates),
        "units": tuple(units),
        "is_shared": abs(row.by_presence_exact) < LEAST_CAUSE * abs(row.difference_exact),
    }
