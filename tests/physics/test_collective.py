"""Collectives: what one of several devices counts, takes and sends, by hand and by what must hold of all of them."""

from __future__ import annotations

import attrs
import pytest

import chip
from compare import assert_close
from joulemap.catalog.load import load_catalogue
from joulemap.domain.operator.name import find_operator
from joulemap.physics.bulk import Total, evaluate_all
from joulemap.physics.communication import find_path, find_send
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import CYCLE_ACTION, LINK_ACTION, STATIC_ACTION
from joulemap.physics.record.workload import NO_KEY, Workload
from joulemap.physics.workload import columns_of
from joulemap.plan.anchor import anchor_hardware
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.trace.single import describe

MIB = 2**20


def workload(name: str, batch: int = 1) -> Workload:
    operator = find_operator(name)
    assert operator is not None
    return describe(operator, batch, NO_KEY)


def find(hardware: str) -> Hardware:
    return load_catalogue().find(hardware)


def total(name: str, hardware: Hardware | str, runtime: str = "graph", precision: str = "bf16") -> Total:
    target = find(hardware) if isinstance(hardware, str) else hardware
    (found,) = evaluate_all([workload(name)], target, precision, runtime)
    assert found.refusal is None, found.refusal
    return found


def seconds(name: str, hardware: Hardware | str, runtime: str = "graph") -> float:
    found = total(name, hardware, runtime).latency_fs
    assert found is not None
    return found / 1e15


@pytest.mark.parametrize(
    ("operation", "read", "written", "additions"),
    [
        # eight devices, 800 elements of four bytes: a part has 100, and a sum adds seven others to it
        ("all_reduce", 3200, 3200, 700),
        ("all_gather", 400, 3200, 0),
        ("reduce_scatter", 3200, 400, 700),
        ("all_to_all", 3200, 3200, 0),
        ("send", 3200, 3200, 0),
    ],
)
def test_what_a_device_counts(operation: str, read: int, written: int, additions: int) -> None:
    found = workload(f"{operation}(elements=800,devices=8)")
    (operator,) = found.operators
    assert (operator.kind, operator.operation) == ("communication", operation)
    assert (operator.gemm_groups, operator.output_element_count) == (8, 800)
    assert (operator.mac_count, operator.elementwise_count) == (0, additions)
    assert [(one.role, one.byte_count) for one in found.accesses] == [("input", read), ("output", written)]
    assert workload(f"{operation}(elements=400,devices=8)", batch=2).accesses == found.accesses


def test_a_collective_of_one_device_is_none() -> None:
    with pytest.raises(UsageError, match="devices is '1', expected a whole number from 2"):
        find_operator("all_reduce(elements=8,devices=1)")


def test_a_library_by_hand() -> None:
    """Two of four H100, 1 MiB each way: 2 (3 / 4 + 0.36) MiB over 450 GB/s at 0.44, and six steps of 0.55 us."""
    h100 = find("h100_sxm5")
    start = 13400 / h100.full_clock.value + 6 * 0.55e-6
    moved = 2 * (3 / 4 + 0.36) * MIB / 450e9
    assert_close(
        seconds(f"all_reduce(elements={MIB // 2},devices=4,kernel=nccl)", h100), start + moved / 0.44, rel=1e-6
    )
    # of 256 MiB the protocol that fills the link is the quicker one
    large = start + 33000 / h100.full_clock.value + 256 * moved
    assert_close(seconds(f"all_reduce(elements={128 * MIB},devices=4,kernel=nccl)", h100), large, rel=1e-6)


