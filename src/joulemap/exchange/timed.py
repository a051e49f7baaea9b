"""Logs of single runs of a model, of engines, profilers, timers and meters of energy -> columns of measurements.

Each function adds to the columns that the table of formats finds what does not stand in a place of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from joulemap.exchange.measured import SCALE, Cells, Content, Stated, count_devices, decode_each, need, number
from joulemap.system.errors import UsageError

TENSOR: Final = {"float": "fp32", "double": "fp64", "c10::half": "fp16", "c10::bfloat16": "bf16"}
"""Type of a tensor, as PyTorch's profiler writes it -> precision."""

WIDTHS: Final = ("FP4", "INT4", "INT8", "FP8", "FP16", "BF16")
"""Precisions that trtexec allows layers: the first that is allowed is what most of a model runs at."""

GPU_WORK: Final = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of a trace that are work of a GPU."""

FIGURES: Final = {
    "Offline": ("samples_per_second", "throughput_per_s", 1.0),
    "SingleStream": ("mean_latency_ns", "latency_s", 1e-9),
}
"""Scenario of MLPerf -> the line with its figure, its column, and the unit."""

OFFLINE_BATCH: Final = 256
"""Samples of a batch of MLPerf's offline scenario, which its log does not tell.

Source: assumed; as for the rows that ship (docs/accuracy.md)."""

JOULES_PER_KWH: Final = 3.6e6


def take_trtexec(cells: Cells, said: Mapping[str, Any], _content: Content, _stated: Stated) -> Cells:
    """Return the run of a log of trtexec: the median of what the GPU takes, without copies from and to the host."""
    cells["latency_s"] = float(said["GPU Compute Time"]) * 1e-3
    allowed = said.get("allowed", "Strongly Typed")
    if "Strongly Typed" not in allowed:
        width = next((name for name in WIDTHS if name in allowed), "FP32")
        cells["precision"] = "tf32" if width == "FP32" and "tf32" in said else width.lower()
    notes = [f"{said['whole_ms']} ms with copies from and to the host"] if "whole_ms" in said else []
    if int(said.get("streams", 1)) > 1:
        notes.append(f"{said['streams']} streams share the device: each takes longer than alone")
    if "spread_percent" in said:
        spread = float(said["spread_percent"])
        notes.append(f"trtexec warns of a spread of {spread:.0f} %: clocks were not locked")
    conditions = "; ".join(["median GPU compute time", *notes])
    return {**cells, "conditions": conditions, "notes": notes, "assumed": {"precision"}}


def _list_events(text: str) -> Iterator[dict[str, Any]]:
    """Yield the events of a trace one by one; ValueError where it breaks off."""
    start = text.index("[", text.index('"traceEvents"')) + 1
    every = decode_each(text, start, end="]")
    return (one for one in every if isinstance(one, dict) and one.get("ph") == "X")


def take_trace(cells: Cells, said: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return the run of a trace of `torch.profiler`: from step to step, or all of it over its passes."""
    spans: dict[str, list[tuple[float, float]]] = {}
    kinds, batches = Counter[str](), Counter[int]()
    for event in _list_events(content.text):
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
    if "work" in spans and "device" in said:
        cells["hardware"] = said["device"]
    if kinds:
        cells["precision"] = TENSOR[kinds.most_common(1)[0][0].lower()]
    if batches:
        cells["batch"] = batches.most_common(1)[0][0]
    conditions, note = f"{basis} under torch.profiler", f"{basis}, with what the profiler itself takes"
    return {**cells, "latency_s": seconds, "conditions": conditions, "notes": [note]}


def take_timer(cells: Cells, said: Mapping[str, Any], _content: Content, _stated: Stated) -> Cells:
    """Return a timer of `torch.utils.benchmark` as it prints itself: its median."""
    if "median" not in said:
        raise ValueError("a timer has no time")
    title = " ".join(said["title"].split())[:120]
    value, unit = said["median"].split()
    conditions = f"torch.utils.benchmark: {title}; {said.get('threads', 'threads not told')}"
    cells |= {"model": title, "latency_s": float(value) * SCALE[unit]}
    return {**cells, "conditions": conditions, "notes": [conditions]}


