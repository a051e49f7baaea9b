"""Pages of models: the profile independent of hardware, and a run by module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

import attrs

from joulemap.ask.answer import describe_evaluation
from joulemap.ask.model import ModulesAnswer, ProfileAnswer
from joulemap.ask.rule import find_assumed
from joulemap.domain.table import Table
from joulemap.show.caveat import describe_values
from joulemap.show.layout import lay, lay_facts, lay_lines
from joulemap.show.part import describe_modules, describe_ranges
from joulemap.show.present.cell import Remark, show_quantity
from joulemap.show.present.document import Document, Grid, Section, Text
from joulemap.show.present.template import Template
from joulemap.show.run import prove, title_run
from joulemap.show.shape import Part, Shape
from joulemap.show.sheet import Sheet
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

WORK: Final = "module | *output output_shape? | weights weight_count | *mac_count"
"""Columns of a module that are independent of hardware."""
SPLIT: Final = (
    "a row includes inner modules; a kernel with operators of several modules is split among them as its ledger lines "
    "are; a shared module is listed under its first parent"
)
MOST_ROWS: Final = 30
"""Maximum modules in a table without a requested depth."""


def list_models(table: Table[Any], rest: str) -> Document:
    """Return a list of models by task, each task named once, with operators apart; `rest` counts further models."""
    models, operators = dict[str, list[Sequence[str]]](), list[Sequence[str]]()
    for one in table.records():
        parameters, macs = map(_show_count, (one["parameter_count"], one["mac_count"]))
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


def _show_count(count: int | None) -> str:
    return show_quantity(float(count), "") if count else ""


def lay_modules(answer: ModulesAnswer, *_: Any, depth: int | None, **__: Any) -> Grid:
    """Return the tree of the modules of a run down to `depth`."""
    columns = f"{WORK} | *latency_s | *energy_j | *energy_fraction"
    keep = "energy_j energy_fraction latency_s mac_count output_shape"
    return draw_modules(answer.modules, depth, answer.total.model, columns, keep, pictures="energy_fraction")


def prove_modules(answer: ModulesAnswer, _: Any) -> Text:
    """Return a line that compares the sums over the modules with the run."""
    total, rows = answer.total, answer.modules
    latency = (sum(row.own_latency_fs for row in rows), total.latency_fs, "fs")
    return prove("modules", "the run", (sum(row.own_energy_fj for row in rows), total.energy_fj, "fJ"), latency)


def choose_modules(answer: ModulesAnswer, *, depth: int | None = None, **_: Any) -> dict[str, Any]:
    """Return the values of slots; `depth` is that of the tree, None for one that fits a screen."""
    total, scope = answer.total, answer.scope
    spelled = scope.spell(total.hardware)
    return {"title": title_run(total, scope), "row": total, "spelled": spelled, "depth": depth}


PAGES: Final = {
    ProfileAnswer: Sheet(
        title=title_profile,
        first=describe_profile,
        notes=list_notes,
        steps=("compare {name}",),
        row="profile",
        csv="mix",
        choices=lambda answer, **_: {"has_steps": answer.profile.is_shipped},
        limit=12,
        parts=(
            Part(
                title="By operation",
                table="mix",
                columns="operation | kind | operator_count | operator_fraction | *mac_count | *mac_fraction | "
                "elementwise_count | special_count | *moved_bytes | *moved_fraction",
                is_long=True,
                lay={"noun": "operations"},
                is_tight=True,
            ),
            Part(
                title="Figures",
                table="totals",
                make=lambda answer, _: lay_facts(
                    "quantity | value", FACTS, answer.profile, torch_version=Remark(answer.profile.torch_version)
                ),
            ),
            Part(
                title="By fusion pattern",
                table="patterns",
                columns="fusion_pattern | subgraph_count | operator_count | *mac_count | *mac_fraction | "
                "*moved_bytes | *fused_moved_bytes | *saved_fraction",
                is_long=True,
                lay={"noun": "patterns"},
                is_tight=True,
            ),
        ),
    ),
    ModulesAnswer: Shape(
        first=describe_modules,
        trust=describe_ranges,
        notes=lambda _: (SPLIT,),
        steps=("analyze {model} {spelled}",),
        csv="modules",
        choices=choose_modules,
        parts=(
            Part(table="modules", draw=lay_modules),
            Part(
                title="Sum over modules, each without inner modules",
                table="modules",
                make=prove_modules,
            ),
        ),
    ),
}
