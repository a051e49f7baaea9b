"""`joulemap architectures`."""

from __future__ import annotations

from typing import Annotated

import attrs
import typer

from joulemap.cli.command import command, option
from joulemap.cli.complete import complete_models
from joulemap.cli.option.hardware import ClassHardwareOptions
from joulemap.cli.option.run import MODEL_HELP, ClassRunOptions
from joulemap.cli.output import OutputOptions
from joulemap.cli.panel import OUTPUT
from joulemap.domain.settings import ClassDivision
from joulemap.system.wing import find_parts


@command
def architectures(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help=f"{MODEL_HELP} llm contrasts prefill and decode.",
            autocompletion=complete_models,
        ),
    ] = "resnet18",
    *,
    level: ClassDivision = option(
        "class",
        "Table: class (one page), category (energy by shared category) or action (count, energy and source).",
    ),
    limit: int = option(4, "Maximum actions per class; json and csv have all.", min=1, panel=OUTPUT),
    hardware: ClassHardwareOptions,
    run: ClassRunOptions,
    output: OutputOptions,
) -> None:
    """Contrast the architecture classes on one model.

    Shows how a CPU, GPU, TPU, KPU, DSP, NPU, DPU and CGRA spend energy, and the energy of one MAC. It is made for
    learning and teaching. json has every table, csv one.

    `llm` as MODEL contrasts prefill and decode of a language model on a CPU, GPU, TPU and NPU.

    \b
    joulemap architectures
    joulemap architectures vit_b_16 --precision bf16 --batch 16
    joulemap architectures mobilenet_v2 --where architecture=cpu,gpu,tpu --level category
    joulemap architectures llm
    joulemap architectures ./mine.py:net --hardware h100_sxm5,l4,hailo_8 --level action --format csv
    """
    other = next((one for one in find_parts("contrasts") if one.name == model.lower()), None)
    if other is not None:
        usual = attrs.evolve(run, precision=run.precision or other.precision, runtime=run.runtime or other.runtime)
        contrast = other.ask(output.workspace(), usual.settings(**hardware.keywords()))
        output.present(contrast, repeated=output.repeat_database())
        return
    settings = run.settings(**hardware.keywords())
    answer = output.workspace().architectures(model, settings)
    output.present(answer, run, by=level, limit=limit)
