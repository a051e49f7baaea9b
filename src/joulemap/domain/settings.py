"""The settings of a question: its runs and hardware, its limits, and the use of a chip."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast, get_args

import attrs

from joulemap.domain.architecture import find_class
from joulemap.domain.configuration import BOARD, Boundary, Precision, Runtime, Tf32
from joulemap.domain.dimension import ASKED
from joulemap.domain.metric import MetricName
from joulemap.domain.name import fold_into, name_precision
from joulemap.domain.offer import WAY_OF, Seller
from joulemap.domain.weight import name_weight_precision, pair_precisions
from joulemap.system.errors import UnknownNameError, UsageError
from joulemap.system.record import frozen

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.hardware import Hardware

Deployment = Literal["datacenter", "edge", "embedded"]

Device = Literal["cpu", "cuda"]
"""A part of this machine that runs models."""

WAIT_S: Final = 30.0
"""How long to wait for others who hold a database, unless something else is asked for."""

DEFAULT_DATABASE: Final = "joulemap.duckdb"
"""Where results are kept unless something else is asked for, in the working directory."""

MAX_TOKENS: Final = 10_000_000
"""Of a prompt or an output, and far more than devices of a server."""

MAX_BATCH: Final = 1_000_000
"""The largest that a model takes."""

LONGEST_NAME: Final = 60
"""Characters of a precision with the size of its groups."""

BATCHES: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""What is run where the question is which batch is best, and none is asked for."""

ArchiveFormat = Literal["parquet", "json", "csv"]
"""What runs are exported as: Parquet holds all of them and is read back, the others are for other programs."""

ExportFormat = Literal["pprof", "perfetto", "explorer"]
"""A format of other programs that one run is written in."""

ModelDivision = Literal["subgraph", "operator"]
"""What divides a model."""

RunDivision = Literal["category", "action", "subgraph", "operator", "event"]
"""What divides the energy of a run, or what happens in it."""

EnergyDivision = Literal["category", "action"]
"""What divides the energy of a subgraph or operator."""

FusionDivision = Literal["run", "pattern", "subgraph", "operator"]
"""What divides what fusing saves of a run."""

DifferenceDivision = Literal["category", "purpose", "role", "action", "subgraph"]
"""What divides the difference of two runs."""

ClassDivision = Literal["class", "category", "action"]
"""What divides a contrast of architecture classes."""

SweepDivision = Literal["hardware", "batch", "winner", "crossing"]
"""What a sweep is told by."""

Pay = Literal["rented", "bought", "both"]
"""How chips are paid for."""

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
]
"""What divides the measurements of a hardware."""


Check = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def check_name(noun: str, name: object, known: Iterable[str]) -> None:
    """Raise UsageError for a name that is not one of a closed set."""
    if name not in (names := tuple(known)):
        raise UsageError(f"unknown {noun} {name!r}; known: {', '.join(names)}")


def _each_of(noun: str, kind: Any) -> Check:
    """Refuse a name, or one of several, that is not of a closed set; None is of any."""

    def check(_instance: object, _attribute: attrs.Attribute[Any], names: tuple[str, ...] | str | None) -> None:
        for name in names if isinstance(names, tuple) else (names,):
            if name is not None:
                check_name(noun, name, get_args(kind))

    return check


def _whole_to(most: int) -> Check:
    """Refuse what is no whole number from 1 to another, or one of several that is none."""

    def check(_instance: object, attribute: attrs.Attribute[Any], counts: tuple[int, ...] | int) -> None:
        for count in counts if isinstance(counts, tuple) else (counts,):
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
                raise UsageError(f"{attribute.name} is {count!r}, expected a whole number from 1 to {most}")

    return check


def _check_deployment(_instance: object, _attribute: attrs.Attribute[Any], names: tuple[str, ...]) -> None:
    for name in names:
        if name not in get_args(Deployment):
            hint = f"it is a class of hardware: --architecture {name}" if find_class(name) else ""
            raise UnknownNameError("deployment", name, get_args(Deployment), hint)


