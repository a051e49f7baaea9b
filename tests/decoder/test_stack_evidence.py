"""Evidence of the fitted numbers of engines: the sources, boards and models behind each, as data beside its source."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any, Final

import pytest

from evidence_case import FITTED, REFUSED
from joulemap.physics.record.quantity import Evidence, read_evidence
from joulemap.system.errors import CatalogueError
from joulemap.wing.decoder.engine.stack import RELEASES, find_stack, read_releases
from wording import UNCLEAR

UNFITTED: Final = {"llamacpp 2025 integer_rate.cpu": "zero: which kernels run, not how fast they are"}
"""Measured number of a stack without evidence -> reason."""


def list_numbers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each number of the stack files, as `ENGINE DATE NAME`, with its entry."""
    for path in sorted(RELEASES.glob("*.toml")):
        for release in tomllib.loads(path.read_text(encoding="utf-8"))["releases"]:
            for key, entry in release.items():
                if isinstance(entry, dict) and "value" in entry:
                    yield f"{path.stem} {release['date']} {key}", entry


def test_every_fitted_number_of_a_stack_has_evidence() -> None:
    bare = [name for name, one in list_numbers() if one["basis"] in FITTED and read_evidence(one) is None]
    assert bare == [*UNFITTED]


def test_no_other_number_of_a_stack_has_evidence() -> None:
    assert [name for name, one in list_numbers() if one["basis"] not in FITTED and read_evidence(one)] == []


def test_a_source_that_says_one_model_has_one() -> None:
    told = [one for _, one in list_numbers() if one["source"].startswith("one model, one source")]
    assert len(told) > 5
    assert {(one["sources"], one["models"]) for one in told} == {(1, 1)}


def test_the_numbers_of_an_engine_bring_their_evidence() -> None:
    found = find_stack("vllm", "2024").find("host_layer")
    assert found is not None
    assert found.evidence == Evidence(sources=1, boards=2, models=18)


@pytest.mark.parametrize("case", REFUSED)
def test_a_stack_with_evidence_in_part_is_refused_with_file_and_key(case: str) -> None:
    entry, reason = REFUSED[case]
    number: dict[str, object] = {"value": 1e-4, "unit": "s", "basis": "measured", "source": "a board"} | entry
    with pytest.raises(CatalogueError, match=rf"^toy\.toml: host_layer: {reason}$"):
        read_releases("toy", {"label": "Toy", "releases": [{"date": "2025", "mixes": True, "host_layer": number}]})


def test_texts_of_engines_have_no_unclear_phrase() -> None:
    lines = [(path.name, line) for path in sorted(RELEASES.iterdir()) for line in path.read_text("utf-8").splitlines()]
    assert lines
    assert [f"{name}: {found[0]}" for name, line in lines if (found := UNCLEAR.search(line.partition(" #")[0]))] == []
