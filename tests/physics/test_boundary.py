"""One boundary for all: what regulators lose, what the power limit says, and what is left of it at the chip."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import chip
from boundary_case import FJ_PER_J, line_fj, power_w, run_of, toy
from compare import assert_close
from joulemap.catalog.chip import load_text
from joulemap.catalog.hardware import LEAST_SHARE
from joulemap.catalog.load import find_hardware, load_catalogue
from joulemap.catalog.spread import load_spreads, scale_unattributed
from joulemap.catalog.starter import copy_text, minimal_text
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.physics.anchor import COPY, PRODUCT, find_anchor
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.calibration import scale_reference
from joulemap.physics.record.configuration import (
    LIMIT_SHARE,
    BoundaryName,
    Configuration,
)
from joulemap.physics.record.hardware import Hardware, Link
from joulemap.physics.record.reference import (
    ACTIVE_ACTION,
    BOARD,
    CLOCK_ACTION,
    CYCLE_ACTION,
    LOSS_ACTION,
    MEMORY_ACTION,
    OTHER_ACTION,
    STANDBY_ACTION,
    STATIC_ACTION,
    UNATTRIBUTED,
    cycle_action,
)
from joulemap.physics.run import RunColumns
from joulemap.plan.anchor import anchor_hardware, describe_probes
from joulemap.system.errors import CatalogueError
from models import shipped

CATALOGUE = load_catalogue().hardware


def anchored(hardware: Hardware, boundary: BoundaryName = "board") -> Hardware:
    return anchored_record(hardware).at_boundary(boundary, "1")


def energy_j(run: RunColumns) -> float:
    return int(run.ledger.energy_fj.sum()) / FJ_PER_J


def test_regulators_lose_their_share_of_what_actions_take_and_none_of_static_power() -> None:
    # 512 MiB at 0.4 nJ a byte, 0.12 J lost for each; 10 W of static power for the time of the bytes and 1 us
    run = run_of(toy(nj_per_byte=0.4, loss=0.12))
    delivered = 2 * 2**28 * 0.4e-9
    assert_close(line_fj(run, LOSS_ACTION) / FJ_PER_J, 0.12 * delivered)
    assert_close(energy_j(run), 1.12 * delivered + 10.0 * (2 * 2**28 / 50e9 + 1e-6))


def test_what_a_toy_does_not_explain_of_its_limit_has_a_price() -> None:
    # 50 GB/s at 0.4 nJ are 20 W, with static power 30 W of 100: 30 W are missing, some in the clocks of its units
    own = toy(nj_per_byte=0.4)
    assert_close(power_w(run_of(own)), 30.0, rel=1e-3)
    run = run_of(anchored(own))
    assert_close(power_w(run), 60.0, rel=1e-8)
    assert power_w(run) >= 60.0
    added = line_fj(run, MEMORY_ACTION) + line_fj(run, OTHER_ACTION)
    assert_close(added / FJ_PER_J, energy_j(run) / 2.0, rel=1e-3)
    only = attrs.evolve(own, peaks={"bf16": own.peaks["bf16"]})
    (memory, units, others) = find_anchor(only, describe_probes())
    copied = run_of(anchored(only), precision="bf16")
    assert (memory.key, units.key, others.key) == (MEMORY_ACTION, cycle_action("bf16"), OTHER_ACTION)
    assert_close(power_w(copied), 60.0, rel=1e-8)


def test_a_toy_that_draws_enough_in_a_copy_is_not_anchored_there() -> None:
    # 50 GB/s at 1.2 nJ are 60 W, with static power 70 W of 100
    own = toy(nj_per_byte=1.2)
    assert_close(power_w(run_of(own)), 70.0, rel=1e-3)
    assert MEMORY_ACTION not in {one.key for one in find_anchor(own, describe_probes())}
    assert line_fj(run_of(anchored(own)), MEMORY_ACTION) == 0


def test_a_product_is_anchored_at_each_precision_by_itself() -> None:
    # 32 MACs of a clock at fp32 and 10 W of 100: 4096^3 MACs wait for no memory
    own = toy(nj_per_byte=0.4)
    bounded = anchored(own)
    for precision in own.peaks:
        run = run_of(bounded, PRODUCT, precision)
        assert_close(power_w(run), 60.0, rel=1e-8 if precision == "bf16" else 1e-3)  # lanes have the least of theirs
        assert line_fj(run, cycle_action(precision)) > 0
        others = {cycle_action(other) for other in own.peaks} - {cycle_action(precision)}
        assert not any(line_fj(run, other) for other in others)


def test_the_price_is_of_clocks_so_that_a_slower_clock_draws_less() -> None:
    slow = anchored(toy(nj_per_byte=0.4))
    prices = {one.key: one for one in slow.reference}
    halved = chip.bound(anchored_record(toy(nj_per_byte=0.4)), "500MHz", "board")
    assert halved.reference.position(cycle_action("fp32")) is not None
    for key in (cycle_action("fp32"), MEMORY_ACTION):
        row = halved.reference.position(key)
        assert row is not None
        assert halved.reference.prices_fj[row] == prices[key].energy_per_action_fj
    assert power_w(run_of(halved, PRODUCT)) < power_w(run_of(slow, PRODUCT))
    # a copy off the chip takes as long at half the clock: half as many clocks
    assert_close(line_fj(run_of(halved), MEMORY_ACTION) / line_fj(run_of(slow), MEMORY_ACTION), 0.5)


def test_a_card_paced_by_its_own_memory_draws_less_at_a_lower_clock() -> None:
    card, work = anchored_record(CATALOGUE["cloud_ai_100_pro"]), shipped("resnet18")
    asked = Configuration(hardware=card.id, precision="int8", runtime="fused")
    runs = [evaluate(work, chip.bound(card, f"{clock}MHz", "board"), asked) for clock in (600, 800, 1000, 1200)]
    watts = [run.energy_fj / run.interval_fs for run in runs]
    assert watts == sorted(watts)


def test_at_the_chip_lines_of_the_board_are_left_out_and_no_time_differs() -> None:
    # at 60 W a limit of 50 W gives way in both: what is left out still draws
    own = toy(nj_per_byte=0.4, loss=0.12)
    limited = attrs.evolve(anchored(own), tdp=chip.number(50.0, "W"))
    bare = attrs.evolve(anchored(own, "chip"), tdp=chip.number(50.0, "W"))
    for operator in (COPY, PRODUCT):
        board, inside = run_of(limited, operator), run_of(bare, operator)
        assert np.array_equal(board.operators.latency_fs, inside.operators.latency_fs)
        assert board.clock_fraction == inside.clock_fraction < 1.0
        keys = [action.key for action in limited.reference]
        kept = [index for index, key in enumerate(keys) if key[0] != "board"]
        inner = np.isin(board.ledger.action_index, kept)
        assert board.ledger.energy_fj[inner].sum() == inside.ledger.energy_fj.sum() < board.ledger.energy_fj.sum()
        assert power_w(board) <= 50.0 * (1.0 + 1e-6)


def test_a_chip_that_uses_its_hosts_memory_is_not_anchored_by_a_copy() -> None:
    own = toy(nj_per_byte=0.4)
    link = Link(
        name="pcie",
        connects="host",
        link_count=chip.number(1.0),
        bandwidth=attrs.evolve(own.memory_bandwidth),
        latency=chip.number(1e-6, "s"),
        energy=chip.number(80e-12, "J/B"),
    )
    assert MEMORY_ACTION not in {one.key for one in find_anchor(attrs.evolve(own, links=(link,)), describe_probes())}


def test_a_calibration_scales_what_is_unattributed() -> None:
    own = anchored_record(toy(nj_per_byte=0.4))
    (scale,) = scale_unattributed(own.reference)
    assert {MEMORY_ACTION, OTHER_ACTION, cycle_action("fp32")} < set(scale.scale.actions)
    assert LOSS_ACTION not in scale.scale.actions
    halved = attrs.evolve(scale.scale, factor=0.5)
    found = scale_reference(own.reference, (halved,), "made up")
    for before, after in zip(own.reference, found, strict=True):
        factor = 0.5 if before.key in halved.actions else 1.0
        assert after.energy_per_action_fj == factor * before.energy_per_action_fj
    assert scale_unattributed(CATALOGUE["h200_sxm"].reference) == ()
    assert scale_reference(toy(nj_per_byte=0.4).reference, (halved,), "made up").position(MEMORY_ACTION) is None


def test_one_factor_scales_all_that_counts_the_time_of_a_running_board() -> None:
    for name in ("rtx_5090", "rx_7900_xtx", "l40s"):
        hardware = anchor_hardware(find_hardware(name))
        scales = {one.scale.name: set(one.scale.actions) for one in load_spreads("gpu").within(hardware).energy_scales}
        assert scales[UNATTRIBUTED] == {CYCLE_ACTION, ACTIVE_ACTION, CLOCK_ACTION, STANDBY_ACTION}


def anchored_record(hardware: Hardware) -> Hardware:
    return hardware.anchored(find_anchor(hardware, describe_probes()))


def test_prices_fitted_to_boards_lose_to_regulators_what_is_taken_out_of_them() -> None:
    # of 1.12 J at the board 1 J is delivered: every price is 1 / 1.12 of what was fitted, and regulators are 0.12 of it
    for name in ("h200_sxm", "mi300x", "rtx_4090"):
        run = evaluate(shipped("resnet18"), CATALOGUE[name], Configuration(hardware=name))
        static, loss = line_fj(run, STATIC_ACTION), line_fj(run, LOSS_ACTION)
        delivered = int(run.ledger.energy_fj.sum()) - static - loss
        assert_close(loss / delivered, 0.12, rel=1e-6)


def test_the_residual_of_a_gpu_falls_with_its_voltage_and_is_in_the_chip() -> None:
    # 559 pJ a clock at 7 nm, less what regulators lose; 900 MHz are below the knee, where the voltage is 0.763
    residual = (BOARD, "unattributed_product_cycle")
    hardware = CATALOGUE["a100_pcie_40gb"]
    position = hardware.reference.position(residual)
    assert position is not None
    row = hardware.reference.actions[position]
    assert (row.category, row.common_category, row.follows_voltage, row.is_on_board) == (
        UNATTRIBUTED,
        UNATTRIBUTED,
        True,
        False,
    )
    assert_close(row.energy_per_action_fj, 559e3 / 1.12)
    runs = {
        boundary: evaluate(
            shipped("resnet18"), chip.bound(hardware, "900MHz", boundary), Configuration(hardware=hardware.id)
        )
        for boundary in ("chip", "board")
    }
    slow = runs["board"]
    lines = slow.ledger.action_index == position
    counted = float(slow.ledger.action_count[lines].sum()) * row.energy_per_action_fj
    assert_close(line_fj(slow, residual) / counted, 0.763**2, rel=1e-6)
    assert line_fj(runs["chip"], residual) == line_fj(slow, residual)
    lost = line_fj(slow, LOSS_ACTION)
    assert int(slow.ledger.energy_fj.sum()) - int(runs["chip"].ledger.energy_fj.sum()) == lost


@pytest.mark.sample(2)
@pytest.mark.parametrize("architecture", CLASS_HARDWARE)
def test_energy_of_an_own_chip_does_not_follow_its_power_limit(architecture: str) -> None:
    # static power is stated, so that a limit three times as high changes no price and no action
    energies = []
    for text in (copy_text(CLASS_HARDWARE[architecture]), minimal_text(architecture)):
        own = load_text(text, "mine.toml")
        static = attrs.evolve(own.static_power, value=own.tdp.value / 100.0)
        for factor in (1.0, 3.0):
            limit = attrs.evolve(own.tdp, value=own.tdp.value * factor)
            stated = attrs.evolve(
                own,
                tdp=limit,
                static_power=static,
                reference=own.reference.with_static(static),
                coefficients={**own.coefficients, "cap_share": chip.number(1.0)},
                digest=f"{own.digest} at {limit.value}",
            )
            bounded = chip.bound(anchor_hardware(stated), "default", "board")
            configuration = Configuration(hardware=own.id, precision=next(iter(own.peaks)))
            run = evaluate(shipped("mobilenet_v2"), bounded, configuration)
            if run.clock_fraction == 1.0:
                energies.append(int(run.ledger.energy_fj.sum()))
    assert energies
    assert len({*energies}) <= 2  # one of each text


@pytest.mark.slow
def test_a_copy_of_a_board_carries_neither_its_limit_nor_its_measured_load() -> None:
    for name in ("hailo_8", "jetson_agx_orin_cpu", "dpu_b4096x3_zcu102", "tpu_v4"):
        own = load_text(copy_text(name), "mine.toml")
        assert LIMIT_SHARE in CATALOGUE[name].coefficients and LIMIT_SHARE not in own.coefficients
        assert own.loads == ()
        assert find_anchor(own, describe_probes()) == ()


def test_an_own_board_that_is_sold_says_so() -> None:
    text = copy_text("tpu_v4")
    sold = load_text(text.replace("# works_at_limit = true", "works_at_limit = true"), "mine.toml")
    assert sold.coefficients[LIMIT_SHARE] == LEAST_SHARE
    assert {row.key for row in find_anchor(sold, describe_probes())} == {
        row.key for row in find_anchor(CATALOGUE["tpu_v4"], describe_probes())
    }
    for wrong, reason in (
        (copy_text("l4").replace("\n[sources]", "works_at_limit = true\n\n[sources]", 1), "fitted to board power"),
        (text.replace("# works_at_limit = true", 'works_at_limit = "yes"'), "expected true or false"),
    ):
        with pytest.raises(CatalogueError, match=reason):
            load_text(wrong, "mine.toml")
