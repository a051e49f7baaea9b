"""The objective for Optuna, in studies of Optuna itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from joulemap.system.errors import UsageError
from joulemap.wing.embed import make_objective, predict_cost

if TYPE_CHECKING:
    from optuna import Study, Trial

MODELS = ["resnet18", "resnet50", "mobilenet_v2", "vit_b_16"]


def search(latency: str, on: str = "l4", precision: str = "bf16") -> Study:
    """Return a study that tried each of the models once."""
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def build(trial: Trial) -> str:
        return str(trial.suggest_categorical("model", MODELS))

    study: Study = optuna.create_study(sampler=optuna.samplers.GridSampler({"model": MODELS}))
    study.optimize(make_objective(build, on, latency=latency, precision=precision), n_trials=len(MODELS))
    return study


def test_the_best_trial_needs_the_least_energy() -> None:
    study = search("1s")
    costs = {name: predict_cost(name, "l4") for name in MODELS}
    found = {one.params["model"]: one for one in study.trials}
    assert {name: one.value for name, one in found.items()} == {
        name: one.energy_per_inference_j for name, one in costs.items()
    }
    assert study.best_params["model"] == min(MODELS, key=lambda name: costs[name].energy_per_inference_j)
    assert found["resnet50"].user_attrs["latency_s"] == costs["resnet50"].latency_s


def test_trials_beyond_the_latency_limit_are_infeasible() -> None:
    costs = {name: predict_cost(name, "l4").latency_s for name in MODELS}
    limit = sorted(costs.values())[1]
    study = search(f"{1.0001e3 * limit} ms")
    feasible = {one.params["model"] for one in study.trials if max(one.constraints.values()) <= 0.0}
    assert feasible == {name for name, latency in costs.items() if latency <= limit}
    assert study.best_params["model"] in feasible


def test_a_model_that_the_chip_cannot_run_is_infeasible() -> None:
    study = search("1s", on="hailo_8", precision="fp32")
    assert all(max(one.constraints.values()) > 0.0 for one in study.trials)
    assert "fp32" in study.trials[0].user_attrs["refusal"]


@pytest.mark.parametrize(
    ("latency", "message"),
    [
        ("", "state a limit"),
        ("5 mJ", "expected s"),
        ("5", "has no unit"),
        (0.001, 'latency is 0.001, expected a text with a unit, such as "0.001 ms"'),
        (["1 ms"], 'expected a text with a unit, such as "5 ms"'),
    ],
)
def test_a_faulty_limit_is_one_clear_line(latency: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_objective(lambda trial: "resnet18", "l4", latency=latency)


def test_a_cost_is_of_one_chip_and_batch() -> None:
    with pytest.raises(UsageError, match=r"on is \['l4'\], expected a name"):
        make_objective(lambda trial: "resnet18", ["l4"], latency="1s")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"on is \['l4'\], expected a name"):
        predict_cost("resnet18", ["l4"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"batch is \[1, 2\], expected a whole number from 1"):
        predict_cost("resnet18", "l4", batch=[1, 2])  # type: ignore[arg-type]
