"""Links between devices and to the host: directions and counts, from file to SQL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compare import assert_close
from conftest import Run
from hardware_text import MINIMAL, write
from joulemap.catalog.chip import load_hardware
from joulemap.catalog.load import load_catalogue
from joulemap.physics.record.hardware import Link
from joulemap.system.errors import CatalogueError
from joulemap.workspace import Workspace

ALL = list(load_catalogue().hardware.values())


def link(hardware: str, name: str) -> Link:
    (only,) = (one for one in load_catalogue().find(hardware).links if one.name == name)
    return only


@pytest.mark.parametrize(
    ("hardware", "name", "links", "gb_per_s"),
    [
        # data sheets print both directions: 600, 900, 400, 1800 GB/s
        ("a100_sxm4_80gb", "nvlink", 12, 300.0),
        ("h100_sxm5", "nvlink", 18, 450.0),
        ("h800", "nvlink", 8, 200.0),
        ("gb200", "nvlink", 18, 900.0),
        # four links of four lanes at 28.125 Gbit/s: 4 x 4 x 28.125 / 8
        ("rtx_a6000", "nvlink", 4, 56.25),
        # lanes x 128/130 x GT/s / 8: 16 x 7.877, 16 x 15.754, 16 x 31.508, 8 x 31.508
        ("p4", "pcie", 1, 15.754),
        ("l4", "pcie", 1, 31.508),
        ("h100_pcie", "pcie", 1, 63.015),
        ("b60", "pcie", 1, 31.508),
        # seven links of 16 lanes at 32 GT/s: 64 GB/s each
        ("mi300x", "xgmi", 7, 448.0),
        # 1,200 GB/s in both directions
        ("tpu_v7", "ici", 6, 600.0),
    ],
)
def test_a_bandwidth_is_that_of_all_links_in_one_direction(
    hardware: str, name: str, links: int, gb_per_s: float
) -> None:
    one = link(hardware, name)
    assert one.link_count.value == links
    assert_close(one.bandwidth.value, gb_per_s * 1e9, rel=1e-3)


def test_what_joins_devices_says_how_many_and_how() -> None:
    for hardware in ALL:
        for one in hardware.links:
            if one.connects != "device":
                assert not one.topology, hardware.id
            elif one.topology:
                assert one.domain_size is not None, hardware.id
                assert one.domain_size.value >= 2, hardware.id
            if one.topology in ("pair", "bridge"):
                assert one.domain_size is not None
                assert one.domain_size.value == 2, hardware.id


def test_boards_of_a_data_centre_have_a_way_to_their_host() -> None:
    lacking = [
        hardware.id
        for hardware in ALL
        if hardware.architecture == "gpu" and "datacenter" in hardware.deployment
        if not any(one.connects == "host" for one in hardware.links)
    ]
    assert lacking == []


PCIE = """
[[links]]
name = "pcie"
connects = "host"
generation = "5"
link_count = { value = 1, unit = "1", basis = "published", source = "mine" }
lane_count = { value = 16, unit = "1", basis = "published", source = "mine" }
bandwidth = { value = 63, unit = "GB/s", basis = "published", source = "mine" }
"""

REFUSED = {
    "both directions": (
        "value = 63,",
        "value = 126,",
        "links.pcie.bandwidth: 16 lanes of pcie 5 carry 63.01 GB/s in one direction, but it is 126 GB/s; "
        "add an explanation if this is intended",
    ),
    "a generation to come": ('"5"', '"9"', "links.pcie.generation: '9', known: 1, 2, 3, 4, 5, 6"),
    "no generation": ('generation = "5"', "", "links.pcie.generation: missing"),
    "no lanes": ("lane_count = {", "domain_size = {", "links.pcie.lane_count: missing"),
    "half a lane": ("value = 16,", "value = 15.5,", "links.pcie.lane_count: 15.5 is not a whole number from 1"),
    "another end": ('"host"', '"hosts"', "links.pcie.connects: 'hosts', did you mean host?"),
    "a topology of one host": (
        'generation = "5"',
        'generation = "5"\ntopology = "switch"',
        "links.pcie.topology: 'switch' is how devices are joined, but it connects a host",
    ),
    "an unknown topology": (
        'generation = "5"',
        'generation = "5"\ntopology = "torus"',
        "links.pcie.topology: 'torus', did you mean torus_",
    ),
    "bits for bytes": ('unit = "GB/s"', 'unit = "GHz"', "links.pcie.bandwidth: unit 'GHz' measures Hz, expected B/s"),
    "another prefix": ('value = 63, unit = "GB/s"', 'value = 63000000, unit = "GB/s"', "check its unit"),
    "an unknown key": ("lane_count", "lanes", "unknown key lanes"),
    "a name with a dot": ('"pcie"', '"pci.e"', "links: 'pci.e' may not be empty or hold a dot"),
}


def test_a_file_may_state_links(tmp_path: Path) -> None:
    hardware = load_hardware(write(tmp_path, MINIMAL.replace("[peaks.fp32]", f"{PCIE}\n[peaks.fp32]")))
    (pcie,) = hardware.links
    assert (pcie.name, pcie.generation, pcie.connects, pcie.topology) == ("pcie", "5", "host", "")
    assert pcie.domain_size is None
    assert dict(hardware.quantities())["link.pcie.bandwidth"] == pcie.bandwidth
    assert load_hardware(write(tmp_path, MINIMAL)).links == ()


@pytest.mark.parametrize("case", REFUSED)
def test_a_link_that_cannot_be_is_refused_in_one_line(case: str, tmp_path: Path) -> None:
    old, new, reason = REFUSED[case]
    assert PCIE.count(old) == 1
    path = write(tmp_path, MINIMAL.replace("[peaks.fp32]", f"{PCIE.replace(old, new)}\n[peaks.fp32]"))
    with pytest.raises(CatalogueError) as caught:
        load_hardware(path)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_link_may_stand_only_once(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="links: pcie is listed twice"):
        load_hardware(write(tmp_path, MINIMAL.replace("[peaks.fp32]", f"{PCIE}{PCIE}\n[peaks.fp32]")))


def test_sql_and_show_say_what_the_file_says(database: Path, joulemap: Run) -> None:
    workspace = Workspace(database)
    rows = workspace.sql(
        "SELECT link, generation, connects, topology, link_count, lane_count, bandwidth_bytes_per_s, domain_size "
        "FROM hardware_links WHERE hardware = 'h100_pcie' AND is_current ORDER BY link_index"
    )
    assert rows.rows == (
        ("nvlink", "4", "device", "bridge", 12, None, 300e9, 2),
        ("pcie", "5", "host", "", 1, 16, 63.02e9, None),
    )
    nvlink, _ = workspace.describe_hardware("h100_pcie").links
    assert (nvlink.link, nvlink.bandwidth_bytes_per_s, nvlink.domain_size) == ("nvlink", 300e9, 2)
    assert_close(nvlink.energy_per_byte_j, 80e-12)
    assert_close(nvlink.latency_s, link("h100_pcie", "nvlink").latency.value)
    shown = joulemap("hardware", "show", "gb200", "--show=details").stdout
    assert "Links, in one direction" in shown
    assert re.search(r"nvlink +5 +device +18 +900 GB/s +switch +72", shown)
