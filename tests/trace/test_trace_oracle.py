"""Traces against counters that were written by others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from torch.fx import Node
from torch.utils.flop_counter import FlopCounterMode

from compare import assert_close
from joulemap.catalog.sheet import load_models
from joulemap.construct.library import build_torchvision
from joulemap.physics.record.configuration import FLOPS_PER_MAC
from models import image, trace_zoo

CLASSIFIERS = [name for name, entry in load_models().items() if entry.task == "classification" and entry.is_traceable]
FAST = ["resnet18", "mobilenet_v2", "vit_b_16", "swin_t"]

ROUNDED = {"shufflenet_v2_x0_5": "published as 0.04 GFLOPS, one digit"}
"""Published figures that are too coarse for one per cent, with the reason."""


def image_size(name: str) -> int:
    return load_models()[name].input_shape[-1]


def counted_by_torch(name: str) -> float:
    """Return the MACs that torch's own counter sees."""
    module = build_torchvision(name, image_size(name)).to("meta").eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad(), torch.device("meta"):
        module(image(1, 3, image_size(name)))
    return float(counter.get_total_flops()) / FLOPS_PER_MAC


def check_against_oracles(name: str) -> None:
    workload = trace_zoo(name, size=image_size(name))
    assert_close(workload.mac_count, counted_by_torch(name), rel=1e-3)
    entry = load_models()[name]
    assert workload.parameter_count == entry.parameter_count
    if name not in ROUNDED:
        assert_close(workload.mac_count, entry.published_mac_count, rel=0.01)
    assert not [one.aten for one in workload.operators if one.kind == "uncounted"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FAST)
def test_macs_and_parameters_agree_with_torch_and_torchvision(name: str) -> None:
    check_against_oracles(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(CLASSIFIERS) - set(FAST)))
def test_every_classifier_agrees_with_torch_and_torchvision(name: str) -> None:
    check_against_oracles(name)


def test_the_sweep_has_the_whole_zoo() -> None:
    assert len(CLASSIFIERS) == 80


@pytest.mark.parametrize("name", FAST)
def test_the_catalogue_repeats_what_torchvision_publishes(name: str) -> None:
    from torchvision import models

    published = models.get_model_weights(name).DEFAULT.meta
    entry = load_models()[name]
    assert entry.parameter_count == published["num_params"]
    assert entry.published_mac_count == round(published["_ops"] * 1e9)


RENAMED = {"flatten": "view", "unflatten": "view", "chunk": "split"}
"""torch.export keeps these composites; dispatched, each is one operator of another name."""

ATTENTION = "scaled_dot_product_attention"


def exported_edges(name: str) -> Counter[tuple[str, str]]:
    """Return (producer, consumer) operation names of torch.export's graph, with multiplicity."""
    module = build_torchvision(name).to("meta").eval()
    with torch.no_grad(), torch.device("meta"):
        graph = torch.export.export(module, (image(1, 3, 224),)).graph

    def label(node: Node) -> str:
        operation = str(node.target).split(".")[1]
        return RENAMED.get(operation, operation)

    def source(node: Node) -> Node:
        return source(node.all_input_nodes[0]) if "getitem" in str(node.target) else node

    def pairs() -> Iterator[tuple[str, str]]:
        for node in graph.nodes:
            if node.op == "call_function" and "getitem" not in str(node.target):
                calls = (one for one in node.all_input_nodes if one.op == "call_function")
                for producer in dict.fromkeys(source(one) for one in calls):
                    yield label(producer), label(node)

    return Counter(pairs())


def traced_edges(name: str) -> Counter[tuple[str, str]]:
    """Return the same of our trace; the parts of one attention call are one operator, as in torch.export."""
    workload = trace_zoo(name)
    labels = [one.aten.split(".")[1] for one in workload.operators]
    kept: Counter[tuple[str, str]] = Counter()
    for producer, consumer in dict.fromkeys((edge.producer_index, edge.consumer_index) for edge in workload.edges):
        if not labels[producer] == labels[consumer] == ATTENTION:
            kept[labels[producer], labels[consumer]] += 1
    return kept


def check_edges(name: str, expected_count: int) -> None:
    traced = traced_edges(name)
    assert sum(traced.values()) == expected_count
    assert traced == exported_edges(name)


def test_resnet18_has_the_data_flow_of_torch_export() -> None:
    check_edges("resnet18", 76)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected_count"), [("convnext_tiny", 201), ("densenet121", 965), ("shufflenet_v2_x1_0", 260)]
)
def test_larger_models_have_the_data_flow_of_torch_export(name: str, expected_count: int) -> None:
    # without attention: inference takes its fast path, torch.export shows the other
    check_edges(name, expected_count)
