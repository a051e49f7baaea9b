"""Predictor of execution times for Vidur (microsoft/vidur), a simulator of clusters that serve language models.

Interface of microsoft/vidur at 7d475133: `get_execution_time(batch, pipeline_stage)` returns an object with the
properties of `vidur.entities.ExecutionTime`: milliseconds of operators in one layer, milliseconds that a batch takes
once, and sums in seconds. A batch has `requests` with `num_processed_tokens` and `is_prefill_complete`, and the new
tokens of each in `num_tokens`; vidur 0.0.26 on PyPI calls these `num_q_tokens`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from joulemap.system import UnsupportedError, UsageError, frozen
from joulemap.wing.embed.batch import Request, Sizes, find_shortage, find_sizes, make_pass, read_sizes
from joulemap.wing.llm.serve import Passes, StepPredictor

MS_PER_S: Final = 1e3

ALL_REDUCE: Final = "all_reduce"

ATTENTION: Final = "attention"

COMPONENTS: Final[Mapping[str, str]] = {
    r"(.*\.)?all_reduce": ALL_REDUCE,
    r"add(_\d+)?": "add_time",
    r"input_layernorm(_behind)?": "attn_norm_time",
    r"post_attention_layernorm(_behind)?": "mlp_norm_time",
    r"self_attn\.append_\w+": "attention_kv_cache_save_execution_time",
    r"self_attn\.rotary": "attention_rope_execution_time",
    r"self_attn\.attention_chunk\.\w+": "attention_prefill_execution_time",
    r"self_attn\.attention\.\w+": ATTENTION,
    r"self_attn\.(o_proj|absorb_v)": "attention_post_proj_time",
    r"self_attn\.((q|k|v|qkv|q_a|q_b)_proj|kv_a_proj_with_mqa|kv_b_proj(_chunk)?|absorb_k)": "attention_pre_proj_time",
    r"self_attn\.((q|k|v)_norm|(q|kv)_a_layernorm)": "attention_pre_proj_time",
    r"mlp\.(gate|choose|(up|gate)_proj|experts\.(up|gate)|shared_experts\.(gate|(up|gate)_proj))": (
        "mlp_layer_up_proj_execution_time"
    ),
    r"mlp\.(down_proj|experts\.down|shared_experts\.down_proj)": "mlp_layer_down_proj_execution_time",
}
"""Subgraph of a layer -> component. An activation is part of the GEMM before it, and routing part of the first GEMM."""

TOKENS: Final = ("num_tokens", "num_q_tokens")
"""Attributes of a batch that may have the new tokens of its requests."""

LOGIT: Final = "engine.logit"
"""Sampling, the only time of an engine that `schedule_time` does not have."""


class VidurRequest(Protocol):
    """Part of a request of Vidur that determines its cost."""

    @property
    def num_processed_tokens(self) -> int:
        """Tokens in the KV cache before this batch."""
        ...

    @property
    def is_prefill_complete(self) -> bool:
        """True for a decode step."""
        ...


class VidurBatch(Protocol):
    """Requests that Vidur runs together; each has new tokens in `num_tokens` or, on PyPI, in `num_q_tokens`."""

    @property
    def requests(self) -> Sequence[VidurRequest]:
        """Requests of the batch."""
        ...


@frozen(kw_only=True)
class VidurTime:
    """Execution time of a batch with the names and units of Vidur's properties, and the energy of the batch.

    Times of operators are means over the layers in milliseconds.
    """

    num_layers: int
    attention_pre_proj_time: float = 0.0
    """GEMMs before attention, with the norms of queries and keys."""
    attention_rope_execution_time: float = 0.0
    attention_kv_cache_save_execution_time: float = 0.0
    attention_prefill_execution_time: float = 0.0
    attention_decode_execution_time: float = 0.0
    attention_post_proj_time: float = 0.0
    attn_norm_time: float = 0.0
    """Norm before attention."""
    mlp_layer_up_proj_execution_time: float = 0.0
    """GEMMs before the activation, which is fused with them, and routing of a mixture of experts."""
    mlp_layer_act_execution_time: float = 0.0
    """Always 0: the activation is fused."""
    mlp_layer_down_proj_execution_time: float = 0.0
    mlp_norm_time: float = 0.0
    """Norm after attention."""
    add_time: float = 0.0
    """Residual additions that are not fused with the operator before them."""
    attention_all_reduce_time: float = 0.0
    """Half of the exchanges of a layer; Vidur has the same number for attention and for the MLP."""
    pipeline_parallel_communication_time: float = 0.0
    """Always 0: there is one pipeline stage."""
    schedule_time: float = 0.0
    """Milliseconds per batch that the engine adds to the time of its kernels."""
    sampler_e2e_time: float = 0.0
    """Milliseconds per batch of token embedding, last norm, output head and sampling."""
    prepare_inputs_e2e_time: float = 0.0
    """Always 0: part of `schedule_time`."""
    process_model_outputs_time: float = 0.0
    """Always 0: part of `schedule_time`."""
    ray_comm_time: float = 0.0
    """Always 0: unknown."""
    energy_j: float
    """Energy of the batch on all devices, at the boundary of their boards. Vidur does not read it."""

    @property
    def mlp_all_reduce_time(self) -> float:
        """Half of the exchanges of a layer in milliseconds."""
        return self.attention_all_reduce_time

    @property
    def model_time_ms(self) -> float:
        """Milliseconds of all layers."""
        layer = (
            self.attention_pre_proj_time
            + self.attention_rope_execution_time
            + self.attention_kv_cache_save_execution_time
            + self.attention_prefill_execution_time
            + self.attention_decode_execution_time
            + self.attention_post_proj_time
            + self.attn_norm_time
            + self.mlp_layer_up_proj_execution_time
            + self.mlp_layer_act_execution_time
            + self.mlp_layer_down_proj_execution_time
            + self.mlp_norm_time
            + self.add_time
            + self.attention_all_reduce_time
            + self.mlp_all_reduce_time
        )
        return self.num_layers * layer + self.pipeline_parallel_communication_time

    @property
    def model_time(self) -> float:
        """Seconds of all layers."""
        return self.model_time_ms / MS_PER_S

    @property
    def total_time(self) -> float:
        """Seconds of the batch."""
        once = (
            self.schedule_time
            + self.sampler_e2e_time
            + self.prepare_inputs_e2e_time
            + self.process_model_outputs_time
            + self.ray_comm_time
        )
        return self.model_time + once / MS_PER_S


class VidurPredictor:
    """Predictor of the execution time of each batch, which also sums the energy of the batches.

    Times are those of exact steps. Contexts are rounded to multiples of `granularity` tokens, as Vidur rounds them up,
    so that most batches of a simulation are known already.
    """

    def __init__(self, steps: StepPredictor, *, granularity: int = 64) -> None:
        if isinstance(granularity, bool) or not isinstance(granularity, int) or granularity < 1:
            raise UsageError(f"granularity is {granularity!r}, expected a whole number of tokens from 1")
        self._steps, self._granularity = steps, granularity
        self._known: dict[tuple[float, ...], VidurTime] = {}
        self.reset_metrics()

    def get_execution_time(self, batch: VidurBatch, pipeline_stage: int = 0) -> VidurTime:
        """Return the components of a batch's time.

        Raises UsageError for another pipeline stage than the first, and UnsupportedError for a batch that memory does
        not hold or a model with layers that Vidur does not have, such as a recurrence.
        """
        if pipeline_stage:
            raise UsageError(f"pipeline stage {pipeline_stage}, expected 0: the model is on one stage")
        decoding, prompts = _divide(batch)
        sizes, requests = self._find_sizes(decoding, prompts), [*decoding, *prompts]
        if decoding and len(prompts) > 1:  # one chunk, which has the KV cache of one
            held = self._round(sum(new + past for new, past in requests) / len(requests))
            if shortage := find_shortage(self._steps, len(requests), held):
                raise UnsupportedError(shortage, code="memory")
        key = *sizes, not decoding
        if key not in self._known:
            self._known[key] = self._predict(sizes, is_prompt=not decoding)
        time = self._known[key]
        self._batches += 1
        self._joules += time.energy_j
        self._tokens += sum(new for new, _ in requests)
        return time

    def list_passes(self, batch: VidurBatch) -> Passes:
        """Return the pass of the step predictor whose time a batch has."""
        return make_pass(self._find_sizes(*_divide(batch)))

    def get_metrics(self) -> dict[str, float]:
        """Return the energy and the number of batches and tokens since the last reset."""
        return {
            "joulemap_energy_j": self._joules,
            "joulemap_batches": self._batches,
            "joulemap_tokens": self._tokens,
        }

    def reset_metrics(self) -> None:
        """Begin another simulation."""
        self._joules, self._batches, self._tokens = 0.0, 0, 0

    def _find_sizes(self, decoding: Sequence[Request], prompts: Sequence[Request]) -> Sizes:
        """Return the sizes of the pass of a batch, with rounded contexts."""
        if not decoding and not prompts:
            raise UsageError("the batch has no requests")
        sequences, tokens, context, chunk, before = find_sizes(decoding, prompts)
        return sequences, tokens, self._round(context), chunk, self._round(before)

    def _round(self, tokens: float) -> float:
        return float(self._granularity * round(tokens / self._granularity))

    def _predict(self, sizes: Sizes, is_prompt: bool) -> VidurTime:
        passes = make_pass(sizes)
        found = self._steps.price(passes)
        if found.refusal:
            raise UnsupportedError(str(found.refusal), code="memory")
        (parts,) = self._steps.split(passes)
        return sum_components(parts, is_prompt=is_prompt, energy_j=float(found.energy_j))


def sum_components(parts: Mapping[str, float], *, is_prompt: bool, energy_j: float) -> VidurTime:
    """Return Vidur's components of a step from the seconds of its subgraphs (`StepPredictor.split`).

    `is_prompt` is True for a step without a sequence that decodes. Raises UnsupportedError for a subgraph of a layer
    that Vidur has no component for.
    """
    layers: set[str] = set()
    times: dict[str, float] = {}
    for name, seconds in parts.items():
        inside = re.fullmatch(r"layers\.(\d+)\.(.*)", name)
        if inside is None:
            component = "schedule_time" if name.startswith("engine.") and name != LOGIT else "sampler_e2e_time"
        else:
            layers.add(inside[1])
            component = next((one for pattern, one in COMPONENTS.items() if re.fullmatch(pattern, inside[2])), "")
            if not component:
                raise UnsupportedError(f"Vidur has no component for {name}", code="parts")
        times[component] = times.get(component, 0.0) + seconds
    once = {name: MS_PER_S * times.pop(name, 0.0) for name in ("schedule_time", "sampler_e2e_time")}
    each = {name: MS_PER_S * seconds / len(layers) for name, seconds in times.items()}
    exchange_ms = each.pop(ALL_REDUCE, 0.0) / 2.0  # after attention and after the MLP
    phase = "attention_prefill_execution_time" if is_prompt else "attention_decode_execution_time"
    each[phase] = each.get(phase, 0.0) + each.pop(ATTENTION, 0.0)
    return VidurTime(num_layers=len(layers), attention_all_reduce_time=exchange_ms, energy_j=energy_j, **once, **each)


def _divide(batch: VidurBatch) -> tuple[list[Request], list[Request]]:
    """Return the decode steps and the prompts of a batch; UsageError for numbers of tokens that no request has.

    vidur 0.0.26 wraps a batch as `batch_mapping`, with one batch for each group of devices that divide a KV cache.
    """
    groups = getattr(batch, "batch_mapping", None)
    if isinstance(groups, Mapping):
        if len(groups) != 1:
            raise UsageError(f"the batch is divided over {len(groups)} groups of devices by its KV cache, expected 1")
        (batch,) = groups.values()
    name = next((one for one in TOKENS if isinstance(getattr(batch, one, None), Sequence)), "")
    if not name:
        raise UsageError(f"a batch of type {type(batch).__name__} has neither {' nor '.join(TOKENS)}")
    new_tokens = read_sizes(name, getattr(batch, name), 1)
    if len(new_tokens) != len(batch.requests):
        raise UsageError(f"{name} has {len(new_tokens)} numbers for {len(batch.requests)} requests, expected one each")
    cached = read_sizes("num_processed_tokens", [one.num_processed_tokens for one in batch.requests])
    divided: tuple[list[Request], list[Request]] = [], []
    for one, new, past in zip(batch.requests, new_tokens, cached, strict=True):
        divided[0 if one.is_prefill_complete else 1].append((new, past))
    return divided
