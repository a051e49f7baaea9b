"""Error reduction of each effect of the GPU model on held-out operators and models (`make ladder`).

python benchmarks/ladder.py [--table NAME ...] [--effect NAME ...] [--every N] [--boards] [--models]

Rows are the single operators of the public tables on GPUs, except uncertain tables and operators that a board cannot
run. Every form of the model is fitted to them with one set of coefficients for all boards, and scored

    in sample       on the rows that it was fitted to
    other shapes    on a quarter of the shapes (weights of a layer, width of a row), by a fit to the others
    other boards    on each board, by a fit to all others

Two rooflines are compared with the model: one with 72 % of the peak, 80 % of the bandwidth and 2 µs for all operators,
one with these three numbers fitted for each kind of operator. Then one effect at a time is switched off: its
coefficients are fixed at values without effect (EFFECTS), and all others are fitted again. An effect that is worth its
coefficients increases the errors on other shapes or other boards when it is off. It is scored on the kinds of operators
that it changes, by fits to rows of these kinds alone, so that a small effect is visible.

Forms were chosen with knowledge of all of these rows; held-out fits test the values of coefficients, not the choice of
forms. Coefficients that only the rows of one board depend on keep their built-in values when that board is held out;
`--boards` names them. Fits penalize changes of coefficients as `joulemap calibrate` does, and start from the fit to all
rows. `--models` uses the built-in whole models instead, with each family held out in turn, and the effects that change
the prediction of one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from joulemap.ask.measurement import observe, select_models
from joulemap.calibrate.bench import make_bench as make_model_bench
from joulemap.calibrate.fit import Fitter as ModelFitter, Target
from joulemap.calibrate.free_parameter import FreeParameter, bounds_of, free_coefficients
from joulemap.calibrate.observation import Observation
from joulemap.calibrate.solve import minimize
from joulemap.catalog.chip import load_class
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.measurement import load_measurements
from joulemap.catalog.public import load_public_tables
from joulemap.catalog.spread import load_spreads
from joulemap.domain.operator.name import COLLECTIVES, SingleOperator, find_operator, is_operator
from joulemap.physics.bulk import form_joined, join
from joulemap.physics.kernel import KernelColumns
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.product import MatmulPrecision
from joulemap.physics.record.workload import WorkloadKey
from joulemap.physics.timing import time_kernels
from joulemap.physics.workload import Booleans, Floats, Integers, columns_of
from joulemap.plan.source import Source
from joulemap.trace.single import describe

CLASS: Final = "gpu"


def _all(name: str, value: float) -> dict[str, float]:
    """Return name -> value for a coefficient of the class and all of its qualified forms."""
    names = [one.name for one in load_class(CLASS, f"{CLASS}.toml").coefficients]
    return {one: value for one in names if one == name or one.startswith(f"{name}.")}


def _at(name: str, *names: str) -> dict[str, float]:
    """Return name -> the class's value of another coefficient, for each of `names`."""
    value = next(one.value for one in load_class(CLASS, f"{CLASS}.toml").coefficients if one.name == name)
    return dict.fromkeys(names, value)


