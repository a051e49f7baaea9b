"""Answer of a placement: the best one, each device alone, and why a mixture of devices wins or loses."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.answer.answer import Answer, Figures
from joulemap.answer.assumed import describe_assumed, head_assumed, show_assumed
from joulemap.answer.computed import make_table
from joulemap.catalog.doubt import load_doubt
from joulemap.domain.box import BUDGET, Goal
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.domain.weight import spell_precision
from joulemap.plan.source import Source, reading
from joulemap.present.cell import join_names, show_chance, show_share, show_signed
from joulemap.present.document import Document, Section
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
from joulemap.wing.place.answer.sentence import WORDS, explain
from joulemap.wing.place.box.solve import has_solver
from joulemap.wing.place.row import DoubtedDevice, PlacedLine, PlacementDifference

if TYPE_CHECKING:
    from joulemap.wing.place.box.candidate import Candidate
    from joulemap.wing.place.box.doubt import DeviceDoubt
    from joulemap.wing.place.box.member import Member

PLACED: Final = Settings(precision=("fp16",), runtime=("engine",))
"""Default settings of a placement."""

NOTES: Final = (
    "alone: the whole model on one device, the others idle; split: each subgraph on one of several devices, "
    "in turn or with branches at once; pipeline: batches follow each other through the devices; side by side: "
    "each device takes whole batches",
    "energies cover the whole box: a device with a part draws static power, the others draw idle power; "
    "copies between devices and their conversions are lines of the ledger",
    "a split is chosen from each device's cost per subgraph in a run of the whole model; its parts are then "
    "evaluated by themselves, and the table shows those results",
)

GAP_TOLD: Final = 0.005
"""Minimum share of improvement still possible that the answer reports."""

SOLVER: Final = " (the extra `solver` searches further: pip install 'joulemap[solver]')"

DECODING: Final = ("decode", "experts")
"""Kinds of work whose products have one row per token."""

OF_GOAL: Final = {"latency": "latency", "throughput": "rate", "energy": "energy"}
WIDTHS: Final = {name: f"{name}_half_width" for name in OF_GOAL}
"""Goal -> column of its half-width."""


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
    """Ledger of the best placement; empty where devices work side by side."""
    timeline: Table[EventRow]
    """Events of the best placement, and of the best mixture where one device alone is best."""
    differences: Table[PlacementDifference]
    """Energy of the best device alone (first) against the best mixture (second); empty without both."""
    why: str

    @property
    def best(self) -> PlacementRow:
        """Best placement for the goal."""
        return self.rows[0]

    def title(self) -> str:
        """Return the title: model, batch, precisions, runtime and box."""
        how = f"{join_names(list(self.precisions))}, {self.runtime}"
        return f"{self.model}, batch {self.batch}, {how}, on {self.box}"

    def figures(self) -> Figures:
        """Return figures of the placements, their timelines and their energy difference."""
        from joulemap.wing.place.answer.figure import draw

        return draw(self.title(), self.why, self.rows, self.timeline, self.differences)

    def document(self, *, limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return the document with at most `limit` rows in each table of details."""
        assumed = head_assumed(row.assumed for row in self.rows)
        rows = self._lay(
            self.rows,
            "placement | *form | *latency latency_s | *a second throughput_per_s | tokens/s #tokens_per_s? | "
            f"*energy energy_per_inference_j | {assumed}"
            f"80 % of {OF_GOAL[self.goal]} ±{WIDTHS[self.goal]} | "
            "best is better worse_probability | power average_power_w | copies copy_s | waits for limit | "
            "*refused refusal?",
            assumed_energy_fraction=lambda row: show_assumed(row.assumed),
            worse_probability=lambda row: show_chance(row.worse_probability),
        )
        devices = self._lay(
            self.devices,
            "device | hardware | precision | subgraphs subgraph_count | busy busy_s | of the time busy_fraction | "
            "memory memory_fraction | energy energy_j",
        )
        subgraphs = self._lay(
            self.subgraphs,
            "subgraph subgraph_index | operations | device | takes latency_s | next best other | there other_s",
            limit=limit,
        )
        differences = self._lay(
            self.differences,
            "device | component | action | alone first_j | mixture second_j | difference difference_j",
            limit=limit,
            difference_j=lambda row: show_signed(row.difference_j, "J"),
        )
        best = self.best
        answer = f"{best.placement}, {best.form}, is best for {self.goal}"
        if share := describe_assumed(answer, {} if best.assumed is None else {best.placement: [best.assumed]}):
            answer += f". {share}."
        return Document(
            title=self.title(),
            answer=answer,
            sections=(Section("", rows),),
            insights=(self.why,),
            details=(
                Section("Devices of the best placement", devices),
                Section("Subgraphs", subgraphs),
                Section("Energy difference: mixture minus best device alone", differences),
            ),
            notes=NOTES,
            sure="; ".join(filter(None, (self._describe_odds(), self._describe_gap()))),
            steps=self._list_steps(repeated),
            data=self.data(),
            table=self.rows,
            tables=self.tables,
        )

    def _describe_odds(self) -> str:
        """Return the probability that the best placement beats the best device alone, or its statistical ties."""
        rivals = [row for row in self.rows if row.worse_probability is not None]
        close = [f"{row.placement} ({row.form})" for row in rivals if (row.worse_probability or 0.0) < TOLD_APART]
        if close:
            return f"statistically tied with {join_names(close)}"
        alone = next((row for row in rivals if row.form == "alone"), None)
        if alone is None:
            return ""
        return f"{show_chance(alone.worse_probability)} chance that it beats {alone.placement} alone"

    def _describe_gap(self) -> str:
        """Return how much better an unexamined placement could be; empty below `GAP_TOLD`."""
        if self.best.limit == BUDGET:
            return "the power budget sets the rate; placements that draw less were not searched"
        value = {"latency": "latency_s", "throughput": "throughput_per_s", "energy": "energy_j"}[self.goal]
        told, most = "", GAP_TOLD
        for row in self.rows:
            if not row.gap_fraction or row.limit == BUDGET:
                continue
            ratio = getattr(row, value) / getattr(self.best, value)
            least = (ratio if self.goal != "throughput" else 1.0 / ratio) * (1.0 - row.gap_fraction)
            if 1.0 - least > most:
                most = 1.0 - least
                told = f"an unexamined {row.form} could save at most {show_share(most)} of the {WORDS[self.goal]}"
        return f"{told}{SOLVER if told and not has_solver() else ''}"

    def _list_steps(self, repeated: Sequence[str]) -> tuple[str, ...]:
        """Return commands that analyze the whole model on each device with a part, busiest first."""
        busy = sorted((row for row in self.devices if row.subgraph_count), key=lambda row: -row.busy_s)
        told = [[self.model, row.hardware, *spell_precision(row.precision), *repeated] for row in busy]
        return tuple(dict.fromkeys(shlex.join(["joulemap", "analyze", *words]) for words in told))


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
    """Return the best placement of a model's subgraphs on the devices of a box, beside each device alone.

    The box is a catalogue name, a file, or made of the devices `on` and `links`. Raises UsageError for an invalid box
    or link, UnsupportedError for an operator that no device runs, ModelError for a model that cannot be traced.
    """
    from joulemap.domain.box import GOALS
    from joulemap.plan.workload import find_model, holding_workload, stored_key
    from joulemap.store.workload import find_work, read_columns
    from joulemap.wing.place.box.candidate import list_candidates
    from joulemap.wing.place.box.doubt import compare, doubt_placement
    from joulemap.wing.place.box.member import find_ways
    from joulemap.wing.place.box.problem import pose
    from joulemap.wing.place.plan import PlacedQuestion, ensure_placements
    from joulemap.wing.place.target import find_hardware, find_members, read_box

    check_name("goal", goal, GOALS)
    for values, what in ((settings.precision, "precision"), (settings.runtime, "runtime")):
        if len(values) != 1:
            raise UsageError(f"name one {what} to place a model at, found {len(values)}")
    if len(settings.batch) > 1:
        raise UsageError(f"name one batch to place a model at, found {len(settings.batch)}")
    described = read_box(box, on, links)
    if on:
        named = find_hardware(source, model, [device.hardware for device in described.devices], settings)
        described = read_box(box, on, links, [hardware for *_, hardware in named])
    batch = settings.batch[0] if settings.batch else None
    asked = find_model(model, settings, batch)
    with holding_workload(source, asked) as (workload_id, connection):
        work, key = read_columns(connection, workload_id), stored_key(connection, asked) or ""
        sort, product_rows = find_work(connection, workload_id)
    members = find_members(source, model, described, settings, work.batch)
    problem = pose(work, members, find_ways(described, members))
    found = sorted(list_candidates(problem, described, goal), key=lambda one: one.value(goal))
    if found[0].refusal:
        told_all = "; ".join(f"{one.label}: {one.refusal}" for one in found)
        raise UnsupportedError(f"{model} does not run on {described.id}: {told_all}")
    known = _read_doubts(source, members, sort)
    doubts = {
        (one.label, one.form): doubt_placement(problem, one, load_doubt(), known) for one in found if not one.refusal
    }
    question = PlacedQuestion(
        workload_key=key,
        model=model,
        box=described,
        goal=goal,
        settings=settings,
        problem=problem,
        known=known,
        doubts=doubts,
    )
    ids = ensure_placements(source, question, found)
    tokens = product_rows if sort in DECODING else 0.0
    rows = []
    for one in found:
        doubt, worse = doubts.get((one.label, one.form)), None
        if one is not found[0] and doubt is not None:
            worse = compare(found[0], one, [doubts[found[0].label, found[0].form], doubt], goal)
        rows.append(form_row(problem, one, found[0], work.batch, doubt=doubt, tokens=tokens, worse=worse))
    return PlaceAnswer(
        model=model,
        box=described.id,
        goal=goal,
        batch=work.batch,
        precisions=tuple(dict.fromkeys(one.configuration.precision for one in members)),
        runtime=members[0].configuration.runtime,
        rows=make_table("placements", PlacementRow, rows),
        devices=make_table("devices", DeviceRow, list_devices(problem, found[0].run)),
        subgraphs=make_table("subgraphs", SubgraphRow, list_subgraphs(problem, found[0].run)),
        timeline=make_table("timeline", EventRow, list_timeline(problem, found)),
        **_read_stored(source, found, ids),
        why=explain(found, goal),
    )


