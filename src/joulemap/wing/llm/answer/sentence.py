"""Sentences on the best hardware for a language model, memory fit, and bottlenecks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from joulemap.answer.answer import RunAnswer
from joulemap.answer.scope import TIE_RATIO
from joulemap.domain.doubt import TOLD_APART
from joulemap.domain.table import Table
from joulemap.present.cell import join_names, show, show_chance, show_doubt, show_quantity
from joulemap.system.record import frozen
from joulemap.wing.llm.answer.demand import OK, TOO_LARGE
from joulemap.wing.llm.answer.row import ServedRow
from joulemap.wing.llm.row import ServedPhase, ServedWinner

NOTES: Final = (
    "first token: from request to first token, of a batch whose requests come together; between: between two tokens of "
    "a sequence, the mean over the whole output while the cache grows; tokens/s: output tokens of all sequences over "
    "the time of the whole requests",
    "J/token: of an output token but the first, whose energy is the prompts'; all devices together, their share of the "
    "host's waiting included; runs and their ledgers are of one device",
    "memory: of a device, weights, cache of the whole batch at its end, activations and what the engine reserves; "
    "most: sequences of this length that fit",
    "waits for: what most of the time goes to: memory, compute, operands (on their way through the chip to units that "
    "multiply for less than a tenth of the time), launch (starts of kernels), communication between devices, or engine "
    "(what that adds to its passes)",
)

SHOWN_NAMES: Final = 3
"""Maximum hardware names in a sentence."""

DOUBTED: Final = {
    "first token": "first_token_half_width",
    "between": "between_half_width",
    "J/token": "output_token_half_width",
}
"""Column of the table, with the column of its half-width."""

WORDS: Final = {
    "first_token": "has the shortest time to the first token",
    "between_tokens": "the shortest time between tokens",
    "energy": "uses the least energy per output token",
    "cost": "costs least",
}


@frozen(kw_only=True)
class ServedAnswer(RunAnswer):
    """Answer with the winners among several hardware, each at several batch sizes, for one language model."""

    rows: Table[ServedRow]
    """Rows in the requested order of hardware, the smallest batch first; includes refused configurations."""
    phases: Table[ServedPhase]
    """Prefill and decode of each configuration that is served."""
    winners: Table[ServedWinner]
    """One winner for each goal."""

    @property
    def served(self) -> tuple[ServedRow, ...]:
        """Rows of configurations that are served."""
        return tuple(row for row in self.rows if row.status == OK)

    def mark(self, label: str) -> str:
        """Return the display name of a configuration; hardware that can be neither bought nor rented is marked."""
        return self.scope.mark(label)


def say_winners(answer: ServedAnswer) -> str:
    """Return the winners in energy per token and in speed; for a single configuration, its figures."""
    if len({row.label for row in answer.served}) == 1:
        return _say_one(answer)
    goals = {row.goal: row for row in answer.winners}
    energy, between = goals["energy"], goals["between_tokens"]
    cost = show_quantity(energy.value, "J")
    text = f"{answer.mark(energy.label)} uses the least energy per output token ({cost} at batch {energy.batch})"
    text += _say_lead(answer, energy, "less")
    is_same = between.label == energy.label
    time = show_quantity(between.value, "s")
    subject = ", and is" if is_same else f"; {answer.mark(between.label)} is"
    text += f"{subject} the fastest between tokens ({time} at batch {between.batch})"
    return text + _say_lead(answer, between, "faster")


def _say_lead(answer: ServedAnswer, winner: ServedWinner, word: str) -> str:
    """Return a winner's lead over the next, with its confidence."""
    if winner.runner_up is None or winner.advantage_ratio is None:
        return ""
    if winner.advantage_ratio < TIE_RATIO:
        return f", as {answer.mark(winner.runner_up)}"
    at = "" if winner.runner_up_batch == winner.batch else f" at batch {winner.runner_up_batch}"
    other = f"{answer.mark(winner.runner_up)}{at}"
    if (winner.probability_best or 0.0) < TOLD_APART and winner.rivals:
        rest = len(winner.rivals) - 1
        more = f" and {rest} more" if rest else ""
        return f", not told apart from {answer.mark(winner.rivals[0])}{more}"
    return f", {winner.advantage_ratio:.3g}x {word} than {other} ({show_chance(winner.probability_best)} sure)"


def _say_one(answer: ServedAnswer) -> str:
    """Return the figures of the only hardware, alone and with its largest batch."""
    first, last = answer.served[0], answer.served[-1]
    told = [
        f"{answer.mark(first.label)} answers after {show_quantity(first.first_token_s, 's')} and then every "
        f"{show_quantity(first.between_s, 's')} at batch {first.batch}, with "
        f"{show_quantity(first.output_token_j, 'J')} for an output token"
    ]
    if last is not first:
        rate = show_quantity(last.tokens_per_s, "").strip()
        told.append(
            f"at batch {last.batch} every {show_quantity(last.between_s, 's')}, {rate} tokens/s in all, with "
            f"{show_quantity(last.output_token_j, 'J')}"
        )
    return "; ".join(told)


