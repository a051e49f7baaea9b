"""Answer for a number of users: hardware and precisions that meet a latency target, with their cost."""

from __future__ import annotations

import gc
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import attrs

from joulemap.ask import Checks, Facts, Finding, Refusal, RunAnswer, Scope, drop_idle_hours, list_findings
from joulemap.domain import SERVED, Settings, Table, first_of_each, make_table
from joulemap.generated.cost import AssumedNumber
from joulemap.plan import Plan, Source
from joulemap.system import UnsupportedError, UsageError, frozen
from joulemap.wing.decoder import ANSWER, describe_engine, find_alias
from joulemap.wing.llm.ask.llm import read_tables
from joulemap.wing.llm.ask.served import OTHER_INTERVALS, ServedRun, check_served
from joulemap.wing.llm.ask.target import DEAR, LIKELY, choose_row, find_facts
from joulemap.wing.llm.capacity.case import Case, describe_cache
from joulemap.wing.llm.capacity.model import ServedModel
from joulemap.wing.llm.capacity.question import Question
from joulemap.wing.llm.capacity.row import opening_passes, read_stored, serve
from joulemap.wing.llm.capacity.slow import SlowHost
from joulemap.wing.llm.capacity.users import (
    LatencyTarget,
    Paid,
    SharedServers,
    find_deployment,
    find_likelier,
    form_row,
    rank_rows,
    read_paid,
)
from joulemap.wing.llm.generated.row import ServedPhase, UserRow
from joulemap.wing.llm.setting import SERVING, Serving

COLLECTED: Final = 20
"""Searches (one per chip and precision) between two collections of garbage; more take memory and save little time."""

Subject = tuple[Scope, "dict[str, ServedPhase]", "list[Finding | Refusal]"]
"""(stored runs, hardware -> decode step that represents it, findings about these runs)."""


@frozen(kw_only=True)
class UsersAnswer(RunAnswer):
    """Deployments that serve a number of users; deployments that meet the latency target come first, by cost."""

    is_billed: ClassVar[bool] = True

    about = ("model", "engine", "serving", "target", "pay", "not_taken")

    model: str
    alias: str = ""
    """Model name as requested, if it is an alias of `model`; else empty."""
    serving: Serving
    target: LatencyTarget
    engine: str
    pay: str
    """Payment for chips: rented, bought or both."""
    stored: str
    """Note on the checkpoint, as in the title; empty if there is none."""
    rows: Table[UserRow]
    assumptions: Table[AssumedNumber]
    """Assumed numbers that cost and carbon depend on."""
    facts: Facts
    """Decision, targets, rows and caveats, from which all sentences are made."""
    wide_cache: str = ""
    """Note on 16-bit caches beside 4-bit floating-point weights; empty if there is none."""
    not_taken: tuple[str, ...] = ()
    """Reasons why hardware without a row cannot serve the model."""

    @property
    def is_met(self) -> bool:
        """True if a deployment meets the latency target."""
        return self.rows[0].is_met

    @property
    def chosen(self) -> UserRow:
        """Cheapest deployment that meets the target with at least `LIKELY` probability.

        It is the first row if no deployment is as likely, or if its cost is above `DEAR` times the first row's.
        """
        return choose_row(self.rows.rows)

    def find_checks(self) -> Checks:
        """Return the commands that measure one server of each deployment; as batches if no tool generates its load."""
        is_plain = not self.serving.reuses_prefixes
        runs = (
            ServedRun(
                row.label,
                row.hardware,
                row.precision,
                row.users_per_server,
                row.device_count,
                in_flight=row.users_per_server if is_plain else 0,
            )
            for row in self.rows
            if not row.prefill_server_count
        )
        return check_served(self.model, self.serving, runs, self.scope.spell)


