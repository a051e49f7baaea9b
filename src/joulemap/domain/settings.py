"""Settings of a question: runs and hardware, limits, and use of a chip."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar, cast, get_args

import attrs

from joulemap.domain.architecture import find_class
from joulemap.domain.dimension import ASKED, DECLARED
from joulemap.domain.field import ABOVE_0, Check, as_path, each_count, each_text, whole_to, within
from joulemap.domain.metric import MetricName
from joulemap.physics.record.configuration import (
    BOARD,
    BOUNDARY_ALIASES,
    MAX_BATCH,
    BoundaryName,
    Precision,
    name_precision,
)
from joulemap.physics.record.product import DEFAULT, MATMUL_PRECISIONS, MatmulPrecision
from joulemap.physics.record.runtime import DEPLOYED_RUNTIME, RUNTIME_NAMES, USUAL_RUNTIME, RuntimeName
from joulemap.physics.record.weight import name_weight_precision, pair_precisions
from joulemap.system.config import OPTION
from joulemap.system.errors import UnknownNameError, UsageError
from joulemap.system.name import fold_into
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.physics.record.calibration import Calibration
    from joulemap.physics.record.hardware import Hardware

Deployment = Literal["datacenter", "edge", "embedded"]

Form = Literal["board", "car", "card", "computer", "laptop", "microcontroller", "phone", "server"]
"""Kind of product in which hardware can be bought: `card` includes modules and sticks for a slot or port."""

Device = Literal["cpu", "cuda"]
"""Local device that runs models."""

LONGEST_NAME: Final = 60
"""Maximum characters of a precision's name, including its group size."""

KEYWORDS: Final[Mapping[str, str]] = {
    "db": "joulemap.use(PATH) or Workspace(PATH) chooses the database",
    "input": 'write inputs="1,3,224,224"',
    "model_arg": 'write arguments={"width": 32}',
    "set": 'write changes={"l4:tdp": "60W"}',
    "usage": "write site=Site(pue=1.2)",
    "prices": 'write site=Site(prices=(Price(hardware="l4", usd_per_hour=0.4),))',
}
"""Command-line option -> hint at the equivalent in Python."""

BATCHES: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""Batch sizes tried when the best one is requested without a list."""

ArchiveFormat = Literal["parquet", "json", "csv"]
"""Export formats of runs; only Parquet contains all of them and can be read back."""

ExportFormat = Literal["pprof", "perfetto", "explorer"]
"""Formats of files that other programs open, each with one run."""

ModelDivision = Literal["subgraph", "operator"]
"""Parts into which answers split a model."""

PartLevel = Literal["run", "subgraph", "operator"]
"""Parts whose energy answers divide: a whole run, or its subgraphs or operators."""

RunDivision = Literal["category", "action", "subgraph", "operator", "event"]
"""Parts into which answers split a run's energy or events."""

EnergyDivision = Literal["category", "action"]
"""Parts into which answers split the energy of a subgraph or an operator."""

FusionDivision = Literal["run", "pattern", "subgraph", "operator"]
"""Parts of a run for which answers state the savings from fusion."""

DifferenceDivision = Literal["category", "purpose", "role", "action", "subgraph"]
"""Parts into which answers split the difference between two runs."""

ClassDivision = Literal["class", "category", "action"]
"""Parts into which answers split a comparison of architecture classes."""

SweepDivision = Literal["hardware", "batch", "winner", "crossing"]
"""Ways to group the result of a sweep."""

Division = RunDivision | FusionDivision | DifferenceDivision | ClassDivision | SweepDivision
"""Parts that the first table of an answer lists; each answer knows some of them."""

Pay = Literal["rented", "bought", "both"]
"""Ways to pay for chips."""

Seller = Literal["hyperscaler", "cloud", "marketplace", "reserved", "spot", "list", "retail"]
"""Kind of seller, with the terms of its prices."""

WAY_OF: Final[Mapping[str, str]] = {
    "hyperscaler": "rented",
    "cloud": "rented",
    "marketplace": "rented",
    "reserved": "rented",
    "spot": "rented",
    "list": "bought",
    "retail": "bought",
}
"""Kind of seller -> way of paying: rented or bought."""

ScoreDivision = Literal[
    "runtime",
    "family",
    "kind",
    "model",
    "batch",
    "precision",
    "scope",
    "hardware",
    "split",
    "source",
    "engine",
    "quantity",
    "all",
]
"""Properties by which answers group the measurements of a chip."""


Record = TypeVar("Record")


