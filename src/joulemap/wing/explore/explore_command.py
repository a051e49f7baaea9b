"""`joulemap explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from joulemap.cli import OUTPUT, Limit, OutputOptions, complete_models
from joulemap.cli.command import advanced, command, option
from joulemap.cli.option.run import MODEL_HELP, CandidateRunOptions
from joulemap.cli.voice import voice
from joulemap.system import UsageError
from joulemap.wing.decoder import PassRunOptions
from joulemap.wing.explore.option import DesignOptions


@command
def explore(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="MODEL...", help=MODEL_HELP, autocompletion=complete_models)
    ] = None,
    *,
    limit: Limit = 8,
    everything: bool = advanced(
        False,
        "Compare existing chips instead, in every mode: the best per model and the best for all models.",
        "--all",
    ),
    save_as: Path | None = option(
        None,
        "Hardware file (.toml) for the best design in the first objective.",
        metavar="FILE.toml",
        panel=OUTPUT,
    ),
    design: DesignOptions,
    run: PassRunOptions,
    output: OutputOptions,
) -> None:
    """Search for better designs of a chip.

    Finds the best designs and those statistically tied with them. Dependent constants follow: peak rates follow units
    and clock, voltage follows clock, wires and static power follow area.

    `--show notes` lists the rules for dependent constants. The search needs `pip install 'joulemap[arrow]'`.

    \b
    joulemap explore mobilenet_v2 --like kpu_t256 --vary units=16:256:*2 --precision int8 --lake designs
    joulemap explore resnet50 vit_b_16 --share resnet50=0.7 --like l4 --vary units=x0.5,x1 --vary clock=x0.5:x1.2:8
    joulemap explore llama-3.1-8b --phase decode --like l4 --vary dram.bandwidth=x1:x4:4 --vary dram.capacity=x1,x2
    joulemap explore mobilenet_v2 --like kpu_t256 --solve dram.bandwidth --for "latency = 150us" --precision int8
    joulemap explore resnet18 mobilenet_v2 vit_b_16 --all --like gpus --precision int8,fp16 --max-power 75W
    """
    run = run.of_checkpoint(models[0]) if models and len(models) == 1 else run
    models, given = [run.name(model) for model in models or ()], design.keywords()
    given["share"] = {run.name(model): share for model, share in given["share"].items()}
    if everything:
        unused = design.list_design_options() + ["--save-as"] * (save_as is not None)
        _explore_all(tuple(models), limit, given, unused, run, output)
        return
    if not models:
        raise UsageError("name a model, or --all for every model and chip; see `joulemap model list`")
    answer = output.workspace().explore(models, run.settings(), **given)
    if save_as is not None:
        voice.inform(f"wrote {answer.save(save_as)}")
    output.present(answer, run, limit=limit)


def _explore_all(
    models: tuple[str, ...],
    limit: int,
    given: dict[str, Any],
    unused: list[str],
    run: PassRunOptions,
    output: OutputOptions,
) -> None:
    if unused:
        raise UsageError(f"--all takes chips as they are: leave out {', '.join(unused)}")
    if not run.phase:
        usual = CandidateRunOptions()
        run = attrs.evolve(run, precision=run.precision or usual.precision, runtime=run.runtime or usual.runtime)
    settings = run.settings(hardware=given["like"])
    answer = output.workspace().explore_all(
        models, settings, share=given["share"], objective=given["objectives"][0], limits=given["limits"]
    )
    output.present(answer, limit=limit)
