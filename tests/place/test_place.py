"""Models over the devices of a box: the cheapest by hand and by trying all, what a placement takes, and its sums."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import numpy as np
import pytest
import torch
from place_case import link, member, toys

import chip
from command import run_here
from compare import assert_close
from fallback_case import BATCH, WIDTH, stages
from joulemap.catalog.error_scale import load_doubt
from joulemap.catalog.load import load_catalogue
from joulemap.domain.catalogue import find_entry
from joulemap.domain.settings import Settings
from joulemap.physics.interval.probability import probability_better
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Link
from joulemap.physics.record.reference import LINK_ACTION, STATIC_ACTION
from joulemap.physics.workload import Floats
from joulemap.show.view import draw_figures
from joulemap.system.errors import UnsupportedError, UsageError
from joulemap.system.name import fold_name
from joulemap.system.units import FJ_PER_J, FS_PER_S
from joulemap.wing.place.ask.place import PlaceAnswer
from joulemap.wing.place.ask.placement_row import list_devices, sum_assumed
from joulemap.wing.place.box import candidate, search as searching, solve
from joulemap.wing.place.box.candidate import Candidate, list_candidates
from joulemap.wing.place.box.choose import choose, improve
from joulemap.wing.place.box.interval import PlacedDoubt, compare, doubt_placement, half_width
from joulemap.wing.place.box.member import find_ways
from joulemap.wing.place.box.problem import Problem, build_problem
from joulemap.wing.place.box.run import run_placement
from joulemap.wing.place.box.score import Aim, add_up, find_makespan, score
from joulemap.wing.place.box.search import Costs, search
from joulemap.wing.place.box.solve import solve_placement
from joulemap.wing.place.file import load_boxes
from joulemap.wing.place.generated.row import DoubtedDevice
from joulemap.wing.place.record import GOALS, Box, BoxDevice, BoxMemory
from joulemap.wing.place.target import read_box
from joulemap.workspace import Workspace
from models import columns, shipped

INF = float("inf")


def chain(node: Sequence[Sequence[float]], copy: float) -> Costs:
    """Return nodes each of which reads the one before, with one price of every copy."""
    count, devices = len(node), len(node[0])
    prices = np.full((count - 1, devices, devices), copy)
    prices[:, range(devices), range(devices)] = 0.0
    readers = tuple((place + 1,) for place in range(count - 1))
    return Costs(np.array(node, dtype=float), prices, np.arange(count - 1), readers)


def test_a_chain_of_three_on_two_devices_by_hand() -> None:
    """Either device alone takes 12; the middle one on the second takes 1 + 2 + 1 and two copies."""
    node = [[1.0, 5.0], [10.0, 2.0], [1.0, 5.0]]
    for copy, devices, cost in ((1.0, [0, 1, 0], 6.0), (3.0, [0, 1, 0], 10.0), (4.5, [0, 0, 0], 12.0)):
        found = search(chain(node, copy))
        assert found is not None
        assert_close(found.value, cost)
        assert found.bound == found.value
        if copy < 4.5:
            assert found.devices.tolist() == devices


def test_a_value_is_sent_once_to_a_device_however_many_read_it() -> None:
    """One on the first, two that read it on the second: one copy of 4."""
    node = np.array([[0.0, 9.0], [9.0, 0.0], [9.0, 0.0]])
    copy = np.array([[[0.0, 4.0], [4.0, 0.0]]])
    found = search(Costs(node, copy, np.array([0]), ((1, 2),)))
    assert found is not None
    assert found.devices.tolist() == [0, 1, 1]
    assert_close(found.value, 4.0)


def test_what_cannot_be_reached_is_no_placement() -> None:
    node = np.array([[1.0, INF], [INF, 1.0]])
    assert search(Costs(node, np.array([[[0.0, INF], [INF, 0.0]]]), np.array([0]), ((1,),))) is None


def random_costs(seed: int, nodes: int, devices: int, spread: int) -> Costs:
    """Return a graph in which each node is read by a few of the next."""
    generator = np.random.default_rng(seed)
    node = generator.uniform(0.5, 2.0, (nodes, devices))
    node[generator.random((nodes, devices)) < 0.15] = INF
    node[np.isinf(node).all(axis=1)] = 1.0
    readers = []
    for place in range(nodes - 1):
        after = np.arange(place + 1, min(nodes, place + 1 + spread))
        chosen = after[generator.random(len(after)) < 0.6]
        readers.append(tuple(chosen.tolist()) or (place + 1,))
    copy = generator.uniform(0.0, 1.0, (nodes - 1, devices, devices))
    copy[:, range(devices), range(devices)] = 0.0
    return Costs(node, copy, np.arange(nodes - 1), tuple(readers))


def try_all(costs: Costs) -> float:
    count, devices = costs.node.shape
    best = INF
    for placement in itertools.product(range(devices), repeat=count):
        total = sum(float(costs.node[place, one]) for place, one in enumerate(placement))
        for value, readers in enumerate(costs.readers):
            home = placement[int(costs.maker[value])]
            total += sum(float(costs.copy[value, home, end]) for end in {placement[one] for one in readers} - {home})
        best = min(best, total)
    return best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("nodes", "devices", "spread"), [(8, 2, 2), (7, 3, 4)])
def test_the_search_finds_what_trying_all_finds(seed: int, nodes: int, devices: int, spread: int) -> None:
    costs = random_costs(seed, nodes, devices, spread)
    found = search(costs)
    assert found is not None
    assert_close(found.value, try_all(costs))


@pytest.mark.parametrize("seed", range(6))
def test_dropping_states_that_others_replace_loses_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = random_costs(seed, 8, 3, 7)
    monkeypatch.setattr(searching, "FEW_STATES", 1)
    found = search(costs)
    assert found is not None
    assert_close(found.value, try_all(costs))
    monkeypatch.setattr(searching, "MOST_STATES", 2)
    cut = search(costs)
    assert cut is not None
    assert cut.bound <= found.value * (1.0 + 1e-12) <= cut.value * (1.0 + 2e-12)


def posed(**changes: object) -> tuple[Box, Problem]:
    box, members = toys(**changes)
    return box, build_problem(stages("gelu", "relu"), box, members)


def test_what_a_device_cannot_run_has_no_cost_there_and_goes_elsewhere() -> None:
    """Three products: gelu is fused to the first, which the second toy cannot run."""
    _, problem = posed()
    assert problem.can_run.tolist() == [[True, False], [True, True], [True, True]]
    whole = evaluate(problem.work, chip.cpu(), Configuration(hardware="toy", runtime="engine", batch=8))
    assert_close(problem.seconds[:, 0].sum(), whole.latency_fs / FS_PER_S)


def test_an_operator_that_none_runs_is_refused_by_name() -> None:
    box, (first, second) = toys()
    lacking = attrs.evolve(first, hardware=attrs.evolve(second.hardware, id="third"))
    with pytest.raises(UnsupportedError, match="no device of the box runs gelu"):
        build_problem(stages("gelu"), box, (lacking, second))


@pytest.mark.parametrize("is_pipelined", [False, True])
def test_the_ledger_of_a_placement_adds_up_by_hand(is_pipelined: bool) -> None:
    """Subgraph 1 on the other toy: two copies of 8 x 64 x 4 B, each of 1 us, 2.048 us and a command of 10 us."""
    _, problem = posed()
    run = run_placement(problem, np.array([0, 1, 0]), is_pipelined=is_pipelined)
    assert [copy.byte_count for copy in run.copies] == [2048.0, 2048.0]
    assert [copy.latency_fs for copy in run.copies] == [round((1e-6 + 2048e-9 + 1e-5) * FS_PER_S)] * 2
    assert run.latency_fs == sum(part.latency_fs for part in run.parts.values()) + run.copy_fs
    busiest = max(*(part.interval_fs for part in run.parts.values()), run.copy_fs)
    assert run.interval_fs == busiest
    assert run.period_fs == (busiest if is_pipelined else run.latency_fs)
    sent = [line for line in run.lines if (line.component, line.action) == LINK_ACTION]
    assert [(line.device, line.energy_fj) for line in sent] == [("a", 20_480_000), ("b", 20_480_000)]
    for name in ("a", "b"):
        mine = [line for line in run.lines if line.device == name and (line.component, line.action) == STATIC_ACTION]
        assert_close(sum(line.action_count for line in mine), run.period_fs / FS_PER_S)
    parts = sum(part.energy_fj for part in run.parts.values())
    waits = sum(run.period_fs - part.interval_fs for part in run.parts.values())
    assert abs(run.energy_fj - (parts + 2 * 20_480_000 + waits)) <= 2  # 1 W is 1 fJ in a femtosecond


def test_the_assumed_share_of_a_placement_is_that_of_its_ledger() -> None:
    """Side by side, too, whose devices draw static power between batches: parts and waits are all of the energy."""
    _, problem = posed()
    for goal in GOALS:
        for one in list_candidates(problem, goal):
            if one.refusal:
                continue
            found = sum_assumed(one)
            assert_close(found.energy_fj, one.energy_j * FJ_PER_J)
            assumed_fj = sum(line.energy_fj for line in one.lines if line.basis == "assumed")
            assert_close(found.fraction * found.energy_fj, float(assumed_fj))
            assert 0.0 <= found.static_fraction <= found.fraction <= 1.0


class Heads(torch.nn.Module):
    """A product and two that read it, neither of which waits for the other."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.left, self.right = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        stem = self.stem(x)
        return self.left(stem), self.right(stem)


