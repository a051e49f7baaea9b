"""Wings: what they register, what is left without them, and one of another distribution, as docs/extend.md has it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from inspect import signature
from pathlib import Path

import pytest

import joulemap
from compare import assert_close
from joulemap.ask.compare import CompareAnswer
from joulemap.catalog.digest import catalogue_digest
from joulemap.catalog.error_scale import load_doubt
from joulemap.domain.default import SETTINGS
from joulemap.domain.dimension import Dimension, list_dimensions
from joulemap.domain.settings import Settings
from joulemap.physics.interval.error_scale import OWN_LEVEL, ErrorGroup, ErrorScale, find_new_source, list_error_groups
from joulemap.plan.catalogue import find_catalogue, known_hardware
from joulemap.plan.model_name import ModelNames
from joulemap.plan.version import interval_version
from joulemap.question import ModelQuestion
from joulemap.show.present.document import ENERGY_RUNS, find_energy_runs
from joulemap.system.errors import ExitCode
from joulemap.system.wing import APART, BUILT_IN, Wing, list_wings, load
from joulemap.workspace import Workspace

PACKAGE = Path(joulemap.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "extend.md"


def share_template(cache: Path) -> None:
    """Copy the template of new databases, which takes seconds to make, into the cache folder of a command."""
    known_hardware()
    cache.mkdir()
    for file in Path(os.environ["JOULEMAP_CACHE"]).glob("?" * 16 + ".*"):
        shutil.copy2(file, cache)


def ask(*words: str, path: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with a folder before all others on the search path."""
    return run_python("-m", "joulemap", *words, path=path, cwd=cwd)


