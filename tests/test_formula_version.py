"""A run of other formulas is never an answer: what the digest covers, and what a changed number does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import duckdb
import pytest

from joulemap.catalog.load import find_hardware, load_catalogue
from joulemap.domain.architecture import CLASS_HARDWARE
from joulemap.domain.configuration import Configuration
from joulemap.model import version
from joulemap.model.pipeline import Evaluator
from joulemap.model.version import PACKAGE, WORDS, formula_modules, formula_version
from joulemap.plan.anchor import anchor_hardware
from joulemap.system.resource import folder
from joulemap.system.wing import find_parts
from models import shipped

CLASSES = sorted({hardware.architecture for hardware in load_catalogue().hardware.values()})


@pytest.mark.sample(3)
@pytest.mark.parametrize("architecture", CLASSES)
def test_every_module_that_a_class_loads_is_in_its_digest(architecture: str, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from joulemap.model.architecture import find_architecture\n"
        "from joulemap.model.pipeline import Evaluator\n"
        f"find_architecture({architecture!r})\n"
        "print(*(name.removeprefix('joulemap.') for name in sys.modules if name.startswith('joulemap.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    loaded = set(done.stdout.split())
    assert {"model.kernel", "model.ledger", "domain.hardware", f"model.architecture.{architecture}"} <= loaded
    assert loaded - WORDS <= set(formula_modules(architecture))


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
    own = {name.removeprefix("joulemap.") for name in ran if name.startswith("joulemap.")}
    assert {"model.pipeline", "model.kernel"} <= own
    assert own - WORDS <= set(formula_modules(architecture))


NO_FORMULA = (
    ("domain/metric.py", "METRICS", "\nMETRICS = (*METRICS, METRICS[0])\n"),
    ("domain/settings.py", "class Settings", "\nclass MoreSettings(Settings):\n    carbon: bool = False\n"),
    ("domain/offer.py", "def ", "\nPRICE_PER_HOUR = 2.5\n"),
    ("domain/doubt.py", "def ", "\nSERVED_HALF_WIDTH = 0.4\n"),
    ("domain/dimension.py", "Dimension", "\nDIMENSIONS = ()\n"),
    ("wing/llm/prediction.py", "def ", "\nTOKENS_PER_STEP = 3\n"),
)
"""(file, text that it contains, code appended) of changes that no stored run depends on."""

FORMULAS = (
    ("model/kernel.py", "def ", None),
    ("domain/hardware.py", "def in_mode", None),
    ("model/architecture/gpu/product.py", "SHARPNESS", {"gpu", "box"}),
    ("model/architecture/cpu/__init__.py", "def ", {"cpu", "box"}),
)
"""(file, text that it contains, classes whose runs depend on it or None for all)."""


def versions(package: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return class -> version of its formulas in a copy of the package."""
    monkeypatch.setattr(version, "PACKAGE", package)
    for one in (version._imported, version._source, version._find_file):
        one.cache_clear()
    kinds = [kind.architecture for kind in find_parts("hardware")]
    return {name: version._digest(name) for name in (*CLASSES, *kinds)}


def test_only_formulas_change_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "joulemap"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "data"))
    before = versions(package, monkeypatch)
    assert {name: before[name] for name in CLASSES} == {name: formula_version(name) for name in CLASSES}
    for file, text, more in NO_FORMULA:
        path = package / file
        assert text in path.read_text()
        path.write_text(path.read_text() + more)
    assert versions(package, monkeypatch) == before
    for file, text, classes in FORMULAS:
        path = package / file
        kept = path.read_text()
        assert text in kept
        path.write_text(kept + "\nCHANGED = 1\n")
        after = versions(package, monkeypatch)
        assert {name for name in before if after[name] != before[name]} == (classes or set(before)), file
        path.write_text(kept)
    monkeypatch.undo()
    versions(PACKAGE, monkeypatch)


def test_a_class_does_not_depend_on_another() -> None:
    assert len({formula_version(architecture) for architecture in CLASSES}) == len(CLASSES)
    for architecture in CLASSES:
        own = f"model.architecture.{architecture}"
        others = [module for module in formula_modules(architecture) if module.startswith("model.architecture.")]
        assert all(module == own or module.startswith(f"{own}.") for module in others)


def test_the_version_takes_no_heavy_import(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom joulemap.model.version import formula_version\n"
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
        path = self.package / "model" / file
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
    copy.change("kernel.py", 'runtime == "eager" else 1]] = 1.0', 'runtime == "eager" else 1]] = 2.0')
    third, most = copy.compare()
    assert most[:3] == more
    assert {one.hardware for one in most[3:]} == {"xeon_8490h", "l40s"}
    assert most[-1].energy_j > again.energy_j or most[-2].energy_j > again.energy_j
    assert third != second
