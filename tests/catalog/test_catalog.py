"""The numbers that ship: all readable, all with a source, scaled as stated."""

from __future__ import annotations

import math
import re
import tomllib

import attrs
import pytest

from compare import assert_close
from joulemap.catalog.chip import list_architectures, load_class, load_text
from joulemap.catalog.digest import DATA, catalogue_digest
from joulemap.catalog.family import load_listed
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.parser import read_file
from joulemap.catalog.reference import node_factor
from joulemap.catalog.schema import CoefficientTableEntry, ColumnEntry, HardwareFile
from joulemap.catalog.sheet import load_assumptions, load_models, load_regions, load_scenarios
from joulemap.domain.catalogue import DEFAULT_HARDWARE
from joulemap.physics.record.configuration import PRECISION_BYTES
from joulemap.physics.record.hardware import TOLERANCE, Hardware
from joulemap.physics.record.quantity import BASES, Quantity, least_sure
from joulemap.physics.record.reference import LOSS_ACTION, PARTS, STATIC_ACTION, EnergyAction
from joulemap.system.errors import UnknownNameError
from sample import each
from tools.manual import read_manual

ALL = list(load_catalogue().hardware.values())


def names(hardware: Hardware) -> str:
    return hardware.id


def action(hardware: Hardware, component: str, verb: str) -> EnergyAction:
    (priced,) = (one for one in hardware.reference if one.key == (component, verb))
    return priced


@pytest.mark.parametrize(
    ("from_nm", "to_nm", "expected"),
    [
        # (7 / 45)^0.57 = exp(-0.57 x 1.8608) = exp(-1.0606)
        (45.0, 7.0, 0.34622),
        # exp(-0.57 x ln(16 / 7)) = exp(-0.57 x 0.82668)
        (16.0, 7.0, 0.62424),
        (7.0, 7.0, 1.0),
        (7.0, 5.0, 0.70),
        (7.0, 4.0, 0.65),
        (7.0, 3.0, 0.48),
        (5.0, 3.0, 0.48 / 0.70),
    ],
)
def test_energy_scales_between_nodes(from_nm: float, to_nm: float, expected: float) -> None:
    assert_close(node_factor(from_nm, to_nm), expected, rel=1e-4)


@pytest.mark.parametrize("circuit", ["logic", "sram"])
def test_a_finer_node_never_costs_more(circuit: str) -> None:
    nodes = [3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 6.9, 7.0, 8.0, 10.0, 16.0, 28.0, 65.0]
    factors = [node_factor(7.0, node, circuit) for node in nodes]
    assert factors == sorted(factors)


def test_sram_stops_scaling_at_5_nm() -> None:
    # sqrt(0.021 / 0.027) = 0.8819: the edge of a bit cell, which is no smaller at 3 nm
    for node in (5.0, 4.0, 3.0):
        assert_close(node_factor(7.0, node, "sram"), 0.8819, rel=1e-4)
    assert_close(node_factor(28.0, 7.0, "sram"), node_factor(28.0, 7.0))


def test_no_on_chip_memory_priced_by_circuits_scales_as_logic() -> None:
    for architecture in set(list_architectures()) - {"gpu"}:
        for action in load_class(architecture, "").actions:
            is_memory = action.common_category in ("unit_memory", "chip_memory")
            if is_memory and action.action != "arbitrate":
                assert action.scaling != "logic", f"{architecture} {action.component}.{action.action}"


def test_narrower_operands_never_cost_more_on_tensor_cores() -> None:
    order = ("int4_mac", "int8_mac", "fp8_mac", "bf16_mac", "fp16_mac", "tf32_mac")
    for hardware in ALL:
        if hardware.architecture == "gpu":
            prices = {
                one.action: one.energy_per_action_fj for one in hardware.reference if one.component == "tensor_core"
            }
            energies = [prices[name] for name in order]
            assert energies == sorted(energies), hardware.id
            # a MAC of fp8 takes 1.5 to 2.8 times one of int8 in dedicated hardware (arXiv:2303.17951)
            assert 1.5 <= prices["fp8_mac"] / prices["int8_mac"] <= 2.85, hardware.id


@pytest.mark.parametrize("node_nm", [2.0, 2.99, 65.1, 90.0])
def test_a_node_outside_the_fitted_range_is_refused(node_nm: float) -> None:
    with pytest.raises(ValueError, match="outside 3 to 65 nm"):
        node_factor(7.0, node_nm)


