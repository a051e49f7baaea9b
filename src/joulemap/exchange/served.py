"""Benchmarks of served language models -> columns of measurements.

    mean of requests in flight = requests a second x seconds of a request    (Little's law)

A server under a rate is a row at the mean of the requests that it had in work.
Source: Little, A Proof for the Queuing Formula L = lambda W, Operations Research 9, 1961.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from joulemap.exchange.measured import Cells, Content, Stated, count_devices, find, need, number
from joulemap.exchange.timed import locate_run
from joulemap.system.errors import UsageError

COUNTS: Final = ("device_count", "tensor_parallel", "pipeline_parallel", "expert_parallel", "replicas")

ONE_DEVICE: Final = "one device is taken, which the file does not tell: --devices says another number"

STEADY: Final = 3.0
"""Requests over those at a time below which start and end count as much as what is steady."""

LIBRARY: Final = re.compile(r"^(?:Accelerate|BLIS|MKL|NVPL|OpenBLAS|BLAS), ")
"""What llama.cpp names before a processor: the library that multiplies for it."""

GGUF_TYPE: Final = re.compile(r"\b((?:I?Q\d\w*|MXFP4|BF16|F16)(?: - (?:Small|Medium|Large))?)", re.IGNORECASE)
"""How weights are stored, in llama.cpp's name of a kind of model: `qwen2 7B Q4_K - Medium`."""

POOLED: Final = (
    "total_tokens_per_device_s",
    "time_to_first_token_s",
    "request_latency_s",
    "power_per_device_w",
    "energy_per_output_token_j",
)
"""Columns that are of all pools together."""


def take_served(cells: Cells, one: Mapping[str, Any], _content: Content, _stated: Stated) -> Cells:
    """Return the run of a served model that columns tell; KeyError for what it must have."""
    if number(find(one, "completed")) == 0.0:
        raise ValueError("no request was completed")
    if find(one, "disagg") is True:
        cells = _take_answers(cells, one)
    cells["assumed"] = set()
    if cells.get("engine", "openai").startswith("openai"):
        is_sglang = find(one, "mean_e2e_latency_ms") is not None or "sharegpt_output_len" in one
        cells |= {"engine": "sglang" if is_sglang else "vllm", "assumed": {"engine"}}
    return _settle(cells)


