"""A model over the devices of a box: the best placement, each device alone, and why the mixture wins or does not."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.answer.answer import Answer, Figures
from joulemap.answer.computed import make_table, told
from joulemap.answer.explain.waterfall import draw_steps, form_steps
from joulemap.answer.scope import TIE_RATIO
from joulemap.answer.timeline import EventRow, list_events, list_operations
from joulemap.domain.box import Goal
from joulemap.domain.settings import Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.selection import name_pair
from joulemap.plan.source import Source, reading
from joulemap.present.cell import show_count, show_quantity, show_share, show_signed
from joulemap.present.document import Document, Section, grid
from joulemap.row.place import PlacedLine, PlacementDifference
from joulemap.store.query import fetch, fetch_none
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.record import frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

if TYPE_CHECKING:
    from joulemap.box.candidate import Candidate
    from joulemap.box.problem import Problem
    from joulemap.box.run import PlacedRun

PLACED: Final = Settings(precision=("fp16",), runtime=("engine",))
"""What a model is placed at."""

NOTES: Final = (
    "alone: the whole model on one device, the others idle; split: devices take turns, each subgraph on one of them; "
    "pipeline: batches follow each other through them; side by side: each takes whole batches of its own",
    "energies are of the box: every device draws static power while it has a part, and idle power while it has none; "
    "copies between devices and what is converted on the way are lines of the ledger",
    "a split is the best by what each device takes for each subgraph in a run of all that it runs; it is then run "
    "in its parts, which is what is shown",
)

GAP_TOLD: Final = 0.005
"""Share that a placement could be better from which it is told."""


@frozen(kw_only=True)
class PlacementRow:
    """A way to run the model on the box."""

    placement: str = told("devices that have a part")
    form: str = told("alone, split, pipeline or side by side")
    is_best: bool = told("whether it is the best for the goal")
    latency_s: float | None = told("of a batch by itself; none where it is refused", "s")
    throughput_per_s: float | None = told("samples, batch after batch", "1/s")
    energy_j: float | None = told("of a batch, the whole box", "J")
    energy_per_inference_j: float | None = told("of a sample, the whole box", "J")
    average_power_w: float | None = told("of the whole box, batch after batch", "W")
    copy_s: float | None = told("of a batch, between devices", "s")
    copied_bytes: float | None = told("of a batch, between devices", "B")
    copy_count: int | None = told("values that one device hands another, of a batch")
    limit: str = told("what the time between batches is")
    gap_fraction: float | None = told("that a placement which was not looked at could save at most", "1")
    refusal: str = told("why it cannot be; empty where it can")


@frozen(kw_only=True)
class DeviceRow:
    """What a device of the box has of the best placement."""

    device: str = told("name in the box")
    hardware: str = told("catalogue id, with @MODE where the power mode is not the default")
    precision: str = told("that it computes at")
    subgraph_count: int = told("that it runs")
    busy_s: float = told("of a batch", "s")
    busy_fraction: float = told("of the time that a batch takes the box", "1")
    weight_bytes: int = told("that its memory holds", "B")
    activation_bytes: int = told("most that are alive at a time", "B")
    memory_fraction: float = told("of its memory", "1")
    energy_j: float = told("of a batch, its static and idle power included", "J")


@frozen(kw_only=True)
class SubgraphRow:
    """Where a subgraph runs."""

    subgraph_index: int = told("in the model")
    operations: str = told("what it computes")
    device: str = told("that runs it")
    latency_s: float = told("there", "s")
    other: str = told("the device that would take least time of the others; empty where none runs it")
    other_s: float | None = told("what that takes", "s")


@frozen(kw_only=True)
class PlaceAnswer(Answer):
    """A model placed on a box."""

    model: str
    box: str
    goal: Goal
    batch: int
    rows: Table[PlacementRow]
    """Placements, the best first."""
    devices: Table[DeviceRow]
    subgraphs: Table[SubgraphRow]
    ledger: Table[PlacedLine]
    """Of the best; empty where devices work side by side."""
    timeline: Table[EventRow]
    """Of the best, and of the best mixture where a device alone is best."""
    differences: Table[PlacementDifference]
    """What the best device alone spends, as the first, and the best mixture as the second; empty without both."""
    why: str

    @property
    def best(self) -> PlacementRow:
        """The best for the goal."""
        return self.rows[0]

    def data(self) -> dict[str, Any]:
        """Return what programs get."""
        asked = {"model": self.model, "box": self.box, "goal": self.goal, "batch": self.batch, "why": self.why}
        return {**asked, **super().data()}

    def title(self) -> str:
        """Return what was asked about."""
        return f"{self.model}, batch {self.batch}, on {self.box}"

    def figures(self) -> Figures:
        """Return the placements beside each other, which part runs where and when, and the difference of the two."""
        from joulemap.figure.figure import make_figure

        drawn = [make_figure("placement", self.rows, self.title(), self.why)]
        for way in dict.fromkeys((row.placement, row.form) for row in self.timeline):
            events = tuple(row for row in self.timeline if (row.placement, row.form) == way)
            told = attrs.evolve(self.timeline, rows=events)
            drawn.append(make_figure("timeline", told, f"{self.title()}: {', '.join(way)}", _tell_events(events)))
        if self.differences.rows:
            names = [next(row for row in self.rows if (row.form == "alone") is alone and row.copy_s is not None)
                     for alone in (True, False)]  # fmt: skip
            start = sum(row.first_fj for row in self.differences)
            end = start + sum(row.difference_fj for row in self.differences)
            ends = [(f"A {names[0].placement} alone", start), (f"B {names[1].placement}, {names[1].form}", end)]
            terms = [(f"{row.device}: {row.component} {row.action}", row.difference_fj) for row in self.differences]
            drawn.append(
                draw_steps(form_steps(ends, terms, "J", FJ_PER_J), "energy", f"{self.title()}: energy of a batch", "")
            )
        return tuple(drawn)

    def document(self, *, limit: int = 12, repeated: Sequence[str] = ()) -> Document:
        """Return it with `limit` rows of each table of details."""
        rows = grid(
            self.rows,
            (
                ("placement", "placement"),
                ("form", "form"),
                ("latency", "latency_s"),
                ("a second", "throughput_per_s"),
                ("energy", "energy_per_inference_j"),
                ("power", "average_power_w"),
                ("copies", "copy_s"),
                ("waits for", "limit"),
                ("refused", "refusal"),
            ),
            keep=("form", "latency", "a second", "energy", "refused"),
        )
        devices = grid(
            self.devices,
            (
                ("device", "device"),
                ("hardware", "hardware"),
                ("precision", "precision"),
                ("subgraphs", "subgraph_count"),
                ("busy", "busy_s"),
                ("of the time", "busy_fraction"),
                ("memory", "memory_fraction"),
                ("energy", "energy_j"),
            ),
        )
        subgraphs = grid(
            self.subgraphs,
            (
                ("subgraph", "subgraph_index"),
                ("operations", "operations"),
                ("device", "device"),
                ("takes", "latency_s"),
                ("next best", "other"),
                ("there", "other_s"),
            ),
            limit=limit,
        )
        differences = grid(
            self.differences,
            (
                ("device", "device"),
                ("component", "component"),
                ("action", "action"),
                ("alone", "first_j"),
                ("mixture", "second_j"),
                ("difference", lambda row: show_signed(row.difference_j, "J")),
            ),
            limit=limit,
        )
        best = self.best
        answer = f"{best.placement}, {best.form}, is best for {self.goal}"
        return Document(
            title=self.title(),
            answer=answer,
            sections=(Section("", rows),),
            insights=(self.why,),
            details=(
                Section("Devices of the best", devices),
                Section("Subgraphs", subgraphs),
                Section("Energy of the mixture less that of the best device alone", differences),
            ),
            notes=NOTES,
            sure="; ".join(filter(None, (self._say_close(), self._say_gap()))),
            steps=self._list_steps(repeated),
            data=self.data(),
            table=self.rows,
            tables=self.tables,
        )

    def _say_close(self) -> str:
        """Return that the second is as good as the best; empty where it is not."""
        column = {"latency": "latency_s", "throughput": "throughput_per_s", "energy": "energy_j"}[self.goal]
        rivals = [row for row in self.rows if not row.refusal][:2]
        best, *others = (float(getattr(row, column)) for row in rivals)
        if not others or max(best / others[0], others[0] / best) > TIE_RATIO:
            return ""
        return f"a close call: {rivals[1].placement}, {rivals[1].form}, is within {show_share(TIE_RATIO - 1.0)}"

    def _say_gap(self) -> str:
        """Return how much better a placement could be that was not looked at; empty where that is nothing."""
        gap = max((row.gap_fraction or 0.0 for row in self.rows), default=0.0)
        told = f"no placement saves more than {show_share(gap)} of the split that was found, as its parts are priced"
        return told if gap > GAP_TOLD else ""

    def _list_steps(self, repeated: Sequence[str]) -> tuple[str, ...]:
        """Return the commands about the devices that have a part, each with the whole model, the busiest first."""
        busy = sorted((row for row in self.devices if row.subgraph_count), key=lambda row: -row.busy_s)
        told = [[self.model, row.hardware, "--precision", row.precision, *repeated] for row in busy]
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
    """Return the best placement of a model's subgraphs over the devices of a box, beside each device alone.

    A box is one of the catalogue or a file, or made of the devices `on` and `links`. Raises UsageError for a box or
    link that is wrong, UnsupportedError for an operator that no device runs, ModelError for a model that cannot be
    traced.
    """
    from joulemap.box.candidate import list_candidates
    from joulemap.box.member import find_ways
    from joulemap.box.problem import pose
    from joulemap.domain.box import GOALS
    from joulemap.plan.box import find_hardware, find_members, read_box
    from joulemap.plan.placement import PlacedQuestion, ensure_placements
    from joulemap.plan.workload import find_model, holding_workload, stored_key
    from joulemap.store.workload import read_columns

    check_name("goal", goal, GOALS)
    for values, what in ((settings.precision, "precision"), (settings.runtime, "runtime")):
        if len(values) != 1:
            raise UsageError(f"name one {what} to place a model at, found {len(values)}")
    if len(settings.batch) > 1:
        raise UsageError(f"name one batch to place a model at, found {len(settings.batch)}")
    described = read_box(box, on, links)
    if on:
        named = find_hardware(source, model, [device.hardware for device in described.devices], settings)
        described = read_box(box, on, links, [hardware for _, _, hardware in named])
    batch = settings.batch[0] if settings.batch else None
    asked = find_model(model, settings, batch)
    with holding_workload(source, asked) as (workload_id, connection):
        work, key = read_columns(connection, workload_id), stored_key(connection, asked) or ""
    members = find_members(source, model, described, settings, work.batch)
    problem = pose(work, members, find_ways(described, members))
    found = sorted(list_candidates(problem, described, goal), key=lambda one: one.value(goal))
    if found[0].refusal:
        told_all = "; ".join(f"{one.label}: {one.refusal}" for one in found)
        raise UnsupportedError(f"{model} does not run on {described.id}: {told_all}")
    question = PlacedQuestion(
        workload_key=key, model=model, box=described, goal=goal, settings=settings, problem=problem
    )
    ids = ensure_placements(source, question, found)
    return PlaceAnswer(
        model=model,
        box=described.id,
        goal=goal,
        batch=work.batch,
        rows=make_table("placements", PlacementRow, [_form(one, found[0], work.batch) for one in found]),
        devices=make_table("devices", DeviceRow, _list_devices(problem, found[0].run)),
        subgraphs=make_table("subgraphs", SubgraphRow, _list_subgraphs(problem, found[0].run)),
        timeline=make_table("timeline", EventRow, _list_timeline(problem, found)),
        **_read_stored(source, found, ids),
        why=explain(found, goal),
    )


def _read_stored(source: Source, found: Sequence[Candidate], ids: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return the ledger of the best, and what the best mixture spends more than the best device alone, by field."""
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


