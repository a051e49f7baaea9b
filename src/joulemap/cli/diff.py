"""`joulemap diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from joulemap.cli.command import command, option
from joulemap.cli.option.hardware import NamedHardwareOptions
from joulemap.cli.option.run import RunOptions
from joulemap.cli.output import OutputOptions
from joulemap.cli.value import read_shares


@command
def diff(
    before: Annotated[str, typer.Argument(help="A model, or REV:path/to/file.py:NAME of a commit.")],
    after: Annotated[str, typer.Argument(help="Its other version, named likewise.")],
    *,
    hardware: NamedHardwareOptions,
    fail_above: list[str] | None = option(
        None,
        "Exit with 10 where this grows by more, e.g. energy=5%, and surely grows: latency, energy, memory or "
        "cost; for several with commas, or repeated.",
        metavar="METRIC=PERCENT",
        shown="never",
    ),
    limit: int = option(5, "Operators to show that differ; json has all.", min=1),
    run: RunOptions,
    output: OutputOptions,
) -> None:
    """Say what a change of a model changes: latency, energy, memory and cost before and after, and how sure it is.

    Both versions share the errors of a prediction on the same hardware; a change is sure where its 80 % interval does
    not hold none. Code is traced as it stands, or as the commit has it.

    \b
    joulemap diff resnet18 resnet34
    joulemap diff HEAD:net.py:net net.py:net --hardware l4,jetson_orin_nano_8gb
    joulemap diff main:models/net.py:net HEAD:models/net.py:net --fail-above energy=5% --fail-above latency=10%
    joulemap diff HEAD~1:net.py:net net.py:net --precision int8 --format markdown
    """
    allowed = read_shares("--fail-above", fail_above)
    answer = output.workspace().diff(before, after, run.settings(**hardware.keywords()), fail_above=allowed)
    output.write(answer.document(limit=limit, repeated=output.repeat(run)))
    if answer.failures:
        from joulemap.system.errors import ThresholdError

        raise ThresholdError("; ".join(answer.failures))
