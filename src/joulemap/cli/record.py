"""Options that commands share: each record is a group of them, and reads what was written into what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, cast, get_type_hints

import attrs
import typer

from joulemap.cli.complete import (
    complete_architectures,
    complete_deployments,
    complete_hardware,
    complete_models,
    complete_precisions,
    complete_runtimes,
    complete_words,
)
from joulemap.cli.value import read_batches, read_number, read_quantity, split_assignments, split_names
from joulemap.domain.architecture import COMMON_PRECISION
from joulemap.errors import UsageError

if TYPE_CHECKING:
    from joulemap.domain.settings import Bounds, Limits, Price, Settings, SettingsKeywords, Usage

MODEL_HELP: Final = "A known name, file.py:factory, model.pt2, timm:NAME or hf:NAME."
ONE_HARDWARE: Final = (
    "An id, alias, class or file, with @MODE or without; see `joulemap hardware list`. Also as --hardware."
)
SEVERAL_HARDWARE: Final = (
    "Ids, aliases, classes, files or folders, comma-separated, each with @MODE or without; see `joulemap hardware "
    "list`. A class means its default chip; --architecture takes all of it."
)

CALIBRATION_HELP: Final = (
    "auto: what was fitted to measurements of a hardware, yours before what ships; none: class defaults; or a name or "
    "file of one, used for its hardware."
)

Model = Annotated[str, typer.Argument(help=MODEL_HELP, autocompletion=complete_models)]
Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL... [HARDWARE]...",
        help="Known names, file.py:factory, model.pt2, timm:NAME or hf:NAME; one or several. What is no model and "
        "names hardware is hardware, as with --hardware.",
        autocompletion=complete_words,
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Rows of each table to show; json and csv have all.")]


@attrs.frozen(kw_only=True)
class ModelOptions:
    """How a model is built and traced."""

    batch: Annotated[
        str, typer.Option("--batch", "-b", help="Samples in one input.", show_default="1, or the model's own")
    ] = ""
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            help="An input, batch first: 1,3,224,224 or ids=1,128:int64; repeat for several.",
            show_default="the model's own",
        ),
    ] = None
    arguments: Annotated[
        list[str] | None,
        typer.Option("--model-arg", help="name=value for a factory or building block; repeat for several."),
    ] = None
    retrace: Annotated[
        bool,
        typer.Option("--retrace", help="Trace with the installed torch, not the workload that ships with joulemap."),
    ] = False
    trust: Annotated[
        bool, typer.Option("--trust", help="Load a .pt2 file also where it may run code of its own when it is loaded.")
    ] = False

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        from joulemap.trace.source import parse_argument

        return {
            "batch": read_batches(self.batch),
            "inputs": self.inputs or (),
            "arguments": dict(parse_argument(text) for text in self.arguments or ()),
            "retrace": self.retrace,
            "trust": self.trust,
        }

    def settings(self, **keywords: Any) -> Settings:
        """Return the settings asked for, with others of a command."""
        from joulemap.domain.settings import Settings

        return Settings(**{**self.keywords(), **keywords})

    def repeat(self) -> tuple[str, ...]:
        """Return the options as a follow-up command must repeat them; none for defaults."""
        return repeat_options(self, ("batch", "inputs", "arguments"))


@attrs.frozen(kw_only=True)
class RunOptions(ModelOptions):
    """How a model is run."""

    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            help="fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4.",
            autocompletion=complete_precisions,
        ),
    ] = "fp32"
    runtime: Annotated[
        str,
        typer.Option(
            "--runtime",
            help="eager: a kernel per operator, launched by the host; graph: without host cost; "
            "fused: a kernel per subgraph.",
            autocompletion=complete_runtimes,
        ),
    ] = "fused"
    calibration: Annotated[str, typer.Option("--calibration", help=CALIBRATION_HELP)] = "auto"

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        names: dict[str, Any] = {"precision": split_names(self.precision), "runtime": split_names(self.runtime)}
        return cast("SettingsKeywords", {**super().keywords(), **names, "calibration": self.calibration})

    def repeat(self) -> tuple[str, ...]:
        """Return the options as a follow-up command must repeat them; none for defaults."""
        return repeat_options(self, ("precision", "runtime", "batch", "inputs", "arguments", "calibration"))


@attrs.frozen(kw_only=True)
class ModeOptions:
    """At which operating point one hardware runs."""

    power_mode: Annotated[
        str,
        typer.Option(
            "--power-mode",
            help="Operating point of hardware named without one, e.g. 15W.",
            show_default="the chip's own",
        ),
    ] = ""

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        return {"power_mode": self.power_mode}


@attrs.frozen(kw_only=True)
class ScenarioOptions(ModeOptions):
    """Where hardware is used, and the power that it gets there."""

    scenario: Annotated[
        str,
        typer.Option(
            "--scenario",
            help="Hardware for a use, at its largest power mode within the power there: datacenter, edge, embedded, "
            "robot, camera or stick.",
            show_default="any",
        ),
    ] = ""
    power_budget: Annotated[
        str,
        typer.Option(
            "--power-budget",
            help="Run each hardware at its largest power mode capped within this, e.g. 15W.",
            show_default="that of the scenario or deployment",
        ),
    ] = ""

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them; UsageError names the option that cannot be read."""
        budget = read_quantity("--power-budget", self.power_budget, "W")
        return {**super().keywords(), "scenario": self.scenario, "power_budget_w": budget}


