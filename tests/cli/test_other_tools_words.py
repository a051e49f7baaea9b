"""The words of older tools: taken for what they are called here, or answered with the line that is right."""

from __future__ import annotations

import csv
import io
import re
import shlex
from pathlib import Path

import pytest

from conftest import Run
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.sheet import load_scenarios
from joulemap.cli.argument import OLDER, join_values, modernize
from joulemap.cli.overview import drop_head, find_commands, list_commands
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.settings import Settings
from joulemap.plan.selection import select_hardware
from joulemap.system.errors import ExitCode
from joulemap.system.wing import Command
from tools.manual import Manual, read_manual


@pytest.mark.parametrize(
    ("older", "here"),
    [
        ("compare --model resnet18", "compare resnet18"),
        ("compare --model=resnet18 --batch-size=8", "compare resnet18 --batch 8"),
        ("compare --models resnet18,mobilenet_v2 tpu_v4", "compare resnet18 mobilenet_v2 tpu_v4"),
        ("compare --architectures GPU TPU --model resnet18", "compare resnet18 GPU TPU"),
        ("compare --model gemm(m=1,n=8,k=8) -q l4", "compare gemm(m=1,n=8,k=8) -q l4"),
        (
            "sweep --model mlp --batch-sizes 1 2 4 --hardware l4 t4",
            "sweep mlp --batch 1,2,4 --hardware l4 t4",
        ),
        ("compare --model resnet18 --explain-difference GPU TPU --metric edp", "explain resnet18 GPU TPU --metric edp"),
        ("-q analyze --hardware l4 --model resnet18", "-q analyze resnet18 --hardware l4"),
        ("model show resnet18 --input-shape 1 3 64 64", "model show resnet18 --input 1,3,64,64"),
    ],
)
def test_an_older_command_line_is_one_of_today(older: str, here: str) -> None:
    assert modernize(older.split()) == here.split()
    assert modernize(here.split()) == here.split()


@pytest.mark.parametrize(
    ("words", "joined"),
    [
        ("compare resnet18 --batch 1 8 32", "compare resnet18 --batch 1,8,32"),
        ("compare --batch 1 8 resnet18", "compare --batch 1,8 resnet18"),
        ("compare --batch 1,8 16 resnet18", "compare --batch 1,8,16 resnet18"),
        ("sweep resnet18 --precision FP16 bfloat16 l4", "sweep resnet18 --precision FP16,bfloat16 l4"),
        ("compare --architecture GPU tpu resnet18", "compare --architecture GPU,tpu resnet18"),
        ("compare resnet18 --hardware l4 t4", "compare resnet18 --hardware l4 t4"),
        ("compare --batch resnet18 8", "compare --batch resnet18 8"),
        ("compare --batch 1 -- 8", "compare --batch 1 -- 8"),
        (
            "analyze a l4 --precision fp32 --matmul-precision high",
            "analyze a l4 --precision fp32 --matmul-precision high",
        ),
        ("diff a b --fail-above energy=5% latency=3%", "diff a b --fail-above energy=5%,latency=3%"),
        ("diff a b --fail-above energy=5% l4", "diff a b --fail-above energy=5% l4"),
    ],
)
def test_several_values_after_an_option_are_its_own(words: str, joined: str) -> None:
    assert join_values(words.split()) == joined.split()


def _list_options(manual: Manual) -> set[str]:
    own = {word for one in manual.options for word in one.names.replace(",", " ").replace("/", " ").split()}
    return own.union(*map(_list_options, manual.commands))


def test_what_an_older_option_is_called_here_is_an_option() -> None:
    known = set().union(*(_list_options(read_manual(name)) for name in list_commands()))
    assert {name.partition("=")[0] for name in OLDER.values() if name} <= {"--help", *known}


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("older", "here"),
    [
        ("compare --model resnet18 --architectures GPU TPU", "compare resnet18 GPU TPU"),
        ("compare --model resnet18 --explain-difference GPU TPU", "explain resnet18 GPU TPU"),
    ],
)
def test_an_older_command_answers_and_says_how_it_is_read(older: str, here: str, joulemap: Run, database: Path) -> None:
    asked, again = (joulemap(*line.split(), "--db", database, "--format", "json") for line in (older, here))
    assert (asked.returncode, asked.stdout) == (again.returncode, again.stdout) == (0, again.stdout)
    assert again.stderr == ""
    assert here in asked.stderr
    assert asked.stderr.count("\n") == 1
    assert joulemap(*older.split(), "--db", database, "--format", "json", "--quiet").stderr == ""


def test_where_an_option_is_of_the_command_nothing_is_read_anew(joulemap: Run) -> None:
    done = joulemap("measurements", "list", "--model", "resnet18", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert {row["model"] for row in csv.DictReader(io.StringIO(done.stdout))} == {"resnet18"}


def test_an_unknown_option_is_still_one_line(joulemap: Run) -> None:
    done = joulemap("compare", "resnet18", "--batch-size", "8", "--nonsense")
    assert done.returncode == ExitCode.USAGE
    assert "--nonsense" in done.stderr.splitlines()[-1]
    alone = joulemap("compare", "resnet18", "--explain-difference")
    assert alone.returncode == ExitCode.USAGE
    assert "two chips" in alone.stderr


def _choose(**keywords: object) -> list[str]:
    return [entry.id for entry, _ in select_hardware(Settings(**keywords)).pairs]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CLASS_HARDWARE)
