"""A run's energy-delay product: shares add up exactly, cuts are the fewest, every sentence follows from a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from compare import assert_close
from joulemap.ask.edp import EdpAnswer
from joulemap.physics.record.configuration import Precision
from joulemap.physics.record.runtime import RuntimeName
from joulemap.store.library import find_query
from joulemap.store.query import run_query
from joulemap.workspace import Workspace
from lazy import Lazy
from ledger import Book, Part

CASES: dict[str, tuple[str, str, Precision, RuntimeName]] = {
    "cpu": ("resnet18", "xeon_8490h", "fp32", "fused"),
    "gpu": ("resnet18", "h100_sxm5", "bf16", "graph"),
    "tpu": ("mobilenet_v2", "coral", "int8", "fused"),
    "kpu": ("resnet18", "kpu_t256", "fp32", "eager"),
    "dsp": ("squeezenet1_1", "tda4vm_c7x_mma", "int8", "fused"),
    "npu": ("mobilenet_v2", "gaudi2", "bf16", "fused"),
    "dpu": ("resnet18", "dpu_b4096_kv260", "int8", "eager"),
    "cgra": ("attention_head", "plasticine", "fp32", "fused"),
}
"""Architecture class -> model, hardware, precision, runtime."""


@pytest.fixture(scope="module")
def answers(workspace: Workspace) -> Mapping[str, EdpAnswer]:
    def ask_edp(name: str) -> EdpAnswer:
        model, hardware, precision, runtime = CASES[name]
        return workspace.edp(model, hardware, precision=precision, runtime=runtime)

    return Lazy(ask_edp)


@pytest.fixture(scope="module")
def book() -> Book:
    """E = 10 J and T = 4 s of three subgraphs with 6, 3 and 1 J in 1, 2 and 1 s."""
    book = Book()
    book.add_run(
        [
            Part(time_s=1.0, compute_j=4.0, static_j=2.0, mac_count=25, executed_mac_count=50.0, units=2, tiles=2.0),
            Part(time_s=2.0, memory_j=2.0, static_j=1.0, launch_s=0.5, compute_s=0.5, memory_s=1.5, dram_bytes=10.0),
            Part(time_s=1.0, control_j=0.5, static_j=0.5, launch_s=1.0, pattern="add"),
        ]
    )
    return book


def ask(book: Book, name: str, **parameters: object) -> list[dict[str, Any]]:
    return run_query(book.connection, find_query(name), parameters).records()


def test_shares_worked_out_by_hand(book: Book) -> None:
    rows = ask(book, "edp.distribution", run_id=1)
    assert [row["name"] for row in rows] == ["part0", "part1", "part2"]
    # (E_i T + E t_i) / 2 with E = 10 J and T = 4 s: (6 x 4 + 10 x 1) / 2 and so on
    assert [row["edp_share_js"] for row in rows] == [17.0, 16.0, 7.0]
    assert [row["edp_js"] for row in rows] == [6.0, 6.0, 1.0]
    for row, share in zip(rows, (17 / 40, 16 / 40, 7 / 40), strict=True):
        assert_close(row["edp_share_fraction"], share)
    assert [round(row["cumulative_fraction"], 12) for row in rows] == [0.425, 0.825, 1.0]
    # half the energy over E and half the time over T: 4/20 + 1/8; 2/20 + 1.5/8; 0.5/20 + 1/8; 2/20
    assert_close(rows[0]["compute_share_fraction"], 0.325)
    assert_close(rows[1]["memory_share_fraction"], 0.2875)
    assert_close(rows[1]["control_share_fraction"], 0.0625)
    assert_close(rows[2]["control_share_fraction"], 0.15)
    assert_close(rows[0]["static_share_fraction"], 0.1)
    # 3 J and 0.5 s less leave 7 J x 3.5 s = 24.5 of 40 Js
    assert_close(rows[0]["halving_fraction"], 1.0 - 24.5 / 40.0)


def test_the_total_worked_out_by_hand(book: Book) -> None:
    (row,) = ask(book, "edp.total", run_id=1)
    assert (row["energy_j"], row["latency_s"], row["edp_js"], row["own_edp_js"]) == (10.0, 4.0, 40.0, 13.0)
    parts = [row[f"{part}_share_fraction"] for part in ("compute", "memory", "control", "static")]
    # energy 4, 2, 0.5, 3.5 of 10 J; time 1, 1.5, 1.5, 0 of 4 s
    for actual, expected in zip(parts, (0.325, 0.2875, 0.2125, 0.175), strict=True):
        assert_close(actual, expected)
    assert row["alone_count"] == row["subgraph_count"] == 3


def test_cuts_are_the_fewest_that_reach(book: Book) -> None:
    rows = [row for row in ask(book, "edp.cut", run_id=1) if row["level"] == "subgraph"]
    assert [(row["cut_fraction"], row["top_count"], row["last"]) for row in rows] == [
        (0.5, 2, "part1"),
        (0.8, 2, "part1"),
        (0.9, 3, "part2"),
        (0.95, 3, "part2"),
        (0.99, 3, "part2"),
    ]
    assert rows[-1]["reached_fraction"] == 1.0


def test_a_cut_that_is_met_exactly_needs_no_further_subgraph() -> None:
    book = Book()
    book.add_run([Part(time_s=1.0, compute_j=1.0) for _ in range(10)])
    rows = {row["cut_fraction"]: row for row in ask(book, "edp.cut", run_id=1) if row["level"] == "subgraph"}
    assert {cut: row["top_count"] for cut, row in rows.items()} == {0.5: 5, 0.8: 8, 0.9: 9, 0.95: 10, 0.99: 10}
    # ties go to the first subgraph
    assert [row["subgraph_index"] for row in ask(book, "edp.distribution", run_id=1)] == list(range(10))


def test_patterns_worked_out_by_hand(book: Book) -> None:
    first, second = ask(book, "edp.pattern", run_id=1)
    assert (first["fusion_pattern"], first["subgraph_count"], first["edp_share_js"]) == ("linear", 2, 33.0)
    assert (first["bottleneck"], first["mac_fraction"]) == ("memory", 1.0)
    assert_close(first["bottleneck_fraction"], 2 / 3)
    assert (second["fusion_pattern"], second["edp_share_js"], second["cumulative_fraction"]) == ("add", 7.0, 1.0)


def test_bounds_worked_out_by_hand(book: Book) -> None:
    rows = {row["remedy"]: row for row in ask(book, "edp.bound", run_id=1)}
    # static energy is 3.5 J in 4 s and falls with the latency; 6.5 J stay
    left = {
        # 50 operations at 100/s; 10 B at 10 B/s; nothing: 1.5 s
        "roofline": (1.5, 6.5 + 3.5 * 1.5 / 4),
        # the second then takes its launch and its 0.5 s of arithmetic: 3 s
        "no_memory_wait": (3.0, 6.5 + 3.5 * 3 / 4),
        # the first has 2 tiles on 4 units, half of their slots padding: a quarter of its second. The second's 0.5 s are
        # below its memory time, the third has no time but its launch
        "full_units": (3.25, 6.5 + 3.5 * 3.25 / 4),
        "no_launch": (2.5, 6.5 + 3.5 * 2.5 / 4),
        "no_static": (4.0, 6.5),
        "no_control": (4.0, 9.5),
    }
    assert set(rows) == set(left)
    for remedy, (latency_s, energy_j) in left.items():
        assert_close(rows[remedy]["latency_s"], latency_s)
        assert_close(rows[remedy]["energy_j"], energy_j)
        assert_close(rows[remedy]["saving_fraction"], 1.0 - energy_j * latency_s / 40.0)
    assert rows["no_memory_wait"]["subgraph_count"] == 1
    savings = [row["saving_fraction"] for row in ask(book, "edp.bound", run_id=1)]
    assert savings == sorted(savings, reverse=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", CASES)
def test_shares_sum_to_energy_times_latency(case: str, answers: Mapping[str, EdpAnswer]) -> None:
    answer = answers[case]
    total = answer.total
    assert total.architecture == case
    for rows in (answer.subgraphs, answer.operators, answer.patterns):
        energy, latency = sum(row.energy_fj for row in rows), sum(row.latency_fs for row in rows)
        assert (energy, latency) == (total.energy_fj, total.latency_fs)
        # twice each share, in femtojoules x femtoseconds: integers add up to 2 E T exactly
        twice = sum(row.energy_fj * total.latency_fs + total.energy_fj * row.latency_fs for row in rows)
        assert twice == 2 * total.energy_fj * total.latency_fs
        assert_close(sum(row.edp_share_js for row in rows), total.edp_js)
        assert rows[-1].cumulative_fraction == 1.0
        running = [row.cumulative_fraction for row in rows]
        assert running == sorted(running)
        shares = [row.edp_share_fraction for row in rows]
        assert shares == sorted(shares, reverse=True)
        assert [row.rank for row in rows] == list(range(1, len(rows) + 1))
    for shared in (answer.subgraphs, answer.operators):
        for row in shared:
            parts = (getattr(row, f"{part}_share_fraction") for part in ("compute", "memory", "control", "static"))
            assert_close(sum(parts), row.edp_share_fraction)
        for part in ("compute", "memory", "control", "static"):
            name = f"{part}_share_fraction"
            assert abs(sum(getattr(row, name) for row in shared) - getattr(total, name)) < 1e-9


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", CASES)
def test_operators_are_those_of_analyze(case: str, answers: Mapping[str, EdpAnswer], workspace: Workspace) -> None:
    model, hardware, precision, runtime = CASES[case]
    analyzed = workspace.analyze(model, hardware, precision=precision, runtime=runtime)
    own = {(row.name, row.energy_fj, row.latency_fs, row.edp_share_js) for row in answers[case].operators}
    assert own == {(row.name, row.energy_fj, row.latency_fs, row.edp_share_js) for row in analyzed.operators}
