"""Predict measured rows as other predictors do, by the formulas that they publish, for benchmarks/scoreboard.py.

Each formula is written anew from the source that its constant names. All predictors get what joulemap gets: the mean
length of the prompts of a batch. Rows outside the scope of a predictor get no prediction of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from joulemap.catalog.load import find_hardware
from joulemap.plan.reader import reading_if_there
from joulemap.plan.source import Source
from joulemap.system.errors import JoulemapError
from joulemap.system.record import frozen
from joulemap.wing.decoder.network.config import Attention, Decoder, Network
from joulemap.wing.llm.row import ServingRow, read_serving_rows
from joulemap.wing.llm.serving.deployment import Deployment
from joulemap.wing.llm.serving.predict import find_deployment, weigh
from joulemap.workspace import Workspace

RULE: Final = "size / bandwidth"
"""Predictor of home estimators: each token reads all weights once, at the memory bandwidth."""

PEAK: Final = "FLOP / peak"
"""Rule of data sheets: every pass at the peak rate of its precision, and its energy at the TDP."""

TDP: Final = "TDP"
"""Rule of carbon calculators: a GPU in use draws its TDP. GreenAlgorithms/green-algorithms-tool@30df2fe,
blueprints/form/form_blueprint.py (usage of a GPU by default 1), CC-BY-4.0; also mlco2/impact@d0d3ee5, MIT.
"""

ROOFLINE, TRAINED = "BLIS roofline", "BLIS trained-physics"
"""The two backends of inference-sim/inference-sim@f90a1e3, Apache-2.0: sim/latency/roofline.go and
trained_physics_model.go, with hardware_config.json and the coefficients of defaults.yaml. They model vLLM.
"""

VIEWER: Final = "LLM-Viewer"
"""Roofline of each operator. hahnyuan/LLM-Viewer@472f71f, MIT: model_analyzer.py, configs/Llama.py and
hardwares/hardware_params.py. It has no tensor parallelism.
"""

ECOLOGITS: Final = "EcoLogits"
"""Regressions of ML.ENERGY's vLLM on H100 by billions of active parameters and batch.
genai-impact/ecologits@2d0a1c7, ecologits/impacts/llm.py, MPL-2.0. They have no chip and no prompt.
"""

BLIS_CHIPS: Final = {
    "h100_sxm5": (989.5e12, 3.35e12, 0.45, 0.30),
    "a100_sxm4_80gb": (312e12, 2.039e12, 0.38, 0.18),
}
"""Hardware -> (FLOP/s, B/s, share of FLOP/s in prefill, in decode); L40S, the third chip, has no rows."""

BLIS_ENGINES: Final = ("vllm", "sglang")
BLIS_TOKENS: Final = 2048
"""Most tokens of a step: default of --max-num-batched-tokens."""

TRAINED_SHARES: Final = {"compute": 0.152128, "weights": 1.36252915, "reduce": 0.752037, "cache": 1.94710771}
TRAINED_COSTS_US: Final = {"layer": 32.09546717, "request": 4.41684444, "step": 126.024825}
TRAINED_HOST_S: Final = {"start": 15563.199579e-6, "end": 777.3455e-6, "token": 45.907545e-6}

VIEWER_CHIPS: Final = {
    "a100_pcie_80gb": (312e12, 2039e9),
    "a100_sxm4_80gb": (312e12, 2039e9),
    "a40": (149.7e12, 696e9),
    "h100_sxm5": (989.5e12, 3072e9),
    "l40": (181e12, 864e9),
    "rtx_a6000": (154.8385e12, 768e9),
}
"""Hardware -> (FLOP/s in fp16, B/s); its one A100 of 80 GB stands for both forms."""

VIEWER_MODELS: Final = ("llama", "qwen2")
"""Model types with the operators of its configuration of Llama."""

BITS: Final = {"bf16": 16, "fp16": 16, "int8": 8, "nf4": 4, "nf4_double": 4}

ECOLOGITS_CHIP: Final = "h100_sxm5"
ENERGY_WH: Final = (1.1665273170451914e-06, -0.011205921025579175, 4.052928146734005e-05)
LATENCY_S: Final = (0.0006785088094353663, 0.0003119310311688259, 0.019473717579473387)


@frozen(kw_only=True)
class Shape:
    """Sizes of a decoder whose layers are all equal and dense, as its configuration states them."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int

    @property
    def keys(self) -> float:
        """Width of the keys of all heads, with heads as wide as `hidden / heads`, as these predictors assume."""
        return self.hidden / self.heads * self.kv_heads


def read_shape(decoder: Decoder) -> Shape | None:
    """Return the sizes of a decoder; None if its layers differ, have experts or are not gated."""
    first = decoder.layers[0]
    if any((one.mixer, one.network) != (first.mixer, first.network) for one in decoder.layers):
        return None
    if not isinstance(first.mixer, Attention) or not isinstance(first.network, Network) or not first.network.is_gated:
        return None
    return Shape(
        layers=len(decoder.layers),
        hidden=decoder.hidden,
        heads=first.mixer.heads,
        kv_heads=first.mixer.kv_heads,
        inner=first.network.inner,
        vocabulary=decoder.vocabulary,
    )