EFFECTS: Final[Mapping[str, Mapping[str, float]]] = {
    "power cap": {"tdp": 1e9},
    "delay of the cap": {"cap_delay": 0.0},
    "split of k": {"split_clocks": 1e9},
    "operand reach": _all("operand_reach", 0.0),
    "operand reach of convolutions": {"conv_reach_ratio": 1.0},
    "step of a lone block": {"lone_step_clocks": 0.0},
    "epilogue": _all("epilogue_clocks", 0.0),
    "written bytes": {"write_ratio": 1.0},
    "last cache": {"product_near_bytes": 1e-6},
    "check bits of GDDR": _at("product_dram_efficiency.planar", "product_dram_efficiency.protected"),
    "blocks of Blackwell": {"instruction_edge": 64.0},
    "wide layers": {"wide_share": 1.0},
    "start of products": _all("start_clocks.product", 0.0),
    "start of convolutions": _at("start_clocks.product.tensor", "start_clocks.conv"),
    "start of address kernels": _at("start_clocks.light", "start_clocks.index"),
    "start of reductions": _at("start_clocks.light", "start_clocks.reduction"),
    "start of rows": _at("start_clocks.reduction", "start_clocks.row"),
    "start of batch norms": _at("start_clocks.light", "start_clocks.batch_norm"),
    "gap between kernels": {"gap_clocks": 0.0},
    "slots of an address": {"issue_slots.index": 0.0},
    "slots of a depthwise convolution": _all("issue_slots.depthwise", 0.0),
    "slots of an average pooling": {"issue_slots.average": 0.0},
    "chain of a maximum pooling": {"chain_clocks.pool": 0.0},
    "chain of a batch norm": {"chain_clocks.batch_norm": 0.0},
    "steps of a sum": {"chain_clocks.sum": 0.0},
    "slots of a batch norm": {"issue_slots.batch_norm": 0.0},
    "rows read again": {"again_share": 1e6},
    "attention: block": _all("attention_tile_clocks", 0.0),
    "attention: pair": _all("attention_pair_clocks", 0.0),
    "attention: merge": {"attention_merge_clocks": 0.0},
    "attention: rate of a unit": _all("attention_unit_bytes", 1e9),
    "attention: exponential": {"attention_exponential": 0.0},
    "attention: append": {"attention_append_clocks": 0.0},
    "experts: sort": _all("experts_sort_clocks", 0.0),
    "experts: choice": _all("experts_choice_clocks", 0.0),
    "experts: block": _all("experts_tile_clocks", 0.0),
    "experts: operands of a block": _all("experts_unit_bytes", 1e9),
    "quantization: row": {"row_elements.quantize": 0.0},
    "quantization: block": {"row_blocks.quantize": 0.0},
    "wait between groups": {"chain_clocks.group": 0.0},
    "slots of small groups": {"issue_slots.group": 0.0},
    "sort winograd": _at("peak_share.vector", "peak_share.winograd.vector"),
    "sort patch": _at("peak_share.narrow.tensor", "peak_share.patch.tensor"),
    "sort image": _at("peak_share.tensor", "peak_share.narrow.tensor"),
}
"""Effect -> the values that switch it off: coefficient of the class or quantity of the board -> value."""

MODELS: Final = ("h200_sxm", "graph")
"""Hardware and runtime of the whole models that are scored."""

FOLDS: Final = 4

SHAPE: Final[Mapping[str, tuple[str, ...]]] = {
    "gemm": ("n", "k"),
    "bmm": ("m", "n", "k"),
    "conv2d": ("channels_in", "channels_out", "size", "kernel"),
    "attention": ("heads", "kv_heads", "head_dim", "batch", "queries", "cached"),
    "experts": ("hidden", "inner", "experts", "held"),
    **dict.fromkeys(("softmax", "layer_norm", "rms_norm", "gated", "embedding"), ("columns",)),
    "rotary": ("heads", "kv_heads", "head_dim"),
    "elementwise": ("elements",),
}
"""Kind of operator -> the sizes that identify a shape, which is held out as a whole."""

ROOFLINE: Final = (
    FreeParameter(name="share of the peak", default=0.72, spread=0.5, highest=1.0),
    FreeParameter(name="share of the bandwidth", default=0.8, spread=0.5, highest=1.0),
    FreeParameter(name="start", default=2e-6, spread=1.0),
)
"""Parameters of a roofline for one kind of operator."""

FIXED: Final = "roofline: 72 %, 80 %, 2 µs"
FITTED: Final = "roofline, three numbers fitted for each kind"
MODEL: Final = "the model"

MANY: Final = 1_000
"""Minimum rows of a kind of docs/accuracy.md."""

STEP: Final = 1e-3
"""Step of a number's natural logarithm for slopes, larger than rounding errors and many steps between tile sizes."""

KNOWN: Final = 4096
"""Maximum number of cached latencies of groups; a slope changes one number at a time, which few groups depend on."""

KEY: Final = WorkloadKey(source="ladder", input_spec="", torch_version="", torchvision_version="", tracer_version="")

Tell = Callable[[str], None]


