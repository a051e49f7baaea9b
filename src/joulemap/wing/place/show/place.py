"""Words and tables for placements: the decision, and why a mixture of devices wins or loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from joulemap.ask import Choice, Entry, Facts, Refusal
from joulemap.physics import spell_precision
from joulemap.show import (
    MOST_WHY,
    Figures,
    Part,
    Sheet,
    Template,
    describe_choices,
    head_assumed,
    join_names,
    list_notes,
    name_run,
    show_assumed,
    show_quantity,
    show_range,
)
from joulemap.show.present.template import join_clauses
from joulemap.system import FJ_PER_J
from joulemap.wing.place.ask.place import ALONE, PlaceAnswer
from joulemap.wing.place.ask.row import find_assumed
from joulemap.wing.place.box.solve import has_solver

if TYPE_CHECKING:
    from joulemap.wing.place.generated.row import EventRow

TITLE: Final = Template("{model}, batch {batch}, {precisions:and}, {runtime}, on {box}[ ({chips:list})]")
CHIP: Final = Template("{device}: {chip}")
COLUMNS: Final[Mapping[str, tuple[str, str]]] = {
    "latency": ("latency_s", "latency_half_width"),
    "throughput": ("throughput_per_s", "throughput_half_width"),
    "energy": ("energy_per_inference_j", "energy_half_width"),
}
"""Goal -> (column of a placement with the goal's quantity, column with its half-width)."""

SOLVER: Final = "the extra `solver` searches further: pip install 'joulemap[solver]'"

BOX_POWER: Final = (
    "energy and power are those of the whole box: devices without a part draw idle power, also beside a device alone"
)
"""Note on why a device alone takes more energy here than `compare` says of its chip."""


ONLY: Final = Template("{name} runs the model, with {value} {each}; no other placement does.")
EACH: Final = {"latency": "per batch", "throughput": "of throughput", "energy": "per batch"}
COPIES: Final = Template(
    "{name} copies {copied} between devices ({copies:n time} per batch), which takes {copy} of {latency}"
)
SIDE_BY_SIDE: Final = Template("{name} runs whole batches on each device")
SIMPLER: Final = Template("{name} is simpler: it copies nothing, and is statistically tied")
REFUSED: Final = Template("{name}: {reason}")


def describe_answer(facts: Facts) -> str:
    """Return the best placement and its lead over the best of the other kind."""
    if choices := facts.of(Choice):
        return describe_choices(choices[:2], facts.runs)
    (entry,) = facts.of(Entry)
    goal = facts.asked[0]
    return ONLY(name=name_run(facts.runs[entry.runs[0]]), value=show_range(entry.values[goal]), each=EACH[goal])


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the copies of the best mixture, and on devices that cannot run the whole model."""
    return [*_describe_simpler(facts), *_describe_copies(facts), *_describe_refused(facts)][:MOST_WHY]


def _describe_simpler(facts: Facts) -> Iterator[str]:
    """Yield the device that is tied with a mixture."""
    for one in facts.of(Choice):
        first, rival = (facts.runs[key] for key in one.runs[:2])
        if one.runs[1] in one.tied and rival.settings == (ALONE,) != first.settings:
            yield SIMPLER(name=name_run(rival))


def _describe_copies(facts: Facts) -> Iterator[str]:
    pair = next((one.runs[:2] for one in facts.of(Choice)), ())
    entries = {one.runs[0]: one.values for one in facts.of(Entry)}
    for key in pair:
        values, name = entries[key], name_run(facts.runs[key])
        if "copy" in values:
            shown = {one: show_quantity(values[one].value, values[one].unit) for one in ("copied", "copy", "latency")}
            yield COPIES(name=name, copies=round(values["copies"].value), **shown)
        elif facts.runs[key].settings == ("side by side",):
            yield SIDE_BY_SIDE(name=name)


def _describe_refused(facts: Facts) -> Iterator[str]:
    alike: dict[tuple[object, ...], list[Refusal]] = {}
    for one in facts.of(Refusal):
        alike.setdefault((one.code, one.reason, *one.values.items()), []).append(one)
    for some in alike.values():
        names = [name_run(facts.runs[one.runs[0]]) for one in some]
        yield REFUSED(name=join_names(names), reason=some[0].reason)


def title_placement(answer: PlaceAnswer) -> str:
    """Return the model, batch, precisions, runtime and box, with the chips of devices that have another name."""
    chips = {one.name: one.configuration.hardware for one in answer.members}
    return TITLE(answer, chips=[CHIP(device=name, chip=chip) for name, chip in chips.items() if name != chip])


def choose(answer: PlaceAnswer, **_: Any) -> Mapping[str, str]:
    """Return the columns of placements, and those of subgraphs by the goal."""
    unit = "j" if answer.goal == "energy" else "s"
    return {
        **{goal: ":".join(names[: 1 + (goal == answer.goal)]) for goal, names in COLUMNS.items()},
        "assumed": head_assumed(map(find_assumed, answer.rows)),
        "quantity": "energy" if unit == "j" else "latency",
        "own": "energy_j" if unit == "j" else "latency_s",
        "other": f"other_{unit}",
    }


def list_all_notes(answer: PlaceAnswer) -> Iterator[str]:
    """Yield notes on the power of the box, on caveats, and on the package that searches further."""
    yield BOX_POWER
    yield from list_notes(answer.facts)
    if answer.gap is not None and not has_solver():
        yield SOLVER


def list_busy(answer: PlaceAnswer) -> Iterator[Mapping[str, Any]]:
    """Yield the model, the hardware and the precision of each device that runs a part, busiest first."""
    for row in sorted(answer.busy, key=lambda row: -row.busy_s):
        hardware = answer.files.get(row.device, row.hardware)
        yield {"model": answer.model, "hardware": hardware, "precision": spell_precision(row.precision)}


def explain_all(answer: PlaceAnswer) -> dict[str, str]:
    """Return the lead of the best placement and the copies of the best mixture in one text."""
    return {"why": join_clauses((describe_answer(answer.facts), *list_reasons(answer.facts)))}


TIMELINE: Final = Template("{title}: {placement}, {form}")
TIMES: Final = Template("{name} {seconds:s}")
ENERGY: Final = Template("{title}: energy per batch")
FIRST: Final = Template("A {placement} alone")
MIXTURE: Final = Template("B {placement}, {form}")
ACTION: Final = Template("{device}: {component} {action}")


def draw(answer: PlaceAnswer) -> Figures:
    """Return figures of the placements, their timelines and their energy difference."""
    from joulemap.show import make_figure
    from joulemap.show.waterfall import draw_bars, form_bars

    title = title_placement(answer)
    drawn = [make_figure("placement", answer.rows, title, explain_all(answer)["why"])]
    for placement, form in dict.fromkeys((row.placement, row.form) for row in answer.timeline):
        events = tuple(row for row in answer.timeline if (row.placement, row.form) == (placement, form))
        subject = TIMELINE(title=title, placement=placement, form=form)
        drawn.append(make_figure("timeline", answer.timeline.with_rows(events), subject, _add_times(events)))
    if answer.differences.rows:
        run = [row for row in answer.rows if row.copy_s is not None]
        alone, mixed = (next(row for row in run if (row.form == ALONE) is is_alone) for is_alone in (True, False))
        start = sum(row.first_fj for row in answer.differences)
        end = start + sum(row.difference_fj for row in answer.differences)
        actions = [(ACTION(row), row.difference_fj) for row in answer.differences]
        bars = form_bars([(FIRST(alone), start), (MIXTURE(mixed), end)], actions, "J", FJ_PER_J)
        drawn.append(draw_bars(bars, "energy", ENERGY(title=title), ""))
    return tuple(drawn)


def _add_times(events: Sequence[EventRow]) -> str:
    """Return a text with the total time of each device and of the copies in one batch."""
    taken: dict[str, float] = {}
    for row in events:
        name = row.device if row.kind == "subgraph" else "copies"
        taken[name] = taken.get(name, 0.0) + row.taken_s
    return ", ".join(TIMES(name=name, seconds=seconds) for name, seconds in taken.items())


PAGES: Final = {
    PlaceAnswer: Sheet(
        title=title_placement,
        first=lambda answer: describe_answer(answer.facts),
        reasons=lambda answer: list_reasons(answer.facts),
        is_decision=True,
        notes=list_all_notes,
        words=explain_all,
        csv="rows",
        steps=("analyze {model} {hardware} {precision}",),
        each=list_busy,
        choices=choose,
        draw=draw,
        limit=12,
        parts=(
            Part(
                table="rows",
                columns="placement | *form | *latency {latency} | *throughput {throughput} | tokens_per_s? | "
                "*energy per sample {energy} | "
                "{assumed}probability that the best is better worse_probability | average_power_w | copy_s | "
                "limit | *refusal?",
                lay={
                    "assumed_energy_fraction": lambda row: show_assumed(find_assumed(row)),
                },
            ),
            Part(
                title="Devices of the best placement",
                table="devices",
                columns="device | hardware | precision | subgraph_count | busy_s | busy_fraction | memory_fraction | "
                "energy_j",
            ),
            Part(
                title="Subgraphs",
                table="subgraphs",
                columns="subgraph_index | operations | device | {quantity} {own} | other | {quantity} there {other}",
                is_long=True,
            ),
            Part(
                title="Energy of the best mixture minus energy of the best device alone",
                table="differences",
                columns="device | component | action | first_j | second_j | difference_j",
                is_long=True,
            ),
        ),
    )
}
