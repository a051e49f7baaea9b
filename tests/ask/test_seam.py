"""Seam between facts and words: questions write no text, words compute nothing, every caveat has its sentence."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

import joulemap
from compare import assert_close
from joulemap.ask.answer import Answer
from joulemap.ask.fact import Caveat, Facts, Share
from joulemap.ask.finding import Finding
from joulemap.ask.rule import WEIGHED, Rules, list_sql_rules, list_wing_rules
from joulemap.ask.scope import Scope
from joulemap.cli.output import OutputOptions
from joulemap.show.caveat import CAVEAT, describe_caveat
from joulemap.show.present.template import Template
from joulemap.show.view import draw
from joulemap.show.word import Words, read_words
from joulemap.store.library import find_query
from joulemap.system.resource import folder as resource_folder
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
DRAWING = [path for name in ("present", "figure", "webpage") for path in SOURCE.glob(f"show/{name}/**/*.py")]
"""Modules that put texts into a format; they wrap and escape them."""


PARSING = {
    "find", "rfind", "index", "rindex", "partition", "rpartition", "split", "rsplit", "startswith", "endswith", "sub",
    "replace", "removeprefix", "removesuffix", "splitlines", "fullmatch", "match", "search",
}  # fmt: skip
"""Methods that search or cut text."""


def name_module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def walk(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


NOTATION = {
    "ask.answer", "ask.calibrate", "ask.check", "ask.constant", "ask.cost", "ask.flip", "ask.hardware",
    "ask.measure", "ask.package_check", "ask.subject", "ask.validate", "show.column", "show.fact", "show.layout",
    "show.model", "show.page", "show.report", "show.view", "wing.here.ask.here",
    "wing.verify.ask.watch",
}  # fmt: skip
"""Modules that read a notation: names of types, options, models, columns, constants, operators and files, arithmetic of
a source, selectors, and commands. Some only find a calibration.
"""


def test_nothing_searches_text() -> None:
    found = []
    for path in (*ASK, *SHOW):
        if path in DRAWING or name_module(path) in NOTATION:
            continue
        for one in walk(path):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in PARSING:
                found += [] if is_of_record(one) else [f"{name_module(path)}:{one.lineno}"]
            elif isinstance(one, ast.Import):
                found += [name_module(path)] if "re" in {alias.name for alias in one.names} else []
    assert found == []


EVERYTHING = sorted(path for path in SOURCE.rglob("*.py") if "generated" not in path.relative_to(SOURCE).parts)

TOLD = {
    "assumption", "caveat", "doubts", "headline", "hint", "meaning", "message", "needs_host", "note", "notes",
    "price_text", "reason", "reasons", "refusal", "sentence", "told", "unavailable", "unlike_price_text",
}  # fmt: skip
"""Fields and columns with text for people."""

SEARCHING = PARSING | {"findall", "finditer", "subn"}

WORDED = re.compile(r"[a-z]{2,} [a-z]{2,}")
"""Pattern of a text with words that follow each other, as names, syntax and numbers have none."""

SEARCH = re.compile(
    r"\b(?:regexp_\w+|contains|starts_with|ends_with|prefix|suffix|split_part|string_split|instr|strpos)\((?:lower\()?"
    r"(?:\w+\.)?(\w+)|(\w+) (?:NOT )?(?:I?LIKE|SIMILAR TO)\b"
)
"""Pattern of a search in a column, in SQL."""


def is_of_record(call: ast.Call) -> bool:
    """Return whether a call replaces fields of a row, or a file, rather than a part of a text."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "replace" and len(call.args) < 2


