"""`joulemap here`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from joulemap.cli import LIMIT_HELP, OUTPUT, complete_models, complete_precisions, complete_weights
from joulemap.cli.command import command, option
from joulemap.cli.output import emit
from joulemap.system import DatabaseError, ExitCode
from joulemap.system.config import DEFAULT_DATABASE
from joulemap.wing.here.serve import Asked
from joulemap.wing.llm.option import ServedOutputOptions


@command
def here(
    model: Annotated[
        str,
        typer.Argument(
            metavar="[MODEL]",
            help="Model by name or file; without one, popular models.",
            autocompletion=complete_models,
        ),
    ] = "",
    *,
    recorded: Path | None = option(
        None, "Folder or JSON file with the tool outputs of another machine.", "--from", metavar="PATH", shown=False
    ),
    record: Path | None = option(None, "Write this machine's tool outputs to a JSON file.", metavar="FILE.json"),
    memory: str = option("", "Memory: kind, MT/s and 64-bit channels, e.g. DDR5-5600x2.", metavar="KIND"),
    probe: bool = option(False, "Measure memory bandwidth, matrix multiplication rate and idle power, in ten seconds."),
    prompt: int = option(512, "Prompt length in tokens.", metavar="TOKENS", min=1),
    output_tokens: int = option(
        128, "Output length in tokens; use -o for a file.", "--output", metavar="TOKENS", min=2
    ),
    weight_precision: str = option(
        "",
        "Weight format of a language model.",
        metavar="FORMAT",
        shown="five formats of 3 to 8 bits",
        complete=complete_weights,
    ),
    precision: str = option(
        "",
        "Precision of other models.",
        metavar="NAME",
        shown="fp16 on GPUs, fp32 on CPUs, int8 on NPUs",
        complete=complete_precisions,
    ),
    inputs: list[str] | None = option(
        None,
        "Open sizes of a model file, e.g. images=1,3,640,640; repeatable.",
        "--input",
        metavar="SHAPE",
        is_advanced=True,
    ),
    link: str = option(
        "",
        "Link of dedicated chips to the host, e.g. pcie3x4.",
        metavar="LINK",
        shown="the widest that both ends have",
        is_advanced=True,
    ),
    tariff: float = option(
        0.30,
        "Household electricity price per kWh; other commands assume a commercial one (electricity of the site).",
        metavar="USD",
        min=0.0,
    ),
    limit: int = option(8, LIMIT_HELP, min=1, panel=OUTPUT),
    output: ServedOutputOptions,
) -> None:
    """Find this machine's chips and predict what runs on them.

    For a language model, the answer shows which quantizations fit, context length, time to first token, tokens per
    second, power and cost. A model that exceeds the memory of the GPU is split between GPU and CPU, as llama.cpp does.

    Missing permissions, drivers or tools are named, one line each; the exit code stays 0. Exits with 4 if MODEL runs on
    no chip.

    \b
    joulemap here
    joulemap here llama-3.1-8b --tariff 0.25
    joulemap here resnet50
    joulemap here --record machine.json
    """
    asked = Asked(prompt=prompt, output=output_tokens, weights=weight_precision, usd_per_kwh=tariff)
    workspace = output.workspace()
    if record is not None:
        from joulemap.wing.here.recording import dump_recording, record as read_tools

        emit(dump_recording(read_tools()), record)
    question: dict[str, Any] = {
        "recorded": recorded or "",
        "memory": memory,
        "asked": asked,
        "precision": precision,
        "inputs": tuple(inputs or ()),
        "link": link.lower(),
        "probe": probe,
    }
    try:
        answer = workspace.here(model, **question)
    except DatabaseError:
        if str(output.db) != DEFAULT_DATABASE:
            raise
        import tempfile

        with tempfile.TemporaryDirectory() as folder:  # this folder cannot be written to, or another process uses it
            elsewhere = attrs.evolve(output, db=Path(folder) / DEFAULT_DATABASE)
            answer = elsewhere.workspace().here(model, **question)
    output.present(answer, limit=limit)
    if not answer.runs_model:
        raise typer.Exit(ExitCode.UNSUPPORTED)
