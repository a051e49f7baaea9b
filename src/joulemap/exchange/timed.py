"""Logs of single runs of a model, of engines, profilers, timers and meters of energy -> columns of measurements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from joulemap.exchange.measured import (
    HEAD,
    SCALE,
    Cells,
    Content,
    Format,
    Stated,
    count_devices,
    decode_each,
    locate,
    need,
    number,
    read_lines,
)
from joulemap.system.errors import UsageError

TENSOR: Final = {"float": "fp32", "double": "fp64", "c10::half": "fp16", "c10::bfloat16": "bf16"}
"""Type of a tensor, as PyTorch's profiler writes it -> precision."""

WIDTHS: Final = ("FP4", "INT4", "INT8", "FP8", "FP16", "BF16")
"""Precisions that trtexec allows layers: the first that is allowed is what most of a model runs at."""

GPU_WORK: Final = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of a trace that are work of a GPU."""

FIGURES: Final = {"Offline": "samples_per_second", "SingleStream": "mean_latency_ns"}
"""Scenario of MLPerf -> the line with its figure."""

OFFLINE_BATCH: Final = 256
"""Samples of a batch of MLPerf's offline scenario, which its log does not tell.

Source: assumed; as for the rows that ship (docs/accuracy.md)."""

JOULES_PER_KWH: Final = 3.6e6


def read_trtexec(content: Content, _form: Format, _stated: Stated) -> Iterator[Cells]:
    """Yield the runs of a log of trtexec: the median of what the GPU takes, without copies from and to the host."""
    parts = re.split(r"^&&&& RUNNING ", content.text, flags=re.MULTILINE)
    for text in parts[1:] or parts:
        yield _read_run(text)


def _read_run(text: str) -> Cells:
    times = dict(re.findall(r"\[I\] ([\w ]+): min = .*?median = ([\d.]+) ms", text))
    cells: Cells = {"runtime": "engine", "scope": "board", "latency_s": float(times["GPU Compute Time"]) * 1e-3}
    patterns = {
        "hardware": r"\[I\] Selected Device: (.+)",
        "model": r"(?:\[I\] Model: |--onnx=)(\S+)",
        "batch": r"(?:--(?:opt)?[sS]hapes=\S+?:|Input binding for \S+ with dimensions )(\d+)x",
    }
    cells |= {name: said[1].strip() for name, pattern in patterns.items() if (said := re.search(pattern, text))}
    allowed = re.search(r"\[I\] Precision: (.+)", text)
    if allowed and "Strongly Typed" not in allowed[1]:
        width = next((name for name in WIDTHS if name in allowed[1]), "FP32")
        cells["precision"] = "tf32" if width == "FP32" and "TF32 is enabled" in text else width.lower()
    notes = [f"{times[name]} ms with copies from and to the host" for name in ("Latency",) if name in times]
    if (streams := re.search(r"\[I\] Inference Streams: (\d+)", text)) and int(streams[1]) > 1:
        notes.append(f"{streams[1]} streams share the device: each takes longer than alone")
    if unsteady := re.search(r"coefficient of variance = ([\d.]+)%", text):
        notes.append(f"trtexec warns of a spread of {float(unsteady[1]):.0f} %: clocks were not locked")
    conditions = "; ".join(["median GPU compute time", *notes])
    return {**cells, "conditions": conditions, "notes": notes, "assumed": {"precision"}}


def _events(text: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace one by one; ValueError where it breaks off."""
    start = text.index("[", text.index('"traceEvents"')) + 1
    every = decode_each(text, start, end="]")
    return (one for one in every if isinstance(one, dict) and one.get("ph") == "X")


def read_trace(content: Content, _form: Format, stated: Stated) -> Iterator[Cells]:
    """Yield the run of a trace of `torch.profiler`: from step to step, or all of it over its passes."""
    spans: dict[str, list[tuple[float, float]]] = {}
    kinds, batches = Counter[str](), Counter[int]()
    for event in _events(content.text):
        category, name, told = str(event.get("cat")), str(event.get("name")), event.get("args") or {}
        begin, taken = number(event.get("ts")), number(event.get("dur"))
        if begin is None or taken is None:
            continue
        kind = "work" if category in GPU_WORK else category
        spans.setdefault(f"step {kind}" if name.startswith("ProfilerStep") else kind, []).append((begin, taken))
        kinds.update(one for one in map(str, told.get("Input type", ())) if one.lower() in TENSOR)
        shapes = [one for one in told.get("Input Dims", ()) if isinstance(one, list) and len(one) == 4]
        if "conv" in name and shapes:
            batches[int(shapes[0][0])] += 1
    steps = spans.get("step gpu_user_annotation") or spans.get("step user_annotation")
    if steps and stated["passes"] is None:
        seconds, basis = fmean(taken for _, taken in steps) * 1e-6, f"mean of {len(steps)} profiler steps"
    else:
        count = _need_passes(stated, content.path, "no profiler step")
        every = spans.get("work") or [one for some in spans.values() for one in some]
        whole = max(begin + taken for begin, taken in every) - min(begin for begin, _ in every)
        seconds, basis = whole * 1e-6 / count, f"{count} passes"
    cells: Cells = {"runtime": "eager", "latency_s": seconds, "conditions": f"{basis} under torch.profiler"}
    device = re.search(r'"deviceProperties".{0,200}?"name":\s*"([^"]+)"', content.text[:HEAD], re.DOTALL)
    if device and "work" in spans:
        cells["hardware"] = device[1]
    if kinds:
        cells["precision"] = TENSOR[kinds.most_common(1)[0][0].lower()]
    if batches:
        cells["batch"] = batches.most_common(1)[0][0]
    yield {**cells, "notes": [f"{basis}, with what the profiler itself takes"]}