def test_every_data_file_becomes_a_hardware() -> None:
    files = {path.stem for path in (DATA / "hardware").glob("*.toml")}
    assert {hardware.id for hardware in ALL} == files | {hardware.id for hardware in load_listed()}
    assert set(DEFAULT_HARDWARE) <= files


def test_the_default_chips_are_of_four_classes_and_projections_are_last() -> None:
    chosen = [load_catalogue().find(name) for name in DEFAULT_HARDWARE]
    assert [hardware.is_available for hardware in chosen] == [True, True, True, True, False]
    assert {hardware.architecture for hardware in chosen} == {"cpu", "gpu", "tpu", "kpu"}
    assert all({"fp32", "int8"} <= set(hardware.peaks) for hardware in chosen)
    (shown,) = {one.meaning for one in read_manual("compare").options if one.names.startswith("--hardware ")}
    assert f"[default: {', '.join(DEFAULT_HARDWARE)}]" in shown


@each(ALL, names)
def test_every_number_is_finite_and_has_a_source(hardware: Hardware) -> None:
    quantities = dict(hardware.quantities())
    assert len(quantities) > 20
    for name, quantity in quantities.items():
        assert math.isfinite(quantity.value), name
        may_be_none = name == "host_share" or name.startswith("coefficient.")
        assert quantity.value > 0 or (quantity.value == 0 and may_be_none), name
        assert quantity.basis in BASES, name
        assert len(quantity.source) > 3, name


@each(ALL, names)
def test_every_action_has_a_price_a_basis_and_a_source(hardware: Hardware) -> None:
    for one in hardware.reference:
        assert one.energy_per_action_fj > 0.0 or one.key == LOSS_ACTION, one.key
        assert one.basis in BASES, one.key
        assert one.part in PARTS, one.key
        assert len(one.source) > 3, one.key
        assert one.count_formula, one.key
        if one.low_fj is not None and one.high_fj is not None:
            assert one.low_fj <= one.energy_per_action_fj <= one.high_fj, one.key


@each(ALL, names)
def test_static_power_is_the_price_of_a_second(hardware: Hardware) -> None:
    static = action(hardware, *STATIC_ACTION)
    assert static.part == "static"
    assert_close(static.energy_per_action_fj, hardware.static_power.value * 1e15)
    assert hardware.static_power.value < hardware.tdp.value


@each(ALL, names)
def test_peaks_follow_from_the_geometry(hardware: Hardware) -> None:
    for precision, peak in hardware.peaks.items():
        assert precision in PRECISION_BYTES
        product = peak.unit_count * peak.operations_per_clock * peak.clock_hz
        if not peak.explanation:
            assert_close(product, peak.rate.value, rel=TOLERANCE)


def test_a_gpu_states_the_clocks_that_its_voltage_depends_on() -> None:
    for hardware in (one for one in ALL if one.architecture == "gpu"):
        assert hardware.clock_boost is not None and hardware.clock_die is not None, hardware.id
        assert hardware.clock.value <= hardware.clock_boost.value <= hardware.clock_die.value, hardware.id
    # boards of one die share the highest clock of them all
    dies: dict[str, set[float]] = {}
    for hardware in ALL:
        if hardware.vendor == "NVIDIA" and hardware.clock_die is not None:
            dies.setdefault(hardware.microarchitecture, set()).add(hardware.clock_die.value)
    assert {die: clocks for die, clocks in dies.items() if len(clocks) > 1} == {}
    l4 = load_catalogue().find("l4")
    assert l4.clock_boost is not None and l4.clock_die is not None
    # 2.04 GHz of the 2.61 GHz that a GeForce with an AD104 reaches
    assert_close(l4.clock_boost.value / l4.clock_die.value, 0.78161, rel=1e-4)


