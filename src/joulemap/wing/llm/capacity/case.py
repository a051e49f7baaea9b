"""Configurations of a serving question, and which of them fit.

hardware x precision -> devices that can store the model -> batches that fit
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import attrs

from joulemap.catalog import DATA
from joulemap.domain import name_configured
from joulemap.physics import GGUF_METHOD, Hardware, label_precision
from joulemap.physics.communication import HOST_DEVICES
from joulemap.plan import Plan, PlannedRun, known_hardware
from joulemap.show import join_names
from joulemap.system import JoulemapError, ModelError, UnsupportedError, frozen
from joulemap.wing.decoder import find_engine, stack_names
from joulemap.wing.llm.capacity.question import Question, choose_activations
from joulemap.wing.llm.serving.deployment import Deployment, check_links
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.serve import HANDOVER_J_PER_BYTE
from joulemap.wing.llm.serving.surface import Passes
from joulemap.wing.llm.setting import load_tables
from joulemap.wing.llm.show.word import (
    BUSY,
    DIVIDED,
    FOREIGN,
    NO_PRECISION,
    OTHER_CHIPS,
    SHORTAGE,
    UNCOMPILED,
    WEIGHTS,
    WIDE_CACHE,
)

if TYPE_CHECKING:
    from joulemap.plan.evaluate import Targets

OK: Final = "ok"
TOO_LARGE: Final = "does not fit"
UNSUPPORTED: Final = "unsupported"

DEVICES: Final = (1, 2, 4, 8, 16, 32, 64, 72)
"""Numbers of devices to try if none is given."""


NARROWER: Final = ("fp8", "int4")
GGUF_NARROWER: Final = ("q8_0", "q4_k_m")
"""Weight formats to suggest if the given one does not fit, the wider first; only their memory is checked."""

STAGES: Final = (2, 4, 8, 16)
"""Numbers of pipeline stages that a refusal tries, the fewest first."""

LOSSLESS: Final = ("bf16", "fp16", "fp32")
"""Weight precisions that lose no quality."""

QUALITIES: Final = DATA / "model" / "quality.toml"
"""File with the published quality loss of each weight precision, in words."""

UNKNOWN: Final = {"value": "unknown"}
"""Entry of a weight precision that the file lacks."""


@frozen(kw_only=True)
class Handover:
    """Cost of moving a prompt's KV cache from one server to another."""

    seconds: float
    joules: float


@frozen(kw_only=True, eq=False)
class Case:
    """Number of devices of a chip at one batch size, with the reason if it cannot serve the batch."""

    question: Question
    run: PlannedRun
    target: Hardware
    """Hardware with all modifiers of its runs: calibrated, at its mode and boundary."""
    devices: int
    """Number of tensor-parallel devices."""
    world: int
    """Total number of devices."""
    batch: int
    status: str
    reason: str = ""
    bare_reason: str = ""
    """Reason without the ways that would fit."""
    deployment: Deployment | None = None
    """Deployment; None if the hardware lacks the precision or cannot be divided this way."""
    room: Room | None = None
    most: int = 0
    """Maximum sequences that fit in device memory."""
    needed: int | None = None
    """Fewest devices that can store the batch; None if no number in `DEVICES` suffices."""

    @property
    def experts(self) -> int:
        """Number of devices among which whole experts are divided."""
        return self.question.serving.expert_devices

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

    @property
    def refusal(self) -> str:
        """Reason why it cannot be served, with the name of its hardware."""
        return self.reason if self.status == UNSUPPORTED else f"{self.label} {self.reason}"

    @property
    def quality(self) -> str:
        """Published loss of quality of its precision; empty for weights of at least 16 bits."""
        weights = self.run.point["weight_precision"]
        return "" if weights in LOSSLESS else load_tables(QUALITIES).get(weights, UNKNOWN)["value"]

    def hand_over(self, other: Case, prompt_tokens: int) -> Handover:
        """Return the cost of moving a prompt's KV cache to another server, over as many links as the smaller server
        has devices.
        """
        size = self.question.decoder.cache_bytes(prompt_tokens, Room(deployment=other.server).item_bytes)
        rate = self.question.serving.handover_bytes_per_s * min(self.world, other.world)
        return Handover(seconds=size / rate, joules=size * HANDOVER_J_PER_BYTE)

    def divide(self, devices: int, **serving: Any) -> Case:
        """Return the case of another number of devices, with other serving parameters."""
        return _judge(self.question.change(**serving), self.run, self.target, devices, self.batch, is_alone=True)

    def list_divisions(self) -> list[Case]:
        """Return a case for each number of devices, up to a node, that holds a case's model and batch.

        The numbers are powers of two that divide the heads, and the number of the case itself. A mixture of experts is
        also tried with whole experts divided among all devices, unless another division is given.
        """
        question, node, divisions = self.question, count_node(self.target), list[Case]()
        for devices in (2**power for power in range(node.bit_length())):
            world = devices * question.beside
            if world > node:
                break
            experts = [question.serving.expert_devices]
            experts += [world] if question.decoder.is_routed and experts == [1] and world > 1 else []
            for count in experts:
                one = self.divide(devices, expert_devices=count)
                if one.status == OK:
                    divisions.append(one)
        if self.status == OK and self.devices not in [one.devices for one in divisions]:
            divisions.append(self)
        return divisions


