"""Answers about a model on chips: which one to take, and why two of them differ."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from joulemap.ask import Choice, Facts, Refusal, Term
from joulemap.domain import MetricName
from joulemap.show import describe_trust, name_run
from joulemap.show.choice import describe_answer
from joulemap.show.page import add_lost
from joulemap.show.present.cell import show_signed
from joulemap.show.term import describe_difference, describe_gap, describe_ranges
from joulemap.system import FJ_PER_J, JoulemapError, UsageError
from joulemap.wing.tab import show
from joulemap.wing.tab.contest import Contest, find_difference, find_facts, find_request, hold_contest, order_rows
from joulemap.wing.tab.draw import Block, draw_front, draw_intervals, draw_parts, draw_waterfall
from joulemap.wing.tab.state import Answer, State, find_plain, read_whole

MOST_CHIPS = 60
"""Maximum chips of one answer; a browser takes some milliseconds for each."""

MOST_BATCH = 65536


def compare(state: State) -> Answer:
    """Return which of several chips needs least energy and least time for a model."""
    chips, left_out = _find_known(state["chips"])
    if not chips:
        raise UsageError(left_out[0] if left_out else show.NO_NAME)
    contest = _hold(state, chips)
    left_out += [str(one) for one in contest.found.refusal if one]
    answer: Answer = {
        "title": _describe_subject(contest),
        "command": _write_command("compare", state, contest),
        "left_out": left_out,
    }
    if not contest.runs:
        return {**answer, "line": show.NO_CHIP, "blocks": []}
    facts = find_facts(contest)
    lost = {chip: one.reason for one in facts.of(Refusal) for chip in one.hardware}
    by_energy = order_rows(contest, tuple(contest.runs))
    names = {row: name_run(run) for row, run in contest.runs.items()}
    chances = contest.find_front() if len(names) > 1 else {}
    found = contest.found
    points = [
        (names[row], float(found.latency_s[row]), float(found.energy_j[row]), chance) for row, chance in chances.items()
    ]
    return {
        **answer,
        "line": add_lost(describe_answer(facts), lost),
        "why": describe_gap(facts),
        "trust": describe_trust(facts),
        "links_text": show.WHY,
        "links": [
            {"view": "why", "chips": f"{contest.chips[row]},{contest.chips[by_energy[0]]}", "text": names[row]}
            for row in by_energy[1:]
        ],
        "blocks": [
            _draw_intervals(show.ENERGY, contest, facts, "energy"),
            _draw_intervals(show.LATENCY, contest, facts, "latency"),
            draw_parts([(names[row], contest.find_parts(row)) for row in by_energy]),
            *([draw_front(points)] if points else []),
        ],
    }


def _draw_intervals(heading: str, contest: Contest, facts: Facts, metric: MetricName) -> Block:
    """Return the values of all chips in a metric, with marks at the best of the available chips and its ties."""
    choice = next((one for one in facts.of(Choice) if one.metric == metric), None)
    marks = {} if choice is None else dict.fromkeys(choice.tied, "tied") | {choice.run: "best"}
    rows = [
        (name_run(contest.runs[row]), contest.find_value(row, metric), marks.get(row, ""))
        for row in order_rows(contest, tuple(contest.runs), metric)
    ]
    return draw_intervals(heading, rows)


def explain(state: State) -> Answer:
    """Return why the energies of two chips differ: parts that sum to the difference exactly."""
    chips, left_out = _find_known(state["chips"])
    if len(chips) < 2:
        raise UsageError(". ".join([*left_out, show.TWO_CHIPS]))
    contest = _hold(state, chips[:2])
    left_out += [str(one) for one in contest.found.refusal if one]
    command = _write_command("explain", state, contest)
    if len(contest.runs) < 2:
        return {"line": show.TWO_CHIPS, "left_out": left_out, "command": command, "blocks": []}
    facts = find_difference(contest)
    terms: list[Term] = facts.of(Term)
    first, second = (name_run(contest.runs[row]) for row in (0, 1))
    before, after = (int(one) for one in contest.points.energy_fj)
    return {
        "title": show.DIFFERENCE(subject=_describe_subject(contest), first=first, second=second),
        "command": command,
        "left_out": left_out,
        "line": describe_difference(facts),
        "why": [
            show.SUM(
                parts=show_signed(sum(one.exact or 0 for one in terms) / FJ_PER_J, "J"), first=first, second=second
            )
        ],
        "trust": describe_trust(facts, describe_ranges(facts)),
        "links": [],
        "blocks": [draw_waterfall((first, second), (before, after), terms)],
    }


def _find_known(text: str) -> tuple[list[str], list[str]]:
    """Return the ids of named chips, each once, and a line for each name that is unknown."""
    ids, lines = dict[str, None](), list[str]()
    named = [one.strip() for one in text.split(",") if one.strip()]
    for name in named[:MOST_CHIPS]:
        try:
            ids[find_plain(name).id] = None
        except JoulemapError as error:
            lines.append(str(error))
    if len(named) > MOST_CHIPS:
        lines.append(show.TOO_MANY(count=len(named) - MOST_CHIPS, most=MOST_CHIPS))
    return list(ids), lines


def _hold(state: State, chips: Sequence[str]) -> Contest:
    request = find_request(state["model"], read_whole(state, "batch", 1, MOST_BATCH))
    return hold_contest(request, chips, state["precision"], state["runtime"])


def _write_command(name: str, state: State, contest: Contest) -> str:
    options = ("--precision", contest.precision, "--batch", state["batch"], "--runtime", contest.runtime)
    return shlex.join(["joulemap", name, contest.request.model, *contest.chips, *options])


def _describe_subject(contest: Contest) -> str:
    request = contest.request
    return show.SUBJECT(model=request.model, batch=request.batch, precision=contest.precision, runtime=contest.runtime)
