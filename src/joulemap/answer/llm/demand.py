"""The configurations that a question about a served language model is about: what fits where, and which passes tell it.

hardware x precision ─► devices that hold the model ─► batches that fit ─► a prefill pass and a decode step of each
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.answer.llm.row import OK, TOO_LARGE, UNSUPPORTED
from joulemap.domain.weight import label_precision
from joulemap.plan.run import Plan
from joulemap.plan.selection import name_pair
from joulemap.plan.workload import find_model
from joulemap.system.errors import UnknownNameError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.decoder.config import Decoder
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import Serving
    from joulemap.plan.run import PlannedRun
    from joulemap.serving.memory import Room
    from joulemap.serving.stack import Stack

DEVICES: Final = (1, 2, 4, 8, 16, 32, 64, 72)
"""Numbers of devices that are tried where none is asked for."""


@frozen(kw_only=True)
class Question:
    """A model, what serves it, and what is asked of that."""

    decoder: Decoder
    stack: Stack
    serving: Serving

    @property
    def context(self) -> int:
        """Tokens of a sequence at its end."""
        return self.serving.prompt + self.serving.output

    @property
    def steps(self) -> int:
        """Decode steps of a request: the first token ends the prefill."""
        return max(self.serving.output - 1, 1)

    def check(self) -> None:
        """Raise UsageError for a context that is longer than the model's."""
        most = self.decoder.context_length
        if most and self.context > most:
            told = f"{self.serving.prompt:,} + {self.serving.output:,}"
            raise UsageError(
                f"{self.decoder.name}: {told} tokens are more than its context of {most:,}; lower --prompt or --output"
            )

    def pass_batch(self, batch: int) -> int:
        """Return how many prompts of a batch a pass of the engine holds."""
        return min(batch, max(1, self.stack.step_tokens // self.serving.prompt))

    def name_prefill(self, devices: int) -> str:
        """Return the name of the pass of prompts on one of so many devices."""
        return self._name(devices, tokens=self.serving.prompt)

    def name_decode(self, devices: int) -> str:
        """Return the name of the step at the middle of the output."""
        return self._name(devices, cached=self.serving.prompt + self.serving.output // 2)

    def _name(self, devices: int, **sizes: int) -> str:
        from joulemap.decoder.step import Step

        serving = self.serving
        step = Step(
            devices=devices,
            expert_devices=serving.expert_devices,
            data_devices=serving.data_devices,
            cache=serving.cache,
            **sizes,
        )
        return step.spell(self.decoder.name)

    def count_world(self, devices: int) -> int:
        """Return all devices that work together."""
        return devices * self.serving.data_devices


@frozen(kw_only=True)
class Case:
    """A hardware, so many of it, at a batch; and whether it can serve that."""

    run: PlannedRun
    target: Hardware
    """The hardware as its runs have it."""
    devices: int
    """That divide each product."""
    world: int
    """All that work together."""
    batch: int
    room: Room | None
    """None where it lacks the precision, or cannot be divided so."""
    status: str
    reason: str = ""

    @property
    def hardware(self) -> str:
        """The hardware as answers name it."""
        return name_pair(self.run.hardware, self.run.power_mode)

    @property
    def precision(self) -> str:
        """Of activations, and of weights where that is another."""
        return label_precision(self.run.point["precision"], self.run.point["weight_precision"])


def list_cases(question: Question, plan: Plan, targets: Mapping[object, Hardware]) -> list[Case]:
    """Return every hardware at every precision, number of devices and batch that is asked for, in this order."""
    runs = plan.runs("")
    found: list[Case] = []
    for run in sorted(runs, key=lambda one: [*dict.fromkeys(each.target[:3] for each in runs)].index(one.target[:3])):
        target = targets[run.target]
        for devices in question.serving.devices or (choose_devices(question, run, target, min(plan.settings.batch)),):
            for batch in plan.settings.batch:
                found.append(_judge(question, run, target, devices, batch))
    return found


def choose_devices(question: Question, run: PlannedRun, target: Hardware, batch: int) -> int:
    """Return as few devices as hold a batch, 1 where none of the usual numbers does."""
    return find_devices(question, run, target, batch) or 1


def find_devices(question: Question, run: PlannedRun, target: Hardware, batch: int) -> int | None:
    """Return as few devices as hold a batch; None where none of the usual numbers does."""
    cases = (_judge(question, run, target, devices, batch) for devices in DEVICES)
    return next((case.devices for case in cases if case.status == OK), None)


def _judge(question: Question, run: PlannedRun, target: Hardware, devices: int, batch: int) -> Case:
    """Return whether so many devices can serve a batch."""
    given = {
        "run": run, "target": target, "devices": devices, "world": question.count_world(devices), "batch": batch,
    }  # fmt: skip
    precision = run.point["precision"]
    if precision not in target.peaks:
        reason = f"{target.id} has no {precision}; it has {', '.join(target.peaks)}"
        return Case(**given, room=None, status=UNSUPPORTED, reason=reason)
    try:
        room = find_room_of(question, run, target, devices)
    except (UsageError, UnknownNameError) as error:
        return Case(**given, room=None, status=UNSUPPORTED, reason=str(error))
    if room.most_sequences(question.context) < batch:
        return Case(**given, room=room, status=TOO_LARGE, reason=f"{target.id} does not hold batch {batch}")
    return Case(**given, room=room, status=OK)


def divide(question: Question, whole: Plan, cases: Sequence[Case]) -> list[Plan]:
    """Return plans of the passes of configurations that fit: one for hardware alike in its devices and batches."""
    batches: dict[tuple[str, str, int], list[int]] = {}
    for case in cases:
        batches.setdefault((case.run.hardware, case.run.power_mode, case.devices), []).append(case.batch)
    groups: dict[tuple[int, tuple[int, ...]], list[tuple[str, str]]] = {}
    for (hardware, mode, devices), sizes in batches.items():
        groups.setdefault((devices, tuple(dict.fromkeys(sizes))), []).append((hardware, mode))
    found = []
    for (devices, sizes), hardware in groups.items():
        passes = dict.fromkeys(
            [(question.name_prefill(devices), question.pass_batch(batch)) for batch in sizes]
            + [(question.name_decode(devices), batch) for batch in sizes]
        )
        pairs = tuple((entry, mode) for entry, mode in whole.selection.pairs if (entry.id, mode) in hardware)
        found.append(
            attrs.evolve(
                whole,
                models=tuple(find_model(name, whole.settings, batch) for name, batch in passes),
                selection=attrs.evolve(whole.selection, pairs=pairs),
            )
        )
    return found


RunKey = tuple[str, int, object, tuple[str, ...]]
"""A pass by its name, its batch, what its hardware depends on, and the other dimensions of its run."""


def key_run(name: str, batch: int, run: PlannedRun) -> RunKey:
    """Return what tells the run of a pass from others of the question."""
    return name, batch, run.target, tuple(run.point.values())


def match(runs: StoredRuns) -> dict[RunKey, int]:
    """Return the ids of the runs of a plan."""
    keys = [
        key_run(model.request.model, model.request.batch or 1, run)
        for model in runs.plan.models
        for run in runs.plan.runs("")
    ]
    return dict(zip(keys, runs.ids, strict=True))
