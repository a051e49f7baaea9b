"""Inputs whose values count: lengths, ids and masks; and tensors inside caches, dataclasses and other objects."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from joulemap.construct.model import trace_request
from joulemap.construct.source import ModelRequest
from joulemap.physics.record.workload import NO_KEY, Workload
from joulemap.system.errors import ModelError
from joulemap.trace.argument import named_tensors, replace_tensors, tensors_in
from joulemap.trace.module import trace_module


def trace(module: nn.Module, *args: Any, **kwargs: Any) -> Workload:
    return trace_module(module, args, kwargs, key=NO_KEY, model="model", batch=1)


def traced_at(module: nn.Module, inputs: object, batch: int) -> Workload:
    return trace_request(ModelRequest(model="model", kind="module", batch=batch, held=(module, inputs)))


def bytes_by_role(workload: Workload, role: str) -> int:
    return sum(tensor.byte_count for tensor in workload.tensors if tensor.role == role)


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        padded, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        last: Tensor = self.head(padded[:, -1])
        return last


def test_lengths_keep_their_values() -> None:
    workload = trace(Packed(), torch.zeros(3, 7, dtype=torch.int64), torch.tensor([7, 2, 5]))
    assert sum(operator.mac_count for operator in workload.operators) == 14 * 4 * 8 * (16 + 8) + 3 * 8 * 2
    assert bytes_by_role(workload, "input") == 8 * (21 + 3)


class Masked(nn.Module):
    """A part of a Conformer: padding is what lies behind a length."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, features: Tensor, lengths: Tensor) -> Tensor:
        most = int(torch.max(lengths).item())
        mask = torch.arange(most, device=lengths.device)[None] >= lengths[:, None]
        hidden: Tensor = self.linear(features[:, :most].masked_fill(mask[..., None], 0.0))
        return hidden


def test_a_length_that_is_read_decides_sizes() -> None:
    workload = trace(Masked(), torch.zeros(2, 9, 8), torch.tensor([3, 6]))
    assert workload.mac_count == 2 * 6 * 8 * 8
    assert not workload.notes


class Joined(nn.Module):
    """A language model that sees: each feature of the image takes the place of one token of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.head = nn.Linear(16, 16)

    def forward(self, ids: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        text, features = self.embed(ids), self.patches(image).flatten(2).transpose(1, 2).reshape(-1, 16)
        mask = (ids == 7).to(text.device)
        if int(mask.sum()) != len(features):
            raise ValueError(f"{int(mask.sum())} tokens for {len(features)} features")
        joined = text.masked_scatter(mask[..., None].expand_as(text), features)
        return self.head(joined), joined[mask]


def test_image_tokens_that_match_are_counted_exactly() -> None:
    ids = torch.zeros(2, 10, dtype=torch.int64)
    ids[:, 2:6] = 7
    workload = trace(Joined(), ids, torch.zeros(2, 3, 8, 8))
    assert workload.mac_count == 8 * 16 * 48 + 20 * 16 * 16
    assert workload.operators[-1].output_shape == (8, 16)
    assert not workload.notes
    with pytest.raises(ModelError, match="0 tokens for 8 features"):
        trace(Joined(), torch.zeros(2, 10, dtype=torch.int64), torch.zeros(2, 3, 8, 8))


def test_ids_with_values_count_as_those_without() -> None:
    module = nn.Sequential(nn.Embedding(50, 16), nn.Linear(16, 4))
    ids = torch.zeros(2, 5, dtype=torch.int64)
    real, meta = trace(module, ids), trace(module, ids.to("meta"))
    assert real == meta
    assert not any(operator.is_foldable for operator in real.operators)


class Rebuilt(nn.Module):
    """Reads its ids as a list, and makes a tensor of it."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 16)

    def forward(self, ids: Tensor) -> Tensor:
        again = torch.tensor(ids.tolist(), device=self.embed.weight.device)
        joined: Tensor = self.embed(again) + torch.full((16,), int(ids.sum()))
        return joined


def test_what_is_made_of_numbers_read_from_an_input_depends_on_it() -> None:
    workload = trace(Rebuilt(), torch.ones(1, 4, dtype=torch.int64))
    assert not any(
        operator.is_foldable for operator in workload.operators if operator.operation in ("embedding", "add")
    )


class Counting(nn.Module):
    """Writes activations into a tensor of numbers, which has no values from there on."""

    def forward(self, values: Tensor) -> Tensor:
        table = torch.zeros(4, 3)
        row = table[1]
        row.copy_(values[0])
        return table.sum(0) * values[0]


def test_a_write_through_a_view_is_followed() -> None:
    workload = trace(Counting(), torch.zeros(2, 3))
    assert not any(operator.is_foldable for operator in workload.operators if operator.operation in ("reduce", "mul"))


class Layer:
    def __init__(self, width: int) -> None:
        self.keys, self.length = torch.zeros(2, 4, width), torch.tensor(4)


