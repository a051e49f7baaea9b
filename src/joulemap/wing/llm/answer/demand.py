"""Configurations of a serving question: the ones that fit, and the passes that represent each.

hardware x precision ─► devices that hold the model ─► batches that fit ─► a prefill pass and a decode step of each
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.domain.configuration import Precision
from joulemap.domain.hardware_ref import name_configured
from joulemap.domain.name import name_precision
from joulemap.domain.weight import label_precision
from joulemap.plan.run import Plan
from joulemap.plan.workload import find_model
from joulemap.present.cell import show_quantity
from joulemap.system.errors import JoulemapError, ModelError, UnsupportedError, UsageError
from joulemap.system.record import define, frozen
from joulemap.wing.llm.source import find_mixed

if TYPE_CHECKING:
    from joulemap.catalog.stack import Stack
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import Serving, Settings
    from joulemap.plan.evaluate import Targets
    from joulemap.plan.hold import Held
    from joulemap.plan.run import PlannedRun
    from joulemap.wing.llm.decoder.config import Decoder
    from joulemap.wing.llm.serving.deployment import Book, Deployment
    from joulemap.wing.llm.serving.draft import Draft
    from joulemap.wing.llm.serving.memory import Room

OK: Final = "ok"
TOO_LARGE: Final = "does not fit"
UNSUPPORTED: Final = "unsupported"

DEVICES: Final = (1, 2, 4, 8, 16, 32, 64, 72)
"""Numbers of devices to try if none is given."""


MOST_STORED: Final = 36
"""Maximum configurations whose passes are all stored as runs; storing more takes longer than the rest of the answer."""

SIXTEEN_BITS: Final[tuple[Precision, ...]] = ("bf16", "fp16")
"""Precisions at which 16-bit checkpoints run, the usual one first."""

NARROW: Final = "int4"
"""Weight precision suggested if the given one does not fit; only its size is considered."""


@define(kw_only=True, slots=False, eq=False)
class Question:
    """Question about a served model: the model, its serving parameters and the engine."""

    decoder: Decoder
    stack: Stack
    serving: Serving
    guesser: Decoder | None = None
    """Draft model for speculative decoding; None for none."""
    takes_published: bool = False
    """True if no precision is given, so each hardware runs the checkpoint as published."""
    alike: Mapping[str, int] = attrs.field(factory=dict)
    """Chip, with the number of them in a requested box; all of them work together."""

    @cached_property
    def book(self) -> Book:
        """Passes of the model, described once for all hardware."""
        from joulemap.wing.llm.serving.deployment import Book

        return Book(self.decoder)

    @cached_property
    def _guess_book(self) -> Book:
        from joulemap.wing.llm.serving.deployment import Book

        assert self.guesser is not None
        return Book(self.guesser)

    def draft(self, deployment: Deployment) -> Draft | None:
        """Return the draft for a deployment: divided in the same way, or whole on one of its devices."""
        serving = self.serving
        if serving.speculate is None or serving.acceptance is None:
            return None
        from joulemap.wing.llm.decoder.step import check_devices
        from joulemap.wing.llm.serving.draft import Draft

        if self.guesser is None:
            return Draft(guessed_tokens=serving.speculate, acceptance=serving.acceptance)
        quick = deployment.stack.without_host_sequence
        guess = attrs.evolve(deployment, book=self._guess_book, stack=quick, stages=1)
        try:
            check_devices(self.guesser, guess.devices, guess.expert_devices, guess.data_devices)
        except UsageError:
            guess = attrs.evolve(guess, devices=1, expert_devices=1, data_devices=1)
        return Draft(guessed_tokens=serving.speculate, acceptance=serving.acceptance, deployment=guess)

    @property
    def context(self) -> int:
        """Tokens of a sequence at its end."""
        return self.serving.prompt + self.serving.output

    @property
    def steps(self) -> int:
        """Decode steps of a request: the first token ends the prefill."""
        return max(self.serving.output - 1, 1)

    @property
    def work(self) -> str:
        """Error class of a served model: mixture of experts, or other."""
        return "experts" if self.decoder.is_routed else "model"

    def describe_stored(self) -> str:
        """Return a note, next to the precision, on the checkpoint's published format; empty for 16 bits."""
        published = self.decoder.published
        if published is None:
            return "".join(f"; {note}" for note in self.decoder.notes if note.startswith("quantization_config"))
        if not published.weights:
            return f"; {published.doubt}"
        told = f"; {published.doubt}" if published.doubt else ""
        return f" as published{told}" if self.takes_published else f" (published with {published.describe()})"

    def check(self) -> None:
        """Raise UsageError for a context longer than the model's maximum."""
        most = self.decoder.context_length
        if most and self.context > most:
            told = f"{self.serving.prompt:,} + {self.serving.output:,}"
            raise UsageError(
                f"{self.decoder.name}: {told} tokens are more than its context of {most:,}; lower --prompt or --output"
            )

    def pass_batch(self, batch: int) -> int:
        """Return the number of a batch's prompts that fit in one engine pass."""
        return min(batch, max(1, self.stack.step_tokens // self.serving.prompt))

    def prefill_key(self, devices: int, batch: int) -> tuple[str, int]:
        """Return the prefill pass of a batch on one of `devices` devices: its name and its own batch size."""
        return self._name(devices, self.serving.prompt, 0), self.pass_batch(batch)

    def decode_key(self, devices: int, batch: int) -> tuple[str, int]:
        """Return the name and batch size of the decode step at the middle of the output, for one stage's sequences."""
        context = self.serving.prompt + self.serving.output // 2
        parts = min(self.serving.pipeline_devices, batch) if self.stack.fills_stages else 1
        return self._name(devices, 1 + (self.serving.speculate or 0), context), -(-batch // parts)

    def _name(self, devices: int, tokens: int, cached: int) -> str:
        from joulemap.wing.llm.decoder.step import Step

        serving = self.serving
        step = Step(
            tokens=tokens,
            cached=cached,
            logits="all" if cached and tokens > 1 else "last",
            devices=devices,
            expert_devices=serving.expert_devices,
            data_devices=serving.data_devices,
            pipeline_devices=serving.pipeline_devices,
            cache=serving.cache,
            engine="" if self.decoder.is_traced else self.stack.id,
        )
        return step.spell(self.decoder.name, is_whole=self.decoder.is_traced)

    def deploy(self, run: PlannedRun, target: Hardware, devices: int, weight_precision: str = "") -> Deployment:
        """Return the model deployed on `devices` devices; UsageError if it cannot be divided that way."""
        from joulemap.wing.llm.decoder.step import check_devices
        from joulemap.wing.llm.serving.deployment import Deployment

        serving, precision = self.serving, run.point["precision"]
        check_devices(self.decoder, devices, serving.expert_devices, serving.data_devices, serving.pipeline_devices)
        weights = weight_precision or run.point["weight_precision"]
        return Deployment(
            book=self.book,
            hardware=target,
            stack=self.stack,
            precision=precision,
            weight_precision="" if weights == precision else weights,
            cache=serving.cache,
            devices=devices,
            expert_devices=serving.expert_devices,
            data_devices=serving.data_devices,
            stages=serving.pipeline_devices,
            compiled_tokens=self.context if self.stack.compiles else 0.0,
        )

    def divide(self, hardware: str) -> tuple[int, ...]:
        """Return the tensor-parallel devices in a box of a chip; empty if there is no box.

        Raise UsageError if data-parallel groups and pipeline stages do not divide the devices of the box.
        """
        count = self.alike.get(hardware, 0)
        if count % self.beside:
            raise UsageError(f"a box of {count} {hardware} is not {self.beside} alike groups and stages")
        return (count // self.beside,) if count else ()

    @property
    def is_one_run(self) -> bool:
        """True if one run represents a pass: not with several pipeline stages or with a draft model."""
        return self.serving.pipeline_devices == 1 and self.serving.speculate is None

    @property
    def beside(self) -> int:
        """Devices per tensor-parallel device: data-parallel groups times pipeline stages."""
        return self.serving.data_devices * self.serving.pipeline_devices

    def count_sequences(self, room: Room) -> int:
        """Return the number of requests that device memory holds to their end."""
        each = room.cache(self.context)
        held = room.free / each if each else math.inf
        return max(0, math.floor(min(held, self.stack.sequence_limit)))


@frozen(kw_only=True, eq=False)
class Case:
    """Number of one hardware at one batch size, and whether it can serve that."""

    run: PlannedRun
    target: Hardware
    """Hardware as bound for its runs."""
    devices: int
    """Tensor-parallel devices."""
    world: int
    """Total number of devices."""
    batch: int
    status: str
    reason: str = ""
    deployment: Deployment | None = None
    """Deployment; None if the hardware lacks the precision or cannot be divided this way."""
    room: Room | None = None
    most: int = 0
    """Maximum sequences that fit."""
    experts: int = 1
    """Number of devices among which whole experts are divided."""
    needed: int | None = None
    """Fewest devices that hold the batch; None if none of the usual numbers does."""

    @property
    def server(self) -> Deployment:
        """Deployment of a configuration that can be served."""
        assert self.deployment is not None
        return self.deployment

    @property
    def hardware(self) -> str:
        """Name of the hardware in answers."""
        return name_configured(self.run.hardware, self.run.power_mode)

    @property
    def label(self) -> str:
        """Name of the hardware with the number of devices."""
        return self.hardware if self.world == 1 else f"{self.hardware} x{self.world}"

    @property
    def precision(self) -> str:
        """Precision of activations, and of weights if they differ."""
        return label_precision(self.run.point["precision"], self.run.point["weight_precision"])


def list_precisions(decoder: Decoder) -> tuple[tuple[Precision, ...], tuple[str, ...]]:
    """Return the precisions at which a checkpoint may run as published, and those of its weights."""
    published = decoder.published
    own = (name_precision(published.precision),) if published and published.precision else ()
    return (*own, *SIXTEEN_BITS), (published.weights,) if published and published.weights else ()


def choose_precision(decoder: Decoder, target: Hardware) -> tuple[Precision, str]:
    """Return the compute precision and the weight precision of a checkpoint as published, on this hardware.

    Products take narrow operands if the checkpoint has both and the hardware multiplies them, else 16 bits.
    """
    precisions, weights = list_precisions(decoder)
    precision = next((one for one in precisions if one in target.peaks), SIXTEEN_BITS[0])
    return precision, weights[0] if weights else precision


def list_cases(question: Question, plan: Plan, targets: Targets) -> list[Case]:
    """Return every requested hardware, precision, number of devices and batch, in this order."""
    runs, batches = plan.runs(""), plan.settings.batch
    if question.takes_published:
        chosen = {
            target: choose_precision(question.decoder, targets[target.digest])
            for target in {one.target for one in runs}
        }
        own = (one for one in runs if (one.point["precision"], one.point["weight_precision"]) == chosen[one.target])
        runs = tuple(own)
    order = list(dict.fromkeys(run.target for run in runs))
    found: list[Case] = []
    for run in sorted(runs, key=lambda one: order.index(one.target)):
        target = targets[run.target.digest]
        asked = question.serving.devices or question.divide(run.hardware)
        asked = asked or (_count_devices(question, run, target, batches[0]) or 1,)
        found += [_judge(question, run, target, devices, batch) for devices in asked for batch in batches]
    return found


def _count_devices(question: Question, run: PlannedRun, target: Hardware, batch: int) -> int | None:
    """Return the fewest devices that hold a batch; None if none of the usual numbers does."""
    for devices in DEVICES:
        case = _judge(question, run, target, devices, batch, is_alone=True)
        if case.status == OK:
            return devices
    return None


def _judge(
    question: Question, run: PlannedRun, target: Hardware, devices: int, batch: int, *, is_alone: bool = False
) -> Case:
    """Return whether `devices` devices can serve a batch, and unless `is_alone` the alternatives."""
    from joulemap.model.communication import find_path
    from joulemap.wing.llm.serving.memory import Room

    world = devices * question.beside
    case = Case(
        run=run,
        target=target,
        devices=devices,
        world=world,
        batch=batch,
        status=UNSUPPORTED,
        experts=question.serving.expert_devices,
    )
    precision = run.point["precision"]
    if precision not in target.peaks:
        return attrs.evolve(case, reason=f"{target.id} has no {precision}; it has {', '.join(target.peaks)}")
    try:
        if world > 1:
            find_path(target, world)
        deployment = question.deploy(run, target, devices)
    except ModelError:
        raise  # no hardware could serve it
    except JoulemapError as error:
        return attrs.evolve(case, reason=str(error))
    draft = question.draft(deployment)
    room = Room(deployment=deployment, draft=draft.deployment if draft else None)
    most = question.count_sequences(room)
    fits = most >= batch
    case = attrs.evolve(case, deployment=deployment, room=room, most=most, status=OK if fits else TOO_LARGE)
    if fits or is_alone:
        return attrs.evolve(case, needed=world)
    needed = _count_devices(question, run, target, batch)
    case = attrs.evolve(case, needed=None if needed is None else needed * question.beside)
    return attrs.evolve(case, reason=describe_shortage(question, case))


def list_divisions(question: Question, case: Case, questions: dict[int, Question]) -> list[tuple[Question, Case]]:
    """Return the numbers of devices, up to a node, that hold a case's model and batch, each as a case of a question.

    The numbers are powers of two that divide the heads, and that of the case itself. A mixture of experts is also
    tried with whole experts divided among all devices, unless another division is given. `questions` caches those, by
    number of expert-parallel devices, for all hardware.
    """
    node, found = count_node(case.target), []
    for devices in (2**power for power in range(node.bit_length())):
        world = devices * question.beside
        if world > node:
            break
        experts = [question.serving.expert_devices]
        experts += [world] if question.decoder.is_routed and experts == [1] and world > 1 else []
        for count in experts:
            if count not in questions:
                serving = attrs.evolve(question.serving, expert_devices=count)
                questions[count] = attrs.evolve(question, serving=serving)
            one = _judge(questions[count], case.run, case.target, devices, case.batch, is_alone=True)
            if one.status == OK:
                found.append((questions[count], one))
    if case.status == OK and case.devices not in [one.devices for _, one in found]:
        found.append((question, case))
    return found


def count_node(target: Hardware) -> int:
    """Return the devices of a node: those joined by a switch or mesh, or for other links those of a server."""
    from joulemap.model.communication import HOST_DEVICES

    joined = [
        int(link.domain_size.value)
        for link in target.links
        if link.connects == "device" and link.topology in ("switch", "mesh") and link.domain_size is not None
    ]
    others = [link for link in target.links if link.connects == "device" or link.name == "pcie"]
    return max([*joined, HOST_DEVICES if others else 1])


def describe_shortage(question: Question, case: Case) -> str:
    """Return the shortage of memory for a batch, and the batch, devices or weights that would fit."""
    room = case.room
    assert room is not None
    needed = room.weights + room.workspace + case.batch * room.cache(question.context)
    lacking, capacity = (show_quantity(value, "B") for value in (needed - room.capacity, room.capacity))
    told = f"lacks {lacking} beside its {capacity} for batch {case.batch}"
    ways = [f"batch {case.most}"] if case.most else []
    ways += [f"{case.needed} devices"] if case.needed is not None else []
    narrow = _find_narrower(question, case)
    ways += [f"{narrow} weights"] if narrow else []
    return f"{told}: {' or '.join(ways)} would fit" if ways else f"{told}, and nothing that is tried would fit"


def _find_narrower(question: Question, case: Case) -> str:
    """Return weights that would fit on these devices; empty if they are that narrow already or would not fit."""
    from joulemap.wing.llm.serving.memory import Room

    if case.run.point["weight_precision"] != case.run.point["precision"]:
        return ""
    try:
        deployment = question.deploy(case.run, case.target, case.devices, NARROW)
        return NARROW if question.count_sequences(Room(deployment=deployment)) >= case.batch else ""
    except JoulemapError:
        return ""


def refuse(cases: Sequence[Case]) -> JoulemapError:
    """Return the error to raise if nothing is served: each hardware's reason once."""
    reasons = {
        case.label: case.reason if case.status == UNSUPPORTED else f"{case.label} {case.reason}" for case in cases
    }
    told = "; ".join(dict.fromkeys(reasons.values()))
    return UnsupportedError(told)


def divide(question: Question, whole: Plan, cases: Sequence[Case]) -> list[Plan]:
    """Return plans of the passes of configurations that fit: one for hardware with equal devices and batches."""
    batches: dict[tuple[str, str, int, tuple[str, ...]], dict[int, None]] = {}
    for case in cases:
        point = case.run.point
        pair: tuple[str, ...] = ()
        if question.takes_published:
            pair = point["precision"], point["weight_precision"]
        batches.setdefault((case.run.hardware, case.run.power_mode, case.devices, pair), {})[case.batch] = None
    groups: dict[tuple[int, tuple[int, ...], tuple[str, ...]], list[tuple[str, str]]] = {}
    for (name, mode, count, pair), some in batches.items():
        groups.setdefault((count, tuple(some), pair), []).append((name, mode))
    found = []
    for (devices, sizes, pair), hardware in groups.items():
        settings = whole.settings
        if pair:
            settings = attrs.evolve(settings, precision=name_precision(pair[0]), weight_precision=pair[1])
        passes = dict.fromkeys(
            [question.prefill_key(devices, batch) for batch in sizes]
            + [question.decode_key(devices, batch) for batch in sizes]
        )
        pairs = tuple((entry, mode) for entry, mode in whole.selection.pairs if (entry.id, mode) in hardware)
        found.append(
            attrs.evolve(
                whole,
                settings=settings,
                models=tuple(find_model(name, settings, batch) for name, batch in passes),
                selection=attrs.evolve(whole.selection, pairs=pairs),
            )
        )
    return found


RunKey = tuple[str, int, object, tuple[str, ...]]
"""Key of a pass: its name, its batch, everything its hardware depends on, and the other dimensions of its run."""


def key_run(name: str, batch: int, run: PlannedRun) -> RunKey:
    """Return the key that distinguishes the run of a pass from others of the question."""
    return name, batch, run.target, tuple(run.point.values())


def choose_stored(cases: Sequence[Case]) -> list[Case]:
    """Return, for each configuration, the one whose runs represent it: its own, unless there are many.

    If there are many, only the smallest and the largest batch of a hardware are stored. Each other configuration uses
    the nearer of these.
    """
    if len(cases) <= MOST_STORED:
        return list(cases)
    groups: dict[tuple[object, ...], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.run.target, *case.run.point.values(), case.devices), []).append(case)
    found: dict[Case, Case] = {}
    for some in groups.values():
        first, last = some[0], some[-1]
        middle = math.sqrt(first.batch * last.batch)
        found |= {case: first if case.batch < middle else last for case in some}
    return [found[case] for case in cases]


def find_ids(question: Question, cases: Sequence[Case], ids: Mapping[RunKey, int]) -> tuple[list[int], list[int]]:
    """Return the prefill runs and the decode runs of configurations, in their order."""
    prefill = [ids[key_run(*question.prefill_key(one.devices, one.batch), one.run)] for one in cases]
    return prefill, [ids[key_run(*question.decode_key(one.devices, one.batch), one.run)] for one in cases]


def key_runs(held: Iterable[Held]) -> dict[RunKey, int]:
    """Return the ids of runs by their keys."""
    return {key_run(model.request.model, model.request.batch or 1, run): run_id for model, run, run_id in held}


def is_divided(settings: Settings) -> bool:
    """Return whether the hardware of settings is one box of unlike devices that share the layers."""
    return find_mixed(settings) is not None