def _form(one: Candidate, best: Candidate, batch: int) -> PlacementRow:
    """Return a candidate as a row."""
    run = one.run
    return PlacementRow(
        placement=one.label,
        form=one.form,
        is_best=one is best,
        latency_s=None if one.refusal else one.latency_s,
        throughput_per_s=None if one.refusal else batch / one.interval_s,
        energy_j=None if one.refusal else one.energy_j,
        energy_per_inference_j=None if one.refusal else one.energy_j / batch,
        average_power_w=None if one.refusal else one.energy_j / one.interval_s,
        copy_s=None if run is None else run.copy_fs / FS_PER_S,
        copied_bytes=None if run is None else sum(copy.byte_count for copy in run.copies),
        copy_count=None if run is None else len(run.copies),
        limit=one.limit,
        gap_fraction=None if one.refusal else one.gap,
        refusal=one.refusal,
    )


def _list_timeline(problem: Problem, found: Sequence[Candidate]) -> list[EventRow]:
    """Return what happens in the best placement, and in the best mixture where that is another."""
    run = [one for one in found if one.run is not None]
    mixed = [one for one in run if one.form != "alone"]
    shown = {id(one): one for one in (*run[:1], *mixed[:1])}
    return [row for one in shown.values() for row in list_events(problem, one)]


