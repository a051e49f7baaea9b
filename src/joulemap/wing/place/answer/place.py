"""Answer of a placement: the best placement, each device alone, and why a mixture of devices wins or loses."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.base import Answer
from joulemap.ask.fact import Facts
from joulemap.catalog.digest import is_hardware_path
from joulemap.catalog.error_scale import load_doubt
from joulemap.domain.computed import make_table
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.physics.record.weight import label_precision, spell_precision
from joulemap.plan.reader import reading
from joulemap.plan.source import Source
from joulemap.show.caveat import describe_trust, list_notes
from joulemap.show.layout import head_assumed, show_assumed
from joulemap.show.page import Figures
from joulemap.show.plain import list_facts
from joulemap.show.present.cell import show_chance
from joulemap.show.present.document import Document, Section
from joulemap.show.present.template import Template, join_clauses
from joulemap.store.query import fetch, fetch_none
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.wing.place.answer.row import (
    DeviceRow,
    EventRow,
    PlacementRow,
    SubgraphRow,
    form_row,
    list_devices,
    list_subgraphs,
    list_timeline,
)
from joulemap.wing.place.ask import find_facts
from joulemap.wing.place.box.solve import has_solver
from joulemap.wing.place.generated.row import DoubtedDevice, PlacedLine, PlacementDifference
from joulemap.wing.place.record import BUDGET, Goal
from joulemap.wing.place.show import BOX_POWER, SOLVER, describe_answer, list_reasons

if TYPE_CHECKING:
    from joulemap.ask.check import Checks
    from joulemap.wing.place.box.candidate import Candidate
    from joulemap.wing.place.box.member import Member

PLACED_TITLE: Final = Template("{model}, batch {batch}, {precisions:and}, {runtime}, on {box}[ ({chips:list})]")
CHIP: Final = Template("{device}: {chip}")
COLUMNS: Final = Template(
    "placement | *form | *latency {latency} | *throughput {throughput} | tokens/s #tokens_per_s? | "
    "*energy per sample {energy} | {assumed}probability that the best is better worse_probability | "
    "power average_power_w | copy time copy_s | limited by limit | *refused refusal?"
)
GOALS: Final = {
    "latency": ("latency_s", "latency_half_width"),
    "throughput": ("throughput_per_s", "throughput_half_width"),
    "energy": ("energy_per_inference_j", "energy_half_width"),
}
"""Goal -> (column of a placement with the goal's quantity, column with its half-width)."""

DEVICE_COLUMNS: Final = (
    "device | hardware | precision | subgraphs subgraph_count | busy time busy_s | busy share busy_fraction | "
    "memory share memory_fraction | energy energy_j"
)
_BY_LATENCY: Final = (
    "subgraph subgraph_index | operations | device | latency latency_s | next best device other | latency there other_s"
)
SUBGRAPH_COLUMNS: Final = {
    "latency": _BY_LATENCY,
    "throughput": _BY_LATENCY,
    "energy": "subgraph subgraph_index | operations | device | energy energy_j | next best device other | "
    "energy there other_j",
}
"""Goal -> columns of the table of subgraphs, by which they are laid out."""

DIFFERENCES: Final = "Energy of the best mixture minus energy of the best device alone"
DIFFERENCE_COLUMNS: Final = "device | component | action | alone first_j | mixture second_j | difference difference_j"
DIFFERENCE: Final = Template("{difference_j:+J}")
ANALYZE: Final = Template("joulemap analyze {model} {hardware}")

PLACED: Final = Settings(precision=("fp16",), runtime=("engine",))
"""Default settings of a placement."""

LEAST_GAP: Final = 0.005
"""Smallest possible improvement that the answer mentions, as a fraction."""

DECODING: Final = ("decode", "experts")
"""Kinds of work whose GEMMs have one row per token."""


@frozen(kw_only=True)
class PlaceAnswer(Answer):
    """Placements of one model on one box, ranked by a goal."""

    about = ("model", "box", "goal", "batch", "precisions", "runtime", "why")

    model: str
    box: str
    goal: Goal
    batch: int
    precisions: tuple[str, ...]
    """Distinct precisions of the devices."""
    runtime: str
    rows: Table[PlacementRow]
    """Placements, best first."""
    devices: Table[DeviceRow]
    subgraphs: Table[SubgraphRow]
    ledger: Table[PlacedLine]
    """Ledger of the best placement; empty if devices work side by side."""
    timeline: Table[EventRow]
    """Events of the best placement; if one device alone is best, also those of the best mixture."""
    differences: Table[PlacementDifference]
    """Energy difference of the best device alone (first) and the best mixture (second); empty if either is missing."""
    facts: Facts
    """Decision, rows and caveats, from which all sentences are made."""
    files: Mapping[str, str] = attrs.field(factory=dict)
    """Device -> its hardware file and power mode, for devices that a file describes."""
    chips: Mapping[str, str] = attrs.field(factory=dict)
    """Device -> id of its chip, for devices that have another name."""
    gap: tuple[str, float] | None = None
    """Form of a placement that was not examined, and the share that it could save."""

    @property
    def best(self) -> PlacementRow:
        """Best placement for the goal."""
        return self.rows[0]

    @property
    def why(self) -> str:
        """Explanation of the result: the lead of the best placement, and the copies of the best mixture."""
        return join_clauses((describe_answer(self.facts), *list_reasons(self.facts)))

    def find_checks(self) -> Checks:
        """Return the commands that measure the whole model on each device that runs a part.

        No common tool measures a model that is divided over devices.
        """
        from joulemap.ask.check import PairedRun, check_runs

        busy = [row for row in self.devices if row.subgraph_count]
        return check_runs(
            self.model, [PairedRun(row.hardware, row.precision, self.batch, self.runtime) for row in busy]
        )

    def title(self) -> str:
        """Return the title: model, batch, precisions, runtime and box."""
        return PLACED_TITLE(self, chips=[CHIP(device=name, chip=chip) for name, chip in self.chips.items()])

    def figures(self) -> Figures:
        """Return figures of the placements, their timelines and their energy difference."""
        from joulemap.wing.place.answer.figure import draw

        return draw(self.title(), self.why, self.rows, self.timeline, self.differences)

    def document(self, *, limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` rows in each table of details."""
        fields = {goal: ":".join(names) if goal == self.goal else names[0] for goal, names in GOALS.items()}
        rows = self._lay(
            self.rows,
            COLUMNS(assumed=head_assumed(row.assumed for row in self.rows), **fields),
            assumed_energy_fraction=lambda row: show_assumed(row.assumed),
            worse_probability=lambda row: show_chance(row.worse_probability),
        )
        devices = self._lay(self.devices, DEVICE_COLUMNS)
        subgraphs = self._lay(self.subgraphs, SUBGRAPH_COLUMNS[self.goal], limit=limit)
        differences = self._lay(self.differences, DIFFERENCE_COLUMNS, limit=limit, difference_j=DIFFERENCE)
        answer, sure = describe_answer(self.facts), describe_trust(self.facts)
        return Document(
            title=self.title(),
            answer=answer,
            sections=(Section("", rows),),
            is_decision=True,
            insights=tuple(list_reasons(self.facts)),
            details=(
                Section("Devices of the best placement", devices),
                Section("Subgraphs", subgraphs),
                Section(DIFFERENCES, differences),
            ),
            notes=(BOX_POWER, *list_notes(self.facts), *self._describe_solver()),
            sure=sure,
            steps=self._list_steps(repeated),
            data={**self.data(), "answer": answer, "how_sure": sure, **list_facts(self.facts)},
            table=self.rows,
            tables=self.tables,
        )

    def _describe_solver(self) -> list[str]:
        """Return a note on the package that searches further, if the search was not complete."""
        return [] if has_solver() or self.gap is None else [SOLVER]

    def _list_steps(self, repeated: Sequence[str]) -> tuple[str, ...]:
        """Return commands that analyze the whole model on each device that runs a part, busiest first."""
        busy = sorted((row for row in self.devices if row.subgraph_count), key=lambda row: -row.busy_s)
        steps = [
            [
                *ANALYZE.words(model=self.model, hardware=self.files.get(row.device, row.hardware)),
                *spell_precision(row.precision),
                *repeated,
            ]
            for row in busy
        ]
        return tuple(dict.fromkeys(map(shlex.join, steps)))


def find_gap(candidates: Sequence[Candidate], goal: Goal) -> tuple[str, float] | None:
    """Return the form of a placement that was not examined and the share that it could save; None below `LEAST_GAP`."""
    gaps = [
        (1.0 - one.value(goal) / candidates[0].value(goal) * (1.0 - one.gap), one.form)
        for one in candidates
        if one.gap and one.limit != BUDGET
    ]
    share, form = max(gaps, default=(0.0, ""))
    return (form, share) if share > LEAST_GAP else None


def _take_published(model: str, settings: Settings) -> Settings:
    """Return settings with the precisions of a model's file, unless a precision is stated."""
    from joulemap.plan.model_name import find_precisions

    own = find_precisions(model)
    if own is None or settings.states_precision or settings.weight_precision or settings.precision != PLACED.precision:
        return settings
    return attrs.evolve(settings, precision=own[0][:1], weight_precision=own[1])


def place(
    source: Source,
    model: str,
    box: str = "",
    *,
    settings: Settings = PLACED,
    on: Sequence[str] = (),
    links: Sequence[str] = (),
    goal: Goal = "latency",
) -> PlaceAnswer:
    """Return the best placement of a model's subgraphs on the devices of a box, compared with each device alone.

    The box is a catalogue name, a file, or made of the devices `on` and `links`. Raises UsageError for an invalid box
    or link, UnsupportedError for an operator that no device runs, ModelError for a model that cannot be traced.
    """
    from joulemap.plan.workload import find_model, opening_workload, stored_key
    from joulemap.store.workload import find_work, read_columns
    from joulemap.wing.place.box.candidate import list_candidates, list_refusals
    from joulemap.wing.place.box.interval import compare, doubt_placement
    from joulemap.wing.place.box.problem import build_problem
    from joulemap.wing.place.plan import PlacedQuestion, ensure_placements
    from joulemap.wing.place.record import GOALS
    from joulemap.wing.place.target import find_hardware, find_members, read_box

    check_name("goal", goal, GOALS)
    for values, what in ((settings.precision, "precision"), (settings.runtime, "runtime"), (settings.batch, "batch")):
        if len(values) != 1 and (values or what != "batch"):
            raise UsageError(f"a placement needs one {what}, found {len(values)}")
    described = read_box(
        box, on, links, lambda names: [chip for *_, chip in find_hardware(source, model, names, settings)]
    )
    settings = _take_published(model, settings)
    batch = settings.batch[0] if settings.batch else None
    asked = find_model(model, settings, batch)
    with opening_workload(source, asked) as (workload_id, connection):
        work, key = read_columns(connection, workload_id), stored_key(connection, asked) or ""
        kind, product_rows = find_work(connection, workload_id)
    members = find_members(source, model, described, settings, work.batch)
    problem = build_problem(work, described, members)
    candidates = sorted(list_candidates(problem, goal), key=lambda one: one.value(goal))
    if candidates[0].refusal:
        raise UnsupportedError(
            f"{model} does not run on {described.id}: {list_refusals(candidates)}",
            code="no_placement",
            hardware=described.id,
            placements=tuple(one.label for one in candidates),
        )
    known = _read_doubts(source, members, kind)
    doubts = {one.name: doubt_placement(one, load_doubt(), known) for one in candidates if not one.refusal}
    question = PlacedQuestion(
        workload_key=key,
        model=model,
        goal=goal,
        settings=settings,
        problem=problem,
        known=known,
        doubts=doubts,
    )
    ids, gap = ensure_placements(source, question, candidates), find_gap(candidates, goal)
    tokens = product_rows if kind in DECODING else 0.0
    rows = []
    for one in candidates:
        doubt, worse = doubts.get(one.name), None
        if one is not candidates[0] and doubt is not None:
            worse = compare(candidates[0], one, [doubts[candidates[0].name], doubt], goal)
        rows.append(form_row(one, candidates[0], work.batch, doubt=doubt, tokens=tokens, worse=worse))
    return PlaceAnswer(
        model=model,
        box=described.id,
        goal=goal,
        batch=work.batch,
        precisions=tuple(
            dict.fromkeys(
                label_precision(one.precision, one.weight_precision or one.precision)
                for one in (member.configuration for member in members)
            )
        ),
        runtime=members[0].configuration.runtime,
        rows=make_table("placements", PlacementRow, rows),
        facts=find_facts(rows, [one.refusal for one in candidates], goal, gap),
        devices=make_table("devices", DeviceRow, list_devices(candidates[0].run, overlaps=goal == "throughput")),
        subgraphs=make_table("subgraphs", SubgraphRow, list_subgraphs(candidates[0].run, goal)),
        timeline=make_table("timeline", EventRow, list_timeline(candidates)),
        **_read_stored(source, candidates, ids),
        files={
            one.name: one.device.hardware
            for one in members
            if is_hardware_path(HardwareRef.read(one.device.hardware).label)
        },
        gap=gap,
        chips={one.name: one.configuration.hardware for one in members if one.name != one.configuration.hardware},
    )


def _read_doubts(source: Source, members: Sequence[Member], kind: str) -> Sequence[DoubtedDevice]:
    """Return the prediction errors of this kind of work on each device."""
    with reading(source) as connection:
        return fetch(
            connection,
            DoubtedDevice,
            work=kind,
            hardware=[one.configuration.hardware for one in members],
            architectures=[one.hardware.architecture for one in members],
            precisions=[one.configuration.precision for one in members],
            calibrations=[one.calibration_digest for one in members],
            runtime=members[0].configuration.runtime,
        ).rows


def _read_stored(source: Source, candidates: Sequence[Candidate], ids: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return two fields of the answer: the ledger of the best placement and the best mixture's energy differences."""
    run = [one for one in candidates if one.run is not None]
    alone, mixed = (
        next((ids[one.name] for one in run if (one.form == "alone") is is_alone), 0) for is_alone in (True, False)
    )
    best = ids.get(candidates[0].name, 0)
    with reading(source) as connection:
        return {
            "ledger": fetch(connection, PlacedLine, placement=best),
            "differences": (fetch if alone and mixed else fetch_none)(
                connection, PlacementDifference, first=alone, second=mixed
            ),
        }
