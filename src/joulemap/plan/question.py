"""What is asked, and the runs that answer it: find them, or trace, evaluate and write what is missing."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from joulemap.background import begin
from joulemap.catalog.digest import ZOO, expand_paths, is_hardware_path
from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry
from joulemap.errors import DatabaseError, OlderDatabaseError, UsageError
from joulemap.plan.calibration import AUTO, CalibrationChoice, choose_calibration
from joulemap.plan.catalogue import check_names, ensure_catalogue, known_hardware, template
from joulemap.plan.plan import Choice, PlannedRun, check_settings, plan_runs, select_hardware
from joulemap.store.connection import Connection, open_for_reading, open_for_writing, transaction, using
from joulemap.store.read import find_runs, find_workload
from joulemap.trace.source import ModelRequest, parse_input, resolve_model
from joulemap.trace.version import tracer_version

if TYPE_CHECKING:
    from joulemap.domain.calibration import Calibration
    from joulemap.domain.catalogue import ShippedWorkload
    from joulemap.domain.hardware import Hardware
    from joulemap.domain.workload import Workload


@attrs.frozen(kw_only=True)
class Question:
    """A model on several hardware under one precision and runtime."""

    request: ModelRequest
    choice: Choice
    own: Mapping[str, Hardware]
    """File -> the hardware that was named by it."""
    precision: str
    runtime: str
    retrace: bool
    """Whether to trace with the installed torch even where the package ships the workload."""
    calibration: CalibrationChoice

    def plan(self, known: Mapping[str, HardwareEntry], workload_key: str) -> tuple[PlannedRun, ...]:
        """Return the runs that it needs of a workload; `known` is the catalogue by id."""
        chosen = select_hardware(self.with_own(known), self.choice)
        self.calibration.check({entry.id for entry, _ in chosen})
        return plan_runs(
            workload_key,
            chosen,
            precision=self.precision,
            runtime=self.runtime,
            find_calibration=self.calibration.find,
        )

    def one_id(self) -> str:
        """Return the id of its only hardware; UnknownNameError for a name that is none."""
        ((entry, _),) = select_hardware(self.with_own(known_hardware()), self.choice)
        return entry.id

    def check_calibration(self) -> None:
        """Raise CatalogueError or UsageError, before anything takes time, for a calibration that does not fit."""
        chosen = select_hardware(self.with_own(known_hardware()), self.choice)
        self.calibration.check({entry.id for entry, _ in chosen})
        for entry, _ in chosen:
            self.calibration.check_fit(entry)

    def with_own(self, known: Mapping[str, HardwareEntry]) -> dict[str, HardwareEntry]:
        """Return the catalogue with the hardware named by file; CatalogueError where that takes a name."""
        entries = dict(known)
        for label, hardware in self.own.items():
            check_names(hardware, known, label)
            entries[hardware.id] = HardwareEntry.of(hardware)
        return entries

    @property
    def spelling(self) -> dict[str, str]:
        """How to ask again for hardware that was named by file: its name in an answer -> what to write."""
        paths = {hardware.id: path for path, hardware in self.own.items()}
        return {
            name: f"{paths[plain]}{at}{mode}"
            for name in self.choice.names
            for plain, at, mode in [name.partition("@")]
            if plain in paths
        }

    @property
    def shipped(self) -> ShippedWorkload | None:
        """What ships of exactly this workload, unless it is to be traced anew."""
        entry = load_shipped().get(self.request.model)
        if self.retrace or not self.request.is_default or entry is None or entry.tracer_version != tracer_version():
            return None
        return entry if self.request.batch == 1 or entry.is_affine else None

    @property
    def workload_keys(self) -> tuple[str, ...]:
        """Keys that its workload may be stored under, the preferred one first: traced here, or shipped."""
        entry = self.shipped
        if entry is None:
            return (self.request.key.digest,)
        own = self.request.key
        theirs = attrs.evolve(own, torch_version=entry.torch_version, torchvision_version=entry.torchvision_version)
        return own.digest, f"shipped:{theirs.digest}"


def ask(
    model: str,
    *,
    hardware: Sequence[str | Hardware] = (),
    architecture: Sequence[str] = (),
    deployment: Sequence[str] = (),
    power_mode: str = "",
    batch: int | None = None,
    precision: str = "fp32",
    runtime: str = "fused",
    inputs: Sequence[str] = (),
    arguments: Mapping[str, object] | None = None,
    retrace: bool = False,
    calibration: str | Calibration = AUTO,
) -> Question:
    """Return a checked question; raises UnknownNameError, UsageError, CatalogueError or ModelError."""
    check_settings(precision, runtime)
    written = [parse_input(text) for text in inputs]
    named = [one.name for one in written if one.name]
    if len(set(named)) < len(named):
        raise UsageError(f"the input {max(named, key=named.count)} is given twice")
    names, own = read_names((hardware,) if isinstance(hardware, str) else hardware)
    return Question(
        request=resolve_model(
            model,
            load_models(),
            batch=batch,
            inputs=written,
            arguments=[(name, str(value)) for name, value in (arguments or {}).items()],
        ),
        choice=Choice(
            names=names,
            architectures=tuple(architecture),
            deployments=tuple(deployment),
            power_mode=power_mode,
        ),
        own=own,
        precision=precision,
        runtime=runtime,
        retrace=retrace,
        calibration=choose_calibration(calibration),
    )


def name_configuration(name: str) -> str:
    """Return a hardware as comparisons show it, from an id, alias or file with a power mode or without."""
    names, own = read_names((name,))
    known = {**known_hardware(), **{one.id: HardwareEntry.of(one) for one in own.values()}}
    ((entry, mode),) = select_hardware(known, Choice(names=names))[:1]
    return entry.id if mode == DEFAULT_MODE else f"{entry.id}@{mode}"


def read_names(hardware: Sequence[str | Hardware]) -> tuple[tuple[str, ...], dict[str, Hardware]]:
    """Return names with records, files and folders replaced by their ids, and what to write -> hardware of those."""
    names: list[str] = []
    own: dict[str, Hardware] = {}
    for name in hardware:
        if not isinstance(name, str):
            from joulemap.catalog.load import load_catalogue

            names.append(name.id)
            if load_catalogue().hardware.get(name.id) != name:
                own[name.id] = name.with_own_digest()
            continue
        place, at, mode = name.partition("@")
        if not is_hardware_path(place):
            names.append(name)
            continue
        from joulemap.catalog.load import load_files

        files = expand_paths([Path(place).expanduser()])
        for path, one in zip(files, load_files(files), strict=True):
            names.append(f"{one.id}{at}{mode}")
            own[place if len(files) == 1 and path == Path(place) else str(path)] = one
    return tuple(names), own


@contextlib.contextmanager
def answering(
    path: Path, question: Question, talk: Callable[[str], None]
) -> Iterator[tuple[tuple[int, ...], Connection]]:
    """Give out the runs of a question, in the order of its hardware, and a connection that holds them.

    Reads only if everything is stored. Otherwise traces with no connection open, then evaluates and writes what is
    missing in one transaction.
    """
    key = None
    known = known_hardware()
    question.plan(known, question.workload_keys[0])
    connection = open_if_there(path)
    if connection is not None:
        with using(connection, path):
            key = stored_key(connection, question)
            stored = _stored_runs(connection, question.plan(known, key)) if key else ()
            if stored:
                yield stored, connection
                return
    workload = None if key or question.shipped else trace(question.request, talk)
    with writing(path) as connection:
        with transaction(connection):
            ensure_catalogue(connection)
            key = ensure_workload(connection, question, workload)
            run_ids = _evaluate(connection, question, key, question.plan(known, key))
        yield run_ids, connection


@contextlib.contextmanager
def answering_all(
    path: Path, questions: Sequence[Question], talk: Callable[[str], None]
) -> Iterator[tuple[tuple[int, ...], Connection]]:
    """Give out the runs of several questions, question by question, each once, and a connection that holds them.

    As `answering`; what is missing of a question is written in a transaction of its own.
    """
    if len(questions) == 1:
        with answering(path, questions[0], talk) as found:
            yield found
        return
    known = known_hardware()
    for question in questions:
        question.plan(known, question.workload_keys[0])
    connection = open_if_there(path)
    if connection is not None:
        with using(connection, path):
            stored: list[int] = []
            for question in questions:
                key = stored_key(connection, question)
                found_runs = _stored_runs(connection, question.plan(known, key)) if key else ()
                if not found_runs:
                    break
                stored += found_runs
            else:
                yield tuple(dict.fromkeys(stored)), connection
                return
    run_ids: list[int] = []
    for question in questions:
        with answering(path, question, talk) as (found_runs, _):
            run_ids += found_runs
    with using(open_for_reading(path), path) as connection:
        yield tuple(dict.fromkeys(run_ids)), connection


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Connection]:
    """Give out a connection that writes; what evaluating needs is imported while the engine opens the file."""
    opened = begin(lambda: open_for_writing(path, template(path)))

    with using(opened(), path) as connection:
        yield connection


@contextlib.contextmanager
def holding(path: Path, question: Question, talk: Callable[[str], None]) -> Iterator[tuple[int, Connection]]:
    """Give out the id of a question's workload, stored if it was not, and a connection that holds it."""
    connection = open_if_there(path)
    if connection is not None:
        with using(connection, path):
            key = stored_key(connection, question)
            if key is not None:
                yield find_workload_id(connection, key), connection
                return
    workload = None if question.shipped else trace(question.request, talk)
    with writing(path) as connection:
        with transaction(connection):
            ensure_catalogue(connection)
            key = ensure_workload(connection, question, workload)
        yield find_workload_id(connection, key), connection


