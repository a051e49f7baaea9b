"""Decoder: the layer-by-layer sizes of one language model, as given by its configuration.

A layer has a mixer, through which tokens exchange information (attention, latent attention, a recurrence). It also has
a feed-forward network for each token (a gated or plain MLP, or a mixture of experts). Either may be missing.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import attrs

from joulemap.physics import GGUF_METHOD, Hardware, Precision, name_precision, read_weight_format
from joulemap.system import define, frozen
from joulemap.wing.decoder.engine.stack import FP4

if TYPE_CHECKING:
    from joulemap.wing.decoder.engine.stack import Stack

SIXTEEN_BITS: Final[tuple[Precision, ...]] = ("bf16", "fp16")
"""Precisions at which 16-bit checkpoints run, the most common first."""

WIDE: Final[Precision] = "fp32"
"""Precision of activations on processors without 16-bit arithmetic."""

MXFP4_WEIGHTS: Final = "mxfp4+q8_0"
"""Weight format of GGUF files whose checkpoint publishes its experts in MXFP4. Source: gpt-oss-20b-GGUF of ggml-org,
whose 11.27 GiB are 4.25 bits for experts and 8.5 for all else.
"""


Norm = Literal["rms_norm", "layer_norm"]

LEAST_BYTES: Final = 2.0
"""Minimum bytes per element of a recurrent state.

