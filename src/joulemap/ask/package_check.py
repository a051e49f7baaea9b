"""Check a package with hardware: its files, its sources, and what its chips are predicted to do."""

from __future__ import annotations

import difflib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import attrs

from joulemap.ask.answer import Answer
from joulemap.ask.hardware_file import LONGEST_TRIAL_S, choose_trial_models, read_trial_workloads
from joulemap.domain.catalogue import DEFAULT_MODE, HardwareEntry
from joulemap.domain.computed import make_table
from joulemap.domain.table import Row, Table, described
from joulemap.plan.budget import bind_alone
from joulemap.store.query import fetch
from joulemap.system.errors import JoulemapError, UnknownNameError, UnsupportedError
from joulemap.system.name import fold_name
from joulemap.system.package import Package, list_packages, trying
from joulemap.system.record import frozen
from joulemap.system.units import FS_PER_S, format_si

if TYPE_CHECKING:
    from joulemap.ask.finding import Finding
    from joulemap.domain.column import Cell
    from joulemap.domain.supplied import Supplied
    from joulemap.generated.validate import ScoredRow
    from joulemap.physics.record.hardware import Hardware
    from joulemap.physics.run import RunColumns
    from joulemap.physics.workload import WorkloadColumns
    from joulemap.plan.source import Source

GROWTH: Final = 1.25
"""Factor by which clock and bandwidth are raised."""

BATCHES: Final = (1, 2, 4, 8)
"""Batch sizes whose energies are compared."""

TOLERANCE: Final = 1e-9
"""Relative difference between equal results."""

CLOCKS_HZ: Final = (1e7, 1e10)
"""Plausible clocks of chips; those of microcontrollers may be lower.

Source: assumed; a clock outside is in a wrong unit.
"""

MOST_FACTOR: Final = 10.0
"""Factor between a measured and a predicted value above which one of them is in a wrong unit. Source: assumed."""

MOST_SHARE: Final = 1.0 + 1e-6
"""Share of a peak from which a run exceeds it; shares are sums of rounded times."""


class PackageFinding(Row):
    """Result of one check, or one fault that it found."""

    check: Cell[str] = described(
        "check: files, sources, digests, plausible, ledger, peaks, monotone, measurements or page; predictions, where "
        "they could not be checked"
    )
    state: Cell[str] = described("ok, wrong, or not run")
    text: Cell[str] = described("what was checked, or what is wrong and where")

    @property
    def line(self) -> str:
        """State, check and text in a line."""
        return f"{self.state}: {self.check}: {self.text}"


@frozen
class Fault:
    """Finding of a check, wrong or not: its kind, and the row and the values that its sentence names."""

    kind: str
    row: object
    values: Mapping[str, Any]


def _find(kind: str, row: object = None, /, **values: Any) -> Fault:
    return Fault(kind, row, values)


@frozen(kw_only=True, repr=False)
class PackageCheck(Answer):
    """Results of checking a package."""

    package: str
    """Name and version."""
    folder: str
    findings: tuple[PackageFinding, ...]

    @property
    def is_sound(self) -> bool:
        """True if no check found a fault."""
        return all(one.state == "ok" for one in self.findings)

    def describe_faults(self) -> str:
        """Return a line for each fault."""
        return "\n".join(one.line for one in self.findings if one.state != "ok")

    @property
    def rows(self) -> Table[PackageFinding]:
        """The findings as a table."""
        return make_table("extend check", PackageFinding, self.findings)

    def data(self) -> dict[str, Any]:
        """Return the data for machine formats."""
        own = attrs.asdict(self, filter=attrs.filters.exclude("findings"))
        return {**own, "findings": [one.record() for one in self.findings]}


Checked: TypeAlias = tuple[str, str, Fault]
"""Check, its state, and what it found."""


def run_checks(place: str | Path, describe: Callable[[Fault], str]) -> PackageCheck:
    """Check the package in a folder, or the installed one of this name; `describe` has the sentence of a fault.

    Raises CatalogueError for a folder without a package of hardware, UnknownNameError for an unknown name.
    """
    package = find_package(place)
    with trying(package):
        found = tuple(
            PackageFinding(check=check, state=state, text=describe(fault)) for check, state, fault in _check(package)
        )
    return PackageCheck(package=package.label, folder=str(package.folder), findings=found)


def find_package(place: str | Path) -> Package:
    """Return the package in a folder, or the installed one of this name.

    Raises CatalogueError for a folder without a package of hardware, UnknownNameError for an unknown name.
    """
    folder = Path(place)
    if folder.is_dir():
        from joulemap.catalog.package import read_project

        return read_project(folder)
    known = {fold_name(one.name): one for one in list_packages()}
    found = known.get(fold_name(str(place)))
    if found is None:
        raise UnknownNameError("package or folder", str(place), [one.name for one in known.values()])
    return found


