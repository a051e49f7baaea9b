"""Words and tables of fusion: what it saves or costs, the pattern that saves most, and why subgraphs change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from joulemap.ask.fact import Change, Facts, Quantity, Term, Value
from joulemap.ask.fusion import FusionAnswer
from joulemap.domain.settings import FusionDivision
from joulemap.domain.table import Table, group
from joulemap.generated.fusion import FusionOperator, FusionPattern, FusionSubgraph, FusionTotal
from joulemap.physics.record.runtime import RUNTIME, USUAL_RUNTIME
from joulemap.show.choice import MOST_WHY
from joulemap.show.column import alter, show_table
from joulemap.show.diff import NOUNS
from joulemap.show.layout import lay_facts
from joulemap.show.page import Asked, Page, compose_runs, fill_steps, first_and_rest
from joulemap.show.part import describe_ranges
from joulemap.show.present.cell import show_quantity, show_signed
from joulemap.show.present.document import Document, Grid, Section
from joulemap.show.present.picture import Picture, PictureKind
from joulemap.show.present.template import Template
from joulemap.show.run import title_run
from joulemap.show.run_name import name_run

REST: Final = Template("saving {energy:J}")
SAVED_SHARE: Final = "saved share"
FACTS: Final = (
    "kernels | {kernel_count} | {separate_kernel_count} | {saved_kernels} | {saved_kernel_fraction:%}",
    "energy | {energy_j:J} | {separate_energy_j:J} | {saved_energy_j:J} | {saved_energy_fraction:%}",
    "latency | {latency_s:s} | {separate_latency_s:s} | {saved_latency_s:s} | {saved_latency_fraction:%}",
    "energy x delay | {edp_js:Js} | {separate_edp_js:Js} | {saved_edp_js:Js} | {saved_edp_fraction:%}",
    "off chip | {dram_bytes:B} | {separate_dram_bytes:B} | {saved_dram_bytes:B} | {saved_dram_fraction:%}",
    "moved by kernels | {moved_bytes:B} | {separate_moved_bytes:B} | {saved_moved_bytes:B} | {saved_moved_fraction:%}",
    "moved by passes | {pass_bytes:B} | {separate_pass_bytes:B} | {saved_pass_bytes:B}",
)
DRAWN: Final = ("energy", "latency", "edp", "dram", "moved")
"""Quantities of the lines after the first whose saved shares are drawn."""

RUNTIMES: Final = Template("{fused} against {separate}")
PASSES: Final = Template(
    "extra passes ({passed_count} of {subgraph_count} fused kernels): operators after a library's GEMM run in a "
    "separate pass, which reads and writes the result again"
)
UNCHANGED: Final = "off-chip traffic is unchanged: separate kernels, too, keep on chip the bytes that fusion saves"
FOLDED: Final = Template(
    "{folded_count:n operator} independent of the input: a compiler computes them once, so only the unfused run "
    "contains them"
)
DEEPER: Final[Mapping[FusionDivision, FusionDivision]] = {
    "run": "pattern", "pattern": "subgraph", "subgraph": "operator", "operator": "pattern",
}  # fmt: skip

STEPS: Final = (
    Template("fusion {model} {hardware} --level {deeper}"),
    Template("analyze {model} {hardware} --level subgraph"),
    Template("query run fusion.pattern -p run_a={separate_run_id} -p run_b={run_id}"),
)
WHOLE_TABLE: Final = "Fused and separate"

Part = TypeVar("Part", FusionPattern, FusionSubgraph, FusionOperator)

LEAST_SHARE: Final = 5e-4
"""Share that rounds to 0.0 %, which no sentence states."""

WHOLE: Final = "fusion"
"""Cause of the changes of whole runs."""

SAVES: Final = Template("Fuse on {name}: it saves {gains:and}[, but costs {costs:and}]; {kernels}")
COSTS: Final = Template("Do not fuse on {name}: it costs {costs:and}; {kernels}")
NEITHER: Final = Template("Fusion saves under 0.1 % of energy and time on {name}: {kernels}")
SHARE: Final = Template("{share:%} of the {noun}")
KERNELS: Final = Template("{after} kernels replace {before} separate ones")
NOT_FUSED: Final = Template("Nothing is fused on {name}: {subgraphs} is one kernel in every runtime")
EACH_OF: Final = Template("each of the {count} subgraphs")

LARGEST: Final = Template("{name} saves most: {amounts:and}")
COSTS_IN: Final = Template("{count:n fused subgraph} {takes} {change}[, most in {worst}]: {cause}")
COSTS_IN_ONE: Final = Template("the fused kernel of {worst} takes {change}: {cause}")
UNFUSED: Final = Template("{count:n unfused subgraph} {takes} {change}: {cause}")
TAKES, TAKE = "takes", "take"
SAME_SIGN: Final = Template("{amounts:and} {direction}")
MIXED: Final = Template("{first} more, {second} less")
BYTES: Final = Template("[{inside:%} of moved bytes stay inside kernels; ]off-chip traffic {change}")
FEWER_BYTES: Final = Template("falls by {amount}[ ({share:%})]")
MORE_BYTES: Final = Template("rises by {amount}[ ({share:%})]")

CAUSES: Final[Mapping[str, Template]] = {
    "passed": Template("passes after GEMMs"),
    "merged": Template("the bias is merged"),
    "streamed": Template("more bytes move off chip"),
    "cached": Template("weights find room on chip"),
    "busier": Template("one kernel keeps its units busy longer than several"),
    "compiled": Template("a compiler's kernel"),
    "launched": Template("in eager the host launches every kernel"),
    "capped": Template("the power cap leaves {clock:%} of the clock, {separate_clock:%} without fusion"),
}
"""Cause of the change of a group of subgraphs -> its words."""


def describe_saving(facts: Facts) -> str:
    """Return the first line: the share of energy and time that fusion saves or costs, or that nothing is fused."""
    changes = {one.metric: one for one in facts.of(Change) if one.cause == WHOLE}
    kernels = changes["kernels"]
    name = name_run(facts.runs[kernels.runs[1]])
    if not kernels.values["fused_subgraphs"]:
        count = kernels.values["subgraphs"]
        return NOT_FUSED(name=name, subgraphs="the only subgraph" if count == 1 else EACH_OF(count=count)) + "."
    saved = {NOUNS[metric]: _find_share(changes[metric]) for metric in facts.asked}
    gains = [SHARE(share=share, noun=noun) for noun, share in saved.items() if share >= LEAST_SHARE]
    costs = [SHARE(share=-share, noun=noun) for noun, share in saved.items() if share <= -LEAST_SHARE]
    template = SAVES if gains else COSTS if costs else NEITHER
    counts = {"before": f"{kernels.before.value:.0f}", "after": f"{kernels.after.value:.0f}"}
    return template(gains=gains, costs=costs, name=name, kernels=KERNELS(**counts)) + "."


def _find_share(change: Change) -> float:
    """Return the share of the separate value that the fused run saves; negative if it costs more."""
    return 1.0 - change.after.value / change.before.value if change.before.value else 0.0


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on why: where fusion costs, the pattern that saves most, subgraphs that change without fusion, and
    bytes.
    """
    changes = {one.metric: one for one in facts.of(Change) if one.cause == WHOLE}
    is_fused = bool(changes["kernels"].values["fused_subgraphs"])
    unfused = _list_groups(facts, "unfused")
    if not is_fused:
        return unfused[:MOST_WHY]
    lines = _list_groups(facts, "fused")[:1]
    lines += _describe_largest(facts.of(Term)) if _find_share(changes["edp"]) > 0.0 else []
    return [*lines, *unfused[:1], *_describe_bytes(changes["moved_bytes"], changes["dram_bytes"])][:MOST_WHY]


