"""Models that a chip's compiler does not run whole: where they are cut, and what both parts take together."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import chip
from compare import assert_close
from fallback_case import BATCH, WIDTH, card, compiler, stages
from joulemap.ask.rule import name_excess
from joulemap.catalog.family import list_members
from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.generated.run import Fallback
from joulemap.physics.fallback import find_fallen
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import HOST_ACTION, STATIC_ACTION, ActionKey
from joulemap.physics.run import RunColumns
from joulemap.physics.variation import Varied
from joulemap.physics.workload import WorkloadColumns
from joulemap.system.errors import UnsupportedError
from joulemap.system.units import FJ_PER_J, FS_PER_S
from joulemap.workspace import Workspace

HIDDEN_BYTES = 4 * BATCH * WIDTH


def run_of(work: WorkloadColumns, hardware: Hardware, runtime: str = "engine") -> RunColumns:
    return evaluate(work, hardware, Configuration(hardware=hardware.id, runtime=runtime))


def line(run: RunColumns, key: ActionKey) -> tuple[float, int]:
    """Return (count, fJ) of an action."""
    is_it = run.ledger.action_index == run.hardware.reference.position(key)
    return float(run.ledger.action_count[is_it].sum()), int(run.ledger.energy_fj[is_it].sum())


@pytest.mark.parametrize(
    ("cut", "fallen"),
    [
        ("each", ["gelu", "gelu"]),
        ("first", ["gelu", "linear", "relu", "linear", "gelu", "linear"]),
        ("stretch", ["linear", "gelu", "gelu", "linear"]),
    ],
)
def test_a_compiler_cuts_where_its_documentation_says(cut: str, fallen: list[str]) -> None:
    # linear gelu | linear relu linear | gelu linear: two products in the middle, one at either end
    work = stages("gelu", "relu", "gelu")
    assert work.operation[find_fallen(work, compiler(cut))].tolist() == fallen


def test_what_crosses_is_written_by_one_part_and_read_by_the_other() -> None:
    work = stages("gelu")
    whole, parts = run_of(work, attrs.evolve(card(), compiler=None)), run_of(work, card())
    # the product hands its result to the host in place of the activation in its own kernel: one write and one read more
    extra = parts.operators.moved_bytes.sum() - whole.operators.moved_bytes.sum()
    assert extra == 2 * HIDDEN_BYTES
    assert parts.subgraphs.kernel_count.tolist() == [2, 1]
    # off chip, where the weights stay in its cache: input and output, and what leaves for the host and comes back
    assert parts.operators.dram_bytes.sum() == 4 * HIDDEN_BYTES
    assert parts.mac_count == whole.mac_count == 2 * BATCH * WIDTH**2


def test_parts_add_up_and_leak_for_all_of_the_time() -> None:
    for is_counted in (False, True):
        run = run_of(stages("gelu", "relu"), card(is_counted=is_counted))
        assert run.latency_fs == int(run.operators.latency_fs.sum())
        assert np.all(np.diff(run.operators.operator_index) > 0)
        pairs = list(zip(run.ledger.operator_index.tolist(), run.ledger.action_index.tolist(), strict=True))
        assert pairs == sorted(set(pairs))
        seconds = run.interval_fs / FS_PER_S
        count, energy_fj = line(run, STATIC_ACTION)
        assert_close(count, seconds)
        assert_close(energy_fj / FJ_PER_J, 1.0 * seconds)
        assert_close(line(run, HOST_ACTION)[0], seconds if is_counted else 0.0)
    prices = run.hardware.reference.prices_fj
    exact = run.ledger.action_count * np.array(prices)[run.ledger.action_index]
    assert np.abs(run.ledger.energy_fj - exact).max() <= 0.5


def test_static_energy_beyond_the_store_is_refused() -> None:
    own = card()
    bandwidth = attrs.evolve(own.memory_bandwidth, value=own.memory_bandwidth.value / 1000.0)
    slow = attrs.evolve(chip.cpu(), id="host", memory_bandwidth=bandwidth)
    prices = tuple(
        attrs.evolve(one, energy_per_action_fj=5e23 if one.key == STATIC_ACTION else one.energy_per_action_fj)
        for one in own.reference.actions
    )
    hot = attrs.evolve(own, reference=attrs.evolve(own.reference, actions=prices))
    run_of(stages("gelu"), hot)
    with pytest.raises(UnsupportedError, match="one ledger line exceeds 9223 J"):
        run_of(stages("gelu"), attrs.evolve(hot, helper=slow))


def test_the_host_takes_what_it_takes_by_itself() -> None:
    work = stages("gelu")
    run = run_of(work, card())
    is_host = np.isin(run.operators.operator_index, np.flatnonzero(work.operation == "gelu"))
    # 512 elements of 4 bytes read and written at 50 GB/s take less than the 1 us of the launch beside them
    (latency_fs,) = run.operators.latency_fs[is_host]
    assert 1e-6 < latency_fs / FS_PER_S < 3e-6
    assert run.operators.dram_bytes[is_host].tolist() == [0.0]
    lines = np.isin(run.ledger.operator_index, run.operators.operator_index[is_host])
    actions = [run.hardware.reference.actions[at] for at in run.ledger.action_index[lines]]
    assert {action.category for action in actions if action.key != STATIC_ACTION} == {"host"}
    others = [run.hardware.reference.actions[at] for at in run.ledger.action_index[~lines]]
    assert "host" not in {action.category for action in others}


def test_nothing_is_saved_where_nothing_is_fused() -> None:
    run = run_of(stages("gelu"), card(is_counted=True), "graph")
    energy = np.zeros(int(run.operators.operator_index.max()) + 1, dtype=np.int64)
    np.add.at(energy, run.ledger.operator_index, run.ledger.energy_fj)
    assert energy[run.operators.operator_index].tolist() == run.operators.separate_energy_fj.tolist()


def test_a_model_that_a_compiler_runs_is_as_without_one() -> None:
    work = stages("relu")
    own = attrs.evolve(chip.cpu(), compiler=compiler())
    whole = run_of(work, chip.cpu())
    for hardware in (own, card()):
        run = run_of(work, hardware)
        assert (run.energy_fj, run.latency_fs) == (whole.energy_fj, whole.latency_fs)


def fallen(run_id: int, hardware: str, share: float, operation: str = "gelu", limits: tuple[str, ...] = ()) -> Fallback:
    return Fallback(
        run_id=run_id, configured_hardware=hardware, compiler="Toy", cut="each", helper="xeon_8490h",
        operation=operation, is_compiled=bool(limits), operator_count=1, latency_s=1.0, latency_fraction=share,
        energy_fraction=share / 2.0, first_operator_index=0, limits=list(limits), ranks=[4],
        arguments=["kernel=[3, 3] stride=[2, 2]", "kernel=[16, 16] stride=[16, 16]"],
    )  # fmt: skip


def test_the_limit_that_an_operator_exceeds_is_named() -> None:
    row = fallen(1, "npu", 0.5, "conv2d", ("conv.conv2d kernel=1-31 stride=1-7",))
    assert "conv2d of stride 16 (limit 1-7)" in name_excess(row)
    assert name_excess(fallen(1, "npu", 0.5)) == ""


def test_what_cannot_be_compiled_is_refused_by_the_name_of_the_operator() -> None:
    alone = attrs.evolve(chip.cpu(), compiler=compiler(host=""))
    with pytest.raises(UnsupportedError, match="Toy does not run gelu, and no host is set as the fallback"):
        run_of(stages("gelu"), alone)
    no_product = attrs.evolve(card("first"), compiler=attrs.evolve(compiler("first"), operators=("relu",)))
    with pytest.raises(UnsupportedError, match="does not run linear, and keeps only operators before it: no GEMM"):
        run_of(stages("gelu"), no_product)


def test_variations_take_what_runs_take() -> None:
    for is_counted in (False, True):
        hardware = card(is_counted=is_counted)
        run = run_of(stages("gelu", "relu"), hardware)
        totals = Varied.of(stages("gelu", "relu"), "fp32", "engine").evaluate(hardware)
        assert_close(totals.energy_j, run.energy_fj / FJ_PER_J)
        assert_close(totals.latency_s, run.latency_fs / FS_PER_S)
        assert_close(totals.interval_s, run.interval_fs / FS_PER_S)


@pytest.mark.slow
def test_chips_of_the_catalogue_leave_what_their_documentation_leaves(tmp_path_factory: pytest.TempPathFactory) -> None:
    workspace = Workspace(tmp_path_factory.mktemp("fallback") / "a.duckdb")
    chips = ("hailo_8", "coral_edge_tpu", "dpu_b4096_kv260", "tda4vm_c7x_mma", "qrb5165_hexagon698")
    asked = Settings(hardware=chips, precision=("int8",), runtime=("engine",), host="raspberry_pi_5")
    fallen: dict[str, set[str]] = {}
    for model in ("resnet50", "vit_b_16"):
        answer = workspace.compare(model, asked)
        found = {row.configured_hardware for row in answer.scope.reading.fallen}
        fallen[model] = found
        for row in answer.scope.reading.fallen:
            assert 0.0 < row.latency_fraction < 1.0
    assert fallen["resnet50"] == set()
    assert fallen["vit_b_16"] == {"coral_edge_tpu", "dpu_b4096_kv260", "qrb5165_hexagon698"}
    assert not workspace.check().findings
    rows = workspace.sql(
        "SELECT r.energy_j, sum(l.line_energy_j) FROM runs AS r JOIN energy_ledger AS l USING (run_id) GROUP BY ALL"
    ).rows
    for energy, lines in rows:
        assert_close(float(energy), float(lines))


def test_every_name_of_a_list_is_one_that_a_trace_may_have() -> None:
    for hardware in load_catalogue().hardware.values():
        if hardware.compiler is not None:
            assert len(set(hardware.compiler.operators)) == len(hardware.compiler.operators)
            host = hardware.compiler.host.partition("@")[0]
            assert host in {"", *load_catalogue().hardware, *list_members()}
    with pytest.raises(ValueError, match="is none of"):
        attrs.evolve(compiler(), operators=("convolution.conv2d",))