def _check(package: Package) -> Iterator[Checked]:
    """Yield the results of all checks; those that predict need valid files and sources."""
    from joulemap.catalog.load import load_catalogue

    supplied = next(one for one in load_catalogue().supplied if one.package == package)
    if supplied.faults:
        yield from _state("files", "wrong", (_find("text", one) for one in supplied.faults))
    else:
        classes, rows = len(supplied.architectures), len(supplied.measurements)
        chips = [one.id for one in supplied.hardware]
        yield from _state("files", "ok", [_find("content", chips=chips, classes=classes or None, rows=rows or None)])
    unreplaced = tuple(_check_sources(supplied))
    if unreplaced or supplied.hardware:
        yield from _report("sources", unreplaced, _count_bases(supplied))
    if supplied.faults or unreplaced:
        yield from _state("predictions", "not run", [_find("first")])
    else:
        yield from _report("digests", _check_digests(supplied), _find("stable"))
        try:
            yield from _check_predictions(supplied)
        except JoulemapError as error:
            yield from _state("predictions", "wrong", [_find("text", text=str(error))])
    yield from _report("page", _check_page(package), _find("text", text=str(package.page)))


def _check_page(package: Package) -> Iterator[Fault]:
    """Yield what is wrong with the page of a package."""
    from joulemap.catalog.new_package import PLACEHOLDER

    if package.page is None:
        yield _find("undocumented", folder=str(package.folder))
    elif PLACEHOLDER in package.page.read_text(encoding="utf-8", errors="replace"):
        yield _find("unwritten", page=str(package.page))


def _state(check: str, state: str, found: Iterable[Fault]) -> Iterator[Checked]:
    """Yield each thing that a check found."""
    yield from ((check, state, one) for one in found)


def _report(check: str, faults: Iterable[Fault], otherwise: Fault) -> Iterator[Checked]:
    """Yield a finding for each fault, or `otherwise` if there is none."""
    found = tuple(faults)
    yield from _state(check, "wrong", found) if found else _state(check, "ok", [otherwise])


def _check_sources(supplied: Supplied) -> Iterator[Fault]:
    """Yield the hardware files with numbers that are still those of the chip from which a new package copied them."""
    from joulemap.catalog.starter import list_unreplaced

    for path in supplied.package.list_hardware():
        found = list_unreplaced(path.read_text(encoding="utf-8", errors="replace"))
        if numbers := [f"{key} (line {line})" for key, line in found]:
            yield _find("unreplaced", file=str(path), count=len(numbers), numbers=numbers)


def _count_bases(supplied: Supplied) -> Fault:
    """Return how many numbers of the chips have which basis."""
    bases = Counter(quantity.basis for one in supplied.hardware for _, quantity in one.quantities())
    counts = [f"{count} {basis}" for basis, count in bases.most_common()]
    return _find("numbers", count=sum(bases.values()), bases=counts)


def _check_digests(supplied: Supplied) -> Iterator[Fault]:
    from joulemap.catalog.chip import load_hardware

    digests = {one.id: one.digest for one in supplied.hardware}
    for path in supplied.package.list_hardware():
        again = attrs.evolve(load_hardware(path), package=supplied.package.label).with_own_digest()
        if digests[again.id] != again.digest:
            yield _find("unstable", file=str(path))


def _check_predictions(supplied: Supplied) -> Iterator[Checked]:
    """Yield the results of the checks that predict, in a temporary database."""
    from joulemap.plan.source import Source

    odd = [fault for one in supplied.hardware for fault in list_odd(one)]
    least, most = (format_si(one, "Hz") for one in CLOCKS_HZ)
    longest = format_si(LONGEST_TRIAL_S, "s")
    yield from _report("plausible", odd, _find("usual", least=least, most=most, longest=longest))
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        source = Source(path=Path(folder) / "check.duckdb")
        refused: dict[str, str] = {}
        yield from _check_runs(source, supplied, refused)
        slower = (fault for one in supplied.hardware if one.id not in refused for fault in _check_monotone(one))
        yield from _report("monotone", slower, _find("never", growth=GROWTH))
        skipped = [_find("skipped", hardware=list(refused))] if refused else []
        yield from (one for check in ("peaks", "monotone") for one in _state(check, "not run", skipped))
        yield from _score(source, supplied)


def list_odd(hardware: Hardware) -> list[Fault]:
    """Return a fault for each number that is probably in a wrong unit, and for each operator that does not exist."""
    return [*_check_plausible(hardware), *_check_operators(hardware)]


