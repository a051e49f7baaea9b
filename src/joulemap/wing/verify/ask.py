"""Facts of a verification: a score per measurement, what was not scored, its conditions, and causes of differences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.ask.fact import Caveat, Change, Facts, Quantity, Refusal, Score, Subject, Value
from joulemap.ask.finding import Finding
from joulemap.ask.rule import weigh_findings

if TYPE_CHECKING:
    from joulemap.system.errors import Reason
    from joulemap.wing.verify.answer.cause import Cause
    from joulemap.wing.verify.generated.row import VerifiedRow

LIKELY: Final = ("assumed", "open", "stated")
"""Standings of causes that do not contradict a file."""

UNIT: Final[Mapping[str, str]] = {
    "latency_s": "s",
    "throughput_per_s": "1/s",
    "energy_j": "J",
    "power_w": "W",
    "peak_memory_bytes": "B",
    "time_to_first_token_s": "s",
    "inter_token_latency_s": "s",
    "request_latency_s": "s",
    "output_tokens_per_s": "1/s",
    "total_tokens_per_s": "1/s",
    "energy_per_output_token_j": "J",
    "energy_per_request_j": "J",
}
"""Measured quantity -> its unit."""


def find_facts(
    rows: Sequence[VerifiedRow],
    reasons: Mapping[int, Reason],
    by_case: Mapping[int, Iterable[Finding]],
    causes: Sequence[Cause],
    cases: Sequence[int],
    others: Mapping[int, str],
) -> Facts:
    """Return the facts of measured rows; a run of the facts is a row, counted from 1.

    `reasons` tell why rows are not scored. `by_case` has the findings on each configuration (1, 2, ...), and those on
    the whole answer at 0. `cases` are the configurations outside their intervals, in the order to which causes refer.
    `others` has the chip that the file of a configuration names in place of the user's; empty for an unknown one.
    """
    known = dict(enumerate(rows, 1))
    scores = [_score(key, row) for key, row in known.items() if row.measured is not None and row.predicted]
    changes = [_change(one, cases[one.index], known) for one in causes if one.row.standing in LIKELY]
    is_outside = any(one.is_inside is False for one in scores)
    # the chip that a file names is no cause if its prediction is as far off
    explains = any(one.row.cause == "hardware" and one.row.inside_count for one in causes)
    is_refuted = any(others.values()) and not explains
    chips = others if is_outside and not is_refuted else {}
    findings = [one for case, own in by_case.items() for one in _place(case, own, known, chips)]
    has_chip = any(one.kind == "other_chip" for one in findings)
    if is_outside and not has_chip and not any(one.values["inside_count"] for one in changes):
        findings.append(_find_furthest(scores))
    caveats = [attrs.evolve(one, weight=one.move) for one in weigh_findings(findings, ()) if isinstance(one, Caveat)]
    return Facts(
        asked=tuple(dict.fromkeys(row.quantity for row in rows)),
        runs={
            key: Subject(hardware=row.hardware, settings=(row.model, row.configuration)) for key, row in known.items()
        },
        facts=(*scores, *_refuse(reasons), *changes, *sorted(caveats, key=lambda one: -one.weight)),
    )


def _place(
    case: int, own: Iterable[Finding], known: Mapping[int, VerifiedRow], others: Mapping[int, str]
) -> Iterator[Finding]:
    """Yield findings for each row of their configuration; another chip that may be the cause is of its own kind."""
    keys = [key for key, row in known.items() if row.case_index == case]
    for one in own:
        is_chip = case in others and one.kind == "overridden" and one.values["option"] == "hardware"
        chip = {"hardware": others.get(case, "")}
        placed = Finding(kind="other_chip", values={**one.values, **chip}, doubt=one.doubt) if is_chip else one
        yield from (attrs.evolve(placed, run_id=key) for key in keys) if keys else (placed,)


def _score(key: int, row: VerifiedRow) -> Score:
    assert row.measured is not None
    assert row.predicted is not None
    unit = UNIT[row.quantity]
    width = math.log(row.high / row.predicted) if row.high else None
    return Score(
        runs=(key,),
        metric=row.quantity,
        predicted=Quantity(row.predicted, unit, width),
        measured=Quantity(row.measured, unit),
        is_inside=row.is_inside,
    )


def _refuse(reasons: Mapping[int, Reason]) -> Iterator[Refusal]:
    """Yield the measurements that were not scored, one per reason."""
    alike: dict[tuple[object, ...], list[int]] = {}
    for key, reason in reasons.items():
        alike.setdefault((reason.code, reason.text, *reason.values.items()), []).append(key)
    for keys in alike.values():
        yield Refusal.of(reasons[keys[0]], tuple(keys))


def _change(cause: Cause, case: int, known: Mapping[int, VerifiedRow]) -> Change:
    """Return the prediction of a row before and after a supposed change of its configuration."""
    row = cause.row
    key = next(key for key, one in known.items() if (one.case_index, one.quantity) == (case, row.quantity))
    unit = UNIT[row.quantity]
    own: dict[str, Value] = {"cause": row.cause, "standing": row.standing, "is_inside": row.is_inside}
    counts: dict[str, Value] = {"inside_count": row.inside_count, "judged_count": row.judged_count}
    chip = {"hardware": cause.supposed.hardware} if cause.supposed.hardware else {}
    return Change(
        runs=(key, key),
        metric=row.quantity,
        before=Quantity(cause.before, unit, cause.before_half_width),
        after=Quantity(row.predicted, unit, math.log(row.high / row.predicted) if row.high else None),
        cause=cause.supposed.kind,
        values={**cause.supposed.values, **chip, **own, **counts},
    )


def _find_furthest(scores: Sequence[Score]) -> Finding:
    """Return the measurement furthest from its prediction, among those outside their intervals."""
    outside = [one for one in scores if one.is_inside is False]
    furthest = max(outside, key=lambda one: abs(math.log(one.measured.value / one.predicted.value)))
    ratio = furthest.measured.value / furthest.predicted.value
    return Finding(kind="unexplained", run_id=furthest.runs[0], values={"quantity": furthest.metric, "ratio": ratio})


def find_watched_facts(
    hardware: str,
    measured_s: float,
    predicted_s: float | None,
    half_width: float | None,
    findings: Iterable[Finding],
    refusal: str,
) -> Facts:
    """Return the facts of a watched model: the time of a call beside the prediction, and findings on the calls.

    `half_width` is that of the interval of the predicted time; None without one, or for another machine.
    """
    scores = []
    if measured_s and predicted_s:
        is_inside = None
        if half_width is not None:
            is_inside = abs(math.log(measured_s / predicted_s)) <= half_width
        predicted = Quantity(predicted_s, "s", half_width)
        measured = Quantity(measured_s, "s")
        scores = [Score(runs=(1,), metric="latency_s", predicted=predicted, measured=measured, is_inside=is_inside)]
    refusals = [Refusal(runs=(1,), reason=refusal)] if refusal else []
    caveats = weigh_findings(list(findings), ())
    return Facts(asked=("latency_s",), runs={1: Subject(hardware=hardware)}, facts=(*scores, *refusals, *caveats))
