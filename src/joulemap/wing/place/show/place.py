"""Words and tables for placements: the decision, and why a mixture of devices wins or loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from joulemap.ask import Choice, Entry, Facts, Refusal, Share
from joulemap.domain import TIE_RATIO, Col
from joulemap.physics import spell_precision
from joulemap.show import (
    MOST_WHY,
    Asked,
    Document,
    Figures,
    Grid,
    Page,
    Section,
    Template,
    compose,
    fill_steps,
    join_names,
    list_notes,
    name_run,
    show_assumed,
    show_chance,
    show_quantity,
    show_range,
    show_table,
)
from joulemap.show.present.document import SHARE_HEADING
from joulemap.show.present.template import join_clauses
from joulemap.wing.place.ask.place import ALONE, PlaceAnswer
from joulemap.wing.place.ask.placement_row import find_assumed
from joulemap.wing.place.box.solve import has_solver
from joulemap.wing.place.generated.row import DeviceRow, PlacementDifference, PlacementRow, SubgraphRow

HEADINGS: Final[Mapping[str, str]] = {"latency": "latency", "energy": "energy per sample"}
"""Goal -> heading of the column before the picture of its parts."""

PIPELINE, ASIDE = "pipeline", "side by side"
"""Forms of placements in which batches follow each other, or each device runs its own."""

COPIES: Final = "copies"
"""Name of the time on links in the picture."""

TITLE: Final = Template("{model}, batch {batch}, {precisions:and}, {runtime}, on {box}[ ({chips:list})]")
CHIP: Final = Template("{device}: {chip}")
DIFFERENCE: Final = "Energy of the best mixture minus energy of the best device alone"
ANALYZE: Final = Template("analyze {model} {hardware} {precision}")
SOLVER: Final = "the extra `solver` searches further: pip install 'joulemap[solver]'"

BOX_POWER: Final = (
    "energy and power are those of the whole box: devices without a part draw idle power, also beside a device alone"
)
"""Note on why a device alone takes more energy here than `compare` says of its chip."""


ONLY: Final = Template("{name} runs the model, with {value} {each}; no other placement does.")
EACH: Final = {"latency": "per batch", "throughput": "of throughput", "energy": "per batch"}
NOTHING: Final = Template("Use {name}: the {rival} gains nothing ({own} alone, {other} split[, {chance} sure]).")
TOO_CLOSE: Final = Template("Use {rival}: the {name} may gain {gain:%}[ ({chance} sure)]{instead}.")
MEASURE: Final = "; measure it first"
LEAST_GAIN: Final = 0.05
"""Uncertain gain that is worth a measurement."""

TAKE: Final = Template("{verb} {name}: {lead}[ ({chance} sure)].")
VERBS: Final[Mapping[str, str]] = {
    ALONE: "Use",
    "split": "Split over",
    PIPELINE: "Pipeline over",
    ASIDE: "Run whole batches side by side on",
}
"""Form of a placement -> verb of its devices."""
LEADS: Final[Mapping[str, Template]] = {
    "latency": Template("{ratio:x} faster than {rival}"),
    "throughput": Template("{ratio:x} the throughput of {rival}"),
    "energy": Template("{ratio:x} less energy than {rival}"),
}
MOVED: Final = Template(
    "{name} spends {own:s} on work that takes {other} {saved:s}, and copying {copied:B} over {link} takes {copy:s}"
)
BESIDE: Final = Template("{name} works for {own:s} beside {other} and saves it {saved:s}")
USES: Final = Template("the split costs {changes:and}")
CHANGE: Final = Template("{name} {amount:+J}")
IN_TURN: Final = Template(
    "a batch takes {times:and}, which work on successive batches, against {alone:s} on {other} alone"
)
ON: Final = Template("{seconds:s} on {name}")
EACH_ITS_OWN: Final = Template("alone, {rates:and}: each works on its own batches")
RATE: Final = Template("{name} reaches {rate:1/s}")
REFUSED: Final = Template("{name}: {reason}")


def describe_answer(facts: Facts) -> str:
    """Return the placement to use and its lead over the best of the other kind."""
    goal = facts.asked[0]
    choice = next(iter(facts.of(Choice)), None)
    if choice is None:
        (entry,) = facts.of(Entry)
        return ONLY(name=name_run(facts.runs[entry.run]), value=show_range(entry.values[goal]), each=EACH[goal])
    (best, own), (other, least) = ((facts.runs[key], facts.find_values(key)[goal]) for key in choice.runs[:2])
    given = {"name": name_run(best), "rival": name_run(other), "ratio": choice.ratio}
    given["chance"] = show_chance(choice.against(choice.runs[1])[1])
    is_tied = choice.runs[1] in choice.close
    if is_tied and other.settings == (ALONE,) != best.settings:
        gain = 1.0 - 1.0 / (choice.ratio or 1.0)
        return TOO_CLOSE(gain=gain, instead=MEASURE if gain > LEAST_GAIN else "", **given)
    if is_tied and best.settings == (ALONE,) != other.settings:
        return NOTHING(own=show_quantity(own.value, own.unit), other=show_quantity(least.value, least.unit), **given)
    (form,) = best.settings
    name = given["name"] if form == ALONE else best.hardware
    return TAKE(**{**given, "verb": VERBS[form], "name": name, "lead": LEADS[goal](**given)})


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on what the best mixture moves to other devices, and on devices that cannot run the whole model."""
    return [*_describe_mixture(facts), *_describe_refused(facts)][:MOST_WHY]