def _check_plausible(hardware: Hardware) -> Iterator[Fault]:
    """Yield the numbers of a chip that are probably in a wrong unit."""
    least, most = CLOCKS_HZ
    if HardwareEntry.of(hardware).form == "microcontroller":
        least = 0.0
    clock_hz = hardware.clock.value
    if not least <= clock_hz <= most:
        ends = {"least": format_si(CLOCKS_HZ[0], "Hz"), "most": format_si(most, "Hz")}
        yield _find("odd_clock", hardware=hardware.id, clock=format_si(clock_hz, "Hz"), **ends)
    plain = bind_alone(hardware, DEFAULT_MODE)
    for model, work in read_trial_workloads(choose_trial_models(hardware)).items():
        for precision, (run,) in _evaluate(work, [plain], 1).items():
            if run is not None and run.latency_fs > LONGEST_TRIAL_S * FS_PER_S:
                latency = format_si(run.latency_fs / FS_PER_S, "s")
                yield _find("long", hardware=hardware.id, model=model, precision=precision, latency=latency)


def _check_operators(hardware: Hardware) -> Iterator[Fault]:
    """Yield the names in the list of a chip's own compiler that no operator has, with the nearest one."""
    from joulemap.catalog.hardware import list_compilers, read_compiler
    from joulemap.physics.record.compiler import ANY, EVERYTHING, EXCEPTED, REFUSED as REFUSING
    from joulemap.physics.record.kind import KINDS
    from joulemap.plan.workload import list_operations

    def split(entry: str) -> str:
        return entry.partition(" ")[0].lstrip(EXCEPTED + REFUSING)

    listed = [split(entry) for name in list_compilers() for entry in read_compiler(name).operators]
    known = {ANY, EVERYTHING, *KINDS, *(one.rpartition(".")[2] for one in listed), *list_operations()}
    for entry in hardware.compiler.operators if hardware.compiler is not None else ():
        name = split(entry)
        if name.rpartition(".")[2] not in known:
            near = difflib.get_close_matches(name.rpartition(".")[2], sorted(known), n=1)
            yield _find("unknown_operator", hardware=hardware.id, name=name, near=near[0] if near else None)


def _check_runs(source: Source, supplied: Supplied, refused: dict[str, str]) -> Iterator[Checked]:
    """Yield whether the ledgers of trial runs close, and whether a run exceeds a peak.

    Adds to `refused` the chips on which no trial model runs, with a reason.
    """
    from joulemap.ask.database import check
    from joulemap.ask.sanity import COPY, PRODUCT
    from joulemap.domain.settings import Settings
    from joulemap.generated.hardware import Probe
    from joulemap.plan.reader import reading
    from joulemap.plan.run import plan_runs
    from joulemap.plan.stored_runs import opening_runs

    run_ids: list[int] = []
    models: dict[str, None] = {}
    for one in supplied.hardware:
        names = (*choose_trial_models(one), PRODUCT, COPY)
        models |= dict.fromkeys(names)
        for precision in one.peaks:
            settings = Settings(hardware=(one.id,), precision=precision, is_named=False)  # type: ignore[arg-type]
            with opening_runs(source, plan_runs(names, settings)) as runs:
                run_ids += runs.ids
    with reading(source) as connection:
        probes = tuple(fetch(connection, Probe, run_ids=run_ids))
    evaluated = {one.hardware for one in probes if one.average_power_w is not None}
    refused |= {one.hardware: one.reason for one in probes if one.hardware not in evaluated}
    broken = [_find("refused", hardware=name, reason=reason) for name, reason in refused.items()]
    audit = check(source).findings
    broken += [_find("broken", one, hardware="database", location=one.location or "database") for one in audit]
    yield from _report("ledger", broken, _find("closes", count=len(run_ids), models=list(models)))
    shares = (
        (one, share, what)
        for one in probes
        for share, what in (
            (one.compute_utilization_fraction, "peak"),
            (one.bandwidth_utilization_fraction, "memory bandwidth"),
        )
    )
    beyond = (
        _find("beyond", one, share=share, what=what) for one, share, what in shares if share and share > MOST_SHARE
    )
    yield from _report("peaks", beyond, _find("within"))


