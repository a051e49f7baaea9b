"""The words of older tools: answered with what is written here."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from conftest import Run
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.sheet import load_scenarios
from joulemap.cli.argument import GONE, join_values
from joulemap.cli.overview import drop_head, find_commands, list_commands
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.settings import Settings
from joulemap.plan.selection import select_hardware
from joulemap.system.errors import ExitCode
from joulemap.system.wing import Command
from tools.manual import Manual, read_manual


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


def test_what_is_advised_instead_of_an_older_word_is_an_option_or_a_command() -> None:
    known = set().union(*(_list_options(read_manual(name)) for name in list_commands()))
    for advice in GONE.values():
        assert set(re.findall(r"--[a-z-]+", advice)) <= {"--help", *known}
        assert set(re.findall(r"`joulemap (\w+)", advice)) <= set(list_commands())


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("older", "advice"),
    [
        ("compare --model resnet18 l4", "no --model here: the model is the first argument"),
        ("compare resnet18 --batch-size 8", "no --batch-size here: write --batch"),
        ("compare resnet18 --explain-difference", "joulemap explain"),
        ("analyze mlp --cpu epyc_9654", "`joulemap analyze mlp epyc_9654`"),
        ("analyze resnet18 --wide", "write --show wide"),
        ("analyze_cpu_energy.py --list-cpus", "`joulemap hardware list --architecture cpu`"),
        ("analyze_kpu_energy.py --model mlp", "`joulemap analyze mlp kpu`"),
        ("compare --list-models", "joulemap model list"),
        ("compare --list-cpus", "joulemap hardware list"),
        ("cli/profile_graph.py --model mlp", "`joulemap model show mlp`"),
        ("discover_models", "joulemap model list"),
        ("-q compare-models.py", "`joulemap compare resnet18 l4`"),
        ("compare resnet18 --trust", "JOULEMAP_TRUST=1"),
        ("edp resnet18 l4 t4", "`joulemap compare` takes several"),
    ],
)
def test_an_older_word_is_one_line_with_what_is_written_instead(older: str, advice: str, joulemap: Run) -> None:
    done = joulemap(*older.split())
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (ExitCode.USAGE, "", 1)
    assert advice in done.stderr


def test_where_an_option_is_of_the_command_nothing_is_read_anew(joulemap: Run) -> None:
    done = joulemap("measurements", "list", "--model", "resnet18", "--format", "csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert {row["model"] for row in csv.DictReader(io.StringIO(done.stdout))} == {"resnet18"}


def test_an_unknown_option_is_still_one_line(joulemap: Run) -> None:
    done = joulemap("compare", "resnet18", "--nonsense")
    assert done.returncode == ExitCode.USAGE
    assert "--nonsense" in done.stderr.splitlines()[-1]


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


@pytest.mark.parametrize("head", [one for one in find_commands().values() if one.merged], ids=lambda one: one.home)
def test_a_command_answers_as_help_lists_it(head: Command) -> None:
    name = next(name for name, one in find_commands().items() if one == head)
    assert drop_head(["-q", head.merged, name, "mlp"]) == ["-q", name, "mlp"]
    assert drop_head([head.merged, "mlp", name]) == [head.merged, "mlp", name]


def test_a_statement_may_begin_with_a_comment(joulemap: Run, database: Path) -> None:
    done = joulemap("sql", "-- one row\nSELECT 1 AS a", "--db", database, "-f", "csv")
    assert (done.returncode, done.stdout) == (0, "a\n1\n")
