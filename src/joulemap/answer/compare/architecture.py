"""Compare architecture classes on one model: energy by category and per MAC, with reasons.

class ─► representative hardware ─► a precision that it has ─► run ─► ledger, by category and action
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.base import RunAnswer
from joulemap.ask.answer import fetch_tables
from joulemap.ask.architecture import ENERGY, PARTS, find_facts, find_largest, find_share
from joulemap.ask.fact import Choice, Entry, Facts
from joulemap.ask.scope import Scope
from joulemap.catalog.sheet import find_notes
from joulemap.domain.architecture import CLASS_HARDWARE, COMMON_PRECISION
from joulemap.domain.catalogue import ArchitectureNote, HardwareEntry
from joulemap.domain.settings import ClassDivision, Settings
from joulemap.domain.table import Table
from joulemap.generated.architectures import ArchitectureAction, ArchitectureCategory, ArchitectureSummary
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.weight import keep_narrower, spell_precision, split_precision
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import find_unplugged, select_hardware
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import StoredRun, opening_plans
from joulemap.show.architecture import DOMINANT, describe_answer, list_reasons
from joulemap.show.present.category import CATEGORY, name_category
from joulemap.show.present.cell import Number, Remark, name_unit, show_amount, show_price, show_quantity
from joulemap.show.present.document import Block, Document, Grid, Lines, Section, Text, show_under
from joulemap.show.present.picture import Picture, make_intervals
from joulemap.show.present.template import Template
from joulemap.show.run import prove
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J

SUMMARY_COLUMNS: Final = (
    "class label | hardware | precision! | latency latency_s | energy energy_j |{per_mac} largest part mostly | "
    "utilization compute_utilization_fraction | static power static_power_w | node"
)
PER_MAC: Final = " energy per MAC energy_per_mac_j |"
SUMMARY_KEEP: Final = "hardware | energy | largest part"
MOSTLY: Final = Template("{part} {share:%}")
NODE: Final = Template("{process_node_nm:plain} nm", is_number=True)

SHARE_TABLE: Final = "Energy shares"
SHARE_COLUMNS: Final = " | ".join(
    ("class label", *(f"*{CATEGORY[part]} {part}_fraction" for part in PARTS), "*overhead overhead_fraction")
)
LEGEND: Final = (
    "computing: arithmetic, including operations other than MACs; on-chip memory: caches and scratchpads; network: "
    "wires and switches between units and memories; overhead: registers, on-chip memory, network and control; board "
    "losses: voltage regulators, and power that a power limit implies but no counted action explains"
)
PRICE_TABLE: Final = "Energy per MAC"
PRICE_COLUMNS: Final = " | ".join(
    ("class label", *(f"*{CATEGORY[part]} {part}_per_mac_j" for part in PARTS), "*total energy_per_mac_j")
)
ORDER_TABLE: Final = "Instructions, and bytes moved per million MACs"
ORDER_COLUMNS: Final = (
    "class label | *instruction order_name | *MACs per instruction #macs_per_order | *unit memory "
    "unit_memory_bytes_per_mac | *chip memory chip_memory_bytes_per_mac | *off-chip memory off_chip_bytes_per_mac"
)

CLASS_TITLE: Final = Template("{label}: {name}, {precision}")
NOTE: Final = Template("[{topic}: ]{text} ({source})")
BEST: Final = Template("lowest energy of {total}; rank {dynamic} without static power")
RANK: Final = Template(
    "rank {rank} of {total} by energy, {ratio:plain}x that of {best}; rank {dynamic} without static power"
)
STATIC: Final = Template(
    "{static_fraction:%} is static power, {static_power_w:W} for {time:s}, during which "
    "{compute_utilization_fraction:%} of the compute peak is used[; {bound} take {bound_share:%} of that time]"
)
WAITS: Final[Mapping[str, str]] = {
    "compute": "kernels limited by compute (with padding and gaps between tiles)",
    "memory": "kernels limited by memory",
    "launch": "kernels limited by their launch",
}
AROUND: Final = Template(
    "a MAC takes {compute_per_mac_j:J} of computing and {around:J} of overhead ({overhead_ratio:plain}x), of which "
    "{largest:J} for {part}[; one {order_name} starts {orders:plain} MACs]"
)

CATEGORY_COLUMNS: Final = (
    "category common_category | *energy energy_j | *share share_fraction | *energy per MAC energy_per_mac_j | "
    "*largest action action | *overhead is_overhead | *actions kind_count | categories of the class categories"
)
ACTION_COLUMNS: Final = "action |{count} count | energy each price | per |{energy} | share share_fraction | basis"
ACTION_COUNTS: Final = (" count", " energy energy_j")
ACTION_COUNTS_PER_MAC: Final = (" count per MAC", " energy per MAC energy_per_mac_j")
ACTION_KEEP: Final = "energy | energy per MAC | count | count per MAC | energy each | share | basis"
RARE: Final = Template("1[ {unit}] / {every:~}")
SOURCES: Final = Template("{names:list}[ ({basis})]: {source}")
ASSUMED, ASSUMPTION = "assumed", "assumption: "

COMMON: Final = Template("only {asked} is supported by chips of every class; --precision selects another")
REPLACED: Final = Template("{name} has no {asked}, so it is shown in {precision}")
UNEQUAL: Final = "chips also differ in size and process node: differences hold for these chips, not for their classes"

INTO_LEAST: Final = Template("analyze {model} {least} {precision}")
INTO_PAIR: Final = Template("explain {model} {most} {least} {precision}")
AT_BATCH: Final = Template(
    "architectures {model}[ --hardware {hardware}][ --precision {asked}][ --weight-precision {weights}] --batch 64"
)

LEAST_COUNT_PER_MAC: Final = 0.01
"""Minimum actions per MAC; a smaller count is shown as MACs per action."""

EVERYWHERE: Final = Settings(precision=COMMON_PRECISION)
"""Default settings: a precision that hardware of every class supports."""


@frozen(kw_only=True)
class ArchitecturesAnswer(RunAnswer):
    """One model on hardware of several classes. The categories of a run sum to its energy exactly, and so do the
    actions.
    """

    asked: Precision
    """Requested precision; hardware without it uses the nearest precision that it has."""
    rows: Table[ArchitectureSummary]
    """Energy of each run and of one MAC, in the order of the hardware; refused runs are included."""
    categories: Table[ArchitectureCategory]
    """Energy of each run by category, ordered from arithmetic outwards."""
    actions: Table[ArchitectureAction]
    """Energy of each run by action, largest first."""
    facts: Facts
    """Class with the least energy, largest part of each class, rows and caveats, from which sentences are made."""

    @property
    def answered(self) -> tuple[ArchitectureSummary, ...]:
        """Rows of runs that were not refused."""
        return tuple(row for row in self.rows if row.energy_fj is not None)

    @property
    def ordered(self) -> list[ArchitectureSummary]:
        """Rows of runs that were not refused, lowest energy first."""
        return sorted(self.answered, key=lambda row: (row.energy_fj or 0, row.hardware))

    @property
    def notes(self) -> tuple[ArchitectureNote, ...]:
        """Known properties of the classes from literature; they are not results."""
        return find_notes(tuple(row.architecture for row in self.rows))

    @property
    def has_macs(self) -> bool:
        """True if the model has any MACs."""
        return any(row.mac_count for row in self.rows)

    def name(self, row: ArchitectureSummary) -> str:
        """Return the name of a row: its class, or its hardware if another row has the same class."""
        return row.architecture if len(self._alike(row)) == 1 else self._mark(row.hardware)

    def label(self, row: ArchitectureSummary) -> str:
        """Return the label of a row in tables: its class, numbered if another row has the same class."""
        alike = self._alike(row)
        return row.architecture if len(alike) == 1 else f"{row.architecture} {alike.index(row.run_id) + 1}"

    def _alike(self, row: ArchitectureSummary) -> list[int]:
        """Return the ids of all runs on hardware of the same class as a row."""
        return [one.run_id for one in self.rows if one.architecture == row.architecture]

    def describe_rank(self, row: ArchitectureSummary) -> list[str]:
        """Return sentences on a class: its rank, its static energy if this is the largest part, and its overhead per
        MAC.
        """
        lines: list[str] = []
        if len(self.answered) > 1:
            dynamic = sorted(self.answered, key=lambda one: ((one.energy_fj or 0) - (one.static_fj or 0), one.hardware))
            best, total = self.ordered[0], len(self.answered)
            given = {"total": total, "dynamic": dynamic.index(row) + 1, "rank": self.ordered.index(row) + 1}
            ratio = (row.energy_fj or 0) / (best.energy_fj or 1)
            lines.append(BEST(**given) if row is best else RANK(**given, ratio=ratio, best=self.name(best)))
        if find_largest(row) == "static":
            bound = max(WAITS, key=lambda name: getattr(row, f"{name}_time_fraction") or 0.0)
            is_idle = (row.compute_utilization_fraction or 0.0) < DOMINANT
            time = (row.static_fj or 0) / FJ_PER_J / (row.static_power_w or 1.0)
            share = getattr(row, f"{bound}_time_fraction")
            lines.append(STATIC(row, time=time, bound=WAITS[bound] if is_idle else "", bound_share=share))
        if row.overhead_ratio is not None and row.compute_per_mac_j is not None:
            part = find_largest(row, ("register", "on_chip_memory", "interconnect", "control"))
            around, largest = row.overhead_ratio * row.compute_per_mac_j, getattr(row, f"{part}_per_mac_j")
            lines.append(
                AROUND(row, around=around, largest=largest, part=name_category(part), orders=row.macs_per_order)
            )
        return lines

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the ranks and notes that people see."""
        return {
            **super().data(),
            "precision_asked": self.asked,
            "descriptions": {row.hardware: self.describe_rank(row) for row in self.answered},
            "architecture_notes": [attrs.asdict(note) for note in self.notes],
        }

    def document(self, *, by: ClassDivision = "class", limit: int = 4, repeated: Sequence[str] = ()) -> Document:
        """Return the document: all classes with `limit` actions each, or every category or action of each class.

        Machine formats contain every table, csv the rows of the division.
        """
        tables: dict[ClassDivision, Table[Any]] = {
            "class": self.rows,
            "category": self.categories,
            "action": self.actions,
        }
        if by == "category":
            sections = [self._lay_categories(row) for row in self.answered]
        else:
            most = limit if by == "class" else len(self.actions)
            sections = [
                Section(self._title(row), (*self._introduce(row, by), *self._lay_actions(row, most)))
                for row in self.answered
            ]
        summary = show_under("", self._lay_summary(), *self._count_left_out())
        return self._compose_facts(
            self.facts,
            (summary,) if by == "class" else sections,
            tables[by],
            answer=describe_answer(self.facts),
            reasons=list_reasons(self.facts),
            details=(*self._lay_overview(), *sections) if by == "class" else (),
            notes=self.remarks(),
            steps=self._list_steps(repeated),
        )

    def _lay_summary(self) -> Grid:
        """Return a grid of the classes, with the intervals of their energies and the one with the least marked."""
        drawn = self._lay(
            self.rows.with_rows(self.answered),
            SUMMARY_COLUMNS.format(per_mac=PER_MAC if self.has_macs else ""),
            keep=SUMMARY_KEEP,
            mostly=lambda row: MOSTLY(part=name_category(find_largest(row)), share=find_share(row, find_largest(row))),
            node=lambda row: NODE(row) if row.process_node_nm else "",
            label=self.label,
        )
        values = {one.runs[0]: one.values[ENERGY] for one in self.facts.of(Entry)}
        ends = [(values[row.run_id].value, values[row.run_id].half_width) for row in self.answered]
        picture = Picture(kind="interval", after=ENERGY, rows=make_intervals(ends), unit="J", yields=True)
        choice, column = self.facts.of(Choice)[0], drawn.headings.index(ENERGY)
        best, tied = (
            frozenset((index, column) for index, row in enumerate(self.answered) if row.run_id in ids)
            for ids in (choice.runs[:1] if len(choice.runs) > 1 else (), choice.tied)
        )
        return attrs.evolve(drawn, pictures=(picture,), best=best, tied=tied)

    def _lay_overview(self) -> list[Section]:
        """Return tables of the energy shares, the energy per MAC, the MACs per instruction, and the bytes per MAC."""
        rows = self.rows.with_rows(self.answered)
        shares = Section(SHARE_TABLE, (self._lay(rows, SHARE_COLUMNS, label=self.label), Text(LEGEND)))
        if not self.has_macs:
            return [shares]
        moved = {f"{level}_bytes_per_mac": _show_million(level) for level in ("unit_memory", "chip_memory", "off_chip")}
        return [
            shares,
            Section(PRICE_TABLE, self._lay(rows, PRICE_COLUMNS, label=self.label)),
            Section(ORDER_TABLE, self._lay(rows, ORDER_COLUMNS, label=self.label, **moved)),
        ]

    def _title(self, row: ArchitectureSummary) -> str:
        return CLASS_TITLE(row, label=self.label(row), name=self._mark(row.hardware))

    def _introduce(self, row: ArchitectureSummary, by: ClassDivision) -> tuple[Lines, ...]:
        """Return the text above the largest actions of a class: its principle and its rank."""
        known = [NOTE(one, topic="") for one in find_notes((row.architecture,)) if one.topic == "principle"]
        return (Lines([*known, *self.describe_rank(row)]),) if by == "class" else ()

    def _lay_categories(self, row: ArchitectureSummary) -> Section:
        """Return a section on the categories of one class, each with its largest action, and the known notes."""
        first = {one.common_category: one for one in self._of(row) if one.category_rank == 1}
        rows = tuple(one for one in self.categories if one.run_id == row.run_id)
        drawn = self._lay(
            self.categories.with_rows(rows),
            CATEGORY_COLUMNS,
            action=lambda one: name_action(first[one.common_category]) if one.kind_count else "",
        )
        proof = prove("categories", "the run", (sum(one.energy_fj for one in rows), row.energy_fj or 0, "fJ"))
        return Section(self._title(row), (drawn, proof, Lines(map(NOTE, find_notes((row.architecture,))))))

    def _of(self, row: ArchitectureSummary) -> list[ArchitectureAction]:
        return [one for one in self.actions if one.run_id == row.run_id]

    def _lay_actions(self, row: ArchitectureSummary, limit: int) -> tuple[Block, ...]:
        """Return the largest actions of a run, and the sources of their energies per action."""
        actions = self._of(row)
        count, energy = ACTION_COUNTS_PER_MAC if self.has_macs else ACTION_COUNTS
        drawn = self._lay(
            self.actions.with_rows(actions),
            ACTION_COLUMNS.format(count=count, energy=energy),
            limit=limit,
            noun="actions",
            keep=ACTION_KEEP,
            action=name_action,
            count=_show_count if self.has_macs else lambda one: show_amount(one.action_count, one.per),
            price=lambda one: show_price(one.energy_per_action_j, one.per),
            per=lambda one: name_unit(one.per),
        )
        sources: dict[str, list[str]] = {}
        for one in actions[:limit]:
            sources.setdefault(one.source, []).append(name_action(one))
        return drawn, Lines(_cite(names, source) for source, names in sources.items())

    def remarks(self) -> list[str]:
        """Return notes on the common precision, replaced precisions, and what the contrast holds for."""
        return [
            *((COMMON(self),) if self.asked == COMMON_PRECISION else ()),
            *(
                REPLACED(row, name=self._mark(row.hardware), asked=self.asked)
                for row in self.rows
                if row.precision != self.asked
            ),
            UNEQUAL,
        ]

    def _list_steps(self, repeated: Sequence[str]) -> list[list[str]]:
        least, most = self.ordered[0], self.ordered[-1]
        is_pair = least.precision == most.precision and least is not most
        is_batched = "--batch" in repeated or "--input" in repeated
        weights = (split_precision(row.precision)[1] for row in self.answered)
        hardware = [self.scope.spell(row.hardware) for row in self.rows]
        return self._fill_steps(
            (INTO_LEAST, *((INTO_PAIR,) if is_pair else ()), *(() if is_batched else (AT_BATCH,))),
            None,
            repeated,
            model=self.scope.model,
            most=self.scope.spell(most.hardware),
            least=self.scope.spell(least.hardware),
            precision=spell_precision(least.precision),
            hardware="" if hardware == list(CLASS_HARDWARE.values()) else ",".join(hardware),
            asked="" if self.asked == COMMON_PRECISION else self.asked,
            weights=",".join(dict.fromkeys(filter(None, weights))),
        )