def _list_devices(problem: Problem, run: PlacedRun | None) -> list[DeviceRow]:
    found = []
    for number, member in enumerate(problem.members if run is not None else ()):
        assert run is not None
        part = run.parts.get(number)
        needed = part.weight_bytes + part.activation_bytes if part else 0
        busy_s = part.latency_fs / FS_PER_S if part else 0.0
        found.append(
            DeviceRow(
                device=member.name,
                hardware=name_pair(member.configuration.hardware, member.configuration.power_mode),
                precision=member.configuration.precision,
                subgraph_count=int((run.devices == number).sum()),
                busy_s=busy_s,
                busy_fraction=busy_s / (run.period_fs / FS_PER_S),
                weight_bytes=part.weight_bytes if part else 0,
                activation_bytes=part.activation_bytes if part else 0,
                memory_fraction=needed / member.hardware.memory_capacity.value,
                energy_j=sum(line.energy_fj for line in run.lines if line.device == member.name) / FJ_PER_J,
            )
        )
    return found


def _list_subgraphs(problem: Problem, run: PlacedRun | None) -> list[SubgraphRow]:
    if run is None:
        return []
    names, found = list_operations(problem), []
    taken: dict[int, int] = {}
    for part in run.parts.values():
        taken |= dict(zip(part.subgraphs.subgraph_index.tolist(), part.subgraphs.latency_fs.tolist(), strict=True))
    for node, subgraph in enumerate(problem.subgraph.tolist()):
        own = int(run.devices[node])
        others = {at: problem.seconds[node, at] for at in range(len(problem.members)) if at != own}
        able = {at: float(seconds) for at, seconds in others.items() if seconds < float("inf")}
        other = min(able, key=lambda at: able[at], default=None)
        found.append(
            SubgraphRow(
                subgraph_index=subgraph,
                operations=names[subgraph],
                device=problem.members[own].name,
                latency_s=taken.get(subgraph, 0) / FS_PER_S,
                other="" if other is None else problem.members[other].name,
                other_s=None if other is None else able[other],
            )
        )
    return found


