"""The page with scores of records: every cell is there, losses first, and a wrong table is one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from joulemap.system.errors import CatalogueError, UsageError
from joulemap.wing.record.score import ALL, COLUMNS, IN_VIEW, LATER
from joulemap.wing.tab.scores import write_scores

ROW = dict.fromkeys(COLUMNS, "") | {
    "record": "2026-05-01", "standing": LATER, "source": "a<b>.csv", "vendor": "NVIDIA", "architecture": "gpu",
    "quantity": "time", "result_count": 10, "predicted_count": 8, "median_error_fraction": 0.25, "judged_count": 8,
    "inside_count": 7, "pair_count": 4, "right_pair_count": 3,
}  # fmt: skip


def write_table(path: Path, *changes: dict[str, object]) -> Path:
    """Write scores that differ from `ROW`."""
    rows = [",".join(str(cell) for cell in {**ROW, **one}.values()) for one in changes]
    path.write_text("\n".join([",".join(COLUMNS), *rows, ""]))
    return path


def test_scores_are_rows_with_the_worst_first(tmp_path: Path) -> None:
    page = write_scores(
        write_table(
            tmp_path / "record.csv",
            {},
            {"vendor": "AMD", "inside_count": 2},
            {"vendor": ALL, "architecture": ALL, "result_count": 20, "judged_count": 16, "inside_count": 9},
            {"vendor": "Intel", "standing": IN_VIEW, "inside_count": 0},
            {"vendor": "Hailo", "predicted_count": 0, "median_error_fraction": "", "judged_count": 0},
        )
    )
    lines = re.findall(r"<tr>(.*)</tr>", page)[1:]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in lines]
    assert [row[0] for row in cells] == ["AMD", ALL, "NVIDIA", "Intel"]
    assert cells[0][3:8] == ["25.0 %", "25.0 % of 8", "75.0 % of 4", "8", "10"]
    assert cells[0][-1] == "a&lt;b&gt;.csv"
    assert "<script" not in page
    assert not re.search(r"{\w+}", page.replace("{table}", ""))


def test_another_table_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(CatalogueError):
        write_scores(other)
    with pytest.raises(UsageError):
        write_scores(tmp_path / "none.csv")