def check_name(noun: str, name: object, known: Iterable[str]) -> None:
    """Raise UsageError if a name is not in `known`; the message calls it a `noun`."""
    if name not in (names := tuple(known)):
        raise UsageError(f"unknown {noun} {name!r}; known: {', '.join(names)}")


def name_boundary(name: str) -> BoundaryName:
    """Return the canonical name of a boundary; an unknown name is unchanged."""
    return BOUNDARY_ALIASES.get(name, cast("BoundaryName", name))


def _matmul_precision(name: MatmulPrecision) -> MatmulPrecision:
    return cast("MatmulPrecision", fold_into(name, MATMUL_PRECISIONS))


def _each_of(noun: str, kind: Any) -> Check:
    """Build a validator that accepts one or several values of a literal type, or None."""
    return _each_in(noun, get_args(kind))


def _each_in(noun: str, known: tuple[str, ...]) -> Check:
    """Build a validator that accepts one or several of the known names, or None."""

    def check(_instance: object, _attribute: attrs.Attribute[Any], names: tuple[str, ...] | str | None) -> None:
        for name in names if isinstance(names, tuple) else (names,):
            if name is not None:
                check_name(noun, name, known)

    return check


def declare_dimensions(kind: type[Record]) -> type[Record]:
    """Add a field to a class of settings for each dimension with listed values. Apply it before the class becomes a
    record.
    """
    for one in DECLARED:
        kind.__annotations__[one.name] = "tuple[str, ...]"
        convert, check = partial(_fold_each, known=one.values), _each_in(one.name, one.values)
        setattr(kind, one.name, attrs.field(default=one.values[:1], converter=convert, validator=check))
    return kind


def _filter_of(noun: str, known: tuple[str, ...]) -> Check:
    """Build a validator for names in a filter of hardware.

    If a name is an architecture class, the error suggests `--where architecture`.
    """

    def check(_instance: object, _attribute: attrs.Attribute[Any], names: tuple[str, ...]) -> None:
        for name in names:
            if name not in known:
                hint = f"it is a class of hardware: --where architecture={name}" if find_class(name) else ""
                raise UnknownNameError(noun, name, known, hint)

    return check


def _hardware(value: str | Hardware | Iterable[str | Hardware] | None) -> tuple[str | Hardware, ...]:
    is_one = isinstance(value, str) or not isinstance(value, Iterable)
    given: tuple[Any, ...] = () if value is None else (value,) if is_one else tuple(value)  # type: ignore[arg-type]
    names = tuple(os.fspath(one) if isinstance(one, os.PathLike) else one for one in given)
    for one in names:
        if not isinstance(one, str) and not hasattr(one, "with_own_digest"):
            raise UsageError(f"hardware is {one!r}, expected a name or a record of hardware")
    return names


def _fold_each(value: str | Iterable[str], known: Iterable[str]) -> tuple[Any, ...]:
    """Return each name once, in its known spelling; case, `-` and `_` do not matter."""
    names = tuple(known)
    return tuple(dict.fromkeys(fold_into(name, names) for name in each_text(value)))


def _architectures(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(find_class(name) or name for name in each_text(value)))