@attrs.frozen(kw_only=True, eq=False)
class Group:
    """Operators with the same hardware, matmul precision, precision and runtime, evaluated together."""

    hardware: Hardware
    rows: Integers
    """Row numbers in the bench."""
    kernels: KernelColumns
    flops: Floats
    """Floating-point operations of each operator; for causal attention, only the visible pairs."""
    moved_bytes: Floats

    def seconds(self, hardware: Hardware) -> Floats:
        """Return the latency of each operator on `hardware`, which may have other coefficients than the group's."""
        timing = time_kernels(self.kernels, hardware)
        return self.kernels.sum_kernels(timing.kernel_s)


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Bench:
    """Measured operators, one row each."""

    table: Sequence[str]
    board: Sequence[str]
    kind: Sequence[str]
    """Kind of operator and precision."""
    fold: Integers
    measured_s: Floats
    groups: tuple[Group, ...]
    left_out: Mapping[str, int]
    """Reason -> number of rows that are left out."""

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(self.measured_s)

    @cached_property
    def arithmetic_s(self) -> Floats:
        """Minimum time of each row's arithmetic, at the peak rate."""
        return self._each(lambda group: group.flops / group.hardware.product_rate(group.kernels.precision))

    @cached_property
    def transfer_s(self) -> Floats:
        """Minimum time of each row's transfers, at the memory bandwidth."""
        return self._each(lambda group: group.moved_bytes / group.hardware.memory_bandwidth.value)

    def _each(self, read: Callable[[Group], Floats]) -> Floats:
        found = np.zeros(self.row_count)
        for group in self.groups:
            found[group.rows] = read(group)
        return found

    def rows_of_kind(self, kind: str) -> Booleans:
        """Return a mask of the rows of a kind."""
        return np.array([one == kind for one in self.kind], dtype=bool)

    @cached_property
    def kinds(self) -> list[str]:
        """Every kind, in alphabetical order."""
        return sorted(set(self.kind))

    @cached_property
    def places(self) -> list[tuple[str, str, str]]:
        """Table, board and kind of each row."""
        return list(zip(self.table, self.board, self.kind, strict=True))

    def weights(self, rows: Booleans) -> Floats:
        """Return the weight of each row: 0 outside `rows`, else 1 on average.

        A weight is inversely proportional to the square root of the number of rows with the same table, board and kind.
        """
        counts: dict[tuple[str, str, str], int] = defaultdict(int)
        for place, is_counted in zip(self.places, rows.tolist(), strict=True):
            counts[place] += is_counted
        weight = np.array([1.0 / np.sqrt(max(counts[place], 1)) for place in self.places]) * rows
        balanced: Floats = weight * (rows.sum() / weight.sum())
        return balanced


def make_bench(tables: Sequence[str], every: int, kinds: Collection[str] | None = None) -> Bench:
    """Return about one in `every` single operator of these public tables on GPUs, of these kinds or of all.

    A hash of the operator selects rows, because every n-th row of a table may have the same size.
    """
    catalogue = load_catalogue()
    public = load_public_tables()
    grouped: dict[tuple[str, str, str, str], list[int]] = defaultdict(list)
    columns: list[tuple[str, str, str, int, float, SingleOperator]] = []
    left_out: dict[str, int] = defaultdict(int)
    for name in tables:
        for row in public[name].read():
            operator = find_operator(row.model) if is_operator(row.model) else None
            hardware = catalogue.hardware.get(row.hardware)
            if operator is None or row.latency_s is None:
                left_out["no single operator with a latency"] += 1
            elif operator.kind in COLLECTIVES:
                left_out["a collective is of links, not of the units of a GPU"] += 1
            elif hardware is None:
                left_out[f"{row.hardware} is not in the catalogue"] += 1
            elif hardware.architecture != CLASS:
                left_out[f"{row.hardware} is no GPU"] += 1
            elif row.precision not in hardware.peaks:
                left_out[f"{row.hardware} has no {row.precision}"] += 1
            else:
                kind = f"{operator.kind} {row.precision}"
                if zlib.crc32(row.model.encode()) % every == 0 and (kinds is None or kind in kinds):
                    grouped[row.hardware, row.matmul_precision, row.precision, row.runtime].append(len(columns))
                    columns.append((name, row.hardware, kind, _fold(operator), row.latency_s, operator))
    groups = tuple(
        _group(
            catalogue.hardware[hardware].at_matmul_precision(cast("MatmulPrecision", setting)),
            precision,
            runtime,
            rows,
            [columns[row][-1] for row in rows],
        )
        for (hardware, setting, precision, runtime), rows in grouped.items()
    )
    return Bench(
        table=[one[0] for one in columns],
        board=[one[1] for one in columns],
        kind=[one[2] for one in columns],
        fold=np.array([one[3] for one in columns], dtype=np.int64),
        measured_s=np.array([one[4] for one in columns]),
        groups=groups,
        left_out=left_out,
    )


def _fold(operator: SingleOperator) -> int:
    sizes = [str(operator.arguments[name]) for name in SHAPE[operator.kind]]
    return zlib.crc32(",".join((operator.kind, *sizes)).encode()) % FOLDS


def _group(
    hardware: Hardware, precision: str, runtime: str, rows: list[int], operators: Sequence[SingleOperator]
) -> Group:
    kernels = form_joined(join([columns_of(describe(operator, 1, KEY)) for operator in operators]), precision, runtime)
    return Group(
        hardware=hardware,
        rows=np.array(rows, dtype=np.int64),
        kernels=kernels,
        flops=2.0 * kernels.sum_workload(kernels.work.mac_count) * np.array([_seen_pairs(one) for one in operators]),
        moved_bytes=kernels.sum_workload(kernels.moved_bytes),
    )