def _need_passes(stated: Stated, path: Path, what: str) -> int:
    """Return the passes of a window; UsageError that asks for them."""
    passes: int | None = stated["passes"]
    if passes is None:
        raise UsageError(f"{path} tells {what} and not how many passes ran in it: add --passes N, e.g. --passes 100")
    return passes


def _divide(seconds: float, joules: float, count: int, of: str) -> Cells:
    """Return the columns of a window in which so many passes ran."""
    told = f"{of}: {count} passes in {seconds:.4g} s"
    figures = {"latency_s": seconds / count, "energy_j": joules / count, "power_w": joules / seconds}
    return {**figures, "conditions": told, "notes": [told]}


def take_zeus(cells: Cells, row: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return a window of a log of `ZeusMonitor`, by the medians of those of its name."""
    name = row["window_name"]
    meters = [key for key in row if re.fullmatch(r"gpu\d+_energy", key) and row[key] > 0.0]
    if len(meters) != 1:
        raise ValueError(f"window {name!r} has the energy of {len(meters)} GPUs, expected one")
    count = _need_passes(stated, content.path, "windows")
    of = f"Zeus, window {name!r}, median of {row['#']}"
    return {**cells, **_divide(row["elapsed_time"], row[meters[0]], count, of), "model": name}


def take_codecarbon(cells: Cells, row: Mapping[str, Any], content: Content, stated: Stated) -> Cells:
    """Return a run of CodeCarbon's emissions.csv: of the GPU where there is one, else of the CPU, of both on a chip."""
    count = _need_passes(stated, content.path, "runs")
    project = " ".join(filter(None, (row["project_name"], row.get("task_name"))))
    devices, gpu = count_devices(row["gpu_model"])
    if devices > 1:
        raise ValueError(f"project {project!r} has the energy of {devices} GPUs, expected one")
    columns = ["gpu_energy"] if gpu else ["cpu_energy"]
    if gpu and gpu == row["cpu_model"]:
        columns.append("cpu_energy")
    beside = "" if gpu else ", which CodeCarbon may have taken from a table of its own"
    of = f"CodeCarbon, project {project!r}, {' and '.join(columns)}{beside}"
    joules = sum(float(row[column]) for column in columns) * JOULES_PER_KWH
    figures = _divide(float(row["duration"]), joules, count, of)
    return {**cells, **figures, "hardware": gpu or row["cpu_model"], "model": project}


def take_mlperf(cells: Cells, said: Mapping[str, Any], content: Content, _stated: Stated) -> Cells:
    """Return the run of mlperf_log_summary.txt; model and system are looked for in the folders above it."""
    scenario = said["scenario"].replace(" ", "")
    if scenario not in FIGURES:
        raise ValueError(f"it tells scenario {scenario}: Offline or SingleStream can be compared")
    line, column, unit = FIGURES[scenario]
    told = f"MLPerf {scenario}, result {said.get('result_is', 'not told')}"
    cells |= {column: need(said, line) * unit, "batch": 1, "conditions": told, "notes": [told]}
    if scenario == "Offline":
        cells["batch"] = OFFLINE_BATCH
        cells["notes"].append(f"batch {OFFLINE_BATCH} is taken, which the log does not tell: --batch says another")
    return {**cells, **locate_run(content.path, scenario)}


def locate_run(path: Path, scenario: str) -> Cells:
    """Return the model, hardware and devices that folders of MLPerf's results name: SYSTEM/MODEL/SCENARIO above it."""
    folders, found = path.absolute().parts, Cells()
    if scenario in folders[2:]:
        place = folders.index(scenario)
        found["model"] = re.sub(r"-99(\.9)?$|-interactive$", "", folders[place - 1])
        if system := re.search(r"([A-Za-z]+\d+[\w.-]*?)x(\d+)(?:_|$)", folders[place - 2].partition("_")[2]):
            found |= {"hardware": system[1], "device_count": int(system[2])}
    return found
