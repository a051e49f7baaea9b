"""A box as a chip of any command: its numbers by hand, its runs beside its placements, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pytest
from place_case import toys

import chip
from compare import assert_close
from fallback_case import stages
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.constant import Change, match_names
from joulemap.plan.selection import select_chip, select_hardware
from joulemap.plan.variation import Variation
from joulemap.system.errors import JoulemapError, UsageError
from joulemap.system.units import FJ_PER_J
from joulemap.wing.decoder.engine.stack import find_engine
from joulemap.wing.decoder.network.config import Experts
from joulemap.wing.decoder.network.pass_name import find_decoder
from joulemap.wing.llm.serving.deployment import Deployment, PassWorkloads
from joulemap.wing.llm.serving.offload import Offload, Way
from joulemap.wing.llm.serving.surface import Passes
from joulemap.wing.place.box.column import evaluate_box
from joulemap.wing.place.box.hardware import BoxHardware, combine
from joulemap.wing.place.box.problem import build_problem
from joulemap.wing.place.box.run import run_placement
from joulemap.wing.place.box.variation import VariedBox, change_box, list_box_constants
from joulemap.wing.place.file import find_box
from joulemap.workspace import Workspace

PI = "raspberry_pi_5_hailo"


def toy_box(**changes: object) -> BoxHardware:
    """Return two toys of 1 W and a link as one chip."""
    box, members = toys(**changes)
    return combine(box, [one.hardware for one in members], ["default", "default"])


def asked(batch: int = 8) -> Configuration:
    return Configuration(hardware="toys", runtime="engine", precision="fp32", batch=batch)


def test_the_devices_of_a_box_have_its_matmul_precision() -> None:
    box = toy_box()
    exact = box.at_matmul_precision("highest")
    assert {one.matmul_precision for one in (exact, *exact.devices)} == {"highest"}
    assert {one.matmul_precision for one in (box, *box.devices)} == {"default"}
    assert exact.digest != box.digest


def test_a_box_has_the_sums_of_its_devices() -> None:
    one, box = chip.cpu(), toy_box()
    assert box.units == 2
    for name in ("tdp", "static_power", "memory_capacity", "memory_bandwidth"):
        assert_close(getattr(box, name).value, 2.0 * getattr(one, name).value)
    assert_close(box.peaks["fp32"].rate.value, 2.0 * one.peaks["fp32"].rate.value)
    names = {action.component for action in box.reference}
    assert {"a_dram", "b_dram", "link_toy"} <= names
    assert (box.in_mode("energy").goal, box.in_mode("latency").goal, box.in_mode("30W").goal) == (
        "energy",
        "latency",
        "latency",
    )


@pytest.mark.parametrize(
    "goal",
    ["latency", pytest.param("throughput", marks=pytest.mark.slow), pytest.param("energy", marks=pytest.mark.slow)],
)
def test_the_run_of_a_box_is_its_placement_repeated(goal: str) -> None:
    """Gelu runs on the first toy alone; times are whole, and the ledger is the placement's."""
    work, box = stages("gelu", "relu"), toy_box().in_mode(goal)
    run = evaluate_box(work, box, asked())
    assert isinstance(run.hardware, BoxHardware)
    members = box.list_members(asked())
    problem = build_problem(work, box.box, members)
    names = run.hardware.placement.partition(" ")[2].split("+")
    if len(names) == 1:
        placed = run_placement(problem, np.array([0, 0, 0]), is_pipelined=True)
        assert_close(run.energy_fj, placed.energy_fj)
        assert (run.latency_fs, run.interval_fs) == (placed.latency_fs, placed.period_fs)
    assert sum(run.operators.latency_fs.tolist()) == run.latency_fs
    static = [at for at, row in enumerate(run.hardware.reference) if row.part == "static"]
    waited = run.ledger.energy_fj[np.isin(run.ledger.action_index, static)].sum()
    assert_close(float(waited), 2.0 * run.interval_fs)  # two of 1 W: 2 fJ in a femtosecond


