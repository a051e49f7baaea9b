"""The hardware that joulemap knows, and yours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_boundaries, complete_hardware
from joulemap.cli.option.hardware import SEVERAL_HARDWARE
from joulemap.cli.option.run import BOUNDARY_HELP, CALIBRATION_HELP
from joulemap.cli.output import Force, OutputOptions, check_suffix, emit
from joulemap.cli.value import read_quantity
from joulemap.domain.architecture import find_class
from joulemap.domain.configuration import BOARD
from joulemap.domain.settings import Device
from joulemap.system.errors import UsageError

if TYPE_CHECKING:
    from joulemap.domain.configuration import Boundary
    from joulemap.domain.settings import Deployment

app = typer.Typer(help=__doc__, rich_markup_mode=None)

SHOWN: Final = (
    "hardware", "name", "architecture", "deployment", "units_total_count", "unit_name", "precisions",
    "memory_capacity_bytes", "memory_bandwidth_bytes_per_s", "tdp_w", "needs_host", "fact_count",
    "recalled_fact_count", "assumed_fact_count", "power_modes",
)  # fmt: skip

File = Annotated[Path | None, typer.Option("--output", "-o", help="Write it to this file, not to stdout.")]


@app.command("list")
@command
def list_(
    *,
    architecture: str = option("", "Only this class, e.g. gpu.", shown="all"),
    deployment: str = option("", "Only for datacenter, edge or embedded.", shown="all"),
    precision: str = option("", "Only what runs this precision.", shown="all"),
    max_power: str = option("", "At most this TDP, e.g. 30W.", shown="any"),
    min_memory: str = option("", "At least this memory, e.g. 16GB.", shown="any"),
    max_price: str = option("", "At most this purchase price, e.g. 500USD; unknown ones drop out.", shown="any"),
    limit: int | None = option(None, "Rows to show.", min=1, shown="a screen on a terminal, else all"),
    boxes: bool = option(False, "Boxes of several devices in place of single hardware."),
    output: OutputOptions,
) -> None:
    """List the hardware targets; ~ marks those that can be neither bought nor rented.

    \b
    joulemap hardware list
    joulemap hardware list --boxes
    joulemap hardware list --architecture gpu --format json
    joulemap hardware list --deployment edge --precision int8 --max-power 15W
    """
    if boxes:
        output.write_table(output.workspace().box_list(), keep=("devices", "joined_by"), most=limit)
        return
    rows = output.workspace().hardware_list(
        architecture=architecture,
        deployment=cast("Deployment", deployment),
        precision=cast("Any", precision),
        max_power_w=read_quantity("--max-power", max_power, "W"),
        min_memory_bytes=read_quantity("--min-memory", min_memory, "B"),
        max_price_usd=read_quantity("--max-price", max_price, "USD"),
    )
    from joulemap.answer.listing import say_classes

    keep = ("architecture", "memory_capacity_bytes", "memory_bandwidth_bytes_per_s", "tdp_w", "needs_host")
    most = limit or (output.height or 0) * 3 // 5 or None
    output.write_table(rows, SHOWN, keep=keep, most=most, answer=say_classes(rows))


@app.command()
@command
def show(
    hardware: Annotated[
        str,
        typer.Argument(
            help="Id, alias or class, with @MODE or without, a box, or a file of either.",
            autocompletion=complete_hardware,
        ),
    ],
    *,
    energy: bool = option(False, "The energy reference table instead of the other numbers."),
    calibration: str = option("auto", CALIBRATION_HELP),
    boundary: str = option(BOARD, f"Of the energies. {BOUNDARY_HELP}", complete=complete_boundaries),
    output: OutputOptions,
) -> None:
    """Print every number of a hardware with unit, basis and source, its ridge points, and what is uncertain.

    \b
    joulemap hardware show h100_sxm5
    joulemap hardware show tpu_v4 --energy --format csv
    joulemap hardware show Jetson-Orin-Nano@15W
    joulemap hardware show ./mine.toml
    """
    workspace, chosen = output.workspace(), cast("Boundary", boundary)
    from joulemap.answer.listing import is_box

    if not energy and is_box(hardware):
        output.write(workspace.box(hardware).document())
    elif energy:
        prices = workspace.energy_reference(hardware, calibration=calibration, boundary=chosen)
        columns = ("category", "component", "action", "energy_per_action_j", "per", "basis", "source")
        keep = ("component", "action", "energy_per_action_j", "basis")
        output.write_table(prices, columns, keep=keep)
    else:
        output.write(workspace.hardware(hardware, calibration=calibration).document())


@app.command()
@command
def template(
    *,
    like: str = option("", "Start from this hardware, with all its numbers and sources."),
    architecture: str = option("", "Start from the fewest fields that this class needs."),
    output: File = None,
    force: Force = False,
) -> None:
    """Print a hardware file to start from: a copy of a known one, or the smallest of a class.

    \b
    joulemap hardware template --like tpu_v4 > mine.toml
    joulemap hardware template --architecture npu > mine.toml
    joulemap hardware check mine.toml
    joulemap compare resnet18 --hardware ./mine.toml,tpu_v4
    """
    if bool(like) == bool(architecture):
        raise UsageError("name one of --like HARDWARE and --architecture CLASS")
    from joulemap.answer.hardware_file import template_text

    check_suffix(output, ".toml", "a hardware file")
    emit(template_text(like, find_class(architecture) or architecture).rstrip("\n"), output, force=force)


@app.command()
@command
def detect(
    *,
    device: Device = option("cpu", "What of this machine."),
    threads: int | None = option(None, "Only so many cores, as a program of so many threads uses.", shown="all"),
    output: File = None,
    force: Force = False,
) -> None:
    """Print a hardware file of this machine to start from: what it tells, and rules for what it does not.

    Memory bandwidth and TDP of a processor cannot be read: they are marked assumed and are yours to replace.

    \b
    joulemap hardware detect --output this.toml
    joulemap hardware check this.toml
    joulemap hardware detect --device cuda
    joulemap measure resnet18 --hardware ./this.toml
    """
    from joulemap.answer.measure import detect_text

    check_suffix(output, ".toml", "a hardware file")
    emit(detect_text(device, threads).rstrip("\n"), output, force=force)


@app.command()
@command
def sanity(*, hardware: str = option("", SEVERAL_HARDWARE, shown="all"), output: OutputOptions) -> None:
    """Probe hardware from the top down: what a large matrix product and a stream copy draw against the power cap.

    A product at any precision should draw 0.6 to 1.0 of the cap, a copy its measured power within a quarter.

    \b
    joulemap hardware sanity
    joulemap hardware sanity --hardware A100,H100,H200,tpu_v4
    joulemap hardware sanity --hardware ./mine.toml --format json
    """
    answer = output.workspace().sanity((hardware,) if hardware else ())
    output.write(answer.document())


@app.command()
@command
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Hardware files or folders of them.")],
    *,
    output: OutputOptions,
) -> None:
    """Check hardware files: every rule, what was left out and filled in, and a trial on three models.

    \b
    joulemap hardware check mine.toml
    joulemap hardware check chips/ --format json
    """
    from joulemap.answer.hardware_file import check_files

    output.check_place()
    output.write(check_files(files).document())
