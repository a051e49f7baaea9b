"""Rules: each finds one kind of caveat, with the factor by which it could move the decision.

An SQL rule is a file of `queries/rule`. Its name is the kind of the caveat; it returns a row per run, with either a
`bias` (known direction: equal biases of two runs cancel) or a `doubt` (half-width: doubts of two runs add up as
independent errors), both natural logarithms; other columns are the values of the caveat. A rule on how hardware was
selected is a function with the decorator `rule`. The words of a kind are one template in `joulemap.show.caveat`.

A wing brings its own rules: SQL files of the topic `WING_rule`, and a `Rules` record at the port `rules`. Their words
are at the port `words`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs

from joulemap.ask.decision import decide
from joulemap.ask.fact import Caveat, Choice, Quantity, Refusal, Value
from joulemap.ask.finding import RULES, Finding, Rule, rule
from joulemap.ask.scope import Scope
from joulemap.ask.setting import SETTINGS
from joulemap.domain.catalogue import DEFAULT_MODE
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.host import is_part
from joulemap.domain.metric import METRIC
from joulemap.domain.table import Column, group
from joulemap.generated.model import Caveat as StoredCaveat, ModelCaveat
from joulemap.generated.run import Fallback
from joulemap.physics.record.configuration import BOUNDARY
from joulemap.physics.record.product import FP32, HIGHEST, find_products
from joulemap.physics.record.runtime import RUNTIME
from joulemap.store.library import find_query, list_topic
from joulemap.store.query import run_query
from joulemap.store.run import Outline, count_appending
from joulemap.system.record import frozen
from joulemap.system.wing import find_parts, list_wings

UNKNOWN: Final = math.log(2.0)
"""Weight of a caveat with an unknown effect: a factor of two."""

LEAST_OWN: Final = 0.1
"""Minimum half-width (natural logarithm) due to a chip's own numbers that is a finding."""

LEAST_LEFT: Final = 1e-3
"""Minimum share of the work that a weight takes a run to count."""

TOPIC: Final = "rule"
"""Topic of the SQL rules of the core; with the name of a wing before it, of those of the wing."""

PORT: Final = "rules"

FALLBACK: Final = "fallback"
"""SQL rule that returns nothing if no host computes an operator, which the answer has read before."""

WEIGHED: Final = ("run_id", "bias", "doubt")
"""Columns of an SQL rule that are not values of the caveat."""

NEEDS: Final[dict[str, Callable[[Outline], object]]] = {
    "fallback": lambda one: one.has_helper,
    "host": lambda one: (
        not one.host and not BOUNDARY[one.boundary].is_at_wall and (one.needs_host or one.is_node_board)
    ),
    "borrowed": lambda one: one.is_new,
}
"""SQL rule -> condition on a run; the rule is not run if no run fulfils it, because planning a query takes longer."""


NOTHING: Final[Mapping[int, Sequence[int]]] = {}


@frozen(kw_only=True)
class Rules:
    """Rules of a wing that are functions, and conditions on its SQL rules, like `NEEDS`."""

    functions: tuple[Rule, ...] = ()
    needs: Mapping[str, Callable[[Outline], object]] = {}


@frozen(kw_only=True)
class SqlRule:
    """Query that finds one kind of caveat."""

    kind: str
    query: str
    """Name of the query, with its topic."""
    folder: Path | None = None
    """Folder of query files of a wing of another distribution; None for `queries`."""


@cache
def list_sql_rules() -> tuple[SqlRule, ...]:
    """Return the SQL rules of the core, then those of each wing."""
    topics: list[tuple[str, Path | None]] = [(TOPIC, None)]
    topics += [(f"{wing.name}_{TOPIC}", wing.queries_folder) for wing in list_wings()]
    return tuple(
        SqlRule(kind=kind, query=f"{topic}.{kind}", folder=folder)
        for topic, folder in topics
        for kind in list_topic(topic, folder)
    )


@cache
def list_wing_rules() -> tuple[Rules, ...]:
    """Return the rules that wings registered."""
    return tuple(find_parts(PORT))


