"""Page of a watched module: the measured time of a call beside the prediction, module by module."""

from __future__ import annotations

from typing import Final

from joulemap.ask import Facts, Score
from joulemap.domain import Col
from joulemap.show import (
    Asked,
    Document,
    Grid,
    Page,
    Section,
    Template,
    alter,
    compose,
    derived,
    describe_trust,
    draw,
    list_facts,
    list_notes,
    show,
    show_quantity,
)
from joulemap.show.model import SPLIT, lay_tree, name_module, show_total
from joulemap.show.part import describe_ranges
from joulemap.wing.verify.ask.watch import WatchAnswer
from joulemap.wing.verify.generated.row import WatchedModule
from joulemap.wing.verify.show.word import list_conditions

WATCHED: Final = Template("watched: {title}")
PER_CALL: Final = Template(
    "a call takes {measured_latency_s:s}, measured here[, plus {backward_s:s} backward]; {prediction}."
)
PREDICTED: Final = Template(
    "the prediction for {hardware} is {latency_s:s} and {energy_j:J}"
    "[, plus {back_s:s} and {back_j:J} for the backward pass]"
)
NO_PREDICTION: Final = Template("no prediction for {hardware}: {refusal}")
DISAGREES: Final = Template(
    "measured {times:x} {direction} than predicted, outside the 80 % interval of {predicted:interval s}: neither "
    "predicted time nor energy holds for this run"
)


def describe_disagreement(facts: Facts) -> str:
    """Return a sentence on a prediction for this machine that misses the measured time; empty if it does not."""
    for one in facts.of(Score):
        if one.is_inside is False:
            ratio = one.measured.value / one.predicted.value
            return DISAGREES(
                times=max(ratio, 1.0 / ratio),
                direction="slower" if ratio > 1.0 else "faster",
                predicted=(one.predicted.value, one.predicted.half_width),
            )
    return ""


def describe_call(answer: WatchAnswer) -> str:
    """Return the measured time of a call, and its prediction or the reason for none."""
    whole = answer.rows[0]
    if answer.prediction is None:
        prediction = NO_PREDICTION(answer)
    else:
        has_step = bool(whole.measured_backward_s) and whole.predicted_backward_s is not None
        prediction = PREDICTED(
            answer.prediction.total,
            hardware=answer.hardware,
            back_s=whole.predicted_backward_s if has_step else None,
            back_j=whole.predicted_backward_j if has_step else None,
        )
    return PER_CALL(whole, backward_s=whole.measured_backward_s or None, prediction=prediction)


def describe_doubt(answer: WatchAnswer) -> str:
    """Return that the prediction misses the measured time, or else the trust in the prediction; empty without one."""
    facts = answer.prediction.facts if answer.prediction else None
    own = describe_disagreement(answer.facts)
    return own if own or facts is None else describe_trust(facts, describe_ranges(facts))


def lay_modules(answer: WatchAnswer, depth: int | None) -> Grid:
    """Return the table of modules down to `depth` levels; None shows as many levels as fit on a screen."""
    of, has_backward = WatchedModule, bool(answer.rows[0].measured_backward_s)
    ratio: Col[WatchedModule] = derived("predicted / measured", _show_ratio)
    columns = alter(
        of.table,
        of.module.by(name_module(answer.model)),
        of.weight_count.headed("weights").by(lambda row: show_total(row.weight_count)),
        of.mac_count.by(lambda row: show_total(row.mac_count)).kept,
        of.measured_latency_s.headed("measured").by(lambda row: show_quantity(row.measured_latency_s or None, "s")),
    )
    backward = (
        of.measured_backward_s.headed("backward").by(lambda row: show_quantity(row.measured_backward_s or None, "s")),
        of.predicted_backward_s.headed("backward predicted"),
    )
    energy = (of.predicted_energy_j.headed("energy"), of.predicted_energy_fraction.headed("energy share"))
    keep = (of.measured_latency_s, of.predicted_latency_s, *backward, *energy, ratio, of.mac_count)
    shown = (*columns, ratio if answer.is_here else None, *(backward if has_backward else ()), *energy)
    return lay_tree(answer, answer.rows, shown, keep, depth)


def _show_ratio(row: WatchedModule) -> str:
    """Return the ratio of predicted to measured time of a module as text; empty if one of them is unknown."""
    if not row.measured_latency_s or row.predicted_latency_s is None:
        return ""
    return show(row.predicted_latency_s / row.measured_latency_s, "ratio")


def draw_watched(answer: WatchAnswer, asked: Asked) -> Document:
    """Return the document of a watched module; programs get the tables, the conditions of the calls, and the facts."""
    conditions = list_conditions(answer.facts)
    return compose(
        answer,
        [Section("By module, per call", lay_modules(answer, asked.depth), is_tight=True)],
        answer.rows,
        title=WATCHED(title=draw(answer.prediction).title if answer.prediction else answer.model),
        headline=describe_call(answer),
        notes=(*conditions, SPLIT, *(list_notes(answer.prediction.facts) if answer.prediction else ())),
        trust=describe_doubt(answer),
        words={"notes": conditions, **list_facts(answer.facts)},
    )


PAGES: Final = {WatchAnswer: Page[WatchAnswer](draw=draw_watched)}