def test_branches_run_at_the_same_time_by_hand() -> None:
    """The second head on the other toy: it ends a copy and its own time after the stem; each waits for the rest."""
    _, problem = branches()
    run = run_placement(problem, np.array([0, 0, 1]), is_pipelined=False)
    stem_fs, left_fs = run.parts[0].subgraphs.latency_fs.tolist()
    (right_fs,), (copy,) = run.parts[1].subgraphs.latency_fs.tolist(), run.copies
    assert run.latency_fs == run.period_fs == stem_fs + max(left_fs, copy.latency_fs + right_fs)
    assert run.start_fs.tolist() == [0, stem_fs, stem_fs + copy.latency_fs]
    assert copy.start_fs == stem_fs
    assert run.limit == "parallel branches"
    ends_fs = run.period_fs - stem_fs - left_fs, run.period_fs - right_fs
    waits = [line for line in run.lines if line.source.startswith("while others work")]
    assert_close(sum(line.energy_fj for line in waits), sum(ends_fs))  # 1 W each
    parts = sum(part.energy_fj for part in run.parts.values())
    assert abs(run.energy_fj - parts - sum(ends_fs) - 20_480_000) <= 2


def test_a_power_budget_stretches_the_period_to_keep_it() -> None:
    box, problem = posed()
    free = run_placement(problem, np.array([0, 0, 0]), is_pipelined=True)
    drawn_w = free.energy_fj / free.period_fs
    own_w = drawn_w - 2.0
    capped = attrs.evolve(box, power=chip.number(2.0 + own_w / 2.0, "W"))
    run = run_placement(attrs.evolve(problem, box=capped), np.array([0, 0, 0]), is_pipelined=True)
    assert run.limit == "power budget"
    assert_close(run.period_fs / free.period_fs, 2.0, rel=1e-6)
    assert_close(run.energy_fj / run.period_fs, 2.0 + own_w / 2.0, rel=1e-6)


