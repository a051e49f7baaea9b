"""List models and show their profiles and operators."""

from __future__ import annotations

import attrs

from joulemap.cli.command import command, option, optional
from joulemap.cli.complete import complete_hardware
from joulemap.cli.option.run import Limit, Model, ModelOptions, WholeRunOptions, repeat_options
from joulemap.cli.output import OutputOptions
from joulemap.cli.usage import group
from joulemap.system.errors import UsageError

app = group(__doc__)


@app.command("list")
@command
def list_(*, output: OutputOptions) -> None:
    """List the built-in models by task, which need no torch.

    A terminal shows the first models of each task, and `--show details` all.

    \b
    joulemap model list
    joulemap model list --format csv
    """
    from joulemap.show.model import MOST_OF_TASK, list_models

    table = output.workspace().describe("model.list")
    most = MOST_OF_TASK if output.height else None
    output.write(list_models(*output.fold(table, most, "task")))


@app.command()
@command
def show(
    model: Model,
    *,
    energy: str = optional(
        "Hardware on which to show latency and energy of each module.", "HARDWARE", complete=complete_hardware
    ),
    depth: int | None = option(None, "Maximum depth of the module tree.", min=0, shown="fits a screen"),
    limit: Limit = 12,
    run: WholeRunOptions,
    output: OutputOptions,
) -> None:
    """Show MACs, bytes, intensity and operators of a model.

    The profile is independent of hardware. With `--energy`, a table of modules shows output, weights, MACs, latency and
    energy on one chip; they sum exactly to the run.

    \b
    joulemap model show vit_b_16
    joulemap model show attention_head --model-arg tokens=1024 --format json
    joulemap model show resnet50 --energy l4 --precision bf16
    joulemap model show swin_t --energy Jetson-Orin-Nano@15W --depth 3
    """
    workspace = output.workspace()
    if energy:
        answer = workspace.modules(model, energy, run.settings())
        output.present(answer, run, depth=depth)
        return
    built = {field.name for field in attrs.fields(ModelOptions)}
    others = [field.name for field in attrs.fields(WholeRunOptions) if field.name not in built]
    if given := [*repeat_options(run, others)[::2], *["--depth"] * (depth is not None)]:
        raise UsageError(f"{', '.join(given)}: a table of modules needs hardware: name it with --energy")
    output.present(workspace.profile(model, ModelOptions.settings(run)), limit=limit)


@app.command()
@command
def trace(model: Model, *, build: ModelOptions, output: OutputOptions) -> None:
    """List the operators of a model in execution order.

    Shows shapes, counts, bytes and subgraphs.

    \b
    joulemap model trace resnet18
    joulemap model trace ./mine.py:net --input 1,3,64,64 --format csv
    """
    table = output.workspace().operators(model, build.settings())
    columns = (
        "name | operation | output_shape | mac_count | input_bytes | weight_bytes | output_bytes | "
        "bias_element_count | subgraph_index | fusion_pattern | is_counted"
    )
    keep = "operation output_shape mac_count weight_bytes fusion_pattern"
    output.write_table(table, columns=columns, keep=keep)