def test_a_placement_on_both_has_its_copies_in_the_run() -> None:
    """A memory too small for all on the first: the second has a part, two links of which have 2,048 B each."""
    run = evaluate_box(stages("gelu", "relu"), tight_box(), asked())
    assert isinstance(run.hardware, BoxHardware)
    assert run.hardware.placement == "split a+b"
    at = run.hardware.reference.position(("link_toy", "transfer"))
    sent = run.ledger.action_count[run.ledger.action_index == at]
    assert sent.sum() % 2048.0 == 0.0
    assert sent.sum() > 0.0
    assert run.latency_fs == sum(run.subgraphs.latency_fs.tolist())


def test_a_cap_on_the_box_stretches_its_interval() -> None:
    free = evaluate_box(stages("gelu", "relu"), toy_box().in_mode("throughput"), asked())
    drawn_w = free.energy_fj / free.interval_fs
    cap = 2.0 + 0.5 * (drawn_w - 2.0)
    held = evaluate_box(stages("gelu", "relu"), toy_box().in_mode(f"{cap:.9g}W"), asked())
    assert held.energy_fj / held.interval_fs <= cap * (1.0 + 1e-6)


@pytest.mark.slow
def test_a_box_is_compared_and_its_sums_are_those_of_its_placement(own_database: Path) -> None:
    """With a chip beside it; what differs adds up by category, and the database passes its audit."""
    at = Workspace(own_database)
    settings = Settings(precision="int8", runtime="engine")
    answer = at.compare("resnet18", settings=attrs.evolve(settings, hardware=(PI, f"{PI}@throughput", "hailo_8")))
    rows = {row.hardware: row for row in answer.rows}
    assert rows[PI].placement == "alone hailo"
    assert rows["hailo_8"].placement == ""
    assert (rows[PI].latency_s or 0.0) > (rows["hailo_8"].latency_s or math.inf)  # a Pi 5 has one lane of the four
    assert_close(rows[PI].throughput_per_s, rows["hailo_8"].throughput_per_s)
    placed = at.place("resnet18", PI, settings=attrs.evolve(settings, batch=(1,)), goal="throughput").best
    assert rows[f"{PI}@throughput"].placement == f"{placed.form} {placed.placement}"
    assert_close(rows[f"{PI}@throughput"].energy_j, placed.energy_j)
    assert_close(rows[f"{PI}@throughput"].throughput_per_s, placed.throughput_per_s)
    asked_of = f"SELECT sum(line_energy_fj) FROM energy_ledger WHERE hardware = '{PI}' AND power_mode = 'default'"
    assert at.sql(asked_of).rows[0][0] / FJ_PER_J == rows[PI].energy_j
    assert not at.check().findings.rows


BOX = """
id = "mine"
[[devices]]
name = "cpu"
hardware = "raspberry_pi_5"
[[devices]]
name = "npu"
hardware = "{hardware}"
"""


def tight_box() -> BoxHardware:
    """Return two toys whose memories hold four fifths of the model each, so that both have a part."""
    whole = evaluate_box(stages("gelu", "relu"), toy_box(), asked())
    box, members = toys()
    room = chip.number(0.8 * (whole.weight_bytes + whole.activation_bytes), "B")
    chips = [attrs.evolve(one, memory_capacity=room) for one in (chip.cpu(), members[1].hardware)]
    return combine(box, chips, ["default"] * 2)


def changed(box: BoxHardware, name: str, factor: float) -> BoxHardware:
    one = list_box_constants(box)[name]
    change = Change.of(one, one.value * factor)
    return change_box(box, (change,))