def _seen_pairs(operator: SingleOperator) -> float:
    """Return the share of query-key pairs that are visible in a causal attention; 1 for any other operator."""
    if operator.kind != "attention" or not operator.arguments["causal"]:
        return 1.0
    queries, cached = operator.size("queries"), operator.size("cached")
    return (cached + (queries + 1) / 2) / (cached + queries)


class Form(Protocol):
    """Predictor of latencies with parameters that can be fitted."""

    @property
    def parameters(self) -> Sequence[FreeParameter]:
        """Parameters that can be fitted."""

    def predict(self, bench: Bench, position: Floats) -> Floats:
        """Return the latency of each row; `position` has the parameters' distances from their defaults in spreads."""


@attrs.frozen
class Roofline:
    """Roofline with a start time: the longer of arithmetic and transfers, for each kind of operator."""

    kinds: Sequence[str] = ()
    """Kinds with three fitted parameters; other kinds have the defaults."""

    @property
    def parameters(self) -> Sequence[FreeParameter]:
        """Three parameters for each kind, kind by kind."""
        return [attrs.evolve(one, name=f"{one.name}, {kind}") for kind in self.kinds for one in ROOFLINE]

    def predict(self, bench: Bench, position: Floats) -> Floats:
        """Return the latency of each row."""
        numbers = np.tile([[one.default for one in ROOFLINE]], (bench.row_count, 1))
        fitted = [one.value(u) for one, u in zip(self.parameters, position.tolist(), strict=True)]
        for number, kind in enumerate(self.kinds):
            numbers[bench.rows_of_kind(kind)] = fitted[len(ROOFLINE) * number : len(ROOFLINE) * (number + 1)]
        compute, memory, start = numbers.T
        seconds: Floats = start + np.maximum(bench.arithmetic_s / compute, bench.transfer_s / memory)
        return seconds


@attrs.frozen(eq=False)
class Model:
    """GPU class on one bench, with some coefficients fixed at other values than the built-in ones."""

    held: Mapping[str, float]
    """Coefficient of the class or quantity of a board -> fixed value."""
    parameters: Sequence[FreeParameter]
    """Parameters of the class; a board with another default in its file is changed by the same factor."""
    moves: Mapping[int, Sequence[int]] = attrs.field(factory=dict)
    """Group number -> indices of the parameters that its rows depend on; a missing group depends on all."""
    _known: dict[tuple[int, bytes], Floats] = attrs.field(factory=dict, init=False)
    """(Group number, its positions as bytes) -> latencies of the group."""

    def predict(self, bench: Bench, position: Floats) -> Floats:
        """Return the latency of each row."""
        found = np.zeros(bench.row_count)
        for number, group in enumerate(bench.groups):
            mine = np.array(self.moves.get(number, range(len(self.parameters))), dtype=np.int64)
            key = number, position[mine].tobytes()
            if key not in self._known:
                if len(self._known) >= KNOWN:
                    self._known.clear()
                moved = [(self.parameters[one], float(position[one])) for one in mine if position[one]]
                factors = {one.name: float(np.exp(one.spread * u)) for one, u in moved}
                self._known[key] = group.seconds(self.describe(group.hardware, factors))
            found[group.rows] = self._known[key]
        return found

    def describe(self, hardware: Hardware, factors: Mapping[str, float]) -> Hardware:
        """Return the hardware with factors on coefficients, and with the fixed values."""
        own = dict(hardware.coefficients)
        for name, factor in factors.items():
            own[name] = attrs.evolve(own[name], value=own[name].value * factor)
        quantities = {}
        for name, value in self.held.items():
            if name in own:
                own[name] = attrs.evolve(own[name], value=value)
            else:
                quantities[name] = attrs.evolve(getattr(hardware, name), value=value)
        return attrs.evolve(hardware, coefficients=own, **quantities)


def make_model(bench: Bench, held: Mapping[str, float] | None = None) -> Model:
    """Return the GPU class with the values of `held` fixed, which switch off an effect.

    Its parameters are those that a row depends on. Raise ValueError for a name that a board lacks.
    """
    of_boards = [free_parameters(group.hardware, held or {}) for group in bench.groups]
    tightest = {one.name: one for one in of_boards[0]}
    for parameters in of_boards[1:]:
        for one in parameters:
            if one.bounds[1] < tightest[one.name].bounds[1]:
                tightest[one.name] = one
    whole = Model(held=held or {}, parameters=tuple(tightest.values()))
    base = whole.predict(bench, np.zeros(len(whole.parameters)))
    lines = np.eye(len(whole.parameters))
    moved = np.stack([(whole.predict(bench, one) != base) | (whole.predict(bench, -one) != base) for one in lines])
    kept = np.flatnonzero(moved.any(axis=1))
    return Model(
        held=whole.held,
        parameters=tuple(whole.parameters[one] for one in kept.tolist()),
        moves={
            number: np.flatnonzero(moved[kept][:, group.rows].any(axis=1)).tolist()
            for number, group in enumerate(bench.groups)
        },
    )