def test_devices_of_one_memory_hand_over_in_place() -> None:
    box, (first, second) = toys()
    memory = BoxMemory(
        name="m", capacity=chip.number(1e9, "B"), bandwidth=chip.number(1e11, "B/s"), latency=chip.number(3e-6, "s")
    )
    shared = tuple(attrs.evolve(one, memory="m") for one in box.devices)
    box = attrs.evolve(box, devices=shared, memories=(memory,), links=())
    members = tuple(attrs.evolve(one, device=device) for one, device in zip((first, second), shared, strict=True))
    problem = build_problem(stages("gelu", "relu"), box, members)
    run = run_placement(problem, np.array([0, 1, 0]), is_pipelined=False)
    assert [copy.latency_fs for copy in run.copies] == [round((3e-6 + 1e-5) * FS_PER_S)] * 2
    assert not [line for line in run.lines if (line.component, line.action) == LINK_ACTION]
    narrow = attrs.evolve(memory, capacity=chip.number(1.0, "B"))
    with pytest.raises(UnsupportedError, match="the parts need"):
        run_placement(
            attrs.evolve(problem, box=attrs.evolve(box, memories=(narrow,))), np.array([0, 1, 0]), is_pipelined=False
        )


def test_another_precision_is_converted_by_who_receives_it() -> None:
    """2,048 B of fp32 are read and 1,024 of fp16 written at half of 100 GB/s."""
    box, (first, second) = toys()
    narrow = attrs.evolve(second, configuration=attrs.evolve(second.configuration, precision="fp16"))
    problem = build_problem(stages("gelu", "relu"), box, (first, narrow))
    run = run_placement(problem, np.array([0, 1, 0]), is_pipelined=False)
    plain = 1e-6 + 1e-5
    assert run.copies[0].latency_fs == round((plain + 2048e-9 + 3072 / 50e9) * FS_PER_S)
    assert run.copies[1].latency_fs == round((plain + 1024e-9 + 3072 / 50e9) * FS_PER_S)
    converted = [line for line in run.lines if line.action.startswith("convert_")]
    assert [(line.device, line.action_count) for line in converted] == [
        ("b", 2048.0), ("b", 1024.0), ("a", 1024.0), ("a", 2048.0)
    ]  # fmt: skip