def _describe_mixture(facts: Facts) -> Iterator[str]:
    """Yield what each device does in the best mixture, against the device alone that it is compared with."""
    pair = {facts.runs[key].settings == (ALONE,): key for one in facts.of(Choice) for key in one.runs[1::-1]}
    if len(pair) < 2:
        return
    mixed, alone = pair[False], pair[True]
    (form,), other, values = facts.runs[mixed].settings, facts.runs[alone].hardware, facts.find_values(mixed)
    if form == ASIDE:
        rates = ((run, facts.find_values(key)) for key, run in facts.runs.items() if run.settings == (ALONE,))
        yield EACH_ITS_OWN(rates=[RATE(name=run.hardware, rate=own["throughput"].value) for run, own in rates if own])
        return
    before, taken = (_find_parts(facts, key) for key in (alone, mixed))
    if facts.asked == ("energy",):
        yield USES(changes=[CHANGE(name=name, amount=one - before.get(name, 0.0)) for name, one in taken.items()])
    elif form == PIPELINE:
        times = [ON(name=name, seconds=one) for name, one in taken.items()]
        yield IN_TURN(times=times, other=other, alone=before[other])
    else:
        links = _find_parts(facts, mixed, "link")
        whole = sum((*taken.values(), *links.values()))
        text = BESIDE if whole > values["latency"].value * TIE_RATIO else MOVED
        saved = max(before[other] - taken.pop(other, 0.0), 0.0)
        copies = {"copied": values["copied"].value, "link": "".join(links), "copy": values["copy"].value}
        yield from (text(name=name, own=own, other=other, saved=saved, **copies) for name, own in taken.items())


def _find_parts(facts: Facts, key: int, level: str = "device") -> dict[str, float]:
    """Return device or link -> its part of the latency or energy of a placement."""
    shares = (one for one in facts.of(Share) if one.runs == (key,) and one.level == level)
    return {one.name: one.share * facts.find_values(key)[one.metric].value for one in shares}


def stack_parts(answer: PlaceAnswer, grid: Grid) -> Grid:
    """Return the table of placements with the latency or the energy of a batch by device and link."""
    if answer.goal == "throughput":
        return grid
    parts: dict[str, list[float | None]] = {name: [] for name in (*(one.name for one in answer.members), COPIES)}
    for key in range(1, len(grid.rows) + 1):
        own, links = (_find_parts(answer.facts, key, level) for level in ("device", "link"))
        taken = {**own, COPIES: sum(links.values())}
        values = answer.facts.find_values(key)
        # the parts of branches at once share the latency, so that a bar is as long as its latency
        scale = min(1.0, values[answer.goal].value / sum(taken.values())) if own else 0.0
        for name, some in parts.items():
            some.append(taken.get(name, 0.0) * scale if own else None)
    return grid.with_stack(parts, HEADINGS[answer.goal])


def _describe_refused(facts: Facts) -> Iterator[str]:
    alike: dict[tuple[object, ...], list[Refusal]] = {}
    for one in facts.of(Refusal):
        alike.setdefault((one.code, one.reason, *one.values.items()), []).append(one)
    for some in alike.values():
        names = [name_run(facts.runs[one.run]) for one in some]
        yield REFUSED(name=join_names(names), reason=some[0].reason)


