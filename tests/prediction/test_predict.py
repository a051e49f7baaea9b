"""What a prediction takes and returns: shapes, names, records, constants, refusals."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import attrs
import numpy as np
import pytest

import joulemap
from compare import assert_close
from joulemap.bundle.chip import load_chips
from joulemap.catalog.load import load_catalogue
from joulemap.physics.change import change_hardware
from joulemap.physics.record.constant import Change, list_constants
from joulemap.prediction import Prediction, predict
from joulemap.system.errors import JoulemapError, UnknownNameError, UnsupportedError, UsageError
from joulemap.workspace import Workspace
from models import trace_zoo

NUMBERS = ("latency_s", "latency_low_s", "latency_high_s", "energy_j", "energy_low_j", "energy_high_j", "memory_bytes")


def assert_equal(one: Prediction, other: Prediction) -> None:
    for name in (*NUMBERS, "refusal", "refusal_code"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("parts_j", "basis_j"):
        mine, others = getattr(one, name), getattr(other, name)
        assert mine.keys() == others.keys()
        for key in mine:
            np.testing.assert_array_equal(mine[key], others[key], err_msg=key)


def test_memory_of_a_gemm_is_its_operands_by_hand() -> None:
    """x (8 x 4096), W (4096 x 4096) and the result, at two bytes and at one."""
    found = predict("gemm(m=8,n=4096,k=4096)", "h100_sxm5", precision=["bf16", "int8"], runtime="eager")
    elements = 4096 * 4096 + 2 * 8 * 4096
    assert found.memory_bytes.tolist() == [2.0 * elements, 1.0 * elements]
    least_s = 2.0 * 4096 * 4096 / 3.35e12  # the matrix is read once
    assert least_s < found.latency_s[0] < 5.0 * least_s


def test_arguments_broadcast_to_one_shape() -> None:
    models, chips = (
        np.array(["resnet18", "mobilenet_v2"])[:, None, None],
        np.array(["l4", "tpu_v4", "xeon_8490h"])[:, None],
    )
    found = predict(models, chips, batch=[1, 8], runtime="eager")
    assert found.shape == (2, 3, 2)
    assert isinstance(found.latency_s, np.ndarray)
    for name in NUMBERS:
        assert getattr(found, name).shape == found.shape
    for index in np.ndindex(found.shape):
        alone = predict(models[index[0], 0, 0], chips[index[1], 0], batch=[1, 8][index[2]], runtime="eager")
        assert alone.shape == ()
        for name in NUMBERS:
            assert getattr(alone, name) == getattr(found, name)[index], (name, index)


def test_a_refused_configuration_has_a_reason_and_no_numbers() -> None:
    found = predict("resnet18", ["l4", "kpu_t256"], precision=["fp32", "fp8"])
    assert (found.refusal != "").tolist() == [False, True]
    assert found.refusal_code.tolist() == ["", "precision"]
    assert "fp8" in str(found.refusal[1])
    for name in NUMBERS:
        assert np.isnan(getattr(found, name)).tolist() == [False, True]
    assert all(np.isnan(part[1]) for part in found.parts_j.values())


def test_a_model_that_its_host_computes_is_predicted_under_an_engine() -> None:
    """No kernel of it runs on the NPU, whose engine has nothing to cut into parts."""
    built, fused = (
        predict("stream_copy", "rk3588_npu", precision="int8", batch=8, runtime=runtime)
        for runtime in ("engine", "fused")
    )
    assert_close(float(built.energy_j), float(fused.energy_j))


def test_no_configuration_has_no_prediction() -> None:
    found = predict([], "l4", batch=[[1], [2]])
    assert found.shape == found.energy_high_j.shape == found.refusal.shape == (2, 0)
    assert found.parts_j == {}
    assert predict("resnet18", "l4", changes={"clock": np.zeros((3, 0)), "tdp": 60.0}).shape == (3, 0)


def test_whole_numbers_of_numpy_are_batches() -> None:
    assert_equal(predict("resnet18", "l4", batch=[np.int64(8)]), predict("resnet18", "l4", batch=[8]))


@pytest.mark.parametrize(
    ("model", "hardware", "given", "error", "text"),
    [
        ("resnet5", "l4", {}, UnknownNameError, "unknown model 'resnet5'; did you mean resnet50"),
        ("resnet50", "rtx_4099", {}, UnknownNameError, "unknown hardware 'rtx_4099'; did you mean rtx_4090"),
        ("resnet50", "gpu", {}, UnknownNameError, "it is a class of hardware"),
        ("resnet50", "l4@9W", {}, UnknownNameError, "unknown power mode '9W'"),
        ("resnet50", "l4[tdp=60W]", {}, UsageError, "sets constants: pass changes"),
        ("resnet50", "l4", {"batch": 10**18}, UsageError, "expected a whole number from 1 to 1,000,000"),
        ("resnet50", "l4", {"precision": "int3"}, JoulemapError, "int3"),
        ("resnet50", "l4", {"runtime": "quick"}, UnknownNameError, "unknown runtime 'quick'"),
        ("resnet50", "l4", {"weight_precision": "fp64"}, UsageError, "fp64"),
        ("resnet50", "l4", {"batch": 0}, UsageError, "batch is 0, expected a whole number from 1"),
        ("resnet50", "l4", {"batch": 1.5}, UsageError, "batch is 1.5"),
        ("resnet50", "l4", {"batch": True}, UsageError, "batch is True"),
        ("resnet50", "l4", {"batch": [[1, 2], [3]]}, UsageError, "batch is"),
        ("resnet50", "l4", {"precision": 16}, UsageError, "precision is 16"),
        ("resnet50", "l4", {"precision": None}, UsageError, "precision is None"),
        ("resnet50", "l4", {"runtime": [["eager"], ["fused", "graph"]]}, UsageError, "runtime is"),
        ("resnet50", "l4", {"changes": {"clock": "fast"}}, UsageError, "clock is 'fast'"),
        ("resnet50", "l4", {"changes": "clock=1e9"}, UsageError, "changes is 'clock=1e9'"),
        ("resnet50", "l4", {"changes": {3: 1e9}}, UsageError, "changes names 3"),
        ("resnet50", "l4", {"changes": {"clock": [1e9, math.nan]}}, UsageError, "clock: nan"),
        ("resnet50", "l4", {"changes": {"clock": math.inf}}, UsageError, "clock: inf"),
        ("maxvit_t", "l4", {"batch": [1, 2, 3], "precision": ["bf16", "int8"]}, UsageError, "do not broadcast"),
        (3, "l4", {}, UsageError, "the model is of type int"),
        ("resnet50", None, {}, UsageError, "the hardware is of type NoneType"),
        ("gemm(m=8)", "l4", {}, UsageError, "gemm needs"),
        ("resnet50", "l4", {"changes": {"clok": 1e9}}, UnknownNameError, "constant 'clok'; did you mean clock"),
        ("resnet50", "l4", {"changes": {"clock": [1e9, -1.0]}}, UsageError, "clock: -1 is not above 0"),
        ("resnet50", ["l4", "t4"], {"changes": {"clock": 1e9}}, UsageError, "vary one configuration, not 2"),
        ("resnet50", "kpu_t256", {"precision": "fp8", "changes": {"clock": [1e9]}}, UnsupportedError, "fp8"),
        ("resnet50", "l4", {"changes": {"clock": [1e9, 9e8], "tdp": [50.0, 60.0, 70.0]}}, UsageError, "broadcast"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(
    model: object, hardware: object, given: dict[str, object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        predict(model, hardware, **given)  # type: ignore[arg-type]
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


def test_other_spellings_name_the_same() -> None:
    expected = predict("resnet50", "h100_sxm5", precision="bf16")
    assert_equal(predict("ResNet-50", "H100 SXM5", precision="bfloat16"), expected)
    assert_equal(predict("resnet50", "h100_sxm5", weight_precision="bf16"), expected)


def test_records_are_predicted_as_names() -> None:
    workload = trace_zoo("resnet18", batch=2)
    for hardware in ("l4", "coral_edge_tpu", "h100_pcie"):
        expected = predict("resnet18", hardware, precision="int8", batch=2, runtime="engine")
        for record in (load_catalogue().hardware[hardware], load_chips().find(hardware)):
            found = predict(workload, record, precision="int8", batch=2, runtime="engine")
            assert (found.latency_s, found.energy_j) == (expected.latency_s, expected.energy_j)
    with pytest.raises(UsageError, match="has batch 2, not 1: pass batch=2"):
        predict(workload, "l4")
    bare = attrs.evolve(workload, subgraphs=())
    assert predict(bare, "l4", batch=2).energy_j == predict(workload, "l4", batch=2).energy_j


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["l4@50W", "Orin Nano", "jetson_orin_nano_8gb@15W", "h100_sxm5@1GHz"])
def test_a_power_mode_is_predicted_as_its_run(name: str, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    workspace.evaluate("resnet18", hardware=name, precision="int8", runtime="engine")
    ((latency, energy, wide, tall),) = workspace.sql(
        "SELECT latency_s, energy_j, u.latency_half_width, u.energy_half_width "
        "FROM runs JOIN run_uncertainty AS u USING (run_id)"
    )
    record = workspace.hardware(name)
    for chip in (name, record):
        found = predict("resnet18", chip, precision="int8", runtime="engine")
        assert (found.latency_s, found.energy_j) == (latency, energy)
        np.testing.assert_allclose(np.log(found.latency_high_s / found.latency_s), wide, rtol=1e-12)
        np.testing.assert_allclose(np.log(found.energy_high_j / found.energy_j), tall, rtol=1e-12)
    with pytest.raises(UsageError, match="make the variant at the default mode"):
        predict("resnet18", attrs.evolve(record, digest="0" * 16), precision="int8")


@pytest.mark.parametrize("name", ["l4", "raspberry_pi_5", "hailo_8l", "epyc_9654"])
def test_constants_form_a_grid_of_changed_chips(name: str) -> None:
    """At a lower clock the voltage falls too, also on chips whose highest clock is that of their datasheet."""
    chip = load_chips().find(name)
    known = list_constants(chip)
    clocks = chip.full_clock.value * np.array([0.5, 0.8])
    rates = chip.memory_bandwidth.value * np.array([0.5, 0.8, 1.0])
    found = predict(
        "resnet18", name, precision="int8", runtime="engine",
        changes={"clock": clocks[:, None], "memory_bandwidth": rates},
    )  # fmt: skip
    assert found.shape == (2, 3)
    for index in np.ndindex(found.shape):
        changes = [
            Change.of(known[constant], float(value))
            for constant, value in (("clock", clocks[index[0]]), ("memory_bandwidth", rates[index[1]]))
        ]
        alone = predict("resnet18", change_hardware(chip, changes), precision="int8", runtime="engine")
        for column in NUMBERS:
            np.testing.assert_allclose(getattr(found, column)[index], getattr(alone, column), rtol=1e-12)
    assert (np.diff(found.latency_s, axis=0) < 0.0).all()
    assert predict("resnet18", "l4", changes={"clock": 1e9}).shape == ()


def test_a_table_has_a_row_per_configuration() -> None:
    found = predict("resnet18", [["l4"], ["hailo_8"]], precision=["int8", "fp32"])
    table = found.to_arrow()
    assert table.num_rows == 4
    rows = table.to_pylist()
    assert [row["refusal_code"] for row in rows] == found.refusal_code.ravel().tolist()
    assert rows[0]["energy_j"] == found.energy_j[0, 0]
    assert rows[0]["parts.static_j"] == found.parts_j["static"][0, 0]
    assert math.isnan(rows[3]["energy_j"])


@pytest.mark.slow
def test_a_changed_chip_is_predicted_as_a_run_with_set_constants(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "a.duckdb")
    workspace.evaluate(
        "resnet18", hardware="l4", precision="int8", runtime="engine", changes={"memory_bandwidth": 200e9}
    )
    ((latency, energy, wide, tall),) = workspace.sql(
        "SELECT latency_s, energy_j, u.latency_half_width, u.energy_half_width "
        "FROM runs JOIN run_uncertainty AS u USING (run_id)"
    )
    found = predict("resnet18", "l4", precision="int8", runtime="engine", changes={"memory_bandwidth": 200e9})
    assert (found.latency_s, found.energy_j) == (latency, energy)
    np.testing.assert_allclose(np.log(found.latency_high_s / found.latency_s), wide, rtol=1e-12)
    np.testing.assert_allclose(np.log(found.energy_high_j / found.energy_j), tall, rtol=1e-12)


def test_the_function_is_public_even_where_its_module_was_imported() -> None:
    code = (
        "import joulemap.prediction, joulemap; assert callable(joulemap.predict); print(joulemap.Prediction.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Prediction\n"
    assert joulemap.predict is predict
