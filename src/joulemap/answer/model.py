"""Describe a model independent of hardware, and break down a run by module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import Answer, RunAnswer
from joulemap.ask.answer import fetch_tables
from joulemap.ask.engine import describe_evaluation
from joulemap.ask.fact import Facts
from joulemap.ask.part import find_modules
from joulemap.ask.rule import find_assumed
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table
from joulemap.generated.analyze import RunTotal
from joulemap.generated.model import ListedOperator, ModelCaveat, ModelProfile, ModulePart, OperationShare, PatternShare
from joulemap.physics.record.weight import label_precision
from joulemap.plan.model_name import find_precisions
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.plan.workload import find_model, opening_workload
from joulemap.show.caveat import describe_values
from joulemap.show.layout import lay, lay_facts
from joulemap.show.part import describe_modules, describe_ranges
from joulemap.show.present.cell import Remark, show_quantity
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.template import Template
from joulemap.show.run import prove, title_run
from joulemap.store.connection import Connection
from joulemap.store.query import fetch
from joulemap.store.workload import read_workload
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.record.workload import Workload


# profile

PROFILE_TITLE: Final = Template("{name}[, {evaluation}], {inputs}")
"""First words of a trace's assumption that lists the input sizes of one sample."""
PROFILE: Final = Template(
    "{macs:MAC}, {weight_bytes:B} of weights, {count:n operator}[ ({operator_count} with views and constants)]. When "
    "fused, {subgraph_count:n subgraph moves|subgraphs move} {fused_moved_bytes:B}"
    "[, {fused_arithmetic_intensity_ops_per_byte:plain} operations per byte]."
)
CLOSED_DTYPE: Final = "fp32"
"""Dtype of a workload whose specification lists no inputs: a language model or a single operator."""
BY_OPERATION: Final = "By operation"
OPERATIONS: Final = (
    "operation | kind | operators operator_count | operator share operator_fraction | *MACs mac_count | "
    "*MAC share mac_fraction | elementwise elementwise_count | special functions special_count | *moved moved_bytes | "
    "*moved share moved_fraction"
)
FIGURES: Final = "Figures"
FACTS: Final = (
    "batch size | {batch}",
    "parameters | {parameter_count:#}",
    "MACs | {mac_count:#}",
    "skipped MACs | {skipped_mac_count:#}",
    "FLOPs | {flop_count:#}",
    "elementwise operations | {elementwise_count:#}",
    "special functions | {special_count:#}",
    "MACs independent of inputs | {foldable_mac_count:#}",
    "elementwise operations independent of inputs | {foldable_elementwise_count:#}",
    "operators, with views and constants | {operator_count:#}",
    "subgraphs | {subgraph_count:#}",
    "uncounted operators | {uncounted_count:#}",
    "weights | {weight_bytes:B}",
    "weights read | {weight_read_bytes:B}",
    "bytes moved unfused | {moved_bytes:B}",
    "bytes moved fused | {fused_moved_bytes:B}",
    "peak activations unfused | {peak_activation_bytes:B}",
    "peak activations fused | {fused_peak_activation_bytes:B}",
    "operations per byte unfused |[{arithmetic_intensity_ops_per_byte:1}]",
    "operations per byte fused |[{fused_arithmetic_intensity_ops_per_byte:1}]",
    "assumptions of the trace | {assumption_count}",
    "torch | {torch_version}",
    "torchvision | {torchvision_version}",
    "tracer | {tracer_version}",
)
BY_PATTERN: Final = "By fusion pattern"
PATTERNS: Final = (
    "fusion pattern fusion_pattern | subgraphs subgraph_count | operators operator_count | *MACs mac_count | "
    "*MAC share mac_fraction | *bytes moved unfused moved_bytes | *bytes moved fused fused_moved_bytes | "
    "*saved share saved_fraction"
)
FOLDED: Final = Template(
    "{macs:MAC} and {foldable_elementwise_count:#} other operations depend on no input, such as those of a weight "
    "norm; only the runtimes eager and graph count them, because compilers compute them in advance"
)
COMPARE: Final = Template("joulemap compare {name}")

# modules

WORK: Final = "module | *output output_shape? | weights weight_count | *MACs mac_count"
"""Columns of a module that are independent of hardware."""
MODULES: Final = f"{WORK} | *latency latency_s | *energy energy_j | *energy share energy_fraction"
KEPT: Final = "energy | energy share | latency | MACs | output"
OWN: Final = "Sum over modules, each without inner modules"
SPLIT: Final = (
    "a row includes inner modules; a kernel with operators of several modules is split among them as its ledger lines "
    "are; a shared module is listed under its first parent"
)
ANALYZE: Final = Template("analyze {model} {spelled}")