def take_asked(cells: Cells, one: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return the run of a served model whose file does not tell lengths of requests."""
    return take_served(_ask(cells, content, stated), one, content, stated)


def _take_answers(cells: Cells, one: Mapping[str, Any]) -> Cells:
    """Return a run of two pools as the servers that answer: their step, at the sequences that each has in work."""
    servers, devices = need(one, "decode_num_workers"), need(one, "num_decode_gpu")
    step = number(find(one, "mean_tpot")) or need(one, "median_tpot")
    at_once = need(one, "output_tput_per_gpu") * devices * step / servers
    kept = {name: value for name, value in cells.items() if name not in POOLED}
    own = {"device_count": devices / servers, "concurrency": at_once, "inter_token_latency_s": step}
    return {**kept, **own, "scope": "decode_step"}


def take_scenario(cells: Cells, one: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return the run of MLPerf's summary of a language model; lengths of answers follow from rates."""
    scenario = cells.pop("scenario")
    if scenario not in ("Offline", "Server"):
        raise ValueError(f"it tells scenario {scenario}: Offline or Server of a language model can be compared")
    cells = {**locate_run(content.path, scenario), **cells}
    cells["output_tokens"] = need(cells, "output_tokens_per_s") / need(cells, "requests_per_s")
    for name in ("request_latency_s", "requests_per_s") if scenario == "Offline" else ("requests",):
        cells.pop(name, None)
    return take_asked(cells, one, content, stated)


def _ask(cells: Cells, content: Content, stated: Stated) -> Cells:
    """Return columns with lengths, and requests at once, that a file lacks; UsageError for what is not stated."""
    at_once = "requests_per_s" not in cells
    names = {"prompt_tokens": "prompt", "output_tokens": "output", **({"requests": "batch"} if at_once else {})}
    names = {column: option for column, option in names.items() if column not in cells}
    if missing := [f"--{name}" for name in names.values() if not stated[name]]:
        what = "requests at once and " if "requests" in names else ""
        raise UsageError(f"{content.path} does not tell {what}tokens of a request: add {', '.join(missing)}")
    asked = {column: float(stated[name]) for column, name in names.items()}
    return {**cells, **asked, **({"request_rate": "inf"} if at_once else {})}


def _settle(raw: Cells) -> Cells:
    """Return columns of a measurement, with lengths, devices and requests in flight that follow from others."""
    cells = {name: round(value) if name in COUNTS else value for name, value in raw.items()}
    requests, limit = cells.pop("requests", 0.0), cells.pop("concurrency_limit", 0.0)
    many, cells["hardware"] = count_devices(cells.get("hardware", ""))
    parallel = cells.get("tensor_parallel", 1) * cells.get("pipeline_parallel", 1)
    notes = [] if cells.keys() & COUNTS or many > 1 else [ONE_DEVICE]
    if notes:
        cells["assumed"].add("device_count")
    devices = cells.setdefault("device_count", max(many, parallel * cells.get("replicas", 1)))
    for name in ("prompt", "output"):
        if f"all_{name}_tokens" in cells:
            cells[f"{name}_tokens"] = cells.pop(f"all_{name}_tokens") / requests
    for name in ("total", "output"):
        if f"{name}_tokens_per_device_s" in cells:
            cells[f"{name}_tokens_per_s"] = cells.pop(f"{name}_tokens_per_device_s") * devices
    for name in ("prompt_tokens", "output_tokens"):
        need(cells, name)
    if "power_per_device_w" in cells:
        cells["power_w"] = cells.pop("power_per_device_w") * devices
    if "energy_j" in cells:
        cells["energy_per_request_j"] = cells.pop("energy_j") / requests
        cells["energy_per_output_token_j"] = cells["energy_per_request_j"] / cells["output_tokens"]
    if cells.keys() & {"power_w", "energy_per_output_token_j"}:
        cells["power_boundary"] = "device"
    said = re.match(r"(20\d\d)-?([01]\d)-?([0-3]\d)", cells.get("date", ""))
    cells["date"] = "-".join(said.groups()) if said else ""
    rate, batch = cells.pop("requests_per_s", 0.0), cells.pop("concurrency", 0.0)
    is_at_once = cells.pop("request_rate", "").lower() in ("inf", "infinity") and not limit
    if not batch and not is_at_once:
        steps = max(cells["output_tokens"] - 1.0, 0.0)
        wait = cells.get("request_latency_s")
        batch = rate * (wait or cells["time_to_first_token_s"] + cells["inter_token_latency_s"] * steps)
    cells = {"scope": "steady_serving", **cells, "batch": min(batch, limit) if limit else batch}
    notes.append(f"{cells['batch']:.3g} requests in flight on average")
    if requests == 1.0:
        cells |= {"scope": "request", "batch": 1.0}
    elif is_at_once:
        cells |= {"scope": "offline", "batch": requests}
        notes[-1] = f"all {requests:.0f} requests came at once"
    elif requests and requests < STEADY * cells["batch"]:
        notes.append(f"{requests:.0f} requests in all: start and end count as much as what is steady")
    return {**cells, "notes": notes}


def take_llama_bench(cells: Cells, one: Mapping[str, Any], _content: Content, _stated: Stated) -> Cells:
    """Return a test of `llama-bench -o json`, `jsonl` or `csv`: a prompt, tokens behind a depth, or both."""
    prompt, made, depth, layers = (
        number(find(one, name)) or 0.0 for name in ("n_prompt", "n_gen", "n_depth", "n_gpu_layers")
    )
    processor = LIBRARY.sub("", str(find(one, "cpu_info") or ""))
    chips = (str(find(one, "gpu_info") or "") if layers else "").split(", ")
    chips = chips if chips[0] else [processor]
    split = "tensor_parallel" if find(one, "split_mode") == "row" else "pipeline_parallel"
    stem = re.split(r"[/\\]", str(find(one, "model_filename") or ""))[-1].removesuffix(".gguf")
    said = GGUF_TYPE.search(str(find(one, "model_type") or ""))
    kind = re.sub(r" - (\w)\w+", r"_\1", said[1]).lower() if said else ""
    cells |= {
        "model": re.sub(r"-\d{5}-of-\d{5}$", "", stem),
        "hardware": chips[0],
        "date": str(find(one, "test_time") or "")[:10],
        "commit": str(find(one, "build_commit") or ""),
        "weight_precision": f"gguf_{kind}" if kind else "",
        "file_bytes": need(one, "model_size"),
        "device_count": len(chips),
        split: len(chips),
        "prompt_tokens": prompt or depth,
        "scope": "request" if prompt and made else "prefill_step" if prompt else "decode_step",
        "notes": [f"{layers:.0f} layers are on the GPU"] if 0.0 < layers < 16.0 else [],
    }
    if made:
        cells["output_tokens"] = made
    if prompt and depth:
        cells["cached_tokens"] = depth
    if prompt and made:
        cells["request_latency_s"] = need(one, "avg_ns") * 1e-9
    else:
        cells["total_tokens_per_s" if prompt else "output_tokens_per_s"] = need(one, "avg_ts")
    return cells
