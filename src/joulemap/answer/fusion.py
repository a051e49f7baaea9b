"""Compare a fused run with its operators as separate kernels, by pattern, subgraph and operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.answer import fetch_tables
from joulemap.ask.fact import Facts
from joulemap.ask.fusion import find_facts
from joulemap.ask.scope import opening_scope
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import FusionDivision, Settings
from joulemap.domain.table import Table
from joulemap.generated.fusion import FusionOperator, FusionPattern, FusionSubgraph, FusionTotal
from joulemap.physics.record.runtime import RUNTIME, USUAL_RUNTIME
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.show.fusion import describe_ranges, describe_saving, list_reasons
from joulemap.show.layout import lay_facts
from joulemap.show.present.cell import show_signed
from joulemap.show.present.document import Document, Grid, Section, Text
from joulemap.show.present.picture import Picture, PictureKind
from joulemap.show.present.template import Template
from joulemap.show.run import prove, title_run
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.hardware import Hardware

RUNTIMES: Final = Template("{fused} against {separate}")

COLUMNS: Final[Mapping[FusionDivision, str]] = {
    "pattern": "pattern fusion_pattern | subgraphs subgraph_count",
    "subgraph": "subgraph name | kernel operations",
    "operator": "operator name | operation | pattern fusion_pattern",
}
AMOUNTS: Final = (
    " | kernels kernel_count | energy saved saved_energy_j | energy share saved_energy_fraction | "
    "time saved saved_latency_s | time share saved_latency_fraction | EDP saved saved_edp_share_js | "
    "EDP share saved_edp_fraction | off-chip bytes saved saved_dram_bytes | "
    "bytes moved saved saved_moved_bytes | extra passes pass_bytes | energy energy_j | "
    "separate energy separate_energy_j | time latency_s | separate time separate_latency_s"
)
KERNELS: Final = Template("{separate_kernel_count} → {kernel_count}")
SAVED: Final = "energy saved"
KEEP: Final = "time saved | energy share | time share | EDP share | operation | kernel | kernels | extra passes"
REST: Final = Template("saving {energy:J}")

FACTS_TABLE: Final = "Fused and separate"
SAVED_SHARE: Final = "saved share"
FACTS: Final = f"quantity | fused | separate | saved | {SAVED_SHARE}"
DRAWN: Final = ("energy", "latency", "edp", "dram", "moved")
"""Quantities of the lines after the first whose saved shares are drawn."""
FACT_LINES: Final = (
    "kernels | {kernel_count} | {separate_kernel_count} | {saved_kernels} | {saved_kernel_fraction:%}",
    "energy | {energy_j:J} | {separate_energy_j:J} | {saved_energy_j:J} | {saved_energy_fraction:%}",
    "latency | {latency_s:s} | {separate_latency_s:s} | {saved_latency_s:s} | {saved_latency_fraction:%}",
    "energy x delay | {edp_js:Js} | {separate_edp_js:Js} | {saved_edp_js:Js} | {saved_edp_fraction:%}",
    "off chip | {dram_bytes:B} | {separate_dram_bytes:B} | {saved_dram_bytes:B} | {saved_dram_fraction:%}",
    "moved by kernels | {moved_bytes:B} | {separate_moved_bytes:B} | {saved_moved_bytes:B} | {saved_moved_fraction:%}",
    "moved by passes | {pass_bytes:B} | {separate_pass_bytes:B} | {saved_pass_bytes:B}",
)
SHOWN: Final = 6
"""Default number of rows."""

SUMS_TABLE: Final = "Sums"
EDP_SUM: Final = (
    "EDP saved: (dE x (T + T') + dT x (E + E')) / 2, where a part saves dE and dT, and the run takes E and T fused, E' "
    "and T' separate; the parts sum to the saving of the run"
)

ORDER: Final = (
    "most energy x delay saved first; shares of energy and time refer to the separate operators of the row, shares "
    "of EDP to those of the run"
)
SEPARATE: Final = Template("separate: every operator is a separate kernel, without host cost (runtime {runtime})")
LAUNCHED: Final = Template(
    "{runtime} fuses nothing: every operator is a separate kernel, launched by the host; that run is compared with the "
    "same one in fused"
)
GRAPH: Final = "graph fuses nothing; that run is compared with the same run in fused"
PASSES: Final = Template(
    "extra passes ({passed_count} of {subgraph_count} fused kernels): operators after a library's GEMM run in a "
    "separate pass, which reads and writes the result again"
)
UNCHANGED: Final = "off-chip traffic is unchanged: separate kernels, too, keep on chip the bytes that fusion saves"
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

    facts: Facts
    """Savings, patterns, causes and caveats, from which all sentences are made."""

    @property
    def total(self) -> FusionTotal:
        """Totals of the fused and of the separate run."""
        return self.totals[0]

    def rows(self, by: FusionDivision) -> Table[Any]:
        """Return the table of one division."""
        return self.own_tables["totals" if by == "run" else f"{by}s"]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the sentences that people see."""
        return {**super().data(), "insights": [describe_saving(self.facts), *list_reasons(self.facts)]}

    def document(self, *, by: FusionDivision = "pattern", limit: int = SHOWN, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows of one table. Machine formats contain all tables, csv only the shown
        one.
        """
        rows, total = self.rows(by), self.total
        merged = total.runtime if RUNTIME[total.runtime].merges else USUAL_RUNTIME
        shown = Section("", self._lay_facts())
        details: tuple[Section, ...] = ()
        if by != "run":
            details = (Section(FACTS_TABLE, self._lay_facts()), Section(SUMS_TABLE, self._prove(by, rows)))
            shown = Section("", self._lay_parts(by, rows, limit), is_tight=True)
        return self._compose_facts(
            self.facts,
            (shown,),
            rows,
            title=title_run(total, self.scope, RUNTIMES(fused=merged, separate=total.separate_runtime)),
            answer=describe_saving(self.facts),
            reasons=list_reasons(self.facts),
            trust=describe_ranges(self.facts),
            details=details,
            notes=[*([ORDER] if by != "run" else []), *self.notes()],
            steps=self._fill_steps(
                STEPS, total, repeated, hardware=self.scope.spell(total.hardware), deeper=DEEPER[by]
            ),
        )

    def _lay_facts(self) -> Grid:
        total = self.total
        kernels, separate = total.kernel_count, total.separate_kernel_count
        saved = 1.0 - kernels / separate
        drawn = lay_facts(
            FACTS,
            FACT_LINES,
            total,
            saved_kernels=separate - kernels,
            saved_kernel_fraction=saved,
            saved_pass_bytes=total.separate_pass_bytes - total.pass_bytes,
        )
        shares = [saved, *(getattr(total, f"saved_{name}_fraction") for name in DRAWN)]
        marks = tuple(() if share is None else (share,) for share in shares)
        kind: PictureKind = "difference" if any(min(one, default=0.0) < 0.0 for one in marks) else "share"
        return attrs.evolve(drawn, pictures=(Picture(kind=kind, after=SAVED_SHARE, rows=(*marks, ())),))

    def _lay_parts(self, by: FusionDivision, rows: Table[Any], limit: int) -> Grid:
        drawn = self._lay(
            rows,
            COLUMNS[by] + AMOUNTS,
            limit=limit,
            keep=KEEP,
            ranked=SAVED,
            pictures=SAVED,
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
        """Return notes on the separate runtime, on bytes, and on folded operators."""
        total = self.total
        separate = RUNTIME[total.separate_runtime]
        is_graph = total.separate_run_id != total.run_id and not separate.launches_each
        return [
            *((GRAPH,) if is_graph else ()),
            (LAUNCHED if separate.launches_each else SEPARATE)(runtime=separate.name),
            *((PASSES(total),) if total.pass_bytes else ()),
            *((UNCHANGED,) if total.fused_subgraph_count and not total.saved_dram_bytes else ()),
            *((FOLDED(total),) if total.folded_count else ()),
        ]


def fusion(source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS) -> FusionAnswer:
    """Compute the savings of fusion in a run, by pattern, subgraph and operator; each division sums to the run.

    The run is compared with its operators as separate kernels on the same hardware, without host cost. If `runtime` is
    `graph` or `eager`, the run in that runtime is compared with the run in `fused`. Raises like `analyze`.
    """
    settings.check_single("fusion")
    merged = settings.runtime if RUNTIME[settings.runtime[0]].merges else (USUAL_RUNTIME,)
    runtimes = tuple(dict.fromkeys((*merged, *settings.runtime)))
    asked = attrs.evolve(settings, runtime=runtimes)
    with opening_scope(source, plan_selected((model,), asked, select_one(hardware, settings))) as scope:
        if scope.refusals:
            raise UnsupportedError("; ".join(scope.refusals))
        tables = fetch_tables(scope.connection, FusionAnswer, run_a=scope.run_ids[-1], run_b=scope.run_ids[0])
        total, patterns, subgraphs = tables["totals"][0], tables["patterns"].rows, tables["subgraphs"].rows
        facts = find_facts(scope, total, patterns, subgraphs)
        return FusionAnswer(scope=scope, facts=facts, **tables)
