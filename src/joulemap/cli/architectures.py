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
from joulemap.domain.settings import ClassDivision
from joulemap.system.wing import find_parts


@command
def architectures(
    model: Annotated[
        str, typer.Argument(help=f"{MODEL_HELP} llm: prefill and decode.", autocompletion=complete_models)
    ] = "resnet18",
    *,
    level: ClassDivision = option(
        "class",
        "class: all on a page; category: each class by the categories that all share, with what is known of "
        "it; action: every action of each class, with its count, price and source.",
    ),
    limit: int = option(4, "Actions of each class to show on the page; json and csv have all.", min=1),
    hardware: ClassHardwareOptions,
    run: ClassRunOptions,
    output: OutputOptions,
) -> None:
    """Contrast the architecture classes on a model: what each spends its joules on, what one MAC takes, and why.

    For people who learn or teach how a CPU, GPU, TPU, KPU, DSP, NPU, DPU and CGRA differ. A hardware without the
    precision is shown in the nearest that it has. json has every table, csv that of the level. `llm` sets the two
    phases of a language model side by side on a CPU, GPU, TPU and NPU.

    \b
    joulemap architectures
    joulemap architectures vit_b_16 --precision bf16 --batch 16
    joulemap architectures mobilenet_v2 --architecture cpu,gpu,tpu --level category
    joulemap architectures llm
    joulemap architectures ./mine.py:net --hardware h100_sxm5,l4,hailo_8 --level action --format csv
    """
    other = next((one for one in find_parts("contrasts") if one.name == model.lower()), None)
    if other is not None:
        usual = attrs.evolve(run, precision=run.precision or other.precision, runtime=run.runtime or other.runtime)
        found = other.ask(output.workspace(), usual.settings(**hardware.keywords()))
        output.write(found.document(repeated=output.repeat_database()))
        return
    settings = run.settings(**hardware.keywords())
    answer = output.workspace().architectures(model, settings)
    output.write(answer.document(by=level, limit=limit, repeated=output.repeat(run)))
