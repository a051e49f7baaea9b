"""The pytest plugin: which tests it fails, what it says, and what it costs when no test is marked."""

from __future__ import annotations

from pathlib import Path

import pytest

import joulemap
from compare import assert_close
from joulemap.wing.embed import predict_cost
from layers import loaded_after

pytest_plugins = ["pytester"]

PLUGIN = "joulemap.wing.embed.plugin"

LINEAR = "(torch.nn.Linear(1000, 1000), torch.zeros(4, 1000))"


def run(pytester: pytest.Pytester, code: str, *options: str) -> pytest.RunResult:
    """Run a file of tests with the plugin."""
    pytester.makepyfile("import pytest\nfrom joulemap.wing.embed import joules\n" + code)
    return pytester.runpytest_inprocess("--strict-markers", "-p", PLUGIN, *options)


def test_a_model_within_its_limits_passes(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
@joules(max="1 J", latency="1s", on="l4", precision="int8", batch=8, runtime="engine")
def test_returned():
    return "resnet50"

@pytest.fixture
def model():
    return "resnet50"

@joules(max="1 J", on="l4")
@joules(max="1 J", on="h100_sxm5")
def test_received(model):
    assert model == "resnet50"
""",
    )
    result.assert_outcomes(passed=2)
    assert "PytestReturnNotNoneWarning" not in result.stdout.str()  # of a test that returns something


def test_the_fault_of_a_costly_model_is_one_line_with_the_command_that_explains_it(pytester: pytest.Pytester) -> None:
    cost = predict_cost("resnet50", "l4", precision="int8", batch=8, runtime="engine")
    prediction = joulemap.predict("resnet50", "l4", precision="int8", batch=8, runtime="engine")
    assert_close(cost.energy_per_inference_low_j, float(prediction.energy_low_j) / 8)
    result = run(
        pytester,
        """
@joules(max="1 mJ", latency="100us", on="l4", precision="int8", batch=8, runtime="engine")
def test_costly():
    return "resnet50"
""",
    )
    result.assert_outcomes(failed=1)
    explained = "explained by `joulemap analyze resnet50 l4 --precision int8 --batch 8 --runtime engine`"
    setting = "on l4 (int8, batch 8, engine), more than"
    shown = result.stdout.str().splitlines()
    assert f"resnet50 needs {cost.energy_text} per inference {setting} 1 mJ; {explained}" in shown
    assert f"resnet50 takes {cost.latency_text} per batch {setting} 100us; {explained}" in shown
    assert not any("Error" in line for line in shown)


@pytest.mark.parametrize(("strict", "fails"), [(False, False), (True, True)])
def test_a_limit_inside_the_interval_fails_strict_tests_only(
    pytester: pytest.Pytester, strict: bool, fails: bool
) -> None:
    cost = predict_cost("resnet50", "l4")
    limit = (cost.energy_per_inference_low_j + cost.energy_per_inference_j) / 2
    result = run(
        pytester, f'@joules(max="{limit} J", on="l4", strict={strict})\ndef test_it():\n    return "resnet50"\n'
    )
    result.assert_outcomes(failed=int(fails), passed=int(not fails))


def test_a_module_is_traced_at_the_batch_of_its_inputs(pytester: pytest.Pytester) -> None:
    pytest.importorskip("torch")
    result = run(
        pytester,
        f"""
import torch

@joules(max="1 J", on="l4")
def test_cheap():
    return {LINEAR}

@joules(max="1 nJ", on="l4")
def test_costly():
    return {LINEAR}
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    (line,) = [line for line in result.stdout.str().splitlines() if line.startswith("Linear#")]
    assert "on l4 (bf16, batch 4, fused), more than 1 nJ" in line
    assert line.endswith('`joulemap.analyze(module, inputs, "l4", precision="bf16", runtime="fused")`')


@pytest.mark.parametrize(
    ("mark", "body", "line"),
    [
        ('max="1 mJ", on="l5"', 'return "resnet50"', "joules: unknown hardware 'l5'"),
        ('max="1 mJ", on="l4"', 'return "resnet51"', "joules: unknown model 'resnet51'"),
        ('max="1 mJ", on="l4"', "pass", "joules: the model is of type NoneType, expected a built-in name"),
        ('max="1 mW", on="l4"', 'return "resnet50"', "joules: max: '1 mW' is in mW, expected J"),
        ('max=40, on="l4"', 'return "resnet50"', 'joules: max is 40, expected a text with a unit, such as "40 mJ"'),
        ('latency=0.5, on="l4"', 'return "resnet50"', "joules: latency is 0.5, expected a text with a unit"),
        ('max="1 mJ", on=["l4"]', 'return "resnet50"', "joules: on is ['l4'], expected a name"),
        ('on="l4"', 'return "resnet50"', 'joules: state a limit: max="40 mJ" or latency="5 ms"'),
        ('max="1 J", on="hailo_8", precision="fp32"', 'return "resnet50"', "joules: hailo_8 has no fp32"),
    ],
)
def test_a_faulty_mark_fails_with_one_line(pytester: pytest.Pytester, mark: str, body: str, line: str) -> None:
    result = run(pytester, f"@joules({mark})\ndef test_it():\n    {body}\n")
    result.assert_outcomes(failed=1)
    assert any(one.startswith(line) for one in result.stdout.str().splitlines()), result.stdout.str()


def test_a_test_that_fails_by_itself_says_only_that(pytester: pytest.Pytester) -> None:
    result = run(pytester, '@joules(max="1 nJ", on="l4")\ndef test_it():\n    assert 1 == 2\n    return "resnet50"\n')
    result.assert_outcomes(failed=1)
    assert "more than" not in result.stdout.str()


def test_reports_have_the_predictions(pytester: pytest.Pytester) -> None:
    run(pytester, '@joules(max="1 J", on="l4")\ndef test_it():\n    return "resnet50"\n', "--junitxml=report.xml")
    energy = predict_cost("resnet50", "l4").energy_per_inference_j
    report = (pytester.path / "report.xml").read_text(encoding="utf-8")
    assert f'<property name="l4.energy_per_inference_j" value="{energy}" />' in report


def test_a_start_of_pytest_loads_next_to_nothing(tmp_path: Path) -> None:
    own = {name for name in loaded_after(f"import {PLUGIN}", tmp_path) if name.startswith("joulemap")}
    assert own == {"joulemap", "joulemap.system", "joulemap.wing", "joulemap.wing.embed", PLUGIN}


def test_only_the_mark_needs_pytest(tmp_path: Path) -> None:
    without = "import sys\nsys.modules['pytest'] = None\nfrom joulemap.wing.embed import *\n"
    loaded_after(without + "assert predict_cost('resnet18', 'l4').energy_per_inference_j > 0", tmp_path)
    asked = "from joulemap.system.errors import MissingPackageError\ntry: joules(on='l4', max='1 J')\n"
    loaded_after(without + asked + "except MissingPackageError: pass\nelse: raise SystemExit(1)", tmp_path)
