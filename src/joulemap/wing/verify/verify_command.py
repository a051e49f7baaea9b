"""`joulemap verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from joulemap.cli import LIMIT_HELP, OUTPUT, complete_hardware, complete_models, complete_precisions
from joulemap.cli.command import advanced, command, option
from joulemap.cli.complete import complete_runtimes
from joulemap.cli.option.run import CALIBRATION_HELP
from joulemap.physics import RUNTIME_NAMES
from joulemap.system import UnscoredError, frozen, join_choices
from joulemap.wing.decoder import complete_engines
from joulemap.wing.llm.option import ServedOutputOptions


@frozen(kw_only=True)
class FactOptions:
    """Options for facts that a measurement file lacks, or that replace those in the file."""

    model: str = option(
        "", "Model of the measurement.", metavar="MODEL", shown="from the file", complete=complete_models
    )
    hardware: str = option(
        "",
        "Hardware of the measurement, optionally with @MODE, @900MHz or @300W.",
        metavar="NAME",
        shown="from the file",
        complete=complete_hardware,
    )
    host: str = advanced(
        "",
        "Processor that holds a part of a language model.",
        metavar="NAME",
        shown="from the file",
        complete=complete_hardware,
    )
    precision: str = option(
        "",
        "Precision of the measurement; weight format of a served model.",
        metavar="NAME",
        shown="from the file",
        complete=complete_precisions,
    )
    batch: int | None = option(
        None, "Batch size, or concurrent requests.", "--batch", "-b", min=1, shown="from the file"
    )
    runtime: str = option(
        "",
        f"Execution mode of a single run: {join_choices(RUNTIME_NAMES)}.",
        metavar="MODE",
        shown="the tool's",
        complete=complete_runtimes,
    )
    engine: str = option(
        "",
        "Serving engine of a language model, e.g. vllm, vllm@2024 or sglang.",
        metavar="NAME",
        shown="from the file",
        complete=complete_engines,
    )
    devices: int | None = advanced(None, "Number of devices.", min=1, shown="from the file")
    replicas: int | None = advanced(None, "Number of servers among these devices.", min=1, shown="from the file")
    passes: int | None = advanced(
        None, "Number of batches in a measured window or trace.", min=1, shown="from the file"
    )
    prompt: int | None = advanced(None, "Prompt length in tokens.", metavar="TOKENS", min=1, shown="from the file")
    output_tokens: int | None = advanced(
        None,
        "Output length in tokens; use -o for a file.",
        "--output",
        metavar="TOKENS",
        min=1,
        shown="from the file",
    )

    def keywords(self) -> dict[str, Any]:
        """Return the facts as keywords of `verify`."""
        return {"output" if name == "output_tokens" else name: value for name, value in attrs.asdict(self).items()}


@command
def verify(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Measurement files of other tools; - for stdin.")
    ],
    *,
    facts: FactOptions,
    calibration: str = advanced("auto", CALIBRATION_HELP, metavar="NAME"),
    keep: bool = option(False, "Store the measurements, as `measurements import` does."),
    calibrate: bool = option(False, "Fit the hardware, or an engine on it, to all its measurements."),
    limit: int = option(12, LIMIT_HELP, min=1, panel=OUTPUT),
    output: ServedOutputOptions,
) -> None:
    """Compare measurements from other tools with predictions.

    Reads files of vLLM, SGLang, TensorRT-LLM, trtexec, llama-bench, torch.profiler and others, and suggests causes of a
    difference. Exits with 11 if a measurement is outside the 80 % interval of its prediction, and with 12 if none can
    be scored.

    The format is recognized by content. Known formats: vLLM and SGLang benchmarks (files or printed text), AIPerf and
    GenAI-Perf (JSON, CSV), GuideLLM, trtllm-bench, InferenceX, ML.ENERGY, llmfit and LocalScore. It also reads
    llama-bench (JSON, CSV, table), logs of trtexec, torch.profiler (traces, also .gz, and tables) and printed timers of
    torch.utils.benchmark. MLPerf's mlperf_log_summary.txt and CSV files of Zeus and CodeCarbon work too. Options supply
    facts that a file lacks. No pickle is opened, and no code of a file runs.

    To test a cause, verify repeats the prediction with another clock, power cap or mode, precision, runtime, engine,
    batch size, device count or cache. The cause that explains most comes first. It also names contradictions between
    options and the file.

    \b
    joulemap verify vllm.json
    joulemap verify trtexec.log --hardware rtx_3090
    joulemap verify llama_bench.json --hardware RTX-4090 --show details
    joulemap verify zeus.csv --hardware H200 --precision fp16 --batch 32 --runtime graph --passes 300 --keep
    """
    answer = output.workspace().verify(
        files,
        **facts.keywords(),
        calibration=calibration,
        keep=keep,
        calibrate=calibrate,
    )
    output.present(answer, limit=limit)
    if not answer.judged:
        raise UnscoredError("no measurement could be scored: the answer gives the reasons")
    if answer.outside:
        from joulemap.show import show_count
        from joulemap.system.errors import OutsideError

        judged, count = show_count(len(answer.judged), "measurement"), len(answer.outside)
        verb, whose = ("is", "its prediction") if count == 1 else ("are", "their predictions")
        raise OutsideError(f"{count} of {judged} {verb} outside the 80 % interval of {whose}")
