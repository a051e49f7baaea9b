"""Predicted quantities of a measured serving row, or the reason for none, by the row's scope.

prefill_step     a prefill pass
decode_step      a decode step after a KV cache, or the mean over an answer that grows from there
request, offline a whole batch of equal sequences
steady_serving   a constant number of requests in flight
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import attrs

from joulemap.domain import SCOPE
from joulemap.physics import Hardware, read_weight_format
from joulemap.physics.record.weight import BESIDE, WeightFormat
from joulemap.system import JoulemapError, Reason, UnsupportedError
from joulemap.wing.decoder import FP4, NARROW, DecoderPass, Stack, find_decoder, find_stack
from joulemap.wing.llm.row import LOCALSCORE, Prediction, ServingRow
from joulemap.wing.llm.serving.batch import Batch, grow, prefill, run_batches
from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads
from joulemap.wing.llm.serving.load import CLIENT_S, ROUNDS, Limits, Load
from joulemap.wing.llm.serving.memory import Room
from joulemap.wing.llm.serving.offload import Offload, Way
from joulemap.wing.llm.serving.pass_error import find_thin_widths
from joulemap.wing.llm.serving.serve import find_limits, open_deployment, simulate, wait_for_ranks
from joulemap.wing.llm.serving.surface import Passes, Table, choose_steady_knots
from joulemap.wing.llm.setting import Serving

if TYPE_CHECKING:
    from joulemap.wing.decoder import Decoder, Published

Served = Deployment | Offload
"""Model on equal devices, or divided between unlike ones."""

Priced = Table | JoulemapError | KeyError | None
"""Costs of passes, or the reason why there are none; None if they are not shared."""

PROMPT: Final = 200.0
"""Assumed prompt length in tokens if a row states none: a typical user question.

Source: assumed; the mean of LMArena's conversations is about 100 (arXiv 2403.04132).
"""

SHORT_PROMPT: Final = 20.0
"""Assumed prompt length in tokens of a row that calls its prompts short.

Source: assumed; the mean of instructions of Alpaca. Default prompts of Optimum Habana's tests have six to nine words.
"""

LOCALSCORE_TESTS: Final = (
    (1024.0, 16.0),
    (4096.0, 256.0),
    (2048.0, 256.0),
    (2048.0, 768.0),
    (1024.0, 1024.0),
    (1280.0, 1024.0),
    (384.0, 1152.0),
    (64.0, 1024.0),
    (16.0, 1536.0),
)
"""(prompt tokens, output tokens) of LocalScore's nine tests; its results are means over these tests.

