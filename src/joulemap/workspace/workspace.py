"""The library's front object. Each question imports what it needs, so that reading costs no more than reading."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from joulemap.errors import SqlError, UnsupportedError, UsageError
from joulemap.store.connection import (
    confine,
    open_for_reading,
    open_for_writing,
    read_everything,
    using,
)
from joulemap.store.library import find_query
from joulemap.store.query import Answer, check_runs, find_projected, run_queries, run_query, run_sql
from joulemap.store.read import find_refusals

if TYPE_CHECKING:
    from joulemap.domain.answer.store import Finding, RunTally
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.choice import Candidates, Limits, Usage
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.settings import Settings
    from joulemap.query.answer import (
        AnalyzeAnswer,
        CalibrateAnswer,
        CompareAnswer,
        CostAnswer,
        DatabaseInfo,
        DifferenceAnswer,
        ExplainAnswer,
        HardwareAnswer,
        MeasureAnswer,
        ParetoAnswer,
        ProfileAnswer,
        RecommendAnswer,
    )
    from joulemap.query.edp import EdpAnswer
    from joulemap.query.level import DetailAnswer, MatrixAnswer, PartAnswer, RankingAnswer
    from joulemap.query.sweep import SweepAnswer
    from joulemap.query.utilization import UtilizationAnswer

Talk = Callable[[str], None]
Progress = Callable[[int, int], None]


def _silent(_message: str) -> None:
    return None


class Workspace:
    """A results database and the questions it answers.

    Nothing is opened until a question is asked, and nothing stays open after it. Questions that need runs which are
    not stored trace, evaluate and write them in one transaction; all others only read.
    """

    def __init__(self, path: str | Path = "joulemap.duckdb", *, talk: Talk = _silent) -> None:
        """Use the database at `path`, made when first written; `talk` is told what takes time."""
        self.path = Path(path)
        self._talk = talk

    def compare(
        self,
        model: str,
        *,
        hardware: Sequence[str | Hardware] = (),
        architecture: Sequence[str] = (),
        deployment: Sequence[str] = (),
        power_mode: str = "",
        batch: int | None = None,
        precision: str = "fp32",
        runtime: str = "fused",
        baseline: str = "",
        inputs: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
        retrace: bool = False,
        calibration: str | Calibration = "auto",
    ) -> CompareAnswer:
        """Return the model on each hardware: named, of an architecture or deployment, or the default four.

        A hardware is an id or alias (`h100_sxm5`, `H100`), with a power mode as `jetson_orin_nano_8gb@15W`, a file or
        folder of hardware files, or a record; `power_mode` is that of all names without one.

        `model` is a known name, `path/to/file.py:factory`, `path/to/model.pt2`, `timm:NAME` or `hf:NAME`; `inputs` are
        written as on the command line (`1,3,224,224:fp32`) and `arguments` go to a factory. `retrace` ignores the
        workload that ships with the package. `calibration` is `auto` (each hardware's own where it has one), `none`,
        or a name, file or record of one, which is used for its hardware and `auto` for all other. A hardware that
        cannot run the configuration is an `unsupported` row with its reason. Raises UnknownNameError, UsageError,
        ModelError, CatalogueError or DatabaseError; UnsupportedError if no hardware can run it.
        """
        from joulemap.domain.answer.calibration import RunCalibration
        from joulemap.domain.answer.comparison import Caveat, Comparison, Insight, Recommendation
        from joulemap.plan.question import answering, ask, name_configuration
        from joulemap.query.answer import CompareAnswer

        question = ask(
            model,
            hardware=hardware,
            architecture=architecture,
            deployment=deployment,
            power_mode=power_mode,
            batch=batch,
            precision=precision,
            runtime=runtime,
            inputs=inputs,
            arguments=arguments,
            retrace=retrace,
            calibration=calibration,
        )
        baseline = name_configuration(baseline) if baseline else ""
        with answering(self.path, question, self._talk) as (run_ids, connection):
            ids = {"run_ids": list(run_ids)}
            summary, best, insight, caveat, calibration_rows = run_queries(
                connection,
                [
                    ("compare.summary", {**ids, "baseline": baseline}),
                    ("compare.recommendation", ids),
                    ("compare.insight", ids),
                    ("model.caveat", ids),
                    ("calibration.run", ids),
                ],
            )
            rows = tuple(Comparison(*row) for row in summary.rows)
            if all(row.status != "ok" for row in rows):
                raise UnsupportedError("; ".join(row.reason for row in rows))
            if baseline and all(row.hardware != baseline or row.status != "ok" for row in rows):
                raise UnsupportedError(f"the baseline {baseline} is not among the runs that could be answered")
            return CompareAnswer(
                model=rows[0].model,
                batch=rows[0].batch,
                precision=precision,
                runtime=runtime,
                run_ids=run_ids,
                rows=rows,
                recommendations=tuple(Recommendation(*row) for row in best.rows),
                insights=tuple(Insight(*row) for row in insight.rows),
                caveats=tuple(Caveat(*row) for row in caveat.rows),
                calibrations=tuple(RunCalibration(*row) for row in calibration_rows.rows),
                spelling=question.spelling,
                answers=(best, summary, insight, caveat, calibration_rows),
            )

    def compare_models(
        self, models: Sequence[str], *, metric: str = "energy", **settings: Unpack[Settings]
    ) -> MatrixAnswer:
        """Return several models on each hardware, ranked both ways by energy, latency, edp or memory per batch.

        Settings are the keywords of `compare`, without a baseline, and apply to every model. Raises as `compare`.
        """
        from joulemap.workspace.compare import compare_models

        return compare_models(self.path, self._talk, models, metric, **settings)

    def compare_runs(self, models: Sequence[str], **settings: Unpack[Settings]) -> DetailAnswer:
        """Return models on one or several hardware in detail: figures of each run, and the tree of its energy.

        Settings are as for `compare_models`. Raises as `compare`.
        """
        from joulemap.workspace.compare import compare_runs

        return compare_runs(self.path, self._talk, models, **settings)

    def compare_parts(
        self, models: Sequence[str], *, level: str = "subgraph", metric: str = "energy", **settings: Unpack[Settings]
    ) -> PartAnswer:
        """Return each `subgraph` or `operator` of the models on each hardware, and who wins it by a metric.

        The metric is energy, latency, edp (the share that adds up to the run's) or memory (bytes moved off chip).
        Settings are as for `compare_models`. Raises as `compare`.
        """
        from joulemap.workspace.compare import compare_parts

        return compare_parts(self.path, self._talk, models, level, metric, **settings)

    def rank_hardware(
        self,
        model: str,
        *,
        sort: str = "efficiency",
        has_details: bool = False,
        has_parts: bool = False,
        **settings: Unpack[Settings],
    ) -> RankingAnswer:
        """Return hardware ranked by latency, throughput, power, efficiency or energy, as a deployment chooses it.

        `has_details` adds what each is made of and how its utilization spreads, `has_parts` every subgraph. Settings
        are as for `compare_models`. Raises as `compare`.
        """
        from joulemap.workspace.compare import rank_hardware

        return rank_hardware(
            self.path, self._talk, model, sort, has_details=has_details, has_parts=has_parts, **settings
        )

    def analyze(
        self,
        model: str,
        hardware: str | Hardware,
        *,
        power_mode: str = "",
        batch: int | None = None,
        precision: str = "fp32",
        runtime: str = "fused",
        inputs: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
        retrace: bool = False,
        calibration: str | Calibration = "auto",
    ) -> AnalyzeAnswer:
        """Return one run taken apart: by category, action, subgraph and operator, with time, memory and bottlenecks.

        Raises as `compare`; UsageError for a folder with several hardware, UnsupportedError with the reason if the
        hardware cannot run the configuration: a precision that it lacks, or a memory that the model does not fit.
        """
        from joulemap.domain.answer.analysis import (
            ActionShare,
            BottleneckShare,
            CategoryShare,
            OperatorShare,
            RunTotal,
            SubgraphShare,
        )
        from joulemap.domain.answer.calibration import RunCalibration
        from joulemap.domain.answer.comparison import Caveat
        from joulemap.plan.question import answering, ask
        from joulemap.query.answer import AnalyzeAnswer

        question = ask(
            model,
            hardware=(hardware,),
            power_mode=power_mode,
            batch=batch,
            precision=precision,
            runtime=runtime,
            inputs=inputs,
            arguments=arguments,
            retrace=retrace,
            calibration=calibration,
        )
        if len(question.choice.names) != 1:
            raise UsageError(f"{hardware} holds {len(question.choice.names)} hardware, expected one; name its file")
        with answering(self.path, question, self._talk) as ((run_id,), connection):
            refusal = find_refusals(connection, [run_id])[run_id]
            if refusal is not None:
                raise UnsupportedError(refusal)
            of_run = {"run_id": run_id}
            names = ("total", "category", "action", "subgraph", "operator", "bottleneck")
            total, category, action, subgraph, operator, bottleneck, caveat, calibration_rows = run_queries(
                connection,
                [
                    *((f"analyze.{name}", of_run) for name in names),
                    ("model.caveat", {"run_ids": [run_id]}),
                    ("calibration.run", {"run_ids": [run_id]}),
                ],
            )
            if not total.rows:
                raise UnsupportedError(
                    f"{model}: none of its operators runs as a kernel, so there is nothing to analyze"
                )
            total = find_projected(connection, total)
            return AnalyzeAnswer(
                total=RunTotal(*total.rows[0]),
                categories=tuple(CategoryShare(*row) for row in category.rows),
                actions=tuple(ActionShare(*row) for row in action.rows),
                subgraphs=tuple(SubgraphShare(*row) for row in subgraph.rows),
                operators=tuple(OperatorShare(*row) for row in operator.rows),
                bottlenecks=tuple(BottleneckShare(*row) for row in bottleneck.rows),
                caveats=tuple(Caveat(*row) for row in caveat.rows),
                calibrations=tuple(RunCalibration(*row) for row in calibration_rows.rows),
                spelling=question.spelling,
                answers=(total, category, action, subgraph, operator, bottleneck, caveat, calibration_rows),
            )

    def explain(
        self,
        model: str,
        hardware_a: str | Hardware,
        hardware_b: str | Hardware,
        *,
        metric: str = "energy",
        batch: int | None = None,
        precision: str = "fp32",
        runtime: str = "fused",
        inputs: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
        retrace: bool = False,
        calibration: str | Calibration = "auto",
    ) -> ExplainAnswer:
        """Return why B differs from A in a metric, as terms that sum to the difference exactly.

        The metric is energy, latency, memory (peak bytes) or edp, energy x latency.

        Raises as `compare`; UnsupportedError if either cannot run the configuration; UsageError for a metric that is
        not explained, or for a folder in place of a hardware.
        """
        from joulemap.domain.settings import COMPARED
        from joulemap.plan.question import answering, ask
        from joulemap.workspace.explain import explain_pair

        if metric not in COMPARED:
            raise UsageError(f"cannot explain {metric!r}; known: {', '.join(COMPARED)}")
        question = ask(
            model,
            hardware=(hardware_a, hardware_b),
            batch=batch,
            precision=precision,
            runtime=runtime,
            inputs=inputs,
            arguments=arguments,
            retrace=retrace,
            calibration=calibration,
        )
        if len(question.choice.names) != 2:
            raise UsageError(f"{len(question.choice.names)} hardware are named, expected two: name files, not folders")
        with answering(self.path, question, self._talk) as (run_ids, connection):
            return explain_pair(connection, run_ids[0], run_ids[-1], metric, question.spelling)

    def pareto(
        self,
        model: str,
        *,
        x: str = "latency",
        y: str = "energy_per_inference",
        candidates: Candidates | None = None,
        usage: Usage | None = None,
    ) -> ParetoAnswer:
        """Return which of the candidates no other beats in both metrics, and who beats the rest.

        Metrics are `METRICS` of `joulemap.domain.choice`. What is not stored is evaluated. Raises as `compare`.
        """
        from joulemap.domain.choice import Candidates, Usage
        from joulemap.workspace.choice import find_front

        return find_front(self.path, self._talk, model, x, y, candidates or Candidates(), usage or Usage())

    def recommend(
        self,
        model: str,
        *,
        objective: str = "energy_per_inference",
        limits: Limits | None = None,
        candidates: Candidates | None = None,
        usage: Usage | None = None,
    ) -> RecommendAnswer:
        """Return the candidates that keep the limits, best first, and how far the others are from them.

        The objective is one of `OBJECTIVES` of `joulemap.domain.choice`. Where none keeps the limits, `nearest_miss` is
        the one whose largest relative violation is the smallest. Raises as `compare`.
        """
        from joulemap.domain.choice import Candidates, Limits, Usage
        from joulemap.workspace.choice import recommend

        return recommend(
            self.path,
            self._talk,
            model,
            objective,
            limits or Limits(),
            candidates or Candidates(),
            usage or Usage(),
        )

    def cost(
        self,
        model: str,
        *,
        between: Sequence[str] = (),
        candidates: Candidates | None = None,
        usage: Usage | None = None,
    ) -> CostAnswer:
        """Return what a million inferences cost on each candidate, rented or bought, with energy and carbon.

        `between` names the two options of the break-even (`l4`, `l4:cloud`, `epyc_9654:purchase`), by default the
        cheapest bought and the cheapest rented one. Raises as `compare`; UsageError for an option without a price.
        """
        from joulemap.domain.choice import Candidates, Usage
        from joulemap.workspace.choice import price_inferences

        return price_inferences(self.path, self._talk, model, between, candidates or Candidates(), usage or Usage())

    def measure(
        self,
        model: str,
        *,
        hardware: str | Hardware | None = None,
        device: str = "cpu",
        batch: int | None = None,
        precision: str = "fp32",
        runtime: str = "eager",
        inputs: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
        threads: int | None = None,
        seconds: float = 2.0,
        calibration: str | Calibration = "auto",
    ) -> MeasureAnswer:
        """Run a model on this machine's `cpu` or `cuda` device; return what it took beside the prediction, both stored.

        `hardware` says what this machine is: an id, alias, file or record; None for the catalogue's entry of its name
        and units, else its description of itself. The window lasts `seconds`. Raises as `compare`; UsageError for a
        device, runtime or precision that cannot be measured here, ModelError where the model cannot run. A hardware
        that cannot run the configuration leaves the prediction out and says why.
        """
        from joulemap.workspace.measure import measure

        return measure(
            self.path,
            self._talk,
            model,
            hardware=hardware,
            device=device,
            batch=batch,
            precision=precision,
            runtime=runtime,
            inputs=inputs,
            arguments=arguments,
            threads=threads,
            seconds=seconds,
            calibration=calibration,
        )

    def evaluate(
        self,
        models: Sequence[str],
        *,
        hardware: Sequence[str | Hardware] = (),
        architecture: Sequence[str] = (),
        deployment: Sequence[str] = (),
        batches: Sequence[int] = (1,),
        precisions: Sequence[str] = ("fp32",),
        runtimes: Sequence[str] = ("fused",),
        power_mode: str = "",
        calibration: str | Calibration = "auto",
    ) -> RunTally:
        """Evaluate every model at every batch, precision and runtime on each hardware; return how many runs there are.

        Models and hardware are named as for `compare`. What is stored is skipped, so a sweep that was interrupted goes
        on where it stopped; a configuration that a hardware cannot run is stored with the reason. Runs are written in
        transactions of about a million ledger lines. Raises UnknownNameError, UsageError, ModelError or DatabaseError.
        """
        from joulemap.workspace.sweep import ask_all, run_sweep

        sweep = ask_all(
            models,
            hardware=hardware,
            architecture=architecture,
            deployment=deployment,
            power_mode=power_mode,
            batches=batches,
            precisions=precisions,
            runtimes=runtimes,
            calibration=calibration,
        )
        return run_sweep(self.path, sweep, self._talk)

    def operators(
        self,
        model: str,
        *,
        batch: int | None = None,
        inputs: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
        retrace: bool = False,
    ) -> Answer:
        """Return the model's operators in execution order, tracing it if need be; raises as `compare`."""
        from joulemap.plan.question import ask, holding

        question = ask(model, batch=batch, inputs=inputs, arguments=arguments, retrace=retrace)
        with holding(self.path, question, self._talk) as (workload_id, connection):
            return run_query(connection, find_query("model.operator"), {"workload_id": workload_id})

    def profile(
        self,
        model: str,
        *,
        batch: int | None = None,
        inputs: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
        retrace: bool = False,
    ) -> ProfileAnswer:
        """Return what a model is before any hardware is chosen: counts, bytes, mix, patterns; raises as `compare`."""
        from joulemap.domain.answer.model import ModelProfile, OperationShare, PatternShare
        from joulemap.plan.question import ask, holding
        from joulemap.query.answer import ProfileAnswer

        question = ask(model, batch=batch, inputs=inputs, arguments=arguments, retrace=retrace)
        with holding(self.path, question, self._talk) as (workload_id, connection):
            which = {"workload_id": workload_id}
            total = run_query(connection, find_query("model.profile"), which)
            mix = run_query(connection, find_query("model.mix"), which)
            pattern = run_query(connection, find_query("model.pattern"), which)
            return ProfileAnswer(
                profile=ModelProfile(*total.rows[0]),
                mix=tuple(OperationShare(*row) for row in mix.rows),
                patterns=tuple(PatternShare(*row) for row in pattern.rows),
                answers=(total, mix, pattern),
            )

    def edp(
        self,
        model: str,
        hardware: str | Hardware,
        *,
        against: Sequence[str | Hardware] = (),
        power_mode: str = "",
        batch: int | None = None,
        precision: str = "fp32",
        runtime: str = "fused",
        inputs: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
        retrace: bool = False,
        calibration: str | Calibration = "auto",
    ) -> EdpAnswer:
        """Return how a run's energy-delay product spreads over subgraphs, operators, patterns and parts.

        With `against`, each subgraph stands beside itself on those hardware. Raises as `analyze`; a hardware of
        `against` that cannot run the configuration is left out, with its reason in `refusals`.
        """
        from joulemap.workspace.edp import take_apart

        return take_apart(
            self.path,
            self._talk,
            model,
            hardware,
            against=against,
            power_mode=power_mode,
            batch=batch,
            precision=precision,
            runtime=runtime,
            inputs=inputs,
            arguments=arguments,
            retrace=retrace,
            calibration=calibration,
        )

    def utilization(
        self,
        model: str,
        *,
        hardware: Sequence[str | Hardware] = (),
        architecture: Sequence[str] = (),
        deployment: Sequence[str] = (),
        power_mode: str = "",
        batch: int | None = None,
        precision: str = "fp32",
        runtime: str = "fused",
        min_compute_fraction: float = 0.2,
        max_bandwidth_fraction: float = 0.9,
        max_idle_fraction: float = 0.8,
        is_pairing: bool = False,
        inputs: Sequence[str] = (),
        arguments: Mapping[str, object] | None = None,
        retrace: bool = False,
        calibration: str | Calibration = "auto",
    ) -> UtilizationAnswer:
        """Return how much of each hardware the model uses, and a flag with its reason where that is unhealthy.

        Hardware is chosen as for `compare`. A run is flagged below `min_compute_fraction` of the peak, above
        `max_bandwidth_fraction` of the bandwidth that its class sustains, and above `max_idle_fraction` of the units
        idle. `is_pairing` asks all stored runs which hardware suits models of this size. Raises as `compare`,
        UsageError for a limit that is not from 0 to 1.
        """
        from joulemap.workspace.utilization import judge

        return judge(
            self.path,
            self._talk,
            model,
            hardware=hardware,
            architecture=architecture,
            deployment=deployment,
            power_mode=power_mode,
            batch=batch,
            precision=precision,
            runtime=runtime,
            limits={
                "min_compute_fraction": min_compute_fraction,
                "max_bandwidth_fraction": max_bandwidth_fraction,
                "max_idle_fraction": max_idle_fraction,
            },
            is_pairing=is_pairing,
            inputs=inputs,
            arguments=arguments,
            retrace=retrace,
            calibration=calibration,
        )

    def sweep(
        self,
        models: Sequence[str],
        *,
        hardware: Sequence[str | Hardware] = (),
        architecture: Sequence[str] = (),
        deployment: Sequence[str] = (),
        batches: Sequence[int] = (1, 2, 4, 8, 16, 32, 64, 128),
        precisions: Sequence[str] = ("fp32",),
        runtimes: Sequence[str] = ("fused",),
        power_mode: str = "",
        arguments: Mapping[str, object] | None = None,
        calibration: str | Calibration = "auto",
        max_latency_s: float = 0.0,
        progress: Progress | None = None,
    ) -> SweepAnswer:
        """Evaluate as `evaluate` what is not stored, and return what batch suits each hardware.

        `max_latency_s` is the latency budget of a batch, 0 for none; `arguments` go to the factory of every model.
        `progress` is told (runs done, runs to do) and is not called where everything is stored. Raises as `evaluate`;
        UnsupportedError if no hardware can run any of it.
        """
        from joulemap.workspace.sweep import answer_sweep, ask_all

        sweep = ask_all(
            models,
            hardware=hardware,
            architecture=architecture,
            deployment=deployment,
            power_mode=power_mode,
            batches=batches,
            precisions=precisions,
            runtimes=runtimes,
            arguments=arguments,
            calibration=calibration,
        )
        return answer_sweep(self.path, sweep, self._talk, progress, max_latency_s)

    def query(
        self, name: str, parameters: Mapping[str, Any] | None = None, *, queries: str | Path | None = None
    ) -> Answer:
        """Run a query read-only: one that ships, or of the folder `queries`, whose files are checked before they run.

        Raises UnknownNameError, UsageError, SqlError or DatabaseError.
        """
        own = None if queries is None else Path(queries)
        query = find_query(name, own)
        with using(open_for_reading(self.path), self.path) as connection:
            if own is not None and query.path.is_relative_to(own):
                from joulemap.store.check import check_query
                from joulemap.store.migration import SCHEMA_VERSION

                confine(connection)
                check_query(connection, query, SCHEMA_VERSION)
            check_runs(connection, parameters or {})
            return find_projected(connection, run_query(connection, query, parameters or {}))

    def check_queries(self, queries: str | Path) -> None:
        """Check the query files of a folder against their headers; SqlError names each that breaks a rule, and why.

        Needs no database. Raises UsageError for a folder that is not there.
        """
        from joulemap.plan.catalogue import opening_catalogue
        from joulemap.store.check import check_query
        from joulemap.store.library import list_queries
        from joulemap.store.migration import SCHEMA_VERSION

        own = Path(queries)
        refused = []
        found = list_queries(own)
        with opening_catalogue(self.path) as connection:
            confine(connection)
            for query in found:
                if query.path.is_relative_to(own):
                    try:
                        check_query(connection, query, SCHEMA_VERSION)
                    except SqlError as error:
                        refused.append(str(error))
        if refused:
            raise SqlError("; ".join(refused))

    def describe(self, name: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """Run a query about the catalogue, whether or not there is a database.

        Reads the database if it holds the current catalogue, else a catalogue loaded for the occasion.
        """
        query = find_query(name)
        from joulemap.plan.catalogue import opening_catalogue

        with opening_catalogue(self.path) as connection:
            return find_projected(connection, run_query(connection, query, parameters or {}))

    def hardware_list(
        self,
        *,
        architecture: str = "",
        deployment: str = "",
        precision: str = "",
        min_memory_bytes: float = 0.0,
        max_power_w: float = 0.0,
        max_price_usd: float = 0.0,
    ) -> Answer:
        """Return the hardware of the catalogue that pass every filter; a filter of 0 or "" lets all pass.

        Raises UnknownNameError for a class or deployment, UsageError for a precision that does not exist.
        """
        from joulemap.plan.catalogue import known_hardware
        from joulemap.plan.plan import check_filters, check_precision

        classes = {entry.architecture for entry in known_hardware().values()} if architecture else set()
        check_filters([architecture] if architecture else [], [deployment] if deployment else [], classes)
        if precision:
            check_precision(precision)
        return self.describe(
            "hardware.list",
            {
                "architecture": architecture,
                "deployment": deployment,
                "precision": precision,
                "min_memory_bytes": min_memory_bytes,
                "max_power_w": max_power_w,
                "max_price_usd": max_price_usd,
            },
        )

    def hardware(self, name: str, *, calibration: str | Calibration = "auto") -> HardwareAnswer:
        """Return every number of one hardware: an id or alias, with `@MODE` or without, or a hardware file.

        The numbers are those under its calibration, as for `compare`. Raises UnknownNameError, or CatalogueError for a
        file that breaks a rule.
        """
        from joulemap.domain.answer.calibration import RunCalibration
        from joulemap.query.answer import HardwareAnswer
        from joulemap.workspace.hardware import opening_hardware

        with opening_hardware(self.path, name, calibration) as (connection, found, used):
            which = {"hardware": found}
            rows = run_query(connection, find_query("calibration.list"), which).rows if used else ()
            return HardwareAnswer(
                summary=run_query(connection, find_query("hardware.summary"), which),
                ridge=run_query(connection, find_query("hardware.ridge"), which),
                fact=run_query(connection, find_query("hardware.fact"), which),
                calibrations=tuple(RunCalibration(*row) for row in rows),
            )

    def energy_reference(self, name: str, *, calibration: str | Calibration = "auto") -> Answer:
        """Return the energy reference table of one hardware; named, calibrated and raising as `hardware`."""
        from joulemap.workspace.hardware import opening_hardware

        with opening_hardware(self.path, name, calibration) as (connection, found, _):
            return run_query(connection, find_query("hardware.energy"), {"hardware": found})

    def sanity(self, names: Sequence[str | Hardware] = ()) -> Answer:
        """Return what a large matrix product at each precision and a stream copy draw on these hardware, or on all.

        Evaluated in a database of its own, which is thrown away. Raises UnknownNameError or CatalogueError.
        """
        from joulemap.workspace.sanity import probe

        return probe(names)

    def measurements(self, hardware: str = "", model: str = "") -> Answer:
        """Return what was measured on a hardware (an id or alias, all for ""), of a model (all for "")."""
        from joulemap.workspace.validation import name_measured

        named = name_measured(self.path, hardware)
        return self.describe("measurement.list", {"hardware": named, "model": model})

    def import_measurements(self, path: str | Path) -> tuple[int, int]:
        """Store the measurements of a CSV or JSON file; return how many are new, and how many were stored already.

        Raises CatalogueError naming the lines that are wrong; then none is stored.
        """
        from joulemap.workspace.validation import import_file

        return import_file(self.path, Path(path))

    def validate(
        self,
        hardware: str = "",
        model: str = "",
        *,
        precision: str = "",
        by: str = "runtime",
        calibration: str | Calibration = "auto",
    ) -> Answer:
        """Return how far predictions are from measurements, by `by`.

        That is runtime, family, model, batch, precision, split (how new the rows are to the model's coefficients), or
        operator: device time inside models, by kind of operator. Measured configurations that are not stored are
        evaluated first; `calibration` is as for `compare`. Raises UnknownNameError where nothing was measured on the
        hardware, of the model or at the precision.
        """
        from joulemap.workspace.validation import evaluate_measured, name_measured

        named = name_measured(self.path, hardware)
        which = {"hardware": named, "model": model, "precision": precision}
        chosen = (named, model, precision)
        if by == "operator":
            profiled = self.describe("measurement.profile", which)
            evaluate_measured(self, profiled, chosen, precision, self._talk, calibration)
            return self.query("validate.operator", which)
        measured = self.measurements(named, model)
        used = evaluate_measured(self, measured, chosen, precision, self._talk, calibration)
        return self.query("validate.score", {**which, "by": by, "calibrations": list(used)})

    def calibrate(
        self,
        hardware: str | Hardware,
        *,
        precisions: Sequence[str] = (),
        models: Sequence[str] = (),
        output: str | Path | None = None,
        is_dry: bool = False,
        start: str | Calibration = "none",
    ) -> CalibrateAnswer:
        """Fit a hardware's coefficients to all that was measured on it, or at these precisions and of these models.

        The calibration is written to `output`, or to the person's own folder, where `auto` finds it; not at all if
        `is_dry`. `start` is where the fit begins: `none` for the class's defaults, else as `calibration` of `compare`.
        Raises NoMeasurementError where nothing fits, UnknownNameError, UsageError, or CatalogueError for a file.
        """
        from joulemap.plan.calibration import choose_calibration
        from joulemap.workspace.calibrate import calibrate

        return calibrate(
            self.path,
            self._talk,
            hardware,
            precisions=precisions,
            models=models,
            output=None if output is None else Path(output),
            is_dry=is_dry,
            start=choose_calibration(start),
        )

    def difference(self, run_a: int, run_b: int) -> DifferenceAnswer:
        """Return what differs between two runs: settings, constants, and the terms of their energies.

        Raises UnknownNameError for a run that is not stored, DatabaseError.
        """
        from joulemap.workspace.explain import find_difference

        with using(open_for_reading(self.path), self.path) as connection:
            return find_difference(connection, run_a, run_b)

    def sql(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Answer:
        """Run one ad-hoc SELECT read-only, without access to files or settings; `parameters` are its `$name`s.

        Raises SqlError, UsageError where the parameters are not those of the statement, or DatabaseError.
        """
        with using(open_for_reading(self.path), self.path) as connection:
            confine(connection)
            return find_projected(connection, run_sql(connection, statement, parameters))

    def export_runs(self, folder: str | Path, run_ids: Sequence[int] = (), *, form: str = "parquet") -> int:
        """Write runs, all if none is named, to a folder that is new or empty; return how many.

        `parquet` holds everything that `import_runs` needs; `json` and `csv` are the promised views of these runs.
        Raises UnknownNameError for a run that is not stored, UsageError for a folder or form, DatabaseError.
        """
        from joulemap.workspace.archive import export_runs

        return export_runs(self.path, Path(folder), run_ids, form)

    def import_runs(self, folder: str | Path) -> tuple[int, int]:
        """Read the runs of a folder that `export_runs` wrote; return how many are new, and how many were stored.

        A run is the same where its key is. Raises CatalogueError for a folder that is not an export, is damaged, or
        whose parts do not add up, and DatabaseError; then nothing is stored.
        """
        from joulemap.workspace.archive import import_runs

        return import_runs(self.path, Path(folder))

    def check(self) -> tuple[Finding, ...]:
        """Return every rule that the database breaks; an empty answer proves that the parts add up."""
        from joulemap.domain.answer.store import Finding

        return tuple(Finding(*row) for row in self.query("audit.conservation").rows)

    def scan(self) -> None:
        """Read every table whole; DatabaseError names the first one with a damaged block."""
        with using(open_for_reading(self.path), self.path) as connection:
            read_everything(connection, self.path)

    def info(self) -> DatabaseInfo:
        """Return what the database file is and holds."""
        from joulemap.query.answer import DatabaseInfo
        from joulemap.store.migration import schema_version

        with using(open_for_reading(self.path), self.path) as connection:
            return DatabaseInfo(
                path=str(self.path),
                schema_version=schema_version(connection),
                size_bytes=self.path.stat().st_size,
                content=run_query(connection, find_query("database.content"), {}),
            )

    def migrate(self) -> int:
        """Make or update the database; return its schema version."""
        from joulemap.store.migration import SCHEMA_VERSION

        open_for_writing(self.path).close()
        return SCHEMA_VERSION
