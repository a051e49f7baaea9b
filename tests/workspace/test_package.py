"""Packages of other distributions with chips: written, checked, installed, broken and removed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from test_wing import run_python

import joulemap
from joulemap.ask.hardware_file import read_trial_workloads
from joulemap.ask.package_check import PackageCheck, list_odd
from joulemap.catalog.digest import catalogue_digest
from joulemap.catalog.load import load_catalogue
from joulemap.catalog.new_package import PAGE, write_package
from joulemap.catalog.package import list_owners, load_package
from joulemap.catalog.starter import MINE
from joulemap.domain.supplied import Supplied
from joulemap.physics.architecture import find_architecture
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.physics.record.hardware import Hardware
from joulemap.physics.run import RunColumns
from joulemap.plan.anchor import anchor_hardware
from joulemap.plan.catalogue import find_catalogue
from joulemap.plan.version import UNKNOWN, formula_version
from joulemap.show.package_check import check_package, describe_fault
from joulemap.system.entry_point import list_entry_points
from joulemap.system.errors import CatalogueError, ExitCode, UnknownNameError, UnsupportedError, UsageError
from joulemap.system.package import Package, list_packages, trying
from packages import MEASURED, find_file, install, write_filled

PACKAGE = Path(joulemap.__file__).parent
NAME = "joulemap-acme-x1"


COMPILER = """[compiler]
name = "own"
cut = "each"
operators = ["linear", "{}"]
basis = "published"
source = "mine"

[quantities]"""


PROGRAM = """
import contextlib, io, json, sys
from pathlib import Path
from joulemap.cli.app import run
from joulemap.store import template
done = []
if sys.argv[2:]:
    template._make = lambda *_: template._read(Path(sys.argv[2]))
for words in json.loads(sys.argv[1]):
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = run(words)
    done.append((code, out.getvalue(), errors.getvalue()))
print(json.dumps(done))
"""


def ask_all(
    *commands: Sequence[str], path: Path, cwd: Path, template: Path | None = None
) -> list[subprocess.CompletedProcess[str]]:
    """Run commands in one process of their own, with a folder before all others on the search path.

    Tests share a cache, because its template of new databases takes seconds to make; `template` is in place of one.
    """
    given = [json.dumps(commands), *([] if template is None else [str(template)])]
    done = run_python("-c", PROGRAM, *given, path=path, cwd=cwd, JOULEMAP_CACHE=os.environ["JOULEMAP_CACHE"])
    assert done.returncode == 0, done.stderr
    return [subprocess.CompletedProcess([], code, out, errors) for code, out, errors in json.loads(done.stdout)]


def ask(*words: str, path: Path, cwd: Path, template: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one command as `ask_all` does."""
    (done,) = ask_all(words, path=path, cwd=cwd, template=template)
    return done


def find_states(checked: PackageCheck) -> dict[str, str]:
    """Return check -> state of its last finding."""
    return {one.check: one.state for one in checked.findings}


def find_texts(checked: PackageCheck, check: str) -> str:
    return " ".join(one.text for one in checked.findings if one.check == check)


def package_of(place: Path, version: str = "0.1.0") -> Package:
    return Package(name=NAME, version=version, folder=find_file(place).parents[1])


def load(package: Package) -> Supplied:
    """Load a package beside the built-in catalogue."""
    return load_package(package, dict(list_owners(load_catalogue().hardware.values())))


def add_class(place: Path, code: str = "") -> None:
    """Give a package the class `photonic`, a copy of `cgra`, and a chip of it; `code` replaces its module."""
    module = place / "src" / "joulemap_acme_x1"
    (module / "architecture").mkdir()
    code = code or (PACKAGE / "physics" / "architecture" / "cgra.py").read_text(encoding="utf-8")
    (module / "architecture" / "photonic.py").write_text(code, encoding="utf-8")
    data = PACKAGE / "catalog" / "data"
    shared = (data / "architecture" / "cgra.toml").read_text(encoding="utf-8").replace('"cgra"', '"photonic"', 1)
    (module / "architecture" / "photonic.toml").write_text(shared, encoding="utf-8")
    lines = (data / "hardware" / "plasticine.toml").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("aliases"))
    text = re.sub(r'^name = ".*"', 'name = "Laser"', text, count=1, flags=re.MULTILINE)
    text = text.replace('id = "plasticine"', 'id = "laser"').replace('"cgra"', '"photonic"')
    (module / "hardware" / "laser.toml").write_text(text, encoding="utf-8")


