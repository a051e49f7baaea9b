"""Find the best chip for each of many models, and the single chip with the least regret over all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from joulemap.ask.answer import Answer
from joulemap.domain.computed import make_table
from joulemap.domain.default import CANDIDATES, LIMITS
from joulemap.domain.settings import Limits, Settings, check_name
from joulemap.domain.table import Table
from joulemap.plan.source import Source
from joulemap.system.record import frozen
from joulemap.wing.explore.design.question import NO_SHARES, read_shares
from joulemap.wing.explore.design.regret import ChipRegret, ModelWinner, find_regrets


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