def _check_monotone(hardware: Hardware) -> Iterator[Fault]:
    """Yield where a chip is slower with a higher clock or bandwidth, or needs less energy for a larger batch.

    Runs that the power limit slows are not compared: a faster memory or clock leaves less power to the units.
    """
    from joulemap.physics.change import change_hardware
    from joulemap.physics.record.constant import Change, list_constants

    models = choose_trial_models(hardware)
    works = {batch: read_trial_workloads(models, batch) for batch in BATCHES}
    plain = bind_alone(hardware, DEFAULT_MODE)
    constants = list_constants(plain)
    better = {
        name: change_hardware(plain, [Change.of(constants[name], constants[name].value * GROWTH)])
        for name in ("clock", "memory_bandwidth")
    }
    faster = [plain, *better.values()]
    for model in models:
        alone = _evaluate(works[1][model], faster, 1)
        batches = {batch: _evaluate(works[batch][model], [plain], batch) for batch in BATCHES}
        for precision in plain.peaks:
            where = {"hardware": hardware.id, "model": model, "precision": precision}
            base, *others = alone[precision]
            for name, other in zip(better, others, strict=True):
                if base is None or other is None or min(base.clock_fraction, other.clock_fraction) < 1.0:
                    continue
                if other.latency_fs > base.latency_fs * (1.0 + TOLERANCE):
                    yield _find("slower", **where, growth=GROWTH, what=name.replace("_", " "))
            ran = [(batch, one.energy_fj) for batch, totals in batches.items() for one in totals[precision] if one]
            for (least, before), (batch, after) in pairwise(ran):
                if after < before * (1.0 - TOLERANCE):
                    yield _find("cheaper", **where, batch=batch, least=least)


class _Totals(NamedTuple):
    """Latency, energy and share of the full clock of a batch."""

    latency_fs: float
    energy_fj: float
    clock_fraction: float
    """Share of the full clock; below 1 if the power limit slows the chip."""


def _evaluate(work: WorkloadColumns, chips: Sequence[Hardware], batch: int) -> dict[str, list[_Totals | None]]:
    """Return precision -> totals of a batch on each of some variants of a chip; None where it cannot run it."""
    from joulemap.physics.pipeline import Evaluator
    from joulemap.physics.record.configuration import Configuration
    from joulemap.physics.record.runtime import DEPLOYED_RUNTIME

    asked = [
        (chip, Configuration(hardware=chip.id, precision=precision, batch=batch, runtime=DEPLOYED_RUNTIME))
        for precision in chips[0].peaks
        for chip in chips
    ]
    totals = [_sum_run(run) for run in Evaluator(work).evaluate_all(asked)]
    return {
        precision: totals[place : place + len(chips)]
        for precision, place in zip(chips[0].peaks, range(0, len(totals), len(chips)), strict=True)
    }


def _sum_run(run: RunColumns | UnsupportedError | KeyError) -> _Totals | None:
    if isinstance(run, UnsupportedError):
        return None
    if isinstance(run, KeyError):
        raise run
    return _Totals(
        latency_fs=float(run.subgraphs.latency_fs.sum(dtype=float)),
        energy_fj=float(run.ledger.energy_fj.sum(dtype=float)),
        clock_fraction=run.clock_fraction,
    )


def _score(source: Source, supplied: Supplied) -> Iterator[Checked]:
    """Yield the errors of the predictions of the measured runs, and each row that is far off or not predicted."""
    from joulemap.ask.validate import evaluating_measured
    from joulemap.generated.validate import ScoredRow

    if not supplied.measurements:
        yield from _state("measurements", "ok", [_find("unscored")])
        return
    rows: list[ScoredRow] = []
    lost: list[Finding] = []
    for name in sorted({row.hardware for row in supplied.measurements}):
        which = {"hardware": name, "model": "", "precision": "", "source": ""}
        with evaluating_measured(source, which, "auto", trust=False) as (connection, _, notes):
            rows += fetch(connection, ScoredRow, chips=[name])
            lost += notes
    faults = [_find_missing(row, lost) for row in rows if row.quantity is None]
    scored = sorted((row for row in rows if row.quantity is not None), key=find_factor, reverse=True)
    faults += [_find("far", row) for row in scored if find_factor(row) > MOST_FACTOR]
    yield from _state("measurements", "wrong", faults)
    if scored and not faults:
        count, held_out = len(supplied.measurements), sum(not row.seen for row in supplied.measurements)
        unseen = [row for row in scored if not row.is_seen]
        found = _find("scored", scored[0], predicted=count, count=count, held_out=held_out, unseen=unseen)
        yield from _state("measurements", "ok", [found])


def _find_missing(row: ScoredRow, lost: Sequence[Finding]) -> Fault:
    findings = [one for one in lost if row.model in one.values.get("models", ())]  # type: ignore[operator]
    return _find("unpredicted", row, reason=row.refusal, findings=findings)


def find_factor(row: ScoredRow) -> float:
    """Return the factor, at least 1, between the measured and the predicted value of a row."""
    ratio = (row.predicted or 0.0) / (row.measured or 1.0)
    return max(ratio, 1.0 / ratio) if ratio > 0.0 else float("inf")
