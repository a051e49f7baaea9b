"""Published models by the names that people type: they ship with the MACs and parameters of their layers."""

from __future__ import annotations

from collections import Counter

import pytest

from compare import assert_close
from joulemap.catalog.sheet import load_models, load_shipped
from joulemap.construct.model import trace_request
from joulemap.construct.source import parse_input, resolve_model
from joulemap.domain.catalogue import find_model_name
from joulemap.plan.model import Model
from joulemap.plan.workload import trace
from joulemap.system import resource
from joulemap.system.errors import ModelError, UnknownNameError
from joulemap.system.name import fold_name
from joulemap.wing.hub.published import load_published


def count_encoder(layers: int, width: int, inner: int, tokens: int) -> int:
    """Return the MACs of a transformer encoder: four projections, two of the MLP, scores and their use."""
    return layers * (tokens * (4 * width**2 + 2 * width * inner) + 2 * tokens**2 * width)


def count_bert(layers: int, width: int, inner: int, vocabulary: int = 30_522, positions: int = 512) -> int:
    """Return the parameters of BERT: embeddings and their norm, layers with biases and two norms, and the pooler."""
    layer = 4 * (width**2 + width) + 2 * width * inner + inner + width + 4 * width
    return (vocabulary + positions + 2) * width + 2 * width + layers * layer + width**2 + width


BERT = {
    "bert-base-uncased": (12, 768, 3072, 128), "bert-base-uncased-384": (12, 768, 3072, 384),
    "bert-base-uncased-512": (12, 768, 3072, 512), "bert-large-uncased": (24, 1024, 4096, 128),
    "bert-large-uncased-384": (24, 1024, 4096, 384), "bge-small-en-v1.5": (12, 384, 1536, 128),
    "all-minilm-l6-v2": (6, 384, 1536, 128), "all-minilm-l6-v2-256": (6, 384, 1536, 256),
}  # fmt: skip
"""Model -> its layers, width, inner width and tokens."""


@pytest.mark.parametrize("name", BERT)
def test_bert_has_the_macs_and_parameters_of_its_layers(name: str) -> None:
    layers, width, inner, tokens = BERT[name]
    shipped = load_shipped()[name]
    assert shipped.is_affine
    assert shipped.mac_count == count_encoder(layers, width, inner, tokens) + width**2
    assert shipped.parameter_count == count_bert(layers, width, inner)


def test_an_image_tower_has_the_macs_of_its_patches_and_layers() -> None:
    # ViT-B/32 of 224 pixels: 7 x 7 patches of 3 x 32 x 32 values, a class token, 12 layers: 4.41 GMACs
    assert load_shipped()["clip-vit-base-patch32-image"].mac_count == 49 * 3072 * 768 + count_encoder(12, 768, 3072, 50)
    # DINOv2 ViT-B/14: 16 x 16 patches of 3 x 14 x 14
    assert load_shipped()["dinov2-base"].mac_count == 256 * 588 * 768 + count_encoder(12, 768, 3072, 257)


PARAMETERS = {
    "bert-base-uncased": 110, "bert-large-uncased": 335, "distilbert-base-uncased": 66, "roberta-base": 125,
    "roberta-large": 355, "xlm-roberta-base": 278, "bge-m3": 568, "all-mpnet-base-v2": 110, "modernbert-base": 149,
    "albert-base-v2": 12, "mobilebert-uncased": 25, "t5-small": 60, "t5-base": 223, "t5-xxl-encoder": 4762,
    "clip-vit-base-patch32": 151, "clip-vit-large-patch14": 428, "siglip-base-patch16-224": 203,
    "siglip-so400m-patch14-384-image": 428, "dinov2-small": 22, "dinov2-base": 86, "dinov2-large": 304,
    "sam-vit-base-encoder": 90, "sam-vit-huge-encoder": 637, "detr-resnet-50": 41.5,
    "segformer-b0": 3.75, "depth-anything-v2-small": 24.8, "wav2vec2-base": 95, "wav2vec2-large": 317,
    "sd-1.5-unet": 860, "sd-1.5-vae-decoder": 49.5, "sdxl-unet": 2567, "sd-3-medium": 2028, "flux.1-dev": 11_901,
    "deberta-v3-small": 141, "deberta-v3-base": 184, "deberta-v3-large": 434, "nomic-embed-text-v1.5": 137,
    "gte-multilingual-base": 305, "jina-embeddings-v3": 559, "flan-t5-small": 77, "flan-t5-base": 248,
    "flan-t5-large": 783, "flan-t5-xl": 2850, "siglip2-base-patch16-224": 375, "siglip-large-patch16-256": 652,
    "eva02-base-patch14-448": 87.1, "eva02-large-patch14-448": 305, "mobilenetv4-conv-small": 3.77,
    "mobilenetv4-conv-medium": 9.72, "mobilenetv4-conv-large": 32.6, "dinov3-vits16": 21.6,
    "depth-anything-v2-base": 97.5, "rtdetr-r50vd": 42.7, "sd-3.5-large": 8057,
}  # fmt: skip
"""Model -> millions of parameters as its publisher states them, or its checkpoint has."""


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_published_model_has_its_published_parameters(name: str) -> None:
    assert_close(float(load_shipped()[name].parameter_count), PARAMETERS[name] * 1e6, rel=0.03)


