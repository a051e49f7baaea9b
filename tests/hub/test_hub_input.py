"""Inputs of models of a library that stands in for transformers, and a library that is absent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from joulemap.construct.model import trace_request
from joulemap.construct.source import parse_input
from joulemap.physics.record.workload import Workload
from joulemap.system.errors import ModelError
from joulemap.wing.hub import name as hub_name
from joulemap.wing.hub.name import request_hub
from joulemap.workspace import Workspace


def test_a_package_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_name, "package_version", lambda name: "absent")
    with pytest.raises(ModelError, match="needs the package transformers: pip install transformers"):
        Workspace(tmp_path / "x.duckdb").compare("hf:BertConfig")


class Paired(torch.nn.Module):
    """Takes an image and a text, as CLIP does."""

    main_input_name = "input_ids"
    input_modalities: tuple[str, ...] = ("image", "text")

    def __init__(self) -> None:
        super().__init__()
        self.image = torch.nn.Linear(3 * 8 * 8, 16)
        self.text = torch.nn.Embedding(100, 16)

    def forward(self, input_ids: torch.Tensor, pixel_values: torch.Tensor) -> torch.Tensor:
        image = self.image(pixel_values.flatten(1))
        return torch.matmul(self.text(input_ids).mean(1), image.T)


class Heard(torch.nn.Module):
    """Takes what its configuration has no sizes for."""

    main_input_name = "input_features"
    input_modalities = "audio"

    def forward(self, input_features: torch.Tensor) -> torch.Tensor:
        return input_features.mean(1)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package transformers of two models."""
    from types import SimpleNamespace

    def paired() -> SimpleNamespace:
        parts = {
            "vision_config": SimpleNamespace(image_size=8),
            "text_config": SimpleNamespace(max_position_embeddings=7),
        }
        return SimpleNamespace(make=Paired, **parts)

    package = SimpleNamespace(
        PairedConfig=paired,
        HeardConfig=lambda: SimpleNamespace(make=Heard),
        AutoModel=SimpleNamespace(from_config=lambda configuration: configuration.make()),
    )
    monkeypatch.setitem(sys.modules, "transformers", package)
    monkeypatch.setattr(hub_name, "package_version", lambda name: "0")


def hub_workload(name: str, *inputs: str, batch: int | None = None) -> Workload:
    return trace_request(request_hub(name, batch=batch, inputs=[parse_input(text) for text in inputs]))


@pytest.mark.usefixtures("library")
def test_a_model_of_two_inputs_gets_both_from_its_configuration() -> None:
    workload = hub_workload("hf:Paired", batch=2)
    shapes = {tensor.shape for tensor in workload.tensors if tensor.role == "input" and tensor.byte_count}
    assert shapes == {(2, 7), (2, 3, 8, 8)}
    # two images of 192 values to 16, then two texts against two images
    assert workload.mac_count == 2 * 192 * 16 + 2 * 2 * 16


@pytest.mark.usefixtures("library")
def test_given_inputs_replace_those_of_the_configuration() -> None:
    assert hub_workload("hf:Paired", "input_ids=3,5:int64", "pixel_values=3,3,8,8").batch == 3
    assert hub_workload("hf:Heard", "input_features=1,5,80").batch == 1


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("hf:Heard", (), "takes input_features, .*: give each of input_features as --input NAME"),
        (
            "hf:Paired",
            ("pixel_values=2,3,9,9",),
            "2x3x9x9; its --input .* may name input_ids, pixel_values",
        ),
    ],
)
def test_inputs_that_are_needed_are_named(name: str, inputs: tuple[str, ...], message: str) -> None:
    with pytest.raises(ModelError, match=message) as found:
        hub_workload(name, *inputs)
    assert "\n" not in str(found.value)