def title_placement(answer: PlaceAnswer) -> str:
    """Return the model, batch, precisions, runtime and box, with the chips of devices that have another name."""
    chips = {one.name: one.configuration.hardware for one in answer.members}
    return TITLE(answer, chips=[CHIP(device=name, chip=chip) for name, chip in chips.items() if name != chip])


def lay_placements(answer: PlaceAnswer) -> list[Section]:
    """Return the section of placements, with the interval of what is decided."""
    of, goal = PlacementRow, answer.goal
    decided: dict[str, tuple[Col[PlacementRow], Col[PlacementRow]]] = {
        "latency": (of.latency_s, of.latency_half_width),
        "throughput": (of.throughput_per_s, of.throughput_half_width),
        "energy": (of.energy_per_inference_j, of.energy_half_width),
    }
    shown = {
        name: value.within(width).ranking.drawn if name == goal else value for name, (value, width) in decided.items()
    }
    assumed = of.assumed_energy_fraction.headed(SHARE_HEADING).by(lambda row: show_assumed(find_assumed(row))).kept
    columns = (
        of.placement,
        of.form.kept,
        shown["latency"].headed("latency").kept,
        shown["throughput"].headed("throughput").kept,
        of.tokens_per_s.if_any,
        shown["energy"].headed("energy per sample").kept,
        assumed if any(show_assumed(find_assumed(row)) for row in answer.rows) else None,
        of.worse_probability.headed("chance that it is worse").kept,
        of.average_power_w,
        of.copy_s,
        of.limit,
        of.refusal.if_any.kept,
    )
    return show_table(answer, "", answer.rows, columns, change=partial(stack_parts, answer))


def list_details(answer: PlaceAnswer, most: int) -> Iterator[Section]:
    """Yield the tables behind that of the placements: devices, subgraphs, and where the energy differs."""
    yield from show_table(answer, "Devices of the best placement", answer.devices, DeviceRow.table)
    of, is_energy = SubgraphRow, answer.goal == "energy"
    own, other = (of.energy_j, of.other_j) if is_energy else (of.latency_s, of.other_s)
    quantity = "energy" if is_energy else "latency"
    columns = (
        of.subgraph_index, of.operations, of.device, own.headed(quantity), of.other, other.headed(f"{quantity} there"),
    )  # fmt: skip
    yield from show_table(answer, "Subgraphs", answer.subgraphs, columns, limit=most)
    yield from show_table(answer, DIFFERENCE, answer.differences, PlacementDifference.table, limit=most)


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


def explain_all(answer: PlaceAnswer) -> str:
    """Return the lead of the best placement and the copies of the best mixture in one text."""
    return join_clauses((describe_answer(answer.facts), *list_reasons(answer.facts)))


TIMELINE: Final = Template("{title}: {placement}, {form}")


def draw(answer: PlaceAnswer) -> Figures:
    """Return figures of the placements and their timelines."""
    from joulemap.show import make_figure

    title = title_placement(answer)
    drawn = [make_figure("placement", answer.rows, title, explain_all(answer))]
    for placement, form in dict.fromkeys((row.placement, row.form) for row in answer.timeline):
        events = tuple(row for row in answer.timeline if (row.placement, row.form) == (placement, form))
        subject = TIMELINE(title=title, placement=placement, form=form)
        drawn.append(make_figure("timeline", answer.timeline.with_rows(events), subject))
    return tuple(drawn)


def draw_placements(answer: PlaceAnswer, asked: Asked) -> Document:
    """Return the document of placements."""
    return compose(
        answer,
        lay_placements(answer),
        answer.rows,
        title=title_placement(answer),
        headline=describe_answer(answer.facts),
        reasons=list_reasons(answer.facts),
        details=list_details(answer, asked.most(12)),
        notes=list_all_notes(answer),
        words={"why": explain_all(answer)},
        facts=answer.facts,
        steps=[step for one in list_busy(answer) for step in fill_steps([ANALYZE], answer, asked.repeated, **one)],
    )


PAGES: Final = {PlaceAnswer: Page[PlaceAnswer](draw=draw_placements, draw_figures=draw)}
