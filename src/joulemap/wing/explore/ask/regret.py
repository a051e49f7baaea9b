"""Find the best chip for each of many models, and the single chip with the least regret over all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from joulemap.ask import Answer
from joulemap.catalog.sheet import load_shipped
from joulemap.domain import CANDIDATES, LIMITS, Limits, Settings, Table, check_name, make_table
from joulemap.plan import Source, plan_selected, select_hardware
from joulemap.system import UnsupportedError, frozen
from joulemap.wing.explore.design.outcome import OBJECTIVES
from joulemap.wing.explore.design.question import NO_SHARES, read_bounds, read_shares
from joulemap.wing.explore.design.regret import evaluate_all, find_rivals, list_regrets, list_winners
from joulemap.wing.explore.generated.row import ChipRegret, WinnerColumns


@frozen(kw_only=True)
class RegretAnswer(Answer):
    """Answer with the best chip of each model, and the regret of each chip."""

    about = ("objective", "models", "point_count", "points_per_s")

    objective: str
    models: tuple[str, ...]
    rows: Table[ChipRegret]
    """Chips by ascending regret; those that run all models come first."""
    winners: Table[WinnerColumns]
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
    check_name("objective", objective, OBJECTIVES)
    wanted = OBJECTIVES[objective]
    named = (models,) if isinstance(models, str) else tuple(dict.fromkeys(models))
    names = named or tuple(load_shipped())
    plan = plan_selected(names, settings, select_hardware(settings, "every mode"))
    shares, bounds, began = read_shares(names, share), read_bounds(limits, None, None), time.perf_counter()
    best, count = evaluate_all(source, plan, names, wanted, bounds)
    if not best:
        raise UnsupportedError("no configuration meets the limits", code="limits")
    seconds = time.perf_counter() - began
    winners = list_winners(best, names, wanted, find_rivals(source, settings, plan, best, names, wanted))
    return RegretAnswer(
        objective=objective,
        models=names,
        rows=make_table("regret", ChipRegret, list_regrets(best, shares)),
        winners=make_table("winners", WinnerColumns, winners),
        point_count=count,
        points_per_s=count / max(seconds, 1e-9),
    )