Source: recalled from LocalScore's documentation; times to the first token x prompt rates of its results give the same
mean prompt of about 1,300 tokens.
"""

FEWEST: Final = 2.0
"""Minimum output tokens that include a decode step after the first token."""

BITSANDBYTES_INT8: Final = "int8:row"
"""Weights of `int8_vectorwise_quant`: a scale for each output."""

FP4_BLOCKS: Final = "nvfp4"
"""Format of weights that a row calls fp4."""

UNKNOWN_CLIENT: Final = 0.9
"""Additional half-width of a first token under a load of an unknown client. Derived: means of 32 boards and models of
clients who send a request for each that ended (blawesom/gpu_inference_bench, gpustack, sgl-cookbook, SGLang, vLLM
recipes, hholtmann/llm-consumer-gpu-benchmark, LottoLottoLotto/4x3090-llm-benchmarks): with it, the half-width is the
1.1 that cover 80 % of 152 times, predicted with a constant share of requests that arrive together.
"""

LEAST_COUNTED: Final = 150
"""Least number of requests of a steady load whose means are predicted. Source: a choice."""

SPREAD: Final = 0.5
"""Spread of the lengths of a load that states means of lengths, not lengths. Source: assumed."""

WIDE: Final = ("bf16", "fp16", "fp32")
"""Interchangeable precisions: one replaces another that a chip lacks."""


def predict(
    rows: Sequence[ServingRow], hardware: Hardware, others: Sequence[Hardware] = ()
) -> list[Prediction | Reason]:
    """Predict each row of one chip, or of one and the others that hold a part of its model; return a one-line reason
    for each row that cannot be predicted.
    """
    return predict_together([(row, hardware) for row in rows], others)


def predict_together(
    asked: Sequence[tuple[ServingRow, Hardware]], others: Sequence[Hardware] = ()
) -> list[Prediction | Reason]:
    """Predict each row on its chip and the others, as `predict` does for one chip.

    Rows of one deployment share the evaluation of their passes, and rows of one model the description of them: many
    cost a fraction of what they cost one by one.
    """
    deployments = _deploy(asked, others)
    asked = [(_share(row, one), hardware) for (row, hardware), one in zip(asked, deployments, strict=True)]
    tables = _tabulate([row for row, _ in asked], deployments)
    results: dict[int, Prediction | Reason] = {}
    found: dict[int, tuple[ServingRow, Served, Prediction]] = {}
    for number, ((row, hardware), deployment) in enumerate(zip(asked, deployments, strict=True)):
        try:
            if isinstance(deployment, Exception):
                raise deployment
            found[number] = row, deployment, _predict(row, deployment, tables.get(deployment))
        except JoulemapError as error:
            results[number] = error.reason
        except KeyError as error:
            text = f"{hardware.id} cannot be mapped: {error.args[0]}"
            results[number] = Reason(text=text, code="unmapped", values={"hardware": hardware.id})
    if found:
        rows, those, predictions = zip(*found.values(), strict=True)
        results |= zip(found, _widen(rows, those, predictions), strict=True)
    return [results[number] for number in range(len(asked))]


def _deploy(
    asked: Sequence[tuple[ServingRow, Hardware]], others: Sequence[Hardware]
) -> list[Served | JoulemapError | KeyError]:
    """Return the deployment of each row, which equal rows share with its evaluated passes, or the error for none."""
    known: dict[tuple[object, ...], Deployment] = {}
    deployments: list[Served | JoulemapError | KeyError] = []
    for row, hardware in asked:
        try:
            if row.speculative not in ("", "none") and not SCOPE[row.scope].is_prompt:
                raise UnsupportedError("speculative decoding without a stated acceptance rate", code="acceptance")
            if row.phases:
                text = "prefill and decode run on separate devices, whose numbers no column states"
                raise UnsupportedError(text, code="disaggregated")
            if row.layer_split:
                deployments.append(_divide(row, (hardware, *others)))
                continue
            one = find_deployment(row, hardware)
        except (JoulemapError, KeyError) as error:
            deployments.append(error)
            continue
        rest = (
            value if isinstance(value, str | int | float) else id(value)
            for name, value in attrs.asdict(one, recurse=False).items()
            if name not in ("stack", "totals")
        )
        key = (one.stack.id, one.stack.groups, *rest)
        deployments.append(known.setdefault(key, attrs.evolve(one, totals={})))
    return deployments


def _divide(row: ServingRow, chips: Sequence[Hardware]) -> Offload:
    """Return the division of a row's model between chips; raise as `find_deployment` does."""
    alone = attrs.evolve(row, device_count=1, tensor_parallel=1, pipeline_parallel=1, other_hardware="", layer_split="")
    *devices, last = (attrs.evolve(find_deployment(alone, one), totals={}) for one in chips)
    return Offload.of(devices, last, Way.of(chips[0])).divided(row.layer_split)


def _share(row: ServingRow, deployment: Served | Exception) -> ServingRow:
    """Return the part of a row's requests that each of several separate replicas of a model serves."""
    replicas = 1 if isinstance(deployment, Exception) else _count_replicas(row, deployment)
    if replicas == 1:
        return row
    requests = None if row.requests is None else max(1.0, row.requests / replicas)
    return attrs.evolve(row, batch=row.batch / replicas, requests=requests)


def _count_replicas(row: ServingRow, deployment: Served) -> int:
    return 1 if isinstance(deployment, Deployment) and deployment.data_devices > 1 else row.data_parallel or 1


def _tabulate(rows: Sequence[ServingRow], deployments: Sequence[Served | Exception]) -> dict[Served, Priced]:
    """Return the costs of each deployment's passes, which all of its steady loads share, or why there are none."""
    loads: dict[Served, list[ServingRow]] = {}
    for row, one in zip(rows, deployments, strict=True):
        if SCOPE[row.scope].is_loaded and row.output_tokens is not None and not isinstance(one, Exception):
            loads.setdefault(one, []).append(row)
    tables: dict[Served, Priced] = {}
    for deployment, some in loads.items():
        lengths = [_lengths(row) for row in some]
        prompts = sorted({prompt for prompt, _ in lengths})
        try:
            knots = choose_steady_knots(
                sequences=[max(1.0, row.batch) for row in some],
                contexts=(prompts[0], max(map(sum, lengths))),
                prompts=(prompts[0], prompts[-1]),
                prompt_tokens=deployment.step_tokens,
                alone=not deployment.stack.mixes,
            )
            tables[deployment] = knots.tabulate(deployment)
        except (JoulemapError, KeyError) as error:
            tables[deployment] = error
    return tables