def _cite(names: Sequence[str], source: str) -> str:
    """Return a line with the source of some actions' energies; an assumption is marked after the names."""
    text = source.removeprefix(ASSUMPTION)
    return SOURCES(names=names, source=text, basis="" if text == source else ASSUMED)


def name_action(row: ArchitectureAction) -> str:
    """Return the component and action of a row as one name."""
    return f"{row.component}.{row.action}"


def _show_million(level: str) -> Any:
    """Return a function that formats the bytes per million MACs of one memory."""

    def show(row: ArchitectureSummary) -> str:
        count = getattr(row, f"{level}_bytes_per_mac")
        return "" if count is None else show_quantity(count * 1e6, "B")

    return show


def _show_count(row: ArchitectureAction) -> str:
    """Return the count of an action per MAC; a rare action is written as one per so many MACs."""
    count, unit = row.count_per_mac, "B" if row.per == "B" else ""
    if not count:
        return ""
    if row.per == "s":
        return show_quantity(count, "s")
    if count < LEAST_COUNT_PER_MAC:
        return Remark(RARE(unit=unit, every=1.0 / count))
    return Number(f"{count:.3g} {unit}".rstrip())


def architectures(source: Source, model: str, settings: Settings = EVERYWHERE) -> ArchitecturesAnswer:
    """Compare architecture classes on a model: energy by category, energy per MAC, and reasons.

    Without named hardware, one chip represents each of the eight classes. Hardware that lacks the precision uses the
    nearest precision that it has; hardware that cannot run the model is an `unsupported` row with its reason. Raises
    like `compare`.
    """
    with opening_classes(source, (model,), settings, tuple(CLASS_HARDWARE.values())) as scope:
        tables = fetch_tables(scope.connection, ArchitecturesAnswer, run_ids=list(scope.run_ids))
        facts = find_facts(scope, tables["rows"].rows)
        return ArchitecturesAnswer(scope=scope, asked=settings.precision[0], facts=facts, **tables)


