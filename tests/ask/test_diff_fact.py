"""Facts of two versions of a model: changes are those of the rows, and errors of one chip cancel."""

from __future__ import annotations

import math
import re

from compare import assert_close
from joulemap.ask.diff import pair_findings
from joulemap.ask.fact import Caveat, Change, Facts, Limit, Quantity, Refusal, Subject, Term
from joulemap.ask.finding import Finding
from joulemap.show.diff import describe_versions, find_subject, list_failures, list_reasons

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


def test_the_direction_and_the_confidence_are_those_of_the_changes() -> None:
    one = make_facts(make_change("energy", -0.25), make_change("latency", 0.5, is_sure=False))
    told = describe_versions(one)
    assert "25 % less energy" in told and "50 % more time" in told and "only energy significant" in told
    two = make_facts(make_change("energy", -0.25), make_change("energy", -0.5, 2), make_change("latency", 0.1, 2))
    assert "25\N{EN DASH}50 % less energy" in describe_versions(two)
    mixed = make_facts(make_change("energy", -0.25), make_change("energy", 0.5, 2, is_sure=False))
    assert "-25 to +50 %" in describe_versions(mixed)
    assert "by chip" in describe_versions(mixed) and "not all significant" in describe_versions(mixed)
    assert list_reasons(mixed) == []


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


def test_the_reasons_are_about_the_chip_that_leads_or_changes_most() -> None:
    changes = [make_change("energy", 0.1), make_change("energy", -0.5, 2), make_change("latency", 0.9, 3)]
    changes += [make_change("latency", 0.1), make_change("latency", 0.1, 2), make_change("energy", 0.2, 3)]
    work = [
        Term(
            runs=(one, 10 + one), level="work", quantity="energy", name="macs",
            amounts=(Quantity(1.0, "J"), Quantity(2.0, "J")), difference=Quantity(1.0, "J"),
            counts=(Quantity(1e9), Quantity(2e9)),
        )
        for one in (1, 2, 3)
    ]  # fmt: skip
    limit = Limit(runs=(13,), metric="latency", bound=Quantity(0.05), value=Quantity(0.9), miss=math.log(1.9 / 1.05))
    for facts, chip in ((make_facts(*changes, *work), 2), (make_facts(*changes, *work, limit), 3)):
        (reason,) = [one for one in list_reasons(facts) if "MACs" in one]
        subject = find_subject(facts)
        assert f"{LONG}_{chip}" in reason and subject is not None and subject.runs == (chip, 10 + chip)
    assert f"{LONG}_3" in describe_versions(facts)


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
    assert_close(doubt, 0.3)
    (assumed,) = [one for one in paired if one.kind == "assumed"]
    assert assumed.values == {"share": 0.7}  # of the version that it moves more
