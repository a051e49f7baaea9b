"""Predictions of many configurations as arrays, for other programs; without a database, an engine or PyTorch.

    arguments, broadcast ─► configurations ─► packed workloads and chips ─► totals of all ─► intervals of all

Built-in models and chips come from packed files (`joulemap.bundle`), and laws and intervals are those of stored runs,
so that a prediction equals the run of the same configuration to the femtosecond and the femtojoule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from joulemap.bundle.chip import load_chips
from joulemap.bundle.workload import open_zoo
from joulemap.catalog.digest import ZOO
from joulemap.physics.change import follow, open_to_change
from joulemap.physics.interval.half_width import HalfWidths
from joulemap.physics.interval.point import Case
from joulemap.physics.pipeline import Evaluator, Gathering, evaluate_together, refuse_precision
from joulemap.physics.record.configuration import MAX_BATCH, PRECISION_BYTES, Configuration, name_precision
from joulemap.physics.record.constant import Constant, check_value, list_constants, match_names
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import COMMON_CATEGORIES
from joulemap.physics.record.runtime import RUNTIME_NAMES
from joulemap.physics.record.target import DEFAULT_MODE
from joulemap.physics.record.weight import pair_precisions
from joulemap.physics.record.workload import NO_KEY, Workload
from joulemap.physics.total import PointColumns, evaluate_points, stack_totals
from joulemap.physics.workload import Floats, Integers, Texts, columns_of
from joulemap.system.errors import OTHER, CatalogueError, UnknownNameError, UnsupportedError, UsageError
from joulemap.system.name import fold_into
from joulemap.system.record import define, frozen
from joulemap.system.units import FJ_PER_J, FS_PER_S

KEPT: Final = 64
"""Maximum workloads that are kept, each at one batch size, with the kernels formed of them."""

LARGEST: Final = 2**31 - 1
"""Largest count of an argument."""

EXACT_FJ: Final = 2**53
"""Largest energy in femtojoules up to which a float is exact."""

OVERFLOW: Final = "range"
"""Code of a refusal for an energy beyond the range of a total."""


@define(kw_only=True, eq=False)
class Prediction:
    """Predicted latency, energy and memory of configurations: arrays of one shape, to which the arguments broadcast.

    Numbers of a refused configuration are NaN. An interval contains the measured value with a probability of 80 %.
    """

    latency_s: Floats
    """Latency of one batch in seconds, from the first operator to the last."""
    latency_low_s: Floats
    """Lower end of the interval of `latency_s`; NaN where no errors are known."""
    latency_high_s: Floats
    interval_s: Floats
    """Time from the end of one batch to that of the next in seconds, with batches back to back; its error is that of
    the latency. It is below the latency where a chip begins a batch before it ends the last.
    """
    energy_j: Floats
    """Energy of one batch in joules, at the boundary of the board: chip, memory and regulators."""
    energy_low_j: Floats
    """Lower end of the interval of `energy_j`; NaN where no errors are known."""
    energy_high_j: Floats
    memory_bytes: Floats
    """Peak memory of weights and live activations in bytes."""
    parts_j: Mapping[str, Floats]
    """Energy by part, such as `compute`, `off_chip_memory` or `static`; parts sum to `energy_j`, and those that are 0
    everywhere are left out.
    """
    basis_j: Mapping[str, Floats]
    """Energy by the basis of its energies per action, such as `measured` or `derived`; they sum to `energy_j` too."""
    refusal: Texts
    """Reason why the hardware cannot run the configuration; empty if it can."""
    refusal_code: Texts
    """Code of the reason for programs, such as `precision` or `memory`; empty without a refusal."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the arrays."""
        return self.latency_s.shape

    def to_arrow(self) -> Any:
        """Return a `pyarrow.Table` with a row per configuration in C order, and a column per part and basis.

        Raises MissingPackageError if pyarrow is not installed.
        """
        from joulemap.system.frame import tabulate

        columns: dict[str, NDArray[Any]] = {}
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                columns |= {f"{field.name.removesuffix('_j')}.{name}_j": one.ravel() for name, one in value.items()}
            else:
                columns[field.name] = value.ravel()
        return tabulate(columns)