def _hardware(value: str | Hardware | Iterable[str | Hardware]) -> tuple[str | Hardware, ...]:
    is_one = isinstance(value, str) or not isinstance(value, Iterable)
    return (value,) if is_one else tuple(value)  # type: ignore[arg-type,return-value]


def _texts(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(dict.fromkeys(value))


def _fold_each(value: str | Iterable[str], known: Iterable[str]) -> tuple[Any, ...]:
    """Return each name once, as it is known: case, `-` and `_` do not matter."""
    names = tuple(known)
    return tuple(dict.fromkeys(fold_into(name, names) for name in _texts(value)))


def _architectures(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(find_class(name) or name for name in _texts(value)))


def _each(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _deployments(value: Deployment | Iterable[Deployment]) -> tuple[Deployment, ...]:
    return _fold_each(value, get_args(Deployment))


def _precisions(value: Precision | Iterable[Precision]) -> tuple[Precision, ...]:
    return tuple(dict.fromkeys(map(name_precision, _texts(value))))


def _weight_precisions(value: str | Iterable[str]) -> tuple[str, ...]:
    texts = _texts(value) if value else ()
    if odd := next((text for text in texts if len(text) > LONGEST_NAME), None):
        raise UsageError(f"unknown weight precision {odd[:LONGEST_NAME]!r}…")
    return tuple(dict.fromkeys(map(name_weight_precision, texts)))


def _runtimes(value: Runtime | Iterable[Runtime]) -> tuple[Runtime, ...]:
    return _fold_each(value, get_args(Runtime))


def _usual_runtime(settings: Settings) -> tuple[Runtime, ...]:
    return ("engine",) if settings.deployment or settings.scenario else ("fused",)


def _counts(value: int | Iterable[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(dict.fromkeys(value))


def _changes(value: Mapping[str, str | float] | str | Iterable[str] | None) -> Mapping[str, str | float]:
    """Return name -> value of what is to be set; UsageError for a text that is not `NAME=VALUE`, or a name twice."""
    if isinstance(value, Mapping):
        return dict(value)
    found: dict[str, str | float] = {}
    for text in (value,) if isinstance(value, str) else value or ():
        name, equals, written = text.partition("=")
        if not (name.strip() and equals and written.strip()):
            raise UsageError(f"--set {text}: write NAME=VALUE, e.g. dram.read=31pJ, clock=1.2GHz or tdp=x1.5")
        if name.strip() in found:
            raise UsageError(f"--set {text}: {name.strip()} is set twice")
        found[name.strip()] = written.strip()
    return found


def _path(value: str | os.PathLike[str] | None) -> str:
    return os.fspath(value or "")


def _arguments(value: Mapping[str, object] | None) -> Mapping[str, object]:
    return dict(value or {})


def _within(low: float, high: float, *, is_open: bool) -> Check:
    """Refuse a number that is not between two others; `is_open` leaves out the lower one."""

    def check(_instance: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
        if value is None:
            return
        if not (low < value if is_open else low <= value) or not value <= high:
            word = "above" if is_open else "at least"
            most = "" if high == math.inf else f" and at most {high:g}"
            raise UsageError(f"{attribute.name} is {value:g}, expected {word} {low:g}{most}")
        if math.isinf(value):
            raise UsageError(f"{attribute.name} is {value:g}, expected a finite number")

    return check


_ABOVE_0: Final = _within(0.0, math.inf, is_open=True)


@frozen(kw_only=True)
class Settings:
    """What runs are asked for, beside their models: every combination of the values of each field."""

    hardware: tuple[str | Hardware, ...] = attrs.field(default=(), converter=_hardware)
    """Ids or aliases (`h100_sxm5`, `H100`), each with `@MODE` or without, files, folders or records; a class (`gpu`)
    means its default chip, and a text may name several (`H100, A100`). Empty for what the filters leave of the
    catalogue, or without filters for those that the question takes by itself."""
    architecture: tuple[str, ...] = attrs.field(default=(), converter=_architectures)
    deployment: tuple[Deployment, ...] = attrs.field(default=(), converter=_deployments, validator=_check_deployment)
    scenario: str = ""
    """Where hardware is used (`robot`, `camera` …), with its deployments and the power that a chip gets there."""
    power_budget_w: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """What the power cap of a mode may be; each hardware named without a mode runs at its largest within it. None for
    the budget of the scenario or deployment, if it has one."""
    takes_all: bool = False
    """Whether what can be neither bought nor rented is ranked like the rest; else it stands beside it and wins nothing,
    unless there is nothing else."""
    power_mode: str = ""
    """Of hardware that is named without one; empty for the default mode, or every mode where the question takes all."""
    batch: tuple[int, ...] = attrs.field(default=(), converter=_counts, validator=_whole_to(MAX_BATCH))
    """Samples in one input; empty for that of the inputs, or what the question takes by itself."""
    precision: tuple[Precision, ...] = attrs.field(
        default=("fp32",), converter=_precisions, validator=_each_of("precision", Precision)
    )
    """Precision of activations and products. Empty means that of the checkpoint, for a served language model."""
    weight_precision: tuple[str, ...] = attrs.field(default=(), converter=_weight_precisions)
    """That weights of products are stored at beside narrower or equal activations, `int4` or with the size of its
    groups `int4:64`; empty for that of the activations."""
    runtime: tuple[Runtime, ...] = attrs.field(default=(), converter=_runtimes, validator=_each_of("runtime", Runtime))
    """Empty for what is usual: an inference engine in a deployment or scenario, else a compiler."""
    inputs: tuple[str, ...] = attrs.field(default=(), converter=_each)
    """As on the command line: `1,3,224,224:fp32`, `ids=1,128:int64`; empty for the model's own."""
    arguments: Mapping[str, object] = attrs.field(factory=dict, converter=_arguments)
    """Of the model's factory, or settings of a hub's configuration; those of its parts are nested by dots."""
    config: str = attrs.field(default="", converter=_path)
    """The file of a configuration for `hf:NAME`, as the `config.json` of a repository; empty for its defaults."""
    retrace: bool = False
    """Whether to trace with the installed torch even where the package ships the workload."""
    trust: bool = False
    """Whether to load a `.pt2` file that may run code when it is loaded, and to run model files that rows name."""
    is_named: bool = attrs.field(default=True, repr=False)
    """Whether models are named by who asks, whose code they are, and not by rows of a file."""
    build_memory_bytes: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """What building a model may take that cannot be built without its weights; None for half of what is free."""
    modules: Mapping[str, object] = attrs.field(factory=dict, eq=False, repr=False)
    """Name -> model, of modules of this program."""
    calibration: str | Calibration = "auto"
    """`auto` (each hardware's own where it has one), `none`, or a name, file or record of one, which is used for its
    hardware and `auto` for all other."""
    host: str = ""
    """The hardware that those sit in which need a host: its static power is in their energies and power budgets. Empty
    for what they draw themselves."""
    boundary: Boundary = attrs.field(default=BOARD, validator=_each_of("boundary", Boundary))
    """What energies contain: `board`, or `chip` without voltage regulators and what is unattributed."""
    tf32: Tf32 = attrs.field(default="never", validator=_each_of("tf32", Tf32))
    """`allowed` where NVIDIA GPUs compute products of fp32 runs in TF32 as libraries do unless they are told not to:
    convolutions in frameworks, all products in an engine. `never` for fp32 as measurements were taken."""
    changes: Mapping[str, str | float] = attrs.field(default=(), converter=_changes)
    """What is set of the hardware in place of its own numbers, as on the command line: `{"dram.read": "31pJ",
    "l4:tdp": "x1.5"}`; a number is in SI."""

    ledger: bool = False
    """Whether runs are stored with their ledgers even where the question reads only totals."""

    def __attrs_post_init__(self) -> None:
        if not self.runtime:
            object.__setattr__(self, "runtime", _usual_runtime(self))

    @property
    def precisions(self) -> tuple[tuple[Precision, str], ...]:
        """(precision of activations, of weights) of the runs; UsageError for weights that are no narrower."""
        return pair_precisions(self.precision, self.weight_precision)

    @property
    def points(self) -> tuple[Mapping[str, str], ...]:
        """Dimension -> value of the runs of each workload on each hardware, every combination; raises as precisions."""
        others = [name for name in ASKED if name not in ("precision", "weight_precision")]
        return tuple(
            {"precision": precision, "weight_precision": weights, **dict(zip(others, values, strict=True))}
            for precision, weights in self.precisions
            for values in itertools.product(*(getattr(self, name) for name in others))
        )

    def with_keywords(self, keywords: ModelKeywords) -> Settings:
        """Return these settings with some replaced; UsageError for a keyword that is none of them."""
        known = sorted(field.name for field in attrs.fields(Settings) if field.repr)
        for name in keywords:
            if name not in known and name != "modules":
                hint = "; joulemap.use(PATH) or Workspace(PATH) chooses the database" if name == "db" else ""
                raise UsageError(f"there is no keyword {name!r}; settings are {', '.join(known)}{hint}")
        if not keywords:
            return self
        usual = {"runtime": ()} if self.runtime == _usual_runtime(self) else {}
        return attrs.evolve(self, **cast("ModelKeywords", {**usual, **keywords}))

    def check_single(self, question: str) -> None:
        """Raise UsageError where a question about one configuration is asked of several."""
        for name in ("batch", *ASKED):
            values = getattr(self, name)
            if len(values) > 1 or (not values and name in ("precision", "runtime")):
                found = ", ".join(map(str, values)) or "none"
                raise UsageError(
                    f"{question} takes one {name}, found {found}; the summary of `joulemap compare` takes several, and "
                    "so does `joulemap sweep`"
                )


class ModelKeywords(TypedDict, total=False):
    """Fields of `Settings` as keywords of a library method about a model without hardware, one value or several."""

    batch: int | Iterable[int] | None
    inputs: str | Iterable[str]
    arguments: Mapping[str, object] | None
    config: str | os.PathLike[str] | None
    retrace: bool
    trust: bool
    build_memory_bytes: float | None


class RunKeywords(ModelKeywords, total=False):
    """Fields of `Settings` as keywords of a library method that names its hardware itself, one value or several."""

    power_mode: str
    precision: Precision | Iterable[Precision]
    weight_precision: str | Iterable[str]
    runtime: Runtime | Iterable[Runtime]
    calibration: str | Calibration
    host: str
    boundary: Boundary
    tf32: Tf32
    changes: Mapping[str, str | float] | str | Iterable[str] | None


class SettingsKeywords(RunKeywords, total=False):
    """The fields of `Settings` as keywords of a library method, one value or several."""

    hardware: str | Hardware | Iterable[str | Hardware]
    architecture: str | Iterable[str]
    deployment: Deployment | Iterable[Deployment]
    scenario: str
    power_budget_w: float | None
    takes_all: bool
    ledger: bool


@frozen(kw_only=True)
class Limits:
    """What a configuration must keep to; None for no limit."""

    max_latency_s: float | None = attrs.field(default=None, validator=_ABOVE_0)
    max_energy_j: float | None = attrs.field(default=None, validator=_ABOVE_0)
    max_energy_per_inference_j: float | None = attrs.field(default=None, validator=_ABOVE_0)
    max_memory_bytes: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Of weights and activations of a batch."""
    max_power_w: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """While it runs, with the host that it needs; of a chip under design, its own."""
    min_throughput_per_s: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """In inferences."""
    max_price_usd_per_hour: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Of one chip in a cloud."""
    max_purchase_usd: float | None = attrs.field(default=None, validator=_ABOVE_0)

    @property
    def pay(self) -> Pay | None:
        """The way of paying that a limit on one price means."""
        if (self.max_purchase_usd is None) == (self.max_price_usd_per_hour is None):
            return None
        return "bought" if self.max_price_usd_per_hour is None else "rented"

    @property
    def parameters(self) -> dict[str, float]:
        """As the queries take them: 0 for no limit."""
        return {name: value or 0.0 for name, value in attrs.asdict(self).items()}

    @property
    def bounds(self) -> tuple[tuple[MetricName, float], ...]:
        """(metric, bound) of every limit that is set."""
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
"""Limit -> the metric that it bounds."""


MOST_MEMORY_BYTES: Final = 4e9


def _usual_memory() -> float:
    """Return 4 GB, or half of the machine's memory where that is less."""
    try:
        return min(MOST_MEMORY_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2.0)
    except (ValueError, OSError, AttributeError):
        return MOST_MEMORY_BYTES


@frozen(kw_only=True)
class Bounds:
    """What a query may take before it is stopped."""

    timeout_s: float = attrs.field(default=60.0, validator=_ABOVE_0)
    max_rows: int | None = attrs.field(default=1_000_000, validator=_within(1, math.inf, is_open=False))
    """None for any number."""
    max_memory_bytes: float = attrs.field(factory=_usual_memory, validator=_within(1e6, math.inf, is_open=False))
    """For the engine, which writes nothing to disk in its place, and again for the rows."""


_is_count: Final = _whole_to(MAX_TOKENS)


MOST_GUESSED: Final = 15
"""Tokens guessed ahead of a sequence in a step."""


@frozen(kw_only=True)
class Serving:
    """What is asked of a server of a language model: its requests, and how devices share the work."""

    prompt: int = attrs.field(default=2048, validator=_is_count)
    """Tokens of each prompt."""
    output: int = attrs.field(default=256, validator=_is_count)
    """Tokens that each request is answered with; the first of them ends the prefill."""
    engine: str = "vllm"
    """What turns a chip into a server, by its name or with its date."""
    devices: tuple[int, ...] = attrs.field(default=(), converter=_counts, validator=_is_count)
    """That divide each product (tensor parallel), one number or several to compare; empty for as few as hold the model
    and the smallest batch."""
    expert_devices: int = attrs.field(default=1, validator=_is_count)
    """That whole experts are divided among."""
    data_devices: int = attrs.field(default=1, validator=_is_count)
    """That attention's sequences are divided among."""
    pipeline_devices: int = attrs.field(default=1, validator=_is_count)
    """Stages that layers are divided among, each of all the devices above."""
    cache: str = ""
    """Precision of keys and values; empty for that of the activations."""
    rate_per_s: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Requests that come by themselves in a second, beside the batches; None for no such load."""
    in_flight: int | None = attrs.field(default=None, validator=attrs.validators.optional(_is_count))
    """Requests that are kept in work: each comes as another ends; None for no such load."""
    requests: str = attrs.field(default="", converter=_path)
    """A CSV file of requests in place of equal ones."""

    prefill_on: str = ""
    """Hardware of a pool that reads prompts alone, where another answers; empty for servers that do both."""
    decode_on: str = ""
    """Hardware of the pool that answers."""
    handover_bytes_per_s: float = attrs.field(default=50e9, validator=_ABOVE_0)
    """Between a device of the one and one of the other: 400 Gb/s of a network, where nothing else is said."""

    speculate: int | None = attrs.field(default=None, validator=attrs.validators.optional(_is_count))
    """Tokens guessed ahead of each sequence in a step; None for none."""
    acceptance: float | None = attrs.field(default=None, validator=_within(0.0, 1.0, is_open=False))
    """Probability of a guess that it holds, where those before it do."""
    draft: str = ""
    """Language model that guesses, or `layer` for one more like the model's last; empty where guesses cost nothing."""

    def __attrs_post_init__(self) -> None:
        """Check what no field knows alone."""
        if (self.speculate is None) != (self.acceptance is None) or (self.draft and self.speculate is None):
            raise UsageError("--speculate is a number of tokens, with --acceptance, the share of guesses that hold")
        if self.speculate is not None and self.speculate > MOST_GUESSED:
            raise UsageError(f"--speculate is {self.speculate}, expected 1 to {MOST_GUESSED}")
        if bool(self.prefill_on) != bool(self.decode_on):
            raise UsageError("--prefill-on and --decode-on are two pools: name the hardware of both")

    @property
    def has_load(self) -> bool:
        """Whether requests one by one are asked about."""
        return bool(self.rate_per_s or self.in_flight or self.requests)


@frozen(kw_only=True)
class Training:
    """How a model is trained: over how many devices, by which optimizer, and what is kept or divided."""

    devices: tuple[int, ...] = attrs.field(default=(1,), converter=_counts, validator=_is_count)
    """All that work together, one number or several to compare."""
    tensor_devices: int = attrs.field(default=1, validator=_is_count)
    """Of those, that divide each product of a language model."""
    sequence_parallel: bool = False
    """Whether these divide its tokens between products, so that none keeps all of what norms and sums make."""
    pipeline_devices: int = attrs.field(default=1, validator=_is_count)
    """Stages of a language model's layers, each with its share of the devices."""
    accumulate: int = attrs.field(default=1, validator=_is_count)
    """Small batches whose gradients are added up before weights change."""
    tokens: int | None = attrs.field(default=None, validator=attrs.validators.optional(_is_count))
    """Of each sequence of a language model; None for 2,048."""
    optimizer: str = "adamw"
    zero: int = 0
    """What is divided over devices: 1 what the optimizer holds, 2 gradients too, 3 weights too."""
    recompute: bool = False
    """Whether activations are computed once more and not kept."""
    lora: int | None = attrs.field(default=None, validator=attrs.validators.optional(_is_count))
    """Rank of the adapters that alone are trained (LoRA); None trains all weights."""
    lora_targets: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    """Names or patterns of the linear layers with an adapter, or `all`; empty for query and value projections."""
    quantize: str = ""
    """Format in which the frozen weights are stored beside adapters, such as nf4 (QLoRA); empty for the precision."""
    samples: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """That are learned from in all, of an epoch."""
    epochs: float = attrs.field(default=1.0, validator=_ABOVE_0)


@frozen(kw_only=True)
class Price:
    """What a person pays for a chip, in place of what the catalogue says; None for what the catalogue says."""

    hardware: str
    """As it is asked for, without a power mode."""
    usd_per_hour: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Rented, in a cloud."""
    purchase_usd: float | None = attrs.field(default=None, validator=_ABOVE_0)
    """Bought."""
    source: str = "the question"
    """Who says so."""


@frozen(kw_only=True)
class Usage:
    """How a chip is used and powered; None for what the catalogue assumes."""

    pay: Pay | None = attrs.field(default=None, validator=_each_of("way to pay", Pay))
    """Only rented or only bought, or both in one ranking; None for the way that more of the hardware has a price of."""
    seller: Seller | None = attrs.field(default=None, validator=_each_of("kind of seller", Seller))
    """Kind of seller whose prices are compared; None for the one that most of the hardware has offers of."""
    utilization: float | None = attrs.field(default=None, validator=_within(0.0, 1.0, is_open=True))
    """The part of the powered or rented hours that it works."""
    lifetime_years: float | None = attrs.field(default=None, validator=_ABOVE_0)
    hours_per_year: float | None = attrs.field(default=None, validator=_within(0.0, 8784.0, is_open=True))
    """That a bought chip is powered."""
    pue: float | None = attrs.field(default=None, validator=_within(1.0, math.inf, is_open=False))
    """Of data centres; elsewhere it is 1."""
    usd_per_kwh: float | None = attrs.field(default=None, validator=_within(0.0, math.inf, is_open=False))
    region: str = ""
    """Grid, by id or name; empty for the world."""
    gco2_per_kwh: float | None = attrs.field(default=None, validator=_within(0.0, math.inf, is_open=False))
    """In place of the region's."""
    host_share: float | None = attrs.field(default=None, validator=_within(0.0, math.inf, is_open=False))
    """What a host adds to the price and the electricity of a bought chip, as a share of both. Hardware that states one
    of its own, such as 0 for a whole computer, keeps that."""

    def __attrs_post_init__(self) -> None:
        """Refuse a kind of seller that does not sell in the way of paying."""
        if self.seller is not None and self.pay not in (None, "both", WAY_OF[self.seller]):
            raise UsageError(
                f"--pay {self.pay} and --seller {self.seller}: prices of that kind are {WAY_OF[self.seller]}"
            )
