"""Options for the model and how it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar, cast

import attrs
import typer

from joulemap.cli.command import advanced, name_option, option
from joulemap.cli.complete import (
    complete_boundaries,
    complete_models,
    complete_precisions,
    complete_runtimes,
    complete_site,
    complete_weights,
    complete_words,
)
from joulemap.cli.panel import COST, OUTPUT, WORKLOAD, HelpPosition
from joulemap.cli.value import read_batches
from joulemap.domain.architecture import COMMON_PRECISION
from joulemap.domain.dimension import ASKED, DECLARED
from joulemap.domain.label import BOUNDARY_LABEL
from joulemap.physics.record.configuration import BOARD, BOUNDARY_NAMES, SYSTEM
from joulemap.physics.record.product import DEFAULT, MATMUL_PRECISIONS
from joulemap.physics.record.runtime import DEPLOYED_RUNTIME, RUNTIME_NAMES, USUAL_RUNTIME
from joulemap.system.config import habit
from joulemap.system.errors import UsageError
from joulemap.system.name import join_choices, split_names
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.settings import Settings, SettingsKeywords

Record = TypeVar("Record")

GIVEN: Final = (
    "inputs",
    "arguments",
    "config",
    "calibration",
    "site",
    "boundary",
    "matmul_precision",
    "changes",
)
"""Options that every follow-up command repeats, in addition to its own."""

MODEL_HELP: Final = (
    "Model name, operator such as gemm(m=1,n=4096,k=4096), file.py:factory, .pt2, .onnx, .gguf, timm:NAME or hf:NAME."
)

CALIBRATION_HELP: Final = (
    "Calibration: auto (this chip, else its generation), own (this chip), none (class defaults), or a name or file."
)

BOUNDARY_HELP: Final = f"Boundary of energies: {join_choices(BOUNDARY_LABEL[name] for name in BOUNDARY_NAMES)}."

MATMUL_HELP: Final = (
    "Arithmetic at fp32: default (each library's own), high (TF32 or three bf16 passes) or highest (true fp32)."
)

WEIGHT_HELP: Final = "Weight storage format, e.g. int8, int4:64 (group size), fp8_block, mxfp4, awq or q4_k_m."

SET_HELP: Final = (
    "Override a hardware constant, e.g. clock=1.2GHz, tdp=x1.5 or l4:dram.read=31pJ; repeatable. `joulemap sensitivity "
    "MODEL HARDWARE --show details` names them."
)

PRECISION_HELP: Final = "Numeric precision: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4."
PRECISIONS_HELP: Final = "Precisions to try: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4."
RUNTIME_HELP: Final = f"Runtime: {join_choices(RUNTIME_NAMES)}."

Site = Annotated[
    list[str] | None,
    typer.Option(
        "--site",
        metavar="NAME=VALUE|FILE",
        help="Price, power or host of your place, e.g. pue=1.2, or a file of them; repeatable. See `joulemap site`.",
        autocompletion=complete_site,
    ),
    HelpPosition(COST, is_advanced=True),
]


def precisions(
    default: str, description: str = PRECISION_HELP, *, shown: str | bool = True, is_list: bool = False
) -> Any:
    """Return the option `--precision`."""
    return option(
        default,
        description,
        "--precision",
        metavar="NAME,..." if is_list else "NAME",
        shown=shown,
        complete=complete_precisions,
    )


def boundaries(shown: str) -> Any:
    """Return the option `--boundary` with a description of its default."""
    return advanced("", BOUNDARY_HELP, "--boundary", metavar="NAME", complete=complete_boundaries, shown=shown)


def declare_dimensions(kind: type[Record]) -> type[Record]:
    """Add an option to a class for each dimension of settings that lists its values, before it becomes a record."""
    for one in DECLARED:
        kind.__annotations__[one.name] = "str"
        setattr(kind, one.name, advanced(one.values[0], one.help, metavar="|".join(one.values)))
    return kind


Model = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, autocompletion=complete_models)]
Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL... [HARDWARE]...",
        help="Model names, operators such as gemm(m=1,n=4096,k=4096), files (file.py:factory, model.pt2, model.onnx), "
        "timm:NAME or hf:NAME; hardware may follow.",
        autocompletion=complete_words,
    ),
]
LIMIT_HELP: Final = "Maximum rows shown per table."

Limit = Annotated[int, typer.Option("--limit", min=1, help=LIMIT_HELP), HelpPosition(OUTPUT)]


@frozen(kw_only=True)
class ModelOptions:
    """Options for building and tracing a model."""

    panel: ClassVar[str] = WORKLOAD
    repeated: ClassVar[tuple[str, ...]] = ("batch", "inputs", "arguments", "config")
    """Options that a follow-up command must repeat."""

    batch: str = option("", "Batch size.", "--batch", "-b", metavar="N", shown="1, or the model's")
    inputs: list[str] | None = advanced(
        None,
        "Shape of an input, batch first, e.g. 1,3,224,224 or ids=1,128:int64; repeatable.",
        "--input",
        metavar="SHAPE",
        shown="the model's own",
    )
    arguments: list[str] | None = advanced(
        None,
        "Argument of the model's factory or hf: configuration, e.g. num_layers=2; repeatable.",
        "--model-arg",
        metavar="NAME=VALUE",
    )
    config: str = advanced(
        "",
        "Configuration of hf:NAME, a config.json file.",
        metavar="FILE.json",
        shown="the model's own",
    )

    def keywords(self) -> SettingsKeywords:
        """Return the settings of these options as keywords."""
        return {
            "batch": read_batches(self.batch),
            "inputs": self.inputs or (),
            "arguments": _read_arguments(self.arguments or ()),
            "config": self.config,
            "retrace": habit("retrace"),
            "trust": habit("trust"),
            "build_memory_bytes": habit("build-memory"),
        }

    def settings(self, **keywords: Any) -> Settings:
        """Return the settings of these options and of further keywords."""
        from joulemap.domain.settings import Settings

        given = {**self.keywords(), **keywords}
        return Settings(**given, states_precision="precision" in given, states_boundary="boundary" in given)

    def repeat(self) -> tuple[str, ...]:
        """Return the words that a follow-up command repeats; none for defaults."""
        return repeat_options(self, self.repeated)


@frozen(kw_only=True)
@declare_dimensions
class RunOptions(ModelOptions):
    """Options for a model and how it runs."""

    repeated: ClassVar[tuple[str, ...]] = (*ASKED, "batch", *GIVEN)
    can_lack_precision: ClassVar[bool] = False
    """True for a command in which settings without a precision have a separate meaning."""
    precision: str = precisions("", shown="fp32, or that of a quantized file")
    weight_precision: str = advanced("", WEIGHT_HELP, metavar="FORMAT", shown="--precision", complete=complete_weights)
    runtime: str = option(
        "",
        RUNTIME_HELP,
        metavar="MODE",
        complete=complete_runtimes,
        shown="fused; engine with a deployment or scenario",
    )
    calibration: str = advanced("auto", CALIBRATION_HELP, metavar="NAME")
    site: Site = None
    boundary: str = boundaries(BOARD)
    matmul_precision: str = advanced(DEFAULT, MATMUL_HELP, metavar="|".join(MATMUL_PRECISIONS))
    changes: list[str] | None = advanced(None, SET_HELP, "--set", metavar="NAME=VALUE")

    def keywords(self) -> SettingsKeywords:
        """Return the settings of these options as keywords."""
        from joulemap.ask.site import read_site

        names: dict[str, Any] = {name: split_names(getattr(self, name)) for name in ASKED}
        if not names["precision"] and not self.can_lack_precision:
            names.pop("precision")
        return cast(
            "SettingsKeywords",
            {
                **super().keywords(),
                **names,
                **({"boundary": self.boundary} if self.boundary else {}),
                "calibration": self.calibration,
                "site": read_site(self.site or ()),
                "matmul_precision": self.matmul_precision,
                "changes": self.changes,
            },
        )


@frozen(kw_only=True)
class ClassRunOptions(RunOptions):
    """Options for running a model on each architecture class; a follow-up command chooses its own precision."""

    repeated: ClassVar[tuple[str, ...]] = (*(name for name in ASKED if "precision" not in name), "batch", *GIVEN)
    precision: str = precisions(
        "",
        "Numeric precision, e.g. fp32, bf16 or int8; the nearest one if a chip lacks it.",
        shown="int8; bf16 for llm",
    )

    def keywords(self) -> SettingsKeywords:
        """Return the settings of these options as keywords."""
        return super(ClassRunOptions, attrs.evolve(self, precision=self.precision or COMMON_PRECISION)).keywords()


@frozen(kw_only=True)
class ManyRunOptions(RunOptions):
    """Options for running models in many configurations, without results per operator."""

    def keywords(self) -> SettingsKeywords:
        """Return the settings of these options as keywords."""
        return {**super().keywords(), "ledger": habit("ledger")}


@frozen(kw_only=True)
class CandidateRunOptions(ManyRunOptions):
    """Options for running models in all candidate configurations; a follow-up command names one of them."""

    repeated: ClassVar[tuple[str, ...]] = GIVEN
    batch: str = option("", "Batch sizes.", "--batch", "-b", metavar="N,...", shown="1,8,32; 1 at the edge")
    precision: str = precisions("fp32,fp16,bf16,int8", PRECISIONS_HELP, is_list=True)
    runtime: str = option(DEPLOYED_RUNTIME, RUNTIME_HELP, metavar="MODE", complete=complete_runtimes)
    boundary: str = boundaries("board; for cost and carbon as in `cost`")


@frozen(kw_only=True)
class DeployedRunOptions(CandidateRunOptions):
    """Options for running models that serve requests."""

    boundary: str = boundaries("system; board where the wall is unknown")

    def keywords(self) -> SettingsKeywords:
        """Return the settings of these options as keywords; a requested boundary has no fallback."""
        keywords = super().keywords()
        return keywords if self.boundary else {**keywords, "boundary": SYSTEM, "fallback_boundary": BOARD}


def _read_arguments(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of a factory's arguments; UsageError for one given twice."""
    from joulemap.construct.source import parse_argument

    arguments: dict[str, str] = {}
    for text in texts:
        name, value = parse_argument(text)
        if name in arguments:
            raise UsageError(f"--model-arg {text}: {name} is set twice")
        arguments[name] = value
    return arguments


def repeat_options(record: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command line for the fields of a record that differ from their defaults."""
    parts: list[str] = []
    for name in names:
        field = getattr(attrs.fields(type(record)), name)
        value = getattr(record, name)
        if value == field.default:
            continue
        for item in value if isinstance(value, list) else [value]:
            parts += [name_option(field), *([] if item is True else [str(item)])]
    return tuple(parts)


def name_options(record: Any) -> tuple[str, ...]:
    """Return the names of a record's options that differ from their defaults."""
    fields = attrs.fields(type(record))
    return tuple(name_option(field) for field in fields if getattr(record, field.name) != field.default)


@frozen(kw_only=True)
class WholeRunOptions(RunOptions):
    """Options for running a whole model, not one pass of it, on named hardware."""

    runtime: str = option("", RUNTIME_HELP, metavar="MODE", complete=complete_runtimes, shown=USUAL_RUNTIME)

    def name(self, model: str) -> str:
        """Return the name of the workload: the model, or one pass of it."""
        return model

    def of_checkpoint(self, model: str) -> WholeRunOptions:
        """Return the options with the weight format of the model's checkpoint, unless one is given."""
        del model
        return self
