"""Questions as they are declared where they are answered, made by `make rows`."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import torch

from joulemap.answer.analyze.answer import AnalyzeAnswer
from joulemap.answer.architecture.answer import ArchitecturesAnswer
from joulemap.answer.architecture.contrast import EVERYWHERE, MODEL, PHASED, PROMPT, PhasesAnswer
from joulemap.answer.calibrate import CalibrateAnswer
from joulemap.answer.compare.breakdown import BreakdownAnswer
from joulemap.answer.compare.contest import ContestAnswer
from joulemap.answer.compare.model import ModelsAnswer
from joulemap.answer.compare.ranking import RankingAnswer
from joulemap.answer.compare.summary import CompareAnswer
from joulemap.answer.cost import CostAnswer
from joulemap.answer.database import AuditAnswer, DatabaseAnswer
from joulemap.answer.diff import NOTHING, DiffAnswer
from joulemap.answer.difference import DifferenceAnswer
from joulemap.answer.edp.answer import EdpAnswer
from joulemap.answer.explain.answer import ExplainAnswer
from joulemap.answer.explore.answer import NO_VALUES, OBJECTIVES, ExploreAnswer
from joulemap.answer.explore.pose import NO_SHARES
from joulemap.answer.explore.regret import RegretAnswer
from joulemap.answer.fleet.document import FleetAnswer
from joulemap.answer.flip.answer import FlipAnswer
from joulemap.answer.fusion.answer import FusionAnswer
from joulemap.answer.hardware import HardwareAnswer
from joulemap.answer.lake import LakeAnswer
from joulemap.answer.launch import HostAnswer
from joulemap.answer.listing import BoxAnswer, ListedBox
from joulemap.answer.llm.answer import SERVING
from joulemap.answer.llm.document import LlmAnswer
from joulemap.answer.llm.offload import OffloadAnswer
from joulemap.answer.measure import MEASURED, MeasureAnswer
from joulemap.answer.model import ModulesAnswer, ProfileAnswer
from joulemap.answer.pareto import ParetoAnswer
from joulemap.answer.part import PartAnswer
from joulemap.answer.place.answer import PLACED, PlaceAnswer
from joulemap.answer.query import BOUNDS, STREAMED
from joulemap.answer.recommend import RecommendAnswer
from joulemap.answer.record import Run
from joulemap.answer.report.answer import ReportAnswer
from joulemap.answer.sanity import SanityAnswer
from joulemap.answer.sensitivity import SensitivityAnswer
from joulemap.answer.sweep.answer import SweepAnswer
from joulemap.answer.train.answer import TRAINING, TrainAnswer
from joulemap.answer.utilization.answer import UtilizationAnswer
from joulemap.answer.verify.answer import VerifyAnswer
from joulemap.answer.watch import WATCHED, Watch
from joulemap.domain.box import Goal
from joulemap.domain.calibration import Calibration
from joulemap.domain.configuration import Boundary, Precision
from joulemap.domain.default import CANDIDATES, DEPLOYED, LEARNED, LIMITS, SERVED, SETTINGS, USAGE
from joulemap.domain.fleet import Demand
from joulemap.domain.hardware import Hardware
from joulemap.domain.measurement import Measurement
from joulemap.domain.metric import MetricName, PartMetricName, RankMetricName, VariedMetricName
from joulemap.domain.settings import (
    DEFAULT_DATABASE,
    ArchiveFormat,
    Bounds,
    Deployment,
    Device,
    EnergyDivision,
    ExportFormat,
    Limits,
    ModelDivision,
    ModelKeywords,
    Price,
    RunKeywords,
    ScoreDivision,
    Serving,
    Settings,
    SettingsKeywords,
    Training,
    Usage,
)
from joulemap.domain.table import Table
from joulemap.domain.workload import Workload
from joulemap.figure.figure import Figure
from joulemap.figure.spec import FigureName
from joulemap.plan.run import RunTally
from joulemap.plan.source import Progress, Source, Talk
from joulemap.question import ExampleInputs
from joulemap.row.hardware import ActionPrice, ListedHardware
from joulemap.row.measurement import ListedMeasurement, ServedMeasurement
from joulemap.row.model import ListedOperator
from joulemap.row.validate import OperatorScore, PredictionScore, ServingRefusal
from joulemap.store.connection import PATIENT, Patience, log
from joulemap.store.query import Rows
from joulemap.store.recover import Recovery
from joulemap.store.statement import Statement

class Workspace:
    """A results database and the questions it answers.

    Nothing is opened until a question is asked, and nothing stays open after it. Questions that need runs which are
    not stored trace, evaluate and write them; all others only read. Threads may share a workspace: readers work side by
    side, and each writer waits until it is alone.
    """

    path: Path
    _source: Source
    def __init__(
        self,
        path: str | Path = DEFAULT_DATABASE,
        *,
        talk: Talk = log,
        progress: Progress | None = None,
        patience: Patience = PATIENT,
    ) -> None:
        """Use the database at `path`, made when first written.

        `talk` is told what takes time, the logger "joulemap" where nothing is said. `progress` is told (runs done, runs
        to do) where runs are evaluated; an exception that it raises cancels the question, with whole runs stored up to
        there. `patience` says how long to wait for others who hold the database. Raises UsageError for a path that
        names a service.
        """
    @overload
    def explore(
        self,
        models: str | Sequence[str],
        settings: Settings = SETTINGS,
        *,
        like: str | Sequence[str] = (),
        vary: Mapping[str, str | Sequence[float]] = NO_VALUES,
        share: Mapping[str, float] = NO_SHARES,
        limits: Limits = LIMITS,
        max_area_mm2: float | None = None,
        max_die_cost_usd: float | None = None,
        objectives: Sequence[str] = OBJECTIVES,
        count: int | None = None,
        seed: int = 0,
        search: str = "",
        solve: str | Sequence[str] = (),
        target: str | Sequence[str] = (),
        lake: str | Path | None = None,
        jobs: int = 1,
        cluster: str = "",
        **keywords: Unpack[SettingsKeywords],
    ) -> ExploreAnswer:
        """Return the designs like some chips that are best for models, and those that cannot be told apart from them.

        `vary` is constant -> values as on the command line (`"16:1024:*2"`, `"1TB/s,2TB/s"`) or numbers in SI; what is
        varied moves what follows from it, by the rules of the answer. Without `count` every design is evaluated, else so
        many are drawn by `seed`, or with `search="optuna"` looked for. `solve` names one or two constants whose values are
        found, those that meet as many `target`s, as "latency = 10ms"; without any of these, units, clock and bandwidth of
        memory are varied around the chip's own. `jobs` processes evaluate, or those of a `cluster`,
        and what they find is kept in the folder `lake`, whose designs are not evaluated again. Raises as `compare`;
        UsageError for what cannot be varied, UnsupportedError where no design keeps the limits, with the nearest.
        """
    @overload
    def explore(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        like: str | Sequence[str] = (),
        vary: Mapping[str, str | Sequence[float]] = NO_VALUES,
        share: Mapping[str, float] = NO_SHARES,
        limits: Limits = LIMITS,
        max_area_mm2: float | None = None,
        max_die_cost_usd: float | None = None,
        objectives: Sequence[str] = OBJECTIVES,
        count: int | None = None,
        seed: int = 0,
        search: str = "",
        solve: str | Sequence[str] = (),
        target: str | Sequence[str] = (),
        lake: str | Path | None = None,
        jobs: int = 1,
        cluster: str = "",
        **keywords: Unpack[SettingsKeywords],
    ) -> ExploreAnswer: ...
    def explore_all(
        self,
        models: str | Sequence[str] = (),
        settings: Settings = CANDIDATES,
        *,
        share: Mapping[str, float] = NO_SHARES,
        objective: str = "energy",
        limits: Limits = LIMITS,
        **keywords: Unpack[SettingsKeywords],
    ) -> RegretAnswer:
        """Return the best configuration of each model, and what each chip loses as the one for all.

        Every hardware of the settings, else the catalogue, at every power mode, precision, batch and runtime; without
        models those that ship. Energies are of one inference. Raises as `compare`, UnsupportedError where nothing runs.
        """
    @overload
    def compare(
        self,
        model: str,
        settings: Settings = SETTINGS,
        *,
        baseline: str = "",
        **keywords: Unpack[SettingsKeywords],
    ) -> CompareAnswer:
        """Return the model on each hardware: named, of an architecture or deployment, or the default four.

        `model` is a known name, `path/to/file.py:factory`, `path/to/model.pt2`, `timm:NAME`, `hf:NAME`, or an
        `nn.Module`, which example inputs follow, here and in every question; keywords are the fields of `Settings`.
        Ratios are relative to `baseline`, by default the first hardware. A hardware that cannot run the configuration
        is an `unsupported` row with its reason. Raises UnknownNameError, UsageError, ModelError, CatalogueError or
        DatabaseError; UnsupportedError if no hardware can run it.
        """
    @overload
    def compare(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        baseline: str = "",
        **keywords: Unpack[SettingsKeywords],
    ) -> CompareAnswer: ...
    @overload
    def compare_models(
        self,
        models: Sequence[str],
        settings: Settings = SETTINGS,
        *,
        metric: PartMetricName = "energy",
        **keywords: Unpack[SettingsKeywords],
    ) -> ModelsAnswer:
        """Return several models on each hardware, ranked both ways by a metric; raises as `compare`."""
    @overload
    def compare_models(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        metric: PartMetricName = "energy",
        **keywords: Unpack[SettingsKeywords],
    ) -> ModelsAnswer: ...
    @overload
    def report(
        self,
        models: str | Sequence[str],
        settings: Settings = SETTINGS,
        *,
        between: Sequence[str | Hardware] = (),
        demand: Demand | None = None,
        box: str = "",
        repeated: Sequence[str] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> ReportAnswer:
        """Return a report on models on each hardware, whose `save` writes one page that needs no network.

        It asks `compare` and what follows on the same hardware; what takes the batch to sweep takes those of `sweep`.
        `between` names the two hardware that are explained, by default the best against each other. With a demand each
        model has a chapter on how many of the same hardware serve it; with a box, one on which part of it runs where.
        `repeated` are the options that the page's own command line has. Raises as `compare`, `fleet` and `place`,
        UsageError for several batches, precisions or runtimes.
        """
    @overload
    def report(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        between: Sequence[str | Hardware] = (),
        demand: Demand | None = None,
        box: str = "",
        repeated: Sequence[str] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> ReportAnswer: ...
    @overload
    def compare_runs(
        self,
        models: Sequence[str],
        settings: Settings = SETTINGS,
        **keywords: Unpack[SettingsKeywords],
    ) -> BreakdownAnswer:
        """Return models on one or several hardware: figures of each run, and the tree of its energy.

        Raises as `compare`.
        """
    @overload
    def compare_runs(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        **keywords: Unpack[SettingsKeywords],
    ) -> BreakdownAnswer: ...
    @overload
    def compare_parts(
        self,
        models: Sequence[str],
        settings: Settings = SETTINGS,
        *,
        by: ModelDivision = "subgraph",
        metric: PartMetricName = "energy",
        **keywords: Unpack[SettingsKeywords],
    ) -> ContestAnswer:
        """Return each subgraph or operator of the models on each hardware, and who wins it by a metric.

        Its edp is the share that adds up to the run's, its memory the bytes moved off chip. Raises as `compare`.
        """
    @overload
    def compare_parts(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        by: ModelDivision = "subgraph",
        metric: PartMetricName = "energy",
        **keywords: Unpack[SettingsKeywords],
    ) -> ContestAnswer: ...
    @overload
    def compare_breakdowns(
        self,
        models: Sequence[str],
        settings: Settings = SETTINGS,
        *,
        level: ModelDivision = "subgraph",
        by: EnergyDivision = "category",
        subgraph: str = "",
        **keywords: Unpack[SettingsKeywords],
    ) -> PartAnswer:
        """Return what each subgraph or operator spends its energy on, on each hardware.

        Categories are those that all architectures share. `subgraph` names one to look inside. Raises as `compare`;
        UnknownNameError for a subgraph that no model has.
        """
    @overload
    def compare_breakdowns(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        level: ModelDivision = "subgraph",
        by: EnergyDivision = "category",
        subgraph: str = "",
        **keywords: Unpack[SettingsKeywords],
    ) -> PartAnswer: ...
    @overload
    def rank_hardware(
        self,
        model: str,
        settings: Settings = SETTINGS,
        *,
        sort: RankMetricName = "efficiency",
        has_details: bool = False,
        has_subgraphs: bool = False,
        **keywords: Unpack[SettingsKeywords],
    ) -> RankingAnswer:
        """Return hardware ranked by a metric, as a deployment chooses it; raises as `compare`.

        `has_details` adds what each is made of and how its utilization spreads, `has_subgraphs` every subgraph with
        the units that it is placed on and what bounds it.
        """
    @overload
    def rank_hardware(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        sort: RankMetricName = "efficiency",
        has_details: bool = False,
        has_subgraphs: bool = False,
        **keywords: Unpack[SettingsKeywords],
    ) -> RankingAnswer: ...
    @overload
    def analyze(
        self,
        model: str,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        subgraph: str = "",
        **keywords: Unpack[RunKeywords],
    ) -> AnalyzeAnswer:
        """Return one run taken apart: by category, action, subgraph and operator, with time, memory and bottlenecks.

        Its events are those of a subgraph alone where one is named. Raises as `compare`; UnknownNameError for a
        subgraph that the model does not have; UsageError for a folder with several hardware, UnsupportedError with the
        reason if the hardware cannot run the configuration: a precision that it lacks, or a memory that the model does
        not fit.
        """
    @overload
    def analyze(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        subgraph: str = "",
        **keywords: Unpack[RunKeywords],
    ) -> AnalyzeAnswer: ...
    @overload
    def break_down(
        self,
        model: str,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        level: ModelDivision = "subgraph",
        by: EnergyDivision = "category",
        subgraph: str = "",
        **keywords: Unpack[RunKeywords],
    ) -> PartAnswer:
        """Return what each subgraph or operator of one run spends its energy on, summing to the run exactly.

        Categories are the architecture's own. `subgraph` names one to look inside. Raises as `analyze`;
        UnknownNameError for a subgraph that the model does not have.
        """
    @overload
    def break_down(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        level: ModelDivision = "subgraph",
        by: EnergyDivision = "category",
        subgraph: str = "",
        **keywords: Unpack[RunKeywords],
    ) -> PartAnswer: ...
    @overload
    def explain(
        self,
        model: str,
        hardware_a: str | Hardware,
        hardware_b: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        metric: PartMetricName = "energy",
        subgraph: str = "",
        **keywords: Unpack[RunKeywords],
    ) -> ExplainAnswer:
        """Return why B differs from A in a metric, as terms that sum to the difference exactly.

        `subgraph` names one to look inside: then the terms sum to the difference of that one, whose edp is its own
        energy x its own time. Memory is the peak of the whole runs. Raises as `compare`; UnsupportedError if either
        cannot run the configuration; UsageError for a folder of several in place of a hardware.
        """
    @overload
    def explain(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        hardware_a: str | Hardware,
        hardware_b: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        metric: PartMetricName = "energy",
        subgraph: str = "",
        **keywords: Unpack[RunKeywords],
    ) -> ExplainAnswer: ...
    @overload
    def sensitivity(
        self,
        model: str,
        settings: Settings = SETTINGS,
        *,
        metric: VariedMetricName = "energy",
        usage: Usage = USAGE,
        **keywords: Unpack[SettingsKeywords],
    ) -> SensitivityAnswer:
        """Return how much each constant of each hardware moves what the model takes on it, by a metric.

        Constants are those that the run asks for, each alone; `usage` counts where the metric is a cost. Raises as
        `compare`; UsageError where no hardware is named.
        """
    @overload
    def sensitivity(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        metric: VariedMetricName = "energy",
        usage: Usage = USAGE,
        **keywords: Unpack[SettingsKeywords],
    ) -> SensitivityAnswer: ...
    @overload
    def flip(
        self,
        model: str,
        hardware_a: str | Hardware,
        hardware_b: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        metric: VariedMetricName = "energy",
        usage: Usage = USAGE,
        **keywords: Unpack[RunKeywords],
    ) -> FlipAnswer:
        """Return by which factor each constant would have to be wrong for the other hardware to be the better one.

        With how much of the doubt about the ratio each of them makes, and what to measure next. `usage` counts where
        the metric is a cost. Raises as `explain`; UsageError where the two are alike.
        """
    @overload
    def flip(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        hardware_a: str | Hardware,
        hardware_b: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        metric: VariedMetricName = "energy",
        usage: Usage = USAGE,
        **keywords: Unpack[RunKeywords],
    ) -> FlipAnswer: ...
    @overload
    def architectures(
        self,
        model: str,
        settings: Settings = EVERYWHERE,
        **keywords: Unpack[SettingsKeywords],
    ) -> ArchitecturesAnswer:
        """Return what each architecture class spends a model's joules on, what one MAC takes on it, and why.

        Without named hardware, one stands for each of the eight classes. A hardware that lacks the precision has the
        nearest that it has; one that cannot run the model is an `unsupported` row with its reason. Raises as `compare`.
        """
    @overload
    def architectures(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = EVERYWHERE,
        **keywords: Unpack[SettingsKeywords],
    ) -> ArchitecturesAnswer: ...
    def contrast_phases(
        self,
        model: str = MODEL,
        settings: Settings = PHASED,
        *,
        prompt: int = PROMPT,
        **keywords: Unpack[SettingsKeywords],
    ) -> PhasesAnswer:
        """Return what prefill and decode of a language model spend on each architecture class, and why.

        Without named hardware, a chip stands for each of CPU, GPU, TPU and NPU that holds the usual model. A hardware that
        lacks the precision has the nearest that it has; one that cannot run it is `unsupported`. Raises as `compare`.
        """
    @overload
    def pareto(
        self,
        model: str,
        settings: Settings = CANDIDATES,
        *,
        x: MetricName = "latency",
        y: MetricName = "energy_per_inference",
        usage: Usage = USAGE,
        **keywords: Unpack[SettingsKeywords],
    ) -> ParetoAnswer:
        """Return which configurations no other beats in both metrics, and who beats the rest.

        Hardware (all of the catalogue where none is named), each of its power modes, precisions, runtimes and batches
        (1, 8 and 32 where none is named) are combined. What is not stored is evaluated. Raises as `compare`.
        """
    @overload
    def pareto(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = CANDIDATES,
        *,
        x: MetricName = "latency",
        y: MetricName = "energy_per_inference",
        usage: Usage = USAGE,
        **keywords: Unpack[SettingsKeywords],
    ) -> ParetoAnswer: ...
    @overload
    def plot(
        self,
        model: str,
        figure: FigureName,
        settings: Settings | None = None,
        *,
        metric: MetricName | None = None,
        **keywords: Unpack[SettingsKeywords],
    ) -> Figure:
        """Return a figure of a model on its hardware: `sweep`, `pareto`, `waterfall` and the others of `FigureName`.

        It asks the question that draws it, with what that takes by itself where no settings are given: a waterfall and
        a flip are of two hardware, a tornado and an edp of one, a roofline of one or of several under each other's roofs.
        `metric` is that of a waterfall, a tornado, a flip or a
        heatmap. `draw_svg` and `draw_png` make a file of it. Raises as the question; UsageError for another number of
        hardware, UnsupportedError where there is nothing to draw.
        """
    @overload
    def plot(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        figure: FigureName,
        settings: Settings | None = None,
        *,
        metric: MetricName | None = None,
        **keywords: Unpack[SettingsKeywords],
    ) -> Figure: ...
    @overload
    def recommend(
        self,
        model: str,
        settings: Settings = CANDIDATES,
        *,
        objective: MetricName = "energy_per_inference",
        limits: Limits = LIMITS,
        usage: Usage = USAGE,
        **keywords: Unpack[SettingsKeywords],
    ) -> RecommendAnswer:
        """Return the configurations that keep the limits, best first, and how far the others are from them.

        Configurations are those of `pareto`. Where none keeps the limits, `nearest_miss` is the one whose largest
        relative violation is the smallest, and `shortfall` says so. Raises as `compare`.
        """
    @overload
    def recommend(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = CANDIDATES,
        *,
        objective: MetricName = "energy_per_inference",
        limits: Limits = LIMITS,
        usage: Usage = USAGE,
        **keywords: Unpack[SettingsKeywords],
    ) -> RecommendAnswer: ...
    @overload
    def cost(
        self,
        model: str,
        settings: Settings = DEPLOYED,
        *,
        between: Sequence[str] = (),
        usage: Usage = USAGE,
        limits: Limits = LIMITS,
        prices: Sequence[Price] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> CostAnswer:
        """Return what a million inferences cost on each configuration, rented or bought, with energy and carbon.

        Configurations are those of `pareto`. `between` names the two options of the break-even (`l4`, `l4:rented`,
        `epyc_9654:bought`), by default the cheapest bought and the cheapest rented one. What does not keep the limits
        is left out; `prices` stand in place of the catalogue's. Raises as `compare`; UsageError for an option without a
        price, UnsupportedError where nothing keeps the limits.
        """
    @overload
    def cost(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = DEPLOYED,
        *,
        between: Sequence[str] = (),
        usage: Usage = USAGE,
        limits: Limits = LIMITS,
        prices: Sequence[Price] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> CostAnswer: ...
    def place(
        self,
        model: str,
        box: str = "",
        *,
        settings: Settings = PLACED,
        on: Sequence[str] = (),
        links: Sequence[str] = (),
        goal: Goal = "latency",
        **keywords: Unpack[SettingsKeywords],
    ) -> PlaceAnswer:
        """Return the best placement of a model's subgraphs over the devices of a box, beside each device alone.

        A box is one of the catalogue or a file, or made of the devices `on` and `links`. Raises UsageError for a box or
        link that is wrong, UnsupportedError for an operator that no device runs, ModelError for a model that cannot be
        traced.
        """
    @overload
    def llm(
        self,
        model: str,
        settings: Settings = SERVED,
        *,
        serving: Serving = SERVING,
        usage: Usage = USAGE,
        prices: Sequence[Price] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> LlmAnswer:
        """Return how each hardware serves a language model: times, energy and cost of a token, what fits, what bounds it.

        `model` is a name that ships, a `config.json` or its folder, or a model with a cache that is traced. Each
        configuration has two runs, of the pass of its prompts and of a step at the middle of the output, both of one of its
        devices; energies of the answer are of all of them. What does not fit, or lacks the precision, is a row with the
        reason. Raises UnknownNameError for a model, a hardware or an engine that is not there, UsageError for what is asked
        wrongly, ModelError for what cannot be traced, UnsupportedError where nothing serves.
        """
    @overload
    def llm(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SERVED,
        *,
        serving: Serving = SERVING,
        usage: Usage = USAGE,
        prices: Sequence[Price] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> LlmAnswer: ...
    @overload
    def offload(
        self,
        model: str,
        settings: Settings = SERVED,
        *,
        serving: Serving = SERVING,
        **keywords: Unpack[SettingsKeywords],
    ) -> OffloadAnswer:
        """Return how many layers of a language model go to the GPU of a box, the rest to its processor, at each batch.

        UsageError for what is no such box and for what is asked of a server, UnsupportedError where no division fits;
        raises otherwise as `llm`.
        """
    @overload
    def offload(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SERVED,
        *,
        serving: Serving = SERVING,
        **keywords: Unpack[SettingsKeywords],
    ) -> OffloadAnswer: ...
    def fleet(
        self,
        model: str,
        settings: Settings = DEPLOYED,
        *,
        demand: Demand,
        serving: Serving = SERVING,
        usage: Usage = USAGE,
        prices: Sequence[Price] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> FleetAnswer:
        """Return how many of each hardware serve a demand, the best of its objective first.

        `model` has the share of the requests that `demand.beside` leaves. Devices are alike, share one queue, and each
        takes batches of what waits; a language model, where the time to its first token or between its tokens is promised,
        is served as `llm` serves it. Raises as `compare`; UsageError for a demand that cannot be read, UnsupportedError
        where no hardware keeps the promise, with the nearest.
        """
    @overload
    def train(
        self,
        model: str,
        settings: Settings = LEARNED,
        *,
        training: Training = TRAINING,
        usage: Usage = USAGE,
        prices: Sequence[Price] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> TrainAnswer:
        """Return what a training step of a model takes on each hardware: time, energy, memory, and what its samples cost.

        `batch` of the settings are samples of all devices. Runs are of one device, with full ledgers; energies of the
        answer are of all devices. What does not fit is a row, with what would. Raises UnknownNameError for a model or
        hardware that is not there, UsageError for what is asked wrongly, ModelError for a model that is not trained as it
        is traced, UnsupportedError where nothing trains it. A box is its devices, all of them unless `training` says else.
        """
    @overload
    def train(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = LEARNED,
        *,
        training: Training = TRAINING,
        usage: Usage = USAGE,
        prices: Sequence[Price] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> TrainAnswer: ...
    def measure(
        self,
        model: str,
        settings: Settings = MEASURED,
        *,
        hardware: str | Hardware | None = None,
        device: Device = "cpu",
        threads: int | None = None,
        seconds: float = 2.0,
        **keywords: Unpack[RunKeywords],
    ) -> MeasureAnswer:
        """Run a model on this machine's `cpu` or `cuda` device; return what it took beside the prediction, both stored.

        `hardware` says what this machine is: an id, alias, file or record; None for the catalogue's entry of its name
        and units, else its description of itself. The window lasts `seconds`. Raises as `compare`; UsageError for a
        device, runtime or precision that cannot be measured here, ModelError where the model cannot run. A hardware
        that cannot run the configuration leaves the prediction out and says why.
        """
    def measure_host(
        self,
        *,
        device: Device = "cpu",
        seconds: float = 2.0,
    ) -> HostAnswer:
        """Time the calls of an eager framework on this machine; return how long it takes to launch a kernel on a GPU.

        Raises UsageError for a device that is not here.
        """
    @overload
    def modules(
        self,
        model: str,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        **keywords: Unpack[RunKeywords],
    ) -> ModulesAnswer:
        """Return what each module of a model takes on one hardware, with all that runs inside it; raises as `analyze`."""
    @overload
    def modules(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        **keywords: Unpack[RunKeywords],
    ) -> ModulesAnswer: ...
    def watch(
        self,
        module: torch.nn.Module,
        settings: Settings = WATCHED,
        *,
        hardware: str | Hardware | None = None,
        quiet: bool = False,
        **keywords: Unpack[RunKeywords],
    ) -> AbstractContextManager[Watch]:
        """Time what is called of a module until the end, module by module, and print it beside its prediction.

        `hardware` is what it is predicted for: an id, alias, file or record; None for this machine, as the catalogue or
        the machine itself describes it. The precision is that of autocast or of the weights unless it is given, the
        runtime of what is compiled `fused`. What is printed is the `answer` of the watch, and nothing where it is `quiet`.
        Raises UsageError for what is no module and where it was not called, UnknownNameError for hardware; a module that
        cannot be traced or run there has no prediction, and the answer says why.
        """
    @overload
    def evaluate(
        self,
        models: Sequence[str],
        settings: Settings = SETTINGS,
        **keywords: Unpack[SettingsKeywords],
    ) -> RunTally:
        """Evaluate every model at every batch, precision and runtime on each hardware; return how many runs there are.

        Models and hardware are named as for `compare`. What is stored is skipped, so that what was interrupted goes on
        where it stopped; a configuration that a hardware cannot run is stored with the reason. Runs are written in
        transactions of about a million ledger lines. Raises UnknownNameError, UsageError, ModelError or DatabaseError.
        """
    @overload
    def evaluate(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        **keywords: Unpack[SettingsKeywords],
    ) -> RunTally: ...
    def run(
        self,
        run_id: int,
    ) -> Run:
        """Return a stored run as records: its workload, subgraphs, allocations, operators, every line of its ledger.

        Ids are in `answer.scope.run_ids` and in the SQL views. Raises UnknownNameError for a run that is not stored,
        UnsupportedError with the reason for one that was refused, DatabaseError.
        """
    @overload
    def workload(
        self,
        model: str,
        settings: Settings = SETTINGS,
        **keywords: Unpack[ModelKeywords],
    ) -> Workload:
        """Return the traced and fused model as records, tracing it if need be; raises as `compare`."""
    @overload
    def workload(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        **keywords: Unpack[ModelKeywords],
    ) -> Workload: ...
    @overload
    def operators(
        self,
        model: str,
        settings: Settings = SETTINGS,
        **keywords: Unpack[ModelKeywords],
    ) -> Table[ListedOperator]:
        """Return the model's operators in execution order, tracing it if need be; raises as `compare`."""
    @overload
    def operators(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        **keywords: Unpack[ModelKeywords],
    ) -> Table[ListedOperator]: ...
    @overload
    def profile(
        self,
        model: str,
        settings: Settings = SETTINGS,
        **keywords: Unpack[ModelKeywords],
    ) -> ProfileAnswer:
        """Return what a model is before any hardware is chosen: counts, bytes, mix, patterns; raises as `compare`."""
    @overload
    def profile(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        **keywords: Unpack[ModelKeywords],
    ) -> ProfileAnswer: ...
    @overload
    def edp(
        self,
        model: str,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        against: Iterable[str | Hardware] = (),
        **keywords: Unpack[RunKeywords],
    ) -> EdpAnswer:
        """Return how a run's energy-delay product spreads over subgraphs, operators, patterns and parts.

        With `against`, each subgraph stands beside itself on those hardware; one that cannot run the configuration is
        left out, with its reason. Raises as `analyze`.
        """
    @overload
    def edp(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        *,
        against: Iterable[str | Hardware] = (),
        **keywords: Unpack[RunKeywords],
    ) -> EdpAnswer: ...
    @overload
    def fusion(
        self,
        model: str,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        **keywords: Unpack[RunKeywords],
    ) -> FusionAnswer:
        """Return what fusing saves of a run, or costs: by fusion pattern, subgraph and operator, each summing to it.

        The run is set beside its operators as kernels of their own on the same hardware, without host cost; of
        `runtime` graph or eager, that run beside the same in fused. Raises as `analyze`.
        """
    @overload
    def fusion(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        hardware: str | Hardware,
        settings: Settings = SETTINGS,
        **keywords: Unpack[RunKeywords],
    ) -> FusionAnswer: ...
    @overload
    def utilization(
        self,
        model: str,
        settings: Settings = SETTINGS,
        *,
        min_compute_fraction: float = 0.2,
        max_bandwidth_fraction: float = 0.9,
        max_idle_fraction: float = 0.8,
        grades: Sequence[float] = (),
        has_advice: bool = True,
        is_pairing: bool = False,
        **keywords: Unpack[SettingsKeywords],
    ) -> UtilizationAnswer:
        """Return how much of each hardware the model uses, and a flag with its reason where that is unhealthy.

        A run is flagged below `min_compute_fraction` of the peak, above `max_bandwidth_fraction` of the bandwidth that
        its class sustains, and above `max_idle_fraction` of the units idle. `grades` are the least shares of a peak
        that are excellent, good, fair and poor. Advice evaluates the model at other batches, precisions and power modes
        and on other hardware; without it nothing but the runs themselves is evaluated. `is_pairing` evaluates a few
        models of each size and asks the stored runs on this hardware, on all where it is one, which suits which. Raises
        as `compare`, UsageError for a limit or grade that is not from 0 to 1.
        """
    @overload
    def utilization(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        min_compute_fraction: float = 0.2,
        max_bandwidth_fraction: float = 0.9,
        max_idle_fraction: float = 0.8,
        grades: Sequence[float] = (),
        has_advice: bool = True,
        is_pairing: bool = False,
        **keywords: Unpack[SettingsKeywords],
    ) -> UtilizationAnswer: ...
    @overload
    def sweep(
        self,
        models: Sequence[str],
        settings: Settings = SETTINGS,
        *,
        max_latency_s: float = 0.0,
        **keywords: Unpack[SettingsKeywords],
    ) -> SweepAnswer:
        """Evaluate as `evaluate` what is not stored, and return what batch suits each hardware.

        Batches are 1, 2, 4, ..., 128 where none is named; `max_latency_s` is the latency budget of one, 0 for none.
        Raises as `evaluate`; UnsupportedError if no hardware can run any of it.
        """
    @overload
    def sweep(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        settings: Settings = SETTINGS,
        *,
        max_latency_s: float = 0.0,
        **keywords: Unpack[SettingsKeywords],
    ) -> SweepAnswer: ...
    def query(
        self,
        name: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        queries: str | Path | None = None,
        bounds: Bounds = BOUNDS,
    ) -> Rows:
        """Run a query read-only: one that ships, or of the folder `queries`, whose files are checked before they run.

        Raises UnknownNameError, UsageError, SqlError, also where it takes more than `bounds`, or DatabaseError.
        """
    def list_queries(
        self,
        queries: str | Path | None = None,
    ) -> Rows:
        """Return the queries that ship, and those of a person's own folder after a check of every file.

        Needs no database. SqlError names each file that breaks a rule, and why; UsageError for a folder that is not
        there.
        """
    def sql(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        bounds: Bounds = BOUNDS,
    ) -> Rows:
        """Run one ad-hoc SELECT read-only, without access to files or settings; `parameters` are its `$name`s.

        What Python lacks (times with a zone, intervals, nanoseconds, infinite dates) are texts as DuckDB writes them.
        Raises SqlError, also where it takes more time, rows or memory than `bounds`, UsageError where the parameters
        are not those of the statement, or DatabaseError.
        """
    def stream(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        bounds: Bounds = STREAMED,
        output: str | Path | None = None,
    ) -> AbstractContextManager[Statement]:
        """Give out a statement as `sql` takes it, whose rows are read while it is open, however many they are.

        In batches, as Arrow without a copy, or into `output`, the one file that it may write, as Parquet. Its time is
        what it may take without a row. Raises as `sql`.
        """
    def stream_query(
        self,
        name: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        queries: str | Path | None = None,
        bounds: Bounds = STREAMED,
        output: str | Path | None = None,
    ) -> AbstractContextManager[Statement]:
        """Give out a query as `query` takes it, and as `stream` does a statement."""
    def describe(
        self,
        name: str,
        parameters: Mapping[str, Any] | None = None,
    ) -> Rows:
        """Run a query about the catalogue, whether or not there is a database.

        Reads the database if it holds the current catalogue, else a catalogue loaded for the occasion.
        """
    def hardware_list(
        self,
        *,
        architecture: str = "",
        deployment: Deployment | Literal[""] = "",
        precision: Precision | Literal[""] = "",
        min_memory_bytes: float | None = None,
        max_power_w: float | None = None,
        max_price_usd: float | None = None,
    ) -> Table[ListedHardware]:
        """Return the hardware of the catalogue that pass every filter; a filter of None or "" lets all pass.

        Raises UnknownNameError for a class or deployment, UsageError for a precision that does not exist.
        """
    def hardware(
        self,
        name: str,
        *,
        calibration: str | Calibration = "auto",
    ) -> HardwareAnswer:
        """Return every number of one hardware: an id or alias, with `@MODE` or without, or a hardware file.

        The numbers are those under its calibration, as for `compare`. Raises UnknownNameError, or CatalogueError for a
        file that breaks a rule.
        """
    def box_list(
        self,
    ) -> Table[ListedBox]:
        """Return the boxes of the catalogue, by id."""
    def box(
        self,
        name: str,
    ) -> BoxAnswer:
        """Return one box by id, alias or file; UnknownNameError for what is none, CatalogueError for a file."""
    def energy_reference(
        self,
        name: str,
        *,
        calibration: str | Calibration = "auto",
        boundary: Boundary = "board",
    ) -> Table[ActionPrice]:
        """Return the energy reference table of one hardware, as runs at this boundary use it.

        Named, calibrated and raising as `hardware`; UsageError for a boundary that is neither `board` nor `chip`.
        """
    def sanity(
        self,
        hardware: Iterable[str | Hardware] = (),
    ) -> SanityAnswer:
        """Return what a large matrix product at each precision and a stream copy draw on these hardware, or on all.

        Evaluated in a database of its own, which is thrown away. Raises UnknownNameError or CatalogueError.
        """
    def measurements(
        self,
        hardware: str = "",
        model: str = "",
    ) -> Table[ListedMeasurement]:
        """Return what was measured on a hardware (an id or alias), of a model or a kind of operator; of all for ""."""
    def served_measurements(
        self,
        hardware: str = "",
        model: str = "",
        origin: str = "",
    ) -> Table[ServedMeasurement]:
        """Return what was measured of served models, on a hardware, where names of model and source hold these texts."""
    def import_measurements(
        self,
        path: str | Path,
    ) -> tuple[int, int]:
        """Store the measurements of a CSV or JSON file; return how many are new, and how many were stored already.

        They are of single runs, or of language models as they are served, with the columns of `served_measurements`.
        `public:NAME` stands for a public table that ships. Raises CatalogueError naming the lines that are wrong; then
        none is stored; UnknownNameError for a public table that does not exist.
        """
    def validate(
        self,
        hardware: str = "",
        model: str = "",
        *,
        precision: Precision | Literal[""] = "",
        by: ScoreDivision = "runtime",
        source: str = "",
        calibration: str | Calibration = "auto",
        trust: bool = False,
    ) -> Table[PredictionScore]:
        """Return how far predictions are from measurements, by `by`.

        That is runtime, family, kind of operator, model, batch, precision, engine, hardware alone, or split: how new the
        rows are to the model's coefficients; source and quantity divide the rows of all hardware together. `model` may be
        a kind of operator, as `gemm`, or a text that names of served models hold; `source` is a text that the sources of
        measurements hold. Measured configurations that are not stored are evaluated first; what is measured of served
        models and cannot be predicted is told in the table's notes. `calibration` is as for `compare`. Model files that
        rows name run with `trust` alone; without it the notes name them.
        Raises NoMeasurementError where nothing was measured of what is asked about.
        """
    def verify(
        self,
        files: str | Path | Sequence[str | Path],
        *,
        model: str = "",
        hardware: str = "",
        precision: str = "",
        runtime: str = "",
        engine: str = "",
        batch: int | None = None,
        devices: int | None = None,
        replicas: int | None = None,
        passes: int | None = None,
        prompt: int | None = None,
        output: int | None = None,
        calibration: str | Calibration = "auto",
        keep: bool = False,
        calibrate: bool = False,
    ) -> VerifyAnswer:
        """Return what files of other tools measured beside what is predicted for it, and what would explain a difference.

        The format is known by content. The other arguments say what a file does not, or say it otherwise: `precision` is
        of the weights of served models, `passes` what ran in a window of a meter, `replicas` the servers that share the
        requests, `prompt` and `output` tokens of a request. `keep` stores the rows as measurements, `calibrate` fits the
        hardware to them and to all that is stored,
        into the person's own folder. Raises CatalogueError for a file that cannot be read, UsageError or UnknownNameError
        for what is neither told nor stated.
        """
    def serving_refusals(
        self,
        hardware: str = "",
        model: str = "",
        source: str = "",
    ) -> Table[ServingRefusal]:
        """Return which measurements of served models `validate` could not predict, and why."""
    def validate_operators(
        self,
        hardware: str = "",
        model: str = "",
        *,
        precision: Precision | Literal[""] = "",
        calibration: str | Calibration = "auto",
        trust: bool = False,
    ) -> Table[OperatorScore]:
        """Return how far predicted device times inside models are from measured ones, by kind of operator.

        Runs and errors are those of `validate`.
        """
    def calibrate(
        self,
        hardware: str | Hardware,
        *,
        precisions: Collection[str] = (),
        models: Collection[str] = (),
        operators: bool = False,
        output: str | Path | None = None,
        is_dry: bool = False,
        start: str | Calibration = "none",
        trust: bool = False,
        force: bool = False,
        beside: Sequence[Measurement] = (),
    ) -> CalibrateAnswer:
        """Fit a hardware's coefficients to all that was measured on it, or at these precisions and of these models.

        `operators` counts single operators and blocks beside whole models; without it they count only where there is
        no model. `beside` are measurements that are not stored and count like those that are. The calibration is
        written to `output`, or to the person's own folder, where `auto` finds it; not at all if `is_dry`. `start` is
        where the fit begins: `none` for the class's defaults, else as `calibration` of `compare`. Model files that rows
        name run with `trust` alone. A file that is there and no calibration is replaced with `force` alone. Raises
        NoMeasurementError where nothing fits, UnknownNameError, UsageError, or CatalogueError for a file.
        """
    def difference(
        self,
        run_a: int,
        run_b: int,
    ) -> DifferenceAnswer:
        """Return what differs between two runs: settings, constants, and the terms of their energies.

        Raises UnknownNameError for a run that is not stored, DatabaseError.
        """
    def diff(
        self,
        before: str,
        after: str,
        settings: Settings = SETTINGS,
        *,
        fail_above: Mapping[str, float] = NOTHING,
        **keywords: Unpack[SettingsKeywords],
    ) -> DiffAnswer:
        """Return what changes from one version of a model to another, on each hardware: named, or a telling four.

        A version is a model as `compare` takes it, or `REV:path/to/file.py:NAME`, the same file as a commit of the
        repository of this folder has it; files of code are traced each time. `fail_above` is the greatest change of
        latency, energy, memory or cost that is no failure, as a fraction: 0.05 is 5 %. Raises as `compare`; ModelError for
        a commit that is not there.
        """
    def export_runs(
        self,
        folder: str | Path,
        run_ids: Sequence[int] = (),
        *,
        form: ArchiveFormat = "parquet",
    ) -> int:
        """Write runs, all if none is named, to a folder that is new or empty; return how many.

        `parquet` holds everything that `import_runs` needs; `json` and `csv` are the promised views of these runs.
        Raises UnknownNameError for a run that is not stored, UsageError for a folder or form, DatabaseError.
        """
    def import_runs(
        self,
        folder: str | Path,
    ) -> tuple[int, int]:
        """Read the runs of a folder that `export_runs` wrote; return how many are new, and how many were stored.

        A run is the same where its key is. Raises CatalogueError for a folder that is not an export, is damaged, or
        whose parts do not add up, and DatabaseError; then nothing is stored.
        """
    @overload
    def export(
        self,
        model: str,
        hardware: str | Hardware,
        form: ExportFormat = "pprof",
        settings: Settings = SETTINGS,
        *,
        against: str | Hardware | None = None,
        metric: PartMetricName = "energy",
        **keywords: Unpack[RunKeywords],
    ) -> AbstractContextManager[Iterator[bytes]]:
        """Give out the file of one run in a format of other programs, piece by piece, to read while it is open.

        `pprof` is a gzipped profile, which `against` makes the difference to another hardware; `perfetto` a trace in
        JSON; `explorer` the node data of a saved program, one metric of each node. Raises as `analyze`; UsageError for
        another model as node data, and for a base of what is no profile.
        """
    @overload
    def export(
        self,
        module: torch.nn.Module,
        example_inputs: ExampleInputs | None,
        /,
        hardware: str | Hardware,
        form: ExportFormat = "pprof",
        settings: Settings = SETTINGS,
        *,
        against: str | Hardware | None = None,
        metric: PartMetricName = "energy",
        **keywords: Unpack[RunKeywords],
    ) -> AbstractContextManager[Iterator[bytes]]: ...
    def check(
        self,
    ) -> AuditAnswer:
        """Return every rule that the database breaks: of its schema, of what was written, of its sums.

        Reads all of the file, in a process of its own. DatabaseError for a damaged block, or where the engine crashes.
        """
    def recover(
        self,
        path: str | Path,
    ) -> Recovery:
        """Put what can be read of this database into a new one; return how many runs, and what was lost.

        The database itself stays as it is. Raises DatabaseError where nothing can be read, UsageError for a `path` that
        is there already.
        """
    def info(
        self,
    ) -> DatabaseAnswer:
        """Return what the database file is and holds."""
    def migrate(
        self,
    ) -> int:
        """Make or update the database; return its schema version."""
    def shards(
        self,
        lake: str | Path,
    ) -> LakeAnswer:
        """Return the files of a lake and what they hold; DatabaseError for what is no lake."""
    def check_shards(
        self,
        lake: str | Path,
    ) -> LakeAnswer:
        """Return the same after a look at every byte of every shard."""
    def clean_shards(
        self,
        lake: str | Path,
        *,
        remove: bool = False,
    ) -> LakeAnswer:
        """Return the garbage of a lake: what is stale, damaged, there twice or left unfinished; `remove` removes it.

        A file that was written a moment ago may be under work and stays. Raises DatabaseError for what is no lake, or a
        file that cannot be removed.
        """