def serve_users(
    source: Source,
    model: str,
    settings: Settings = SERVED,
    *,
    target: LatencyTarget,
    serving: Serving = SERVING,
) -> UsersAnswer:
    """Return which hardware meets a latency target for a number of users, in which precision, with how many devices.

    Unless a precision is given, the checkpoint is tried as published, in fp8 and with int4 weights. Raise as `llm`
    does, and UsageError for options of other loads.
    """
    if serving.has_load or serving.prefill_on:
        raise UsageError("--users cannot be combined with --rate, --in-flight, --requests or --prefill-on")
    settings = drop_idle_hours(attrs.evolve(settings, batch=(1,)))
    choices = ServedModel(name=model, settings=settings, serving=serving).list_choices(source)
    question, whole = choices[0][:2]
    plans: dict[tuple[str, str], tuple[SharedServers, Plan]] = {}
    reasons: dict[str, str] = {}
    for number, (plan, case) in enumerate(((plan, case) for _, plan, cases in choices for case in cases), 1):
        one = find_deployment(case, target)
        if isinstance(one, str):
            reasons.setdefault(case.hardware, one)
        else:  # several values of --devices may lead to the same deployment
            plans.setdefault(one.name, (one, plan))
        if number % COLLECTED == 0:
            question.workloads.release()
            gc.collect()  # passes of many deployments take gigabytes, and commands run with automatic collection off
    if not plans:
        raise UnsupportedError("; ".join(dict.fromkeys(reasons.values())))
    tables, paid, (subject, steps, findings) = _pay(source, question, whole, [*plans.values()])
    rows = {one: form_row(one, paid[one.case.hardware]) for one, _ in plans.values()}
    ranked = rank_rows([*rows.values(), *_list_likelier(rows, paid)])
    hosts = {one.case.hardware: SlowHost.of(one.case.server) for one in rows}
    facts = find_facts(subject, ranked, target, steps, findings, hosts=hosts, engine=question.stack.label)
    return UsersAnswer(
        model=question.decoder.name,
        alias=find_alias(model, question.decoder.name),
        serving=question.serving,
        target=target,
        engine=describe_engine(question.serving.engine),
        stored=question.describe_unknown(),
        wide_cache=describe_cache(one.case for one in rows),
        facts=facts,
        rows=make_table("llm users", UserRow, ranked),
        not_taken=tuple(dict.fromkeys(reason for name, reason in reasons.items() if name not in hosts)),
        **tables,
    )


def _list_likelier(rows: Mapping[SharedServers, UserRow], paid: Mapping[str, Paid]) -> list[UserRow]:
    """Return larger deployments for chips whose smallest deployment within the target is not safe.

    A safe deployment meets the target with `LIKELY` probability. Each one costs less than every other safe deployment
    of its chip, and at most `DEAR` times the lowest cost.
    """
    lowest = min((_cost(row) for row in rows.values() if row.is_met), default=math.inf)
    if lowest == math.inf:
        return []
    most: dict[str, float] = {}  # cost per chip above which a deployment is not named
    for row in rows.values():
        is_safe = row.is_met and (row.met_probability or 0.0) >= LIKELY
        most[row.hardware] = min(most.get(row.hardware, DEAR * lowest), _cost(row) if is_safe else math.inf)
    more: list[UserRow] = []
    known = {one.name for one in rows}
    for one, row in sorted(rows.items(), key=lambda pair: _cost(pair[1])):
        ratio = most[row.hardware] / _cost(row)
        if not row.is_met or row.met_probability is None or row.met_probability >= LIKELY or ratio <= 1.0:
            continue
        other = find_likelier(one, paid[row.hardware], likely=LIKELY, most_ratio=ratio)
        if other is not None and other.name not in known:
            known.add(other.name)
            more.append(form_row(other, paid[row.hardware]))
            most[row.hardware] = _cost(more[-1])
    return more


def _cost(row: UserRow) -> float:
    """Return the cost of a million tokens in USD; infinite if unknown."""
    return row.usd_per_million or math.inf


def _pay(
    source: Source,
    question: Question,
    whole: Plan,
    choices: Sequence[tuple[SharedServers, Plan]],
) -> tuple[dict[str, Any], dict[str, Paid], Subject]:
    """Return the tables of stored runs, the cost, carbon and intervals of each chip, and what its rules find.

    Cost, carbon and intervals of a chip depend on neither precision, number of devices nor batch. So the best
    deployment of a chip represents all its deployments. All chips run the same passes if their nodes have enough
    devices.
    """
    ranked = sorted(choices, key=lambda each: (not each[0].is_met, each[0].total_device_count, each[0].target_ratio))
    best = [*first_of_each(ranked, lambda each: each[0].case.hardware).values()]
    most = max(one.case.devices for one, _ in best)
    batch = min(one.users_per_server for one, _ in best)
    plans: dict[Case, Plan] = {}
    for one, plan in best:
        case = next((server.case for server in one.divisions if server.case.devices == most), one.case)
        plans[attrs.evolve(case, batch=batch)] = plan
    cases = [*plans]
    costs = {one: cost for case in cases for one, cost in serve(case.question, [case]).items()}
    with opening_passes(source, [(case.question, plan, [case]) for case, plan in plans.items()]) as (connection, ids):
        scope = Scope.of_plan(whole, connection, [*ids[0], *ids[1]])
        tables = read_tables(scope, question, cases, cases, costs, ids, whole.settings, has_winners=False)
        decoding = scope.part(ids[1])
        is_priced = any(row.usd_per_million is not None for row in tables["phases"])  # cost follows the time paid for
        findings = list_findings(decoding, metric="latency" if is_priced else "energy", but=OTHER_INTERVALS)
        scope.read()
    stored = read_stored(cases, tables)
    paid = {case.hardware: read_paid(case, stored) for case in cases}
    pay = tables["phases"][0].pay if tables["phases"].rows else ""
    steps = {cases[row.place - 1].hardware: row for row in tables["phases"] if row.phase == ANSWER.name}
    found_tables = {"scope": scope, "assumptions": tables["assumptions"], "pay": pay}
    return found_tables, paid, (decoding, steps, findings)