def _each(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _deployments(value: Deployment | Iterable[Deployment]) -> tuple[Deployment, ...]:
    return _fold_each(value, get_args(Deployment))


def _forms(value: Form | Iterable[Form]) -> tuple[Form, ...]:
    return _fold_each(value, get_args(Form))


def _precisions(value: Precision | Iterable[Precision]) -> tuple[Precision, ...]:
    return tuple(dict.fromkeys(map(name_precision, each_text(value))))


def _weight_precisions(value: str | Iterable[str]) -> tuple[str, ...]:
    texts = each_text(value) if value else ()
    if odd := next((text for text in texts if len(text) > LONGEST_NAME), None):
        raise UsageError(f"unknown weight precision {odd[:LONGEST_NAME]!r}…")
    return tuple(dict.fromkeys(map(name_weight_precision, texts)))


def _runtimes(value: RuntimeName | Iterable[RuntimeName]) -> tuple[RuntimeName, ...]:
    return _fold_each(value, RUNTIME_NAMES)


def _usual_runtime(settings: Settings) -> tuple[RuntimeName, ...]:
    return (DEPLOYED_RUNTIME,) if settings.deployment or settings.scenario else (USUAL_RUNTIME,)


def _changes(value: Mapping[str, str | float] | str | Iterable[str] | None) -> Mapping[str, str | float]:
    """Parse name -> new value; UsageError for a text other than `NAME=VALUE` or a repeated name."""
    if isinstance(value, Mapping):
        return dict(value)
    changes: dict[str, str | float] = {}
    for text in (value,) if isinstance(value, str) else value or ():
        name, equals, written = text.partition("=")
        if not (name.strip() and equals and written.strip()):
            raise UsageError(f"--set {text}: write NAME=VALUE, e.g. dram.read=31pJ, clock=1.2GHz or tdp=x1.5")
        if name.strip() in changes:
            raise UsageError(f"--set {text}: {name.strip()} is set twice")
        changes[name.strip()] = written.strip()
    return changes


def _arguments(value: Mapping[str, object] | None) -> Mapping[str, object]:
    try:
        return dict(value or {})
    except (TypeError, ValueError) as error:
        raise UsageError(f"arguments is {value!r}, expected a mapping of names to values") from error


@frozen(kw_only=True)
class Price:
    """Price of a chip that a user sets; None keeps the price in the catalogue."""

    hardware: str
    """Hardware name without a power mode."""
    usd_per_hour: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Rental price in a cloud."""
    purchase_usd: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Purchase price."""
    source: str = "the question"
    """Source of the price."""
    is_asked: bool = True
    """True for a price of the question, which then is about this way of paying; False for one that always holds."""


LEAST_GCO2_PER_KWH: Final = 1e-6
"""Carbon intensity below which a grid counts as one without emissions."""


@frozen(kw_only=True)
class Site:
    """Prices, use and power of chips at a place, for all questions; None keeps the catalogue's assumption.

    `joulemap.read_site` reads one from `joulemap.toml`, the environment and values.
    """

    pay: Pay | None = attrs.field(default=None, validator=_each_of("way to pay", Pay))
    """Way to pay: rented, bought, or both in one ranking. None means the cheaper way of each chip in a ranking by cost,
    otherwise rented, unless the question is about buying (`find_payment` in ask/candidate.py).
    """
    seller: Seller | None = attrs.field(default=None, validator=_each_of("kind of seller", Seller))
    """Kind of seller whose prices are compared. None takes each chip's cheapest kind, without reserved and spot.
    """
    utilization: float | None = attrs.field(default=None, validator=within(0.0, 1.0, is_open=True))
    """Busy share of the powered or rented hours."""
    lifetime_years: float | None = attrs.field(default=None, validator=within(0.0, 1000.0, is_open=True))
    hours_per_year: float | None = attrs.field(default=None, validator=within(0.0, 8784.0, is_open=True))
    """Hours per year for which a bought chip is powered."""
    pue: float | None = attrs.field(default=None, validator=within(1.0, 100.0, is_open=False))
    """Power usage effectiveness of data centres; 1 elsewhere."""
    usd_per_kwh: float | None = attrs.field(default=None, validator=within(0.0, 1e6, is_open=False))
    region: str = ""
    """Grid region, by id or name; empty for the world."""
    gco2_per_kwh: float | None = attrs.field(default=None, validator=within(0.0, 1e6, is_open=False))
    """Carbon intensity in g/kWh of CO2 equivalents, instead of the region's."""
    host_share: float | None = attrs.field(default=None, validator=within(0.0, math.inf, is_open=False))
    """Host cost added to the price and electricity of a bought chip, as a share of both. Hardware that states its own
    share, such as 0 for a whole computer, keeps it.
    """
    prices: tuple[Price, ...] = ()
    """Prices that replace those of the catalogue; of several for one chip and way to pay, the last one holds."""
    owned: Mapping[str, int] = attrs.field(factory=dict)
    """Chip -> devices that are owned and cost only electricity."""
    host: str = ""
    """Host of chips that need one; empty for none."""
    link: str = ""
    """Link of chips to their host or peers; empty for the widest of both ends."""
    stated: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict, eq=False, repr=False)
    """Name of a value in `joulemap.toml` -> its text (`value`), `unit` and place (`from`): a file, a variable or an
    option.
    """

    def __attrs_post_init__(self) -> None:
        """Raise UsageError if a kind of seller has no prices for the chosen way to pay."""
        if self.seller is not None and self.pay not in (None, "both", WAY_OF[self.seller]):
            raise UsageError(f"pay {self.pay} and seller {self.seller}: prices of that kind are {WAY_OF[self.seller]}")

    def is_standing(self, name: str) -> bool:
        """Return whether a file or variable states a value, so that it holds for all questions."""
        return self.stated.get(name, {"from": OPTION})["from"] != OPTION

    def check_ranked(self, *metrics: str) -> None:
        """Raise UsageError for a ranking by carbon on a grid without emissions, where all values are 0."""
        if "carbon" in metrics and self.gco2_per_kwh is not None and self.gco2_per_kwh < LEAST_GCO2_PER_KWH:
            raise UsageError(
                f"at {self.gco2_per_kwh:g} gCO2/kWh every configuration emits 0 g: rank by energy, or name another grid"
            )


