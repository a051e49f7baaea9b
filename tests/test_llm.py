"""Language models as they are served: what a token takes, who serves it best, what fits, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from compare import assert_close
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from ledger import Book, Part


@pytest.fixture
def served() -> tuple[Book, dict[str, Any]]:
    """Two hardware: prompts of 100 tokens, two at a time, and 10 decode steps; b on two devices, with a host's time."""
    book = Book()
    prefill, decode = {"model": "net(tokens=100)", "batch": 2}, {"model": "net(cached=105)", "batch": 2}
    ids = [
        book.add_run([Part(time_s=2.0, compute_j=200.0)], hardware="a", **prefill),
        book.add_run([Part(time_s=0.1, memory_s=0.1, compute_s=0.05, memory_j=4.0)], hardware="a", **decode),
        book.add_run([Part(time_s=1.0, compute_j=300.0)], hardware="b", **prefill),
        book.add_run([Part(time_s=0.05, memory_s=0.05, compute_s=0.02, memory_j=1.5)], hardware="b", **decode),
    ]
    return book, {
        "prefill_ids": ids[::2],
        "decode_ids": ids[1::2],
        "run_ids": ids,
        "device_counts": [1, 2],
        "batches": [2, 2],
        "prefill_passes": [1, 1],
        "prompt": 100,
        "steps": 10,
        "prefill_s": [2.0, 1.0],
        "decode_s": [1.0, 2.0],
        "prefill_j": [200.0, 600.0],
        "decode_j": [40.0, 30.0],
    }


def ask(served: tuple[Book, dict[str, Any]], name: str, **parameters: object) -> list[dict[str, Any]]:
    book, given = served
    return run_query(book.connection, find_query(name), {**given, **parameters}).records()


def test_a_token_worked_out_by_hand(served: tuple[Book, dict[str, Any]]) -> None:
    rows = {(row["label"], row["phase"]): row for row in ask(served, "llm.phase")}
    assert [*rows] == [("a", "prefill"), ("a", "decode"), ("b x2", "prefill"), ("b x2", "decode")]
    prompt, step = rows["a", "prefill"], rows["a", "decode"]
    # 2 prompts of 100 tokens in 2 s with 200 J; 2 sequences of 10 steps in 1 s with 40 J
    assert (prompt["token_count"], prompt["tokens_per_s"], prompt["energy_per_token_j"]) == (200, 100.0, 1.0)
    assert (step["token_count"], step["tokens_per_s"], step["energy_per_token_j"]) == (20, 20.0, 2.0)
    assert (prompt["bound"], prompt["bound_fraction"]) == ("compute", 1.0)
    assert (step["bound"], step["bound_fraction"]) == ("memory", 1.0)
    # two devices share what they make; 10 steps of 50 ms are a quarter of 2 s, the rest is the engine's
    shared = rows["b x2", "decode"]
    assert (shared["tokens_per_s"], shared["tokens_per_s_per_device"]) == (10.0, 5.0)
    assert (shared["bound"], shared["bound_fraction"]) == ("engine", 0.75)
    assert shared["device_power_w"] == 7.5


def test_each_goal_has_its_winner(served: tuple[Book, dict[str, Any]]) -> None:
    rows = {row["goal"]: row for row in ask(served, "llm.winner")}
    assert {goal: (row["label"], row["value"]) for goal, row in rows.items()} == {
        "first_token": ("b x2", 1.0),
        "between_tokens": ("a", 0.1),
        "energy": ("b x2", 1.5),
    }
    assert_close(rows["energy"]["advantage_ratio"], 2.0 / 1.5, rel=1e-12)
    assert rows["between_tokens"]["runner_up"] == "b x2"
    assert rows["energy"]["hardware_count"] == 2