def _describe_largest(terms: Iterable[Term]) -> list[str]:
    """Return a line on the pattern that saves most energy x delay, if there are several."""
    patterns = group(terms, lambda one: one.name)
    name, own = next(iter(patterns.items()))
    saved = [one for one in own if one.difference.value < 0.0]
    if len(patterns) < 2 or not saved:
        return []
    amounts = [show_quantity(-one.difference.value, one.difference.unit) for one in saved]
    return [LARGEST(name=name, amounts=amounts)]


def _list_groups(facts: Facts, part: str) -> list[str]:
    """Return a line per cause of the changes of fused or of unfused subgraphs, in the order of the facts."""
    own = (one for one in facts.of(Change) if one.values.get("part") == part)
    return [_describe_group(part, alike) for alike in group(own, lambda one: one.cause).values()]


def _describe_group(part: str, changes: list[Change]) -> str:
    first = changes[0]
    values, count = first.values, first.values["subgraphs"]
    given = {
        "count": count,
        "change": _describe_change([one.values["saved"] for one in changes]),
        "cause": CAUSES[first.cause](**values),
    }
    if part == "fused" and count == 1:
        return COSTS_IN_ONE(worst=values["worst"], **given)
    takes = TAKES if count == 1 else TAKE
    return UNFUSED(takes=takes, **given) if part == "unfused" else COSTS_IN(takes=takes, worst=values["worst"], **given)


def _describe_change(every: Iterable[Value]) -> str:
    """Return how much less or more the fused run spends."""
    saved = [one for one in every if isinstance(one, Quantity) and one.value]
    less, more = ([one for one in saved if (one.value > 0.0) == is_less] for is_less in (True, False))
    amounts = [[show_quantity(abs(one.value), one.unit) for one in group] for group in (less, more)]
    if less and more:
        return MIXED(first=amounts[1][0], second=amounts[0][0])
    return SAME_SIGN(amounts=amounts[0] or amounts[1], direction="less" if less else "more")


