"""Readers for runs of other tools, where values must be computed and not only copied.

    mean of requests in flight = requests a second x seconds of a request    (Little's law)

A server under a request rate becomes a row at its mean number of requests in flight. Source: Little, A Proof for the
Queuing Formula L = lambda W, Operations Research 9, 1961.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from joulemap.ask import UNKNOWN, Finding, Quantity, Value
from joulemap.physics import DEFAULT
from joulemap.physics.record.product import HIGHEST
from joulemap.system import UsageError
from joulemap.wing.llm.serve import LOCALSCORE
from joulemap.wing.verify.measured import (
    SCALE,
    Cells,
    Content,
    Stated,
    count_devices,
    decode_each,
    find,
    find_fault,
    need,
    number,
    pick,
)

Reader = Callable[[Cells, Mapping[str, Any], Content, Stated], Cells]

COUNTS: Final = ("device_count", "tensor_parallel", "pipeline_parallel", "expert_parallel", "replicas")

MEASURED: Final = ("_token_s", "_latency_s", "_tokens_per_s", "_device_s")
"""Suffixes of columns that a run of a served model may measure."""

STEADY: Final = 3.0
"""Ratio of requests to concurrency below which a note says that ramp-up and ramp-down weigh on the result."""

LIBRARY: Final = re.compile(r"^(?:Accelerate|BLIS|MKL|NVPL|OpenBLAS|BLAS), ")
"""Pattern of the math library that llama.cpp writes before the name of a processor."""

GGUF_TYPE: Final = re.compile(r"\b((?:I?Q\d\w*|MXFP4|BF16|F16)(?: - (?:Small|Medium|Large))?)", re.IGNORECASE)
"""Pattern of the weight format in llama.cpp's description of a model, such as `qwen2 7B Q4_K - Medium`."""

OWNED_WEIGHTS: Final = "gguf_q4_k_m"
"""Format of the weights of Ollama's models whose name states none. Source: recalled; its library's default."""

MILLISECONDS: Final = ("time_to_first_token_s", "request_latency_s")
"""Columns that llmfit states in milliseconds, in keys without a mark between their words."""

TEST: Final = re.compile(r"(?:pp ?(\d+))?\+?(?:tg ?(\d+))?(?: @ d(\d+))?")
"""Pattern of a test's name in a llama-bench table, such as `pp512+tg128 @ d4096`.

It states the numbers of prompt tokens, generated tokens, and tokens cached before.
"""

BINARY: Final = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}

COUNTED: Final = {"M": 1e6, "B": 1e9}
"""Unit of the parameter count in a llama-bench table -> factor; the table rounds counts to two decimals."""

RIVALS: Final = ("rocm", "sycl", "vulkan")
"""Backends of llama.cpp of which a GPU runs more than one. CUDA and Metal are the usual ones of their vendors."""

EXPERTS_ON_HOST: Final = re.compile(r"\W*(?:ffn_[\W_]*)?(?:\(up\|down\|gate\)_|\(gate\|up\|down\)_)?exps\W*=CPU")
"""Pattern of an override of llama.cpp that keeps all routed experts in host memory, such as `exps=CPU`."""

CARD_FIELDS: Final = {"sm": "split_mode", "ts": "tensor_split", "dev": "devices", "mg": "main_gpu"}
"""Column of llama-bench's table -> field of its JSON that states which GPUs hold a model."""

HOST_FIELDS: Final = ("n_cpu_moe", "no_kv_offload", "nkvo", "tensor_buft_overrides", "ot")
"""Fields of llama-bench that keep part of a model in host memory."""

WIDE_CACHES: Final = ("f32", "f16", "bf16")
"""Types of llama.cpp's KV cache that are predicted at the precision of activations."""

NARROW_CACHES: Final = {"q8_0": "int8"}
"""Type of llama.cpp's KV cache -> precision; it stores 8.5 bits per element, with a scale for 32."""

TENSOR: Final = {"float": "fp32", "double": "fp64", "c10::half": "fp16", "c10::bfloat16": "bf16"}
"""Tensor type in PyTorch's profiler -> precision."""

