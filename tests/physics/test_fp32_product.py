"""What runs at fp32 compute their products in: by chip, library and matmul precision."""

from __future__ import annotations

import re
from typing import cast

import numpy as np
import pytest

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.measurement import load_measurements, load_profiles
from joulemap.catalog.public import load_public_tables
from joulemap.physics.change import change_hardware
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.address import Address
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.constant import Change
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.product import MATMUL_PRECISIONS, PASSES, MatmulPrecision
from joulemap.physics.run import RunColumns
from models import shipped

CATALOGUE = load_catalogue().hardware
H100 = CATALOGUE["h100_sxm5"]


def run_of(hardware: Hardware, model: str, precision: str = "fp32", runtime: str = "fused") -> RunColumns:
    configuration = Configuration(hardware=hardware.id, precision=precision, runtime=runtime)
    return evaluate(shipped(model), hardware, configuration)


def macs_of(run: RunColumns, component: str, action: str) -> float:
    row = run.hardware.reference.position((component, action))
    return float(run.ledger.action_count[run.ledger.action_index == row].sum())


@pytest.mark.parametrize(
    ("hardware", "default", "high"),
    [
        ("h100_sxm5", ("tf32", "fp32"), ("tf32", "tf32")),
        ("v100_sxm2", ("fp32", "fp32"), ("fp32", "fp32")),  # no TF32
        ("mi300x", ("fp32", "fp32"), ("fp32", "fp32")),  # ROCm uses its TF32 only on demand
        ("b60", ("fp32", "fp32"), ("fp32", "fp32")),
        ("apple_m4_pro", ("fp32", "fp32"), ("fp32", "fp32")),
        ("xeon_8490h", ("fp32", "fp32"), ("fp32", "fp32")),
        ("tpu_v4", ("bf16", "bf16"), ("bf16", "bf16")),
        ("trainium2", ("bf16", "bf16"), ("tf32", "tf32")),
        ("gaudi3", ("fp32", "fp32"), ("fp32", "fp32")),
        ("kpu_t256", ("fp32", "fp32"), ("fp32", "fp32")),
        ("plasticine", ("fp32", "fp32"), ("fp32", "fp32")),
        ("tda4vm_c7x_mma", ("fp32", "fp32"), ("fp32", "fp32")),
    ],
)
def test_each_library_has_its_own_default(hardware: str, default: tuple[str, str], high: tuple[str, str]) -> None:
    chip = CATALOGUE[hardware]

    def products(setting: MatmulPrecision) -> tuple[str, str]:
        found = chip.at_matmul_precision(setting).find_products(is_engine=False)
        return found.convolution, found.gemm

    assert (products("default"), products("high")) == (default, high)
    assert products("highest") == (("bf16", "bf16") if hardware == "tpu_v4" else ("fp32", "fp32"))


def at(hardware: Hardware, setting: MatmulPrecision) -> Hardware:
    return hardware.at_matmul_precision(setting)


@pytest.mark.parametrize("runtime", ["eager", "graph", "fused"])
def test_frameworks_compute_convolutions_in_tf32_and_other_products_in_fp32(runtime: str) -> None:
    # of resnet18 all but the last linear layer, whose 512 x 1000 MACs stay on CUDA cores
    mixed, plain = (run_of(at(H100, one), "resnet18", runtime=runtime) for one in ("default", "highest"))
    fast = run_of(H100, "resnet18", "tf32", runtime)
    last = int(mixed.subgraphs.subgraph_index[-1])
    is_last = mixed.operators.subgraph_index == last
    assert np.array_equal(mixed.operators.latency_fs[~is_last], fast.operators.latency_fs[~is_last])
    assert np.array_equal(mixed.operators.latency_fs[is_last], plain.operators.latency_fs[is_last])
    assert macs_of(mixed, "cuda_core", "fp32_mac") < macs_of(plain, "cuda_core", "fp32_mac") / 100.0
    assert macs_of(mixed, "tensor_core", "tf32_mac") > 0.9 * macs_of(fast, "tensor_core", "tf32_mac")
    assert mixed.peak_ops_per_s == fast.peak_ops_per_s
    assert plain.peak_ops_per_s == H100.peaks["fp32"].rate.value


def test_an_engine_and_the_setting_high_compute_all_products_in_tf32() -> None:
    for model in ("resnet18", "transformer_encoder_layer"):
        for runtime, setting in (("engine", "default"), ("engine", "high"), ("fused", "high")):
            mixed = run_of(at(H100, cast("MatmulPrecision", setting)), model, runtime=runtime)
            fast = run_of(H100, model, "tf32", runtime)
            assert np.array_equal(mixed.operators.latency_fs, fast.operators.latency_fs)
            assert int(mixed.ledger.energy_fj.sum()) == int(fast.ledger.energy_fj.sum())


def test_a_model_without_convolutions_is_in_fp32_by_default_on_a_gpu() -> None:
    mixed, plain = (run_of(at(H100, one), "transformer_encoder_layer") for one in ("default", "highest"))
    assert np.array_equal(mixed.operators.latency_fs, plain.operators.latency_fs)
    assert int(mixed.ledger.energy_fj.sum()) == int(plain.ledger.energy_fj.sum())