def test_kernels_that_read_each_other_by_hand() -> None:
    """8 KiB of eight devices: each reads that of seven others; 4 MiB are summed in two stages."""
    h100 = find("h100_sxm5")
    start = 7700 / h100.full_clock.value + (1 + 0.11 * 7) * 0.55e-6
    rate = 0.59 * 450e9
    assert_close(seconds("all_reduce(elements=4096,devices=8)", h100), start + 7 * 8192 / rate, rel=1e-6)
    two = start + 5.4 * 0.55e-6 + 2 * 7 / 8 * 4 * MIB / rate
    assert_close(seconds(f"all_reduce(elements={2 * MIB},devices=8)", h100), two, rel=1e-6)
    beyond = f"elements={8 * MIB},devices=8"
    assert seconds(f"all_reduce({beyond})", h100) == seconds(f"all_reduce({beyond},kernel=nccl)", h100)


def test_paths_by_hand() -> None:
    # of a mesh of eight, two devices have one link of seven; over PCIe more than two reach 0.55 of it
    mesh = find_path(find("mi300x"), 2)
    assert_close(float(mesh.ring_rate), 448e9 / 7, rel=1e-3)
    assert find_path(find("mi300x"), 8).ring_rate == find("mi300x").links[0].bandwidth.value
    l40s = find("l40s")
    assert_close(float(find_path(l40s, 4).ring_rate), 0.55 * float(find_path(l40s, 2).ring_rate))
    assert not find_path(l40s, 4).is_direct
    # 256 chips in a square of 16 x 16: a byte passes four links on either axis, on the mean
    assert_close(find_path(find("tpu_v5e"), 256).hops, 8.0)
    assert_close(float(find_path(find("tpu_v5e"), 4).peer_rate), 50e9, rel=1e-3)
    # the bridge of an A100 on a PCIe board is sold apart: two go through the host, as more do
    assert 32e9 > find_path(find("a100_pcie_80gb"), 2).ring_rate > find_path(find("a100_pcie_80gb"), 4).ring_rate
    # GeForce boards reach each other through the host's memory; a bridge joins two RTX 3090
    for name in ("rtx_4090", "rtx_5090"):
        relayed = find_path(find(name), 2)
        (pcie,) = find(name).links
        assert not relayed.is_direct
        assert_close(float(relayed.ring_rate), 0.5 * pcie.bandwidth.value)
    assert not find_path(find("rtx_3090"), 2).is_direct
    assert_close(float(find_path(find("rtx_3090"), 4).ring_rate), 0.5 * 0.55 * 31.51e9)
    assert find_path(find("rtx_pro_6000_server"), 2).is_direct


def test_a_send_beyond_a_link_crosses_the_network() -> None:
    """Sixteen H100: 50 GB/s and 5 us of the network, in place of 450 GB/s and 0.55 us of a link that joins eight."""
    h100 = find("h100_sxm5")
    start, ramp = 13400 / h100.full_clock.value, 33000 / h100.full_clock.value
    near, far = (seconds(f"send(elements={128 * MIB},devices={devices})", h100) for devices in (8, 16))
    assert_close(near, start + ramp + 0.55e-6 + 256 * MIB / 450e9, rel=1e-6)
    assert_close(far, start + ramp + 5e-6 + 256 * MIB / 50e9, rel=1e-6)
    assert find_send(h100, 8) == find_path(h100, 8)


@pytest.mark.parametrize(
    ("hardware", "devices", "code", "values"),
    [
        ("jetson_agx_orin_64gb_gpu", 2, "no_link", {}),
        ("h100_sxm5", 16, "linked_devices", {"devices": 16, "most": 8}),
        ("epyc_9654", 4, "linked_devices", {"devices": 4, "most": 2}),
    ],
)
def test_a_link_that_a_chip_lacks_is_refused(hardware: str, devices: int, code: str, values: dict[str, int]) -> None:
    with pytest.raises(UnsupportedError) as refused:
        find_path(find(hardware), devices)
    assert (refused.value.code, refused.value.values) == (code, {"hardware": hardware, **values})
    (found,) = evaluate_all([workload(f"all_reduce(elements=8,devices={devices})")], find(hardware), "fp32", "graph")
    assert found.refusal == refused.value.reason


