"""Break down a run's energy-delay product: shares, concentration, and the largest possible savings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Drawings, Figures, RunAnswer, fetch_tables, find_place
from joulemap.answer.run import ENERGY_PARTS, prove, title_run
from joulemap.answer.scope import find_scope
from joulemap.domain.configuration import MERGING
from joulemap.domain.default import SETTINGS
from joulemap.domain.settings import ModelDivision, RunDivision, Settings
from joulemap.domain.table import Table
from joulemap.plan.hold import holding_runs
from joulemap.plan.run import plan_selected
from joulemap.plan.selection import select_hardware, select_one
from joulemap.plan.source import Source
from joulemap.present.cell import show_chosen_share, show_quantity, show_share
from joulemap.present.document import Document, Grid, Section, Text, grid
from joulemap.row.edp import EdpBound, EdpComparison, EdpCut, EdpOperatorShare, EdpPattern, EdpShare, EdpTotal
from joulemap.system.errors import UnsupportedError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.hardware import Hardware

REMEDIES: Final = {
    "roofline": "every subgraph at its roofline",
    "no_memory_wait": "arithmetic never waits for memory",
    "full_units": "no padding, no partly filled wave",
    "no_launch": "no fixed cost of kernels",
    "no_static": "no static power",
    "no_control": "no control energy",
}

PATTERN: Final = (
    "fusion_pattern", "share_fraction", "energy_j", "latency_s", "subgraph_count", "operator_count",
    "cumulative_fraction", "mac_fraction", "bottleneck", "bottleneck_fraction",
)  # fmt: skip
"""Columns shown of a fusion pattern."""

WORTH_SAYING: Final = 0.01
"""Share of the energy-delay product below which a saving is not stated."""


@frozen(kw_only=True)
class EdpAnswer(RunAnswer):
    """Energy-delay product of one run; the shares of its subgraphs, and those of its operators, sum to it."""

    totals: Table[EdpTotal]
    """Totals of the run; one row."""
    subgraphs: Table[EdpShare]
    """Rows by share, largest first."""
    operators: Table[EdpOperatorShare]
    """Rows by share, largest first."""
    cuts: Table[EdpCut]
    """Smallest sets of subgraphs, and of operators, that reach each share."""
    patterns: Table[EdpPattern]
    """Rows by share, largest first."""
    bounds: Table[EdpBound]
    """Rows by saving, largest first."""
    comparison: Table[EdpComparison]
    """Rows by subgraph, the run itself first; empty without a comparison."""

    @property
    def total(self) -> EdpTotal:
        """Totals of the whole run."""
        return self.totals[0]

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the sentences."""
        return {**super().data(), "insights": self.insights()}

    def figures(self) -> Figures:
        """Return the figure of the subgraphs' shares and their cumulative sum, largest first."""
        subject, facts = title_run(self.total, self.scope), "; ".join(self.insights()[:2])
        return (self._draw_figure("edp", self.subgraphs, subject, facts, {"part": "subgraph"}),)

    def sketched(self, by: RunDivision, /) -> Drawings:
        """Return a text drawing of the shares of subgraphs, or of operators if these are shown."""
        return (self._sketch("edp", self.operators, {"part": by}),) if by == "operator" else self.figures()

    def document(self, *, by: ModelDivision = "subgraph", limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with `limit` shares of one level; machine formats hold both tables, csv that level."""
        rows: Table[Any] = self.subgraphs if by == "subgraph" else self.operators
        shares = Section(f"By {by}, largest share first", self._shares(by, rows, limit), is_tight=True)
        beside = Section("The same subgraph on other hardware", self._beside(limit), is_tight=True)
        cuts = grid(
            attrs.evolve(self.cuts, rows=tuple(row for row in self.cuts if row.level == by)),
            (
                ("of E x T", lambda row: show_chosen_share(row.cut_fraction)),
                (f"{by}s", lambda row: f"top {row.top_count} of {row.total_count}"),
                ("reached", "reached_fraction"),
                ("the smallest of them", "last"),
            ),
        )
        first, *insights = self.insights()
        return self._compose(
            title_run(self.total, self.scope),
            (beside if beside.texts else shares,),
            rows,
            answer=f"{_edp(self.total.edp_js)} of energy x delay: {first}.",
            insights=(*self._tell_winners(), *(line for line in insights if line not in self._tell_winners())),
            details=(
                *((shares,) if beside.texts else ()),
                Section("Energy x delay", (self._facts(), self._proof(by, rows))),
                Section(f"How few {by}s make up most of it", cuts),
                Section("By fusion pattern", self._show(self.patterns, PATTERN)),
                Section("The most that could be gained", self._bounds()),
            ),
            notes=self.notes(),
            steps=self._steps(by, repeated),
        )

    def _facts(self) -> Grid:
        total = self.total
        energy, latency = show_quantity(total.energy_j, "J"), show_quantity(total.latency_s, "s")
        parts = ", ".join(f"{part} {show_share(getattr(total, f'{part}_share_fraction'))}" for part in ENERGY_PARTS)
        own = f"energy x latency of each, added up: {show_share(total.own_edp_fraction)} of it"
        return Grid(
            headings=("quantity", "value", "in detail"),
            rows=(
                ("energy x delay", _edp(total.edp_js), f"{energy} x {latency}"),
                ("by part", "", parts),
                ("subgraphs' own", _edp(total.own_edp_js), own),
                ("kernels", str(total.subgraph_count), f"subgraphs, {total.operator_count} operators"),
            ),
        )

    def _shares(self, by: ModelDivision, rows: Table[Any], limit: int) -> tuple[Grid, ...]:
        kind = () if by == "subgraph" else (("kind", "kind"),)
        fused = () if by == "subgraph" else (("fused", "is_fused"),)
        rest = rows.rows[limit:]
        share = show_share(sum(row.share_fraction for row in rest))
        drawn = grid(
            rows,
            (
                ("", "rank"),
                (by, "name"),
                *kind,
                ("pattern", "fusion_pattern"),
                *fused,
                ("energy", "energy_j"),
                ("latency", "latency_s"),
                ("own EDP", "edp_js"),
                ("EDP share", "edp_share_js"),
                ("of the run", "share_fraction"),
                ("added up", "cumulative_fraction"),
                *((part, f"{part}_share_fraction") for part in ENERGY_PARTS),
                ("halving it saves", "halving_fraction"),
                ("bound by", "bottleneck"),
            ),
            limit=limit,
            keep=(by, "EDP share", "of the run", "energy", "latency", "added up", "bound by"),
            ranked=("EDP share",),
            noun=_name_rows(by, rows),
        )
        return (attrs.evolve(drawn, in_all=f"{share} of it"),)

    def _proof(self, by: ModelDivision, rows: Table[Any]) -> Text:
        energy = (sum(row.energy_fj for row in rows), self.total.energy_fj, "fJ")
        return prove(
            _name_rows(by, rows), "the run", energy, (sum(row.latency_fs for row in rows), self.total.latency_fs, "fs")
        )

    def _bounds(self) -> Grid:
        return grid(
            self.bounds,
            (
                ("what if", lambda row: REMEDIES[row.remedy]),
                ("E x T saved", "saving_fraction"),
                ("left", "edp_js"),
                ("latency saved", "latency_saving_fraction"),
                ("energy saved", "energy_saving_fraction"),
                ("subgraphs touched", lambda row: f"{row.subgraph_count}/{row.total_count}"),
            ),
        )

    def _beside(self, limit: int) -> tuple[Grid | Text, ...]:
        """Return a grid with a row per subgraph and a column per hardware: EDP share, and its part of that run."""
        if not self.comparison.rows:
            return ()
        names: dict[int, str] = {}
        subgraphs: dict[int, dict[int, EdpComparison]] = {}
        for row in self.comparison:
            names[row.run_id] = self.scope.mark(row.hardware)
            subgraphs.setdefault(row.subgraph_index, {})[row.run_id] = row
        rows = []
        for by_run in list(subgraphs.values())[:limit]:
            first = next(iter(by_run.values()))
            best = next(row for row in by_run.values() if row.is_best)
            cells = [
                f"{_edp(by_run[run_id].edp_share_js)} ({show_share(by_run[run_id].share_fraction)})"
                if run_id in by_run
                else ""
                for run_id in names
            ]
            rows.append((first.name, first.fusion_pattern, *cells, names[best.run_id]))
        return (
            Grid(headings=("subgraph", "pattern", *names.values(), "least"), rows=tuple(rows), keep=("least",)).out_of(
                len(subgraphs), limit, "subgraphs"
            ),
            Text("EDP share in Js, and its part of that run's energy x delay"),
        )

    def insights(self) -> list[str]:
        """Return sentences on concentration and savings, largest first."""
        total, half, top = self.total, next(row for row in self.cuts if row.level == "subgraph"), self.subgraphs[0]
        lines = [
            f"top {half.top_count} of {half.total_count} subgraphs = {show_share(half.reached_fraction)} of it",
            f"halving energy and time of {top.name} alone would take {show_share(top.halving_fraction)} off it",
        ]
        if len(self.patterns) > 1:
            pattern = self.patterns[0]
            macs = "" if pattern.mac_fraction is None else f" with {show_share(pattern.mac_fraction)} of the MACs"
            lines.append(
                f"{pattern.fusion_pattern} takes {show_share(pattern.share_fraction)} of it in "
                f"{pattern.subgraph_count} subgraphs{macs}"
            )
        part = max(ENERGY_PARTS, key=lambda name: getattr(total, f"{name}_share_fraction"))
        lines.append(f"the largest part is {part}: {show_share(getattr(total, f'{part}_share_fraction'))} of it")
        lines += [_tell_bound(row, total) for row in self.bounds if row.saving_fraction >= WORTH_SAYING]
        return lines + _tell_fusion(total) + self._tell_winners()

    def _tell_winners(self) -> list[str]:
        """Return the number of subgraphs for which each compared hardware has the least share."""
        best = [row.hardware for row in self.comparison if row.is_best]
        counts = sorted({name: best.count(name) for name in best}.items(), key=lambda item: (-item[1], item[0]))
        return [
            f"{self.scope.mark(name)} has the least EDP share in {count} of {len(best)} subgraphs"
            for name, count in counts
        ]

    def notes(self) -> list[str]:
        """Return notes on these numbers."""
        lines = [f"unsupported: {reason}" for reason in self.scope.refusals]
        if self.total.clock_fraction < 1.0:
            lines.append(
                f"the power cap lowers the clock to {show_share(self.total.clock_fraction)} of nominal; gains are "
                "counted at this clock, but for the roofline"
            )
        return lines + self.scope.describe()

    def _steps(self, by: ModelDivision, repeated: Sequence[str]) -> list[list[str]]:
        total = self.total
        hardware = self.scope.spell(total.hardware)
        other = "operator" if by == "subgraph" else "subgraph"
        return [
            ["edp", total.model, hardware, "--level", other, *repeated],
            ["analyze", total.model, hardware, "--level", other, *repeated],
            ["query", "run", "edp.bound", "-p", f"run_id={total.run_id}", *find_place(repeated)],
        ]


def edp(
    source: Source,
    model: str,
    hardware: str | Hardware,
    settings: Settings = SETTINGS,
    *,
    against: Iterable[str | Hardware] = (),
) -> EdpAnswer:
    """Break down a run's energy-delay product by subgraph, operator, pattern and part.

    `against` adds the same subgraphs on other hardware; hardware that cannot run the configuration is left out, with
    its reason. Raises as `analyze`.
    """
    settings.check_single("edp")
    select_one(hardware, settings)
    selection = select_hardware(attrs.evolve(settings, hardware=(hardware, *against)))
    with holding_runs(source, plan_selected((model,), settings, selection)) as runs:
        scope, connection = find_scope(runs), runs.connection
        run_id = runs.ids[0]
        if run_id in scope.refused:
            raise UnsupportedError(scope.refused[run_id])
        beside = list(scope.evaluated_ids) if len(runs.ids) > 1 else []
        return EdpAnswer(scope=scope, **fetch_tables(connection, EdpAnswer, run_id=run_id, run_ids=beside))


def _name_rows(by: ModelDivision, rows: Table[Any]) -> str:
    """Return the noun for the rows; biases added within products have rows of their own."""
    return "operators and their biases" if any(getattr(row, "kind", "") == "bias" for row in rows) else f"{by}s"


def _edp(value: float) -> str:
    return show_quantity(value, "Js")


def _tell_bound(row: EdpBound, total: EdpTotal) -> str:
    saving = show_share(row.saving_fraction)
    where = f"{row.subgraph_count} of {row.total_count} subgraphs"
    return {
        "roofline": f"with every subgraph at its roofline, {_edp(row.edp_js)} would be left, {saving} less",
        "no_memory_wait": f"{where} wait for memory: without waiting, at most {saving} would go",
        "full_units": f"tiles leave units idle or pad them in {where}: full units would take off at most {saving}",
        "no_launch": f"the fixed cost of kernels: without it, {saving} would go",
        "no_static": f"static power is {show_share(total.static_energy_fraction)} of the energy: without it, {saving} "
        "would go",
        "no_control": f"control energy: without it, {saving} would go",
    }[row.remedy]


def _tell_fusion(total: EdpTotal) -> list[str]:
    """Return sentences on the effect of more or of less fusion; empty if it is small."""
    ratio = total.separate_edp_js / total.edp_js
    separate = _edp(total.separate_edp_js)
    lines = []
    if total.runtime in MERGING:
        if ratio >= 1.0 + WORTH_SAYING:
            saved = show_share(1.0 - 1.0 / ratio)
            lines.append(f"fusing saves {saved}: operators as kernels of their own take {separate}")
        elif ratio <= 1.0 - WORTH_SAYING:
            lines.append(f"fusing costs here: operators as kernels of their own take {separate}")
        if total.alone_share_fraction >= WORTH_SAYING and total.alone_count < total.subgraph_count:
            lines.append(
                f"{total.alone_count} subgraphs of one operator, fused with nothing, take "
                f"{show_share(total.alone_share_fraction)}"
            )
    elif total.runtime == "eager" and ratio <= 1.0 - WORTH_SAYING:
        lines.append(f"without launches by the host (--runtime graph), operators take {separate}")
    return lines