def run_python(*arguments: str, path: Path, cwd: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter with a folder before all others on the search path, and with other variables."""
    variables = {**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    variables |= {"JOULEMAP_CACHE": str(cwd / "cache"), "JOULEMAP_DB": str(cwd / "results.duckdb"), **given}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=variables)


@pytest.mark.wings
def test_each_wing_that_ships_is_there_and_names_what_exists() -> None:
    wings = {wing.name: wing for wing in list_wings()}
    assert wings.keys() >= set(BUILT_IN) - set(APART)
    for name in wings.keys() & set(BUILT_IN):
        wing = wings[name]
        assert wing.uses == tuple(one for one in wing.uses if one in wings)
        commands, questions = wing.commands.values(), wing.questions.values()
        modules = [*(one.home for one in commands), *(one.home for one in questions), *wing.answers.values()]
        places = [*modules, *(place.partition(":")[0] for place in wing.parts.values())]
        for module in places:
            path = PACKAGE.joinpath(*module.split(".")[1:])
            assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), module


@pytest.mark.wings
def test_a_wing_answers_a_question_of_the_core_as_the_core_asks_it() -> None:
    answers = [(name, home) for wing in list_wings() for name, home in wing.answers.items()]
    assert answers
    for name, home in answers:
        question = vars(Workspace)[name]
        assert isinstance(question, ModelQuestion)
        assert signature(load(f"{home}:{name}")) == signature(load(f"{question.home}:{name}"))


def compare(source: object, model: str, settings: Settings = SETTINGS, *, baseline: str = "") -> object:
    """Answer for the toy wing of the test below."""
    del source
    return model, settings.hardware, baseline


class ToyNames(ModelNames):
    """Names of the toy wing of the test below."""

    def is_name(self, word: str) -> bool:
        return word.startswith("toy")


TOY = ToyNames()


def test_a_wing_answers_about_its_own_models_alone(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    here = ToyNames.__module__
    toy = Wing(name="toy", answers={"compare": here}, parts={"models": f"{here}:TOY"})
    monkeypatch.setattr("joulemap.plan.model_name.list_wings", lambda: (toy, *list_wings()))
    answers: list[object] = [workspace.compare("toy1", hardware="l4", baseline="t4"), workspace.compare(model="toy1")]
    assert answers == [("toy1", ("l4",), "t4"), ("toy1", (), "")]
    assert isinstance(workspace.compare("mobilenet_v2", hardware="l4"), CompareAnswer)


ENERGIES = {"energy_per_charge_j": "charge_run_id"}


def list_toy_dimensions() -> tuple[Dimension, ...]:
    return (Dimension(name="cell_count", table="dimensions"),)


def test_a_wing_adds_a_column_with_energies_and_a_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"energies": f"{__name__}:ENERGIES", "dimensions": f"{__name__}:list_toy_dimensions"}
    monkeypatch.setattr("joulemap.system.wing.list_wings", lambda: (Wing(name="toy", parts=parts),))
    for cached in (find_energy_runs, list_dimensions):
        cached.cache_clear()
    by_field, last = dict(find_energy_runs()), list_dimensions()[-1]
    for cached in (find_energy_runs, list_dimensions):
        cached.cache_clear()
    assert by_field == {**ENERGY_RUNS, **ENERGIES}
    assert last.column == "coalesce(w.dimensions['cell_count'], '')"


TOY_WORK = ErrorGroup(
    work="toy",
    new_source=0.3,
    scales=(
        ErrorScale(
            quantity="latency", level=OWN_LEVEL, architecture="", work="toy", runtime="", precision="", hardware="",
            half_width=0.6, group_count=1, row_count=1,
        ),
    ),
)  # fmt: skip


def test_a_wing_adds_errors_of_its_own_kind_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = load_doubt(), catalogue_digest(), interval_version()
    toy = Wing(name="toy", parts={"error_groups": f"{__name__}:TOY_WORK"})
    monkeypatch.setattr("joulemap.system.wing.list_wings", lambda: (toy,))
    for cached in (load_doubt, list_error_groups, interval_version):
        cached.cache_clear()
    doubt = load_doubt().scales, find_new_source("gpu", "toy", "eager"), catalogue_digest(), interval_version()
    for cached in (load_doubt, list_error_groups, interval_version):
        cached.cache_clear()
    assert doubt[:2] == ((*usual[0].scales, *TOY_WORK.scales), 0.3)
    assert doubt[2] != usual[1]
    assert doubt[3] != usual[2]


def write_wing(folder: Path) -> None:
    """Write the wing of the page as pip would install it."""
    text = PAGE.read_text(encoding="utf-8").partition("## A wing in two files")[2]
    first, second, _ = re.findall(r"```(?:python|toml)\n(.*?)```", text, re.DOTALL)
    package = folder / "joulemap_battery"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(first)
    (package / "battery.py").write_text(second)
    about = folder / "joulemap_battery-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: joulemap-battery\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[joulemap.wings]\nbattery = joulemap_battery:register\n")


@pytest.mark.slow
def test_a_wing_of_another_distribution_adds_a_command_and_a_question(tmp_path: Path) -> None:
    other = tmp_path / "site"
    write_wing(other)
    share_template(tmp_path / "cache")
    assert "battery" in ask("--help", path=other, cwd=tmp_path).stdout
    answered = ask("battery", "mobilenet_v2", "hailo_8", "--capacity", "18kJ", path=other, cwd=tmp_path)
    assert answered.returncode == ExitCode.OK
    times = int(re.findall(r"([\d,]+) times", answered.stdout)[0].replace(",", ""))
    statement = "SELECT energy_per_inference_j FROM runs"
    printed = ask("sql", statement, "--format", "csv", path=other, cwd=tmp_path).stdout
    assert_close(times, 18e3 / float(printed.splitlines()[1]), rel=1e-5)
    refused = ask("battery", "mobilenet_v2", "hailo_8", "--capacity", "0J", path=other, cwd=tmp_path)
    assert (refused.returncode, "above 0" in refused.stderr) == (ExitCode.USAGE, True)
    shutil.rmtree(other)
    other.mkdir()
    assert "battery" not in ask("--help", path=other, cwd=tmp_path).stdout


def test_a_wing_that_cannot_be_imported_is_left_out_and_named(tmp_path: Path) -> None:
    other = tmp_path / "site"
    write_wing(other)
    share_template(tmp_path / "cache")
    (other / "joulemap_battery" / "__init__.py").write_text("raise RuntimeError('no battery')")
    answered = ask("hardware", "list", path=other, cwd=tmp_path)
    assert answered.returncode == ExitCode.OK
    assert "no battery" in answered.stderr


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package without wings."""
    folder = tmp_path_factory.mktemp("core")
    shutil.copytree(PACKAGE, folder / "joulemap", ignore=shutil.ignore_patterns("wing"))
    for name in ("schemas", "queries"):
        shutil.copytree(PACKAGE.parents[1] / name, folder / "joulemap" / name)
    return folder


RUN = """
import json, sys
from pathlib import Path
from joulemap.cli.app import run
from joulemap.store import template
told = json.loads(sys.argv[1])
if sys.argv[2]:
    template._make = lambda *_: template._read(Path(sys.argv[2]))
codes = [run(words) for words in told]
print(json.dumps(codes), file=sys.stderr)
"""

HELP = ("--help",)

TIMM = ("compare", "timm:resnet50", "l4")

CORE = {
    HELP: ExitCode.OK,
    ("compare", "resnet18", "--hardware", "l4,tpu_v4"): ExitCode.OK,
    ("sql", "SELECT count(*) FROM runs"): ExitCode.OK,
    ("llm", "llama-3.1-8b"): ExitCode.USAGE,
    ("compare", "llama-3.1-8b"): ExitCode.UNKNOWN_NAME,
    TIMM: ExitCode.MODEL,
    ("explain", "resnet18", "l4", "tpu_v4", "--phase", "decode"): ExitCode.USAGE,
}

MORE = {
    ("explain", "resnet18", "l4", "tpu_v4"): ExitCode.OK,
    ("model", "list"): ExitCode.OK,
    ("compare", "resnet18", "jetson_agx_orin_module"): ExitCode.UNKNOWN_NAME,
}


@pytest.mark.parametrize(
    ("commands", "makes_template"),
    [(CORE, False), pytest.param(CORE | MORE, True, marks=pytest.mark.slow)],
    ids=["few", "more"],
)
@pytest.mark.slow
def test_without_wings_the_core_answers_and_refuses_the_rest_in_a_line(
    commands: Mapping[tuple[str, ...], ExitCode], makes_template: bool, core: Path
) -> None:
    """The few commands copy the template of the package with wings, because making one takes seconds."""
    template = "" if makes_template else str(find_catalogue())
    answered = run_python("-c", RUN, json.dumps(list(commands)), template, path=core, cwd=core)
    assert "Traceback" not in answered.stderr and "internal error" not in answered.stderr, answered.stderr
    assert dict(zip(commands, json.loads(answered.stderr.splitlines()[-1]), strict=True)) == commands
    assert "'timm:resnet50' needs the wing hub, which this installation lacks" in answered.stderr
    if HELP in commands:
        listed = set(re.findall(r"^  (\w+) ", answered.stdout, re.MULTILINE))
        wings: tuple[Wing, ...] = list_wings()
        assert not listed & {name for wing in wings for name in wing.commands}
        assert {"compare", "analyze", "explain"} <= listed
