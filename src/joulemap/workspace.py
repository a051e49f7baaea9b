"""The library's front object: a line says where each question is answered, which its stub spells out (`make rows`)."""

from __future__ import annotations

from pathlib import Path

from joulemap.domain.settings import DEFAULT_DATABASE
from joulemap.plan.source import Progress, Source, Talk
from joulemap.question import ModelQuestion, Question
from joulemap.store.connection import PATIENT, Patience, log, place_database


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
        self.path = place_database(path)
        self._source = Source(path=self.path, talk=talk, progress=progress, patience=patience)

    explore = ModelQuestion("answer.explore.answer")
    explore_all = Question("answer.explore.regret", "SettingsKeywords", is_shared=True)
    compare = ModelQuestion("answer.compare.summary")
    compare_models = ModelQuestion("answer.compare.model")
    report = ModelQuestion("answer.report.answer")
    compare_runs = ModelQuestion("answer.compare.breakdown")
    compare_parts = ModelQuestion("answer.compare.contest")
    compare_breakdowns = ModelQuestion("answer.part")
    rank_hardware = ModelQuestion("answer.compare.ranking")
    analyze = ModelQuestion("answer.analyze.answer", "RunKeywords")
    break_down = ModelQuestion("answer.part", "RunKeywords")
    explain = ModelQuestion("answer.explain.answer", "RunKeywords")
    sensitivity = ModelQuestion("answer.sensitivity")
    flip = ModelQuestion("answer.flip.answer", "RunKeywords")
    architectures = ModelQuestion("answer.architecture.contrast")
    contrast_phases = Question("answer.architecture.contrast", "SettingsKeywords", is_shared=True)
    pareto = ModelQuestion("answer.pareto")
    plot = ModelQuestion("answer.plot", "")
    recommend = ModelQuestion("answer.recommend")
    cost = ModelQuestion("answer.cost")
    place = Question("answer.place.answer", "SettingsKeywords", is_shared=True)
    llm = ModelQuestion("answer.llm.answer")
    offload = ModelQuestion("answer.llm.offload")
    fleet = Question("answer.fleet.answer", "SettingsKeywords", is_shared=True)
    train = ModelQuestion("answer.train.answer")
    measure = Question("answer.measure", "RunKeywords")
    measure_host = Question("answer.launch")
    modules = ModelQuestion("answer.model", "RunKeywords")
    watch = Question("answer.watch", "RunKeywords", is_shared=True)
    evaluate = ModelQuestion("plan.hold")
    run = Question("answer.record", is_shared=True)
    workload = ModelQuestion("answer.model", "ModelKeywords")
    operators = ModelQuestion("answer.model", "ModelKeywords")
    profile = ModelQuestion("answer.model", "ModelKeywords")
    edp = ModelQuestion("answer.edp.answer", "RunKeywords")
    fusion = ModelQuestion("answer.fusion.answer", "RunKeywords")
    utilization = ModelQuestion("answer.utilization.answer")
    sweep = ModelQuestion("answer.sweep.answer")
    query = Question("answer.query")
    list_queries = Question("answer.query")
    sql = Question("answer.query", is_shared=True)
    stream = Question("answer.query")
    stream_query = Question("answer.query")
    describe = Question("answer.query")
    hardware_list = Question("answer.listing")
    hardware = Question("answer.hardware")
    box_list = Question("answer.listing")
    box = Question("answer.listing")
    energy_reference = Question("answer.hardware")
    sanity = Question("answer.sanity")
    measurements = Question("answer.measurement")
    served_measurements = Question("answer.measurement")
    import_measurements = Question("answer.measurement")
    validate = Question("answer.validate")
    verify = Question("answer.verify.answer", is_shared=True)
    serving_refusals = Question("answer.validate")
    validate_operators = Question("answer.validate")
    calibrate = Question("answer.calibrate")
    difference = Question("answer.difference")
    diff = Question("answer.diff", "SettingsKeywords", is_shared=True)
    export_runs = Question("answer.database")
    import_runs = Question("answer.database")
    export = ModelQuestion("answer.export", "RunKeywords")
    check = Question("answer.database")
    recover = Question("answer.database")
    info = Question("answer.database")
    migrate = Question("answer.database")
    shards = Question("answer.lake")
    check_shards = Question("answer.lake")
    clean_shards = Question("answer.lake")
