"""A phase is one record of the wing: what follows from it, and that no other code knows its name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, get_args

import pytest

import joulemap
from joulemap.plan.model_name import find_names
from joulemap.system.errors import UsageError
from joulemap.wing.decoder import phase as module
from joulemap.wing.decoder.option import PassRunOptions
from joulemap.wing.decoder.phase import ANSWER, PHASE_NAMES, PHASES, PROMPT, PhaseName, find_phase

PACKAGE = Path(joulemap.__file__).parent


def list_texts(path: Path) -> set[str]:
    """Return the texts of a file that are no docstrings; none of a file that names no phase."""
    text = path.read_text(encoding="utf-8")
    if not any(one.name in text for one in (PROMPT, ANSWER)):
        return set()
    tree = ast.parse(text)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
    }


def test_every_name_has_a_record_and_one_phase_reads_prompts() -> None:
    assert [one.name for one in PHASES] == list(get_args(PhaseName))
    assert (PROMPT.reads_prompt, ANSWER.reads_prompt) == (True, False)
    assert (find_phase(512), find_phase(1)) == (PROMPT, ANSWER)


def test_no_other_code_names_a_phase() -> None:
    home = Path(module.__file__)
    files = [path for path in PACKAGE.rglob("*.py") if path != home and "generated" not in path.parts]
    named = {str(path.relative_to(PACKAGE)) for path in files if PROMPT.name in list_texts(path)}
    named |= {
        str(path.relative_to(PACKAGE))
        for path in files
        if home.parent in path.parents and ANSWER.name in list_texts(path)
    }
    assert named == set()


@pytest.mark.parametrize("phase", PHASES)
def test_the_size_of_a_pass_is_that_of_its_phase(phase: module.Phase) -> None:
    size: dict[str, Any] = {phase.option: 77}
    asked = PassRunOptions(phase=phase.name, **size)
    assert asked.name("llama-3.1-8b") == f"llama-3.1-8b({phase.size}=77,engine=vllm)"
    name = asked.name("llama-3.1-8b")
    assert find_names(name).find_phase(name) == phase.name


def test_a_model_that_is_no_pass_has_no_phase() -> None:
    assert find_names("resnet18").find_phase("resnet18") == ""
    with pytest.raises(UsageError, match=" or ".join(f"--phase {name}" for name in PHASE_NAMES)):
        PassRunOptions(cached=3).name("llama-3.1-8b")