def find_caveats(
    scope: Scope,
    choices: Sequence[Choice],
    *,
    metric: str,
    more: Iterable[Finding | Refusal] = (),
    stands_for: Mapping[int, Sequence[int]] = NOTHING,
    but: Collection[str] = (),
) -> list[Caveat | Refusal]:
    """Return the findings of all rules, heaviest first; weights refer to the first choice, by `metric`.

    `more` has findings of the question itself. `stands_for` maps a stored run to the facts' runs that it represents,
    where these differ. `but` are SQL rules that do not apply, because the question's values have other intervals.
    """
    findings = list_findings(scope, metric=metric, but=but)
    return weigh_findings([*more, *represent(findings, stands_for)], choices)


def list_findings(scope: Scope, *, metric: str, but: Collection[str] = ()) -> list[Finding | Refusal]:
    """Return the findings of all rules about stored runs, as `find_caveats` does before it weighs them."""
    findings: list[Finding | Refusal] = []
    extra = list_wing_rules()
    needs = {**NEEDS, **{kind: applies for rules in extra for kind, applies in rules.needs.items()}}
    for one in (own_rule for own_rule in list_sql_rules() if own_rule.kind not in but):
        applies = needs.get(one.kind, bool)
        if one.kind == FALLBACK and not scope.fallen:
            continue
        if ids := [run_id for run_id in scope.evaluated_ids if applies(scope.outlines[run_id])]:
            findings += _ask(scope, one, ids, name_weighed(metric))
    for find in (*RULES, *(find for rules in extra for find in rules.functions), *SETTINGS):
        findings += find(scope)
    return findings


def weigh_findings(findings: Sequence[Finding | Refusal], choices: Sequence[Choice]) -> list[Caveat | Refusal]:
    """Return findings as caveats, heaviest first, then the refusals."""
    caveats = _gather([one for one in findings if isinstance(one, Finding)], choices)
    return [*sorted(caveats, key=lambda one: -one.weight), *(one for one in findings if isinstance(one, Refusal))]


def name_weighed(metric: str) -> str:
    """Return the quantity whose errors move a metric: `energy`, `latency`, or neither for memory and prices."""
    powers = METRIC[metric]
    return "energy" if powers.energy_power else "latency" if powers.latency_power else ""


def represent(
    findings: Iterable[Finding | Refusal], stands_for: Mapping[int, Sequence[int]]
) -> Iterator[Finding | Refusal]:
    """Yield findings about stored runs as findings about the runs that these represent, if they represent any."""
    if stands_for is NOTHING:
        yield from findings
        return
    for one in findings:
        if isinstance(one, Refusal):
            yield attrs.evolve(one, runs=tuple(run for own in one.runs for run in stands_for.get(own, ())))
        elif one.run_id is None:
            yield one
        else:
            yield from (attrs.evolve(one, run_id=run) for run in stands_for.get(one.run_id, ()))


def _ask(scope: Scope, one: SqlRule, run_ids: Sequence[int], metric: str) -> Iterator[Finding]:
    """Yield the findings of one SQL rule."""
    query = find_query(one.query, one.folder)
    given = {"run_ids": list(run_ids), "metric": metric}
    declared = {parameter.name for parameter in query.parameters}
    table = run_query(scope.connection, query, {key: value for key, value in given.items() if key in declared})
    places = {run_id: place for place, run_id in enumerate(run_ids)}
    for row in sorted(table.records(), key=lambda row: places[row["run_id"]]):
        values = {
            column.name: _read(column, row[column.name]) for column in query.columns if column.name not in WEIGHED
        }
        yield Finding(
            kind=one.kind,
            run_id=row["run_id"],
            values=values,
            bias=row.get("bias") or 0.0,
            doubt=row.get("doubt") or 0.0,
        )


def _read(column: Column, value: Any) -> Value:
    if isinstance(value, list):
        return tuple(value)
    return Quantity(value, column.unit) if column.unit and value is not None else value


def _gather(findings: Sequence[Finding], choices: Sequence[Choice]) -> Iterator[Caveat]:
    """Yield a caveat for the findings of a kind with equal values."""
    groups = group(findings, lambda one: (one.kind, tuple(one.values.values())))
    moves = {kind: {one.run_id: one for one in findings if one.kind == kind} for kind, _ in groups}
    for (kind, _), alike in groups.items():
        ids = tuple(one.run_id for one in alike if one.run_id is not None)
        weight = weigh(choices, ids, moves[kind]) if ids else max(one.doubt for one in alike)
        move = max(max(abs(one.bias), one.doubt) for one in alike)
        bias = find_bias(choices, ids, moves[kind])
        yield Caveat(kind=kind, runs=ids, values=alike[0].values, weight=weight, move=move, bias=bias)


