"""Models: which there are, what they consist of."""

from __future__ import annotations

import typer

from joulemap.cli.command import command
from joulemap.cli.option.run import Limit, Model, ModelOptions
from joulemap.cli.output import OutputOptions

app = typer.Typer(help=__doc__, rich_markup_mode=None)


@app.command("list")
@command
def list_(*, output: OutputOptions) -> None:
    """List the models known by name. Needs no torch.

    \b
    joulemap model list
    joulemap model list --format csv
    """
    table = output.workspace().describe("model.list")
    output.write_table(table, keep=("parameter_count", "mac_count", "family"))


@app.command()
@command
def show(model: Model, *, limit: Limit = 12, build: ModelOptions, output: OutputOptions) -> None:
    """Show a model's profile: MACs, bytes, arithmetic intensity, operation mix, activation peak, fusion patterns.

    It depends on no hardware.

    \b
    joulemap model show vit_b_16
    joulemap model show attention_head --model-arg tokens=1024 --format json
    """
    answer = output.workspace().profile(model, build.settings())
    output.write(answer.document(limit=limit))


@app.command()
@command
def trace(model: Model, *, build: ModelOptions, output: OutputOptions) -> None:
    """Show a model's operators in execution order, with shapes, counts, bytes and subgraphs.

    \b
    joulemap model trace resnet18
    joulemap model trace ./mine.py:net --input 1,3,64,64 --format csv
    """
    table = output.workspace().operators(model, build.settings())
    columns = ("name", "operation", "output_shape", "mac_count", "input_bytes", "weight_bytes", "output_bytes",
               "bias_element_count", "subgraph_index", "fusion_pattern", "is_counted")  # fmt: skip
    keep = ("operation", "output_shape", "mac_count", "weight_bytes", "fusion_pattern")
    output.write_table(table, columns=columns, keep=keep)