WORDS: Final = {"latency": "time of a batch", "throughput": "time between batches", "energy": "energy of a batch"}


def explain(found: Sequence[Candidate], goal: Goal) -> str:
    """Return why the mixture wins or does not, from candidates of which the best is first."""
    best = found[0]
    alone = next((one for one in found if one.form == "alone" and not one.refusal), None)
    mixed = next((one for one in found if one.form != "alone" and not one.refusal), None)
    if alone is None:
        refused = "; ".join(f"{one.label}: {one.refusal}" for one in found if one.form == "alone")
        return f"No device runs it alone ({refused}), so it is split; {_tell_copies(best)}"
    if mixed is None:
        return f"{alone.label} runs all of it, and no mixture can be made."
    ratio = mixed.value(goal) / alone.value(goal)
    if best.form == "alone":
        more = f"takes {show_share(ratio - 1.0)} more {WORDS[goal]}"
        nearest = f"the nearest mixture, {mixed.label} ({mixed.form}), {more}"
        return f"{alone.label} alone wins: {nearest}; {_tell_copies(mixed)}"
    less = f"takes {show_share(1.0 - ratio)} less {WORDS[goal]} than {alone.label} alone"
    if best.form == "side by side":
        return f"{best.label} {less}: each runs the whole model, and {best.limit} set the rate."
    return f"{best.label} {less}; {_tell_copies(best)}"


def _tell_events(events: Sequence[EventRow]) -> str:
    """Return what devices and copies take of a batch."""
    taken: dict[str, float] = {}
    for row in events:
        name = row.device if row.kind == "subgraph" else "copies"
        taken[name] = taken.get(name, 0.0) + row.taken_s
    return ", ".join(f"{name} {show_quantity(seconds, 's')}" for name, seconds in taken.items())


def _tell_copies(one: Candidate) -> str:
    if one.run is None:
        return "no values are copied."
    copied = show_quantity(sum(copy.byte_count for copy in one.run.copies), "B")
    seconds = show_quantity(one.run.copy_fs / FS_PER_S, "s")
    verb = "takes" if len(one.run.copies) == 1 else "take"
    told = f"{show_count(len(one.run.copies), 'copy', 'copies')} of {copied} in all {verb} {seconds} of "
    return f"{told}{show_quantity(one.latency_s, 's')}."