def test_numbers_of_a_box_are_those_of_its_devices_and_links() -> None:
    box = tight_box()
    assert match_names("dram.read", list_box_constants(box)) == ["a.dram.read", "b.dram.read"]
    assert match_names("a.units", list_box_constants(box)) == ["a.unit_count"]
    slow = changed(box, "link.a-b.bandwidth", 0.5)
    assert_close(slow.box.links[0].bandwidth.value, 0.5 * box.box.links[0].bandwidth.value)
    assert slow.box.links[0].bandwidth.basis == "assumed"
    fast = changed(box, "b.clock", 2.0)
    assert fast.devices[0] == box.devices[0]
    assert_close(fast.peaks["fp32"].rate.value, 1.5 * box.peaks["fp32"].rate.value)
    leaky = changed(box, "a.static_power", 3.0)
    assert_close(leaky.static_power.value, 4.0)  # 1 W each
    assert_close(changed(box, "tdp", 0.5).capped.power.value, 0.5 * box.tdp.value)  # type: ignore[union-attr]
    assert len({one.digest for one in (box, slow, fast, leaky)}) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("goal", "form", "names"),
    [
        ("latency", "split a+b", ("a.dram.read", "b.clock")),
        pytest.param("latency", "split a+b", ("a.static_power", "link.a-b.bandwidth"), marks=pytest.mark.slow),
        pytest.param("throughput", "pipeline a+b", ("a.dram.read", "link.a-b.energy"), marks=pytest.mark.slow),
    ],
)
def test_what_moves_a_box_is_what_its_runs_say(goal: str, form: str, names: tuple[str, ...]) -> None:
    """Another number leaves the parts where they are: then a variation is the run of a box that has it."""
    work, box = stages("gelu", "relu"), tight_box().in_mode(goal)
    first = evaluate_box(work, box, asked())
    varied = Variation(name="toys", hardware=box, batch=8, varied=VariedBox(work, asked()), use={}, fitted={})
    assert (getattr(first.hardware, "placement", ""), varied.is_capped) == (form, False)
    assert_close(varied.base.energy_j, first.energy_fj / FJ_PER_J)
    for name in names:
        again = evaluate_box(work, changed(box, name, 1.25), asked())
        found = varied.totals(name, 1.25)
        assert found is not None
        assert found[1] == (name == "a.dram.read")  # of the ledger, in closed form
        assert_close(found[0].energy_j, again.energy_fj / FJ_PER_J)
        assert_close(found[0].latency_s, again.latency_fs / 1e15)


def test_what_is_wrong_with_a_box_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, mine = Workspace(tmp_path / "none.duckdb"), tmp_path / "mine.toml"

    def told(ask: Callable[[str], object], hardware: str) -> str:
        with pytest.raises(JoulemapError) as caught:
            ask(hardware)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def compare(hardware: str, **changes: object) -> object:
        settings = Settings(precision="int8", runtime="engine", hardware=(hardware,), **changes)  # type: ignore[arg-type]
        return at.compare("resnet18", settings=settings)

    mine.write_text(BOX.format(hardware="hailo_9"))
    assert "mine: devices.npu.hardware: unknown hardware 'hailo_9'; did you mean hailo_8" in told(compare, str(mine))
    mine.write_text(BOX.format(hardware="hailo_8"))
    assert "mine: no link joins cpu to another device" in told(compare, str(mine))
    assert "did you mean dgx_h100" in told(compare, "dgx_h101")
    assert "a cap, as 300W" in told(compare, "dgx_h100@900MHz")
    wrong = partial(compare, changes={"gpu.memory_bandwith": "5GB/s"})
    assert "did you mean gpu.memory_bandwidth" in told(wrong, "dgx_h100")
    assert "has jetson_agx_orin_64gb_gpu, jetson_agx_orin_dla, jetson_agx_orin_cpu: name one" in told(
        lambda name: at.train("resnet18", settings=Settings(hardware=(name,))), "jetson_agx_orin_module"
    )
    with pytest.raises(UsageError, match="this question takes chips, but dgx_h100 is a box of 8 h100_sxm5: name"):
        select_chip("dgx_h100", Settings())
    (tmp_path / "again.toml").write_text(BOX.format(hardware="hailo_8"))
    monkeypatch.setenv("JOULEMAP_HARDWARE", str(tmp_path))
    assert "the name 'mine' is already that of" in told(find_box, "mine")


