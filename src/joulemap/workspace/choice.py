"""Choices: every configuration that is asked for, evaluated where it is not stored, and what is best among them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from joulemap.catalog.digest import catalogue_digest
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry, find_entry
from joulemap.domain.choice import DEFAULT_BATCHES, METRICS, OBJECTIVES, WAYS, Candidates, Limits, Usage
from joulemap.errors import UnsupportedError, UsageError
from joulemap.plan.catalogue import ensure_catalogue, known_hardware
from joulemap.plan.plan import Choice, check_settings
from joulemap.plan.question import (
    ask,
    find_workload_id,
    name_configuration,
    open_if_there,
    stored_key,
    writing,
)
from joulemap.query.answer import CostAnswer, ParetoAnswer, RecommendAnswer
from joulemap.store.connection import Connection, open_for_reading, transaction, using
from joulemap.store.query import find_projected, run_queries
from joulemap.store.read import find_runs_of
from joulemap.store.read_hardware import has_catalogue
from joulemap.workspace.sweep import Sweep, run_sweep

if TYPE_CHECKING:
    from joulemap.domain.answer.choice import BreakEven, CostOption

Talk = Callable[[str], None]


def ask_candidates(model: str, candidates: Candidates) -> Sweep:
    """Return the sweep over all candidates; raises as `ask`, UsageError where there is no precision."""
    precisions = tuple(dict.fromkeys(candidates.precisions))
    if not precisions:
        raise UsageError("a choice needs a precision")
    for precision in precisions:
        check_settings(precision, candidates.runtime)
    default = (None,) if candidates.inputs else DEFAULT_BATCHES
    batches = tuple(dict.fromkeys(candidates.batches)) or default
    first, *others = (
        ask(
            model,
            hardware=() if position else candidates.hardware,
            architecture=candidates.architecture,
            deployment=candidates.deployment,
            power_mode=candidates.power_mode,
            batch=batch,
            precision=precisions[0],
            runtime=candidates.runtime,
            inputs=candidates.inputs,
            arguments=candidates.arguments,
            retrace=candidates.retrace,
            calibration=candidates.calibration,
        )
        for position, batch in enumerate(batches)
    )
    first = attrs.evolve(first, choice=_in_every_mode(first.choice, first.with_own(known_hardware())))
    return Sweep(
        questions=(first, *(attrs.evolve(first, request=other.request) for other in others)),
        settings=tuple((precision, candidates.runtime) for precision in precisions),
    )


def _in_every_mode(choice: Choice, entries: Mapping[str, HardwareEntry]) -> Choice:
    """Return the choice with every power mode of hardware that was named without one, where none is for all."""
    if choice.power_mode:
        return choice
    names: list[str] = []
    for name in choice.names or entries:
        if "@" in name:
            names.append(name)
        else:
            entry = find_entry(entries, name)
            names += [f"{entry.id}@{mode}" for mode in (DEFAULT_MODE, *entry.power_modes)]
    return attrs.evolve(choice, names=tuple(names))


@contextlib.contextmanager
def choosing(path: Path, sweep: Sweep, talk: Talk) -> Iterator[tuple[tuple[int, ...], Connection]]:
    """Give out the runs of a sweep and a connection that holds them and the current catalogue.

    Reads only if everything is stored; otherwise what is missing is evaluated and written first.
    """
    known = known_hardware()
    sweep.plan(sweep.questions[0], known, sweep.questions[0].workload_keys[0])
    connection = open_if_there(path)
    if connection is not None:
        with using(connection, path):
            stored = _find_runs(connection, sweep, known)
            if stored and has_catalogue(connection, catalogue_digest()):
                yield stored, connection
                return
    run_sweep(path, sweep, talk)
    with using(open_for_reading(path), path) as connection:
        is_current = has_catalogue(connection, catalogue_digest())
    if not is_current:
        with writing(path) as connection, transaction(connection):
            ensure_catalogue(connection)
    with using(open_for_reading(path), path) as connection:
        yield _find_runs(connection, sweep, known), connection


def _find_runs(connection: Connection, sweep: Sweep, known: Mapping[str, HardwareEntry]) -> tuple[int, ...]:
    """Return the ids of a sweep's runs if all are stored, else nothing."""
    found: dict[int, None] = {}
    for question in sweep.questions:
        key = stored_key(connection, question)
        if key is None:
            return ()
        stored = find_runs_of(connection, find_workload_id(connection, key))
        for _, run in sweep.plan(question, known, key):
            if run.run_key not in stored:
                return ()
            found[stored[run.run_key]] = None
    return tuple(found)


