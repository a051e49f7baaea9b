"""Place a model on the devices of a box: the best placement for a goal, its rival, and what could move the decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from joulemap.ask import (
    Answer,
    Checks,
    Choice,
    Entry,
    Facts,
    Finding,
    PairedRun,
    Quantity,
    Refusal,
    Share,
    Subject,
    Value,
    check_runs,
    choose,
    weigh_findings,
)
from joulemap.catalog import is_hardware_path, load_doubt
from joulemap.domain import HardwareRef, Settings, Table, check_name, make_table
from joulemap.plan import Source, find_model, opening_workload, reading, stored_key
from joulemap.plan.model_name import find_precisions
from joulemap.store import fetch, read_columns
from joulemap.store.query import fetch_none
from joulemap.store.workload import find_work
from joulemap.system import UsageError, frozen
from joulemap.wing.place.ask.placement_row import (
    find_assumed,
    form_row,
    list_devices,
    list_subgraphs,
    list_timeline,
)
from joulemap.wing.place.box.candidate import Candidate, list_candidates, refuse_all
from joulemap.wing.place.box.interval import compare, doubt_placement
from joulemap.wing.place.box.member import Member
from joulemap.wing.place.box.problem import build_problem
from joulemap.wing.place.generated.row import (
    DeviceRow,
    DoubtedDevice,
    EventRow,
    PlacedLine,
    PlacementDifference,
    PlacementRow,
    SubgraphRow,
)
from joulemap.wing.place.plan import PlacedQuestion, ensure_placements
from joulemap.wing.place.record import BUDGET, GOALS, Goal
from joulemap.wing.place.target import find_hardware, find_members, read_box

ALONE: Final = "alone"
"""Form of a placement on one device."""

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "latency": ("latency_s", "s", "latency_half_width"),
    "throughput": ("throughput_per_s", "1/s", "throughput_half_width"),
    "energy": ("energy_j", "J", "energy_half_width"),
}
"""Goal -> field of a row, unit, and field with the half-width."""

COPIES: Final[Mapping[str, tuple[str, ...]]] = {
    "copy": ("copy_s", "s"),
    "copied": ("copied_bytes", "B"),
    "copies": ("copy_count", ""),
}

LEAST_ASSUMED: Final = 0.1
"""Minimum assumed share of an energy that is a caveat."""

MOSTLY: Final = 0.8
"""Share of the assumed energy from which it is mostly static power."""

PLACED: Final = Settings(precision=("fp16",), runtime=("engine",))
"""Default settings of a placement."""

LEAST_GAP: Final = 0.005
"""Smallest possible improvement that the answer mentions, as a fraction."""

DECODING: Final = ("decode", "experts")
"""Kinds of work whose GEMMs have one row per token."""


@frozen(kw_only=True)
class PlaceAnswer(Answer):
    """Placements of one model on one box, ranked by a goal."""

    about = ("model", "box", "goal", "batch", "precisions", "runtime")

    model: str
    box: str
    goal: Goal
    members: tuple[Member, ...] = attrs.field(repr=False, eq=False)
    """Devices of the box, as they are evaluated."""
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
    gap: tuple[str, float] | None = None
    """Form of a placement that was not examined, and the share that it could save."""

    @property
    def batch(self) -> int:
        """Samples of a batch."""
        return self.members[0].configuration.batch

    @property
    def precisions(self) -> tuple[str, ...]:
        """Distinct precisions of the devices."""
        return tuple(dict.fromkeys(one.precision for one in self.members))

    @property
    def runtime(self) -> str:
        """Runtime of all devices."""
        return self.members[0].configuration.runtime

    @property
    def files(self) -> Mapping[str, str]:
        """Device -> its hardware file and power mode, for devices that a file describes."""
        given = {one.name: one.device.hardware for one in self.members}
        return {name: file for name, file in given.items() if is_hardware_path(HardwareRef.read(file).label)}

    @property
    def best(self) -> PlacementRow:
        """Best placement for the goal."""
        return self.rows[0]

    @property
    def busy(self) -> list[DeviceRow]:
        """Devices that run a part of the best placement."""
        return [row for row in self.devices if row.subgraph_count]

    def find_checks(self) -> Checks:
        """Return the commands that measure the whole model on each device that runs a part.

        No common tool measures a model that is divided over devices.
        """
        return check_runs(
            self.model, [PairedRun(row.hardware, row.precision, self.batch, self.runtime) for row in self.busy]
        )


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
        raise refuse_all(candidates, f"{model} does not run on {described.id}")
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
    best, tokens, rows = candidates[0], product_rows if kind in DECODING else 0.0, []
    for one in candidates:
        doubt, worse = doubts.get(one.name), None
        if one is not best and doubt is not None:
            worse = compare(best, one, [doubts[best.name], doubt], goal)
        rows.append(form_row(one, best, doubt=doubt, tokens=tokens, worse=worse))
    return PlaceAnswer(
        model=model,
        box=described.id,
        goal=goal,
        members=members,
        rows=make_table("placements", PlacementRow, rows),
        facts=find_facts(rows, candidates, goal, gap),
        devices=make_table("devices", DeviceRow, list_devices(best.run, overlaps=goal == "throughput")),
        subgraphs=make_table("subgraphs", SubgraphRow, list_subgraphs(best.run, goal)),
        timeline=make_table("timeline", EventRow, list_timeline(candidates)),
        **_read_stored(source, candidates, ids),
        gap=gap,
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


def find_facts(
    rows: Sequence[PlacementRow], candidates: Sequence[Candidate], goal: Goal, gap: tuple[str, float] | None
) -> Facts:
    """Return the facts of placements, best first; a run of the facts is a row, and each row is of a candidate.

    `gap` holds the form of a placement that was not examined, and
    the share that it could save.
    """
    known = dict(enumerate(rows, 1))
    kept = {key: row for key, row in known.items() if not row.refusal}
    choices = [_choose(kept, goal)] if len(kept) > 1 else []
    caveats = weigh_findings([*_find_own(kept, goal, gap)], choices)
    refusals = [Refusal.of(one.refusal, (key,)) for key, one in enumerate(candidates, 1) if one.refusal is not None]
    shares = [share for key, one in enumerate(candidates, 1) for share in _divide(key, one, goal)]
    return Facts(
        asked=(goal,),
        runs={key: Subject(hardware=row.placement, settings=(row.form,)) for key, row in known.items()},
        facts=(
            *choices,
            *refusals,
            *(Entry.read(key, row, {**VALUES, **(COPIES if row.form != ALONE else {})}) for key, row in kept.items()),
            *shares,
            *caveats,
        ),
    )


def find_rival(rows: Mapping[int, PlacementRow]) -> int | None:
    """Return the best mixture if one device alone is best, else the best device alone; else the next placement."""
    first, *others = rows
    is_alone = rows[first].form == ALONE
    return next((key for key in others if (rows[key].form == ALONE) != is_alone), next(iter(others), None))


def _choose(kept: Mapping[int, PlacementRow], goal: Goal) -> Choice:
    """Return the best placement, and its rival of the other kind."""
    field, unit, width = VALUES[goal]
    rival = find_rival(kept)
    assert rival is not None
    values = {key: Quantity(float(getattr(row, field) or 0.0), unit, getattr(row, width)) for key, row in kept.items()}
    return choose(goal, values, lambda _, other: kept[other].worse_probability).facing(rival)


def _divide(key: int, one: Candidate, goal: Goal) -> Iterator[Share]:
    """Yield the shares of devices in the energy of a batch, or of devices and links in its latency, which overlap."""
    run = one.run
    if run is None:
        return
    metric: Literal["energy", "latency"] = "latency"
    whole, parts = run.latency_fs, list[tuple[Literal["device", "link"], str, int]]()
    if goal == "energy":
        metric, whole = "energy", run.energy_fj
        parts += [("device", line.device, line.energy_fj) for line in run.lines]
    else:
        links = dict.fromkeys(hop.name for copy in run.copies for hop in one.problem.ways[copy.start, copy.end])
        parts += [("device", one.problem.members[at].name, part.latency_fs) for at, part in run.parts.items()]
        parts += [("link", "+".join(links), run.copy_fs)] if links else []
    for level, name in dict.fromkeys(part[:2] for part in parts):
        own = sum(part[2] for part in parts if part[:2] == (level, name))
        yield Share(runs=(key,), metric=metric, level=level, name=name, share=own / whole)


def _find_own(kept: Mapping[int, PlacementRow], goal: Goal, gap: tuple[str, float] | None) -> Iterator[Finding]:
    """Yield assumed shares of the energy, an unfinished search, and the power budget."""
    for key, row in kept.items():
        assumed = find_assumed(row)
        if assumed is not None and assumed.fraction >= LEAST_ASSUMED:
            mostly = "static" if assumed.static_fraction >= MOSTLY * assumed.fraction else ""
            doubt = row.energy_half_width or 0.0 if goal == "energy" else 0.0
            values: dict[str, Value] = {"energy_fraction": assumed.fraction, "mostly": mostly}
            yield Finding(kind="assumed", run_id=key, values=values, doubt=doubt)
    first = next(iter(kept))
    if kept[first].limit == BUDGET:
        yield Finding(kind="budget", run_id=first)
    elif gap is not None:
        yield Finding(kind="unexamined", run_id=first, values={"form": gap[0], "share": gap[1]}, doubt=gap[1])