@frozen
class Subject:
    """Workload with what prediction errors depend on."""

    evaluator: Evaluator
    work: str
    """Kind of work."""


Row = tuple[str | Workload, str | Hardware, str, int, str, str]
"""Model, hardware, precision, batch, runtime and weight precision of one configuration."""


def predict(
    model: ArrayLike | Workload,
    hardware: ArrayLike | Hardware,
    *,
    precision: ArrayLike = "bf16",
    batch: ArrayLike = 1,
    runtime: ArrayLike = "fused",
    weight_precision: ArrayLike = "",
    changes: Mapping[str, ArrayLike] | None = None,
) -> Prediction:
    """Return the predictions of configurations; arguments are single values or arrays, which broadcast as in numpy.

    A model is a built-in one by name, a single operator such as `gemm(m=8,n=4096,k=4096)`, or a `Workload` at its own
    batch size. Hardware is a built-in chip by id or alias, with or without a power mode as in `l4@50W`, or a
    `Hardware`; chips run with their built-in calibration. An empty weight precision means that of the activations.

    `changes` maps names of numbers of the chip, as `--set` takes them, to values in their SI units. They broadcast to
    a grid, and every other argument is then a single value; numbers that follow from others do so. A chip that lacks
    the precision is then an UnsupportedError, and no refusal.

    Raises UnknownNameError for an unknown name, UsageError for a value that is out of range or shapes that do not
    broadcast, CatalogueError for a bundle that is not of this version.
    """
    asked = (model, hardware, precision, batch, runtime, weight_precision)
    arrays = [np.asarray(one, dtype=object) for one in asked]
    try:
        arrays = list(np.broadcast_arrays(*arrays))
    except ValueError:
        shapes = ", ".join(dict.fromkeys(str(one.shape) for one in arrays))
        raise UsageError(f"the arguments have the shapes {shapes}, which do not broadcast") from None
    rows: list[Row] = list(zip(*(one.ravel().tolist() for one in arrays), strict=True))
    if not rows:
        return _predict_none(arrays[0].shape)
    cells = Cells(rows)
    if changes is None:
        return _predict_cells(cells, arrays[0].shape)
    if len(rows) != 1:
        raise UsageError(f"changes vary one configuration, not {len(rows)}: leave the other arguments single values")
    return _predict_grid(cells, changes)


