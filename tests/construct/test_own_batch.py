"""The leading size of an own model's inputs is a batch only if the model treats it as independent samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torchvision.ops import nms

from joulemap.construct.held import request_batch, request_module
from joulemap.construct.model import trace_request
from joulemap.construct.source import parse_input, resolve_model
from joulemap.domain.settings import Settings
from joulemap.plan.workload import choose_batches
from joulemap.system.errors import UnbatchedError, UsageError

FILE = """
import torch

class Image(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(3, 4, 3)

    def forward(self, image):
        return self.layer(image).mean((-2, -1))

def image():
    return Image(), torch.zeros(3, 8, 8)

def batched():
    return Image(), torch.zeros(4, 3, 8, 8)
"""


class Calls(torch.nn.Module):
    """Module that calls a function with a layer."""

    def __init__(self, layer: torch.nn.Module, call: Callable[..., Any]) -> None:
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, *inputs: Any) -> Any:
        """Return the result of the function."""
        return self.call(self.layer, *inputs)


def normalize(layer: torch.nn.Module, images: list[torch.Tensor]) -> Any:
    """Return the features of a list of images, as a detector computes them."""
    return [layer((image - torch.zeros(3, 1, 1))[None]) for image in images]


NOTHING = torch.nn.Identity()
CONVOLUTION = torch.nn.Conv2d(3, 4, 3)
SAMPLES = [
    (Calls(torch.nn.Linear(6, 2), lambda layer, x: layer(x)), torch.zeros(5, 6)),
    (Calls(CONVOLUTION, lambda layer, x: layer(x)), torch.zeros(2, 3, 8, 8)),
    (Calls(NOTHING, lambda _, x: x.relu().mean(1)), torch.zeros(5, 6)),
    (torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval(), torch.zeros(3, 4, 8)),
    (torch.nn.LSTM(6, 2, batch_first=True), torch.zeros(5, 4, 6)),
    (Calls(torch.nn.Embedding(9, 2), lambda layer, x: layer(x)), torch.zeros(5, 6, dtype=torch.int64)),
]
SINGLES = [
    (Calls(CONVOLUTION, lambda layer, x: layer(x)), torch.zeros(3, 8, 8)),
    (Calls(CONVOLUTION, normalize), ([torch.zeros(3, 8, 8)],)),
    (Calls(NOTHING, lambda _, boxes, scores: nms(boxes, scores, 0.5)), (torch.zeros(50, 4), torch.zeros(50))),
    (torch.nn.TransformerEncoderLayer(8, 2, 8).eval(), torch.zeros(3, 4, 8)),
    (torch.nn.LSTM(6, 2), torch.zeros(5, 4, 6)),
    (Calls(torch.nn.Linear(6, 2), lambda layer, x: layer(x.mean(0))), torch.zeros(5, 6)),
    (Calls(torch.nn.Linear(6, 2), lambda layer, x: layer(x).amax(0)), torch.zeros(5, 6)),
    (
        Calls(torch.nn.Linear(6, 2), lambda layer, x, a, b: torch.zeros(5, 2).index_add(0, b, layer(x)[a])),
        (torch.zeros(5, 6), torch.zeros(9, dtype=torch.int64), torch.zeros(9, dtype=torch.int64)),
    ),
]


@pytest.mark.parametrize(("module", "inputs"), SAMPLES)
def test_a_larger_batch_does_not_change_a_sample(module: torch.nn.Module, inputs: torch.Tensor) -> None:
    request, own = request_module(module, inputs)
    assert own.batch == len(inputs)
    _, larger = request_batch(request, 3 * len(inputs))
    assert larger.mac_count == 3 * own.mac_count


def test_a_batch_may_be_named_beside_an_input_that_has_none() -> None:
    module = Calls(torch.nn.Linear(6, 2), lambda layer, x, mask: layer(x * mask))
    request, own = request_module(module, (torch.zeros(5, 6), torch.zeros(6)))
    _, named = request_batch(request, own.batch)
    assert (own.batch, named.operators) == (5, own.operators)


@pytest.mark.parametrize(("module", "inputs"), SINGLES)
def test_a_leading_size_that_is_no_batch_is_never_changed(module: torch.nn.Module, inputs: Any) -> None:
    """Naming the default, batch 1, changes nothing; any other batch is refused."""
    request, own = request_module(module, inputs)
    _, one = request_batch(request, 1)
    assert (own.batch, one.batch, one.operators) == (1, 1, own.operators)
    with pytest.raises(UnbatchedError):
        request_batch(request, 4)


@pytest.mark.parametrize("suffix", ["py", "pt2"])
def test_a_question_about_several_batches_asks_about_one_input_without_a_batch(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"own.{suffix}"
    if suffix == "py":
        path.write_text(FILE)
    name = f"{path}:image" if suffix == "py" else str(path)
    if suffix == "pt2":
        torch.export.save(torch.export.export(CONVOLUTION, (torch.zeros(3, 8, 8),)), path)
    own = trace_request(resolve_model(name, {}))
    assert (own.batch, own.mac_count) == (1, 6 * 6 * 4 * 27)
    settings = Settings(hardware=["l4"], is_named=True)
    assert choose_batches([name], settings, (1, 8)) == (1,)
    for batch in (None, 1):
        given = resolve_model(name, {}, batch=batch, inputs=[parse_input("3,8,8")])
        assert trace_request(given).mac_count == own.mac_count
    with pytest.raises(UnbatchedError):
        trace_request(resolve_model(name, {}, batch=3))


def test_a_model_that_takes_any_batch_is_asked_at_the_usual_ones(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(FILE)
    name, inputs = f"{path}:batched", [parse_input("2,3,8,8")]
    assert choose_batches([name], Settings(hardware=["l4"]), (1, 8)) == (1, 8)
    assert [trace_request(resolve_model(name, {}, batch=one)).batch for one in (None, 1, 8)] == [4, 1, 8]
    assert trace_request(resolve_model(name, {}, inputs=inputs)).batch == 2
    with pytest.raises(UsageError):
        trace_request(resolve_model(name, {}, batch=1, inputs=inputs))