def _read_doubts(source: Source, members: Sequence[Member], sort: str) -> list[DeviceDoubt]:
    """Return the prediction errors of this kind of work on each device."""
    from joulemap.wing.place.box.doubt import DeviceDoubt

    with reading(source) as connection:
        rows = fetch(
            connection,
            DoubtedDevice,
            work=sort,
            hardware=[one.configuration.hardware for one in members],
            architectures=[one.hardware.architecture for one in members],
            precisions=[one.configuration.precision for one in members],
            calibrations=[one.calibration_digest for one in members],
            runtime=members[0].configuration.runtime,
        )
    return [
        DeviceDoubt(
            latency=row.latency_half_width,
            left_out_energy=row.left_out_energy_half_width,
            energy=row.energy_half_width,
            group_count=row.energy_group_count,
        )
        for row in rows
    ]


def _read_stored(source: Source, found: Sequence[Candidate], ids: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return the ledger of the best placement and the energy differences of the best mixture, by field."""
    run = [one for one in found if one.run is not None]
    alone, mixed = (
        next((ids[one.label, one.form] for one in run if (one.form == "alone") is is_alone), 0)
        for is_alone in (True, False)
    )
    best = ids.get((found[0].label, found[0].form), 0)
    with reading(source) as connection:
        return {
            "ledger": fetch(connection, PlacedLine, placement=best),
            "differences": (fetch if alone and mixed else fetch_none)(
                connection, PlacementDifference, first=alone, second=mixed
            ),
        }
