"""A run of other formulas is never an answer: what the digest covers, and what a changed number does."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import duckdb
import pytest

import joulemap
from joulemap.catalog.load import find_hardware, load_catalogue
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.physics.pipeline import Evaluator
from joulemap.physics.record.configuration import Configuration
from joulemap.plan.anchor import anchor_hardware
from joulemap.plan.version import find_formulas, formula_version
from joulemap.system import resource
from joulemap.system.resource import folder, list_code, read_code
from joulemap.system.wing import find_parts
from models import shipped

PACKAGE = Path(joulemap.__file__).parent
CLASSES = sorted({hardware.architecture for hardware in load_catalogue().hardware.values()})

LIBRARIES = {"attrs", "numpy", "joulemap", *sys.stdlib_module_names}
"""Packages that formulas import."""


def list_formulas(architecture: str) -> set[str]:
    """Return the files, relative to the package, that the version of a class covers."""
    places, without = find_formulas(architecture)
    return {name for place in places for name in list_code(place)} - without


def name_file(module: str) -> str:
    """Return the file, relative to the package, of a module of the package."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(PACKAGE).as_posix()


def test_formulas_import_nothing_but_themselves_and_system(tmp_path: Path) -> None:
    """A copy of the two folders alone evaluates, and no file of them names another part, even for a type checker: the
    generated stub that the door names lists names of `physics` alone.
    """
    stub = (PACKAGE / "generated/physics.pyi").read_text(encoding="utf-8")
    assert all(name.startswith("joulemap.physics.") for name in re.findall(r"^from ([\w.]+)", stub, re.MULTILINE))
    for path in (PACKAGE / "physics").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= LIBRARIES, path
            ours = [name for name in names if name.startswith("joulemap")]
            assert all(
                name.startswith(("joulemap.physics", "joulemap.system", "joulemap.generated.physics")) for name in ours
            ), path
    for name in ("physics", "system"):
        shutil.copytree(PACKAGE / name, tmp_path / "joulemap" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "joulemap" / "__init__.py").touch()
    modules = sorted((PACKAGE / "physics").rglob("*.py"))
    named = [".".join(("joulemap", *one.relative_to(PACKAGE).with_suffix("").parts)) for one in modules]
    program = f"import importlib, joulemap\nfor name in {named!r}:\n    importlib.import_module(name)\nprint(joulemap)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
    )
    assert str(tmp_path) in done.stdout


@pytest.mark.sample(3)
@pytest.mark.parametrize("architecture", CLASSES)
def test_every_function_that_computes_a_run_is_in_its_digest(architecture: str) -> None:
    ran: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            ran.add(frame.f_globals.get("__name__", ""))

    hardware = anchor_hardware(find_hardware(CLASS_HARDWARE[architecture]))
    evaluator = Evaluator(shipped("mobilenet_v2"))
    configuration = Configuration(hardware=hardware.id, precision=min(hardware.peaks))
    sys.setprofile(note)
    try:
        evaluator.evaluate(hardware, configuration)
    finally:
        sys.setprofile(None)
    own = {name_file(name) for name in ran if name.startswith("joulemap.")}
    assert {"physics/pipeline.py", "physics/kernel.py"} <= own
    assert {name for name in own if not name.startswith("system/")} <= list_formulas(architecture)


NO_FORMULA = (
    ("domain/metric.py", "METRICS", "\nMETRICS = (*METRICS, METRICS[0])\n"),
    ("domain/settings.py", "class Settings", "\nclass MoreSettings(Settings):\n    carbon: bool = False\n"),
    ("domain/offer.py", "def ", "\nPRICE_PER_HOUR = 2.5\n"),
    ("physics/interval/error_scale.py", "FULL_GROUPS", "\nFULL_GROUPS = 3.0\n"),
    ("physics/interval/half_width.py", "def combine_errors", "\nMOVING = 0.2\n"),
    ("domain/dimension.py", "Dimension", "\nDIMENSIONS = ()\n"),
    ("wing/llm/prediction.py", "def ", "\nTOKENS_PER_STEP = 3\n"),
    ("domain/label.py", "RUNTIME_LABEL", "\nRUNTIME_LABEL = {}\n"),
    ("domain/constant.py", "power limit", "\nNAMES = {}\n"),
)
"""(file, text that it contains, code appended) of changes that no stored run depends on."""

FORMULAS = (
    ("physics/kernel.py", "def ", None),
    ("physics/record/hardware.py", "def in_mode", None),
    ("system/units.py", "FS_PER_S", None),
    ("physics/architecture/gpu/product.py", "SHARPNESS", {"gpu", "box"}),
    ("physics/architecture/cpu/__init__.py", "def ", {"cpu", "box"}),
    ("wing/place/box/column.py", "def ", {"box"}),
)
"""(file, text that it contains, classes whose runs depend on it or None for all)."""


