"""Compare architecture classes on one model: energy by category and per MAC, with reasons.

class ─► representative hardware ─► a precision that it has ─► run ─► ledger, by category and action
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from joulemap.answer.answer import RunAnswer
from joulemap.answer.architecture.sentence import PARTS, name_action, tell_contrast, tell_mostly, tell_place
from joulemap.answer.run import describe_clock, prove
from joulemap.answer.scope import describe_recalled
from joulemap.catalog.sheet import find_notes
from joulemap.domain.architecture import CLASS_HARDWARE, COMMON_PRECISION
from joulemap.domain.catalogue import ArchitectureNote
from joulemap.domain.configuration import Precision
from joulemap.domain.settings import ClassDivision
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision, split_precision
from joulemap.present.cell import show_amount, show_plain, show_price, show_quantity, show_share
from joulemap.present.document import Block, Document, Grid, Lines, Section, Text, show_under
from joulemap.row.architectures import ArchitectureAction, ArchitectureCategory, ArchitectureSummary
from joulemap.system.record import frozen

HEADINGS: Final = dict(
    zip(PARTS, ("compute", "registers", "on chip", "network", "off chip", "control", "board", "static"), strict=True)
)
"""Part of the energy -> its heading in a table."""

LEGEND: Final = (
    "compute: arithmetic, including other operations than MACs; on chip: caches and scratchpads; network: wires and "
    "switches between units and memories; overhead: registers, on chip, network and control; "
    "board: voltage regulators, and power implied by a power limit beyond all prices"
)

OFTEN: Final = 0.01
"""Actions per MAC below which the count is shown as one action per many MACs."""


@frozen(kw_only=True)
class ArchitecturesAnswer(RunAnswer):
    """A model on hardware of several classes; categories, and actions, sum to the energy of each exactly."""

    asked: Precision
    """Requested precision; hardware without it uses the nearest that it has."""
    rows: Table[ArchitectureSummary]
    """Rows in the order of the hardware, refused ones included."""
    categories: Table[ArchitectureCategory]
    """Rows by hardware, then by category from arithmetic outwards."""
    actions: Table[ArchitectureAction]
    """Rows by hardware, then by energy, largest first."""

    @property
    def answered(self) -> tuple[ArchitectureSummary, ...]:
        """Rows with an energy."""
        return tuple(row for row in self.rows if row.energy_fj is not None)

    @property
    def notes(self) -> tuple[ArchitectureNote, ...]:
        """Known properties of the classes, from literature; not results."""
        return find_notes(tuple(row.architecture for row in self.rows))

    @property
    def has_macs(self) -> bool:
        """True if the model has any MACs."""
        return any(row.mac_count for row in self.rows)

    def name(self, row: ArchitectureSummary) -> str:
        """Return the name of a row: its class, or its hardware if another row has the same class."""
        return row.architecture if len(self._alike(row)) == 1 else self.scope.mark(row.hardware)

    def label(self, row: ArchitectureSummary) -> str:
        """Return the label of a row in tables: its class, numbered if another row has the same class."""
        alike = self._alike(row)
        return row.architecture if len(alike) == 1 else f"{row.architecture} {alike.index(row.run_id) + 1}"

    def _alike(self, row: ArchitectureSummary) -> list[int]:
        """Return the runs with the same class as a row."""
        return [one.run_id for one in self.rows if one.architecture == row.architecture]

    def place(self, row: ArchitectureSummary) -> list[str]:
        """Return sentences that explain the rank of a class on this model."""
        return tell_place(row, self.answered, self.name)

    def contrast(self) -> list[str]:
        """Return sentences that compare the classes."""
        return tell_contrast(self.answered, self.name)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, with the sentences and the notes."""
        return {
            **super().data(),
            "precision_asked": self.asked,
            "contrast": self.contrast(),
            "places": {row.hardware: self.place(row) for row in self.answered},
            "architecture_notes": [attrs.asdict(note) for note in self.notes],
        }

    def document(self, *, by: ClassDivision = "class", limit: int = 4, repeated: Sequence[str] = ()) -> Document:
        """Return the document: all classes with `limit` actions each, or every category or action of each class.

        Machine formats hold every table, csv the rows of the division.
        """
        tables: dict[ClassDivision, Table[Any]] = {
            "class": self.rows,
            "category": self.categories,
            "action": self.actions,
        }
        by_class = [self._class(row, limit) for row in self.answered]
        divided = {
            "class": lambda: by_class,
            "category": lambda: [self._ledger(row) for row in self.answered],
            "action": lambda: [
                Section(self._title(row), self._actions(row, len(self.actions))) for row in self.answered
            ],
        }
        sections = divided[by]()
        whole = show_under("What each class needs", self._figures(), *self.scope.say_left_out())
        first, *insights = self.contrast() or [""]
        return self._compose(
            self.scope.title,
            (whole,) if by == "class" else sections,
            tables[by],
            answer=self.say_order() or f"{first}.",
            insights=[first, *insights],
            heading="What this shows",
            details=(*self._overview(), *sections) if by == "class" else (),
            notes=self.remarks(),
            steps=self._steps(repeated),
        )

    def say_order(self) -> str:
        """Return the classes with the least and the most energy, and the largest part of each."""
        ordered = sorted(self.answered, key=lambda row: (row.energy_fj or 0, row.hardware))
        if len(ordered) < 2:
            return ""
        least, most = ordered[0], ordered[-1]
        ratio = show_plain((most.energy_fj or 0) / (least.energy_fj or 1))
        return (
            f"{self._call(least)} uses the least energy, most of it for {tell_mostly(least)}; {self._call(most)} "
            f"uses {ratio}x as much, most of it for {tell_mostly(most)}."
        )

    def _call(self, row: ArchitectureSummary) -> str:
        return f"{row.architecture} ({self.scope.mark(row.hardware)})"

    def _overview(self) -> tuple[Section, ...]:
        of_one = (
            Section("pJ for one MAC, with all that happens around it", self._prices()),
            Section("What starts MACs, and the bytes read and written for a million of them", self._events()),
        )
        return (Section("What its joules go to", (self._shares(), Text(LEGEND))), *(of_one if self.has_macs else ()))

    def _figures(self) -> Grid:
        of_one = "energy per MAC energy_per_mac_j | " if self.has_macs else ""
        return self._lay(
            attrs.evolve(self.rows, rows=self.answered),
            "class label | hardware | precision! | latency latency_s | "
            f"energy energy_j | {of_one}mostly | of peak compute_utilization_fraction | static static_power_w | node",
            keep="hardware | energy | latency | mostly | energy per MAC | precision | of peak | static | node",
            mostly=tell_mostly,
            node=lambda row: f"{row.process_node_nm:g} nm" if row.process_node_nm else "",
            label=self.label,
        )

    def _shares(self) -> Grid:
        return self._pivot(
            {heading: f"{part}_fraction" for part, heading in HEADINGS.items()} | {"overhead": "overhead_fraction"},
            show_share,
        )

    def _prices(self) -> Grid:
        fields = {heading: f"{part}_per_mac_j" for part, heading in HEADINGS.items()}
        return self._pivot(
            fields | {"all": "energy_per_mac_j"}, lambda value: "" if value is None else show_plain(value * 1e12)
        )

    def _events(self) -> Grid:
        """Return the MACs that one order starts, and the bytes moved per million MACs."""
        fields = {"unit memory": "unit_memory", "chip memory": "chip_memory", "off chip": "off_chip"}
        rows = tuple(
            (
                self.label(row),
                row.order_name or "",
                show_plain(row.macs_per_order),
                *(_million(getattr(row, f"{field}_bytes_per_mac")) for field in fields.values()),
            )
            for row in self.answered
        )
        headings = ("class", "order", "MACs each", *fields)
        return Grid(headings=headings, rows=rows, keep=headings[1:])

    def _pivot(self, fields: dict[str, str], show: Callable[[float | None], str]) -> Grid:
        rows = tuple(
            (self.label(row), *(show(getattr(row, field)) for field in fields.values())) for row in self.answered
        )
        return Grid(headings=("class", *fields), rows=rows, keep=tuple(fields))

    def _title(self, row: ArchitectureSummary) -> str:
        return f"{self.label(row)}: {self.scope.mark(row.hardware)}, {row.precision}"

    def _class(self, row: ArchitectureSummary, limit: int) -> Section:
        """Return a section on one class: its principle, its rank, and its largest actions with their sources."""
        known = [_quote(note) for note in find_notes((row.architecture,)) if note.topic == "principle"]
        return Section(self._title(row), (Lines([*known, *self.place(row)]), *self._actions(row, limit)))

    def _ledger(self, row: ArchitectureSummary) -> Section:
        """Return a section on one class by category: the largest action of each, and the known notes."""
        first = {one.common_category: one for one in self._of(row) if one.category_rank == 1}
        rows = [one for one in self.categories if one.run_id == row.run_id]
        drawn = self._lay(
            attrs.evolve(self.categories, rows=tuple(rows)),
            "category common_category | energy energy_j | share share_fraction | energy per MAC energy_per_mac_j | "
            "largest action action | of kind_count | overhead is_overhead | called categories",
            keep="energy | share | energy per MAC | largest action | overhead | of",
            action=lambda one: name_action(first[one.common_category]) if one.kind_count else "",
        )
        proof = prove("categories", "the run", (sum(one.energy_fj for one in rows), row.energy_fj or 0, "fJ"))
        known = [f"{note.topic}: {_quote(note)}" for note in find_notes((row.architecture,))]
        return Section(self._title(row), (drawn, proof, Lines(known)))

    def _of(self, row: ArchitectureSummary) -> list[ArchitectureAction]:
        return [one for one in self.actions if one.run_id == row.run_id]

    def _actions(self, row: ArchitectureSummary, limit: int) -> tuple[Block, ...]:
        """Return the largest actions of a run, and the sources of their prices."""
        shown = self._of(row)[:limit]
        count, energy = "count per MAC", "energy per MAC energy_per_mac_j"
        if not self.has_macs:
            count, energy = "count", "energy energy_j"
        drawn = self._lay(
            attrs.evolve(self.actions, rows=tuple(shown)),
            f"action | {count} count | price | {energy} | share share_fraction | basis | per",
            keep=f"{energy.rpartition(' ')[0]} | {count} | price | share | basis",
            action=name_action,
            count=_count if self.has_macs else lambda one: show_amount(one.action_count, one.per),
            price=lambda one: show_price(one.energy_per_action_j, one.per),
        ).out_of(len(self._of(row)), len(shown), "actions")
        sources: dict[str, list[str]] = {}
        for one in shown:
            sources.setdefault(one.source, []).append(name_action(one))
        return drawn, Lines(f"{', '.join(names)}: {source}" for source, names in sources.items())

    def remarks(self) -> list[str]:
        """Return notes on these rows."""
        lines = []
        if self.asked == COMMON_PRECISION:
            lines.append(
                f"{self.asked} is the one precision that hardware of every class has; --precision takes others"
            )
        lines += [
            f"{self.scope.mark(row.hardware)} has no {self.asked}, so it is shown in {row.precision}"
            for row in self.rows
            if row.precision != self.asked
        ]
        lines += self.scope.describe_refusals()
        lines += describe_clock(self.answered, self.scope)
        lines.append("chips differ in size and process node too: a difference is one of these chips on this model")
        for row in self.answered:
            lines += describe_recalled(row.recalled_energy_fraction, self.scope.mark(row.hardware))
        return lines + self.scope.describe()

    def _steps(self, repeated: Sequence[str]) -> list[list[str]]:
        model, ordered = self.scope.model, sorted(self.answered, key=lambda row: (row.energy_fj or 0, row.hardware))
        least, most = ordered[0], ordered[-1]
        steps = [["analyze", model, self.scope.spell(most.hardware), *spell_precision(most.precision), *repeated]]
        if least.precision == most.precision and least is not most:
            pair = [self.scope.spell(row.hardware) for row in (most, least)]
            steps.append(["explain", model, *pair, *spell_precision(most.precision), *repeated])
        if "--batch" not in repeated and "--input" not in repeated:
            precision = [] if self.asked == COMMON_PRECISION else ["--precision", self.asked]
            stored = (split_precision(row.precision)[1] for row in self.answered)
            weights = ",".join(dict.fromkeys(filter(None, stored)))
            precision += ["--weight-precision", weights] if weights else []
            hardware = [self.scope.spell(row.hardware) for row in self.rows]
            chosen = [] if hardware == list(CLASS_HARDWARE.values()) else ["--hardware", ",".join(hardware)]
            steps.append(["architectures", model, *chosen, *precision, "--batch", "64", *repeated])
        return steps


def _million(count: float | None) -> str:
    """Return the bytes per million MACs, given the bytes per MAC."""
    return "" if count is None else show_quantity(count * 1e6, "B")


def _count(row: ArchitectureAction) -> str:
    """Return the count of an action per MAC; as one per many MACs if it is rare."""
    count, unit = row.count_per_mac, " B" if row.per == "B" else ""
    if not count:
        return ""
    if row.per == "s":
        return show_quantity(count, "s")
    return f"{count:.3g}{unit}" if count >= OFTEN else f"1{unit} / {show_quantity(1.0 / count, '')}"


def _quote(note: ArchitectureNote) -> str:
    return f"{note.text} [{note.source}]"
