"""Contrast of architecture classes on one model: which uses the least energy, and why.

class ─► representative hardware ─► a precision that it has ─► run ─► ledger, by category and action
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from joulemap.ask.answer import RunAnswer, fetch_tables
from joulemap.ask.cause import find_causes
from joulemap.ask.decision import decide
from joulemap.ask.fact import Entry, Facts, Quantity
from joulemap.ask.scope import Scope
from joulemap.ask.standing import choose_each, find_own_caveats, rank, read_value
from joulemap.catalog.sheet import find_notes
from joulemap.domain.architecture import CLASS_HARDWARE, COMMON_PRECISION
from joulemap.domain.catalogue import ArchitectureNote
from joulemap.domain.settings import Settings
from joulemap.domain.table import Table, group
from joulemap.generated.architectures import ArchitectureAction, ArchitectureCategory, ArchitectureSummary
from joulemap.generated.compare import Standing
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.weight import keep_narrower
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.run import Plan, plan_selected
from joulemap.plan.selection import find_unplugged, select_hardware
from joulemap.plan.source import Source
from joulemap.plan.stored_runs import StoredRun, opening_plans
from joulemap.system.record import frozen

PARTS: Final = (
    "compute", "register", "on_chip_memory", "interconnect", "off_chip_memory", "control", "board",
    "unattributed", "static",
)  # fmt: skip
"""Parts of the energy, ordered from arithmetic outwards."""

ENERGY: Final = "energy"

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
    """Class with the least energy, causes of its lead, rows and caveats, from which sentences are made."""

    @property
    def answered(self) -> Table[ArchitectureSummary]:
        """Rows of runs that were not refused."""
        return self.rows.with_rows(row for row in self.rows if row.energy_fj is not None)

    @property
    def ordered(self) -> list[ArchitectureSummary]:
        """Rows of runs that were not refused, lowest energy first."""
        return sorted(self.answered, key=lambda row: (row.energy_fj or 0, row.hardware))

    @property
    def notes(self) -> tuple[ArchitectureNote, ...]:
        """Known properties of the classes from literature; they are not results."""
        return find_notes(tuple(row.architecture for row in self.rows))

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats, including the notes that people see."""
        notes = [attrs.asdict(note) for note in self.notes]
        return {**super().data(), "precision_asked": self.asked, "architecture_notes": notes}


def find_facts(scope: Scope, rows: Sequence[ArchitectureSummary]) -> Facts:
    """Return the facts of a contrast: the class with the least energy, one of unavailable hardware with less, causes of
    the gap between the pair of the decision, a row per class, and caveats.
    """
    standings = rank(scope, ENERGY)
    choices = choose_each(scope, standings)
    summaries = {row.run_id: row for row in rows}
    subjects = scope.subjects({})
    pair = decide(choices, subjects).runs
    return Facts(
        asked=(ENERGY,),
        runs={
            run_id: attrs.evolve(one, architecture=scope.outlines[run_id].architecture)
            for run_id, one in subjects.items()
        },
        facts=(
            *choices,
            *(find_causes(scope, (pair[0], pair[1]), ENERGY) if len(pair) > 1 else ()),
            *(_enter(row, summaries[row.run_id]) for row in standings),
            *find_own_caveats(scope, choices[:1], ENERGY),
        ),
    )


def find_share(row: ArchitectureSummary, part: str) -> float:
    """Return a part's share of the energy (0 to 1); 0 for a refused run."""
    return getattr(row, f"{part}_fraction") or 0.0


def find_largest(row: ArchitectureSummary) -> str:
    """Return the part of a run with the most energy."""
    return max(PARTS, key=lambda part: find_share(row, part))


def _enter(row: Standing, summary: ArchitectureSummary) -> Entry:
    """Return the energy of a run, that of computing per MAC, and the architectural overhead over that of computing."""
    own = {
        "compute_per_mac": None if not summary.mac_count else summary.compute_per_mac_j,
        "overhead": summary.overhead_ratio,
    }
    units = {"compute_per_mac": "J", "overhead": ""}
    values = {name: Quantity(value, units[name]) for name, value in own.items() if value is not None}
    return Entry(runs=(row.run_id,), values={ENERGY: read_value(row), **values})


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
    groups = group(whole.selection.pairs, lambda pair: pair[0].nearest_precision(asked))
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