class Cache:
    """Holds tensors as no tree of containers does."""

    def __init__(self, width: int) -> None:
        self.layers = [Layer(width), Layer(width)]

    def append(self, index: int, keys: Tensor) -> Tensor:
        self.layers[index].keys = torch.cat([self.layers[index].keys, keys], 1)
        return self.layers[index].keys


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.keys = nn.Linear(8, 8, bias=False)

    def forward(self, x: Tensor, cache: Cache) -> Tensor:
        for index in range(2):
            x = torch.softmax(x @ cache.append(index, self.keys(x)).transpose(1, 2), -1) @ cache.layers[index].keys
        return x


def test_a_cache_is_an_input_and_no_weight() -> None:
    cache = Cache(8)
    inputs = {"x": torch.zeros(2, 1, 8), "cache": cache}
    workload = traced_at(Cached(), inputs, 2)
    assert workload.weight_bytes == 4 * 64
    # x, and two layers of keys; the lengths are read by nothing
    assert bytes_by_role(workload, "input") == 4 * (2 * 8 + 2 * 2 * 4 * 8) + 2 * 8
    assert cache.layers[0].keys.shape == (2, 4, 8)
    assert traced_at(Cached(), inputs, 6).mac_count == 3 * workload.mac_count
    assert [place for place, _ in named_tensors(inputs)] == [
        "['x']", "['cache'].layers[0].keys", "['cache'].layers[0].length", "['cache'].layers[1].keys",
        "['cache'].layers[1].length",
    ]  # fmt: skip


def test_a_batch_that_does_not_fit_a_cache_says_where() -> None:
    inputs = {"x": torch.zeros(1, 1, 8), "cache": Cache(8)}
    with pytest.raises(ModelError, match=r"\['x'\] 1x1x8, \['cache'\].layers\[0\].keys 2x4x8, .* cannot be set to 4"):
        traced_at(Cached(), inputs, 4)


@dataclasses.dataclass(frozen=True)
class Sample:
    image: Tensor
    sizes: tuple[Tensor, ...]


class Sampled(nn.Module):
    def forward(self, sample: Sample) -> Tensor:
        return sample.image * sample.sizes[0]


def test_a_dataclass_is_an_input() -> None:
    sample = Sample(torch.zeros(2, 3), (torch.ones(2, 1),))
    workload = traced_at(Sampled(), sample, 4)
    assert bytes_by_role(workload, "input") == 4 * (12 + 4)
    assert workload.weight_bytes == 0
    assert workload.operators[0].output_shape == (4, 3)


def test_tensors_are_replaced_in_copies_and_shared_ones_once() -> None:
    shared = torch.zeros(2, 3)
    module = nn.Linear(2, 2)
    made = {"a": shared, "b": Sample(shared, (torch.zeros(1),)), "c": module, "d": "text"}
    replaced = replace_tensors(made, lambda tensor: tensor + 1)
    assert replaced["b"].image is replaced["a"] and replaced["a"] is not shared
    assert float(made["b"].sizes[0]) == 0.0 and float(replaced["b"].sizes[0]) == 1.0  # type: ignore[attr-defined]
    assert replaced["c"] is module and replaced["d"] == "text"
    assert len(tensors_in(made)) == 2


class Locked:
    def __init__(self) -> None:
        import threading

        self.tensor, self.lock = torch.zeros(1), threading.Lock()


def test_an_input_that_cannot_be_copied_is_refused() -> None:
    with pytest.raises(ModelError, match="the inputs hold a Locked that cannot be copied: TypeError"):
        trace(nn.Identity(), Locked())


class Moved(nn.Module):
    """Sends activations to where its ids are."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(8, 4)

    def forward(self, ids: Tensor) -> Tensor:
        mask = (ids != 0).to(self.embed.weight.device)[..., None]
        joined: Tensor = self.embed(ids).to(ids.device) * mask.to(torch.float16)
        return joined


def test_all_devices_are_one() -> None:
    workload = trace(Moved(), torch.zeros(1, 3, dtype=torch.int64))
    moved = [operator for operator in workload.operators if operator.operation == "to" and operator.kind != "view"]
    assert [operator.dtype for operator in moved] == ["fp16"]


class Attending(nn.Module):
    """Attends to what is no padding."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        low = torch.tensor(-1e4, device=x.device)
        hidden = torch.zeros((1, 1, *mask.shape), device=x.device).masked_fill(mask[None, None] == 0, low)
        return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask[None, None] > 0) + hidden.mean()


def test_a_mask_with_values_goes_into_attention() -> None:
    workload = trace(Attending(), torch.zeros(1, 2, 4, 8), torch.ones(4, 4, dtype=torch.int64))
    assert workload.mac_count == 2 * 2 * 4 * 4 * 8
    assert not any(operator.is_foldable for operator in workload.operators if operator.operation == "softmax")