class Cells:
    """Configurations of a call: distinct cases and workloads, and the index of both for every row."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.subjects: list[Subject] = []
        self.asked: list[tuple[int, Hardware, Configuration]] = []
        self.cases: list[Case] = []
        places: dict[Any, int] = {}
        cases: dict[Any, int] = {}
        self.case_of: list[int] = []
        chips: dict[Any, tuple[Hardware, str]] = {}
        pairs: dict[tuple[str, str], tuple[str, str]] = {}
        for model, hardware, precision, given, runtime, weights in rows:
            batch = check_count("batch", given, most=MAX_BATCH)
            subject_key = (model if isinstance(model, str) else id(model)), batch
            if subject_key not in places:
                places[subject_key] = len(self.subjects)
                self.subjects.append(_find_subject(model, batch))
            chip_key = hardware if isinstance(hardware, str) else id(hardware)
            if chip_key not in chips:
                chips[chip_key] = find_chip(hardware)
            check_names(precision=precision, runtime=runtime, weight_precision=weights or "")
            if (precision, weights) not in pairs:
                pairs[precision, weights] = _check_precision(precision, weights)
            chip, calibration = chips[chip_key]
            place, (carried, stored) = places[subject_key], pairs[precision, weights]
            configuration = _configure(chip.id, carried, batch, runtime, stored)
            self.asked.append((place, chip, configuration))
            work = self.subjects[place].work
            case_key = id(chip), carried, stored, runtime, work, batch == 1
            if case_key not in cases:
                cases[case_key] = len(self.cases)
                self.cases.append(Case(hardware=chip, configuration=configuration, work=work, calibration=calibration))
            self.case_of.append(cases[case_key])


def _predict_none(shape: tuple[int, ...]) -> Prediction:
    """Return the predictions of no configuration."""
    parts = ("parts_j", "basis_j")
    columns: dict[str, Any] = {
        one.name: {} if one.name in parts else np.zeros(shape) for one in attrs.fields(Prediction)
    }
    columns |= dict.fromkeys(("refusal", "refusal_code"), np.zeros(shape, dtype=np.str_))
    return Prediction(**columns)


def _predict_cells(cells: Cells, shape: tuple[int, ...]) -> Prediction:
    """Return the predictions of configurations."""
    points, widths, codes = evaluate_cells(cells)
    return form_prediction(points, widths, codes, shape)


def evaluate_cells(cells: Cells) -> tuple[PointColumns, HalfWidths, Texts]:
    """Return the totals of configurations, the half-widths of their intervals, and codes of refusals, a row each."""
    results = evaluate_together([one.evaluator for one in cells.subjects], cells.asked)
    for (_, chip, _), result in zip(cells.asked, results, strict=True):
        if isinstance(result, KeyError):  # neither the hardware's file nor its class gives the number
            raise CatalogueError(f"{chip.id} cannot be mapped: {result.args[0]}") from result
    points = stack_totals(results)
    codes = np.where(points.refusal == "", "", OVERFLOW).astype(object)
    for number, result in enumerate(results):
        if isinstance(result, UnsupportedError):
            codes[number] = result.reason.code
    rows = np.array(cells.case_of, dtype=np.int64)
    widths = load_chips().errors.find_half_widths(points, cells.cases, rows)
    return points, widths, codes.astype(np.str_)


def _predict_grid(cells: Cells, changes: Mapping[str, ArrayLike]) -> Prediction:
    """Return the predictions of one configuration with other numbers of its chip."""
    ((place, hardware, configuration),), (case,) = cells.asked, cells.cases
    if configuration.arithmetic[0] not in hardware.peaks:
        raise UnsupportedError.of(refuse_precision(hardware, configuration.precision))
    values, constants = {}, list_constants(hardware)
    for name, array in read_changes(changes).items():
        limits = (float(array.min()), float(array.max())) if array.size else ()
        values[find_constant(constants, name, limits).address] = array
    try:
        shape = np.broadcast_shapes(*(one.shape for one in values.values()))
    except ValueError as error:
        raise UsageError(f"the changes do not broadcast: {error}") from error
    if not math.prod(shape):
        return _predict_none(shape)
    hardware = open_to_change(hardware, values)
    varied = {address: np.atleast_1d(one) for address, one in follow(hardware, values).items()}
    points = evaluate_points(cells.subjects[place].evaluator, hardware, configuration, varied)
    changed = attrs.evolve(case, hardware=hardware, varied=frozenset(values))
    widths = load_chips().errors.find_half_widths(points, [changed], np.zeros(len(points), dtype=np.int64))
    return form_prediction(points, widths, np.where(points.refusal == "", "", OTHER), shape)


def read_changes(changes: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return the values of changes as arrays; UsageError for one without a name, or that is no finite number."""
    if not isinstance(changes, Mapping):
        raise UsageError(f"changes is {changes!r}, expected names and values, such as {{'tdp': 60.0}}")
    for name in changes:
        if not isinstance(name, str):
            raise UsageError(f"changes names {name!r}, expected a number of the chip such as 'tdp'")
    return {name: read_numbers(name, given) for name, given in changes.items()}


def read_numbers(name: str, given: ArrayLike) -> Floats:
    """Return the values of a change as an array; UsageError if one is no finite number."""
    try:
        values: Floats = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{name} is {given!r}, expected numbers") from None
    if not np.isfinite(values).all():
        raise UsageError(f"{name}: {values[~np.isfinite(values)].flat[0]:g} is not a finite number")
    return values


def find_constant(known: Mapping[str, Constant], name: str, values: Iterable[float]) -> Constant:
    """Return the constant, of all those of a chip, that `--set` takes under a name, for these values.

    Raises UnknownNameError for an unknown or ambiguous name, UsageError for a value that is out of range.
    """
    matches = match_names(name, known)
    if len(matches) != 1:
        raise UnknownNameError("constant", name, known, near=matches)
    constant = known[matches[0]]
    try:
        for value in values:
            check_value(constant, value)
    except ValueError as error:
        raise UsageError(f"{name}: {error}") from error
    return constant


