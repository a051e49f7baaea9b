"""Workspace: the library's entry point, which names the module of each question.

Wings add their questions to those of the core.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from joulemap.domain.settings import DEFAULT_DATABASE
from joulemap.plan.source import Progress, Source, Talk
from joulemap.question import ModelQuestion, Question
from joulemap.store.connection import PATIENT, Patience, log, place_database
from joulemap.system.errors import UnknownNameError
from joulemap.system.wing import list_wings

if TYPE_CHECKING:
    from joulemap.generated.question import Questions
else:
    Questions = object


class Workspace(Questions):
    """A results database and the questions it answers.

    Nothing is opened until a question is asked, and nothing stays open afterwards. A question traces, evaluates and
    stores the runs that it needs if they are missing; all others only read. Threads may share a workspace: readers work
    side by side, and each writer waits until it is alone.
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
        """Use the database at `path`, which the first write creates.

        `talk` receives messages about slow operations; by default, the logger "joulemap" does. `progress` is called
        with (done, to do) of the runs, or of the steps of a longer question. If it raises, the question is cancelled,
        and complete runs stay stored. `patience` says how long to wait while another process holds the database. Raises
        UsageError for a path that names a service.
        """
        self.path = place_database(path)
        self._source = Source(path=self.path, talk=talk, progress=progress, patience=patience)

    if not TYPE_CHECKING:  # its base class declares them
        compare = ModelQuestion("joulemap.answer.compare.summary")
        compare_models = ModelQuestion("joulemap.answer.compare.model")
        report = ModelQuestion("joulemap.answer.report.report")
        compare_runs = ModelQuestion("joulemap.answer.compare.breakdown")
        compare_parts = ModelQuestion("joulemap.answer.compare.contest")
        compare_breakdowns = ModelQuestion("joulemap.answer.part.breakdown")
        rank_hardware = ModelQuestion("joulemap.answer.compare.ranking")
        analyze = ModelQuestion("joulemap.answer.part.analyze", "RunKeywords")
        break_down = ModelQuestion("joulemap.answer.part.breakdown", "RunKeywords")
        explain = ModelQuestion("joulemap.answer.explain.explain", "RunKeywords")
        sensitivity = ModelQuestion("joulemap.answer.constant.sensitivity")
        flip = ModelQuestion("joulemap.answer.constant.flip", "RunKeywords")
        evidence = ModelQuestion("joulemap.answer.constant.evidence")
        architectures = ModelQuestion("joulemap.answer.compare.architecture")
        pareto = ModelQuestion("joulemap.answer.pareto")
        plot = ModelQuestion("joulemap.answer.plot", "")
        recommend = ModelQuestion("joulemap.answer.recommend")
        cost = ModelQuestion("joulemap.answer.cost")
        measure = Question("joulemap.answer.measure", "RunKeywords")
        measure_host = Question("joulemap.answer.launch")
        modules = ModelQuestion("joulemap.answer.model", "RunKeywords")
        evaluate = ModelQuestion("joulemap.plan.stored_runs")
        run = Question("joulemap.answer.record", is_shared=True)
        workload = ModelQuestion("joulemap.answer.model", "ModelKeywords")
        operators = ModelQuestion("joulemap.answer.model", "ModelKeywords")
        profile = ModelQuestion("joulemap.answer.model", "ModelKeywords")
        edp = ModelQuestion("joulemap.ask.edp", "RunKeywords")
        fusion = ModelQuestion("joulemap.answer.fusion", "RunKeywords")
        utilization = ModelQuestion("joulemap.answer.utilization.utilization")
        sweep = ModelQuestion("joulemap.answer.sweep.sweep")
        query = Question("joulemap.answer.query")
        list_queries = Question("joulemap.answer.query")
        sql = Question("joulemap.answer.query", is_shared=True)
        stream = Question("joulemap.answer.query")
        stream_query = Question("joulemap.answer.query")
        describe = Question("joulemap.answer.query")
        hardware_list = Question("joulemap.answer.listing")
        hardware = Question("joulemap.answer.hardware", is_shared=True)
        describe_hardware = Question("joulemap.answer.hardware")
        energy_reference = Question("joulemap.answer.hardware")
        sanity = Question("joulemap.answer.sanity")
        measurements = Question("joulemap.answer.measurement")
        served_measurements = Question("joulemap.answer.measurement")
        measurement_tables = Question("joulemap.answer.measurement")
        import_measurements = Question("joulemap.answer.measurement")
        validate = Question("joulemap.answer.validate")
        serving_refusals = Question("joulemap.answer.validate")
        validate_operators = Question("joulemap.answer.validate")
        energy_evidence = Question("joulemap.answer.validate")
        calibrate = Question("joulemap.answer.calibrate")
        difference = Question("joulemap.answer.difference")
        diff = Question("joulemap.answer.diff", "SettingsKeywords", is_shared=True)
        export_runs = Question("joulemap.answer.database")
        import_runs = Question("joulemap.answer.database")
        export = ModelQuestion("joulemap.answer.export", "RunKeywords")
        check = Question("joulemap.answer.database")
        recover = Question("joulemap.answer.database")
        info = Question("joulemap.answer.database")
        migrate = Question("joulemap.answer.database")


def find_question(name: str) -> Callable[..., Any]:
    """Return the function that answers a question; it takes the source before the question's arguments.

    A function of a wing passes the source on that it was given. UnknownNameError for no question.
    """
    questions = {name: one for name, one in vars(Workspace).items() if isinstance(one, Question)}
    if name not in questions:
        raise UnknownNameError("question", name, questions)
    return cast("Callable[..., Any]", getattr(import_module(questions[name].home), name))


def _add_questions() -> None:
    """Add the questions of wings as methods of a workspace."""
    for wing in list_wings():
        for name, one in wing.questions.items():
            question = (ModelQuestion if one.is_of_model else Question)(one.home, one.keywords, is_shared=one.is_shared)
            question.__set_name__(Workspace, name)
            setattr(Workspace, name, question)


_add_questions()