def find_workload_id(connection: Connection, workload_key: str) -> int:
    """Return the id of a workload that is stored."""
    found = find_workload(connection, workload_key)
    assert found is not None
    return found


def open_if_there(path: Path) -> Connection | None:
    """Return a read-only connection, or None where there is no database yet or a writer must migrate it first."""
    if path.exists():
        with contextlib.suppress(OlderDatabaseError):
            return open_for_reading(path)
    return None


def stored_key(connection: Connection, question: Question) -> str | None:
    """Return the key of the question's workload if it is stored."""
    for key in question.workload_keys:
        if find_workload(connection, key) is not None:
            return key
    return None


def _stored_runs(connection: Connection, planned: Sequence[PlannedRun]) -> tuple[int, ...]:
    """Return the ids of these runs if all are stored, else nothing."""
    stored = find_runs(connection, [run.run_key for run in planned])
    if any(run.run_key not in stored for run in planned):
        return ()
    return tuple(stored[run.run_key] for run in planned)


def ensure_workload(connection: Connection, question: Question, workload: Workload | None) -> str:
    """Store the question's workload if it is not, traced or as it ships, and return its key."""
    key = stored_key(connection, question)
    if key is not None:
        return key
    if workload is not None:
        from joulemap.store.write_workload import write_workload

        write_workload(connection, workload)
        return question.request.key.digest
    if question.shipped is None:
        raise DatabaseError(f"the workload of {question.request.model} has gone; run again")
    from joulemap.store.zoo import read_shipped

    key = question.workload_keys[-1]
    read_shipped(
        connection,
        ZOO,
        question.request.model,
        batch=question.request.batch or 1,
        workload_key=key,
        input_spec=question.request.key.input_spec,
    )
    return key


