"""The computer that a chip or card sits in: its watts in energies and budgets, and who needs one."""

from __future__ import annotations

import json

import attrs
import pytest

import chip
from compare import assert_close
from conftest import Run
from joulemap.catalog.family import load_member
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.surrounding import explain_missing, find_surrounding
from joulemap.domain.host import is_part, suggest_host
from joulemap.domain.operator.name import find_operator
from joulemap.domain.settings import Settings
from joulemap.physics.pipeline import evaluate
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.reference import HOST_ACTION
from joulemap.physics.run import RunColumns
from joulemap.physics.workload import columns_of
from joulemap.plan.budget import InHost
from joulemap.plan.calibration import CalibrationUse
from joulemap.plan.selection import select_hardware
from joulemap.system.errors import UsageError
from joulemap.trace.single import describe
from joulemap.workspace import Workspace
from models import KEY

CATALOGUE = load_catalogue().hardware
HOST = CATALOGUE["raspberry_pi_5"]


def test_a_card_is_suggested_a_computer_that_has_its_slot() -> None:
    """A card of 16 lanes sits in a server; a module or stick may sit in a small board."""
    needing = {name: one.needs_host for name, one in CATALOGUE.items() if one.needs_host}
    assert len(needing) >= 16
    for name, slot in needing.items():
        host = CATALOGUE.get(suggest_host(slot)) or load_member(suggest_host(slot))
        if is_part(slot):
            assert (host.needs_host, host.deployment) == ("", CATALOGUE[name].deployment)
            continue
        assert (host.architecture, host.needs_host, host.is_launched) == ("cpu", "", False)
        if slot.startswith("PCIe"):
            assert "datacenter" in host.deployment, name


def test_every_card_of_a_server_needs_its_host() -> None:
    """Cards of one form are compared alike: `--site host` adds a computer to each of them or to none."""
    alone = {name for name, one in CATALOGUE.items() if find_form(one) == "card_server" and not one.needs_host}
    assert alone == {"inferentia2"}  # sold inside servers only
    assert {CATALOGUE[name].needs_host for name in ("l4", "l40s", "a40", "h100_pcie", "mi210")} == {"PCIe slot"}


def find_form(hardware: Hardware) -> str:
    return "" if explain_missing(hardware) else find_surrounding(hardware).name


RELU = "elementwise(kind=relu,elements=1048576)"
FJ_PER_J = 1e15


def run_of(hardware: Hardware) -> RunColumns:
    found = find_operator(RELU)
    assert found is not None
    return evaluate(
        columns_of(describe(found, 1, KEY)),
        hardware,
        Configuration(hardware="toy", precision="fp32", runtime="graph"),
    )


def test_a_host_draws_its_static_power_for_as_long_as_the_run_lasts() -> None:
    own = attrs.evolve(chip.cpu(), needs_host="PCIe slot")
    alone, hosted = run_of(own), run_of(own.with_host(HOST, is_counted=True))
    seconds = int(alone.operators.interval_fs.sum()) / FJ_PER_J
    row = hosted.hardware.reference.position(HOST_ACTION)
    line_fj = int(hosted.ledger.energy_fj[hosted.ledger.action_index == row].sum())
    assert_close(line_fj / FJ_PER_J, 3.25 * seconds)
    assert hosted.energy_fj - alone.energy_fj == line_fj
    assert hosted.latency_fs == alone.latency_fs
    assert hosted.clock_fraction == alone.clock_fraction
    action = hosted.hardware.reference.actions[row or 0]
    assert (action.common_category, action.basis) == ("static", HOST.static_power.basis)


def test_only_what_needs_a_host_is_put_in_one() -> None:
    asked = Settings(hardware=("jetson_orin_nano_8gb", "l4"), host="raspberry_pi_5")
    hosts = select_hardware(asked).hosts
    assert set(hosts) == {"l4"}
    use = CalibrationUse("none")
    plain = use.target(CATALOGUE["l4"], "default", "board")
    hosted = plain.modified(hosts["l4"].modifier(use, "board"))
    assert hosted.bind(CATALOGUE["l4"]).host == HOST.id
    assert hosted.digest != plain.digest


def test_a_part_of_a_module_runs_with_its_module_whatever_the_host() -> None:
    asked = Settings(hardware=("jetson_orin_nx_dla", "rv1126b_npu", "hailo_8"), host="raspberry_pi_5")
    hosts = {name: (host.entry.id, host.is_counted) for name, host in select_hardware(asked).hosts.items()}
    assert hosts == {
        "jetson_orin_nx_dla": ("jetson_orin_nx_16gb", True),
        "rv1126b_npu": ("raspberry_pi_zero_2_w", True),
        "hailo_8": ("raspberry_pi_5", True),
    }


def test_a_host_launches_at_its_own_pace() -> None:
    # a call takes a thread 98,000 clocks: 26.49 us at the 3.7 GHz of an EPYC 9654, 24.5 us where it was measured
    own = CATALOGUE["h200_sxm"]
    hosted = own.with_host(CATALOGUE["epyc_9654"], is_counted=False)
    assert_close(hosted.coefficient("host_launch"), 98_000 / 3.7e9)
    assert hosted.host == "epyc_9654"
    assert hosted.reference == own.reference
    configuration = Configuration(hardware="h200_sxm", precision="fp32", runtime="eager")
    found = find_operator("elementwise(kind=relu,elements=64)")
    assert found is not None
    work = columns_of(describe(found, 1, KEY))
    slower = [evaluate(work, one, configuration).latency_fs for one in (hosted, own)]
    assert_close((slower[0] - slower[1]) / FJ_PER_J, 98_000 / 3.7e9 - 24.5e-6, rel=1e-6)


