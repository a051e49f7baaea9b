"""Workspace: the library's entry point, with every question of the core and of wings as a method."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from joulemap.plan.source import Progress, Source, Talk
from joulemap.question import list_questions
from joulemap.store.connection import PATIENT, Patience, log, place_database
from joulemap.system.config import DEFAULT_DATABASE
from joulemap.system.errors import UnknownNameError
from joulemap.system.wing import load

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


def find_question(name: str) -> Callable[..., Any]:
    """Return the function that answers a question; it takes the source before the question's arguments.

    A function of a wing passes the source on that it was given. UnknownNameError for no question.
    """
    questions = list_questions()
    if name not in questions:
        raise UnknownNameError("question", name, questions)
    return cast("Callable[..., Any]", load(f"{questions[name].home}:{name}"))


for _name, _question in list_questions().items():
    _question.__set_name__(Workspace, _name)
    setattr(Workspace, _name, _question)
