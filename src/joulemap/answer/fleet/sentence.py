"""Sentences about fleets: the best, how near it is to its promise, who is next, how sure that is."""

from __future__ import annotations

from joulemap.answer.fleet.mixture import SAVED, MixedRow
from joulemap.answer.fleet.pair import PairRow
from joulemap.answer.fleet.row import LATE, OBJECTIVES, OK, show_carried
from joulemap.answer.fleet.table import FleetTables
from joulemap.answer.scope import TIE_RATIO, join_words
from joulemap.domain.doubt import TOLD_APART
from joulemap.present.cell import show, show_chance, show_count, show_quantity, show_share
from joulemap.system.record import frozen


@frozen(kw_only=True)
class FleetSentences(FleetTables):
    """An answer about fleets in words."""

    def _find_together(self) -> tuple[MixedRow | PairRow, str, str] | None:
        """Return the fleet of two kinds that takes less than any of one, what it is, and how much less; None if none.

        The one that takes least, where kinds side by side and kinds for prompts and for answers both do.
        """
        found: list[tuple[float, MixedRow | PairRow, str]] = [
            *((row.saved_fraction, row, row.form) for row in self.mixtures),
            *((1.0 - (row.regret_ratio or 0.0), row, "prompts > answers") for row in self.pairs),
        ]
        saved, row, form = max(found, key=lambda one: one[0], default=(0.0, None, ""))
        if row is None or saved <= 1.0 - SAVED:
            return None
        return row, form, f"{saved:.0%} less than" if self.ok else ""

    def _say_best(self) -> str:
        """Return the best fleet of the objective in a sentence."""
        found, alone = self._find_together(), self._say_best_of_one()
        if found is None:
            return alone
        row, form, less = found
        column, unit = OBJECTIVES[self.demand.objective]
        value = show(getattr(row, column), "", unit)
        text = f"{row.label} ({form}): {value} a month, {show_quantity(row.power_w, 'W')} at the highest rate"
        return f"{text}; {less} the best of one kind, {alone}" if less else f"{text}; of one kind {alone}"

    def _say_best_of_one(self) -> str:
        """Return the best fleet of one kind in a sentence."""
        winner = next((row for row in self.winners if row.objective == self.demand.objective), None)
        if winner is None:
            first = self.rows[0]
            if first.status != OK:
                return f"no fleet keeps all limits; {first.label}: {first.reason}"
            return (
                "no fleet that keeps all promises and limits has a price that is known; "
                f"{first.device_count} {self.scope.mark(first.label)}: {show_quantity(first.power_w, 'W')}"
            )
        row = next(row for row in self.ok if row.label == winner.label)
        value = show(winner.value, "", winner.unit)
        paid = f", {row.way}" if row.way else ""
        text = f"{row.device_count} {self.scope.mark(row.label)}{paid}: {value} a month"
        text += f", {show_quantity(row.power_w, 'W')} and {show_share(row.busy_fraction)} busy at the highest rate"
        if winner.runner_up and winner.regret_ratio is not None:
            other = f"{winner.regret_ratio:.3g}x that" if winner.regret_ratio > TIE_RATIO else "as much"
            text += f"; {self.scope.mark(winner.runner_up)} is next, with {other}"
        return text

    def _insights(self) -> list[str]:
        """Return how near the best is to its promise, who needs least energy, and what could not serve it."""
        best = next(iter(self.ok), None)
        told = []
        if best is not None and best.promise_fraction is not None:
            first, _, then = best.fails_first.partition(", ")
            fails = f"; grown by half, {first} fails first" + (f", {then}" if then else "") if first else ""
            alone = f"{self.scope.mark(best.label)} alone: " if self._find_together() else ""
            told.append(
                f"{alone}99 of 100 take {best.promise_fraction:.0%} of what is promised; it carries "
                f"{show_carried(best.carried_ratio)} the highest rate{fails}"
            )
        goals = {row.objective: row for row in self.winners}
        energy = goals.get("energy")
        if energy is not None and best is not None and energy.label != best.label:
            row = next(one for one in self.rows if one.label == energy.label)
            told.append(
                f"{self.scope.mark(energy.label)} needs least energy: {show(energy.value, '', 'kWh')} a month, "
                f"{show_quantity(row.power_w, 'W')} with {show_count(row.device_count or 0, 'device')}"
            )
        told_first = (self._find_together() or (None,))[0]
        if self.mixtures.rows and self.mixtures[0] is not told_first:
            mixed = self.mixtures[0]
            told.append(
                f"mixed, {mixed.label} ({mixed.form}) take {mixed.saved_fraction:.0%} less than the best of one kind"
            )
        if self.pairs.rows and self.pairs[0] is not told_first:
            told.append(self._say_pair())
        late = [row for row in self.rows if row.status == LATE]
        over = [row for row in self.rows if row.status not in (OK, LATE)]
        unused = sorted(set(self.demand.owned) - {row.chip for row in self.rows})
        if unused:
            told.append(f"{join_words(unused)} is owned, but not among the hardware that is compared")
        unpriced = list(dict.fromkeys(row.hardware for row in self.ok if row.cost_per_month is None))
        if unpriced and self.demand.objective == "cost":
            price = {"rented": "rent", "bought": "purchase price"}.get(self.pay, "price")
            more = [f"{len(unpriced) - 3} more"] if unpriced[3:] else []
            other = "" if price == "price" else " (--pay both takes either)"
            told.append(f"no {price} is known of {join_words([*unpriced[:3], *more])}: not compared by cost{other}")
        if late:
            told.append(f"no number of {join_words([row.hardware for row in late[:3]])} keeps the promise (--details)")
        if best is None:
            over = over[1:]
        if over:
            told.append(f"{over[0].label}: {over[0].reason}" + (f"; so of {len(over) - 1} more" if over[1:] else ""))
        return told

    def _say_pair(self) -> str:
        """Return what prompts and answers apart take, in comparison to the best of one kind."""
        pair = self.pairs[0]
        text = f"prompts and answers apart, {pair.label}"
        if pair.regret_ratio is None or pair.regret_ratio < SAVED:
            less = 1.0 - (pair.regret_ratio or 0.0)
            return f"{text} take {less:.0%} less than the best of one kind"
        return f"{text} take {pair.regret_ratio:.3g}x the best of one kind, which needs no link"

    def _say_sure(self) -> str:
        told = []
        winner = next((row for row in self.winners if row.objective == self.demand.objective), None)
        if winner is not None and winner.probability_best is not None:
            sure = f"{'of one kind ' if self._find_together() else ''}{show_chance(winner.probability_best)}"
            told.append(
                f"{sure} that {winner.label} takes less than {winner.runner_up}"
                + ("" if winner.probability_best >= TOLD_APART else ": they cannot be told apart")
            )
        best = next(iter(self.ok), None)
        if best is not None and best.device_low_count and best.device_high_count:
            low, high = best.device_low_count, best.device_high_count
            told.append(
                f"{low} to {high} devices at 80 %" if low != high else f"{low} for 4 in 5 of what its times may be"
            )
        return "; ".join(told)
