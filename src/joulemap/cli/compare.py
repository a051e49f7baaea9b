"""`joulemap compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from joulemap.cli.command import advanced, command, option, optional
from joulemap.cli.complete import complete_hardware
from joulemap.cli.option.hardware import HardwareOptions
from joulemap.cli.option.run import Limit, Models, RunOptions
from joulemap.cli.output import MOST_DRAWN, OutputOptions
from joulemap.domain.metric import PART_METRICS, PartMetricName, RunMetricName
from joulemap.domain.settings import EnergyDivision
from joulemap.system.errors import UsageError

Level = Literal["summary", "run", "subgraph", "operator"]

if TYPE_CHECKING:
    from joulemap.ask.answer import RunAnswer


@command
def compare(
    words: Models,
    *,
    level: Level | None = option(
        None,
        "Table: summary (one row per chip), run (energy by action), subgraph or operator (winner of each).",
        shown="summary; subgraph with --by or --subgraph",
    ),
    metric: RunMetricName | None = option(
        None,
        "Metric that decides; of subgraphs, operators and several models: energy, latency, edp or memory (traffic).",
        shown="energy",
    ),
    by: EnergyDivision | None = advanced(
        None,
        "Energy breakdown of each run, subgraph or operator, by category or action.",
        shown="no breakdown; action with --subgraph or --level run",
    ),
    subgraph: str = optional("One subgraph, by its name in --level subgraph.", "NAME", is_advanced=True),
    baseline: str = option(
        "",
        "Hardware that ratios are relative to.",
        metavar="HARDWARE",
        shown="the least energy",
        complete=complete_hardware,
    ),
    limit: Limit = 10,
    hardware: HardwareOptions,
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Compare hardware on energy, latency and memory.

    Built-in models, operators and ONNX, TFLite or GGUF files need no torch. A Python model is traced once, which takes
    a few seconds. Results are stored.

    \b
    joulemap compare resnet18
    joulemap compare resnet50 H100 "RTX 4090" cpu --precision bf16 --batch 8
    joulemap compare vit_b_16 --hardware h100_sxm5,tpu_v4 --level subgraph --metric latency --precision bf16
    joulemap compare ./mine.py:net --input 1,3,64,64 --model-arg width=32 --format json
    joulemap compare resnet18 --hardware xeon_8490h --precision bf16 --level run
    joulemap compare resnet18 --hardware l4,tpu_v4 --by category --precision int8
    joulemap compare resnet50 mobilenet_v2 --hardware l4,t4 --precision fp16 --runtime engine --metric edp
    joulemap compare mobilenet_v2 --where deployment=edge --precision int8 --metric efficiency --show details
    joulemap compare resnet18 --where scenario=robot --precision int8 --metric efficiency
    joulemap compare resnet50 --hardware Jetson-Orin-Nano@7W,Jetson-Orin-Nano@15W,./mychip.toml --precision int8
    joulemap compare attention_head --model-arg tokens=1024 --precision bf16
    joulemap compare resnet50 l4 xeon_8490h --runtime engine --precision bf16 --show check
    joulemap compare "gemm(m=1,n=4096,k=4096)" --hardware h200_sxm,l4 --precision bf16 --batch 1,8
    """
    from joulemap.ask.subject import split_models

    model, named = split_models(words)
    is_divided = bool(by or subgraph) or level == "run"
    level = level or ("subgraph" if is_divided else "summary")
    is_summary = level == "summary" and len(set(model)) == 1
    if output.shows("check") and not is_summary:
        raise UsageError("--show check is for the summary of one model: leave out --level, --by and other models")
    _check_options(level, metric, is_summary=is_summary, is_divided=is_divided, baseline=baseline)
    workspace = output.workspace()
    settings = run.settings(**hardware.keywords(named))
    part_metric: PartMetricName = next((one for one in PART_METRICS if one == metric), "energy")
    answer: RunAnswer
    if is_summary:
        answer = workspace.compare(model[0], settings, metric=metric or "energy", baseline=baseline)
    elif level == "summary":
        answer = workspace.compare_models(model, settings, metric=part_metric)
    elif level == "run" or is_divided:
        answer = workspace.compare_breakdowns(model, settings, level=level, by=by or "action", subgraph=subgraph)
    else:
        answer = workspace.compare_parts(model, settings, by=level, metric=part_metric)
    most = limit if level in ("subgraph", "operator") else MOST_DRAWN
    output.present(answer, run, limit=limit, most=most)


def _check_options(
    level: Level, metric: RunMetricName | None, *, is_summary: bool, is_divided: bool, baseline: str
) -> None:
    """Raise UsageError for options that exclude each other; `is_summary` marks the summary of a single model."""
    if baseline and not is_summary:
        raise UsageError("--baseline is for the summary of one model; leave it out")
    if metric not in (None, *PART_METRICS) and not is_summary:
        raise UsageError(f"--metric {metric} is for the summary of one model; choose {', '.join(PART_METRICS)}")
    if is_divided and level == "summary":
        raise UsageError("--by and --subgraph divide runs, subgraphs or operators; leave out --level summary")
    if is_divided and metric not in (None, "energy"):
        raise UsageError("--by, --subgraph and --level run divide energy; leave out --metric")