def two_chips(model: str, batch: int = 1, card: str = "l4") -> tuple[Box, Problem]:
    known = load_catalogue().hardware
    names = ("epyc_9654", card)
    box = Box(
        id="two",
        name="two",
        devices=tuple(BoxDevice(name=name, hardware=name) for name in names),
        links=(link(*names, rate=25e9),),
    )
    members = tuple(member(known[name], name, precision="bf16") for name in names)
    return box, build_problem(shipped(model, batch), box, members)


@pytest.mark.slow
def test_scores_are_what_the_search_adds_up_and_many_a_second() -> None:
    _, problem = two_chips("resnet50")
    choice = choose(Aim(problem=problem, goal="latency", allowed=(0, 1)))
    assert choice is not None
    assert choice.gap < 0.1
    assert_close(float(add_up(problem, problem.seconds, problem.copy_s, choice.devices[None])[0]), choice.value)
    trials = np.random.default_rng(0).integers(0, 2, (2000, problem.node_count))
    costs: Floats = add_up(problem, problem.seconds, problem.copy_s, trials)
    assert (costs >= choice.value).all()
    makespans = find_makespan(problem, trials)
    assert (makespans <= costs * (1.0 + 1e-12)).all()
    assert (makespans >= choice.bound).all()
    taken = score(problem, trials).stages[:, :2].sum(axis=1) - problem.paced_s[
        np.arange(problem.node_count), trials
    ].sum(axis=1)
    ends = costs - add_up(problem, problem.seconds, problem.way_s, trials)
    assert np.allclose(taken, ends, rtol=1e-6, atol=0.0)


def test_throughput_is_never_below_its_bound_and_better_than_one_device() -> None:
    _, problem = two_chips("resnet50")
    choice = choose(Aim(problem=problem, goal="throughput", allowed=(0, 1)))
    assert choice is not None
    assert choice.bound <= choice.value
    assert choice.value < problem.paced_s.sum(axis=0).min()


