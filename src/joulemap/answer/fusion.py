"""Compare a fused run with its operators as separate kernels, by pattern, subgraph and operator."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import RunAnswer, fetch_tables
from joulemap.answer.layout import lay_facts
from joulemap.answer.run import prove, title_run
from joulemap.answer.scope import SHOWN_FRACTION, find_scope
from joulemap.domain.configuration import MERGING
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import FusionDivision, Settings
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.present.cell import show_quantity, show_share, show_signed
from joulemap.present.document import Document, Grid, Section, Text
from joulemap.present.template import Template
from joulemap.row.fusion import FusionOperator, FusionPattern, FusionSubgraph, FusionTotal
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

RUNTIMES: Final = Template("{fused} against {separate}")

SAVES: Final = Template(
    "Fusion saves {gains:and} on {name}[, but costs {costs:and}]: {kernel_count} kernels instead of "
    "{separate_kernel_count}."
)
COSTS: Final = Template(
    "Fusion costs {costs:and} on {name}: {kernel_count} kernels instead of {separate_kernel_count}."
)
SHARE: Final = Template("{share:%} of the {quantity}")
NOT_FUSED: Final = Template(
    "Nothing is fused: {subgraphs} is one operator or call, and so one kernel in every runtime."
)
EACH_OF: Final = Template("each of the {subgraph_count} subgraphs")
ONLY: Final = "the only subgraph"

PARTS_TABLE: Final = Template("By {by}, most energy x delay saved first")
COLUMNS: Final[Mapping[FusionDivision, str]] = {
    "pattern": "pattern fusion_pattern | subgraphs subgraph_count",
    "subgraph": "subgraph name | kernel operations",
    "operator": "operator name | operation | pattern fusion_pattern",
}
AMOUNTS: Final = (
    " | kernels kernel_count | energy saved saved_energy_j | share of separate energy saved_energy_fraction | "
    "time saved saved_latency_s | share of separate time saved_latency_fraction | EDP saved saved_edp_share_js | "
    "share of separate EDP saved_edp_fraction | off-chip bytes saved saved_dram_bytes | "
    "bytes moved saved saved_moved_bytes | extra passes pass_bytes | energy energy_j | "
    "separate energy separate_energy_j | time latency_s | separate time separate_latency_s"
)
KERNELS: Final = Template("{separate_kernel_count} → {kernel_count}")
KEEP: Final = (
    "energy saved | time saved | share of separate EDP | operation | kernel | share of separate energy | "
    "share of separate time | kernels | extra passes"
)
REST: Final = Template("saving {energy:J}")

COSTS_IN: Final = Template(
    "in {count:n subgraph}[ ({only})], the fused kernels take {change}[ {total}][, most in {worst}], because {reason}"
)
UNFUSED: Final = Template("{count:n unfused subgraph} {takes} {change}[ {total}], because {reason}")
TAKES, TAKE = "takes", "take"
IN_TOTAL: Final = "in total"
SAME_SIGN: Final = Template("{amounts:and} {direction}")
MIXED: Final = Template("{first} (but {second})")
LARGEST: Final = Template(
    "{fusion_pattern} saves most: {saved_energy_j:J} and {saved_latency_s:s} in {subgraph_count:n subgraph}, "
    "{saved_edp_fraction:%} of the separate operators' energy x delay[, because {reason}]"
)
BYTES: Final = Template(
    "[{inside} of the bytes that operators read and write stay inside kernels; ]"
    "[off-chip traffic falls by {less:B} ({saved_dram_fraction:%})][off-chip traffic rises by {more:B}][{same}]"
)
SAME_BYTES: Final = "off-chip traffic is unchanged: without fusion, these bytes stay in on-chip memory"

PASSED: Final = "operators after a library's GEMM run in a separate pass, which reads and writes the result again"
MERGED: Final = "a compiler adds the bias in the convolution's kernel instead of a separate one"
STREAMED: Final = "more bytes move off chip"
CACHED: Final = "fewer live activations leave room for the weights on chip"
BUSIER: Final = "the one kernel keeps its units busy for longer than its members do separately"
COMPILED: Final = "a compiler's kernel replaces the framework's"
LAUNCHED: Final = "in eager the host launches every kernel"
CAPPED: Final = Template(
    "the power cap leaves {clock_fraction:%} of the clock with fusion and {separate_clock_fraction:%} without"
)

FACTS_TABLE: Final = "Fused and separate"
FACTS: Final = "quantity | fused | separate | saved | saved share"
FACT_LINES: Final = (
    "kernels | {kernel_count} | {separate_kernel_count} | {saved_kernels} | {saved_kernel_fraction:%}",
    "energy | {energy_j:J} | {separate_energy_j:J} | {saved_energy_j:J} | {saved_energy_fraction:%}",
    "latency | {latency_s:s} | {separate_latency_s:s} | {saved_latency_s:s} | {saved_latency_fraction:%}",
    "energy x delay | {edp_js:Js} | {separate_edp_js:Js} | {saved_edp_js:Js} | {saved_edp_fraction:%}",
    "off chip | {dram_bytes:B} | {separate_dram_bytes:B} | {saved_dram_bytes:B} | {saved_dram_fraction:%}",
    "moved by kernels | {moved_bytes:B} | {separate_moved_bytes:B} | {saved_moved_bytes:B} | {saved_moved_fraction:%}",
    "moved by passes | {pass_bytes:B} | {separate_pass_bytes:B} | {saved_pass_bytes:B}",
)
SUMS_TABLE: Final = "Sums"
EDP_SUM: Final = (
    "EDP saved: (dE x (T + T') + dT x (E + E')) / 2, where a part saves dE and dT, and the run takes E and T fused, E' "
    "and T' separate; the parts sum to the saving of the run"
)

SEPARATE: Final = {
    "graph": "separate: every operator is a separate kernel, without host cost (runtime graph)",
    "eager": "eager fuses nothing: every operator is a separate kernel, launched by the host; that run is compared "
    "with the same one in fused",
}
"""Runtime of separate operators -> note on what it means."""
GRAPH: Final = "graph fuses nothing; that run is compared with the same run in fused"
PASSES: Final = Template("extra passes ({passed_count} of {subgraph_count} fused kernels): {reason}")
FOLDED: Final = Template(
    "{folded_count:n operator} independent of the input: a compiler computes them once, so only the unfused run "
    "contains them"
)

STEPS: Final = (
    Template("fusion {model} {hardware} --level {deeper}"),
    Template("analyze {model} {hardware} --level subgraph"),
    Template("query run fusion.pattern -p run_a={separate_run_id} -p run_b={run_id}"),
)
DEEPER: Final[Mapping[FusionDivision, FusionDivision]] = {
    "run": "pattern", "pattern": "subgraph", "subgraph": "operator", "operator": "pattern",
}  # fmt: skip

INSIGHTS: Final = 3
"""Maximum sentences on the causes of savings."""

ALIKE: Final = 0.01
"""Relative difference of energy x delay below which two subgraphs lose equally much; the text then names neither."""


@frozen(kw_only=True)
class FusionAnswer(RunAnswer):
    """Savings of fusion in a run. Its patterns, subgraphs and operators each sum to the run exactly, fused and
    separate.
    """

    totals: Table[FusionTotal]
    """Totals of the fused and of the separate run; one row."""
    patterns: Table[FusionPattern]
    """Savings of each fusion pattern, largest saved energy-delay product first."""
    subgraphs: Table[FusionSubgraph]
    """Savings of each subgraph, largest saved energy-delay product first."""
    operators: Table[FusionOperator]
    """Savings of each operator, largest saved energy-delay product first."""

    @property
    def total(self) -> FusionTotal:
        """Totals of the fused and of the separate run."""
        return self.totals[0]

    def rows(self, by: FusionDivision) -> Table[Any]:
        """Return the table of one division."""
        return self.own_tables["totals" if by == "run" else f"{by}s"]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the sentences that people see."""
        return {**super().data(), "insights": [self.headline(), *self.insights()]}

    def document(self, *, by: FusionDivision = "pattern", limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows of one table. Machine formats contain all tables, csv only the shown
        one.
        """
        rows, total = self.rows(by), self.total
        merged = total.runtime if total.runtime in MERGING else "fused"
        facts = Section(FACTS_TABLE, self._lay_facts())
        details: tuple[Section, ...] = ()
        if by != "run":
            details = (facts, Section(SUMS_TABLE, self._prove(by, rows)))
            facts = Section(PARTS_TABLE(by=by), self._lay_parts(by, rows, limit), is_tight=True)
        return self._compose(
            title_run(total, self.scope, RUNTIMES(fused=merged, separate=total.separate_runtime)),
            (facts,),
            rows,
            answer=self.headline(),
            insights=self.insights(),
            details=details,
            notes=self.notes(),
            steps=self._fill_steps(
                STEPS, total, repeated, hardware=self.scope.spell(total.hardware), deeper=DEEPER[by]
            ),
        )

    def headline(self) -> str:
        """Return a sentence on the savings of fusion in the run, or a remark that there is nothing to fuse."""
        total = self.total
        if not total.fused_subgraph_count:
            return NOT_FUSED(subgraphs=EACH_OF(total) if total.subgraph_count > 1 else ONLY)
        saved = {
            "energy": total.saved_energy_fraction or 0.0,
            "latency": total.saved_latency_fraction or 0.0,
            "energy x delay": total.saved_edp_fraction or 0.0,
        }
        gains = [SHARE(share=share, quantity=name) for name, share in saved.items() if share >= 0.0]
        costs = [SHARE(share=-share, quantity=name) for name, share in saved.items() if share < 0.0]
        return (SAVES if gains else COSTS)(total, gains=gains, costs=costs, name=self.scope.mark(total.hardware))

    def insights(self) -> list[str]:
        """Return at most three sentences: where fusion costs most, where it saves most, and which unfused subgraphs
        change.
        """
        total = self.total
        if not total.fused_subgraph_count:
            return describe_unfused(self.subgraphs, total)[:INSIGHTS]
        saved = total.saved_dram_bytes
        given = {"less": saved if saved > 0 else None, "more": -saved if saved < 0 else None}
        return [
            *describe_costs(self.subgraphs, total)[:1],
            *((self._describe_largest(),) if len(self.patterns) > 1 and total.saved_edp_js > 0 else ()),
            BYTES(
                total,
                **given,
                inside=show_share(inside) if (inside := total.saved_moved_fraction or 0.0) >= SHOWN_FRACTION else "",
                same="" if saved else SAME_BYTES,
            ),
            *describe_unfused(self.subgraphs, total)[:1],
        ][:INSIGHTS]

    def _describe_largest(self) -> str:
        """Return a sentence on the pattern that saves most; if fusion merges none of its kernels, with the reason."""
        first = self.patterns[0]
        reason = "" if first.kernel_count < first.separate_kernel_count else _find_change(first, self.total)
        return LARGEST(first, reason=reason)

    def _lay_facts(self) -> Grid:
        total = self.total
        kernels, separate = total.kernel_count, total.separate_kernel_count
        return lay_facts(
            FACTS,
            FACT_LINES,
            total,
            saved_kernels=separate - kernels,
            saved_kernel_fraction=1.0 - kernels / separate,
            saved_pass_bytes=total.separate_pass_bytes - total.pass_bytes,
        )

    def _lay_parts(self, by: FusionDivision, rows: Table[Any], limit: int) -> Grid:
        drawn = self._lay(
            rows,
            COLUMNS[by] + AMOUNTS,
            limit=limit,
            keep=KEEP,
            noun=f"{by}s",
            kernel_count=KERNELS,
            pass_bytes=lambda row: show_signed(row.pass_bytes - row.separate_pass_bytes, "B"),
        )
        return attrs.evolve(drawn, in_all=REST(energy=sum(row.saved_energy_j for row in rows.rows[limit:])))

    def _prove(self, by: FusionDivision, rows: Table[Any]) -> tuple[Text, Text]:
        """Return the check that the rows sum to the run, fused and separate."""
        units = {"energy_fj": "fJ", "latency_fs": "fs", "dram_bytes": "B off chip"}
        sums = [
            (int(sum(getattr(row, name) for row in rows)), int(getattr(self.total, name)), f"{unit} {side}")
            for unit_name, unit in units.items()
            for name, side in ((unit_name, "fused"), (f"separate_{unit_name}", "separate"))
        ]
        return prove(f"{by}s", "the run", *sums), Text(EDP_SUM)

    def notes(self) -> list[str]:
        """Return notes on the separate runtime, on bytes that must pass through memory, on folded operators and on the
        scope.
        """
        total = self.total
        is_graph = total.separate_run_id != total.run_id and total.separate_runtime == "graph"
        return [
            *((GRAPH,) if is_graph else ()),
            SEPARATE[total.separate_runtime],
            *((PASSES(total, reason=PASSED),) if total.pass_bytes else ()),
            *((FOLDED(total),) if total.folded_count else ()),
            *self.scope.describe(),
        ]


def describe_costs(subgraphs: Iterable[FusionSubgraph], total: FusionTotal) -> list[str]:
    """Return sentences on the subgraphs in which fusion costs energy or time, grouped by reason."""
    losses = [row for row in subgraphs if _is_fused(row) and min(row.saved_energy_fj, row.saved_latency_fs) < 0]
    lines = []
    for reason, rows in _group(losses, [_find_cost(row, total) for row in losses]).items():
        worst, *others = sorted(rows, key=lambda row: (row.saved_edp_share_js, row.subgraph_index))
        is_alike = not others or math.isclose(worst.saved_edp_share_js, others[0].saved_edp_share_js, rel_tol=ALIKE)
        lines.append(
            COSTS_IN(
                count=len(rows),
                only="" if others else worst.name,
                change=_describe_change(rows),
                total=IN_TOTAL if others else "",
                worst="" if is_alike or worst.saved_edp_share_js >= 0.0 else worst.name,
                reason=reason,
            )
        )
    return lines


def describe_unfused(subgraphs: Iterable[FusionSubgraph], total: FusionTotal) -> list[str]:
    """Return the changes in subgraphs that are one kernel even without fusion, largest group first, with reasons."""
    changed = [
        row
        for row in subgraphs
        if row.kernel_count and not _is_fused(row) and (row.saved_energy_fj or row.saved_latency_fs)
    ]
    return [
        UNFUSED(
            count=len(rows),
            takes=TAKE if len(rows) > 1 else TAKES,
            change=_describe_change(rows),
            total=IN_TOTAL if len(rows) > 1 else "",
            reason=reason,
        )
        for reason, rows in _group(changed, [_find_change(row, total) for row in changed]).items()
        if abs(sum(row.saved_energy_fj for row in rows)) > SHOWN_FRACTION * total.separate_energy_fj
        or abs(sum(row.saved_latency_fs for row in rows)) > SHOWN_FRACTION * total.separate_latency_fs
    ]


def _is_fused(row: FusionSubgraph) -> bool:
    return 0 < row.kernel_count < row.separate_kernel_count


def _find_cost(row: FusionSubgraph, total: FusionTotal) -> str:
    if row.pass_bytes > row.separate_pass_bytes:
        return PASSED
    if total.clock_fraction < total.separate_clock_fraction:
        return CAPPED(total)
    return STREAMED if row.saved_dram_bytes < 0 else BUSIER


def _find_change(row: FusionSubgraph | FusionPattern, total: FusionTotal) -> str:
    if total.separate_runtime == "eager":
        return LAUNCHED
    if row.separate_pass_bytes > row.pass_bytes:
        return MERGED
    if row.saved_dram_bytes > 0:
        return CACHED
    return COMPILED if total.clock_fraction == total.separate_clock_fraction else CAPPED(total)


def _group(rows: Iterable[FusionSubgraph], reasons: Iterable[str]) -> dict[str, list[FusionSubgraph]]:
    """Return reason -> rows with this reason; the largest change of energy x delay comes first."""
    found: dict[str, list[FusionSubgraph]] = {}
    for row, reason in zip(rows, reasons, strict=True):
        found.setdefault(reason, []).append(row)
    return dict(sorted(found.items(), key=lambda item: -abs(sum(row.saved_edp_share_js for row in item[1]))))


def _describe_change(rows: Sequence[FusionSubgraph]) -> str:
    """Return how much energy and time fusion saves or adds in these subgraphs."""
    energy, latency = sum(row.saved_energy_j for row in rows), sum(row.saved_latency_s for row in rows)
    saved = [(value, show_quantity(abs(value), unit)) for value, unit in ((energy, "J"), (latency, "s")) if value]
    if energy * latency < 0.0:
        worse, better = sorted(saved)
        return MIXED(first=f"{worse[1]} more", second=f"{better[1]} less")
    return SAME_SIGN(amounts=[amount for _, amount in saved], direction="less" if energy + latency >= 0.0 else "more")


def fusion(source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS) -> FusionAnswer:
    """Compute the savings of fusion in a run, by pattern, subgraph and operator; each division sums to the run.

    The run is compared with its operators as separate kernels on the same hardware, without host cost. If `runtime` is
    `graph` or `eager`, the run in that runtime is compared with the run in `fused`. Raises like `analyze`.
    """
    settings.check_single("fusion")
    merged = settings.runtime if settings.runtime[0] in MERGING else ("fused",)
    runtimes = tuple(dict.fromkeys((*merged, *settings.runtime)))
    asked = attrs.evolve(settings, runtime=runtimes)
    with holding_runs(source, plan_selected((model,), asked, select_one(hardware, settings))) as runs:
        scope, connection = find_scope(runs), runs.connection
        if scope.refusals:
            raise UnsupportedError("; ".join(scope.refusals))
        tables = fetch_tables(connection, FusionAnswer, run_a=runs.ids[-1], run_b=runs.ids[0])
        return FusionAnswer(scope=scope, **tables)
