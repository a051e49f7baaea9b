"""A past that is given and that rows are joined to: an engine appends in place, everything else copies it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from joulemap.ask.rule import find_appending
from joulemap.domain.remark import write_appending
from joulemap.physics.kernel import form_kernels
from joulemap.physics.merge import build
from joulemap.physics.record.runtime import RUNTIME
from joulemap.physics.record.workload import APPEND, Workload
from joulemap.physics.workload import ROLE_CODE, columns_of
from joulemap.show.caveat import CAVEAT
from models import Function, meta, shipped, trace

PAST, NEW, HEADS, WIDTH = 500, 4, 2, 16
ROW = HEADS * WIDTH * 4
"""Bytes of a token in one cache at fp32."""

Attend = Callable[..., object]


def legacy(x: Tensor, keys: Tensor, values: Tensor) -> object:
    """Tuples of (batch, heads, tokens, width), returned."""
    k, v = torch.cat((keys, x * 2), 2), torch.cat((values, x * 3), 2)
    return functional.scaled_dot_product_attention(x, k, v), (k, v)


def unreturned(x: Tensor, keys: Tensor, values: Tensor) -> object:
    """As a cache that the caller holds as an object."""
    k, v = torch.cat((keys, x * 2), -2), torch.cat((values, x * 3), -2)
    return functional.scaled_dot_product_attention(x, k, v)


def grown(x: Tensor, keys: Tensor, values: Tensor) -> object:
    """As transformers' cache, which begins empty and is given the past first."""
    empty = torch.tensor([], device="meta")
    k = torch.cat((torch.cat((empty, keys), -2), x * 2), -2)
    v = torch.cat((torch.cat((empty, values), -2), x * 3), -2)
    return functional.scaled_dot_product_attention(x, k, v)


def written_out(x: Tensor, keys: Tensor, values: Tensor) -> object:
    k, v = torch.cat((keys, x * 2), 2), torch.cat((values, x * 3), 2)
    return torch.softmax(x @ k.transpose(2, 3) * 0.25, -1) @ v


def transposed(x: Tensor, keys: Tensor, values: Tensor) -> object:
    """Keys of (batch, heads, width, tokens), joined along the last dimension."""
    k = torch.cat((keys.transpose(2, 3), (x * 2).transpose(2, 3)), 3)
    return x @ k, torch.cat((values, x * 3), 2)


CACHES: list[Attend] = [legacy, unreturned, grown, written_out, transposed]


def traced(attend: Attend) -> Workload:
    return trace(Function(attend), *(meta(1, HEADS, count, WIDTH) for count in (NEW, PAST, PAST)))


@pytest.mark.parametrize("attend", CACHES)
def test_an_engine_moves_the_new_rows_of_a_cache_and_holds_it_once(attend: Attend) -> None:
    workload = traced(attend)
    joins = [index for index, one in enumerate(workload.operators) if one.variant == APPEND]
    assert len(joins) == (4 if attend is grown else 2)
    assert sum("given keys and values" in note for note in workload.notes) == 1
    copied, work = columns_of(workload), build(columns_of(workload), RUNTIME["engine"])
    is_output = work.access_role == ROLE_CODE["output"]
    mine = np.isin(work.access_operator, joins)
    whole = (len(joins) * PAST + 2 * NEW) * ROW
    assert copied.access_bytes[mine & is_output].sum() == whole == copied.access_bytes[mine & ~is_output].sum()
    assert work.access_bytes[mine & is_output].sum() == 2 * NEW * ROW == work.access_bytes[mine & ~is_output].sum()
    assert work.output_element_count[joins].sum() == 2 * NEW * ROW / 4
    assert work.buffer_bytes[work.buffer_bytes >= PAST * ROW].tolist() == [(PAST + NEW) * ROW] * 2
    assert build(work, RUNTIME["engine"]) is work


@pytest.mark.parametrize("attend", [legacy, unreturned])
def test_attention_reads_all_of_a_cache_off_chip_and_only_an_engine_does_not_copy_it(attend: Attend) -> None:
    cache, row = 2 * (PAST + NEW) * ROW, NEW * ROW
    work = columns_of(traced(attend))
    engine, fused, graph = (form_kernels(work, "fp32", runtime) for runtime in ("engine", "fused", "graph"))
    attends = engine.work.of_kind("matmul")
    # the queries are an input, which both appends read too
    assert engine.entering_bytes[attends].sum() == cache + row
    assert engine.entering_bytes.sum() == cache + 3 * row
    assert engine.leaving_bytes.sum() >= 2 * row
    for copied in (fused, graph):
        assert copied.moved_bytes.sum() - engine.moved_bytes.sum() >= 2 * 2 * PAST * ROW


def test_a_past_that_is_stacked_is_appended_to_part_by_part() -> None:
    def attend(x: Tensor, past: Tensor) -> object:
        return legacy(x, past[0], past[1])

    workload = trace(Function(attend), meta(1, HEADS, NEW, WIDTH), meta(2, 1, HEADS, PAST, WIDTH))
    assert sum(one.variant == APPEND for one in workload.operators) == 2
    work = build(columns_of(workload), RUNTIME["engine"])
    assert work.buffer_bytes[work.buffer_bytes >= PAST * ROW].tolist() == [(PAST + NEW) * ROW] * 2


def skip(x: Tensor) -> Tensor:
    """A skip connection: what is joined was given, and the sum of squares is no activation's product."""
    return torch.cat((x, x * 2), 1).sum(1)


class Coordinates(nn.Module):
    """An image with planes beside it, as a convolution reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(6, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(torch.cat((x, torch.ones_like(x).cumsum(-1)), 1))
        return out


class Prefix(nn.Module):
    """Tokens of an image before those of a text, and learned ones before keys."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.learned = nn.Parameter(torch.empty(1, 3, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(torch.cat((x, self.linear(x.flip(1))), 1))
        keys = torch.cat((self.learned, y), 1)
        out: Tensor = y @ keys.transpose(1, 2)
        return out


@pytest.mark.parametrize(
    ("module", "inputs"),
    [
        (Function(skip), (meta(1, 3, 8, 8),)),
        (Coordinates().to("meta"), (meta(1, 3, 8, 8),)),
        (Prefix().to("meta"), (meta(1, 5, WIDTH),)),
        (Function(lambda x, y: torch.cat((x, y), 1)), (meta(1, 3, 8), meta(1, 1, 8))),
        # the past is read beside
        (Function(lambda x, past: (x @ torch.cat((past, x * 2), 1).mT, past * 2)), (meta(1, 3, 8), meta(1, 9, 8))),
    ],
)
def test_other_joins_are_copies(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
    workload = trace(module, *inputs)
    assert any(one.operation in ("cat", "append") for one in workload.operators)
    assert not any(one.variant == APPEND for one in workload.operators)
    assert not workload.notes


def test_densenet_joins_nothing_in_place() -> None:
    assert not any("append" in one for one in shipped("densenet121").variant.tolist())


@pytest.mark.parametrize(
    ("runtimes", "writes", "copies"),
    [
        (("engine",), True, False),
        (("eager", "fused"), True, True),
        (("engine", "fused"), True, True),
        ((), True, True),
    ],
)
def test_an_answer_says_of_its_own_runtimes_what_they_do_to_a_past(
    runtimes: tuple[str, ...], writes: bool, copies: bool
) -> None:
    (note,) = traced(legacy).notes
    assert note == write_appending(2)
    found = find_appending(2, note, runtimes)
    told = CAVEAT[found.kind](**found.values)
    assert ("in place" in told, "cop" in told) == (writes, copies)
    assert told.startswith("traced: 2 x cat appends")
