"""`joulemap calibrate`: the solver by hand, the stack against evaluation, fits against a truth that is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
import pytest

from compare import assert_close
from conftest import Run
from joulemap.ask.measurement import find_workloads
from joulemap.calibrate.bench import LatencyModel, make_bench
from joulemap.calibrate.calibration import Freedom, Outcome, calibrate
from joulemap.calibrate.fit import Fitter, Solution, Target
from joulemap.calibrate.free_parameter import FreeParameter, bounds_of, free_coefficients, rounded
from joulemap.calibrate.observation import Observation, balance, credibility, divide
from joulemap.calibrate.solve import SCALE, information, minimize
from joulemap.catalog.calibration import SHIPPED, calibration_text, read_calibration
from joulemap.catalog.chip import list_architectures
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.spread import load_spreads
from joulemap.domain.measurement import Measurement
from joulemap.physics.architecture import find_architecture
from joulemap.physics.kernel import form_kernels
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.calibration import scale_reference
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.quantity import least_sure
from joulemap.physics.record.runtime import MODES
from joulemap.physics.timing import place
from joulemap.physics.workload import Floats, WorkloadColumns
from joulemap.plan.source import Source
from joulemap.plan.version import formula_version
from joulemap.store.connection import transaction, writing
from joulemap.store.measurement import write_measurements
from joulemap.system.errors import ExitCode, NoMeasurementError, UnknownNameError, UsageError
from joulemap.system.units import FJ_PER_J, FS_PER_S
from joulemap.workspace import Workspace

MODELS = ("resnet18", "mobilenet_v2", "vgg11", "googlenet", "transformer_encoder_layer")


def hardware(name: str) -> Hardware:
    return load_catalogue().hardware[name]


@pytest.fixture(scope="module")
def workloads(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, int], WorkloadColumns]:
    wanted = [(model, batch) for model in MODELS for batch in (1, 8)]
    columns_of = find_workloads(Source(path=tmp_path_factory.mktemp("none") / "none.duckdb"), wanted)
    assert all(isinstance(columns, WorkloadColumns) for columns in columns_of.values())
    return {place: columns for place, columns in columns_of.items() if isinstance(columns, WorkloadColumns)}


# the solver


def solve(measured: Sequence[float], weight: Sequence[float], spread: float, bounds: tuple[float, float]) -> float:
    """Return u for rows that are predicted as exp(spread u)."""

    def predict(position: Floats) -> Floats:
        return np.full(len(measured), spread * position[0])

    positions = minimize(
        predict,
        lambda position: np.full((len(measured), 1), spread),
        measured=np.log(np.array(measured)),
        weight=np.array(weight),
        start=np.zeros(1),
        bounds=(np.array(bounds[:1]), np.array(bounds[1:])),
    )
    return float(positions[0])


@pytest.mark.parametrize("measured", [[1.5], [0.2], [1.02], [1.0, 10.0], [2.0, 2.1, 50.0]])
def test_no_position_has_a_lower_sum(measured: list[float]) -> None:
    spread = 0.7

    def cost(u: float) -> float:
        errors = [(spread * u - math.log(value)) / SCALE for value in measured]
        return sum(2.0 * (math.sqrt(1.0 + error**2) - 1.0) for error in errors) + u**2

    lowest = cost(solve(measured, [1.0] * len(measured), spread, (-4.0, 4.0)))
    assert lowest <= min(cost(step / 1000.0) for step in range(-4000, 4001)) * (1.0 + 1e-4)


def test_a_row_of_weight_zero_does_not_count_and_bounds_hold() -> None:
    free = solve([2.0], [1.0], 0.7, (-4.0, 4.0))
    assert solve([2.0, math.nan], [1.0, 0.0], 0.7, (-4.0, 4.0)) == free
    assert_close(math.exp(0.7 * free), 2.0, rel=0.02)
    assert solve([2.0], [1.0], 0.7, (-4.0, 0.5)) == 0.5
    assert solve([0.5], [1.0], 0.7, (-4.0, 0.0)) < -0.5
    assert solve([2.0], [1.0], 0.7, (-4.0, 0.0)) == 0.0


def test_one_of_many_that_contradicts_costs_its_share_alone() -> None:
    alone = solve([2.0] * 9, [1.0] * 9, 0.7, (-4.0, 4.0))
    with_wrong = solve([2.0] * 9 + [200.0], [1.0] * 10, 0.7, (-4.0, 4.0))
    assert math.exp(0.7 * (with_wrong - alone)) < 1.02


def test_a_free_parameter_by_hand() -> None:
    one = FreeParameter(name="x_efficiency", default=0.5, spread=0.25, highest=1.0)
    assert one.value(0.0) == 0.5
    assert_close(one.value(2.0), 0.5 * math.exp(0.5))
    assert_close(one.bounds[1], math.log(2.0) / 0.25)
    assert one.position(7.0) == one.bounds[1]
    assert_close(one.position(one.value(-1.25)), -1.25)
    assert rounded(123456.7) == 123460.0


# the stack


def observe(columns: WorkloadColumns, target: Hardware, runtime: str, **changes: object) -> Observation:
    settings = Configuration(
        hardware=target.id, precision=next(iter(target.peaks)), batch=columns.batch, runtime=runtime
    )
    draft = Observation(columns=columns, configuration=settings, model="any", family="any", latency_s=1.0)
    return attrs.evolve(draft, **changes)  # type: ignore[arg-type]


def examples() -> list[str]:
    """Return a chip of each class, and those that leave the common way."""
    entries = load_catalogue().hardware.values()
    first = [
        next(one.id for one in entries if one.architecture == name and one.memory_capacity.value > 1e9)
        for name in list_architectures()
    ]
    return [*first, "hailo_8", "coral_edge_tpu", "mi300x", "h200_sxm"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", examples())
@pytest.mark.parametrize("runtime", MODES)
def test_a_stack_gives_what_each_evaluation_gives(
    name: str, runtime: str, workloads: Mapping[tuple[str, int], WorkloadColumns]
) -> None:
    target = attrs.evolve(hardware(name), compiler=None)
    observations = [observe(columns, target, runtime) for columns in workloads.values()]
    bench = make_bench(target, observations)
    (group,) = bench.groups
    seconds = bench.seconds(target.coefficients, group)
    energies = bench.energies({}, [one.scale for one in load_spreads(target.architecture).energy_scales])
    for row, one in enumerate(observations):
        run = evaluate(one.columns, target, one.configuration)
        static_j = target.static_power.value * run.interval_fs / FS_PER_S
        voltage = np.full(len(observations), run.voltage_factor)
        dynamic_j = energies.scaled_j(voltage)[row].sum() + energies.rest_j(voltage)[row]
        if run.clock_fraction == 1.0:
            assert_close(float(seconds[row]), run.latency_fs / FS_PER_S, rel=1e-6)
        assert_close(dynamic_j, run.energy_fj / FJ_PER_J - static_j, rel=1e-6)
    kernels = sum(block.kernel_count for block in group.stack.blocks)
    formed = [form_kernels(one.columns, one.configuration.precision, runtime) for one in observations]
    # layers share a fabric, pinned weights, or a heap that an eager framework frees: a workload is placed whole
    if name in ("hailo_8", "coral_edge_tpu") or (target.architecture == "cpu" and runtime == "eager"):
        assert len(group.stack.blocks) == len(observations)
    else:
        assert len(group.stack.blocks) == 1
        assert kernels < sum(one.kernel_count for one in formed)


def test_operators_sum_to_their_run_and_a_profile_has_no_gaps(
    workloads: Mapping[tuple[str, int], WorkloadColumns],
) -> None:
    target = hardware("h200_sxm")
    columns = workloads["resnet18", 1]
    count = columns.operator_count
    parts = [tuple(range(0, count, 2)), tuple(range(1, count, 2))]
    observations = [
        observe(columns, target, "graph"),
        *(observe(columns, target, "graph", operator_index=part) for part in parts),
        observe(columns, target, "graph", operator_index=tuple(range(count)), includes_gap=False),
    ]
    bench = make_bench(target, observations)
    seconds = np.zeros(len(observations))
    for group in bench.groups:
        seconds[group.rows] = bench.seconds(target.coefficients, group)
    assert_close(float(seconds[1] + seconds[2]), float(seconds[0]))
    kernels = form_kernels(columns, "fp32", "graph").kernel_count
    assert_close(float(seconds[0] - seconds[3]), kernels * target.coefficient("gap_clocks") / target.full_clock.value)


def test_a_prediction_is_what_a_run_under_the_calibration_gives(
    workloads: Mapping[tuple[str, int], WorkloadColumns],
) -> None:
    # half the static power and four times the arithmetic: the power cap gives way, and the fit knows
    target = hardware("h200_sxm")
    spreads = load_spreads("gpu")
    scales = [one.scale for one in spreads.energy_scales]
    fitter = Fitter(
        Target(
            bench=make_bench(target, [observe(columns, target, "graph") for columns in workloads.values()]),
            coefficients=free_coefficients(target, {one.name: 1.0 for one in spreads.coefficients}),
            scales=tuple(scales),
            factors=tuple(FreeParameter(name=one.name, default=1.0, spread=3.0) for one in scales),
        )
    )
    wanted = {"device_time_scale": 1.2, "launch_time_scale": 0.1, "vector_arithmetic": 4.0, "static_power": 0.5}
    solution = Solution(
        coefficients=np.array([one.position(wanted.get(one.name, one.default)) for one in fitter.target.coefficients]),
        factors=np.array([one.position(wanted.get(one.name, 1.0)) for one in fitter.target.factors]),
    )
    predicted = fitter.predict(solution)
    (arithmetic,) = [one for one in scales if one.name == "vector_arithmetic"]
    reference = scale_reference(target.reference, [attrs.evolve(arithmetic, factor=4.0)], "by hand")
    static = attrs.evolve(target.static_power, value=target.static_power.value * 0.5)
    under = attrs.evolve(
        target,
        coefficients={
            **target.coefficients,
            **{
                name: attrs.evolve(target.coefficients[name], value=wanted[name])
                for name in ("device_time_scale", "launch_time_scale")
            },
        },
        static_power=static,
        reference=reference.with_static(static),
    )
    clocks = []
    for row, one in enumerate(fitter.target.bench.observations):
        run = evaluate(one.columns, under, one.configuration)
        clocks.append(run.clock_fraction)
        assert_close(float(predicted.latency_s[row]), run.latency_fs / FS_PER_S, rel=1e-6)
        assert_close(float(predicted.energy_j[row]), run.energy_fj / FJ_PER_J, rel=1e-6)
    assert min(clocks) < 1.0 == max(clocks)


@pytest.mark.parametrize("name", ["xeon_8490h", "tpu_v4", "hailo_8", "dpu_b4096x3_zcu102"])
@pytest.mark.sample(1)
def test_slopes_of_the_kernels_that_depend_are_slopes_of_all(
    name: str, workloads: Mapping[tuple[str, int], WorkloadColumns]
) -> None:
    target = hardware(name)
    spreads = {one.name: one.spread for one in load_spreads(target.architecture).coefficients}
    model = LatencyModel(
        bench=make_bench(target, [observe(columns, target, "eager") for columns in workloads.values()]),
        parameters=free_coefficients(target, spreads),
    )
    position = np.array([0.3 * (-1.0) ** number for number in range(len(model.parameters))])
    position = np.minimum(position, bounds_of(model.parameters)[1])
    slopes = model.slope(position)
    assert (np.abs(slopes).max(axis=0) > 1e-3).sum() >= 3
    for number, one in enumerate(model.parameters):
        step = -1e-4 / one.spread
        moved = position.copy()
        moved[number] += step
        whole = (model.predict(moved) - model.predict(position)) / step
        assert np.abs(whole - slopes[:, number]).max() < 1e-3, one.name


# weights


def test_weights_by_hand(workloads: Mapping[tuple[str, int], WorkloadColumns]) -> None:
    # four rows of one family and one of another in one group, one alone in another group
    target = hardware("tpu_v4")
    one = observe(workloads["resnet18", 1], target, "fused", family="a")
    rows = [one] * 4 + [attrs.evolve(one, family="b"), observe(workloads["resnet18", 8], target, "fused", family="a")]
    share = 1.0 / math.sqrt(2.0)
    raw = [share / 2.0] * 4 + [share, 1.0]
    weights = balance(rows, np.ones(6, dtype=bool))
    for value, expected in zip(weights.tolist(), raw, strict=True):
        assert_close(value, expected * 6.0 / sum(raw))
    without = balance(rows, np.array([True] * 4 + [False] * 2))
    assert without.tolist() == [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    heavy = balance([attrs.evolve(one, weight=3.0), one], np.ones(2, dtype=bool))
    assert heavy.tolist() == [1.5, 0.5]


def test_credibility_by_hand(workloads: Mapping[tuple[str, int], WorkloadColumns]) -> None:
    target = hardware("tpu_v4")
    one = observe(workloads["resnet18", 1], target, "fused", family="a")
    other_group = observe(workloads["resnet18", 8], target, "fused", family="a")

    def of(*rows: Observation) -> float:
        return credibility(rows, np.ones(len(rows), dtype=bool))

    assert_close(of(one), 1.0 / 5.0)
    assert_close(of(*[one] * 4), 2.0 / 6.0)
    assert_close(of(*[one] * 4, attrs.evolve(one, family="b"), other_group), 4.0 / 8.0)
    assert_close(of(*(attrs.evolve(one, family=str(number)) for number in range(30))), 30.0 / 34.0)
    assert credibility([one], np.zeros(1, dtype=bool)) == 0.0


def test_what_is_left_out_together(workloads: Mapping[tuple[str, int], WorkloadColumns]) -> None:
    one = observe(workloads["resnet18", 1], hardware("tpu_v4"), "fused", family="a")
    two = [one, attrs.evolve(one, family="b"), one]
    assert {name: rows.tolist() for name, rows in divide(two).items()} == {
        "a": [True, False, True],
        "b": [False, True, False],
    }
    assert len(divide([attrs.evolve(one, model=str(number)) for number in range(9)])) == 1
    # twenty-three models of one family, each twice: both rows of a model are left out together
    parts = divide([attrs.evolve(one, model=f"{number:02}") for number in [*range(23), *range(23)]])
    assert len(parts) == 10
    rows = np.stack(list(parts.values()))
    assert (rows.sum(axis=0) == 1).all()
    assert (rows[:, :23] == rows[:, 23:]).all()
    assert sorted(rows[:, :23].sum(axis=1).tolist()) == [2] * 7 + [3] * 3


def test_information_by_hand() -> None:
    # a row that follows a number by 0.7, to 10 %: its variance falls from 1 to 1 / (1 + 49); one that does not, by none
    slope = np.array([[0.7, 0.0]])
    shares = information(np.zeros(1), slope, measured=np.zeros(1), weight=np.ones(1))
    assert_close(float(shares[0]), 49.0 / 50.0)
    assert shares[1] == 0.0
    # two numbers that every row sees alike: only their sum is known
    alike = information(np.zeros(1), np.array([[0.7, 0.7]]), measured=np.zeros(1), weight=np.ones(1))
    assert_close(float(alike[0]), 49.0 / 99.0)


# bounds


def roofline_shares(columns: WorkloadColumns, target: Hardware, precision: str) -> Floats:
    """Return the largest share of the peak and of the bandwidth that any kernel reaches."""
    kernels = form_kernels(columns, precision, "graph")
    placement = place(kernels, target, find_architecture(target.architecture))
    variable = np.maximum(kernels.per_kernel(placement.compute_s), kernels.per_kernel(placement.memory_s))
    seconds = placement.launch_s + variable
    operations = kernels.per_kernel(2.0 * kernels.work.mac_count) / target.product_rate(precision)
    memory = kernels.per_kernel(placement.dram_bytes) / target.memory_bandwidth.value
    return np.array([(least / np.where(seconds > 0.0, seconds, np.inf)).max() for least in (operations, memory)])


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["xeon_8490h", "tpu_v4", "kpu_t256", pytest.param("h200_sxm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("factor", [0.02, 0.4, 30.0])
def test_two_rows_that_cannot_be_leave_the_datasheet_as_it_is(
    name: str, factor: float, workloads: Mapping[tuple[str, int], WorkloadColumns]
) -> None:
    target = hardware(name)
    observations = []
    for model in ("resnet18", "vgg11"):
        one = observe(workloads[model, 1], target, "graph", model=model, family=model)
        run = evaluate(one.columns, target, one.configuration)
        latency_s, energy_j = run.latency_fs / FS_PER_S, run.energy_fj / FJ_PER_J
        observations.append(attrs.evolve(one, latency_s=factor * latency_s, energy_j=factor * energy_j))
    calibration = attrs.evolve(fit(target, observations).calibration, digest="0123456789abcdef")
    under = target.calibrated(calibration)
    for precision in target.peaks:
        for columns in workloads.values():
            assert roofline_shares(columns, under, precision).max() <= 1.0 + 1e-6
    assert 0.0 < under.static_power.value < under.tdp.value
    assert all(0.25 <= scale.factor <= 4.0 for scale in calibration.energy_scales)
    # two rows determine nothing: what was assumed still is
    fitted = (*calibration.coefficients.values(), *calibration.energy_scales, calibration.static_power)
    assert not any(one is not None and one.is_determined for one in fitted)
    for before, after in zip(target.reference, under.reference, strict=True):
        assert after.basis in (before.basis, least_sure(before.basis, "scaled"))


# fits


def fit(target: Hardware, observations: Sequence[Observation]) -> Outcome:
    spreads = load_spreads(target.architecture)
    return calibrate(
        target,
        observations,
        Freedom(
            coefficients={one.name: one.spread for one in spreads.coefficients},
            scales=tuple((one.scale, one.spread) for one in spreads.energy_scales),
        ),
        formula_version=formula_version(target.architecture),
        start=None,
        report=lambda _: None,
    )


def true_observations(
    target: Hardware, truth: Hardware, workloads: Mapping[tuple[str, int], WorkloadColumns]
) -> list[Observation]:
    observations = []
    for (model, _), columns in workloads.items():
        for precision in ("bf16", "fp32"):
            for runtime in ("fused", "graph"):
                settings = Configuration(hardware=target.id, precision=precision, batch=columns.batch, runtime=runtime)
                run = evaluate(columns, truth.at_matmul_precision("highest"), settings)
                observations.append(
                    Observation(
                        columns=columns,
                        configuration=settings,
                        matmul_precision="highest",
                        model=model,
                        family=model,
                        latency_s=run.latency_fs / FS_PER_S,
                        energy_j=run.energy_fj / FJ_PER_J,
                    )
                )
    return observations


@pytest.mark.slow
def test_a_fit_finds_the_hardware_that_gave_the_measurements(
    workloads: Mapping[tuple[str, int], WorkloadColumns],
) -> None:
    target = hardware("tpu_v4")
    changes = {"dram_efficiency": 0.55, "program_cost": 2.5e-6, "vector_operations_per_clock": 0.6}
    changes["fp32_passes.highest"] = 5.0
    own = target.coefficients
    static = attrs.evolve(target.static_power, value=75.0)
    (dram,) = [one.scale for one in load_spreads("tpu").energy_scales if one.scale.name == "dram"]
    truth = attrs.evolve(
        target,
        coefficients={**own, **{name: attrs.evolve(own[name], value=value) for name, value in changes.items()}},
        static_power=static,
        reference=scale_reference(target.reference, [attrs.evolve(dram, factor=1.5)], "by hand").with_static(static),
    )
    outcome = fit(target, true_observations(target, truth, workloads))
    errors = {
        (one.quantity, one.split): one
        for one in outcome.calibration.errors
        if not (one.runtime or one.precision or one.batch or one.family)
    }
    for quantity in ("latency", "energy"):
        assert errors[quantity, "uncalibrated"].mean_error_fraction > 0.15
        # forty rows count for 40 / 44, and what they leave to the class is a part of the error
        assert errors[quantity, "fitted"].mean_error_fraction < 0.05
        assert errors[quantity, "cross_validated"].mean_error_fraction < 0.08
        assert errors[quantity, "cross_validated"].row_count == len(workloads) * 4
    calibration = outcome.calibration
    # every cost of a kernel is that of its program times the overall scale
    scale = calibration.coefficients["launch_time_scale"].value
    assert_close(calibration.coefficients["program_cost"].value * scale, 2.5e-6, rel=0.1)
    assert_close(calibration.coefficients["fp32_passes.highest"].value, 5.0, rel=0.1)
    assert calibration.static_power is not None
    assert_close(calibration.static_power.value, 75.0, rel=0.1)
    assert (calibration.latency_count, calibration.families) == (len(workloads) * 4, tuple(sorted(MODELS)))
    assert outcome.warnings == ()


@pytest.mark.slow
def test_rows_with_one_quantity_alone(workloads: Mapping[tuple[str, int], WorkloadColumns]) -> None:
    target = hardware("tpu_v4")
    few = [place for place in workloads if place[1] == 1][::2]
    rows = true_observations(target, target, {place: workloads[place] for place in few})
    latency = fit(target, [attrs.evolve(one, energy_j=None) for one in rows]).calibration
    assert (latency.latency_count, latency.energy_count) == (len(rows), 0)
    assert {one.quantity for one in latency.errors} == {"latency"}
    assert (latency.coefficients, latency.energy_scales, latency.static_power) == ({}, (), None)
    energy = fit(
        target, [attrs.evolve(one, latency_s=None, energy_j=1.2 * (one.energy_j or 0.0)) for one in rows]
    ).calibration
    assert {one.quantity for one in energy.errors} == {"energy"}
    assert energy.coefficients == {}
    (fitted,) = [one for one in energy.errors if one.split == "fitted" and not (one.precision or one.family)]
    assert fitted.median_error_fraction < 0.05
    mixed = [attrs.evolve(one, **{("latency_s", "energy_j")[row % 2]: None}) for row, one in enumerate(rows)]  # type: ignore[arg-type]
    both = fit(target, mixed).calibration
    assert (both.latency_count, both.energy_count) == (len(rows) // 2, len(rows) // 2)


@pytest.mark.slow
def test_power_beyond_the_cap_is_told_and_static_power_stays_below_it(
    workloads: Mapping[tuple[str, int], WorkloadColumns],
) -> None:
    target = hardware("tpu_v4")
    rows = true_observations(target, target, workloads)
    outcome = fit(target, [attrs.evolve(one, energy_j=400.0 * (one.latency_s or 0.0)) for one in rows])
    assert outcome.warnings[0] == (
        "40 of 40 measurements drew more than the power cap of tpu_v4, 192 W, up to 400 W: set its actual tdp"
    )
    assert outcome.calibration.static_power is not None
    assert outcome.calibration.static_power.value < target.tdp.value
    target.calibrated(outcome.calibration)


# from the command line


HEADER = "hardware,model,precision,batch,runtime,latency_s,energy_j,power_w,source,boundary\n"


def predict(workspace: Workspace, model: str, target: str = "gaudi3", **settings: str) -> tuple[float, float]:
    row = workspace.compare(model, hardware=[target], precision="bf16", runtime="graph", **settings).rows[0]  # type: ignore[call-overload]
    assert row.latency_s is not None
    assert row.energy_j is not None
    return row.latency_s, row.energy_j


def imported(workspace: Workspace, tmp_path: Path, *rows: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + "".join(f"{row},board\n" for row in rows))
    workspace.import_measurements(path)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JOULEMAP_CALIBRATION", str(tmp_path / "own"))
    return tmp_path / "own"


@pytest.mark.slow
def test_one_measurement_helps_all_models(tmp_path: Path, own: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    models = ("resnet18", "vgg11", "mobilenet_v2", "vit_b_16")
    # the true machine takes twice as long as predicted, and draws as much power
    truth = {
        model: (2.0 * latency_s, 2.0 * energy_j)
        for model in models
        for latency_s, energy_j in [predict(workspace, model)]
    }
    imported(
        workspace, tmp_path, f"gaudi3,resnet18,bf16,1,graph,{truth['resnet18'][0]!r},{truth['resnet18'][1]!r},,made up"
    )
    answer = workspace.calibrate("Gaudi-3")
    assert answer.written_to == str(own / "gaudi3.toml")
    assert answer.calibration.row_count == 1
    assert {"device_time_scale", "launch_time_scale"} & set(answer.calibration.coefficients)
    for model in models:
        latency_s, energy_j = predict(workspace, model)
        for fitted, true in ((latency_s, truth[model][0]), (energy_j, truth[model][1])):
            assert true / 2.0 < fitted < true
            if model == "resnet18":  # one row counts as a fifth, of the logarithm
                assert_close(fitted / (true / 2.0), 2.0**0.2, rel=0.03)
        assert predict(workspace, model, calibration="none")[0] == truth[model][0] / 2.0
    assert not [one for one in answer.calibration.errors if one.split == "cross_validated"]
    (used,) = workspace.compare("resnet18", hardware="gaudi3", precision="bf16", runtime="graph").scope.calibrations
    assert (used.measurement_count, used.origin) == (1, str(own / "gaudi3.toml"))


@pytest.mark.slow
def test_operators_count_where_there_is_no_model_or_where_they_are_asked_for(tmp_path: Path, own: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    shapes = [f"gemm(m={2**size},n=4096,k={1024 * (1 + size % 3)})" for size in range(12)]
    rows = [f'gaudi3,"{shape}",bf16,1,graph,{2.0 * predict(workspace, shape)[0]!r},,,made up' for shape in shapes]
    imported(workspace, tmp_path, *rows)
    alone = workspace.calibrate("gaudi3", is_dry=True)
    assert alone.calibration.row_count == 12
    (left_out,) = [
        one for one in alone.calibration.errors if one.split == "cross_validated" and not one.runtime and not one.family
    ]
    assert left_out.row_count == 12
    assert "one family: a tenth of its models is held out at a time" in " ".join(str(alone.document().notes).split())
    imported(workspace, tmp_path, f"gaudi3,resnet18,bf16,1,graph,{predict(workspace, 'resnet18')[0]!r},,,made up")
    assert workspace.calibrate("gaudi3", is_dry=True).calibration.row_count == 1
    both = workspace.calibrate("gaudi3", is_dry=True, operators=True).calibration
    assert (both.row_count, both.families) == (13, ("operator", "resnet"))


def test_a_run_above_the_peak_is_told(tmp_path: Path, own: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    # 2 x 4096 ^ 3 operations in a microsecond: 137 Pops/s
    imported(workspace, tmp_path, 'gaudi3,"gemm(m=4096,n=4096,k=4096)",bf16,1,graph,1e-6,,,made up')
    told = workspace.calibrate("gaudi3", is_dry=True).warnings[0]
    peak = hardware("gaudi3").peaks["bf16"].rate.value
    times = 2.0 * 4096.0**3 / 1e-6 / peak
    assert told.startswith(f"1 of 1 measurements are faster than the peak of gaudi3 allows, up to {times:.3g} times")


@pytest.mark.slow
def test_the_same_measurements_give_the_same_bytes(tmp_path: Path, own: Path) -> None:
    rows = [
        f"gaudi3,{model},bf16,1,graph,{latency},,100,made up"
        for model, latency in (("resnet18", 0.001), ("vgg11", 0.002), ("resnet18", 0.0011))
    ]
    texts = []
    for number, order in enumerate((rows, rows[::-1])):
        workspace = Workspace(tmp_path / f"{number}.duckdb")
        imported(workspace, tmp_path, *order)
        for turn in "ab":
            path = tmp_path / f"{number}{turn}.toml"
            assert workspace.calibrate("gaudi3", output=path).written_to == str(path)
            texts.append(path.read_text())
    assert len(set(texts)) == 1
    assert not own.exists()
    assert read_calibration(tmp_path / "0a.toml").energy_count == 3  # power times latency
    # what the fit begins with does not matter beyond the digits that measurements give
    again = workspace.calibrate("gaudi3", start=str(tmp_path / "0a.toml"), is_dry=True).calibration
    for name, quantity in read_calibration(tmp_path / "0a.toml").coefficients.items():
        assert_close(again.coefficients[name].value, quantity.value, rel=1e-2)


def test_one_variable_says_where_all_of_a_calibration_is_written(tmp_path: Path, joulemap: Run) -> None:
    workspace = Workspace(tmp_path / "joulemap.duckdb")
    imported(workspace, tmp_path, "gaudi3,resnet18,bf16,1,graph,0.001,,,made up")
    home, own = tmp_path / "home", tmp_path / "own"
    homes = {"HOME": str(home), "XDG_DATA_HOME": ""}
    done = joulemap("calibrate", "gaudi3", "--verbose", variables={**homes, "JOULEMAP_CALIBRATION": str(own)})
    assert done.returncode == 0, done.stderr
    asked, wrote = (line for line in done.stderr.splitlines() if str(own) in line)
    assert "will be written to" in asked
    assert wrote.endswith(str(own / "gaudi3.toml"))
    assert [path.name for path in own.iterdir()] == ["gaudi3.toml"]
    assert not home.exists()


def test_what_cannot_be_fitted_is_left_out_and_told(tmp_path: Path, own: Path) -> None:
    workspace = Workspace(tmp_path / "own.duckdb")
    (tmp_path / "own.py").write_text("raise SystemExit\n")
    imported(
        workspace,
        tmp_path,
        "gaudi3,resnet18,bf16,1,graph,0.001,,,made up",
        "gaudi3,./nowhere.py:net,bf16,1,graph,0.001,,,made up",
        f"gaudi3,{tmp_path}/own.py:net,bf16,1,graph,0.001,,,made up",
        "gaudi3,resnet18,bf16,1,graph,,,300,made up",
        "gaudi3,resnet18,int4,1,graph,0.001,,,made up",
    )
    answer = workspace.calibrate("gaudi3", is_dry=True)
    assert answer.calibration.row_count == 1
    (unknown,) = [line for line in answer.left_out if "nowhere" in line]
    assert unknown.startswith("1 row of ./nowhere.py:net: ")
    told = f"1 row of {tmp_path}/own.py:net: a row of a file names this code; JOULEMAP_TRUST=1 (in Python trust=True) "
    told += "runs it"
    assert told in answer.left_out
    assert "1 row of resnet18: only throughput, power or memory; a fit needs latency or energy" in answer.left_out
    assert any(line.startswith("1 row of resnet18: gaudi3 has no int4; it has") for line in answer.left_out)
    with pytest.raises(
        NoMeasurementError, match="no measurement of vgg11 at fp16 on gaudi3 can be fitted: run `joulemap measure"
    ):
        workspace.calibrate("gaudi3", models=["vgg11"], precisions=["fp16"])


def test_without_measurements_it_is_said_how_to_get_some(joulemap: Run) -> None:
    done = joulemap("calibrate", "kpu_t64")
    assert done.returncode == ExitCode.UNKNOWN_NAME
    assert done.stderr == (
        "joulemap: no measurement on kpu_t64 can be fitted: run `joulemap measure MODEL` there, or "
        "`joulemap measurements import FILE`, then calibrate\n"
    )
    for wrong, code, told in (
        (("h2o",), ExitCode.UNKNOWN_NAME, "unknown hardware 'h2o'"),
        (("jetson_orin_nano_8gb@15W",), ExitCode.USAGE, "name jetson_orin_nano_8gb"),
        (("h200_sxm", "--precision", "fp3"), ExitCode.USAGE, "unknown precision 'fp3'"),
        (("h200_sxm", "--calibration", "best"), ExitCode.UNKNOWN_NAME, "unknown calibration 'best'"),
        (("./none.toml",), ExitCode.CATALOGUE, "there is no such file or folder"),
    ):
        done = joulemap("calibrate", *wrong)
        assert done.returncode == code, done.stderr
        assert told in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_hardware_of_ones_own(tmp_path: Path, own: Path) -> None:
    """A record, its file, and what `measure` stores of a machine that is in no catalogue."""
    workspace = Workspace(tmp_path / "own.duckdb")
    mine = attrs.evolve(hardware("xeon_8490h"), id="this_machine", aliases=()).with_own_digest()
    row = workspace.compare("resnet18", hardware=[mine], runtime="eager").rows[0]
    assert row.latency_s is not None
    measured = Measurement(
        hardware="this_machine", model="resnet18", precision="fp32", batch=1, runtime="eager", scope="any",
        latency_s=2.0 * row.latency_s, source="made up", conditions="none",
    )  # fmt: skip
    with writing(workspace.path) as connection, transaction(connection):
        write_measurements(connection, [measured])
    by_id = workspace.calibrate("this_machine").calibration
    after = workspace.compare("resnet18", hardware=[mine], runtime="eager").rows[0]
    assert after.latency_s is not None
    # one measurement moves the latency by a fifth of the way at most; copies and pages of the heap keep their time
    assert 1.03 * row.latency_s < after.latency_s < 1.01 * 2.0**0.2 * row.latency_s
    # the newest run was calibrated, but the description without a calibration is what a fit starts from
    assert workspace.calibrate("this_machine", is_dry=True).calibration == by_id
    assert workspace.calibrate(mine, is_dry=True).calibration == by_id
    with pytest.raises(UnknownNameError, match="unknown hardware 'this_other'"):
        workspace.calibrate("this_other")
    with pytest.raises(UsageError, match="is not among the requested hardware"):
        workspace.compare("resnet18", hardware=["h100_sxm5"], calibration="this_machine")


# what ships


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_a_shipped_calibration_fits_the_catalogue(path: Path) -> None:
    calibration = read_calibration(path)
    assert calibration.formula_version == formula_version(hardware(calibration.hardware).architecture)
    assert calibration.name == calibration.hardware
    hardware(calibration.hardware).calibrated(calibration)
    assert calibration_text(calibration) == path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["h200_sxm"])
def test_a_shipped_calibration_is_made_from_what_ships(name: str, tmp_path: Path) -> None:
    shipped = SHIPPED / f"{name}.toml"
    if not shipped.exists():
        pytest.skip(f"no calibration of {name} ships yet")
    made = tmp_path / shipped.name
    Workspace(tmp_path / "own.duckdb").calibrate(name, output=made)
    assert made.read_text() == shipped.read_text()
