"""Names of chips as machines print them: rules on the text, and what they resolve to."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from joulemap.catalog.family import list_members
from joulemap.domain.catalogue import HardwareEntry, find_alike, find_entry
from joulemap.domain.hardware_ref import HardwareRef
from joulemap.domain.printed import list_readings, read_words
from joulemap.plan.catalogue import known_hardware
from joulemap.plan.selection import find_chip, split_hardware
from joulemap.system.errors import AmbiguousNameError, UnknownNameError
from joulemap.system.name import fold_name, split_words

PRINTED = {
    "NVIDIA GeForce RTX 4070 Laptop GPU": "rtx_4070_laptop",
    "GeForce RTX 3050 Ti Mobile": "rtx_3050_ti_laptop",
    "AMD Ryzen 9 5950X 16-Core Processor (znver3)": "ryzen_9_5950x",
    "AMD Ryzen Threadripper 3970X 32-Core Processor": "ryzen_threadripper_3970x",
    "12th Gen Intel(R) Core(TM) i7-12700H": "core_i7_12700h",
    "11th_gen_intel_core_i7_11700_cpu": "core_i7_11700_cpu",
    "AMD Ryzen 7 7840U w/ Radeon 780M Graphics": "ryzen_7_7840u",
    "AMD Ryzen 7 4800U with Radeon Graphics": "ryzen_7_4800u",
    "AMD Radeon RX 7900 XTX (RADV NAVI31)": "rx_7900_xtx_radv_navi31",
    "Raspberry Pi 4 Model B Rev 1.4": "raspberry_pi_4",
    "NVIDIA H100 80GB HBM3": "h100_80gb",
    "Apple M3 Max 12P+4E+40GPU": "m3_max_40-core_gpu",
}


@pytest.mark.parametrize(("printed", "plain"), PRINTED.items())
def test_rules_reduce_a_printed_name_to_the_words_of_a_plain_one(printed: str, plain: str) -> None:
    assert read_words(plain) in [words[""] for words in list_readings(printed)]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "h100_sxm5"),
        ("NVIDIA A100 80GB PCIe", "a100_pcie_80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100_sxm4_40gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Raspberry Pi 5 Model B Rev 1.0", "raspberry_pi_5"),
        ("Intel(R) Xeon(R) Platinum 8490H @ 1.90GHz", "xeon_8490h"),
        ("Apple M3 Max 12P+4E+40GPU", "apple_m3_max"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx_4090_laptop_gpu"),
        ("Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz", "xeon_e5_2630_v3"),
        ("12th Gen Intel(R) Core(TM) i7-12700H", "core_i7_12700h"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "ryzen_ai_max_395_cpu"),
        ("AMD Radeon 8060S Graphics (RADV GFX1151)", "ryzen_ai_max_395"),
        ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", "xeon_e5_2670"),
        ("NVIDIA Jetson Orin Nano Developer Kit", "jetson_orin_nano_8gb"),
        ("NVIDIA TITAN X (Pascal)", "titan_x_pascal"),
        ("Raspberry Pi 3 Model B Plus Rev 1.3", "raspberry_pi_3b"),
    ],
)
def test_a_printed_name_resolves_where_hardware_is_named(printed: str, expected: str) -> None:
    known = known_hardware([printed])
    (name,) = split_hardware([printed], known)
    ref = HardwareRef.read(name)
    assert find_entry(known, ref.label).id == expected
    assert not ref.mode


@pytest.mark.parametrize(
    "name", ["NVIDIA GeForce RTX 4090 Laptop GPU", "AMD Radeon Graphics", "AMD H200", "Intel(R)", "l4[tdp=60W]"]
)
def test_a_chip_with_another_word_is_not_guessed(name: str) -> None:
    with pytest.raises(UnknownNameError):
        find_entry(known_hardware(), name)


def test_an_unknown_chip_is_described_from_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"rtx_4090\[clock=2.52GHz") as caught:
        find_entry(known_hardware(), "NVIDIA GeForce RTX 4091")
    assert not isinstance(caught.value, AmbiguousNameError)


def test_the_nearest_chips_are_those_of_the_vendor_each_once() -> None:
    for name, near in (("NVIDIA A30", ["a10", "a40"]), ("AMD Radeon RX 6600S", "rx_6600")):
        with pytest.raises(UnknownNameError) as caught:
            find_chip(known_hardware(), name)
        assert caught.value.near[0] in near
        assert len(set(caught.value.near)) == len(caught.value.near)


def test_a_clock_that_is_set_stays_a_mode() -> None:
    assert HardwareRef.read("xeon_8490h@1.9GHz").mode == "1.9GHz"
    assert HardwareRef.read("Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz").label == "Intel(R) Xeon(R) CPU E5-2630 v3"


@pytest.fixture(scope="module")
def shortened() -> dict[str, HardwareEntry]:
    """Return the chips that ship and those members of families whose ids contain the abbreviations of the tests."""
    return known_hardware([one for one in list_members() if re.search("h_?10|10h|v7|6700|m4_max|vii", one)])


@pytest.mark.parametrize("name", ["h10", "h_10", "10h", "v7", "core_6700", "m4_max_10p", "vii"])
def test_an_abbreviation_that_nobody_publishes_is_refused(name: str, shortened: dict[str, HardwareEntry]) -> None:
    with pytest.raises((UnknownNameError, AmbiguousNameError)) as refused:
        find_entry(shortened, name)
    assert refused.value.near or isinstance(refused.value, AmbiguousNameError)


@pytest.mark.parametrize(("name", "chip"), [
    ("apple_m4_npu", "apple_m4_neural_engine"), ("m1 max npu", "apple_m1_max_neural_engine"),
    ("RTX4090", "rtx_4090"), ("SXM5 H100", "h100_sxm5"), ("hailo10h", "hailo_10h"),
])  # fmt: skip
def test_separators_case_and_published_names_do_not_matter(name: str, chip: str) -> None:
    assert find_entry(known_hardware([name]), name).id == chip


def list_abbreviations(name: str) -> Iterator[str]:
    """Yield an id without some of its words, and its initial with its number."""
    words = name.split("_")
    yield from ("_".join(words[:end]) for end in range(1, len(words)))
    yield from ("_".join(words[start:]) for start in range(1, len(words)))
    if (match := re.match(r"([a-z])[a-z]+_?(\d+)", name)) is not None:
        yield "".join(match.groups())


@pytest.mark.slow
def test_every_chip_is_found_by_its_names_and_by_no_part_of_them() -> None:
    known = known_hardware(list(list_members()))
    published = {fold_name(name): entry.id for entry in known.values() for name in entry.names}
    for entry in known.values():
        for name in (entry.id, *entry.aliases):
            assert [one.id for one in find_alike(known, name)] == [entry.id], name
        for name in list_abbreviations(entry.id):
            if fold_name(name) in published or len(alike := find_alike(known, name)) != 1:
                continue
            words = split_words(name)
            is_whole = any(not split_words(one) - words for one in alike[0].names)
            printed = {read_words(one) for one in alike[0].names}
            assert is_whole or read_words(name) in printed, name