def test_a_class_is_its_default_chip_and_its_plural_all_of_it(name: str) -> None:
    whole = {one.id for one in load_catalogue().hardware.values() if one.architecture == name}
    assert _choose(architecture=name) == _choose(hardware=name.upper()) == [CLASS_HARDWARE[name]]
    assert set(_choose(hardware=f"{name}s")) == whole >= {CLASS_HARDWARE[name]}
    selection = select_hardware(Settings(architecture=(name,)))
    assert dict(selection.meanings) == {name: CLASS_HARDWARE[name]}
    everything = select_hardware(Settings(architecture=(name,)), "every mode")
    inside = {one.id for one in load_catalogue().hardware.values() if one.sold_in}  # nobody can order these alone
    assert {entry.id for entry, _ in everything.pairs} == whole - inside
    assert everything.meanings == {}


def test_a_class_with_another_filter_is_what_both_leave() -> None:
    listed = load_catalogue().hardware.values()
    edge = {one.id for one in listed if one.architecture == "gpu" and "edge" in one.deployment}
    assert set(_choose(architecture="gpu", deployment="edge", power_budget_w=1e4)) == edge
    assert set(_choose(architecture=("gpu", "tpu"))) == {"h100_sxm5", "tpu_v4"}
    assert {mode for _, mode in select_hardware(Settings(hardware="gpus@15W")).pairs} == {"15W"}


def test_every_chip_for_embedded_use_has_a_mode_within_its_power_unless_it_is_no_product() -> None:
    selection = select_hardware(Settings(deployment=("embedded",)))
    budget = load_scenarios()["embedded"].power_budget
    assert budget is not None
    assert all(entry.cap_w(mode) <= budget.value for entry, mode in selection.pairs)
    assert ("tda4vm_c7x_mma", "10W") in {(entry.id, mode) for entry, mode in selection.pairs}
    listed = load_catalogue().hardware
    # a part of a module counts with the whole, whose idle power may exceed the budget
    whole = [listed[name] for name in selection.left_out if not listed[name].needs_host.startswith("module ")]
    assert all(one.unavailable for one in whole)


@pytest.mark.sample(1)
@pytest.mark.parametrize("older", [
    "edp resnet18 l4 t4 h100_sxm5 epyc_9654", "analyze resnet18 --cpu epyc_9654", "compare --list-cpus",
    "analyze --list-models", "compare_architectures.py resnet18 l4 t4", "list_hardware_mappers", "discover_models",
    "compare resnet18 l4 t4 --max-latency 5ms", "analyze resnet18 --gpu=l4", "compare-architectures.py",
    "--quiet analyze --batch 8 resnet18 l4,t4 --precision fp16", "analyze --cpu epyc_genoa --model resnet18",
    "analyze resnet18 --CPU l4", "analyze --cpu --model resnet18", "--cpu l4", "-q compare_models.py --batch-size 2",
    "analyze_dpu_energy", "cli/profile_graph.py --model mlp --hardware l4", "sweep --gpu t4 --model mlp --steps 3 mlp",
    "analyze_batch.py --model mlp",
])  # fmt: skip
def test_a_pointer_is_a_command_that_runs(older: str, joulemap: Run, database: Path) -> None:
    asked = joulemap(*older.split(), "--db", database)
    assert asked.returncode == ExitCode.USAGE
    (command,) = re.findall(r"run `joulemap ([^`]+)`", asked.stderr)
    again = joulemap(*shlex.split(command), *(["--db", database] if "list" not in command else []))
    assert again.returncode == 0, command


@pytest.mark.parametrize(
    ("older", "command"),
    [
        ("analyze_cpu_energy.py --list-cpus", "hardware list --architecture cpu"),
        ("analyze_kpu_energy.py --model mlp", "analyze mlp kpu"),
        ("analyze_dpu_energy.py --model mlp", "analyze mlp dpu --precision int8"),
        ("analyze_cpu_energy.py --model mlp --cpu epyc_9654", "analyze mlp epyc_9654"),
        ("analyze_batch.py --model mlp", "sweep mlp"),
        ("profile_graph.py --model mlp", "model show mlp"),
    ],
)
def test_a_script_is_pointed_to_its_own_command_and_class(older: str, command: str, joulemap: Run) -> None:
    assert f"run `joulemap {command}`" in joulemap(*older.split()).stderr


@pytest.mark.parametrize("head", [one for one in find_commands().values() if one.merged], ids=lambda one: one.home)
def test_a_command_answers_as_help_lists_it(head: Command) -> None:
    name = next(name for name, one in find_commands().items() if one == head)
    assert drop_head(["-q", head.merged, name, "mlp"]) == ["-q", name, "mlp"]
    assert drop_head([head.merged, "mlp", name]) == [head.merged, "mlp", name]


def test_a_statement_may_begin_with_a_comment(joulemap: Run, database: Path) -> None:
    done = joulemap("sql", "-- one row\nSELECT 1 AS a", "--db", database, "-f", "csv")
    assert (done.returncode, done.stdout) == (0, "a\n1\n")


def test_a_pointer_keeps_the_options_of_both_commands(joulemap: Run) -> None:
    asked = joulemap("--quiet", "edp", "--batch", "8", "resnet18", "l4", "t4", "--level=operator")
    (command,) = re.findall(r"run `joulemap ([^`]+)`", asked.stderr)
    assert command == "compare resnet18 l4 t4 --metric edp --batch 8 --level=operator"
    scripted = joulemap(
        "analyze_graph_mapping", "--strategy", "all", "--model", "mlp", "--batch-size", "8", "--cpu", "l4"
    )
    assert "run `joulemap analyze mlp l4 --batch 8`" in scripted.stderr
    assert "run `" not in joulemap("export", "perfetto", "resnet18", "l4,t4").stderr  # it has no model first