@attrs.frozen(kw_only=True)
class FilterOptions(ScenarioOptions):
    """Which hardware is asked about, beside names."""

    architecture: Annotated[
        str,
        typer.Option(
            "--architecture",
            help="Only these classes, e.g. cpu,gpu.",
            show_default="all",
            autocompletion=complete_architectures,
        ),
    ] = ""
    deployment: Annotated[
        str,
        typer.Option(
            "--deployment",
            help="All hardware for datacenter, edge or embedded.",
            show_default="any",
            autocompletion=complete_deployments,
        ),
    ] = ""

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        names: dict[str, Any] = {"deployment": split_names(self.deployment)}
        return cast("SettingsKeywords", {**super().keywords(), **names, "architecture": split_names(self.architecture)})


@attrs.frozen(kw_only=True)
class HardwareOptions(FilterOptions):
    """Which hardware is asked about."""

    hardware: Annotated[
        str,
        typer.Option(
            "--hardware",
            help=SEVERAL_HARDWARE,
            show_default="one each of cpu, gpu, tpu, kpu",
            autocompletion=complete_hardware,
        ),
    ] = ""

    def add(self, hardware: Sequence[str]) -> Self:
        """Return these with hardware that was named among the arguments."""
        return attrs.evolve(self, hardware=",".join((*hardware, *split_names(self.hardware))))

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        return {**super().keywords(), "hardware": split_names(self.hardware)}


@attrs.frozen(kw_only=True)
class NamedHardwareOptions(HardwareOptions):
    """Which hardware is asked about, by arguments or as an option."""

    named: Annotated[
        list[str] | None,
        typer.Argument(metavar="[HARDWARE]...", help="As with --hardware.", autocompletion=complete_hardware),
    ] = None

    def keywords(self) -> SettingsKeywords:
        """Return what is asked by them."""
        return {**super().keywords(), "hardware": (*(self.named or ()), *split_names(self.hardware))}


@attrs.frozen(kw_only=True)
class OneHardwareOptions:
    """Which one hardware is asked about, by an argument or as an option."""

    named: Annotated[
        list[str] | None, typer.Argument(metavar="HARDWARE", help=ONE_HARDWARE, autocompletion=complete_hardware)
    ] = None
    option: Annotated[str, typer.Option("--hardware", hidden=True, autocompletion=complete_hardware)] = ""

    def read(self) -> str:
        """Return how it is named; UsageError where it is not."""
        hardware = " ".join((*(self.named or ()), *split_names(self.option)))
        if not hardware.strip():
            raise UsageError("name a hardware after the model; see `joulemap hardware list`")
        return hardware


@attrs.frozen(kw_only=True)
class TwoHardwareOptions:
    """Which two hardware are asked about, by arguments or as an option."""

    named: Annotated[
        list[str] | None, typer.Argument(metavar="A B", help=ONE_HARDWARE, autocompletion=complete_hardware)
    ] = None
    option: Annotated[str, typer.Option("--hardware", hidden=True, autocompletion=complete_hardware)] = ""

    def read(self) -> tuple[str, str]:
        """Return how they are named; UsageError where they are not two."""
        from joulemap.answer.name import list_hardware

        found = list_hardware((*(self.named or ()), *split_names(self.option)))
        if len(found) != 2:
            names = f" ({', '.join(found)})" if found else ""
            raise UsageError(f"name two hardware after the model, A and B; found {len(found)}{names}")
        return found[0], found[1]


@attrs.frozen(kw_only=True)
class ClassHardwareOptions(NamedHardwareOptions):
    """Which hardware stands for the architecture classes."""

    hardware: Annotated[
        str,
        typer.Option(
            "--hardware", help=SEVERAL_HARDWARE, show_default="one of each class", autocompletion=complete_hardware
        ),
    ] = ""
    deployment: Annotated[
        str, typer.Option("--deployment", help="Of those, only for datacenter, edge or embedded.", show_default="any")
    ] = ""


