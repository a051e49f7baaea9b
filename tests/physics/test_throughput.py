"""Throughput is not 1 / latency: batches that overlap on cores, in a pipeline, on devices, and those that do not.

docs/time.md says the same in words.
"""

from __future__ import annotations

import itertools
from typing import Final

import attrs
import pytest

from chip import CLOCK_HZ, HOST_S, LAUNCH_S, cpu, dpu, gpu, npu, number, tpu
from compare import assert_close
from convolution import INPUT, OUTPUT, WEIGHT, compute_s, convolution, count, run
from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import RunColumns
from joulemap.physics.stream import find_share
from joulemap.system.record import vary
from joulemap.system.units import FS_PER_S
from models import shipped
from variants import uncapped, with_bandwidth

MOVED: Final = INPUT + WEIGHT + OUTPUT
IMAGE_S: Final = 196 * 8 * 9 * 16 / 0.5 / CLOCK_HZ
"""Of the convolution on a core of the toy."""
CONVOLUTION_MACS: Final = 784 * 128 * 576


PUBLISHED: Final = (
    *(
        ("hailo_8", model, rate)
        for model, rate in (
            ("mobilenet_v2", 2597.0), ("regnet_x_1_6gf", 2551.0), ("regnet_x_800mf", 3498.0), ("resnet18", 2718.0),
            ("resnet34", 1505.0), ("resnet50", 1372.0), ("squeezenet1_1", 3034.0), ("vit_b_16", 29.0),
        )
    ),
    *(
        ("dpu_b4096x3_zcu102", model, rate)
        for model, rate in (
            ("googlenet", 470.9), ("inception_v3", 136.0), ("resnet50", 173.5), ("resnet101", 110.7),
            ("resnet152", 77.2), ("mobilenet_v2", 707.0), ("squeezenet1_1", 1499.6), ("resnet18", 499.6),
            ("vgg16", 40.9), ("vgg19", 36.5),
        )
    ),
)  # fmt: skip
"""Inferences per second. Source: Hailo Model Zoo, Dataflow Compiler 3.33; AMD Vitis AI Model Zoo 2.5, three cores."""


OPENVINO: Final = (
    ("resnet50", "int8", 10109.9), ("resnet50", "bf16", 4089.2), ("resnet50", "fp32", 826.5),
    ("mobilenet_v2", "int8", 19671.5), ("mobilenet_v2", "bf16", 13400.7), ("mobilenet_v2", "fp32", 5428.7),
)  # fmt: skip
"""Inferences per second of a socket. Source: OpenVINO 2024.1, benchmark_app in throughput mode, two sockets."""


def interval_s(found: RunColumns) -> float:
    """Return the time from one batch to the next."""
    return found.interval_fs / FS_PER_S


def with_geometry(hardware: Hardware, **geometry: float) -> Hardware:
    """Return the hardware with further entries of its geometry."""
    more = {name: number(value) for name, value in geometry.items()}
    return attrs.evolve(hardware, geometry={**hardware.geometry, **more})


def fabric(*, resident: float = 1.0, **geometry: float) -> Hardware:
    """Return a dataflow fabric of eight units of 50 x 50 outputs, an image in four intervals."""
    found = npu(units=8, macs_per_clock={"int8": 2_500.0}, dataflow_intervals=4.0, host_link_lanes=4.0, **geometry)
    return with_geometry(found, resident_programs=1.0) if resident else found


