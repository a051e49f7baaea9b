"""A sample of inputs that nobody means: each is answered, or refused in one line with the code for it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from conftest import Run
from fuzz import FAMILIES
from joulemap.system.errors import ExitCode
from sample import thin

COUNT = 15
ALLOWED = frozenset(ExitCode) - {ExitCode.INTERNAL, ExitCode.INTERRUPTED}


@pytest.mark.slow
@pytest.mark.parametrize("family", thin(FAMILIES, 2))
def test_what_nobody_means_is_refused_in_one_line(
    family: str, joulemap: Run, database: Path, own_database: Path, tmp_path: Path
) -> None:
    path = database if family in ("SQL", "query files") else own_database
    for number in range(COUNT):
        made = FAMILIES[family](Random(f"{family} {number}"))
        for name, content in made.files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content)
        done = joulemap(*made.arguments, variables={"JOULEMAP_DB": str(path)})
        shown = f"{family} {number}: {[word[:80] for word in made.arguments]}"
        assert done.returncode in ALLOWED, f"{shown}: {done.stderr[:300]}"
        assert "\x1b" not in done.stderr, shown
        if done.returncode != ExitCode.OK:
            assert done.stderr.count("\n") == 1, f"{shown}: {done.stderr[:300]}"
