"""How a language model is served: its requests, the engine, and how devices share the work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import attrs
import typer

from joulemap.cli.complete import complete_engines, complete_precisions
from joulemap.cli.option.run import GIVEN, RunOptions, repeat_options
from joulemap.cli.output import OutputOptions
from joulemap.cli.value import read_counts, read_quantity
from joulemap.domain.dimension import ASKED
from joulemap.system.errors import UsageError
from joulemap.system.number import read_whole
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Serving, SettingsKeywords

Phase = Literal["prefill", "decode"]

RUN: Final = {"precision": "fp32", "runtime": ""}
PASS: Final = {"precision": "bf16", "runtime": "engine"}
"""How a model, and a pass of a language model, is run where nothing else is asked for."""


@frozen(kw_only=True)
class ServerOptions:
    """What each request is, what serves it, and how devices share the work."""

    prompt: Annotated[int, typer.Option("--prompt", min=1, help="Tokens of each prompt.")] = 2048
    output_tokens: Annotated[
        str, typer.Option("--output", metavar="TOKENS", help="Tokens of each answer; -o names a file.")
    ] = "256"
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="What serves it, with or without a date: vllm, sglang, trtllm, llamacpp, hf …",
            autocompletion=complete_engines,
        ),
    ] = "vllm"
    devices: Annotated[
        str,
        typer.Option(
            "--devices",
            help="That divide each product (tensor parallel); comma-separated to compare.",
            show_default="as few as hold the model and the smallest batch",
        ),
    ] = ""
    expert_devices: Annotated[
        int, typer.Option("--expert-devices", min=1, help="Of those, that whole experts are divided among.")
    ] = 1
    data_devices: Annotated[
        int, typer.Option("--data-devices", min=1, help="Of those, that sequences are divided among in attention.")
    ] = 1
    cache: Annotated[
        str,
        typer.Option(
            "--cache",
            help="Precision of keys and values, e.g. fp8.",
            show_default="that of activations",
            autocompletion=complete_precisions,
        ),
    ] = ""

    def read(self) -> Serving:
        """Return what is asked of a server; UsageError names the option that cannot be read."""
        from joulemap.domain.settings import Serving

        try:
            output = read_whole(self.output_tokens)
        except ValueError:
            raise UsageError(
                f"--output is a number of tokens here, found {self.output_tokens}; -o names a file"
            ) from None
        return Serving(
            prompt=self.prompt,
            output=output,
            engine=self.engine,
            devices=read_counts("--devices", self.devices),
            expert_devices=self.expert_devices,
            data_devices=self.data_devices,
            cache=self.cache,
        )


@frozen(kw_only=True)
class ServingOptions(ServerOptions):
    """What is asked of a server, and how requests come to it."""

    rate: Annotated[
        str,
        typer.Option("--rate", help="Requests that come by themselves, e.g. 4/s: their spread of times, one by one."),
    ] = ""
    in_flight: Annotated[
        int | None, typer.Option("--in-flight", min=1, help="Requests in work: each comes as another ends.")
    ] = None
    requests: Annotated[
        Path | None,
        typer.Option(
            "--requests",
            metavar="FILE.csv",
            help="Requests of a file, with the columns prompt_tokens, output_tokens, and arrival_s, cached_tokens or "
            "not; with --rate or --in-flight their lengths alone.",
        ),
    ] = None

    def read(self) -> Serving:
        """Return what is asked of a server; UsageError names the option that cannot be read."""
        return attrs.evolve(
            super().read(),
            rate_per_s=read_quantity("--rate", self.rate, "1/s"),
            in_flight=self.in_flight,
            requests="" if self.requests is None else str(self.requests),
        )


@frozen(kw_only=True)
class PassRunOptions(RunOptions):
    """How a model is run, or one pass of a language model as it is served."""

    phase: Annotated[
        Phase | None,
        typer.Option(
            "--phase",
            help="Of a language model by name, e.g. llama-3.1-8b: the pass of its prompts, or one step that adds a "
            "token to each sequence; at bf16 and runtime engine unless told else.",
            show_default="the model as it is named",
        ),
    ] = None
    prompt: Annotated[int, typer.Option("--prompt", min=1, help="With --phase prefill: tokens of each prompt.")] = 2048
    cached: Annotated[
        int, typer.Option("--cached", min=0, help="With --phase decode: tokens before the one that is added.")
    ] = 2048
    devices: Annotated[
        int, typer.Option("--devices", min=1, help="With --phase: devices that divide each product.")
    ] = 1
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            help="fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4.",
            show_default="fp32; bf16 with --phase",
            autocompletion=complete_precisions,
        ),
    ] = ""

    def name(self, model: str) -> str:
        """Return the name of the pass that is asked for, of the model itself without a phase."""
        if self.phase is None:
            return model
        sizes = {"tokens": self.prompt} if self.phase == "prefill" else {"cached": self.cached}
        sizes |= {"devices": self.devices} if self.devices > 1 else {}
        return f"{model}({','.join(f'{name}={size}' for name, size in sizes.items())})"

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        return super(PassRunOptions, self._with_usual()).keywords()

    def repeat(self) -> tuple[str, ...]:
        """Return the options as a follow-up command must repeat them, about the pass by its name."""
        return repeat_options(self if self.phase is None else self._with_usual(), (*ASKED, "batch", *GIVEN))

    def _with_usual(self) -> PassRunOptions:
        """Return it with the precision and runtime that are usual where none is asked for."""
        usual = RUN if self.phase is None else PASS
        return attrs.evolve(
            self, precision=self.precision or usual["precision"], runtime=self.runtime or usual["runtime"]
        )


@frozen(kw_only=True)
class ServedRunOptions(RunOptions):
    """How a language model is run as it is served."""

    batch: Annotated[str, typer.Option("--batch", "-b", help="Sequences at a time, comma-separated.")] = "1,8,64"
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            help="Of activations and products, comma-separated: bf16, fp16, fp8, int8, fp4 …",
            autocompletion=complete_precisions,
        ),
    ] = PASS["precision"]
    runtime: Annotated[str, typer.Option("--runtime", hidden=True)] = ""

    def repeat(self) -> tuple[str, ...]:
        """Return the options that a command about one of the passes must repeat."""
        return repeat_options(self, GIVEN)


@frozen(kw_only=True)
class ServedOutputOptions(OutputOptions):
    """Where results are kept, and how an answer is written where --output is a number of tokens."""

    output: Annotated[
        Path | None,
        typer.Option(
            "--output-file",
            "-o",
            help="Write the answer to this file, not to stdout: .txt, .json, .csv, .md, .html or .parquet.",
        ),
    ] = None
