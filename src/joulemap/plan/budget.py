"""The power that a chip gets where it is used, and the modes that keep within it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from joulemap.catalog.sheet import find_scenario, load_scenarios
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings

Pair = tuple[HardwareEntry, str]
"""A hardware at a power mode."""


@frozen(kw_only=True)
class Budget:
    """What a chip may be capped at."""

    power_w: float
    reason: str
    """Whose it is, with its source; empty where it was asked for by itself."""
    is_asked: bool
    """Whether it was asked for, not only a deployment that has it."""

    def __str__(self) -> str:
        return f"{self.power_w:g} W" + (f" ({self.reason})" if self.reason else "")


def enter_scenario(settings: Settings) -> Settings:
    """Return settings with the deployments of their scenario; UnknownNameError for one that does not exist."""
    if not settings.scenario or settings.deployment:
        return settings
    return attrs.evolve(settings, deployment=find_scenario(settings.scenario).deployment)  # type: ignore[arg-type]


def find_budget(settings: Settings) -> Budget | None:
    """Return the budget that was asked for, by itself, by a scenario or by deployments; None where there is none.

    Of several deployments the one that gives most counts. A power mode that is asked for leaves no choice to a
    deployment's budget.
    """
    if settings.power_budget_w is not None:
        return Budget(power_w=settings.power_budget_w, reason="", is_asked=True)
    if settings.scenario:
        chosen = [find_scenario(settings.scenario)]
    else:
        chosen = [] if settings.power_mode else [load_scenarios()[name] for name in settings.deployment]
    budgets = [(one.power_budget.value, one.name, one.power_budget) for one in chosen if one.power_budget is not None]
    if not budgets or len(budgets) < len(chosen):
        return None
    power_w, name, quantity = max(budgets, key=lambda one: one[0])
    source = quantity.source.removeprefix("assumption: ")
    return Budget(power_w=power_w, reason=f"{name}, {quantity.basis}: {source}", is_asked=bool(settings.scenario))


def keep_within(
    pairs: Sequence[Pair], budget: Budget, *, is_every_mode: bool, beside_w: Mapping[str, float]
) -> tuple[tuple[Pair, ...], dict[str, str]]:
    """Return what of some hardware at modes keeps within a budget, and name -> why another is left out.

    Hardware at its default mode stands for its largest one that fits, unless every mode is there by itself. A mode that
    was named counts against a budget that was asked for only. What sits in a host leaves it the watts of `beside_w`.
    """

    def draw_w(entry: HardwareEntry, mode: str) -> float:
        return entry.cap_w(mode) + beside_w.get(entry.id, 0.0)

    kept: list[Pair] = []
    left_out: dict[str, str] = {}
    for entry, mode in pairs:
        is_free = mode == DEFAULT_MODE and not is_every_mode
        modes = entry.distinct_modes if is_free else (mode,)
        fitting = [one for one in modes if draw_w(entry, one) <= budget.power_w or not (is_free or budget.is_asked)]
        if fitting:
            kept.append((entry, _largest(entry, fitting)))
        else:
            name = entry.id if mode == DEFAULT_MODE else f"{entry.id}@{mode}"
            with_host = " with its host" if entry.id in beside_w else ""
            left_out[name] = f"at least {min(draw_w(entry, one) for one in modes):.4g} W{with_host}"
    return tuple(dict.fromkeys(kept)), left_out


def _largest(entry: HardwareEntry, modes: Sequence[str]) -> str:
    """Return the mode with the highest cap; of equal ones the default, then the one that is listed last."""
    return max(reversed(modes), key=lambda mode: (entry.cap_w(mode), mode == DEFAULT_MODE))
