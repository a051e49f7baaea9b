"""Export one run to pprof, Perfetto or Model Explorer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from joulemap.cli.command import command, option, optional
from joulemap.cli.complete import complete_hardware
from joulemap.cli.option.hardware import OneHardwareOptions
from joulemap.cli.option.run import Model, WholeRunOptions
from joulemap.cli.output import DatabaseOptions, check_suffix, emit_pieces
from joulemap.cli.usage import group
from joulemap.cli.voice import voice
from joulemap.domain.metric import PartMetricName
from joulemap.system.errors import UsageError
from joulemap.system.file import check_output, write_pieces
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.workspace import Workspace

app = group(__doc__)

PROFILE: Final = (".pb.gz", "a gzipped profile")
TRACE: Final = (".json", "a trace in JSON")
NODE_DATA: Final = (".json", "node data in JSON")
"""File suffix of node data for Model Explorer, and a phrase for its content."""


@frozen(kw_only=True)
class FileOptions(DatabaseOptions):
    """Options for the database and the exported file."""

    output: Path | None = option(None, "File to write.", "--output", "-o", shown="stdout")

    def workspace(self, suffix: str, what: str) -> Workspace:
        """Return the workspace of the database.

        Raises UsageError, before any work, for an output that cannot be written or has the suffix of another format.
        """
        check_suffix(self.output, suffix, what)
        if self.output is not None:
            check_output(self.output, self.guarded(self.output))
        return self.open()

    def write(self, opened: AbstractContextManager[Iterator[bytes]]) -> None:
        """Write the pieces of a file one by one."""
        with opened as pieces:
            if self.output is None:
                emit_pieces(piece.decode() for piece in pieces)
            elif write_pieces(self.output, pieces, self.guarded(self.output)):
                voice.inform(f"wrote {self.output}")


@frozen(kw_only=True)
class ProfileOptions(FileOptions):
    """Options for the database and a binary file, which is never written to the terminal."""

    output: Path | None = option(None, "File to write (required).", "--output", "-o")


@app.command()
@command
def pprof(
    model: Model,
    *,
    hardware: OneHardwareOptions,
    against: str = optional(
        "Hardware to subtract: the profile is HARDWARE minus this one.", "NAME", complete=complete_hardware
    ),
    run: WholeRunOptions,
    file: ProfileOptions,
) -> None:
    """Write a run as a profile for pprof or speedscope.

    Samples are energy, time, bytes and MACs; they sum to the run exactly, in femtojoules and femtoseconds. Stacks are
    model, modules, operator and action.

    \b
    joulemap export pprof resnet18 l4 -o l4.pb.gz
    joulemap export pprof resnet18 h100_sxm5 --precision bf16 --against l4 -o difference.pb.gz
    """
    settings, named = run.settings(), hardware.read()
    if file.output is None:
        raise UsageError("a profile is a binary file: name it with --output, e.g. profile.pb.gz")
    file.write(file.workspace(*PROFILE).export(model, named, "pprof", settings, against=against or None))


@app.command()
@command
def perfetto(model: Model, *, hardware: OneHardwareOptions, run: WholeRunOptions, file: FileOptions) -> None:
    """Write a run as a trace for Perfetto or chrome://tracing.

    Shows kernels, power and memory over time, for example at ui.perfetto.dev.

    \b
    joulemap export perfetto resnet18 l4 -o l4.json
    joulemap export perfetto vit_b_16 h100_sxm5 --precision bf16 --runtime eager -o eager.json
    """
    settings, named = run.settings(), hardware.read()
    file.write(file.workspace(*TRACE).export(model, named, "perfetto", settings))


@app.command()
@command
def explorer(
    model: Model,
    *,
    hardware: OneHardwareOptions,
    metric: PartMetricName = option("energy", "Metric that colours the nodes; memory is off-chip bytes."),
    run: WholeRunOptions,
    file: FileOptions,
) -> None:
    """Write node data that colour a graph in Model Explorer.

    MODEL is a .pt2 file of torch.export.save. Needs torch.

    \b
    joulemap export explorer net.pt2 l4 -o net.json
    joulemap export explorer net.pt2 h100_sxm5 --precision bf16 --metric latency -o latency.json
    """
    settings, named = run.settings(), hardware.read()
    file.write(file.workspace(*NODE_DATA).export(model, named, "explorer", settings, metric=metric))