def trace(request: ModelRequest, talk: Callable[[str], None]) -> Workload:
    """Return the fused workload of a request. What a person's own code prints goes to stderr."""
    from joulemap.fuse import fuse
    from joulemap.trace.build import trace_request

    talk(f"tracing {request.model} …")
    with contextlib.redirect_stdout(sys.stderr):
        return fuse(trace_request(request))


def _evaluate(
    connection: Connection, question: Question, workload_key: str, planned: Sequence[PlannedRun]
) -> tuple[int, ...]:
    """Evaluate the runs that are not stored, write them, and return the ids of all."""
    found = find_workload_id(connection, workload_key)
    stored = find_runs(connection, [run.run_key for run in planned])
    missing = [run for run in planned if run.run_key not in stored]
    if not missing:
        return tuple(stored[run.run_key] for run in planned)
    from joulemap.model.pipeline import Evaluator
    from joulemap.plan.evaluation import add_run, ensure_hardware
    from joulemap.store.read import read_columns
    from joulemap.store.write_run import RunWriter

    evaluator = Evaluator(read_columns(connection, found))
    targets = ensure_hardware(connection, question, missing)
    writer = RunWriter(connection)
    for run in missing:
        stored[run.run_key], _ = add_run(writer, evaluator, found, question, run, targets)
    writer.flush()
    return tuple(stored[run.run_key] for run in planned)
