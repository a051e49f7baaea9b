"""Seam between facts and words: questions write no text, words compute nothing, every caveat has its sentence."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

import joulemap
from compare import assert_close
from joulemap.ask.fact import Caveat
from joulemap.ask.finding import Finding
from joulemap.ask.rule import WEIGHED, Rules, SqlRule, list_sql_rules, list_wing_rules
from joulemap.ask.scope import Scope
from joulemap.present.template import Template
from joulemap.show.caveat import CAVEAT, describe_caveat
from joulemap.show.word import Words, read_words
from joulemap.store.library import find_query
from joulemap.system.wing import BUILT_IN, Wing, list_wings
from joulemap.workspace import Workspace

SOURCE = Path(joulemap.__file__).parent
WINGS = [SOURCE / "wing" / name for name in BUILT_IN]


def list_rooms(name: str) -> list[Path]:
    """Return the modules of a room of the core, and those of the wings with its name and promises."""
    folders = [SOURCE / name, *(wing / name for wing in WINGS)]
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    return sorted([*paths, *(path for wing in WINGS if (path := wing / f"{name}.py").is_file())])


ASK = list_rooms("ask")
SHOW = list_rooms("show")


PARSING = {
    "find", "rfind", "index", "rindex", "partition", "rpartition", "split", "rsplit", "startswith", "endswith", "sub",
    "replace", "removeprefix", "removesuffix", "splitlines", "fullmatch", "match", "search",
}  # fmt: skip
"""Methods that search or cut text."""


def name_module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def walk(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize("path", [*ASK, *SHOW], ids=name_module)
def test_nothing_searches_text(path: Path) -> None:
    calls = [one for one in walk(path) if isinstance(one, ast.Call)]
    assert not [one.lineno for one in calls if isinstance(one.func, ast.Attribute) and one.func.attr in PARSING]
    imported = {alias.name for one in walk(path) if isinstance(one, ast.Import) for alias in one.names}
    assert "re" not in imported


ANSWER = list_rooms("answer")
PRESENT = list_rooms("present")

CUTTING = PARSING - {"find", "rfind", "index", "rindex"} | {"findall", "finditer", "subn"}

NAMES = {
    "name", "column", "columns", "unit", "word", "model", "hardware", "quantity", "kind", "per", "place", "spec",
    "module", "id", "constant", "path", "suffix", "precision", "role", "entry", "type", "given", "plain",
}  # fmt: skip
"""Last part of an expression whose value is a name, a number's unit, a path or a syntax, and no text for people."""

LAYOUT = ("present.writer", "present.draw", "present.hypertext", "present.template", "present.text", "present.cell")
"""Modules that write markup, wrap lines, read the syntax of templates and format numbers."""

READING: dict[str, str] = {
    "answer.base.add_marks": "the mark of hardware before its name",
    "answer.base.fetch_tables": "type annotations of fields",
    "answer.computed": "type annotations of fields",
    "answer.candidate.enclose_seller": "a price with its seller, one text of a query",
    "answer.check.check_runs": "arguments in the name of a model",
    "answer.compare.architecture._cite": "a source in the catalogue",
    "answer.cost.cost": "the plural of a unit of work",
    "answer.cost._read_options": "an argument of the user",
    "answer.package_check._check_operators": "names in a compiler's list, as its author wrote them",
    "answer.explain.table._select_energy": "the syntax of columns",
    "answer.explain.table._lay_purposes": "the syntax of columns",
    "answer.explain.table._lay_subgraphs": "names that a query joins",
    "answer.constant.pair._origin": "a source in the catalogue",
    "answer.hardware.HardwareAnswer._list_notes": "a remark in the catalogue",
    "answer.hardware_file.check_files": "a source in the catalogue",
    "answer.layout.fill_cells": "the syntax of columns",
    "answer.layout.lay_facts": "the syntax of columns",
    "answer.layout.lay_beside": "the syntax of columns",
    "answer.layout._split": "the syntax of columns",
    "answer.model._describe_inputs": "the specification of inputs",
    "answer.part.analyze.AnalyzeAnswer._tree": "a unit after a count",
    "answer.recommend._list_other_misses": "names that a query joins",
    "answer.recommend._find_battery": "a source in the catalogue",
    "answer.report.chapter._shorten": "names that a query joins",
    "answer.utilization.variant.rebatch": "the specification of inputs",
    "present.document.grid.cell": "the name of a column",
    "present.document.Grid.is_marked": "the mark of hardware before its name",
    "wing.explore.answer.regret._format_alike": "names that a row joins",
    "wing.fleet.answer.document.FleetAnswer._name": "the end of a row's key",
    "wing.fleet.answer.document.FleetAnswer._list_left_out": "a price with its seller, one text of a query",
    "wing.llm.answer.check.find_checkpoint.rank": "names of checkpoints",
    "wing.pipeline.answer.recommend._count_frames": "the label of a metric",
    "wing.train.answer.published.read_sizes": "arguments in the name of a model",
    "wing.train.answer.published._predict": "arguments in the name of a model",
    "wing.verify.answer.file": "files of other tools",
    "wing.here.answer.here": "the name of a device that its driver prints",
}
"""Function or module that cuts or searches text -> what it reads, which is no sentence of an answer."""


