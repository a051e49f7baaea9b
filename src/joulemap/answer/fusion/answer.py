"""Compare a fused run with its operators as separate kernels, by pattern, subgraph and operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import RunAnswer, fetch_tables, find_place
from joulemap.answer.fusion.sentence import (
    tell_bias,
    tell_bytes,
    tell_costs,
    tell_largest,
    tell_passes,
    tell_saving,
    tell_unfused,
)
from joulemap.answer.run import title_run
from joulemap.answer.scope import find_scope
from joulemap.domain.configuration import MERGING
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import FusionDivision, Settings
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_one
from joulemap.plan.source import Source
from joulemap.present.cell import show_count, show_quantity, show_share, show_signed
from joulemap.present.document import Document, Grid, Section, Shown, Text, grid
from joulemap.row.fusion import FusionOperator, FusionPattern, FusionSubgraph, FusionTotal
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

NAMES: Final[dict[FusionDivision, tuple[Shown[Any], ...]]] = {
    "pattern": (("pattern", "fusion_pattern"), ("subgraphs", "subgraph_count")),
    "subgraph": (("subgraph", "name"), ("what its kernel does", "operations")),
    "operator": (("operator", "name"), ("operation", "operation"), ("pattern", "fusion_pattern")),
}

AMOUNTS: Final[tuple[Shown[Any], ...]] = (
    ("kernels", lambda row: f"{row.separate_kernel_count} → {row.kernel_count}"),
    ("energy saved", "saved_energy_j"),
    ("of energy", "saved_energy_fraction"),
    ("time saved", "saved_latency_s"),
    ("of time", "saved_latency_fraction"),
    ("EDP saved", "saved_edp_share_js"),
    ("of EDP saved", "saved_edp_share_fraction"),
    ("off chip saved", "saved_dram_bytes"),
    ("moved saved", "saved_moved_bytes"),
    ("passes add", lambda row: show_signed(row.pass_bytes - row.separate_pass_bytes, "B")),
    ("energy", "energy_j"),
    ("separate energy", "separate_energy_j"),
    ("time", "latency_s"),
    ("separate time", "separate_latency_s"),
)

KEEP: Final = (
    "energy saved",
    "time saved",
    "of EDP saved",
    "operation",
    "what its kernel does",
    "of energy",
    "of time",
    "kernels",
    "passes add",
)

RUNTIMES: Final = {
    "graph": "separate: every operator a kernel of its own, without host cost (runtime graph)",
    "eager": "in eager nothing is fused: every operator is a kernel of its own, launched by the host; that run is set "
    "against the same in fused",
}
"""Runtime of separate operators -> its meaning."""


@frozen(kw_only=True)
class FusionAnswer(RunAnswer):
    """Savings of fusion in a run; patterns, subgraphs and operators each sum to it exactly, fused and separate."""

    totals: Table[FusionTotal]
    """Totals of both runs; one row."""
    patterns: Table[FusionPattern]
    """Rows by saved energy-delay product, largest first."""
    subgraphs: Table[FusionSubgraph]
    """Rows by saved energy-delay product, largest first."""
    operators: Table[FusionOperator]
    """Rows by saved energy-delay product, largest first."""

    @property
    def total(self) -> FusionTotal:
        """Totals of the whole run."""
        return self.totals[0]

    def rows(self, by: FusionDivision) -> Table[Any]:
        """Return the table of one division."""
        return self.own_tables["totals" if by == "run" else f"{by}s"]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the sentences."""
        return {**super().data(), "insights": self.insights()}

    def document(self, *, by: FusionDivision = "pattern", limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` rows of one table; machine formats hold all tables, csv that one."""
        rows, total = self.rows(by), self.total
        merged = total.runtime if total.runtime in MERGING else "fused"
        facts = Section("What fusing saves", self._facts())
        title = f"By {by}, most energy x delay saved first"
        first, *insights = self.insights()
        is_whole = by == "run"
        return self._compose(
            title_run(total, self.scope, f"{merged} against {total.separate_runtime}"),
            (facts if is_whole else Section(title, self._parts(by, rows, limit), is_tight=True),),
            rows,
            answer=f"{first[0].upper()}{first[1:]}.",
            insights=insights,
            details=() if is_whole else (facts, Section("How they add up", self._proof(by, rows))),
            notes=self.notes(),
            steps=self._steps(by, repeated),
        )

    def _facts(self) -> Grid:
        total = self.total
        kernels, separate = total.kernel_count, total.separate_kernel_count
        return Grid(
            headings=("quantity", "fused", "separate", "saved", "of separate"),
            rows=(
                ("kernels", str(kernels), str(separate), str(separate - kernels), show_share(1.0 - kernels / separate)),
                _fact("energy", "J", (total.energy_j, total.separate_energy_j), total.saved_energy_fraction),
                _fact("latency", "s", (total.latency_s, total.separate_latency_s), total.saved_latency_fraction),
                _fact("energy x delay", "Js", (total.edp_js, total.separate_edp_js), total.saved_edp_fraction),
                _fact("off chip", "B", (total.dram_bytes, total.separate_dram_bytes), total.saved_dram_fraction),
                _fact(
                    "moved by kernels", "B", (total.moved_bytes, total.separate_moved_bytes), total.saved_moved_fraction
                ),
                _fact("moved by passes", "B", (total.pass_bytes, total.separate_pass_bytes), None),
            ),
        )

    def _parts(self, by: FusionDivision, rows: Table[Any], limit: int) -> tuple[Grid | Text, ...]:
        columns = (*NAMES[by], *AMOUNTS)
        rest = show_quantity(sum(row.saved_energy_j for row in rows.rows[limit:]), "J")
        drawn = grid(rows, columns, limit=limit, keep=KEEP, noun=f"{by}s")
        return (attrs.evolve(drawn, in_all=f"saving {rest}"),)

    def _proof(self, by: FusionDivision, rows: Table[Any]) -> Text:
        """Return the sentence that checks the sums of the rows against the run."""
        names = {
            "fJ": ("energy_fj", "separate_energy_fj"),
            "fs": ("latency_fs", "separate_latency_fs"),
            "B off chip": ("dram_bytes", "separate_dram_bytes"),
        }
        total = self.total
        sums = {unit: [sum(getattr(row, name) for row in rows) for name in pair] for unit, pair in names.items()}
        is_exact = all(sums[unit] == [getattr(total, name) for name in pair] for unit, pair in names.items())
        told = ", ".join(f"{fused:,.0f} of {separate:,.0f} {unit}" for unit, (fused, separate) in sums.items())
        verdict = "exact" if is_exact else "NOT EXACT"
        return Text(
            f"{by}s sum to {told}, fused of separate, as the run does ({verdict}); what each "
            "saves of energy x delay, (dE_i (T + T') + (E + E') dt_i) / 2, sums to what the run saves"
        )

    def insights(self) -> list[str]:
        """Return sentences on savings, traffic and costs of fusion."""
        total = self.total
        return [
            *tell_saving(total),
            *tell_largest(self.patterns, total),
            *tell_bytes(total),
            *tell_passes(total),
            *tell_costs(self.subgraphs, total),
            *tell_unfused(self.subgraphs, total),
            *tell_bias(total),
        ]

    def notes(self) -> list[str]:
        """Return notes on these numbers."""
        total = self.total
        lines = [RUNTIMES[total.separate_runtime]]
        if total.separate_run_id != total.run_id and total.separate_runtime == "graph":
            lines = ["in graph nothing is fused; that run is set against the same in fused", *lines]
        if total.folded_count:
            operators = show_count(total.folded_count, "operator")
            lines.append(
                f"{operators} that no input changes: a compiler computes them once, so only the separate side has them"
            )
        return lines + self.scope.describe()

    def _steps(self, by: FusionDivision, repeated: Sequence[str]) -> list[list[str]]:
        total = self.total
        hardware = self.scope.spell(total.hardware)
        deeper = {"run": "pattern", "pattern": "subgraph", "subgraph": "operator", "operator": "pattern"}[by]
        runs = ["-p", f"run_a={total.separate_run_id}", "-p", f"run_b={total.run_id}"]
        return [
            ["fusion", total.model, hardware, "--level", deeper, *repeated],
            ["analyze", total.model, hardware, "--level", "subgraph", *repeated],
            ["query", "run", "fusion.pattern", *runs, *find_place(repeated)],
        ]


def fusion(source: Source, model: str, hardware: str | Hardware, settings: Settings = SETTINGS) -> FusionAnswer:
    """Compute what fusion saves or costs in a run, by pattern, subgraph and operator, each summing to it.

    The run is compared with its operators as separate kernels on the same hardware, without host cost; with `runtime`
    graph or eager, that run is compared with the same in fused. Raises as `analyze`.
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


def _fact(name: str, unit: str, pair: tuple[float, float], share: float | None) -> tuple[str, str, str, str, str]:
    fused, separate = pair
    return (
        name,
        show_quantity(fused, unit),
        show_quantity(separate, unit),
        show_quantity(separate - fused, unit),
        show_share(share),
    )
