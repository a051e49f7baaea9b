"""The library's front object. Each question imports what it needs, so that reading costs no more than reading."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Unpack

from joulemap.domain.architecture import COMMON_PRECISION
from joulemap.domain.settings import (
    DEFAULT_DATABASE,
    Bounds,
    Limits,
    ModelKeywords,
    Price,
    RunKeywords,
    Settings,
    SettingsKeywords,
    Usage,
)
from joulemap.plan.source import Progress, Source, Talk
from joulemap.question import about_model
from joulemap.store.connection import PATIENT, Patience, place_database, silent

if TYPE_CHECKING:
    from joulemap.answer.analyze.answer import AnalyzeAnswer
    from joulemap.answer.architecture.answer import ArchitecturesAnswer
    from joulemap.answer.calibrate import CalibrateAnswer
    from joulemap.answer.compare.breakdown import BreakdownAnswer
    from joulemap.answer.compare.contest import ContestAnswer
    from joulemap.answer.compare.model import ModelsAnswer
    from joulemap.answer.compare.ranking import RankingAnswer
    from joulemap.answer.compare.summary import CompareAnswer
    from joulemap.answer.cost import CostAnswer
    from joulemap.answer.database import AuditAnswer, DatabaseAnswer
    from joulemap.answer.difference import DifferenceAnswer
    from joulemap.answer.edp.answer import EdpAnswer
    from joulemap.answer.explain.answer import ExplainAnswer
    from joulemap.answer.flip import FlipAnswer
    from joulemap.answer.fusion.answer import FusionAnswer
    from joulemap.answer.hardware import HardwareAnswer
    from joulemap.answer.measure import MeasureAnswer
    from joulemap.answer.model import ProfileAnswer
    from joulemap.answer.pareto import ParetoAnswer
    from joulemap.answer.part import PartAnswer
    from joulemap.answer.recommend import RecommendAnswer
    from joulemap.answer.record import Run
    from joulemap.answer.report.answer import ReportAnswer
    from joulemap.answer.sanity import SanityAnswer
    from joulemap.answer.sensitivity import SensitivityAnswer
    from joulemap.answer.sweep.answer import SweepAnswer
    from joulemap.answer.utilization.answer import UtilizationAnswer
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.configuration import Boundary, Precision
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.metric import MetricName, PartMetricName, RankMetricName, VariedMetricName
    from joulemap.domain.settings import (
        ArchiveFormat,
        Deployment,
        Device,
        EnergyDivision,
        ExportFormat,
        ModelDivision,
        ScoreDivision,
    )
    from joulemap.domain.table import Table
    from joulemap.domain.workload import Workload
    from joulemap.figure.figure import Figure
    from joulemap.figure.spec import FigureName
    from joulemap.plan.run import RunTally
    from joulemap.row.hardware import ActionPrice, ListedHardware
    from joulemap.row.measurement import ListedMeasurement
    from joulemap.row.model import ListedOperator
    from joulemap.row.validate import OperatorScore, PredictionScore
    from joulemap.store.query import Rows
    from joulemap.store.recover import Recovery
    from joulemap.store.statement import Statement


SETTINGS: Final = Settings()
"""One run at fp32 with torch.compile's kernels, on hardware that the question chooses."""

MEASURED: Final = Settings(runtime="eager")
"""What runs without a compiler."""

EVERYWHERE: Final = Settings(precision=COMMON_PRECISION)
"""What hardware of every class runs."""

CANDIDATES: Final = Settings(precision=("fp32", "fp16", "bf16", "int8"))
"""What is chosen from: with every hardware and power mode, at batches 1, 8 and 32."""

BOUNDS: Final = Bounds()
STREAMED: Final = Bounds(max_rows=None)
LIMITS: Final = Limits()
USAGE: Final = Usage()


