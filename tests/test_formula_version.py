"""A run of other formulas is never an answer: what the digest covers, and what a changed number does."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from joulemap.catalog.load import load_catalogue
from joulemap.model.version import PACKAGE, WORDS, formula_modules, formula_version
from joulemap.system.resource import folder

CLASSES = sorted({hardware.architecture for hardware in load_catalogue().hardware.values()})


def path_of(module: str) -> Path:
    place = PACKAGE.joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


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
def test_every_import_leads_into_the_digest_wherever_it_stands(architecture: str) -> None:
    covered = {*formula_modules(architecture), *WORDS}
    for module in formula_modules(architecture):
        for node in ast.walk(ast.parse(path_of(module).read_text())):
            if isinstance(node, ast.Import):
                assert not [one.name for one in node.names if one.name.startswith("joulemap")], module
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("joulemap"):
                name = (node.module or "").removeprefix("joulemap").removeprefix(".")
                assert name in covered, module
                inner = {f"{name}.{one.name}" for one in node.names if path_of(f"{name}.{one.name}").exists()}
                assert inner <= covered, module


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
