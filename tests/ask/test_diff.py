"""Two versions of a model: what stayed leaves no doubt, code is that of its commit, and a limit fails beyond doubt."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from compare import assert_close
from conftest import Run
from joulemap.ask.diff import DiffAnswer
from joulemap.catalog.error_scale import load_doubt
from joulemap.cli.overview import list_commands
from joulemap.plan import revision
from joulemap.show.diff import VERDICTS, list_failures
from joulemap.system.errors import ModelError
from joulemap.workspace import Workspace

ROOT = Path(__file__).parents[2]

NET = """
import torch
from .size import WIDTH
from nets import size

def net():
    assert size.WIDTH == WIDTH
    layers = torch.nn.Linear(2048, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 64), torch.nn.Linear(64, 4096)
    return torch.nn.Sequential(*layers), torch.zeros(1, 2048)
"""


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def write_net(folder: Path, width: int) -> None:
    (folder / "nets").mkdir(exist_ok=True)
    (folder / "nets" / "__init__.py").touch()
    (folder / "nets" / "net.py").write_text(NET)
    (folder / "nets" / "size.py").write_text(f"WIDTH = {width}\n")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A package whose layer of 4,096 columns is one of 16,384 in the working tree, which is not committed."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    write_net(folder, 4096)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=one")
    write_net(folder, 16384)
    return folder


def figure(answer: DiffAnswer, metric: str) -> Any:
    return next(row for row in answer.rows if row.metric == metric)


@pytest.fixture
def workspace(own_database: Path) -> Workspace:
    return Workspace(own_database)


def test_the_same_model_changes_nothing_and_leaves_no_doubt(workspace: Workspace) -> None:
    answer = workspace.diff("resnet18", "ResNet18", hardware="tpu_v4", fail_above={"energy": 0.0})
    assert {row.metric for row in answer.rows} >= {"latency", "energy", "memory"}
    assert all((row.change_fraction, row.low_fraction, row.high_fraction) == (0.0, 0.0, 0.0) for row in answer.rows)
    assert list_failures(answer.facts) == [] and answer.document().steps == ()


def pair_half_width(workspace: Workspace, row: Any) -> float:
    """What two models on a chip differ by, of what docs/doubt.md says: they share class, board and own numbers.

    The square of an energy's half-width is that of its latency and that of its power, which err independently.
    """
    read = "latency_half_width, coalesce(latency_own_half_width, 0e0), energy_half_width, energy_own_half_width"
    rows = workspace.sql(
        f"SELECT {read} FROM run_uncertainty WHERE run_id IN ($a, $b) ORDER BY run_id = $b",
        {"a": row.run_a, "b": row.run_b},
    ).cells
    latencies = [(wide, own) for wide, own, _, _ in rows]
    powers = [
        (math.sqrt(energy**2 - wide**2), math.sqrt(max((energy_own or 0.0) ** 2 - own**2, 0.0)))
        for wide, own, energy, energy_own in rows
    ]
    widths = [_differ("latency", latencies)] + [_differ("power", powers)] * (row.metric == "energy")
    return math.hypot(*widths)


def _differ(quantity: str, widths: Sequence[tuple[float, float]]) -> float:
    shares = {one.factor: one.share.value for one in load_doubt().shares if one.quantity == quantity}
    (wide_a, own_a), (wide_b, own_b) = widths
    parts = [(own_a / wide_a) ** 2, (own_b / wide_b) ** 2]
    rest = math.sqrt(math.prod(1.0 - part for part in parts))
    common = (shares["class"] + shares["board"]) * rest + math.sqrt(math.prod(parts))
    return math.sqrt(wide_a**2 + wide_b**2 - 2.0 * common * wide_a * wide_b)


@pytest.mark.slow
def test_the_interval_is_that_of_two_models_on_a_chip_as_far_as_they_differ(workspace: Workspace) -> None:
    answer = workspace.diff("softmax(rows=64,columns=64)", "gemm(m=256,n=256,k=256)", hardware="l4")
    for metric in ("latency", "energy"):
        row = figure(answer, metric)
        expected = pair_half_width(workspace, row)
        assert row.same_fraction == 0.0
        assert_close(row.half_width, expected)
        assert_close(row.high_fraction + 1.0, row.value_b / row.value_a * math.exp(expected))

    # a kernel that grew has its part in common
    answer = workspace.diff("gemm(m=1,n=4096,k=4096)", "gemm(m=1,n=8192,k=4096)", hardware="l4")
    row = figure(answer, "latency")
    moved_a, moved_b = 4.0 * (4096 + 4096 + 4096**2), 4.0 * (4096 + 8192 + 4096 * 8192)  # x, y and weights at fp32
    overlap = min(0.5, moved_a / moved_b)  # of MACs, of bytes
    w_a, w_b = 1.0 - overlap, 1.0 - overlap * row.value_a / row.value_b
    assert_close(row.same_fraction, overlap)
    expected = pair_half_width(workspace, row) * math.sqrt(w_a**2 + w_b**2 - w_a * w_b)
    assert_close(row.half_width, expected)


@pytest.mark.slow
def test_a_limit_fails_where_a_change_is_above_it_and_sure(joulemap: Run) -> None:
    asked = ("diff", "resnet18", "resnet34", "l4", "--fail-above", "energy=5%", "--fail-above", "memory=200%")
    done = joulemap(*asked, "--format", "json")
    answer = json.loads(done.stdout)
    assert done.returncode == 10
    assert len(answer["failures"]) == 1 and answer["subgraphs"]["l4"]
    assert done.stderr == f"joulemap: {answer['failures'][0]}\n"
    assert {row["metric"] for row in answer["rows"]} == {"latency", "energy", "memory", "cost"}
    markdown = joulemap(*asked, "--format", "markdown").stdout
    assert VERDICTS["above"].format(limit="+5 %") in markdown and VERDICTS["below"].format(limit="+200 %") in markdown


def test_equal_versions_say_so_without_an_interval(workspace: Workspace) -> None:
    answer = workspace.diff("resnet18", "resnet18", hardware="l4")
    shown = answer.document()
    assert [row.change_fraction for row in answer.rows] == [0.0] * 4
    assert "equal" in shown.answer and "%" not in shown.answer and not shown.sure


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("resnet18", "resnet18", "--fail-above", "joules=5%"), 2, "known: latency, energy, memory, cost"),
        (("resnet18", "resnet18", "--fail-above", "energy=5"), 2, "energy=5%"),
        (("resnet18", "resnet18", "--precision", "fp32,bf16"), 2, "diff takes one precision"),
        (("resnet18", "resnet81"), 3, "did you mean"),
        (("main:net.py:net", "resnet18"), 7, "there is no commit 'main' here"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_a_line(
    words: tuple[str, ...], code: int, told: str, joulemap: Run, tmp_path: Path
) -> None:
    done = joulemap("diff", *words, variables={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert told in done.stderr


@pytest.mark.slow
def test_a_commit_is_traced_with_its_own_imports_and_leaves_nothing(
    workspace: Workspace, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    before = git(repository, "status", "--porcelain")
    path, modules = list(sys.path), set(sys.modules)
    answer = workspace.diff("main:nets/net.py:net", "nets/net.py:net", hardware="tpu_v4")
    memory = figure(answer, "memory")
    assert memory.value_b - memory.value_a >= 4 * 12288 * 2113  # 2,048 + 64 weights and a bias of each new column
    assert {row.name for row in answer.subgraphs["tpu_v4"]} >= {"0", "2"}
    assert answer.scope.models == (f"{git(repository, 'rev-parse', 'main')[:12]}:nets/net.py:net", "nets/net.py:net")
    assert sys.path == path and not {name for name in set(sys.modules) - modules if name.startswith("nets")}
    write_net(repository, 4096)
    same = workspace.diff("main:./nets/net.py:net", "nets/net.py:net", hardware="tpu_v4")
    assert not same.subgraphs["tpu_v4"].rows and git(repository, "status", "--porcelain", "-uno") == "" != before
    with pytest.raises(ModelError, match=r"has no file net\.py"):
        workspace.diff("main:net.py:net", "nets/net.py:net", hardware="tpu_v4")


def steps(inputs: dict[str, str]) -> list[tuple[str, str, dict[str, str]]]:
    """Return (name, script, variables) of what the Action runs, with these inputs."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {f"inputs.{name}": one.get("default", "") for name, one in action["inputs"].items()}
    given |= {f"inputs.{name}": value for name, value in inputs.items()}
    given |= {
        "github.action_path": str(ROOT),
        "github.repository": "o/r",
        "github.event.pull_request.number": "7",
        "github.token": "t",
    }

    def fill(text: str) -> str:
        def choose(match: re.Match[str]) -> str:
            return next(filter(None, map(given.get, match[1].split(" || "))), "")

        return re.sub(r"\$\{\{ (.*?) \}\}", choose, text)

    return [
        (one["name"], one["run"], {name: fill(text) for name, text in one.get("env", {}).items()})
        for one in action["runs"]["steps"]
        if "run" in one
    ]


