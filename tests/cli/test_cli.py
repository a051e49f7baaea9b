from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cell import assert_part, read_table
from conftest import Run
from joulemap.cli.output import SUFFIXES
from joulemap.show.compare import BEST_TITLE
from joulemap.show.database import SOUND
from joulemap.system.errors import ExitCode
from sample import thin

COMMANDS = [
    ("compare",),
    ("analyze",),
    ("explain",),
    ("pareto",),
    ("recommend",),
    ("cost",),
    ("edp",),
    ("fusion",),
    ("utilization",),
    ("sweep",),
    ("sql",),
    ("query", "list"),
    ("query", "show"),
    ("query", "run"),
    ("hardware", "list"),
    ("hardware", "show"),
    ("hardware", "template"),
    ("hardware", "check"),
    ("hardware", "sanity"),
    ("hardware", "detect"),
    ("measure",),
    ("measurements", "list"),
    ("measurements", "import"),
    ("measurements", "tables"),
    ("validate",),
    ("model", "list"),
    ("model", "show"),
    ("model", "trace"),
    ("db", "info"),
    ("db", "migrate"),
    ("db", "check"),
    ("db", "diff"),
]

BAD = [
    (("compare", "resnet19"), ExitCode.UNKNOWN_NAME, "unknown model 'resnet19'; did you mean resnet18"),
    (("compare", "re'snet;18"), ExitCode.UNKNOWN_NAME, "unknown model"),
    (("compare", "resnet18", "--hardware", "h100_sxm4"), ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
    (("compare", "resnet18", "--where", "architecture=gpx"), ExitCode.UNKNOWN_NAME, "did you mean gpu?"),
    (("compare", "resnet18", "--batch", "0"), ExitCode.USAGE, "batch is 0, expected a whole number from 1"),
    (("compare", "resnet18", "--batch", "-1"), ExitCode.USAGE, "batch is -1"),
    (("compare", "resnet18", "--batch", "ten"), ExitCode.USAGE, "--batch: 'ten' is not a whole number"),
    (("compare", "resnet18", "--precision", "fp17"), ExitCode.USAGE, "unknown precision 'fp17'; known: fp64, fp32"),
    (("compare", "resnet18", "--runtime", "slow"), ExitCode.USAGE, "known: eager, graph, fused"),
    (("compare", "resnet18", "--format", "nonsense"), ExitCode.USAGE, "'nonsense' is not one of 'table', 'csv'"),
    (("compare", "resnet18", "--input", "1,3,x"), ExitCode.USAGE, "cannot read the input '1,3,x'"),
    (("compare", "resnet18", "--input", "1,3,8,8:fp99"), ExitCode.USAGE, "has the dtype 'fp99'; known: fp64"),
    (("compare", "mlp", "--model-arg", "width"), ExitCode.USAGE, "write name=value"),
    (("compare", "resnet18", "--hardware", ","), ExitCode.USAGE, "cannot read the names"),
    (("compare", "timm:resnet18"), ExitCode.MODEL, "pip install timm"),
    (("compare", "resnet18", "--input", "224"), ExitCode.USAGE, "takes an input of 4 dimensions"),
    (("compare", "resnet18", "--input", "2,3,224,224", "--batch", "3"), ExitCode.USAGE, "contradicts"),
    (("compare", "resnet18", "--db", "no/x.duckdb"), ExitCode.DATABASE, "the folder no does not exist"),
    (("compare", "./mine.py:net"), ExitCode.MODEL, "there is no file mine.py"),
    (("compare",), ExitCode.USAGE, "Missing argument 'MODEL"),
    (("analyze", "resnet18"), ExitCode.USAGE, "name a chip"),
    (("analyze", "resnet19", "h100_sxm5"), ExitCode.UNKNOWN_NAME, "unknown model 'resnet19'; did you mean resnet18"),
    (("analyze", "resnet18", "h100_sxm4"), ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
    (("analyze", "resnet18", ""), ExitCode.USAGE, "name a chip"),
    (("analyze", "resnet18", "h100_sxm5,tpu_v4"), ExitCode.USAGE, "is 2 chips, expected one: h100_sxm5, tpu_v4"),
    (("analyze", "resnet18", "H100", "TPU"), ExitCode.USAGE, "is 2 chips, expected one: h100_sxm5, tpu_v4"),
    (("analyze", "resnet18", "TPU v5"), ExitCode.UNKNOWN_NAME, "'TPU v5' may be tpu_v5e, tpu_v5p: name one"),
    (("analyze", "resnet18", "H200 NVL"), ExitCode.UNKNOWN_NAME, "did you mean h100_nvl or h200_sxm"),
    (("compare", "resnet18", "h101"), ExitCode.UNKNOWN_NAME, "unknown hardware 'h101'; did you mean h100_sxm5"),
    (("compare", "resnet18", "-o", "x.xlsx"), ExitCode.USAGE, "x.xlsx: unknown suffix .xlsx; known: .txt, .json"),
    (("compare", "resnet18", "-o", "x.csv", "-f", "json"), ExitCode.USAGE, "x.csv would hold json: name it x.json"),
    (
        ("hardware", "template", "--like", "l4", "-o", "x.json"),
        ExitCode.USAGE,
        "would hold a hardware file: name it x.t",
    ),
    (("query", "show", "run.list", "-o", "x.csv"), ExitCode.USAGE, "would hold a query file: name it x.sql"),
    (("calibrate", "h200_sxm", "-o", "x.json"), ExitCode.USAGE, "would hold a calibration: name it x.toml"),
    (("calibrate", "gpu", "--dry-run"), ExitCode.UNKNOWN_NAME, "it is a class of hardware, name a chip of it"),
    (("measure", "mlp", "--hardware", "GPU"), ExitCode.USAGE, "GPU is a class of hardware: name a chip of it"),
    (("analyze", "resnet18", "tpu_v4@15W"), ExitCode.UNKNOWN_NAME, "takes a power limit above its 90 W"),
    (("analyze", "resnet18", "kpu_t64@x"), ExitCode.UNKNOWN_NAME, "has 3W, 6W, 10W"),
    (("analyze", "resnet18", "./none.toml"), ExitCode.CATALOGUE, "there is no such file or folder"),
    (("analyze", "resnet18", "tpu_v4", "--level", "tile"), ExitCode.USAGE, "'tile' is not one of 'category', 'action'"),
    (("analyze", "resnet18", "tpu_v4", "--precision", "fp17"), ExitCode.USAGE, "unknown precision 'fp17'"),
    (("analyze", "resnet18", "tpu_v4", "--runtime", "slow"), ExitCode.USAGE, "known: eager, graph, fused"),
    (("analyze", "resnet18", "tpu_v4", "--batch", "0"), ExitCode.USAGE, "batch is 0"),
    (("fusion", "resnet18"), ExitCode.USAGE, "name a chip"),
    (("fusion", "resnet18", "tpu_v4", "--runtime", "jit"), ExitCode.USAGE, "unknown runtime 'jit'"),
    (("fusion", "resnet18", "tpu_v4", "--level", "tile"), ExitCode.USAGE, "'tile' is not one of 'run', 'pattern'"),
    (("edp", "resnet18"), ExitCode.USAGE, "name a chip"),
    (("recommend", "resnet18", "--max-latency", ""), ExitCode.USAGE, "--max-latency is empty"),
    (("compare", "resnet18", "--hardware="), ExitCode.USAGE, "--hardware is empty"),
    (("compare", "resnet18", "-b", ""), ExitCode.USAGE, "-b is empty"),
    (
        ("compare", "resnet18", "--where", "deployment=dpu"),
        ExitCode.UNKNOWN_NAME,
        "a class of hardware: --where architecture=dpu",
    ),
    (
        ("compare", "resnet18", "--where", "architecture=edge"),
        ExitCode.UNKNOWN_NAME,
        "a deployment: --where deployment=edge",
    ),
    (("compare", "resnet18", "--hardware", "robot"), ExitCode.UNKNOWN_NAME, "a scenario: --where scenario=robot"),
    (("compare", "resnet18", "edge"), ExitCode.UNKNOWN_NAME, "a deployment: --where deployment=edge"),
    (("edp", "resnet19", "tpu_v4"), ExitCode.UNKNOWN_NAME, "did you mean resnet18"),
    (("edp", "re'sn;et", "tpu_v4"), ExitCode.UNKNOWN_NAME, """unknown model "re'sn;et\""""),
    (("edp", "resnet18", "h100_sxm4"), ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
    (("edp", "resnet18", "h100_sxm4"), ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
    (("edp", "resnet18", "tpu_v4", "--level", "tile"), ExitCode.USAGE, "'tile' is not one of 'subgraph', 'operator'"),
    (("edp", "resnet18", "tpu_v4", "--limit", "0"), ExitCode.USAGE, "Invalid value for '--limit'"),
    (("edp", "resnet18", "tpu_v4", "--format", "nonsense"), ExitCode.USAGE, "'nonsense' is not one of 'table', 'csv'"),
    (("utilization",), ExitCode.USAGE, "Missing argument 'MODEL'"),
    (("utilization", "resnet18", "h100_sxm4"), ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
    (("utilization", "resnet18", "--min-compute", "20"), ExitCode.USAGE, "min_compute_fraction is 20"),
    (("utilization", "resnet18", "--max-idle", "x"), ExitCode.USAGE, "'x' is not a finite number"),
    (("utilization", "resnet18", "--format", "nonsense"), ExitCode.USAGE, "'nonsense' is not one of"),
    (("sweep",), ExitCode.USAGE, "Missing argument 'MODEL"),
    (("sweep", "resnet18", "resnet19"), ExitCode.UNKNOWN_NAME, "unknown model 'resnet19'; did you mean resnet18"),
    (("sweep", "resnet18", "--batch", "1,x"), ExitCode.USAGE, "--batch: 'x' is not a whole number"),
    (("sweep", "resnet18", "--batch", "1,..."), ExitCode.USAGE, "cannot read the batches '1,...'"),
    (("sweep", "resnet18", "--batch", "1,2,4,...,100"), ExitCode.USAGE, "do not reach 100"),
    (("sweep", "resnet18", "--batch", "0,1"), ExitCode.USAGE, "batch is 0"),
    (("sweep", "resnet18", "--batch", ","), ExitCode.USAGE, "cannot read the names in ','"),
    (("sweep", "resnet18", "--precision", "fp17,fp32"), ExitCode.USAGE, "unknown precision 'fp17'"),
    (("sweep", "resnet18", "--runtime", ","), ExitCode.USAGE, "cannot read the names"),
    (("sweep", "resnet18", "--max-latency", "50W"), ExitCode.USAGE, "--max-latency: '50W' is in W, expected s"),
    (("sweep", "resnet18", "--max-latency", "-1ms"), ExitCode.USAGE, "is not above 0"),
    (("sweep", "resnet18", "--hardware", "h100_sxm4"), ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
    (("sweep", "resnet18", "--format", "nonsense"), ExitCode.USAGE, "'nonsense' is not one of"),
    (("measure",), ExitCode.USAGE, "measure needs a MODEL, `host` or --parts"),
    (("measure", "resnet19"), ExitCode.UNKNOWN_NAME, "unknown model 'resnet19'; did you mean resnet18"),
    (("measure", "mlp", "--hardware", "h100_sxm4"), ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
    (("measure", "mlp", "--hardware", "kpu_t64@6W"), ExitCode.USAGE, "per chip, not per power mode"),
    (("measure", "mlp", "--hardware", "./none.toml"), ExitCode.CATALOGUE, "there is no such file or folder"),
    (("measure", "mlp", "--device", "tpu"), ExitCode.USAGE, "'tpu' is not one of 'cpu', 'cuda'"),
    (("measure", "mlp", "--runtime", "graph"), ExitCode.USAGE, "use eager or fused"),
    (("measure", "mlp", "--runtime", "slow"), ExitCode.USAGE, "known: eager, graph, fused"),
    (("measure", "mlp", "--precision", "int8"), ExitCode.USAGE, "expected one of fp32, bf16, fp16"),
    (("measure", "mlp", "--seconds", "0"), ExitCode.USAGE, "--seconds is 0, expected above 0"),
    (("measure", "mlp", "--threads", "0"), ExitCode.USAGE, "--threads is 0, expected a whole number from 1"),
    (("measure", "mlp", "--batch", "0"), ExitCode.USAGE, "batch is 0"),
    (("measure", "quantized_resnet18"), ExitCode.MODEL, "int8 modules cannot be built without data"),
    (("hardware", "detect", "--device", "npu"), ExitCode.USAGE, "'npu' is not one of 'cpu', 'cuda'"),
    (("hardware", "detect", "--threads", "0"), ExitCode.USAGE, "--threads is 0"),
    (("explain", "resnet18", "H100"), ExitCode.USAGE, "name two chips after the model, A and B; found 1 (H100)"),
    (("explain", "resnet18", "h100_sxm5", "tpu_v9"), ExitCode.UNKNOWN_NAME, "did you mean tpu_v4"),
    (("explain", "resnet18", "h100_sxm5", "tpu_v4", "--metric", "x"), ExitCode.USAGE, "'x' is not"),
    (("pareto",), ExitCode.USAGE, "Missing argument 'MODEL'"),
    (("pareto", "resnet18", "--format", "nonsense"), ExitCode.USAGE, "'nonsense' is not one of 'table', 'csv'"),
    (
        ("pareto", "resnet18", "--x", "beauty"),
        ExitCode.USAGE,
        "'beauty' is not one of 'energy', 'energy_",
    ),
    (("pareto", "resnet18", "--x", "energy", "--y", "energy"), ExitCode.USAGE, "both metrics are energy: a front"),
    (("pareto", "re'snet;18"), ExitCode.UNKNOWN_NAME, "unknown model"),
    (("pareto", "resnet18", "--batch", "1,ten"), ExitCode.USAGE, "--batch: 'ten' is not a whole number"),
    (("pareto", "resnet18", "--batch", "0"), ExitCode.USAGE, "batch is 0, expected a whole number from 1"),
    (("pareto", "resnet18", "--precision", "fp17"), ExitCode.USAGE, "unknown precision 'fp17'; known: fp64, fp32"),
    (("pareto", "resnet18", "--where", "power-mode=x"), ExitCode.UNKNOWN_NAME, "unknown power mode 'x'"),
    (("recommend", "resnet19"), ExitCode.UNKNOWN_NAME, "did you mean resnet18"),
    (("recommend", "resnet18", "--format", "nonsense"), ExitCode.USAGE, "'nonsense' is not one of 'table', 'csv'"),
    (
        ("recommend", "resnet18", "--objective", "fame"),
        ExitCode.USAGE,
        "'fame' is not one of 'energy', 'energy_per",
    ),
    (("recommend", "resnet18", "--max-latency", "50J"), ExitCode.USAGE, "--max-latency: '50J' is in J, expected s"),
    (("recommend", "resnet18", "--max-latency", "20"), ExitCode.USAGE, "'20' has no unit: write 20ms"),
    (("recommend", "resnet18", "--max-latency", "20m"), ExitCode.USAGE, "'20m' has no unit: write 20ms"),
    (("recommend", "resnet18", "--max-memory", "2e9"), ExitCode.USAGE, "'2e9' has no unit: write 2e9MB"),
    (("recommend", "resnet18", "--min-throughput", "30"), ExitCode.USAGE, "'30' has no unit: write 30/s"),
    (("cost", "resnet18", "--site", "electricity=0.3"), ExitCode.USAGE, "'0.3' has no unit: write 0.3USD/kWh"),
    (("recommend", "resnet18", "--max-latency", "soon"), ExitCode.USAGE, "--max-latency: 'soon' is not a number"),
    (("recommend", "resnet18", "--max-energy", "0J"), ExitCode.USAGE, "--max-energy: '0J' is not above 0"),
    (("recommend", "resnet18", "--max-memory", "inf"), ExitCode.USAGE, "--max-memory: 'inf' is not a number"),
    (("recommend", "resnet18", "--max-power", "-5W"), ExitCode.USAGE, "--max-power: '-5W' is not above 0"),
    (("recommend", "resnet18", "--min-throughput", "30fps"), ExitCode.USAGE, "'30fps' is in fps, expected 1/s"),
    (("recommend", "resnet18", "--max-price", "2"), ExitCode.USAGE, "write 2USD/h to rent a chip, 2USD to buy one"),
    (("recommend", "resnet18", "--max-price", "2EUR/h"), ExitCode.USAGE, "'2EUR/h' is in EUR/h, expected USD/h"),
    (
        ("recommend", "resnet18", "--where", "deployment=moon"),
        ExitCode.UNKNOWN_NAME,
        "known: datacenter, edge, embedded",
    ),
    (("cost", "resnet18", "--format", "nonsense"), ExitCode.USAGE, "'nonsense' is not one of 'table', 'csv'"),
    (
        ("cost", "resnet18", "--site", "busy-hours=0"),
        ExitCode.USAGE,
        "busy-hours: 0 hours, expected above 0 and at most 24",
    ),
    (("cost", "resnet18", "--site", "pue=0.5"), ExitCode.USAGE, "pue is 0.5, expected at least 1"),
    (("cost", "resnet18", "--site", "lifetime=never"), ExitCode.USAGE, "'never' is not a finite number"),
    (
        ("cost", "resnet18", "--site", "electricity=3W"),
        ExitCode.USAGE,
        "--site electricity: '3W' is in W, expected USD/kWh",
    ),
    (("cost", "resnet18", "--site", "grid=atlantis"), ExitCode.UNKNOWN_NAME, "unknown grid region 'atlantis'"),
    (("cost", "resnet18", "--between", "l4"), ExitCode.USAGE, "between two options, found 1: write A,B"),
    (("sql", "SELECT 1"), ExitCode.DATABASE, "there is no database at joulemap.duckdb"),
    (("query", "run", "compare.sumary"), ExitCode.UNKNOWN_NAME, "did you mean compare.summary"),
    (("query", "run", "compare.summary"), ExitCode.USAGE, "needs -p run_ids=INTEGER[]"),
    (("query", "run", "run.list", "-p", "model"), ExitCode.USAGE, "does not have the form key=value"),
    (("query", "show", "nothing"), ExitCode.UNKNOWN_NAME, "unknown query 'nothing'"),
    (("query",), ExitCode.USAGE, "Missing command"),
    (("hardware", "show", "h100_sxm4"), ExitCode.UNKNOWN_NAME, "did you mean h100_sxm5"),
    (("hardware", "list", "--architecture", "quantum"), ExitCode.UNKNOWN_NAME, "known: cgra, cpu, dpu, dsp"),
    (("compare", "resnet18", "--where", "deployment=moon"), ExitCode.UNKNOWN_NAME, "known: datacenter, edge, embedded"),
    (("compare", "resnet18", "--hardware", "tpu_v4@15W"), ExitCode.UNKNOWN_NAME, "takes a power limit above its 90 W"),
    (
        ("compare", "resnet18", "--hardware", "kpu_t64", "--where", "power-mode=x"),
        ExitCode.UNKNOWN_NAME,
        "has 3W, 6W, 10W",
    ),
    (("compare", "resnet18", "--where", "power-mode=x"), ExitCode.UNKNOWN_NAME, "unknown power mode 'x'"),
    (("compare", "resnet18", "--hardware", "./none.toml"), ExitCode.CATALOGUE, "there is no such file or folder"),
    (("compare", "resnet18", "--baseline", "h200_sxn"), ExitCode.UNKNOWN_NAME, "did you mean h200_sxm"),
    (("hardware", "list", "--deployment", "moon"), ExitCode.UNKNOWN_NAME, "unknown deployment 'moon'"),
    (("hardware", "list", "--precision", "fp3"), ExitCode.USAGE, "unknown precision 'fp3'"),
    (("hardware", "list", "--max-power", "30J"), ExitCode.USAGE, "--max-power: '30J' is in J, expected W"),
    (("hardware", "list", "--min-memory", "much"), ExitCode.USAGE, "--min-memory: 'much' is not a number"),
    (("hardware", "list", "--max-price", "-5USD"), ExitCode.USAGE, "--max-price: '-5USD' is not above 0"),
    (("hardware", "show", "kpu_t64@9V"), ExitCode.UNKNOWN_NAME, "kpu_t64 has 3W, 6W, 10W"),
    (("hardware", "template"), ExitCode.USAGE, "name one of --like HARDWARE and --architecture CLASS"),
    (("hardware", "template", "--like", "h101"), ExitCode.UNKNOWN_NAME, "unknown hardware 'h101'"),
    (("hardware", "template", "--architecture", "x"), ExitCode.CATALOGUE, "'x' is none of cgra"),
    (("hardware", "check", "none.toml"), ExitCode.CATALOGUE, "there is no such file or folder"),
    (("validate", "--by", "colour"), ExitCode.USAGE, "'colour' is not one of 'runtime'"),
    (("validate", "--hardware", "gaudi2"), ExitCode.UNKNOWN_NAME, "no measurement of gaudi2"),
    (("measurements", "import", "none.csv"), ExitCode.CATALOGUE, "none.csv: cannot be read"),
    (("db", "diff", "1", "2"), ExitCode.DATABASE, "there is no database"),
    (("db", "info"), ExitCode.DATABASE, "there is no database"),
    (("nonsense",), ExitCode.USAGE, "No such command 'nonsense'"),
]


@pytest.mark.sample(24)
@pytest.mark.parametrize(
    ("arguments", "code", "message"), BAD, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_bad_input_is_one_line_a_code_and_nothing_written(
    arguments: tuple[str, ...], code: ExitCode, message: str, joulemap: Run, tmp_path: Path
) -> None:
    done = joulemap(*arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.startswith("joulemap: ")
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sample(12)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_explains_and_gives_an_example(command: tuple[str, ...], joulemap: Run) -> None:
    done = joulemap(*command, "--help")
    assert done.returncode == 0
    assert re.search(rf"^\s+joulemap {' '.join(command)}", done.stdout, re.MULTILINE)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "resnet18"),
        ("explain", "resnet18", "h100_sxm5", "tpu_v4", "--format", "csv", "--show=sql"),
        ("compare", "--help"),
        ("compare", "resnet19"),
        ("nonsense",),
        ("--version",),
    ],
    ids=" ".join,
)
@pytest.mark.sample(1)
def test_a_process_answers_what_these_tests_see(
    arguments: tuple[str, ...], joulemap: Run, joulemap_process: Run, database: Path
) -> None:
    place = {"JOULEMAP_DB": str(database)}
    here, alone = joulemap(*arguments, variables=place), joulemap_process(*arguments, variables=place)
    assert (here.returncode, here.stdout, here.stderr) == (alone.returncode, alone.stdout, alone.stderr)


def test_the_whole_help_has_the_exit_codes(joulemap: Run) -> None:
    done = joulemap("--help", "all")
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    for code in ExitCode:
        if code is not ExitCode.OK:
            assert f"; {code.value} " in text, code


def test_the_first_comparison_traces_stores_and_answers(joulemap: Run, tmp_path: Path) -> None:
    done = joulemap("compare", "mlp", "--hardware", "tpu_v4,h100_sxm5", "--show=details", "--show=wide")
    assert done.returncode == 0
    assert done.stderr == ""
    for word in (BEST_TITLE, "ratio", "Trust  ", "tpu_v4", "h100_sxm5", "/132 SMs"):
        assert word in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["joulemap.duckdb"]
    steps = re.findall(r"^(?:Next {3}| {7})joulemap (.*)$", done.stdout, re.MULTILINE)
    assert len(steps) == 3
    for step in steps:
        assert joulemap(*step.split()).returncode == 0, step
    assert joulemap("db", "check").stdout == f"{SOUND}\n"
    alone = joulemap("compare", "mlp", "--hardware", "tpu_v4").stdout
    assert "latency range" in alone
    assert BEST_TITLE not in alone


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "arguments",
    thin(
        [
            ("compare", "resnet18", "--level", "run"),
            ("compare", "resnet18", "--level", "operator", "--metric", "memory"),
            ("compare", "resnet18", "resnet18", "--metric", "power", "--show=details", "--verbose", "--quiet"),
            ("analyze", "resnet18", "kpu_t256"),
            ("explain", "resnet18", "h100_sxm5", "tpu_v4"),
            ("explain", "resnet18", "h100_sxm5", "tpu_v4", "--metric", "latency", "--level", "action"),
            ("explain", "resnet18", "h100_sxm5", "tpu_v4", "--metric", "memory", "--level", "subgraph"),
            ("edp", "resnet18", "kpu_t256", "--level", "operator"),
            ("edp", "resnet18", "kpu_t256"),
            ("fusion", "resnet18", "tpu_v4", "--runtime", "eager"),
            ("fusion", "resnet18", "tpu_v4", "--level", "pattern"),
            ("utilization", "resnet18", "--no-advice"),
            ("sweep", "resnet18", "--batch", "1", "--runtime", "fused,graph"),
            ("sql", "SELECT run_id, hardware, energy_j, created_at FROM runs ORDER BY run_id"),
            ("query", "run", "edp.distribution", "-p", "run_id=1"),
            ("query", "list"),
            ("hardware", "list"),
            ("hardware", "show", "kpu_t256", "--energy"),
            ("model", "list"),
            ("model", "show", "resnet18"),
            ("model", "trace", "resnet18"),
            ("db", "info"),
            pytest.param(("db", "check"), marks=pytest.mark.slow),
        ],
        2,
    ),
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_every_answer_comes_in_every_format(arguments: tuple[str, ...], joulemap: Run, database: Path) -> None:
    place = () if arguments == ("query", "list") else ("--db", database)
    answers = {form: joulemap(*arguments, "--format", form, *place) for form in ("table", "json", "csv", "markdown")}
    assert [done.returncode for done in answers.values()] == [0, 0, 0, 0]
    assert [done.stderr for done in answers.values()] == ["", "", "", ""]
    assert_part(answers["csv"].stdout, json.loads(answers["json"].stdout))
    assert "|" in answers["markdown"].stdout or arguments == ("db", "check")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "queries"),
    [
        ("analyze resnet18 h100_sxm5", "total category action subgraph operator bottleneck"),
        ("edp resnet18 h100_sxm5", "total distribution operator cut pattern bound"),
        ("fusion resnet18 h100_sxm5", "total pattern subgraph operator"),
    ],
)
def test_show_sql_prints_every_query_behind_an_answer(words: str, queries: str, joulemap: Run, database: Path) -> None:
    command, *rest = words.split()
    done = joulemap(command, *rest, "--show=sql", "--db", database)
    assert done.returncode == ExitCode.OK
    assert all(f"-- {command}.{name}@1: " in done.stderr for name in queries.split())


def test_show_sql_talks_on_stderr_and_leaves_the_data_alone(joulemap: Run, database: Path) -> None:
    plain = joulemap("compare", "resnet18", "--db", database)
    shown = joulemap("compare", "resnet18", "--show=sql", "--db", database)
    assert shown.stdout == plain.stdout
    for title in ("compare.summary@1", "compare.recommendation@1", "explain.role@1"):
        assert f"-- {title}: " in shown.stderr
    assert "-- run_ids = [" in shown.stderr


def test_show_sql_has_nothing_to_add_to_what_is_no_versioned_query(joulemap: Run, database: Path) -> None:
    for asked in (("sql", "SELECT 1 AS one"), ("query", "list")):
        done = joulemap(*asked, "--show=sql", "--db", database)
        assert (done.returncode, done.stderr) == (ExitCode.OK, "")


def test_output_writes_the_answer_to_a_file(joulemap: Run, database: Path, tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    done = joulemap("compare", "resnet18", "-f", "json", "-o", target, "--db", database)
    assert done.stdout == ""
    assert json.loads(target.read_text())["models"] == ["resnet18"]
    lost = joulemap("compare", "resnet18", "-o", tmp_path / "no" / "x", "--db", database)
    assert lost.returncode == ExitCode.USAGE
    assert "cannot write" in lost.stderr


def test_output_to_a_pipe_is_written_through_it(joulemap: Run, database: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    done = joulemap("query", "run", "run.list", "-f", "json", "-o", pipe, "--db", database)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    answer, _ = reader.communicate(timeout=60)
    assert json.loads(answer)
    assert pipe.is_fifo()


def test_the_subgraph_level_names_a_winner_for_each_subgraph(joulemap: Run, database: Path) -> None:
    done = joulemap("compare", "resnet18", "--level", "subgraph", "-f", "csv", "--db", database)
    rows = read_table(done.stdout)
    winners = [int(row["part_index"]) for row in rows if row["is_winner"] == "true"]
    assert winners == sorted({int(row["part_index"]) for row in rows})
    assert len(rows) == 5 * len(winners)
    assert any(row["fusion_pattern"] == "conv2d+batch_norm+add+relu" for row in rows)


def test_an_analysis_of_what_cannot_run_is_its_reason(joulemap: Run) -> None:
    done = joulemap("analyze", "resnet18", "coral")
    assert done.returncode == ExitCode.UNSUPPORTED
    assert (done.stdout, done.stderr) == ("", "joulemap: coral_edge_tpu has no fp32; it has int8\n")


def test_an_unsupported_precision_is_shown_beside_the_answers(joulemap: Run, database: Path) -> None:
    done = joulemap("compare", "resnet18", "--precision", "fp16", "--db", database)
    assert done.returncode == 0
    assert "tpu_v4 has no fp16; it has fp32, bf16, int8" in done.stdout


def test_a_read_only_place_still_answers_what_is_stored(joulemap: Run, database: Path) -> None:
    assert not database.stat().st_mode & 0o222
    assert joulemap("compare", "resnet18", "--db", database).returncode == 0


@pytest.mark.slow
def test_check_tells_a_broken_database(joulemap: Run, own_database: Path) -> None:
    import duckdb

    connection = duckdb.connect(str(own_database))
    connection.execute("UPDATE internal.ledger_line SET energy_fj = energy_fj + 1 WHERE rowid = 5")
    connection.close()
    done = joulemap("db", "check", "--db", own_database)
    assert done.returncode == ExitCode.CHECK_FAILED
    assert "energy_fj is round(count x energy per action)" in done.stdout
    assert "the rows of a run are those that were written" in done.stdout
    assert "actions of a run are those of its ledger" in done.stdout
    assert done.stderr == "joulemap: 3 rows break a rule\n"


def test_an_error_wraps_at_the_width_of_the_terminal(joulemap: Run) -> None:
    done = joulemap("compare", "resnet51", variables={"COLUMNS": "50"})
    first, *rest = done.stderr.splitlines()
    assert first.startswith("joulemap: unknown model 'resnet51'")
    assert rest and all(line.startswith("  ") for line in rest)
    assert max(map(len, (first, *rest))) <= 50


def test_a_next_command_names_a_database_that_it_would_not_open(joulemap: Run, database: Path) -> None:
    named = joulemap("compare", "resnet18", "--db", database)
    usual = joulemap("compare", "resnet18", variables={"JOULEMAP_DB": str(database)})
    assert "--db" in named.stdout and "--db" not in usual.stdout


@pytest.mark.apart
def test_a_truncated_database_is_one_line(joulemap: Run, database: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.duckdb"
    path.write_bytes(database.read_bytes()[:600_000])
    done = joulemap("db", "check", "--db", path)
    assert done.returncode == ExitCode.DATABASE
    assert len(done.stderr.splitlines()) == 1


def test_migrate_makes_a_database_and_keeps_one(joulemap: Run, own_database: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.duckdb"
    assert joulemap("db", "migrate", "--db", new).returncode == 0
    assert new.exists()
    before = joulemap("query", "run", "run.list", "-f", "csv", "--db", own_database).stdout
    assert joulemap("db", "migrate", "--db", own_database).returncode == 0
    assert joulemap("query", "run", "run.list", "-f", "csv", "--db", own_database).stdout == before


def test_the_environment_names_the_database(joulemap_process: Run, database: Path) -> None:
    variables = {"JOULEMAP_DB": str(database)}
    done = joulemap_process("sql", "SELECT count(*) AS n FROM runs", "-f", "csv", variables=variables)
    assert int(done.stdout.splitlines()[1]) > 0


def test_a_closed_pipe_is_no_error(database: Path) -> None:
    joulemap = f"{sys.executable} -m joulemap query show audit.conservation"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{joulemap} | head -1"], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    thin(
        [
            "SELECT sum(a.range) FROM range(1000000000000) AS a",
            "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
            "WITH l AS (FROM internal.ledger_line) SELECT max(hash(a, b, c)) FROM l AS a, l AS b, l AS c",
        ],
        3,
    ),
)
def test_an_interrupt_ends_any_query(statement: str, database: Path) -> None:
    command = [sys.executable, "-m", "joulemap", "sql", statement, "--db", str(database)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, talk = process.communicate(timeout=60)
    assert time.monotonic() - started < 5  # one second, on a machine that has nothing else to do
    assert process.returncode == ExitCode.INTERRUPTED
    assert talk.splitlines() == ["joulemap: interrupted; nothing in the database is half written"]


@pytest.mark.slow
def test_what_a_users_file_prints_stays_out_of_the_answer(joulemap_process: Run, tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(
        "import torch\nprint('hello')\ndef net():\n    return torch.nn.Linear(4, 4), torch.zeros(1, 4)\n"
    )
    done = joulemap_process("compare", "noisy.py:net", "--format", "json")
    assert json.loads(done.stdout)["models"] == ["noisy.py:net"]
    assert done.stderr == "hello\n"


def test_a_reader_that_leaves_early_is_no_error(database: Path) -> None:
    joulemap = f"{sys.executable} -m joulemap sql 'SELECT * FROM energy_ledger' -f csv --db {database}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{joulemap} | head -1"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.sample(2)
@pytest.mark.parametrize("where", ["> /dev/full", ">&-"])
@pytest.mark.parametrize(
    "asked", ["query list", "compare --help", "--help", "compare --help all", "--version", "completion bash"]
)
def test_an_answer_that_cannot_be_written_is_one_line(asked: str, where: str, database: Path) -> None:
    command = f"{sys.executable} -m joulemap {asked} {where}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE
    assert len(done.stderr.splitlines()) == 1


def test_a_limit_of_memory_is_told_in_one_sentence(tmp_path: Path) -> None:
    program = (
        "import resource, sys; from joulemap.cli import app; app.list_commands = lambda: bytearray(1 << 40); "
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); sys.exit(app.run(['--help']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.INTERNAL
    assert done.stderr.startswith("joulemap: out of memory within the limit of 1,074 MB")
    assert done.stderr.count("joulemap: ") == 1


@pytest.mark.slow
def test_a_terminal_without_unicode_still_gets_its_answer(joulemap_process: Run, database: Path) -> None:
    done = joulemap_process("compare", "resnet18", "--db", database, variables={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "resnet18" in done.stdout


DRAWN = dict.fromkeys(map(ord, "█▏▎▍▌▋▊▉ -"))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "form"),
    [("x.json", "json"), ("x.CSV", "csv"), ("x.md", "markdown"), ("x.txt", "table"), ("x", "table")],
)
def test_the_name_of_an_output_says_its_format(
    name: str, form: str, joulemap: Run, database: Path, tmp_path: Path
) -> None:
    asked = ("analyze", "resnet18", "tpu_v4", "--db", database)
    assert joulemap(*asked, "-o", name).returncode == 0
    file, piped = (tmp_path / name).read_text(), joulemap(*asked, "--format", form).stdout
    assert file.translate(DRAWN) == piped.translate(DRAWN)  # a file has no width for bars to fill


def test_a_parquet_file_needs_no_format_beside_its_name(joulemap: Run, database: Path, tmp_path: Path) -> None:
    assert joulemap("sql", "SELECT run_id FROM runs", "-o", "x.parquet", "--db", database).returncode == 0
    assert (tmp_path / "x.parquet").read_bytes()[:4] == b"PAR1"


def test_a_format_that_is_named_stands_above_a_suffix_that_is_none(
    joulemap: Run, database: Path, tmp_path: Path
) -> None:
    assert joulemap("db", "info", "-o", "info.log", "--format", "JSON", "--db", database).returncode == 0
    assert json.loads((tmp_path / "info.log").read_text())


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "both",
    [
        (("analyze", "resnet18", "cpu"), ("analyze", "resnet18", "--hardware", "CPU")),
        (("explain", "resnet18", "GPU", "TPU"), ("explain", "resnet18", "--hardware", "GPU,TPU")),
        (("edp", "resnet18", "TPU", "v4"), ("EDP", "resnet18", "TPU v4")),
        (("compare", "resnet18", "H100", "~kpu_t256"), ("compare", "ResNet-18", "--hardware", "H100 KPU-T256")),
        (("utilization", "resnet18", "H100,TPUv4"), ("utilization", "resnet18", "--HARDWARE", "H100, TPU v4")),
        (("cost", "resnet18", "H100", "--precision", "fp32"), ("cost", "resnet18", "--hardware", "NVIDIA H100",
         "--precision", "FP32")),
        (("sweep", "resnet18", "H100", "--batch", "1", "--level", "winner"),
         ("sweep", "H100", "resnet18", "--batch", "1", "--level", "Winner")),
    ],
    ids=lambda both: both[0][0],
)  # fmt: skip
def test_hardware_is_an_argument_or_an_option(
    both: tuple[tuple[str, ...], tuple[str, ...]], joulemap: Run, own_database: Path
) -> None:
    done, again = (joulemap(*arguments, "--db", own_database, "-f", "csv") for arguments in both)
    assert (done.returncode, done.stderr) == (again.returncode, again.stderr) == (0, "")
    assert done.stdout == again.stdout


@pytest.mark.slow
def test_quiet_and_verbose_stand_before_or_behind_a_command(joulemap: Run, database: Path, tmp_path: Path) -> None:
    asked = ("explain", "resnet18", "H100", "TPU", "--db", database)
    plain = joulemap(*asked)
    for spoken in (joulemap("-v", *asked), joulemap(*asked, "--verbose")):
        assert spoken.stdout == plain.stdout
        assert re.search(r"s: query explain\.energy@1: \d+ rows", spoken.stderr)
    assert joulemap(*asked, "-o", "a.txt").stderr == "wrote a.txt\n"
    for silent in (joulemap("--quiet", *asked, "-o", "b.txt"), joulemap(*asked, "-o", "c.txt", "-q", "-v")):
        assert (silent.returncode, silent.stderr) == (0, "")
    assert joulemap("-q", "compare", "resnet19").stderr.startswith("joulemap: unknown model")


def test_help_of_an_output_names_every_suffix(joulemap: Run) -> None:
    told = joulemap("compare", "--help").stdout
    assert [suffix for suffix in SUFFIXES if suffix not in told] == [".markdown"]