def test_a_new_package_fails_its_check_until_its_numbers_have_sources(tmp_path: Path) -> None:
    place, files = write_package("acme_x1", tmp_path / "new", like="l4")
    assert all(file.is_file() for file in files)
    checked = check_package(place)
    states = find_states(checked)
    assert (states["files"], states["sources"], states["predictions"]) == ("ok", "wrong", "not run")
    assert "quantities.clock (line 30)" in find_texts(checked, "sources")
    assert not checked.is_sound


SEEN = ",,,,,".join(["acme_x1,resnet50,fp16,1,engine,0.0007", "a bench,driver 1,clock\n"])
FAR = ",,,,,".join(["acme_x1,resnet50,fp16,1,engine,1.2", "a bench,in ms,\n"])
LACKING = ",,,,,".join(["acme_x1,resnet50,fp4,1,engine,0.0012", "a bench,driver 1,\n"])


def write_measured(folder: Path, *others: str) -> Path:
    """Write a filled package with a measurement and other rows, which have the column `seen`.

    Tests of equal packages share the template of their catalogue.
    """
    place = write_filled(folder)
    measured = place / "src" / "joulemap_acme_x1" / "measurement" / "acme_x1.csv"
    header, row = measured.read_text(encoding="utf-8"), MEASURED
    if others:
        header, row = header.replace("\n", ",seen\n"), row.replace("\n", ",\n")
    measured.write_text("".join((header, row, *others)), encoding="utf-8")
    return place


@pytest.mark.slow
def test_a_filled_package_passes_and_its_rows_are_scored_as_held_out(tmp_path: Path) -> None:
    place = write_measured(tmp_path / "new", SEEN)
    checked = check_package(place)
    assert checked.is_sound, checked.describe_faults()
    text = find_texts(checked, "measurements")
    assert "2 of 2 rows predicted; no number was chosen with 1 of them" in text
    assert "100 % of 1 measured values" in text  # the other row is no test
    assert "The worst is acme_x1: resnet50 at fp16, batch 1, engine" in text
    assert list_packages() == ()


