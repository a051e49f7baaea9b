"""Sentences on the best hardware of a comparison, and on its confidence."""

from __future__ import annotations

from typing import Final

from joulemap.answer.answer import RunAnswer
from joulemap.answer.scope import TIE_RATIO
from joulemap.domain.metric import METRIC
from joulemap.domain.table import Table
from joulemap.present.cell import join_names, show_chance, show_quantity, show_share
from joulemap.row.compare import Comparison, Recommendation
from joulemap.system.record import frozen


@frozen(kw_only=True)
class ComparedAnswer(RunAnswer):
    """One model on several hardware, and the best hardware for each goal."""

    recommendations: Table[Recommendation]
    """Best of all hardware, one row per goal; empty for a single run."""
    available: Table[Recommendation]
    """Best of the available hardware, one row per goal; of all hardware if fewer than two are available."""
    rows: Table[Comparison]
    """Rows by energy per inference, lowest first; unsupported ones last."""


SHOWN_RIVALS: Final = 2
"""Maximum hardware listed as tied with the best."""


def tell_winners(answer: ComparedAnswer) -> str:
    """Return the headline: the hardware with the least energy and the fastest, with ratios and confidence.

    For a single run, its energy, latency, power and utilization.
    """
    answered = [row for row in answer.rows if row.status == "ok"]
    if not answer.available.rows:
        one = answered[0]
        energy, latency = show_quantity(one.energy_j, "J"), show_quantity(one.latency_s, "s")
        power, used = show_quantity(one.average_power_w, "W"), show_share(one.compute_utilization_fraction)
        return f"{answer.scope.mark(one.hardware)} takes {energy} and {latency}, at {power} and {used} of its peak."
    frugal, fastest = _find_goals(answer.available)
    each = " per inference" if frugal.goal != "energy" else ""
    is_part = len(answer.available[0].ranked_ids) < len(answered)
    among = " of the available chips" if is_part else ""
    text = f"{answer.scope.mark(frugal.hardware)} uses the least energy{each}{among}"
    text += _advantage(answer, frugal, "less")
    is_same = fastest.hardware == frugal.hardware
    text += f"{', and' if is_same else f'; {answer.scope.mark(fastest.hardware)}'} is the fastest"
    text += f"{_advantage(answer, fastest, 'faster')}."
    return text + (_tell_beyond(answer) if is_part else _tell_unavailable(answer, frugal))


def _find_goals(rows: Table[Recommendation]) -> tuple[Recommendation, Recommendation]:
    """Return the goals of energy, per inference if present, and latency."""
    goals = {row.goal: row for row in rows}
    return goals.get("energy_per_inference") or goals["energy"], goals["latency"]


def _advantage(answer: ComparedAnswer, row: Recommendation, word: str) -> str:
    """Return the confidence that the best is the best of all, and its ratio to the next.

    The confidence to beat the next alone is added if it differs.
    """
    other = answer.scope.mark(row.runner_up or "")
    if row.tied_count > 1 or row.advantage_ratio is None or row.advantage_ratio < TIE_RATIO:
        return f", as {'fast' if word == 'faster' else 'little'} as {other}"
    sure = "" if row.probability_best is None else f" ({show_chance(row.probability_best)} sure)"
    ahead = "" if row.probability_ahead is None else f" ({show_chance(row.probability_ahead)} sure)"
    return f"{sure}, {row.advantage_ratio:.3g}x {word} than {other}{ahead if ahead != sure else ''}"


def _tell_beyond(answer: ComparedAnswer) -> str:
    """Return the projections that would be better if available, with ratios."""
    told: dict[str, list[str]] = {}
    for row, own, words in zip(
        _find_goals(answer.recommendations),
        _find_goals(answer.available),
        (("use", "less energy"), ("be", "faster")),
        strict=True,
    ):
        if not row.is_available and row.value < own.value:
            verb, word = words
            told.setdefault(row.hardware, []).append(f"{verb} {own.value / row.value:.3g}x {word}")
    better = [f"{answer.scope.mark(name)} would {join_names(gains)}" for name, gains in told.items()]
    return f" If available, {join_names(better)}." if better else ""


def _tell_unavailable(answer: ComparedAnswer, row: Recommendation) -> str:
    """Return that the best hardware is unavailable, and the best available one."""
    if row.is_available:
        return ""
    other = row.available_hardware
    had = f"; the best available is {answer.scope.mark(other)}" if other is not None else ", and neither are the others"
    return f" {answer.scope.mark(row.hardware)} is not available{had}."


def tell_doubt(answer: ComparedAnswer) -> str:
    """Return the interval of the figures, and the winners that are tied with others."""
    lines = list(filter(None, [answer.scope.say_spread()]))
    for row in _find_goals(answer.available) if answer.available.rows else ():
        if row.rivals:
            names = [answer.scope.mark(name) for name in (row.hardware, *row.rivals)]
            rest = len(names) - SHOWN_RIVALS - 1
            shown = join_names([*names[: SHOWN_RIVALS + 1], *([f"{rest} more"] if rest > 0 else [])])
            lines.append(f"{METRIC[row.goal].best} {METRIC[row.goal].label}: {shown} cannot be told apart")
    return "; ".join(lines)
