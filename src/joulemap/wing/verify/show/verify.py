"""Page of verifications: the median error, what is inside its interval, causes, and conditions of measurements."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from statistics import median
from typing import Any, Final

import attrs

from joulemap.ask import Caveat, Change, Facts, Quantity, Refusal, Score
from joulemap.show import (
    MOST_WHY,
    Asked,
    Document,
    Page,
    Section,
    Template,
    Text,
    compose,
    describe_refusal,
    describe_trust,
    fits,
    lay_columns,
    show,
    show_interval,
    show_plain,
    show_quantity,
    show_share,
    show_span,
    show_table,
)
from joulemap.system import format_si
from joulemap.wing.verify.ask.verify import VerifyAnswer
from joulemap.wing.verify.compared import UNIT, quantify
from joulemap.wing.verify.generated.row import CauseRow, VerifiedRow
from joulemap.wing.verify.show.word import (
    NOUN,
    UNDER,
    WORDS,
    describe_change,
    describe_condition,
    keep_conditions,
    list_conditions,
)

HEAD: Final = Template("{error}[: {inside}][; {cause}].")
ERROR: Final = Template("Error {error}")
MEDIAN: Final = Template("Median error {error}")
ONE_IS: Final = Template("{count} is {where} the 80 % range of its prediction")
SOME_ARE: Final = Template("{count} are inside the 80 % ranges of their predictions")
THE_ONE, BOTH, NEITHER = "the measurement", "both measurements", "neither measurement"
ALL: Final = Template("all {judged} measurements")
NONE: Final = Template("none of {judged} measurements")
SOME: Final = Template("{inside} of {judged} measurements")
PAIR: Final = 2
POSSIBLE: Final = Template("possible cause: {change}")
NOT_PREDICTED: Final = "No measurement is predicted."
UNSCORED: Final = Template("not scored: {reasons}")
BY_CHANCE: Final = "80 % ranges: one in five measurements is outside by chance"
NO_INTERVAL: Final = "without an interval"
EFFECT: Final = Template(
    "with {change}, the prediction of {quantity} would be {predicted}, and the measured {measured} would be {verdict}"
    "[; {inside_count} of {judged} configurations would be inside]"
)
FAR: Final = 10.0
"""Ratio of measured and predicted value, in either direction, from which the measurement may be of something else.

