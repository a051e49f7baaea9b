"""Work around a model: its sizes by hand, and the host that computes it whatever a compiler supports."""

from __future__ import annotations

import pytest

from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.physics.fallback import find_fallen
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.compiler import HOST_WORK
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.workload import Workload
from joulemap.physics.variation import Varied
from joulemap.physics.workload import columns_of
from joulemap.plan.workload import find_model, find_workload_of
from joulemap.system.errors import UsageError
from joulemap.system.units import FJ_PER_J, FS_PER_S
from joulemap.wing.pipeline.around import PIXEL_OPERATIONS, VALUE_OPERATIONS, read_around

FRAME = "prepare(width=1920,height=1080,size=224):30fps + mobilenet_v2:1/frame + boxes(count=10,classes=3):1/frame"


def work_of(name: str, batch: int = 1) -> Workload:
    return find_workload_of(find_model(name, Settings(), batch), print)


def test_a_picture_is_read_in_bytes_and_written_as_a_model_takes_it() -> None:
    work = work_of("prepare(width=100, height=50, size=10)", batch=2)
    (operator,) = work.operators
    assert (work.model, work.batch) == ("prepare(width=100,height=50,size=10)", 2)
    assert operator.elementwise_count == 2 * PIXEL_OPERATIONS * 100
    assert [one.byte_count for one in work.accesses] == [2 * 3 * 100 * 50, 2 * 3 * 100 * 4]


def test_boxes_take_their_classes_coordinates_and_objectness() -> None:
    (operator,) = work_of("boxes(count=8400)").operators
    assert operator.elementwise_count == VALUE_OPERATIONS * 8400 * 85


@pytest.mark.parametrize("hardware", ["coral_edge_tpu", "rk3588_npu", "qrb5165_hexagon698"])
def test_a_host_computes_what_is_around_a_model_and_no_more(hardware: str) -> None:
    """The Edge TPU's compiler cuts a model at the first operator that it does not run, which a resize is not."""
    compiler = load_catalogue().find(hardware).compiler
    assert compiler is not None
    work = columns_of(work_of(FRAME))
    fallen = find_fallen(work, compiler)
    assert set(work.operation[fallen].tolist()) == set(HOST_WORK)


def test_an_npu_keeps_its_time_for_the_model() -> None:
    """Both stages add the time of the host, at a precision of its own, to that of the chip."""
    host = load_catalogue().find("raspberry_pi_5")
    chip = load_catalogue().find("hailo_8").with_host(host, is_counted=False)
    configuration = Configuration(hardware=chip.id, precision="int8", runtime="engine")
    whole, alone = (evaluate(columns_of(work_of(name)), chip, configuration) for name in (FRAME, "mobilenet_v2"))
    stages = [work_of(name) for name in ("prepare(size=224)", "boxes(count=10,classes=3)")]
    plain = Configuration(hardware=host.id, precision="fp32", runtime="engine")
    rest = [evaluate(columns_of(one), host, plain).latency_fs for one in stages]
    assert whole.latency_fs > alone.latency_fs + 0.9 * sum(rest)
    varied = Varied.of(columns_of(work_of(FRAME)), "int8", "engine").evaluate(chip)  # one run, evaluated in two ways
    assert_close(varied.latency_s, whole.latency_fs / FS_PER_S)
    assert_close(varied.energy_j, whole.energy_fj / FJ_PER_J)


@pytest.mark.parametrize("name", ["prepare(depth=3)", "prepare(size=0)", "boxes(count=x)", "boxes(count=1.5)"])
def test_wrong_sizes_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        read_around(name)


def test_other_names_are_other_models() -> None:
    assert read_around("gemm(m=1,n=2,k=3)") is None
    assert read_around("prepare") is None