def _describe_bytes(moved: Change, traffic: Change) -> list[str]:
    """Return a line on the bytes that stay inside kernels, and on the change of off-chip traffic; empty if both are
    small.
    """
    saved, share, inside = traffic.before.value - traffic.after.value, abs(_find_share(traffic)), _find_share(moved)
    if inside < LEAST_SHARE and share < LEAST_SHARE:
        return []
    given = {"amount": show_quantity(abs(saved), "B"), "share": share if share >= LEAST_SHARE else None}
    change = "is the same" if not saved else (FEWER_BYTES if saved > 0.0 else MORE_BYTES)(**given)
    return [BYTES(inside=inside if inside >= LEAST_SHARE else None, change=change)]


def list_notes(total: FusionTotal) -> list[str]:
    """Return notes on bytes, and on folded operators."""
    return [
        *((PASSES(total),) if total.pass_bytes else ()),
        *((UNCHANGED,) if total.fused_subgraph_count and not total.saved_dram_bytes else ()),
        *((FOLDED(total),) if total.folded_count else ()),
    ]


def lay_run(answer: FusionAnswer) -> Grid:
    """Return each quantity of the fused and of the separate run, with a picture of the saved shares."""
    total = answer.total
    saved = 1.0 - total.kernel_count / total.separate_kernel_count
    drawn = lay_facts(
        f"quantity | fused | separate | saved | {SAVED_SHARE}",
        FACTS,
        total,
        saved_kernels=total.separate_kernel_count - total.kernel_count,
        saved_kernel_fraction=saved,
        saved_pass_bytes=total.separate_pass_bytes - total.pass_bytes,
    )
    shares = [saved, *(getattr(total, f"saved_{name}_fraction") for name in DRAWN)]
    marks = tuple(() if share is None else (share,) for share in shares)
    kind: PictureKind = "difference" if any(min(one, default=0.0) < 0.0 for one in marks) else "share"
    return attrs.evolve(drawn, pictures=(Picture(kind=kind, is_gain=True, after=SAVED_SHARE, rows=(*marks, ())),))


def show_savings(
    answer: FusionAnswer, by: FusionDivision, row: type[Part], table: Table[Part], most: int
) -> list[Section]:
    """Return the section of the savings of parts, with the sum of those that are not shown."""
    rest = REST(energy=sum(one.saved_energy_j for one in table.rows[most:]))
    passes = row.pass_bytes.by(lambda one: show_signed(one.pass_bytes - one.separate_pass_bytes, "B"))
    sections = show_table(
        answer,
        "",
        table,
        alter(row.table, passes.kept),
        keep=(row.saved_latency_s, row.saved_energy_fraction, row.saved_latency_fraction, row.saved_edp_fraction),
        noun=f"{by}s",
        limit=most,
        change=lambda drawn: attrs.evolve(drawn, in_all=rest),
    )
    return [attrs.evolve(one, is_tight=True) for one in sections]


def draw_fusion(answer: FusionAnswer, asked: Asked) -> Document:
    """Return the document of a run against the one with one kernel per operator."""
    total, most = answer.total, asked.most(6)
    by: FusionDivision = asked.by if asked.by in ("run", "subgraph", "operator") else "pattern"
    table: Table[Any] = answer.totals
    saved: list[Section] = []
    if by == "pattern":
        table, saved = answer.patterns, show_savings(answer, by, FusionPattern, answer.patterns, most)
    elif by == "subgraph":
        table, saved = answer.subgraphs, show_savings(answer, by, FusionSubgraph, answer.subgraphs, most)
    elif by == "operator":
        table, saved = answer.operators, show_savings(answer, by, FusionOperator, answer.operators, most)
    first, rest = first_and_rest([saved, [Section("" if by == "run" else WHOLE_TABLE, lay_run(answer))]])
    merged = total.runtime if RUNTIME[total.runtime].merges else USUAL_RUNTIME
    return compose_runs(
        answer,
        answer.facts,
        first,
        table,
        title=title_run(total, answer.scope, RUNTIMES(fused=merged, separate=total.separate_runtime)),
        headline=describe_saving(answer.facts),
        reasons=list_reasons(answer.facts)[:MOST_WHY],
        trust=describe_ranges(answer.facts),
        details=rest,
        notes=list_notes(total),
        steps=fill_steps(STEPS, total, asked.repeated, hardware=answer.scope.spell(total.hardware), deeper=DEEPER[by]),
    )


PAGES: Final = {FusionAnswer: Page[FusionAnswer](draw=draw_fusion)}