def weigh(choices: Sequence[Choice], ids: Iterable[int], moves: Mapping[int | None, Finding]) -> float:
    """Return the logarithm of the factor by which a caveat of these runs could move the decision."""
    own, pair = set(ids), decide(choices).runs if choices else ()
    doubts = [moves[one].doubt for one in pair if one in own]
    return max(abs(find_bias(choices, own, moves)), math.hypot(*doubts))


def find_bias(choices: Sequence[Choice], ids: Iterable[int], moves: Mapping[int | None, Finding]) -> float:
    """Return the logarithm of the factor that the winner's value lacks relative to the runner-up's; 0 if these runs are
    neither.
    """
    pair = decide(choices).runs if choices else ()
    if set(ids).isdisjoint(pair):
        return 0.0
    biases = [moves[one].bias if one in moves else 0.0 for one in pair]
    return biases[0] - (biases[1] if len(pair) > 1 else 0.0)


@rule
def traced(scope: Scope) -> Iterator[Finding]:
    """Find assumptions of the traces, operators that they could not count, and code that branched on data."""
    rows = scope.remarks
    if not rows:
        return
    from joulemap.domain.remark import write_appending

    is_assumed = any(row.kind == "assumed" for row in rows)
    counts = count_appending(scope.connection, scope.run_ids) if is_assumed else ()
    appending = {write_appending(count): count for count in counts}
    for row in rows:
        if row.kind == "assumed" and row.text in appending:
            yield find_appending(appending[row.text], row.text, set(scope.runtimes))
        else:
            yield from find_assumed(row)
    read, idle = (tuple(dict.fromkeys(row.text for row in rows if row.kind == kind)) for kind in ("read", "idle"))
    if read:
        places = tuple(filter(None, read))
        yield Finding(kind="branched", values={"places": places, "modules": len(idle), "idle": idle}, doubt=UNKNOWN)


def find_assumed(row: ModelCaveat | StoredCaveat) -> Iterator[Finding]:
    """Find an assumption of a trace, or an operator that it could not count, in a row on the trace."""
    from joulemap.domain.remark import name_uncounted

    if row.kind == "uncounted":
        values: dict[str, Value] = {"name": name_uncounted(row.text), "operators": row.operator_count}
        yield Finding(kind="uncounted", values=values, doubt=UNKNOWN)
    elif row.kind == "assumed":
        yield Finding(kind="traced", values={"text": row.text})


def find_appending(count: int, text: str, runtimes: Collection[str]) -> Finding:
    """Return the finding that operators append rows to keys and values, and what these runtimes do with them."""
    engines = {RUNTIME[one].is_built for one in runtimes}
    if len(engines) != 1:
        return Finding(kind="traced", values={"text": text})
    return Finding(kind="in_place" if True in engines else "copied", values={"operators": count})


@rule
def unsupported(scope: Scope) -> Iterator[Refusal]:
    """Find runs that their hardware cannot do, by reason, and hardware that was left out before."""
    yield from scope.refusals_by_reason


@rule
def meant(scope: Scope) -> Iterator[Finding]:
    """Find classes and short names that stand for hardware."""
    for name, hardware in scope.selection.meanings.items():
        yield Finding(kind="meant", values={"name": name, "hardware": hardware, "others": ()})
    for name, (hardware, *others) in scope.selection.abbreviations.items():
        yield Finding(kind="meant", values={"name": name, "hardware": hardware, "others": tuple(others)})


@rule
def default_mode(scope: Scope) -> Iterator[Finding]:
    """Find hardware with several named power modes that runs in the one that is its default."""
    known = {entry.id: entry for entry, mode in scope.selection.pairs if mode == DEFAULT_MODE and entry.default_names}
    for run_id, one in scope.outlines.items():
        if (entry := known.get(one.configured_hardware)) is not None:
            others = tuple(name for name in entry.power_modes if name not in entry.default_names)
            values: dict[str, Value] = {"mode": entry.default_names[0], "others": others}
            yield Finding(kind="default_mode", run_id=run_id, values=values | {"cap": Quantity(entry.caps_w[0], "W")})