def form_prediction(points: PointColumns, widths: HalfWidths, codes: Texts, shape: tuple[int, ...]) -> Prediction:
    """Return a prediction from totals and half-widths, one row per configuration."""
    nothing: Floats = np.where(points.refusal == "", 1.0, np.nan)
    latency, energy = nothing * points.latency_s, nothing * _to_joules(points.energy_fj)
    wide, tall = np.exp(widths.latency), np.exp(widths.energy)

    def add(by: Callable[[Any], str], names: Iterable[str]) -> dict[str, Floats]:
        none = np.zeros(len(points), dtype=np.int64)
        spent = points.spent_fj.items()
        sums = {name: np.asarray(sum((one for key, one in spent if by(key) == name), none)) for name in names}
        return {name: (nothing * _to_joules(one)).reshape(shape) for name, one in sums.items() if np.any(one)}

    return Prediction(
        latency_s=latency.reshape(shape),
        latency_low_s=(latency / wide).reshape(shape),
        latency_high_s=(latency * wide).reshape(shape),
        interval_s=(nothing * points.interval_fs / FS_PER_S).reshape(shape),
        energy_j=energy.reshape(shape),
        energy_low_j=(energy / tall).reshape(shape),
        energy_high_j=(energy * tall).reshape(shape),
        memory_bytes=np.asarray(nothing * points.peak_memory_bytes).reshape(shape),
        parts_j=add(lambda key: str(key.common_category), COMMON_CATEGORIES),
        basis_j=add(lambda key: str(key.basis), dict.fromkeys(key.basis for key in points.spent_fj)),
        refusal=points.refusal.reshape(shape),
        refusal_code=codes.reshape(shape),
    )


def _to_joules(energy_fj: Integers) -> Floats:
    """Return energies in joules; above 2^53 fJ, which a float cannot hold, rounded once as the database does."""
    joules: Floats = energy_fj / FJ_PER_J
    for place in np.flatnonzero(energy_fj > EXACT_FJ).tolist():
        joules[place] = int(energy_fj[place]) / int(FJ_PER_J)
    return joules


def check_names(**names: object) -> None:
    """Raise UsageError for an argument that is no text."""
    for kind, name in names.items():
        if not isinstance(name, str):
            raise UsageError(f"{kind} is {name!r}, expected a name")


