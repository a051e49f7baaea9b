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
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="What a tool wrote of a measurement.")],
    *,
    model: str = option("", "What was run.", shown="as the file says", complete=complete_models),
    hardware: str = option(
        "",
        "On what, by id or alias, with @MODE, @900MHz or @300W where it was set so.",
        shown="as the file says",
        complete=complete_hardware,
    ),
    precision: str = option(
        "",
        "At which; of a served model how its weights are stored.",
        shown="as the file says",
        complete=complete_precisions,
    ),
    batch: int | None = option(None, "Samples in one input, or requests in flight.", "--batch", "-b", min=1),
    runtime: str = option(
        "", "eager, graph, fused or engine, of a single run.", shown="that of the tool", complete=complete_runtimes
    ),
    engine: str = option(
        "",
        "What served a language model: vllm, vllm@2024, sglang …",
        shown="as the file says",
        complete=complete_engines,
    ),
    devices: int | None = option(None, "Devices that shared the work.", min=1),
    replicas: int | None = option(None, "Servers among them that shared the requests.", min=1),
    passes: int | None = option(None, "Batches that ran in a window or trace.", min=1),
    prompt: int | None = option(None, "Tokens of a prompt.", min=1),
    made: int | None = option(None, "Tokens made of a request; -o names a file.", "--output", min=1),
    calibration: str = option("auto", CALIBRATION_HELP),
    keep: bool = option(False, "Store the rows, as `measurements import` does."),
    calibrate: bool = option(False, "Fit the hardware to them and to what is stored, as `calibrate` does."),
    limit: int = option(12, "Rows to show in a table; json and csv have all.", min=1),
    output: ServedOutputOptions,
) -> None:
    """Hold what other tools measured against the prediction for it, and say what would explain the difference.

    Reads what the benchmarks of vLLM and SGLang write or print, AIPerf and GenAI-Perf (JSON, CSV), GuideLLM,
    TensorRT-LLM's trtllm-bench, InferenceX, llama-bench (JSON, CSV, its table), trtexec's logs, torch.profiler's traces
    (.gz too) and tables, printed timers of torch.utils.benchmark, MLPerf's mlperf_log_summary.txt, Zeus's and
    CodeCarbon's CSV, known by what they hold. What a file does not tell is asked for. No pickle is opened, and nothing
    of a file is run. Where a measured number is outside the 80 % interval of its prediction, the exit code is 11. A
    number that cannot be scored is named with its reason; where none can be scored, the exit code is 12.

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
    if not answer.judged:
        from joulemap.system.errors import UnscoredError

        raise UnscoredError("no measured number could be scored: the answer names each reason")
    if answer.outside:
        from joulemap.present.cell import show_count
        from joulemap.system.errors import OutsideError

        judged = show_count(len(answer.judged), "measured number")
        raise OutsideError(f"{len(answer.outside)} of {judged} outside the 80 % interval of the prediction")
