"""Targets: the digest and the record of a chip under modifiers."""

from __future__ import annotations

import hashlib

import attrs
import pytest

from joulemap.catalog.load import load_catalogue
from joulemap.domain.settings import Settings
from joulemap.physics.record.address import Address
from joulemap.physics.record.configuration import BoundaryName
from joulemap.physics.record.constant import Change
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.record.target import boundary_word, extend_digest, host_word
from joulemap.plan.calibration import CalibrationUse
from joulemap.plan.catalogue import read_known
from joulemap.plan.change import Changed
from joulemap.plan.run import Plan, plan_runs
from joulemap.plan.target import AtBoundary, AtMatmulPrecision, AtMode, Target
from joulemap.plan.version import formula_version

CATALOGUE = load_catalogue().hardware


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def list_targets(plan: Plan) -> list[tuple[Target, Hardware]]:
    """The targets of a plan with their records as described."""
    entries = [entry for entry, _ in plan.selection.pairs]
    records = read_known([one.digest for one in entries], plan.selection.own.values())
    found = {run.target: records[run.hardware_digest] for run in plan.runs("")}
    return list(found.items())


def test_a_word_extends_a_digest_and_none_leaves_it() -> None:
    assert extend_digest("ab", "") == "ab"
    assert extend_digest("ab", "@15w") == digest_of("ab@15w")


def test_words_follow_each_other_in_the_order_of_modifiers() -> None:
    l4 = CATALOGUE["l4"]
    change = Change(address=Address.read("tdp"), value=60.0, before=72.0, unit="W")
    target = Target(
        l4, (AtMode("900MHz"), AtBoundary.of(l4, "chip"), AtMatmulPrecision("highest"), Changed((change,), "mine"))
    )
    text = l4.digest
    for word in ("@900MHz", f"|chip|{formula_version('gpu')}", "|matmul highest", "|set tdp=60.0|as mine"):
        text = digest_of(text + word)
    assert target.digest == text
    assert Target(l4, tuple(reversed(target.modifiers))).digest != text


def test_modifiers_that_change_nothing_leave_the_digest() -> None:
    h200 = CATALOGUE["h200_sxm"]
    target = Target(h200, (AtMode("default"), Changed(())))
    assert target.digest == h200.digest
    assert target.bind(h200) is h200
    assert boundary_word("board", "board", "1") == ""
    assert host_word("a", is_counted=True) != host_word("a", is_counted=False)


def test_a_record_that_another_word_made_is_a_fault_of_the_program() -> None:
    @attrs.frozen
    class Careless:
        @property
        def word(self) -> str:
            return "|careless"

        def apply(self, hardware: Hardware) -> Hardware:
            return hardware

    with pytest.raises(AssertionError):
        Target(CATALOGUE["l4"], (Careless(),)).bind(CATALOGUE["l4"])


QUESTIONS = {
    "modes": Settings(
        hardware=("jetson_orin_nano_8gb@15w", "l4@900MHz", "epyc_9654@4cores", "h100_sxm5@500W"), precision=("int8",)
    ),
    "calibration": Settings(hardware=("h200_sxm", "h200_sxm@1000MHz", "h100_sxm5"), precision=("fp32", "bf16")),
    "host": Settings(
        hardware=("hailo_8", "l4", "coral_edge_tpu", "h200_sxm"), host="raspberry_pi_5", runtime=("eager",)
    ),
    "changes": Settings(
        hardware=("l4", "tpu_v4", "rk3588_npu"), changes={"tdp": "x1.2", "l4:dram.read": "31pJ"}, precision=("int8",)
    ),
    "several": Settings(hardware=("l4",), changes={"tdp": "60W,70W", "clock": "x0.9,x1"}),
    "box": Settings(hardware=("workstation_rtx_4090", "workstation_rtx_4090@energy"), precision=("fp32",)),
    "changed box": Settings(hardware=("workstation_rtx_4090",), changes={"gpu.tdp": "x0.9"}, precision=("fp32",)),
    "several boxes": Settings(
        hardware=("workstation_rtx_4090",), changes={"gpu.tdp": "400W,420W"}, precision=("fp32",)
    ),
}
CASES = [pytest.param(one, marks=[pytest.mark.wings] if "box" in one else []) for one in QUESTIONS]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("question", "boundary"),
    [
        pytest.param(one, boundary, marks=[pytest.mark.wings] if "box" in one else [])
        for one in QUESTIONS
        for boundary in ("board", "chip", "system")
        if not ("box" in one and boundary == "system")
    ],
)
def test_a_target_knows_the_digest_of_the_record_that_it_makes(question: str, boundary: BoundaryName) -> None:
    settings = attrs.evolve(QUESTIONS[question], boundary=boundary, matmul_precision="highest")
    targets = list_targets(plan_runs(("resnet18",), settings))
    assert targets
    for target, record in targets:
        assert target.bind(record).digest == target.digest
    assert len({target.digest for target, _ in targets}) == len(targets)


@pytest.mark.sample(1)
@pytest.mark.parametrize("question", CASES)
def test_equal_questions_have_equal_targets_and_others_do_not(question: str) -> None:
    def digests(one: Settings) -> set[str]:
        return {target.digest for target, _ in list_targets(plan_runs(("resnet18",), one))}

    settings = QUESTIONS[question]
    assert digests(settings) == digests(settings)
    assert digests(settings).isdisjoint(digests(attrs.evolve(settings, boundary="chip")))


def test_no_calibration_has_another_target_than_a_calibration() -> None:
    h200 = CATALOGUE["h200_sxm"]
    calibrated, plain = (CalibrationUse(one).target(h200, "default", "board") for one in ("auto", "none"))
    assert calibrated.digest != plain.digest
    assert plain.bind(h200).coefficients == h200.coefficients


def test_a_matmul_precision_makes_another_target_at_fp32_alone() -> None:
    settings = Settings(hardware=("l4", "xeon_8490h"), precision=("fp32", "bf16"), matmul_precision="highest")
    wide, xeon, half, narrow = (run.target for run in plan_runs(("resnet18",), settings).runs(""))
    assert wide.digest == extend_digest(half.digest, "|matmul highest")
    assert xeon.digest == extend_digest(narrow.digest, "|matmul highest")
    default = attrs.evolve(settings, matmul_precision="default")
    assert {run.target.digest for run in plan_runs(("resnet18",), default).runs("")} == {half.digest, narrow.digest}