@pytest.mark.slow
def test_rows_far_off_and_rows_without_a_prediction_are_faults(tmp_path: Path) -> None:
    checked = check_package(write_measured(tmp_path / "new", FAR, LACKING))
    faults = [one.text for one in checked.findings if one.state != "ok"]
    assert len(faults) == 2
    assert "resnet50 at fp4, batch 1, engine is not predicted: acme_x1 has no fp4" in faults[0]
    assert re.search(r"resnet50 at fp16, batch 1, engine: latency predicted 1,\d{3}x too low", faults[1])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'clock = { value = 2.04, unit = "GHz"',
            'clock = { value = 2.04, unit = "MHz"',
            "clock of 2.04 MHz is outside",
        ),
        ("[quantities]", COMPILER.format("conv.convd"), "called conv.convd; did you mean conv"),
        ("[quantities]", COMPILER.format("conv.conv2d kernel=1-7"), ""),
    ],
)
def test_a_number_or_an_operator_that_cannot_be_meant_is_a_fault(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    place = write_filled(tmp_path / "new")
    file = find_file(place)
    text = file.read_text(encoding="utf-8").replace(old, new, 1)
    if "MHz" in new:  # the peaks are of the clock
        text = re.sub(r"(rate = .*) \}", r'\1, explanation = "a test" }', text)
        text = re.sub(r"(^\[peaks\..*\n)", r'\1explanation = "a test"\n', text, flags=re.MULTILINE)
    file.write_text(text, encoding="utf-8")
    supplied = load(package_of(place))
    assert supplied.describe_faults() == ""
    faults = [describe_fault(fault) for one in supplied.hardware for fault in list_odd(one)]
    assert len(faults) == bool(words)
    assert words in "".join(faults)


def test_texts_of_a_new_package_are_faults(tmp_path: Path) -> None:
    place = write_filled(tmp_path / "new")
    file, page = find_file(place), find_file(place).parents[1] / "page.md"
    file.write_text(file.read_text(encoding="utf-8").replace('"Acme data sheet 1"', f'"{MINE}"'), encoding="utf-8")
    page.write_text(PAGE.format(chip="acme_x1"), encoding="utf-8")
    checked = check_package(place)
    assert find_states(checked) == {"files": "ok", "sources": "wrong", "predictions": "not run", "page": "wrong"}
    assert "sources.mine (line" in find_texts(checked, "sources")


def test_a_new_package_overwrites_nothing_and_takes_no_known_name(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for name, folder, like, words in (
        ("acme_x1", "full", "l4", "new or an empty folder"),
        ("l4", "new", "t4", "already that of l4"),
        ("rtx_3070", "new", "t4", "already that of rtx_3070"),
        ("gpu", "new", "t4", "a class of hardware"),
        ("Acme X1", "new", "t4", "lower case letters"),
        ("acme_x1", "new", "", "--architecture"),
    ):
        with pytest.raises(UsageError, match=words):
            write_package(name, tmp_path / folder, like=like)
    with pytest.raises(UsageError, match=r"--architecture asic: expected one of .*npu"):
        write_package("acme_x1", tmp_path / "new", architecture="asic")
    own = package_of(write_filled(tmp_path / "own"))
    with trying(own), pytest.raises(UsageError, match=rf"already that of acme_x1 of the package {NAME} 0\.1\.0"):
        write_package("acme_x1", tmp_path / "new", like="l4")
    shutil.rmtree(tmp_path / "own")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_what_is_no_package_is_refused_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match=r"pyproject\.toml: cannot be read"):
        check_package(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "other"\n')
    with pytest.raises(CatalogueError, match=r"joulemap\.hardware"):
        check_package(tmp_path)
    with pytest.raises(UnknownNameError, match="nowhere"):
        check_package("nowhere")


def test_digests_cover_every_number_and_the_version_of_a_package(tmp_path: Path) -> None:
    place, alone = write_filled(tmp_path / "new"), catalogue_digest()
    found = [alone]
    chips: list[Hardware] = []
    file = find_file(place)
    for version in ("0.1.0", "0.2.0"):
        with trying(package_of(place, version)):
            found.append(catalogue_digest())
        chips += load(package_of(place, version)).hardware
    file.write_text(file.read_text(encoding="utf-8").replace("value = 2.04,", "value = 2.03,"), encoding="utf-8")
    with trying(package_of(place)):
        found.append(catalogue_digest())
    chips += load(package_of(place)).hardware
    assert len(set(found)) == 4
    assert len({one.digest for one in chips}) == 3
    assert [one.package for one in chips] == [f"{NAME} 0.1.0", f"{NAME} 0.2.0", f"{NAME} 0.1.0"]
    assert catalogue_digest() == alone


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('id = "acme_x1"', 'id = "l4"', "'l4' is already that of l4"),
        ('id = "acme_x1"', 'id = "acme_x1"\naliases = ["RTX 3070"]', "already that of rtx_3070"),
        ('id = "acme_x1"', 'id = "npu"', "a class of hardware"),
        ('id = "acme_x1"', 'id = "acme_x1"\nname = "Hailo-8"', "'Hailo-8' is already that of hailo_8"),
        ('unit = "GHz"', 'unit = "GB"', "clock"),
        ('architecture = "gpu"', 'architecture = "cgpu"', "cgpu"),
    ],
)
def test_a_file_that_breaks_a_rule_is_left_out_and_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    place = write_filled(tmp_path / "new")
    file = find_file(place)
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    supplied = load(package_of(place))
    line = supplied.describe_faults()
    assert all(text in line for text in (words, str(file), "joulemap extend check"))
    assert "\n" not in line
    assert supplied.hardware == ()


def test_measurements_of_other_chips_are_refused(tmp_path: Path) -> None:
    place = write_filled(tmp_path / "new")
    measured = place / "src" / "joulemap_acme_x1" / "measurement" / "acme_x1.csv"
    measured.write_text(measured.read_text(encoding="utf-8") + MEASURED.replace("acme_x1", "l4"), encoding="utf-8")
    supplied = load(package_of(place))
    assert supplied.measurements == ()
    assert "hardware: l4: rows of a package must be of its own chips, acme_x1" in supplied.describe_faults()


