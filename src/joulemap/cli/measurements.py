"""List and import measurements of models and operators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from joulemap.cli.command import command, option, optional
from joulemap.cli.complete import complete_hardware, complete_models
from joulemap.cli.option.run import LIMIT_HELP
from joulemap.cli.output import DatabaseOptions, OutputOptions, emit_line
from joulemap.cli.panel import OUTPUT
from joulemap.cli.usage import group
from joulemap.cli.voice import voice

TABLES: Final = "name | content | measurement_count | doubt"

app = group(__doc__)

SHOWN: Final = (
    "hardware | model | precision | batch | runtime | scope | latency_s | throughput_per_s | boundary | energy_j | "
    "power_w | wall_power_w | peak_memory_bytes | seen"
)

NOTHING: Final = "No stored measurement matches."

SERVED: Final = (
    "source | hardware | device_count | engine | model | weight_precision | batch | prompt_tokens | output_tokens | "
    "scope | time_to_first_token_s | inter_token_latency_s | request_latency_s | output_tokens_per_s | "
    "energy_per_output_token_j | power_w | seen"
)


@app.command("list")
@command
def list_(
    *,
    hardware: str = optional("Hardware to list.", "NAME", complete=complete_hardware),
    model: str = optional("Model or operator type to list.", "NAME", complete=complete_models),
    served: bool = option(False, "List measurements of served language models instead."),
    limit: int = option(200, LIMIT_HELP, min=1, panel=OUTPUT),
    output: OutputOptions,
) -> None:
    """List measurements.

    json and csv have the source and conditions of each.

    \b
    joulemap measurements list --hardware H200 --model resnet50
    joulemap measurements list --served --hardware H100 --model llama
    """
    if served:
        table = output.workspace().served_measurements(hardware, model)
        answer = "" if table.rows else NOTHING
        kept = "hardware model engine batch scope"
        output.write_table(table, SERVED, keep=kept, most=limit, answer=answer)
        return
    rows = output.workspace().measurements(hardware, model)
    keep = "model latency_s throughput_per_s energy_j precision batch"
    output.write_table(rows, SHOWN, keep=keep, most=limit, answer="" if rows.rows else NOTHING)


@app.command("tables")
@command
def tables(*, output: OutputOptions) -> None:
    """List published tables that `measurements import` can add.

    json and csv have the source and licence of each.

    \b
    joulemap measurements tables
    """
    output.write_table(output.workspace().measurement_tables(), TABLES, keep="name content measurement_count")


@app.command("import")
@command
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="CSV or JSON file with the columns of `measurements list`, or public:NAME."
        ),
    ],
    *,
    database: DatabaseOptions,
) -> None:
    """Import measurements from a file.

    Stores every row of the file, or none if a line is wrong; the error names the lines. `measurements import
    --help all` lists the columns. Hardware and models must be known, except those of served models, which a message
    names: `validate` cannot predict them.

    Required columns are hardware, model, precision, batch, runtime and source. At least one result is required.
    latency_s, energy_j and peak_memory_bytes are per batch; throughput_per_s is the steady rate of one device, power_w
    its power, and wall_power_w the wall power of a system divided by its devices. Energy and power need a boundary:
    chip, board or system, where energy_j and power_w of a system are those of all its devices. If idle power was
    subtracted from energy_j, idle_power_w states it, and the prediction subtracts it too; power_w includes idle power.
    Optional columns are matmul_precision (`highest` for fp32 without TF32), device_count (of the system), scope,
    conditions, seen and stream_count. The peak memory of a GPU includes a workspace per stream, so it is scored only
    with stream_count.

    A model is any MODEL of `compare`; an operator such as gemm(m=128,n=4096,k=4096) needs quotes in a CSV. The code of
    a model file runs only if `validate` or `calibrate` is called with JOULEMAP_TRUST=1.

    For served language models, use the columns of `measurements list --served --format csv`. Required are source,
    hardware, model and scope (prefill_step, decode_step, request, offline or steady_serving). At least one result of
    all devices together is required: time_to_first_token_s, inter_token_latency_s (one step of the whole batch),
    request_latency_s, output_tokens_per_s, total_tokens_per_s, energy_per_output_token_j, energy_per_request_j or
    power_w. Energy and power need power_boundary (chip, board or system); idle_power_w is as above. Optional columns
    describe the run: batch, prompt_tokens, output_tokens, engine, date, device_count, tensor_parallel, weight_precision
    and others.

    public:NAME imports a published table; `measurements tables` lists them.

    \b
    joulemap measurements import mine.csv
    joulemap validate --hardware RTX-4090
    joulemap measurements import gemm.csv
    joulemap validate --model gemm --by hardware
    joulemap measurements import public:aic_gemm
    joulemap measurements import public:serving
    joulemap validate --by source
    """
    from joulemap.ask.measurement import find_doubt

    notes: list[str] = []
    stored, known = database.open().import_measurements(file, note=notes.append)
    emit_line(f"{file}: {stored} measurement{'' if stored == 1 else 's'} stored, {known} already present")
    doubt = find_doubt(file)
    if doubt:
        voice.inform(f"joulemap: {file} is doubtful: {doubt}")
    for note in notes:
        voice.inform(f"joulemap: {file}: {note}")
