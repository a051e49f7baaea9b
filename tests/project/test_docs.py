from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
import typer

from joulemap.catalog.chip import list_architectures, load_class
from joulemap.cli.app import EXIT_CODES, build
from joulemap.cli.argument import PROGRAM
from joulemap.show.present.document import table_document
from joulemap.show.present.format import write
from joulemap.system.errors import ExitCode
from joulemap.workspace import Workspace
from layers import BELOW
from sample import each
from tools.count import describe_formula, read_counts
from tools.page import IN_DOCS, write_parts

ROOT = Path(__file__).parents[2]
FRONT = {name: ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")}
PAGES = FRONT | {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
STATEMENTS = [
    query
    for name, text in TEXTS.items()
    if name != "lake"  # of which `test_lake` asks a lake
    for query in re.findall(r"```sql\n(.*?)\n```", text, re.DOTALL)
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.splitlines()[0][:60])
def test_a_documented_statement_answers(statement: str, database: Path) -> None:
    workspace = Workspace(database)
    given = {}
    if "$run_ids" in statement:  # a rule, which the product asks about the runs of an answer
        given["run_ids"] = [run_id for (run_id,) in workspace.sql("SELECT run_id FROM runs").rows]
    assert workspace.sql(statement, parameters=given).rows


def test_there_are_documented_statements() -> None:
    assert len(STATEMENTS) >= 9


TEN = re.findall(
    r"^### (\d+)\. .*?```sql\n(.*?)\n```\n\n```text\n(.*?)\n```",
    TEXTS["sql"],
    re.DOTALL | re.MULTILINE,
)


def test_there_are_ten_questions_with_their_answers() -> None:
    assert [int(number) for number, _, _ in TEN] == list(range(1, 11))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("statement", "sample"), [one[1:] for one in TEN], ids=[one[0] for one in TEN])
def test_a_sample_has_the_columns_of_its_answer(
    statement: str, sample: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "ten.duckdb"
    workspace = Workspace(path)
    if not path.exists():
        workspace.compare("resnet18")
    answer = workspace.sql(statement)
    drawn = write(table_document(attrs.evolve(answer, rows=answer.rows[:5])), "table")
    assert sample.splitlines()[0].split() == drawn.splitlines()[0].split()


FAST = ("README",)
SHOWN = [name for name, text in TEXTS.items() if "<!-- shown: " in text]


@pytest.mark.parametrize(
    "page", [*FAST, *(pytest.param(page, marks=pytest.mark.slow) for page in SHOWN if page not in FAST)]
)
def test_a_page_shows_what_its_commands_print_today(page: str) -> None:
    answer_commands = runpy.run_path(str(ROOT / "benchmarks" / "question.py"))["answer_commands"]
    assert TEXTS[page].count("$ joulemap ") == TEXTS[page].count("<!-- shown: ") > 0
    assert answer_commands(TEXTS[page]) == TEXTS[page], "make questions"


def test_sentences_have_the_numbers_of_the_answers_that_they_repeat() -> None:
    updated = runpy.run_path(str(ROOT / "benchmarks" / "question.py"))["update_prose"](
        lambda name: (ROOT / name).read_text(encoding="utf-8")
    )
    assert updated
    for name, text in updated.items():
        assert text == (ROOT / name).read_text(encoding="utf-8"), f"{name}: make questions"


def test_the_readme_opens_with_the_two_commands() -> None:
    first = re.search(r"```\w*\n(.*?)\n```", TEXTS["README"], re.DOTALL)
    assert first is not None
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make demo", "make test"]


def test_a_version_is_the_same_wherever_it_is_told() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert re.search(rf"^## {re.escape(version)}\b", TEXTS["CHANGELOG"], re.MULTILINE)


def test_every_exit_code_is_documented() -> None:
    for code in ExitCode:
        assert re.search(rf"^\| {code.value} \|", TEXTS["cli"], re.MULTILINE), code
        assert any(one.startswith(f"{code.value} ") for one in EXIT_CODES), code


@each(PAGES)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    for target, _, anchor in re.findall(r"\]\((?!http)([^)#]*)(#([^)]+))?\)", TEXTS[page]):
        path = (PAGES[page].parent / target).resolve() if target else PAGES[page]
        assert path.exists(), target
        assert not anchor or anchor in {_anchor(line) for line in path.read_text().splitlines()}, f"{target}#{anchor}"


def _anchor(line: str) -> str:
    """Return what a heading is linked by; empty for another line."""
    name = re.fullmatch(r"#+ (.*)", line)
    return re.sub(r"[^\w -]", "", name[1].lower()).replace(" ", "-") if name else ""


@each(PAGES)
def test_rows_of_a_page_stand_under_their_headings(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", TEXTS[page], flags=re.DOTALL | re.MULTILINE)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = table.splitlines()
        assert len(lines) > 2 and re.fullmatch(r"\|(-+\|)+", lines[1]), lines[0]
        assert len({line.count("|") - line.count("\\|") for line in lines}) == 1, lines[0]


@pytest.mark.wings
@each(PAGES)
def test_commands_on_a_page_are_commands_with_these_options(page: str) -> None:
    fenced = "\n".join(re.findall(r"```sh\n(.*?)```", TEXTS[page], re.DOTALL))
    lines = re.findall(r"^joulemap (.*)$", fenced, re.MULTILINE)
    lines += re.findall(r"^(?:    |\$ )joulemap ([a-z].*)$|`joulemap ([a-z][^`]*)`", TEXTS[page], re.MULTILINE)
    for line in ("".join(pieces) for pieces in lines):
        if page == "extend" and line.startswith("battery"):  # of the wing that the page makes
            continue
        command, words = find_command(line.split("#")[0].split())
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        known |= {*PROGRAM}
        assert {word.split("=")[0].rstrip(",") for word in words if word.startswith("--")} <= known, line


@cache
def read_commands(name: str) -> Any:
    """Return the commands, that of a name with its options."""
    return typer.main.get_command(build([name]))


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that a line begins with, and the rest of the line."""
    command = read_commands(words[0])
    while words and (inner := getattr(command, "commands", {}).get(words[0].rstrip(",;:."))):
        command, words = inner, words[1:]
    assert command.name != "joulemap", f"no command {words[0]}"
    return command, words


def test_rooms_stand_above_those_that_import_them() -> None:
    rooms = [
        room
        for row in re.findall(r"^\| (`[^|]+) \|", TEXTS["design"].partition("\n## Wings")[0], re.MULTILINE)
        for room in re.findall(r"`(\w+)`", row)
    ]
    assert set(rooms) == set(BELOW)
    for room, others in BELOW.items():
        assert all(rooms.index(other) < rooms.index(room) for other in others), room


def test_parts_that_restate_code_are_as_the_code() -> None:
    stale = [name for name, text in TEXTS.items() if write_parts(text, IN_DOCS) != text]
    assert stale == [], "make pages"


@pytest.mark.parametrize("architecture", list_architectures())
def test_counts_of_the_catalogue_are_those_of_the_code(architecture: str) -> None:
    actions = load_class(architecture, "the test").actions
    told = {
        one.component + "." + one.action: describe_formula(architecture, one.component, one.action) for one in actions
    }
    assert {one.component + "." + one.action: one.count for one in actions} == told, "make pages"


@pytest.mark.parametrize("architecture", list_architectures())
def test_every_action_that_a_class_counts_is_in_the_catalogue(architecture: str) -> None:
    known = [(one.component, one.action) for one in load_class(architecture, "the test").actions]
    for component, action in read_counts(architecture)[0]:
        assert any(fnmatch(one, component) and fnmatch(other, action) for one, other in known), (component, action)


@pytest.mark.slow
def test_examples_of_library_calls_pass_the_type_checker(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        blocks = re.findall(r"```python\n(import joulemap\n.*?)\n```", text, re.DOTALL)
        (tmp_path / f"{name}_page.py").write_text("\n".join(blocks) + "\n")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "", *tmp_path.glob("*.py")], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
