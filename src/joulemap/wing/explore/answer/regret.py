"""Answer about the best chip for each of many models, and the single chip with the least regret over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from joulemap.answer.base import Answer
from joulemap.domain.computed import make_table
from joulemap.domain.default import CANDIDATES, LIMITS
from joulemap.domain.metric import TIE_RATIO
from joulemap.domain.settings import Limits, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.source import Source
from joulemap.show.present.cell import show_chance
from joulemap.show.present.document import Document, Section
from joulemap.show.present.template import Template
from joulemap.system.record import frozen
from joulemap.wing.explore.design.best import show_objective
from joulemap.wing.explore.design.question import NO_SHARES, read_shares
from joulemap.wing.explore.design.regret import MOST_RIVALS, ChipRegret, ModelWinner, find_regrets
from joulemap.wing.explore.show import (
    BEST_OF_ALL,
    EVERY_MODEL,
    LEADS,
    LEADS_IN,
    LEAST_REGRET,
    NO_CHIP,
    REGRET_NOTES,
    SURE_WINNERS,
    TIE,
)

REGRET_TITLE: Final = Template("{count:n model} on all {chips:n chip} that run any: one chip for all, by {objective}")
REGRET_TITLE_OF_ONE: Final = Template("{model} on all {chips:n chip} that run it, by {objective}")
CHIPS: Final = (
    "*chip hardware | *regret regret_ratio | *worst ratio worst_ratio | *worst model worst_model | "
    "models model_count | missing?"
)
WINNERS: Final = Template(
    "*model | *best hardware | precision | batch | runtime | *{objective} value | next chip runner_up | "
    "ratio runner_up_ratio | *probability probability? | tied alike?"
)
TIED_MORE: Final = Template("{names:list}[, +{more}]")


@frozen(kw_only=True)
class RegretAnswer(Answer):
    """Answer with the best chip of each model, and the regret of each chip."""

    about = ("objective", "models", "point_count", "points_per_s")

    objective: str
    models: tuple[str, ...]
    rows: Table[ChipRegret]
    """Chips by ascending regret; those that run all models come first."""
    winners: Table[ModelWinner]
    point_count: int
    """Number of evaluated configurations."""
    points_per_s: float

    def document(self, *, limit: int = 12) -> Document:
        """Return the document with at most `limit` rows in each table."""
        winners = self._lay(
            self.winners,
            WINNERS(self),
            limit=limit,
            noun="models",
            ranked=self.objective,
            value=lambda row: show_objective(row.value, row.unit),
            probability=lambda row: show_chance(row.probability),
            alike=lambda row: _format_alike(row.alike),
        )
        chips = self._lay(self.rows, CHIPS, limit=limit, noun="chips", ranked="regret")
        return Document(
            title=(REGRET_TITLE if len(self.models) > 1 else REGRET_TITLE_OF_ONE)(
                self, count=len(self.models), model=self.models[0], chips=len(self.rows)
            ),
            answer=f"{self._describe_least()}.",
            sections=(Section("One chip for all models", chips), Section("Best chip of each model", winners)),
            insights=self._list_insights(),
            notes=tuple(note(rivals=MOST_RIVALS) for note in REGRET_NOTES),
            data=self.data(),
            table=self.rows,
            tables=self.tables,
        )

    def _describe_least(self) -> str:
        """Return a sentence on the chip with the least regret."""
        first = self.rows[0]
        if first.model_count < len(self.models):
            return NO_CHIP
        if (first.worst_ratio or 0.0) >= TIE_RATIO:
            return LEAST_REGRET(first, objective=self.objective)
        alone = self.winners[0] if len(self.models) == 1 else None
        return BEST_OF_ALL(
            first,
            leads=LEADS.get(self.objective) or LEADS_IN(self),
            scope="" if alone else EVERY_MODEL,
            chance=alone.probability if alone else None,
            runner_up=alone.runner_up if alone else None,
            tie=TIE(count=alone.alike_count or None) if alone else "",
        )

    def _list_insights(self) -> tuple[str, ...]:
        known = [one for one in self.winners if one.probability is not None]
        sure = sum(not one.alike_count for one in known)
        return (SURE_WINNERS(sure=sure or "none", known=len(known)),) if known and len(self.models) > 1 else ()


def _format_alike(alike: str) -> str:
    names = alike.split(", ") if alike else []
    return TIED_MORE(names=names[:2], more=len(names) - 2 if len(names) > 2 else None)


def explore_all(
    source: Source,
    models: str | Sequence[str] = (),
    settings: Settings = CANDIDATES,
    *,
    share: Mapping[str, float] = NO_SHARES,
    objective: str = "energy",
    limits: Limits = LIMITS,
) -> RegretAnswer:
    """Return the best configuration of each model, and the regret of each chip if it runs all models.

    Evaluates every chip of the settings, or of the catalogue, at every power mode, precision, batch and runtime.
    Without `models`, all built-in models are used. Energies are per inference. Raises like `compare`, and
    UnsupportedError if no configuration runs.
    """
    from joulemap.catalog.sheet import load_shipped
    from joulemap.plan.run import plan_selected
    from joulemap.plan.selection import select_hardware
    from joulemap.wing.explore.design.outcome import OBJECTIVES

    check_name("objective", objective, OBJECTIVES)
    wanted = OBJECTIVES[objective]
    named = (models,) if isinstance(models, str) else tuple(dict.fromkeys(models))
    names = named or tuple(load_shipped())
    plan = plan_selected(names, settings, select_hardware(settings, "every mode"))
    regrets = find_regrets(source, plan, settings, names, read_shares(names, share), wanted, limits)
    return RegretAnswer(
        objective=objective,
        models=names,
        rows=make_table("regret", ChipRegret, regrets.chips),
        winners=make_table("winners", ModelWinner, regrets.winners),
        point_count=regrets.point_count,
        points_per_s=regrets.point_count / max(regrets.seconds, 1e-9),
    )