def test_a_rack_of_hosts_sums_by_a_library_beyond_one() -> None:
    assert find_path(find("gb200"), 4).is_in_host
    assert not find_path(find("gb200"), 8).is_in_host
    name = "all_reduce(elements=4096,devices=8"
    assert seconds(f"{name})", "gb200") == seconds(f"{name},kernel=nccl)", "gb200")
    assert seconds(f"{name},kernel=trtllm)", "gb200") < seconds(f"{name})", "gb200") / 2


def test_tokens_to_experts_by_hand() -> None:
    """64 MiB of eight devices, of which seven parts leave; 114 bytes a clock are less than the link has."""
    clock = find("h100_sxm5").full_clock.value
    found = seconds(f"all_to_all(elements={32 * MIB},devices=8,kernel=deepep)", "h100_sxm5")
    assert_close(found, (105000 + 7 / 8 * 64 * MIB / 114) / clock, rel=1e-6)


def test_in_eager_the_host_launches_it() -> None:
    host = find("h100_sxm5").coefficient("host_launch")
    small = "all_reduce(elements=1024,devices=8)"
    assert_close(seconds(small, "h100_sxm5", "eager"), max(host, seconds(small, "h100_sxm5")), rel=1e-6)


def test_bytes_that_are_sent_are_priced_and_nothing_waits_for_memory() -> None:
    """Of 1 MiB among four, 3 / 4 leave the device twice; the price is of a byte sent and one received."""
    h100 = find("h100_sxm5")
    position = h100.reference.position(LINK_ACTION)
    assert position is not None
    price = h100.reference.prices_fj[position]
    assert_close(price, 80e-12 * 1e15)
    free = attrs.evolve(
        h100,
        reference=h100.reference.with_actions(
            [attrs.evolve(tuple(h100.reference)[position], energy_per_action_fj=0.0)]
        ),
    ).with_own_digest()
    name = f"all_reduce(elements={MIB // 2},devices=4,kernel=nccl)"
    with_links, without = total(name, h100).energy_fj, total(name, free).energy_fj
    assert with_links is not None
    assert without is not None
    lost = 1.0 + h100.reference.loss_j
    assert_close(with_links - without, 2 * 3 / 4 * MIB * price * lost, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "taken", "inner", "outer"), [("deepep", 8, 7 / 8, 0.5), ("deepep_ll", 1, 7 / 16, 0.5)]
)
def test_tokens_to_experts_on_two_hosts_by_hand(kernel: str, taken: int, inner: float, outer: float) -> None:
    """16 H100 on two hosts: a token goes once to each host, or to each expert, half of which are on the other host."""
    h100, whole = find("h100_sxm5"), 64 * MIB
    work = workload(f"all_to_all(elements={whole // 2},devices=16,kernel={kernel})")
    operator = attrs.evolve(work.operators[0], gemm_n=taken, gemm_k=1)
    (found,) = evaluate_all([attrs.evolve(work, operators=(operator,))], h100, "bf16", "graph")
    assert found.latency_fs is not None
    hosts, devices = (count * (1 - (1 - 1 / count) ** taken) for count in (2, 16))
    clock = h100.full_clock.value
    start = {"deepep": 105000, "deepep_ll": 48000}[kernel] / clock
    link_s, card_s = inner * whole / (114 * clock), hosts / devices / 2 * whole / (0.91 * 50e9)
    assert_close(found.latency_fs / 1e15, start + (link_s**2.5 + card_s**2.5) ** 0.4, rel=1e-6)


def test_units_have_no_work_in_a_collective() -> None:
    own = anchor_hardware(find("rtx_5090"))
    configuration = Configuration(hardware=own.id, precision="bf16", runtime="graph")
    counted = []
    for name in ("all_reduce(elements=65536,devices=2)", "elementwise(kind=relu,elements=65536)"):
        run = evaluate(columns_of(workload(name)), chip.bound(own, "default", "board"), configuration)
        counted.append({run.hardware.reference.keys[action] for action in run.ledger.action_index.tolist()})
    collective, kernel = counted
    assert STATIC_ACTION in collective & kernel
    assert CYCLE_ACTION in kernel - collective