@contextlib.contextmanager
def opening_classes(
    source: Source, models: tuple[str, ...], settings: Settings, hardware: tuple[str, ...]
) -> Iterator[Scope]:
    """Yield the scope of a question about one chip per class, with an open connection.

    `hardware` holds one chip per class, used if the settings name no hardware. Raises like `compare`.
    """
    settings.check_single("architectures")
    known = known_hardware()
    unplugged = {} if settings.hardware else find_unplugged((known[name] for name in hardware), settings.boundary)
    chosen = settings.hardware or tuple(name for name in hardware if name not in unplugged)
    asked, settings = settings, attrs.evolve(settings, hardware=chosen)
    selection = select_hardware(settings)
    selection = attrs.evolve(selection, unplugged={**unplugged, **selection.unplugged})
    whole = plan_selected(models, settings, selection)
    whole.selection.check_chips("architectures")
    with opening_plans(source, _divide(whole)) as (connection, held):
        scope = Scope.of_plan(whole, connection, _order_runs(whole, held))
        scope = attrs.evolve(scope, settings=asked, names=tuple(model.request.model for model in whole.models))
        scope.check_evaluated()
        yield scope
        scope.read()


def _divide(whole: Plan) -> list[Plan]:
    """Return one plan per precision. Each chip is in the plan of its precision nearest to the requested one."""
    (asked,) = whole.settings.precision
    groups: dict[Precision, list[tuple[HardwareEntry, str]]] = {}
    for entry, mode in whole.selection.pairs:
        groups.setdefault(entry.nearest_precision(asked), []).append((entry, mode))
    return [
        attrs.evolve(
            whole,
            settings=attrs.evolve(
                whole.settings,
                precision=precision,
                weight_precision=keep_narrower(precision, whole.settings.weight_precision),
            ),
            selection=attrs.evolve(whole.selection, pairs=tuple(pairs)),
        )
        for precision, pairs in groups.items()
    ]


def _order_runs(whole: Plan, held: Iterable[StoredRun]) -> list[int]:
    """Return the run ids of several plans in the order of the whole plan: by model, then by hardware."""
    ids = {(model.request.model, run.hardware, run.power_mode): run_id for model, run, run_id in held}
    return [ids[one.request.model, entry.id, mode] for one in whole.models for entry, mode in whole.selection.pairs]
