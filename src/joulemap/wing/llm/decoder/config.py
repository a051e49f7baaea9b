"""A decoder: the sizes of one language model, layer by layer, as its configuration says them.

A layer has a mixer, by which tokens see one another (attention, attention through a latent, a recurrence), and a
network of its own for each token (one product between two, or a mixture of experts); either may be missing.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import ClassVar, Final, Literal

import attrs

from joulemap.system.record import define, frozen

Norm = Literal["rms_norm", "layer_norm"]


@frozen(kw_only=True)
class Attention:
    """Softmax attention of query heads in groups, each with a head of keys and values."""

    heads: int
    kv_heads: int
    head_dim: int
    window: int = 0
    """Tokens that each sees, itself included; 0 for all."""
    rotary: int = 0
    """Elements of each head that are turned by their position."""
    bias: bool = False
    """Of queries, keys and values."""
    output_bias: bool = False
    norm: Literal["", "head", "heads", "row", "free"] = ""
    """Of queries and keys: of each head, of each head with weights of its own, of the row of all heads, or of each head
    without weights once it is turned."""
    value_norm: bool = False
    """Of values, without weights."""
    is_gated: bool = False
    """Whether a gate as wide as the queries, made beside them, multiplies the result."""
    has_values: bool = True
    """Whether values have a product of their own, and are not the keys before they are turned."""
    is_packed: bool = False
    """Whether queries, keys and values are one product."""
    shares: bool = False
    """Whether keys and values are those that a layer before has made."""
    score_operations: int = 1
    """On each score, before its softmax."""
    sinks: int = 0
    """Learned scores of each head."""

    kind: Literal["attention"] = "attention"

    @property
    def cache_width(self) -> int:
        """Elements that a token leaves behind."""
        return 0 if self.shares else 2 * self.kv_heads * self.head_dim


@frozen(kw_only=True)
class Latent:
    """Attention whose keys and values are made of one narrow row for each token (multi-head latent attention)."""

    heads: int
    query_rank: int
    """0 where queries are made of the token itself."""
    rank: int
    plain: int
    """Elements of a head's query and key that are not turned."""
    rotary: int
    value_dim: int
    window: int = 0
    bias: bool = False
    """Of the products to the ranks and of the result."""
    kind: Literal["latent"] = "latent"

    @property
    def cache_width(self) -> int:
        """Elements that a token leaves behind."""
        return self.rank + self.rotary


@frozen(kw_only=True)
class Recurrence:
    """A mixer with a state of one size, however many tokens it has seen."""

    kind: Literal["mamba", "mamba2", "delta"]
    heads: int
    """Of values."""
    head_dim: int
    """Elements of a value of a head."""
    state: int
    """Elements of a key of a head, each with a row of the state."""
    groups: int
    """Heads of keys."""
    kernel: int = 0
    """Taps of the convolution before it; 0 for none."""
    rank: int = 0
    """Of the product that decides how fast a state fades (mamba)."""
    conv_bias: bool = True
    bias: bool = False
    has_norms: bool = False
    """Whether what decides and both keys of a mamba are normalized, without weights."""

    @property
    def inner(self) -> int:
        """Elements of all values of a token."""
        return self.heads * self.head_dim

    @property
    def conv_width(self) -> int:
        """Channels of the convolution."""
        return self.inner if self.kind == "mamba" else self.inner + 2 * self.groups * self.state

    @property
    def state_count(self) -> int:
        """Elements of the state of a sequence."""
        return self.inner * self.state

    @property
    def tail_count(self) -> int:
        """Elements of the last tokens that a sequence keeps for the convolution."""
        return self.conv_width * max(self.kernel - 1, 0)


@frozen(kw_only=True)
class Network:
    """Two products with a function between, or three where one is a gate."""

    inner: int
    is_gated: bool = True
    function: Literal["silu", "gelu", "relu", "relu2"] = "silu"
    bias: bool = False
    output_bias: bool = False


@frozen(kw_only=True)
class Experts:
    """Networks of which each token takes a few, and those that every token takes."""

    count: int
    taken: int
    inner: int
    is_gated: bool = True
    bias: bool = False
    function: Literal["silu", "gelu", "relu", "relu2"] = "silu"
    router_bias: bool = False
    """Learned, added to the score of each expert."""
    router_scale: bool = False
    """Learned, of each element that the router reads and of each expert."""
    hidden: int = 0
    """Width of what they read and write, where it is not that of the model: a product before and behind."""
    shared: Network | None = None
    shared_gate: bool = False
    """Whether a learned gate weighs the shared ones."""
    beside: Network | None = None
    """A network that runs beside them with norms of its own."""


Mixer = Attention | Latent | Recurrence