def list_cases(question: Question, plan: Plan, targets: Targets) -> list[Case]:
    """Return one case for each requested hardware, precision, number of devices and batch size, in this order."""
    runs, batches = plan.runs(""), plan.settings.batch
    if question.takes_published:
        choose, stack = question.decoder.choose_precision, question.stack
        chosen = {target: choose(targets[target.digest], stack) for target in {one.target for one in runs}}
        own = (one for one in runs if (one.point["precision"], one.point["weight_precision"]) == chosen[one.target])
        runs = tuple(own)
    elif question.chooses_precision:
        runs = tuple(
            one for one in runs if one.point["precision"] == choose_activations(question, targets[one.target.digest])
        )
    order = list(dict.fromkeys(run.target for run in runs))
    cases: list[Case] = []
    for run in sorted(runs, key=lambda one: order.index(one.target)):
        target = targets[run.target.digest]
        asked = question.serving.devices or question.divide(run.hardware)
        asked = asked or (_choose_devices(question, run, target, batches),)
        cases += [_judge(question, run, target, devices, batch) for devices in asked for batch in batches]
    return cases


def _choose_devices(question: Question, run: PlannedRun, target: Hardware, batches: Sequence[int]) -> int:
    """Return the fewest devices that store the first batch or, if that takes several, all batches and requests."""
    least = _count_devices(question, run, target, batches[0]) or 1
    most = max(*batches, question.serving.in_flight or 1)
    return (_count_devices(question, run, target, most) if least > 1 else None) or least


def _count_devices(question: Question, run: PlannedRun, target: Hardware, batch: int) -> int | None:
    """Return the fewest tensor-parallel devices in `DEVICES` that can store a batch; None if none can."""
    for devices in DEVICES:
        case = _judge(question, run, target, devices, batch, is_alone=True)
        if case.status == OK:
            return devices
    return None


@cache
def _list_catalogued() -> frozenset[str]:
    """Return the vendors of the catalogue; the chip of any other may have a port of any engine."""
    return frozenset(entry.vendor for entry in known_hardware().values())


def _judge(
    question: Question, run: PlannedRun, target: Hardware, devices: int, batch: int, *, is_alone: bool = False
) -> Case:
    """Return the case of `devices` devices with its status; unless `is_alone`, the reason of a refusal names
    alternatives.
    """
    world = devices * question.beside
    joined = world // question.divide_stages(devices)[1]
    case = Case(
        question=question,
        run=run,
        target=target,
        devices=devices,
        world=world,
        batch=batch,
        status=UNSUPPORTED,
    )
    vendors = question.stack.vendors
    if vendors and target.vendor not in vendors and target.vendor in _list_catalogued():
        return _refuse(case, FOREIGN(hardware=target.id, engine=question.stack.label, vendors=vendors))
    chips = question.stack.chips
    if chips and target.id not in chips and target.id in known_hardware([target.id]):
        return _refuse(case, OTHER_CHIPS(hardware=target.id, engine=question.stack.label, chips=chips))
    precision = run.point["precision"]
    if precision not in target.peaks:
        given = {"hardware": target.id, "precision": precision}
        whole = NO_PRECISION(**given, precisions=tuple(target.peaks), engine=_find_own_engine(target))
        return _refuse(case, NO_PRECISION(**given, precisions=(), engine=""), whole)
    try:
        check_links(
            target,
            joined // question.serving.data_devices,
            question.serving.data_devices,
            world,
            has_experts=question.serving.sends_tokens,
        )
        deployment = question.deploy(run, target, devices)
    except ModelError:
        raise  # a faulty model, not the hardware, is the cause
    except JoulemapError as error:
        stages = "" if is_alone else _find_stages(case)
        return _refuse(case, str(error), DIVIDED(error=error, fitting=stages))
    if target.compiler is not None:
        try:
            deployment.price(Passes.of(1.0))
        except UnsupportedError as error:  # the compiler does not run every operator of a pass
            return _refuse(case, str(error), UNCOMPILED(error=error, engine=_find_own_engine(target)))
    room = Room(deployment=deployment, draft=question.draft(deployment).deployment)
    most = question.count_sequences(room)
    fits = most >= batch
    case = attrs.evolve(case, deployment=deployment, room=room, most=most, status=OK if fits else TOO_LARGE)
    if fits or is_alone:
        return attrs.evolve(case, needed=world)
    needed = _count_devices(question, run, target, batch)
    case = attrs.evolve(case, needed=None if needed is None else needed * question.beside)
    return _refuse(case, _state_shortage(case, fitting=""), describe_shortage(case))


