"""Device counts of a language model's server: the counts that may minimize the objective, and their servers.

    every number up to a node ─► upper bound of its servers ─► the few that may be best ─► simulated

A number of devices is skipped if even the upper bound of its servers exceeds `NEAR` times the best simulated value. The
bound needs a few passes; a simulation needs about a hundred, and then single requests.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.system import UnsupportedError, define, frozen
from joulemap.wing.fleet.capacity.row import NEAR
from joulemap.wing.fleet.capacity.served import Server, find_work_s, open_server
from joulemap.wing.llm.serve import OK, Case, Question, SaturatedRates, find_saturated_rates

if TYPE_CHECKING:
    from joulemap.plan import Plan
    from joulemap.wing.fleet.demand import Demand

ROUNDS: Final = 3
"""Maximum number of divisions that are simulated for one chip and precision."""


@frozen(kw_only=True, eq=False)
class Division:
    """Number of devices over which a server divides a language model."""

    plan: Plan
    case: Case
    demand: Demand
    rates: SaturatedRates | None
    """Saturated rates of one server; None if its passes cannot be evaluated."""
    server: Server | str = ""
    """Simulated server, or the reason why it cannot serve; empty until the division is opened."""

    @property
    def order(self) -> tuple[float, int, int]:
        """Sort key by which divisions are simulated: the estimate, then devices, then expert devices."""
        return self.estimate, self.case.world, self.case.experts

    @property
    def bound(self) -> float:
        """Lower bound of the devices, or joules per request, that servers of this division need.

        It is infinite if none meets the targets.
        """
        return self._count(min)

    @property
    def estimate(self) -> float:
        """Estimate of the devices, or joules per request, if prompts and answers share a server's time."""
        return self._count(lambda *_: 1.0 / find_work_s(self.rates))

    @property
    def value(self) -> float:
        """Devices, or joules per request, that the simulated servers need; infinite if they miss the targets."""
        server, rate = self.server, self.demand.peak_per_s
        if isinstance(server, str) or not server.most_per_s:
            return math.inf
        count = server.count(rate)
        if self.demand.objective == "cost":
            return float(count * self.case.world)
        return server.serve(rate / count).power_w * count / rate

    def _count(self, join: Callable[[float, float], float]) -> float:
        rates, demand = self.rates, self.demand
        if rates is None or rates.prompts is None or rates.answers is None:
            return math.inf
        if demand.objective != "cost":
            return rates.prompts.joules + rates.answers.joules
        count = math.ceil(demand.peak_per_s / join(rates.prompts.per_s, rates.answers.per_s))
        return float(demand.round_up(count * self.case.world))


@define(eq=False)
class _Search:
    """Search over the divisions of one chip at one precision."""

    waiting: list[Division]
    opened: list[Division] = attrs.field(factory=list)
    least: float = math.inf
    """Devices, or joules per request, of the best simulated division."""

    @property
    def most_left(self) -> int:
        """Maximum number of divisions that are still to be simulated."""
        return max(0, min(len(self.waiting), ROUNDS - len(self.opened)))

    def choose(self) -> Division | None:
        """Return the next division to simulate; None if no further division may be close to the best."""
        if len(self.opened) >= ROUNDS:
            return None
        if self.opened:
            self.waiting = [one for one in self.waiting if one.bound <= NEAR * self.least and one.bound < math.inf]
        return self.waiting.pop(0) if self.waiting else None

    def open(self, one: Division) -> None:
        """Simulate the servers of a division of this search."""
        server = one.server or open_server(one.case, one.rates, one.demand)
        self.opened.append(attrs.evolve(one, server=server))
        self.least = min(self.least, self.opened[-1].value)


def open_servers(
    choices: Sequence[tuple[Question, Plan, Sequence[Case]]], demand: Demand, report: Callable[[int, int], None]
) -> list[Division]:
    """Return the simulated servers of each chip, each with its division, or with the reason why it cannot serve.

    `choices` are those of `ServedModel.list_choices`, the checkpoint as published first. All precisions of a chip share
    one search, which begins with the published one. The cases include refused ones, each with the fewest devices that
    hold the model. If the question names numbers of devices or a box, exactly these divisions are returned. `report`
    gets the numbers of simulated divisions and of those that may be.
    """
    searches: dict[tuple[object, ...], _Search] = {}
    for question, plan, every in choices:
        is_named = bool(question.serving.devices or question.alike)
        for case in every:
            if is_named:
                if case.status == OK:
                    searches[question, case] = _Search(waiting=[_measure(plan, case, demand)])
                continue
            divisions = case.list_divisions()
            ready = keep_better([_measure(plan, one, demand) for one in divisions])
            ready.sort(key=lambda one: one.order)
            points = case.run.point.values() if len(choices) == 1 else ()
            search = searches.setdefault((case.run.target, *points), _Search(waiting=[]))
            first, search.waiting = search.waiting[:1], search.waiting[1:]
            search.waiting = first + sorted(search.waiting + ready, key=lambda one: one.order)
        _release(question)
    while chosen := [(one, search) for search in searches.values() if (one := search.choose())]:
        chosen.sort(key=lambda pair: (pair[0].case.devices, pair[0].case.experts))
        for index, (one, search) in enumerate(chosen):
            search.open(one)
            done = sum(len(one.opened) for one in searches.values())
            report(done, done + len(chosen) - index - 1 + sum(one.most_left for one in searches.values()))
            following = chosen[index + 1][0] if index + 1 < len(chosen) else None
            if following is None or (following.case.devices, following.case.experts) != (
                one.case.devices,
                one.case.experts,
            ):
                _release(one.case.question)
    return [one for search in searches.values() for one in search.opened]


def keep_better(divisions: Sequence[Division]) -> list[Division]:
    """Return one division per number of devices: the faster one, with or without experts split over devices."""
    by_count: dict[int, Division] = {}
    for one in divisions:
        other = by_count.setdefault(one.case.world, one)
        if find_work_s(one.rates) < find_work_s(other.rates):
            by_count[one.case.world] = one
    return list(by_count.values())


def _release(question: Question) -> None:
    """Free the cached passes of a question; their kernels reference each other, so reference counts do not."""
    question.workloads.release()
    gc.collect()


def _measure(plan: Plan, case: Case, demand: Demand) -> Division:

    question, serving = case.question, case.question.serving
    try:
        rates = find_saturated_rates(
            case.server,
            float(serving.mean_prompt),
            float(serving.output),
            cached_tokens=serving.mean_prompt - serving.prompt if serving.turns > 1 else serving.cached_tokens,
            most_s=demand.between_s,
            draft=question.draft(case.server),
        )
    except UnsupportedError as error:
        return Division(plan=plan, case=case, demand=demand, rates=None, server=str(error))
    if demand.first_token_s is not None and rates.alone_s > demand.first_token_s:
        rates = attrs.evolve(rates, prompts=None)
    return Division(plan=plan, case=case, demand=demand, rates=rates)