@attrs.frozen(kw_only=True)
class ClassRunOptions(RunOptions):
    """How a model is run on each architecture class."""

    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            help="fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4; a hardware without it is shown in the nearest "
            "that it has.",
        ),
    ] = COMMON_PRECISION

    def repeat(self) -> tuple[str, ...]:
        """Return the options that a command about one of the runs must repeat, beside its precision."""
        return repeat_options(self, ("runtime", "batch", "inputs", "arguments", "calibration"))


@attrs.frozen(kw_only=True)
class CandidateHardwareOptions(NamedHardwareOptions):
    """Which hardware is chosen from."""

    hardware: Annotated[
        str,
        typer.Option(
            "--hardware", help=SEVERAL_HARDWARE, show_default="the whole catalogue", autocompletion=complete_hardware
        ),
    ] = ""
    power_mode: Annotated[
        str,
        typer.Option(
            "--power-mode",
            help="Operating point of hardware named without one, e.g. 15W; default for the chip's own.",
            show_default="every one that it has",
        ),
    ] = ""


@attrs.frozen(kw_only=True)
class CandidateRunOptions(RunOptions):
    """How models are run in the configurations that are chosen from."""

    batch: Annotated[
        str,
        typer.Option(
            "--batch",
            "-b",
            help="Samples in one input, comma-separated.",
            show_default="1,8,32, or the input's own",
        ),
    ] = ""
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            help="Comma-separated: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8, int4.",
            autocompletion=complete_precisions,
        ),
    ] = "fp32,fp16,bf16,int8"

    def repeat(self) -> tuple[str, ...]:
        """Return the options that a command about one of the configurations must repeat."""
        return repeat_options(self, ("inputs", "arguments", "calibration"))


@attrs.frozen(kw_only=True)
class UseLimitOptions:
    """What a configuration must keep to while it runs."""

    max_latency: Annotated[
        str, typer.Option(help="At most this latency of a batch, e.g. 50ms.", show_default="any")
    ] = ""
    max_energy: Annotated[str, typer.Option(help="At most this energy of a batch, e.g. 1J.", show_default="any")] = ""
    max_energy_per_inference: Annotated[
        str, typer.Option(help="At most this energy of one inference, e.g. 100mJ.", show_default="any")
    ] = ""
    max_memory: Annotated[
        str,
        typer.Option(
            help="At most this memory for weights and activations of a batch, e.g. 512MB.", show_default="any"
        ),
    ] = ""
    max_power: Annotated[str, typer.Option(help="At most this power while it runs, e.g. 15W.", show_default="any")] = ""
    min_throughput: Annotated[str, typer.Option(help="At least so many inferences, e.g. 30/s.", show_default="any")] = (
        ""
    )

    def read(self) -> Limits:
        """Return the limits in SI units; UsageError names the option that cannot be read."""
        from joulemap.domain.settings import Limits

        return Limits(
            max_latency_s=read_quantity("--max-latency", self.max_latency, "s"),
            max_energy_j=read_quantity("--max-energy", self.max_energy, "J"),
            max_energy_per_inference_j=read_quantity("--max-energy-per-inference", self.max_energy_per_inference, "J"),
            max_memory_bytes=read_quantity("--max-memory", self.max_memory, "B"),
            max_power_w=read_quantity("--max-power", self.max_power, "W"),
            min_throughput_per_s=read_quantity("--min-throughput", self.min_throughput, "1/s"),
        )


@attrs.frozen(kw_only=True)
class LimitOptions(UseLimitOptions):
    """What a configuration must keep to."""

    max_price: Annotated[
        str,
        typer.Option(help="At most this price of a chip: rented, e.g. 2USD/h, or bought, e.g. 500USD.",
                     show_default="any"),
    ] = ""  # fmt: skip

    def read(self) -> Limits:
        """Return the limits in SI units; UsageError names the option that cannot be read."""
        is_rent = "/" in self.max_price
        if self.max_price.strip().replace(".", "", 1).isdigit():
            text = self.max_price
            raise UsageError(
                f"--max-price: {text!r} has no unit: write {text}USD/h to rent a chip, {text}USD to buy one"
            )
        return attrs.evolve(
            super().read(),
            max_price_usd_per_hour=read_quantity("--max-price", self.max_price if is_rent else "", "USD/h"),
            max_purchase_usd=read_quantity("--max-price", "" if is_rent else self.max_price, "USD"),
        )


