"""Chips about which little is known: operators of their compilers, intervals, and their place in a ranking."""

from __future__ import annotations

import pytest

from joulemap.catalog.error_scale import load_doubt
from joulemap.catalog.load import load_catalogue
from joulemap.domain.catalogue import find_entry
from joulemap.physics.interval.error_scale import SAME_SIZE
from joulemap.physics.record.compiler import HOST_OPERATIONS, UNLISTED
from joulemap.system.errors import AmbiguousNameError, NoMeasurementError
from joulemap.workspace import Workspace


def test_only_programmable_classes_run_any_operator_without_a_list() -> None:
    for hardware in load_catalogue().hardware.values():
        if hardware.architecture in ("cpu", "gpu"):
            assert hardware.compiler is None, hardware.id
        elif hardware.architecture != "tpu":
            assert hardware.compiler is not None, hardware.id


def test_no_published_list_has_an_operation_of_the_host() -> None:
    listed = [one.compiler for one in load_catalogue().hardware.values() if one.compiler not in (None, UNLISTED)]
    assert len(listed) >= 8
    for compiler in listed:
        assert compiler is not None
        operations = {name.partition(".")[2] or name for name in compiler.names}
        # Some NPUs have TopK or suppress detections; Intel's compiler has transforms and inverses too.
        assert operations & set(HOST_OPERATIONS) <= {"sort", "nms", "fft", "inverse"}


def test_a_group_of_a_class_holds_for_the_sizes_that_were_measured() -> None:
    coral = load_catalogue().hardware["coral_edge_tpu"]
    peak = max(one.rate.value for one in coral.peaks.values())
    scales = load_doubt().scales
    models = [one for one in scales if one.architecture == "tpu" and one.work == "model" and one.quantity == "latency"]
    assert models
    for one in models:
        assert (one.least_ops_per_s, one.most_ops_per_s) == (peak, peak)
        assert one.is_of_size(SAME_SIZE * peak) and not one.is_of_size(1.01 * SAME_SIZE * peak)
    assert all(one.is_of_size(1.0) and one.is_of_size(1e18) for one in scales if not one.architecture)


@pytest.mark.parametrize(
    ("name", "hardware"),
    [
        ("Altra Max M128", "altra_max_m128_30"),
        ("Ampere Altra Max M128", "altra_max_m128_30"),
        ("i.MX 8M Plus", "imx8m_plus_npu"),
        ("NXP i.MX8M Plus", "imx8m_plus_npu"),
        ("imx8m-plus", "imx8m_plus_npu"),
        ("H100 SXM 80GB", "h100_sxm5"),
        ("NVIDIA L4", "l4"),
        ("apple m4", "apple_m4"),
    ],
)
def test_a_name_needs_neither_vendor_nor_class_nor_punctuation(name: str, hardware: str) -> None:
    assert find_entry(load_catalogue().entries, name).id == hardware


def test_a_name_of_several_is_still_ambiguous() -> None:
    with pytest.raises(AmbiguousNameError, match="mi300a, mi300x"):
        find_entry(load_catalogue().entries, "MI300")


def test_validation_of_what_nobody_measured_says_so(workspace: Workspace) -> None:
    with pytest.raises(NoMeasurementError, match="no measurement of rk3588_npu"):
        workspace.validate(hardware="rk3588_npu")
