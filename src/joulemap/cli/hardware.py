"""`joulemap hardware`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from joulemap.cli.option import (
    DEFAULT_DATABASE,
    Calibration,
    Database,
    Device,
    FormatOption,
    Output,
    ShowSql,
    TableFormatOption,
    check_output,
    emit,
    emit_answer,
    emit_sql,
    emit_table,
    open_workspace,
    read_quantity,
    split_names,
)
from joulemap.present.format import Format, TableFormat

if TYPE_CHECKING:
    from joulemap.store.query import Answer

app = typer.Typer(help="The hardware that joulemap knows, and yours.", rich_markup_mode=None)

LISTED = (
    "hardware", "name", "architecture", "deployment", "units_total_count", "unit_name", "precisions",
    "memory_capacity_bytes", "memory_bandwidth_bytes_per_s", "tdp_w", "fact_count",
    "recalled_fact_count", "assumed_fact_count", "power_modes",
)  # fmt: skip


@app.command("list")
def list_(
    architecture: Annotated[
        str, typer.Option("--architecture", help="Only this class, e.g. gpu.", show_default="all")
    ] = "",
    deployment: Annotated[
        str, typer.Option("--deployment", help="Only for datacenter, edge or embedded.", show_default="all")
    ] = "",
    precision: Annotated[
        str, typer.Option("--precision", help="Only what runs this precision.", show_default="all")
    ] = "",
    max_power: Annotated[
        str, typer.Option("--max-power", help="At most this TDP, e.g. 30W.", show_default="any")
    ] = "",
    min_memory: Annotated[
        str, typer.Option("--min-memory", help="At least this memory, e.g. 16GB.", show_default="any")
    ] = "",
    max_price: Annotated[
        str, typer.Option("--max-price", help="At most this purchase price, e.g. 500USD; unknown ones drop out.",
                          show_default="any")
    ] = "",
    form: TableFormatOption = TableFormat.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:  # fmt: skip
    """List the hardware targets; ~ marks those whose key numbers are projections or estimates.

    \b
    joulemap hardware list
    joulemap hardware list --architecture gpu --format json
    joulemap hardware list --deployment edge --precision int8 --max-power 15W
    """
    check_output(form, output)
    answer = open_workspace(db, form).hardware_list(
        architecture=architecture,
        deployment=deployment,
        precision=precision,
        max_power_w=read_quantity("--max-power", max_power, "W"),
        min_memory_bytes=read_quantity("--min-memory", min_memory, "B"),
        max_price_usd=read_quantity("--max-price", max_price, "USD"),
    )
    emit_table(answer, form, output, LISTED)
    if show_sql:
        emit_sql((answer,))


@app.command()
def show(
    hardware: Annotated[str, typer.Argument(help="Id or alias, with @MODE or without, or a hardware file.")],
    energy: Annotated[
        bool, typer.Option("--energy", help="The energy reference table instead of the other numbers.")
    ] = False,
    calibration: Calibration = "auto",
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
    db: Database = Path(DEFAULT_DATABASE),
) -> None:
    """Print every number of a hardware with unit, basis and source, its ridge points, and what is uncertain.

    \b
    joulemap hardware show h100_sxm5
    joulemap hardware show tpu_v4 --energy --format csv
    joulemap hardware show Jetson-Orin-Nano@15W
    joulemap hardware show ./mine.toml
    """
    workspace = open_workspace(db, form)
    answers: tuple[Answer, ...]
    if energy:
        reference = workspace.energy_reference(hardware, calibration=calibration)
        columns = ("category", "component", "action", "energy_per_action_j", "per", "basis", "source")
        emit_answer(reference, form, output, columns)
        answers = (reference,)
    else:
        from joulemap.report.hardware import render_hardware

        answer = workspace.hardware(hardware, calibration=calibration)
        emit(render_hardware(answer, form), output)
        answers = (answer.summary, answer.ridge, answer.fact)
    if show_sql:
        emit_sql(answers)


@app.command()
def template(
    like: Annotated[
        str, typer.Option("--like", help="Start from this hardware, with all its numbers and sources.")
    ] = "",
    architecture: Annotated[
        str, typer.Option("--architecture", help="Start from the fewest fields that this class needs.")
    ] = "",
    output: Output = None,
) -> None:
    """Print a hardware file to start from: a copy of a known one, or the smallest of a class.

    \b
    joulemap hardware template --like tpu_v4 > mine.toml
    joulemap hardware template --architecture npu > mine.toml
    joulemap hardware check mine.toml
    joulemap compare resnet18 --hardware ./mine.toml,tpu_v4
    """
    from joulemap.errors import UsageError

    if bool(like) == bool(architecture):
        raise UsageError("name one of --like HARDWARE and --architecture CLASS")
    from joulemap.workspace.hardware import template_text

    emit(template_text(like, architecture).rstrip("\n"), output)


@app.command()
def detect(
    device: Annotated[Device, typer.Option("--device", help="What of this machine.")] = Device.CPU,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Only so many cores, as a program of so many threads uses.",
                                 show_default="all")
    ] = None,
    output: Output = None,
) -> None:  # fmt: skip
    """Print a hardware file of this machine to start from: what it tells, and rules for what it does not.

    Memory bandwidth and TDP of a processor cannot be read: they are marked assumed and are yours to replace.

    \b
    joulemap hardware detect --output this.toml
    joulemap hardware check this.toml
    joulemap hardware detect --device cuda
    joulemap measure resnet18 --hardware ./this.toml
    """
    from joulemap.workspace.measure import detect_text

    emit(detect_text(device.value, threads).rstrip("\n"), output)


@app.command()
def sanity(
    hardware: Annotated[
        str, typer.Option("--hardware", help="Ids, aliases, files or folders, comma-separated.", show_default="all")
    ] = "",
    form: FormatOption = Format.TABLE,
    output: Output = None,
    show_sql: ShowSql = False,
) -> None:
    """Probe hardware from the top down: what a large matrix product and a stream copy draw against the power cap.

    A product at any precision should draw 0.6 to 1.0 of the cap, a copy its measured power within a quarter.

    \b
    joulemap hardware sanity
    joulemap hardware sanity --hardware A100,H100,H200,tpu_v4
    joulemap hardware sanity --hardware ./mine.toml --format json
    """
    from joulemap.report.hardware import render_sanity

    answer = open_workspace(Path(DEFAULT_DATABASE), form).sanity(split_names(hardware))
    emit(render_sanity(answer, form), output)
    if show_sql:
        emit_sql((answer,))


@app.command()
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Hardware files or folders of them.")],
    form: FormatOption = Format.TABLE,
    output: Output = None,
) -> None:
    """Check hardware files: every rule, what was left out and filled in, and a trial on three models.

    \b
    joulemap hardware check mine.toml
    joulemap hardware check chips/ --format json
    """
    from joulemap.report.hardware import render_checks
    from joulemap.workspace.hardware import check_files

    emit(render_checks(check_files(files), form), output)
