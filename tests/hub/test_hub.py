"""Models of transformers: settings, files, heads, folders, and the inputs that follow from a configuration."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from joulemap.construct.model import trace_request
from joulemap.construct.source import parse_argument, parse_input
from joulemap.domain import settings as question
from joulemap.physics.record.workload import Workload
from joulemap.plan.workload import find_model
from joulemap.system.errors import JoulemapError, ModelError, UnknownNameError, UsageError
from joulemap.wing.hub import name as hub_name
from joulemap.wing.hub.name import request_hub
from joulemap.wing.hub.transformers import build_transformers


class Settings:
    """A configuration as transformers has it: settings by keyword, and parts that are settings too."""

    model_type: ClassVar[str] = ""
    usual: ClassVar[dict[str, Any]] = {}
    parts: ClassVar[dict[str, type[Settings]]] = {}

    def __init__(self, **values: Any) -> None:
        for name, value in {**self.usual, **values}.items():
            setattr(self, name, value)
        for name, kind in self.parts.items():
            given = values.get(name)
            setattr(self, name, kind(**given) if isinstance(given, dict) else given or kind())

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Settings:
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), **{name: getattr(self, name).to_dict() for name in self.parts}}

    def to_diff_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if self.usual.get(name) != value}


class TextConfig(Settings):
    model_type = "words"
    usual: ClassVar = {"hidden_size": 16, "num_hidden_layers": 3, "vocab_size": 50, "max_position_embeddings": 64}

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.layer_widths = [self.hidden_size] * self.num_hidden_layers  # type: ignore[attr-defined]


class VisionConfig(Settings):
    usual: ClassVar = {"hidden_size": 16, "image_size": 8, "patch_size": 4, "num_channels": 3}


class SeeingConfig(Settings):
    model_type = "seeing"
    usual: ClassVar = {"image_token_id": 7, "tie": True}
    parts: ClassVar = {"text_config": TextConfig, "vision_config": VisionConfig}


class Model(nn.Module):
    main_input_name = "input_ids"
    input_modalities: tuple[str, ...] = ("text",)
    config_class: type[Settings]

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config

    @classmethod
    def _from_config(cls, config: Any) -> Model:
        return cls(config)


class TextModel(Model):
    config_class = TextConfig

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(nn.Linear(width, config.hidden_size, bias=False) for width in config.layer_widths)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        hidden: Tensor = self.embed(input_ids)
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden if attention_mask is None else hidden * attention_mask[..., None]


class TextForCausalLM(TextModel):
    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.head(super().forward(input_ids, attention_mask))
        return logits


class SeeingModel(Model):
    config_class = SeeingConfig
    input_modalities = ("image", "text")

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        vision = config.vision_config
        self.patches = nn.Conv2d(vision.num_channels, vision.hidden_size, vision.patch_size, vision.patch_size)
        self.text = TextModel(config.text_config)

    def get_image_features(self, pixel_values: Tensor) -> SimpleNamespace:
        return SimpleNamespace(pooler_output=list(self.patches(pixel_values).flatten(2).transpose(1, 2)))

    def forward(self, input_ids: Tensor, pixel_values: Tensor | None = None) -> Tensor:
        text: Tensor = self.text(input_ids)
        if pixel_values is None:
            return text
        features = torch.cat(self.get_image_features(pixel_values).pooler_output)
        mask = (input_ids == self.config.image_token_id)[..., None].expand_as(text)
        if int(mask.sum()) != features.numel():
            raise ValueError(f"{int(mask.sum())} for {features.numel()}")
        return text.masked_scatter(mask, features)


class LateConfig(Settings):
    """Of a model that needs a library that is not there."""


class PaddedConfig(Settings):
    usual: ClassVar = {"vocab_size": 50}


class PaddedModel(Model):
    """Cannot do without a mask, though its forward pass has a default for it."""

    config_class = PaddedConfig

    def forward(self, input_ids: Tensor, attention_mask: Any = None) -> Tensor:
        masked: Tensor = input_ids * attention_mask.sum(-1)
        return masked


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    models: dict[type[Settings], type[Model]] = {
        TextConfig: TextModel, SeeingConfig: SeeingModel, PaddedConfig: PaddedModel,
    }  # fmt: skip

    def from_config(config: Settings) -> Model:
        if isinstance(config, LateConfig):
            try:
                raise RuntimeError("torchaudio was compiled for another CUDA")
            except RuntimeError as error:
                raise ModuleNotFoundError("Could not import module 'LateModel'") from error
        return models[type(config)](config)

    made = SimpleNamespace(
        AutoModel=SimpleNamespace(from_config=from_config),
        CONFIG_MAPPING={"words": TextConfig, "seeing": SeeingConfig},
        TextConfig=TextConfig,
        SeeingConfig=SeeingConfig,
        LateConfig=LateConfig,
        PaddedConfig=PaddedConfig,
        TextModel=TextModel,
        TextForCausalLM=TextForCausalLM,
    )
    monkeypatch.setitem(sys.modules, "transformers", made)
    monkeypatch.setattr(hub_name, "package_version", lambda name: "1")


def trace(
    name: str, *inputs: str, arguments: tuple[str, ...] = (), batch: int | None = None, config: str = ""
) -> Workload:
    return trace_request(
        request_hub(
            name,
            batch=batch,
            inputs=[parse_input(text) for text in inputs],
            arguments=[parse_argument(text) for text in arguments],
            config=config,
        )
    )


def test_a_setting_takes_effect_and_what_follows_from_it() -> None:
    assert trace("hf:Text").mac_count == 3 * 64 * 16 * 16
    assert trace("hf:Text", arguments=("num_hidden_layers=2",)).mac_count == 2 * 64 * 16 * 16
    assert trace("hf:Text", arguments=("num_hidden_layers=2", "hidden_size=8")).mac_count == 2 * 64 * 8 * 8


def test_a_setting_of_a_part_leaves_the_others() -> None:
    patches, words = 4 * 3 * 16 * 16, 16 * 16
    usual = trace("hf:Seeing")
    assert usual.mac_count == patches + 3 * 64 * words
    cut = trace("hf:Seeing", arguments=("text_config.num_hidden_layers=1", "vision_config.image_size=16"))
    assert cut.mac_count == 4 * patches + 64 * words


@pytest.mark.parametrize(
    ("argument", "kind", "message"),
    [
        ("num_hidden_layer=2", UnknownNameError, "num_hidden_layers"),
        ("text_config.hiden_size=2", UnknownNameError, "hf:Seeing: text_config.*hidden_size"),
        ("tie.twice=1", UsageError, "tie is the value True, which has no nested settings"),
        ("a..b=1", UsageError, "write name=value"),
        ("num_hidden_layers=1000000", ModelError, "num_hidden_layers is 1,000,000, expected at most 2,000"),
        ("text_config.depths=[2, 1000000]", ModelError, "depths is 1,000,000, expected at"),
        ("attn_implementation=evil/kernel", ModelError, "hf:Seeing needs code of a hub, evil/kernel, but joulemap"),
    ],
)
def test_a_setting_that_is_not_there_is_refused(argument: str, kind: type[JoulemapError], message: str) -> None:
    name = "hf:Text" if argument.startswith("num") else "hf:Seeing"
    with pytest.raises(kind, match=message):
        trace(name, arguments=(argument,))


def test_what_asks_for_a_network_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = SimpleNamespace(HF_HUB_OFFLINE=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", constants)

    def download(_config: Settings) -> None:
        assert (os.environ["HF_HUB_OFFLINE"], constants.HF_HUB_OFFLINE) == ("1", True)
        socket.create_connection(("192.0.2.7", 443))

    monkeypatch.setattr(sys.modules["transformers"].AutoModel, "from_config", download)
    with pytest.raises(ModelError, match=r"^hf:Text needs http://192\.0\.2\.7:443, but joulemap downloads nothing"):
        trace("hf:Text")
    assert ("HF_HUB_OFFLINE" in os.environ, constants.HF_HUB_OFFLINE) == (False, False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def test_a_file_holds_a_configuration(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    path.write_text(json.dumps({"model_type": "words", "hidden_size": 32, "dtype": "bfloat16"}))
    first = trace("hf:Text", config=str(path))
    assert first.mac_count == 3 * 64 * 32 * 32
    assert {tensor.dtype for tensor in first.tensors if tensor.role == "parameter"} == {"fp32"}
    assert trace("hf:Text", config=str(path), arguments=("num_hidden_layers=1",)).mac_count == 64 * 32 * 32
    path.write_text(json.dumps({"model_type": "words", "hidden_size": 64}))
    assert request_hub("hf:Text", config=str(path)).key != first.key
    with pytest.raises(ModelError, match=r"words.json is of the model_type words, hf:Seeing of seeing"):
        trace("hf:Seeing", config=str(path))
    with pytest.raises(UsageError, match="resnet18 takes no --config"):
        find_model("resnet18", question.Settings(config=str(path)), None)
    with pytest.raises(UsageError, match="timm:resnet18 takes no --config: hf:NAME does"):
        request_hub("timm:resnet18", config=str(path))
    path.write_text(json.dumps({"model_type": "words", "use_pretrained_backbone": True}))
    assert build_transformers(request_hub("hf:Text", config=str(path)))[0].config.use_pretrained_backbone is False  # type: ignore[union-attr]
    with pytest.raises(ModelError, match="'/dev/zero' cannot be read: it is not a regular file"):
        trace("hf:Text", config="/dev/zero")
    path.write_text("[]")
    with pytest.raises(ModelError, match="expected an object with a model_type"):
        trace("hf:Text", config=str(path))


def weight_bytes(workload: Workload) -> int:
    return sum(access.byte_count for access in workload.accesses if access.role == "weight")


def test_a_file_says_how_its_checkpoint_is_quantized(tmp_path: Path) -> None:
    path = tmp_path / "words.json"
    settings = {"model_type": "words", "hidden_size": 128, "num_hidden_layers": 1}
    path.write_text(json.dumps({**settings, "quantization_config": {"quant_method": "gptq", "bits": 4}}))
    packed = trace("hf:Text", config=str(path))
    assert packed.notes == ("quantization_config: gptq, 4 bits in groups of 128",)
    # a table of 50 words, codes, and a scale and a zero point of each row
    table, matrix = 50 * 128 * 4, 128 * 128
    assert weight_bytes(packed) == table + matrix // 2 + 128 * 2 + 128 // 2
    wider = trace("hf:Text", config=str(path), arguments=("quantization_config.bits=8",))
    assert weight_bytes(wider) == table + matrix + 128 * 2 + 128
    float_model = trace("hf:Text", config=str(path), arguments=("quantization_config=null",))
    assert not float_model.notes
    assert weight_bytes(float_model) == table + matrix * 4
    assert packed.mac_count == wider.mac_count == float_model.mac_count
    with pytest.raises(UsageError, match="quantization_config is 4, expected nested settings"):
        trace("hf:Text", config=str(path), arguments=("quantization_config=4",))
    with pytest.raises(ModelError, match=r"words.json: the quantization_config has no bits"):
        trace("hf:Text", config=str(path), arguments=("quantization_config.bits=null",))
    asked = trace(
        "hf:Text", arguments=("quantization_config.quant_method=fp8", "num_hidden_layers=2", "hidden_size=128")
    )
    # the last of a model's parameters is left as it is
    assert weight_bytes(asked) == table + matrix + 4 + matrix * 4


def test_a_file_beside_it_may_say_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "words", "num_hidden_layers": 1}))
    plain = request_hub(f"hf:{tmp_path}").key
    beside = tmp_path / "hf_quant_config.json"
    beside.write_text(json.dumps({"quantization": {"quant_algo": "FP8", "exclude_modules": ["embed"]}}))
    assert trace(f"hf:{tmp_path}").notes[0].startswith("quantization_config: modelopt, fp8 weights with one scale")
    assert request_hub(f"hf:{tmp_path}").key != plain
    beside.rename(tmp_path / "quantize_config.json").write_text(json.dumps({"bits": 4, "group_size": 16}))
    assert trace(f"hf:{tmp_path}").notes == ("quantization_config: gptq, 4 bits in groups of 16",)


def test_a_part_of_a_file_may_say_it(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    text = {"hidden_size": 16, "quantization_config": {"quant_method": "aqlm"}}
    path.write_text(json.dumps({"model_type": "seeing", "quantization_config": "int4"}))
    with pytest.raises(ModelError, match=r"config.json: quantization_config is 'int4', expected an object of settings"):
        trace(f"hf:{tmp_path}")
    path.write_text(json.dumps({"model_type": "seeing", "text_config": text}))
    (note,) = trace(f"hf:{tmp_path}").notes
    assert note.startswith("quantization_config says aqlm, which is not read: weights are counted at the precision")


def test_a_head_and_a_folder_name_a_model(tmp_path: Path) -> None:
    assert trace("hf:TextForCausalLM").mac_count == 64 * 16 * (3 * 16 + 50)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "words", "vocab_size": 20, "architectures": ["TextForCausalLM"]}))
    assert trace(f"hf:{tmp_path}").mac_count == 64 * 16 * (3 * 16 + 20)
    path.write_text(json.dumps({"model_type": "words", "architectures": ["OfSomebodyElse"]}))
    assert trace(f"hf:{tmp_path}").mac_count == 3 * 64 * 16 * 16
    path.write_text(json.dumps({"model_type": "unheard"}))
    with pytest.raises(ModelError, match="model_type 'unheard', which this version of transformers does not know"):
        trace(f"hf:{tmp_path}")
    with pytest.raises(ModelError, match="no folder 'meta/llama', and nothing is downloaded"):
        trace("hf:meta/llama")
    with pytest.raises(UnknownNameError, match="TextForCausalLM"):
        trace("hf:TextForCausalML")
    with pytest.raises(UnknownNameError, match="'Texd'; did you mean Text"):
        trace("hf:Texd")
    assert trace("hf:words").mac_count == trace("hf:TextConfig").mac_count == trace("hf:Text").mac_count


def test_a_sequence_is_given_by_its_length() -> None:
    spec = parse_input("input_ids=1,40")
    assert spec.dtype == "int64"
    assert [parse_input(text).dtype for text in ("x_mask=1,4", "lengths=3", "mask=1:bool", "masked=1,2", "1,2")] == [
        "int64", "int64", "bool", "fp32", "fp32",
    ]  # fmt: skip
    assert trace("hf:Text", "input_ids=2,40").mac_count == 3 * 2 * 40 * 16 * 16


def test_images_get_the_tokens_that_they_need() -> None:
    workload = trace("hf:Seeing", batch=2)
    assert not workload.notes
    longer = trace("hf:Seeing", "input_ids=2,100")
    assert longer.mac_count - workload.mac_count == 3 * 2 * 36 * 16 * 16
    larger = trace("hf:Seeing", "pixel_values=1,3,80,80")
    assert larger.mac_count == 400 * 3 * 16 * 16 + 3 * (400 + 16) * 16 * 16
    with pytest.raises(ModelError, match="input_ids has 3 tokens, but images, video and sound take 4: give --input"):
        trace("hf:Seeing", "input_ids=1,3")


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ModelError, match="takes no input inputs_ids; did you mean input_ids"):
        trace("hf:Text", "inputs_ids=1,40")
    with pytest.raises(ModelError, match="could not be built: RuntimeError: torchaudio was compiled for another CUDA"):
        trace("hf:Late")


def test_a_mask_is_given_where_a_model_needs_one() -> None:
    assert trace("hf:Padded").operators[-1].output_shape == (1, 128)
