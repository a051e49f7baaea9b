"""Saved programs: what is in them is not run, and damaged ones are refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from bad_model import damage_program, poison_program, read_members, save_program, write_members
from conftest import Run
from joulemap.construct.model import trace_request
from joulemap.construct.saved import name_return_types
from joulemap.construct.source import resolve_model
from joulemap.physics.record.workload import Workload
from joulemap.system.errors import ExitCode, ModelError

TRAPS = tuple(poison_program(Path("marker")))

ALIVE = (
    "sample inputs",
    "weights of old",
    "constants of old",
    "a pickled weight",
    "a pickled constant",
    "an opaque constant",
    "a size",
    "a size of a tensor that is called as a remark",
    "a keyword",
    "a program of old",
)
"""Traps that do go off where torch loads them; the others are stopped by torch of this version, later."""

HARMLESS = ("a guard",)
"""What is kept as text, because nothing checks it."""


def trace(path: Path, *, trust: bool = False) -> Workload:
    return trace_request(resolve_model(str(path), {}, is_trusted=trust))


@pytest.mark.sample(10)
@pytest.mark.parametrize("place", TRAPS)
def test_code_in_a_saved_program_is_not_run(place: str, tmp_path: Path) -> None:
    marker, path = tmp_path / "marker", tmp_path / "net.pt2"
    path.write_bytes(poison_program(marker)[place]())
    if place in HARMLESS:
        trace(path)
    else:
        with pytest.raises(ModelError, match=r"net\.pt2 (may run code of its own|cannot be read)"):
            trace(path)
    assert not marker.exists()


@pytest.mark.sample(4)
@pytest.mark.parametrize("place", ALIVE)
def test_what_is_refused_would_have_run(place: str, tmp_path: Path) -> None:
    marker, path = tmp_path / "marker", tmp_path / "net.pt2"
    path.write_bytes(poison_program(marker)[place]())
    with pytest.raises(ModelError):  # after the trap, for it gives no tensors
        trace(path, trust=True)
    assert marker.exists()


def test_the_command_line_says_how_to_trust_a_program(joulemap: Run, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    (tmp_path / "net.pt2").write_bytes(poison_program(marker)["sample inputs"]())
    refused = joulemap("model", "show", "net.pt2")
    assert (refused.returncode, refused.stdout) == (ExitCode.MODEL, "")
    assert refused.stderr == (
        "joulemap: net.pt2 may run code of its own when it is loaded: data/sample_inputs/model.pt is a pickle of "
        f"{open.__module__}.open; JOULEMAP_TRUST=1 (in Python trust=True) loads it\n"
    )
    assert not marker.exists()
    assert joulemap("model", "show", "net.pt2", variables={"JOULEMAP_TRUST": "1"}).returncode == ExitCode.MODEL
    assert marker.exists()


class Sizes(torch.nn.Module):
    """Has what programs hold beside operators: sizes, a block without gradients, several outputs, scalars."""

    def forward(self, x: torch.Tensor, pair: tuple[torch.Tensor, float], *, named: dict[str, torch.Tensor]) -> object:
        with torch.no_grad():
            y = torch.einsum("bi,bi->bi", x, named["a b"]) * pair[1]
        z = torch.nn.functional.gelu(y, approximate="tanh").reshape(x.shape[0] // 2, -1)
        return {"top": torch.topk(z, 2), "size": x.shape[0] * 2 + 1, "text": [pair[0], y.max(dim=1)]}


def test_programs_of_every_part_are_taken_without_trust(tmp_path: Path) -> None:
    name_return_types()
    path, size = tmp_path / "net.pt2", 2 * torch.export.Dim("half", min=2, max=8)
    arguments = (torch.zeros(4, 6), (torch.zeros(3), 0.5))
    shapes = {"x": {0: size}, "pair": (None, None), "named": {"a b": {0: size}}}
    named = {"named": {"a b": torch.zeros(4, 6)}}
    torch.export.save(torch.export.export(Sizes(), arguments, named, dynamic_shapes=shapes), path)
    assert trace(path) == trace(path, trust=True)


class Largest(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> object:
        return x.max(dim=1)


def test_a_program_that_returns_a_named_tuple_is_read_by_a_process_that_named_nothing(
    joulemap: Run, tmp_path: Path
) -> None:
    """As a program that another version of torch saved."""
    name_return_types()
    program = torch.export.export(Largest(), (torch.zeros(4, 6),))
    torch.export.save(program, tmp_path / "net.pt2")
    done = joulemap("model", "show", "net.pt2")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_a_failed_save_left_is_refused_in_one_line(tmp_path: Path) -> None:
    members = read_members(save_program())
    path = tmp_path / "net.pt2"
    path.write_bytes(write_members({name: body for name, body in members.items() if "models/" not in name}))
    with pytest.raises(ModelError, match="holds no program") as refused:
        trace(path)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_program_of_a_model_with_attention_is_taken_without_trust(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    torch.export.save(torch.export.export(layer, (torch.zeros(2, 5, 16),)), path)
    assert trace(path) == trace(path, trust=True)


def test_a_program_written_anew_by_members_is_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "first.pt2", tmp_path / "second.pt2"
    first.write_bytes(save_program())
    second.write_bytes(write_members(read_members(save_program())))
    assert trace(first).operators == trace(second).operators


@pytest.mark.slow
def test_a_damaged_program_is_refused_in_one_line_or_traced(tmp_path: Path) -> None:
    draw, path, refusals = random.Random(0), tmp_path / "net.pt2", list[str]()
    for _ in range(20):
        path.write_bytes(damage_program(draw, save_program()))
        try:
            trace(path)
        except ModelError as error:
            refusals.append(str(error))
    assert len(refusals) > 10
    assert [text for text in refusals if "\n" in text or "net.pt2" not in text] == []