@pytest.mark.parametrize(
    ("hardware", "precision", "macs"),
    [
        # a unit's MACs per clock, as the architecture whitepapers draw the tensor cores: four of 64 to 1024 fp16 MACs
        ("v100_pcie_32gb", "fp16", 512),
        ("a10", "bf16", 512),
        ("rtx_3090", "bf16", 256),  # adding up in fp32 halves the rate of a GeForce
        ("a100_pcie_40gb", "bf16", 1024),
        ("rtx_6000_ada", "bf16", 512),
        ("l40", "bf16", 256),
        ("h20", "bf16", 512),
        ("h800", "bf16", 2048),
        ("b200_sxm", "bf16", 4096),
        ("gb300", "bf16", 4096),
        ("gb300", "int8", 256),
        ("b300_sxm", "fp4", 24576),
        ("rtx_5090", "bf16", 256),
        ("rtx_pro_6000_server", "bf16", 512),
        ("mi100", "fp16", 512),
        ("mi355x", "bf16", 2048),
        ("b60", "bf16", 1024),
        ("p4", "fp32", 128),
        ("p100_pcie", "fp32", 64),
    ],
)
def test_a_unit_multiplies_as_often_as_its_whitepaper_says(hardware: str, precision: str, macs: int) -> None:
    peak = load_catalogue().find(hardware).peaks[precision]
    assert_close(peak.operations_per_clock, 2.0 * macs)
    assert_close(peak.rate.value, peak.unit_count * 2.0 * macs * peak.clock_hz, rel=TOLERANCE)


def test_the_h100_has_its_own_memory_energy() -> None:
    # 3.9 pJ/bit x 8, not the class's 36 pJ; of what boards drew regulators lost 0.12 J for each that they delivered
    for verb in ("read", "write"):
        priced = action(load_catalogue().find("h100_sxm5"), "dram", verb)
        assert_close(priced.energy_per_action_fj, 31_200.0 / 1.12)
        assert priced.source.startswith("HBM3")


def test_logic_scales_to_the_node_of_the_chip() -> None:
    # 0.72 pJ at 7 nm, 2.2 times that at the board, of which 0.12 / 1.12 is the regulators'; at 4 nm logic costs 0.65
    # of that, on this die 1.22 times as much
    priced = action(load_catalogue().find("h100_sxm5"), "tensor_core", "fp16_mac")
    assert_close(priced.energy_per_action_fj, 1_580.0 * 0.65 * 1.22 / 1.12)
    assert priced.basis == "scaled"
    assert "(7 to 4 nm)" in priced.source


def test_a_crossbar_is_as_long_as_the_die() -> None:
    # 9.4 pJ on an A100, 108 units at 7 nm; 132 units at 4 nm, on a die that costs 1.22 times as much; regulators apart
    priced = action(load_catalogue().find("h100_sxm5"), "crossbar", "load")
    fitted_fj = 9_400.0 * math.sqrt(132 / 108) * (4 / 7) ** 0.4 * 1.22
    assert_close(priced.energy_per_action_fj, fitted_fj / 1.12)
    assert "(die of 132 units at 4 nm)" in priced.source


def test_units_become_si() -> None:
    hardware = load_catalogue().find("h100_sxm5")
    assert_close(hardware.memory_bandwidth.value, 3.35e12)
    assert_close(hardware.level("l2").capacity.value, 50 * 2**20)
    assert_close(hardware.clock.value, 1.83e9)
    assert (hardware.memory_bandwidth.unit, hardware.clock.unit) == ("B/s", "Hz")


def test_a_coefficient_is_found_by_qualifier_then_by_name() -> None:
    hardware = load_catalogue().find("h100_sxm5")
    assert_close(hardware.coefficient("dram_efficiency", "stacked"), 0.88)
    assert_close(hardware.coefficient("dram_efficiency", "tensor", "planar"), 0.92)
    assert hardware.coefficient("host_launch", "stacked") == hardware.coefficient("host_launch")
    with pytest.raises(KeyError, match=r"h100_sxm5: no coefficient dram_efficiency for any kind"):
        hardware.coefficient("dram_efficiency")


def test_digests_identify_catalogue_and_hardware() -> None:
    assert load_catalogue().digest == catalogue_digest()
    assert len({hardware.digest for hardware in ALL}) == len(ALL)


def test_an_unknown_hardware_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean h100_sxm5"):
        load_catalogue().find("h100_sxm4")


def test_every_model_has_a_task_and_a_shape_or_a_reason() -> None:
    models = load_models()
    assert len([entry for entry in models.values() if entry.task != "block" and not entry.package]) == 121
    for name, entry in models.items():
        assert entry.name == name
        assert bool(entry.input_shape) == (entry.task != "block" and not entry.package)
        assert bool(entry.reason) != entry.is_traceable


