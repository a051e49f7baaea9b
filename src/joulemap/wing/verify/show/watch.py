"""Page of a watched module: the measured time of a call beside the prediction, module by module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from joulemap.ask import Facts, Score
from joulemap.show import (
    Block,
    Part,
    Sheet,
    Template,
    describe_trust,
    draw,
    list_facts,
    list_notes,
    show,
    show_quantity,
)
from joulemap.show.model import SPLIT, WORK, draw_modules
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
BACKWARD: Final = "backward measured_backward_s | backward predicted predicted_backward_s"
ENERGY: Final = "energy predicted_energy_j | energy share predicted_energy_fraction"
KEPT: Final = (
    "measured_latency_s predicted_latency_s measured_backward_s predicted_backward_s predicted_energy_j "
    "predicted_energy_fraction ratio mac_count"
)
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


def list_data(answer: WatchAnswer, _told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what programs get: the tables, the conditions of the calls, and the facts."""
    return {**answer.data(), "notes": list_conditions(answer.facts), **list_facts(answer.facts)}


def lay_modules(answer: WatchAnswer, *_: Any, depth: int | None = None, **__: Any) -> Block:
    """Return the table of modules down to `depth` levels; None shows as many levels as fit on a screen."""
    columns = [WORK, "measured measured_latency_s | predicted predicted_latency_s"]
    columns += ["predicted / measured ratio"] * answer.is_here
    columns += [BACKWARD] * bool(answer.rows[0].measured_backward_s)
    return draw_modules(
        answer.rows,
        depth,
        answer.model,
        " | ".join((*columns, ENERGY)),
        KEPT,
        measured_latency_s=lambda row: show_quantity(row.measured_latency_s or None, "s"),
        ratio=_show_ratio,
        measured_backward_s=lambda row: show_quantity(row.measured_backward_s or None, "s"),
    )


def _show_ratio(row: WatchedModule) -> str:
    """Return the ratio of predicted to measured time of a module as text; empty if one of them is unknown."""
    if not row.measured_latency_s or row.predicted_latency_s is None:
        return ""
    return show(row.predicted_latency_s / row.measured_latency_s, "ratio")


PAGES: Final = {
    WatchAnswer: Sheet(
        title=lambda answer: WATCHED(title=draw(answer.prediction).title if answer.prediction else answer.model),
        first=describe_call,
        trust=describe_doubt,
        notes=lambda answer: (
            *list_conditions(answer.facts),
            SPLIT,
            *(list_notes(answer.prediction.facts) if answer.prediction else ()),
        ),
        data=list_data,
        choices=lambda _answer, depth=None, **_: {"depth": depth},
        parts=(Part(title="By module, per call", table="rows", draw=lay_modules, is_tight=True),),
    )
}
