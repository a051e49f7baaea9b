"""List, show and check hardware, or write a hardware file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from joulemap.cli.command import command, option, optional
from joulemap.cli.complete import complete_boundaries, complete_hardware
from joulemap.cli.option.hardware import SEVERAL_HARDWARE
from joulemap.cli.option.run import BOUNDARY_HELP, CALIBRATION_HELP
from joulemap.cli.output import OutputOptions, check_suffix, emit
from joulemap.cli.panel import OUTPUT
from joulemap.cli.usage import group
from joulemap.cli.value import read_quantity
from joulemap.domain.architecture import find_class
from joulemap.domain.settings import Deployment, Device
from joulemap.physics.record.configuration import BOARD, BoundaryName
from joulemap.system.errors import UsageError

app = group(__doc__)

SHOWN: Final = (
    "hardware | name | architecture | deployment | units_total_count | unit_name | precisions | "
    "memory_capacity_bytes | memory_bandwidth_bytes_per_s | tdp_w | needs_host | fact_count | recalled_fact_count | "
    "assumed_fact_count | power_modes | package"
)

File = Annotated[Path | None, typer.Option("--output", "-o", help="File to write, instead of stdout.")]


@app.command("list")
@command
def list_(
    *,
    architecture: str = optional("Architecture class, e.g. gpu.", "NAME"),
    deployment: str = optional("Deployment: datacenter, edge or embedded.", "NAME"),
    precision: str = optional("Precision that the hardware supports.", "NAME"),
    max_power: str = optional("Maximum TDP, e.g. 30W.", "POWER"),
    min_memory: str = optional("Minimum memory, e.g. 16GB.", "SIZE"),
    max_price: str = optional("Maximum purchase price, e.g. 500USD; omits chips without a price.", "PRICE"),
    limit: int | None = option(
        None, "Maximum rows to show.", min=1, shown="one screen on a terminal, else all", panel=OUTPUT
    ),
    boxes: bool = option(False, "List boxes of several devices instead of single chips."),
    family: str = optional("List the chips of a family, or of `all` families.", "NAME"),
    output: OutputOptions,
) -> None:
    """List the hardware.

    ~ marks hardware that cannot be bought or rented.

    \b
    joulemap hardware list
    joulemap hardware list --boxes
    joulemap hardware list --family nvidia_ampere
    joulemap hardware list --architecture gpu --format json
    joulemap hardware list --deployment edge --precision int8 --max-power 15W
    """
    if boxes:
        from joulemap.ask.listing import list_others

        for question, kept in list_others():
            output.write_table(getattr(output.workspace(), question)(), keep=" ".join(kept), most=limit)
        return
    filters = {
        "architecture": architecture,
        "deployment": cast("Deployment", deployment),
        "precision": cast("Any", precision),
        "max_power_w": read_quantity("--max-power", max_power, "W"),
        "min_memory_bytes": read_quantity("--min-memory", min_memory, "B"),
        "max_price_usd": read_quantity("--max-price", max_price, "USD"),
    }
    rows = output.workspace().hardware_list(**filters, family=family)
    from joulemap.show.listing import describe_classes

    keep = "architecture memory_capacity_bytes memory_bandwidth_bytes_per_s tdp_w needs_host"
    most = limit or (output.height or 0) * 3 // 5 or None
    summary = describe_classes(
        rows,
        has_families=not family,
        is_filtered=any(value for name, value in filters.items() if name != "architecture"),
    )
    output.write_table(rows, SHOWN, keep=keep, most=most, answer=summary)


@app.command()
@command
def show(
    hardware: Annotated[
        str,
        typer.Argument(
            metavar="HARDWARE",
            help="Chip id, alias, class or file, optionally with @MODE, or a box.",
            autocompletion=complete_hardware,
        ),
    ],
    *,
    energy: bool = option(False, "Show only the energies per action."),
    operators: bool = option(False, "Show only the operators that its compiler runs."),
    calibration: str = option("auto", CALIBRATION_HELP, metavar="NAME"),
    boundary: str = option(BOARD, BOUNDARY_HELP, metavar="NAME", complete=complete_boundaries),
    output: OutputOptions,
) -> None:
    """Show every number of a chip with unit, basis and source.

    Includes its ridge points and uncertain numbers.

    \b
    joulemap hardware show h100_sxm5
    joulemap hardware show tpu_v4 --energy --format csv
    joulemap hardware show Jetson-Orin-Nano@15W
    joulemap hardware show rk3588_npu --operators
    joulemap hardware show ./mine.toml
    """
    workspace, chosen = output.workspace(), cast("BoundaryName", boundary)
    from joulemap.ask.listing import find_description

    if not energy and (question := find_description(hardware)):
        output.present(getattr(workspace, question)(hardware))
    elif energy:
        prices = workspace.energy_reference(hardware, calibration=calibration, boundary=chosen)
        columns = "category | component | action | energy_per_action_j | per | basis | source"
        keep = "component action energy_per_action_j basis"
        output.write_table(prices, columns, keep=keep)
    elif operators:
        from joulemap.show.hardware import describe_operators

        answer = workspace.describe_hardware(hardware, calibration=calibration)
        output.write_table(answer.list_operators(), answer=describe_operators(answer))
    else:
        output.present(workspace.describe_hardware(hardware, calibration=calibration))


@app.command()
@command
def template(
    *,
    like: str = optional("Hardware to copy, with all numbers and sources.", "HARDWARE"),
    architecture: str = optional("Architecture class whose required fields to print.", "CLASS"),
    output: File = None,
) -> None:
    """Print a hardware file to start from.

    Copies a known chip, or prints the required fields of an architecture class.

    \b
    joulemap hardware template --like tpu_v4 > mine.toml
    joulemap hardware template --architecture npu > mine.toml
    joulemap hardware check mine.toml
    joulemap compare resnet18 --hardware ./mine.toml,tpu_v4
    """
    if bool(like) == bool(architecture):
        raise UsageError("name one of --like HARDWARE and --architecture CLASS")
    from joulemap.ask.hardware_file import template_text

    check_suffix(output, ".toml", "a hardware file")
    emit(template_text(like, find_class(architecture) or architecture).rstrip("\n"), output)


@app.command()
@command
def detect(
    *,
    device: Device = option("cpu", "Device of this machine."),
    threads: int | None = option(None, "Describe only this many CPU cores."),
    output: File = None,
) -> None:
    """Print a hardware file of this machine.

    Memory bandwidth and TDP of a CPU cannot be read. They are estimated and marked as assumed; replace them.

    \b
    joulemap hardware detect --output this.toml
    joulemap hardware check this.toml
    joulemap hardware detect --device cuda
    joulemap measure resnet18 --hardware ./this.toml
    """
    from joulemap.ask.measure import detect_text

    check_suffix(output, ".toml", "a hardware file")
    emit(detect_text(device, threads).rstrip("\n"), output)


@app.command()
@command
def sanity(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[HARDWARE]...", help=SEVERAL_HARDWARE, autocompletion=complete_hardware),
    ] = None,
    *,
    hardware: str = optional("The same, as an option.", "NAME,..."),
    output: OutputOptions,
) -> None:
    """Compare the predicted power of two kernels with measurements.

    A large matrix multiplication should draw 0.6 to 1.0 of the power cap. The predicted power of a stream copy should
    be within 25 % of the measured power, if there is a measurement.

    \b
    joulemap hardware sanity
    joulemap hardware sanity A100 H100 H200 tpu_v4
    joulemap hardware sanity mine.toml --format json
    """
    answer = output.workspace().sanity((*(names or ()), *([hardware] if hardware else ())))
    output.present(answer)


@app.command()
@command
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Hardware files, or folders of them.")],
    *,
    output: OutputOptions,
) -> None:
    """Check hardware files and try them on three models.

    Reports broken rules, and omitted fields with their default values.

    \b
    joulemap hardware check mine.toml
    joulemap hardware check chips/ --format json
    """
    from joulemap.ask.hardware_file import check_files

    output.check_file()
    output.present(check_files(files))