def test_a_shipped_file_repeats_as_a_record() -> None:
    chip, content = read_file(DATA / "hardware" / "tpu_v4.toml", HardwareFile)
    assert chip.id == "tpu_v4"
    assert content == (DATA / "hardware" / "tpu_v4.toml").read_bytes()


@each(ALL, names)
def test_a_chip_whose_key_numbers_are_assumed_says_so(hardware: Hardware) -> None:
    key = [hardware.unit_count, hardware.clock, hardware.memory_bandwidth, hardware.tdp]
    if any(quantity.basis == "assumed" for quantity in key):
        assert hardware.is_projection


@each(ALL, names)
def test_what_ships_is_described_in_full(hardware: Hardware) -> None:
    for text in (hardware.name, hardware.vendor, hardware.microarchitecture, hardware.unit_name, hardware.memory_type):
        assert text
        assert text != "not given"
    assert hardware.deployment
    assert hardware.launch_year is not None
    for name, quantity in hardware.quantities():
        assert not quantity.source.startswith("class default"), name


def test_a_record_in_python_refuses_what_a_file_would() -> None:
    tpu = load_catalogue().find("tpu_v4")

    def watts(value: float) -> Quantity:
        return Quantity(value=value, unit="W", basis="assumed", source="what if")

    with pytest.raises(TypeError, match="vendor is 5, expected a text"):
        attrs.evolve(tpu, vendor=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="tdp is 5, expected a Quantity in W"):
        attrs.evolve(tpu, tdp=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="clock is in W, expected Hz"):
        attrs.evolve(tpu, clock=watts(5.0))
    with pytest.raises(ValueError, match="static_power: 500 W is not below the tdp of 192 W"):
        attrs.evolve(tpu, static_power=watts(500.0))
    with pytest.raises(ValueError, match="change peaks and units together"):
        attrs.evolve(tpu, unit_count=attrs.evolve(tpu.unit_count, value=80.0))
    with pytest.raises(ValueError, match="change peaks, units and clock together"):
        attrs.evolve(tpu, clock=attrs.evolve(tpu.clock, value=1.05e10))
    with pytest.raises(ValueError, match="expected a finite number"):
        watts(float("nan"))
    with pytest.raises(TypeError, match="value is '3', expected a number"):
        Quantity(value="3", unit="W", basis="assumed", source="what if")  # type: ignore[arg-type]


def test_a_record_with_assumed_key_numbers_is_marked() -> None:
    tpu = load_catalogue().find("tpu_v4")
    guess = attrs.evolve(tpu, id="guess", memory_bandwidth=attrs.evolve(tpu.memory_bandwidth, basis="assumed"))
    assert guess.with_own_digest().projection == "not known, so estimated: memory_bandwidth"
    assert not tpu.with_own_digest().is_projection


SECOND_HAND = re.compile(
    r"recall|verif|memory of|wiki|techpowerup|hmc-tech|cpu-world|glennklockwood|servethehome|anandtech|tomshardware"
    r"|cnx-software|chipsandcheese|nextplatform|hardwareluxx|medium\.com|reddit|retailer|listing|press on|digest"
    r"|third-party|gpu\.blog|launch price|spec page at|mullet\.se",
    re.IGNORECASE,
)
"""Words of sources that are not the vendor's, the author's or the operator's own."""


@each(ALL, names)
def test_what_is_published_was_read_where_it_was_published(hardware: Hardware) -> None:
    told = [(name, one.basis, f"{one.source}; {one.note}") for name, one in hardware.quantities()]
    told += [(".".join(one.key), one.basis, one.source) for one in hardware.reference]
    assert [row for row in told if row[1] == "published" and SECOND_HAND.search(row[2])] == []
    assert [row for row in told if "to be verified" in row[2]] == []


def test_prices_grids_and_budgets_are_published_only_where_that_was_read() -> None:
    told = [one.quantity for one in load_assumptions()] + [one.intensity for one in load_regions()]
    told += [one.power_budget for one in load_scenarios().values() if one.power_budget is not None]
    assert [one for one in told if one.basis == "published" and SECOND_HAND.search(f"{one.source}; {one.note}")] == []


