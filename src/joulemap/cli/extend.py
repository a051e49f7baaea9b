"""Write or check a package that adds chips for everybody who installs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulemap.cli.command import command, optional
from joulemap.cli.complete import complete_architectures, complete_hardware
from joulemap.cli.output import OutputOptions, emit_line
from joulemap.cli.usage import group

app = group(__doc__)


@app.command("new-chip")
@command
def new_chip(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the chip: lower case letters, digits and _.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="New folder; by default joulemap-NAME.")
    ] = None,
    *,
    like: str = optional("Chip whose numbers to start from.", "HARDWARE", complete=complete_hardware),
    architecture: str = optional(
        "Class of the chip, whose default chip to start from.", "CLASS", complete=complete_architectures
    ),
) -> None:
    """Write a package with a chip, its measurements, a page and a test.

    Numbers are those of another chip, each marked as copied: the check fails until you replace them.

    \b
    joulemap extend new-chip my_gpu --like l4
    joulemap extend new-chip my_npu my_package/ --architecture npu
    """
    from joulemap.ask.hardware_file import start_package

    place, files = start_package(name, folder, like=like, architecture=architecture)
    for file in files:
        emit_line(str(file))
    emit_line(f"Next: {place}/README.md, then `joulemap extend check {place}`")


@app.command()
@command
def check(
    package: Annotated[
        Path, typer.Argument(metavar="[FOLDER|PACKAGE]", help="Folder of a package, or name of an installed one.")
    ] = Path(),
    *,
    output: OutputOptions,
) -> None:
    """Check a package with chips, installed or not.

    Checks keys, units, names and sources, and scores the measurements. Predictions of a few models are tested too:
    energies must add up, and no unit may exceed its peak. A higher clock or bandwidth may not be slower, and a larger
    batch may not need less energy. Exits with 6 if a check finds a fault.

    \b
    joulemap extend check
    joulemap extend check joulemap-my-gpu --format json
    """
    from joulemap.show.package_check import check_package
    from joulemap.system.errors import UnsoundPackageError

    output.check_file()
    checked = check_package(package)
    output.present(checked)
    if not checked.is_sound:
        raise UnsoundPackageError(f"{checked.package}: a check found a fault")
