"""Facts of two versions of a model: changes are those of the rows, and errors of one chip cancel."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pytest

from compare import assert_close
from joulemap.ask.diff import pair_findings
from joulemap.ask.fact import Caveat, Change, Facts, Limit, Quantity, Refusal, Subject, Term
from joulemap.ask.finding import Finding
from joulemap.show.diff import describe_shared, describe_versions, list_failures, list_reasons
from joulemap.workspace import Workspace

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
LONG = "a_chip_of_28_characters_here"
RUNS = {
    **{one: Subject(hardware=f"{LONG}_{one}@60W") for one in (1, 2, 3)},
    **{10 + one: Subject(hardware=f"{LONG}_{one}@60W") for one in (1, 2, 3)},
}


def make_change(metric: str, fraction: float, chip: int = 1, *, is_sure: bool = True, same: float = 0.3) -> Change:
    """Return a change of one joule or second with an interval of a tenth around it."""
    return Change(
        runs=(chip, 10 + chip),
        metric=metric,
        before=Quantity(1.0),
        after=Quantity(1.0 + fraction),
        values={
            "fraction": fraction,
            "low": fraction - 0.1,
            "high": fraction + 0.1,
            "is_sure": is_sure,
            "same_fraction": same,
        },
    )


def make_facts(*facts: Change | Limit | Caveat | Refusal | Term) -> Facts:
    return Facts(asked=("energy", "latency"), runs=RUNS, facts=facts)


def assert_short(told: str) -> None:
    assert len(told.split()) <= 25, told
    assert len(NUMBER.findall(told)) <= 5, told


@pytest.mark.parametrize("energy", [(0.123,), (-0.123, -0.456), (-0.123, 0.456, 12.34), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize("latency", [(0.789,), (-0.789, -0.123), (-0.789, 0.123, 4.56), (0.0, 0.1, 0.1)])
@pytest.mark.parametrize("is_sure", [True, False])
def test_the_first_line_is_short(energy: Sequence[float], latency: Sequence[float], is_sure: bool) -> None:
    changes = [make_change("energy", one, place + 1, is_sure=is_sure) for place, one in enumerate(energy)]
    changes += [make_change("latency", one, place + 1) for place, one in enumerate(latency)]
    assert_short(describe_versions(make_facts(*changes)))
    limits = [
        Limit(runs=(11, 12), metric=one, bound=Quantity(0.123), value=Quantity(4.567), miss=1.5, missed_count=12)
        for one in ("energy", "latency")
    ]
    told = describe_versions(make_facts(*changes, *limits))
    assert_short(told)
    assert "25 more" in told


def test_the_direction_and_the_confidence_are_those_of_the_changes() -> None:
    one = make_facts(make_change("energy", -0.25), make_change("latency", 0.5, is_sure=False))
    told = describe_versions(one)
    assert "25 % less energy" in told and "50 % more time" in told and "only energy significant" in told
    two = make_facts(make_change("energy", -0.25), make_change("energy", -0.5, 2), make_change("latency", 0.1, 2))
    assert "25\N{EN DASH}50 % less energy" in describe_versions(two)
    mixed = make_facts(make_change("energy", -0.25), make_change("energy", 0.5, 2, is_sure=False))
    assert "-25 to +50 %" in describe_versions(mixed)
    (unsure,) = list_reasons(mixed)
    assert f"{LONG}_2" in unsure and f"{LONG}_1" not in unsure


def test_a_failing_limit_leads_and_each_failure_is_told() -> None:
    changes = [make_change("energy", 0.5), make_change("energy", 0.2, 2), make_change("latency", 0.1)]
    limit = Limit(
        runs=(11, 12), metric="energy", bound=Quantity(0.05), value=Quantity(0.5), miss=math.log(1.5 / 1.05),
        missed_count=1,
    )  # fmt: skip
    facts = make_facts(*changes, limit)
    assert [float(one) for one in NUMBER.findall(describe_versions(facts)) if one != "60"] == [50.0, 5.0, 1.0]
    assert len(list_failures(facts)) == 2
    assert all(str(one) in told for one, told in zip((50, 20), list_failures(facts), strict=True))
    assert list_failures(make_facts(*changes)) == []


def test_hardware_that_runs_only_the_old_version_fails_if_there_is_a_limit() -> None:
    lost = (Caveat(kind="lost", runs=(12,), values={}), Refusal(runs=(12,), reason="no room"))
    limit = Limit(runs=(11,), metric="energy", bound=Quantity(0.05), value=Quantity(0.0), miss=0.0)
    changes = make_change("energy", 0.01), make_change("latency", 0.02)
    assert list_failures(make_facts(*changes, *lost)) == []
    (told,) = list_failures(make_facts(*changes, *lost, limit))
    assert "no room" in told
    assert f"{LONG}_2" in describe_versions(make_facts(*changes, *lost, limit))
    assert f"{LONG}_2" in describe_versions(make_facts(*lost))
    assert f"{LONG}_2" in list_reasons(make_facts(*changes, *lost))[0]


def test_errors_cancel_as_far_as_kernels_are_shared() -> None:
    assert "20.0\N{EN DASH}30.0 %" in describe_shared(
        make_facts(make_change("energy", 0.1), make_change("energy", 0.1, 2, same=0.2))
    )
    assert "%" not in describe_shared(make_facts(make_change("energy", 0.1, same=0.0))).partition(";")[2]


def test_what_moves_both_versions_alike_moves_no_change() -> None:
    findings = [
        Finding(kind="host", run_id=1, bias=0.4),
        Finding(kind="host", run_id=11, bias=0.4),
        Finding(kind="assumed", run_id=1, doubt=0.5, values={"share": 0.7}),
        Finding(kind="assumed", run_id=11, doubt=0.2, values={"share": 0.3}),
        Finding(kind="unlisted", run_id=1, doubt=math.inf),
        Finding(kind="unlisted", run_id=11, doubt=math.inf),
        Finding(kind="fallback", run_id=12, doubt=0.1),
        Finding(kind="uncounted", doubt=0.6),
    ]
    paired = [one for one in pair_findings(findings, [(1, 11), (2, 12)]) if isinstance(one, Finding)]
    moves = {one.kind: (one.run_id, one.bias, one.doubt) for one in paired}
    assert moves["host"] == (11, 0.0, 0.0) == moves["unlisted"]
    assert moves["uncounted"] == (None, 0.0, 0.6)
    assert moves["fallback"] == (12, 0.0, 0.1)
    run_id, bias, doubt = moves["assumed"]
    assert (run_id, bias) == (11, 0.0)
    assert_close(doubt, 0.3, rel=1e-12)
    (assumed,) = [one for one in paired if one.kind == "assumed"]
    assert assumed.values == {"share": 0.7}  # of the version that it moves more


def test_facts_are_those_of_the_rows(workspace: Workspace) -> None:
    answer = workspace.diff(
        "mlperf_tiny_ic", "mlperf_tiny_kws", hardware=["l4", "t4"], fail_above={"latency": 0.0, "memory": 100.0}
    )
    changes = {(one.metric, *one.runs): one for one in answer.facts.of(Change)}
    assert len(changes) == len(answer.rows)
    for row in answer.rows:
        one = changes[row.metric, row.run_a, row.run_b]
        assert (one.before.value, one.after.value) == (row.value_a, row.value_b)
        assert (one.values["fraction"], one.values["low"]) == (row.change_fraction, row.low_fraction)
    limits = {one.metric: one for one in answer.facts.of(Limit)}
    rows = [row for row in answer.rows if row.metric == "latency"]
    failing = [row for row in rows if (row.low_fraction or 0.0) > 0.0]
    assert len(answer.failures) == len(failing) and bool(limits["latency"].miss) == bool(failing)
    assert limits["memory"].miss == 0.0 and limits["memory"].missed_count == 0
    leaders = {one.runs: one for one in reversed(answer.facts.of(Term))}
    for name, parts in answer.subgraphs.items():
        pair = next((row.run_a, row.run_b) for row in answer.rows if row.hardware == name)
        assert leaders[pair].name == parts[0].name and leaders[pair].exact == parts[0].energy_difference_fj
    data = answer.document().data
    assert isinstance(data, dict) and data["facts"] and len(data["rows"]) == len(answer.rows)
