"""Versions of shipped workloads: a changed formula outdates the models that contain its operators, and no other."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from blank import open_blank
from joulemap.catalog.digest import ZOO
from joulemap.catalog.sheet import load_models, load_shipped, read_records
from joulemap.domain.catalogue import ShippedWorkload
from joulemap.store.zoo import Shipped, read_operators, read_shipped
from joulemap.system import resource
from joulemap.system.definition import find_mentions
from joulemap.trace.formula import FORMULAS, Call, count
from joulemap.trace.formula.own import noting_formulas
from joulemap.trace.version import digest_formulas, operator_version, tracer_version, workload_version
from tools import zoo
from tools.shipped import list_operators

SAMPLE = ("resnet18", "attention_head", "swin_t")


def test_a_shipped_workload_depends_on_the_formulas_of_its_operators() -> None:
    for name, operators in read_operators(ZOO).items():
        assert load_shipped()[name].tracer_version == workload_version(operators)
    connection = open_blank()
    read_shipped(connection, ZOO, [Shipped(name, 1, workload_key=name) for name in SAMPLE])
    for name, contained in list_operators(connection).items():
        assert contained <= read_operators(ZOO)[name]


class Copy:
    """A copy of the package whose code may be changed."""

    PROGRAM = (
        "import json\nfrom joulemap.plan.model import find_outdated\nfrom joulemap.trace import version\n"
        "from joulemap.wing.decoder.network.pass_name import decoder_version\n"
        "print(json.dumps([sorted(find_outdated()), version.operator_version(), decoder_version(), "
        "version.tracer_version()]))"
    )

    def __init__(self, place: Path) -> None:
        self.place, self.package = place, place / "joulemap"
        source = Path(resource.__file__).parents[1]
        shutil.copytree(source, self.package, ignore=shutil.ignore_patterns("__pycache__", "data"))
        (self.package / "catalog" / "data").symlink_to(source / "catalog" / "data")

    def read(self, file: str, before: str, after: str) -> tuple[set[str], str, str, str]:
        """Return outdated models, and the versions of single operators, decoders and traces, after a change."""
        path = self.package / file
        kept = path.read_text()
        assert before in kept, (file, before)
        path.write_text(kept.replace(before, after))
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.place),
            "PYTHONDONTWRITEBYTECODE": "1",  # bytecode would hide a change of the same size within a second
            "JOULEMAP_CACHE": str(self.place / "cache"),
        }
        command = [sys.executable, "-c", self.PROGRAM]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        path.write_text(kept)
        outdated, *versions = json.loads(done.stdout)
        return set(outdated), *versions


def having(*operators: str) -> set[str]:
    """Return the models that contain one of these operators."""
    return {name for name, own in read_operators(ZOO).items() if not own.isdisjoint(f"aten.{one}" for one in operators)}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("package"))


WHOLE = set(load_shipped())
NORMAL = "trace/formula/normalization.py"
ELEMENTWISE = "trace/formula/elementwise.py"
REGISTRY = "trace/formula/registry.py"
FORMULA_CHANGES = {
    "a new operator": (ELEMENTWISE, '["sinc", "logit"]', '["sinc", "logit", "cosine"]', set(), False),
    "a new alias": (NORMAL, '@formula("group_norm")', '@formula("group_norm", "grouped_norm")', set(), False),
    "an operator of none": (ELEMENTWISE, '["hypot"], 3, 1', '["hypot"], 4, 1', set(), False),
    "a value in a table": (
        ELEMENTWISE, '["silu", "silu_"], 3, 1', '["silu", "silu_"], 4, 1', having("silu", "silu_"), True
    ),
    "a limit": (ELEMENTWISE, "POWER: Final = 4", "POWER: Final = 3", having("pow", "pow_"), True),
    "what a formula calls": (
        NORMAL, "per_element: int = 8", "per_element: int = 9",
        having("layer_norm", "rms_norm", "group_norm", "native_group_norm", "instance_norm", "native_layer_norm"), True,
    ),
    "an operator that had none": (
        "trace/formula/movement.py", '_movement(["rot90"', '_movement(["squeeze", "rot90"', having("squeeze"), False
    ),
    "what all return": (REGISTRY, "tap_count: int = 1", "tap_count: int = 2", WHOLE, True),
    "what stays whole": (REGISTRY, '"type_as", "upsample_bicubic2d"', '"upsample_bicubic2d"', WHOLE, False),
    "attention": ("trace/formula/attention.py", "count=4 * score_count", "count=5 * score_count", WHOLE, True),
    "words": (NORMAL, '"""Counts of layer_norm, over each group', '"""As layer_norm, over each group', set(), False),
    "words of an error": ("trace/module.py", "run the lazy module once", "run the module once", set(), False),
    "a file of errors": ("trace/failure.py", "it uses a sparse tensor", "it has a sparse tensor", set(), False),
    "a text that is read": ("trace/cause.py", "does not require grad", "requires no grad", WHOLE, False),
    "a record": ("physics/record/workload.py", 'return self.kind == "view"', "return False", WHOLE, True),
    "the recorder": ("trace/inference.py", "is assumed to survive", "survives, as assumed, the", WHOLE, False),
    "fusion": ("physics/fuse/partition.py", "PRODUCTS_IN_GATE: Final = 2", "PRODUCTS_IN_GATE: Final = 3", WHOLE, False),
}  # fmt: skip
"""(file, before, after, models that the change outdates, whether it changes single operators)."""


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", FORMULA_CHANGES)
@pytest.mark.wings
def test_a_changed_formula_outdates_the_models_that_contain_its_operators(case: str, package: Copy) -> None:
    file, before, after, models, changes_single = FORMULA_CHANGES[case]
    outdated, single, _, trace = package.read(file, before, after)
    assert outdated == models
    assert (single != operator_version()) == changes_single
    assert (trace != tracer_version()) == ("words" not in case and case != "a file of errors")


@pytest.mark.wings
def test_a_new_formula_changes_no_version_of_passes(package: Copy) -> None:
    from joulemap.wing.decoder.network.pass_name import decoder_version

    file, before, after, _, _ = FORMULA_CHANGES["a new operator"]
    assert package.read(file, before, after)[2] == decoder_version()


def test_every_formula_has_a_digest_that_follows_from_its_code() -> None:
    digests = {name: digest_formulas([f"aten.{name}"]) for name in FORMULAS}
    assert digests["relu"] != digests["silu"] != digests["sigmoid"]
    assert digest_formulas(["aten.floor_"]) != digest_formulas(["aten.floor"]), "names count"
    assert digest_formulas(["mylib.relu"]) == digest_formulas(["mylib.relu"]) != digests["relu"]


@pytest.mark.wings
def test_who_looks_formulas_up_has_a_version_that_covers_them() -> None:
    package = Path(resource.__file__).parents[1]
    found = set()
    for path in package.rglob("*.py"):
        text = path.read_text()
        if "joulemap.trace.formula" not in text or path.parent.name == "formula":
            continue
        names = {name for _, name in find_mentions(ast.parse(text), "joulemap.trace.formula")}
        if names & {"FORMULAS", "find_formula", "count"}:
            found.add(path.relative_to(package).as_posix())
    recorded = {"trace/assemble.py", "trace/branch.py"}
    assert found == {
        *recorded,
        "trace/single/__init__.py",
        "trace/version.py",
        "wing/file/assembly.py",
        "plan/workload.py",  # names alone
    }


def test_what_a_choice_between_branches_asks_for_is_noted() -> None:
    with noting_formulas() as asked:
        count("relu", Call((), {}, (), "aten.relu.default"))
    count("silu", Call((), {}, (), "aten.silu.default"))
    assert asked == {"aten.relu"}


@pytest.mark.slow
def test_models_are_traced_anew_beside_outdated_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {name: entry for name, entry in load_models().items() if name in ("mlp", "attention_head")}
    (tmp_path / "workload.parquet").write_text("of an earlier version")
    monkeypatch.setattr(zoo, "load_models", lambda: own)
    monkeypatch.setattr(zoo, "ZOO", tmp_path)
    monkeypatch.setattr(zoo, "SHIPPED", tmp_path / "index.csv")
    zoo.main()
    found = {one.model: one for one in read_records(ShippedWorkload, tmp_path / "index.csv")}
    assert {name: one.tracer_version for name, one in found.items()} == {
        name: workload_version(operators) for name, operators in read_operators(tmp_path).items()
    }

    def leave_out(one: ShippedWorkload) -> ShippedWorkload:
        return attrs.evolve(one, torch_version="", torchvision_version="")  # those of the process that traced

    shipped = load_shipped()
    assert {name: leave_out(shipped[name]) for name in own} == {name: leave_out(one) for name, one in found.items()}