@frozen(kw_only=True)
class Layer:
    """A layer of a decoder."""

    mixer: Mixer | None
    network: Network | Experts | None
    is_parallel: bool = False
    """Whether both read the same input and are added together."""
    norms: Literal[1, 2] = 2
    """Before: of each part, or one that both parts of a parallel layer read."""
    has_norms_behind: bool = False
    """Whether the result of each part is normalized before it is added."""
    has_norms_before: bool = True
    stored: tuple[tuple[str, str], ...] = ()
    """(weight, format) of weights that the checkpoint does not store in its main format; no format for 16 bits."""


@frozen(kw_only=True)
class Published:
    """Formats in which a checkpoint stores the weights of a decoder, by its `quantization_config`."""

    method: str
    weights: str = ""
    """Main format, as `--weight-precision` takes it; empty where the method is unknown or converts nothing."""
    precision: str = ""
    """Precision of the other operand of its products; empty for 16 bits."""
    others: tuple[str, ...] = ()
    """Formats of the rest of the converted weights."""
    stored: tuple[tuple[str, str], ...] = ()
    """(weight, format) of converted weights outside of layers."""
    doubt: str = ""
    """Part of the configuration that is not counted."""

    def describe(self) -> str:
        """Return it in words, e.g. `mxfp4 weights (mxfp4)`."""
        if not self.weights:
            return self.doubt
        formats = " and ".join((self.weights, *self.others))
        method = "" if self.method in self.weights or self.weights.startswith(self.method) else f" ({self.method})"
        return f"{formats} weights{method}" + (f"; {self.doubt}" if self.doubt else "")


@define(kw_only=True, eq=False, slots=False)
class Decoder:
    """A language model that decodes, by what its configuration says."""

    name: str
    model_type: str
    hidden: int
    vocabulary: int
    layers: tuple[Layer, ...]
    norm: Norm = "rms_norm"
    norm_bias: bool = True
    """Whether layer norms add one."""
    final_norm: bool = True
    embedding_norm: bool = False
    is_tied: bool = False
    head_bias: bool = False
    positions: int = 0
    """Rows of a table of learned positions; 0 for none."""
    per_layer: tuple[int, int] = (0, 0)
    """Rows of a table of tokens with elements for each layer, and how many for a layer; 0 for none."""
    embedding_width: int = 0
    """Of the table of tokens, where it is narrower than the model."""
    is_capped: bool = False
    """Whether logits go through a tanh."""
    keeps_mixers: bool = False
    """Whether weights of attention stay at 16 bits where others are stored narrower."""
    published: Published | None = None
    """How its checkpoint is quantized; None for 16 bits throughout."""
    context_length: int = 0
    """Tokens that it was made for; 0 where nothing says."""
    text: str = ""
    """What it was read from, as JSON without what does not matter."""
    basis: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    """What is not certain of it."""

    is_traced: ClassVar[bool] = False
    """Whether passes are traced, and not told by these sizes."""

    @property
    def longest_pass(self) -> int:
        """Tokens of a sequence that a pass may have; 0 for any number."""
        return self.context_length

    @property
    def layer_count(self) -> int:
        """Layers, each of which a host has to start."""
        return len(self.layers)

    @property
    def expert_count(self) -> int:
        """Experts of all layers, each of which a host without merged kernels has to start."""
        return sum(layer.network.count for layer in self.layers if isinstance(layer.network, Experts))

    def check_division(self, devices: int, expert_devices: int, pipeline_devices: int) -> None:
        """Raise UsageError where nothing says how products or experts are divided: here their sizes say."""

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits over all that a workload depends on."""
        sizes = [getattr(self, field.name) for field in attrs.fields(Decoder) if field.name not in _TOLD]
        return hashlib.sha256(repr(sizes).encode()).hexdigest()[:16]

    def cache_bytes(self, tokens: int, item_bytes: float = 2.0, devices: int = 1) -> float:
        """Return the bytes that a sequence of so many tokens holds on one of several devices, states included."""
        return sum(_held(layer.mixer, tokens, devices) for layer in self.layers if layer.mixer) * item_bytes

    @cached_property
    def is_routed(self) -> bool:
        """Whether tokens choose among experts."""
        return any(isinstance(layer.network, Experts) for layer in self.layers)


_TOLD: Final = ("name", "text", "basis", "source", "notes", "context_length")
"""Fields on which no workload depends."""


def _held(mixer: Mixer, tokens: int, devices: int) -> float:
    """Return the elements that a layer holds of a sequence on one device."""
    if isinstance(mixer, Recurrence):
        return (mixer.state_count + mixer.tail_count) / devices
    seen = min(tokens, mixer.window) if mixer.window else tokens
    if isinstance(mixer, Latent):
        return seen * mixer.cache_width
    return seen * mixer.cache_width / mixer.kv_heads * -(-mixer.kv_heads // devices)