@frozen(kw_only=True)
@declare_dimensions
class Settings:
    """Settings of the requested runs, without their models. Runs cover all combinations of fields with several
    values.
    """

    hardware: tuple[str | Hardware, ...] = attrs.field(default=(), converter=_hardware)
    """Ids or aliases (`h100_sxm5`, `H100`), with or without `@MODE`, files, folders or records. A class (`gpu`) means
    its default chip; one text may name several (`H100, A100`). Empty: the catalogue after filters, or without filters
    the question's default hardware.
    """
    architecture: tuple[str, ...] = attrs.field(default=(), converter=_architectures)
    deployment: tuple[Deployment, ...] = attrs.field(
        default=(), converter=_deployments, validator=_filter_of("deployment", get_args(Deployment))
    )
    kind: tuple[Form, ...] = attrs.field(
        default=(), converter=_forms, validator=_filter_of("kind of hardware", get_args(Form))
    )
    """Kinds of product that a chip may come in; empty for all."""
    scenario: str = ""
    """Deployment scenario (`robot`, `camera` …), which sets the deployments, the kinds and the power budget of a chip.
    """
    power_budget_w: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Largest power cap of a mode; hardware named without a mode runs at its largest mode within this budget. None for
    the budget of the scenario or deployment, if there is one.
    """
    takes_all: bool = False
    """True if hardware that can be neither bought nor rented is ranked like the rest. False lists such chips without
    ranking them unless there are no others.
    """
    power_mode: str = ""
    """Power mode of hardware named without one. Empty: the default mode, or every mode if the question covers all."""
    batch: tuple[int, ...] = attrs.field(default=(), converter=each_count, validator=whole_to(MAX_BATCH))
    """Samples per batch; empty for the batch size of the inputs, or else the default of the question."""
    precision: tuple[Precision, ...] = attrs.field(
        default=("fp32",), converter=_precisions, validator=_each_of("precision", Precision)
    )
    """Precision of activations and GEMMs. For served language models, empty means the checkpoint's precision."""
    states_precision: bool = attrs.field(default=False, repr=False)
    """True if the precision was stated; it then replaces the precision in a file, even if it is the default."""
    weight_precision: tuple[str, ...] = attrs.field(default=(), converter=_weight_precisions)
    """Storage precision of GEMM weights, no wider than the activations: `int4`, or `int4:64` with a group size.
    Empty for the activations' precision.
    """
    runtime: tuple[RuntimeName, ...] = attrs.field(
        default=(), converter=_runtimes, validator=_each_of("runtime", RuntimeName)
    )
    """Runtime. Empty means an inference engine in a deployment or scenario, and a framework's compiler otherwise."""
    inputs: tuple[str, ...] = attrs.field(default=(), converter=_each)
    """Input shapes as on the command line: `1,3,224,224:fp32`, `ids=1,128:int64`; empty for the model's own."""
    arguments: Mapping[str, object] = attrs.field(factory=dict, converter=_arguments)
    """Arguments of the model's factory, or settings of a hub configuration; nested settings have dotted names."""
    config: str = attrs.field(default="", converter=as_path)
    """Configuration file for `hf:NAME`, such as a repository's `config.json`; empty for its defaults."""
    retrace: bool = False
    """True if models are traced with the installed torch even if a built-in workload exists."""
    trust: bool = False
    """True to load `.pt2` files that may run code on loading, and model files that rows of a file name."""
    is_named: bool = attrs.field(default=True, repr=False)
    """True if the user named the models; the user then vouches for their code. False if rows of a file name the
    models.
    """
    build_memory_bytes: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Memory limit for building a model that cannot be built without its weights; None for half of the free memory."""
    modules: Mapping[str, object] = attrs.field(factory=dict, eq=False, repr=False)
    """Name -> model object, for models of the calling program."""
    calibration: str | Calibration = "auto"
    """Calibration: `auto` (the one of each chip, if any), `none`, or a name, file or record. A given calibration
    applies only to its hardware; all other hardware uses `auto`.
    """
    host: str = ""
    """Host for hardware that needs one; its static power counts in energies and power budgets. Empty excludes hosts."""
    link: str = ""
    """Link of the hardware to its host or peers, such as `pcie3x4` or `nvlink`; empty for the widest of both ends."""
    boundary: BoundaryName = attrs.field(
        default=BOARD, converter=name_boundary, validator=_each_of("boundary", BoundaryName)
    )
    """Energy boundary: `board`; `chip`, which excludes voltage regulators and, except on GPUs, unattributed energy; or
    `system` (`wall`), which adds host, chassis and power supply.
    """
    states_boundary: bool = attrs.field(default=False, repr=False)
    """True if the boundary was stated; it then applies even where the question has another default."""
    fallback_boundary: BoundaryName | Literal[""] = ""
    """Energy boundary of hardware that lacks the requested one; empty to refuse or omit such hardware."""
    matmul_precision: MatmulPrecision = attrs.field(
        default=DEFAULT, converter=_matmul_precision, validator=_each_of("matmul precision", MatmulPrecision)
    )
    """Arithmetic of GEMMs and convolutions at fp32. `default`: as the library of each chip computes them unless it is
    told otherwise. `high`: TF32 on NVIDIA GPUs, three bf16 passes on TPUs. `highest`: true fp32 on every chip.
    """
    changes: Mapping[str, str | float] = attrs.field(default=(), converter=_changes)
    """Changes of hardware numbers, as on the command line: `{"dram.read": "31pJ", "l4:tdp": "x1.5"}`; plain numbers are
    in SI units.
    """

    ledger: bool = False
    """True to store ledgers even if the question reads only totals."""
    site: Site = attrs.field(factory=Site)
    """Prices, use and power of chips where they run."""

    def __attrs_post_init__(self) -> None:
        usual = {"runtime": _usual_runtime(self), "host": self.site.host, "link": self.site.link}
        for name, value in usual.items():
            object.__setattr__(self, name, getattr(self, name) or value)

    @property
    def precisions(self) -> tuple[tuple[Precision, str], ...]:
        """(precision of activations, precision of weights) of each run. Raises UsageError for a weight format that is
        not narrower than the activations, unless it equals their precision.
        """
        return pair_precisions(self.precision, self.weight_precision)

    @property
    def points(self) -> tuple[Mapping[str, str], ...]:
        """Settings of each run of one workload on one chip, as dimension -> value, in every combination; raises like
        `precisions`.
        """
        others = [name for name in ASKED if name not in ("precision", "weight_precision")]
        return tuple(
            {"precision": precision, "weight_precision": weights, **dict(zip(others, values, strict=True))}
            for precision, weights in self.precisions
            for values in itertools.product(*(getattr(self, name) for name in others))
        )

    def with_keywords(self, keywords: ModelKeywords) -> Settings:
        """Return these settings with some replaced; UsageError for an unknown keyword."""
        known = sorted(field.name for field in attrs.fields(Settings) if field.repr)
        for name in keywords:
            if name not in known and name != "modules":
                hint = KEYWORDS.get(name) or f"settings are {', '.join(known)}"
                raise UsageError(f"there is no keyword {name!r}; {hint}")
        if not keywords:
            return self
        usual: dict[str, Any] = {"runtime": ()} if self.runtime == _usual_runtime(self) else {}
        usual |= {f"states_{name}": True for name in ("precision", "boundary") if name in keywords}
        try:
            return attrs.evolve(self, **cast("ModelKeywords", {**usual, **keywords}))
        except (AttributeError, TypeError) as error:
            raise UsageError(self._describe_type(keywords)) from error

    def _describe_type(self, keywords: ModelKeywords) -> str:
        """Describe the first keyword whose value has a wrong type for its field."""
        for name, value in keywords.items():
            try:
                attrs.evolve(self, **cast("ModelKeywords", {name: value}))
            except (AttributeError, TypeError):
                kind = str(getattr(attrs.fields(Settings), name).type)
                one = kind.removeprefix("tuple[").removesuffix(", ...]")
                return f"{name} is {value!r}, expected {one if one == kind else f'{one}, one or several'}"
        return f"some of {', '.join(keywords)} have a wrong type"

    def check_single(self, question: str) -> None:
        """Raise UsageError if several values are given to a question about one configuration."""
        for name in ("batch", *ASKED):
            values = getattr(self, name)
            if len(values) > 1 or (not values and name in ("precision", "runtime")):
                listed = ", ".join(map(str, values)) or "none"
                raise UsageError(
                    f"{question} takes one {name}, found {listed}; the summary of `joulemap compare` takes several, "
                    "and so does `joulemap sweep`"
                )


class ModelKeywords(TypedDict, total=False):
    """Keywords of a library method that needs no hardware: fields of `Settings`, with one value or several."""

    batch: int | Iterable[int] | None
    inputs: str | Iterable[str]
    arguments: Mapping[str, object] | None
    config: str | os.PathLike[str] | None
    retrace: bool
    trust: bool
    build_memory_bytes: float | None
    site: Site


class RunKeywords(ModelKeywords, total=False):
    """Keywords of a library method that takes its hardware separately: fields of `Settings`, with one value or
    several.
    """

    power_mode: str
    precision: Precision | Iterable[Precision]
    weight_precision: str | Iterable[str]
    runtime: RuntimeName | Iterable[RuntimeName]
    calibration: str | Calibration
    host: str
    link: str
    boundary: BoundaryName
    fallback_boundary: BoundaryName | Literal[""]
    matmul_precision: MatmulPrecision
    changes: Mapping[str, str | float] | str | Iterable[str] | None


class SettingsKeywords(RunKeywords, total=False):
    """Keywords of a library method: all fields of `Settings`, with one value or several."""

    hardware: str | Hardware | Iterable[str | Hardware]
    architecture: str | Iterable[str]
    deployment: Deployment | Iterable[Deployment]
    kind: Form | Iterable[Form]
    scenario: str
    power_budget_w: float | None
    takes_all: bool
    ledger: bool


@frozen(kw_only=True)
class Limits:
    """Limits on a configuration; None for no limit."""

    max_latency_s: float | None = attrs.field(default=None, validator=ABOVE_0)
    max_energy_j: float | None = attrs.field(default=None, validator=ABOVE_0)
    max_energy_per_inference_j: float | None = attrs.field(default=None, validator=ABOVE_0)
    max_memory_bytes: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Maximum memory of the weights, plus the activations of a batch."""
    max_power_w: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Maximum power while running, including the host that the chip needs. A chip under design is judged without a
    host.
    """
    min_throughput_per_s: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Minimum throughput in inferences per second."""
    max_price_usd_per_hour: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Maximum rental price of one chip."""
    max_purchase_usd: float | None = attrs.field(default=None, validator=ABOVE_0)
    """Maximum purchase price of one chip with the host that it needs."""

    @property
    def pay(self) -> Pay | None:
        """Way to pay if only one of the two prices is limited: `bought` or `rented`; else None."""
        if (self.max_purchase_usd is None) == (self.max_price_usd_per_hour is None):
            return None
        return "bought" if self.max_price_usd_per_hour is None else "rented"

    @property
    def parameters(self) -> dict[str, float]:
        """Limits as query parameters; 0 for no limit."""
        return {name: value or 0.0 for name, value in attrs.asdict(self).items()}

    @property
    def bounds(self) -> tuple[tuple[MetricName, float], ...]:
        """(metric, bound) for every limit that is set."""
        return tuple((LIMITED[name], value) for name, value in attrs.asdict(self).items() if value is not None)


LIMITED: Final[Mapping[str, MetricName]] = {
    "max_latency_s": "latency",
    "max_energy_j": "energy",
    "max_energy_per_inference_j": "energy_per_inference",
    "max_memory_bytes": "memory",
    "max_power_w": "power",
    "min_throughput_per_s": "throughput",
    "max_price_usd_per_hour": "price",
    "max_purchase_usd": "purchase",
}
"""Field of `Limits` -> metric that it bounds."""


MOST_MEMORY_BYTES: Final = 4e9


def _usual_memory() -> float:
    """Return the default memory limit of a query in bytes: 4 GB, or half of the machine's memory if that is less."""
    try:
        return min(MOST_MEMORY_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2.0)
    except (ValueError, OSError, AttributeError):
        return MOST_MEMORY_BYTES


@frozen(kw_only=True)
class Bounds:
    """Resource limits of a query; a query that exceeds one is stopped."""

    timeout_s: float = attrs.field(default=60.0, validator=ABOVE_0)
    max_rows: int | None = attrs.field(default=1_000_000, validator=within(1, math.inf, is_open=False))
    """Maximum rows; None for any number."""
    max_memory_bytes: float = attrs.field(factory=_usual_memory, validator=within(1e6, math.inf, is_open=False))
    """Maximum memory of DuckDB, which does not spill to disk. The rows of the result may use as much again."""
