"""How a language model is served: its requests, the engine, and how devices share the work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import attrs

from joulemap.cli.command import option
from joulemap.cli.complete import complete_engines, complete_hardware, complete_precisions, offer
from joulemap.cli.option.run import GIVEN, ManyRunOptions, WholeRunOptions, precisions, repeat_options
from joulemap.cli.output import OutputOptions
from joulemap.cli.value import read_as, read_counts
from joulemap.system.errors import UsageError
from joulemap.system.number import read_whole
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Serving, SettingsKeywords

Phase = Literal["prefill", "decode"]

PRECISION: Final = "bf16"
"""At which a language model is run where nothing else is asked for."""


ENGINE: Final = "vllm"
"""What serves a language model where nothing else is asked for."""

PASS: Final = ("prompt", "cached", "devices", "expert_devices", "engine")
"""Options that say which pass of a model is meant."""


@frozen(kw_only=True)
class ServerOptions:
    """What each request is, what serves it, and how devices share the work."""

    prompt: int = option(2048, "Tokens of each prompt.", min=1)
    output_tokens: str = option("256", "Tokens of each answer; -o names a file.", "--output", metavar="TOKENS")
    engine: str = option(
        ENGINE,
        "What serves it, as it is or as it was: vllm, vllm@2024, sglang, trtllm, llamacpp, hf …",
        complete=complete_engines,
    )
    devices: str = option(
        "",
        "Tensor-parallel devices; comma-separated to compare.",
        shown="as few as hold the model and the smallest batch; fleet searches up to a node",
    )
    expert_devices: int = option(1, "Of all devices, that whole experts are divided among.", min=1)
    data_devices: int = option(1, "Groups of those, that sequences are divided among in attention.", min=1)
    pipeline_devices: int = option(1, "Stages of layers, each with all of those.", min=1)
    cache: str = option(
        "", "Precision of keys and values, e.g. fp8.", shown="that of activations", complete=complete_precisions
    )

    handover: str = option("50GB/s", "Between devices of the pools for prompts and for answers, for the cache.")

    def read(self) -> Serving:
        """Return what is asked of a server; UsageError names the option that cannot be read."""
        from joulemap.domain.settings import Serving

        try:
            output = read_whole(self.output_tokens)
        except ValueError:
            raise UsageError(
                f"--output is a number of tokens here, found {self.output_tokens}; -o names a file"
            ) from None
        return read_as(Serving, self, output=output, devices=read_counts("--devices", self.devices))


@frozen(kw_only=True)
class ServingOptions(ServerOptions):
    """What is asked of a server, and how requests come to it."""

    rate: str = option("", "Requests that come by themselves, e.g. 4/s: their spread of times, one by one.")
    in_flight: int | None = option(None, "Requests in work: each comes as another ends.", min=1)
    requests: Path | None = option(
        None,
        "Requests of a file, with the columns prompt_tokens, output_tokens, and arrival_s, cached_tokens or "
        "not; with --rate or --in-flight their lengths alone.",
        metavar="FILE.csv",
    )

    speculate: int | None = option(None, "Tokens guessed ahead of each sequence in a step.", min=1)
    acceptance: float | None = option(None, "Of guesses, that hold where those before them do.", min=0.0, max=1.0)
    draft: str = option(
        "",
        "What guesses: a smaller language model of the same tokens, or `layer`, one more of the model's own.",
        metavar="MODEL",
        shown="guesses that cost nothing",
        complete=offer("wing.llm.decoder.name.list_decoders", is_one=True),
    )
    prefill_on: str = option(
        "",
        "Two pools of servers: this one reads prompts, --decode-on gives the other tokens; with a load.",
        metavar="HARDWARE",
        complete=complete_hardware,
    )
    decode_on: str = option("", "Of the pool that answers.", metavar="HARDWARE", complete=complete_hardware)

    def read(self) -> Serving:
        """Return what is asked of a server; UsageError names the option that cannot be read."""
        if self.handover != "50GB/s" and not self.prefill_on:
            raise UsageError("--handover is between two pools: add --prefill-on and --decode-on")
        return super().read()


@frozen(kw_only=True)
class PassRunOptions(WholeRunOptions):
    """How a model is run, or one pass of a language model as it is served."""

    phase: Phase | None = option(
        None,
        "Of a language model by name, e.g. llama-3.1-8b: the pass of its prompts, or one step that adds a "
        "token to each sequence; at bf16 and runtime engine unless told else.",
        shown="the model as it is named",
    )
    prompt: int = option(2048, "With --phase prefill: tokens of each prompt.", min=1)
    cached: int = option(2048, "With --phase decode: tokens before the one that is added.", min=0)
    devices: int = option(1, "With --phase: devices that divide each product.", min=1)
    expert_devices: int = option(1, "With --phase: of these, that experts are divided among.", min=1)
    engine: str = option(
        "", "With --phase: whose kernels run it, as llm has it.", shown=ENGINE, complete=complete_engines
    )
    precision: str = precisions(
        "",
        "fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4.",
        shown="fp32; with --phase bf16, and weights as published",
    )

    def name(self, model: str) -> str:
        """Return the name of the pass that is asked for, of the model itself without a phase."""
        if self.phase is None:
            if given := repeat_options(self, PASS):
                raise UsageError(f"{given[0]} is of a pass: add --phase prefill or decode")
            return model
        sizes: dict[str, int | str] = {"tokens": self.prompt} if self.phase == "prefill" else {"cached": self.cached}
        sizes |= {name: getattr(self, name) for name in ("devices", "expert_devices") if getattr(self, name) > 1}
        sizes["engine"] = self.engine or ENGINE
        return f"{model}({','.join(f'{name}={size}' for name, size in sizes.items())})"

    def of_checkpoint(self, model: str) -> PassRunOptions:
        """Return the options with the weights of a pass as its checkpoint stores them, unless a precision is given."""
        if self.phase is None or self.precision or self.weight_precision:
            return self
        from joulemap.wing.llm.engine import find_published

        return attrs.evolve(self, weight_precision=find_published(model))

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        return super(PassRunOptions, self._with_usual()).keywords()

    def repeat(self) -> tuple[str, ...]:
        """Return the options as a follow-up command must repeat them, about the pass by its name."""
        return repeat_options(self if self.phase is None else self._with_usual(), self.repeated)

    def _with_usual(self) -> PassRunOptions:
        """Return it with the usual precision, and as the engine runs a pass, where nothing else is asked for."""
        if self.phase is None:
            return attrs.evolve(self, precision=self.precision or "fp32")
        from joulemap.wing.llm.engine import find_runtime

        runtime = self.runtime or find_runtime(self.engine or ENGINE)
        return attrs.evolve(self, precision=self.precision or PRECISION, runtime=runtime)


@frozen(kw_only=True)
class ServedRunOptions(ManyRunOptions):
    """How a language model is run as it is served."""

    repeated: ClassVar[tuple[str, ...]] = GIVEN
    batch: str = option("1,8,64", "Sequences at a time, comma-separated.", "--batch", "-b")
    precision: str = precisions(
        "",
        "Of activations and products, comma-separated: bf16, fp16, fp8, int8, fp4 …; weights too, unless "
        "--weight-precision names their own.",
        shown="as the checkpoint is published",
    )
    runtime: str = option("", hidden=True)


@frozen(kw_only=True)
class ServedOutputOptions(OutputOptions):
    """Where results are kept, and how an answer is written where --output is a number of tokens."""

    output: Path | None = option(
        None,
        "Write the answer to this file, not to stdout: .txt, .json, .csv, .md, .html or .parquet.",
        "--output-file",
        "-o",
    )
