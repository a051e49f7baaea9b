"""What a shell completes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import Run
from joulemap.cli.overview import list_commands
from joulemap.store.library import list_queries
from joulemap.system.errors import ExitCode
from layers import loaded_after


def typed(line: str, joulemap: Run) -> list[str]:
    words = line.split(" ")
    variables = {
        "_JOULEMAP_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = joulemap(variables=variables)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("joulemap comp", {"compare", "completion"}),
        ("joulemap compare resnet1", {"resnet18", "resnet101", "resnet152"}),
        ("joulemap compare resnet18 h100", {"h100_sxm5", "h100_pcie", "h100_nvl"}),
        ("joulemap compare resnet18 --hardware l4,H100", {"l4,H100_sxm5", "l4,H100_pcie", "l4,H100_nvl"}),
        (
            "joulemap analyze resnet18 Jetson-Orin-N",
            {"Jetson-Orin-Nano_8gb", "Jetson-Orin-Nx_16gb"}
            | {f"Jetson-Orin-Nx_{one}" for one in ("cpu", "dla", "module")},
        ),
        ("joulemap explain resnet18 gpu kpu_t2", {"kpu_t256"}),
        ("joulemap pareto resnet18 --x energy", {"energy", "energy_per_inference"}),
        ("joulemap analyze resnet18 --precision fp1", {"fp16"}),
        ("joulemap sweep resnet18 --where d", {"deployment="}),
        ("joulemap architectures resnet18 --where power-", {"power-budget=", "power-mode="}),
        ("joulemap architectures resnet18 --precision int", {"int8", "int4"}),
        ("joulemap query run compare.s", {"compare.standing", "compare.summary"}),
        ("joulemap hardware sh", {"show"}),
        ("joulemap hardware show kpu", {"kpu", "kpu_t64", "kpu_t256", "kpu_t768"}),
        ("joulemap db info --format j", {"json"}),
        ("joulemap analyze resnet18 --weight", {"--weight-precision"}),
        ("joulemap compare ./", set()),
    ],
)
def test_a_word_is_completed(line: str, expected: set[str], joulemap: Run) -> None:
    assert set(typed(line, joulemap)) == expected


def test_every_command_and_query_is_offered(joulemap: Run) -> None:
    assert set(typed("joulemap ", joulemap)) == set(list_commands())
    assert set(typed("joulemap query show ", joulemap)) == {query.name for query in list_queries()}


def test_completing_loads_neither_torch_nor_the_engine(tmp_path: Path) -> None:
    for line in ("joulemap compare resn", "joulemap analyze resnet18 h1", "joulemap query run run."):
        code = (
            "import contextlib, io, os\n"
            f"os.environ.update(_JOULEMAP_COMPLETE='complete_bash', COMP_WORDS={line!r}, COMP_CWORD='2')\n"
            "from joulemap.cli.app import run\n"
            "with contextlib.redirect_stdout(io.StringIO()): assert run([]) == 0"
        )
        assert not loaded_after(code, tmp_path) & {"torch", "duckdb", "numpy", "cattrs", "rich"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_a_script_is_printed_for_each_shell(shell: str, joulemap: Run) -> None:
    done = joulemap("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"complete_{shell}" in done.stdout


def test_a_shell_that_is_not_known_is_refused(joulemap: Run) -> None:
    done = joulemap("completion", "tcsh")
    assert done.returncode == ExitCode.USAGE
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in done.stderr


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_reads_the_script(joulemap: Run, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(joulemap("completion", "bash").stdout)
    done = subprocess.run(
        ["bash", "--norc", "-c", "source ./script && complete -p joulemap"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "-F _joulemap_completion joulemap" in done.stdout