def test_layers_are_divided_as_the_times_of_either_side_say() -> None:
    """Half of the layers: half of either's step and two copies of a hidden state; all: the device's own step."""
    decoder, engine = find_decoder("qwen3-0.6b"), find_engine("llamacpp")
    assert decoder is not None
    workloads = PassWorkloads(decoder)

    def deploy(name: str) -> Deployment:
        chip = load_catalogue().find(name)
        return Deployment(workloads=workloads, hardware=chip, stack=engine, precision="bf16")

    way = Way(latency_s=1e-6, s_per_byte=1e-9, j_per_byte=1e-11)
    whole = Offload.of([deploy("rtx_4090")], deploy("epyc_9654"), way)
    step = Passes.of([1.0], context=512.0)
    device, host = (float(one.price(step).seconds[0]) for one in (whole.device, whole.host))
    assert_close(float(whole.price(step).seconds[0]), device)
    half = attrs.evolve(whole, layers=decoder.layer_count // 2)
    handed = 2.0 * (1e-6 + 2.0 * decoder.hidden * 1e-9)
    assert_close(float(half.price(step).seconds[0]), (device + host) / 2.0 + handed)
    needed = half.needed(1, 512)
    workspace = whole.rooms[0].workspace
    assert_close(needed[0] - workspace, (whole.needed(1, 512)[0] - workspace) / 2.0)
    small = attrs.evolve(whole, way=attrs.evolve(way, shared_bytes=1e8))
    assert small.lacks(1, 512)[0] > 0.0
    fast = attrs.evolve(half, way=attrs.evolve(way, s_per_byte=1e-12))
    prompt = fast.divide(Passes.of([1.0], tokens=512.0))
    assert float(prompt.host_s[0]) == 0.0  # the host's weights are sent: half of them
    assert_close(float(prompt.copy_s[0]), 0.5 * whole.rooms[0].weights * 1e-12)


def test_the_experts_alone_may_be_divided() -> None:
    """All experts on the host: a pass without experts on the device, and two copies for each of the layers."""
    decoder, engine = find_decoder("qwen3-30b-a3b"), find_engine("llamacpp")
    assert decoder is not None

    def deploy(name: str, *, is_whole: bool = True) -> Deployment:
        workloads = PassWorkloads(decoder if is_whole else decoder.without_experts())
        return Deployment(workloads=workloads, hardware=load_catalogue().find(name), stack=engine, precision="bf16")

    chips = ("rtx_4090", "epyc_9654")
    step = Passes.of([1.0], context=512.0)
    way = Way(latency_s=1e-6, s_per_byte=1e-9, j_per_byte=1e-11)
    whole = Offload.of([deploy(chips[0])], deploy(chips[1]), way).keeping_experts_apart()
    all_s, bare_s = (
        [float(deploy(name, is_whole=is_whole).price(step).seconds[0]) for name in chips] for is_whole in (True, False)
    )
    assert_close(float(whole.price(step).seconds[0]), all_s[0])
    none = attrs.evolve(whole, layers=0)
    copies = 2.0 * decoder.layer_count * (1e-6 + 2.0 * decoder.hidden * 1e-9)
    assert_close(float(none.price(step).seconds[0]), bare_s[0] + all_s[1] - bare_s[1] + copies)
    networks = [one.network for one in decoder.layers if isinstance(one.network, Experts)]
    experts = sum(3.0 * decoder.hidden * one.inner * one.count for one in networks)  # three matrices each
    assert_close(whole.needed(1, 512)[0] - none.needed(1, 512)[0], 2.0 * experts, rel=1e-3)


def test_two_unlike_boards_share_layers(tmp_path: Path) -> None:
    devices = "".join(f'[[devices]]\nname = "{name}"\nhardware = "{name}"\n' for name in ("rtx_3090", "rtx_4090"))
    link = '[[links]]\nbetween = ["rtx_3090", "rtx_4090"]\nlink = "pcie"\ngeneration = "4"\nlanes = 8\n'
    (tmp_path / "two.toml").write_text(f'id = "two"\n{devices}{link}')
    settings = Settings(hardware=(str(tmp_path / "two.toml"),), weight_precision=("q6_k",), batch=(1,))
    answer = Workspace(tmp_path / "a.duckdb").offload("qwen3-32b", settings)
    assert (answer.device, answer.host, answer.part) == ("rtx_4090", "rtx_3090", "Layers")
    assert 0 < answer.best.layers < answer.layer_count


def test_a_box_of_the_catalogue_is_no_file_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('id = "own"\n[[devices]]\nname = "cpu"\nhardware = "rk3588_cpu"\n')
    chosen = select_hardware(Settings(hardware=("server_4x_l4", f"{own}@energy")))
    assert chosen.spelling == {"own@energy": f"{own}@energy"}