def _find_own_engine(target: Hardware) -> str:
    """Return the engine that brings kernels of its own for a chip; empty if none does."""
    own = (one for one in map(find_engine, stack_names()) if one.compiles_all and target.id in one.chips)
    return next((one.name for one in own), "")


def _refuse(case: Case, reason: str, whole: str = "") -> Case:
    """Return a case with the reason why it cannot be served; `whole` adds what could be."""
    return attrs.evolve(case, reason=whole or reason, bare_reason=reason)


def describe_node(case: Case) -> str:
    """Return the reason why even all devices of a node cannot hold the model and one request."""
    question = case.question
    most = 1 if question.serving.devices else max(1, count_node(case.target) // question.beside)
    devices = case.devices if question.serving.devices else 2 ** (most.bit_length() - 1)
    one = case.divide(devices)
    if one.room is None:
        return one.reason
    return f"{one.label} {describe_shortage(attrs.evolve(one, needed=None))}"


def count_node(target: Hardware) -> int:
    """Return the number of devices in a node: as many as a switch or mesh joins, else as many as a server has."""
    joined = [
        int(link.domain_size.value)
        for link in target.links
        if link.connects == "device" and link.topology in ("switch", "mesh") and link.domain_size is not None
    ]
    return max([*joined, HOST_DEVICES if target.peer_links else 1])


def describe_shortage(case: Case) -> str:
    """Return the shortage of memory for a batch, and the batch, devices or weights that would fit."""
    ways = [f"batch {case.most}"] if case.most else []
    ways += [f"{case.needed} devices"] if case.needed is not None else []
    stages = _find_stages(case) if case.needed is None else ""
    ways += [stages] if stages else []
    narrow = _find_narrower(case)
    ways += [f"{narrow} weights"] if narrow else []
    return _state_shortage(case, join_names(ways, "or"))


def _state_shortage(case: Case, fitting: str) -> str:
    """Return the shortage of memory for a batch, with the ways that would fit."""
    room = case.room
    assert room is not None
    needed = room.weights + room.workspace + case.batch * room.cache(case.question.context)
    if needed <= room.usable:
        return BUSY(case, engine=case.question.stack.label, most=case.most)
    if room.weights > room.usable:
        needed = room.weights + room.limit - room.usable
        return WEIGHTS(case, needed=needed, capacity=room.limit, setting=room.setting, fitting=fitting)
    lacking = needed - room.usable
    return SHORTAGE(case, lacking=lacking, capacity=room.limit, setting=room.setting, fitting=fitting)


def _find_stages(case: Case) -> str:
    """Return the options of the fewest pipeline stages with which a batch fits; empty if none of `STAGES` suffices.

    Experts on all devices of data-parallel groups come first, then stages of as many devices as asked, then stages of
    as many as a node joins.
    """
    question = case.question
    is_split = question.decoder.is_routed and question.serving.data_devices > 1 and not question.serving.sends_tokens
    if is_split and case.divide(case.devices, expert_devices=case.world).status == OK:
        return f"--expert-devices {case.world}"
    if question.stack.divides_layers:
        return ""  # all numbers of devices were tried as stages
    node = 2 ** (count_node(case.target).bit_length() - 1)
    for devices in dict.fromkeys((case.devices, min(case.devices, node))):
        for stages in STAGES:
            if stages <= question.serving.pipeline_devices:
                continue
            if case.divide(devices, pipeline_devices=stages).status == OK:
                own = [] if devices == case.devices else [f"--devices {devices}"]
                return " ".join([*own, f"--pipeline-devices {stages}"])
    return ""


def _find_narrower(case: Case) -> str:
    """Return the first narrower format with which the batch fits; empty if none, or if weights are quantized."""
    if case.run.point["weight_precision"] != case.run.point["precision"]:
        return ""
    for name in GGUF_NARROWER if case.question.stack.methods == (GGUF_METHOD,) else NARROWER:
        try:
            deployment = case.question.deploy(case.run, case.target, case.devices, name)
        except JoulemapError:
            continue
        if case.question.count_sequences(Room(deployment=deployment)) >= case.batch:
            return name
    return ""


def refuse(cases: Sequence[Case]) -> JoulemapError:
    """Return the error to raise if no configuration can be served; it states each chip's reason once."""
    reasons = {case.label: case.refusal for case in cases}
    return UnsupportedError("; ".join(dict.fromkeys(reasons.values())))


def describe_cache(cases: Iterable[Case]) -> str:
    """Return a note on chips that could store the KV cache in fp8, but keep 16 bits beside FP4 weights; empty if none
    does.
    """
    chips = [
        case.hardware
        for case in cases
        if not case.server.cache and case.run.point["weight_precision"].endswith("fp4") and "fp8" in case.target.peaks
    ]
    return WIDE_CACHE(hardware=list(dict.fromkeys(chips))) if chips else ""