def versions() -> dict[str, str]:
    """Return class -> version of its formulas, computed anew."""
    kinds = [kind.architecture for kind in find_parts("hardware")]
    found = {name: find_formulas(name) for name in (*CLASSES, *kinds)}
    return {name: read_code(*places, without=without) for name, (places, without) in found.items()}


@pytest.mark.wings
def test_only_formulas_change_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "joulemap"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "data"))
    monkeypatch.setattr(resource, "_PACKAGE", package)
    before = versions()
    assert {name: before[name] for name in CLASSES} == {name: formula_version(name) for name in CLASSES}
    for file, text, more in NO_FORMULA:
        path = package / file
        assert text in path.read_text()
        path.write_text(path.read_text() + more)
    assert versions() == before
    for file, text, classes in FORMULAS:
        path = package / file
        kept = path.read_text()
        assert text in kept
        path.write_text(kept + "\nCHANGED = 1\n")
        after = versions()
        assert {name for name in before if after[name] != before[name]} == (classes or set(before)), file
        path.write_text(kept)


def test_a_class_does_not_depend_on_another() -> None:
    assert len({formula_version(architecture) for architecture in CLASSES}) == len(CLASSES)
    for path in (PACKAGE / "physics" / "architecture").rglob("*.py"):
        own = path.relative_to(PACKAGE / "physics" / "architecture").parts[0].removesuffix(".py")
        named = set(re.findall(r"from joulemap\.physics\.architecture\.(\w+)", path.read_text()))
        assert named <= {own} or own == "__init__"


def test_the_version_takes_no_heavy_import(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom joulemap.plan.version import formula_version\n"
        f"assert formula_version('gpu') == {formula_version('gpu')!r}\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert not {"numpy", "attrs", "attr", "duckdb", "torch"} & set(done.stdout.split())


class Stored(NamedTuple):
    run_id: int
    hardware: str
    formula_version: str
    latency_s: float
    energy_j: float


class Copy:
    """A copy of the package whose formulas may be changed, and a database that it answers from."""

    def __init__(self, place: Path) -> None:
        self.package = place / "joulemap"
        self.database = place / "own.duckdb"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("schemas", "queries"):
            shutil.copytree(folder(name), self.package / name)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(place),
            "PYTHONDONTWRITEBYTECODE": "1",
            "JOULEMAP_CACHE": str(place / "cache"),
        }

    def change(self, file: str, before: str, after: str) -> None:
        path = self.package / "physics" / file
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))

    def compare(self) -> tuple[str, list[Stored]]:
        """Return the answer of a CPU and a GPU, and all runs that are stored then."""
        command = [sys.executable, "-m", "joulemap", "compare", "resnet18", "--hardware", "xeon_8490h,l40s"]
        command += ["--db", str(self.database), "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment, check=True)
        asked = f"SELECT {', '.join(Stored._fields)} FROM runs ORDER BY run_id"
        with duckdb.connect(str(self.database), read_only=True) as connection:
            return done.stdout, [Stored(*row) for row in connection.execute(asked).fetchall()]


@pytest.mark.slow
def test_a_changed_formula_is_evaluated_and_what_is_stored_of_the_old_one_stays(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    first, stored = copy.compare()
    assert [one.hardware for one in stored] == ["xeon_8490h", "l40s"]
    assert [one.formula_version for one in stored] == [formula_version("cpu"), formula_version("gpu")]

    # words are no formula
    copy.change("kernel.py", "operators that run together", "operators that run at once")
    assert copy.compare() == (first, stored)

    # a number of the GPU: a new run of it, the CPU's is served again
    copy.change("architecture/gpu/product.py", "SHARPNESS: Final = 2.5", "SHARPNESS: Final = 1.5")
    second, more = copy.compare()
    assert second != first
    assert more[:2] == stored
    (again,) = more[2:]
    assert again.hardware == "l40s"
    assert again.formula_version != stored[1].formula_version
    assert again.latency_s > stored[1].latency_s
    assert f"{again.latency_s!r}" in second
    assert f"{stored[0].latency_s!r}" in second
    assert copy.compare() == (second, more)

    # a number that all share: both anew
    copy.change("kernel.py", "launches_each else 1]] = 1.0", "launches_each else 1]] = 2.0")
    third, most = copy.compare()
    assert most[:3] == more
    assert {one.hardware for one in most[3:]} == {"xeon_8490h", "l40s"}
    assert most[-1].energy_j > again.energy_j or most[-2].energy_j > again.energy_j
    assert third != second