WIDTHS: Final = ("FP4", "INT4", "INT8", "FP8", "FP16", "BF16")
"""Precisions that trtexec may allow, narrowest first; the first allowed one is taken as the run's precision."""

OPENVINO: Final = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
}
"""Inference precision as OpenVINO's tools print it -> precision."""

GPU_WORK: Final = ("kernel", "gpu_memcpy", "gpu_memset")
"""Event categories of a trace that are work of the GPU."""

HOST_BOUND: Final = 0.5
"""Busy share of a GPU below which the host, slowed by the profiler, sets the pace of a trace. Source: a round value;
on an H100, resnet50 at batch 8 was busy for 10 % of a trace and for 29 % of the same calls without the profiler."""

TRANSPOSE: Final = re.compile("nchwToNhwc|nhwcToNchw")
"""Names of cuDNN's kernels that change the layout of a tensor around a convolution."""

TRANSPOSED_MOST: Final = 0.9
"""Maximum share of copies between layouts for which their weight grows, so that it stays finite. Source: assumed."""

VALID: Final = "VALID"
"""Result of an MLPerf run that meets its constraints."""

OFFLINE_BATCH: Final = 256
"""Samples per batch of MLPerf's offline scenario, which its log does not state.

Source: assumed; as for the shipped measurements (docs/accuracy.md).
"""

JOULES_PER_KWH: Final = 3.6e6

RANGE_MEAN: Final = 0.9
"""Mean length of InferenceX's requests over the nominal one: lengths are uniform in 80 to 100 % of it.

Source: `RANDOM_RANGE_RATIO` 0.8 of SemiAnalysisAI/InferenceX; output rates x latencies of its results agree.
"""

LEAST_FIXED: Final = (1.0 + RANGE_MEAN) / 2.0
"""Share of the nominal tokens that a file's rate and latency must make for its lengths to count as fixed."""


def assume(option: str, value: str | int) -> Finding:
    """Return the finding that a setting was assumed, which an option sets."""
    return Finding(kind="unstated", values={"option": option, "value": value}, doubt=UNKNOWN)


