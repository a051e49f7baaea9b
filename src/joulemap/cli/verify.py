"""`joulemap verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command
from joulemap.cli.complete import (
    complete_engines,
    complete_hardware,
    complete_models,
    complete_precisions,
    complete_runtimes,
)
from joulemap.cli.option.run import CALIBRATION_HELP
from joulemap.cli.option.serving import ServedOutputOptions


@command
def verify(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What a tool wrote of a measurement.")],
    *,
    model: Annotated[
        str, typer.Option(help="What was run.", show_default="as the file says", autocompletion=complete_models)
    ] = "",
    hardware: Annotated[
        str,
        typer.Option(
            help="On what, by id or alias, with @MODE, @900MHz or @300W where it was set so.",
            show_default="as the file says",
            autocompletion=complete_hardware,
        ),
    ] = "",
    precision: Annotated[
        str,
        typer.Option(
            help="At which; of a served model how its weights are stored.",
            show_default="as the file says",
            autocompletion=complete_precisions,
        ),
    ] = "",
    batch: Annotated[
        int | None, typer.Option("--batch", "-b", min=1, help="Samples in one input, or requests in flight.")
    ] = None,
    runtime: Annotated[
        str,
        typer.Option(
            help="eager, graph, fused or engine, of a single run.",
            show_default="that of the tool",
            autocompletion=complete_runtimes,
        ),
    ] = "",
    engine: Annotated[
        str,
        typer.Option(
            help="What served a language model: vllm, vllm@2024, sglang …",
            show_default="as the file says",
            autocompletion=complete_engines,
        ),
    ] = "",
    devices: Annotated[int | None, typer.Option(min=1, help="Devices that shared the work.")] = None,
    replicas: Annotated[int | None, typer.Option(min=1, help="Servers among them that shared the requests.")] = None,
    passes: Annotated[int | None, typer.Option(min=1, help="Batches that ran in a window or trace.")] = None,
    prompt: Annotated[int | None, typer.Option("--prompt", min=1, help="Tokens of a prompt.")] = None,
    made: Annotated[
        int | None, typer.Option("--output", min=1, help="Tokens made of a request; -o names a file.")
    ] = None,
    calibration: Annotated[str, typer.Option(help=CALIBRATION_HELP)] = "auto",
    keep: Annotated[bool, typer.Option("--keep", help="Store the rows, as `measurements import` does.")] = False,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Fit the hardware to them and to what is stored, as `calibrate` does.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Rows to show in a table; json and csv have all.")] = 12,
    output: ServedOutputOptions,
) -> None:
    """Hold what other tools measured against the prediction for it, and say what would explain the difference.

    Reads what vLLM's and SGLang's serving benchmarks write or print, vLLM's bench latency and throughput, AIPerf and
    GenAI-Perf, GuideLLM, TensorRT-LLM's trtllm-bench, InferenceX, llama-bench -o json or csv, trtexec's logs,
    torch.profiler's traces (.gz too), printed timers of
    torch.utils.benchmark, MLPerf's mlperf_log_summary.txt, Zeus's and CodeCarbon's CSV, known by what they hold. What
    a file does not tell is asked for. No pickle is opened, and nothing of a file is run.

    Each cause is the same prediction for another clock, power cap, precision, runtime, engine, cache or number of
    devices, the one that explains most first.

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
