"""`joulemap diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import NamedHardwareOptions
from joulemap.cli.option.run import RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.cli.panel import OUTPUT
from joulemap.cli.value import read_shares


@command
def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="Model, or REV:path/to/file.py:NAME of a commit.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="Other version of the model, named in the same way.")],
    *,
    hardware: NamedHardwareOptions,
    fail_above: list[str] | None = option(
        None,
        "Exit with 10 if latency, energy, memory or cost grows significantly and by more than PERCENT; repeatable.",
        metavar="METRIC=PERCENT",
        shown="never",
    ),
    limit: int = option(5, "Maximum changed subgraphs to show; json has all.", min=1, panel=OUTPUT),
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Compare two versions of a model.

    Shows latency, energy, memory and cost before and after. Code is traced from the working tree or from a commit. A
    change counts as significant if its 80 % interval excludes zero; prediction errors that both versions share cancel
    out.

    \b
    joulemap diff resnet18 resnet34
    joulemap diff HEAD:net.py:net net.py:net --hardware l4,jetson_orin_nano_8gb
    joulemap diff main:models/net.py:net HEAD:models/net.py:net --fail-above energy=5% --fail-above latency=10%
    joulemap diff HEAD~1:net.py:net net.py:net --precision int8 --format markdown
    """
    allowed = read_shares("--fail-above", fail_above)
    answer = output.workspace().diff(before, after, run.settings(**hardware.keywords()), fail_above=allowed)
    output.present(answer, run, limit=limit)
    from joulemap.show.diff import list_failures

    if failures := list_failures(answer.facts):
        from joulemap.system.errors import ThresholdError

        raise ThresholdError("; ".join(failures))
