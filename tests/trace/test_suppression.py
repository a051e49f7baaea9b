"""Counts of non-maximum suppression: boxes that data selects, survivors, and the argument that states them."""

from __future__ import annotations

import pytest
from torch import Tensor, nn
from torchvision import ops

from joulemap.catalog.sheet import load_models
from joulemap.construct.model import trace_request
from joulemap.construct.source import resolve_model
from joulemap.physics.record.workload import Operator
from joulemap.system.errors import UsageError
from joulemap.trace.formula.pooling import CANDIDATES, PAIR
from models import meta, trace


class Suppress(nn.Module):
    def __init__(self, *, selects: bool) -> None:
        super().__init__()
        self.selects = selects

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        kept = scores > 0.5 if self.selects else slice(None)
        survivors: Tensor = ops.nms(boxes[kept] * 2.0, scores[kept], 0.5)
        return survivors


def suppression(count: int, *, selects: bool) -> Operator:
    workload = trace(Suppress(selects=selects), meta(count, 4), meta(count))
    (only,) = (one for one in workload.operators if one.operation == "nms")
    return only


def test_only_boxes_that_data_selects_are_assumed_to_be_fewer() -> None:
    # a third of 6,000 survives, compared with half of all on average; 2,000 x 6,000 - 2,000 x 6,001 / 2 pairs
    every, some = suppression(6000, selects=False), suppression(6000, selects=True)
    assert (every.elementwise_count, every.step_count) == (PAIR * 5_999_000, 2000)
    assert some.elementwise_count == suppression(CANDIDATES, selects=False).elementwise_count
    assert some.output_shape == every.output_shape == (6000,)  # later operators have room for all
    few = suppression(300, selects=True)
    assert few.elementwise_count == suppression(300, selects=False).elementwise_count


def of_ssd(*arguments: tuple[str, str]) -> list[Operator]:
    request = resolve_model("ssdlite320_mobilenet_v3_large", load_models(), batch=1, arguments=arguments)
    return list(trace_request(request).operators)


@pytest.mark.slow
def test_a_stated_number_of_boxes_replaces_the_assumed_one() -> None:
    usual = of_ssd()
    assert of_ssd(("nms_candidates", str(CANDIDATES))) == usual
    few = of_ssd(("nms_candidates", "10"))
    differing = [before.operation for before, after in zip(usual, few, strict=True) if before != after]
    assert differing == ["nms"]


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", ""])
def test_a_number_of_boxes_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        trace_request(resolve_model("alexnet", load_models(), batch=1, arguments=[("nms_candidates", text)]))


def test_a_model_without_suppression_takes_no_number_of_boxes() -> None:
    with pytest.raises(UsageError):
        trace_request(resolve_model("alexnet", load_models(), batch=1, arguments=[("nms_candidates", "10")]))