@pytest.mark.parametrize(("batch", "rounds"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_each_core_has_images_of_its_own(batch: int, rounds: int) -> None:
    # two cores: the launch and the clocks of an image for each, half of them per image; memory takes less
    found = run(dpu(), "int8", convolution(batch=batch))
    assert_close(found.latency_fs / FS_PER_S, LAUNCH_S + rounds * IMAGE_S)
    together = batch / 2 * (LAUNCH_S + IMAGE_S)
    assert_close(interval_s(found), min(together, LAUNCH_S + rounds * IMAGE_S))
    assert found.throughput_limit == (
        "latency" if batch % 2 == 0 and batch == 2 else "cores" if batch % 2 else "latency"
    )


def test_cores_share_the_memory() -> None:
    # at 100 MB/s, half of it sustained, one image takes its bytes, and two cores twice as long for two images
    slow = with_bandwidth(dpu(), 1 / 400)
    found = run(slow, "int8", convolution())
    assert_close(found.latency_fs / FS_PER_S, LAUNCH_S + MOVED / 0.05e9)
    assert_close(interval_s(found), LAUNCH_S / 2 + MOVED / 0.05e9)
    assert found.throughput_limit == "memory bandwidth"


def test_one_core_starts_an_image_when_the_one_before_has_ended() -> None:
    whole = dpu()
    peaks = {name: attrs.evolve(peak, unit_count=1) for name, peak in whole.peaks.items()}
    found = run(attrs.evolve(whole, peaks=peaks, unit_count=number(1.0)), "int8", convolution())
    assert (found.interval_fs, found.throughput_limit) == (found.latency_fs, "latency")
    assert found.operators.interval_fs.tolist() == found.operators.latency_fs.tolist()


def test_a_host_that_waits_for_each_kernel_has_one_batch_in_hand() -> None:
    found = run(dpu(), "int8", convolution(), "eager")
    assert_close(found.latency_fs / FS_PER_S, LAUNCH_S + HOST_S + IMAGE_S)
    assert (found.interval_fs, found.throughput_limit) == (found.latency_fs, "latency")


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_an_image_enters_a_fabric_while_others_are_in_its_layers(batch: int) -> None:
    # 16 blocks of an image, three tiles a block of (576 + 16) clocks, at 50 %, on 6 of the 8 units
    found = run(fabric(), "int8", convolution(batch=batch))
    one_s = 16 * 3 * 592 / 0.5 / 6 / CLOCK_HZ
    assert_close(compute_s(found), (batch + 3) * one_s)
    assert_close(interval_s(found), batch * one_s)
    assert found.throughput_limit == "pipeline stage"
    # static power is drawn for the interval; idle slots are those of the interval too
    assert_close(count(found, "chip", "static_power"), batch * one_s)
    slots = batch * one_s * CLOCK_HZ * 20_000
    assert_close(count(found, "tensor_engine", "idle_cycle"), slots - batch * CONVOLUTION_MACS)


def test_what_a_fabric_must_load_anew_does_not_overlap() -> None:
    found = run(fabric(resident=0.0), "int8", convolution())
    assert (found.interval_fs, found.throughput_limit) == (found.latency_fs, "latency")


def test_a_fabric_waits_for_the_link() -> None:
    # an image enters and leaves over a link of 5 MB/s, half of it sustained
    found = run(with_bandwidth(fabric(), 5e-5), "int8", convolution())
    assert_close(interval_s(found), (INPUT + OUTPUT) / 2.5e6)
    assert found.throughput_limit == "memory bandwidth"


def test_each_device_of_a_board_has_a_batch_of_its_own() -> None:
    found = run(gpu(units=256, device_count=2.0), "fp16", convolution())
    assert_close(interval_s(found), found.latency_fs / FS_PER_S / 2, rel=1e-6)
    assert found.throughput_limit == "devices"
    assert_close(count(found, "chip", "static_power"), interval_s(found))
    alone = run(gpu(), "fp16", convolution())
    assert (alone.interval_fs, alone.throughput_limit) == (alone.latency_fs, "latency")


def test_the_power_cap_is_that_of_all_cores_at_work() -> None:
    # both cores draw 1 W of static power and twice what the image of one takes in its time
    free = run(dpu(), "int8", convolution())
    dynamic_w = free.energy_fj / free.interval_fs - 1.0
    capped = attrs.evolve(dpu(), tdp=number(1.0 + dynamic_w / 2, "W"))
    found = run(capped, "int8", convolution())
    assert found.throughput_limit == "power cap"
    assert found.energy_fj / found.interval_fs <= capped.tdp.value * (1 + 1e-6)
    assert found.interval_fs > free.interval_fs


@pytest.mark.sample(1)
@pytest.mark.parametrize("runtime", ["fused", "graph", "eager"])
@pytest.mark.parametrize("precision", ["int8", "bf16"])
@pytest.mark.parametrize("model", ["resnet18", "vit_b_16"])
def test_samples_run_one_after_another_where_a_runtime_takes_one(model: str, precision: str, runtime: str) -> None:
    one_by_one = with_geometry(tpu(), samples_at_once=1.0)
    eight, one = shipped(model, 8), shipped(model)
    many, single = run(one_by_one, precision, eight, runtime), run(one_by_one, precision, one, runtime)
    assert_close(many.latency_fs / 8, single.latency_fs, rel=1e-6)
    assert_close(many.energy_fj / 8, single.energy_fj, rel=1e-6)
    assert many.operators.dram_bytes.sum() == 8 * single.operators.dram_bytes.sum()
    assert many.operators.moved_bytes.sum() == 8 * single.operators.moved_bytes.sum()
    # a chip that takes two at once runs half as many parts
    pairs = run(with_geometry(tpu(), samples_at_once=2.0), precision, eight, runtime)
    assert single.latency_fs * 8 >= pairs.latency_fs >= run(tpu(), precision, eight, runtime).latency_fs
    # one sample is the same with or without the limit
    assert run(tpu(), precision, one, runtime).latency_fs == single.latency_fs


@pytest.mark.slow
def test_an_engine_takes_a_batch_in_the_parts_that_are_fastest() -> None:
    l4 = uncapped(load_catalogue().find("l4"))
    whole, half, part = (run(l4, "int8", shipped("resnet50", batch), "engine") for batch in (128, 64, 32))
    # what 32 images leave in 48 MiB of L2 the next kernel finds there
    for found, parts in ((whole, 4), (half, 2)):
        assert 0.9 * parts * part.latency_fs <= found.latency_fs <= (1.0 + 1e-6) * parts * part.latency_fs
    assert whole.operators.kernel_count.sum() == part.operators.kernel_count.sum()
    compiled = run(l4, "int8", shipped("resnet50", 128), "fused")
    assert whole.operators.dram_bytes.sum() < compiled.operators.dram_bytes.sum() / 4
    # the last part has 31 images and takes their share; a batch that every level holds is one part
    odd = run(l4, "int8", shipped("resnet50", 63), "engine")
    assert 0.9 * 63 / 32 * part.latency_fs <= odd.latency_fs <= (1.0 + 1e-6) * 63 / 32 * part.latency_fs
    b200 = uncapped(load_catalogue().find("b200_sxm"))
    many = run(b200, "int8", shipped("resnet50", 32), "engine")
    assert many.latency_fs < 2 * run(b200, "int8", shipped("resnet50", 16), "engine").latency_fs


def test_streams_of_an_engine_serve_batches_of_their_own() -> None:
    # two streams of a core each, with half of what the chip has once
    chip = npu(units=2, macs_per_clock={"int8": 4096.0})
    whole = with_geometry(chip, stream_units=1.0)
    alone, found = run(chip, "int8", convolution(), "engine"), run(whole, "int8", convolution(), "engine")
    assert (alone.interval_fs, alone.throughput_limit) == (alone.latency_fs, "latency")
    assert (found.latency_fs, found.throughput_limit) == (alone.latency_fs, "cores")
    one = run(find_share(whole), "int8", convolution(), "graph")
    assert_close(interval_s(found), one.latency_fs / FS_PER_S / 2, rel=1e-6)
    assert one.latency_fs > alone.latency_fs > found.interval_fs
    # other runtimes have one batch in hand
    assert run(whole, "int8", convolution(), "fused").throughput_limit == "latency"


def test_a_request_on_one_core_takes_its_time_and_cores_share_the_rate() -> None:
    chip = npu(units=3, macs_per_clock={"int8": 4096.0})
    divided = with_geometry(chip, stream_units=1.0, divided_batches=1.0)
    joined = run(chip, "int8", convolution(), "fused")
    found = [run(divided, "int8", convolution(), runtime) for runtime in ("graph", "fused", "engine")]
    for one in found:
        # a third of the chip, at the whole of the memory's bandwidth
        assert_close(compute_s(one), compute_s(run(find_share(divided), "int8", convolution())))
        assert one.latency_fs > joined.latency_fs
        assert one.throughput_limit == "cores"
        assert_close(interval_s(one), one.latency_fs / FS_PER_S / 3, rel=1e-6)
        # static power is drawn from one image to the next, shared by the cores
        assert_close(count(one, "chip", "static_power"), interval_s(one), rel=1e-6)
        assert one.energy_fj == sum(one.action_fj.tolist())
    assert run(divided, "int8", convolution(), "eager").throughput_limit == "latency"
    rates = [batch / interval_s(run(divided, "int8", convolution(batch=batch), "fused")) for batch in (1, 3, 6)]
    assert all(after >= before * (1 - 1e-9) for before, after in itertools.pairwise(rates))


def test_a_host_takes_its_time_for_each_byte_of_results() -> None:
    coefficients = tpu().coefficients
    alone, hosted = (
        run(attrs.evolve(tpu(), coefficients={**coefficients, "host_result": number(cost, "s")}), "int8", convolution())
        for cost in (0.0, 2e-9)
    )
    assert_close((hosted.latency_fs - alone.latency_fs) / FS_PER_S, OUTPUT * 2e-9, rel=1e-6)
    assert float(hosted.subgraphs.launch_s.sum() - alone.subgraphs.launch_s.sum()) > 0.0


@pytest.mark.sample(1)
@pytest.mark.parametrize(("model", "precision", "per_s"), OPENVINO)
def test_published_rates_of_streams(model: str, precision: str, per_s: float) -> None:
    xeon = load_catalogue().find("xeon_8490h")
    found = max(batch / interval_s(run(xeon, precision, shipped(model, batch), "engine")) for batch in (1, 8, 32))
    print(f"xeon_8490h {model} {precision}: {found:.4g}/s, published {per_s:.4g}/s, ratio {found / per_s:.2f}")
    assert 0.75 <= found / per_s <= 1.35  # the fastest of three batch sizes, where OpenVINO ran one


@pytest.mark.parametrize(("units", "levels"), [(1.0, 1.0), (3.0, 2.0), (15.0, 4.0)])
def test_threads_fork_and_join_in_a_tree(units: float, levels: float) -> None:
    """A tree over n threads has log2(1 + n) levels, unless the fixed time of a kernel is the same on any number."""
    flat = vary(cpu(), unit_count=number(units))
    tree = vary(flat, geometry={name: one for name, one in flat.geometry.items() if name != "flat_regions"})
    once, deep = (float(run(one, "fp32", convolution(), "engine").subgraphs.launch_s.sum()) for one in (flat, tree))
    assert_close(deep, once * levels)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("hardware", "model", "per_s"), PUBLISHED)
def test_published_rates(hardware: str, model: str, per_s: float) -> None:
    found = run(load_catalogue().find(hardware), "int8", shipped(model))
    ratio = 1.0 / interval_s(found) / per_s
    print(f"{hardware} {model}: {1.0 / interval_s(found):.4g}/s, published {per_s:.4g}/s, ratio {ratio:.2f}")
    assert 0.75 <= ratio <= 1.3
