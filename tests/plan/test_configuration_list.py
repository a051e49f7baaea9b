"""One model at several batches, precisions and runtimes on each chip, in one comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from compare import assert_close
from joulemap.domain.metric import METRIC
from joulemap.domain.settings import Settings
from joulemap.system.errors import UsageError
from joulemap.workspace import Workspace

HARDWARE = ("h100_sxm5", "kpu_t256")


@pytest.fixture(scope="module")
def workspace(database: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    path = tmp_path_factory.mktemp("list") / "list.duckdb"
    path.write_bytes(database.read_bytes())
    return Workspace(path)


def test_ratios_are_of_an_inference_to_the_best_that_can_be_bought_or_the_baseline(workspace: Workspace) -> None:
    for baseline in ("", "KPU-T256"):
        answer = workspace.compare("resnet18", hardware=HARDWARE, batch=(1, 4), baseline=baseline)
        least = next(row for row in answer.rows if row.is_available)
        base = next(row for row in answer.rows if (row.hardware, row.batch) == ("kpu_t256", 1)) if baseline else least
        for row in answer.rows:
            assert row.baseline_hardware == f"{base.hardware} fp32 batch {base.batch}"
            assert row.energy_j is not None and base.energy_j is not None
            assert row.latency_s is not None and base.latency_s is not None
            assert_close(row.ratio, row.energy_j / row.batch / (base.energy_j / base.batch))


def test_the_best_is_per_inference_where_batches_differ_and_says_its_configuration(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=HARDWARE, batch=(1, 4))
    first, best = answer.recommendations[0], answer.rows[0]
    assert [row.goal for row in answer.recommendations] == [
        "energy_per_inference", "latency", "throughput", "memory", "edp_per_inference"
    ]  # fmt: skip
    assert first.hardware == f"{best.hardware} fp32 batch {best.batch}"
    assert first.value == best.energy_per_inference_j
    told = {text for section in answer.document().details for text in section.texts}
    assert {METRIC[name].label for name in ("energy_per_inference", "latency", "edp_per_inference")} <= told


def test_one_configuration_is_named_by_its_hardware_alone(workspace: Workspace) -> None:
    answer = workspace.compare("resnet18", hardware=HARDWARE)
    assert answer.varying == ()
    assert answer.recommendations[0].hardware in HARDWARE
    assert answer.recommendations[0].goal == "energy"


def test_other_levels_take_one_configuration(workspace: Workspace) -> None:
    several = Settings(batch=(1, 4))
    for ask in (
        lambda: workspace.compare_parts(("resnet18",), several),
        lambda: workspace.compare_models(("resnet18", "alexnet"), several),
    ):
        with pytest.raises(UsageError, match="takes one batch, found 1, 4; the summary of `joulemap compare` takes"):
            ask()