def moved_kinds(bench: Bench, held: Mapping[str, float]) -> tuple[str, ...]:
    """Return the kinds of operators with a row whose latency depends on the values of `held`."""
    start = np.zeros(0)
    moves = Model(held=held, parameters=()).predict(bench, start) != Model(held={}, parameters=()).predict(bench, start)
    return tuple(kind for kind in bench.kinds if moves[bench.rows_of_kind(kind)].any())


def free_parameters(hardware: Hardware, held: Mapping[str, float]) -> tuple[FreeParameter, ...]:
    """Return the parameters that can be fitted besides `held`; raise ValueError for a name that the hardware lacks."""
    unknown = [name for name in held if name not in hardware.coefficients and not hasattr(hardware, name)]
    if unknown:
        raise ValueError(f"EFFECTS: {hardware.id} has no {', '.join(unknown)}")
    spreads = {one.name: one.spread for one in load_spreads(CLASS).coefficients if one.name not in held}
    return free_coefficients(hardware, spreads)


@attrs.define(eq=False)
class Fitter:
    """Fits a form to a subset of the rows."""

    bench: Bench
    form: Form

    def fit(self, rows: Booleans, start: Floats, slope: NDArray[np.float64] | None = None) -> Floats:
        """Return the best position for these rows; `slope` is that at `start`, if known."""
        return minimize(
            self.log_predict,
            self.slope,
            measured=np.log(self.bench.measured_s),
            weight=self.bench.weights(rows),
            start=start,
            bounds=bounds_of(self.form.parameters),
            known_slope=slope,
            tolerance=1e-4,
        )

    def log_predict(self, position: Floats) -> Floats:
        """Return the natural logarithm of each row's latency."""
        logarithm: Floats = np.log(self.form.predict(self.bench, position))
        return logarithm

    def slope(self, position: Floats) -> NDArray[np.float64]:
        """Return the derivatives of `log_predict`, with one line per row and one column per parameter."""
        base = self.log_predict(position)
        columns = []
        for number, one in enumerate(self.form.parameters):
            step = STEP / one.spread
            if position[number] + step > one.bounds[1]:
                step = -step
            moved = position.copy()
            moved[number] += step
            columns.append((self.log_predict(moved) - base) / step)
        return np.stack(columns, axis=1)


@attrs.frozen(kw_only=True, eq=False)
class Rung:
    """Latencies of every row by a form, from fits to all and to other rows."""

    name: str
    positions: Mapping[str, float]
    """Parameter -> its position in a fit to all rows."""
    fitted_s: Floats
    other_shapes_s: Floats
    other_boards_s: Floats
    kept: Mapping[str, tuple[str, ...]]
    """Board -> coefficients that only its rows depend on, which keep their defaults when the board is held out."""

    @property
    def coefficient_count(self) -> int:
        """Number of fitted parameters."""
        return len(self.positions)


def climb(bench: Bench, name: str, form: Form, tell: Tell, near: Mapping[str, float] | None = None) -> Rung:
    """Return the latencies of a form from fits to all rows, and to all rows except those that it is scored on.

    `near` has positions to start from, by parameter.
    """
    began = time.perf_counter()
    fitter, everything = Fitter(bench, form), np.ones(bench.row_count, dtype=bool)
    start = np.array([(near or {}).get(one.name, 0.0) for one in form.parameters])
    if not len(start):
        found = form.predict(bench, start)
        return Rung(name=name, positions={}, fitted_s=found, other_shapes_s=found, other_boards_s=found, kept={})
    position = fitter.fit(everything, start)
    slope = fitter.slope(position)
    boards = np.array(bench.board)
    shapes_s, boards_s = np.zeros(bench.row_count), np.zeros(bench.row_count)
    kept: dict[str, tuple[str, ...]] = {}
    for fold in range(FOLDS):
        out = bench.fold == fold
        shapes_s[out] = form.predict(bench, fitter.fit(~out, position, slope))[out]
    for board in sorted(set(bench.board)):
        out = boards == board
        alone = ~np.abs(slope[~out]).any(axis=0) & np.abs(slope[out]).any(axis=0)
        kept[board] = tuple(one.name for one, is_alone in zip(form.parameters, alone.tolist(), strict=True) if is_alone)
        begun = np.where(alone, 0.0, position)
        boards_s[out] = form.predict(bench, fitter.fit(~out, begun, slope))[out]
    tell(f"{name}: {time.perf_counter() - began:.0f} s")
    return Rung(
        name=name,
        positions=dict(zip((one.name for one in form.parameters), position.tolist(), strict=True)),
        fitted_s=form.predict(bench, position),
        other_shapes_s=shapes_s,
        other_boards_s=boards_s,
        kept=kept,
    )