def test_a_host_sets_the_pace_of_what_it_launches_where_it_calls() -> None:
    asked = Settings(hardware=("jetson_orin_nano_8gb", "l4", "h200_sxm"), host="epyc_9654")
    assert set(select_hardware(asked).hosts) == {"l4"}
    hosts = select_hardware(attrs.evolve(asked, runtime=("eager",))).hosts
    assert {name: one.is_counted for name, one in hosts.items()} == {"l4": True, "h200_sxm": False}


def test_a_host_counts_within_a_power_budget() -> None:
    # 8.65 W of a Hailo-8 and 3.25 W of a Raspberry Pi 5 are 11.9 W
    asked = Settings(hardware=("hailo_8", "coral_edge_tpu"), power_budget_w=10.0)
    assert {entry.id for entry, _ in select_hardware(asked).pairs} == {"hailo_8", "coral_edge_tpu"}
    found = select_hardware(attrs.evolve(asked, host="Pi5"))
    assert {entry.id for entry, _ in found.pairs} == {"coral_edge_tpu"}
    (excess,) = found.left_out.values()
    assert (round(excess.least_w, 2), excess.has_host) == (11.9, True)
    assert found.hosts["coral_edge_tpu"].is_counted
    assert len(select_hardware(attrs.evolve(asked, host="Pi5", power_budget_w=12.0)).pairs) == 2


def test_a_part_counts_with_its_module_within_a_power_budget() -> None:
    # 4 W of a DLA and 5.7 W of the module around it are 9.7 W
    asked = Settings(hardware=("jetson_orin_nx_dla", "ax630c_npu"), power_budget_w=9.6)
    excess = select_hardware(asked).left_out["jetson_orin_nx_dla"]
    assert (round(excess.least_w, 2), excess.has_host) == (9.7, True)
    assert len(select_hardware(attrs.evolve(asked, power_budget_w=9.8)).pairs) == 2


@pytest.mark.parametrize(("chip", "host"), [
    ("apple_m4_neural_engine[memory_capacity=24GB]", "apple_m4_cpu"),  # a variant has the host of its chip
    ("apple_m3_pro_neural_engine", "apple_m3_pro_cpu"),  # the processor of its own SoC, not of a similar one
    ("arrow_lake_npu", "core_ultra_9_285h"), ("hailo_8[tdp=4W]", "raspberry_pi_5"),
])  # fmt: skip
def test_what_a_compiler_leaves_out_runs_on_the_processor_beside_it(chip: str, host: str) -> None:
    selection = select_hardware(Settings(hardware=(chip,)))
    assert {one.entry.id for one in selection.hosts.values()} == {host}
    ((entry, mode),) = selection.pairs
    target = selection.target(entry, mode, CalibrationUse(), "board")
    assert any(isinstance(one, InHost) for one in target.modifiers)


def test_what_needs_a_host_is_none() -> None:
    with pytest.raises(UsageError, match="needs a host itself"):
        select_hardware(Settings(hardware=("hailo_8",), host="l4"))


@pytest.mark.slow
def test_runs_in_a_host_are_runs_of_their_own(workspace: Workspace) -> None:
    asked = Settings(hardware=("hailo_8", "jetson_orin_nano_8gb"), precision=("int8",), runtime=("engine",))
    workspace.compare("mobilenet_v2", asked)
    answer = workspace.compare("mobilenet_v2", attrs.evolve(asked, host="raspberry_pi_5"))
    assert answer.scope.hosts == {"hailo_8": HOST.id}
    rows = workspace.sql(
        "SELECT hardware, host, latency_s, energy_j, interval_s FROM runs WHERE runtime = 'engine' ORDER BY ALL"
    ).rows
    assert [row[:2] for row in rows] == [("hailo_8", ""), ("hailo_8", HOST.id), ("jetson_orin_nano_8gb", "")]
    (_, _, latency, energy, interval), (_, _, latency_hosted, energy_hosted, _) = rows[:2]
    assert latency < latency_hosted  # a Raspberry Pi 5 has one lane
    assert_close(energy_hosted - energy, 3.25 * interval)
    assert not workspace.check().findings


def test_lists_say_who_needs_a_host(joulemap: Run) -> None:
    rows = json.loads(joulemap("hardware", "list", "--format", "json").stdout)
    needs = {row["hardware"]: row["needs_host"] for row in rows}
    assert needs["hailo_8"] == "M.2 slot"
    assert needs["jetson_orin_nano_8gb"] == ""
    assert "M.2 slot" in joulemap("hardware", "show", "hailo_8").stdout


@pytest.mark.slow
def test_a_host_is_set_as_any_constant_and_what_it_computes_with_is_not(workspace: Workspace) -> None:
    asked = Settings(hardware=("hailo_8",), precision=("int8",), runtime=("engine",), host="raspberry_pi_5")
    workspace.compare("mobilenet_v2", asked)
    workspace.compare("mobilenet_v2", attrs.evolve(asked, changes={"host.static_power": "6W"}))
    (plain, interval), (raised, _) = workspace.sql(
        "SELECT energy_j, interval_s FROM runs WHERE host <> '' AND hardware = 'hailo_8' ORDER BY energy_j"
    ).rows
    # 6 W in place of 3.25 W, for as long as an interval lasts
    assert_close(raised - plain, (6.0 - 3.25) * interval)
    with pytest.raises(UsageError, match="no constant"):
        workspace.compare("mobilenet_v2", attrs.evolve(asked, changes={"host_l1.read": "1pJ"}))


def test_what_a_host_launches_is_no_host() -> None:
    with pytest.raises(UsageError, match="h100_sxm5"):
        select_hardware(Settings(hardware=("l4",), host="h100_sxm5"))
