"""Measurements of others, to score predictions against."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_hardware, complete_models
from joulemap.cli.output import DatabaseOptions, OutputOptions, emit_line

app = typer.Typer(help=__doc__, rich_markup_mode=None)

SHOWN: Final = (
    "hardware", "model", "precision", "batch", "runtime", "latency_s", "throughput_per_s", "energy_j", "power_w",
    "wall_power_w", "peak_memory_bytes", "seen",
)  # fmt: skip


SERVED: Final = (
    "source", "hardware", "device_count", "engine", "model", "weight_precision", "batch", "prompt_tokens",
    "output_tokens", "scope", "time_to_first_token_s", "inter_token_latency_s", "request_latency_s",
    "output_tokens_per_s", "energy_per_output_token_j", "power_w", "seen",
)  # fmt: skip


@app.command("list")
@command
def list_(
    *,
    hardware: str = option("", "Only this hardware.", shown="all", complete=complete_hardware),
    model: str = option("", "Only this model or kind of operator.", shown="all", complete=complete_models),
    served: bool = option(False, "Those of language models as they are served, in place of single runs."),
    limit: int = option(200, "Rows of a table to show; json and csv have all.", min=1),
    output: OutputOptions,
) -> None:
    """List measurements; json and csv have source and conditions of each.

    \b
    joulemap measurements list --hardware H200 --model resnet50
    joulemap measurements list --served --hardware H100 --model llama
    """
    if served:
        found = output.workspace().served_measurements(hardware, model)
        output.write_table(found, SERVED, keep=("hardware", "model", "engine", "batch", "scope"), most=limit)
        return
    rows = output.workspace().measurements(hardware, model)
    keep = ("model", "latency_s", "throughput_per_s", "energy_j", "precision", "batch")
    output.write_table(rows, SHOWN, keep=keep, most=limit)


@app.command("import")
@command
def import_(
    file: Annotated[
        Path, typer.Argument(help="CSV or JSON with the columns of `measurements list --format csv`, or public:NAME.")
    ],
    *,
    database: DatabaseOptions,
) -> None:
    """Store the measurements of a file: all of its rows, or none with the lines that are wrong.

    Columns: hardware, model, precision, batch, runtime, source, and at least one of latency_s, energy_j and
    peak_memory_bytes, per batch, throughput_per_s (inferences per second of one device at its steady rate), power_w
    and wall_power_w (of a whole system at the wall plug, over its devices); optional device_count (of that system),
    scope, conditions, seen and stream_count: on a GPU the framework's peak holds a workspace for each stream that the
    process had used, so it is scored where that count is given.
    A model is whatever `compare` takes: a name, an operator as gemm(m=128,n=4096,k=4096), in quotes in a CSV, a file,
    whose code `validate` and `calibrate` run with --trust alone.

    A file with columns of `measurements list --served --format csv` is of language models as they are served: source,
    hardware, model, scope (prefill_step, decode_step, request, offline or steady_serving) and at least one of
    time_to_first_token_s, inter_token_latency_s (one step of the whole batch), request_latency_s, output_tokens_per_s,
    total_tokens_per_s, energy_per_output_token_j, energy_per_request_j and power_w, of all devices together; optional
    all else that tells rows apart: batch, prompt_tokens, output_tokens, engine, date, device_count, tensor_parallel,
    weight_precision and others. Hardware and models that are not known here are stored too: `validate` says why they
    are not predicted.

    public:NAME is one of the tables that others published, mostly of single operators; docs/accuracy.md lists them.

    \b
    joulemap measurements import mine.csv
    joulemap validate --hardware RTX-4090
    joulemap measurements import gemm.csv
    joulemap validate --model gemm --by hardware
    joulemap measurements import public:aic_gemm
    joulemap measurements import public:serving
    joulemap validate --by source
    """
    stored, known = database.open().import_measurements(file)
    emit_line(f"{file}: {stored} measurements stored, {known} were there already")