@rule
def changed(scope: Scope) -> Iterator[Finding]:
    """Find numbers of hardware that the question changes."""
    for run_id, one in scope.outlines.items():
        for number in one.changes:
            yield Finding(kind="changed", run_id=run_id, values={"number": number})


@rule
def hosted(scope: Scope) -> Iterator[Finding]:
    """Find runs that include a named host, and its slot if that is assumed, because the host states no ports."""
    stated = {host.entry.id: host.entry.ports for host in scope.selection.hosts.values()}
    for run_id, one in scope.outlines.items():
        if one.host:
            host = HardwareRef.read(one.host).label
            slot = None if stated.get(host, True) or is_part(one.needs_host) else one.needs_host or None
            yield Finding(kind="hosted", run_id=run_id, values={"host": host, "slot": slot})


@rule
def own(scope: Scope) -> Iterator[Finding]:
    """Find runs on hardware of the user's own files whose assumed numbers alone make wide intervals."""
    for run_id in scope.evaluated_ids:
        one = scope.outlines[run_id]
        widths = {"energy": one.energy_own_half_width or 0.0, "latency": one.latency_own_half_width or 0.0}
        large = {name: width if width >= LEAST_OWN else None for name, width in widths.items()}
        if any(large.values()) and one.hardware in scope.spelling:
            yield Finding(kind="own", run_id=run_id, values=large, doubt=max(widths.values()))


@rule
def packaged(scope: Scope) -> Iterator[Finding]:
    """Find runs on hardware that an installed package describes."""
    for run_id, one in scope.outlines.items():
        if one.package:
            yield Finding(kind="packaged", run_id=run_id, values={"package": one.package})


@rule
def omitted(scope: Scope) -> Iterator[Finding]:
    """Find operators that runs of a device alone leave out, because only a host could compute them."""
    for run_id, rows in scope.omitted.items():
        share = math.fsum(row.mac_fraction for row in rows)
        values: dict[str, Value] = {
            "operations": tuple(row.operation for row in rows),
            "mac_fraction": share,
        }
        work = -math.log(max(1.0 - share, LEAST_LEFT))  # as if all work cost what its MACs do
        yield Finding(kind="omitted", run_id=run_id, values=values, doubt=max(UNKNOWN, work))


@rule
def limited(scope: Scope) -> Iterator[Finding]:
    """Find what a compiler leaves to a host, each operation with the limit that it exceeds."""
    for run_id, rows in scope.fallen.items():
        named = [name_excess(row) if row.is_compiled else row.operation for row in rows]
        first = rows[0]
        if operations := tuple(filter(None, named)):
            values: dict[str, Value] = {
                "compiler": first.compiler,
                "operations": operations,
                "helper": first.helper,
            }
            yield Finding(kind="limited", run_id=run_id, values=values)


def name_excess(row: Fallback) -> str:
    """Return an operation with the size that exceeds a limit of the compiler; empty without an excess."""
    if not row.limits:
        return ""
    from joulemap.physics.record.compiler import describe_excess, name_sizes, read_limits, read_window

    limits = read_limits(row.limits)
    sizes = [name_sizes(*read_window(one), rank) for one in row.arguments for rank in row.ranks]
    return next(filter(None, (describe_excess(limits, row.operation, one) for one in sizes)), "")


@rule
def narrow(scope: Scope) -> Iterator[Finding]:
    """Find fp32 runs whose products the libraries compute in a narrower precision.

    The factor of two per halved significand is a decree: what a product gains depends on the chip.
    """
    for run_id in scope.evaluated_ids:
        one = scope.outlines[run_id]
        if one.precision != FP32 or one.matmul_precision == HIGHEST:
            continue
        products = find_products(
            one.architecture,
            one.vendor,
            one.hardware_precisions,
            one.matmul_precision,
            is_engine=RUNTIME[one.runtime].is_built,
        )
        if products.convolution != FP32:
            bias = UNKNOWN if products.gemm != products.convolution else 2.0 * UNKNOWN
            yield Finding(kind="narrow", run_id=run_id, values={"precision": products.convolution}, bias=bias)