def find_front(
    path: Path, talk: Talk, model: str, x: str, y: str, candidates: Candidates, usage: Usage
) -> ParetoAnswer:
    """Return the front of two metrics; see `Workspace.pareto`."""
    from joulemap.domain.answer.choice import AssumedNumber, ParetoPoint
    from joulemap.domain.answer.comparison import Caveat

    for name in (x, y):
        _check_name("metric", name, METRICS)
    if x == y:
        raise UsageError(f"both metrics are {x}: a front needs two")
    used = _use(usage)
    sweep = ask_candidates(model, candidates)
    with choosing(path, sweep, talk) as (run_ids, connection):
        ids = {"run_ids": list(run_ids)}
        front, caveat, assumption = run_queries(
            connection,
            [("pareto.front", {**ids, "x": x, "y": y, **used}), ("model.caveat", ids), ("cost.assumption", used)],
        )
        points = tuple(ParetoPoint(*row) for row in front.rows)
        _refuse_if_none([(point.status, point.reason) for point in points])
        return ParetoAnswer(
            model=sweep.questions[0].request.model,
            x=x,
            y=y,
            points=points,
            assumptions=tuple(AssumedNumber(*row) for row in assumption.rows),
            caveats=tuple(Caveat(*row) for row in caveat.rows),
            spelling=_spelling(sweep),
            answers=(find_projected(connection, front), caveat, assumption),
        )


def recommend(
    path: Path, talk: Talk, model: str, objective: str, limits: Limits, candidates: Candidates, usage: Usage
) -> RecommendAnswer:
    """Return every candidate against the limits; see `Workspace.recommend`."""
    from joulemap.domain.answer.choice import AssumedNumber, RankedConfiguration, Violation
    from joulemap.domain.answer.comparison import Caveat

    _check_name("objective", objective, OBJECTIVES)
    used = _use(usage)
    sweep = ask_candidates(model, candidates)
    with choosing(path, sweep, talk) as (run_ids, connection):
        ids = {"run_ids": list(run_ids)}
        bounds = {**ids, **limits.parameters}
        ranked, violation, caveat, assumption = run_queries(
            connection,
            [
                ("recommend.configuration", {**bounds, "objective": objective, **used}),
                ("recommend.violation", bounds),
                ("model.caveat", ids),
                ("cost.assumption", used),
            ],
        )
        rows = tuple(RankedConfiguration(*row) for row in ranked.rows)
        _refuse_if_none([(row.status, row.reason) for row in rows])
        return RecommendAnswer(
            model=sweep.questions[0].request.model,
            objective=objective,
            limits=limits,
            rows=rows,
            violations=tuple(Violation(*row) for row in violation.rows),
            assumptions=tuple(AssumedNumber(*row) for row in assumption.rows),
            caveats=tuple(Caveat(*row) for row in caveat.rows),
            spelling=_spelling(sweep),
            answers=(find_projected(connection, ranked), violation, caveat, assumption),
        )


