"""How many devices make a server of a language model: the numbers that may take least, and their servers.

    every number up to a node ─► what its servers can do at most ─► the few that may take least ─► stepped

Numbers of devices are left out whose servers take more than `NEAR` times the best that was stepped, at the most that
they can do. That follows from a few passes; stepping needs a hundred, and then requests one by one.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.system.errors import UnsupportedError
from joulemap.system.record import define, frozen
from joulemap.wing.fleet.answer.row import NEAR
from joulemap.wing.fleet.answer.served import Server, open_server
from joulemap.wing.llm.answer.demand import OK, list_divisions

if TYPE_CHECKING:
    from joulemap.wing.fleet.demand import Demand, Level
    from joulemap.wing.llm.answer.demand import Case, Question
    from joulemap.wing.llm.serving.pool import Ability

ROUNDS: Final = 3
"""Numbers of devices of one hardware and precision that are stepped, at most."""


@frozen(kw_only=True, eq=False)
class Division:
    """A case whose server is to be stepped, of the question that divides the model so."""

    question: Question
    case: Case
    able: Ability | None
    """Capability of one server; None where its passes cannot be evaluated."""
    reason: str = ""
    """Why they cannot."""

    @property
    def work_s(self) -> float:
        """About the seconds of a server that a request takes; infinite where it keeps no promise."""
        able = self.able
        if able is None or able.prompts is None or able.answers is None:
            return math.inf
        return 1.0 / able.prompts.per_s + 1.0 / able.answers.per_s

    def bound(self, rate_per_s: float, demand: Demand) -> float:
        """Return what servers take at least, in devices or joules; infinite where no number keeps the promises."""
        return self._count(rate_per_s, demand, min)

    def estimate(self, rate_per_s: float, demand: Demand) -> float:
        """Return about what servers take, as prompts and answers share their time."""
        return self._count(rate_per_s, demand, lambda *_: 1.0 / self.work_s)

    def _count(self, rate_per_s: float, demand: Demand, join: Callable[[float, float], float]) -> float:
        able = self.able
        if able is None or able.prompts is None or able.answers is None:
            return math.inf
        if demand.objective != "cost":
            return able.prompts.joules + able.answers.joules
        count = math.ceil(rate_per_s / join(able.prompts.per_s, able.answers.per_s))
        return float(demand.round_up(count * self.case.world))


@frozen(kw_only=True, eq=False)
class Opened:
    """A division with its server, or why it has none."""

    question: Question
    case: Case
    server: Server | str


@define(eq=False)
class _Search:
    """Divisions of one hardware at one precision."""

    waiting: list[Division]
    opened: list[Opened] = attrs.field(factory=list)
    least: float = math.inf
    """Devices or joules of the best simulated division."""

    def choose(self, rate_per_s: float, demand: Demand) -> Division | None:
        """Return the next that is to be stepped; None where no other may be near the best."""
        if len(self.opened) >= ROUNDS:
            return None
        if self.opened:
            self.waiting = [one for one in self.waiting if one.bound(rate_per_s, demand) <= NEAR * self.least]
            self.waiting = [one for one in self.waiting if one.bound(rate_per_s, demand) < math.inf]
        return self.waiting.pop(0) if self.waiting else None


def open_servers(question: Question, every: Sequence[Case], levels: Sequence[Level], demand: Demand) -> list[Opened]:
    """Return the servers of each hardware and precision that may take least, or why it has none.

    All that are asked for where numbers of devices are, or a box is. `every` has the case of as few devices as hold the
    model, refused ones included.
    """
    rate = levels[0].rate_per_s
    if question.serving.devices or question.alike:
        kept = [_measure(question, case, demand) for case in every if case.status == OK]
        opened = [_open(one, levels, demand) for one in kept]
        question.book.release()
        return opened
    questions = {question.serving.expert_devices: question}
    groups: dict[tuple[object, ...], _Search] = {}
    for case in every:
        found = list_divisions(question, case, questions)
        ready = keep_better([_measure(asked, one, demand) for asked, one in found])
        ready.sort(key=lambda one: (one.estimate(rate, demand), one.case.world, one.case.experts))
        if ready:
            groups.setdefault((case.run.target, *case.run.point.values()), _Search(waiting=ready))
    _release(questions.values())
    while chosen := [(one, search) for search in groups.values() if (one := search.choose(rate, demand))]:
        chosen.sort(key=lambda pair: (pair[0].case.devices, pair[0].case.experts))
        for place, (one, search) in enumerate(chosen):
            now = _open(one, levels, demand)
            search.opened.append(now)
            search.least = min(search.least, _value(now, rate, demand))
            following = chosen[place + 1][0] if place + 1 < len(chosen) else None
            if following is None or (following.case.devices, following.case.experts) != (
                one.case.devices,
                one.case.experts,
            ):
                _release([one.question])
    return [one for search in groups.values() for one in search.opened]


def keep_better(divisions: Sequence[Division]) -> list[Division]:
    """Return of each number of devices the division whose servers can do most, whole experts divided or not."""
    found: dict[int, Division] = {}
    for one in divisions:
        other = found.setdefault(one.case.world, one)
        if one.work_s < other.work_s:
            found[one.case.world] = one
    return list(found.values())


def _release(questions: Iterable[Question]) -> None:
    """Give back what was formed of passes: what kernels remember of each other, no reference counts away."""
    for question in questions:
        question.book.release()
    gc.collect()


def _measure(question: Question, case: Case, demand: Demand) -> Division:
    from joulemap.wing.llm.serving.pool import find_ability

    serving = question.serving
    try:
        able = find_ability(case.server, float(serving.prompt), float(serving.output), most_s=demand.between_s)
    except UnsupportedError as error:
        return Division(question=question, case=case, able=None, reason=str(error))
    if demand.first_token_s is not None and able.alone_s > demand.first_token_s:
        able = attrs.evolve(able, prompts=None)
    return Division(question=question, case=case, able=able)


def _open(one: Division, levels: Sequence[Level], demand: Demand) -> Opened:
    """Return the server of a division, with the highest rate that it carries."""
    server = one.reason or open_server(one.question, one.case, one.able, levels, demand)
    return Opened(question=one.question, case=one.case, server=server)


def _value(one: Opened, rate_per_s: float, demand: Demand) -> float:
    """Return what stepped servers take, in devices or joules of a request; infinite where they keep no promise."""
    server = one.server
    if isinstance(server, str) or not server.most_per_s:
        return math.inf
    count = server.count(rate_per_s)
    if demand.objective == "cost":
        return float(count * one.case.world)
    return server.serve(rate_per_s / count).power_w * count / rate_per_s
