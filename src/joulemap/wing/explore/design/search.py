"""Evolutionary search of a large design space: each generation derives from the best designs of the previous ones.

Source: K. Deb et al., A fast and elitist multiobjective genetic algorithm: NSGA-II, 2002, as implemented by Optuna; for
one objective tree-structured Parzen estimators (J. Bergstra et al., 2011).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from joulemap.system import MissingPackageError
from joulemap.wing.explore.design.outcome import Bound, Objective, Outcomes, evaluate_designs

if TYPE_CHECKING:
    from joulemap.physics import Integers
    from joulemap.wing.explore.design.task import Group

POPULATION: Final = 50
"""Designs per generation."""

SEARCHES: Final = ("optuna",)
"""Supported search libraries."""

UNABLE: Final = 1e6
"""Excess over limits that the search assigns to a design that cannot run."""


def search_group(
    group: Group,
    objectives: Sequence[Objective],
    bounds: tuple[Bound, ...],
    seed: int,
    report: Callable[[int, int], None],
) -> Group:
    """Return a group with only the distinct designs that a search evaluated; the group itself if it asks for all
    designs.

    `report` receives (designs done, designs to do). Raises MissingPackageError if Optuna is not installed.
    """
    space, count = group.space, len(group.numbers)
    if count >= space.size:
        return group
    study = _begin(len(objectives), seed)
    looked: list[Integers] = []
    evaluated: list[Outcomes] = []
    asked = 0
    while asked < count:
        trials = [study.ask() for _ in range(min(POPULATION, count - asked))]
        asked += len(trials)
        places = [
            np.array([trial.suggest_int(one.name, 0, len(one.values) - 1) for trial in trials])
            for one in space.parameters
        ]
        numbers = space.number(places)
        outcomes = evaluate_designs(space, numbers, group.models)
        _report_results(study, trials, outcomes, objectives, bounds)
        looked.append(numbers)
        evaluated.append(outcomes)
        report(asked, count)
    whole, first = np.unique(np.concatenate(looked), return_index=True)
    return attrs.evolve(group, numbers=whole, outcomes=Outcomes.join(evaluated).take(first))


def _begin(objective_count: int, seed: int) -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingPackageError("optuna", "search") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers = optuna.samplers
    sampler: Any
    if objective_count == 1:
        sampler = samplers.TPESampler(seed=seed, n_startup_trials=POPULATION)
    else:
        sampler = samplers.NSGAIISampler(seed=seed, population_size=POPULATION)
    return optuna.create_study(directions=["minimize"] * objective_count, sampler=sampler)


def _report_results(
    study: Any, trials: list[Any], outcomes: Outcomes, objectives: Sequence[Objective], bounds: tuple[Bound, ...]
) -> None:
    """Report the objectives of a generation to a study, as logarithms to minimize.

    A design that cannot run is reported as violating all limits.
    """
    runs = outcomes.is_evaluated
    costs = np.stack([one.sign * np.log(outcomes.value(one)) for one in objectives], axis=1)
    misses = np.stack([*(np.log(bound.excess(outcomes)) for bound in bounds), np.where(runs, 0.0, UNABLE)], axis=1)
    costs, misses = np.where(runs[:, None], costs, UNABLE), np.where(runs[:, None], misses, UNABLE)
    for trial, cost, miss in zip(trials, costs.tolist(), misses.tolist(), strict=True):
        for number, one in enumerate(miss):
            trial.set_constraint(f"limit {number}", one)
        study.tell(trial, cost)