def climb_all(bench: Bench, tell: Tell) -> list[Rung]:
    """Return the latencies of two rooflines and of the model."""
    return [
        climb(bench, FIXED, Roofline(), tell),
        climb(bench, FITTED, Roofline(bench.kinds), tell),
        climb(bench, MODEL, make_model(bench), tell),
    ]


@attrs.frozen(kw_only=True, eq=False)
class Step:
    """Model with and without an effect, on the kinds of operators that the effect changes."""

    effect: str
    bench: Bench
    """Rows of the kinds that the effect changes."""
    model: Rung
    without: Rung


def step_down(
    tables: Sequence[str], every: int, bench: Bench, model: Rung, effects: Iterable[str], tell: Tell
) -> Iterator[Step]:
    """Yield the model with and without each effect that changes a row, fitted to the kinds that it changes."""
    near = model.positions
    benches: dict[tuple[str, ...], tuple[Bench, Rung]] = {tuple(bench.kinds): (bench, model)}
    for effect in effects:
        kinds = moved_kinds(bench, EFFECTS[effect])
        if not kinds:
            tell(f"{effect} moves no single operator")
            continue
        if kinds not in benches:
            own = make_bench(tables, every, kinds)
            benches[kinds] = own, climb(own, MODEL, make_model(own), tell, near)
        own, model = benches[kinds]
        without = climb(own, f"without {effect}", make_model(own, EFFECTS[effect]), tell, model.positions)
        yield Step(effect=effect, bench=own, model=model, without=without)


@attrs.frozen(kw_only=True, eq=False)
class ModelRung:
    """Latencies of all whole models by a form, from fits to all and to other families."""

    name: str
    positions: Mapping[str, float]
    """Parameter -> its position in a fit to all rows."""
    fitted_s: Floats
    other_families_s: Floats


def observe_models() -> tuple[Observation, ...]:
    """Return the built-in measurements of whole models on the hardware and runtime of `MODELS`."""
    hardware, runtime = MODELS
    rows = [
        row
        for row in load_measurements()
        if (row.hardware, row.runtime) == (hardware, runtime) and row.latency_s is not None
    ]
    with tempfile.TemporaryDirectory(prefix="joulemap-") as folder:
        source = Source(path=Path(folder) / "ladder.duckdb")
        found, _ = observe(source, load_catalogue().hardware[hardware], select_models(rows))
    return found


def make_fitter(observations: Sequence[Observation]) -> ModelFitter:
    """Return a fitter of the GPU class to whole models, with the parameters that at least one of them depends on."""
    own = load_catalogue().hardware[MODELS[0]]
    whole = Target(
        bench=make_model_bench(own, observations),
        coefficients=free_parameters(own, {}),
        scales=(),
        factors=(),
    )
    slope = ModelFitter(whole).model.slope(np.zeros(len(whole.coefficients)))
    kept = [one for one, line in zip(whole.coefficients, slope.T, strict=True) if line.any()]
    return ModelFitter(attrs.evolve(whole, coefficients=tuple(kept)))


def switch_off(fitter: ModelFitter, held: Mapping[str, float]) -> ModelFitter:
    """Return the fitter with the values of `held` fixed, which switch off an effect."""
    target = fitter.target
    hardware = Model(held=held, parameters=()).describe(target.bench.hardware, {})
    coefficients = tuple(one for one in target.coefficients if one.name not in held)
    return ModelFitter(
        attrs.evolve(target, bench=attrs.evolve(target.bench, hardware=hardware), coefficients=coefficients)
    )


def climb_models(fitter: ModelFitter, name: str, tell: Tell, near: Mapping[str, float] | None = None) -> ModelRung:
    """Return the latencies of a form from a fit to all whole models, and from fits to all other families.

    `near` has positions to start from, by parameter.
    """
    began = time.perf_counter()
    begun = np.array([(near or {}).get(one.name, 0.0) for one in fitter.target.coefficients])
    start = attrs.evolve(fitter.start(), coefficients=begun)
    solution = fitter.fit(np.ones(fitter.target.bench.row_count, dtype=bool), start)
    left_out = fitter.cross_validate(solution, lambda _: None)
    if left_out is None:
        raise ValueError(f"{MODELS[0]}: a single family, so that none can be left out")
    tell(f"{name}, whole models: {time.perf_counter() - began:.0f} s")
    return ModelRung(
        name=name,
        positions=dict(
            zip((one.name for one in fitter.target.coefficients), solution.coefficients.tolist(), strict=True)
        ),
        fitted_s=fitter.predict(solution).latency_s,
        other_families_s=left_out.latency_s,
    )