Chunk = tuple[float, float]
"""(tokens of a sequence before this step, tokens in this step)."""


def split_prompts(batch: int, prompt: int, most: int = BLIS_TOKENS) -> list[list[Chunk]]:
    """Return the chunks of each prefill step: prompts in turn, at most `most` tokens in a step."""
    steps: list[list[Chunk]] = [[]]
    free = most
    for _ in range(batch):
        past = 0
        while past < prompt:
            if not free:
                steps.append([])
                free = most
            new = min(prompt - past, free)
            steps[-1].append((past, new))
            past, free = past + new, free - new
    return steps


def time_by_roofline(shape: Shape, chip: str, chunks: list[Chunk], devices: int, *, decodes: bool) -> float:
    """Return the seconds of a step by BLIS's roofline: two matrices in a network, no head, 16-bit numbers."""
    flops_s, bytes_s, of_prefill, of_decode = BLIS_CHIPS[chip]
    hidden, keys = shape.hidden, shape.keys
    weights = 2.0 * hidden * (hidden + keys) + 2.0 * hidden * shape.inner
    operations = moved = 0.0
    for past, new in chunks:
        seen = past + (new - 1.0) / 2.0
        operations += 2.0 * new * weights + new * seen * (4.0 * hidden + 5.0 * shape.heads) + 2.0 * new * hidden
        moved += 2.0 * (2.0 * keys * (past + new) + hidden * new)
    compute = operations / flops_s / (of_decode if decodes else of_prefill)
    return shape.layers / devices * max(compute, (2.0 * weights + moved) / bytes_s)


def time_by_training(shape: Shape, chip: str, chunks: list[Chunk], devices: int, prompt: float = 0.0) -> float:
    """Return the seconds of a step by BLIS's trained-physics: of prefill if a prompt length is given, else decode."""
    flops_s, bytes_s, *_ = BLIS_CHIPS[chip]
    hidden, keys = shape.hidden, shape.keys
    share, cost_us = TRAINED_SHARES, TRAINED_COSTS_US
    weights = 2.0 * hidden * (hidden + keys) + 3.0 * hidden * shape.inner
    tokens = sum(new for _, new in chunks)
    reduced = 2.0 * tokens * 4.0 * hidden * (devices - 1)
    moved = share["weights"] * 2.0 * weights + share["reduce"] * reduced
    compute = 0.0
    if prompt:
        scores = sum(4.0 * hidden * new * (prompt + new / 2.0) for _, new in chunks)
        compute = share["compute"] * (2.0 * tokens * weights + scores)
    else:
        moved += share["cache"] * 4.0 * keys * sum(past + new for past, new in chunks)
    fixed_us = cost_us["layer"] * shape.layers + cost_us["request"] * len(chunks) + cost_us["step"]
    return shape.layers / devices * (compute / flops_s + moved / bytes_s) + fixed_us * 1e-6


def time_by_operator(shape: Shape, chip: str, batch: int, past: float, *, decodes: bool, bits: int = 16) -> float:
    """Return the seconds of a pass by LLM-Viewer: each operator by its larger time, of operations or of bytes."""
    flops_s, bytes_s = VIEWER_CHIPS[chip]
    hidden, heads, keys = shape.hidden, shape.heads, shape.keys
    weight, item = bits / 8.0, 2.0
    new = 1.0 if decodes else past
    rows = batch * new

    def take(operations: float, moved: float) -> float:
        return max(operations / flops_s, moved / bytes_s)

    def multiply(width: float, out: float) -> float:
        return take(2.0 * rows * width * out, width * out * weight + rows * (width + out) * item)

    cache, scores, vectors = batch * past * keys * item, rows * past * heads * item, rows * hidden * item
    asked = vectors if decodes else cache  # as in the source, which reads the queries of a prompt as its keys
    layer = 2.0 * multiply(hidden, hidden) + 2.0 * multiply(hidden, keys)
    layer += 2.0 * multiply(hidden, shape.inner) + multiply(shape.inner, hidden)
    layer += take(2.0 * rows * past * hidden, asked + scores + cache)
    layer += take(2.0 * rows * past * hidden, scores + vectors + cache)
    layer += take(5.0 * rows * past * heads, 2.0 * scores)
    layer += 2.0 * take(7.0 * rows * hidden, 2.0 * vectors) + 2.0 * take(rows * hidden, 2.0 * vectors)
    layer += take(2.0 * rows * hidden, 3.0 * vectors)
    vocabulary = shape.vocabulary
    head = take(batch * hidden * vocabulary, hidden * vocabulary * weight + (hidden + vocabulary) * item)
    return shape.layers * layer + head