def test_the_actions_traced_code_reaches_no_file_of_the_step_and_no_token(tmp_path: Path) -> None:
    """What it writes to them by their places is dropped."""
    files = {name: tmp_path / name for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.touch()
    evil = f"env > {tmp_path}/seen\nfor file in {tmp_path}/GITHUB_*; do echo BASH_ENV=evil >> $file; done"
    program = tmp_path / "joulemap"
    program.write_text(f"#!/bin/sh\n{evil}\necho table\nexit 10\n")
    program.chmod(0o755)
    tokens = {"GITHUB_TOKEN": "secret", "GH_TOKEN": "secret", "ACTIONS_RUNTIME_TOKEN": "secret"}
    environment = {**os.environ, **{name: str(file) for name, file in files.items()}, **tokens}
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path)}
    ((_, script, variables),) = [one for one in steps({"model": "net.py:net", "base": "b"}) if one[0] == "diff"]
    subprocess.run(["bash", "-e", "-c", script], env=environment | variables, check=True)
    seen = dict(line.partition("=")[::2] for line in (tmp_path / "seen").read_text().splitlines())
    assert not seen.keys() & {*files, *tokens} and "secret" not in seen.values()
    assert {name: file.read_text() for name, file in files.items()} == {
        "GITHUB_ENV": "",
        "GITHUB_PATH": "",
        "GITHUB_OUTPUT": "code=10\n",
        "GITHUB_STEP_SUMMARY": "<!-- joulemap diff net.py:net -->\ntable\n",
    }


