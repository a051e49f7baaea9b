"""`joulemap verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command, option
from joulemap.cli.complete import (
    complete_engines,
    complete_hardware,
    complete_models,
    complete_precisions,
    complete_runtimes,
)
from joulemap.cli.option.run import CALIBRATION_HELP
from joulemap.wing.llm.option import ServedOutputOptions


@command
def verify(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Output of a benchmark or profiler."),
    ],
    *,
    model: str = option("", "Model that was run.", shown="as the file says", complete=complete_models),
    hardware: str = option(
        "",
        "Hardware by id or alias, with @MODE, @900MHz or @300W where set.",
        shown="as the file says",
        complete=complete_hardware,
    ),
    precision: str = option(
        "",
        "Precision; for a served model that of its stored weights.",
        shown="as the file says",
        complete=complete_precisions,
    ),
    batch: int | None = option(None, "Samples in one input, or requests in flight.", "--batch", "-b", min=1),
    runtime: str = option(
        "",
        "Runtime of a single run: eager, graph, fused or engine.",
        shown="that of the tool",
        complete=complete_runtimes,
    ),
    engine: str = option(
        "",
        "Serving engine of a language model: vllm, vllm@2024, sglang …",
        shown="as the file says",
        complete=complete_engines,
    ),
    devices: int | None = option(None, "Devices that shared the work.", min=1),
    replicas: int | None = option(None, "Servers among them that shared the requests.", min=1),
    passes: int | None = option(None, "Batches that ran in a window or trace.", min=1),
    prompt: int | None = option(None, "Tokens per prompt.", min=1),
    made: int | None = option(None, "Output tokens per request; -o names a file.", "--output", min=1),
    calibration: str = option("auto", CALIBRATION_HELP),
    keep: bool = option(False, "Store the rows, as `measurements import` does."),
    calibrate: bool = option(False, "Fit the hardware to these and the stored measurements, as `calibrate` does."),
    limit: int = option(12, "Rows to show in a table; json and csv have all.", min=1),
    output: ServedOutputOptions,
) -> None:
    """Compare measurements of other tools with the predictions, and list causes that would explain a difference.

    Reads what the benchmarks of vLLM and SGLang write or print, AIPerf and GenAI-Perf (JSON, CSV), GuideLLM,
    TensorRT-LLM's trtllm-bench, InferenceX, llama-bench (JSON, CSV, its table), trtexec's logs, torch.profiler's traces
    (.gz too) and tables, printed timers of torch.utils.benchmark, MLPerf's mlperf_log_summary.txt, Zeus's and
    CodeCarbon's CSV. The format is recognized by content. Options supply what a file does not state. No pickle is
    opened, and nothing in a file is executed. Exit code 11: a measured number is outside the 80 % interval of its
    prediction. Exit code 12: no number could be scored; the answer states the reason for each.

    Each cause is the same prediction for another clock, power cap, precision, runtime, engine, cache or number of
    devices. The cause that explains most comes first.

    \b
    joulemap verify vllm.json
    joulemap verify trtexec.log --hardware rtx_3090
    joulemap verify llama_bench.json --hardware RTX-4090 --details
    joulemap verify zeus.csv --hardware H200 --precision fp16 --batch 32 --runtime graph --passes 300 --keep
    """
    answer = output.workspace().verify(
        files,
        model=model,
        hardware=hardware,
        precision=precision,
        runtime=runtime,
        engine=engine,
        batch=batch,
        devices=devices,
        replicas=replicas,
        passes=passes,
        prompt=prompt,
        output=made,
        calibration=calibration,
        keep=keep,
        calibrate=calibrate,
    )
    output.write(answer.document(limit=limit))
    if not answer.judged:
        from joulemap.system.errors import UnscoredError

        raise UnscoredError("no measured number could be scored: the answer names each reason")
    if answer.outside:
        from joulemap.present.cell import show_count
        from joulemap.system.errors import OutsideError

        judged = show_count(len(answer.judged), "measured number")
        raise OutsideError(f"{len(answer.outside)} of {judged} outside the 80 % interval of the prediction")
