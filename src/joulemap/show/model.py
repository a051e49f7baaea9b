"""Pages of models: the profile independent of hardware, and a run by module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Protocol, TypeVar

import attrs

from joulemap.ask.answer import Answer, describe_evaluation
from joulemap.ask.model import ModulesAnswer, ProfileAnswer
from joulemap.ask.rule import find_assumed
from joulemap.domain.column import Col
from joulemap.domain.table import Table
from joulemap.generated.model import ModulePart, OperationShare, PatternShare
from joulemap.show.caveat import describe_values
from joulemap.show.choice import MOST_WHY, describe_beyond
from joulemap.show.column import alter, lay_columns, show_table
from joulemap.show.layout import lay_facts, lay_lines
from joulemap.show.page import Asked, Page, compose, compose_runs, fill_steps
from joulemap.show.part import describe_modules, describe_ranges
from joulemap.show.present.cell import Remark, show_quantity
from joulemap.show.present.document import Document, Grid, Section, Text
from joulemap.show.present.template import Template
from joulemap.show.run import prove, title_run
from joulemap.system.errors import UsageError

LISTED: Final = "task | name | parameters | MACs | family | input shape | aliases"
KEPT: Final = "name | parameters | MACs | family | input shape"
OPERATOR: Final = "operator"
"""Task of an operator, which has a table of its own."""

OPERATORS: Final = "Operators, with arguments that you can change"
MOST_OF_TASK: Final = 5
"""Maximum models of a task on a terminal."""

PROFILE_TITLE: Final = Template("{name}[, {evaluation}], {inputs}")
PROFILE: Final = Template(
    "{macs:MAC}, {weight_bytes:B} of weights, {count:n operator}[ ({operator_count} with views and constants)]. When "
    "fused, {subgraph_count:n subgraph moves|subgraphs move} {fused_moved_bytes:B}"
    "[, {fused_arithmetic_intensity_ops_per_byte:plain} operations per byte]."
)
CLOSED_DTYPE: Final = "fp32"
"""Dtype of a workload whose specification lists no inputs: a language model or a single operator."""
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
FOLDED: Final = Template(
    "{macs:MAC} and {foldable_elementwise_count:#} other operations depend on no input, such as those of a weight "
    "norm; only the runtimes eager and graph count them, because compilers compute them in advance"
)

SPLIT: Final = (
    "a row includes inner modules; a kernel with operators of several modules is split among them as its ledger lines "
    "are; a shared module is listed under its first parent"
)
PATTERNS: Final = "By fusion pattern"
SUMS: Final = "Sum over modules, each without inner modules"
COMPARE: Final = Template("compare {name}")
ANALYZE: Final = Template("analyze {model} {spelled}")
MOST_ROWS: Final = 30
"""Maximum modules in a table without a requested depth."""


def list_models(table: Table[Any], rest: str) -> Document:
    """Return a list of models by task, each task named once, with operators apart; `rest` counts further models."""
    models, operators = dict[str, list[Sequence[str]]](), list[Sequence[str]]()
    for one in table.records():
        parameters, macs = map(show_total, (one["parameter_count"], one["mac_count"]))
        parameters = parameters.replace("G", "B")  # billions, as the names of models say
        if one["task"] == OPERATOR:
            operators.append((one["name"], macs))
            continue
        some = models.setdefault(one["task"], [])
        task = "" if some else one["task"]
        some.append((task, one["name"], parameters, macs, one["family"], one["input_shape"], one["aliases"]))
    drawn = lay_lines(LISTED, chain(*models.values()), keep=KEPT, distinguishing=("name",))
    sections = [Section("", drawn), Section(OPERATORS, lay_lines("name | MACs", operators))]
    sections += [Section("", Text(rest))] if rest else []
    return Document(title="", sections=tuple(sections), data=table.records(), table=table)


def title_profile(answer: ProfileAnswer) -> str:
    """Return the name of a model, what evaluates it, and its inputs."""
    evaluation, _ = describe_evaluation((answer.profile.name,), ())
    inputs = _describe_inputs(answer.profile.input_spec, answer.precision)
    return PROFILE_TITLE(answer.profile, evaluation=evaluation[1] if evaluation else "", inputs=inputs)


def _describe_inputs(spec: str, precision: str) -> str:
    """Return a workload's input specification in words: `1x3x224x224:fp32, batch 1`.

    The precision of a file follows. Without one, a specification without inputs gets the dtype of such workloads.
    """
    words = spec.replace("example_inputs", "its example inputs").replace(" batch=", ", batch ")
    dtype = precision or (CLOSED_DTYPE if words.startswith("batch=") else "")
    return ", ".join(filter(None, (words.replace("batch=", "batch "), dtype)))


def describe_profile(answer: ProfileAnswer) -> str:
    """Return MACs, weights, operators and moved bytes in a line."""
    one, count = answer.profile, sum(row.operator_count for row in answer.mix)
    others = one.operator_count if one.operator_count != count else None
    return PROFILE(one, macs=float(one.mac_count), count=count, operator_count=others)


def list_notes(answer: ProfileAnswer) -> Iterator[str]:
    """Yield notes on work that depends on no input, and on the assumptions of the trace."""
    one = answer.profile
    if one.foldable_mac_count + one.foldable_elementwise_count:
        yield FOLDED(one, macs=float(one.foldable_mac_count))
    yield from (describe_values(one.kind, one.values) for row in answer.caveats for one in find_assumed(row))


class ModuleRow(Protocol):
    """Row of a module in a tree."""

    @property
    def module(self) -> str:
        """Path of the module."""

    @property
    def depth(self) -> int:
        """Number of enclosing modules."""


AnyModule = TypeVar("AnyModule", bound=ModuleRow)


def lay_tree(
    answer: Answer,
    table: Table[AnyModule],
    columns: Iterable[Col[AnyModule] | None],
    keep: Sequence[Col[AnyModule]],
    depth: int | None,
) -> Grid:
    """Return a tree of the modules down to `depth`, with a count of deeper modules.

    None chooses a depth that fits a screen. Raises UsageError for a depth below 0.
    """
    if depth is not None and depth < 0:
        raise UsageError(f"depth is {depth}, expected a whole number from 0")
    deepest = max(row.depth for row in table)
    if depth is None:
        fitting = (at for at in range(deepest, 0, -1) if sum(row.depth <= at for row in table) <= MOST_ROWS)
        depth = next(fitting, 1)
    shown = table.with_rows(row for row in table if row.depth <= depth)
    drawn = lay_columns(answer, shown, columns, keep=keep)
    total, count = len(table.rows), len(shown.rows)
    return attrs.evolve(drawn, is_tree=True, distinguishing=()).out_of(total, count, "modules", f"--depth {deepest}")


def name_module(model: str) -> Callable[[ModuleRow], str]:
    """Return a function that names a module as a branch of a tree; the root is the model."""
    return lambda row: f"{'  ' * row.depth}{row.module.rpartition('.')[2]}" if row.module else model


def show_total(count: int | None) -> str:
    """Return a number of weights or MACs for a table cell; empty for none."""
    return show_quantity(float(count), "") if count else ""


def lay_modules(answer: ModulesAnswer, depth: int | None) -> Grid:
    """Return the tree of the modules of a run down to `depth`."""
    of = ModulePart
    columns = alter(
        of.table,
        of.module.by(name_module(answer.total.model)),
        of.weight_count.headed("weights").by(lambda row: show_total(row.weight_count)),
        of.mac_count.by(lambda row: show_total(row.mac_count)).kept,
        of.energy_fraction.drawn.kept,
    )
    keep = (of.energy_j, of.energy_fraction, of.latency_s, of.mac_count, of.output_shape)
    return lay_tree(answer, answer.modules, columns, keep, depth)


def prove_modules(answer: ModulesAnswer) -> Text:
    """Return a line that compares the sums over the modules with the run."""
    total, rows = answer.total, answer.modules
    latency = (sum(row.own_latency_fs for row in rows), total.latency_fs, "fs")
    return prove("modules", "the run", (sum(row.own_energy_fj for row in rows), total.energy_fj, "fJ"), latency)


def draw_profile(answer: ProfileAnswer, asked: Asked) -> Document:
    """Return the document of a model's profile."""
    most, profile = asked.most(12), answer.profile
    figures = lay_facts("quantity | value", FACTS, profile, torch_version=Remark(profile.torch_version))
    patterns = show_table(answer, PATTERNS, answer.patterns, PatternShare.table, limit=most, noun="patterns")
    return compose(
        answer,
        show_table(answer, "By operation", answer.mix, OperationShare.table, limit=most, noun="operations"),
        answer.mix,
        title=title_profile(answer),
        headline=describe_profile(answer),
        details=[Section("Figures", figures), *patterns],
        notes=list_notes(answer),
        steps=fill_steps([COMPARE] if profile.is_shipped else [], profile, asked.repeated),
    )


def draw_modules(answer: ModulesAnswer, asked: Asked) -> Document:
    """Return the document of a run by module, as a tree down to `depth`."""
    total, scope = answer.total, answer.scope
    return compose_runs(
        answer,
        answer.facts,
        [Section("", lay_modules(answer, asked.depth))],
        answer.modules,
        title=title_run(total, scope),
        headline=describe_modules(answer.facts),
        reasons=describe_beyond(answer.facts)[:MOST_WHY],
        trust=describe_ranges(answer.facts),
        details=[Section(SUMS, prove_modules(answer))],
        notes=[SPLIT],
        steps=fill_steps([ANALYZE], total, asked.repeated, spelled=scope.spell(total.hardware)),
    )


PAGES: Final = {
    ProfileAnswer: Page[ProfileAnswer](draw=draw_profile),
    ModulesAnswer: Page[ModulesAnswer](draw=draw_modules),
}