GMACS = {
    "segformer-b0": 8.4, "detr-resnet-50": 86, "clip-vit-base-patch32-image": 4.4,
    "sd-1.5-unet": 402, "sdxl-unet": 2980 + 400, "mobilenetv4-conv-small": 0.19, "mobilenetv4-conv-medium": 1.1,
    "mobilenetv4-conv-large": 6.4, "rtdetr-r50vd": 68,
}  # fmt: skip
"""Model -> billions of MACs of one pass as published.

Counters that skip attention products give 339 of Stable Diffusion 1.5 and 2,980 of SDXL; both have them counted here.
DETR's figure is the mean over images of COCO.
"""


@pytest.mark.parametrize("name", GMACS)
def test_a_published_model_has_its_published_macs(name: str) -> None:
    assert_close(float(load_shipped()[name].mac_count), GMACS[name] * 1e9, rel=0.06)


def test_a_guided_step_is_two_samples() -> None:
    for name in ("sd-1.5-unet", "sdxl-unet", "sd-3-medium"):
        whole, half = load_shipped()[f"{name}-guided"], load_shipped()[name]
        assert (whole.mac_count, whole.parameter_count) == (2 * half.mac_count, half.parameter_count)


def test_the_attention_of_a_unet_is_counted() -> None:
    # self-attention of 4,096, 1,024, 256 and 64 places: five blocks each of the widths 320, 640 and 1280, one at 64
    blocks = [(4096, 320, 5), (1024, 640, 5), (256, 1280, 5), (64, 1280, 1)]
    attention = sum(count * 2 * width * places * (places + 77) for places, width, count in blocks)
    assert_close(load_shipped()["sd-1.5-unet"].mac_count - attention, 339e9, rel=0.01)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("bert", "bert-base-uncased"),
        ("google-bert/bert-base-uncased", "bert-base-uncased"),
        ("BAAI/bge-large-en-v1.5", "bert-large-uncased"),
        ("bge-base-en-v1.5-512", "bert-base-uncased-512"),
        ("sentence-transformers/all-MiniLM-L6-v2", "all-minilm-l6-v2"),
        ("facebook/dinov2-large", "dinov2-large"),
        ("black-forest-labs/FLUX.1-dev", "flux.1-dev"),
        ("microsoft/deberta-v3-base", "deberta-v3-base"),
        ("nomic-ai/nomic-embed-text-v1.5", "nomic-embed-text-v1.5"),
        ("stabilityai/stable-diffusion-3.5-large", "sd-3.5-large"),
        ("stabilityai/stable-diffusion-xl-base-1.0", "sdxl-unet"),
        ("SD15", "sd-1.5-unet"),
        ("microsoft/resnet-50", "resnet50"),
        ("google/vit-base-patch16-224", "vit_b_16"),
        ("no/where/bert", "no/where/bert"),
        ("./bert", "./bert"),
    ],
)
def test_a_model_is_found_by_its_other_names(written: str, expected: str) -> None:
    assert find_model_name(written, load_models()) == expected


PAIRS = ["regnetx16gf", "regnetx32gf", "regnety16gf", "regnety32gf"]
"""Names of torchvision that differ by a `_` between digits alone."""


def test_a_name_means_one_model() -> None:
    models = load_models()
    assert set(load_published()) <= set(models)
    aliases = [fold_name(alias) for entry in models.values() for alias in entry.aliases]
    assert [name for name, count in Counter([*aliases, *map(fold_name, models)]).items() if count > 1] == PAIRS
    for model in load_published().values():
        entry = models[model.name]
        assert (entry.package, entry.aliases, entry.family) == (model.library, model.aliases, model.family)
        assert model.source
        assert model.basis == ("recalled" if "recalled" in model.source else "published")


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("bert-tiny", "bert"),
        ("stable-difusion", "stable-diffusion"),
        ("sdx", "sdxl"),
        ("t5x", "t5"),
        ("unet", "sd-unet"),
    ],
)
def test_a_misspelt_name_suggests_a_published_model_once(written: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        resolve_model(written, load_models())
    assert raised.value.near[0] == near
    assert len({find_model_name(name, load_models()) for name in raised.value.near}) == len(raised.value.near)


def test_another_input_needs_the_library_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "package_version", lambda name: "absent" if name == "transformers" else "2.14.1")
    request = resolve_model("bert-base-uncased", load_models(), inputs=[parse_input("input_ids=1,200")])
    with pytest.raises(ModelError, match=r"needs PyTorch and transformers: pip install 'joulemap\[models\]'"):
        trace(Model(request=request, retrace=False), print)


def test_an_input_replaces_that_of_a_built_in_detector() -> None:
    request = resolve_model("yolov8n", load_models(), inputs=[parse_input("1,3,320,320")])
    assert 4 * trace_request(request).mac_count == load_shipped()["yolov8n"].mac_count


@pytest.mark.parametrize(
    ("name", "given", "macs"),
    [
        ("bert-base-uncased", "input_ids=2,384", 2 * (count_encoder(12, 768, 3072, 384) + 768**2)),
        ("all-minilm-l6-v2", "1,256", count_encoder(6, 384, 1536, 256) + 384**2),
    ],
)
def test_an_input_of_another_length_is_traced(name: str, given: str, macs: int) -> None:
    pytest.importorskip("transformers")
    assert trace_request(resolve_model(name, load_models(), inputs=[parse_input(given)])).mac_count == macs