def check_count(name: str, count: object, *, least: int = 1, most: int = LARGEST) -> int:
    """Return a count; UsageError unless it is a whole number from `least` to `most`, of Python or of numpy."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not least <= count <= most:
        upto = f" to {most:,}" if most < LARGEST else ""
        raise UsageError(f"{name} is {count!r}, expected a whole number from {least}{upto}")
    return int(count)


@lru_cache(maxsize=KEPT)
def _check_precision(precision: str, weights: str) -> tuple[str, str]:
    """Return the precisions of activations and of weights in their own spelling; UsageError for unknown ones."""
    ((kind, stored),) = pair_precisions((name_precision(precision),), (weights,) if weights else ())
    return kind, stored


@lru_cache(maxsize=4096)
def _configure(hardware: str, precision: str, batch: int, runtime: str, weights: str) -> Configuration:
    if runtime not in RUNTIME_NAMES:
        raise UnknownNameError("runtime", str(runtime), RUNTIME_NAMES)
    try:
        return Configuration(
            hardware=hardware, precision=precision, batch=batch, runtime=runtime, weight_precision=weights
        )
    except ValueError:
        raise UnknownNameError("precision", precision, PRECISION_BYTES) from None


_GATHERING: Final = Gathering()


def _find_subject(model: object, batch: int) -> Subject:
    """Return the workload of a model at a batch size; UnknownNameError or UsageError without one."""
    if isinstance(model, Workload):
        return _form_workload(model, batch)
    if isinstance(model, str):
        return _find_named(model, batch)
    raise UsageError(f"the model is of type {type(model).__name__}, expected a name or a Workload")


def _form_workload(workload: Workload, batch: int) -> Subject:
    """Return the workload of a record, which is fused first if it was not."""
    if workload.batch != batch:
        raise UsageError(f"{workload.model} has batch {workload.batch}, not {batch}: pass batch={workload.batch}")
    if not workload.subgraphs:
        from joulemap.physics.fuse import fuse

        workload = fuse(workload)
    return Subject(Evaluator(columns_of(workload), gathering=_GATHERING), workload.work)


@lru_cache(maxsize=KEPT)
def _find_named(name: str, batch: int) -> Subject:
    """Return the workload of a built-in model or of a single operator."""
    zoo = open_zoo(ZOO)
    model = fold_into(name, zoo.models, ignoring="/")
    if model in zoo.models:
        if not zoo.ships(model, batch):
            raise UsageError(f"{model} ships at batch 1 only: trace it at batch {batch} and pass the Workload")
        return Subject(Evaluator(zoo.form_columns(model, batch), gathering=_GATHERING), zoo.models[model]["work"])
    from joulemap.domain.operator.name import find_operator

    operator = find_operator(name)
    if operator is None:
        raise UnknownNameError(
            "model", name, zoo.models, "see `joulemap model list`, or pass a Workload; predict_step has language models"
        )
    from joulemap.trace.single import describe

    workload = describe(operator, batch, NO_KEY)
    return Subject(Evaluator(columns_of(workload), gathering=_GATHERING), operator.kind)


def find_chip(hardware: object) -> tuple[Hardware, str]:
    """Return a chip as a run uses it, by id, alias or record, and the digest of its calibration.

    Raises UnknownNameError or UsageError, and CatalogueError for a bundle that is not of this version.
    """
    chips = load_chips()
    if isinstance(hardware, str):
        name, mode = (hardware, "") if hardware in chips.ids else _find_id(hardware)
        chip = _bind_mode(name, mode) if mode else chips.find(name)
        return chip, chips.calibrations.get(name, "")
    if not isinstance(hardware, Hardware):
        raise UsageError(f"the hardware is of type {type(hardware).__name__}, expected an id or a Hardware")
    known = chips.find(hardware.id) if hardware.id in chips.ids else None
    if not hardware.described_digest and (known is None or known.digest != hardware.digest):
        if (mode := hardware.power_mode) != DEFAULT_MODE:
            return _bind_mode(hardware.id, mode, hardware.digest), chips.calibrations.get(hardware.id, "")
        from joulemap.plan.budget import bind_alone

        hardware = bind_alone(hardware, DEFAULT_MODE)
    is_known = known is not None and known.digest == hardware.digest
    return hardware, chips.calibrations.get(hardware.id, "") if is_known else ""


@lru_cache(maxsize=KEPT)
def _bind_mode(name: str, mode: str, digest: str = "") -> Hardware:
    """Return a built-in chip at a power mode as a run uses it; UsageError if its record has another digest than this
    one, if given.
    """
    from joulemap.catalog.load import find_hardware
    from joulemap.plan.budget import bind_alone

    if digest and (name not in load_chips().ids or find_hardware(name).in_mode(mode).digest != digest):
        raise UsageError(f"{name} is a variant at the power mode {mode}: make the variant at the default mode")
    return bind_alone(find_hardware(name), mode)


@cache
def _find_id(name: str) -> tuple[str, str]:
    """Return the id and power mode of the chip that an alias or another spelling names, with or without `@MODE`; the
    mode is empty if it is the default. Raises UnknownNameError without one.
    """
    from joulemap.domain.catalogue import HardwareEntry, find_entry
    from joulemap.domain.hardware_ref import HardwareRef

    chips, ref = load_chips(), HardwareRef.read(name)
    if ref.settings:
        raise UsageError(f"{name} sets constants: pass changes={{...}} to predict, or a Hardware")
    entry = find_entry({one: HardwareEntry.of(chips.find(one)) for one in sorted(chips.ids)}, ref.id)
    mode = entry.mode_of(ref)
    return entry.id, "" if mode == DEFAULT_MODE else mode
