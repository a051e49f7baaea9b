from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from joulemap.cli.app import EPILOG
from joulemap.errors import ExitCode
from joulemap.present.document import table_document
from joulemap.present.format import write
from joulemap.workspace import Workspace

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
STATEMENTS = re.findall(
    r"```sql\n(.*?)\n```",
    "".join((ROOT / "docs" / f"{page}.md").read_text() for page in ("sql", "hardware", "calibrate")) + README,
    re.DOTALL,
)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.splitlines()[0][:60])
def test_a_documented_statement_answers(statement: str, database: Path) -> None:
    assert Workspace(database).sql(statement).rows


def test_there_are_documented_statements() -> None:
    assert len(STATEMENTS) >= 9


TEN = re.findall(
    r"^### (\d+)\. .*?```sql\n(.*?)\n```\n\n```text\n(.*?)\n```",
    (ROOT / "docs" / "sql.md").read_text(),
    re.DOTALL | re.MULTILINE,
)


def test_there_are_ten_questions_with_their_answers() -> None:
    assert [int(number) for number, _, _ in TEN] == list(range(1, 11))


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


def test_the_readme_opens_with_the_two_commands() -> None:
    first = re.search(r"```\w*\n(.*?)\n```", README, re.DOTALL)
    assert first is not None
    assert [line.split("#")[0].strip() for line in first[1].splitlines()] == ["make demo", "make test"]


def test_every_exit_code_is_documented() -> None:
    for code in ExitCode:
        assert re.search(rf"^\| {code.value} \|", README, re.MULTILINE), code
        assert re.search(rf"(: |; ){code.value} ", EPILOG), code


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/analyze.md",
        "docs/calibrate.md",
        "docs/compare.md",
        "docs/cost.md",
        "docs/edp.md",
        "docs/explain.md",
        "docs/fusion.md",
        "docs/hardware.md",
        "docs/measure.md",
        "docs/model.md",
        "docs/models.md",
        "docs/pareto.md",
        "docs/recommend.md",
        "docs/sql.md",
        "docs/sweep.md",
        "docs/utilization.md",
    ],
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), target
