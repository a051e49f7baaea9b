"""How a model is built and run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast

import attrs
import typer

from joulemap.cli.command import name_option, option
from joulemap.cli.complete import (
    complete_boundaries,
    complete_hardware,
    complete_models,
    complete_precisions,
    complete_runtimes,
    complete_weights,
    complete_words,
)
from joulemap.cli.value import read_batches, read_quantity
from joulemap.domain.architecture import COMMON_PRECISION
from joulemap.domain.configuration import BOARD
from joulemap.domain.dimension import ASKED
from joulemap.domain.name import split_names
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings, SettingsKeywords

GIVEN: Final = ("inputs", "arguments", "config", "calibration", "host", "boundary", "tf32", "changes")
"""Options that every follow-up command repeats, whatever it chooses itself."""

MODEL_HELP: Final = (
    "A known name, an operator as gemm(m=1,n=4096,k=4096), file.py:factory, model.pt2, timm:NAME or hf:NAME."
)

CALIBRATION_HELP: Final = (
    "auto: what was fitted to measurements of a hardware, yours before what ships, else of its generation; own: the "
    "same without generations; none: class defaults; or a name or file of one, used for its hardware."
)

BOUNDARY_HELP: Final = (
    "What energies contain. board: the chip, its memory, voltage regulators and what the power limit says of a chip at "
    "work beyond its circuits; chip: the chip and its memory. Times are the same."
)

TF32_HELP: Final = (
    "Of fp32 on NVIDIA GPUs with TF32. allowed: convolutions run in TF32, PyTorch's default, and in engine all "
    "products, TensorRT's default; never: plain fp32."
)

HOST_HELP: Final = (
    "The computer that chips and cards sit in which need one, e.g. raspberry_pi_5: its static power joins their "
    "energies and counts within a power budget. `joulemap hardware list` says which need one. In eager it "
    "launches the kernels of GPUs, at its own pace."
)

WEIGHT_HELP: Final = (
    "What weights of products are stored at, where that is narrower than --precision: int8, fp8, int4 or fp4, with the "
    "size of the groups that share a scale as int4:64, fp8_block, mxfp4, awq, gptq, q4_k_m and others of llama.cpp, or "
    "bits as 4.64bit. They move and are kept at that width, products run at --precision, and kernels convert them."
)

SET_HELP: Final = (
    "What if: a number of the hardware in place of its own, as dram.read=31pJ, clock=1.2GHz, tdp=x1.5 or "
    "l4:static_power=12W for one hardware alone; repeat for several. `joulemap sensitivity` lists the names."
)

TrustRows = Annotated[
    bool, typer.Option("--trust", help="Run model files that measurements name, code as any other, to trace them.")
]


def precisions(default: str, told: str, *, shown: str | bool = True) -> Any:
    """Return the option that says what a model is run in, with what is told of it."""
    return option(default, told, "--precision", shown=shown, complete=complete_precisions)


Model = Annotated[str, typer.Argument(help=MODEL_HELP, autocompletion=complete_models)]
Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL... [HARDWARE]...",
        help="Known names, operators as gemm(m=1,n=4096,k=4096), file.py:factory, model.pt2, timm:NAME or hf:NAME; one "
        "or several. What is no model and names hardware is hardware, as with --hardware.",
        autocompletion=complete_words,
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Rows of each table to show; json and csv have all.")]


@frozen(kw_only=True)
class ModelOptions:
    """How a model is built and traced."""

    repeated: ClassVar[tuple[str, ...]] = ("batch", "inputs", "arguments", "config")
    """Options that a follow-up command must repeat."""

    batch: str = option("", "Samples in one input.", "--batch", "-b", shown="1, or the model's own")
    inputs: list[str] | None = option(
        None,
        "An input, batch first: 1,3,224,224 or ids=1,128:int64; repeat for several.",
        "--input",
        shown="the model's own",
    )
    arguments: list[str] | None = option(
        None,
        "name=value for a factory, a building block or the configuration of hf:NAME, as num_layers=2 or "
        "text_config.num_hidden_layers=2; repeat for several.",
        "--model-arg",
    )
    config: str = option(
        "",
        "The configuration of hf:NAME, as the config.json of a repository.",
        metavar="FILE.json",
        shown="its defaults",
    )
    retrace: bool = option(False, "Trace with the installed torch, not the workload that ships with joulemap.")
    trust: bool = option(False, "Load a .pt2 file also where it may run code of its own when it is loaded.")
    build_memory: str = option(
        "",
        "At most this memory to build a model that cannot be built without its weights, e.g. 4GB.",
        shown="half of what is free",
    )

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        from joulemap.trace.source import parse_argument

        return {
            "batch": read_batches(self.batch),
            "inputs": self.inputs or (),
            "arguments": dict(parse_argument(text) for text in self.arguments or ()),
            "config": self.config,
            "retrace": self.retrace,
            "trust": self.trust,
            "build_memory_bytes": read_quantity("--build-memory", self.build_memory, "B"),
        }

    def settings(self, **keywords: Any) -> Settings:
        """Return the settings asked for, with others of a command."""
        from joulemap.domain.settings import Settings

        return Settings(**{**self.keywords(), **keywords})

    def repeat(self) -> tuple[str, ...]:
        """Return the options as a follow-up command must repeat them; none for defaults."""
        return repeat_options(self, self.repeated)


@frozen(kw_only=True)
class RunOptions(ModelOptions):
    """How a model is run."""

    repeated: ClassVar[tuple[str, ...]] = (*ASKED, "batch", *GIVEN)
    precision: str = precisions("fp32", "fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4.")
    weight_precision: str = option(
        "", WEIGHT_HELP, metavar="NAME[:GROUP]", shown="that of activations", complete=complete_weights
    )
    runtime: str = option(
        "",
        "eager: a kernel per operator, launched by the host; graph: without host cost; "
        "fused: a kernel per subgraph, as torch.compile makes them; engine: as TensorRT, OpenVINO or a vendor's "
        "compiler makes them.",
        complete=complete_runtimes,
        shown="engine with --deployment or --scenario, else fused",
    )
    calibration: str = option("auto", CALIBRATION_HELP)
    host: str = option("", HOST_HELP, shown="not counted", complete=complete_hardware)
    boundary: str = option(BOARD, BOUNDARY_HELP, complete=complete_boundaries)
    tf32: str = option("allowed", TF32_HELP)
    changes: list[str] | None = option(None, SET_HELP, "--set", metavar="NAME=VALUE")

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        names: dict[str, Any] = {name: split_names(getattr(self, name)) for name in ASKED}
        return cast(
            "SettingsKeywords",
            {
                **super().keywords(),
                **names,
                "calibration": self.calibration,
                "host": self.host,
                "boundary": self.boundary,
                "tf32": self.tf32,
                "changes": self.changes,
            },
        )


@frozen(kw_only=True)
class ClassRunOptions(RunOptions):
    """How a model is run on each architecture class; a follow-up command has a precision of its own."""

    repeated: ClassVar[tuple[str, ...]] = (*(name for name in ASKED if "precision" not in name), "batch", *GIVEN)
    precision: str = precisions(
        "",
        "fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4; a hardware without it is shown in the "
        "nearest that it has.",
        shown="int8; bf16 for llm",
    )

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        return super(ClassRunOptions, attrs.evolve(self, precision=self.precision or COMMON_PRECISION)).keywords()


@frozen(kw_only=True)
class ManyRunOptions(RunOptions):
    """How models are run in many configurations, of which totals are evaluated."""

    ledger: bool = option(False, "Evaluate and store the ledger of each configuration too, not only its totals.")

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        return {**super().keywords(), "ledger": self.ledger}


@frozen(kw_only=True)
class CandidateRunOptions(ManyRunOptions):
    """How models are run in the configurations that are chosen from, of which a follow-up command names one."""

    repeated: ClassVar[tuple[str, ...]] = GIVEN
    batch: str = option(
        "", "Samples in one input, comma-separated.", "--batch", "-b", shown="1,8,32, or the input's own"
    )
    precision: str = precisions(
        "fp32,fp16,bf16,int8", "Comma-separated: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8, int4."
    )


@frozen(kw_only=True)
class DeployedRunOptions(CandidateRunOptions):
    """How models are run where they serve requests."""

    runtime: str = option(
        "engine",
        "engine: compiled by TensorRT, OpenVINO or a vendor's compiler; fused: by the framework; graph or eager.",
        complete=complete_runtimes,
    )


def repeat_options(record: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return fields of an option record that are not at their default, as they are written on the command line."""
    parts: list[str] = []
    for name in names:
        field = getattr(attrs.fields(type(record)), name)
        value = getattr(record, name)
        if value == field.default:
            continue
        for item in value if isinstance(value, list) else [value]:
            parts += [name_option(field), str(item)]
    return tuple(parts)


def name_options(record: Any) -> tuple[str, ...]:
    """Return the options of a record that are not at their default."""
    fields = attrs.fields(type(record))
    return tuple(name_option(field) for field in fields if getattr(record, field.name) != field.default)


@frozen(kw_only=True)
class WholeRunOptions(RunOptions):
    """How a model is run as it is named."""

    def name(self, model: str) -> str:
        """Return the name of what is run: the model, or the pass of it that is asked for."""
        return model

    def of_checkpoint(self, model: str) -> WholeRunOptions:
        """Return the options with the weights of a model as its checkpoint stores them, where none are given."""
        del model
        return self