def list_searches(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield (searched text, what is searched for) of each call that cuts or searches text."""
    for one in nodes:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute):
            if one.func.attr in SEARCHING and not is_of_record(one):
                yield one.func.value, next(iter(one.args), None)
                if one.func.attr in ("fullmatch", "match", "search"):  # of a pattern in a text
                    yield from ((text, None) for text in one.args[-1:])
        elif isinstance(one, ast.Compare):
            is_part = isinstance(one.ops[0], ast.In | ast.NotIn)
            if is_part and isinstance(one.left, ast.Constant) and isinstance(one.left.value, str):
                yield one.comparators[0], one.left


def list_written(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield the texts with words of a module, except docstrings and what is searched for."""
    left = {id(one) for _, one in list_searches(nodes)}
    left |= {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
    for one in nodes:
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in left:
            yield from [one.value] if WORDED.search(one.value) else []


def list_sought(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, bool]]:
    """Yield (text with words that is searched for, whether it is the value of a constant)."""
    named = {
        one.target.id: one.value.value
        for one in nodes
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(one.value, ast.Constant)
    }
    for _, sought in list_searches(nodes):
        text = named.get(sought.id) if isinstance(sought, ast.Name) else getattr(sought, "value", None)
        if isinstance(text, str) and WORDED.search(text):
            yield text, isinstance(sought, ast.Name)


def test_no_code_reads_text_for_people() -> None:
    """In all rooms: no field with text for people is searched, and no words that joulemap writes are sought."""
    written, sought, wrong = list[str](), dict[str, list[tuple[str, bool]]](), set[str]()
    for path in EVERYTHING:
        nodes = walk(path)
        written += list_written(nodes)
        sought[name_module(path)] = list(list_sought(nodes))
        if any(isinstance(one, ast.Attribute) and one.attr in TOLD for one, _ in list_searches(nodes)):
            wrong.add(name_module(path))
    for module, texts in sought.items():
        for text, is_constant in texts:  # the constant itself is one of the texts
            if sum(text in one for one in written) > is_constant:
                wrong.add(module)
    assert not wrong


def list_sql() -> list[Path]:
    """Return the files with SQL: queries of the core and of wings, views and macros."""
    return sorted(path for name in ("queries", "schemas") for path in resource_folder(name).rglob("*.sql"))


def test_no_query_reads_text_for_people() -> None:
    for path in list_sql():
        matches = SEARCH.finditer(path.read_text(encoding="utf-8"))
        assert not {name for match in matches for name in match.groups()} & TOLD, path


STATED = ("described", "Column", "Known", "need_torch", "settings.check_single", "source.talk")
"""Functions that take meanings of columns and of a site's values, parts of errors, or progress."""


def is_stated(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in STATED


def test_questions_hold_no_sentence() -> None:
    for path in ASK:
        nodes = walk(path)
        documented = {id(one.value) for one in nodes if isinstance(one, ast.Expr)}
        named = [one for one in nodes if isinstance(one, ast.Raise) or is_stated(one)]
        raised = {id(part) for one in named for part in ast.walk(one)}  # errors, and what is stated
        texts = [(one, one.value) for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        told = [text for one, text in texts if id(one) not in documented | raised and not text.startswith("SELECT ")]
        assert not [text for text in told if text.count(" ") > 2], path


BANNED = {"ask": ("show",), "show": ("store", "plan", "model", "catalog", "row")}
"""Room -> rooms of the core, and modules of a wing, that it imports nowhere."""


def find_room(module: str) -> str:
    """Return the room of a module of the core, or the module of a wing with its room's name."""
    parts = module.split(".")
    return "".join(parts[3:4] if parts[1:2] == ["wing"] else parts[1:2])


def test_questions_know_no_words_and_words_no_store() -> None:
    for path in (*ASK, *SHOW):
        imported = {one.module or "" for one in walk(path) if isinstance(one, ast.ImportFrom)}
        assert not {find_room(one) for one in imported} & {*BANNED["ask" if path in ASK else "show"]}, path


def test_every_rule_has_its_words() -> None:
    words = {**CAVEAT, **read_words().caveats}
    for one in list_sql_rules():
        columns = {column.name for column in find_query(one.query, one.folder).columns}
        assert {slot for slot, _ in words[one.kind].slots} <= columns - set(WEIGHED) | {"chips"}, one.query


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
        assert_close(one.weight, abs(math.log(watts[answer.rows[0].run_id] / watts[answer.rows[1].run_id])))
    assert "2 toys" in told and len(told) == 3


def misspell(facts: Facts, answer: Answer, output: OutputOptions) -> None:
    """Use names that do not exist; mypy must reject each line, because it also rejects unused ignore comments."""
    facts.share("edp", "subgrap")  # type: ignore[arg-type]
    facts.shares("enrgy")  # type: ignore[arg-type]
    facts.turns("bacth")  # type: ignore[arg-type]
    Share(runs=(1,), metric="energy", level="categry", share=0.5)  # type: ignore[arg-type]
    assert facts.shares("energy")[0].level == "grad"  # type: ignore[comparison-overlap]
    draw(answer, limt=3)  # type: ignore[call-arg]
    output.present(answer, by="subgraf")  # type: ignore[arg-type]
