"""Energy categories have one name each, on every surface."""

from __future__ import annotations

import re
from pathlib import Path

from joulemap.domain.table import Column
from joulemap.physics.record.reference import COMMON_CATEGORIES
from joulemap.show.figure.spec import find_spec
from joulemap.show.present import category
from joulemap.show.present.cell import CATEGORY, show_in

SOURCE = Path(category.__file__).parents[1]


def test_every_category_has_one_name_of_its_own() -> None:
    assert set(category.DRAWN) == set(COMMON_CATEGORIES)
    assert len(set(category.CATEGORY.values())) == len(category.CATEGORY)
    overhead = {name for name in category.CATEGORY.values() if name in re.split(", | and ", category.OVERHEAD)}
    assert overhead == set(re.split(", | and ", category.OVERHEAD))


def test_the_names_are_written_in_one_place() -> None:
    """Names of one word are headings too, and static power is also a purpose, so other names are looked for."""
    names = {name for name in category.CATEGORY.values() if " " in name} - {category.CATEGORY["static"]}
    files = {
        path.name
        for path in SOURCE.rglob("*.py")
        if any(f': "{name}"' in path.read_text(encoding="utf-8") for name in names)
    }
    assert files == {"category.py"}


def test_tables_figures_and_text_drawings_have_these_names() -> None:
    column = Column(name=CATEGORY, type="VARCHAR", meaning="common category")
    assert [show_in(column, name) for name in COMMON_CATEGORIES] == [
        category.CATEGORY[name] for name in COMMON_CATEGORIES
    ]
    for name in ("breakdown", "tree"):
        view = str(find_spec(name).view)
        assert all(one in view for one in category.NUMBERED)
        assert "category_name" not in view