class Workspace:
    """A results database and the questions it answers.

    Nothing is opened until a question is asked, and nothing stays open after it. Questions that need runs which are
    not stored trace, evaluate and write them; all others only read. Threads may share a workspace: readers work side by
    side, and each writer waits until it is alone.
    """

    def __init__(
        self,
        path: str | Path = DEFAULT_DATABASE,
        *,
        talk: Talk = silent,
        progress: Progress | None = None,
        patience: Patience = PATIENT,
    ) -> None:
        """Use the database at `path`, made when first written.

        `talk` is told what takes time, `progress` (runs done, runs to do) where many are evaluated, and `patience` says
        how long to wait for others who hold the database. Raises UsageError for a path that names a service.
        """
        self.path = place_database(path)
        self._source = Source(path=self.path, talk=talk, progress=progress, patience=patience)

    @about_model
    def compare(
        self, model: str, settings: Settings = SETTINGS, *, baseline: str = "", **keywords: Unpack[SettingsKeywords]
    ) -> CompareAnswer:
        """Return the model on each hardware: named, of an architecture or deployment, or the default four.

        `model` is a known name, `path/to/file.py:factory`, `path/to/model.pt2`, `timm:NAME`, `hf:NAME`, or an
        `nn.Module`, which example inputs follow, here and in every question; keywords are the fields of `Settings`.
        Ratios are relative to `baseline`, by default the first hardware. A hardware that cannot run the configuration
        is an `unsupported` row with its reason. Raises UnknownNameError, UsageError, ModelError, CatalogueError or
        DatabaseError; UnsupportedError if no hardware can run it.
        """
        from joulemap.answer.compare.summary import compare

        return compare(self._source, model, settings.with_keywords(keywords), baseline)

    @about_model
    def compare_models(
        self,
        models: Sequence[str],
        settings: Settings = SETTINGS,
        *,
        metric: PartMetricName = "energy",
        **keywords: Unpack[SettingsKeywords],
    ) -> ModelsAnswer:
        """Return several models on each hardware, ranked both ways by a metric; raises as `compare`."""
        from joulemap.answer.compare.model import compare_models

        return compare_models(self._source, models, settings.with_keywords(keywords), metric)

    @about_model
    def report(
        self,
        models: str | Sequence[str],
        settings: Settings = SETTINGS,
        *,
        between: Sequence[str | Hardware] = (),
        repeated: Sequence[str] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> ReportAnswer:
        """Return a report on models on each hardware, whose `save` writes one page that needs no network.

        It asks `compare` and what follows on the same hardware; what takes the batch to sweep takes those of `sweep`.
        `between` names the two hardware that are explained, by default the best against each other; `repeated` are the
        options that the page's own command line has. Raises as `compare`, UsageError for several batches, precisions
        or runtimes.
        """
        from joulemap.answer.report.answer import report

        names = (models,) if isinstance(models, str) else models
        return report(self._source, names, settings.with_keywords(keywords), between, repeated)

    @about_model
    def compare_runs(
        self, models: Sequence[str], settings: Settings = SETTINGS, **keywords: Unpack[SettingsKeywords]
    ) -> BreakdownAnswer:
        """Return models on one or several hardware: figures of each run, and the tree of its energy.

        Raises as `compare`.
        """
        from joulemap.answer.compare.breakdown import break_down

        return break_down(self._source, models, settings.with_keywords(keywords))

    @about_model
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
        from joulemap.answer.compare.contest import hold_contest

        return hold_contest(self._source, models, settings.with_keywords(keywords), by, metric)

    @about_model
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
        from joulemap.answer.part import break_down_runs

        chosen = settings.with_keywords(keywords)
        return break_down_runs(self._source, models, chosen, level=level, by=by, subgraph=subgraph)

    @about_model
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
        from joulemap.answer.compare.ranking import rank

        chosen = settings.with_keywords(keywords)
        return rank(self._source, model, chosen, sort, has_details=has_details, has_subgraphs=has_subgraphs)

    @about_model
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
        from joulemap.answer.analyze.answer import analyze

        return analyze(self._source, model, hardware, settings.with_keywords(keywords), subgraph)

    @about_model
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
        from joulemap.answer.part import break_down_run

        chosen = settings.with_keywords(keywords)
        return break_down_run(self._source, model, hardware, chosen, level=level, by=by, subgraph=subgraph)

    @about_model
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
        from joulemap.answer.explain.answer import explain

        chosen = settings.with_keywords(keywords)
        return explain(self._source, model, (hardware_a, hardware_b), chosen, metric, subgraph)

    @about_model
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
        from joulemap.answer.sensitivity import find_sensitivity

        return find_sensitivity(self._source, model, settings.with_keywords(keywords), metric, usage)

    @about_model
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
        from joulemap.answer.flip import find_flips

        chosen = settings.with_keywords(keywords)
        return find_flips(self._source, model, (hardware_a, hardware_b), chosen, metric, usage)

    @about_model
    def architectures(
        self, model: str, settings: Settings = EVERYWHERE, **keywords: Unpack[SettingsKeywords]
    ) -> ArchitecturesAnswer:
        """Return what each architecture class spends a model's joules on, what one MAC takes on it, and why.

        Without named hardware, one stands for each of the eight classes. A hardware that lacks the precision has the
        nearest that it has; one that cannot run the model is an `unsupported` row with its reason. Raises as `compare`.
        """
        from joulemap.answer.architecture.contrast import contrast

        return contrast(self._source, model, settings.with_keywords(keywords))

    @about_model
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
        from joulemap.answer.pareto import find_front

        return find_front(self._source, model, x, y, settings.with_keywords(keywords), usage)

    @about_model
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
        a flip are of two hardware, a tornado and an edp of one. `metric` is that of a waterfall, a tornado, a flip or a
        heatmap. `draw_svg` and `draw_png` make a file of it. Raises as the question; UsageError for another number of
        hardware, UnsupportedError where there is nothing to draw.
        """
        from joulemap.answer.plot import find_question, plot

        usual = CANDIDATES if find_question(figure).is_choice else SETTINGS
        return plot(self, model, figure, (settings or usual).with_keywords(keywords), metric or "")

    @about_model
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
        relative violation is the smallest. Raises as `compare`.
        """
        from joulemap.answer.recommend import recommend

        return recommend(self._source, model, objective, limits, settings.with_keywords(keywords), usage)

    @about_model
    def cost(
        self,
        model: str,
        settings: Settings = CANDIDATES,
        *,
        between: Sequence[str] = (),
        usage: Usage = USAGE,
        limits: Limits = LIMITS,
        prices: Sequence[Price] = (),
        **keywords: Unpack[SettingsKeywords],
    ) -> CostAnswer:
        """Return what a million inferences cost on each configuration, rented or bought, with energy and carbon.

        Configurations are those of `pareto`. `between` names the two options of the break-even (`l4`, `l4:cloud`,
        `epyc_9654:purchase`), by default the cheapest bought and the cheapest rented one. What does not keep the limits
        is left out; `prices` stand in place of the catalogue's. Raises as `compare`; UsageError for an option without a
        price, UnsupportedError where nothing keeps the limits.
        """
        from joulemap.answer.cost import price_inferences

        chosen = settings.with_keywords(keywords)
        return price_inferences(self._source, model, chosen, usage, between, limits=limits, prices=prices)

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
        from joulemap.answer.measure import measure_model

        return measure_model(
            self._source,
            model,
            settings.with_keywords(keywords),
            hardware=hardware,
            device=device,
            threads=threads,
            seconds=seconds,
        )

    @about_model
    def evaluate(
        self, models: Sequence[str], settings: Settings = SETTINGS, **keywords: Unpack[SettingsKeywords]
    ) -> RunTally:
        """Evaluate every model at every batch, precision and runtime on each hardware; return how many runs there are.

        Models and hardware are named as for `compare`. What is stored is skipped, so that what was interrupted goes on
        where it stopped; a configuration that a hardware cannot run is stored with the reason. Runs are written in
        transactions of about a million ledger lines. Raises UnknownNameError, UsageError, ModelError or DatabaseError.
        """
        from joulemap.plan.hold import ensure_runs
        from joulemap.plan.run import plan_runs

        return ensure_runs(self._source, plan_runs(models, settings.with_keywords(keywords)))

    def run(self, run_id: int) -> Run:
        """Return a stored run as records: its workload, subgraphs, allocations, operators, every line of its ledger.

        Ids are in `answer.scope.run_ids` and in the SQL views. Raises UnknownNameError for a run that is not stored,
        UnsupportedError with the reason for one that was refused, DatabaseError.
        """
        from joulemap.answer.record import read_run

        return read_run(self._source, run_id)

    @about_model
    def workload(self, model: str, settings: Settings = SETTINGS, **keywords: Unpack[ModelKeywords]) -> Workload:
        """Return the traced and fused model as records, tracing it if need be; raises as `compare`."""
        from joulemap.answer.model import find_workload

        return find_workload(self._source, model, settings.with_keywords(keywords))

    @about_model
    def operators(
        self, model: str, settings: Settings = SETTINGS, **keywords: Unpack[ModelKeywords]
    ) -> Table[ListedOperator]:
        """Return the model's operators in execution order, tracing it if need be; raises as `compare`."""
        from joulemap.answer.model import list_operators

        return list_operators(self._source, model, settings.with_keywords(keywords))

    @about_model
    def profile(self, model: str, settings: Settings = SETTINGS, **keywords: Unpack[ModelKeywords]) -> ProfileAnswer:
        """Return what a model is before any hardware is chosen: counts, bytes, mix, patterns; raises as `compare`."""
        from joulemap.answer.model import profile

        return profile(self._source, model, settings.with_keywords(keywords))

    @about_model
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
        from joulemap.answer.edp.answer import take_apart

        return take_apart(self._source, model, hardware, settings.with_keywords(keywords), against)

    @about_model
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
        from joulemap.answer.fusion.answer import find_savings

        return find_savings(self._source, model, hardware, settings.with_keywords(keywords))

    @about_model
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
        from joulemap.answer.utilization.answer import judge

        limits = {
            "min_compute_fraction": min_compute_fraction,
            "max_bandwidth_fraction": max_bandwidth_fraction,
            "max_idle_fraction": max_idle_fraction,
        }
        return judge(
            self._source,
            model,
            settings.with_keywords(keywords),
            limits,
            grades,
            has_advice=has_advice,
            is_pairing=is_pairing,
        )

    @about_model
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
        from joulemap.answer.sweep.answer import sweep_batches

        return sweep_batches(self._source, models, settings.with_keywords(keywords), max_latency_s)

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
        from joulemap.answer.query import run_named

        return run_named(self._source, name, parameters or {}, None if queries is None else Path(queries), bounds)

    def list_queries(self, queries: str | Path | None = None) -> Rows:
        """Return the queries that ship, and those of a person's own folder after a check of every file.

        Needs no database. SqlError names each file that breaks a rule, and why; UsageError for a folder that is not
        there.
        """
        from joulemap.answer.query import list_named

        return list_named(self._source, None if queries is None else Path(queries))

    def sql(self, statement: str, parameters: Mapping[str, Any] | None = None, *, bounds: Bounds = BOUNDS) -> Rows:
        """Run one ad-hoc SELECT read-only, without access to files or settings; `parameters` are its `$name`s.

        What Python lacks (times with a zone, intervals, nanoseconds, infinite dates) are texts as DuckDB writes them.
        Raises SqlError, also where it takes more time, rows or memory than `bounds`, UsageError where the parameters
        are not those of the statement, or DatabaseError.
        """
        from joulemap.answer.query import run_statement

        return run_statement(self._source, statement, parameters, bounds)

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
        from joulemap.answer.query import opening_statement

        return opening_statement(self._source, statement, parameters, bounds, None if output is None else Path(output))

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
        from joulemap.answer.query import opening_named

        own, place = (None if path is None else Path(path) for path in (queries, output))
        return opening_named(self._source, name, parameters or {}, own, bounds, place)

    def describe(self, name: str, parameters: Mapping[str, Any] | None = None) -> Rows:
        """Run a query about the catalogue, whether or not there is a database.

        Reads the database if it holds the current catalogue, else a catalogue loaded for the occasion.
        """
        from joulemap.answer.query import run_described

        return run_described(self._source, name, parameters or {})

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
        from joulemap.answer.listing import list_hardware

        return list_hardware(
            self._source,
            architecture=architecture,
            deployment=deployment,
            precision=precision,
            min_memory_bytes=min_memory_bytes or 0.0,
            max_power_w=max_power_w or 0.0,
            max_price_usd=max_price_usd or 0.0,
        )

    def hardware(self, name: str, *, calibration: str | Calibration = "auto") -> HardwareAnswer:
        """Return every number of one hardware: an id or alias, with `@MODE` or without, or a hardware file.

        The numbers are those under its calibration, as for `compare`. Raises UnknownNameError, or CatalogueError for a
        file that breaks a rule.
        """
        from joulemap.answer.hardware import describe_hardware

        return describe_hardware(self._source, name, calibration)

    def energy_reference(
        self, name: str, *, calibration: str | Calibration = "auto", boundary: Boundary = "board"
    ) -> Table[ActionPrice]:
        """Return the energy reference table of one hardware, as runs at this boundary use it.

        Named, calibrated and raising as `hardware`; UsageError for a boundary that is neither `board` nor `chip`.
        """
        from joulemap.answer.hardware import list_prices

        return list_prices(self._source, name, calibration, boundary)

    def sanity(self, hardware: Iterable[str | Hardware] = ()) -> SanityAnswer:
        """Return what a large matrix product at each precision and a stream copy draw on these hardware, or on all.

        Evaluated in a database of its own, which is thrown away. Raises UnknownNameError or CatalogueError.
        """
        from joulemap.answer.sanity import probe_hardware

        return probe_hardware(hardware)

    def measurements(self, hardware: str = "", model: str = "") -> Table[ListedMeasurement]:
        """Return what was measured on a hardware (an id or alias), of a model or a kind of operator; of all for ""."""
        from joulemap.answer.measurement import list_measurements

        return list_measurements(self._source, hardware, model)

    def import_measurements(self, path: str | Path) -> tuple[int, int]:
        """Store the measurements of a CSV or JSON file; return how many are new, and how many were stored already.

        `public:NAME` stands for a public table that ships. Raises CatalogueError naming the lines that are wrong; then
        none is stored; UnknownNameError for a public table that does not exist.
        """
        from joulemap.answer.measurement import import_measurements

        return import_measurements(self._source, Path(path))

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

        That is runtime, family, kind of operator, model, batch, precision, hardware alone, or split: how new the rows
        are to the model's coefficients. `model` may be a kind of operator, as `gemm`; `source` is a text that the
        sources of measurements hold. Measured configurations that are not stored are evaluated first; `calibration` is
        as for `compare`. Model files that rows name run with `trust` alone; without it the table's notes name them.
        Raises UnknownNameError where nothing was measured of what is asked about.
        """
        from joulemap.answer.validate import score_predictions

        return score_predictions(
            self._source,
            hardware,
            model,
            precision=precision,
            by=by,
            origin=source,
            calibration=calibration,
            trust=trust,
        )

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
        from joulemap.answer.validate import score_operators

        return score_operators(self._source, hardware, model, precision=precision, calibration=calibration, trust=trust)

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
    ) -> CalibrateAnswer:
        """Fit a hardware's coefficients to all that was measured on it, or at these precisions and of these models.

        `operators` counts single operators and blocks beside whole models; without it they count only where there is
        no model. The calibration is written to `output`, or to the person's own folder, where `auto` finds it; not at
        all if `is_dry`. `start` is where the fit begins: `none` for the class's defaults, else as `calibration` of
        `compare`. Model files that rows name run with `trust` alone. A file that is there and no calibration is
        replaced with `force` alone. Raises NoMeasurementError
        where nothing fits, UnknownNameError, UsageError, or CatalogueError for a file.
        """
        from joulemap.answer.calibrate import fit_hardware
        from joulemap.plan.calibration import use_calibration

        return fit_hardware(
            self._source,
            hardware,
            precisions=precisions,
            models=models,
            operators=operators,
            output=None if output is None else Path(output),
            is_dry=is_dry,
            start=use_calibration(start),
            trust=trust,
            force=force,
        )

    def difference(self, run_a: int, run_b: int) -> DifferenceAnswer:
        """Return what differs between two runs: settings, constants, and the terms of their energies.

        Raises UnknownNameError for a run that is not stored, DatabaseError.
        """
        from joulemap.answer.difference import subtract

        return subtract(self._source, run_a, run_b)

    def export_runs(self, folder: str | Path, run_ids: Sequence[int] = (), *, form: ArchiveFormat = "parquet") -> int:
        """Write runs, all if none is named, to a folder that is new or empty; return how many.

        `parquet` holds everything that `import_runs` needs; `json` and `csv` are the promised views of these runs.
        Raises UnknownNameError for a run that is not stored, UsageError for a folder or form, DatabaseError.
        """
        from joulemap.answer.database import export_runs

        return export_runs(self._source, Path(folder), run_ids, form)

    def import_runs(self, folder: str | Path) -> tuple[int, int]:
        """Read the runs of a folder that `export_runs` wrote; return how many are new, and how many were stored.

        A run is the same where its key is. Raises CatalogueError for a folder that is not an export, is damaged, or
        whose parts do not add up, and DatabaseError; then nothing is stored.
        """
        from joulemap.answer.database import import_runs

        return import_runs(self._source, Path(folder))

    @about_model
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
        from joulemap.answer.export import opening_export

        return opening_export(self._source, model, hardware, form, settings.with_keywords(keywords), against, metric)

    def check(self) -> AuditAnswer:
        """Return every rule that the database breaks: of its schema, of what was written, of its sums.

        Reads all of the file, in a process of its own. DatabaseError for a damaged block, or where the engine crashes.
        """
        from joulemap.answer.database import audit_database

        return audit_database(self._source)

    def recover(self, path: str | Path) -> Recovery:
        """Put what can be read of this database into a new one; return how many runs, and what was lost.

        The database itself stays as it is. Raises DatabaseError where nothing can be read, UsageError for a `path` that
        is there already.
        """
        from joulemap.answer.database import recover_database

        return recover_database(self._source, place_database(path))

    def info(self) -> DatabaseAnswer:
        """Return what the database file is and holds."""
        from joulemap.answer.database import describe_database

        return describe_database(self._source)

    def migrate(self) -> int:
        """Make or update the database; return its schema version."""
        from joulemap.plan.catalogue import writing
        from joulemap.store.migration import SCHEMA_VERSION

        with writing(self._source):
            return SCHEMA_VERSION