def test_a_repository_runs_none_of_the_programs_that_its_configuration_names(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Filters, hooks, monitors, pagers: the files are those of the commit, links among them."""
    mark = repository.parent / "ran"
    (repository / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    (repository / "link.py").symlink_to("nets/net.py")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=two")
    program = repository.parent / "evil"
    program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    program.chmod(0o755)
    for setting in ("filter.evil.smudge", "filter.evil.process", "core.fsmonitor", "core.pager", "diff.evil.textconv",
                    "diff.external", "core.sshCommand", "core.gitProxy", "credential.helper"):  # fmt: skip
        git(repository, "config", setting, str(program))
    for hook in ("post-checkout", "post-index-change", "pre-commit"):
        (repository / ".git" / "hooks" / hook).write_text(program.read_text())
        (repository / ".git" / "hooks" / hook).chmod(0o755)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(program))
    commit = revision._find_commit("HEAD:nets/net.py:net")
    assert commit is not None
    with revision._checked_out(commit) as tree:
        assert (tree / "nets" / "net.py").read_bytes() == (repository / "nets" / "net.py").read_bytes()
        assert os.readlink(tree / "link.py") == "nets/net.py"
    assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "comments"), [("energy=5%", ""), ("energy=5000%", "https://api/comments/3")])
def test_the_action_comments_on_a_change_that_doubles_a_layer(
    limit: str, comments: str, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("action")
    upstream, clone, tools = (place / name for name in ("upstream", "clone", "tools"))
    git(repository, "commit", "--quiet", "--all", "--message=two")
    base = git(repository, "rev-parse", "HEAD~1")
    git(repository, "clone", "--quiet", "--bare", str(repository), str(upstream))
    git(repository, "clone", "--quiet", "--depth=1", f"file://{upstream}", str(clone))
    tools.mkdir()
    programs = {
        "joulemap": f'exec {sys.executable} -m joulemap "$@"',
        "python": "echo pip $* >> $RUNNER_TEMP/calls",
        "gh": f'echo gh $* >> $RUNNER_TEMP/calls; case "$*" in *--jq*) echo {comments};; esac',
    }
    for name, text in programs.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    files = {name: str(tools / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    path = f"{tools}:{os.environ['PATH']}"
    environment = {**os.environ, **files, "PATH": path, "RUNNER_TEMP": str(tools), "PYTHONPATH": str(ROOT / "src")}
    codes = {}
    asked = {"model": "nets/net.py:net", "base": base, "hardware": "l4", "fail-above": limit, "install": "timm==1.0"}
    for name, script, variables in steps(asked):
        if name == "verdict":
            variables = {"CODE": Path(files["GITHUB_OUTPUT"]).read_text().strip().removeprefix("code=")}
        done = subprocess.run(["bash", "-e", "-c", script], cwd=clone, env=environment | variables, capture_output=True)
        codes[name] = done.returncode
    assert codes == dict.fromkeys(codes, 0) | {"verdict": 10 if limit == "energy=5%" else 0}
    summary = Path(files["GITHUB_STEP_SUMMARY"]).read_text()
    assert summary.startswith("<!-- joulemap diff nets/net.py:net -->\n") and "| energy" in summary
    calls = (tools / "calls").read_text()
    assert f"pip -m pip install --quiet {ROOT}[torch] timm==1.0\n" in calls
    assert ("--method PATCH https://api/comments/3" in calls) == bool(comments)


def test_a_hook_runs_a_command_that_is_there() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"].split() == ["joulemap", "diff"] and "diff" in list_commands()