def test_a_class_of_a_package_has_a_version_that_covers_its_code(tmp_path: Path) -> None:
    place = write_filled(tmp_path / "new")
    add_class(place)
    usual = {name: formula_version(name) for name in ("gpu", "cgra")}
    assert formula_version("photonic") == UNKNOWN
    module = find_file(place).parents[1]
    owners = dict(list_owners(load_catalogue().hardware.values()))
    with trying(package_of(place)):
        supplied = load_package(package_of(place), owners)
        assert (supplied.architectures, supplied.describe_faults()) == (("photonic",), "")
        first = formula_version("photonic")
        (module / "__init__.py").write_text("VALUE = 1\n", encoding="utf-8")
        assert len({UNKNOWN, first, formula_version("photonic")}) == 3
        assert {name: formula_version(name) for name in usual} == usual
    with pytest.raises(UnknownNameError):
        find_architecture("photonic")


def test_an_error_of_a_class_refuses_its_chips_alone(tmp_path: Path) -> None:
    place = write_filled(tmp_path / "new")
    add_class(place, "raise RuntimeError('no\\nlight')\n")
    owners = dict(list_owners(load_catalogue().hardware.values()))
    with trying(package_of(place)):
        supplied = load_package(package_of(place), owners)
        assert [one.id for one in supplied.hardware] == ["acme_x1"]
        assert "RuntimeError: no light" in supplied.describe_faults()
        with pytest.raises(UnsupportedError, match="photonic"):
            find_architecture("photonic")


CGRA = (PACKAGE / "physics" / "architecture" / "cgra.py").read_text(encoding="utf-8")
LOAD = """
[[loads]]
name = "measured"
model = "resnet18"
precision = "int8"
batch = 1
runtime = "engine"
covers = "board"
power = { value = 30, unit = "W", basis = "assumed", source = "bench" }
"""


def add_faulty_class(place: Path, fault: str) -> None:
    """Give a package the class `photonic`, whose `place` begins with a statement, and a chip with a measured load."""
    add_class(place, CGRA.replace("        work = kernels.work\n", f"        {fault}\n", 1))
    laser = find_file(place).with_name("laser.toml")
    text = laser.read_text(encoding="utf-8").replace("[sources]", '[sources]\nbench = "a bench"', 1)
    laser.write_text(text + LOAD, encoding="utf-8")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raise RuntimeError('no light')", "RuntimeError: no light"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("return None", "AttributeError"),
    ],
)
def test_a_class_that_fails_refuses_every_run_of_its_chips(tmp_path: Path, fault: str, words: str) -> None:
    place = write_filled(tmp_path / "new")
    add_faulty_class(place, fault)
    described = load_catalogue().hardware
    with trying(package_of(place)):
        laser = load_package(package_of(place), dict(list_owners(described.values()))).hardware[-1]
        work = read_trial_workloads(["mobilenet_v2"])["mobilenet_v2"]
        asked = [
            (anchor_hardware(one), Configuration(hardware=one.id, precision="int8")) for one in (laser, described["l4"])
        ]
        refused, answered = Evaluator(work).evaluate_all(asked)
        (alone,) = Evaluator(work).evaluate_all(asked[:1])
    assert isinstance(answered, RunColumns)
    for one in (refused, alone):
        assert isinstance(one, UnsupportedError)
        assert words in str(one)
        assert f"pip uninstall {NAME}" in str(one)
    line = CGRA.splitlines().index("        work = kernels.work") + 1
    assert f"photonic.py, line {line})" in str(refused) if "raise" in fault else "photonic.py)" in str(refused)