Source: assumed.
"""
SUSPECTS: Final = "the number of passes, the batch size, the units and the warm-up"
SUSPECTS_OF: Final = {"time_to_first_token_s": "whether it includes a queue or a warm-up"}
"""Quantity -> what to check if it is far off, in place of `SUSPECTS`."""

OPTION: Final[Mapping[str, str]] = {
    "weight_precision": "precision",
    **{name: name for name in ("precision", "runtime", "engine", "hardware")},
}
"""Kind of change -> option of the command that sets it."""

ONE: Final = Template("{model} on {hardware}, {configuration} ({format})")
SEVERAL: Final = Template("{case_index:n configuration} ({formats:and})")
VERDICTS: Final = {True: "inside", False: "OUTSIDE", None: ""}
STANDINGS: Final = {"stated": "stated by the file", "assumed": "assumed", "open": "not stated"}
"""Standing of a cause -> displayed name."""

CLOSE_DIGITS: Final = 4
"""Significant digits of a measured value that is near an end of its interval, and of the interval."""


def describe_answer(facts: Facts) -> str:
    """Return the median error, the measurements inside their intervals, and a short cause of the others."""
    scores = facts.of(Score)
    judged = [one for one in scores if one.is_inside is not None]
    counted = judged or scores
    if not counted:
        return NOT_PREDICTED
    error = math.expm1(median(abs(math.log(one.measured.value / one.predicted.value)) for one in counted))
    shown = show_share(error) if error < 1.0 else f"{show_plain(1.0 + error)}x"
    given = {
        "error": (ERROR if len(counted) == 1 else MEDIAN)(error=shown),
        "inside": _count_inside(sum(bool(one.is_inside) for one in judged), len(judged)) if judged else None,
    }
    lines = (HEAD(cause=cause, **given) for cause in _list_causes(facts))
    return next((one for one in lines if fits(one)), HEAD(cause=None, **given))


def _count_inside(inside: int, judged: int) -> str:
    """Return a clause on how many measurements are inside their intervals."""
    if judged == 1:
        return ONE_IS(count=THE_ONE, where="inside" if inside else "outside")
    if not inside:
        return ONE_IS(count=NEITHER if judged == PAIR else NONE(judged=judged), where="inside")
    if inside == judged:
        return SOME_ARE(count=BOTH if judged == PAIR else ALL(judged=judged))
    some = SOME(inside=inside, judged=judged)
    return ONE_IS(count=some, where="inside") if inside == 1 else SOME_ARE(count=some)


def _find_cause(facts: Facts) -> Change | None:
    """Return the cause that explains most; with another chip in the file, only the chip is one."""
    has_chip = any(one.kind == "other_chip" for one in facts.of(Caveat))
    best = next((one for one in facts.of(Change) if not has_chip or one.values["standing"] == "stated"), None)
    return best if best is not None and best.values["inside_count"] else None


def _list_causes(facts: Facts) -> Iterator[str]:
    """Yield short clauses on the cause of measurements outside their intervals, the fullest first."""
    if all(one.is_inside is not False for one in facts.of(Score)):
        return
    yield from _describe_kind(facts, "other_chip")
    cause = _find_cause(facts)
    if cause is not None:
        yield POSSIBLE(change=describe_change(cause.cause, cause.values))


def list_reasons(facts: Facts) -> list[str]:
    """Return lines on the effect of the best cause, or on a difference that nothing explains."""
    chip = _describe_kind(facts, "other_chip") if _find_cause(facts) is None else ()
    effect = [*_describe_effect(facts), *chip, *_describe_furthest(facts)]
    return [*effect, *_describe_kind(facts, "transposed")][:MOST_WHY]


def _describe_effect(facts: Facts) -> Iterator[str]:
    cause = _find_cause(facts)
    if cause is None:
        return
    measured = next(one.measured for one in facts.of(Score) if one.run == cause.run)
    shown, inside = show_both(measured, cause.after), cause.values["is_inside"]
    yield EFFECT(
        change=describe_change(cause.cause, cause.values),
        quantity=NOUN[cause.metric],
        measured=shown[0],
        predicted=shown[1],
        verdict=NO_INTERVAL if inside is None else "inside" if inside else "outside",
        inside_count=cause.values["inside_count"],
        judged=cause.values["judged_count"] if cause.values["judged_count"] != 1 else None,
    )


def _describe_furthest(facts: Facts) -> Iterator[str]:
    for one in facts.of(Caveat):
        if one.kind == "unexplained":
            name, ratio = str(one.values["quantity"]), one.values["ratio"]
            suspects = SUSPECTS_OF.get(name, SUSPECTS) if _is_far(one) else None
            yield WORDS.caveats[one.kind](quantity=NOUN[name], ratio=ratio, suspects=suspects)


def _is_far(caveat: Caveat) -> bool:
    """Return True if a measurement is so far from its prediction that it may be of something else."""
    ratio = float(caveat.values["ratio"])  # type: ignore[arg-type]
    return max(ratio, 1.0 / ratio) >= FAR


def _describe_kind(facts: Facts, kind: str) -> Iterator[str]:
    yield from (describe_condition(one.kind, one.values) for one in facts.of(Caveat) if one.kind == kind)


def list_remarks(facts: Facts) -> list[str]:
    """Return lines below the table: what was left out or not scored, stored and calibrated."""
    reasons = dict.fromkeys(map(describe_refusal, facts.of(Refusal)))
    unscored = [UNSCORED(reasons="; ".join(reasons))] if reasons else []
    return [*unscored, *(line for kind in UNDER for line in _describe_kind(facts, kind))]


def describe_doubt(facts: Facts) -> str:
    """Return the line on trust: what ranges mean, and the conditions that could move a comparison most."""
    judged = any(one.is_inside is not None for one in facts.of(Score))
    return describe_trust(keep_conditions(facts), BY_CHANCE if judged else "")


def list_steps(answer: VerifyAnswer) -> list[str]:
    """Return commands that test the best cause or keep what was measured; none can read standard input again."""
    facts, files = answer.facts, answer.files
    if "-" in files:
        return []
    kinds = {one.kind for one in facts.of(Caveat)}
    own = {name: value for name, value in answer.options.items() if value}
    steps = [{**own, **changed}] if (changed := _find_option(facts)) and len(files) == 1 else []
    is_far = any(_is_far(one) for one in facts.of(Caveat) if one.kind == "unexplained")
    is_written = any(one.values.get("path") for one in facts.of(Caveat))
    if kinds & {"can_calibrate", "fitted"} and not is_far and not is_written:
        steps.append({**own, "calibrate": None})
    if "imported" not in kinds and facts.of(Score) and all(one.is_inside is not False for one in facts.of(Score)):
        steps.append({**own, "keep": None})
    return [shlex.join(["joulemap", "verify", *files, *_spell(one)]) for one in steps]


def _spell(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        yield f"--{name}"
        if value is not None:
            yield str(value)


def _find_option(facts: Facts) -> dict[str, Any]:
    """Return the option that tests the best cause; empty if no option does."""
    chip = next((one.values["hardware"] for one in facts.of(Caveat) if one.kind == "other_chip"), None)
    cause = _find_cause(facts)
    if chip:
        return {"hardware": chip}
    if cause is None:
        return {}
    if "hardware" in cause.values:
        return {"hardware": cause.values["hardware"]}
    return {OPTION[cause.cause]: cause.values["new"]} if cause.cause in OPTION else {}


def show_value(value: Quantity | None) -> str:
    """Return a measured or predicted value with its interval; empty without a value."""
    return "" if value is None else show_interval(value.value, value.unit, value.half_width)


def show_both(measured: Quantity | None, predicted: Quantity | None) -> tuple[str, str]:
    """Return a measured value and its prediction; with more digits if an end of the interval looks like the value."""
    width = predicted.half_width if predicted is not None else None
    if measured is None or predicted is None or not width:
        return show_value(measured), show_value(predicted)
    ends = [predicted.value * math.exp(sign * width) for sign in (-1.0, 1.0)]
    if f"{measured.value:.1e}" not in {f"{end:.1e}" for end in ends}:
        return show_value(measured), show_value(predicted)
    span = show_span(*(_show_close(Quantity(end, predicted.unit)) for end in ends))
    return _show_close(measured), f"{show_quantity(predicted.value, predicted.unit)} ({span})"


def _show_close(value: Quantity) -> str:
    """Return a value with `CLOSE_DIGITS` digits, for a comparison that depends on them."""
    if not value.unit.isalpha():
        return show_value(value)
    return format_si(value.value, value.unit, CLOSE_DIGITS)


def name_case(answer: VerifyAnswer, row: VerifiedRow) -> str:
    """Return the name of a configuration in its first row; empty in other rows, or of an only configuration."""
    first = next(one for one in answer.rows if one.case_index == row.case_index)
    is_named = answer.rows.rows[-1].case_index > 1 and first.quantity == row.quantity
    return f"{row.model} {row.hardware} {row.configuration}" if is_named else ""


def title_cases(answer: VerifyAnswer) -> str:
    """Return the configuration, or the number of configurations, and the formats of the files."""
    first, count = answer.rows[0], answer.rows.rows[-1].case_index
    return (ONE if count == 1 else SEVERAL)(first, case_index=count, formats=list(answer.formats))


def show_judged(answer: VerifyAnswer, most: int) -> Section:
    """Return the section of measurements beside their predictions, with what was left out below it."""
    of = VerifiedRow
    columns = (
        of.case_index.by(partial(name_case, answer)).if_varied,
        of.quantity.by(lambda row: NOUN[row.quantity]).kept,
        of.measured.by(lambda row: show_both(*quantify(row))[0]).kept,
        of.predicted.by(lambda row: show_both(*quantify(row))[1]).kept,
        of.ratio.by(lambda row: show(row.ratio, "ratio")),
        of.is_inside.by(lambda row: VERDICTS[row.is_inside]).kept,
        of.calibrated.by(_show_calibrated).if_any,
    )
    drawn = lay_columns(answer, answer.rows, columns, limit=most)
    return Section("", (drawn, *map(Text, list_remarks(answer.facts))), is_tight=True)


def _show_calibrated(row: VerifiedRow) -> str:
    """Return the calibrated value of a row; empty for none."""
    return show_value(Quantity(row.calibrated, UNIT[row.quantity])) if row.calibrated else ""


def show_causes(answer: VerifyAnswer) -> list[Section]:
    """Return the section of possible causes."""
    of = CauseRow
    columns = (
        of.change.kept,
        of.standing.by(lambda row: STANDINGS[row.standing]),
        of.quantity.by(lambda row: NOUN[row.quantity]).kept,
        of.measured.by(lambda row: show_both(*quantify(row))[0]),
        of.predicted.by(lambda row: show_both(*quantify(row))[1]).kept,
        of.is_inside.by(lambda row: VERDICTS[row.is_inside]).kept,
        of.inside_count,
    )
    return show_table(answer, "Possible causes", answer.causes, columns)


def draw_verified(answer: VerifyAnswer, asked: Asked) -> Document:
    """Return the document of a verification."""
    facts = answer.facts
    reasons, notes, steps = list_reasons(facts), list_conditions(facts), list_steps(answer)
    document = compose(
        answer,
        [show_judged(answer, asked.most(12))] if answer.rows else [],
        answer.rows,
        title=title_cases(answer),
        headline=describe_answer(facts),
        reasons=reasons,
        details=show_causes(answer),
        notes=notes,
        words={"insights": list(reasons), "notes": list(notes), "next_steps": steps},
        facts=facts,
        trust=describe_doubt(facts),
    )
    return attrs.evolve(document, steps=tuple(steps))


PAGES: Final = {VerifyAnswer: Page[VerifyAnswer](draw=draw_verified)}