def read_timers(content: Content, _form: Format, _stated: Stated) -> Iterator[Cells]:
    """Yield each timer of `torch.utils.benchmark` as it prints itself: its median."""
    for block in re.split(r"<torch\.utils\.benchmark\S* object at 0x[0-9A-Fa-f]+>", content.text)[1:]:
        told = re.search(r"^\s*(?:Median:\s*)?([\d.]+) (s|ms|us|ns)\s*$", block, re.MULTILINE)
        if told is None:
            raise ValueError("a timer has no time")
        title = " ".join(block[: told.start()].split())[:120]
        seconds = float(told[1]) * SCALE[told[2]]
        threads = re.search(r"\d+ threads?\b", block)
        conditions = f"torch.utils.benchmark: {title}; {threads[0] if threads else 'threads not told'}"
        cells: Cells = {"runtime": "eager", "model": title, "latency_s": seconds}
        yield {**cells, "conditions": conditions, "notes": [conditions]}


def _need_passes(stated: Stated, path: Path, what: str) -> int:
    """Return the passes of a window; UsageError that asks for them."""
    passes: int | None = stated["passes"]
    if passes is None:
        raise UsageError(f"{path} tells {what} and not how many passes ran in it: add --passes N, e.g. --passes 100")
    return passes


def _window(seconds: float, joules: float, count: int, of: str) -> Cells:
    """Return the columns of a window in which so many passes ran."""
    figures = {"latency_s": seconds / count, "energy_j": joules / count, "power_w": joules / seconds}
    told = f"{of}: {count} passes in {seconds:.4g} s"
    return {"runtime": "eager", "scope": "board", **figures, "conditions": told, "notes": [told]}


def read_zeus(content: Content, _form: Format, stated: Stated) -> Iterator[Cells]:
    """Yield the windows of a log of `ZeusMonitor`, those of one name together: their medians."""
    windows: dict[str, list[dict[str, str]]] = {}
    for row in content.rows:
        windows.setdefault(row["window_name"], []).append(row)
    for name, rows in windows.items():
        meters = [key for key in rows[0] if re.fullmatch(r"gpu\d+_energy", key) and float(rows[0][key]) > 0.0]
        if len(meters) != 1:
            raise ValueError(f"window {name!r} has the energy of {len(meters)} GPUs, expected one")
        count = _need_passes(stated, content.path, "windows")
        seconds, joules = (median(float(row[key]) for row in rows) for key in ("elapsed_time", meters[0]))
        yield {**_window(seconds, joules, count, f"Zeus, window {name!r}, median of {len(rows)}"), "model": name}


def read_codecarbon(content: Content, _form: Format, stated: Stated) -> Iterator[Cells]:
    """Yield the runs of CodeCarbon's emissions.csv: of the GPU where there is one, else of the CPU."""
    for row in content.rows:
        count = _need_passes(stated, content.path, "runs")
        devices, gpu = count_devices(row["gpu_model"])
        if devices > 1:
            raise ValueError(f"project {row['project_name']!r} has the energy of {devices} GPUs, expected one")
        column = "gpu_energy" if gpu else "cpu_energy"
        beside = "" if gpu else ", which CodeCarbon may have taken from a table of its own"
        of = f"CodeCarbon, project {row['project_name']!r}, {column}{beside}"
        cells = _window(float(row["duration"]), float(row[column]) * JOULES_PER_KWH, count, of)
        yield {**cells, "hardware": gpu or row["cpu_model"], "model": row["project_name"]}


def read_mlperf(content: Content, _form: Format, _stated: Stated) -> Iterator[Cells]:
    """Yield the run of mlperf_log_summary.txt; model and system are looked for in the folders above it."""
    said = read_lines(content.text)
    scenario = said["scenario"].replace(" ", "")
    if scenario not in FIGURES:
        raise ValueError(f"it tells scenario {scenario}: Offline or SingleStream can be compared")
    name, is_rate = FIGURES[scenario], scenario == "Offline"
    value = need(said, name)
    figure = {"throughput_per_s": value} if is_rate else {"latency_s": value * 1e-9}
    told = f"MLPerf {scenario}, result {said.get('result_is', 'not told')}"
    batch = OFFLINE_BATCH if is_rate else 1
    notes = [told, *([f"batch {batch} is taken, which the log does not tell: --batch says another"] if is_rate else [])]
    cells: Cells = {"runtime": "engine", "scope": "board", "batch": batch, **figure, "conditions": told, "notes": notes}
    yield {**cells, **locate(content.path, scenario)}