def token_energy_j(billions: float, batch: float) -> float:
    """Return the energy of an output token of one GPU in joules by EcoLogits."""
    slope, decay, floor = ENERGY_WH
    return 3600.0 * (slope * math.exp(decay * batch) * billions + floor)


def token_latency_s(billions: float, batch: float) -> float:
    """Return the time of an output token in seconds by EcoLogits."""
    slope, each, floor = LATENCY_S
    return slope * billions + each * batch + floor


def predict_pass(chip: str, quantity: str, batch: float = 1.0, peak_s: float = 0.0) -> Mapping[str, float]:
    """Return {rule: prediction} of a measured model or operator, of which the peak rate takes `peak_s` seconds.

    `TDP` is for GPUs alone: the calculators count other chips by core.
    """
    hardware = find_hardware(chip)
    tdp_w = hardware.tdp.value if hardware.architecture == "gpu" and hardware.tdp is not None else 0.0
    told = {"latency_s": peak_s, "throughput_per_s": batch / peak_s, "energy_j": tdp_w * peak_s} if peak_s else {}
    found = {PEAK: told.get(quantity, 0.0), TDP: tdp_w if quantity in ("power_w", "operator_power_w") else 0.0}
    return {name: value for name, value in found.items() if value}


def read_rivals(workspace: Workspace) -> Mapping[tuple[int, str], Mapping[str, float]]:
    """Return (serving_measurement_id, quantity) -> {predictor: prediction} of all stored served rows.

    A row whose deployment is unknown has none.
    """
    found: dict[tuple[int, str], dict[str, float]] = {}
    with reading_if_there(Source(path=workspace.path)) as connection:
        rows = {} if connection is None else read_serving_rows(connection)
    for number, row in rows.items():
        try:
            deployment = find_deployment(row, find_hardware(row.hardware.partition("@")[0]))
        except JoulemapError:
            continue
        for peer, quantity, predicted in predict_row(row, deployment):
            found.setdefault((number, quantity), {})[peer] = predicted
    return found


def predict_row(row: ServingRow, deployment: Deployment) -> Iterator[tuple[str, str, float]]:
    """Yield (predictor, quantity, prediction) of each predictor with the row in its scope."""
    hardware, world = deployment.hardware, deployment.world
    size = weigh(deployment.workloads, deployment.weight_precision, deployment.precision)
    seconds = size / world / hardware.memory_bandwidth.value
    yield RULE, "inter_token_latency_s", seconds
    yield RULE, "output_tokens_per_s", row.batch / seconds
    for peer, power in predict_pass(row.hardware.partition("@")[0], "power_w").items():
        yield peer, "power_w", world * power
    if row.prompt_tokens is None or not row.output_tokens or deployment.stages > 1:
        return
    batch, prompt, output = round(row.batch), round(row.prompt_tokens), row.output_tokens
    chip = row.hardware
    middle = prompt + output / 2.0
    if chip == ECOLOGITS_CHIP:
        billions = weigh(deployment.workloads, "", "bf16") / 2e9
        token_s, token_j = token_latency_s(billions, batch), world * token_energy_j(billions, batch)
        yield ECOLOGITS, "inter_token_latency_s", token_s
        yield ECOLOGITS, "request_latency_s", output * token_s
        yield ECOLOGITS, "energy_per_output_token_j", token_j
    decoder = deployment.decoder
    shape = read_shape(decoder) if isinstance(decoder, Decoder) else None
    if shape is None:
        return
    bits = BITS.get(row.weight_precision, 0)
    if chip in BLIS_CHIPS and row.engine in BLIS_ENGINES and bits == 16:
        steps, decode = split_prompts(batch, prompt), [(middle, 1.0)] * batch
        first = sum(time_by_roofline(shape, chip, one, world, decodes=False) for one in steps)
        yield from _time_request(ROOFLINE, first, time_by_roofline(shape, chip, decode, world, decodes=True), row)
        host = TRAINED_HOST_S
        first = sum(time_by_training(shape, chip, one, world, prompt) for one in steps) + host["start"] + host["token"]
        token = time_by_training(shape, chip, decode, world) + host["token"]
        yield from _time_request(TRAINED, first, token, row, host["end"])
    if chip in VIEWER_CHIPS and world == 1 and decoder.model_type in VIEWER_MODELS and bits:
        first = time_by_operator(shape, chip, batch, prompt, decodes=False, bits=bits)
        token = time_by_operator(shape, chip, batch, middle, decodes=True, bits=bits)
        yield from _time_request(VIEWER, first, token, row)


def _time_request(
    peer: str, first: float, token: float, row: ServingRow, end: float = 0.0
) -> Iterator[tuple[str, str, float]]:
    """Yield the quantities of a request of which the first token and every further token take the given seconds."""
    output = row.output_tokens or 0.0
    whole = first + (output - 1.0) * token + end
    yield peer, "time_to_first_token_s", first
    yield peer, "inter_token_latency_s", token
    yield peer, "request_latency_s", whole
    yield peer, "output_tokens_per_s", row.batch * output / whole