def name_last(node: ast.expr) -> str:
    """Return the last name of an expression: `label` of `row.label` and of `row.label.strip()`."""
    if isinstance(node, ast.Call):
        return name_last(node.func.value) if isinstance(node.func, ast.Attribute) else name_last(node.func)
    if isinstance(node, ast.Subscript):
        return name_last(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def list_cuts(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Yield (function, expression) for each call that cuts or searches text that may be for people."""
    for one in ast.iter_child_nodes(node):
        own = f"{name}.{one.name}" if isinstance(one, ast.FunctionDef | ast.ClassDef) else name
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in CUTTING:
            is_record = one.func.attr == "replace" and len(one.args) < 2  # of a row or a file
            if not is_record and name_last(one.func.value) not in NAMES:
                yield name, ast.unparse(one)
        if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.In | ast.NotIn):
            right = name_last(one.comparators[0])
            if right in ("text", "title", "note", "line", "reason", "headline", "answer", "sentence", "told"):
                yield name, ast.unparse(one)
        yield from list_cuts(one, own)


@pytest.mark.parametrize("path", [*ANSWER, *PRESENT], ids=name_module)
def test_no_answer_reads_its_own_text(path: Path) -> None:
    module = name_module(path).removesuffix(".__init__")
    if module.startswith(LAYOUT):
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    cuts = [(name, what) for name, what in list_cuts(tree, module) if name not in READING and module not in READING]
    assert not cuts


@pytest.mark.wings
def test_what_may_read_text_does() -> None:
    cuts = {name for path in (*ANSWER, *PRESENT) for name, _ in list_cuts(
        ast.parse(path.read_text(encoding="utf-8")), name_module(path).removesuffix(".__init__"))}  # fmt: skip
    assert not [name for name in READING if not any(one == name or one.startswith(f"{name}.") for one in cuts)]


@pytest.mark.parametrize("path", ASK, ids=name_module)
def test_questions_hold_no_sentence(path: Path) -> None:
    nodes = walk(path)
    documented = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    raised = {id(part) for one in nodes if isinstance(one, ast.Raise) for part in ast.walk(one)}
    texts = [(one, one.value) for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    assert not [text for one, text in texts if id(one) not in documented | raised and text.count(" ") > 2]


BANNED = {"ask": ("show", "present"), "show": ("store", "plan", "model", "catalog", "row")}
"""Room -> rooms of the core, and modules of a wing, that it imports nowhere."""


def find_room(module: str) -> str:
    """Return the room of a module of the core, or the module of a wing with its room's name."""
    parts = module.split(".")
    return "".join(parts[3:4] if parts[1:2] == ["wing"] else parts[1:2])


@pytest.mark.parametrize("path", [*ASK, *SHOW], ids=name_module)
def test_questions_know_no_words_and_words_no_store(path: Path) -> None:
    room = "ask" if path in ASK else "show"
    imported = {one.module or "" for one in walk(path) if isinstance(one, ast.ImportFrom)}
    assert not {find_room(one) for one in imported} & {*BANNED[room]}


@pytest.mark.parametrize("one", list_sql_rules(), ids=lambda one: one.query)
def test_every_rule_has_its_words(one: SqlRule) -> None:
    columns = {column.name for column in find_query(one.query, one.folder).columns}
    words = {**CAVEAT, **read_words().caveats}
    assert {slot for slot, _ in words[one.kind].slots} <= columns - set(WEIGHED) | {"chips"}


def list_texts(value: ast.expr) -> set[str]:
    """Return the texts that an expression may have: a constant, or those of both branches of a condition."""
    if isinstance(value, ast.IfExp):
        return list_texts(value.body) | list_texts(value.orelse)
    return {str(value.value)} if isinstance(value, ast.Constant) else set()


def list_kinds(paths: list[Path]) -> set[str]:
    """Return the kinds of the findings that functions of these modules make."""
    return {
        kind
        for path in paths
        for one in walk(path)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in ("Finding", "Caveat")
        for word in one.keywords
        if word.arg == "kind"
        for kind in list_texts(word.value)
    }


def test_every_kind_of_caveat_has_its_words_and_its_rule() -> None:
    mine = {one.kind for one in list_sql_rules() if one.query.startswith("rule.")}
    own = [path for path in ASK if "wing" not in path.relative_to(SOURCE).parts]
    assert list_kinds(own) | mine == CAVEAT.keys()
    others = {one.kind for one in list_sql_rules()} - mine
    wings = [path for wing in WINGS for path in wing.rglob("*.py")]  # readers of files find some
    kinds = list_kinds(wings) | others
    assert kinds - CAVEAT.keys() == read_words().caveats.keys()  # the core has the words of its kinds
    assert not CAVEAT.keys() & read_words().caveats.keys()


TOY_RULE = """/*
summary = "Runs, with their place as a bias"
grain = "one row per run"
order = ["run_id"]
[columns]
run_id = { type = "INTEGER", meaning = "the run" }
watts = { type = "DOUBLE", unit = "W", meaning = "its power" }
bias = { type = "DOUBLE", meaning = "a logarithm" }
*/
SELECT run_id, average_power_w AS watts, ln(average_power_w) AS bias
FROM runs
WHERE list_contains($run_ids, run_id)
ORDER BY run_id
"""


def find_toys(scope: Scope) -> Iterator[Finding]:
    """Find a caveat of the toy wing below."""
    yield Finding(kind="toy", values={"count": len(scope.run_ids)})


TOY_RULES = Rules(functions=(find_toys,))
TOY_WORDS = Words(caveats={"toy": Template("{count:n toy}"), "heavy": Template("{chips} draws {watts}")})


def test_a_wing_brings_its_rules_and_their_words(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_rule").mkdir()
    text = TOY_RULE.replace("[columns]", '[parameters]\nrun_ids = { type = "INTEGER[]", meaning = "runs" }\n[columns]')
    (tmp_path / "toy_rule" / "heavy.v1.sql").write_text(text)
    here = find_toys.__module__
    parts = {"rules": f"{here}:TOY_RULES", "words": f"{here}:TOY_WORDS"}
    wings = (*list_wings(), Wing(name="toy", queries_folder=tmp_path, parts=parts))
    made = (list_sql_rules, list_wing_rules, read_words)
    with monkeypatch.context() as patch:
        for place in ("joulemap.system.wing", "joulemap.ask.rule"):
            patch.setattr(f"{place}.list_wings", lambda: wings)
        for kept in made:
            kept.cache_clear()
        answer = workspace.compare("resnet18", hardware=["l4", "t4"], precision="fp16")
        caveats = [one for one in answer.facts.of(Caveat) if one.kind in ("toy", "heavy")]
        told = {describe_caveat(one, answer.facts.runs) for one in caveats}
    for kept in made:
        kept.cache_clear()
    watts = {row.run_id: row.average_power_w or 0.0 for row in answer.rows}
    heavy = {one.runs[0]: one for one in caveats if one.kind == "heavy"}
    assert heavy.keys() == watts.keys()
    for one in heavy.values():  # the biases of the two runs differ by the logarithm of the ratio of their powers
        assert_close(one.weight, abs(math.log(watts[answer.rows[0].run_id] / watts[answer.rows[1].run_id])), rel=1e-9)
    assert "2 toys" in told and len(told) == 3