The precision of the KV cache does not apply to states (vLLM's mamba_cache_dtype).
"""

WIDE_BYTES: Final = 4.0
"""Bytes per element of a recurrent state that is stored at 32 bits."""


@frozen(kw_only=True)
class Indexer:
    """Selection of the rows that a token attends to: narrow heads score every cached row (sparse attention)."""

    heads: int
    head_dim: int
    """Elements of each indexer query, and of the one cached key per row."""
    is_weighted: bool = True
    """True if the scores of all heads are added with weights from the token; else each head selects for itself."""
    has_norms: bool = False
    """True if each head's query is normalized, as the key is."""
    tokens: int = 1
    """Adjacent tokens that are selected together, by their highest score."""


@frozen(kw_only=True)
class Attention:
    """Softmax attention with grouped query heads, each group sharing one key-value head."""

    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int = 0
    """Elements per value head; 0 for as many as a key has."""
    window: int = 0
    """Tokens that each token attends to, itself included; 0 for all."""
    rotary: int = 0
    """Elements of each head with rotary position embedding."""
    selected: int = 0
    """Maximum tokens that a token attends to; 0 for all."""
    indexer: Indexer | None = None
    """Selection of the tokens that a token attends to; None for all tokens."""
    bias: bool = False
    """True if the query, key and value projections have a bias."""
    output_bias: bool = False
    norm: Literal["", "head", "heads", "row", "free"] = ""
    """Normalization of queries and keys: per head (`head`), per head with its own weights (`heads`), over all heads
    (`row`), or per head without weights after rotation (`free`)."""
    value_norm: bool = False
    """True if values are normalized, without weights."""
    is_gated: bool = False
    """True if the output is multiplied by a gate as wide as the queries, from the same projection."""
    has_head_gate: bool = False
    """True if the result of each head is multiplied by a gate of one element, which is computed from the token."""
    has_values: bool = True
    """True if values have their own projection; else they are the keys before rotation."""
    is_packed: bool = False
    """True if one GEMM computes queries, keys and values."""
    shares: bool = False
    """True if keys and values are shared with an earlier layer."""
    score_operations: int = 1
    """Operations on each score before its softmax."""
    sinks: int = 0
    """Learned sink scores per head."""

    kind: Literal["attention"] = "attention"

    @property
    def values(self) -> int:
        """Elements per value head."""
        return self.value_dim or self.head_dim


@frozen(kw_only=True)
class Latent:
    """Multi-head latent attention (MLA): keys and values are computed from one narrow row per token."""

    heads: int
    query_rank: int
    """Rank of the query compression; 0 if queries are computed from the token directly."""
    rank: int
    plain: int
    """Elements of a head's query and key without rotary embedding."""
    rotary: int
    value_dim: int
    window: int = 0
    bias: bool = False
    """True if the projections to the ranks and the output projection have a bias."""
    is_gated: bool = False
    """True if the result is multiplied by a gate, which is computed from the token."""
    selected: int = 0
    """Maximum tokens that a token attends to; 0 for all."""
    indexer: Indexer | None = None
    """Selection of the tokens to attend to; None for all tokens or for an earlier layer's selection."""
    kind: Literal["latent"] = "latent"

    @property
    def cache_width(self) -> int:
        """Elements that each token adds to the KV cache."""
        return self.rank + self.rotary + (self.indexer.head_dim if self.indexer else 0)


@frozen(kw_only=True)
class Compressed:
    """Attention to recent tokens and to compressed rows of several older tokens; keys serve as values."""

    heads: int
    head_dim: int
    rotary: int
    query_rank: int
    output_groups: int
    """Groups of heads that are each projected to `output_rank` elements before the output projection."""
    output_rank: int
    window: int
    """Last tokens that each token attends to in full."""
    ratio: int = 0
    """Tokens per compressed row; 0 without compressed rows."""
    selected: int = 0
    """Maximum compressed rows that a token attends to; 0 for all."""
    indexer: Indexer | None = None
    """Selection of the compressed rows to attend to; None for all rows."""
    kind: Literal["compressed"] = "compressed"


@frozen(kw_only=True)
class Recurrence:
    """Recurrent mixer, with a state of fixed size for any number of tokens; a `conv` keeps its last few tokens only."""

    kind: Literal["mamba", "mamba2", "delta", "conv"]
    heads: int
    """Number of value heads, or of channels in a `conv`."""
    head_dim: int
    """Elements per value head."""
    state: int = 0
    """Elements per key head, each with one row of the state; 0 for a `conv`."""
    groups: int
    """Number of key heads."""
    kernel: int = 0
    """Taps of the preceding convolution; 0 for none."""
    rank: int = 0
    """Rank of the projection that sets the decay of a state (mamba)."""
    conv_bias: bool = True
    bias: bool = False
    has_norms: bool = False
    """True if the decay input and the matrices B and C of a mamba are normalized, without weights."""
    has_output_norm: bool = True
    """True if the result of a mamba2 or delta recurrence is normalized."""
    is_wide: bool = attrs.field(default=False, repr=False)
    """True if states are stored at 32 bits; workloads count them at the precision of activations."""

    @property
    def inner(self) -> int:
        """Value elements of a token, summed over all heads."""
        return self.heads * self.head_dim

    @property
    def conv_width(self) -> int:
        """Channels of the convolution."""
        return self.inner if self.kind in ("mamba", "conv") else self.inner + 2 * self.groups * self.state

    @property
    def state_count(self) -> int:
        """State elements of a sequence."""
        return self.inner * self.state

    @property
    def tail_count(self) -> int:
        """Elements per sequence that the convolution keeps of the last tokens."""
        return self.conv_width * max(self.kernel - 1, 0)


@frozen(kw_only=True)
class Network:
    """MLP: two GEMMs with an activation function between, or three if gated."""

    inner: int
    is_gated: bool = True
    function: Literal["silu", "gelu", "relu", "relu2"] = "silu"
    bias: bool = False
    output_bias: bool = False


@frozen(kw_only=True)
class Experts:
    """Mixture of experts: routed networks, of which each token uses a few, and shared networks for all tokens."""

    count: int
    taken: int
    inner: int
    is_gated: bool = True
    bias: bool = False
    function: Literal["silu", "gelu", "relu", "relu2"] = "silu"
    router_bias: bool = False
    """True if a learned bias is added to the score of each expert."""
    router_scale: bool = False
    """True if the router has learned scales for its input elements and for each expert."""
    hidden: int = 0
    """Width of the experts' input and output if projections make it differ from the model's; else 0."""
    shared: Network | None = None
    shared_gate: bool = False
    """True if a learned gate weighs the shared experts."""
    beside: Network | None = None
    """Network that runs in parallel to the experts, with separate norms."""


Mixer = Attention | Latent | Compressed | Recurrence


@frozen(kw_only=True)
class Layer:
    """One layer of a decoder: its mixer, its network, and their norms."""

    mixer: Mixer | None
    network: Network | Experts | None
    beside: Mixer | None = None
    """Second mixer, which reads the same input; the results of both are added."""
    is_parallel: bool = False
    """True if mixer and network read the same input and their results are added."""
    norms: Literal[1, 2] = 2
    """Norms before the parts: one per part, or one for both parts of a parallel layer."""
    has_norms_behind: bool = False
    """True if the result of each part is normalized before it is added."""
    has_norms_before: bool = True
    stored: tuple[tuple[str, str], ...] = ()
    """(weight, format) of weights that the checkpoint does not store in its main format; an empty format is 16 bits."""

    @property
    def mixers(self) -> tuple[Mixer, ...]:
        """Mixers that the layer has: at most two."""
        return tuple(one for one in (self.mixer, self.beside) if one is not None)


@frozen(kw_only=True)
class Published:
    """Formats in which a checkpoint stores the weights of a decoder, by its `quantization_config`."""

    method: str
    weights: str = ""
    """Main format, as `--weight-precision` takes it; empty if weights are not quantized, or by an unknown method."""
    precision: str = ""
    """Precision of activations in GEMMs with the main format, or of weights that are not quantized; empty for 16 bits.
    """
    others: tuple[str, ...] = ()
    """Other formats of converted weights, the most common first."""
    stored: tuple[tuple[str, str], ...] = ()
    """(weight, format) of converted weights outside layers; of tables of tokens too, if the file converts them."""
    cache: str = ""
    """KV cache precision for which the checkpoint has scales; empty for the precision of activations."""
    doubt: str = ""
    """Note on a part of the configuration that predictions ignore; empty without one."""

    def find_format(self, name: str) -> str:
        """Return the checkpoint's own format if a name states only its kind, as fp4 does for MXFP4; else the name."""
        return self.weights if self.weights and read_weight_format(self.weights).is_kind(name) else name

    def describe(self) -> str:
        """Return a phrase for the format, e.g. `mxfp4 weights (mxfp4)`."""
        if not self.weights:
            return self.doubt or f"{self.precision} weights"
        formats = " and ".join((self.weights, *self.others))
        method = "" if self.method in self.weights or self.weights.startswith(self.method) else f" ({self.method})"
        return f"{formats} weights{method}" + (f"; {self.doubt}" if self.doubt else "")


@define(kw_only=True, eq=False, slots=False)
class Decoder:
    """Decoder language model, as given by its configuration."""

    name: str
    model_type: str
    hidden: int
    vocabulary: int
    layers: tuple[Layer, ...]
    norm: Norm = "rms_norm"
    norm_bias: bool = True
    """True if layer norms have a bias."""
    final_norm: bool = True
    embedding_norm: bool = False
    is_tied: bool = False
    head_bias: bool = False
    positions: int = 0
    """Rows of the table of learned positions; 0 for none."""
    per_layer: tuple[int, int] = (0, 0)
    """(rows, elements per layer) of a token table with elements for each layer; zeros for none."""
    embedding_width: int = 0
    """Width of the embedding table if narrower than the model; else 0."""
    is_capped: bool = False
    """True if logits pass through a tanh."""
    streams: int = 0
    """Residual streams per token that hyper-connections mix before and after each part; 0 without hyper-connections."""
    keeps_mixers: bool = False
    """True if attention weights stay at 16 bits when other weights are stored in fewer bits."""
    published: Published | None = None
    """Quantization of the checkpoint; None for 16 bits throughout."""
    context_length: int = 0
    """Maximum context in tokens that the model supports; 0 if unknown."""
    text: str = ""
    """Source configuration as JSON, without irrelevant fields."""
    basis: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    """Notes on uncertain properties of the model."""
    file_notes: tuple[str, ...] = ()
    """Notes on the files that hold the model's weights."""
    missing_note: str = ""
    """Note among `file_notes` on the weights that a file lacks; empty if it lacks none."""

    is_traced: ClassVar[bool] = False
    """True if passes are traced rather than built from these sizes."""

    @property
    def longest_pass(self) -> int:
        """Maximum tokens of a sequence in one pass; 0 for no limit."""
        return self.context_length

    @property
    def layer_count(self) -> int:
        """Number of layers; a host launches each separately."""
        return len(self.layers)

    @property
    def recurrent_count(self) -> int:
        """Number of layers that keep a state of fixed size per sequence."""
        return sum(isinstance(one, Recurrence) for layer in self.layers for one in layer.mixers)

    @property
    def delta_count(self) -> int:
        """Number of mixers with a gated delta rule."""
        mixers = (one for layer in self.layers for one in layer.mixers)
        return sum(isinstance(one, Recurrence) and one.kind == "delta" for one in mixers)

    @property
    def score_heads(self) -> tuple[tuple[int, int], ...]:
        """(heads, window) of each mixer that scores cached tokens; window 0 for none."""
        scoring = (one for layer in self.layers for one in layer.mixers if not isinstance(one, Recurrence))
        return tuple((one.heads, getattr(one, "window", 0)) for one in scoring)

    @property
    def shares_caches(self) -> bool:
        """True if layers read the keys and values of earlier layers."""
        return any(isinstance(layer.mixer, Attention) and layer.mixer.shares for layer in self.layers)

    @property
    def routed_count(self) -> int:
        """Number of layers with experts."""
        return sum(isinstance(layer.network, Experts) for layer in self.layers)

    @property
    def expert_count(self) -> int:
        """Experts of all layers; a host without fused kernels launches each separately."""
        return sum(layer.network.count for layer in self.layers if isinstance(layer.network, Experts))

    @property
    def file_weights(self) -> str:
        """Weight format of its GGUF files if they keep the checkpoint's published format (MXFP4).

        Empty if its GGUF files come in many formats, or if it is read from a GGUF file.
        """
        published = self.published
        keeps = published is not None and published.method != GGUF_METHOD and published.weights == "mxfp4"
        return MXFP4_WEIGHTS if keeps else ""

    def list_precisions(self) -> tuple[tuple[Precision, ...], tuple[str, ...]]:
        """Return the activation precisions and the weight precision of the checkpoint as published."""
        published = self.published
        own = (name_precision(published.precision),) if published and published.precision else ()
        return (*own, *SIXTEEN_BITS), (published.weights,) if published and published.weights else ()

    def choose_precision(self, target: Hardware, stack: Stack, named: str = "") -> tuple[Precision, str]:
        """Return the compute precision and the weight precision of the checkpoint as published, or of one in the named
        FP4 format, on this hardware.

        GEMMs run at the activation precision of the checkpoint if the hardware has it and, for FP4 weights, the engine
        has kernels; else at 16 bits.
        """
        published = self.published
        stored, own = ("", "") if published is None else (published.weights, published.precision)
        if named and named != stored:
            stored, own = named, FP4
        if stored and read_weight_format(stored).precision == FP4:
            own = stack.choose_product(stored, target.microarchitecture, own)
        first = (name_precision(own),) if own else ()
        precision = next((one for one in (*first, *SIXTEEN_BITS, WIDE) if one in target.peaks), SIXTEEN_BITS[0])
        return precision, stored or precision

    def check_division(self, devices: int, expert_devices: int, pipeline_devices: int) -> None:
        """Raise UsageError if the division of GEMMs or experts is unknown; this class knows it from the sizes."""

    @cached_property
    def digest(self) -> str:
        """Hash of all fields that a workload depends on, as sixteen hexadecimal digits."""
        sizes = [getattr(self, field.name) for field in attrs.fields(Decoder) if field.name not in _IGNORED]
        return hashlib.sha256(repr([*sizes, *self.file_notes]).encode()).hexdigest()[:16]

    def cache_bytes(self, tokens: int, item_bytes: float = 2.0, devices: int = 1) -> float:
        """Return the cache bytes of a sequence of `tokens` tokens on one of `devices` devices, states included."""
        return sum(_count_cached(one, tokens, devices, item_bytes) for layer in self.layers for one in layer.mixers)

    def without_experts(self) -> Decoder:
        """Return this decoder with only those networks of its mixtures of experts that serve every token."""

        def bare(layer: Layer) -> Layer:
            own = layer.network
            return attrs.evolve(layer, network=own.beside or own.shared) if isinstance(own, Experts) else layer

        return attrs.evolve(self, layers=tuple(map(bare, self.layers)))

    @cached_property
    def is_routed(self) -> bool:
        """True if a router chooses experts for each token."""
        return any(isinstance(layer.network, Experts) for layer in self.layers)


_IGNORED: Final = ("name", "text", "basis", "source", "notes", "file_notes", "missing_note", "context_length")
"""Fields of a decoder that do not affect workloads."""


def _count_cached(mixer: Mixer, tokens: int, devices: int, item_bytes: float) -> float:
    """Return the bytes that a layer caches per sequence on one device; no state is narrower than 16 bits."""
    if isinstance(mixer, Recurrence):
        near = max(item_bytes, LEAST_BYTES)
        wide = max(near, WIDE_BYTES) if mixer.is_wide else near
        return (mixer.state_count * wide + mixer.tail_count * near) / devices
    return _count_rows(mixer, tokens, devices) * item_bytes


def _count_rows(mixer: Attention | Latent | Compressed, tokens: int, devices: int) -> float:
    """Return the elements that an attention layer caches per sequence on one device."""
    seen = min(tokens, mixer.window) if mixer.window else tokens
    if isinstance(mixer, Latent):
        return seen * mixer.cache_width
    if isinstance(mixer, Compressed):
        rows = tokens // mixer.ratio if mixer.ratio else 0
        return seen * mixer.head_dim + rows * (mixer.head_dim + (mixer.indexer.head_dim if mixer.indexer else 0))
    pairs = 0 if mixer.shares else -(-mixer.kv_heads // devices)
    return seen * (pairs * (mixer.head_dim + mixer.values) + (mixer.indexer.head_dim if mixer.indexer else 0))