def naive_seconds(observations: Sequence[Observation]) -> Floats:
    """Return the latency of whole models by the fixed roofline, as the sum over kernels."""
    compute, memory, start = (one.default for one in ROOFLINE)
    bench = make_model_bench(load_catalogue().hardware[MODELS[0]], observations)
    found = np.zeros(len(observations))
    for group in bench.groups:
        each = []
        for kernels in group.stack.blocks:
            peak = bench.hardware.at_matmul_precision(group.matmul_precision).product_rate(kernels.precision)
            arithmetic = 2.0 * kernels.per_kernel(kernels.work.mac_count) / (compute * peak)
            transfer = kernels.per_kernel(kernels.moved_bytes) / (memory * bench.hardware.memory_bandwidth.value)
            each.append(start + np.maximum(arithmetic, transfer))
        found[group.rows] = group.stack.rows(np.concatenate(each))
    return found


def model_lines(effects: Iterable[str], tell: Tell) -> Iterator[str]:
    """Yield the table of a roofline, the model, and the model without each effect that changes a whole model."""
    observations = observe_models()
    measured = np.array([one.latency_s for one in observations], dtype=np.float64)
    naive = show_error(naive_seconds(observations), measured)
    lines: list[tuple[object, ...]] = [(f"{FIXED} for each kernel", 0, naive, naive)]
    model = make_fitter(observations)
    start = model.predict(model.start()).latency_s
    near: Mapping[str, float] = {}
    for name, held in {MODEL: {}, **{f"without {effect}": EFFECTS[effect] for effect in effects}}.items():
        fitter = switch_off(model, held)
        if held and (fitter.predict(fitter.start()).latency_s == start).all():
            tell(f"{name.removeprefix('without ')} moves no whole model")
            continue
        rung = climb_models(fitter, name, tell, near)
        near = near or rung.positions
        errors = [show_error(seconds, measured) for seconds in (rung.fitted_s, rung.other_families_s)]
        tell(f"{name}: {errors[0]} in sample, {errors[1]} on other families")
        lines.append((name, len(rung.positions), *errors))
    yield f"Whole models on {MODELS[0]}, {MODELS[1]}, {len(observations)} rows: mean / median error in per cent"
    yield ""
    yield from table(("form", "fitted numbers", "in sample", "other families"), lines)


def show_error(predicted: Floats, measured: Floats) -> str:
    """Return the text of the mean and the median absolute relative error, in per cent."""
    sizes = 100.0 * np.abs(predicted / measured - 1.0)
    return f"{sizes.mean():.1f} / {np.median(sizes):.1f}"


def error(predicted: Floats, bench: Bench, rows: Booleans) -> str:
    """Return the text of `show_error` for some rows of a bench."""
    return show_error(predicted[rows], bench.measured_s[rows])


def mean_error(predicted: Floats, bench: Bench, rows: Booleans) -> str:
    """Return the mean absolute relative error of some rows, in per cent."""
    return error(predicted, bench, rows).partition(" / ")[0]


def bias(predicted: Floats, bench: Bench, rows: Booleans) -> str:
    """Return the mean signed relative error in per cent; positive means predicted too slow."""
    return f"{100.0 * (predicted[rows] / bench.measured_s[rows] - 1.0).mean():+.1f}"


def rung_lines(bench: Bench, rungs: Sequence[Rung]) -> Iterator[str]:
    """Yield a table of all forms in sample, on other shapes and on other boards, with a column per kind."""
    kinds, masks = bench.kinds, {kind: bench.rows_of_kind(kind) for kind in bench.kinds}
    everything = np.ones(bench.row_count, dtype=bool)
    for title, field in (
        ("In sample", "fitted_s"),
        ("Other shapes", "other_shapes_s"),
        ("Other boards", "other_boards_s"),
    ):
        yield f"{title}: mean / median error in per cent"
        yield ""
        counts = [f"{kind} ({masks[kind].sum():,})" for kind in kinds]
        yield from table(
            ("form", "fitted numbers", f"all ({bench.row_count:,})", *counts),
            (
                (
                    rung.name,
                    rung.coefficient_count,
                    error(getattr(rung, field), bench, everything),
                    *(error(getattr(rung, field), bench, masks[kind]) for kind in kinds),
                )
                for rung in rungs
            ),
        )