def test_a_processor_that_computes_several_batches_at_once_is_busy_for_the_interval_alone() -> None:
    """Batches overlap on the cores of a processor: its part takes longer than the time between batches."""
    _, problem = two_chips("mobilenet_v2")
    devices = np.zeros(problem.node_count, dtype=np.int64)
    for overlaps in (True, False):
        run = run_placement(problem, devices, is_pipelined=overlaps)
        part, row = run.parts[0], list_devices(run, overlaps=overlaps)[0]
        assert part.interval_fs < part.latency_fs
        assert_close(row.busy_s * FS_PER_S, part.interval_fs if overlaps else part.latency_fs)
        assert_close(row.busy_fraction, 1.0)


def test_memory_decides_more_often_than_operations() -> None:
    """A card with room for half of the weights alone: the rest goes to the processor, as little as can be."""
    _, problem = two_chips("vgg16", card="h100_sxm5")
    best = list_candidates(problem, "latency")
    assert "h100_sxm5" in min(best, key=lambda one: one.value("latency")).label
    weights = problem.weight_bytes[:, 1].sum()
    small = attrs.evolve(
        problem.members[1].hardware,
        memory_capacity=chip.number(0.5 * weights + problem.activation_bytes[1], "B"),
    )
    tight = attrs.evolve(problem, members=(problem.members[0], attrs.evolve(problem.members[1], hardware=small)))
    found = list_candidates(tight, "latency")
    assert next(one for one in found if one.label == "h100_sxm5").refusal
    winner = min(found, key=lambda one: one.value("latency"))
    assert winner.label == "epyc_9654+h100_sxm5"
    assert winner.latency_s < next(one for one in found if one.label == "epyc_9654").latency_s


def test_every_box_that_ships_is_of_known_hardware() -> None:
    boxes = load_boxes()
    assert len(boxes) >= 12
    entries = load_catalogue().entries
    for box in boxes.values():
        for device in box.devices:
            assert find_entry(entries, device.hardware.partition("@")[0]).id
    names = [fold_name(name) for box in boxes.values() for name in (box.id, *box.aliases)]
    assert len({*names}) == len(names)
    assert not {*names} & {fold_name(name) for entry in entries.values() for name in entry.names}


def test_a_box_is_listed_and_shown(tmp_path: Path) -> None:
    listed = run_here(["hardware", "list", "--boxes", "--format", "json"], tmp_path, {})
    assert {row["box"] for row in json.loads(listed.stdout)} == {*load_boxes()}
    shown = json.loads(run_here(["hardware", "show", "dgx_h100", "--format", "json"], tmp_path, {}).stdout)
    assert (shown["parts"][0]["hardware"], shown["parts"][0]["alike_count"]) == ("h100_sxm5", 8)


@pytest.mark.slow
@pytest.mark.usefixtures("no_solver")
def test_orin_with_its_two_accelerators_beside_what_was_published(own_database: Path) -> None:
    """resnet50, int8, offline: 4,697 a second of the GPU, 6,438 with both DLAs.

    MLPerf Inference v3.0, cTuning (GPU) and NVIDIA (GPU and DLAs).
    """
    answer = Workspace(own_database).place(
        "resnet50",
        "jetson_agx_orin_module",
        settings=Settings(precision="int8", runtime="engine", batch=64),
        goal="throughput",
    )
    rates = {(row.placement, row.form): row.throughput_per_s for row in answer.rows}
    assert_close(rates["gpu", "alone"], 4697.31, rel=0.12)
    assert_close(rates["gpu+dla1+dla2", "side by side"], 6438.1, rel=0.1)
    assert answer.best.placement != "gpu"


