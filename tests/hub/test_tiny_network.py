"""Networks of MLPerf Tiny: they ship by name, with the MACs of their layers."""

from __future__ import annotations

import pytest

from compare import assert_close
from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.system.errors import UsageError
from joulemap.wing.hub.tiny import FAMILY, NETWORKS
from tiny import MACS, PUBLISHED_MACS


@pytest.mark.parametrize("name", sorted(MACS))
def test_the_networks_of_mlperf_tiny_have_the_macs_of_their_layers(name: str) -> None:
    entry = load_shipped()[f"mlperf_tiny_{name}"]
    assert entry.mac_count == sum(MACS[name])
    assert entry.is_affine
    assert_close(float(entry.mac_count), PUBLISHED_MACS[name], rel=0.02)


def test_a_network_of_mlperf_tiny_takes_no_arguments() -> None:
    assert {f"mlperf_tiny_{name}" for name in MACS} == set(NETWORKS)
    with pytest.raises(UsageError, match="takes no --model-arg"):
        trace_request(resolve_model("mlperf_tiny_kws", load_models(), arguments=[("width", "2")]))


def test_networks_of_mlperf_tiny_are_a_family_of_their_own() -> None:
    assert {name for name, entry in load_models().items() if entry.family == FAMILY} == set(NETWORKS)