def say_insights(answer: ServedAnswer) -> list[str]:
    """Return insights: memory shortage and remedies, the bottleneck of both phases, and the lowest cost."""
    return [*_say_room(answer), *_say_bounds(answer), *_say_cost(answer)]


def _say_room(answer: ServedAnswer) -> list[str]:
    """Return the configurations that are too large, and what would fit."""
    found: dict[str, ServedRow] = {}
    for row in answer.rows:
        if row.status == TOO_LARGE:
            found.setdefault(row.label, row)
    if not found:
        return []
    told = [f"{answer.mark(label)} {row.reason}" for label, row in [*found.items()][:SHOWN_NAMES]]
    more = f"; so of {len(found) - SHOWN_NAMES} more" if len(found) > SHOWN_NAMES else ""
    return [f"{'; '.join(told)}{more}"]


def _say_bounds(answer: ServedAnswer) -> list[str]:
    """Return the bottleneck of each phase that most of the hardware shares."""
    told = []
    for noun, name in (("prompts wait", "prefill_bound"), ("output tokens wait", "decode_bound")):
        counts = Counter(getattr(row, name) for row in answer.served)
        ((bound, _),) = counts.most_common(1)
        is_alone = len({row.label for row in answer.served}) == 1
        batches: dict[str, dict[str, list[str]]] = {}
        for row in answer.served:
            batches.setdefault(row.label, {}).setdefault(getattr(row, name), []).append(str(row.batch))
        where: dict[str, list[str]] = {}
        for label, of in batches.items():
            for other, some in of.items():
                if other == bound:
                    continue
                at = f"at batch {join_names(some)}"
                on = f"on {answer.mark(label)}" + (f" {at}" if len(of) > 1 else "")
                where.setdefault(other, []).append(at if is_alone else on)
        names = [f"{other} {_join_places(places)}" for other, places in where.items()]
        but = f", but for {join_names(names)}" if names else ""
        told.append(f"{noun} for {bound}{but}")
    return ["; ".join(told)]


def _join_places(places: Sequence[str]) -> str:
    """Return `on a, b and c`, with the first few named."""
    preposition = places[0].partition(" ")[0]
    names = [place.removeprefix(preposition).strip() for place in places]
    rest = len(names) - SHOWN_NAMES
    return f"{preposition} {join_names([*names[:SHOWN_NAMES], *([f'{rest} more'] if rest > 0 else [])])}"


def _say_cost(answer: ServedAnswer) -> list[str]:
    """Return the lowest cost, and the carbon at that cost."""
    winner = next((row for row in answer.winners if row.goal == "cost"), None)
    if winner is None:
        return []
    row = next(one for one in answer.served if (one.label, one.batch) == (winner.label, winner.batch))
    cost, prompt = show(winner.value, "", "USD"), show(row.prompt_usd_per_million, "", "USD")
    sure = "" if winner.hardware_count < 2 else f" ({show_chance(winner.probability_best)} sure)"
    who = f"{answer.mark(winner.label)} is the cheapest{sure}: " if winner.hardware_count > 1 else ""
    carbon = show(row.output_gco2_per_million, "", "g")
    return [
        f"{who}{row.way} at {row.price_told}, batch {winner.batch}: a million output tokens cost {cost} (and {carbon} "
        f"of CO2), a million tokens of prompts {prompt}",
        *_describe_unlike(answer),
    ]


def _describe_unlike(answer: ServedAnswer) -> list[str]:
    """Return a note on hardware whose price is from another kind of seller; empty for none."""
    told = {row.hardware: row.unlike_told for row in answer.phases if row.unlike_told}
    names = "; ".join(f"{answer.mark(name)} {price}" for name, price in list(told.items())[:SHOWN_NAMES])
    return [f"not compared by cost, as the price is of another kind of seller: {names} (--seller)"] if told else []


def say_doubt(answer: ServedAnswer) -> str:
    """Return the uncertainty of the figures; statistical ties are stated with the winners."""
    return ", ".join([*_say_widths(answer), *answer.scope.say_own_doubts(is_yours=True)])


def _say_widths(answer: ServedAnswer) -> list[str]:
    """Return the uncertainty of the most and the least certain hardware; empty if unknown."""
    spans = []
    for heading, name in DOUBTED.items():
        widths = sorted(width for row in answer.served if (width := getattr(row, name)) is not None)
        ends = dict.fromkeys(show_doubt(width) for width in (*widths[:1], *widths[-1:]))
        spans += [f"{' to '.join(ends)} ({heading})"] if ends else []
    return [f"4 in 5 measurements of served models are within {join_names(spans)} of the figure"] if spans else []