def _predict(row: ServingRow, deployment: Served, table: Priced) -> Prediction:
    """Predict the quantities of a row without half-widths; `table` has the passes of steady loads."""
    is_steady = SCOPE[row.scope].is_loaded
    prediction = _simulate(row, deployment, table) if is_steady else _SCOPES[row.scope](row, deployment)
    if (replicas := _count_replicas(row, deployment)) > 1:  # rates and powers are of all
        wholes = ("output_tokens_per_s", "total_tokens_per_s", "power_w")
        whole = {name: replicas * one for name in wholes if (one := getattr(prediction, name)) is not None}
        prediction = attrs.evolve(prediction, **whole)
    if row.power_boundary and row.boundary != deployment.hardware.boundary:
        prediction = attrs.evolve(prediction, energy_per_output_token_j=None, energy_per_request_j=None, power_w=None)
    work = "experts" if deployment.decoder.is_routed else "model"
    return attrs.evolve(prediction, engine=deployment.stack.release, work=work)


def _widen(
    rows: Sequence[ServingRow], deployments: Sequence[Served], predictions: Sequence[Prediction]
) -> list[Prediction]:
    """Return predictions with what thinly measured numbers add to times of prompts and of the steps after them."""
    passes = []
    for row, served in zip(rows, deployments, strict=True):
        deployment = served.device if isinstance(served, Offload) else served
        prompt, output = _lengths(row)
        asked, _ = prefill(1.0, max(prompt, 1.0), 0.0, deployment.step_tokens)
        step = Passes.of([row.batch], context=[prompt + output / 2.0])
        passes += [(deployment, deployment.ask(asked)[0])]
        passes += [passes[-1] if SCOPE[row.scope].is_prompt else (deployment, deployment.ask(step)[0])]
    distinct = list(dict.fromkeys(passes))
    widths = dict(zip(distinct, find_thin_widths(distinct).tolist(), strict=True))
    each = [widths[one] for one in passes]
    return [
        attrs.evolve(
            one,
            prompt_half_width=math.hypot(prompt, away, UNKNOWN_CLIENT if row.has_unknown_client else 0.0),
            token_half_width=math.hypot(token, away),
        )
        for row, one, prompt, token in zip(rows, predictions, each[::2], each[1::2], strict=True)
        for away in (ServingRow.doubt_split(row.layer_split),)
    ]


@lru_cache(maxsize=8)
def _open(model: str, *, keeps_mixers: bool = False) -> PassWorkloads:
    """Return the passes of a model; with `keeps_mixers`, of a checkpoint whose attention stays at 16 bits."""
    decoder = find_decoder(model)
    if decoder is None:
        raise UnsupportedError("no built-in language model has that name", code="unknown_model")
    if keeps_mixers:
        decoder = attrs.evolve(decoder, keeps_mixers=True, published=None)
    return PassWorkloads(attrs.evolve(decoder, context_length=0))  # a measured configuration is known to fit