def price_inferences(
    path: Path, talk: Talk, model: str, between: Sequence[str], candidates: Candidates, usage: Usage
) -> CostAnswer:
    """Return what a million inferences cost; see `Workspace.cost`."""
    from joulemap.domain.answer.choice import AssumedNumber, BreakEven, CostOption, GridFootprint
    from joulemap.domain.answer.comparison import Caveat

    used = _use(usage)
    options = _read_options(between)
    sweep = ask_candidates(model, candidates)
    with choosing(path, sweep, talk) as (run_ids, connection):
        ids = {"run_ids": list(run_ids)}
        million, even, caveat, assumption = run_queries(
            connection,
            [
                ("cost.million", {**ids, **used}),
                ("cost.break_even", {**ids, **options, **used}),
                ("model.caveat", ids),
                ("cost.assumption", used),
            ],
        )
        rows = tuple(CostOption(*row) for row in million.rows)
        _refuse_if_none([(row.status, row.reason) for row in rows])
        break_even = BreakEven(*even.rows[0]) if even.rows else None
        if between and break_even is None:
            raise UsageError(_missing_option(options, rows))
        chosen = _shown_in_grids(rows, break_even)
        in_grids = {name: value for name, value in used.items() if name not in ("region", "gco2_per_kwh")}
        (grid,) = run_queries(connection, [("cost.grid", {"run_ids": chosen, **in_grids})])
        return CostAnswer(
            model=sweep.questions[0].request.model,
            rows=rows,
            break_even=break_even,
            grid=tuple(GridFootprint(*row) for row in grid.rows),
            assumptions=tuple(AssumedNumber(*row) for row in assumption.rows),
            caveats=tuple(Caveat(*row) for row in caveat.rows),
            spelling=_spelling(sweep),
            answers=(find_projected(connection, million), even, grid, caveat, assumption),
        )


def _check_name(noun: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UsageError(f"unknown {noun} {name!r}; known: {', '.join(known)}")


def _use(usage: Usage) -> dict[str, Any]:
    """Return a usage as the queries take it: negative for what the catalogue assumes, a region by its id."""
    from joulemap.catalog.sheet import find_region

    numbers = attrs.asdict(usage)
    region = numbers.pop("region")
    given: dict[str, Any] = {name: -1.0 if value is None else float(value) for name, value in numbers.items()}
    return {**given, "region": find_region(region).region if region else ""}


def _refuse_if_none(outcomes: Sequence[tuple[str, str]]) -> None:
    """Raise UnsupportedError with the reasons where every configuration was refused."""
    if all(status == "unsupported" for status, _ in outcomes):
        reasons = dict.fromkeys(reason for _, reason in outcomes)
        raise UnsupportedError("; ".join(reasons) or "none of the configurations runs a kernel")


def _spelling(sweep: Sweep) -> dict[str, str]:
    """Return how to ask again for hardware that was named by file, also at its default mode."""
    spelled = sweep.questions[0].spelling
    return {
        short: path.removesuffix(f"@{DEFAULT_MODE}")
        for name, path in spelled.items()
        for short in [name.removesuffix(f"@{DEFAULT_MODE}")]
    }


def _read_options(between: Sequence[str]) -> dict[str, str]:
    """Return the two options of a break-even as the query takes them; UsageError unless they are two or none."""
    if not between:
        return {}
    if len(between) != 2:
        raise UsageError(f"a break-even is between two options, found {len(between)}: write A,B")
    options: dict[str, str] = {}
    for side, text in zip("ab", between, strict=True):
        hardware, colon, way = text.rpartition(":")
        if not colon or way not in WAYS:
            hardware, way = text, ""
        options |= {f"hardware_{side}": name_configuration(hardware), f"way_{side}": way}
    return options


def _missing_option(options: Mapping[str, str], rows: Sequence[CostOption]) -> str:
    """Return which option of a break-even has no price, or is not among the candidates."""
    for side in "ab":
        name, way = options[f"hardware_{side}"], options[f"way_{side}"]
        of_name = [row for row in rows if name in (row.hardware, row.hardware.partition("@")[0])]
        if not of_name:
            return f"{name} is not among the configurations that are compared"
        if not any(row.status == "ok" and way in ("", row.way) for row in of_name):
            return f"the catalogue has no {f'{way} ' if way else ''}price of {name}"
    return "the two options cannot be compared"


def _shown_in_grids(rows: Sequence[CostOption], break_even: BreakEven | None) -> list[int]:
    """Return the runs whose carbon is told for every grid: the cheapest, the pair, and the one with least energy."""
    evaluated = [row for row in rows if row.kwh_per_million is not None]
    least = min(evaluated, key=lambda row: row.kwh_per_million or 0.0, default=None)
    runs = [row.run_id for row in evaluated[:1]]
    runs += [break_even.run_a, break_even.run_b] if break_even else []
    runs += [least.run_id] if least else []
    return list(dict.fromkeys(runs))