@each(ALL, names)
def test_a_peak_that_follows_from_units_and_clock_is_no_surer_than_they_are(hardware: Hardware) -> None:
    parents = least_sure(hardware.unit_count.basis, hardware.clock.basis)
    for precision, peak in hardware.peaks.items():
        if parents == "recalled" and re.search(r" x [0-9.]+ GHz", peak.rate.source):
            assert peak.rate.basis in ("recalled", "assumed"), precision


def test_the_least_sure_basis_of_several_counts() -> None:
    assert least_sure("derived", "measured", "published") == "derived"
    assert least_sure("derived", "recalled") == "recalled"
    assert least_sure("scaled", "recalled", "assumed") == "assumed"


def test_a_power_mode_does_not_make_a_recalled_number_surer() -> None:
    hardware = load_catalogue().find("jetson_orin_nx_16gb")
    peak = hardware.peaks["fp16"]
    rate = attrs.evolve(peak.rate, basis="recalled")
    told = attrs.evolve(hardware, peaks={**hardware.peaks, "fp16": attrs.evolve(peak, rate=rate)})
    assert told.in_mode("10W").peaks["fp16"].rate.basis == "recalled"


def test_an_energy_scaled_from_a_recalled_one_is_recalled() -> None:
    priced = action(load_catalogue().find("h100_sxm5"), "integer_unit", "index_operation")
    assert "0.650 (7 to 4 nm)" in priced.source
    assert priced.basis == "recalled"


def test_a_digest_is_of_the_record_not_of_the_bytes() -> None:
    text = (DATA / "hardware" / "tpu_v4.toml").read_text(encoding="utf-8")
    shipped = load_catalogue().find("tpu_v4")
    assert load_text(f"# a comment\n{text}", "tpu_v4").digest == shipped.digest == shipped.with_own_digest().digest
    assert load_text(text.replace("value = 192,", "value = 193,"), "tpu_v4").digest != shipped.digest


def test_a_table_of_coefficients_is_a_coefficient_for_each_value() -> None:
    table = CoefficientTableEntry(
        name="oven",
        basis="scaled",
        source="a kitchen",
        spread=0.2,
        columns=[ColumnEntry(name="heat", unit="W", meaning="what it draws")],
        rows={"gas": {"heat": 2.0}, "any": {"heat": 3.0}, "cold": {}},
    )
    entries = table.entries()
    assert [(one.name, one.value, one.unit) for one in entries] == [
        ("oven_heat.gas", 2.0, "W"),
        ("oven_heat", 3.0, "W"),
    ]
    assert {(one.basis, one.source, one.spread) for one in entries} == {("scaled", "a kitchen", 0.2)}
    with pytest.raises(ValueError, match=r"rows\.gas: light is none of heat"):
        attrs.evolve(table, rows={"gas": {"light": 1.0}}).entries()


@pytest.mark.parametrize(("name", "price_usd"), [("hailo_8", 110), ("coral_edge_tpu", 75)])
def test_the_host_of_a_stick_costs_what_the_raspberry_pi_5_does(name: str, price_usd: float) -> None:
    share = load_catalogue().find(name).host_share
    assert share is not None
    assert_close(share.value * price_usd, 80, rel=1e-3)


def test_energies_of_an_sram_are_those_of_its_stated_size() -> None:
    """A byte takes 8 x (50 + 0.022 x sqrt(bits)) fJ, Dally et al., rounded to two digits: 0.45 pJ of 8 KiB."""
    count = 0
    for path in (DATA / "architecture").glob("*.toml"):
        for line in path.read_text(encoding="utf-8").split("[[actions]]"):
            told = re.search(
                r"^energy_pj = (\S+)$.*8 x \(50 \+ .*, for (\d+) ([KM])iB\"$", line, re.MULTILINE | re.DOTALL
            )
            if told:
                bits = 8.0 * int(told[2]) * {"K": 2**10, "M": 2**20}[told[3]]
                assert_close(float(told[1]), 0.008 * (50.0 + 0.022 * math.sqrt(bits)), rel=0.015)
                count += 1
    assert count > 10


def test_further_names_are_of_models() -> None:
    aliases = tomllib.loads((DATA / "model" / "alias.toml").read_text())
    models = load_models()
    assert all(set(names) <= {*models[name].aliases} for name, names in aliases.items())