def check_events(answer: PlaceAnswer) -> None:
    """One batch goes through its subgraphs and copies, and takes the latency of its placement."""
    ways = {(row.placement, row.form): row for row in answer.rows}
    for way in {(row.placement, row.form) for row in answer.timeline}:
        events = [row for row in answer.timeline if (row.placement, row.form) == way]
        assert events[0].start_s == 0.0
        assert round(max(one.end_s for one in events) * FS_PER_S) == round((ways[way].latency_s or 0.0) * FS_PER_S)
        assert sum(one.kind == "copy" for one in events) == ways[way].copy_count


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found without the extra."""
    monkeypatch.setattr(candidate, "has_solver", lambda: False)


@pytest.mark.usefixtures("no_solver")
@pytest.mark.slow
def test_placements_are_stored_with_ledgers_that_add_up_and_explain_the_difference(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "place.duckdb")
    settings = Settings(precision="int8", runtime="engine")
    answer = workspace.place("mobilenet_v2", "raspberry_pi_5_coral_hailo", settings=settings)
    stored = workspace.sql(
        "SELECT p.devices, p.form, p.energy_fj, sum(l.line_energy_fj) FROM placements AS p "
        "JOIN placement_ledger AS l USING (placement_id) GROUP BY ALL ORDER BY p.energy_fj"
    ).rows
    assert {(devices, form) for devices, form, *_ in stored} == {
        (row.placement, row.form) for row in answer.rows if not row.refusal
    }
    totals = {(devices, form): whole for devices, form, whole, _ in stored}
    assert all(whole == parts for _, _, whole, parts in stored)
    alone = next(row for row in answer.rows if row.form == "alone" and not row.refusal)
    mixed = next(row for row in answer.rows if row.form != "alone")
    difference = totals[mixed.placement, mixed.form] - totals[alone.placement, alone.form]
    assert sum(row.difference_fj for row in answer.differences) == difference
    assert sum(line.energy_fj for line in answer.ledger) == totals[answer.best.placement, answer.best.form]
    assert sum(row.first_fj for row in answer.differences) == totals[alone.placement, alone.form]
    check_events(answer)
    assert [one.name for one in draw_figures(answer)] == ["placement", "timeline", "timeline"]
    again = workspace.place("mobilenet_v2", "raspberry_pi_5_coral_hailo", settings=settings)
    assert again.rows.rows == answer.rows.rows
    assert len(workspace.sql("SELECT placement_id FROM placements").rows) == len(stored)
    assert not workspace.check().findings.rows


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["no_such_box"], "unknown box"),
        (["l4,t4"], "--on l4,t4 --link pcie4x16"),
        (["--on", "l4,l4", "--link", "shared"], "l4 twice"),
        (["--on", "l4,t4"], "--link"),
        (["--on", "l4,t4", "--link", "nvlink"], "unknown link 'nvlink'"),
        (["--on", "l4,t4", "--link", "8GB"], "unknown link '8GB'"),
        (["--on", "l4,t4", "--link", "a-t4=8GB/s"], "not one of the devices"),
        (["jetson_agx_orin_module", "--on", "l4"], "jetson_agx_orin_module, or devices"),
        (["--on", "l4,t4,epyc_9654", "--link", "l4-t4=8GB/s"], "no link joins epyc_9654"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(words: list[str], told: str, tmp_path: Path) -> None:
    done = run_here(["place", "resnet18", *words], tmp_path, {})
    assert done.returncode != 0
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_link_by_name_has_the_lower_bandwidth_of_its_ends() -> None:
    ends = [
        attrs.evolve(chip.cpu(), links=(Link(
            name="ring", connects="device", link_count=chip.number(1.0), bandwidth=chip.number(rate, "B/s"),
            latency=chip.number(1e-6, "s"), energy=chip.number(1e-11, "J/B"),
        ),))
        for rate in (3e9, 2e9)
    ]  # fmt: skip
    (joined,) = read_box("", ["a=toy,b=toy"], ["ring"], lambda names: ends[: len(names)]).links
    assert (joined.between, joined.name, joined.bandwidth.value) == (("a", "b"), "ring", 2e9)


def test_a_box_refuses_what_does_not_fit_together() -> None:
    device = BoxDevice(name="a", hardware="x")
    with pytest.raises(ValueError, match="is listed twice"):
        Box(id="b", name="b", devices=(device, device))
    with pytest.raises(ValueError, match="none of the devices"):
        Box(id="b", name="b", devices=(device,), links=(link("a", "c"),))
    with pytest.raises(ValueError, match="none of the box's memories"):
        Box(id="b", name="b", devices=(attrs.evolve(device, memory="m"),))


def test_devices_without_a_link_cannot_be_reached() -> None:
    box, members = toys()
    with pytest.raises(UsageError, match="no link joins"):
        find_ways(attrs.evolve(box, links=()), members)


@pytest.mark.slow
def test_a_solver_settles_a_pipeline_and_never_says_less_than_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("highspy")
    monkeypatch.setattr(solve, "TIME_LIMIT_S", 1.0)
    _, problem = two_chips("mobilenet_v2")
    for goal in GOALS:
        aim = Aim(problem=problem, goal=goal, allowed=(0, 1))
        choice = choose(aim)
        assert choice is not None
        further = improve(aim, choice)
        assert choice.bound <= further.bound <= further.value <= choice.value


def branches() -> tuple[Box, Problem]:
    """Return a stem and two heads on two toys."""
    box, members = toys()
    work = columns(Heads().to("meta"), torch.empty(BATCH, WIDTH, device="meta"))
    return box, build_problem(work, box, members)


@pytest.mark.parametrize("make", [posed, branches])
def test_what_is_chosen_is_the_best_of_all_and_no_bound_is_above_it(make: Callable[[], tuple[Box, Problem]]) -> None:
    """Three products on two toys, in a chain or as heads, with copies as dear as they are and nearly for nothing."""
    pytest.importorskip("highspy")
    _, real = make()
    quick = attrs.evolve(real, ways={pair: (attrs.evolve(way[0], latency_s=0.0),) for pair, way in real.ways.items()})
    for problem in (real, quick):
        trials = np.array(
            [one for one in itertools.product(range(2), repeat=3) if problem.can_run[range(3), one].all()]
        )
        for goal in GOALS:
            aim = Aim(problem=problem, goal=goal, allowed=(0, 1))
            choice = choose(aim)
            assert choice is not None
            least = float(aim.price(trials).min())
            assert_close(choice.value, least)
            assert choice.bound <= least * (1.0 + 1e-9)
            _, bound = solve_placement(aim, choice.devices)
            assert bound <= least * (1.0 + 1e-6)
            if make is posed:
                assert_close(bound, least, rel=2e-3)


def test_what_placements_share_does_not_part_them() -> None:
    """Half of 0.3 in common: they differ by 0.15 and 0.2 apart, a quarter; alike ones by nothing."""
    _, problem = posed()
    best, other = (
        Candidate(problem=problem, form="split", members=(0,), latency_s=seconds, interval_s=seconds, energy_j=seconds)
        for seconds in (1.0, 1.2)
    )
    shared: dict[tuple[str, ...], float] = {("board",): 0.3}
    errors = [shared | {("own", "a"): 0.15}, shared | {("own", "b"): 0.2}]
    doubts: list[PlacedDoubt] = [dict.fromkeys(GOALS, one) for one in errors]
    assert_close(half_width(doubts[0]["latency"]), (0.3**2 + 0.15**2) ** 0.5)
    assert_close(compare(best, other, doubts, "latency"), probability_better(1.2, 0.25))
    assert compare(best, other, [doubts[0], doubts[0]], "energy") == 1.0


def test_a_split_is_no_surer_than_its_parts_allow() -> None:
    """Two alike toys: a split is at most as unsure as they and its link are."""
    _, problem = posed()
    known = load_doubt()
    devices = [
        DoubtedDevice(
            position=0,
            latency_half_width=0.4,
            left_out_energy_half_width=None,
            power_half_width=0.3,
            power_group_count=None,
        )
    ] * 2
    found = list_candidates(problem, "latency")
    doubts = {one.form: doubt_placement(one, known, devices) for one in found if not one.refusal}
    assert_close(half_width(doubts["alone"]["latency"]), 0.4, rel=1e-9)
    widest = max(one.number_half_width for one in known.spreads)
    assert 0.2 < half_width(doubts["split"]["latency"]) < widest
    assert half_width(doubts["alone"]["energy"]) >= 0.5  # 0.4 of its time and 0.3 of its power
