"""Describe a model independent of hardware, and break down a run by module."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import attrs

from joulemap.ask.answer import Answer, RunAnswer, fetch_tables
from joulemap.ask.fact import Facts
from joulemap.ask.part import find_modules
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.analyze import RunTotal
from joulemap.generated.model import ListedOperator, ModelCaveat, ModelProfile, ModulePart, OperationShare, PatternShare
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.weight import label_precision
from joulemap.physics.record.workload import Workload
from joulemap.plan.model_name import find_precisions
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.plan.workload import find_model, opening_workload
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.store.workload import read_workload
from joulemap.system.record import frozen


@frozen(kw_only=True)
class ProfileAnswer(Answer):
    """Profile of a model: totals, operations and fusion patterns."""

    totals: Table[ModelProfile]
    """Totals of the model; one row."""
    mix: Table[OperationShare]
    """MACs of each operation, most MACs first."""
    patterns: Table[PatternShare]
    """MACs of each fusion pattern, most MACs first."""
    caveats: Table[ModelCaveat]
    precision: str = ""
    """Precisions of a file's activations and weights, at which bytes are counted; empty for the traced dtypes."""

    @property
    def profile(self) -> ModelProfile:
        """Totals of the model."""
        return self.totals[0]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats: the model's own figures, and every row."""
        rows = super().data()
        own = {"precision": self.precision} if self.precision else {}
        return {**rows.pop("total"), **own, **rows}


def profile(source: Source, model: str, settings: Settings = SETTINGS) -> ProfileAnswer:
    """Profile a model independent of hardware: counts, bytes, mix and patterns; raises like `compare`.

    Bytes of a file are those at its own precisions.
    """
    with _opening_workload(source, model, settings, "model show") as (workload_id, connection):
        tables: dict[str, Any] = fetch_tables(connection, ProfileAnswer, workload_id=workload_id)
        answer = ProfileAnswer(**tables)
        own = find_precisions(model)
        if own is None:
            return answer
        from joulemap.ask.width import scale_rows

        precision, weights = own[0][0], next(iter(own[1]), "")
        work = read_workload(connection, workload_id)
        rows = scale_rows(answer.totals, answer.mix, answer.patterns, work, precision, weights)
        return attrs.evolve(answer, precision=label_precision(precision, weights or precision), **rows)


def workload(source: Source, model: str, settings: Settings = SETTINGS) -> Workload:
    """Return the traced and fused model as records; trace it if it is not stored. Raises like `compare`."""
    with _opening_workload(source, model, settings, "workload") as (workload_id, connection):
        return read_workload(connection, workload_id)


def operators(source: Source, model: str, settings: Settings = SETTINGS) -> Table[ListedOperator]:
    """Return the model's operators in execution order; trace it if it is not stored. Raises like `compare`."""
    with _opening_workload(source, model, settings, "model trace") as (workload_id, connection):
        return fetch(connection, ListedOperator, workload_id=workload_id)


def _opening_workload(
    source: Source, model: str, settings: Settings, question: str
) -> AbstractContextManager[tuple[int, Connection]]:
    settings.check_single(question)
    return opening_workload(source, find_model(model, settings, settings.batch[0] if settings.batch else None))


@frozen(kw_only=True)
class ModulesAnswer(RunAnswer):
    """One run by module. The amounts of each module without nested modules sum to the run exactly."""

    totals: Table[RunTotal]
    """Totals of the run; one row."""
    modules: Table[ModulePart]
    """Energy and time of each module in tree order: a module precedes the modules inside it."""
    facts: Facts
    """Values of the run, largest modules and caveats, from which all sentences are made."""

    @property
    def total(self) -> RunTotal:
        """Totals of the whole run."""
        return self.totals[0]


def modules(source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS) -> ModulesAnswer:
    """Return the energy and time of each module on one chip, including nested modules; raises like `analyze`."""
    settings.check_single("a table of modules")
    plan = plan_selected((model,), settings, select_one(hardware, settings))
    with opening_scope(source, plan) as scope:
        scope.check_evaluated()
        tables = fetch_tables(scope.connection, ModulesAnswer, run_id=scope.run_ids[0])
        facts = find_modules(scope, tables["totals"][0], tables["modules"])
        return ModulesAnswer(scope=scope, **tables, facts=facts)
