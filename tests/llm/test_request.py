"""Requests that are drawn, and files of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare import assert_close
from joulemap.system.errors import UsageError
from joulemap.wing.llm.serving.load import Load
from joulemap.wing.llm.serving.request import draw_requests, read_requests


def write(folder: Path, text: str) -> Path:
    path = folder / "requests.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read_in_order_of_arrival(tmp_path: Path) -> None:
    text = "output_tokens,arrival_s,prompt_tokens,user\n5,10.0,200,a\n\n7,12.5,100,b\n"
    asked = read_requests(write(tmp_path, text))
    assert asked.arrival_s == (0.0, 2.5)
    assert asked.prompt_tokens == (200, 100)
    assert asked.output_tokens == (5, 7)
    assert asked.cached_tokens == (0, 0)


def test_requests_without_arrivals_are_there_at_once(tmp_path: Path) -> None:
    asked = read_requests(write(tmp_path, "prompt_tokens,output_tokens,cached_tokens\n100,5,60\n50,6,\n"))
    assert asked.arrival_s == (0.0, 0.0)
    assert asked.cached_tokens == (60, 0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("arrival_s,prompt_tokens\n0,1\n", "line 1: no column output_tokens"),
        ("", "line 1: no column prompt_tokens or output_tokens"),
        ("prompt_tokens,output_tokens\n", "has 0 requests"),
        ("prompt_tokens,output_tokens\n10,5\n10\n", "line 3: 1 cells, 2 expected"),
        ("prompt_tokens,output_tokens\n10,ten\n", "line 2: output_tokens: 'ten' is not a whole number"),
        ("prompt_tokens,output_tokens\n0,5\n", "line 2: prompt_tokens is 0, expected 1 to"),
        ("prompt_tokens,output_tokens,arrival_s\n1,5,nan\n", "line 2: arrival_s: 'nan' is not a finite number"),
        ("prompt_tokens,output_tokens,arrival_s\n1,5,2\n\n1,5,1\n", "line 4: arrival_s is 1, earlier than the 2"),
        ("prompt_tokens,output_tokens,arrival_s\n1,5,-1\n", "line 2: arrival_s is -1, expected 0"),
        ("prompt_tokens,output_tokens,arrival_s\n1,5,1\n1,5,\n", "line 3: arrival_s is empty"),
        ("prompt_tokens,output_tokens,cached_tokens\n9,5,9\n", "line 2: cached_tokens is 9, expected fewer than the 9"),
        ("prompt_tokens,output_tokens,conversation,cached_tokens\n9,5,a,4\n", "conversation and cached_tokens"),
        ("prompt_tokens,output_tokens\n" + "x,1\n" * 5, "line 4: .*; and 2 more"),
    ],
)
def test_a_bad_line_is_named(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told) as refused:
        read_requests(write(tmp_path, text))
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_requests(tmp_path / "none.csv")


def test_lengths_are_spread_around_the_nominal_ones() -> None:
    asked = draw_requests(Load(requests=5000, prompt_tokens=1000, output_tokens=200, spread_fraction=0.2), 0)
    assert (min(asked.prompt_tokens), max(asked.prompt_tokens)) == (800, 1200)
    assert (min(asked.output_tokens), max(asked.output_tokens)) == (160, 240)
    assert_close(sum(asked.prompt_tokens) / 5000, 1000, rel=0.01)


def test_arrivals_have_their_rate(tmp_path: Path) -> None:
    lengths = read_requests(write(tmp_path, "prompt_tokens,output_tokens,arrival_s\n" + "10,5,1\n" * 5000))
    asked = draw_requests(Load(rate_per_s=4.0, trace=lengths), 0)
    assert_close(asked.arrival_s[-1], 5000 / 4.0, rel=0.05)
    assert list(asked.arrival_s) == sorted(asked.arrival_s)
    assert draw_requests(Load(trace=lengths), 0) is lengths