MOST_ROWS: Final = 30
"""Maximum modules in a table without a requested depth."""


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

    def document(self, *, limit: int = 12) -> Document:
        """Return the document with `limit` operations and patterns; csv contains the operations."""
        one = self.profile
        evaluation, _ = describe_evaluation((one.name,), ())
        count = sum(row.operator_count for row in self.mix)
        is_foldable = one.foldable_mac_count + one.foldable_elementwise_count > 0
        operations = self._lay(self.mix, OPERATIONS, limit=limit, noun="operations")
        patterns = self._lay(self.patterns, PATTERNS, limit=limit, noun="patterns")
        return Document(
            title=PROFILE_TITLE(
                one,
                evaluation=evaluation[1] if evaluation else "",
                inputs=_describe_inputs(one.input_spec, self.precision),
            ),
            answer=PROFILE(
                one,
                macs=float(one.mac_count),
                count=count,
                operator_count=one.operator_count if one.operator_count != count else None,
            ),
            sections=(Section(BY_OPERATION, operations, is_tight=True),),
            details=(
                Section(FIGURES, lay_facts("quantity | value", FACTS, one, torch_version=Remark(one.torch_version))),
                Section(BY_PATTERN, patterns, is_tight=True),
            ),
            notes=(
                *((FOLDED(one, macs=float(one.foldable_mac_count)),) if is_foldable else ()),
                *(describe_values(one.kind, one.values) for row in self.caveats for one in find_assumed(row)),
            ),
            steps=(COMPARE(one),) if one.is_shipped else (),
            data=self.data(),
            table=self.mix,
            tables=self.tables,
        )


def _describe_inputs(spec: str, precision: str) -> str:
    """Return a workload's input specification in words: `1x3x224x224:fp32, batch 1`.

    The precision of a file follows. Without one, a specification without inputs gets the dtype of such workloads.
    """
    words = spec.replace("example_inputs", "its example inputs").replace(" batch=", ", batch ")
    dtype = precision or (CLOSED_DTYPE if words.startswith("batch=") else "")
    return ", ".join(filter(None, (words.replace("batch=", "batch "), dtype)))


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

    def document(self, *, depth: int | None = None, repeated: Sequence[str] = ()) -> Document:
        """Return the document with modules down to `depth`; None chooses a depth that fits a screen.

        Machine formats contain all modules.
        """
        total = self.total
        latency = (sum(row.own_latency_fs for row in self.modules), total.latency_fs, "fs")
        energy = (sum(row.own_energy_fj for row in self.modules), total.energy_fj, "fJ")
        drawn = draw_modules(self.modules, depth, total.model, MODULES, KEPT, pictures="energy share")
        return self._compose_facts(
            self.facts,
            (Section("", drawn),),
            self.modules,
            title=title_run(total, self.scope),
            answer=describe_modules(self.facts),
            trust=describe_ranges(self.facts),
            details=(Section(OWN, prove("modules", "the run", energy, latency)),),
            notes=(SPLIT,),
            steps=self._fill_steps((ANALYZE,), total, repeated, spelled=self.scope.spell(total.hardware)),
        )


def draw_modules(table: Table[Any], depth: int | None, model: str, columns: str, keep: str, /, **cells: Any) -> Grid:
    """Return a tree of the modules down to `depth`, with a count of deeper modules.

    `table` has columns `module` and `depth`; None chooses a depth that fits a screen. Raises UsageError for a depth
    below 0.
    """
    if depth is not None and depth < 0:
        raise UsageError(f"depth is {depth}, expected a whole number from 0")
    deepest = max(row.depth for row in table)
    if depth is None:
        fitting = (at for at in range(deepest, 0, -1) if sum(row.depth <= at for row in table) <= MOST_ROWS)
        depth = next(fitting, 1)
    shown = table.with_rows(row for row in table if row.depth <= depth)
    drawn = lay(
        shown,
        columns,
        keep=keep,
        module=lambda row: f"{'  ' * row.depth}{row.module.rpartition('.')[2]}" if row.module else model,
        weight_count=lambda row: _show_count(row.weight_count),
        mac_count=lambda row: _show_count(row.mac_count),
        **cells,
    )
    total, count = len(table.rows), len(shown.rows)
    return attrs.evolve(drawn, is_tree=True, distinguishing=()).out_of(total, count, "modules", f"--depth {deepest}")


def _show_count(count: int) -> str:
    return show_quantity(float(count), "") if count else ""


def modules(source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS) -> ModulesAnswer:
    """Return the energy and time of each module on one chip, including nested modules; raises like `analyze`."""
    settings.check_single("a table of modules")
    plan = plan_selected((model,), settings, select_one(hardware, settings))
    with opening_scope(source, plan) as scope:
        scope.check_evaluated()
        tables = fetch_tables(scope.connection, ModulesAnswer, run_id=scope.run_ids[0])
        facts = find_modules(scope, tables["totals"][0], tables["modules"])
        return ModulesAnswer(scope=scope, **tables, facts=facts)