@pytest.mark.parametrize(
    ("hardware", "precision"),
    [("t4", "fp32"), ("mi300x", "fp32"), ("xeon_8490h", "fp32"), ("kpu_t256", "fp32"), ("h100_sxm5", "bf16"),
     ("h100_sxm5", "tf32"), ("tpu_v4", "bf16"), ("trainium1", "bf16")],
)  # fmt: skip
def test_the_setting_changes_nothing_where_products_are_fp32_or_the_run_is_not(hardware: str, precision: str) -> None:
    some = [run_of(at(CATALOGUE[hardware], one), "resnet18", precision) for one in MATMUL_PRECISIONS]
    assert len({int(one.ledger.energy_fj.sum()) for one in some}) == 1
    assert len({one.latency_fs for one in some}) == 1


@pytest.mark.parametrize(("setting", "passes"), [("default", 1.0), ("high", 3.0), ("highest", 6.0)])
def test_all_numbers_of_a_tpu_at_fp32_follow_from_its_passes(setting: MatmulPrecision, passes: float) -> None:
    bf16, one = CATALOGUE["tpu_v4"].peaks["bf16"].rate.value, at(CATALOGUE["tpu_v4"], setting)
    assert_close(one.peaks["fp32"].rate.value, bf16 / passes)
    found, base = run_of(one, "resnet18"), run_of(CATALOGUE["tpu_v4"], "resnet18", "bf16")
    assert_close(found.peak_ops_per_s, bf16 / passes)
    macs = macs_of(found, "mxu", "bf16_mac")
    assert_close(macs, passes * macs_of(base, "mxu", "bf16_mac"))
    # each pass takes the array as long; all else of a kernel, such as fill and drain, is there once
    once, six = (
        run_of(at(CATALOGUE["tpu_v4"], each), "resnet18").subgraphs.compute_s for each in ("default", "highest")
    )
    heavy = int(np.argmax(once))
    each_s = float(six[heavy] - once[heavy]) / 5.0
    assert_close(float(found.subgraphs.compute_s[heavy]), float(once[heavy]) + (passes - 1.0) * each_s, rel=1e-6)
    assert each_s > 0.5 * float(once[heavy])


@pytest.mark.parametrize("hardware", ["tpu_v4", "tpu_v5e", "tpu_v5p", "tpu_v6e", "tpu_v7"])
def test_one_pass_and_slightly_more_agree(hardware: str) -> None:
    chip = CATALOGUE[hardware]

    def passing(count: float) -> RunColumns:
        change = Change(address=Address("coefficient", PASSES), value=count, before=1.0, unit="1")
        return run_of(change_hardware(chip, (change,)), "resnet18")

    exact, more = passing(1.0), passing(1.0 + 1e-6)
    assert_close(more.latency_fs, exact.latency_fs, rel=1e-5)
    assert_close(float(more.ledger.energy_fj.sum()), float(exact.ledger.energy_fj.sum()), rel=1e-5)
    assert_close(passing(2.0).peak_ops_per_s, chip.peaks["bf16"].rate.value / 2.0)
    assert exact.latency_fs == run_of(chip, "resnet18").latency_fs


def test_a_peak_and_its_passes_follow_each_other() -> None:
    chip = CATALOGUE["tpu_v4"]
    bf16 = chip.peaks["bf16"].rate.value

    def change(*pairs: tuple[Address, float]) -> Hardware:
        return change_hardware(chip, [Change(address=one, value=value, before=1.0, unit="1") for one, value in pairs])

    slower = change((Address("peak", "fp32"), bf16 / 4.0))
    assert_close(slower.product_passes("fp32"), 4.0)
    assert_close(slower.product_rate("fp32"), bf16 / 4.0)
    faster = change((Address("peak", "bf16"), 2.0 * bf16), (Address("coefficient", PASSES), 3.0))
    assert_close(faster.peaks["fp32"].rate.value, 2.0 * bf16 / 3.0)


def test_an_aws_chip_multiplies_in_bf16_by_default() -> None:
    chip = CATALOGUE["trainium1"]
    base, fast = run_of(chip, "resnet18"), run_of(chip, "resnet18", "bf16")
    exact = run_of(at(chip, "highest"), "resnet18")
    assert macs_of(base, "tensor_engine", "bf16_mac") == macs_of(fast, "tensor_engine", "bf16_mac")
    assert macs_of(exact, "tensor_engine", "fp32_mac") > 0.0
    assert (base.peak_ops_per_s, exact.peak_ops_per_s) == (fast.peak_ops_per_s, chip.peaks["fp32"].rate.value)
    assert fast.latency_fs <= base.latency_fs < exact.latency_fs


@pytest.mark.slow
def test_measured_rows_state_what_they_ran_in() -> None:
    tables = [one for one in load_public_tables().values() if one.is_single]
    rows = [*load_measurements(), *(row for one in tables for row in one.read())]
    assert {row.matmul_precision for row in rows if row.precision != "fp32"} == {"default"}
    wide = [row for row in rows if row.precision == "fp32"]
    assert all(row.matmul_precision == "highest" for row in wide if re.search("(without|no) TF32", row.conditions))
    known = {row.hardware: CATALOGUE.get(row.hardware.partition("@")[0]) for row in wide}
    fast = [row for row in wide if (chip := known[row.hardware]) and chip.product_precision("fp32") != "fp32"]
    unset = {row.source.partition(",")[0] for row in fast if row.matmul_precision == "default"}
    assert unset == {"EnergAIzer", "BroncoSpace", "Ultralytics documentation"}  # defaults of PyTorch and TensorRT
    assert {one.matmul_precision for one in load_profiles()} == {"highest"}