@pytest.mark.parametrize("code", ["raise RuntimeError('no\\nlight')", "import sys; sys.exit('no light')"])
def test_an_error_of_a_class_shows_its_traceback_on_demand(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write_filled(tmp_path / "new")
    add_class(place, f"{code}\n")
    monkeypatch.setenv("JOULEMAP_DEBUG", "1")
    owners = dict(list_owners(load_catalogue().hardware.values()))
    with trying(package_of(place)):
        assert [one.id for one in load_package(package_of(place), owners).hardware] == ["acme_x1"]
    assert capsys.readouterr().err.count("Traceback") == 1


def test_a_class_that_another_package_has_leaves_out_the_second_package(tmp_path: Path) -> None:
    first, second = package_of(write_filled(tmp_path / "a")), package_of(write_filled(tmp_path / "b"))
    second = attrs.evolve(second, name="joulemap-beta")
    for package in (first, second):
        add_class(package.folder.parents[1])
    owners = dict(list_owners(load_catalogue().hardware.values()))
    with trying(first), trying(second):
        assert load_package(first, owners).faults == ()
        supplied = load_package(second, owners)
    assert supplied == Supplied(package=second, faults=supplied.faults)
    line = supplied.describe_faults()
    assert all(text in line for text in ("joulemap-beta", "'photonic'", f"the package {NAME} 0.1.0"))


def test_a_class_without_a_module_is_left_out(tmp_path: Path) -> None:
    package = package_of(write_filled(tmp_path / "new"))
    add_class(package.folder.parents[1])
    (package.folder / "architecture" / "photonic.py").unlink()
    assert "put photonic.py beside it" in load(package).faults[0].text


@pytest.mark.slow
def test_a_class_that_fails_at_a_load_refuses_its_chip_in_every_command(tmp_path: Path) -> None:
    place, site = write_filled(tmp_path / "new"), tmp_path / "site"
    add_faulty_class(place, "raise SystemExit('bye')")
    install(place, site)
    compared, served, listed, checked = ask_all(
        ("compare", "resnet18", "l4", "laser"),
        ("llm", "llama-3.1-8b", "laser", "l4"),
        ("hardware", "list"),
        ("extend", "check", NAME),
        path=site,
        cwd=tmp_path,
    )
    assert [one.returncode for one in (compared, served, listed)] == [ExitCode.OK] * 3
    assert "SystemExit: bye" in " ".join(compared.stdout.split())
    assert checked.returncode == ExitCode.CHECK_FAILED
    assert "wrong: ledger: laser" in checked.stdout


@pytest.mark.slow
def test_a_class_of_a_package_answers_like_the_class_that_it_copies(tmp_path: Path) -> None:
    place, site = write_filled(tmp_path / "new"), tmp_path / "site"
    add_class(place)
    install(place, site)
    words = ("compare", "mobilenet_v2", "laser", "plasticine", "--precision", "int8", "--where=all")
    answered = ask(*words, path=site, cwd=tmp_path)
    assert answered.returncode == ExitCode.OK, answered.stderr
    statement = "SELECT energy_j, latency_s FROM runs ORDER BY hardware"
    printed = ask("sql", statement, "--format", "csv", path=site, cwd=tmp_path).stdout
    _, laser, plasticine = printed.split()
    assert laser == plasticine
    shutil.rmtree(site)
    site.mkdir()
    checked = ask("db", "check", path=site, cwd=tmp_path)
    assert checked.returncode == ExitCode.OK, checked.stdout


@pytest.mark.slow
def test_an_installed_package_answers_and_leaves_its_runs_readable(tmp_path: Path) -> None:
    place, site = write_measured(tmp_path / "new"), tmp_path / "site"
    install(place, site)
    statement = "SELECT hardware, package FROM hardware WHERE package <> ''"
    answered, stated, listed, shown = ask_all(
        ("compare", "mobilenet_v2", "acme_x1", "l4", "--show=notes"),
        ("sql", statement, "--format", "csv"),
        ("hardware", "list", "--architecture", "gpu", "--format", "csv"),
        ("hardware", "show", "acme_x1", "--show=notes"),
        path=site,
        cwd=tmp_path,
    )
    assert answered.returncode == ExitCode.OK, answered.stderr
    assert f"the installed package {NAME} 0.1.0 describes acme_x1" in " ".join(answered.stdout.split())
    assert answered.stderr == ""
    assert "acme_x1,joulemap-acme-x1 0.1.0" in stated.stdout
    assert f"{NAME} 0.1.0" in listed.stdout
    assert f"described by the installed package {NAME} 0.1.0" in " ".join(shown.stdout.split())

    shutil.rmtree(site)
    site.mkdir()
    runs, others, gone, checked = ask_all(
        ("sql", "SELECT hardware FROM runs ORDER BY ALL", "--format", "csv"),
        ("compare", "mobilenet_v2", "l4", "t4"),
        ("compare", "mobilenet_v2", "acme_x1", "l4"),
        ("db", "check"),
        path=site,
        cwd=tmp_path,
    )
    assert runs.stdout.split() == ["hardware", "acme_x1", "l4"]
    assert others.returncode == ExitCode.OK
    assert gone.returncode == ExitCode.UNKNOWN_NAME
    assert checked.returncode == ExitCode.OK


@pytest.mark.slow
def test_a_broken_package_costs_a_line_of_every_command_and_nothing_else(tmp_path: Path) -> None:
    place, site = write_filled(tmp_path / "new"), tmp_path / "site"
    install(place, site)
    (site / "joulemap_acme_x1" / "__init__.py").write_text("raise RuntimeError('never imported')\n")
    (site / "joulemap_acme_x1" / "hardware" / "acme_x1.toml").write_text("id = 1\n")
    usual = find_catalogue()  # that of the package without its chip is the same
    answered = ask("compare", "mobilenet_v2", "l4", "t4", path=site, cwd=tmp_path, template=usual)
    assert answered.returncode == ExitCode.OK
    (line,) = answered.stderr.splitlines()
    assert line.startswith(f"the package {NAME} 0.1.0: left out: ")
    failed = ask("extend", "check", NAME, "--format", "json", path=site, cwd=tmp_path, template=usual)
    assert failed.returncode == ExitCode.CHECK_FAILED
    checked = json.loads(failed.stdout)
    assert checked["package"] == f"{NAME} 0.1.0"
    assert [one["state"] for one in checked["findings"] if one["check"] == "files"] == ["wrong"]


def test_entry_points_are_read_once_and_again_after_an_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setenv("JOULEMAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(site))
    calls: list[str] = []

    def read() -> list[str]:
        calls.append("read")
        return ["joulemap.hardware\tacme\tacme_chips\tacme-chips\t1.0"]

    monkeypatch.setattr("joulemap.system.entry_point._read_entry_points", read)
    for _ in range(2):
        (one,) = list_entry_points("joulemap.hardware")
        assert (one.address, one.distribution, one.version) == ("acme_chips", "acme-chips", "1.0")
        assert list_entry_points("joulemap.wings") == ()
    assert calls == ["read"]
    (site / "another").mkdir()
    list_entry_points("joulemap.hardware")
    assert calls == ["read", "read"]


@pytest.mark.slow
def test_the_test_of_a_new_package_runs(tmp_path: Path) -> None:
    place = write_filled(tmp_path / "new")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", str(place)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_only_regular_files_are_read_and_no_parent_of_a_dotted_module_is_imported(tmp_path: Path) -> None:
    """A package with a chip below another package, which ends every program that imports it, and with named pipes."""
    site = tmp_path / "site"
    site.mkdir()
    install(write_filled(tmp_path / "package"), site)
    outer = site / "vendor"
    outer.mkdir()
    (outer / "__init__.py").write_text("import sys\nsys.exit(42)\n")
    (site / "joulemap_acme_x1").rename(outer / "chips")
    (about,) = site.glob("*.dist-info/entry_points.txt")
    about.write_text("[joulemap.hardware]\nacme_x1 = vendor.chips\n")
    folder = outer / "chips"
    for name in ("hardware/pipe.toml", "measurement/pipe.csv", "pipe.py"):
        os.mkfifo(folder / name)
    program = "from joulemap.system.package import list_packages as f; (p,) = f(); print(p.folder); print(p.digest())"
    done = run_python("-c", program, path=site, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, str(folder)), done.stderr
    package = Package(name=NAME, version="1", folder=folder)
    listed = (*package.list_hardware(), *package.list_measurements(), *package.list_classes())
    assert [one.name for one in listed] == ["acme_x1.toml", "acme_x1.csv"]