def step_lines(steps: Iterable[Step]) -> Iterator[str]:
    """Yield the table of effects, with a line for each kind that an effect changes."""
    lines = []
    for step in steps:
        kinds = {kind: step.bench.rows_of_kind(kind) for kind in step.bench.kinds}
        if len(kinds) > 1:
            kinds = {"all of these": np.ones(step.bench.row_count, dtype=bool), **kinds}
        numbers = step.model.coefficient_count - step.without.coefficient_count
        for kind, rows in kinds.items():
            errors = [
                error(getattr(rung, field), step.bench, rows)
                for field in ("fitted_s", "other_shapes_s", "other_boards_s")
                for rung in (step.model, step.without)
            ]
            lines.append((step.effect, numbers, kind, f"{rows.sum():,}", *errors))
    yield "Effects, each on the kinds that it moves, with it and without it: mean / median error in per cent"
    yield ""
    yield from table(
        ("effect", "its fitted numbers", "kind", "rows", "in sample", "without", "other shapes", "without",
         "other boards", "without"),
        lines,
    )  # fmt: skip


def kind_lines(bench: Bench, rungs: Sequence[Rung]) -> Iterator[str]:
    """Yield the table of the model and the roofline, a line per kind with at least `MANY` rows."""
    by_name = {rung.name: rung for rung in rungs}
    model = by_name[MODEL]
    lines = []
    for kind in bench.kinds:
        rows = bench.rows_of_kind(kind)
        if rows.sum() < MANY:
            continue
        boards = {board for board, own in zip(bench.board, bench.kind, strict=True) if own == kind}
        lines.append(
            (
                kind, f"{rows.sum():,}",
                mean_error(by_name[FIXED].fitted_s, bench, rows),
                mean_error(model.other_shapes_s, bench, rows),
                mean_error(model.other_boards_s, bench, rows) if len(boards) > 1 else "-",
                bias(model.other_boards_s, bench, rows) if len(boards) > 1 else "-",
            )
        )  # fmt: skip
    yield from table(
        ("kind", "rows", "roofline", "model, other shapes", "model, other boards", "bias there"),
        lines,
    )


def place_lines(bench: Bench, rungs: Sequence[Rung]) -> Iterator[str]:
    """Yield the table of the model and the rooflines, a line per public table, kind and board."""
    by_name = {rung.name: rung for rung in rungs}
    model = by_name[MODEL]
    lines = []
    for place in sorted(set(bench.places), key=lambda place: (place[2], place[0], place[1])):
        rows = np.array([one == place for one in bench.places])
        name, board, kind = place
        lines.append(
            (
                kind, name, board, f"{rows.sum():,}",
                error(by_name[FIXED].fitted_s, bench, rows),
                error(by_name[FITTED].other_boards_s, bench, rows),
                error(model.fitted_s, bench, rows),
                error(model.other_shapes_s, bench, rows),
                error(model.other_boards_s, bench, rows),
                bias(model.other_boards_s, bench, rows),
            )
        )  # fmt: skip
    yield from table(
        ("kind", "table", "board", "rows", "roofline 72 / 80 % / 2 µs", "roofline fitted to other boards", "fitted",
         "other shapes", "other boards", "bias there"),
        lines,
    )  # fmt: skip


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a table, and an empty line."""
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"
    yield ""


def scored_tables() -> list[str]:
    """Return the names of the public tables that score predictions."""
    return [name for name, one in load_public_tables().items() if not one.doubt and one.is_single]


def main() -> None:
    """Print the ladder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="append", choices=sorted(load_public_tables()), help="only these tables")
    parser.add_argument("--effect", action="append", choices=sorted(EFFECTS), help="only without these")
    parser.add_argument("--every", type=int, default=1, help="about one row in n, the same shapes of all boards")
    parser.add_argument("--models", action="store_true", help="whole models instead, each family left out in turn")
    parser.add_argument("--boards", action="store_true", help="also what no other board determines")
    options = parser.parse_args()
    tables, effects = options.table or scored_tables(), options.effect or list(EFFECTS)
    if options.models:
        for line in model_lines(effects, _tell):
            print(line)
        return
    bench = make_bench(tables, options.every)
    for reason, count in bench.left_out.items():
        _tell(f"left out: {count:,} rows: {reason}")
    rungs = climb_all(bench, _tell)
    steps = step_down(tables, options.every, bench, rungs[-1], effects, _tell)
    for line in (*rung_lines(bench, rungs), *place_lines(bench, rungs), *step_lines(steps)):
        print(line)
    if options.boards:
        model = next(rung for rung in rungs if rung.name == MODEL)
        for board, names in model.kept.items():
            print(f"{board}: {', '.join(names) or 'other boards determine all of it'}")


def _tell(message: str) -> None:
    print(message, file=sys.stderr)


if __name__ == "__main__":
    main()
