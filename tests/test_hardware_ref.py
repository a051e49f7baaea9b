"""Names of hardware taken apart and put together."""

from __future__ import annotations

import pytest

from joulemap.domain.hardware_ref import HardwareRef, name_configured, name_variant
from joulemap.system.errors import UsageError

REFERENCES = {
    "l4": ("l4", (), ""),
    "l4@40W": ("l4", (), "40W"),
    "l4[tdp=60W;clock=1GHz]@900MHz": ("l4", (("tdp", "60W"), ("clock", "1GHz")), "900MHz"),
    "l4[dram.bandwidth=200GB/s]": ("l4", (("dram.bandwidth", "200GB/s"),), ""),
    "./chips/mine.toml@15w": ("./chips/mine.toml", (), "15w"),
    "NVIDIA L4 (24 GB)": ("NVIDIA L4 (24 GB)", (), ""),
}


@pytest.mark.parametrize("text", REFERENCES)
def test_a_reference_has_an_id_changes_and_a_mode_and_is_written_as_it_was_read(text: str) -> None:
    ref = HardwareRef.read(text)
    assert (ref.id, ref.changes, ref.mode) == REFERENCES[text]
    assert str(ref) == text
    assert ref.label == text.partition("@")[0]


@pytest.mark.parametrize("text", ["l4[tdp=60W", "l4[tdp]", "l4[=60W]", "l4[tdp=]", "l4[]", "l4[tdp=60W]x"])
def test_numbers_that_are_not_set_as_name_and_value_are_refused(text: str) -> None:
    ref = HardwareRef.read(text)
    assert ref.id == "l4"
    with pytest.raises(UsageError):
        _ = ref.changes


def test_the_default_mode_is_not_written() -> None:
    assert name_configured("l4", "default") == "l4"
    assert name_configured("l4", "900MHz") == "l4@900MHz"
    assert name_configured("./a@b.toml", "15w") == "./a@b.toml@15w"


def test_a_variant_is_read_back_as_it_is_named() -> None:
    changes = (("tdp", "60W"), ("clock", "1GHz"))
    assert HardwareRef.read(name_variant("l4", changes)).changes == changes