@attrs.frozen(kw_only=True)
class PriceOptions:
    """What a person pays for chips, in place of the catalogue's prices."""

    price_per_hour: Annotated[
        list[str] | None,
        typer.Option("--price-per-hour", help="Your rent of a chip, e.g. l4=0.40USD/h; repeat for several."),
    ] = None
    purchase_price: Annotated[
        list[str] | None,
        typer.Option("--purchase-price", help="What you pay for one, e.g. l4=2500USD; repeat for several."),
    ] = None
    price_file: Annotated[
        Path | None,
        typer.Option(
            "--price-file",
            help="CSV with the columns hardware, usd_per_hour, purchase_usd and source, or TOML with a table of them "
            "for each hardware. What is given beside it counts more.",
        ),
    ] = None

    def read(self) -> tuple[Price, ...]:
        """Return the prices; UsageError names the option that cannot be read."""
        from joulemap.answer.price import read_price_file
        from joulemap.domain.settings import Price

        of_file = read_price_file(self.price_file) if self.price_file else ()
        rents = _read_prices("--price-per-hour", self.price_per_hour, "USD/h")
        bought = _read_prices("--purchase-price", self.purchase_price, "USD")
        return (
            *of_file,
            *(Price(hardware=name, usd_per_hour=value) for name, value in rents.items()),
            *(Price(hardware=name, purchase_usd=value) for name, value in bought.items()),
        )


def _read_prices(option: str, written: Sequence[str] | None, unit: str) -> dict[str, float | None]:
    """Return hardware -> price of `l4=0.40USD/h`s; UsageError names the option and what is wrong."""
    try:
        pairs = split_assignments(written)
    except UsageError:
        raise UsageError(f"{option}: cannot read {', '.join(written or ())}: write l4=0.40{unit}, once each") from None
    return {name: read_quantity(option, text, unit) for name, text in pairs.items()}


@attrs.frozen(kw_only=True)
class BoundOptions:
    """What a query may take before it is stopped."""

    timeout: Annotated[
        float | None,
        typer.Option("--timeout", help="Stop it where nothing comes for so many seconds.", show_default="60"),
    ] = None
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", help="Stop it at more rows.", show_default="any number")
    ] = None
    max_memory: Annotated[
        str,
        typer.Option(
            "--max-memory",
            help="Stop it where it needs more memory, e.g. 8GB; disk is not used in its place.",
            show_default="4GB, at most half of the machine's",
        ),
    ] = ""

    def read(self) -> Bounds:
        """Return the bounds; UsageError names what is out of range."""
        from joulemap.domain.settings import Bounds

        given: dict[str, Any] = {
            "timeout_s": self.timeout,
            "max_memory_bytes": read_quantity("--max-memory", self.max_memory, "B"),
        }
        return Bounds(max_rows=self.max_rows, **{name: value for name, value in given.items() if value is not None})


@attrs.frozen(kw_only=True)
class UsageOptions:
    """How a chip is used and powered."""

    utilization: Annotated[
        float | None,
        typer.Option(
            "--utilization",
            help="Part of the powered or rented hours that a chip works, above 0, at most 1.",
            show_default="the catalogue's",
        ),
    ] = None
    lifetime: Annotated[
        float | None,
        typer.Option("--lifetime", help="Years that a bought chip serves.", show_default="the catalogue's"),
    ] = None
    hours: Annotated[
        float | None,
        typer.Option("--hours", help="Hours that a bought chip is powered in a year.", show_default="the catalogue's"),
    ] = None
    pue: Annotated[
        float | None,
        typer.Option(
            "--pue",
            help="Power usage effectiveness of data centres, from 1; 1 elsewhere.",
            show_default="the catalogue's",
        ),
    ] = None
    electricity: Annotated[
        str, typer.Option("--electricity", help="Its price, e.g. 0.12USD/kWh.", show_default="the catalogue's")
    ] = ""
    grid: Annotated[
        str, typer.Option("--grid", help="Where electricity comes from, e.g. us, de or Norway.", show_default="world")
    ] = ""
    grid_gco2_per_kwh: Annotated[
        float | None,
        typer.Option(
            "--grid-gco2-per-kwh", help="Grams of CO2 per kWh in place of a grid's.", show_default="the grid's"
        ),
    ] = None

    def read(self) -> Usage:
        """Return how a chip is used; UsageError names what is out of range."""
        from joulemap.domain.settings import Usage

        return Usage(
            utilization=self.utilization,
            lifetime_years=self.lifetime,
            hours_per_year=self.hours,
            pue=self.pue,
            usd_per_kwh=read_number("--electricity", self.electricity, "USD/kWh"),
            region=self.grid,
            gco2_per_kwh=self.grid_gco2_per_kwh,
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
            parts += [_written(type(record), name), str(item)]
    return tuple(parts)


def _written(record: type, name: str) -> str:
    (option,) = get_type_hints(record, include_extras=True)[name].__metadata__
    return str(option.default)
