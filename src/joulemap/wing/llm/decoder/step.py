"""A pass of a decoder as a workload: a prompt's tokens, a token of each sequence behind what is cached, or both.

What one of several devices does of it: heads, inner columns and the vocabulary are divided, and results added up over
the link (tensor parallel); experts lie whole on some (expert parallel); sequences are divided before attention, and
their tokens sent to where their experts are (data parallel); layers lie on stages that work one after another and
hand their tokens on (pipeline parallel): a pass is then what the last stage does, or one before it, without logits.
What lies between the products of a layer, norms and sums, may be divided by tokens (sequence parallel): sums are then
scattered, and gathered before the next products, which are as many bytes.

Source: Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022 (sequence parallel).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from joulemap.catalog.stack import find_engine
from joulemap.domain.operator.name import Argument, Value
from joulemap.system.errors import UsageError
from joulemap.system.record import frozen
from joulemap.wing.llm.decoder.config import Attention, Decoder, Experts, Network, Recurrence

CACHES: Final = ("bf16", "fp16", "fp8", "int8")
"""What keys and values may be stored at, whatever the precision of the run."""

ARGUMENTS: Final = (
    Argument("tokens", default=1),
    Argument("cached", default=0, least=0),
    Argument("logits", default="last", choices=("last", "all", "none")),
    Argument("chunk", default=0, least=0),
    Argument("chunk_cached", default=0, least=0),
    Argument("devices", default=1),
    Argument("expert_devices", default=1),
    Argument("data_devices", default=1),
    Argument("pipeline_devices", default=1),
    Argument("sequence_parallel", default=False),
    Argument("cache", default="", choices=CACHES),
    Argument("routing", default=""),
    Argument("engine", default=""),
)
"""Of a pass, in the order of a name."""


@frozen(kw_only=True)
class Step:
    """A pass of a model."""

    tokens: int = 1
    """Of each sequence."""
    cached: int = 0
    """Of each sequence, before these."""
    logits: str = "last"
    """`last`: of each sequence's last token; `all`; `none`: those of a stage before the last."""
    chunk: int = 0
    """Tokens of another prompt in the same pass, of one sequence."""
    chunk_cached: int = 0
    """Tokens of it that are cached."""
    devices: int = 1
    """Over which heads, inner columns and the vocabulary are divided."""
    expert_devices: int = 1
    """Over which experts are divided."""
    data_devices: int = 1
    """Over which sequences are divided, each of `devices`."""
    pipeline_devices: int = 1
    """Stages that layers are divided among; the pass is that of one of them."""
    sequence_parallel: bool = False
    """Whether `devices` divide tokens between the products that they divide."""
    cache: str = ""
    """What keys and values are stored at; empty for the precision of the run."""
    routing: str = ""
    """Of experts, as the single operator has it."""
    engine: str = ""
    """Whose kernels of attention it runs, with its date; empty for ours."""

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> Step:
        """Return the pass of arguments as they are read; raises as `find_engine`."""
        found = cls(**{name: values[name] for name in values})  # type: ignore[arg-type]
        return attrs.evolve(found, engine=find_engine(found.engine).id) if found.engine else found

    @property
    def kernels(self) -> str:
        """What operators of attention are told of their kernels."""
        return find_engine(self.engine).words if self.engine else ""

    def cut(self, decoder: Decoder) -> Decoder:
        """Return the layers of a stage: the last ones, as many as the largest stage has."""
        if self.pipeline_devices == 1:
            return decoder
        return attrs.evolve(decoder, layers=decoder.layers[-count_stage(decoder, self.pipeline_devices) :])

    @property
    def arguments(self) -> tuple[str, ...]:
        """What a name says of it: `cached=2048`, without what is so anyway."""
        told = [(one.name, getattr(self, one.name), one.default) for one in ARGUMENTS]
        return tuple(
            f"{name}={'true' if value is True else value}" for name, value, default in told if value != default
        )

    @property
    def world(self) -> int:
        """All devices of a stage."""
        return self.devices * self.data_devices

    def part(self, count: int) -> int:
        """Return what one device has of what is divided, the last one padded: of heads of keys copies where there are
        more devices.
        """
        return -(-count // self.devices)

    def queries(self, count: int, pairs: int) -> int:
        """Return the heads of queries that one device has, as many for each of its heads of keys."""
        each = self.part(pairs)
        return -(-self.part(count) // each) * each

    def spell(self, name: str, *, is_whole: bool = False) -> str:
        """Return the one spelling of the pass of a model of this name; `is_whole` where a bare name is no pass."""
        return f"{name}({','.join(self.arguments)})" if self.arguments or is_whole else name


def check_step(decoder: Decoder, step: Step) -> None:
    """Raise UsageError for a pass that a model does not take."""
    most = decoder.context_length
    for what, count in (("", step.cached + step.tokens), ("chunk: ", step.chunk_cached + step.chunk)):
        if most and count > most:
            raise UsageError(f"{decoder.name}: {what}{count:,} tokens are more than its context of {most:,}")
    if step.chunk_cached and not step.chunk:
        raise UsageError(f"{decoder.name}: chunk_cached is {step.chunk_cached}, expected a chunk behind it")
    if step.logits == "none" and step.pipeline_devices == 1:
        raise UsageError(f"{decoder.name}: a pass without logits is one of several pipeline_devices")
    if step.sequence_parallel:
        _check_tokens(decoder, step)
    check_devices(decoder, step.devices, step.expert_devices, step.data_devices, step.pipeline_devices)


def _check_tokens(decoder: Decoder, step: Step) -> None:
    """Raise UsageError where tokens are not divided over the devices that divide products."""
    if step.devices == 1:
        raise UsageError(f"{decoder.name}: sequence_parallel divides tokens over devices, and there is one")
    if step.tokens % step.devices:
        raise UsageError(f"{decoder.name}: {step.tokens:,} tokens cannot be divided by {step.devices} devices")
    if step.chunk or step.data_devices > 1:
        raise UsageError(f"{decoder.name}: sequence_parallel goes with no chunk and no data_devices")
    if decoder.per_layer[1] or any(getattr(layer.network, "beside", None) for layer in decoder.layers):
        raise UsageError(f"{decoder.name}: layers take their tokens by more than one way, so that none divides them")


def count_stage(decoder: Decoder, stages: int) -> int:
    """Return the layers of the largest of so many stages."""
    return -(-decoder.layer_count // stages)


def check_devices(
    decoder: Decoder, devices: int, expert_devices: int = 1, data_devices: int = 1, pipeline_devices: int = 1
) -> None:
    """Raise UsageError where a model cannot be divided so."""

    def refuse(what: str, count: int, of: int) -> None:
        if count % of:
            raise UsageError(f"{decoder.name}: {count} {what} cannot be divided by {of} devices")

    decoder.check_division(devices, expert_devices, pipeline_devices)
    if pipeline_devices > decoder.layer_count:
        raise UsageError(f"{decoder.name}: {len(decoder.layers)} layers are too few for {pipeline_devices} stages")
    if pipeline_devices > 1 and any(isinstance(one.mixer, Attention) and one.mixer.shares for one in decoder.layers):
        raise UsageError(f"{decoder.name}: layers use what others hold, so that they cannot be divided into stages")
    world = devices * data_devices
    if world % expert_devices:
        raise UsageError(
            f"{decoder.name}: expert_devices is {expert_devices}, expected a divisor of all devices, {world}"
        )
    if expert_devices > 1 and not decoder.is_routed:
        raise UsageError(f"{decoder.name} has no experts: leave out expert_devices")
    for layer in dict.fromkeys(decoder.layers):
        mixer, network = layer.mixer, layer.network
        if mixer is not None:
            refuse("heads", mixer.heads, devices)
        if isinstance(mixer, Attention) and mixer.kv_heads % devices and devices % mixer.kv_heads:
            refuse("heads of keys", mixer.kv_heads, devices)
        if isinstance(mixer, Recurrence) and mixer.groups % devices and devices % mixer.groups:
            refuse("groups of keys", mixer.groups, devices)
        if isinstance(network, Network):
            refuse("inner columns", network.inner, devices)
        if isinstance(network, Experts):
            refuse("experts", network.count, expert_devices)
            refuse("inner columns of an expert", network.inner, world // expert_devices)
            for one in (network.shared, network.beside):
                if one is not None:
                    refuse("inner columns", one.inner, devices)