def find_deployment(row: ServingRow, hardware: Hardware) -> Deployment:
    """Return the deployment of a row, with its engine as of the row's date.

    Raise UnsupportedError or UsageError if there is none.
    """
    workloads = _open(row.model)
    stack = find_stack(row.engine, row.date, hardware.microarchitecture)
    published = workloads.decoder.published
    precision, weights = choose_precisions(_name_weights(row, workloads.decoder, stack), hardware, stack, published)
    if _keeps_mixers(workloads.decoder, weights):
        workloads = _open(row.model, keeps_mixers=True)
    stages, replicas = row.pipeline_parallel or 1, row.data_parallel or 1
    count = row.device_count or (row.tensor_parallel or 1) * stages * replicas
    experts = min(row.expert_parallel or 1, count)
    attention = replicas if replicas > 1 and workloads.decoder.is_routed and experts > 1 else 1
    devices = max(1, count // (stages * max(replicas, 1)))
    if (row.tensor_parallel or 1) == 1:  # else the run states its division
        devices, stages = stack.divide(devices, stages)
    cache = row.cache_precision or ("" if precision in WIDE else "fp8" if stack.narrows_cache else "bf16")
    return Deployment(
        workloads=workloads,
        hardware=hardware,
        stack=attrs.evolve(stack, groups=attention),
        precision=precision,
        weight_precision=weights,
        cache=cache,
        devices=devices,
        **Serving(expert_devices=experts, data_devices=attention).division,
        stages=stages,
        compiled_tokens=_compiled(row) if stack.compiles else 0.0,
    )


def _keeps_mixers(decoder: Decoder, weights: str) -> bool:
    """Return whether a checkpoint converted to FP4 leaves attention at 16 bits, as those with latent attention do.

    Source: nvidia/DeepSeek-R1-0528-FP4, whose -v2 converts the output projection alone.
    """
    is_own = decoder.published is not None and decoder.published.weights == weights
    is_latent = any(one.kind == "latent" for layer in decoder.layers for one in layer.mixers)
    return bool(weights) and read_weight_format(weights).precision == FP4 and is_latent and not is_own


def _name_weights(row: ServingRow, decoder: Decoder, stack: Stack) -> ServingRow:
    """Return a row with the weight format of the model's checkpoint, if the row states none, or only its kind."""
    if decoder.published is None or not decoder.published.weights:
        return row
    stated = row.weight_precision or stack.weights
    return attrs.evolve(row, weight_precision=decoder.published.find_format(stated) or decoder.published.weights)


def _compiled(row: ServingRow) -> float:
    """Return the sequence length in tokens that a row's passes were compiled for."""
    return sum(_lengths(row)) if row.context_tokens is None else float(row.context_tokens)


def choose_precisions(
    row: ServingRow, hardware: Hardware, stack: Stack, published: Published | None = None
) -> tuple[str, str]:
    """Return the compute precision and the weight precision of a row; the latter is empty if both are equal.

    A stated activation precision decides; else a weight precision that the units accept directly, and for FP4 weights
    the engine too; else 16 bits. FP4 activations decide nothing: tables call a run of FP4 weights so, whatever its
    kernels multiply. If the row states no weight precision, the engine's default applies. bitsandbytes uses int8 in
    GEMMs alone, with a scale for each output; all other operators use 16 bits. UsageError for an unknown word.
    """
    has = hardware.peaks
    wide = next((name for name in WIDE if name in has), next(iter(has)))
    stated = _name_activations(row.activation_precision, wide)
    written = row.weight_precision or stack.weights
    weights = read_weight_format(written) if written else None
    is_wide = weights is None or weights.name in WIDE or (stack.widens and not stated)
    if weights is None or is_wide:
        return (wide if stated in WIDE or not stated else stated if stated in has else wide), ""
    if stack.rescales and weights.name == "int8":
        return wide, BITSANDBYTES_INT8
    takes: str = weights.precision if weights.precision in NARROW else ""
    if takes == FP4:
        own = published.precision if published and published.weights == weights.name else FP4
        takes = stack.choose_product(weights.name, hardware.microarchitecture, own)
    precision = (stated or takes) if (stated or takes) in has else wide
    if row.file_bytes is not None and written.startswith("gguf_"):
        return precision, _exact_format(row, weights, row.file_bytes)
    if weights.name == FP4:
        return precision, FP4_BLOCKS
    return precision, "" if weights.name == precision else weights.name


def _name_activations(stated: str, wide: str) -> str:
    """Return the precision of stated activations, which may be a format such as mxfp8; empty if it decides nothing.

    Sixteen bits of any kind are `wide`. UsageError for a word that names no format.
    """
    if stated in ("", "16", "int16", "bf16", "fp16"):
        return wide if stated else ""
    named = read_weight_format(stated).precision
    return "" if named == FP4 else named


def _exact_format(row: ServingRow, named: WeightFormat, byte_count: float) -> str:
    """Return the weight format with the mean bits per weight that give a file of `byte_count` bytes.

    If `named` has a separate format for experts, the mean applies to all other weights.
    """
    workloads = _open(row.model)
    if named.others is None:
        return f"{8.0 * byte_count / count_weights(workloads):.3f}bit"
    experts = named.name.partition(BESIDE)[0]
    few, many = (weigh(workloads, f"{experts}{BESIDE}{bits}bit") for bits in (4, 8))
    bits = 4.0 + 4.0 * (byte_count - few) / (many - few) if many > few else 8.0
    return f"{experts}{BESIDE}{min(max(bits, 1.0), 16.0):.3f}bit"


def count_weights(workloads: PassWorkloads) -> float:
    """Return the number of weights of a model, including an embedding table that is read in rows."""
    return weigh(workloads, "", "int8")


def weigh(workloads: PassWorkloads, weight_precision: str, precision: str = "bf16") -> float:
    """Return the weight bytes of a model at the given precisions."""
    asked = workloads.describe([(DecoderPass(tokens=1, logits="all"), 1)])
    ((weights, _),) = asked.sizes(precision, "graph", weight_precision=weight_precision)
    return weights


def _lengths(row: ServingRow) -> tuple[float, float]:
    """Return the prompt and output tokens of a row; if it states no output, the fewest tokens with a decode step."""
    assumed = SHORT_PROMPT if row.prompt_kind == "short" else PROMPT
    prompt = assumed if row.prompt_tokens is None else row.prompt_tokens
    return prompt, FEWEST if row.output_tokens is None else row.output_tokens


def _room(deployment: Served, batch: float, prompt: float, output: float) -> float:
    """Return the number of sequences of a measured batch that fit at once, at least one.

    The measured run did fit, so one sequence may exceed the engine's usual memory share. Engines that wait for a full
    batch held all of it. Raise UnsupportedError if one sequence exceeds the device's capacity. The engine's limit of
    concurrent sequences does not apply. A divided model is known to fit, as its engine loaded it.
    """
    if isinstance(deployment, Offload):
        return batch
    room = Room(deployment=deployment, prompts=batch * prompt)
    fitting = room.sequences(prompt, output)
    needed = room.weights + room.workspace + room.cache(prompt + output)
    capacity = deployment.hardware.memory_capacity.value
    if fitting < 1.0 and needed > capacity:
        raise UnsupportedError(
            f"one sequence of {prompt + output:,.0f} tokens needs {needed / 1e9:.1f} GB of each device, "
            f"which has {capacity / 1e9:.1f} GB",
            code="sequence_memory",
            required_bytes=float(needed),
            capacity_bytes=float(capacity),
            token_count=float(prompt + output),
        )
    return max(batch if deployment.stack.waits else 1.0, fitting)


def _predict_batch(row: ServingRow, deployment: Served) -> Prediction:
    if row.prompt_kind == LOCALSCORE and row.prompt_tokens is None:
        return _predict_tests(deployment)
    if row.client == "together" and isinstance(deployment, Deployment):
        return _simulate(row, deployment)
    prompt, output = _lengths(row)
    stack = deployment.stack
    batch = Batch(
        sequences=row.batch,
        prompt_tokens=prompt,
        output_tokens=output,
        room=_room(deployment, row.batch, prompt, output),
        waits=stack.waits,
        step_tokens=deployment.step_tokens,
        recomputes=not row.uses_cache,
    )
    (cost,) = run_batches(deployment, [batch])
    seconds = cost.request_s
    tokens = row.batch * output
    first = Prediction(time_to_first_token_s=cost.first_token_s, inter_token_latency_s=cost.between_s)
    if row.output_tokens is None:
        return first
    return attrs.evolve(
        first,
        request_latency_s=seconds,
        output_tokens_per_s=tokens / seconds,
        total_tokens_per_s=row.batch * (prompt + output) / seconds,
        energy_per_output_token_j=cost.joules / tokens if tokens else None,
        energy_per_request_j=cost.joules / row.batch,
        power_w=cost.joules / cost.request_s,
    )


def _predict_tests(deployment: Served) -> Prediction:
    """Return the means of LocalScore's tests of single sequences: times to the first token, and rates of later tokens.

    The predicted time between tokens is the inverse of the mean rate.
    """
    prompt, output = max(LOCALSCORE_TESTS)
    room = _room(deployment, 1.0, prompt, output)
    step = deployment.step_tokens
    costs = run_batches(
        deployment,
        [
            Batch(sequences=1.0, prompt_tokens=prompt, output_tokens=output, room=room, step_tokens=step)
            for prompt, output in LOCALSCORE_TESTS
        ],
    )
    rate = sum(1.0 / one.between_s for one in costs) / len(costs)
    first_s = deployment.stack.value("request") + sum(one.first_token_s for one in costs) / len(costs)
    return Prediction(time_to_first_token_s=first_s, inter_token_latency_s=1.0 / rate, output_tokens_per_s=rate)


def _simulate(row: ServingRow, deployment: Served, table: Priced = None) -> Prediction:
    """Return the prediction of a load whose requests are simulated, all at once if it is offline, as `serve` does."""
    if row.output_tokens is None:
        raise UnsupportedError("the output length is not stated", code="unstated_output")
    if isinstance(table, Exception):
        raise table
    prompt, output = _lengths(row)
    _room(deployment, row.batch, prompt, output)
    is_offline, is_steady = row.scope == "offline", row.client != "together" and not row.has_unknown_client
    batch, is_whole = max(1, round(row.batch)), not (output % 1.0 or prompt % 1.0)
    spread = (0.0 if is_whole else SPREAD) if row.length_spread is None else row.length_spread
    most = ROUNDS["together"] * batch
    load = Load(
        in_flight=None if is_offline else batch,
        requests=LEAST_COUNTED if is_steady else round(row.requests or (batch if is_offline else most)),
        prompt_tokens=max(1, round(prompt)),
        output_tokens=max(1, round(output)),
        client="steady" if is_steady else "together",
        gap_s=CLIENT_S,
        spread_fraction=spread,
        is_steady=is_steady,
    )
    longest = math.ceil((1.0 + spread) * (prompt + output)) + 1
    if isinstance(deployment, Offload):
        stack = deployment.stack
        limits = Limits(
            step_tokens=deployment.step_tokens,
            sequences=batch,
            cache_tokens=batch * longest,
            mixes=stack.mixes,
            waits=stack.waits,
            request_s=stack.value("request"),
        )
    elif table is None:
        table, limits = open_deployment(deployment, load)
    else:
        limits = wait_for_ranks(find_limits(deployment, load), deployment, load, table)
    assert table is not None
    # a measured run did fit
    sequences = max(limits.sequences, batch) if is_steady else limits.sequences
    limits = attrs.evolve(limits, cache_tokens=max(limits.cache_tokens, longest), sequences=sequences)
    served = simulate(table, load, limits)
    median_s = served.token_time.p50
    if is_steady:
        fitting = min(batch, limits.sequences, limits.cache_tokens / (prompt + 0.5 * output))
        median_s = table.find_step(fitting, prompt + 0.5 * output)[0]
    return Prediction(
        time_to_first_token_s=served.first_token.mean,
        inter_token_latency_s=median_s if row.statistic == "median" else served.token_time.mean,
        request_latency_s=served.latency.mean,
        output_tokens_per_s=served.output_tokens_per_s,
        total_tokens_per_s=served.output_tokens_per_s * (1.0 + prompt / output),
        energy_per_output_token_j=served.energy_per_output_token_j,
        energy_per_request_j=served.energy_per_output_token_j * output,
        power_w=served.power_w,
    )


def _predict_prompts(row: ServingRow, deployment: Served) -> Prediction:
    if row.prompt_tokens is None:
        raise UnsupportedError("the prompt length is not stated", code="unstated_prompt")
    behind = row.cached_tokens or 0.0
    passes, times = prefill(row.batch, behind + row.prompt_tokens, behind, deployment.step_tokens)
    cost = deployment.price(passes)
    seconds, joules = float(cost.seconds @ times), float(cost.joules @ times)
    return Prediction(
        time_to_first_token_s=seconds,
        total_tokens_per_s=row.batch * row.prompt_tokens / seconds,
        energy_per_request_j=joules / row.batch,
        power_w=joules / seconds,
    )


def _predict_step(row: ServingRow, deployment: Served) -> Prediction:
    context = row.prompt_tokens or 0.0
    contexts, shares = grow(context, max(1.0, row.output_tokens or 1.0))
    answers = Passes.of(row.batch, context=contexts)
    prompt, times = prefill(1.0, max(1.0, context), 0.0, deployment.step_tokens)
    cost, count = deployment.price(Passes.joined((answers, prompt))), len(shares)
    seconds, joules = float(cost.seconds[:count] @ shares), float(cost.joules[:count] @ shares)
    return Prediction(
        time_to_first_token_s=float(cost.seconds[count:] @ times) if context else None,
        inter_token_latency_s=seconds,
        output_tokens_per_s=row.batch / seconds,
        total_tokens_per_s=row.batch / seconds,
        energy_per_output_token_j=joules / row.batch,
        power_w=joules / seconds,
    )


_SCOPES: Final[dict[str, Callable[[ServingRow, Served], Prediction]]] = {
    "prefill_step": _predict_prompts,
    "decode_step": _predict_step,
    "request": _predict_batch,
    "offline": _predict_batch,
}
