"""Models of one's own that decode: what a pass of them is called with, counted by hand, and who serves them.

a token      LAYERS x (2 x 64 x 64 of q and o + 2 x 64 x 16 of k and v + 2 x 64 x 96) = 45,056, head 64 x 5,000
a key of it  LAYERS x 2 products x 64 = 256, of the past and of all tokens of the pass
in the cache LAYERS x 2 x 2 heads x 8 = 64 elements
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pytest

import own_decoder
from joulemap.construct.model import trace_request
from joulemap.construct.source import ModelRequest
from joulemap.domain.settings import Settings
from joulemap.physics.fuse import fuse
from joulemap.physics.record.workload import Workload
from joulemap.physics.workload import WorkloadColumns, columns_of
from joulemap.plan.workload import find_model
from joulemap.system.errors import JoulemapError, ModelError, UnknownFamilyError, UsageError
from joulemap.wing.decoder import source as planned
from joulemap.wing.decoder.network.column import NAMED
from joulemap.wing.decoder.network.decoder_pass import DecoderPass
from joulemap.wing.decoder.network.traced import TracedDecoder
from joulemap.wing.llm.setting import Serving
from joulemap.workspace import Workspace
from own_decoder import SIZE, VOCABULARY, WIDTH

FILE: Final = f"{own_decoder.__file__}:"
TOKEN: Final = 45_056
HEAD: Final = WIDTH * VOCABULARY
KEY: Final = 256
HELD: Final = 64

PASSES: Final = ((1, 1, 40), (3, 1, 40), (2, 8, 0), (2, 8, 40))
"""Sequences, tokens of each, cached of each."""


def request(name: str, batch: int, **sizes: int) -> ModelRequest:
    told = ",".join(f"{one}={size}" for one, size in sizes.items())
    return find_model(f"{FILE}{name}({told})", Settings(), batch).request


@cache
def told(name: str, batch: int, tokens: int, cached: int) -> Workload:
    return fuse(trace_request(request(name, batch, tokens=tokens, cached=cached)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["Net", "example", "turned", "stacked", "objects", "sized"])
def test_a_pass_is_counted_at_its_sizes_however_a_past_is_handed_over(name: str) -> None:
    for batch, tokens, cached in PASSES:
        found = told(name, batch, tokens, cached)
        assert found.mac_count == batch * tokens * (TOKEN + HEAD + KEY * (tokens + cached)), (batch, tokens, cached)
        assert found.batch == batch
        held = [one for one in found.tensors if one.role == "input" and one.byte_count and one.dtype != "int64"]
        angles = tokens * SIZE if name == "turned" else 0
        assert sum(one.byte_count for one in held) == 4 * batch * (cached * HELD + angles)
        assert any("logits are of all tokens" in note for note in found.notes) == (tokens > 1 and name != "sized")


def test_sequences_are_divided_and_the_batch_stays() -> None:
    half = fuse(trace_request(request("Net", 4, cached=40, data_devices=2)))
    assert (half.mac_count, half.batch) == (told("Net", 2, 1, 40).mac_count, 4)


def test_a_pass_has_one_name() -> None:
    assert request("Net", 1, cached=0, tokens=1).model == f"{FILE}Net()"
    assert request("Net", 1, cached=5, tokens=1).model == f"{FILE}Net(cached=5)"
    assert request("Net", 1, cached=5).key != request("Net", 1, cached=6).key


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Inside(cached=8)", "has no input for the state of earlier tokens: its forward pass takes ids; return"),
        ("Forgetful(cached=8)", "takes past and returns none: expected (logits, past); return"),
        ("Stacked()", "requires past even without earlier tokens"),
        ("image(cached=8)", "is not a decoder: no input has integers of the shape batch x tokens"),
        ("Net(devices=2)", "got an unexpected keyword argument 'devices'"),
        ("Net(cached=two)", "cached is 'two', expected a whole number"),
    ],
)
def test_what_is_no_decoder_says_what_it_lacks(name: str, said: str) -> None:
    with pytest.raises(JoulemapError) as caught:
        trace_request(find_model(f"{FILE}{name}", Settings(), 1).request)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


class Counter:
    """Traces passes, and counts how many."""

    def __init__(self, name: str = "Net") -> None:
        self.name, self.count = name, 0

    def sample(self, step: DecoderPass, batch: int) -> tuple[WorkloadColumns, tuple[str, ...]]:
        self.count += 1
        found = told(self.name, batch, step.tokens, step.cached)
        return columns_of(found), found.notes

    def decoder(self) -> TracedDecoder:
        return TracedDecoder(name=self.name, prompt=32, sample=self.sample)


def alike(one: WorkloadColumns, other: WorkloadColumns) -> bool:
    return one.batch == other.batch and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in NAMED
        if isinstance(getattr(one, name), np.ndarray)
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ([(DecoderPass(cached=cached), batch) for cached in (9, 17, 20, 64, 99) for batch in (1, 2, 3, 5, 8)], 8),
        ([(DecoderPass(tokens=tokens), 2) for tokens in (2, 5, 11, 16, 40, 64, 90)], 4),
        # of more tokens than the table has rows, these are read once: straight no more
        ([(DecoderPass(tokens=tokens), 1) for tokens in (10, 100, 1000, 2000, 4000, 6000, 8000)], 7),
    ],
)
def test_passes_between_those_that_are_traced_follow_in_every_digit(
    asked: list[tuple[DecoderPass, int]], most: int
) -> None:
    counter = Counter()
    found = counter.decoder().describe(asked)
    assert counter.count <= most
    for step, batch in asked:
        assert alike(found[step, batch], columns_of(told("Net", batch, step.tokens, step.cached))), (step, batch)


def test_a_piece_of_another_prompt_is_a_pass_of_its_own() -> None:
    mixed = DecoderPass(cached=20, chunk=8, chunk_cached=4)
    work = Counter().decoder().describe([(mixed, 3)])[mixed, 3]
    assert work.mac_count.sum() == told("Net", 3, 1, 20).mac_count + told("Net", 1, 8, 4).mac_count


def test_what_a_trace_cannot_do_is_named() -> None:
    with pytest.raises(UsageError, match="on one device: leave out cache=fp8, routing=balanced"):
        Counter().decoder().describe([(DecoderPass(cached=20, cache="fp8", routing="balanced"), 1)])


def test_what_is_held_follows_from_what_a_step_is_given() -> None:
    decoder = Counter().decoder()
    assert [decoder.cache_bytes(tokens, 2.0) for tokens in (50, 1, 1000)] == [2.0 * HELD * one for one in (50, 1, 1000)]
    assert decoder.layer_count == own_decoder.LAYERS
    assert not decoder.is_routed


def test_a_step_that_is_given_nothing_is_refused() -> None:
    decoder = attrs.evolve(Counter().decoder(), sample=lambda step, batch: Counter().sample(DecoderPass(), batch))
    with pytest.raises(ModelError, match="a step has no floating-point input for the state of earlier tokens"):
        decoder.cache_bytes(10)


ASKED: Final[dict[str, Any]] = {"hardware": ["l4"], "batch": (1, 4), "serving": Serving(prompt=48, output=16)}


@pytest.mark.parametrize(
    ("model", "serving", "said"),
    [
        ("Net", Serving(devices=(2,)), "is traced on one device: only data_devices can divide its work"),
        ("Net", Serving(cache="fp8"), "takes no argument 'cache'"),
        ("Nett", Serving(), "has no Nett; did you mean Net"),
        ("Net(tokens=3)", Serving(), "unknown language model"),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_line(
    workspace: Workspace, model: str, serving: Serving, said: str
) -> None:
    with pytest.raises(JoulemapError) as caught:
        workspace.llm(f"{FILE}{model}", hardware=["l4"], serving=serving)
    assert said in str(caught.value)


def test_a_file_without_a_name_in_it_is_refused(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="name the function, class or module"):
        workspace.llm(FILE.removesuffix(":"))


def test_a_family_that_nobody_reads_needs_its_library(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "lama", "max_position_embeddings": 512}))
    monkeypatch.setattr(planned, "package_version", lambda name: "absent")
    with pytest.raises(UnknownFamilyError, match=r"the nearest that is known is llama\..*pip install torch transform"):
        workspace.llm(str(path), **ASKED)


@pytest.mark.slow
@pytest.mark.parametrize("step", [DecoderPass(cached=200), DecoderPass(tokens=60), DecoderPass(tokens=30, cached=20)])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_traced_llama_is_the_one_that_ships_in_every_digit(step: DecoderPass, batch: int) -> None:
    pytest.importorskip("transformers")
    from joulemap.physics.record.workload import NO_KEY
    from joulemap.wing.decoder.network.layer import describe_step
    from joulemap.wing.decoder.network.read import read_config

    sizes: dict[str, object] = {
        "num_hidden_layers": 3,
        "hidden_size": 96,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "intermediate_size": 200,
        "vocab_size": 1000,
    }
    ours = read_config({"model_type": "llama", "head_dim": 16, "tie_word_embeddings": False, **sizes}, "llama")
    settings = Settings(arguments=sizes)
    theirs = fuse(trace_request(find_model(step.spell("hf:LlamaConfig"), settings, batch).request))
    counted = describe_step(ours, step, batch, NO_KEY)
    assert theirs.mac_count == counted.mac_count
    assert theirs.parameter_count == counted.parameter_count

    def sample(step: DecoderPass, batch: int) -> tuple[WorkloadColumns, tuple[str, ...]]:
        found = fuse(trace_request(find_model(step.spell("hf:LlamaConfig"), settings, batch).request))
        return columns_of(found), found.notes

    traced = TracedDecoder(name="llama", prompt=64, sample=sample)
    assert traced.cache_bytes(100) == ours.cache_bytes(100)
    assert traced.layer_count == ours.layer_count