def convert_served(cells: Cells, one: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return the columns of a served model's run; UsageError for a value that neither the file nor the user states."""
    if number(find(one, "completed")) == 0.0 or not any(name.endswith(MEASURED) for name in cells):
        raise ValueError("no request was completed")
    if find(one, "disagg") is True:  # two pools; only decode servers are described
        servers, devices = need(one, "decode_num_workers"), need(one, "num_decode_gpu")
        step = number(find(one, "mean_tpot")) or need(one, "median_tpot")
        at_once = need(one, "output_tput_per_gpu") * devices * step / servers
        own = "output_tokens_per_device_s"  # the others cover all pools
        cells = {name: cells[name] for name in cells if name == own or not name.endswith(("_s", "_w", "_j"))}
        cells |= {"device_count": devices / servers, "concurrency": at_once, "inter_token_latency_s": step}
        cells["scope"] = "decode_step"
    cells["assumed"] = set()
    if cells.get("engine", "openai").startswith("openai"):
        is_sglang = find(one, "mean_e2e_latency_ms") is not None or "sharegpt_output_len" in one
        cells |= {"engine": "sglang" if is_sglang else "vllm", "assumed": {"engine"}}
    return _complete(cells, content.path, stated)


def convert_ranged(cells: Cells, one: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return the columns of a run of InferenceX, which states the longest request, as `convert_served` does.

    Lengths are means, unless by Little's law the run made as many tokens as requests of that length have.
    """
    needed = ("output_tokens_per_device_s", "device_count", "request_latency_s", "concurrency", "output_tokens")
    rate, devices, latency_s, at_once, longest = (float(cells.get(name) or math.nan) for name in needed)
    if rate * devices * latency_s / at_once > LEAST_FIXED * longest:
        return convert_served(cells, one, content, stated)
    lengths: Cells = {name: RANGE_MEAN * cells[name] for name in ("prompt_tokens", "output_tokens") if name in cells}
    lengths["length_spread"] = 1.0 / RANGE_MEAN - 1.0
    return convert_served({**cells, **lengths}, one, content, stated)


def _complete(raw: Cells, path: Path, stated: Stated) -> Cells:
    """Return the columns of a measurement after token counts, devices and requests in flight are derived."""
    cells = {name: round(value) if name in COUNTS else value for name, value in raw.items()}
    many, cells["hardware"] = count_devices(cells.get("hardware", ""))
    parallel = cells.get("tensor_parallel", 1) * cells.get("pipeline_parallel", 1)
    notes = [] if cells.keys() & COUNTS or many > 1 else [assume("devices", 1)]
    if notes:
        cells["assumed"].add("device_count")
    devices = cells.setdefault("device_count", max(many, parallel * cells.get("replicas", 1)))
    for name in ("prompt", "output"):
        if f"all_{name}_tokens" in cells:
            cells[f"{name}_tokens"] = cells.pop(f"all_{name}_tokens") / need(cells, "requests")
    for name in ("total", "output"):
        if f"{name}_tokens_per_device_s" in cells:
            cells[f"{name}_tokens_per_s"] = cells.pop(f"{name}_tokens_per_device_s") * devices
    if "power_per_device_w" in cells:
        cells["power_w"] = cells.pop("power_per_device_w") * devices
    rate, begins_at_once = cells.pop("requests_per_s", 0.0), _is_unlimited(cells.pop("request_rate", ""))
    is_at_once = begins_at_once
    cells |= _ask(cells, path, stated, is_at_once=is_at_once)
    requests, limit = cells.pop("requests", 0.0), cells.pop("concurrency_limit", 0.0)
    if "energy_j" in cells:
        cells["energy_per_request_j"] = cells.pop("energy_j") / requests
        cells["energy_per_output_token_j"] = cells["energy_per_request_j"] / cells["output_tokens"]
    if cells.keys() & {"power_w", "energy_per_output_token_j"}:
        cells["power_boundary"] = "device"
    date = re.match(r"(20\d\d)-?([01]\d)-?([0-3]\d)", cells.get("date", ""))
    cells["date"] = "-".join(date.groups()) if date else ""
    batch, is_at_once = cells.pop("concurrency", 0.0), is_at_once and not limit
    if not batch and not is_at_once:
        steps = max(cells["output_tokens"] - 1.0, 0.0)
        wait = cells.get("request_latency_s") or need(cells, "time_to_first_token_s") + (
            steps and steps * need(cells, "inter_token_latency_s")
        )
        batch = rate * wait
    cells = {"scope": "steady_serving", **cells, "batch": min(batch, limit) if limit else batch}
    if requests == 1.0:
        cells |= {"scope": "request", "batch": 1.0}
    elif is_at_once:
        cells |= {"scope": "offline", "batch": requests, "requests": requests, "client": "together"}
    else:
        if requests or not begins_at_once:
            cells |= {"client": "together", "requests": requests} if begins_at_once else {"client": "steady"}
        if requests and requests < STEADY * cells["batch"]:
            doubt = math.log1p(cells["batch"] / requests)
            notes.append(Finding(kind="few_requests", values={"requests": requests}, doubt=doubt))
    return {**cells, "notes": notes}


def _is_unlimited(rate: str) -> bool:
    """Return whether requests are sent without waiting, so that as many as are allowed arrive together at the start."""
    return rate.lower() in ("inf", "infinity")


def _ask(cells: Cells, path: Path, stated: Stated, *, is_at_once: bool) -> Cells:
    """Return the user's token counts and number of requests; UsageError for values that the file lacks too."""
    names = {"prompt_tokens": "prompt", "output_tokens": "output"}
    names |= {"requests": "batch"} if is_at_once and "requests" not in cells else {}
    if missing := [f"--{name}" for column, name in names.items() if column not in cells and not stated[name]]:
        what = "the number of requests and the " if "requests" in names else "the "
        raise UsageError(f"{path} does not state {what}tokens per request: add {', '.join(missing)}")
    return {column: float(stated[name]) for column, name in names.items() if stated[name]}


def convert_scenario(cells: Cells, one: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return the columns of MLPerf's summary of a language model; output tokens follow from the rates."""
    scenario = cells.pop("scenario")
    if scenario not in ("Offline", "Server"):
        raise ValueError(f"its scenario is {scenario}: only Offline and Server of a language model can be compared")
    cells = {"engine": "openai", **_locate(content.path, scenario), **cells}
    cells["output_tokens"] = need(cells, "output_tokens_per_s") / need(cells, "requests_per_s")
    at_once = scenario == "Offline"
    for name in ("request_latency_s", "requests_per_s") if at_once else ("requests",):
        cells.pop(name, None)
    return convert_served({**cells, **({"request_rate": "inf"} if at_once else {})}, one, content, stated)


def convert_leaderboard(cells: Cells, _one: Mapping[str, Any], _content: Content, stated: Stated) -> Cells:
    """Return the columns of a configuration of ML.ENERGY's leaderboard: a steady load, with medians between tokens.

    Lengths of prompts are not stated; nor is the date, which only the user can state.
    """
    need(cells, "concurrency")
    cells = {name: round(value) if name in COUNTS else value for name, value in cells.items()}
    cells |= {"batch": cells.pop("concurrency"), "scope": "steady_serving", "statistic": "median", "date": ""}
    prompt = {"prompt_tokens": float(stated["prompt"])} if stated["prompt"] else {}
    notes = [] if prompt else [Finding(kind="unprompted", doubt=UNKNOWN)]
    return {**cells, **prompt, "power_boundary": "device", "notes": notes, "assumed": set()}


def convert_llmfit(cells: Cells, one: Mapping[str, Any], _content: Content, stated: Stated) -> Cells:
    """Return the columns of a result that llmfit's users upload: requests of one user, timed as a whole.

    Neither the prompt nor the format of the weights is stated; Ollama's models have Q4_K_M unless their name says more.
    """
    need(cells, "output_tokens_per_s")
    cells = {name: value / 1e3 if name in MILLISECONDS else value for name, value in cells.items()}
    is_wide = cells.get("engine") not in ("ollama", "llamacpp")
    count = max(1, round(cells.get("device_count", 1.0)))
    day = datetime.fromtimestamp(need(one, "submittedAtUnix"), UTC).date().isoformat()
    cells |= {"scope": "request", "batch": 1.0, "date": day, "device_count": count, "pipeline_parallel": count}
    cells["model"] = str(cells.get("model", "")).removesuffix(":latest").replace(":", "-")
    cells |= {} if is_wide else {"weight_precision": OWNED_WEIGHTS}
    cells |= {"prompt_tokens": float(stated["prompt"])} if stated["prompt"] else {}
    notes = [] if stated["prompt"] else [Finding(kind="unprompted", doubt=UNKNOWN)]
    notes += [] if is_wide else [assume("precision", OWNED_WEIGHTS)]
    return {**cells, "notes": notes, "assumed": set() if is_wide else {"weight_precision"}}


def convert_localscore(cells: Cells, one: Mapping[str, Any], _content: Content, _stated: Stated) -> Cells:
    """Return the columns of a result of LocalScore, whose numbers are means over its nine tests."""
    match = GGUF_TYPE.search(str(find(one, "model_quant") or ""))
    first, unit = need(one, "ttft"), str(find(one, "ttft_unit") or "ms")
    return {
        **cells,
        "model": str(cells.get("model", "")).replace(" ", "-"),
        "weight_precision": f"gguf_{_name_type(match[1])}" if match else "",
        "date": str(find(one, "test_date") or "")[:10].replace(".", "-"),
        "time_to_first_token_s": first * SCALE[unit],
        "inter_token_latency_s": 1.0 / need(one, "gen_tps"),
        "scope": "request",
        "batch": 1.0,
        "prompt_kind": LOCALSCORE,
        "notes": [],
        "assumed": set(),
    }


def convert_llama_bench(cells: Cells, one: Mapping[str, Any], content: Content, _stated: Stated) -> Cells:
    """Return the columns of a llama-bench test, from a JSON object or a row of its table."""
    row = _read_row(one, content.text) if "t/s" in one else one
    counts = (number(find(row, name)) or 0.0 for name in ("n_prompt", "n_gen", "n_depth", "n_gpu_layers"))
    prompt, made, depth, layers = counts
    processor = LIBRARY.sub("", str(find(row, "cpu_info") or ""))
    chips, shares = _list_cards(row) if layers else ([], [])
    chips = chips or [processor]
    split = "tensor_parallel" if find(row, "split_mode") == "row" else "pipeline_parallel"
    backend = re.split(r"\W", str(find(row, "backends") or "").lower())[0]
    stem = re.split(r"[/\\]", str(find(row, "model_filename") or ""))[-1].removesuffix(".gguf")
    type_name = str(find(row, "model_type") or "")
    match = GGUF_TYPE.search(type_name)
    kind = _name_type(match[1]) if match else ""
    rate = need(row, "avg_ts")
    if rate <= 0.0:
        raise ValueError(f"its rate is {rate:g}, expected a number above 0")
    experts = _count_host_experts(row) if layers else 0.0
    caches = {str(find(row, name) or WIDE_CACHES[1]).lower() for name in ("type_k", "type_v")}
    if not caches <= {*WIDE_CACHES} and not (len(caches) == 1 and caches <= NARROW_CACHES.keys()):
        raise ValueError(
            f"its KV cache is in {' and '.join(sorted(caches))}: only f16, bf16, f32 and q8_0 are predicted"
        )
    if layers and backend in RIVALS:
        cells["engine"] += f"@{backend}"
    cells |= {
        "cache_precision": NARROW_CACHES.get(min(caches), ""),
        "model": re.sub(r"-\d{5}-of-\d{5}$", "", stem),
        "type_name": type_name.partition(match[1])[0].strip() if match else type_name,
        "parameters": number(find(row, "model_n_params")) or 0.0,
        "parameter_step": number(find(row, "parameter_step")) or 0.0,
        "gpu_layers": layers,
        "host_experts": experts,
        "cards": chips if layers else [],
        "shares": shares,
        "host": processor,
        "hardware": chips[0],
        "date": str(find(row, "test_time") or "")[:10],
        "commit": str(find(row, "build_commit") or ""),
        "weight_precision": f"gguf_{kind}" if kind else "",
        "file_bytes": need(row, "model_size"),
        "device_count": len(chips),
        split: len(chips),
        "prompt_tokens": prompt or depth,
        "scope": "request" if prompt and made else "prefill_step" if prompt else "decode_step",
        "notes": [],
    }
    if made:
        cells["output_tokens"] = made
    if prompt and depth:
        cells["cached_tokens"] = depth
    if prompt and made:
        cells["request_latency_s"] = (prompt + made) / rate
    else:
        cells["total_tokens_per_s" if prompt else "output_tokens_per_s"] = rate
    return cells


def _list_cards(row: Mapping[str, Any]) -> tuple[list[str], list[float]]:
    """Return the GPUs on which llama.cpp runs a model, and the share of the layers of each; none if not stated."""
    cards = str(find(row, "gpu_info") or "").split(", ")
    named = [int(one) for one in re.findall(r"(\d{1,3})(?:/|$)", str(find(row, "devices") or ""))]
    cards = [cards[one] for one in named] if named and max(named) < len(cards) else cards
    if str(find(row, "split_mode")) == "none":
        main = int(number(find(row, "main_gpu")) or 0)
        return cards[main : main + 1] or cards[:1], []
    stated = [number(one) or 0.0 for one in str(find(row, "tensor_split") or "").split("/")]
    shares = [*stated, *[0.0] * len(cards)][: len(cards)] if any(stated) else []
    used = [at for at in range(len(cards)) if cards[at] and (not shares or shares[at] > 0.0)]
    return [cards[at] for at in used], [shares[at] for at in used if shares]


def _count_host_experts(row: Mapping[str, Any]) -> float:
    """Return the number of layers whose routed experts llama.cpp keeps in host memory; infinite for all.

    Raise ValueError for other parts in host memory.
    """
    count, *others = (str(find(row, name) or "none") for name in HOST_FIELDS)
    kept = [one for one in others if one not in ("0", "none", "False", "false")]
    if not kept:
        return number(count) or 0.0
    if len(kept) == 1 and EXPERTS_ON_HOST.fullmatch(kept[0]):
        return math.inf
    raise ValueError(
        "a part of the model other than layers or all routed experts of a layer is in host memory: only those are "
        "predicted"
    )


def _name_type(written: str) -> str:
    """Return the weight format of llama.cpp's description of it: `q4_k_m` of `Q4_K - Medium`."""
    return re.sub(r" - (\w)\w+", r"_\1", written).lower()


def _read_row(row: Mapping[str, str], printed: str) -> Cells:
    """Return a row of llama-bench's table as a JSON object would state it; `printed` is the text above the table."""
    test = TEST.fullmatch(row["test"])
    if test is None or not any(test.groups()):
        raise ValueError(f"its test is {row['test']!r}, expected one such as pp512 or tg128")
    value, unit = row["size"].split()
    count, letter = row.get("params", "0 B").split()
    chips = re.findall(r"^ *Device \d+: ([^,\n]+)|^ggml_vulkan: \d+ = ([^|(\n]+)", printed, re.MULTILINE)
    gguf = re.search(r"(?<![\w.-])[\w.-]+\.gguf", printed)
    return {
        **dict(zip(("n_prompt", "n_gen", "n_depth"), test.groups(), strict=True)),
        "n_gpu_layers": row.get("ngl", -1),
        "backends": row.get("backend", ""),
        "gpu_info": ", ".join("".join(one).strip() for one in chips),
        "model_type": row["model"],
        "model_filename": gguf[0] if gguf else "",
        "model_size": float(value) * BINARY[unit],
        "model_n_params": float(count) * COUNTED[letter],
        "parameter_step": 0.01 * COUNTED[letter],
        **{name: row[name] for name in (*HOST_FIELDS, "type_k", "type_v") if name in row},
        **{CARD_FIELDS[name]: row[name] for name in CARD_FIELDS if name in row},
        "build_commit": (re.findall(r"^build: (\w+)", printed, re.MULTILINE) or [""])[0],
        "avg_ts": row["t/s"].partition("±")[0].strip(),
    }


def convert_trtexec(cells: Cells, values: Mapping[str, Any], _content: Content, _stated: Stated) -> Cells:
    """Return the columns of a trtexec log; the time is the median GPU compute time, without host copies."""
    need(cells, "latency_s")
    allowed, assumed = values.get("allowed", "Strongly Typed"), {"precision"}
    if "Strongly Typed" not in allowed:
        width = next((name for name in WIDTHS if name in allowed), "FP32")
        has_tf32, assumed = width == "FP32" and "tf32" in values, set()
        cells |= {
            "precision": "tf32" if has_tf32 else width.lower(),
            "matmul_precision": DEFAULT if has_tf32 else HIGHEST,
        }
    notes = _find_streams(values)
    if "spread_percent" in values:
        share = float(values["spread_percent"]) / 100.0
        notes.append(Finding(kind="spread", values={"share": share}, doubt=share))
    if whole := pick(values, {"whole_s": ["whole"]}):
        notes.append(Finding(kind="copies", values={"time": Quantity(whole["whole_s"], "s")}))
    return {**cells, "notes": notes, "assumed": assumed}


def _find_streams(values: Mapping[str, Any]) -> list[Finding]:
    """Return the finding that several streams share the device, if they do."""
    count = int(values.get("streams", 1))
    return [Finding(kind="streams", values={"count": count}, doubt=math.log(count))] if count > 1 else []


def convert_benchmark_app(cells: Cells, values: Mapping[str, Any], _content: Content, _stated: Stated) -> Cells:
    """Return the columns of a log of OpenVINO's benchmark_app, at its inference precision."""
    need(cells, "latency_s")
    precision = OPENVINO.get(str(values.get("precision")))
    if precision is not None:
        cells["precision"] = precision
    notes = [*_find_streams(values), Finding(kind="quantized", doubt=UNKNOWN)]
    return {**cells, "notes": notes, "assumed": {"precision"} if precision is None else set()}


def convert_trace(cells: Cells, values: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return the columns of a `torch.profiler` trace: the mean step, or the whole trace divided by its passes."""
    spans: dict[str, list[tuple[float, float]]] = {}
    kinds, batches = Counter[str](), Counter[int]()
    transposed_s = 0.0
    start = content.text.index("[", content.text.index('"traceEvents"')) + 1
    for event in decode_each(content.text, start, end="]"):
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        category, name, details = str(event.get("cat")), str(event.get("name")), event.get("args") or {}
        begin, taken = number(event.get("ts")), number(event.get("dur"))
        if begin is None or taken is None:
            continue
        kind = "work" if category in GPU_WORK else category
        spans.setdefault(f"step {kind}" if name.startswith("ProfilerStep") else kind, []).append((begin, taken))
        if kind == "work" and TRANSPOSE.search(name):
            transposed_s += taken * 1e-6
        kinds.update(one for one in map(str, details.get("Input type", ())) if one.lower() in TENSOR)
        shapes = [one for one in details.get("Input Dims", ()) if isinstance(one, list) and len(one) == 4]
        if "conv" in name and shapes:
            batches[int(shapes[0][0])] += 1
    if not spans:
        raise ValueError("it has no event with a duration")
    steps = spans.get("step gpu_user_annotation") or spans.get("step user_annotation")
    if steps and stated["passes"] is None:
        count = len(steps)
        seconds = fmean(taken for _, taken in steps) * 1e-6
    else:
        count = _need_passes(stated, content.path, "the trace, which has no profiler step")
        every = spans.get("work") or [one for some in spans.values() for one in some]
        whole = max(begin + taken for begin, taken in every) - min(begin for begin, _ in every)
        seconds = whole * 1e-6 / count
    notes = [Finding(kind="profiled", values={"count": count}, doubt=UNKNOWN)]
    if "work" in spans:
        if "device" in values:
            cells["hardware"] = values["device"]
        busy = _measure_union(spans["work"]) * 1e-6 / count
        if busy < HOST_BOUND * seconds and not stated["runtime"]:
            times = {"busy": Quantity(busy, "s"), "elapsed": Quantity(seconds, "s")}
            notes.append(Finding(kind="busy", values=times, doubt=math.log(seconds / busy)))
            cells["runtime"], seconds = "graph", busy
        if transposed_s:
            share = transposed_s / count / busy
            copies: dict[str, Value] = {"time": Quantity(transposed_s / count, "s"), "share": share}
            notes.append(Finding(kind="transposed", values=copies, doubt=-math.log1p(-min(share, TRANSPOSED_MOST))))
    if kinds:
        cells["precision"] = TENSOR[kinds.most_common(1)[0][0].lower()]
    if batches:
        cells["batch"] = batches.most_common(1)[0][0]
    return {**cells, "latency_s": seconds, "notes": notes}


def _measure_union(spans: Iterable[tuple[float, float]]) -> float:
    """Return the time that spans of (begin, duration) cover together; overlaps count once."""
    covered, end = 0.0, -math.inf
    for begin, taken in sorted(spans):
        covered += max(begin + taken - max(begin, end), 0.0)
        end = max(end, begin + taken)
    return covered


def convert_timer(cells: Cells, values: Mapping[str, Any], _content: Content, _stated: Stated) -> Cells:
    """Return the columns of a printed timer of `torch.utils.benchmark`; the time is the median."""
    need(cells, "latency_s")
    title = " ".join(values["title"].split())[:120]
    threads = [Finding(kind="threads", values={"count": int(values["threads"])})] if "threads" in values else []
    return {**cells, "model": title, "notes": threads}


def _need_passes(stated: Stated, path: Path, what: str) -> int:
    """Return the user's number of passes in a measured window; UsageError if it is not stated."""
    passes: int | None = stated["passes"]
    if passes is None:
        raise UsageError(f"{path} does not state the passes in {what}: add --passes N, e.g. --passes 100")
    return passes


def convert_window(cells: Cells, one: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return the columns of a measured window of several passes: Zeus, CodeCarbon, or a profiler's total."""
    count, seconds = _need_passes(stated, content.path, "each window"), need(cells, "elapsed_s")
    name = " ".join(str(one[key]) for key in ("window_name", "project_name", "task_name") if one.get(key))
    joules, meter = _read_meter(cells, one) if cells.pop("is_metered", False) else (None, [])
    windows = one["#"] if one.get("#", 1) > 1 else None
    window: dict[str, Value] = {"count": count, "time": Quantity(seconds, "s"), "windows": windows}
    del cells["elapsed_s"]
    notes = [*meter, Finding(kind="window", values=window)]
    cells |= {"model": name, "latency_s": seconds / count, "notes": notes}
    if "self_cuda_time_total" in one and not stated["runtime"]:
        cells["runtime"] = "graph"
        notes.append(Finding(kind="busy"))
    return cells if joules is None else {**cells, "energy_j": joules / count, "power_w": joules / seconds}


def _read_meter(cells: Cells, one: Mapping[str, Any]) -> tuple[float, list[Finding]]:
    """Return the joules of one device and findings on them; Zeus states joules, CodeCarbon kilowatt-hours."""
    every = [str(key) for key in one if re.fullmatch(r"gpu\d+_energy", str(key))]
    meters = [key for key in every if number(one[key])]
    faults = [fault for key in every if (fault := find_fault(one, key, least=0.0 if meters else math.ulp(0.0)))]
    if faults:
        raise ValueError(faults[0].text)
    if "duration" not in one and len(meters) != 1:
        what = "name one, as ZeusMonitor(gpu_indices=[0]) does" if meters else "expected one"
        raise ValueError(f"it has the energy of {len(meters)} GPUs: {what}")
    if "duration" not in one:
        return need(one, meters[0]), []
    devices, gpu = count_devices(one["gpu_model"] or "")
    if devices > 1:
        raise ValueError(f"it has the energy of {devices} GPUs, expected one")
    cells["hardware"] = gpu or one["cpu_model"]
    columns = ["gpu_energy"] if gpu else ["cpu_energy"]
    if gpu and gpu == one["cpu_model"]:
        columns.append("cpu_energy")
    estimated = [] if gpu else [Finding(kind="estimated", doubt=UNKNOWN)]
    return sum(need(one, column) for column in columns) * JOULES_PER_KWH, estimated


def convert_mlperf(cells: Cells, values: Mapping[str, Any], content: Content, _stated: Stated) -> Cells:
    """Return the columns of mlperf_log_summary.txt; the folders above the file state model and system."""
    scenario = values["scenario"].replace(" ", "")
    if scenario not in ("Offline", "SingleStream"):
        raise ValueError(f"its scenario is {scenario}: only Offline and SingleStream can be compared")
    need(cells, "throughput_per_s" if scenario == "Offline" else "latency_s")
    cells.pop("latency_s" if scenario == "Offline" else "throughput_per_s", None)
    result = str(values.get("result_is", VALID))
    cells |= {"batch": 1, "notes": [Finding(kind="invalid", values={"result": result})] if result != VALID else []}
    if scenario == "Offline":
        cells["batch"] = OFFLINE_BATCH
        cells["notes"].append(assume("batch", OFFLINE_BATCH))
    return {**cells, **_locate(content.path, scenario)}


def _locate(path: Path, scenario: str) -> Cells:
    """Return the model, hardware and devices from MLPerf's folders above the file: SYSTEM/MODEL/SCENARIO."""
    folders, cells = path.absolute().parts, Cells()
    if scenario in folders[2:]:
        index = folders.index(scenario)
        cells["model"] = re.sub(r"-99(\.9)?$|-interactive$", "", folders[index - 1])
        if system := re.search(r"([A-Za-z]+\d+[\w.-]*?)x(\d+)(?:_|$)", folders[index - 2].partition("_")[2]):
            cells |= {"hardware": system[1], "device_count": int(system[2])}
    return cells


READERS: Final[Mapping[str, Reader]] = {
    "served": convert_served,
    "ranged": convert_ranged,
    "scenario": convert_scenario,
    "leaderboard": convert_leaderboard,
    "llmfit": convert_llmfit,
    "localscore": convert_localscore,
    "llama_bench": convert_llama_bench,
    "trtexec": convert_trtexec,
    "benchmark_app": convert_benchmark_app,
    "trace": convert_trace,
    "timer": convert_timer,
    "window": convert_window,
    "mlperf": convert_mlperf,
}
"""Name of a reader in the table of file formats -> function that completes the columns."""
